//! The command line: definitions, nothing else.

mod edit;
mod writing;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tenfold::model::{BlockSpec, DType, Slice};

pub(crate) use edit::{
    ExtractArgs, MergeArgs, MetaArgs, MetaCommand, MetaEdit, MetaExport, MetaGet, MetaImport,
    MetaSet, MetaUnset, PreferArg, RenameArgs, SplitArgs,
};
pub(crate) use writing::{Allow, Checking, Checksum, Writing};

const EXAMPLES: &str = "\
Examples:
  tenfold inspect model.zt                         what is in a file
  tenfold show model.zt layers.0.bias              the values of a tensor
  tenfold verify model.mag                         is it sound? checks every checksum it carries
  tenfold convert model.mag model.zt               another format, by the name of the output
  tenfold convert model.zt small.zt --zstd 9       the same format, compressed
  tenfold digest a.mag b.zt                        equal content, equal digest, in any format
  tenfold diff old.zt new.safetensors              what is different, tensor by tensor
  tenfold stats model.zt                           extremes, mean, spread, NaN and infinities
  tenfold formats                                  what is read and written
";

const INSPECT_EXAMPLES: &str = "\
Examples:
  tenfold inspect model.zt                         a table of the tensors
  tenfold inspect model.zt --include 'layers.3.*'  some of them
  tenfold inspect model.zt --sort size             the largest first
  tenfold inspect --json model.zt | jq .metadata   for programs
";

const VERIFY_EXAMPLES: &str = "\
Examples:
  tenfold verify model.zt                          every finding on a line, and what was checked
  tenfold verify -q --strict *.mag                 for scripts: the exit code alone, warnings count
  tenfold digest model.gguf > sums.txt             a list for later, where a file has no checksums,
  tenfold verify model.gguf --against sums.txt     and whether the tensors are still the same
";

const DIGEST_EXAMPLES: &str = "\
Examples:
  tenfold digest model.zt                          SHA-256 of every tensor and of the whole content
  tenfold digest --json model.zt | jq -r .content  the content digest alone
";

const CONVERT_EXAMPLES: &str = "\
Examples:
  tenfold convert model.mag model.zt               the format follows from the output's name
  tenfold convert model.zt model.mag --version snapshot-0.3.0
  tenfold convert model.mag model.zt --zstd 3 --checksum crc32c
  tenfold convert model.zt model.zt2 --to ztensor --version 2 -O align=4096
  tenfold convert model.zt model.primitiv --cast f32   primitiv has no other type
  tenfold convert cut.primitiv whole.primitiv --salvage
  tenfold convert model.zt part.zt --include 'encoder.*' --zstd '19:*.embedding'
  tenfold convert model.zt model.safetensors --shard-size 5GB
  tenfold convert model-0000*.safetensors whole.safetensors
  tenfold convert model.zt model.mag --dry-run     what would be lost, and nothing written
";

const DIFF_EXAMPLES: &str = "\
Examples:
  tenfold diff old.safetensors new.safetensors     bit by bit, any two formats
  tenfold diff model.zt model-f16.zt --ignore-dtype --rtol 1e-3
  tenfold diff a.gguf b.gguf --names-only          names alone, no data is read
  tenfold diff --json a.mag b.zt | jq .equal       for programs
";

const STATS_EXAMPLES: &str = "\
Examples:
  tenfold stats model.zt                           a line for every tensor, and one for all
  tenfold stats model.zt --include '*.weight' --hist
  tenfold stats --json model.zt | jq .total.nan    for programs
";

const FORMATS_EXAMPLES: &str = "\
Examples:
  tenfold formats                                  every format
  tenfold formats mag                              what each version of one format can hold
";

const SHOW_EXAMPLES: &str = "\
Examples:
  tenfold show model.zt layers.0.bias                        as NumPy shows it, the middle left out where it is long
  tenfold show model.zt layers.0.weight --slice '0:4, -1'    some elements: nothing else is read
  tenfold show model.zt layers.0.bias --full                 all of them
  tenfold show model.zt layers.0.bias --format csv -o bias.csv
