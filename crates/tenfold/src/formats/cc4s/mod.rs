//! Tensors of cc4s: a YAML file that describes them, and beside it their elements, binary or text.
//!
//! | key                | value                                                                       |
//! |--------------------|-----------------------------------------------------------------------------|
//! | `version`          | 100                                                                         |
//! | `type`             | `Tensor`, or `TensorSet` with `components`: a map of names to Tensors       |
//! | `scalarType`       | `Real64` or `Complex64`                                                     |
//! | `dimensions`       | a list, or a map with the keys 0, 1, ..., of `length` and `type` (optional) |
//! | `elements.type`    | `IeeeBinaryFile` or `TextFile`                                              |
//! | `unit`             | what the stored numbers are to be multiplied with                           |
//! | `metaData`         | a map, optional                                                             |
//! | `nonZeroCondition` | which blocks are stored, optional                                           |
//!
//! The elements of `NAME.yaml` are in `NAME.elements`, those of component K in `NAME.components.K.elements`: f64,
//! little-endian, or white-space separated numbers, `(re,im)` for complex ones; the first dimension runs fastest.
//!
//! Tensors and sets are read and written; sparse blocks are read. Numbers are never multiplied with the unit. Refused are
//! other versions (also that of mid 2020, `v1.0`), other types, data that does not have exactly the size of its shape,
//! and aliases. The rules are listed in `docs/formats/cc4s.md`.
//! Source: the public cc4s sources and test data.

#[cfg(feature = "cc4s")]
mod blocks;
#[cfg(feature = "cc4s")]
mod codec;
#[cfg(feature = "cc4s")]
mod elements;
#[cfg(feature = "cc4s")]
mod events;
#[cfg(feature = "cc4s")]
mod lookahead;
#[cfg(feature = "cc4s")]
mod write;
#[cfg(feature = "cc4s")]
mod yaml;

#[cfg(feature = "cc4s")]
use codec::Cc4s;

use crate::format::{Capabilities, Entry, Fit, OptionSpec, Profile, Spec, written};
use crate::model::{DType, Layout, List, Value};
use crate::prelude::*;

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "cc4s")]
    codec: Some(&Cc4s),
    #[cfg(not(feature = "cc4s"))]
    codec: None,
};

/// The facts about cc4s YAML.
pub static SPEC: Spec = Spec {
    id: "cc4s",
    name: "cc4s YAML",
    extensions: &["yaml"],
    magic: &[],
    reads: &[VERSION],
    writes: written(WRITES),
    options: &[
        OptionSpec {
            key: "set",
            value: "true|false",
            help: "whether to write a single tensor as a TensorSet (default: only where its name would be lost)",
        },
        OptionSpec {
            key: "text",
            value: "true|false",
            help: "whether to write elements as text, in the shortest digits that read back the same (default: binary)",
        },
    ],
};

/// The versions that are written.
const WRITES: &[Profile] = &[Profile {
    version: VERSION,
    read_by: "cc4s since 2020",
    can: Capabilities {
        max_tensors: u32::MAX as u64,
        min_rank: 0,
        max_rank: 64,
        zero_sizes: true,
        name: name_fits,
        dtype: |dtype| scalar_type(dtype).is_some(),
        layout: |layout| matches!(layout, Layout::ColumnMajor),
        tensor: |_| Ok(()),
        file_value: |_, _| Fit::No,
        tensor_value,
        kept: false,
        big_endian: false,
        zstd: false,
        checksums: &[],
    },
}];

const VERSION: &str = "100";

/// The name of an element type in the file.
fn scalar_type(dtype: DType) -> Option<&'static str> {
    match dtype {
        DType::F64 => Some("Real64"),
        DType::C128 => Some("Complex64"),
        _ => None,
    }
}

/// Names of components are parts of names of files.
fn name_fits(name: &str) -> Result<(), &'static str> {
    match name {
        "" => Err("names cannot be empty"),
        _ if name.len() > 160 => Err("it is too long to be part of a file name"),
        _ if name.contains(['/', '\\']) || name.contains(char::is_control) => {
            Err("it cannot be part of a file name")
        }
        _ => Ok(()),
    }
}

fn tensor_value(key: &str, value: &Value) -> Fit {
    let fits = match (key, value) {
        ("scalarType", Value::Str(name)) => matches!(name.as_str(), "Real64" | "Complex64"),
        ("dimensions", Value::List(types)) => types
            .iter()
            .all(|name| matches!(name, Value::Str(_) | Value::Null)),
        ("unit", value) => matches!(
            normal(value),
            Some(Value::I64(_) | Value::U64(_) | Value::F64(_))
        ),
        ("metaData", Value::Map(_)) => true,
        _ => false,
    };
    match normal(value) {
        Some(held) if fits && held == *value => Fit::Exact,
        Some(held) if fits => Fit::As(held),
        _ => Fit::No,
    }
}

/// The value as it is read back; `None` if there is no way to write it.
fn normal(value: &Value) -> Option<Value> {
    Some(match value {
        Value::F32(number) => Value::F64((*number).into()),
        Value::Null | Value::Bool(_) | Value::F64(_) | Value::Integer(_) | Value::Str(_) => {
            value.clone()
        }
        Value::List(items) => Value::List(
            items
                .iter()
                .map(|item| normal(&item))
                .collect::<Option<_>>()?,
        ),
        Value::Empty(_) => Value::List(List::new()),
        Value::Map(entries) => {
            let entries = entries.iter();
            let held = entries.map(|(key, value)| Some((key.to_owned(), normal(&value)?)));
            Value::Map(held.collect::<Option<_>>()?)
        }
        _ => match value.as_i64() {
            Some(number) => Value::I64(number),
            None => Value::U64(value.as_u64()?),
        },
    })
}
