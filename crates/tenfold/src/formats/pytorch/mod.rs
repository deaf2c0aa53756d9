//! PyTorch's checkpoints: a pickle that says what was saved, and the raw bytes of every storage.
//!
//! Since 1.6 a zip archive with one folder:
//!
//! | member                | content                                                                                  |
//! |-----------------------|------------------------------------------------------------------------------------------|
//! | `data.pkl`            | a pickle of what was saved; storages are persistent ids in it                            |
//! | `data/KEY`            | the bytes of a storage, stored at a multiple of 64                                       |
//! | `version`             | `3`, or up to `10` in TorchScript                                                        |
//! | `byteorder`           | `little` or `big`; little where it is missing                                            |
//! | `constants.pkl`, `code/` | only in TorchScript archives                                                          |
//!
//! Before that a stream: five pickles (a magic number, the protocol 1001, facts about the machine, what was saved, a list
//! of keys), then for each key the number of elements (i64) and the elements.
//!
//! Both are read. The pickles are read as data, by a list of the classes and functions that may occur in them; nothing is
//! imported or called. Names are paths through dicts and lists, joined by dots; what is no tensor is metadata under its
//! path. Written is the archive. Refused are every other class and function, quantized, sparse and meta tensors, and the
//! tar form of the first releases. A model in several files is opened through its index, `pytorch_model.bin.index.json`.
//! The rules are listed in `docs/formats/pytorch.md`. Source: the behaviour of torch 2.15 and 1.6.

#[cfg(feature = "pytorch")]
mod codec;
#[cfg(feature = "pytorch")]
mod container;
#[cfg(all(feature = "pytorch", feature = "write"))]
mod encode;
#[cfg(feature = "pytorch")]
mod legacy;
#[cfg(feature = "pytorch")]
mod salvage;
#[cfg(all(feature = "pytorch", feature = "write"))]
mod storages;
#[cfg(all(feature = "pytorch", feature = "write"))]
mod write;

#[cfg(feature = "pytorch")]
use codec::PyTorch;

use super::torch::{LONG, MAX_RANK, TYPES};
use crate::format::{Capabilities, Entry, Fit, Profile, Spec, written};
use crate::model::{DType, Layout, TensorInfo, Value, element_count};
use crate::prelude::*;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "pytorch")]
    codec: Some(&PyTorch),
    #[cfg(not(feature = "pytorch"))]
    codec: None,
};

/// The facts about PyTorch's files.
pub static SPEC: Spec = Spec {
    id: "pytorch",
    name: "PyTorch",
    extensions: &["pt", "pth", "bin", "ckpt"],
    // Of the stream. Archives are looked into.
    magic: &[(0, MAGIC)],
    reads: &[ZIP, LEGACY, INDEX],
    writes: written(WRITES),
    options: &[],
};

/// The versions that are written.
const WRITES: &[Profile] = &[Profile {
    version: ZIP,
    read_by: "torch 1.6 and later; 16- to 64-bit unsigned integers, 8-bit and 4-bit floats by recent releases only",
    can: Capabilities {
        max_tensors: u64::MAX,
        min_rank: 0,
        max_rank: MAX_RANK,
        zero_sizes: true,
        name: |_| Ok(()),
        dtype: |dtype| TYPES.iter().any(|(_, known)| *known == dtype),
        layout: |layout| matches!(layout, Layout::RowMajor | Layout::Strided(_)),
        tensor: fits,
        file_value: |_, value| fit(value),
        tensor_value: |key, value| match (key, value) {
            ("parameter" | "requires_grad", Value::Bool(true)) => Fit::Exact,
            _ => Fit::No,
        },
        kept: false,
        big_endian: false,
        zstd: false,
        checksums: &[],
    },
}];

/// Files that an index can name.
#[cfg(feature = "pytorch")]
static FAMILY: super::sharded::Family = super::sharded::Family {
    name: "PyTorch",
    extension: ".bin",
    version: INDEX,
    json: &JSON,
    rules: super::sharded::Rules {
        shard_metadata: "pytorch.shard-metadata",
        not_in_index: "pytorch.not-in-index",
        total_size: "pytorch.total-size",
        left_over: "pytorch.shard-left-over",
        count: "pytorch.shard-count",
    },
    // A zip file is described by its end.
    described_by: |_| None,
    describe: codec::describe_shard,
};

#[cfg(feature = "pytorch")]
static JSON: crate::wire::json::Rules = crate::wire::json::Rules {
    syntax: "pytorch.json",
    text: "pytorch.utf8",
    depth: "pytorch.depth",
};

/// An index of several files.
const INDEX: &str = "sharded index";
/// The archive.
const ZIP: &str = "zip";
/// The stream of before 1.6.
const LEGACY: &str = "legacy";
/// The pickle of a number that streams begin with.
const MAGIC: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e";
/// Digits of an integer, at most: 1024 bits.
const MAX_DIGITS: usize = 308;

/// Sizes and strides are numbers with a sign, of bytes too; elements that share a byte come in pairs.
fn fits(tensor: &TensorInfo) -> Result<(), String> {
    let nonzero: Vec<u64> = (tensor.shape.iter().copied())
        .filter(|dim| *dim != 0)
        .collect();
    let len = element_count(&nonzero).and_then(|count| tensor.dtype.bytes_for(count));
    if len.is_none_or(|len| len > i64::MAX as u64) {
        return Err("its elements have 2^63 bytes or more".into());
    }
    let is_paired = tensor.dtype == DType::F4_E2M1;
    let has_pairs = tensor.shape.last().is_some_and(|last| last % 2 == 0);
    if is_paired && !has_pairs {
        return Err("elements of 4 bits come in pairs along the last dimension".into());
    }
    Ok(())
}

/// What becomes of a value: numbers and texts stay, other lists and maps become JSON.
fn fit(value: &Value) -> Fit {
    match value {
        Value::Null | Value::Bool(_) | Value::Str(_) | Value::Bytes(_) => Fit::Exact,
        Value::F32(_) | Value::F64(_) => Fit::Exact,
        Value::Integer(digits) if digits.len() <= MAX_DIGITS => Fit::Exact,
        Value::Integer(_) | Value::Elsewhere(_) | Value::Encoded { .. } => Fit::No,
        Value::List(list) if list.len() > LONG && list.kind().is_some() => Fit::Exact,
        Value::List(_) | Value::Empty(_) | Value::Map(_) => match json_text(value) {
            Some(text) => Fit::As(Value::Str(text)),
            None => Fit::No,
        },
        _ => Fit::Exact,
    }
}

#[cfg(feature = "pytorch")]
fn json_text(value: &Value) -> Option<String> {
    let mut text = String::new();
    crate::wire::json::encode(value, &mut text).ok()?;
    Some(text)
}

/// Without the codec nothing is written either.
#[cfg(not(feature = "pytorch"))]
fn json_text(_: &Value) -> Option<String> {
    None
}
