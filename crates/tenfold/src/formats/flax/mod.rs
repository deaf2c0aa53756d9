//! Flax's MessagePack (`flax.serialization`, `flax_model.msgpack`): one object of maps within maps, arrays as extensions.
//!
//! | extension | body, itself MessagePack                                   | here                             |
//! |-----------|------------------------------------------------------------|----------------------------------|
//! | 1         | array of shape, name of the dtype, bytes                   | a tensor                         |
//! | 2         | array of two floats                                        | a complex number, metadata       |
//! | 3         | like 1, without dimensions                                 | a tensor without dimensions      |
//!
//! An array of more than 2^30 bytes is a map with `__msgpack_chunked_array__`, `shape` and `chunks`. Numbers of MessagePack
//! are big-endian, bytes of arrays little-endian and row-major. Names are keys joined by dots; what is no array is metadata
//! under its path. Types below a byte have a byte for each element, of which the low bits count.
//!
//! Refused are other extensions, other types, keys and names that are there twice. The rules are listed in
//! `docs/formats/flax.md`. Source: the behaviour of flax 0.12 and msgpack 1.2.

#[cfg(feature = "flax")]
mod codec;
mod dtypes;
#[cfg(feature = "flax")]
mod leaves;
#[cfg(feature = "flax")]
mod walk;
#[cfg(all(feature = "flax", feature = "write"))]
mod write;

#[cfg(feature = "flax")]
use codec::Flax;

use crate::format::{Capabilities, Entry, Fit, OptionSpec, Profile, Spec, written};
use crate::model::{Value, ValueKind};

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "flax")]
    codec: Some(&Flax),
    #[cfg(not(feature = "flax"))]
    codec: None,
};

/// What is known of the format without its codec.
pub static SPEC: Spec = Spec {
    reads: &[VERSION],
    writes: written(WRITES),
    options: &[OptionSpec::new(
        CHUNK,
        "BYTES",
        "cut arrays of more bytes into chunks, as flax does with those of more than 2^30 (default: 1073741824)",
    )],
    ..Spec::known("flax", "Flax", &["msgpack"], &[])
};

/// The versions that are written.
const WRITES: &[Profile] = &[Profile {
    version: VERSION,
    read_by: "flax.serialization.msgpack_restore of every flax with ml_dtypes",
    can: Capabilities {
        max_rank: 64,
        name,
        dtype: |dtype| dtypes::written(dtype).is_some(),
        file_value: |key, value| fit(key, value),
        ..Capabilities::new()
    },
}];

const VERSION: &str = "1";
/// Levels of maps and arrays, at most.
#[cfg(feature = "flax")]
const MAX_DEPTH: usize = 64;
/// Parts of a name that is written, at most: the arrays themselves have levels too.
const MAX_PARTS: usize = 60;
/// Bytes of an array that is written: what the extension has beside them fits too.
const MOST_BYTES: u64 = u32::MAX as u64 - 1024;
/// The option for the bytes of an array that is not cut, and what flax has for it.
const CHUNK: &str = "chunk";
#[cfg(all(feature = "flax", feature = "write"))]
const DEFAULT_CHUNK: u64 = 1 << 30;
/// The key that tells an array in chunks from other maps.
const CHUNKED: &str = "__msgpack_chunked_array__";

fn name(name: &str) -> Result<(), &'static str> {
    if name.split('.').count() > MAX_PARTS {
        return Err("a name has at most 60 parts between dots");
    }
    if name.split('.').any(|part| part == CHUNKED) {
        return Err("__msgpack_chunked_array__ tells flax something else");
    }
    Ok(())
}

/// What becomes of a value: what flax has a form for that comes back as it was.
fn fit(key: &str, value: &Value) -> Fit {
    if name(key).is_err() {
        return Fit::No;
    }
    match value {
        Value::List(list) if list.len() == 2 && list.kind() == Some(ValueKind::F64) => Fit::Exact,
        Value::Map(map) if map.is_empty() => Fit::Exact,
        Value::Integer(digits) => Fit::As(Value::Str(digits.clone())),
        Value::List(_)
        | Value::Map(_)
        | Value::Empty(_)
        | Value::Elsewhere(_)
        | Value::Encoded { .. } => Fit::No,
        Value::Str(text) if text.len() as u64 > MOST_BYTES => Fit::No,
        Value::Bytes(bytes) if bytes.len() as u64 > MOST_BYTES => Fit::No,
        _ => Fit::Exact,
    }
}
