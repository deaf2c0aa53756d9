//! The types of elements, and the fields that hold them one by one.

use crate::model::{DType, Lanes, Scalar};

/// The number of `STRING`, the one type that is not numeric.
#[cfg(feature = "onnx")]
pub(super) const STRING: i32 = 8;

/// A field of typed data, by its number in `TensorProto`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Field {
    Float = 4,
    Int32 = 5,
    Text = 6,
    Int64 = 7,
    Double = 10,
    Uint64 = 11,
}

impl Field {
    pub(super) const ALL: [Self; 6] = [
        Self::Float,
        Self::Int32,
        Self::Text,
        Self::Int64,
        Self::Double,
        Self::Uint64,
    ];

    /// The name in `onnx.proto`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Float => "float_data",
            Self::Int32 => "int32_data",
            Self::Text => "string_data",
            Self::Int64 => "int64_data",
            Self::Double => "double_data",
            Self::Uint64 => "uint64_data",
        }
    }

    /// Its number in `TensorProto`.
    pub(super) fn number(self) -> u32 {
        self as u32
    }

    /// Bytes of an entry, where all have as many.
    pub(super) fn width(self) -> Option<u64> {
        match self {
            Self::Float => Some(4),
            Self::Double => Some(8),
            _ => None,
        }
    }
}

const fn real(scalar: Scalar) -> DType {
    DType::Number(scalar, Lanes::Real)
}

/// `data_type`, the type, and the field that holds elements of it.
const TYPES: &[(i32, DType, Field)] = &[
    (1, DType::F32, Field::Float),
    (2, DType::U8, Field::Int32),
    (3, DType::I8, Field::Int32),
    (4, DType::U16, Field::Int32),
    (5, DType::I16, Field::Int32),
    (6, DType::I32, Field::Int32),
    (7, DType::I64, Field::Int64),
    (9, DType::BOOL, Field::Int32),
    (10, DType::F16, Field::Int32),
    (11, DType::F64, Field::Double),
    (12, DType::U32, Field::Uint64),
    (13, DType::U64, Field::Uint64),
    (14, DType::C64, Field::Float),
    (15, DType::C128, Field::Double),
    (16, DType::BF16, Field::Int32),
    (17, DType::F8_E4M3, Field::Int32),
    (18, DType::F8_E4M3FNUZ, Field::Int32),
    (19, DType::F8_E5M2, Field::Int32),
    (20, DType::F8_E5M2FNUZ, Field::Int32),
    (21, real(Scalar::U4), Field::Int32),
    (22, real(Scalar::I4), Field::Int32),
    (23, DType::F4_E2M1, Field::Int32),
    (24, DType::F8_E8M0, Field::Int32),
    (25, real(Scalar::U2), Field::Int32),
    (26, real(Scalar::I2), Field::Int32),
    (27, real(Scalar::F6E2M3), Field::Int32),
    (28, real(Scalar::F6E3M2), Field::Int32),
];

/// The type that a number stands for, and the field for it.
#[cfg(feature = "onnx")]
pub(super) fn known(data_type: i32) -> Option<(DType, Field)> {
    let found = TYPES.iter().find(|(number, ..)| *number == data_type);
    found.map(|&(_, dtype, field)| (dtype, field))
}

/// The number of a type.
pub(super) fn number(dtype: DType) -> Option<i32> {
    let found = TYPES.iter().find(|(_, known, _)| *known == dtype);
    found.map(|&(number, ..)| number)
}

/// Whether only models since `ir_version` 14 have the type: those of 2 and 6 bits.
pub(super) fn is_new(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::Number(
            Scalar::U2 | Scalar::I2 | Scalar::F6E2M3 | Scalar::F6E3M2,
            Lanes::Real
        )
    )
}

/// Entries of a typed field that so many elements take: complex numbers have two, small ones share a byte.
#[cfg(feature = "onnx")]
pub(super) fn entries(dtype: DType, elements: u64) -> Option<u64> {
    match dtype {
        DType::Number(_, Lanes::Complex) => elements.checked_mul(2),
        DType::Number(scalar, _) => match scalar.bits() {
            4 => Some(elements.div_ceil(2)),
            2 => Some(elements.div_ceil(4)),
            _ => Some(elements),
        },
        _ => None,
    }
}
