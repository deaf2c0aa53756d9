//! The numbers that stand for element types. They shift between the versions: every version has its own table.

use crate::model::DType;

/// `spec-1` and `archive-1`, by number.
pub(super) const V1: &[DType] = &[DType::F32, DType::F16, DType::BOOL, DType::I32];

/// `snapshot-0.1.0`, by number.
pub(super) const SNAPSHOT_010: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::BOOL,
    DType::U8,
    DType::I8,
    DType::U16,
    DType::I16,
    DType::U32,
    DType::I32,
    DType::U64,
    DType::I64,
];

/// `snapshot-0.2.0` and `snapshot-0.3.0`, by number.
pub(super) const SNAPSHOT_020: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F8_E4M3,
    DType::BOOL,
    DType::U8,
    DType::I8,
    DType::U16,
    DType::I16,
    DType::U32,
    DType::I32,
    DType::U64,
    DType::I64,
];

/// What the manifest of `snapshot-0.3.0` calls them, by number.
#[cfg(feature = "mag")]
pub(super) const MANIFEST_NAMES: &[&str] = &[
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "boolean",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
];
