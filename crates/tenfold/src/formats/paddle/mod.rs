//! Paddle's checkpoints (`paddle.save`: `.pdparams`, `.pdopt`): one pickle, in which every tensor is an array of NumPy.
//!
//! | in the pickle                                     | here                                                          |
//! |---------------------------------------------------|---------------------------------------------------------------|
//! | `_reconstruct(ndarray, (0,), b'b')` and its state | a tensor: shape, dtype, order and bytes                       |
//! | `tuple([name, array])`                            | a tensor with `parameter_name`, outside of a `state_dict`     |
//! | `scalar(dtype, bytes)`                            | a tensor without dimensions                                   |
//! | `StructuredToParameterName@@`                     | a dict: the `parameter_name` of every tensor                  |
//! | `UnpackBigParamInfor@@`                           | a dict: parameters in slices, each an array (protocols 2, 3)  |
//! | numbers, texts                                    | metadata under their path                                     |
//!
//! Names are keys of dicts and places in lists, joined by dots. 16-bit unsigned integers are bf16, which Paddle stores so.
//! The pickle is read as data: what it names is on a short list, nothing is imported or called. The bytes of arrays stay
//! in the file, but for those of protocol 2, which are text. Written is a dict of arrays in protocol 4. The rules are
//! listed in `docs/formats/paddle.md`. Source: the behaviour of paddlepaddle 3.3 with NumPy 2.

#[cfg(feature = "paddle")]
mod arrays;
#[cfg(feature = "paddle")]
mod codec;
#[cfg(feature = "paddle")]
mod flatten;
#[cfg(feature = "paddle")]
mod globals;
#[cfg(all(feature = "paddle", feature = "write"))]
mod write;

#[cfg(feature = "paddle")]
use codec::Paddle;

use crate::format::{Capabilities, Entry, Fit, Profile, Spec, written};
use crate::model::{DType, Value};
use crate::prelude::*;
use crate::wire::numpy;

/// The row of the table of formats.
pub(super) const ENTRY: Entry = Entry {
    spec: &SPEC,
    #[cfg(feature = "paddle")]
    codec: Some(&Paddle),
    #[cfg(not(feature = "paddle"))]
    codec: None,
};

/// What is known of the format without its codec.
pub static SPEC: Spec = Spec {
    reads: &["pickle protocol 2", "pickle protocol 3", PROTOCOL_4],
    writes: written(WRITES),
    ..Spec::known("paddle", "Paddle", &["pdparams", "pdopt", "pdtensor"], &[])
};

/// The versions that are written.
const WRITES: &[Profile] = &[Profile {
    version: PROTOCOL_4,
    read_by: "paddle.load of Paddle 2 and later, with NumPy 1 and 2",
    can: Capabilities {
        max_rank: numpy::MAX_RANK,
        name,
        dtype: |dtype| WRITTEN.contains(&dtype),
        tensor: |tensor| match numpy::data_len(tensor.dtype, &tensor.shape) {
            Some(_) => Ok(()),
            None => Err("its elements have 2^63 bytes or more".to_owned()),
        },
        file_value: |key, value| fit(key, value),
        tensor_value: |key, value| match (key, value) {
            (PARAMETER_NAME, Value::Str(_)) => Fit::Exact,
            _ => Fit::No,
        },
        ..Capabilities::new()
    },
}];

const PROTOCOL_4: &str = "pickle protocol 4";
/// The key of a tensor's metadata for the name that Paddle itself has for it.
const PARAMETER_NAME: &str = "parameter_name";
/// The key of a dict that has these names.
const NAMES: &str = "StructuredToParameterName@@";
/// The key of a dict that says which arrays are slices of one.
const SLICES: &str = "UnpackBigParamInfor@@";
/// Digits of an integer, at most: 1024 bits.
const MAX_DIGITS: usize = 308;

/// Types that Paddle has and that come back: 16-bit unsigned integers would be bf16, others it has none of.
const WRITTEN: [DType; 12] = [
    DType::BOOL,
    DType::U8,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
];

fn name(name: &str) -> Result<(), &'static str> {
    if name == NAMES || name == SLICES {
        return Err("Paddle has something else under this name");
    }
    Ok(())
}

/// What becomes of a value: numbers and texts stay.
fn fit(key: &str, value: &Value) -> Fit {
    if name(key).is_err() {
        return Fit::No;
    }
    match value {
        Value::Integer(digits) if digits.len() > MAX_DIGITS => Fit::No,
        Value::List(_)
        | Value::Map(_)
        | Value::Empty(_)
        | Value::Elsewhere(_)
        | Value::Encoded { .. } => Fit::No,
        _ => Fit::Exact,
    }
}
