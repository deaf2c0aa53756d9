//! primitiv files: Shapes, Tensors, Parameters, Models and Optimizers as MessagePack objects, one after the other.
//!
//! | bytes                          | field     | notes                                                          |
//! |--------------------------------|-----------|----------------------------------------------------------------|
//! | `ce 00000000`                  | ver_major | 0                                                              |
//! | `ce 00000001`                  | ver_minor | 1                                                              |
//! | `ce 0000tt00`                  | data_type | 0 Shape, 1 Tensor, 2 Parameter, 3 Model, 4 Optimizer           |
//! | array of uint32, uint32        | Shape     | dims (0 to 8 of them), batch                                   |
//! | Shape, bin                     | Tensor    | data: little-endian f32, column-major, the batch slowest       |
//! | Tensor, uint32 N, N × (str, Tensor) | Parameter | value (batch 1), statistics by name                       |
//! | uint32 N, N × (array of str, Parameter) | Model | parameters by key                                         |
//! | map str to uint32, map str to float32 | Optimizer | uint_configs, float_configs                             |
//!
//! Numbers are always in their full form (`ce`, `ca`), big endian; lengths may be in any form and are written in the
//! shortest one. There is nothing around the objects and nothing after them.
//!
//! All five are read and written. A tensor's shape is its dims, with the batch as one more dimension where it is not 1.
//! Statistics are tensors of their own, `parameter@statistic`. Written files are sorted by key and by name, which is
//! the order of the original for everything that it orders. Refused are other versions, numbers in other forms, sizes of
//! 0, more than 8 dims, data that does not have the size of its shape, the same key or name twice, and bytes after the
//! object. The rules are listed in `docs/formats/primitiv.md`.
//! Source: the specification (primitiv File Format v0.1), the public C++ sources, and files that they wrote.

#[cfg(feature = "primitiv")]
mod codec;
mod names;
#[cfg(feature = "primitiv")]
mod raw;
mod values;
#[cfg(feature = "primitiv")]
mod write;

#[cfg(feature = "primitiv")]
use codec::Primitiv;

use crate::format::{Capabilities, Entry, Fit, OptionSpec, Profile, Spec, written};
use crate::model::{DType, Layout, TensorInfo, Value};
use crate::prelude::*;
use values::{DataType, MAX_DEPTH};

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "primitiv")]
    codec: Some(&Primitiv),
    #[cfg(not(feature = "primitiv"))]
    codec: None,
};

/// The facts about primitiv.
pub static SPEC: Spec = Spec {
    id: "primitiv",
    name: "primitiv",
    extensions: &["primitiv"],
    magic: &[(0, MAGIC)],
    reads: &[VERSION],
    writes: written(WRITES),
    options: &[
        OptionSpec {
            key: "kind",
            value: "model|parameter|tensor|shape|optimizer",
            help: "what the file holds (default: as the input, else a model)",
        },
        OptionSpec {
            key: "stats",
            value: "keep|drop",
            help: "whether to write the statistics of optimizers (default: keep)",
        },
    ],
};

/// The versions that are written.
const WRITES: &[Profile] = &[Profile {
    version: VERSION,
    read_by: "primitiv 0.3.0, 0.3.1, 0.4.0",
    can: Capabilities {
        max_tensors: u32::MAX as u64,
        min_rank: 0,
        // A statistic or a Tensor may have a batch as its last dimension.
        max_rank: MAX_DEPTH + 1,
        zero_sizes: false,
        name: |name| names::Address::parse(name).map(drop),
        dtype: |dtype| dtype == DType::F32,
        layout: |layout| matches!(layout, Layout::ColumnMajor),
        tensor: shape_fits,
        file_value,
        tensor_value,
        big_endian: false,
        zstd: false,
        checksums: &[],
        kept: false,
    },
}];

const VERSION: &str = "0.1";
/// The version, with which every file begins.
const MAGIC: &[u8; 10] = b"\xce\0\0\0\0\xce\0\0\0\x01";
/// Data is counted in bytes with 32 bits.
const MAX_ELEMENTS: u64 = u32::MAX as u64 / 4;

/// The batch that a tensor's last dimension is, where it is one.
fn batch(tensor: &TensorInfo) -> Option<u32> {
    let batch = tensor.metadata.get("batch").and_then(values::positive)?;
    (batch > 1 && tensor.shape.last() == Some(&u64::from(batch))).then_some(batch)
}

fn shape_fits(tensor: &TensorInfo) -> Result<(), String> {
    let depth = tensor.shape.len() - usize::from(batch(tensor).is_some());
    if depth > MAX_DEPTH {
        return Err(format!("at most {MAX_DEPTH} dimensions and a batch fit"));
    }
    match tensor.elements() {
        Some(elements) if elements <= MAX_ELEMENTS => Ok(()),
        _ => Err(format!("at most {MAX_ELEMENTS} elements fit")),
    }
}

/// What the file is, and what it holds besides tensors. Whether it fits what is written is seen when that is arranged.
fn file_value(key: &str, value: &Value) -> Fit {
    let fits = match key {
        "data_type" => value.as_str().and_then(DataType::from_name).is_some(),
        "dims" => values::dims(value).is_some(),
        "batch" => values::positive(value).is_some(),
        "uint_configs" => values::uints(value).is_some(),
        "float_configs" => values::floats(value).is_some(),
        _ => false,
    };
    if fits { Fit::Exact } else { Fit::No }
}

/// Role, key and statistic follow from the name again, so that they are kept by not being kept.
fn tensor_value(key: &str, value: &Value) -> Fit {
    let fits = match (key, value) {
        ("role", Value::Str(role)) => matches!(role.as_str(), "value" | "stat"),
        ("key", Value::List(parts)) => parts.iter().all(|part| part.as_str().is_some()),
        ("stat", Value::Str(_)) => true,
        ("batch", value) => values::positive(value).is_some(),
        _ => false,
    };
    if fits { Fit::Exact } else { Fit::No }
}
