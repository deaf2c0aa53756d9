//! The tenfold command: parses, dispatches, and turns results into exit codes.

mod args;
mod commands;
mod failure;
mod json;
mod near;
mod output;
mod progress;
mod signal;
mod values;

use std::env;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Color, Command};
use failure::{Exit, Failure, Problem, Result};
use json::Json;
use output::{Out, say};

/// A description of 100 000 tensors is a million small allocations: the system's allocator takes twice as long for them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    allow_many_files();
    signal::survive_file_limit();
    force_color();
    match Cli::try_parse() {
        Ok(cli) => run(&cli).into(),
        Err(usage) => {
            // Help goes to standard output, which may be closed already: that is not worth a message.
            let _ = usage.print();
            if usage.use_stderr() && asks_for_json() {
                let _ = write_problem(&Problem::usage(summary(&usage)), &mut io::stdout());
            }
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

/// Colour everywhere, as `CLICOLOR_FORCE` asks for it already; `NO_COLOR` and `--color` count more.
fn force_color() {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_off = |name: &str| env::var_os(name).is_some_and(|value| value == "0");
    if is_set("FORCE_COLOR") && !is_off("FORCE_COLOR") && !is_set("NO_COLOR") {
        anstream::ColorChoice::Always.write_global();
    }
}

/// Whether a command line that was not understood asks for JSON.
fn asks_for_json() -> bool {
    let mut options = env::args_os().take_while(|arg| arg != "--");
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

fn run(cli: &Cli) -> Exit {
    let color = match cli.color {
        Color::Auto => anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never,
        Color::Always => true,
        Color::Never => false,
    };
    let mut stdout = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut out = Out::new(&mut stdout, color);
    let result = dispatch(cli, &mut out);
    let is_json = cli.command.is_json() && out.is_empty();
    // What was printed before belongs before a message about what went wrong.
    let flushed = stdout.flush();
    let result = result.and_then(|exit| {
        flushed?;
        Ok(exit)
    });
    finish(result, is_json.then_some(&mut stdout))
}

fn dispatch(cli: &Cli, out: &mut Out<'_>) -> Result<Exit> {
    commands::set_limits(&cli.limit)?;
    match &cli.command {
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
    }
}

/// Says what went wrong, also as JSON where that is asked for and standard output has nothing else.
fn finish(result: Result<Exit>, json: Option<&mut dyn Write>) -> Exit {
    let (problem, exit) = match result.map_err(Failure::into_problem) {
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
        Err(Err(_)) => (Problem::canceled(), signal::exit()),
    };
    say(&problem.message);
    if let Some(out) = json {
        // The exit code says the same to whoever does not listen.
        let _ = write_problem(&problem, out);
    }
    exit
}

fn write_problem(problem: &Problem, out: &mut dyn Write) -> io::Result<()> {
    problem.write_json(&mut Json::new(out))?;
    writeln!(out)?;
    out.flush()
}
