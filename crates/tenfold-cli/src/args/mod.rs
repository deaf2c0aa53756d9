//! The command line: definitions, nothing else.

mod about;
mod convert;
mod diff;
mod edit;
mod headings;
mod inputs;
mod meta;
mod parse;
mod read;
mod scale;
mod suggest;
#[cfg(feature = "view")]
mod view;
mod writing;

use std::path::{Path, PathBuf};

#[cfg(feature = "remote")]
use clap::Args;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

pub(crate) use about::{CompletionsArgs, FormatsArgs, ManArgs, NamesArgs, Shell};
pub(crate) use convert::ConvertArgs;
pub(crate) use diff::DiffArgs;
pub(crate) use edit::{ExtractArgs, MergeArgs, PreferArg, RenameArgs, SplitArgs, no_output};
pub(crate) use inputs::{AsNumbers, Filter, Inputs, Opening, Reading, Threads};
pub(crate) use meta::{
    MetaArgs, MetaCommand, MetaEdit, MetaExport, MetaGet, MetaImport, MetaSet, MetaUnset,
};
pub(crate) use read::{
    DigestArgs, InspectArgs, ScanArgs, ShowArgs, ShowFormat, Slices, Sort, StatsArgs, StatsSort,
    VerifyArgs,
};
pub(crate) use scale::{Cut, ItemList, JoinArgs, Kept, PlanArgs, PlanConvert, PlanVerb, RunArgs};
#[cfg(feature = "view")]
pub(crate) use view::ViewArgs;
pub(crate) use writing::{Allow, Along, Checking, Checksum, Types, Writing};

const EXAMPLES: &str = "\
Examples:
  tenfold inspect model.safetensors                what is in a file
  tenfold inspect model.gguf --tree                the same as a tree, with counts and sizes
  tenfold inspect llama/                           a Hugging Face directory is one model
  tenfold show model.safetensors lm_head.weight    the values of a tensor
  tenfold verify model.gguf                        is it sound?
  tenfold convert model.safetensors model.zt       another format, by the name of the output
  tenfold convert llama/ half.safetensors --cast f16
  tenfold diff old.safetensors new.safetensors     what differs, tensor by tensor
  tenfold digest a.gguf b.zt                       equal content, equal digest, in any format
  tenfold view model.safetensors                   look at it in a browser
  tenfold stats model.safetensors                  minimum, maximum, mean, NaN and infinities
  tenfold formats                                  what is read and written
";

const EXIT_CODES: &str = "\
Exit codes: 0 success; 1 findings (verify, scan), differences (diff) or unreadable tensors (digest, stats); 2 \
an error or wrong usage; 130 interrupted; 143 terminated.";

/// Inspect, verify, compare, edit and convert tensor files: model weights and scientific data
#[derive(Debug, Parser)]
#[command(name = "tenfold", version, before_help = EXAMPLES, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When to use colour; NO_COLOR and FORCE_COLOR are honoured
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Raise a limit on what a file may ask for: header_bytes, rank, depth, tensor_memory or dense_bytes; repeatable
    #[arg(long, global = true, value_name = "NAME=N", value_parser = parse::limit)]
    pub(crate) limit: Vec<(String, u64)>,
    #[cfg(feature = "remote")]
    #[command(flatten)]
    pub(crate) network: Network,
}

