//! The command line: definitions, nothing else.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tenfold::model::{BlockSpec, DType};

const EXAMPLES: &str = "\
Examples:
  tenfold inspect model.zt                         what is in a file
  tenfold verify model.mag                         is it sound? checks every checksum it carries
  tenfold convert model.mag model.zt               another format, by the name of the output
  tenfold convert model.zt small.zt --zstd 9       the same format, compressed
  tenfold digest a.mag b.zt                        equal content, equal digest, in any format
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
  tenfold digest model.gguf > sums.txt             for files that carry no checksums: a list for later,
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

const FORMATS_EXAMPLES: &str = "\
Examples:
  tenfold formats                                  every format
  tenfold formats mag                              what each version of one format can hold
";

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 findings (verify) or unreadable tensors (digest), 2 an error or wrong usage, 130 interrupted.";

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
    /// Write a file in another format, version or encoding
    #[command(before_help = CONVERT_EXAMPLES)]
    Convert(Box<ConvertArgs>),
    /// Show which formats are read and written, and what they can hold
    #[command(before_help = FORMATS_EXAMPLES)]
    Formats(FormatsArgs),
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
    /// Write this format; that of OUT's extension unless told otherwise
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,
    /// Write this version of the format; the first that holds everything unless told otherwise
    #[arg(long, value_name = "V")]
    pub(crate) version: Option<String>,
    /// An option of the target format, see `tenfold formats NAME`; may be given several times
    #[arg(short = 'O', value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) options: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Write quantized tensors as the numbers they stand for
    #[arg(long)]
    pub(crate) dequantize: bool,
    /// Write numbers as this type, all tensors or those that match; the last match counts
    #[arg(long, value_name = "DTYPE[:GLOB]", value_parser = cast_rule)]
    pub(crate) cast: Vec<(DType, Option<String>)>,
    /// Quantize to Q8_0 or Q4_0: every matrix of floats whose rows are whole blocks, or the tensors that match; the last match counts
    #[arg(long, value_name = "TYPE[:GLOB]", value_parser = quantize_rule)]
    pub(crate) quantize: Vec<(&'static BlockSpec, Option<String>)>,
    /// Write the tensors that are whole in a damaged file, where its format lets them be found
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Compress with zstd, all tensors or those that match; the last match counts
    #[arg(long, value_name = "LEVEL[:GLOB]", value_parser = zstd_rule, allow_hyphen_values = true)]
    pub(crate) zstd: Vec<(i32, Option<String>)>,
    /// Do not compress, except what --zstd says
    #[arg(long)]
    pub(crate) raw: bool,
    /// Write sparse tensors sparsely where the target can, instead of filling in zeros
    #[arg(long)]
    pub(crate) keep_sparse: bool,
    /// Write all tensors sparsely: elements whose bits are all 0 are left out
    #[arg(long, conflicts_with = "keep_sparse")]
    pub(crate) sparse: bool,
    /// The largest size of a sparse tensor that is written with its zeros, such as 500MB or 64GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) max_dense: Option<u64>,
    /// Which checksums the tensors get
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Checksum::Keep)]
    pub(crate) checksum: Checksum,
    /// Write several files of at most this size and an index of them: 5GB, 500MB, 2GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) shard_size: Option<u64>,
    /// Which losses of metadata to accept; `dropped` includes `changed`
    #[arg(long, value_enum, value_name = "LOSS")]
    pub(crate) allow: Option<Allow>,
    /// Compare the digests of all tensors before the output gets its name
    #[arg(long)]
    pub(crate) check: bool,
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
    /// How many threads; as many as processors unless told otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Print errors only
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print what was done as JSON
    #[arg(long)]
    pub(crate) json: bool,
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
    Ok((name.to_owned(), bytes(value)?))
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("KEY=VALUE is expected, such as align=4096")?;
    Ok((key.to_owned(), value.to_owned()))
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
