//! The same tensors in another file.

use std::path::{Path, PathBuf};

use clap::Args;

use super::parse::bytes;
use super::{Along, Checking, Filter, Opening, Types, Writing};
use crate::failure::{Failure, Result};

pub(super) const CONVERT_EXAMPLES: &str = "\
Examples:
  tenfold convert model.mag model.zt               the format follows from the output's name
  tenfold convert model.zt model.mag --version snapshot-0.3.0
  tenfold convert model.mag model.zt --zstd 3 --checksum crc32c
  tenfold convert model.zt model.zt2 --to ztensor --version 2 -O align=4096
  tenfold convert model.zt model.primitiv --cast f32   primitiv has no other type
  tenfold convert cut.safetensors part.safetensors --salvage   what is whole of a download that did not finish
  tenfold convert model.zt part.zt --include 'encoder.*' --zstd '19:*.embedding'
  tenfold convert model.zt model.safetensors --shard-size 5GB
  tenfold convert model-0000*.safetensors whole.safetensors
  tenfold convert model.zt model.mag --dry-run     what would be lost, and nothing written
";

pub(super) const CONVERT_USAGE: &str = "\
tenfold convert [OPTIONS] <IN>... <OUT>
       tenfold convert [OPTIONS] <IN>... -o <OUT>";

#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// The file to read, or a directory of files as one archive; several are read as one. The last is the file to write, unless -o names it
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The file to write; with a / at the end, a new or empty directory with a file for every tensor, or with the shards
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) opening: Opening,
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) types: Types,
    /// Write the tensors that are whole in a file that was cut off or damaged: safetensors, GGUF, mag, Burnpack, npz and primitiv
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
    #[arg(long, alias = "max-size", value_name = "SIZE", value_parser = bytes)]
    pub(crate) shard_size: Option<u64>,
    #[command(flatten)]
    pub(crate) along: Along,
    #[command(flatten)]
    pub(crate) checking: Checking,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

impl ConvertArgs {
    /// The files to read, and the one to write.
    pub(crate) fn places(&self) -> Result<(&[PathBuf], &Path)> {
        match (&self.output, self.files.split_last()) {
            (Some(output), _) => Ok((&self.files, output)),
            (None, Some((output, inputs))) if !inputs.is_empty() => Ok((inputs, output)),
            _ => Err(Failure::Message(
                "which file is to be written? tenfold convert IN OUT, or tenfold convert IN -o OUT"
                    .into(),
            )),
        }
    }
}
