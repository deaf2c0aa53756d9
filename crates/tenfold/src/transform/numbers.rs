//! Little-endian elements as numbers to compute with.

use crate::model::Scalar;
use crate::prelude::*;

/// Numbers that are worked on together: small enough for the first cache, always the same, so that sums are too.
pub(crate) const BLOCK: usize = 4096;

/// Turns stored numbers of one type into floating-point numbers.
pub(crate) struct Numbers {
    scalar: Scalar,
    /// The value of every code of a type of at most 8 bits.
    table: Vec<f32>,
}

/// Some numbers in the narrowest type that holds all values of theirs.
pub(crate) enum Block<'b> {
    /// Exact.
    Narrow(&'b [f32]),
    /// Exact up to 32-bit integers and f64; longer integers and f128 are rounded.
    Wide(&'b [f64]),
}

/// Where numbers are put.
#[derive(Default)]
pub(crate) struct Buffers {
    codes: Vec<u8>,
    narrow: Vec<f32>,
    wide: Vec<f64>,
}

impl Numbers {
    pub(crate) fn new(scalar: Scalar) -> Self {
        let codes = match scalar.bits() {
            bits @ ..=8 => 1u32 << bits,
            _ => 0,
        };
        // f32 has all of them.
        #[allow(clippy::cast_possible_truncation)]
        let value = |code: u32| scalar.to_f64(code.into()) as f32;
        let table = (0..codes).map(value).collect();
        Self { scalar, table }
    }

    pub(crate) fn scalar(&self) -> Scalar {
        self.scalar
    }

    /// Bytes of a number of numbers; less than a byte is filled up.
    pub(crate) fn len_of(&self, numbers: u64) -> u64 {
        let bits = u64::from(self.scalar.bits());
        numbers / 8 * bits + (numbers % 8 * bits).div_ceil(8)
    }

    /// The first `count` numbers of `bytes`.
    pub(crate) fn decode<'b>(
        &self,
        bytes: &[u8],
        count: usize,
        buffers: &'b mut Buffers,
    ) -> Block<'b> {
        let Buffers {
            codes,
            narrow,
            wide,
        } = buffers;
        match self.scalar {
            Scalar::F32 => fill(narrow, bytes, f32::from_le_bytes),
            Scalar::F16 => fill(narrow, bytes, |b| half_to_single(u16::from_le_bytes(b))),
            Scalar::BF16 => fill(narrow, bytes, |b| {
                f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16)
            }),
            Scalar::U16 => fill(narrow, bytes, |b| f32::from(u16::from_le_bytes(b))),
            Scalar::I16 => fill(narrow, bytes, |b| f32::from(i16::from_le_bytes(b))),
            Scalar::F64 => fill(wide, bytes, f64::from_le_bytes),
            Scalar::U32 => fill(wide, bytes, |b| f64::from(u32::from_le_bytes(b))),
            Scalar::I32 => fill(wide, bytes, |b| f64::from(i32::from_le_bytes(b))),
            Scalar::U64 => fill(wide, bytes, |b| u64::from_le_bytes(b) as f64),
            Scalar::I64 => fill(wide, bytes, |b| i64::from_le_bytes(b) as f64),
            Scalar::U128 => fill(wide, bytes, |b| u128::from_le_bytes(b) as f64),
            Scalar::I128 => fill(wide, bytes, |b| i128::from_le_bytes(b) as f64),
            Scalar::F128 => fill(wide, bytes, |b| Scalar::F128.to_f64(u128::from_le_bytes(b))),
            _ => {
                self.codes(bytes, count, codes);
                narrow.clear();
                let value = |code: &u8| self.table[usize::from(*code) % self.table.len()];
                narrow.extend(codes.iter().map(value));
            }
        }
        if self.is_wide() {
            Block::Wide(&wide[..count.min(wide.len())])
        } else {
            Block::Narrow(&narrow[..count.min(narrow.len())])
        }
    }

    /// The same as f64.
    pub(crate) fn doubles(
        &self,
        bytes: &[u8],
        count: usize,
        buffers: &mut Buffers,
        out: &mut Vec<f64>,
    ) {
        out.clear();
        match self.decode(bytes, count, buffers) {
            Block::Narrow(values) => out.extend(values.iter().map(|&value| f64::from(value))),
            Block::Wide(values) => out.extend_from_slice(values),
        }
    }

    /// Says of each of the first `count` numbers whether its bits differ.
    pub(crate) fn differing(&self, a: &[u8], b: &[u8], count: usize, out: &mut Vec<bool>) {
        out.clear();
        match self.scalar.bits() {
            16 => differing::<2>(a, b, out),
            32 => differing::<4>(a, b, out),
            64 => differing::<8>(a, b, out),
            128 => differing::<16>(a, b, out),
            _ => {
                let (mut left, mut right) = (Vec::new(), Vec::new());
                self.codes(a, count, &mut left);
                self.codes(b, count, &mut right);
                out.extend(left.iter().zip(&right).map(|(a, b)| a != b));
            }
        }
        out.truncate(count);
    }

    fn is_wide(&self) -> bool {
        self.table.is_empty()
            && !matches!(
                self.scalar,
                Scalar::F32 | Scalar::F16 | Scalar::BF16 | Scalar::U16 | Scalar::I16
            )
    }

    /// Numbers of at most 8 bits in a byte each.
    fn codes(&self, bytes: &[u8], count: usize, out: &mut Vec<u8>) {
        out.clear();
        let bits = self.scalar.bits() as usize;
        if bits == 8 {
            out.extend_from_slice(&bytes[..count.min(bytes.len())]);
            return;
        }
        let mask = (1u16 << bits) - 1;
        for number in 0..count {
            let at = number * bits;
            let low = bytes.get(at / 8).copied().unwrap_or(0);
            let high = bytes.get(at / 8 + 1).copied().unwrap_or(0);
            let pair = u16::from_le_bytes([low, high]) >> (at % 8);
            out.push((pair & mask).to_le_bytes()[0]);
        }
    }
}

