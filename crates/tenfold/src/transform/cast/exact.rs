//! Numbers of any type at their exact values.

use crate::model::Scalar;

use super::Decode;
use super::range::Range;

/// A number of any type: `mantissa` times 2 to the `exponent`.
#[derive(Clone, Copy)]
pub(super) struct Exact {
    /// Of NaN its payload, the first bit highest.
    pub(super) mantissa: u128,
    pub(super) exponent: i32,
    pub(super) negative: bool,
    pub(super) class: Class,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Class {
    Finite,
    Infinite,
    Nan,
}

impl Exact {
    pub(super) const ZERO: Self = Self::finite(false, 0, 0);

    const fn finite(negative: bool, mantissa: u128, exponent: i32) -> Self {
        Self {
            mantissa,
            exponent,
            negative,
            class: Class::Finite,
        }
    }

    /// The magnitude as an integer, ties to even, and whether it is one; `None` beyond 128 bits.
    pub(super) fn to_integer(self) -> Option<(u128, bool)> {
        let shift = self.exponent.unsigned_abs();
        if self.mantissa == 0 {
            Some((0, true))
        } else if self.exponent < 0 {
            Some((
                shift_right(self.mantissa, shift),
                self.mantissa.trailing_zeros() >= shift,
            ))
        } else if self.mantissa.leading_zeros() >= shift {
            Some((self.mantissa << shift, true))
        } else {
            None
        }
    }
}

/// Divides by 2 to the `shift` and rounds to the nearest, ties to even.
#[inline]
pub(super) fn shift_right(mantissa: u128, shift: u32) -> u128 {
    match shift {
        0 => mantissa,
        1..=127 => {
            let (kept, lost) = (mantissa >> shift, mantissa << (128 - shift));
            const HALF: u128 = 1 << 127;
            kept + u128::from(lost > HALF || lost == HALF && kept & 1 == 1)
        }
        // Less than 1: a half is a tie, and 0 is even.
        128 => u128::from(mantissa > 1 << 127),
        _ => 0,
    }
}

/// How the bits of a floating-point number are used. Without other words, from the highest: sign, exponent, fraction.
pub(super) struct FloatFormat {
    pub(super) fraction: u32,
    pub(super) exponent: u32,
    pub(super) bias: i32,
    pub(super) special: Special,
}

/// Which numbers are none.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Special {
    /// With the highest exponent infinities and NaN, as IEEE 754 has it.
    Ieee,
    /// Only the highest number is NaN ("fn").
    Highest,
    /// The negative zero is NaN ("fnuz").
    NegativeZero,
    /// All are numbers.
    None,
    /// Powers of two without a sign or a zero; the highest is NaN.
    Power,
}

const fn format(exponent: u32, fraction: u32, bias: i32, special: Special) -> FloatFormat {
    FloatFormat {
        fraction,
        exponent,
        bias,
        special,
    }
}

pub(super) const F4_E2M1: FloatFormat = format(2, 1, 1, Special::None);
pub(super) const F6_E2M3: FloatFormat = format(2, 3, 1, Special::None);
pub(super) const F6_E3M2: FloatFormat = format(3, 2, 3, Special::None);
pub(super) const F8_E4M3: FloatFormat = format(4, 3, 7, Special::Highest);
pub(super) const F8_E4M3FNUZ: FloatFormat = format(4, 3, 8, Special::NegativeZero);
pub(super) const F8_E5M2: FloatFormat = format(5, 2, 15, Special::Ieee);
pub(super) const F8_E5M2FNUZ: FloatFormat = format(5, 2, 16, Special::NegativeZero);
pub(super) const F8_E8M0: FloatFormat = format(8, 0, 127, Special::Power);
pub(super) const F16: FloatFormat = format(5, 10, 15, Special::Ieee);
pub(super) const BF16: FloatFormat = format(8, 7, 127, Special::Ieee);
pub(super) const F32: FloatFormat = format(8, 23, 127, Special::Ieee);
pub(super) const F64: FloatFormat = format(11, 52, 1023, Special::Ieee);
pub(super) const F128: FloatFormat = format(15, 112, 16383, Special::Ieee);

