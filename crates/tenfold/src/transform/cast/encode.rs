//! Exact numbers, rounded to those of a type.

use crate::model::Scalar;

use super::exact::{
    BF16, Class, Exact, F4_E2M1, F6_E2M3, F6_E3M2, F8_E4M3, F8_E4M3FNUZ, F8_E5M2, F8_E5M2FNUZ,
    F8_E8M0, F16, F32, F64, F128, FloatFormat, Special, shift_right,
};
use super::{CastCounts, Encode};

pub(super) fn encoder(scalar: Scalar) -> Encode {
    match scalar {
        Scalar::Bool => |from, out, counts| whole::<1>(from, out, |n| boolean(n, counts)),
        Scalar::U1 => |from, out, counts| packed::<1>(from, out, |n| unsigned::<1>(n, counts)),
        Scalar::U2 => |from, out, counts| packed::<2>(from, out, |n| unsigned::<2>(n, counts)),
        Scalar::U4 => |from, out, counts| packed::<4>(from, out, |n| unsigned::<4>(n, counts)),
        Scalar::U8 => |from, out, counts| whole::<1>(from, out, |n| unsigned::<8>(n, counts)),
        Scalar::U16 => |from, out, counts| whole::<2>(from, out, |n| unsigned::<16>(n, counts)),
        Scalar::U32 => |from, out, counts| whole::<4>(from, out, |n| unsigned::<32>(n, counts)),
        Scalar::U64 => |from, out, counts| whole::<8>(from, out, |n| unsigned::<64>(n, counts)),
        Scalar::U128 => |from, out, counts| whole::<16>(from, out, |n| unsigned::<128>(n, counts)),
        Scalar::I2 => |from, out, counts| packed::<2>(from, out, |n| signed::<2>(n, counts)),
        Scalar::I4 => |from, out, counts| packed::<4>(from, out, |n| signed::<4>(n, counts)),
        Scalar::I8 => |from, out, counts| whole::<1>(from, out, |n| signed::<8>(n, counts)),
        Scalar::I16 => |from, out, counts| whole::<2>(from, out, |n| signed::<16>(n, counts)),
        Scalar::I32 => |from, out, counts| whole::<4>(from, out, |n| signed::<32>(n, counts)),
        Scalar::I64 => |from, out, counts| whole::<8>(from, out, |n| signed::<64>(n, counts)),
        Scalar::I128 => |from, out, counts| whole::<16>(from, out, |n| signed::<128>(n, counts)),
        Scalar::F4E2M1 => |from, out, counts| packed::<4>(from, out, |n| F4_E2M1.encode(n, counts)),
        Scalar::F6E2M3 => |from, out, counts| packed::<6>(from, out, |n| F6_E2M3.encode(n, counts)),
        Scalar::F6E3M2 => |from, out, counts| packed::<6>(from, out, |n| F6_E3M2.encode(n, counts)),
        Scalar::F8E4M3 => |from, out, counts| whole::<1>(from, out, |n| F8_E4M3.encode(n, counts)),
        Scalar::F8E4M3Fnuz => {
            |from, out, counts| whole::<1>(from, out, |n| F8_E4M3FNUZ.encode(n, counts))
        }
        Scalar::F8E5M2 => |from, out, counts| whole::<1>(from, out, |n| F8_E5M2.encode(n, counts)),
        Scalar::F8E5M2Fnuz => {
            |from, out, counts| whole::<1>(from, out, |n| F8_E5M2FNUZ.encode(n, counts))
        }
        Scalar::F8E8M0 => |from, out, counts| whole::<1>(from, out, |n| F8_E8M0.encode(n, counts)),
        Scalar::F16 => |from, out, counts| whole::<2>(from, out, |n| F16.encode(n, counts)),
        Scalar::BF16 => |from, out, counts| whole::<2>(from, out, |n| BF16.encode(n, counts)),
        Scalar::F32 => |from, out, counts| whole::<4>(from, out, |n| F32.encode(n, counts)),
        Scalar::F64 => |from, out, counts| whole::<8>(from, out, |n| F64.encode(n, counts)),
        Scalar::F128 => |from, out, counts| whole::<16>(from, out, |n| F128.encode(n, counts)),
    }
}

#[inline(always)]
fn whole<const WIDTH: usize>(
    from: &[Exact],
    out: &mut [u8],
    mut encode: impl FnMut(Exact) -> u128,
) {
    for (number, out) in from.iter().zip(out.as_chunks_mut::<WIDTH>().0) {
        out.copy_from_slice(&encode(*number).to_le_bytes()[..WIDTH]);
    }
}

/// The first number goes into the lowest bits.
#[inline(always)]
fn packed<const BITS: usize>(
    from: &[Exact],
    out: &mut [u8],
    mut encode: impl FnMut(Exact) -> u128,
) {
    // Eight numbers make whole bytes, as many as a number has bits.
    for (numbers, out) in from.chunks(8).zip(out.chunks_mut(BITS)) {
        let mut word = 0;
        for (n, number) in numbers.iter().enumerate() {
            word |= encode(*number) << (n * BITS);
        }
        let bytes = out.len();
        out.copy_from_slice(&word.to_le_bytes()[..bytes]);
    }
}