fn differing<const N: usize>(a: &[u8], b: &[u8], out: &mut Vec<bool>) {
    let (a, b) = (a.as_chunks::<N>().0, b.as_chunks::<N>().0);
    out.extend(a.iter().zip(b).map(|(a, b)| a != b));
}

fn fill<const N: usize, T>(out: &mut Vec<T>, bytes: &[u8], number: impl Fn([u8; N]) -> T) {
    out.clear();
    out.extend(bytes.as_chunks::<N>().0.iter().map(|&bytes| number(bytes)));
}

/// What f16 is as f32, without a branch, so that the compiler can do several at once.
fn half_to_single(bits: u16) -> f32 {
    /// 2^112: the difference of the two biases of exponents.
    const SCALE: f32 = f32::from_bits((112 + 127) << 23);
    let magnitude = u32::from(bits & 0x7fff) << 13;
    let scaled = (f32::from_bits(magnitude) * SCALE).to_bits();
    let special = if bits & 0x7c00 == 0x7c00 {
        0x7f80_0000
    } else {
        0
    };
    f32::from_bits(scaled | special | u32::from(bits & 0x8000) << 16)
}

/// 2 to a power that a normal f64 has.
pub(crate) fn power(exponent: i32) -> f64 {
    f64::from_bits(u64::try_from(exponent + 1023).unwrap_or(0) << 52)
}

#[cfg(feature = "std")]
pub(crate) fn square_root(value: f64) -> f64 {
    value.sqrt()
}