/// The format of a floating-point type.
pub(super) fn float_format(scalar: Scalar) -> Option<&'static FloatFormat> {
    Some(match scalar {
        Scalar::F4E2M1 => &F4_E2M1,
        Scalar::F6E2M3 => &F6_E2M3,
        Scalar::F6E3M2 => &F6_E3M2,
        Scalar::F8E4M3 => &F8_E4M3,
        Scalar::F8E4M3Fnuz => &F8_E4M3FNUZ,
        Scalar::F8E5M2 => &F8_E5M2,
        Scalar::F8E5M2Fnuz => &F8_E5M2FNUZ,
        Scalar::F8E8M0 => &F8_E8M0,
        Scalar::F16 => &F16,
        Scalar::BF16 => &BF16,
        Scalar::F32 => &F32,
        Scalar::F64 => &F64,
        Scalar::F128 => &F128,
        _ => return None,
    })
}

impl FloatFormat {
    /// The highest bits of a magnitude, all ones.
    pub(super) const fn all_ones(&self) -> u128 {
        (1 << (self.fraction + self.exponent)) - 1
    }

    /// The bits of the greatest number.
    pub(super) const fn greatest(&self) -> u128 {
        match self.special {
            Special::Ieee => self.infinity() - 1,
            Special::Highest | Special::Power => self.all_ones() - 1,
            Special::NegativeZero | Special::None => self.all_ones(),
        }
    }

    /// The bits of the infinity of those that have one.
    pub(super) const fn infinity(&self) -> u128 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    #[inline(always)]
    fn decode(&self, bits: u128) -> Exact {
        if let Special::Power = self.special {
            #[allow(clippy::cast_possible_truncation)] // 8 bits
            let exponent = bits as i32 - self.bias;
            let mut power = Exact::finite(false, 1, exponent);
            if bits == self.all_ones() {
                power = Exact {
                    mantissa: 0,
                    class: Class::Nan,
                    ..power
                };
            }
            return power;
        }
        let magnitude = bits & self.all_ones();
        let negative = bits != magnitude;
        let fraction = magnitude & ((1 << self.fraction) - 1);
        #[allow(clippy::cast_possible_truncation)] // at most 15 bits
        let exponent = (magnitude >> self.fraction) as i32;
        let other = |class, mantissa| Exact {
            mantissa,
            exponent: 0,
            negative,
            class,
        };
        match self.special {
            Special::Ieee if magnitude == self.infinity() => return other(Class::Infinite, 0),
            Special::Ieee if magnitude > self.infinity() => {
                return other(Class::Nan, fraction << (128 - self.fraction));
            }
            Special::Highest if magnitude == self.all_ones() => return other(Class::Nan, 0),
            Special::NegativeZero if negative && magnitude == 0 => {
                return Exact {
                    negative: false,
                    ..other(Class::Nan, 0)
                };
            }
            _ => {}
        }
        let lowest = -self.bias - self.fraction.cast_signed();
        match exponent {
            0 => Exact::finite(negative, fraction, lowest + 1),
            _ => Exact::finite(negative, fraction | 1 << self.fraction, lowest + exponent),
        }
    }

    pub(super) fn range(&self) -> Range {
        let power = self.special == Special::Power;
        let greatest = self.decode(self.greatest());
        let bits = 128 - greatest.mantissa.leading_zeros();
        Range {
            digits: self.fraction.cast_signed() + 1,
            bottom: 1 - self.bias - self.fraction.cast_signed() - i32::from(power),
            top: greatest.exponent + bits.cast_signed(),
            signed: !power,
            is_float: true,
            has_nan: self.special != Special::None,
            has_infinity: self.special == Special::Ieee,
            has_negative_zero: !power && self.special != Special::NegativeZero,
            has_zero: !power,
            greatest: greatest.mantissa,
        }
    }
}

