//! Types: the classes of storages, and what tensors call them.

use crate::model::DType;

/// Classes of storages, without `Storage`, and the type of their elements.
pub(in crate::formats) const STORAGES: &[(&str, DType)] = &[
    ("Float", DType::F32),
    ("Double", DType::F64),
    ("Half", DType::F16),
    ("BFloat16", DType::BF16),
    ("Long", DType::I64),
    ("Int", DType::I32),
    ("Short", DType::I16),
    ("Char", DType::I8),
    ("Byte", DType::U8),
    ("Bool", DType::BOOL),
    ("ComplexFloat", DType::C64),
    ("ComplexDouble", DType::C128),
];

/// Types by their names in `torch`. Those that have no class of storages need bytes without a type.
pub(in crate::formats) const TYPES: &[(&str, DType)] = &[
    ("float32", DType::F32),
    ("float64", DType::F64),
    ("float16", DType::F16),
    ("bfloat16", DType::BF16),
    ("int8", DType::I8),
    ("int16", DType::I16),
    ("int32", DType::I32),
    ("int64", DType::I64),
    ("uint8", DType::U8),
    ("uint16", DType::U16),
    ("uint32", DType::U32),
    ("uint64", DType::U64),
    ("bool", DType::BOOL),
    ("complex64", DType::C64),
    ("complex128", DType::C128),
    ("float8_e4m3fn", DType::F8_E4M3),
    ("float8_e5m2", DType::F8_E5M2),
    ("float8_e4m3fnuz", DType::F8_E4M3FNUZ),
    ("float8_e5m2fnuz", DType::F8_E5M2FNUZ),
    ("float8_e8m0fnu", DType::F8_E8M0),
    // Two in each byte: the last dimension counts bytes.
    ("float4_e2m1fn_x2", DType::F4_E2M1),
];

/// The type of the elements of a class of storages, by its name without the module.
#[cfg(feature = "pytorch")]
pub(in crate::formats) fn of_storage(class: &str) -> Option<DType> {
    let name = class.strip_suffix("Storage")?;
    let mut known = STORAGES.iter();
    known.find(|(known, _)| *known == name).map(|row| row.1)
}

/// The type by its name in `torch`.
#[cfg(feature = "pytorch")]
pub(in crate::formats) fn of_name(name: &str) -> Option<DType> {
    let mut known = TYPES.iter();
    known.find(|(known, _)| *known == name).map(|row| row.1)
}
