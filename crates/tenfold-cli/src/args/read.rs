//! The commands that read archives: inspect, verify, digest, stats, show, scan.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tenfold::model::Slice;

use super::parse::slices;
use super::{AsNumbers, Filter, Inputs, Opening, Reading, Threads};

pub(super) const INSPECT_EXAMPLES: &str = "\
Examples:
  tenfold inspect model.safetensors                      a table of the tensors
  tenfold inspect model.gguf --tree                      grouped by the parts of names
  tenfold inspect llama/ --summary                       a Hugging Face directory in two lines
  tenfold inspect -r runs/                               a line for each checkpoint below
  tenfold inspect model.gguf --include 'blk.3.*'         some of the tensors
  tenfold inspect model.zt --sort size                   the largest first
  tenfold inspect --json model.safetensors | jq .metadata
";

pub(super) const VERIFY_EXAMPLES: &str = "\
Examples:
  tenfold verify model.safetensors                 every finding, and what was checked
  tenfold verify model.gguf --content              also look for NaN and infinities
  tenfold verify llama/                            a Hugging Face directory, with its index
  tenfold digest model.gguf > sums.txt             keep digests of a file without checksums,
  tenfold verify model.gguf --against sums.txt     and see later whether it is still the same
  tenfold verify -q --strict *.mag                 for scripts: only the exit code; warnings fail too
";

pub(super) const DIGEST_EXAMPLES: &str = "\
Examples:
  tenfold digest model.safetensors                 SHA-256 of every tensor and of the whole content
  tenfold digest model.gguf llama/                 the same content gives the same digest
  tenfold digest --json model.zt | jq -r .content  only the digest of the content
";

pub(super) const STATS_EXAMPLES: &str = "\
Examples:
  tenfold stats model.safetensors                  a line for each tensor, and a total
  tenfold stats model.gguf --sort abs-max          the largest values first
  tenfold stats llama/ --include '*.weight' --hist
  tenfold stats --json model.zt | jq .total.nan    for scripts
";

pub(super) const SHOW_EXAMPLES: &str = "\
Examples:
  tenfold show model.safetensors lm_head.weight              as NumPy prints it
  tenfold show model.gguf token_embd.weight --slice '0:4, -1'   some elements; reads nothing else
  tenfold show llama/ model.norm.weight -o norm.csv          to a file: .csv, .npy, .json or text
  tenfold show model.zt layers.0.bias --full                 every element
  tenfold show model.gguf blk.0.attn_q.weight --plot         a heat map in the terminal
";

pub(super) const SCAN_EXAMPLES: &str = "\
Examples:
  tenfold scan model.pt                            what its pickles would run if anyone loaded them
  tenfold scan -q *.bin                            for scripts: the exit code alone
  tenfold scan --json model.pt | jq '.pickles[].globals[]'
";

pub(super) const SCAN_NOTES: &str = "\
Finds pickles in zip and tar archives, PyTorch's streams, NumPy's object arrays, joblib's files, and on their own. \
Imports and runs nothing. Exit code 0: every class and function is known to be harmless; 1: some are dangerous or unknown, \
or something could not be followed.";

pub(super) const STATS_NOTES: &str = "\
min, max, mean, std (of the population) and abs max cover the finite numbers. Complex numbers count as their components, \
quantized tensors as the numbers they stand for, sparse tensors with their zeros. For mean and std, integers of more than 53 \
bits and f128 are rounded to f64; f128 also for min and max.";

