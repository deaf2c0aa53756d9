//! NumPy's arrays with their header: a file of their own (`.npy`), or a member of a zip archive (`.npz`).
//!
//! Errors have bare rules: the format that reads the array puts its id in front.

pub(crate) mod dtypes;
mod header;
mod literal;

pub(crate) use header::{Header, Place, encode};

use crate::model::{DType, element_count};
use crate::prelude::*;

/// The beginning of every array.
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";
/// What it is called where it is missing.
pub(crate) const MAGIC_FIELD: &str = "the magic";
/// Dimensions, at most, since NumPy 2; it had 32 before.
pub(crate) const MAX_RANK: usize = 64;

/// Bytes of an array, which NumPy counts in signed numbers, and before it looks for a dimension of 0.
pub(crate) fn data_len(dtype: DType, shape: &[u64]) -> Option<u64> {
    len_by(shape, |elements| dtype.bytes_for(elements))
}

/// The same with elements of so many bytes.
fn len_of_items(item: u64, shape: &[u64]) -> Option<u64> {
    len_by(shape, |elements| elements.checked_mul(item))
}

fn len_by(shape: &[u64], bytes_for: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let nonzero: Vec<u64> = shape.iter().copied().filter(|&dim| dim != 0).collect();
    let most = bytes_for(element_count(&nonzero)?)?;
    (most <= i64::MAX as u64)
        .then(|| bytes_for(element_count(shape)?))
        .flatten()
}
