//! The commands about tenfold itself: formats, completions, man.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::parse::format;

pub(super) const FORMATS_EXAMPLES: &str = "\
Examples:
  tenfold formats                                  every format
  tenfold formats mag                              what each version of one format can hold
";

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  tenfold completions bash > ~/.local/share/bash-completion/completions/tenfold
  tenfold completions fish > ~/.config/fish/completions/tenfold.fish
";

pub(super) const MAN_EXAMPLES: &str = "\
Examples:
  tenfold man | man -l -                           the page of the command itself
  tenfold man -o ~/.local/share/man/man1           a page for every command
";

#[derive(Args, Debug)]
pub(crate) struct FormatsArgs {
    /// Details of this format
    #[arg(value_name = "NAME", value_parser = format)]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Fish,
    #[value(name = "powershell")]
    #[allow(clippy::enum_variant_names)] // that is its name
    PowerShell,
    Zsh,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Print the page of this command instead of that of tenfold itself
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub(crate) command: Option<String>,
    /// Write all pages into this directory, which is made if it is not there
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}
