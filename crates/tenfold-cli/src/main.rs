//! The tenfold command: parses, dispatches, and turns results into exit codes.

mod args;
mod commands;
mod failure;
mod json;
mod output;
mod progress;
mod values;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Color, Command};
use failure::{Exit, Failure, Result};
use output::{Out, say};

/// A description of 100 000 tensors is a million small allocations: the system's allocator takes twice as long for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    allow_many_files();
    match Cli::try_parse() {
        Ok(cli) => finish(run(&cli)).into(),
        Err(usage) => {
            // Help goes to standard output, which may be closed already: that is not worth a message.
            let _ = usage.print();
            u8::try_from(usage.exit_code()).map_or(Exit::Trouble.into(), ExitCode::from)
        }
    }
}

/// A model may be thousands of files: as many may be open as the system permits, not as few as shells usually say.
fn allow_many_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        // Without it, the system's own error says what is missing.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

fn run(cli: &Cli) -> Result<Exit> {
    let color = match cli.color {
        Color::Auto => anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never,
        Color::Always => true,
        Color::Never => false,
    };
    let mut stdout = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let out = &mut Out::new(&mut stdout, color);
    commands::set_limits(&cli.limit)?;
    let result = match &cli.command {
        Command::Inspect(args) => commands::inspect::run(args, out),
        Command::Verify(args) => commands::verify::run(args, out),
        Command::Digest(args) => commands::digest::run(args, out),
        Command::Convert(args) => commands::convert::run(args, out),
        Command::Diff(args) => commands::diff::run(args, out),
        Command::Stats(args) => commands::stats::run(args, out),
        Command::Extract(args) => commands::extract::run(args, out),
        Command::Merge(args) => commands::merge::run(args, out),
        Command::Split(args) => commands::split::run(args, out),
        Command::Rename(args) => commands::rename::run(args, out),
        Command::Meta(args) => commands::meta::run(args, out),
        Command::Formats(args) => commands::formats::run(args, out),
        Command::Show(args) => commands::show::run(args, out),
        Command::Completions(args) => commands::generate::completions(args, out),
        Command::Man(args) => commands::generate::man(args, out),
    };
    let flushed = stdout.flush();
    let exit = result?;
    flushed?;
    Ok(exit)
}

fn finish(result: Result<Exit>) -> Exit {
    match result {
        Ok(exit) => exit,
        Err(Failure::Canceled) => {
            say("stopped; nothing was written");
            Exit::Canceled
        }
        Err(Failure::Message(message)) => {
            say(message);
            Exit::Trouble
        }
        // Whoever read our output has seen enough.
        Err(Failure::Output(cause)) if cause.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(Failure::Output(cause)) => {
            say(format_args!("cannot write to standard output: {cause}"));
            Exit::Trouble
        }
    }
}
