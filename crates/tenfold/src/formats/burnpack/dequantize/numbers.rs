//! What the bits of codes and scales mean.

use half::{bf16, f16};

use super::super::{Scale, ValueType};
use super::short;
use crate::error::Result;
use crate::model::Scalar;
use crate::prelude::*;

impl Scale {
    /// The number that little-endian bytes mean.
    pub(super) fn number(self, bytes: &[u8]) -> Result<f32> {
        let number = match self {
            Scale::F32 => bytes.first_chunk().map(|bytes| f32::from_le_bytes(*bytes)),
            Scale::F16 => bytes
                .first_chunk()
                .map(|bytes| f16::from_le_bytes(*bytes).into()),
            Scale::BF16 => bytes
                .first_chunk()
                .map(|bytes| bf16::from_le_bytes(*bytes).into()),
            Scale::UE8M0 => bytes.first().map(|&byte| small(Scalar::F8E8M0, byte)),
            Scale::UE4M3 => bytes.first().map(|&byte| small(Scalar::F8E4M3, byte)),
        };
        number.ok_or_else(short)
    }
}

/// The number for each code of so many bits.
pub(super) fn table(value: ValueType, bits: u32) -> Vec<f32> {
    let number = |code: u8| match value {
        ValueType::E2M1 => small(Scalar::F4E2M1, code),
        ValueType::E4M3 => small(Scalar::F8E4M3, code),
        ValueType::E5M2 => small(Scalar::F8E5M2, code),
        _ => {
            // Two's complement in as many bits.
            let unused = 8 - bits;
            f32::from((code << unused).cast_signed() >> unused)
        }
    };
    (0..=u8::MAX >> (8 - bits)).map(number).collect()
}

/// The value of a code of at most 8 bits. f32 has all of them.
#[allow(clippy::cast_possible_truncation)]
fn small(scalar: Scalar, code: u8) -> f32 {
    scalar.to_f64(code.into()) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_floating_point_numbers_are_what_their_bits_say() {
        let e4m3 = table(ValueType::E4M3, 8);
        assert_eq!(
            [0x38, 0x7e, 0xc0, 0x01, 0x08].map(|code| e4m3[code]),
            [1.0, 448.0, -2.0, 1.0 / 512.0, 1.0 / 64.0]
        );
        assert!(e4m3[0x7f].is_nan());
        let e8m0 = |code: u8| Scale::UE8M0.number(&[code]).unwrap();
        assert_eq!([127, 128, 1].map(e8m0), [1.0, 2.0, f32::MIN_POSITIVE]);
        assert_eq!(e8m0(0), f32::MIN_POSITIVE / 2.0);
        let e2m1 = table(ValueType::E2M1, 4);
        assert_eq!([0, 1, 7, 15].map(|code| e2m1[code]), [0.0, 0.5, 6.0, -6.0]);
        assert_eq!(table(ValueType::Q2S, 2), [0.0, 1.0, -2.0, -1.0]);
        assert_eq!(table(ValueType::Q4F, 8)[255], -1.0);
        assert_eq!(table(ValueType::E5M2, 8)[0x3c], 1.0);
    }
}
