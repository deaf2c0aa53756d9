//! The command that shows files in a browser.

use std::path::PathBuf;

use clap::Args;

use super::{AsNumbers, Opening};

pub(super) const VIEW_EXAMPLES: &str = "\
Examples:
  tenfold view model.safetensors                   opens a page in the browser
  tenfold view old.safetensors new.gguf            two files open side by side
  tenfold view llama/                              a Hugging Face directory is one model
  tenfold view model.gguf --no-open --port 8000    elsewhere, with ssh -L 8000:localhost:8000 HOST
";

pub(super) const VIEW_NOTES: &str = "\
The page is served to this machine alone, to whoever has the address that is printed; what it holds is good for one \
browser. Nothing is written, nothing leaves the machine. Ctrl-C ends it.";

#[derive(Args, Debug)]
pub(crate) struct ViewArgs {
    /// Files, model directories or URLs to look at; of two, the page shows the differences
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The port to listen on [default: any that is free]
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(crate) port: u16,
    /// Only print the address; open no browser
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Also answer to this host name, such as that of a notebook proxy; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// End when no page has asked anything for so many seconds; an open page asks every 30
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,
    #[command(flatten)]
    pub(crate) opening: Opening,
    #[command(flatten)]
    pub(crate) numbers: AsNumbers,
}
