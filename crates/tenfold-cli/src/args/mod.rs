//! The command line: definitions, nothing else.

mod about;
mod convert;
mod diff;
mod edit;
mod inputs;
mod meta;
mod parse;
mod read;
mod writing;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use about::{CompletionsArgs, FormatsArgs, ManArgs, Shell};
pub(crate) use convert::ConvertArgs;
pub(crate) use diff::DiffArgs;
pub(crate) use edit::{ExtractArgs, Files, MergeArgs, PreferArg, RenameArgs, SplitArgs};
pub(crate) use inputs::{Filter, Inputs, Opening, Reading, Threads};
pub(crate) use meta::{
    MetaArgs, MetaCommand, MetaEdit, MetaExport, MetaGet, MetaImport, MetaSet, MetaUnset,
};
pub(crate) use read::{
    DigestArgs, InspectArgs, ScanArgs, ShowArgs, ShowFormat, Slices, Sort, StatsArgs, StatsSort,
    VerifyArgs,
};
pub(crate) use writing::{Allow, Checking, Checksum, Types, Writing};

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

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 findings (verify, scan), differences (diff) or unreadable tensors (digest, stats), 2 an error or wrong usage, 130 interrupted, 143 terminated.";

/// Lists, shows, verifies, compares, edits and converts tensor files: weights of models and scientific tensors.
#[derive(Debug, Parser)]
#[command(name = "tenfold", version, before_help = EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When to use colour; NO_COLOR turns it off, FORCE_COLOR on
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// How much a file may ask for: header_bytes, rank, depth, tensor_memory, dense_bytes; may be given several times
    #[arg(long, global = true, value_name = "NAME=N", value_parser = parse::limit)]
    pub(crate) limit: Vec<(String, u64)>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the tensors and the metadata of files
    #[command(visible_aliases = ["ls", "info"], before_help = read::INSPECT_EXAMPLES)]
    Inspect(InspectArgs),
    /// Check that files are sound: structure, checksums, content
    #[command(visible_alias = "check", before_help = read::VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Hash the tensors of files, whatever their format, order and encoding
    #[command(visible_aliases = ["hash", "id"], before_help = read::DIGEST_EXAMPLES)]
    Digest(DigestArgs),
    /// Show the values of a tensor
    #[command(before_help = read::SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Say what the pickles in files would import and run, if somebody loaded them
    #[command(before_help = read::SCAN_EXAMPLES, after_help = read::SCAN_NOTES)]
    Scan(ScanArgs),
    /// Write a file in another format, version or encoding
    #[command(before_help = convert::CONVERT_EXAMPLES, override_usage = convert::CONVERT_USAGE)]
    Convert(Box<ConvertArgs>),
    /// Say what is different between two files, in any formats
    #[command(before_help = diff::DIFF_EXAMPLES, after_help = diff::DIFF_NOTES)]
    Diff(DiffArgs),
    /// Figures of the numbers in files: extremes, mean, spread, zeros, NaN, infinities
    #[command(before_help = read::STATS_EXAMPLES, after_help = read::STATS_NOTES)]
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
    ///
    /// With --include, --exclude or --regex, only those tensors get other names. The others are written with the names that
    /// they have.
    #[command(before_help = edit::RENAME_EXAMPLES)]
    Rename(Box<RenameArgs>),
    /// Show and change what files say about themselves
    #[command(before_help = meta::META_EXAMPLES)]
    Meta(MetaArgs),
    /// Show which formats are read and written, and what they can hold
    #[command(before_help = about::FORMATS_EXAMPLES)]
    Formats(FormatsArgs),
    /// Print what makes a shell complete this command's words
    #[command(before_help = about::COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Write manual pages
    #[command(before_help = about::MAN_EXAMPLES)]
    Man(ManArgs),
}

impl Command {
    /// Whether standard output is a JSON document.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Command::Inspect(args) => args.inputs.json,
            Command::Verify(args) => args.inputs.json && !args.quiet,
            Command::Digest(args) => args.inputs.json,
            Command::Show(args) => args.json || args.format == ShowFormat::Json,
            Command::Scan(args) => args.inputs.json && !args.quiet,
            Command::Convert(args) => args.writing.json,
            Command::Diff(args) => args.json && !args.quiet,
            Command::Stats(args) => args.inputs.json,
            Command::Extract(args) => args.writing.json,
            Command::Merge(args) => args.writing.json,
            Command::Split(args) => args.writing.json,
            Command::Rename(args) => args.writing.json,
            Command::Meta(args) => match &args.command {
                MetaCommand::Get(args) => args.json,
                MetaCommand::Set(args) => args.edit.writing.json,
                MetaCommand::Unset(args) => args.edit.writing.json,
                MetaCommand::Import(args) => args.edit.writing.json,
                MetaCommand::Export(_) => false,
            },
            Command::Formats(args) => args.json,
            Command::Completions(_) | Command::Man(_) => false,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_definitions_agree_with_each_other() {
        super::Cli::command().debug_assert();
    }
}
