//! The commands that read archives: inspect, verify, digest, stats, show, scan.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tenfold::model::Slice;

use super::parse::slices;
use super::{Filter, Inputs, Opening, Reading, Threads};

pub(super) const INSPECT_EXAMPLES: &str = "\
Examples:
  tenfold inspect model.safetensors                      a table of the tensors
  tenfold inspect llama/ --summary                       a model directory in two lines
  tenfold inspect model.gguf --tree                      by the parts of names
  tenfold inspect model.zt --include 'layers.3.*'        some of them
  tenfold inspect model.zt --sort size                   the largest first
  tenfold inspect --json model.safetensors | jq .metadata
";

pub(super) const VERIFY_EXAMPLES: &str = "\
Examples:
  tenfold verify model.zt                          every finding on a line, and what was checked
  tenfold verify -q --strict *.mag                 for scripts: the exit code alone, warnings count
  tenfold digest model.gguf > sums.txt             a list for later, where a file has no checksums,
  tenfold verify model.gguf --against sums.txt     and whether the tensors are still the same
";

pub(super) const DIGEST_EXAMPLES: &str = "\
Examples:
  tenfold digest model.zt                          SHA-256 of every tensor and of the whole content
  tenfold digest --json model.zt | jq -r .content  the content digest alone
";

pub(super) const STATS_EXAMPLES: &str = "\
Examples:
  tenfold stats model.zt                           a line for every tensor, and one for all
  tenfold stats model.zt --include '*.weight' --hist
  tenfold stats --json model.zt | jq .total.nan    for programs
";

pub(super) const SHOW_EXAMPLES: &str = "\
Examples:
  tenfold show model.zt layers.0.bias                        as NumPy shows it, the middle left out where it is long
  tenfold show model.zt layers.0.weight --slice '0:4, -1'    some elements: nothing else is read
  tenfold show model.zt layers.0.bias --full                 all of them
  tenfold show model.zt layers.0.bias --format csv -o bias.csv
";

pub(super) const SCAN_EXAMPLES: &str = "\
Examples:
  tenfold scan model.pt                            what its pickles would run, if somebody loaded them
  tenfold scan -q *.bin                            for scripts: the exit code alone
  tenfold scan --json model.pt | jq '.pickles[].globals[]'
";

pub(super) const SCAN_NOTES: &str = "\
Pickles are looked for in zip and tar archives, PyTorch's streams, NumPy's arrays of objects, joblib's files and by \
themselves. Nothing is imported or run. Exit code 0: every class and function is known to be harmless; 1: some are \
dangerous or unknown, or something could not be followed.";

pub(super) const STATS_NOTES: &str = "\
min, max, mean, std (of the population) and abs max are of the finite numbers. An element of several numbers, such as a \
complex one, counts as its components. Quantized tensors count as the numbers that they stand for, sparse ones with their \
zeros. Integers of more than 53 bits and f128 are rounded to f64 for mean and std, f128 for min and max too.";

#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    #[command(flatten)]
    pub(crate) opening: Opening,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// The order [default: as in the file]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) sort: Option<Sort>,
    /// Only the first lines: how many parameters of which types, how large
    #[arg(long, conflicts_with_all = ["tree", "all", "full"])]
    pub(crate) summary: bool,
    /// A tree of the parts of names, with counts and sizes
    #[arg(long, conflicts_with_all = ["all", "full", "sort", "json"])]
    pub(crate) tree: bool,
    /// A line for each tensor, even where a terminal would show groups of alike ones
    #[arg(long)]
    pub(crate) all: bool,
    /// Exact sizes in bytes
    #[arg(long)]
    pub(crate) bytes: bool,
    /// Long metadata in full, and the metadata of every tensor
    #[arg(long)]
    pub(crate) full: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Sort {
    /// By the bytes of the name
    Name,
    /// The largest first
    Size,
    /// By name, numbers in it by their value: layer 2 before layer 10
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
    /// Warnings count as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Also compare the tensors with a list that `tenfold digest` printed, as text or as JSON
    #[arg(long, value_name = "LIST")]
    pub(crate) against: Option<PathBuf>,
    /// Look at the numbers too, and warn of NaN, infinities and tensors of nothing but zeros
    #[arg(long)]
    pub(crate) content: bool,
    /// Print nothing; the exit code says it
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
    /// Print nothing; the exit code says it
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
    pub(crate) threads: Threads,
}

#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    #[command(flatten)]
    pub(crate) opening: Opening,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// The order of the table [default: as in the file]
    #[arg(long, value_enum, value_name = "ORDER", conflicts_with = "json")]
    pub(crate) sort: Option<StatsSort>,
    /// Draw histograms, of 20 bins unless told otherwise; reads the data a second time
    #[arg(long, value_name = "BINS", num_args = 0..=1, require_equals = true, default_missing_value = "20", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) hist: Option<u32>,
    /// No progress bar
    #[arg(long)]
    pub(crate) no_progress: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum StatsSort {
    /// By name, numbers in it by their value
    Name,
    /// By type
    Dtype,
    /// The largest tensors first
    Size,
    /// The least minimum first
    Min,
    /// The greatest maximum first
    Max,
    /// The greatest mean first
    Mean,
    /// The widest spread first
    Std,
    /// The greatest absolute value first
    AbsMax,
    /// Most zeros first
    Zeros,
    /// Most NaN and infinities first
    Nan,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// The file to read; a directory is read as one archive
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The name of the tensor; may be left out where there is only one
    #[arg(value_name = "TENSOR")]
    pub(crate) tensor: Option<String>,
    /// Only some elements, by indices and ranges as NumPy has them: '0:4, ..., -1'
    #[arg(long, short, value_name = "SLICE", value_parser = slices, allow_hyphen_values = true)]
    pub(crate) slice: Option<Slices>,
    /// All elements; of more than 1000, text shows the first and last ones unless told otherwise
    #[arg(long)]
    pub(crate) full: bool,
    /// In which form; all but text hold all elements
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = ShowFormat::Text)]
    pub(crate) format: ShowFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an output that exists
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) opening: Opening,
}

/// What is taken along each dimension.
pub(crate) type Slices = std::sync::Arc<[Slice]>;

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ShowFormat {
    /// For people: aligned, and shortened where it is long
    Text,
    /// One object with the values as nested arrays
    Json,
    /// A line for every row
    Csv,
    /// The file that numpy.load reads
    Npy,
}