pub(super) fn decoder(scalar: Scalar) -> Decode {
    match scalar {
        Scalar::Bool => |bytes, out| whole::<1>(bytes, out, |bits| unsigned((bits != 0).into())),
        Scalar::U1 => |bytes, out| packed::<1>(bytes, out, unsigned),
        Scalar::U2 => |bytes, out| packed::<2>(bytes, out, unsigned),
        Scalar::U4 => |bytes, out| packed::<4>(bytes, out, unsigned),
        Scalar::U8 => |bytes, out| whole::<1>(bytes, out, unsigned),
        Scalar::U16 => |bytes, out| whole::<2>(bytes, out, unsigned),
        Scalar::U32 => |bytes, out| whole::<4>(bytes, out, unsigned),
        Scalar::U64 => |bytes, out| whole::<8>(bytes, out, unsigned),
        Scalar::U128 => |bytes, out| whole::<16>(bytes, out, unsigned),
        Scalar::I2 => |bytes, out| packed::<2>(bytes, out, signed::<2>),
        Scalar::I4 => |bytes, out| packed::<4>(bytes, out, signed::<4>),
        Scalar::I8 => |bytes, out| whole::<1>(bytes, out, signed::<8>),
        Scalar::I16 => |bytes, out| whole::<2>(bytes, out, signed::<16>),
        Scalar::I32 => |bytes, out| whole::<4>(bytes, out, signed::<32>),
        Scalar::I64 => |bytes, out| whole::<8>(bytes, out, signed::<64>),
        Scalar::I128 => |bytes, out| whole::<16>(bytes, out, signed::<128>),
        Scalar::F4E2M1 => |bytes, out| packed::<4>(bytes, out, |bits| F4_E2M1.decode(bits)),
        Scalar::F6E2M3 => |bytes, out| packed::<6>(bytes, out, |bits| F6_E2M3.decode(bits)),
        Scalar::F6E3M2 => |bytes, out| packed::<6>(bytes, out, |bits| F6_E3M2.decode(bits)),
        Scalar::F8E4M3 => |bytes, out| whole::<1>(bytes, out, |bits| F8_E4M3.decode(bits)),
        Scalar::F8E4M3Fnuz => |bytes, out| whole::<1>(bytes, out, |bits| F8_E4M3FNUZ.decode(bits)),
        Scalar::F8E5M2 => |bytes, out| whole::<1>(bytes, out, |bits| F8_E5M2.decode(bits)),
        Scalar::F8E5M2Fnuz => |bytes, out| whole::<1>(bytes, out, |bits| F8_E5M2FNUZ.decode(bits)),
        Scalar::F8E8M0 => |bytes, out| whole::<1>(bytes, out, |bits| F8_E8M0.decode(bits)),
        Scalar::F16 => |bytes, out| whole::<2>(bytes, out, |bits| F16.decode(bits)),
        Scalar::BF16 => |bytes, out| whole::<2>(bytes, out, |bits| BF16.decode(bits)),
        Scalar::F32 => |bytes, out| whole::<4>(bytes, out, |bits| F32.decode(bits)),
        Scalar::F64 => |bytes, out| whole::<8>(bytes, out, |bits| F64.decode(bits)),
        Scalar::F128 => |bytes, out| whole::<16>(bytes, out, |bits| F128.decode(bits)),
    }
}

/// Numbers of whole bytes.
#[inline(always)]
fn whole<const WIDTH: usize>(bytes: &[u8], out: &mut [Exact], decode: impl Fn(u128) -> Exact) {
    for (bytes, out) in bytes.as_chunks::<WIDTH>().0.iter().zip(out) {
        let mut bits = [0; 16];
        bits[..WIDTH].copy_from_slice(bytes);
        *out = decode(u128::from_le_bytes(bits));
    }
}

/// Numbers of less than a byte, the first in the lowest bits.
#[inline(always)]
fn packed<const BITS: usize>(bytes: &[u8], out: &mut [Exact], decode: impl Fn(u128) -> Exact) {
    for (n, out) in out.iter_mut().enumerate() {
        let (at, shift) = (n * BITS / 8, n * BITS % 8);
        let byte = |at: usize| u16::from(bytes.get(at).copied().unwrap_or(0));
        let bits = (byte(at) | byte(at + 1) << 8) >> shift & ((1 << BITS) - 1);
        *out = decode(bits.into());
    }
}

#[inline(always)]
fn unsigned(bits: u128) -> Exact {
    Exact::finite(false, bits, 0)
}

#[inline(always)]
fn signed<const BITS: u32>(bits: u128) -> Exact {
    let value = (bits << (128 - BITS)).cast_signed() >> (128 - BITS);
    Exact::finite(value < 0, value.unsigned_abs(), 0)
}