fn boolean(number: Exact, counts: &mut CastCounts) -> u128 {
    counts.nans += u64::from(number.class == Class::Nan);
    u128::from(number.class != Class::Finite || number.mantissa != 0)
}

#[inline(always)]
fn unsigned<const BITS: u32>(number: Exact, counts: &mut CastCounts) -> u128 {
    let greatest = u128::MAX >> (128 - BITS);
    if number.negative {
        integer(number, 0, counts)
    } else {
        integer(number, greatest, counts)
    }
}

#[inline(always)]
fn signed<const BITS: u32>(number: Exact, counts: &mut CastCounts) -> u128 {
    let greatest = u128::MAX >> (129 - BITS);
    if number.negative {
        let magnitude = integer(number, greatest + 1, counts);
        magnitude.wrapping_neg() & (u128::MAX >> (128 - BITS))
    } else {
        integer(number, greatest, counts)
    }
}

/// The magnitude as an integer of at most `greatest`.
#[inline(always)]
fn integer(number: Exact, greatest: u128, counts: &mut CastCounts) -> u128 {
    if number.class == Class::Nan {
        counts.nans += 1;
        return 0;
    }
    let magnitude = match number.class {
        Class::Finite => number.to_integer().map(|(magnitude, _)| magnitude),
        _ => None,
    };
    match magnitude {
        Some(magnitude) if magnitude <= greatest => {
            counts.underflows += u64::from(magnitude == 0 && number.mantissa != 0);
            magnitude
        }
        _ => {
            counts.overflows += 1;
            greatest
        }
    }
}

impl FloatFormat {
    #[inline(always)]
    fn encode(&self, number: Exact, counts: &mut CastCounts) -> u128 {
        let sign = u128::from(number.negative) << (self.fraction + self.exponent);
        match number.class {
            Class::Nan => {
                counts.nans += 1;
                self.nan(sign, number.mantissa)
            }
            Class::Infinite => match self.special {
                Special::Ieee => sign | self.infinity(),
                _ => self.overflow(sign, counts),
            },
            Class::Finite if self.special == Special::Power => self.power(number, counts),
            Class::Finite if number.mantissa == 0 => self.zero(sign),
            Class::Finite => {
                let magnitude = self.round(number);
                if magnitude == 0 {
                    counts.underflows += 1;
                    return self.zero(sign);
                }
                if magnitude > self.greatest() {
                    self.overflow(sign, counts)
                } else {
                    sign | magnitude
                }
            }
        }
    }

    /// The bits of the nearest magnitude, as if exponents went on for ever.
    #[inline(always)]
    fn round(&self, number: Exact) -> u128 {
        let bits = 128 - number.mantissa.leading_zeros();
        let exponent = number.exponent + bits.cast_signed() - 1;
        let exponent = exponent.max(1 - self.bias);
        // The place of the lowest bit that is kept.
        let lowest = exponent - self.fraction.cast_signed();
        let shift = lowest - number.exponent;
        let kept = if shift > 0 {
            shift_right(number.mantissa, shift.unsigned_abs())
        } else {
            number.mantissa << shift.unsigned_abs()
        };
        // The highest bit of a normal number adds the 1 that is missing here, and a carry the next.
        let above = (exponent + self.bias - 1).unsigned_abs();
        (u128::from(above) << self.fraction) + kept
    }

    /// The nearest power of two.
    fn power(&self, number: Exact, counts: &mut CastCounts) -> u128 {
        if number.negative || number.mantissa == 0 {
            return self.overflow(0, counts);
        }
        let bits = 128 - number.mantissa.leading_zeros();
        // Half way between two of them goes up: of 1 and 2, 2 is even.
        let up = bits > 1 && number.mantissa >> (bits - 2) & 1 == 1;
        let exponent = number.exponent + bits.cast_signed() - 1 + i32::from(up) + self.bias;
        match u128::try_from(exponent) {
            Ok(exponent) if exponent > self.greatest() => self.overflow(0, counts),
            Ok(exponent) => exponent,
            Err(_) => {
                counts.underflows += 1;
                0
            }
        }
    }

    fn zero(&self, sign: u128) -> u128 {
        match self.special {
            Special::NegativeZero => 0,
            _ => sign,
        }
    }

    fn overflow(&self, sign: u128, counts: &mut CastCounts) -> u128 {
        counts.overflows += 1;
        match self.special {
            Special::Ieee => sign | self.infinity(),
            Special::None => sign | self.greatest(),
            _ => self.nan(sign, 0),
        }
    }

    fn nan(&self, sign: u128, payload: u128) -> u128 {
        let negative_zero = 1 << (self.fraction + self.exponent);
        match self.special {
            Special::Ieee => {
                let quiet = 1 << (self.fraction - 1);
                sign | self.infinity() | quiet | payload >> (128 - self.fraction)
            }
            Special::Highest => sign | self.all_ones(),
            Special::Power => self.all_ones(),
            Special::NegativeZero => negative_zero,
            // A zero of the other sign is as near as ml_dtypes comes to it.
            Special::None => sign ^ negative_zero,
        }
    }
}
