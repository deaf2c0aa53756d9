//! The types of tensors by their numbers.

use crate::model::{BlockSpec, DType, element_count};
use crate::prelude::*;

/// The types that are numbers, with what the library calls them.
const NUMBERS: &[(u32, DType)] = &[
    (0, DType::F32),
    (1, DType::F16),
    (24, DType::I8),
    (25, DType::I16),
    (26, DType::I32),
    (27, DType::I64),
    (28, DType::F64),
    (30, DType::BF16),
];

/// The types that are blocks of quantized values.
#[cfg(feature = "gguf")]
const BLOCKS: &[(u32, &str)] = &[
    (2, "Q4_0"),
    (3, "Q4_1"),
    (6, "Q5_0"),
    (7, "Q5_1"),
    (8, "Q8_0"),
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (12, "Q4_K"),
    (13, "Q5_K"),
    (14, "Q6_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
    (40, "NVFP4"),
    (41, "Q1_0"),
    (42, "Q2_0"),
];

/// Types that ggml had once; how large their blocks were is not defined any more.
#[cfg(feature = "gguf")]
const REMOVED: &[(u32, &str)] = &[
    (4, "Q4_2"),
    (5, "Q4_3"),
    (31, "Q4_0_4_4"),
    (32, "Q4_0_4_8"),
    (33, "Q4_0_8_8"),
    (36, "IQ4_NL_4_4"),
    (37, "IQ4_NL_4_8"),
    (38, "IQ4_NL_8_8"),
];

/// Whether tensors can have this type.
pub(super) fn is_held(dtype: DType) -> bool {
    matches!(dtype, DType::Block(_)) || NUMBERS.iter().any(|(_, known)| *known == dtype)
}

/// The type with this number, or why there is none.
#[cfg(feature = "gguf")]
pub(super) fn from_id(id: u32) -> Result<DType, String> {
    if let Some((_, dtype)) = NUMBERS.iter().find(|(known, _)| *known == id) {
        return Ok(*dtype);
    }
    let block = BLOCKS.iter().find(|(known, _)| *known == id);
    if let Some(spec) = block.and_then(|(_, name)| BlockSpec::from_name(name)) {
        return Ok(DType::Block(spec));
    }
    Err(match REMOVED.iter().find(|(known, _)| *known == id) {
        Some((_, name)) => format!("type {id} ({name}) was removed from ggml"),
        None => format!("type {id} is not known, 0 to 42 are"),
    })
}

/// The number of a type.
#[cfg(feature = "gguf")]
pub(super) fn id(dtype: DType) -> Option<u32> {
    match dtype {
        DType::Block(spec) => BLOCKS
            .iter()
            .find(|(_, name)| *name == spec.name)
            .map(|(id, _)| *id),
        _ => NUMBERS
            .iter()
            .find(|(_, known)| *known == dtype)
            .map(|(id, _)| *id),
    }
}

/// Bytes of a tensor that ggml and the Python package can count: signed, and before they look for a dimension of 0.
pub(super) fn data_len(dtype: DType, shape: &[u64]) -> Option<u64> {
    let is_signed = |count: &u64| i64::try_from(*count).is_ok();
    let nonzero: Vec<u64> = shape.iter().copied().filter(|&dim| dim != 0).collect();
    let most = element_count(&nonzero).filter(is_signed)?;
    let width = dtype.width().and_then(|width| u64::try_from(width).ok());
    let most = most.checked_mul(width.unwrap_or(1)).filter(is_signed);
    most.and_then(|_| dtype.bytes_for(element_count(shape)?))
}

/// Why rows of this length cannot be cut into the blocks of a type.
pub(super) fn check_row(dtype: DType, shape: &[u64]) -> Result<(), String> {
    let DType::Block(BlockSpec { name, elements, .. }) = dtype else {
        return Ok(());
    };
    let row = shape.last().copied().unwrap_or(1);
    if row.is_multiple_of((*elements).into()) {
        Ok(())
    } else {
        Err(format!(
            "rows of {row} elements, {name} has blocks of {elements}"
        ))
    }
}

#[cfg(all(test, feature = "gguf"))]
mod tests {
    use super::*;

    #[test]
    fn every_block_type_has_a_number_and_every_number_leads_back() {
        for spec in BlockSpec::all() {
            let id = id(DType::Block(spec)).unwrap();
            assert_eq!(from_id(id), Ok(DType::Block(spec)));
        }
        for &(number, dtype) in NUMBERS {
            assert_eq!((from_id(number), id(dtype)), (Ok(dtype), Some(number)));
        }
    }
}
