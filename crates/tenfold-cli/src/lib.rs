//! The tenfold command as a library: parses, dispatches, and turns results into exit codes.
//!
//! The binary is a process around [`run`], and so is whatever else carries the command.

mod args;
mod commands;
mod failure;
mod hints;
mod json;
mod losses;
mod metadata;
mod near;
mod output;
mod progress;
mod urls;
mod values;

use std::env;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use clap::FromArgMatches;
use tenfold::Control;

use args::{Cli, Color, Command};
use commands::Session;
use failure::{Exit, Failure, Problem, Result};
use output::{Out, Screen, say};
use urls::{Addresses, Urls};

/// The number that the signal of Ctrl-C has.
pub const INTERRUPT: u8 = 2;

/// Whatever may stop a command before its end, such as the signals of a process.
pub trait Interrupts {
    /// Cancels this from now on when somebody asks for it. Commands that write call it before they create a file: stopped
    /// by it, they leave nothing behind. The others may be ended at any time.
    fn watch(&self, control: Arc<Control>) -> io::Result<()>;

    /// The number of the signal that came; the exit code is 128 more. [`INTERRUPT`] by default.
    fn caught(&self) -> Option<u8> {
        None
    }
}

/// Nobody asks.
impl Interrupts for () {
    fn watch(&self, _: Arc<Control>) -> io::Result<()> {
        Ok(())
    }
}

/// Runs the command: `args` as a process gets them, the name of the program first. What is left is the exit code.
///
/// Reads and writes the standard streams of the process and changes nothing else of it, so that it may run more than once,
/// and in a process that is not its own.
///
/// ```
/// assert_eq!(tenfold_cli::run(["tenfold", "inspect", "nowhere.zt"], &()), 2);
/// ```
pub fn run(args: impl IntoIterator<Item = impl Into<OsString>>, interrupts: &dyn Interrupts) -> u8 {
    let args = args.into_iter().map(Into::into).collect();
    let (args, addresses) = urls::hide_secrets(args);
    let mut command = args::command();
    if is_color_forced() {
        command = command.color(clap::ColorChoice::Always);
    }
    let parsed = command
        .try_get_matches_from_mut(&args)
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .map_err(|error| error.format(&mut command));
    match parsed {
        Ok(cli) => execute(&cli, addresses, interrupts).code(),
        Err(usage) => {
            // Help goes to standard output, which may be closed already: that is not worth a message.
            let _ = usage.print();
            if let Some(hint) = elsewhere(&usage) {
                say(hint);
            }
            if usage.use_stderr() && asks_for_json(&args) {
                let _ = write_problem(&Problem::usage(summary(&usage)), &mut io::stdout());
            }
            u8::try_from(usage.exit_code()).unwrap_or(Exit::Trouble.code())
        }
    }
}

/// Which commands have an option that this one does not.
fn elsewhere(usage: &clap::Error) -> Option<String> {
    if usage.kind() != clap::error::ErrorKind::UnknownArgument {
        return None;
    }
    let given = match usage.get(clap::error::ContextKind::InvalidArg)? {
        clap::error::ContextValue::String(given) => given,
        _ => return None,
    };
    let option = given.split('=').next()?.strip_prefix("--")?;
    let command = args::command();
    let has_it = |command: &&clap::Command| {
        let mut options = command.get_arguments().filter_map(clap::Arg::get_long);
        options.any(|known| known == option)
    };
    let names: Vec<_> = (command.get_subcommands().filter(has_it))
        .map(|command| format!("`tenfold {}`", command.get_name()))
        .collect();
    // What many commands have is found under --help.
    (1..=2)
        .contains(&names.len())
        .then(|| format!("--{option} is an option of {}", names.join(" and ")))
}

/// The exit code of a command that a signal stopped, as shells have it.
pub fn interrupted(signal: u8) -> u8 {
    Exit::Signal(signal).code()
}

/// Whether there is colour everywhere, as `CLICOLOR_FORCE` asks for it already; `NO_COLOR` and `--color` count more.
fn is_color_forced() -> bool {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_off = |name: &str| env::var_os(name).is_some_and(|value| value == "0");
    is_set("FORCE_COLOR") && !is_off("FORCE_COLOR") && !is_set("NO_COLOR")
}

/// Whether a command line that was not understood asks for JSON.
fn asks_for_json(args: &[OsString]) -> bool {
    let mut options = args.iter().take_while(|arg| *arg != "--");
    options.any(|arg| arg == "--json")
}

