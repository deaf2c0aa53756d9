//! A model in one line.

use core::cmp::Reverse;

use crate::model::{DType, TensorInfo};
use crate::prelude::*;

/// How many elements there are of each type, most first. Tensors of unknown size, text and records count as none.
///
/// ```
/// let mut b = tenfold::Archive::builder();
/// b.tensor("a", [1], [0.5f32])?;
/// b.tensor("b", [2, 2], [1i8, 2, 3, 4])?;
/// let archive = b.finish();
/// let types = tenfold::ops::elements_by_type(&archive.manifest().tensors);
/// assert_eq!(types, [(tenfold::model::DType::I8, 4), (tenfold::model::DType::F32, 1)]);
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn elements_by_type<'t>(
    tensors: impl IntoIterator<Item = &'t TensorInfo>,
) -> Vec<(DType, u64)> {
    let mut types: Vec<(DType, u64)> = Vec::new();
    for info in tensors.into_iter().filter(|info| info.is_numbers()) {
        let elements = info.elements().unwrap_or(0);
        match types.iter_mut().find(|(known, _)| *known == info.dtype) {
            Some((_, n)) => *n = n.saturating_add(elements),
            None => types.push((info.dtype, elements)),
        }
    }
    types.sort_by_key(|(_, n)| Reverse(*n));
    types
}