";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  tenfold completions bash > ~/.local/share/bash-completion/completions/tenfold
  tenfold completions fish > ~/.config/fish/completions/tenfold.fish
";

const MAN_EXAMPLES: &str = "\
Examples:
  tenfold man | man -l -                           the page of the command itself
  tenfold man -o ~/.local/share/man/man1           a page for every command
";
const DIFF_NOTES: &str = "\
Without --rtol, --atol and --ulp every bit of the values counts, so that 0 and -0 differ, and different NaNs; the output \
says how many differences are only that. With any of them, such numbers are equal. Errors are relative to A. A tensor that \
has the same content under another name is called renamed.

Exit codes: 0 equal, 1 different, 2 trouble: wrong usage, or something cannot be read.";

const STATS_NOTES: &str = "\
min, max, mean, std (of the population) and abs max are of the finite numbers. An element of several numbers, such as a \
complex one, counts as its components. Quantized tensors count as the numbers that they stand for, sparse ones with their \
zeros. Integers of more than 53 bits and f128 are rounded to f64 for mean and std, f128 for min and max too.";

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 findings (verify), differences (diff) or unreadable tensors (digest, stats), 2 an error or wrong usage, 130 interrupted.";

/// Opens every tensor file: lists, verifies and converts the files that hold weights and scientific tensors.
#[derive(Debug, Parser)]
#[command(name = "tenfold", version, before_help = EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When to use colour; NO_COLOR turns it off
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// How much a file may ask for: header_bytes, rank, depth, tensor_memory, dense_bytes; may be given several times
    #[arg(long, global = true, value_name = "NAME=N", value_parser = limit)]
    pub(crate) limit: Vec<(String, u64)>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the tensors and the metadata of files
    #[command(visible_aliases = ["ls", "info"], before_help = INSPECT_EXAMPLES)]
    Inspect(InspectArgs),
    /// Check that files are sound: structure, checksums, content
    #[command(visible_alias = "check", before_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Hash the tensors of files, whatever their format, order and encoding
    #[command(visible_aliases = ["hash", "id"], before_help = DIGEST_EXAMPLES)]
    Digest(DigestArgs),
    /// Show the values of a tensor
    #[command(before_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Write a file in another format, version or encoding
    #[command(before_help = CONVERT_EXAMPLES)]
    Convert(Box<ConvertArgs>),
    /// Say what is different between two files, in any formats
    #[command(before_help = DIFF_EXAMPLES, after_help = DIFF_NOTES)]
    Diff(DiffArgs),
    /// Figures of the numbers in files: extremes, mean, spread, zeros, NaN, infinities
    #[command(before_help = STATS_EXAMPLES, after_help = STATS_NOTES)]
    Stats(StatsArgs),
    /// Write some of the tensors to a new file, or each to a file of its own
    #[command(before_help = edit::EXTRACT_EXAMPLES)]
    Extract(Box<ExtractArgs>),
    /// Write the tensors of several files to one
    #[command(visible_alias = "cat", before_help = edit::MERGE_EXAMPLES)]
    Merge(Box<MergeArgs>),
    /// Write the tensors of a file to several
    #[command(before_help = edit::SPLIT_EXAMPLES)]
    Split(Box<SplitArgs>),
    /// Give tensors other names
    #[command(before_help = edit::RENAME_EXAMPLES)]
    Rename(Box<RenameArgs>),
    /// Show and change what files say about themselves
    #[command(before_help = edit::META_EXAMPLES)]
    Meta(MetaArgs),
    /// Show which formats are read and written, and what they can hold
    #[command(before_help = FORMATS_EXAMPLES)]
    Formats(FormatsArgs),
    /// Print what makes a shell complete this command's words
    #[command(before_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Write manual pages
    #[command(before_help = MAN_EXAMPLES)]
    Man(ManArgs),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// What every reading command takes.
