//! GGUF: typed metadata and quantized tensors of language models, in one file or several.
//!
//! | part         | content                                                                                           |
//! |--------------|---------------------------------------------------------------------------------------------------|
//! | magic        | `GGUF`, never swapped                                                                             |
//! | version      | u32: 1, 2 or 3; where its low 16 bits are zero as little endian, the whole file is big-endian     |
//! | tensor_count | u64 (version 1: u32)                                                                              |
//! | kv_count     | u64 (version 1: u32)                                                                              |
//! | metadata     | kv_count times: string key, u32 type, value                                                       |
//! | infos        | tensor_count times: string name, u32 n_dims, n_dims dims, u32 type, u64 offset                    |
//! | padding      | zeros to a multiple of `general.alignment` (u32, 32 where it is absent)                           |
//! | data         | each tensor at a multiple of the alignment from here on, padded with zeros                        |
//!
//! A string is its length (u64, version 1: u32) and its bytes; an array the type of its elements, their number and the
//! elements; dims are u64 (version 1: u32), the fastest first, which is the reverse of how shapes are given here.
//!
//! Versions 1 to 3 and both byte orders are read, 3 in little endian is written. Files named `STEM-00001-of-00003.gguf`
//! whose metadata counts them are one archive. Long arrays of metadata are located and checked, but not loaded. What is
//! refused is in `docs/formats/gguf.md`. Source: the format's description, and the behaviour of ggml 0.21.0 and gguf
//! 0.19.0.

#[cfg(feature = "gguf")]
mod check;
#[cfg(feature = "gguf")]
mod codec;
#[cfg(feature = "gguf")]
mod raw;
#[cfg(feature = "gguf")]
mod split;
mod types;
#[cfg(feature = "gguf")]
mod upkeep;
#[cfg(feature = "gguf")]
mod write;

#[cfg(feature = "gguf")]
use codec::Gguf;

use crate::format::{Capabilities, Entry, Fit, OptionSpec, Profile, Spec, written};
use crate::model::{Layout, List, TensorInfo, Value, ValueKind};
use crate::prelude::*;

/// The line of the table.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "gguf")]
    codec: Some(&Gguf),
    #[cfg(not(feature = "gguf"))]
    codec: None,
};

/// The facts about GGUF.
pub static SPEC: Spec = Spec {
    id: "gguf",
    name: "GGUF",
    extensions: &["gguf"],
    magic: &[(0, b"GGUF")],
    reads: &["3", "2", "1"],
    writes: written(WRITES),
    options: &[
        OptionSpec {
            key: "align",
            value: "bytes",
            help: "tensors begin at multiples of this power of two, at least 8 (default: as in the input, else 32)",
        },
        OptionSpec {
            key: "architecture",
            value: "name",
            help: "general.architecture, which llama.cpp needs (default: as in the input, else \"unknown\")",
        },
        OptionSpec {
            key: "reserve",
            value: "bytes",
            help: "leaves room in the header (the key tenfold.padding), so that it can be edited without moving the data",
        },
    ],
};

/// The versions that are written.
const WRITES: &[Profile] = &[Profile {
    version: "3",
    read_by: "ggml and llama.cpp since August 2023, gguf (Python) since 0.4",
    can: Capabilities {
        max_tensors: u64::MAX,
        min_rank: 0,
        max_rank: 4,
        zero_sizes: true,
        name: |name| match name.len() {
            0..=MAX_WRITTEN_NAME => Ok(()),
            _ => Err("ggml reads names of at most 63 bytes"),
        },
        dtype: types::is_held,
        layout: |layout| matches!(layout, Layout::RowMajor),
        tensor: tensor_fits,
        file_value: value_fits,
        tensor_value: |_, _| Fit::No,
        big_endian: false,
        zstd: false,
        checksums: &[],
        kept: false,
    },
}];

/// Bytes of a tensor's name: ggml has room for 64 with the zero after it.
const MAX_WRITTEN_NAME: usize = 63;
/// Bytes of a key.
const MAX_KEY: usize = 65_535;

