//! What every command takes that reads files.

use std::path::PathBuf;

use clap::Args;
use tenfold::model::DType;

use super::parse::{dtype, format};

/// What every reading command takes.
#[derive(Args, Debug)]
pub(crate) struct Inputs {
    /// The files to read; a directory is read as one archive
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print JSON: one object, or an array when there are several files
    #[arg(long)]
    pub(crate) json: bool,
}

/// How files are read.
#[derive(Args, Debug)]
pub(crate) struct Reading {
    /// Read as this format, whatever the content looks like
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) from: Option<String>,
    /// Take elements for this type where the file has bytes without one (NumPy's V1, V2)
    #[arg(long, value_name = "DTYPE", value_parser = dtype)]
    pub(crate) assume: Option<DType>,
    /// Read objects of unknown classes in a pickle as records of what they hold; nothing is run
    #[arg(long)]
    pub(crate) opaque: bool,
}

/// How files are opened by every command but `verify`, which is there to compare checksums.
#[derive(Args, Debug)]
pub(crate) struct Opening {
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Do not compare checksums: what does not match them is read as it is, with a warning where it is a header
    #[arg(long)]
    pub(crate) no_verify: bool,
}

/// Which tensors.
#[derive(Args, Debug)]
pub(crate) struct Filter {
    /// Only tensors whose name matches (`*` crosses dots); may be given several times
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// Not the tensors whose name matches; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Also tensors in whose name this regular expression is found, as --include with a glob; may be given several times
    #[arg(long, value_name = "REGEX")]
    pub(crate) regex: Vec<String>,
}

/// How much is done at once.
#[derive(Args, Debug)]
pub(crate) struct Threads {
    /// How many threads; as many as processors unless told otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

impl Threads {
    /// 0 where none was given, which means as many as processors.
    pub(crate) fn count(&self) -> usize {
        self.threads.map_or(0, usize::from)
    }
}
