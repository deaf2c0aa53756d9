//! Floating-point numbers of 128 bits, in whole numbers of any size.

use core::cmp::Ordering;

use num_bigint::BigUint;

use super::Decimal;
use crate::prelude::*;

/// Digits that are always enough.
const MOST: usize = 36;

/// The absolute value: `mantissa * 2^exponent`.
struct Parts {
    mantissa: u128,
    exponent: i32,
}

impl Parts {
    fn new(bits: u128) -> Self {
        let biased = i32::from(u16::try_from(bits >> 112 & 0x7fff).unwrap_or_default());
        let fraction = bits & ((1 << 112) - 1);
        match biased {
            0 => Self {
                mantissa: fraction,
                exponent: 1 - 16_383 - 112,
            },
            _ => Self {
                mantissa: fraction | 1 << 112,
                exponent: biased - 16_383 - 112,
            },
        }
    }
}

/// The fewest digits that no other number of 128 bits is as near to.
pub(super) fn shortest(bits: u128) -> Decimal {
    let parts = Parts::new(bits);
    let found = (1..MOST).map(|digits| rounded(bits, digits));
    let mut found = found.filter(|decimal| is_nearest(&parts, decimal));
    found.next().unwrap_or_else(|| rounded(bits, MOST))
}

/// As many digits as wanted, the last rounded to the nearest, ties to even.
pub(super) fn rounded(bits: u128, digits: usize) -> Decimal {
    let Parts { mantissa, exponent } = Parts::new(bits);
    if mantissa == 0 {
        return Decimal::parse("0e0");
    }
    // By log10(2), too small or too large by 1 at most.
    let log2 = i64::from(exponent) + 127 - i64::from(mantissa.leading_zeros());
    let mut power = i32::try_from(log2 * 30_103 / 100_000).unwrap_or_default();
    let wanted = i32::try_from(digits).unwrap_or(i32::MAX);
    loop {
        let shift = power - wanted + 1;
        let above = (BigUint::from(mantissa) << up(exponent)) * ten(-shift);
        let below = (BigUint::from(1u8) << up(-exponent)) * ten(shift);
        let (mut whole, rest) = (&above / &below, &above % &below);
        // Before it is rounded: 0.96 has no digit here, even if it would be rounded to 1.
        let len = if whole.bits() == 0 {
            0
        } else {
            whole.to_string().len()
        };
        match len.cmp(&digits) {
            Ordering::Less => power -= 1,
            Ordering::Greater => power += 1,
            Ordering::Equal => {
                match (rest << 1u8).cmp(&below) {
                    Ordering::Greater => whole += 1u8,
                    Ordering::Equal if whole.bit(0) => whole += 1u8,
                    _ => {}
                }
                let text = whole.to_string();
                // 9.99 rounded up has a digit more.
                let power = if text.len() > digits {
                    power + 1
                } else {
                    power
                };
                return Decimal::parse(&format!("{text}e{power}"));
            }
        }
    }
}

/// Whether a decimal number is nearer to this number than to its neighbours.
fn is_nearest(parts: &Parts, decimal: &Decimal) -> bool {
    let Parts { mantissa, exponent } = *parts;
    let behind = i32::try_from(decimal.digits.len()).unwrap_or(i32::MAX) - 1;
    let power = decimal.exponent - behind;
    let digits: BigUint = decimal.digits.parse().unwrap_or_default();
    // Everything times 4 and times what makes it whole.
    let scale = |number: BigUint, twos: i32, tens: i32| {
        (number << up(twos - exponent.min(0) + 2)) * ten(tens - power.min(0))
    };
    let found = scale(digits, 0, power);
    let this = scale(mantissa.into(), exponent, 0);
    let mut half = scale(1u8.into(), exponent, 0) >> 1u8;
    let distance = if found > this {
        &found - &this
    } else {
        // Below a power of two, numbers are twice as near to each other.
        if mantissa == 1 << 112 {
            half >>= 1u8;
        }
        &this - &found
    };
    distance < half || distance == half && mantissa % 2 == 0
}

/// A power that is not negative; 0 for one that is.
fn up(power: i32) -> u32 {
    u32::try_from(power).unwrap_or(0)
}

fn ten(power: i32) -> BigUint {
    BigUint::from(10u8).pow(up(power))
}
