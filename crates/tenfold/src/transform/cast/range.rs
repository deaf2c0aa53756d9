//! Which types hold every value of which others.

use crate::model::Scalar;

use super::exact::float_format;

/// Whether every value of one type, with its sign, is a value of the other.
pub(crate) fn is_exact(from: Scalar, to: Scalar) -> bool {
    if from == to {
        return true;
    }
    match (Range::of(from), Range::of(to)) {
        (Some(from), Some(to)) => from.fits(to),
        // Only 0 and 1 are left of numbers as bools.
        (from, None) => from.is_some_and(|from| from.top == 1 && from.bottom == 0 && !from.signed),
        (None, Some(to)) => to.has_zero && to.bottom <= 0 && to.top >= 1,
    }
}

/// How many digits the significand of a floating-point type has, and the exponent of its smallest normal number. Of f128,
/// as far as it is computed with here, which is as f64.
pub(crate) fn precision(scalar: Scalar) -> Option<(u32, i32)> {
    let scalar = match scalar {
        Scalar::F128 => Scalar::F64,
        scalar => scalar,
    };
    let range = float_format(scalar)?.range();
    Some((range.digits.unsigned_abs(), range.bottom + range.digits - 1))
}

/// The values of a type: some bits somewhere between the place of the lowest and that of the highest.
pub(super) struct Range {
    /// Bits from the first to the last that is not 0.
    pub(super) digits: i32,
    /// No bit is lower than 2 to this.
    pub(super) bottom: i32,
    /// No value reaches 2 to this, except where that is the lowest negative one.
    pub(super) top: i32,
    pub(super) signed: bool,
    pub(super) is_float: bool,
    pub(super) has_nan: bool,
    pub(super) has_infinity: bool,
    pub(super) has_negative_zero: bool,
    pub(super) has_zero: bool,
    /// Not all values of `digits` bits are there below `top`: the greatest has this as its bits.
    pub(super) greatest: u128,
}

impl Range {
    /// `None` for bools.
    fn of(scalar: Scalar) -> Option<Self> {
        if let Some(format) = float_format(scalar) {
            return Some(format.range());
        }
        let bits = scalar.bits().cast_signed();
        let signed = scalar.is_signed_integer();
        let digits = bits - i32::from(signed);
        (scalar != Scalar::Bool).then_some(Self {
            digits,
            bottom: 0,
            top: digits,
            signed,
            is_float: false,
            has_nan: false,
            has_infinity: false,
            has_negative_zero: false,
            has_zero: true,
            greatest: u128::MAX >> (128 - digits.cast_unsigned()),
        })
    }

    fn fits(&self, to: Self) -> bool {
        // The lowest of signed integers is a power of two, which has no counterpart above.
        let lowest = !self.signed || self.is_float || !to.is_float || to.top > self.top;
        let top = match self.top.cmp(&to.top) {
            core::cmp::Ordering::Less => true,
            core::cmp::Ordering::Equal => {
                let shift = |range: &Self| range.greatest << range.greatest.leading_zeros();
                shift(self) <= shift(&to)
            }
            core::cmp::Ordering::Greater => false,
        };
        self.digits <= to.digits
            && self.bottom >= to.bottom
            && top
            && lowest
            && (to.signed || !self.signed)
            && (to.has_nan || !self.has_nan)
            && (to.has_infinity || !self.has_infinity)
            && (to.has_negative_zero || !self.has_negative_zero)
            && (to.has_zero || !self.has_zero)
    }
}
