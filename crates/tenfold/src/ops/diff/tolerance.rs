//! How far apart two numbers may be.

use crate::model::Scalar;
use crate::transform::precision;

/// How far apart two numbers may be and still count as equal: within any of the bounds that are given. Equal infinities
/// and two NaNs are equal, and so are 0 and -0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Tolerance {
    /// At most this times the absolute value of the first number, together with `atol`.
    pub rtol: f64,
    /// At most this, together with `rtol`.
    pub atol: f64,
    /// At most this many representable numbers away, in the less precise of both types; for integers, away.
    pub ulp: u64,
}

impl Tolerance {
    /// Bounds of which each that is 0 allows nothing.
    pub fn new(rtol: f64, atol: f64, ulp: u64) -> Self {
        Self { rtol, atol, ulp }
    }

    /// Whether finite numbers that are not equal are near enough; `distance` is how far they are apart.
    pub(super) fn allows(&self, a: f64, b: f64, distance: f64, grain: Option<(u32, i32)>) -> bool {
        if distance <= self.atol + self.rtol * a.abs() {
            return true;
        }
        match grain {
            _ if self.ulp == 0 => false,
            None => distance <= self.ulp as f64,
            Some((digits, least)) => {
                let steps = position(a, digits, least).abs_diff(position(b, digits, least));
                steps <= u128::from(self.ulp)
            }
        }
    }
}

/// In what steps the less precise of two types counts; `None` for integers.
pub(super) fn grain(a: Scalar, b: Scalar) -> Option<(u32, i32)> {
    match (precision(a), precision(b)) {
        (Some(a), Some(b)) => Some(if a.0 <= b.0 { a } else { b }),
        (a, b) => a.or(b),
    }
}

/// The how manyth representable number it is, counted from 0, in a type of `digits` binary digits whose smallest normal
/// exponent is `least`. What lies between two of them is rounded.
fn position(value: f64, digits: u32, least: i32) -> i128 {
    const FRACTION: u32 = 52;
    let bits = value.abs().to_bits();
    let fraction = bits & ((1 << FRACTION) - 1);
    // 11 bits.
    #[allow(clippy::cast_possible_truncation)]
    let biased = (bits >> FRACTION) as i32;
    let (exponent, significand) = match biased {
        0 => (-1022, fraction),
        _ => (biased - 1023, fraction | 1 << FRACTION),
    };
    let used = exponent.max(least);
    // Binary digits of the significand that the type does not have here.
    let below = u32::try_from(used - exponent).unwrap_or(0);
    let shift = FRACTION + 1 - digits.min(FRACTION + 1) + below;
    let whole = u128::from(significand);
    let rounded = match shift {
        0 => whole,
        1..=64 => (whole + (1 << (shift - 1))) >> shift,
        _ => 0,
    };
    let binades = u128::try_from(used - least).unwrap_or(0) << (digits - 1);
    let place = i128::try_from(rounded + binades).unwrap_or(i128::MAX);
    if value < 0.0 { -place } else { place }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_step_apart() {
        let single = precision(Scalar::F32).unwrap();
        let place = |value: f32| position(value.into(), single.0, single.1);
        for bits in [
            0u32,
            1,
            0x007f_fffe,
            0x007f_ffff,
            0x0080_0000,
            0x3f7f_ffff,
            0x3f80_0000,
        ] {
            let (here, next) = (f32::from_bits(bits), f32::from_bits(bits + 1));
            assert_eq!(place(here), i128::from(bits));
            assert_eq!(place(next) - place(here), 1, "{bits:#x}");
            assert_eq!(place(-next), -place(next));
        }
        let (digits, least) = precision(Scalar::F64).unwrap();
        for value in [f64::from_bits(1), f64::MIN_POSITIVE, 1.0, f64::MAX] {
            assert_eq!(position(value, digits, least), i128::from(value.to_bits()));
        }
    }

    #[test]
    fn numbers_of_a_finer_type_are_rounded() {
        let (digits, least) = precision(Scalar::BF16).unwrap();
        let one = position(1.0, digits, least);
        assert_eq!(position(1.001, digits, least), one);
        assert_eq!(position(1.0 + 1.0 / 128.0, digits, least), one + 1);
        assert_eq!(position(1e-300, digits, least), 0);
    }
}
