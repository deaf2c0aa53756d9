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
  tenfold extract model.safetensors -t lm_head.weight -o head.safetensors
  tenfold extract model.gguf -t token_embd.weight -o embedding.npy
  tenfold extract llama/ --include 'model.layers.3.*' -o layer3.safetensors
  tenfold extract model.safetensors -o tensors/ --to npy    each tensor into its own file
";

pub(super) const MERGE_EXAMPLES: &str = "\
Examples:
  tenfold merge model-0000*.safetensors -o model.safetensors
  tenfold merge base.gguf adapter.safetensors -o both.zt
  tenfold merge llama/ patch.safetensors -o new.safetensors --prefer last   patch.safetensors wins
";

pub(super) const SPLIT_EXAMPLES: &str = "\
Examples:
  tenfold split model.safetensors -o parts/ --max-size 5GB   shards with an index
  tenfold split model.gguf -o parts/ --parts 4
  tenfold split llama/ -o layers/ --by-layer                 a file for each layer
";

/// What `--output` is there.
const SPLIT_OUTPUT: &str =
    "The directory to write to, or a file name to make the names of the parts from";

pub(super) const RENAME_EXAMPLES: &str = r"Examples:
  tenfold rename in.safetensors -o out.safetensors --strip-prefix model.
  tenfold rename in.gguf -o out.gguf --rule 's/^h\.(\d+)/blk.\1/' --rule 's/gamma$/weight/'
  tenfold rename llama/ -o renamed.safetensors --map map.json --dry-run   what would change
  tenfold rename model.gguf --rule 's/^model\.//' --in-place   in the file itself, without a copy
";

/// What says how another file is written.
pub(super) const IN_PLACE: [&str; 8] = [
    "output", "to", "version", "options", "zstd", "raw", "checksum", "check",
];

/// What is read and written.
#[derive(Args, Debug)]
pub(crate) struct Files {
    /// What to read: a file, a model directory or an index; several are read as one
    #[arg(value_name = "IN", required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// The file to write, or with a trailing / a new directory: of shards, or of one file per tensor
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
        "there is no output; name it with -o: {command} … -o OUT"
    ))
}

/// Several files instead of one.
#[derive(Args, Debug)]
pub(crate) struct Sharding {
    /// Write shards of at most this size, with an index where the format has one: 5GB, 500MB, 2GiB
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
    /// The tensor with exactly this name; repeatable
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
    /// Which file wins where two have the same name or key; without this, tenfold refuses
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
    /// The first file
    First,
    /// The last file
    Last,
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("how").required(true).args(["max_size", "parts", "by_layer"])))]
#[command(mut_arg("output", |arg| arg.value_name("DIR").help(SPLIT_OUTPUT)))]
pub(crate) struct SplitArgs {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Write files with at most this much data each, more only for a single tensor: 5GB, 500MB, 2GiB
    #[arg(long, alias = "shard-size", value_name = "SIZE", value_parser = bytes)]
    pub(crate) max_size: Option<u64>,
    /// Write this many files of about the same size
    #[arg(long, value_name = "N")]
    pub(crate) parts: Option<NonZeroUsize>,
    /// Write a file for each layer (names up to their first number) and one for the rest
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
#[command(group(ArgGroup::new("names").required(true).multiple(true).args(["rules", "map", "strip_prefix", "add_prefix"])))]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Replace what a regular expression matches, as sed does: s/PATTERN/REPLACEMENT/, with \1 for a group, and the flags
    /// g (all matches) and i (ignore case). Repeatable; applied in order
    #[arg(long = "rule", short = 'r', value_name = "RULE")]
    pub(crate) rules: Vec<String>,
    /// A JSON file of {"old name": "new name"}, applied first
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<PathBuf>,
    /// Remove this prefix from names, before the rules
    #[arg(long, value_name = "PREFIX")]
    pub(crate) strip_prefix: Option<String>,
    /// Add this prefix to every name, after the rules
    #[arg(long, value_name = "PREFIX")]
    pub(crate) add_prefix: Option<String>,
    /// Change the names in the file itself, where they fit: safetensors, GGUF and zTensor. Other programs that read it at that
    /// moment may see a torn header
    #[arg(long, conflicts_with_all = IN_PLACE)]
    pub(crate) in_place: bool,
    /// Warn about rules, prefixes and map entries that match nothing, instead of failing
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
