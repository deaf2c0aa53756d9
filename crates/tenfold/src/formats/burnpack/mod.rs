//! Burnpack `.bpk`, the files of Burn: a CBOR map of all tensors, then their data.
//!
//! Everything is little endian; data is dense and row-major.
//!
//! | offset | size          | field         | notes                                                                   |
//! |--------|---------------|---------------|-------------------------------------------------------------------------|
//! | 0      | 4             | magic         | `NRUB`                                                                  |
//! | 4      | 2             | version       | 1                                                                       |
//! | 6      | 4             | metadata_size | bytes of CBOR, at most 100 MiB                                          |
//! | 10     | metadata_size | metadata      | one map: `tensors`, and where there are any `metadata` and `scalars`    |
//! |        |               | padding       | zeros up to a multiple of 256 (Burn 0.20 and later), or none (Burn 0.19) |
//! |        |               | data          | each tensor at a multiple of 256, or packed                             |
//!
//! A tensor is `name => {dtype, shape, data_offsets: [start, end], param_id?}`, with offsets from the beginning of the
//! data. Every release writes version 1, and yet there are two places where data begins, two spellings of bool and four
//! of quantization. No release of Burn reads them all; here all are read, and the file's size tells where data begins.
//!
//! Written are the forms that Burn 0.23, 0.20 and 0.19 read. Refused are other versions, types that do not exist,
//! duplicate names, data that overlaps or has another length than its shape says, and files that lost their end. The
//! rules are listed in `docs/formats/burnpack.md`. Source: the documentation of burn-store, its sources and those of
//! burn-pack from 0.19.0 to 0.23.0-pre.1, and files that they wrote.

#[cfg(feature = "burnpack")]
mod codec;
#[cfg(feature = "burnpack")]
mod dequantize;
#[cfg(feature = "burnpack")]
mod raw;
// What can be held is known without the codec; the rest of it is the codec's.
mod scheme;

#[cfg(feature = "burnpack")]
use codec::Burnpack;

use crate::format::{Capabilities, Entry, Fit, Profile, Spec, written};
use crate::model::{DType, Layout, Map, OpaqueSpec, TensorInfo, Value};
use crate::prelude::*;
use scheme::{Arrangement, Mode, Scheme};
#[cfg(feature = "burnpack")]
use scheme::{Scale, Store, ValueType};

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "burnpack")]
    codec: Some(&Burnpack),
    #[cfg(not(feature = "burnpack"))]
    codec: None,
};

/// The facts about Burnpack.
pub static SPEC: Spec = Spec {
    id: "burnpack",
    name: "Burnpack",
    extensions: &["bpk"],
    magic: &[(0, MAGIC)],
    reads: &[VERSION],
    writes: written(WRITES),
    options: &[],
};

/// The versions that are written.
const WRITES: &[Profile] = &[
    Profile {
        version: V023,
        read_by: "Burn 0.22 and later; 0.21 where nothing is quantized",
        can: Capabilities {
            dtype: |dtype| is_number(dtype) || dtype == QFLOAT,
            layout: |layout| is_row_major(layout) || is_quantized(layout),
            tensor: fits_023,
            file_value: |key, value| match (key, value) {
                (SCALARS, Value::Map(map)) => scalars_fit(map),
                _ => as_text(value),
            },
            tensor_value: |key, value| match (key, value) {
                (BURN_SCHEME, Value::Map(_)) => Fit::Exact,
                _ => described(key, value),
            },
            ..PLAIN
        },
    },
    Profile {
        version: V020,
        read_by: "Burn 0.20; 0.21 where nothing is bool",
        can: Capabilities {
            dtype: |dtype| is_number(dtype) || dtype == QFLOAT,
            layout: |layout| is_row_major(layout) || is_quantized(layout),
            tensor: fits_020,
            tensor_value: |key, value| match (key, value) {
                (BURN_SCHEME, Value::Map(_)) => Fit::Exact,
                _ => described(key, value),
            },
            ..PLAIN
        },
    },
    Profile {
        version: V019,
        read_by: "Burn 0.19",
        can: PLAIN,
    },
];

const VERSION: &str = "1";
const V023: &str = "0.23";
const V020: &str = "0.20";
const V019: &str = "0.19";

const MAGIC: &[u8; 4] = b"NRUB";
/// What all readers refuse more than.
const MAX_TENSORS: u64 = 100_000;
/// Dimensions that are written; readers set no limit.
const MAX_RANK: usize = 64;

/// The type of quantized tensors, and the name of their layout.
pub(crate) const QFLOAT: DType = DType::Opaque(&OpaqueSpec::new(QFLOAT_NAME));
const QFLOAT_NAME: &str = "burn:QFloat";

/// The file's scalars among its metadata.
const SCALARS: &str = "burn.scalars";
/// Metadata of tensors: Burn's id of the parameter, its name of the type where that says more than ours, how bools are
/// stored, and how values are quantized.
const PARAM_ID: &str = "param_id";
const BURN_DTYPE: &str = "burn_dtype";
const BOOL_STORE: &str = "bool_store";
const BURN_SCHEME: &str = "burn_scheme";
/// Fields of a tensor's description that are not known here, as a CBOR map.
#[cfg(feature = "burnpack")]
const BURN_FIELDS: &str = "burn.fields";
const FLEX32: &str = "Flex32";
const BOOL_STORES: &[&str] = &["Native", "U8", "U32"];

