//! Two archives side by side.

use std::path::PathBuf;

use clap::Args;

use super::parse::tolerance;
use super::{AsNumbers, Filter, Opening, Threads};

pub(super) const DIFF_EXAMPLES: &str = "\
Examples:
  tenfold diff old.safetensors new.safetensors     bit by bit
  tenfold diff model.gguf model.safetensors        any two formats
  tenfold diff llama/ half/ --ignore-dtype --rtol 1e-3
  tenfold diff a.gguf b.gguf --names-only          only the names; reads no data
  tenfold diff --json a.mag b.zt | jq .equal       for scripts
";

pub(super) const DIFF_NOTES: &str = "\
Without --rtol, --atol or --ulp, every bit counts: 0 and -0 differ, and so do two different NaNs; the output says how many \
differences are of that kind. With any of them, such numbers are equal. Errors are relative to A. Where two tensors differ in \
the size of one dimension, their common part is compared. A tensor with the same content under another name counts as \
renamed. Metadata that only a container adds is ignored.

Exit codes: 0 equal, 1 different, 2 an error or something unreadable.";

#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The reference: a file, a model directory or an index
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// What to compare with it
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    #[command(flatten)]
    pub(crate) opening: Opening,
    #[command(flatten)]
    pub(crate) numbers: AsNumbers,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Relative tolerance: a difference of up to this times |A| is equal
    #[arg(long, value_name = "X", value_parser = tolerance)]
    pub(crate) rtol: Option<f64>,
    /// Absolute tolerance; added to that of --rtol
    #[arg(long, value_name = "X", value_parser = tolerance)]
    pub(crate) atol: Option<f64>,
    /// Tolerance in units of the last place, of the less precise type
    #[arg(long, value_name = "N")]
    pub(crate) ulp: Option<u64>,
    /// Compare numbers only: the same numbers in another type are equal
    #[arg(long)]
    pub(crate) ignore_dtype: bool,
    /// Do not compare metadata
    #[arg(long)]
    pub(crate) ignore_metadata: bool,
    /// Compare only names; read no data
    #[arg(long)]
    pub(crate) names_only: bool,
    /// Print a line for every tensor instead of grouping repeated layers
    #[arg(long)]
    pub(crate) full: bool,
    /// Print nothing; only set the exit code
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Hide the progress bar
    #[arg(long)]
    pub(crate) no_progress: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
