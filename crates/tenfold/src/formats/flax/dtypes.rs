//! The types of arrays, by NumPy's names.

use crate::model::{DType, Lanes, Scalar};

const fn real(scalar: Scalar) -> DType {
    DType::Number(scalar, Lanes::Real)
}

/// The name, the type, and what an element is stored as: a byte where it has fewer bits.
const TYPES: &[(&str, DType, DType)] = &[
    ("float32", DType::F32, DType::F32),
    ("float64", DType::F64, DType::F64),
    ("float16", DType::F16, DType::F16),
    ("bfloat16", DType::BF16, DType::BF16),
    ("int8", DType::I8, DType::I8),
    ("int16", DType::I16, DType::I16),
    ("int32", DType::I32, DType::I32),
    ("int64", DType::I64, DType::I64),
    ("uint8", DType::U8, DType::U8),
    ("uint16", DType::U16, DType::U16),
    ("uint32", DType::U32, DType::U32),
    ("uint64", DType::U64, DType::U64),
    ("bool", DType::BOOL, DType::BOOL),
    ("complex64", DType::C64, DType::C64),
    ("complex128", DType::C128, DType::C128),
    ("float8_e4m3fn", DType::F8_E4M3, DType::F8_E4M3),
    ("float8_e5m2", DType::F8_E5M2, DType::F8_E5M2),
    ("float8_e4m3fnuz", DType::F8_E4M3FNUZ, DType::F8_E4M3FNUZ),
    ("float8_e5m2fnuz", DType::F8_E5M2FNUZ, DType::F8_E5M2FNUZ),
    ("float8_e8m0fnu", DType::F8_E8M0, DType::F8_E8M0),
    ("int4", real(Scalar::I4), DType::I8),
    ("uint4", real(Scalar::U4), DType::U8),
    ("int2", real(Scalar::I2), DType::I8),
    ("uint2", real(Scalar::U2), DType::U8),
    ("float4_e2m1fn", DType::F4_E2M1, DType::U8),
];

/// The type with a name, and what its elements are stored as.
pub(super) fn known(name: &str) -> Option<(DType, DType)> {
    let row = TYPES.iter().find(|(known, ..)| *known == name);
    row.map(|&(_, dtype, stored)| (dtype, stored))
}

/// The name of a type, and what its elements are written as. Numbers below a byte are integers there: floating-point ones
/// would need their bits, not their values.
pub(super) fn written(dtype: DType) -> Option<(&'static str, DType)> {
    let rows = TYPES
        .iter()
        .filter(|(_, known, _)| *known != DType::F4_E2M1);
    let mut rows = rows.filter(|(_, known, _)| *known == dtype);
    rows.next().map(|&(name, _, stored)| (name, stored))
}
