//! Numbers for types: those of stored data, of classes, and of level 4.

use crate::model::{DType, Lanes, Scalar};

/// The numbers of a data type (`miINT8` and so on); `None` for what is none.
pub(super) fn stored(kind: u32) -> Option<Scalar> {
    Some(match kind {
        1 => Scalar::I8,
        2 => Scalar::U8,
        3 => Scalar::I16,
        4 => Scalar::U16,
        5 => Scalar::I32,
        6 => Scalar::U32,
        7 => Scalar::F32,
        9 => Scalar::F64,
        12 => Scalar::I64,
        13 => Scalar::U64,
        _ => return None,
    })
}

/// Data types that are no numbers.
pub(super) const MATRIX: u32 = 14;
pub(super) const COMPRESSED: u32 = 15;
pub(super) const UTF8: u32 = 16;
pub(super) const UTF16: u32 = 17;
pub(super) const UTF32: u32 = 18;

/// The class of a matrix (`mxCELL_CLASS` and so on).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Class {
    Cell,
    Struct,
    Object,
    Char,
    Sparse,
    Numbers(Scalar),
    Function,
    Opaque,
}

impl Class {
    pub(super) fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            1 => Class::Cell,
            2 => Class::Struct,
            3 => Class::Object,
            4 => Class::Char,
            5 => Class::Sparse,
            6 => Class::Numbers(Scalar::F64),
            7 => Class::Numbers(Scalar::F32),
            8 => Class::Numbers(Scalar::I8),
            9 => Class::Numbers(Scalar::U8),
            10 => Class::Numbers(Scalar::I16),
            11 => Class::Numbers(Scalar::U16),
            12 => Class::Numbers(Scalar::I32),
            13 => Class::Numbers(Scalar::U32),
            14 => Class::Numbers(Scalar::I64),
            15 => Class::Numbers(Scalar::U64),
            16 => Class::Function,
            17 => Class::Opaque,
            _ => return None,
        })
    }
}

/// The class and the data type that elements are written with.
pub(super) fn written(scalar: Scalar) -> Option<(u32, u32)> {
    Some(match scalar {
        Scalar::F64 => (6, 9),
        Scalar::F32 => (7, 7),
        Scalar::I8 => (8, 1),
        Scalar::U8 | Scalar::Bool => (9, 2),
        Scalar::I16 => (10, 3),
        Scalar::U16 => (11, 4),
        Scalar::I32 => (12, 5),
        Scalar::U32 => (13, 6),
        Scalar::I64 => (14, 12),
        Scalar::U64 => (15, 13),
        _ => return None,
    })
}

/// Whether there is a class for elements of a type.
pub(super) fn has_class(dtype: DType) -> bool {
    match dtype {
        DType::Number(scalar, Lanes::Real) => written(scalar).is_some(),
        DType::C64 | DType::C128 => true,
        _ => false,
    }
}
