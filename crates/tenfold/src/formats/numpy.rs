//! What `.npy` and `.npz` say alike of the arrays in them.

use crate::error::Hint;
use crate::format::{Arranged, Effect, Loss, Lost};
use crate::format::{Capabilities, Fit};
use crate::model::Layout;
use crate::model::{DType, Manifest, TensorInfo};
use crate::prelude::*;
use crate::wire::numpy;

/// What both formats can hold.
pub(super) const fn capabilities(
    max_tensors: u64,
    name: fn(&str) -> Result<(), &'static str>,
) -> Capabilities {
    Capabilities {
        max_tensors,
        min_rank: 0,
        max_rank: numpy::MAX_RANK,
        zero_sizes: true,
        name,
        dtype: |dtype| numpy::dtypes::descr(dtype).is_some(),
        layout: |layout| matches!(layout, Layout::RowMajor),
        tensor: |tensor| match numpy::data_len(tensor.dtype, &tensor.shape) {
            Some(_) => Ok(()),
            None => Err("its elements have 2^63 bytes or more".into()),
        },
        file_value: |_, _| Fit::No,
        tensor_value: |_, _| Fit::No,
        kept: false,
        big_endian: false,
        zstd: false,
        checksums: &[],
    }
}

/// What is said about tensors before they are written: those whose types NumPy has no name for, and `losses`.
pub(super) fn arrange(what: &Manifest, mut losses: Vec<Loss>) -> Option<Arranged> {
    losses.extend(what.tensors.iter().filter_map(remark));
    (!losses.is_empty()).then(|| Arranged {
        manifest: what.clone(),
        losses,
    })
}

fn remark(tensor: &TensorInfo) -> Option<Loss> {
    let (why, loaded) = match tensor.dtype {
        DType::BF16 => (
            "written as <V2, which NumPy loads as bytes: .view(ml_dtypes.bfloat16) gives the numbers",
            DType::F32,
        ),
        DType::F8_E5M2 => (
            "written as <f1, as ml_dtypes does, which NumPy itself does not load",
            DType::F16,
        ),
        _ => return None,
    };
    let (name, what) = (Some(tensor.name.clone()), Lost::DType(tensor.dtype));
    let loss = Loss::new(name, what, why, Effect::Rearranged);
    Some(loss.hinting(Hint::Cast(Some(loaded))))
}
