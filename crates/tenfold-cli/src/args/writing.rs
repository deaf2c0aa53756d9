//! What every writing command takes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tenfold::model::DType;
use tenfold::ops::QuantizeTo;

use super::Threads;
use super::parse::{
    block_types, cast_rule, dtypes, format, quantize_rule, written_formats, zstd_rule,
};
use super::suggest::suggest;

/// Other types for tensors.
#[derive(Args, Debug)]
pub(crate) struct Types {
    /// Write quantized tensors as the numbers they stand for
    #[arg(long)]
    pub(crate) dequantize: bool,
    /// Convert numbers to this type, rounding to nearest and counting overflows: all tensors, or those that match; repeatable, the last match wins
    #[arg(long, value_name = "DTYPE[:GLOB]", value_parser = suggest(cast_rule, dtypes), hide_possible_values = true)]
    pub(crate) cast: Vec<(DType, Option<String>)>,
    /// Quantize to one of llama.cpp's types or mixtures, such as Q4_K_M: all matrices of a model, or those that match; `keep` leaves some as they are; repeatable, the last match wins
    #[arg(long, value_name = "TYPE[:GLOB]", value_parser = suggest(quantize_rule, block_types), hide_possible_values = true)]
    pub(crate) quantize: Vec<(QuantizeTo, Option<String>)>,
    /// An importance matrix, as llama-imatrix writes it: how much each column counts; for --quantize
    #[arg(long, value_name = "FILE", requires = "quantize")]
    pub(crate) imatrix: Option<PathBuf>,
    /// Give all tensors the type that most have in the mixture; for --quantize
    #[arg(long, requires = "quantize")]
    pub(crate) pure: bool,
    /// Report how far the quantized numbers are from the originals: relative error, cosine, the worst tensors
    #[arg(long, requires = "quantize")]
    pub(crate) report: bool,
}

/// How files are written.
#[derive(Args, Debug)]
pub(crate) struct Writing {
    /// The format to write [default: by the extension of the output]
    #[arg(long, value_name = "FORMAT", value_parser = suggest(format, written_formats), hide_possible_values = true)]
    pub(crate) to: Option<String>,
    /// The version to write [default: the first that holds everything]
    #[arg(long, value_name = "V")]
    pub(crate) version: Option<String>,
    /// Compress with zstd: all tensors, or those that match; repeatable, the last match wins
    #[arg(long, value_name = "LEVEL[:GLOB]", value_parser = zstd_rule, allow_hyphen_values = true)]
    pub(crate) zstd: Vec<(i32, Option<String>)>,
    /// Store tensors uncompressed, except where --zstd applies
    #[arg(long)]
    pub(crate) raw: bool,
    /// Checksums to write
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Checksum::Keep)]
    pub(crate) checksum: Checksum,
    /// Accept metadata losses up to this; without it, tenfold refuses them
    #[arg(long, value_enum, value_name = "LOSS")]
    pub(crate) allow: Option<Allow>,
    /// Say what would be done, but write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace an existing output
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not wait until the data is on disk
    #[arg(long)]
    pub(crate) no_sync: bool,
    /// Hide the progress bar
    #[arg(long)]
    pub(crate) no_progress: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print only errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What comes along with the tensors of a directory.
#[derive(Args, Debug)]
pub(crate) struct Along {
    /// Write only the tensors. Otherwise, from directory to directory, config.json, the tokenizer and everything else without weights are copied too
    #[arg(long)]
    pub(crate) weights_only: bool,
}

/// Whether contents are compared.
#[derive(Args, Debug)]
pub(crate) struct Checking {
    /// Compare the digests of all tensors before the output appears; the default of merge and split
    #[arg(long, overrides_with = "no_check")]
    check: bool,
    /// Do not compare digests
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
    /// Those of the input, where the target has room for them
    Keep,
    Crc32c,
    Sha256,
    Xxh3,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Allow {
    /// Metadata may change its form, such as numbers to text
    Changed,
    /// Metadata may be lost; includes `changed`
    Dropped,
}
