//! Types by their numbers.

use crate::model::{DType, Lanes, Scalar};

const fn real(scalar: Scalar) -> DType {
    DType::Number(scalar, Lanes::Real)
}

const TYPES: &[(u64, DType)] = &[
    (1, DType::F32),
    (2, DType::F64),
    (3, DType::I32),
    (4, DType::U8),
    (5, DType::I16),
    (6, DType::I8),
    (8, DType::C64),
    (9, DType::I64),
    (10, DType::BOOL),
    (14, DType::BF16),
    (17, DType::U16),
    (18, DType::C128),
    (19, DType::F16),
    (22, DType::U32),
    (23, DType::U64),
    (24, DType::F8_E5M2),
    (25, DType::F8_E4M3),
    (26, DType::F8_E4M3FNUZ),
    (28, DType::F8_E5M2FNUZ),
    (29, real(Scalar::I4)),
    (30, real(Scalar::U4)),
];

/// Tensors of text.
pub(super) const STRING: u64 = 7;

/// Types that are no plain numbers, or that no other format has.
#[cfg(feature = "tf_checkpoint")]
const OTHERS: &[(u64, &str)] = &[
    (11, "qint8"),
    (12, "quint8"),
    (13, "qint32"),
    (15, "qint16"),
    (16, "quint16"),
    (20, "resource"),
    (21, "variant"),
    (27, "float8_e4m3b11fnuz"),
    (31, "int2"),
    (32, "uint2"),
];

/// The type with a number.
#[cfg(feature = "tf_checkpoint")]
pub(super) fn known(number: u64) -> Option<DType> {
    let row = TYPES.iter().find(|(known, _)| *known == number);
    row.map(|&(_, dtype)| dtype)
}

/// What a type is called that is not read.
#[cfg(feature = "tf_checkpoint")]
pub(super) fn other(number: u64) -> Option<&'static str> {
    let row = OTHERS.iter().find(|(known, _)| *known == number);
    row.map(|&(_, name)| name)
}

/// The number of a type.
pub(super) fn number(dtype: DType) -> Option<u64> {
    let row = TYPES.iter().find(|(_, known)| *known == dtype);
    row.map(|&(number, _)| number)
}

/// What elements of a type are stored as: those of 4 bits have a byte each.
pub(super) fn stored(dtype: DType) -> DType {
    if is_narrow(dtype) { DType::U8 } else { dtype }
}

/// Whether elements have less than a byte.
pub(super) fn is_narrow(dtype: DType) -> bool {
    dtype.width().is_none()
}
