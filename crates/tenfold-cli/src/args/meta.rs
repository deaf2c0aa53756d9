//! The commands about metadata.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::edit::IN_PLACE;
use super::parse::key_value;
use super::{Along, Checking, Opening, Writing};

pub(super) const META_EXAMPLES: &str = "\
Examples:
  tenfold meta get model.safetensors                         everything, with types
  tenfold meta get model.gguf general.name                   one value
  tenfold meta set model.gguf general.name=Tiny -o named.gguf
  tenfold meta set model.gguf tuned.rank=u32:16 -o model.gguf --force
  tenfold meta set model.safetensors license=mit --in-place  in the file itself, without a copy
  tenfold meta unset model.safetensors notes -o clean.safetensors
  tenfold meta export a.gguf -o meta.json                    with types, ready to edit
  tenfold meta import b.gguf meta.json -o c.gguf
";

#[derive(Args, Debug)]
pub(crate) struct MetaArgs {
    #[command(subcommand)]
    pub(crate) command: MetaCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MetaCommand {
    /// Show metadata: some values, or all with their types
    Get(MetaGet),
    /// Set values: KEY=VALUE or KEY=TYPE:VALUE
    Set(Box<MetaSet>),
    /// Remove keys
    Unset(Box<MetaUnset>),
    /// Set all keys of a JSON file
    Import(Box<MetaImport>),
    /// Write metadata as JSON with types, for import
    Export(MetaExport),
}

impl MetaCommand {
    /// The file that is read.
    pub(super) fn file(&self) -> &Path {
        match self {
            MetaCommand::Get(args) => &args.file,
            MetaCommand::Set(args) => &args.file,
            MetaCommand::Unset(args) => &args.file,
            MetaCommand::Import(args) => &args.file,
            MetaCommand::Export(args) => &args.file,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct MetaGet {
    /// The file, model directory or index to read
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The keys to show [default: all]; the exit code is 1 if one is missing
    #[arg(value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// Metadata of this tensor instead of the file
    #[arg(long, short = 't', value_name = "NAME")]
    pub(crate) tensor: Option<String>,
    #[command(flatten)]
    pub(crate) opening: Opening,
    /// Print text unescaped, without a line break at the end
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Print JSON, with long lists in full
    #[arg(long)]
    pub(crate) json: bool,
}

/// What every editing command of `meta` takes.
#[derive(Args, Debug)]
pub(crate) struct MetaEdit {
    /// The file to write, or with a trailing / a new directory. With --force it may be the input, which is replaced
    /// completely or not at all
    #[arg(long, short, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Change the file itself, where the new header fits: safetensors, GGUF and zTensor. Other programs that read it at that
    /// moment may see a torn header
    #[arg(long, conflicts_with_all = IN_PLACE)]
    pub(crate) in_place: bool,
    /// Metadata of this tensor instead of the file
    #[arg(long, short = 't', value_name = "NAME")]
    pub(crate) tensor: Option<String>,
    #[command(flatten)]
    pub(crate) opening: Opening,
    #[command(flatten)]
    pub(crate) along: Along,
    #[command(flatten)]
    pub(crate) checking: Checking,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

#[derive(Args, Debug)]
pub(crate) struct MetaSet {
    /// The file, model directory or index to read
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    /// What to set. A value keeps its type unless you name one: bool, u8 to u64, i8 to i64, f32, f64, string, bytes, json,
    /// null, or a list such as u32[]:[1,2]
    #[arg(value_name = "KEY=[TYPE:]VALUE", required = true, value_parser = key_value)]
    pub(crate) values: Vec<(String, String)>,
    /// The type of values that name none
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    #[command(flatten)]
    pub(crate) edit: MetaEdit,
}

#[derive(Args, Debug)]
pub(crate) struct MetaUnset {
    /// The file, model directory or index to read
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    /// The keys to remove
    #[arg(value_name = "KEY", required = true)]
    pub(crate) keys: Vec<String>,
    #[command(flatten)]
    pub(crate) edit: MetaEdit,
}

#[derive(Args, Debug)]
pub(crate) struct MetaImport {
    /// The file, model directory or index to read
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    /// A JSON object of keys and values, plain or as written by export; - is standard input
    #[arg(value_name = "JSON")]
    pub(crate) document: PathBuf,
    /// Remove keys that are not in the JSON file
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) edit: MetaEdit,
}

#[derive(Args, Debug)]
pub(crate) struct MetaExport {
    /// The file, model directory or index to read
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    /// The JSON file to write, as -o names it
    #[arg(value_name = "JSON", conflicts_with = "output")]
    pub(crate) document: Option<PathBuf>,
    /// The JSON file to write [default: standard output]
    #[arg(long, short, value_name = "JSON")]
    pub(crate) output: Option<PathBuf>,
    /// Metadata of this tensor instead of the file
    #[arg(long, short = 't', value_name = "NAME")]
    pub(crate) tensor: Option<String>,
    #[command(flatten)]
    pub(crate) opening: Opening,
    /// Replace an existing output
    #[arg(long)]
    pub(crate) force: bool,
}
