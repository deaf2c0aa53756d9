//! What zTensor calls element types, in its generations.

use crate::model::DType;

/// Storage types: in the model, in 0.1 and 1.0, from 1.1 on. In 2 there is no `bool` among them.
const STORAGE: &[(DType, &str, &str)] = &[
    (DType::F64, "float64", "f64"),
    (DType::F32, "float32", "f32"),
    (DType::F16, "float16", "f16"),
    (DType::BF16, "bfloat16", "bf16"),
    (DType::I64, "int64", "i64"),
    (DType::I32, "int32", "i32"),
    (DType::I16, "int16", "i16"),
    (DType::I8, "int8", "i8"),
    (DType::U64, "uint64", "u64"),
    (DType::U32, "uint32", "u32"),
    (DType::U16, "uint16", "u16"),
    (DType::U8, "uint8", "u8"),
    (DType::BOOL, "bool", "bool"),
];

/// Logical types: name, what they are stored as, in the model, and whether 1.2 has them; 2 has them all.
const LOGICAL: &[(&str, DType, DType, bool)] = &[
    ("bool", DType::U8, DType::BOOL, false),
    ("f8_e4m3fn", DType::U8, DType::F8_E4M3, true),
    ("f8_e5m2", DType::U8, DType::F8_E5M2, true),
    ("f8_e4m3fnuz", DType::U8, DType::F8_E4M3FNUZ, true),
    ("f8_e5m2fnuz", DType::U8, DType::F8_E5M2FNUZ, true),
    ("f8_e8m0", DType::U8, DType::F8_E8M0, false),
    ("f4_e2m1", DType::U8, DType::F4_E2M1, false),
    ("complex64", DType::F32, DType::C64, true),
    ("complex128", DType::F64, DType::C128, true),
];

/// How an element type is spelled: the storage type, and the logical type over it.
pub(super) type Spelling = (&'static str, Option<&'static str>);

/// The name in 0.1 (and 1.0).
pub(super) fn in_01(dtype: DType) -> Option<&'static str> {
    STORAGE.iter().find(|row| row.0 == dtype).map(|row| row.1)
}

/// The names in 1.2.
pub(super) fn in_12(dtype: DType) -> Option<Spelling> {
    storage(dtype).or_else(|| logical(dtype, |row| row.3))
}

/// The names in 2.
pub(super) fn in_2(dtype: DType) -> Option<Spelling> {
    logical(dtype, |_| true).or_else(|| storage(dtype))
}

fn storage(dtype: DType) -> Option<Spelling> {
    let row = STORAGE.iter().find(|row| row.0 == dtype)?;
    Some((row.2, None))
}

fn logical(dtype: DType, known: impl Fn(&(&str, DType, DType, bool)) -> bool) -> Option<Spelling> {
    let row = LOGICAL.iter().find(|row| row.2 == dtype && known(row))?;
    Some((storage(row.1)?.0, Some(row.0)))
}

/// The type that 0.1 and 1.0 call so.
#[cfg(feature = "ztensor")]
pub(super) fn from_01(name: &str) -> Option<DType> {
    STORAGE.iter().find(|row| row.1 == name).map(|row| row.0)
}

/// The storage type that 1.1 and 1.2 call so.
#[cfg(feature = "ztensor")]
pub(super) fn from_storage(name: &str) -> Option<DType> {
    STORAGE.iter().find(|row| row.2 == name).map(|row| row.0)
}

/// The storage type and the type that a logical name stands for in 1.2, or in 2.
#[cfg(feature = "ztensor")]
pub(super) fn from_logical(name: &str, generation_2: bool) -> Option<(DType, DType)> {
    let mut rows = LOGICAL.iter().filter(|row| generation_2 || row.3);
    rows.find(|row| row.0 == name).map(|row| (row.1, row.2))
}
