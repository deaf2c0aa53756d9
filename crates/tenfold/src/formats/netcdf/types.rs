//! The types of elements and of attributes.

use crate::model::{DType, ValueKind};

/// The number of `NC_CHAR`, which is text.
pub(super) const CHAR: u32 = 2;
/// The last type that CDF-1 and CDF-2 have.
pub(super) const LAST_OLD: u32 = 6;

/// `nc_type`, the type of elements, and that of an attribute's values.
pub(super) const TYPES: &[(u32, DType, ValueKind)] = &[
    (1, DType::I8, ValueKind::I8),
    (3, DType::I16, ValueKind::I16),
    (4, DType::I32, ValueKind::I32),
    (5, DType::F32, ValueKind::F32),
    (6, DType::F64, ValueKind::F64),
    (7, DType::U8, ValueKind::U8),
    (8, DType::U16, ValueKind::U16),
    (9, DType::U32, ValueKind::U32),
    (10, DType::I64, ValueKind::I64),
    (11, DType::U64, ValueKind::U64),
];

/// The number of a type of elements: true and false are bytes.
pub(super) fn of_dtype(dtype: DType) -> Option<u32> {
    let stored = if dtype == DType::BOOL {
        DType::I8
    } else {
        dtype
    };
    let row = TYPES.iter().find(|(_, known, _)| *known == stored);
    row.map(|row| row.0)
}

/// The number of the type of an attribute's values.
pub(super) fn of_kind(kind: ValueKind) -> Option<u32> {
    match kind {
        ValueKind::Str => Some(CHAR),
        kind => {
            let row = TYPES.iter().find(|(.., known)| *known == kind);
            row.map(|row| row.0)
        }
    }
}

/// What a number stands for, unless it is text.
#[cfg(feature = "netcdf")]
pub(super) fn known(nc_type: u32) -> Option<(DType, ValueKind)> {
    let row = TYPES.iter().find(|(number, ..)| *number == nc_type);
    row.map(|&(_, dtype, kind)| (dtype, kind))
}
