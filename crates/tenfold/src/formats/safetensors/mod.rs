//! safetensors: a JSON header that says where everything is, then all data without a gap.
//!
//! | offset | size | field  | notes                                                                      |
//! |--------|------|--------|----------------------------------------------------------------------------|
//! | 0      | 8    | N      | u64 little endian: bytes of the header, at most 100 000 000                |
//! | 8      | N    | header | one JSON object, its first byte `{`, padded with spaces                    |
//! | 8 + N  | rest | data   | little endian, row-major, every byte belongs to exactly one tensor         |
//!
//! The header has an entry `name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}` for each tensor, with
//! offsets from the beginning of the data, and may have `"__metadata__": {"key": "text"}`. There is no version; the
//! format has only gained names of types. Metadata that is not text is written as text, and its type under the key
//! `tenfold.types`, so that it comes back as it was.
//!
//! A model in several files has an index beside them, `model.safetensors.index.json`, whose `weight_map` says which file
//! a tensor is in. The index is opened as one archive.
//!
//! Both are read and written. What is refused, and where this reader is stricter than the reference, is in
//! `docs/formats/safetensors.md`. Source: the format's description, and the behaviour of safetensors 0.8.0.

#[cfg(feature = "safetensors")]
mod check;
#[cfg(feature = "safetensors")]
mod codec;
mod dtypes;
#[cfg(feature = "safetensors")]
mod raw;
#[cfg(feature = "safetensors")]
mod typed;
#[cfg(feature = "safetensors")]
mod write;

#[cfg(feature = "safetensors")]
use codec::Safetensors;

use crate::format::{Capabilities, Entry, Fit, OptionSpec, Profile, Spec, written};
use crate::model::{Layout, TensorInfo, Value};
use crate::prelude::*;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "safetensors")]
    codec: Some(&Safetensors),
    #[cfg(not(feature = "safetensors"))]
    codec: None,
};

/// The facts about safetensors.
pub static SPEC: Spec = Spec {
    id: "safetensors",
    name: "safetensors",
    extensions: &["safetensors"],
    // Only for builds without the codec, which looks at more than these bytes.
    magic: &[(8, b"{\"")],
    reads: &[FILE, INDEX],
    writes: written(WRITES),
    options: &[
        OptionSpec {
            key: "align",
            value: "bytes",
            help: "data begins at a multiple of this, itself a multiple of 8 (default 8)",
        },
        OptionSpec {
            key: "reserve",
            value: "bytes",
            help: "leaves room in the header, so that metadata can be added without moving the data",
        },
    ],
};

/// The versions that are written.
const WRITES: &[Profile] = &[Profile {
    version: FILE,
    read_by: "safetensors 0.8; older releases where they know the types",
    can: Capabilities {
        max_tensors: u64::MAX,
        min_rank: 0,
        max_rank: usize::MAX,
        zero_sizes: true,
        name: |name| match name {
            METADATA => Err("it is the name of the file's metadata"),
            _ => Ok(()),
        },
        dtype: |dtype| dtypes::name(dtype).is_some(),
        layout: |layout| matches!(layout, Layout::RowMajor),
        tensor: |tensor| size_fits(tensor),
        file_value: value_fits,
        tensor_value: |_, _| Fit::No,
        big_endian: false,
        zstd: false,
        checksums: &[],
        kept: false,
    },
}];

/// Files that an index can name.
#[cfg(feature = "safetensors")]
pub(super) static FAMILY: super::sharded::Family = super::sharded::Family {
    name: "safetensors",
    extension: ".safetensors",
    version: INDEX,
    json: &raw::RULES,
    rules: super::sharded::Rules {
        shard_metadata: "safetensors.shard-metadata",
        not_in_index: "safetensors.not-in-index",
        total_size: "safetensors.total-size",
        left_over: "safetensors.shard-left-over",
        count: "safetensors.shard-count",
    },
    described_by: codec::described_by,
    describe: codec::describe_shard,
};

/// The version of a file: there is only one, and it has no name.
const FILE: &str = "-";
/// The version of an index of several files.
const INDEX: &str = "sharded index";

/// The entry of the header that is not a tensor.
const METADATA: &str = "__metadata__";
/// The entry of the metadata that says what the others were before they were text.
#[cfg(feature = "safetensors")]
const TYPES: &str = "tenfold.types";

/// Whether the bytes of a tensor can be counted, and are whole.
fn size_fits(tensor: &TensorInfo) -> Result<(), String> {
    match dtypes::bytes(tensor.dtype, &tensor.shape) {
        Ok(_) => Ok(()),
        Err(dtypes::NoSize::Overflow) => Err("its size does not fit 64 bits".into()),
        Err(dtypes::NoSize::Bits(bits)) => {
            Err(format!("its {bits} bits are not a whole number of bytes"))
        }
    }
}

/// Metadata is text; what is not is held as its text, with its type beside it.
#[cfg(feature = "safetensors")]
fn value_fits(key: &str, value: &Value) -> Fit {
    typed::fit(key, value)
}

/// Without the codec nothing is written either.
#[cfg(not(feature = "safetensors"))]
fn value_fits(_: &str, value: &Value) -> Fit {
    match value {
        Value::Str(_) => Fit::Exact,
        _ => Fit::No,
    }
}
