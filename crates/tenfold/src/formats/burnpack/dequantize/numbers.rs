//! What the bits of codes and scales mean.

use half::{bf16, f16};

use super::super::{Scale, ValueType};
use super::short;
use crate::error::Result;
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
            Scale::UE8M0 => bytes.first().map(|&byte| e8m0(byte)),
            Scale::UE4M3 => bytes.first().map(|&byte| e4m3(byte)),
        };
        number.ok_or_else(short)
    }
}

/// The number for each code of so many bits.
pub(super) fn table(value: ValueType, bits: u32) -> Vec<f32> {
    let number = |code: u8| match value {
        ValueType::E2M1 => e2m1(code),
        ValueType::E4M3 => e4m3(code),
        ValueType::E5M2 => f16::from_le_bytes([0, code]).into(),
        _ => {
            // Two's complement in as many bits.
            let unused = 8 - bits;
            f32::from((code << unused).cast_signed() >> unused)
        }
    };
    (0..=u8::MAX >> (8 - bits)).map(number).collect()
}

/// A floating-point number of 4 bits: sign, 2 bits of exponent, 1 of fraction.
fn e2m1(code: u8) -> f32 {
    const NUMBERS: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let number = NUMBERS.get(usize::from(code & 7)).copied().unwrap_or(0.0);
    if code & 8 == 0 { number } else { -number }
}

/// A floating-point number of 8 bits: sign, 4 bits of exponent, 3 of fraction; no infinities.
fn e4m3(code: u8) -> f32 {
    let exponent = u32::from(code >> 3 & 15);
    let fraction = u32::from(code & 7);
    let number = match (exponent, fraction) {
        (15, 7) => f32::NAN,
        (0, _) => f32::from(code & 7) / 512.0,
        _ => f32::from_bits((exponent + 120) << 23 | fraction << 20),
    };
    if code & 128 == 0 { number } else { -number }
}

/// A power of two from 2^-127 on.
fn e8m0(code: u8) -> f32 {
    match code {
        0 => f32::from_bits(1 << 22),
        255 => f32::NAN,
        code => f32::from_bits(u32::from(code) << 23),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_floating_point_numbers_are_what_their_bits_say() {
        assert_eq!(
            [0x38, 0x7e, 0xc0, 0x01, 0x08].map(e4m3),
            [1.0, 448.0, -2.0, 1.0 / 512.0, 1.0 / 64.0]
        );
        assert!(e4m3(0x7f).is_nan());
        assert_eq!([127, 128, 1].map(e8m0), [1.0, 2.0, f32::MIN_POSITIVE]);
        assert_eq!(e8m0(0), f32::MIN_POSITIVE / 2.0);
        assert_eq!([0, 1, 7, 15].map(e2m1), [0.0, 0.5, 6.0, -6.0]);
        assert_eq!(table(ValueType::Q2S, 2), [0.0, 1.0, -2.0, -1.0]);
        assert_eq!(table(ValueType::Q4F, 8)[255], -1.0);
        assert_eq!(table(ValueType::E5M2, 8)[0x3c], 1.0);
    }
}
