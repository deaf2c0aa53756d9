//! The same tensors in another file.

use std::path::{Path, PathBuf};

use clap::Args;

use super::parse::bytes;
use super::{Along, Checking, Filter, Opening, Types, Writing};
use crate::failure::{Failure, Result};

pub(super) const CONVERT_EXAMPLES: &str = "\
Examples:
  tenfold convert model.safetensors model.zt       the extension of the output names the format
  tenfold convert model.gguf model.safetensors --dequantize
  tenfold convert llama/ half.safetensors --cast bf16
  tenfold convert llama/ parts/ --to safetensors --shard-size 5GB
  tenfold convert model-0000*.safetensors -o whole.safetensors
  tenfold convert model.safetensors model.npz --dry-run      what would be lost? writes nothing
  tenfold convert cut.safetensors part.safetensors --salvage   rescue an unfinished download
  tenfold convert model.safetensors part.zt --include 'encoder.*' --zstd '19:*.embedding'
  tenfold convert model.mag model.zt --checksum crc32c -O align=4096
  tenfold convert model.zt model.mag --version snapshot-0.3.0
";

pub(super) const CONVERT_USAGE: &str = "\
tenfold convert [OPTIONS] <IN>... <OUT>
       tenfold convert [OPTIONS] <IN>... -o <OUT>";

#[derive(Args, Debug)]
pub(crate) struct ConvertArgs {
    /// What to read: a file, a model directory, or several files that belong together. Without -o, the last one is the output
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) opening: Opening,
    /// The file to write, or with a trailing / a new directory: of shards, or of one file per tensor
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) filter: Filter,
    #[command(flatten)]
    pub(crate) types: Types,
    /// Read what is intact of a truncated or damaged file: safetensors, GGUF, mag, Burnpack, npz, primitiv
    #[arg(long)]
    pub(crate) salvage: bool,
    /// Keep sparse tensors sparse where the target can, instead of filling in the zeros
    #[arg(long)]
    pub(crate) keep_sparse: bool,
    /// Write every tensor as sparse: elements whose bits are all 0 are left out
    #[arg(long, conflicts_with = "keep_sparse")]
    pub(crate) sparse: bool,
    /// Fill in the zeros of sparse tensors up to this size, such as 500MB or 64GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) max_dense: Option<u64>,
    /// Write shards of at most this size, with an index: 5GB, 500MB, 2GiB
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
            // Several files that are all there: none of them looks like the one to write.
            (None, Some((output, inputs)))
                if inputs.len() > 1 && output.is_file() && !self.writing.force =>
            {
                let files = self.files.len();
                Err(Failure::Message(format!(
                    "all {files} files exist, {} too: name the output with -o OUT",
                    output.display()
                )))
            }
            (None, Some((output, inputs))) if !inputs.is_empty() => Ok((inputs, output)),
            _ => Err(Failure::Message(
                "the file to write is missing: tenfold convert IN OUT, or tenfold convert IN -o OUT"
                    .into(),
            )),
        }
    }
}
