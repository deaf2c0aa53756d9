//! The commands about tenfold itself: formats, completions, man.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::parse::{format, formats};
use super::suggest::suggest;

pub(super) const FORMATS_EXAMPLES: &str = "\
Examples:
  tenfold formats                                  every format
  tenfold formats safetensors                      what one format can hold, and its options
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
    /// Show the details of this format
    #[arg(value_name = "NAME", value_parser = suggest(format, formats), hide_possible_values = true)]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
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
pub(crate) struct NamesArgs {
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Print the page of this command
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub(crate) command: Option<String>,
    /// Write all pages to this directory, which is created if needed
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}