#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    #[command(flatten)]
    pub(crate) opening: Opening,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Order of the tensors [default: as in the file]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) sort: Option<Sort>,
    /// Print only the totals: parameters by type, and sizes
    #[arg(long, conflicts_with_all = ["tree", "all", "full"])]
    pub(crate) summary: bool,
    /// Print a line for each directory at or below those given that holds tensor files
    #[arg(long, short, conflicts_with_all = ["tree", "all", "full"])]
    pub(crate) recursive: bool,
    /// Print a tree of the parts of names, with counts and sizes
    #[arg(long, conflicts_with_all = ["all", "full", "sort", "json"])]
    pub(crate) tree: bool,
    /// Print a line for each tensor instead of grouping repeated layers
    #[arg(long)]
    pub(crate) all: bool,
    /// Print exact sizes in bytes
    #[arg(long)]
    pub(crate) bytes: bool,
    /// Print long metadata in full, and the metadata of every tensor
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Sort {
    /// By name
    Name,
    /// The largest first
    Size,
    /// By name, with layer 2 before layer 10
    Natural,
    /// By type
    Dtype,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Treat warnings as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Compare the tensors with a list printed by `tenfold digest`, as text or JSON
    #[arg(long, value_name = "LIST")]
    pub(crate) against: Option<PathBuf>,
    /// Also look at the numbers: warn of NaN, infinities and all-zero tensors
    #[arg(long)]
    pub(crate) content: bool,
    /// Print nothing; only set the exit code
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Args, Debug)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Also list what is harmless
    #[arg(long)]
    pub(crate) all: bool,
    /// Print nothing; only set the exit code
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DigestArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    #[command(flatten)]
    pub(crate) opening: Opening,
    #[command(flatten)]
    pub(crate) numbers: AsNumbers,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    #[command(flatten)]
    pub(crate) opening: Opening,
    #[command(flatten)]
    pub(crate) numbers: AsNumbers,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Order of the table [default: as in the file]
    #[arg(long, value_enum, value_name = "ORDER", conflicts_with = "json")]
    pub(crate) sort: Option<StatsSort>,
    /// Draw histograms, of 20 bins by default; reads the data twice
    #[arg(long, value_name = "BINS", num_args = 0..=1, require_equals = true, default_missing_value = "20", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) hist: Option<u32>,
    /// Hide the progress bar
    #[arg(long)]
    pub(crate) no_progress: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum StatsSort {
    /// By name, with layer 2 before layer 10
    Name,
    /// By type
    Dtype,
    /// The largest tensors first
    Size,
    /// The lowest minimum first
    Min,
    /// The highest maximum first
    Max,
    /// The highest mean first
    Mean,
    /// The highest deviation first
    Std,
    /// The highest absolute value first
    AbsMax,
    /// Most zeros first
    Zeros,
    /// Most NaN and infinities first
    Nan,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The file or model directory to read
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The name of the tensor; optional if there is only one
    #[arg(value_name = "TENSOR")]
    pub(crate) tensor: Option<String>,
    /// Only these elements, in NumPy's indices and ranges: '0:4, ..., -1'
    #[arg(long, short, value_name = "SLICE", value_parser = slices, allow_hyphen_values = true)]
    pub(crate) slice: Option<Slices>,
    /// Draw a picture of the tensor, or with --slice of a part. Of a large tensor only some rows are read; the output says so
    #[arg(long, conflicts_with_all = ["full", "format", "json", "output"])]
    pub(crate) plot: bool,
    /// Print every element; otherwise text shows only the first and last of more than 1000
    #[arg(long)]
    pub(crate) full: bool,
    /// The form of the output [default: by its extension, else text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<ShowFormat>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Write all of it to this file: .csv, .npy, .json or text
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing output
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) opening: Opening,
    #[command(flatten)]
    pub(crate) numbers: AsNumbers,
}

impl ShowArgs {
    /// The form that was asked for, else the one of the output's extension, else text.
    pub(crate) fn shown_format(&self) -> ShowFormat {
        if self.json {
            return ShowFormat::Json;
        }
        let extension = self.output.as_ref().and_then(|output| output.extension());
        let extension = extension.and_then(|extension| extension.to_str());
        let by_name = extension.and_then(|extension| ShowFormat::from_str(extension, true).ok());
        self.format.or(by_name).unwrap_or(ShowFormat::Text)
    }
}

/// What is taken along each dimension.
pub(crate) type Slices = std::sync::Arc<[Slice]>;

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ShowFormat {
    /// Aligned, and shortened if it is long
    Text,
    /// An object with the values as nested arrays
    Json,
    /// A line for each row
    Csv,
    /// The file that numpy.load reads
    Npy,
}
