//! What every writing command takes.

use clap::{Args, ValueEnum};
use tenfold::model::{BlockSpec, DType};

use super::Threads;
use super::parse::{cast_rule, format, quantize_rule, zstd_rule};

/// Other types for tensors.
#[derive(Args, Debug)]
pub(crate) struct Types {
    /// Write quantized tensors as the numbers they stand for
    #[arg(long)]
    pub(crate) dequantize: bool,
    /// Write numbers as this type, all tensors or those that match, to the nearest and counting what is out of range; the last match counts
    #[arg(long, value_name = "DTYPE[:GLOB]", value_parser = cast_rule)]
    pub(crate) cast: Vec<(DType, Option<String>)>,
    /// Quantize to Q8_0 or Q4_0: every matrix of floats whose rows are whole blocks, or the tensors that match; the last match counts. What is not quantized can be cast
    #[arg(long, value_name = "TYPE[:GLOB]", value_parser = quantize_rule)]
    pub(crate) quantize: Vec<(&'static BlockSpec, Option<String>)>,
}

/// How files are written.
#[derive(Args, Debug)]
pub(crate) struct Writing {
    /// Write this format; that of the output's extension unless told otherwise
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) to: Option<String>,
    /// Write this version of the format; one that holds everything unless told otherwise
    #[arg(long, value_name = "V")]
    pub(crate) version: Option<String>,
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

/// What comes along with the tensors of a directory.
#[derive(Args, Debug)]
pub(crate) struct Along {
    /// From a directory into a directory, write the tensors alone; otherwise config.json, the tokenizer and whatever else is no tensor file come along
    #[arg(long)]
    pub(crate) weights_only: bool,
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
