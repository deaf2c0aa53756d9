//! `tenfold view`: a page that shows files, served to a browser on this machine.

mod browser;
mod gate;
mod http;
mod inputs;
mod server;

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tenfold_view::{Mode, View};

use crate::args::ViewArgs;
use crate::commands::Session;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Out, say};
use gate::Gate;
use server::Server;

/// How long the code in an address that a program was started with is good: others may see the arguments of programs.
const CODE_LIFE: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &ViewArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let view = View::new(Mode::Served);
    inputs::add(&view, args, session)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
        .map_err(|cause| cannot_listen(args.port, &cause))?;
    let address = listener.local_addr()?;
    let is_opened = !args.no_open && browser::is_there();
    let life = is_opened.then_some(CODE_LIFE);
    let (gate, code) = Gate::new(life, &args.allow_host)
        .map_err(|cause| Failure::Message(format!("cannot make a random code: {cause}")))?;
    let address_shown = format!("http://127.0.0.1:{}/#code={code}", address.port());
    if is_opened && let Err(cause) = browser::open(&address_shown) {
        say(format_args!(
            "cannot open a browser ({cause}); open the address yourself"
        ));
    }
    writeln!(out, "{address_shown}")?;
    out.flush()?;
    say("serving this machine alone; Ctrl-C ends");
    let mut listeners = vec![listener];
    // Some systems resolve `localhost` to this one first. Without it, browsers try the other.
    listeners.extend(TcpListener::bind((Ipv6Addr::LOCALHOST, address.port())).ok());
    let idle = args.timeout.map(Duration::from_secs);
    Arc::new(Server::new(view, gate)).run(listeners, idle)?;
    Ok(Exit::Done)
}

fn cannot_listen(port: u16, cause: &std::io::Error) -> Failure {
    let port = if port == 0 {
        "a free port".to_owned()
    } else {
        format!("port {port}")
    };
    Failure::Message(format!(
        "cannot listen on {port}: {cause}; --port takes another"
    ))
}
