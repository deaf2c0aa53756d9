//! A number as it is: integers keep all of their digits.

use core::cmp::Ordering;
use core::fmt;

use crate::model::Scalar;

/// One number of a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Number {
    /// Of a floating-point type, exact up to f64.
    Float(f64),
    /// A signed integer.
    Signed(i128),
    /// An unsigned integer.
    Unsigned(u128),
}

impl Number {
    /// The nearest f64.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Float(value) => value,
            Number::Signed(value) => value as f64,
            Number::Unsigned(value) => value as f64,
        }
    }

    /// Number `place` of little-endian bytes, of which `value` is known as f64.
    pub(in crate::ops) fn at(scalar: Scalar, bytes: &[u8], place: usize, value: f64) -> Self {
        fn get<const N: usize>(bytes: &[u8], place: usize) -> Option<[u8; N]> {
            bytes.as_chunks::<N>().0.get(place).copied()
        }
        let long = match scalar {
            Scalar::U64 => get(bytes, place).map(|b| Self::Unsigned(u64::from_le_bytes(b).into())),
            Scalar::I64 => get(bytes, place).map(|b| Self::Signed(i64::from_le_bytes(b).into())),
            Scalar::U128 => get(bytes, place).map(|b| Self::Unsigned(u128::from_le_bytes(b))),
            Scalar::I128 => get(bytes, place).map(|b| Self::Signed(i128::from_le_bytes(b))),
            _ => None,
        };
        match long {
            Some(number) => number,
            None if scalar.is_float() => Self::Float(value),
            // An integer of at most 32 bits: exact.
            #[allow(clippy::cast_possible_truncation)]
            None => Self::Signed(value as i128),
        }
    }

    /// The absolute value.
    #[must_use]
    pub fn abs(self) -> Self {
        match self {
            Number::Float(value) => Number::Float(value.abs()),
            Number::Signed(value) => Number::Unsigned(value.unsigned_abs()),
            Number::Unsigned(_) => self,
        }
    }

    /// The larger of two absolute values.
    pub(super) fn farther(a: Self, b: Self) -> Self {
        let (a, b) = (a.abs(), b.abs());
        if a.compare(b) == Ordering::Less { b } else { a }
    }

    pub(super) fn min(self, other: Self) -> Self {
        if other.compare(self) == Ordering::Less {
            other
        } else {
            self
        }
    }

    pub(super) fn max(self, other: Self) -> Self {
        if other.compare(self) == Ordering::Greater {
            other
        } else {
            self
        }
    }

    /// Integers by all of their digits; beside a floating-point number as one.
    fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Number::Signed(a), Number::Signed(b)) => a.cmp(&b),
            (Number::Unsigned(a), Number::Unsigned(b)) => a.cmp(&b),
            (Number::Signed(a), Number::Unsigned(b)) => match u128::try_from(a) {
                Ok(a) => a.cmp(&b),
                Err(_) => Ordering::Less,
            },
            (Number::Unsigned(_), Number::Signed(_)) => other.compare(self).reverse(),
            _ => self.to_f64().total_cmp(&other.to_f64()),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Float(value) => fmt::Debug::fmt(value, f),
            Number::Signed(value) => value.fmt(f),
            Number::Unsigned(value) => value.fmt(f),
        }
    }
}
