//! Integers that are too long for f64.

use crate::model::Scalar;
use crate::ops::Number;

/// Whether f64 does not hold every value of a type of integers.
pub(super) fn is_long(scalar: Scalar) -> bool {
    matches!(
        scalar,
        Scalar::I64 | Scalar::U64 | Scalar::I128 | Scalar::U128
    )
}

/// 2 to the 128, the first number that is too large for 128 bits, and what the largest that are not too large become as f64.
const END: f64 = 2.0 * (1u128 << 127) as f64;

/// How far two numbers are apart, as far as 128 bits go; `None` unless both are integers, or where f64 tells them apart.
pub(super) fn distance([a, b]: [Number; 2]) -> Option<u128> {
    match (a, b) {
        (Number::Float(END), Number::Unsigned(n)) | (Number::Unsigned(n), Number::Float(END)) => {
            return (u128::MAX - n).checked_add(1);
        }
        _ => {}
    }
    let ((a_below, a), (b_below, b)) = (parts(a)?, parts(b)?);
    Some(if a_below == b_below {
        a.abs_diff(b)
    } else {
        a.saturating_add(b)
    })
}

/// Whether an integer is below 0, and its absolute value.
fn parts(number: Number) -> Option<(bool, u128)> {
    match number {
        Number::Signed(value) => Some((value < 0, value.unsigned_abs())),
        Number::Unsigned(value) => Some((false, value)),
        Number::Float(value) => {
            let size = value.abs();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // compared below
            let whole = size as u128;
            let is_whole = size < END && whole as f64 == size;
            is_whole.then_some((value < 0.0, whole))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_told_apart_beyond_the_digits_of_f64() {
        let long = 1 << 53;
        let float = Number::Float(long as f64);
        assert_eq!(distance([Number::Signed(long + 1), float]), Some(1));
        assert_eq!(distance([Number::Unsigned(1 << 53), float]), Some(0));
        assert_eq!(
            distance([Number::Signed(-long - 1), Number::Float(-(long as f64))]),
            Some(1)
        );
        assert_eq!(
            distance([Number::Signed(-1), Number::Unsigned(u128::MAX)]),
            Some(u128::MAX)
        );
        let top = [Number::Float(END), Number::Unsigned(u128::MAX)];
        assert_eq!(distance(top), Some(1));
        for other in [0.5, f64::NAN, f64::INFINITY, END] {
            assert_eq!(distance([Number::Signed(1), Number::Float(other)]), None);
        }
    }
}