/// Every name of a type of numbers.
const NUMBERS: &[(&str, DType)] = &[
    ("F64", DType::F64),
    ("F32", DType::F32),
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("I64", DType::I64),
    ("I32", DType::I32),
    ("I16", DType::I16),
    ("I8", DType::I8),
    ("U64", DType::U64),
    ("U32", DType::U32),
    ("U16", DType::U16),
    ("U8", DType::U8),
];

/// What all releases can hold.
const PLAIN: Capabilities = Capabilities {
    max_tensors: MAX_TENSORS,
    min_rank: 0,
    max_rank: MAX_RANK,
    zero_sizes: true,
    name: |_| Ok(()),
    dtype: is_number,
    layout: is_row_major,
    tensor: |_| Ok(()),
    file_value: |key, value| match (key, value) {
        // Readers would pass over the map, and the layout of 0.19 is told by its absence.
        (SCALARS, Value::Map(_)) => Fit::No,
        _ => as_text(value),
    },
    tensor_value: described,
    big_endian: false,
    zstd: false,
    checksums: &[],
    // Readers pass over keys that they do not know.
    kept: true,
};

fn is_number(dtype: DType) -> bool {
    dtype == DType::BOOL || NUMBERS.iter().any(|&(_, known)| known == dtype)
}

fn is_row_major(layout: &Layout) -> bool {
    matches!(layout, Layout::RowMajor)
}

fn is_quantized(layout: &Layout) -> bool {
    matches!(layout, Layout::Opaque(scheme) if scheme.name == QFLOAT_NAME)
}

/// Metadata is text; numbers, true and false become it.
fn as_text(value: &Value) -> Fit {
    let text = match value {
        Value::Str(_) => return Fit::Exact,
        Value::Bool(value) => value.to_string(),
        Value::F32(value) => value.to_string(),
        Value::F64(value) => value.to_string(),
        Value::Integer(digits) => digits.clone(),
        value => match (value.as_u64(), value.as_i64()) {
            (Some(number), _) => number.to_string(),
            (None, Some(number)) => number.to_string(),
            (None, None) => return Fit::No,
        },
    };
    Fit::As(Value::Str(text))
}

/// Scalars are numbers of up to 64 bits, true or false. Their widths are not kept: Burn has one of each kind.
fn scalars_fit(scalars: &Map) -> Fit {
    let fits = |value: &Value| match value {
        Value::Bool(_) | Value::F32(_) | Value::F64(_) => true,
        value => value.as_u64().is_some() || value.as_i64().is_some(),
    };
    if !scalars.is_empty() && scalars.iter().all(|(_, value)| fits(&value)) {
        Fit::Exact
    } else {
        Fit::No
    }
}

/// What every release can say about a tensor.
fn described(key: &str, value: &Value) -> Fit {
    match (key, value) {
        (PARAM_ID, Value::U64(_)) => Fit::Exact,
        (PARAM_ID, value) => value.as_u64().map_or(Fit::No, |id| Fit::As(Value::U64(id))),
        (BURN_DTYPE, Value::Str(name)) if name == FLEX32 => Fit::Exact,
        // Until 0.20 there is one way to store them: a fact about the file, and nothing that could be lost.
        (BOOL_STORE, Value::Str(store)) if BOOL_STORES.contains(&&**store) => Fit::Exact,
        #[cfg(feature = "burnpack")]
        (BURN_FIELDS, value) if raw::Others::from_value(value).is_some() => Fit::Exact,
        _ => Fit::No,
    }
}

fn fits_023(tensor: &TensorInfo) -> Result<(), String> {
    let Some((scheme, len)) = quantized(tensor)? else {
        return Ok(());
    };
    match scheme.arrangement(&tensor.shape, len) {
        Arrangement::OneRun => Err(format!(
            "its values are packed in one run, as Burn {V020} and 0.21 write them; later releases begin a word \
            with each row"
        )),
        Arrangement::Rows | Arrangement::Unknown => Ok(()),
    }
}

fn fits_020(tensor: &TensorInfo) -> Result<(), String> {
    let Some((scheme, len)) = quantized(tensor)? else {
        return Ok(());
    };
    if scheme.mode == Mode::Lookup {
        return Err(format!("Burn {V020} has no quantization by look-up"));
    }
    if scheme.block.is_some() && scheme.tensor.is_some() {
        return Err(format!("Burn {V020} has no blocks with a scale above them"));
    }
    if scheme.one_run_len(&tensor.shape) == Some(len) {
        Ok(())
    } else {
        Err(format!(
            "its values take {len} bytes, which Burn {V020} would not read: it packs all values in one run"
        ))
    }
}

/// How a quantized tensor is quantized, and the bytes it takes; `None` for others.
fn quantized(tensor: &TensorInfo) -> Result<Option<(Scheme, u64)>, String> {
    if tensor.dtype != QFLOAT {
        return Ok(None);
    }
    let scheme = tensor.metadata.get(BURN_SCHEME);
    let scheme = scheme.ok_or("its metadata `burn_scheme` does not say how it is quantized")?;
    let scheme = Scheme::from_value(scheme)?;
    match &*tensor.parts {
        [part] => Ok(Some((scheme, part.payload.len()))),
        _ => Err("quantized tensors have one part".into()),
    }
}
