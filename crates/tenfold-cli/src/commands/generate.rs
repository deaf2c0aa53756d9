//! `tenfold completions` and `tenfold man`: what is made from the definitions of the command line.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::{generate, shells};
use clap_mangen::Man;
use tenfold::io::{AtomicOutput, Output};

use crate::args::{Cli, CompletionsArgs, ManArgs, Shell};
use crate::failure::{Exit, Failure, Result};
use crate::near::did_you_mean;
use crate::output::{Out, count, show_path};

pub(crate) fn completions(args: &CompletionsArgs, out: &mut Out<'_>) -> Result<Exit> {
    let command = &mut Cli::command();
    // Into memory first: the generators panic where standard output is closed.
    let mut script = Vec::new();
    match args.shell {
        Shell::Bash => generate(shells::Bash, command, "tenfold", &mut script),
        Shell::Fish => generate(shells::Fish, command, "tenfold", &mut script),
        Shell::PowerShell => generate(shells::PowerShell, command, "tenfold", &mut script),
        Shell::Zsh => generate(shells::Zsh, command, "tenfold", &mut script),
    }
    out.write_all(&script)?;
    Ok(Exit::Done)
}

pub(crate) fn man(args: &ManArgs, out: &mut Out<'_>) -> Result<Exit> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    if let Some(directory) = &args.output {
        return write_pages(&command, directory, out);
    }
    let page = match &args.command {
        None => page(command)?,
        Some(name) => match command.find_subcommand(name) {
            Some(found) => page(found.clone())?,
            None => {
                let names = command.get_subcommands().map(clap::Command::get_name);
                let hint = did_you_mean(names, name);
                let hint = hint.unwrap_or_else(|| "`tenfold --help` lists them".into());
                let message = format!("there is no command {name:?}; {hint}");
                return Err(Failure::Message(message));
            }
        },
    };
    out.write_all(&page)?;
    Ok(Exit::Done)
}

fn page(command: clap::Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let examples = command.get_before_help().map(ToString::to_string);
    Man::new(command).render(&mut page)?;
    if let Some(examples) = examples {
        page.extend_from_slice(b".SH EXAMPLES\n.nf\n");
        for line in examples.lines().filter(|line| *line != "Examples:") {
            // A dot or an apostrophe at the beginning of a line would be a request.
            let line = line.replace('\\', "\\e").replace('-', "\\-");
            writeln!(page, "\\&{}", line.trim_start())?;
        }
        page.extend_from_slice(b".fi\n");
    }
    Ok(page)
}

fn write_pages(command: &clap::Command, directory: &Path, out: &mut Out<'_>) -> Result<Exit> {
    std::fs::create_dir_all(directory).map_err(|cause| {
        Failure::Message(format!("cannot create {}: {cause}", show_path(directory)))
    })?;
    let mut written = 0;
    let mut commands = vec![command];
    while let Some(command) = commands.pop() {
        let inner = command.get_subcommands();
        commands.extend(inner.filter(|inner| inner.get_name() != "help"));
        let name = match command.get_display_name() {
            Some(name) => name,
            None => command.get_name(),
        };
        let path = directory.join(format!("{name}.1"));
        // Pages of an earlier version are replaced.
        let mut output = AtomicOutput::file(&path)?.force(true).sync(false);
        let page = page(command.clone())?;
        let name = output.main_name().to_owned();
        output
            .create(&name, Some(page.len() as u64))?
            .write(&page)?;
        output.commit()?;
        written += 1;
    }
    let pages = count(written, "manual page");
    writeln!(out, "{pages} written to {}", show_path(directory))?;
    Ok(Exit::Done)
}