/// Text that takes up room in the header, and says nothing.
#[cfg(feature = "gguf")]
const PADDING: &str = "tenfold.padding";
const ALIGNMENT: &str = "general.alignment";
#[cfg(feature = "gguf")]
const ARCHITECTURE: &str = "general.architecture";
/// The architecture of files that have none.
#[cfg(feature = "gguf")]
const UNKNOWN: &str = "unknown";
const QUANTIZATION_VERSION: &str = "general.quantization_version";

/// What is written has rows of whole blocks, and sizes that ggml can count.
fn tensor_fits(tensor: &TensorInfo) -> Result<(), String> {
    types::check_row(tensor.dtype, &tensor.shape)?;
    match types::data_len(tensor.dtype, &tensor.shape) {
        Some(_) => Ok(()),
        None => Err("its size does not fit 63 bits".into()),
    }
}

/// Numbers, text and arrays of them have types of their own. What has none is held as text: ggml refuses a file with an
/// array of arrays.
fn value_fits(key: &str, value: &Value) -> Fit {
    if key.is_empty() || key.len() > MAX_KEY {
        return Fit::No;
    }
    match (key, value) {
        (ALIGNMENT, Value::U32(align)) if is_alignment((*align).into()) => return Fit::Exact,
        (QUANTIZATION_VERSION, Value::U32(_)) => return Fit::Exact,
        // Readers take no other type for these two; formats with text only give them back as text.
        (ALIGNMENT | QUANTIZATION_VERSION, Value::Str(text)) => {
            let number = text.parse::<u32>().ok();
            let number = number.filter(|&n| key != ALIGNMENT || is_alignment(n.into()));
            return number.map_or(Fit::No, |number| Fit::As(Value::U32(number)));
        }
        (ALIGNMENT | QUANTIZATION_VERSION, _) => return Fit::No,
        _ => {}
    }
    match value {
        Value::Null | Value::Elsewhere(_) | Value::Encoded { .. } => Fit::No,
        Value::Integer(digits) => Fit::As(Value::Str(digits.clone())),
        Value::Bytes(bytes) => match core::str::from_utf8(bytes) {
            // It would be read as text.
            Ok(text) => Fit::As(Value::Str(text.to_owned())),
            Err(_) => Fit::Exact,
        },
        Value::Map(_) => as_text(value),
        // It must say what its entries would be.
        Value::List(items) if items.is_empty() => Fit::As(Value::Empty(ValueKind::Str)),
        Value::List(items) => {
            if is_array(items) {
                Fit::Exact
            } else {
                as_text(value)
            }
        }
        _ => Fit::Exact,
    }
}

/// Whether all items have one type that an array can have.
fn is_array(items: &List) -> bool {
    let Some(first) = items.first() else {
        return true;
    };
    let alike = |item: &Value| {
        is_string(&first) && is_string(item) || discriminant(&first) == discriminant(item)
    };
    let plain = |item: &Value| match item {
        Value::Bytes(bytes) => core::str::from_utf8(bytes).is_err(),
        item => is_string(item) || is_number(item),
    };
    items.iter().all(|item| plain(&item) && alike(&item))
}

fn discriminant(value: &Value) -> core::mem::Discriminant<Value> {
    core::mem::discriminant(value)
}

fn is_string(value: &Value) -> bool {
    matches!(value, Value::Str(_) | Value::Bytes(_))
}

fn is_number(value: &Value) -> bool {
    let float = matches!(value, Value::F32(_) | Value::F64(_) | Value::Bool(_));
    float || value.as_i64().is_some() || value.as_u64().is_some()
}

/// Whether readers take this alignment.
fn is_alignment(align: u64) -> bool {
    align.is_power_of_two() && align >= 8 && u32::try_from(align).is_ok()
}

#[cfg(any(feature = "gguf", feature = "mag", feature = "safetensors"))]
fn as_text(value: &Value) -> Fit {
    let mut text = String::new();
    match crate::wire::json::encode(value, &mut text) {
        Ok(()) => Fit::As(Value::Str(text)),
        Err(_) => Fit::No,
    }
}

/// Without the encoder of JSON nothing is written either.
#[cfg(not(any(feature = "gguf", feature = "mag", feature = "safetensors")))]
fn as_text(_: &Value) -> Fit {
    Fit::No
}
