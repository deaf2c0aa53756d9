//! NumPy's arrays with their header: a file of their own (`.npy`), or a member of a zip archive (`.npz`).
//!
//! Errors have bare rules: the format that reads the array puts its id in front.

pub(crate) mod dtypes;
#[cfg(any(feature = "npy", feature = "npz"))]
mod header;
#[cfg(any(feature = "npy", feature = "npz"))]
mod literal;

#[cfg(any(feature = "npy", feature = "npz"))]
pub(crate) use header::{Header, Place, encode};

#[cfg(any(feature = "npy", feature = "npz"))]
use crate::format::{Arranged, Effect, Loss};
use crate::format::{Capabilities, Fit};
use crate::model::{DType, Layout, element_count};
#[cfg(any(feature = "npy", feature = "npz"))]
use crate::model::{Manifest, TensorInfo};
use crate::prelude::*;

/// The beginning of every array.
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";
/// What it is called where it is missing.
#[cfg(any(feature = "npy", feature = "npz"))]
pub(crate) const MAGIC_FIELD: &str = "the magic";
/// Dimensions, at most, since NumPy 2; it had 32 before.
pub(crate) const MAX_RANK: usize = 64;

/// What both formats can hold.
pub(crate) const fn capabilities(
    max_tensors: u64,
    name: fn(&str) -> Result<(), &'static str>,
) -> Capabilities {
    Capabilities {
        max_tensors,
        min_rank: 0,
        max_rank: MAX_RANK,
        zero_sizes: true,
        name,
        dtype: |dtype| dtypes::descr(dtype).is_some(),
        layout: |layout| matches!(layout, Layout::RowMajor),
        tensor: |tensor| match data_len(tensor.dtype, &tensor.shape) {
            Some(_) => Ok(()),
            None => Err("its elements have 2^63 bytes or more".into()),
        },
        file_value: |_, _| Fit::No,
        tensor_value: |_, _| Fit::No,
        kept: false,
        zstd: false,
        checksums: &[],
    }
}

/// Bytes of an array, which NumPy counts in signed numbers, and before it looks for a dimension of 0.
pub(crate) fn data_len(dtype: DType, shape: &[u64]) -> Option<u64> {
    let nonzero: Vec<u64> = shape.iter().copied().filter(|&dim| dim != 0).collect();
    let most = dtype.bytes_for(element_count(&nonzero)?)?;
    (most <= i64::MAX as u64)
        .then(|| dtype.bytes_for(element_count(shape)?))
        .flatten()
}

/// What is said about tensors before they are written: those whose types NumPy has no name for, and `losses`.
#[cfg(any(feature = "npy", feature = "npz"))]
pub(crate) fn arrange(what: &Manifest, mut losses: Vec<Loss>) -> Option<Arranged> {
    losses.extend(what.tensors.iter().filter_map(remark));
    (!losses.is_empty()).then(|| Arranged {
        manifest: what.clone(),
        losses,
    })
}

#[cfg(any(feature = "npy", feature = "npz"))]
fn remark(tensor: &TensorInfo) -> Option<Loss> {
    let why = match tensor.dtype {
        DType::BF16 => {
            "written as <V2, which NumPy loads as bytes: .view(ml_dtypes.bfloat16) gives the numbers; --cast f32 avoids it"
        }
        DType::F8_E5M2 => {
            "written as <f1, as ml_dtypes does, which NumPy itself does not load; --cast f16 writes what it loads"
        }
        _ => return None,
    };
    Some(Loss {
        tensor: Some(tensor.name.clone()),
        what: format!("dtype {}", tensor.dtype),
        why: why.into(),
        effect: Effect::Rearranged,
    })
}