/// By Newton's method: without `std` there is no other.
#[cfg(not(feature = "std"))]
pub(crate) fn square_root(value: f64) -> f64 {
    if !(value > 0.0 && value.is_finite()) {
        return value;
    }
    // Half of the exponent is a good beginning.
    let mut root = f64::from_bits((value.to_bits() >> 1) + (1023u64 << 51));
    for _ in 0..6 {
        root = 0.5 * (root + value / root);
    }
    root
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    fn decoded(scalar: Scalar, bytes: &[u8], count: usize) -> Vec<f64> {
        let mut out = Vec::new();
        Numbers::new(scalar).doubles(bytes, count, &mut Buffers::default(), &mut out);
        out
    }

    #[test]
    fn every_half_is_what_the_crate_says() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (half_to_single(bits), f16::from_bits(bits).to_f32());
            assert!(
                ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(),
                "{bits:#x}: {ours} {theirs}"
            );
        }
        assert_eq!(
            decoded(Scalar::BF16, &bf16::from_f32(1.5).to_le_bytes(), 1),
            [1.5]
        );
    }

    #[test]
    fn small_floats_have_the_values_of_their_definitions() {
        let values = |scalar, codes: &[u8]| decoded(scalar, codes, codes.len());
        assert_eq!(
            values(Scalar::F8E4M3, &[0x00, 0x01, 0x08, 0x38, 0x7e, 0xfe]),
            [0.0, 0.001_953_125, 0.015_625, 1.0, 448.0, -448.0]
        );
        assert_eq!(
            values(Scalar::F8E5M2, &[0x3c, 0x7b, 0x7c, 0xfc]),
            [1.0, 57344.0, f64::INFINITY, f64::NEG_INFINITY]
        );
        assert_eq!(
            values(Scalar::F8E4M3Fnuz, &[0x40, 0x7f, 0x01]),
            [1.0, 240.0, 0.000_976_562_5]
        );
        assert_eq!(values(Scalar::F8E5M2Fnuz, &[0x40, 0x7f]), [1.0, 57344.0]);
        assert_eq!(
            values(Scalar::F8E8M0, &[0, 127, 254]),
            [power(-127), 1.0, power(127)]
        );
        for (scalar, code) in [
            (Scalar::F8E4M3, 0x7f),
            (Scalar::F8E5M2, 0x7d),
            (Scalar::F8E4M3Fnuz, 0x80),
            (Scalar::F8E8M0, 0xff),
        ] {
            assert!(values(scalar, &[code])[0].is_nan(), "{scalar:?}");
        }
    }

    #[test]
    fn numbers_below_a_byte_begin_in_the_lowest_bits() {
        assert_eq!(decoded(Scalar::U4, &[0x21, 0x03], 3), [1.0, 2.0, 3.0]);
        assert_eq!(decoded(Scalar::I4, &[0x8f], 2), [-1.0, -8.0]);
        assert_eq!(
            decoded(Scalar::I2, &[0b1110_0100], 4),
            [0.0, 1.0, -2.0, -1.0]
        );
        assert_eq!(decoded(Scalar::U1, &[0b0000_0101], 4), [1.0, 0.0, 1.0, 0.0]);
        assert_eq!(decoded(Scalar::F4E2M1, &[0x71, 0x0f], 3), [0.5, 6.0, -6.0]);
        // Four numbers of 6 bits in three bytes: 1, 2, 3 and 63 as codes.
        let bytes = [0b1000_0001, 0b0011_0000, 0b1111_1100];
        assert_eq!(
            decoded(Scalar::F6E2M3, &bytes, 4),
            [0.125, 0.25, 0.375, -7.5]
        );
        assert_eq!(
            decoded(Scalar::F6E3M2, &bytes, 4),
            [0.0625, 0.125, 0.1875, -28.0]
        );
    }

    #[test]
    fn quads_become_the_nearest_double() {
        let quad = |exponent: u128, fraction: u128| exponent << 112 | fraction;
        let nearest = |bits: u128| decoded(Scalar::F128, &bits.to_le_bytes(), 1)[0];
        assert_eq!(nearest(quad(16383, 0)), 1.0);
        assert_eq!(nearest(quad(16384, 1 << 111)), 3.0);
        assert_eq!(nearest(1 << 127 | quad(16382, 0)), -0.5);
        // 1 + 2^-53 lies between two of them, and goes to the even one; a little more goes up.
        assert_eq!(nearest(quad(16383, 1 << 59)), 1.0);
        assert_eq!(nearest(quad(16383, 1 << 59 | 1)), 1.0 + f64::EPSILON);
        assert_eq!(nearest(quad(0x7fff, 0)), f64::INFINITY);
        assert!(nearest(quad(0x7fff, 1)).is_nan());
        assert_eq!(nearest(quad(0x7ffe, 0)), f64::MAX);
        assert_eq!(nearest(quad(16383 - 1074, 0)), f64::from_bits(1));
        assert_eq!(nearest(quad(16383 - 1075, 0)), 0.0);
        assert_eq!(nearest(quad(16383 - 1075, 1)), f64::from_bits(1));
        assert_eq!(nearest(quad(0, 1)), 0.0);
    }
}
