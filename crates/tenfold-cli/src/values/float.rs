//! Floating-point numbers as NumPy shows them.

use tenfold::digits::{Decimal, Float};
use tenfold::model::Scalar;

/// The number by itself.
pub(super) fn alone(value: Float) -> String {
    let sign = sign(value, false);
    match value.word() {
        Some(word) => format!("{sign}{word}"),
        None => {
            let most = decimals(value.scalar()).unwrap_or(16);
            format!("{sign}{}", value.shortest(false).text(most))
        }
    }
}

fn sign(value: Float, plus: bool) -> &'static str {
    match (value.is_negative() && !value.is_nan(), plus) {
        (true, _) => "-",
        (false, true) => "+",
        (false, false) => "",
    }
}

/// From which power of ten on NumPy writes the numbers of a type with an exponent, where that is not the usual one.
fn decimals(scalar: Scalar) -> Option<i32> {
    match scalar {
        Scalar::F16 => Some(3),
        Scalar::F32 | Scalar::BF16 => Some(6),
        _ => None,
    }
}

fn exponent(exponent: i32, digits: usize) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:0digits$}", exponent.unsigned_abs())
}

/// Digits after the point that are shown of arrays, at most.
const PRECISION: usize = 8;

/// How the floating-point numbers of an array are shown.
pub(super) struct FloatFormat {
    /// Numbers that are not negative get a plus.
    plus: bool,
    /// From which number on exponents are used.
    large: f64,
    smallest: f64,
    largest: f64,
    /// Characters before the point, and after it: without and with an exponent.
    plain: (usize, usize),
    scientific: (usize, usize),
    exponent: usize,
    has_finite: bool,
    /// The longest word for what is not finite.
    word: usize,
}

impl FloatFormat {
    pub(super) fn new(plus: bool, scalar: Scalar) -> Self {
        Self {
            plus,
            large: 10f64.powi(decimals(scalar).unwrap_or(8)),
            smallest: f64::INFINITY,
            largest: 0.0,
            plain: (0, 0),
            scientific: (0, 0),
            exponent: 0,
            has_finite: false,
            word: 0,
        }
    }

    pub(super) fn learn(&mut self, value: Float) {
        if value.word().is_some() {
            let signed = self.plus || value.is_infinite() && value.is_negative();
            // An array with something like it has room for `inf` with the sign that any number gets here.
            self.word = self.word.max(3 + usize::from(signed));
            return;
        }
        self.has_finite = true;
        if !value.is_zero() {
            // What is 0 in 64 bits is not in 128.
            let size = value.to_f64().abs().max(f64::MIN_POSITIVE);
            self.smallest = self.smallest.min(size);
            self.largest = self.largest.max(size);
        }
        let shortest = value.shortest(false);
        let sign = sign(value, self.plus).len();
        let (whole, behind) = plain(value, &shortest);
        let (before_point, behind_point) = self.plain;
        self.plain = (
            before_point.max(sign + whole.len()),
            behind_point.max(behind.len()),
        );
        let shown = if shortest.digits.len() > PRECISION + 1 {
            value.rounded(PRECISION + 1)
        } else {
            shortest
        };
        self.scientific = (
            self.scientific.0.max(sign + 1),
            self.scientific.1.max(shown.digits.len() - 1),
        );
        self.exponent = self.exponent.max(exponent(shown.exponent, 2).len() - 2);
    }

    fn has_exponents(&self) -> bool {
        self.largest > 0.0
            && (self.largest >= self.large
                || self.smallest < 0.0001
                || self.largest / self.smallest > 1000.0)
    }

    pub(super) fn format(&self, value: Float) -> String {
        let (before, behind) = match (self.has_finite, self.has_exponents()) {
            (false, _) => (0, 0),
            (true, false) => self.plain,
            (true, true) => (self.scientific.0, self.scientific.1 + self.exponent + 2),
        };
        let before = before.max(self.word.saturating_sub(behind + 1));
        let sign = sign(value, self.plus);
        if let Some(word) = value.word() {
            let width = before + behind + 1;
            return format!("{:>width$}", format!("{sign}{word}"));
        }
        let shortest = value.shortest(false);
        if !self.has_exponents() {
            let (whole, digits) = plain(value, &shortest);
            return format!("{:>before$}.{digits:<behind$}", format!("{sign}{whole}"));
        }
        let precision = self.scientific.1;
        let shown = if shortest.digits.len() == precision + 1 || value.is_zero() {
            shortest
        } else {
            value.rounded(precision + 1)
        };
        let (first, digits) = shown.digits.split_at(1);
        let exponent = exponent(shown.exponent, self.exponent);
        format!(
            "{:>before$}.{digits:0<precision$}{exponent}",
            format!("{sign}{first}")
        )
    }
}

/// What stands before and after the point, not more than is shown of arrays.
fn plain(value: Float, shortest: &Decimal) -> (String, String) {
    let (whole, behind) = shortest.positional();
    if behind.len() <= PRECISION {
        return (whole, behind);
    }
    let most = i32::try_from(PRECISION).unwrap_or(0);
    match usize::try_from(shortest.exponent + 1 + most) {
        Ok(digits) if digits > 0 => value.rounded(digits).positional(),
        // So small that the array is shown with exponents.
        _ => ("0".into(), String::new()),
    }
}