/// How URLs are read and written.
#[cfg(feature = "remote")]
#[derive(Args, Debug)]
#[command(next_help_heading = "URLs")]
pub(crate) struct Network {
    /// Request URLs without credentials, which public files do not need
    #[arg(long, global = true)]
    pub(crate) anonymous: bool,
    /// Allow plain http:// to other machines, where anybody on the way can read along
    #[arg(long, global = true)]
    pub(crate) allow_http: bool,
    /// Do not read hf:// files from the Hub's cache on this machine
    #[arg(long, global = true)]
    pub(crate) no_cache: bool,
    /// Print which requests were made and how many bytes they brought
    #[arg(long, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the tensors and metadata of files
    #[command(visible_aliases = ["ls", "info"], before_help = read::INSPECT_EXAMPLES)]
    Inspect(InspectArgs),
    /// Check that files are sound: structure, checksums and, with --content, the numbers
    #[command(visible_alias = "check", before_help = read::VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Hash the content of files, regardless of format, order and compression
    #[command(visible_aliases = ["hash", "id"], before_help = read::DIGEST_EXAMPLES)]
    Digest(DigestArgs),
    /// Show the values of a tensor
    #[command(before_help = read::SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// View files in a browser: tensors as pictures, bytes, metadata, differences
    #[cfg(feature = "view")]
    #[command(before_help = view::VIEW_EXAMPLES, after_help = view::VIEW_NOTES)]
    View(ViewArgs),
    /// Say what the pickles in files would import and run if somebody loaded them
    #[command(before_help = read::SCAN_EXAMPLES, after_help = read::SCAN_NOTES)]
    Scan(ScanArgs),
    /// Convert to another format, version, type or compression
    #[command(before_help = convert::CONVERT_EXAMPLES, override_usage = convert::CONVERT_USAGE)]
    Convert(Box<ConvertArgs>),
    /// Compare two files or models, in any formats
    #[command(before_help = diff::DIFF_EXAMPLES, after_help = diff::DIFF_NOTES)]
    Diff(DiffArgs),
    /// Summarize the numbers: minimum, maximum, mean, deviation, zeros, NaN, infinities
    #[command(before_help = read::STATS_EXAMPLES, after_help = read::STATS_NOTES)]
    Stats(StatsArgs),
    /// Write some tensors to a new file, or each to its own
    #[command(before_help = edit::EXTRACT_EXAMPLES)]
    Extract(Box<ExtractArgs>),
    /// Combine several files into one
    #[command(visible_alias = "cat", before_help = edit::MERGE_EXAMPLES)]
    Merge(Box<MergeArgs>),
    /// Split a file or model into several files
    #[command(before_help = edit::SPLIT_EXAMPLES)]
    Split(Box<SplitArgs>),
    /// Rename tensors
    ///
    /// With --include, --exclude or --regex, only the tensors that match are renamed; the others keep their names.
    #[command(before_help = edit::RENAME_EXAMPLES)]
    Rename(Box<RenameArgs>),
    /// Read and edit metadata
    #[command(before_help = meta::META_EXAMPLES)]
    Meta(MetaArgs),
    /// Cut work into items for many machines: convert, digest, verify, stats, diff
    #[command(before_help = scale::PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// Do items of a plan, on any machine
    #[command(before_help = scale::RUN_EXAMPLES, after_help = scale::RUN_NOTES)]
    Run(RunArgs),
    /// Put the results of a plan's items together and make them visible
    #[command(before_help = scale::JOIN_EXAMPLES, after_help = scale::JOIN_NOTES)]
    Join(JoinArgs),
    /// List the formats, or show what one of them can hold
    #[command(before_help = about::FORMATS_EXAMPLES)]
    Formats(FormatsArgs),
    /// Print a completion script for a shell
    #[command(before_help = about::COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Write manual pages
    #[command(before_help = about::MAN_EXAMPLES)]
    Man(ManArgs),
    /// The names of the tensors of a file, for completions
    #[command(name = "__names", hide = true)]
    Names(NamesArgs),
}

/// The definitions, with headings in the help of commands that write.
pub(crate) fn command() -> clap::Command {
    headings::add(Cli::command())
}

impl Command {
    /// The first file that it is about.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Command::Inspect(args) => first(&args.inputs.files),
            Command::Verify(args) => first(&args.inputs.files),
            Command::Digest(args) => first(&args.inputs.files),
            Command::Show(args) => Some(&args.file),
            Command::Scan(args) => first(&args.inputs.files),
            Command::Convert(args) => first(&args.files),
            Command::Diff(args) => Some(&args.a),
            Command::Stats(args) => first(&args.inputs.files),
            Command::Extract(args) => first(&args.files.inputs),
            Command::Merge(args) => first(&args.files.inputs),
            Command::Split(args) => first(&args.files.inputs),
            Command::Rename(args) => first(&args.files.inputs),
            Command::Meta(args) => Some(args.command.file()),
            Command::Plan(args) => args.verb.file(),
            Command::Run(args) => Some(&args.plan),
            Command::Join(args) => Some(&args.plan),
            #[cfg(feature = "view")]
            Command::View(args) => first(&args.files),
            Command::Names(args) => Some(&args.file),
            Command::Formats(_) | Command::Completions(_) | Command::Man(_) => None,
        }
    }

    /// Whether standard output is a JSON document.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Command::Inspect(args) => args.inputs.json,
            Command::Verify(args) => args.inputs.json && !args.quiet,
            Command::Digest(args) => args.inputs.json,
            Command::Show(args) => args.output.is_none() && args.shown_format() == ShowFormat::Json,
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
            Command::Join(args) => args.json,
            Command::Plan(_) | Command::Run(_) => false,
            #[cfg(feature = "view")]
            Command::View(_) => false,
            Command::Completions(_) | Command::Man(_) | Command::Names(_) => false,
        }
    }
}

fn first(files: &[PathBuf]) -> Option<&Path> {
    files.first().map(PathBuf::as_path)
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_definitions_agree_with_each_other() {
        super::command().debug_assert();
    }
}
