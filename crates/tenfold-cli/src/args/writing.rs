//! What every writing command takes.

use clap::{Args, ValueEnum};

use super::Threads;
use super::parse::{format, key_value, zstd_rule};

/// How files are written.
#[derive(Args, Debug)]
pub(crate) struct Writing {
    /// Write this format; that of the output's extension unless told otherwise
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) to: Option<String>,
    /// Write this version of the format; one that holds everything unless told otherwise
    #[arg(long, value_name = "V")]
    pub(crate) version: Option<String>,
    /// An option of the target format, see `tenfold formats NAME`; may be given several times
    #[arg(short = 'O', value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) options: Vec<(String, String)>,
    /// Compress with zstd, all tensors or those that match; the last match counts
    #[arg(long, value_name = "LEVEL[:GLOB]", value_parser = zstd_rule, allow_hyphen_values = true)]
    pub(crate) zstd: Vec<(i32, Option<String>)>,
    /// Do not compress, except what --zstd says
    #[arg(long)]
    pub(crate) raw: bool,
    /// Which checksums the tensors get
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Checksum::Keep)]
    pub(crate) checksum: Checksum,
    /// Which losses of metadata to accept; `dropped` includes `changed`
    #[arg(long, value_enum, value_name = "LOSS")]
    pub(crate) allow: Option<Allow>,
    /// Do not compare the checksums of the input first: what is damaged is written as it is
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Say what would be done, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace an output that exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not wait until the data is on the disk
    #[arg(long)]
    pub(crate) no_sync: bool,
    /// No progress bar
    #[arg(long)]
    pub(crate) no_progress: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print errors only
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print what was done as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whether contents are compared.
#[derive(Args, Debug)]
pub(crate) struct Checking {
    /// Compare the digests of all tensors before the output gets its name; merge and split do unless told otherwise
    #[arg(long, overrides_with = "no_check")]
    check: bool,
    /// Do not compare them; of both, what comes last counts
    #[arg(long, overrides_with = "check")]
    no_check: bool,
}

impl Checking {
    /// What was asked for, else `usual`.
    pub(crate) fn or(&self, usual: bool) -> bool {
        (usual || self.check) && !self.no_check
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Checksum {
    /// None
    None,
    /// Those of the input, where the target can hold them
    Keep,
    Crc32c,
    Sha256,
    Xxh3,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Allow {
    /// Metadata in another form
    Changed,
    /// Metadata that is not carried
    Dropped,
}
