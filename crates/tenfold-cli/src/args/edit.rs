//! The commands that put tensors into other files: extract, merge, split, rename.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueEnum};
use tenfold::ops::Shards;

use super::parse::bytes;
use super::{Along, Checking, Filter, Opening, Types, Writing};
use crate::failure::{Failure, Result};

pub(super) const EXTRACT_EXAMPLES: &str = "\
Examples:
  tenfold extract model.gguf -t token_embd.weight -o embedding.safetensors
  tenfold extract model.safetensors --include 'layers.3.*' -o layer3.safetensors
  tenfold extract model.safetensors -o tensors/ --to npy    each into its own file
";

pub(super) const MERGE_EXAMPLES: &str = "\
Examples:
  tenfold merge model-0000*.safetensors -o model.safetensors
  tenfold merge base.safetensors adapter.gguf -o both.zt
  tenfold merge old.zt new.zt -o updated.zt --prefer last   what both have is taken from new.zt
";

pub(super) const SPLIT_EXAMPLES: &str = "\
Examples:
  tenfold split model.safetensors -o parts/ --max-size 5GB   shards and their index
  tenfold split model.gguf -o parts/ --parts 4
  tenfold split model.zt -o layers/ --by-layer               a file for every layer
";

/// What `--output` is there.
const SPLIT_OUTPUT: &str =
    "The directory to write to; a name with the extension of a format makes the names of the files";

pub(super) const RENAME_EXAMPLES: &str = r"Examples:
  tenfold rename in.safetensors -o out.safetensors --rule 's/^model\.//'
  tenfold rename in.zt -o out.zt --rule 's/^h\.(\d+)/layers.\1/' --rule 's/gamma$/weight/'
  tenfold rename in.zt -o out.zt --map map.json --dry-run    what would be renamed
  tenfold rename model.gguf --rule 's/^model\.//' --in-place   in the file itself, without a copy
";

/// What says how another file is written.
pub(super) const IN_PLACE: [&str; 8] = [
    "output", "to", "version", "options", "zstd", "raw", "checksum", "check",
];

/// What is read and written.
#[derive(Args, Debug)]
pub(crate) struct Files {
    /// The files to read, each a file, a directory of files or an index; several are read as one
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// The file to write; with a / at the end, a new or empty directory with a file for every tensor, or with the shards
    #[arg(long, short, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) opening: Opening,
}

impl Files {
    /// The files to read, and the one to write: that of -o, or the second of two.
    pub(crate) fn places(&self, command: &str) -> Result<(&[PathBuf], &Path)> {
        match (&self.output, self.inputs.as_slice()) {
            (Some(output), inputs) => Ok((inputs, output)),
            (None, [input, output]) => Ok((std::slice::from_ref(input), output)),
            _ => Err(no_output(command)),
        }
    }

    /// The same where several files are read, so that -o is needed.
    pub(crate) fn several(&self, command: &str) -> Result<(&[PathBuf], &Path)> {
        match &self.output {
            Some(output) => Ok((&self.inputs, output)),
            None => Err(no_output(command)),
        }
    }
}

/// Asks for the output.
pub(crate) fn no_output(command: &str) -> Failure {
    let command = format!("tenfold {command}");
    Failure::Message(format!(
        "where to? name the output with -o: {command} … -o OUT"
    ))
}

/// Several files instead of one.
#[derive(Args, Debug)]
pub(crate) struct Sharding {
    /// Write several files of at most this size, with an index where the format has one: 5GB, 500MB, 2GiB
    #[arg(long, alias = "max-size", value_name = "SIZE", value_parser = bytes)]
    shard_size: Option<u64>,
}

impl Sharding {
    pub(crate) fn shards(&self) -> Option<Shards> {
        self.shard_size.map(Shards::Size)
    }
}

#[derive(Args, Debug)]
pub(crate) struct ExtractArgs {
    #[command(flatten)]
    pub(crate) files: Files,
    /// The tensor with exactly this name; may be given several times
    #[arg(long = "tensor", short = 't', value_name = "NAME")]
    pub(crate) tensors: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) types: Types,
    #[command(flatten)]
    pub(crate) sharding: Sharding,
    #[command(flatten)]
    pub(crate) checking: Checking,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    pub(crate) files: Files,
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Whose tensor or metadata counts where two files have one of the same name; refused unless told
    #[arg(long, value_enum, value_name = "WHICH")]
    pub(crate) prefer: Option<PreferArg>,
    #[command(flatten)]
    pub(crate) sharding: Sharding,
    #[command(flatten)]
    pub(crate) checking: Checking,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PreferArg {
    /// The file that was named first
    First,
    /// The file that was named last
    Last,
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("how").required(true).args(["max_size", "parts", "by_layer"])))]
#[command(mut_arg("output", |arg| arg.value_name("DIR").help(SPLIT_OUTPUT)))]
pub(crate) struct SplitArgs {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Files with at most this many bytes of tensors, unless one tensor has more: 5GB, 500MB, 2GiB
    #[arg(long, alias = "shard-size", value_name = "SIZE", value_parser = bytes)]
    pub(crate) max_size: Option<u64>,
    /// As many files as this, of about the same size
    #[arg(long, value_name = "N")]
    pub(crate) parts: Option<NonZeroUsize>,
    /// A file for every layer (names up to their first number), and one for the rest
    #[arg(long)]
    pub(crate) by_layer: bool,
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) along: Along,
    #[command(flatten)]
    pub(crate) checking: Checking,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("names").required(true).multiple(true).args(["rules", "map"])))]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Replace what a regular expression matches, as sed does: s/PATTERN/REPLACEMENT/ with \1 for a group; the first
    /// match, or all with g behind it; i ignores case. Several are applied one after the other
    #[arg(long = "rule", short = 'r', value_name = "RULE")]
    pub(crate) rules: Vec<String>,
    /// A JSON file {"old name": "new name"}; applied before the rules
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<PathBuf>,
    /// Change the names in the file itself, where they fit: safetensors, GGUF and zTensor. Other programs that read it at that
    /// moment may see a torn header
    #[arg(long, conflicts_with_all = IN_PLACE)]
    pub(crate) in_place: bool,
    /// Rules and names of the map that match nothing are reported, and no error
    #[arg(long)]
    pub(crate) allow_unmatched: bool,
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) sharding: Sharding,
    #[command(flatten)]
    pub(crate) along: Along,
    #[command(flatten)]
    pub(crate) checking: Checking,
    #[command(flatten)]
    pub(crate) writing: Writing,
}