#[derive(Args, Debug)]
pub(crate) struct Inputs {
    /// The files to read; a directory is read as one archive
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Read as this format, whatever the content looks like
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// Take elements for this type where the file has bytes without one (NumPy's V1, V2)
    #[arg(long, value_name = "DTYPE", value_parser = dtype)]
    pub(crate) assume: Option<DType>,
    /// Print JSON: one object, or an array when there are several files
    #[arg(long)]
    pub(crate) json: bool,
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

#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// In which order; that of the file unless told otherwise
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) sort: Option<Sort>,
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
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Warnings count as errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Also compare the tensors with a list that `tenfold digest` printed
    #[arg(long, value_name = "LIST")]
    pub(crate) against: Option<PathBuf>,
    /// Look at the numbers too, and warn of NaN, infinities and tensors of nothing but zeros
    #[arg(long)]
    pub(crate) content: bool,
    /// Print nothing; the exit code says it
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// How many threads; as many as processors unless told otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

#[derive(Args, Debug)]
pub(crate) struct DigestArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// How many threads; as many as processors unless told otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// The file to read, or a directory of files as one archive; several are read as one
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// The file to write; with a / at the end, a new directory with a file for every tensor, or with the shards
    #[arg(value_name = "OUT", required = true)]
    pub(crate) output: PathBuf,
    /// Read as this format, whatever the content looks like
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// Take elements for this type where the file has bytes without one (NumPy's V1, V2)
    #[arg(long, value_name = "DTYPE", value_parser = dtype)]
    pub(crate) assume: Option<DType>,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Write quantized tensors as the numbers they stand for
    #[arg(long)]
    pub(crate) dequantize: bool,
    /// Write numbers as this type, all tensors or those that match, to the nearest and counting what is out of range; the last match counts
    #[arg(long, value_name = "DTYPE[:GLOB]", value_parser = cast_rule)]
    pub(crate) cast: Vec<(DType, Option<String>)>,
    /// Quantize to Q8_0 or Q4_0: every matrix of floats whose rows are whole blocks, or the tensors that match; the last match counts
    #[arg(long, value_name = "TYPE[:GLOB]", value_parser = quantize_rule)]
    pub(crate) quantize: Vec<(&'static BlockSpec, Option<String>)>,
    /// Write the tensors that are whole in a damaged file, where its format lets them be found
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Write sparse tensors sparsely where the target can, instead of filling in zeros
    #[arg(long)]
    pub(crate) keep_sparse: bool,
    /// Write all tensors sparsely: elements whose bits are all 0 are left out
    #[arg(long, conflicts_with = "keep_sparse")]
    pub(crate) sparse: bool,
    /// The largest size of a sparse tensor that is written with its zeros, such as 500MB or 64GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) max_dense: Option<u64>,
    /// Write several files of at most this size and an index of them: 5GB, 500MB, 2GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) shard_size: Option<u64>,
    #[command(flatten)]
    pub(crate) checking: Checking,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The one to compare with: a file, a directory of files or an index
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The one that is compared
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Read both as this format, whatever the content looks like
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// Take elements for this type where a file has bytes without one (NumPy's V1, V2)
    #[arg(long, value_name = "DTYPE", value_parser = dtype)]
    pub(crate) assume: Option<DType>,
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
    /// How many threads; as many as processors unless told otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Draw histograms, of 20 bins unless told otherwise; reads the data a second time
    #[arg(long, value_name = "BINS", num_args = 0..=1, require_equals = true, default_missing_value = "20", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) hist: Option<u32>,
    /// No progress bar
    #[arg(long)]
    pub(crate) no_progress: bool,
    /// How many threads; as many as processors unless told otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

#[derive(Args, Debug)]
pub(crate) struct FormatsArgs {
    /// Details of this format
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn limit(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("NAME=N is expected, such as header_bytes=2GiB")?;
    let value = bytes(value).map_err(|_| "a number is expected, such as 100 or 2GiB")?;
    Ok((name.to_owned(), value))
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
    /// Read as this format, whatever the content looks like
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
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

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// For which shell
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
pub(crate) struct ManArgs {
    /// Print the page of this command instead of that of tenfold itself
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub(crate) command: Option<String>,
    /// Write all pages into this directory, which is made if it is not there
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

fn slices(text: &str) -> Result<Slices, String> {
    match Slice::parse(text) {
        Ok(slices) => Ok(slices.into()),
        Err(error) => Err(error.message().to_owned()),
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("KEY=VALUE is expected, such as align=4096")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn dtype(text: &str) -> Result<DType, String> {
    DType::from_name(text).ok_or("a type is expected, such as bf16 or f8_e4m3".into())
}

fn cast_rule(text: &str) -> Result<(DType, Option<String>), String> {
    // `gguf:Q4_K` is a name with a colon; nothing is cast to it.
    let (name, glob) = match text.split_once(':') {
        Some((name, glob)) => (name, Some(glob.to_owned())),
        None => (text, None),
    };
    match DType::from_name(name) {
        Some(dtype) => Ok((dtype, glob)),
        None => Err("a type is expected, such as f32 or bf16:*.weight".into()),
    }
}

/// A number of bytes with a unit: of 1000 (5GB) or of 1024 (5GiB).
fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[
        ("", 1),
        ("b", 1),
        ("k", 1_000),
        ("kb", 1_000),
        ("m", 1_000_000),
        ("mb", 1_000_000),
        ("g", 1_000_000_000),
        ("gb", 1_000_000_000),
        ("t", 1_000_000_000_000),
        ("tb", 1_000_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
    ];
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text.get(digits.len()..).unwrap_or_default().trim();
    let unit = UNITS
        .iter()
        .find(|(name, _)| unit.eq_ignore_ascii_case(name));
    let number: Option<u64> = digits.parse().ok();
    match unit.and_then(|(_, unit)| number?.checked_mul(*unit)) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => Err("a number of bytes is expected, such as 5GB, 500MB or 2GiB".into()),
    }
}

/// How far numbers may be apart.
fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..f64::INFINITY).contains(&value) => Ok(value),
        _ => Err("a number of 0 or more is expected, such as 1e-5".into()),
    }
}

fn quantize_rule(text: &str) -> Result<(&'static BlockSpec, Option<String>), String> {
    let (name, glob) = match text.split_once(':') {
        Some((name, glob)) => (name, Some(glob.to_owned())),
        None => (text, None),
    };
    match BlockSpec::from_name(name) {
        Some(spec) => Ok((spec, glob)),
        None => Err("a type is expected, such as Q8_0 or Q4_0:*.weight".into()),
    }
}

fn zstd_rule(text: &str) -> Result<(i32, Option<String>), String> {
    let (level, glob) = match text.split_once(':') {
        Some((level, glob)) => (level, Some(glob.to_owned())),
        None => (text, None),
    };
    match level.parse() {
        Ok(level @ -7..=22) => Ok((level, glob)),
        _ => Err("a level from -7 to 22 is expected, such as 3 or 19:*.weight".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn sizes_have_units_of_both_kinds() {
        assert_eq!(super::bytes("5GB"), Ok(5_000_000_000));
        assert_eq!(super::bytes("2G"), Ok(2_000_000_000));
        assert_eq!(super::bytes("500MiB"), Ok(500 << 20));
        assert_eq!(super::bytes("17"), Ok(17));
        for wrong in ["", "GB", "0", "-1", "1.5GB", "5XB", "99999999TB"] {
            assert!(super::bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_definitions_agree_with_each_other() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn sizes_have_units_of_1000_and_of_1024() {
        let read = |text| super::bytes(text).ok();
        assert_eq!(read("5GB"), Some(5_000_000_000));
        assert_eq!(read("5 gib"), Some(5 << 30));
        assert_eq!(read("123"), Some(123));
        for wrong in ["", "0", "GB", "1.5GB", "-1", "5G5", "99999999999TB"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
