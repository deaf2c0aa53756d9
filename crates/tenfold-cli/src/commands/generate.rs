//! `tenfold completions` and `tenfold man`: what is made from the definitions of the command line.

use std::io::Write;
use std::path::Path;

use clap_complete::{generate, shells};
use clap_mangen::Man;
use tenfold::io::{AtomicOutput, Output};

use crate::args::{self, CompletionsArgs, ManArgs, NamesArgs, Shell};
use crate::commands::Session;
use crate::failure::{Exit, Failure, Result};
use crate::near::did_you_mean;
use crate::output::{Out, count, show_path};

pub(crate) fn completions(args: &CompletionsArgs, out: &mut Out<'_>) -> Result<Exit> {
    let command = &mut args::command();
    // Into memory first: the generators panic where standard output is closed.
    let mut script = Vec::new();
    match args.shell {
        Shell::Bash => {
            generate(shells::Bash, command, "tenfold", &mut script);
            script.extend_from_slice(BASH_NAMES.as_bytes());
        }
        Shell::Fish => {
            generate(shells::Fish, command, "tenfold", &mut script);
            script.extend_from_slice(FISH_NAMES.as_bytes());
        }
        Shell::PowerShell => generate(shells::PowerShell, command, "tenfold", &mut script),
        Shell::Zsh => generate(shells::Zsh, command, "tenfold", &mut script),
    }
    out.write_all(&script)?;
    Ok(Exit::Done)
}

/// The names of tensors, where one is expected: of the first file on the line.
const BASH_NAMES: &str = r#"
_tenfold_tensors() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" file="" at
    for ((at = 2; at < COMP_CWORD; at++)); do
        if [[ "${COMP_WORDS[at]}" != -* ]]; then
            file="${COMP_WORDS[at]}"
            break
        fi
    done
    case "${COMP_WORDS[1]}" in
        show) [[ "$before" == -* || "$word" == -* ]] && file="" ;;
        extract) [[ "$before" == -t || "$before" == --tensor ]] || file="" ;;
        *) file="" ;;
    esac
    if [[ -n "$file" && -e "$file" ]]; then
        local IFS=$'\n'
        COMPREPLY=($(compgen -W "$(tenfold __names "$file" 2> /dev/null)" -- "$word"))
        return
    fi
    _tenfold "$@"
}
complete -F _tenfold_tensors -o nosort -o bashdefault -o default tenfold
"#;

/// The same for fish.
const FISH_NAMES: &str = r#"
function __tenfold_tensors
    for word in (commandline -opc)[3..]
        if not string match -q -- '-*' $word; and test -e $word
            tenfold __names $word 2> /dev/null
            return
        end
    end
end
complete -c tenfold -n "__fish_seen_subcommand_from show" -f -a "(__tenfold_tensors)"
complete -c tenfold -n "__fish_seen_subcommand_from extract" -s t -l tensor -x -a "(__tenfold_tensors)"
"#;

/// The names of the tensors of a file, one on each line. Names that no line can hold are left out.
pub(crate) fn names(args: &NamesArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let archive = session.open_plainly(&args.file);
    let archive = archive.map_err(|error| Failure::about(&args.file, &error))?;
    let is_plain = |name: &&str| !name.is_empty() && !name.contains(char::is_control);
    for name in archive
        .tensors()
        .map(|tensor| tensor.name())
        .filter(is_plain)
    {
        writeln!(out, "{name}")?;
    }
    Ok(Exit::Done)
}

pub(crate) fn man(args: &ManArgs, out: &mut Out<'_>) -> Result<Exit> {
    let mut command = args::command().disable_help_subcommand(true);
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
        commands.extend(inner.filter(|inner| inner.get_name() != "help" && !inner.is_hide_set()));
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
