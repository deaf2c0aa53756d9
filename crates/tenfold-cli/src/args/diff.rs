//! Two archives side by side.

use std::path::PathBuf;

use clap::Args;

use super::parse::tolerance;
use super::{Filter, Opening, Threads};

pub(super) const DIFF_EXAMPLES: &str = "\
Examples:
  tenfold diff old.safetensors new.safetensors     bit by bit, any two formats
  tenfold diff model.zt model-f16.zt --ignore-dtype --rtol 1e-3
  tenfold diff a.gguf b.gguf --names-only          names alone, no data is read
  tenfold diff --json a.mag b.zt | jq .equal       for programs
";

pub(super) const DIFF_NOTES: &str = "\
Without --rtol, --atol and --ulp every bit of the values counts, so that 0 and -0 differ, and different NaNs; the output \
says how many differences are only that. With any of them, such numbers are equal. Errors are relative to A. A tensor that \
has the same content under another name is called renamed.

Exit codes: 0 equal, 1 different, 2 trouble: wrong usage, or something cannot be read.";

#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The one to compare with: a file, a directory of files or an index
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The one that is compared
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    #[command(flatten)]
    pub(crate) opening: Opening,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Numbers are equal up to this times the absolute value of A's
    #[arg(long, value_name = "X", value_parser = tolerance)]
    pub(crate) rtol: Option<f64>,
    /// Numbers are equal up to this; with --rtol, to the sum
    #[arg(long, value_name = "X", value_parser = tolerance)]
    pub(crate) atol: Option<f64>,
    /// Numbers are equal up to this many representable ones between, in the less precise of both types
    #[arg(long, value_name = "N")]
    pub(crate) ulp: Option<u64>,
    /// Tensors of different types are equal if their numbers are
    #[arg(long)]
    pub(crate) ignore_dtype: bool,
    /// Do not compare metadata
    #[arg(long)]
    pub(crate) ignore_metadata: bool,
    /// Compare the names alone, and read no data
    #[arg(long)]
    pub(crate) names_only: bool,
    /// A line for every tensor, also when there are many
    #[arg(long)]
    pub(crate) full: bool,
    /// Print nothing; the exit code says it
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// No progress bar
    #[arg(long)]
    pub(crate) no_progress: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