/// Wrong usage in one line: what comes before the hints.
fn summary(usage: &clap::Error) -> String {
    let text = usage.to_string();
    let lines = text.lines().take_while(|line| !line.is_empty());
    let words: Vec<_> = lines.map(str::trim).collect();
    let text = words.join(" ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

fn execute(cli: &Cli, addresses: Addresses, interrupts: &dyn Interrupts) -> Exit {
    let color = match cli.color {
        Color::Auto if is_color_forced() => true,
        Color::Auto => anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never,
        Color::Always => true,
        Color::Never => false,
    };
    let mut stdout = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut out = Out::new(&mut stdout, color);
    out.screen = terminal_size::terminal_size_of(io::stdout()).map(|(columns, lines)| Screen {
        columns: columns.0.into(),
        lines: lines.0.into(),
    });
    let result = dispatch(cli, addresses, interrupts, &mut out);
    let is_json = cli.command.is_json() && out.is_empty();
    // What was printed before belongs before a message about what went wrong.
    let flushed = stdout.flush();
    let result = result.and_then(|exit| {
        flushed?;
        Ok(exit)
    });
    finish(
        result,
        &cli.command,
        interrupts,
        is_json.then_some(&mut stdout),
    )
}

fn dispatch(
    cli: &Cli,
    addresses: Addresses,
    interrupts: &dyn Interrupts,
    out: &mut Out<'_>,
) -> Result<Exit> {
    let urls = Urls::new(cli, addresses);
    let _log = urls.log();
    let session = &Session::new(&cli.limit, urls, interrupts)?;
    match &cli.command {
        Command::Inspect(args) => commands::inspect::run(args, session, out),
        Command::Verify(args) => commands::verify::run(args, session, out),
        Command::Digest(args) => commands::digest::run(args, session, out),
        Command::Scan(args) => commands::scan::run(args, session, out),
        Command::Convert(args) => commands::convert::run(args, session, out),
        Command::Diff(args) => commands::diff::run(args, session, out),
        Command::Stats(args) => commands::stats::run(args, session, out),
        Command::Extract(args) => commands::extract::run(args, session, out),
        Command::Merge(args) => commands::merge::run(args, session, out),
        Command::Split(args) => commands::split::run(args, session, out),
        Command::Rename(args) => commands::rename::run(args, session, out),
        Command::Meta(args) => commands::meta::run(args, session, out),
        Command::Formats(args) => commands::formats::run(args, out),
        Command::Plan(args) => commands::scale::plan(args, &cli.limit, session, out),
        Command::Run(args) => commands::scale::run(args, session),
        Command::Join(args) => commands::scale::join(args, session, out),
        Command::Show(args) => commands::show::run(args, session, out),
        #[cfg(feature = "view")]
        Command::View(args) => commands::view::run(args, session, out),
        Command::Completions(args) => commands::generate::completions(args, out),
        Command::Man(args) => commands::generate::man(args, out),
        Command::Names(args) => commands::generate::names(args, session, out),
    }
}

/// Says what went wrong, also as JSON where that is asked for and standard output has nothing else.
fn finish(
    result: Result<Exit>,
    command: &Command,
    interrupts: &dyn Interrupts,
    json: Option<&mut dyn Write>,
) -> Exit {
    let (mut problem, exit) = match result.map_err(Failure::into_problem) {
        Ok(exit) => return exit,
        Err(Ok(problem)) => (problem, Exit::Trouble),
        Err(Err(Failure::Output(cause))) => {
            // Whoever read our output has seen enough.
            if cause.kind() == io::ErrorKind::BrokenPipe {
                return Exit::Done;
            }
            say(format_args!("cannot write to standard output: {cause}"));
            return Exit::Trouble;
        }
        Err(Err(_)) => {
            let signal = interrupts.caught().unwrap_or(INTERRUPT);
            (Problem::canceled(), Exit::Signal(signal))
        }
    };
    say(&problem.message);
    if let Some(out) = json {
        if problem.file.is_none() {
            problem.file = command.file().map(Path::to_owned);
        }
        // The exit code says the same to whoever does not listen.
        let _ = write_problem(&problem, out);
    }
    exit
}

fn write_problem(problem: &Problem, out: &mut dyn Write) -> io::Result<()> {
    problem.write_json(out)?;
    writeln!(out)?;
    out.flush()
}
