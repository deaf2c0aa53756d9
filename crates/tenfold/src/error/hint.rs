//! What would help.

use crate::model::{DType, Effect};
use crate::prelude::*;

/// What would help against an [`Error`](crate::Error) or a [`Loss`](crate::format::Loss): data, because only whoever talks
/// to people knows what they can do. A command names its option, a program its argument, a page shows a button.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Hint {
    /// Accept losses up to this effect: `ConvertOptions::allow`.
    Allow(Effect),
    /// Ask servers over plain HTTP: `io::Remote::allow_http`.
    AllowHttp,
    /// Ask without credentials, as for public files: `io::Remote::anonymous`.
    Anonymous,
    /// Say what bytes without a type are, perhaps this: `OpenOptions::assume_dtype`.
    Assume(Option<DType>),
    /// Write numbers of another type, such as this one: `ops::cast`.
    Cast(Option<DType>),
    /// Say which of these formats, by their ids, the file has: `OpenOptions::format`.
    ChooseFormat(Vec<&'static str>),
    /// Write quantized tensors as the numbers that they stand for: `ops::dequantize`.
    Dequantize,
    /// Build the library with this feature.
    EnableFeature(&'static str),
    /// Leave the tensor out: `Archive::select`.
    Exclude,
    /// Write a file of this format, by its id, for every tensor: `ConvertOptions::file_per_tensor`.
    FilePerTensor(&'static str),
    /// Give the format this option of its own: `ConvertOptions::options`.
    FormatOption {
        /// Its key.
        key: &'static str,
        /// The value to give it.
        value: &'static str,
        /// What it does then, such as `leaves statistics out`.
        does: &'static str,
    },
    /// Keep sparse tensors sparse: `ConvertOptions::sparse`.
    KeepSparse,
    /// Open one of the files instead of the directory that they are in.
    NameFile,
    /// Write a format that holds all tensors in one file.
    OneFile,
    /// Read objects of unknown classes as records of what they hold: `OpenOptions::opaque`.
    Opaque,
    /// Raise a limit: `OpenOptions::limits`.
    RaiseLimit {
        /// The field of [`Limits`](crate::io::Limits).
        name: &'static str,
        /// What is needed at least, where that is known.
        needed: Option<u64>,
    },
    /// Give the tensor another name: `ops::rename`.
    Rename,
    /// Replace what is there: `AtomicOutput::force`.
    Replace,
    /// Do this item of a plan again, or the one that a message is about: `ops::scale::run`.
    RunAgain(Option<usize>),
    /// Open what is whole: `OpenOptions::salvage`.
    Salvage,
    /// Write several files: `ConvertOptions::shards`.
    Shard,
    /// Do not compare checksums: `OpenOptions::checksums`, `ConvertOptions::verify`.
    SkipChecksums,
    /// Write a version of a format that holds everything.
    WriteAs {
        /// The format's id.
        format: &'static str,
        /// One of the versions that it writes.
        version: &'static str,
    },
}
