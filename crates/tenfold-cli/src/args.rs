//! The command line: definitions, nothing else.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
  tenfold convert model.zt part.zt --include 'encoder.*' --zstd '19:*.embedding'
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
    Convert(ConvertArgs),
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
    /// The file to read, or a directory of files as one archive
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// The file to write; with a / at the end, a new directory with a file for every tensor
    #[arg(value_name = "OUT")]
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
    #[arg(long, value_name = "SIZE", value_parser = byte_size)]
    pub(crate) max_dense: Option<u64>,
    /// Which checksums the tensors get
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Checksum::Keep)]
    pub(crate) checksum: Checksum,
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

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("KEY=VALUE is expected, such as align=4096")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Bytes with a unit: decimal ones (`MB`) and binary ones (`MiB`).
fn byte_size(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[
        ("", 1),
        ("B", 1),
        ("K", 1 << 10),
        ("KiB", 1 << 10),
        ("KB", 1_000),
        ("M", 1 << 20),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("G", 1 << 30),
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("T", 1 << 40),
        ("TiB", 1 << 40),
        ("TB", 1_000_000_000_000),
    ];
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = UNITS.iter().find(|(known, _)| known.eq_ignore_ascii_case(unit.trim()));
    let bytes = unit.and_then(|(_, unit)| number.parse::<u64>().ok()?.checked_mul(*unit));
    bytes.ok_or_else(|| "a size is expected, such as 500MB or 64GiB".into())
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
    fn the_definitions_agree_with_each_other() {
        super::Cli::command().debug_assert();
    }
}
