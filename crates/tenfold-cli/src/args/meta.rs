//! The commands about metadata.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::edit::IN_PLACE;
use super::parse::key_value;
use super::{Along, Checking, Opening, Writing};

pub(super) const META_EXAMPLES: &str = "\
Examples:
  tenfold meta get model.gguf                                everything, with its types
  tenfold meta get model.gguf general.name                   one value
  tenfold meta set model.gguf general.name=Tiny -o named.gguf
  tenfold meta set model.gguf tuned.rank=u32:16 -o model.gguf --force
  tenfold meta set model.safetensors license=mit --in-place  in the file itself, without a copy
  tenfold meta unset model.safetensors notes -o clean.safetensors
  tenfold meta export a.gguf -o meta.json                    with types, to be edited
  tenfold meta import b.gguf meta.json -o c.gguf
";

#[derive(Args, Debug)]
pub(crate) struct MetaArgs {
    #[command(subcommand)]
    pub(crate) command: MetaCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MetaCommand {
    /// Show metadata: one value, or all with their types
    Get(MetaGet),
    /// Write a file with other values: KEY=VALUE or KEY=TYPE:VALUE
    Set(Box<MetaSet>),
    /// Write a file without some keys
    Unset(Box<MetaUnset>),
    /// Write a file with the keys and values of a JSON file
    Import(Box<MetaImport>),
    /// Write metadata as JSON that says the types, for import
    Export(MetaExport),
}

#[derive(Args, Debug)]
pub(crate) struct MetaGet {
    /// The file, directory or index to read
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The keys to show, all unless told otherwise; the exit code is 1 where one is not there
    #[arg(value_name = "KEY")]
    pub(crate) keys: Vec<String>,
    /// The metadata of this tensor instead of the file's
    #[arg(long, short = 't', value_name = "NAME")]
    pub(crate) tensor: Option<String>,
    #[command(flatten)]
    pub(crate) opening: Opening,
    /// Text as it is, with line breaks and control characters, and nothing behind it
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Print JSON: long lists in full
    #[arg(long)]
    pub(crate) json: bool,
}

/// What every editing command of `meta` takes.
#[derive(Args, Debug)]
pub(crate) struct MetaEdit {
    /// The file to write; with --force it may be the file that is read, which is replaced whole or not at all;
    /// with a / at the end, a new directory with the shards of the input, or with a file for every tensor
    #[arg(long, short, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Change the file itself, where the new header fits: safetensors, GGUF and zTensor. Other programs that read it at that
    /// moment may see a torn header
    #[arg(long, conflicts_with_all = IN_PLACE)]
    pub(crate) in_place: bool,
    /// The metadata of this tensor instead of the file's
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
    /// The file, directory or index to read
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    /// A value keeps the type it had; TYPE is bool, u8 to u64, i8 to i64, f32, f64, string, bytes, json, null, or a list
    /// such as u32[]:[1,2]
    #[arg(value_name = "KEY=[TYPE:]VALUE", required = true, value_parser = key_value)]
    pub(crate) values: Vec<(String, String)>,
    /// The type of all values that name none
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    #[command(flatten)]
    pub(crate) edit: MetaEdit,
}

#[derive(Args, Debug)]
pub(crate) struct MetaUnset {
    /// The file, directory or index to read
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
    /// The file, directory or index to read
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    /// A JSON object of keys and values, as export writes it or plain; - is standard input
    #[arg(value_name = "JSON")]
    pub(crate) document: PathBuf,
    /// Remove the keys that the JSON file does not have
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) edit: MetaEdit,
}

#[derive(Args, Debug)]
pub(crate) struct MetaExport {
    /// The file, directory or index to read
    #[arg(value_name = "IN")]
    pub(crate) file: PathBuf,
    /// The JSON file to write, as -o names it
    #[arg(value_name = "JSON", conflicts_with = "output")]
    pub(crate) document: Option<PathBuf>,
    /// The JSON file to write; standard output unless told otherwise
    #[arg(long, short, value_name = "JSON")]
    pub(crate) output: Option<PathBuf>,
    /// The metadata of this tensor instead of the file's
    #[arg(long, short = 't', value_name = "NAME")]
    pub(crate) tensor: Option<String>,
    #[command(flatten)]
    pub(crate) opening: Opening,
    /// Replace an output that exists
    #[arg(long)]
    pub(crate) force: bool,
}
