//! The types and their sizes.

use crate::model::{DType, Lanes, Scalar};

const fn real(scalar: Scalar) -> DType {
    DType::Number(scalar, Lanes::Real)
}

/// Every type by its name, in the order that decides which is written last to first.
const DTYPES: &[(&str, DType)] = &[
    ("BOOL", DType::BOOL),
    ("F4", DType::F4_E2M1),
    ("F6_E2M3", real(Scalar::F6E2M3)),
    ("F6_E3M2", real(Scalar::F6E3M2)),
    ("U8", DType::U8),
    ("I8", DType::I8),
    ("F8_E5M2", DType::F8_E5M2),
    ("F8_E4M3", DType::F8_E4M3),
    ("F8_E8M0", DType::F8_E8M0),
    ("F8_E4M3FNUZ", DType::F8_E4M3FNUZ),
    ("F8_E5M2FNUZ", DType::F8_E5M2FNUZ),
    ("I16", DType::I16),
    ("U16", DType::U16),
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("I32", DType::I32),
    ("U32", DType::U32),
    ("F32", DType::F32),
    ("C64", DType::C64),
    ("F64", DType::F64),
    ("I64", DType::I64),
    ("U64", DType::U64),
];

/// What the header calls a type.
pub(super) fn name(dtype: DType) -> Option<&'static str> {
    let row = DTYPES.iter().find(|(_, known)| *known == dtype)?;
    Some(row.0)
}

/// The type that the header calls so; names are case-sensitive.
#[cfg(feature = "safetensors")]
pub(super) fn from_name(name: &str) -> Option<DType> {
    let row = DTYPES.iter().find(|(known, _)| *known == name)?;
    Some(row.1)
}

/// The place of a type in the order of the reference: wide types are written first, so that all stay aligned.
#[cfg(feature = "safetensors")]
pub(super) fn rank(dtype: DType) -> usize {
    DTYPES
        .iter()
        .position(|(_, known)| *known == dtype)
        .unwrap_or(0)
}

/// Why a tensor has no number of bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NoSize {
    /// This many bits are not whole bytes.
    Bits(u64),
    /// More elements or bits than 64 bits can count.
    Overflow,
}

/// The elements of a tensor, counted as the reference does it: dimension by dimension, so that a 0 hides no overflow
/// before it, but one after it.
pub(super) fn elements(shape: &[u64]) -> Result<u64, NoSize> {
    shape
        .iter()
        .try_fold(1u64, |product, &dim| product.checked_mul(dim))
        .ok_or(NoSize::Overflow)
}

/// The bytes of a tensor.
pub(super) fn bytes(dtype: DType, shape: &[u64]) -> Result<u64, NoSize> {
    let elements = elements(shape)?;
    let bits = match dtype {
        DType::Number(scalar, lanes) => u64::from(scalar.bits() * lanes.count()),
        _ => 8,
    };
    let bits = elements.checked_mul(bits).ok_or(NoSize::Overflow)?;
    match bits % 8 {
        0 => Ok(bits / 8),
        _ => Err(NoSize::Bits(bits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_from_left_to_right() {
        assert_eq!(bytes(DType::U8, &[]), Ok(1));
        assert_eq!(bytes(DType::U8, &[0, 1 << 63, 4]), Ok(0));
        assert_eq!(bytes(DType::U8, &[1 << 63, 4, 0]), Err(NoSize::Overflow));
        assert_eq!(bytes(DType::U64, &[1 << 58]), Err(NoSize::Overflow));
        assert_eq!(bytes(DType::F4_E2M1, &[3]), Err(NoSize::Bits(12)));
        assert_eq!(bytes(real(Scalar::F6E2M3), &[4, 5]), Ok(15));
        assert_eq!(bytes(DType::C64, &[2]), Ok(16));
    }

    #[test]
    fn the_names_are_the_reference_s() {
        for (index, (text, dtype)) in DTYPES.iter().enumerate() {
            assert_eq!(name(*dtype), Some(*text));
            assert!(!DTYPES[..index].iter().any(|(known, _)| known == text));
        }
        assert_eq!(DTYPES.len(), 22);
    }
}
