//! Floating-point numbers as NumPy shows them.

use std::fmt::LowerExp;
use std::str::FromStr;

use tenfold::model::Scalar;

use super::quad;

/// A floating-point number of any type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Float {
    scalar: Scalar,
    bits: u128,
    /// The number, or the nearest to it of 64 bits, which has its sign and is finite if it is.
    value: f64,
}

/// The digits of a number, the first of them worth `10^exponent`. Without zeros at the end; `0` alone is zero.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Decimal {
    pub(super) digits: String,
    pub(super) exponent: i32,
}

impl Float {
    /// The number with these bits, if the type is one of floating-point numbers.
    pub(super) fn new(scalar: Scalar, bits: u128) -> Option<Self> {
        if !scalar.is_float() {
            return None;
        }
        let value = scalar.to_f64(bits);
        Some(Self {
            scalar,
            bits,
            value,
        })
    }

    pub(crate) fn is_nan(self) -> bool {
        self.value.is_nan()
    }

    pub(crate) fn is_infinite(self) -> bool {
        self.value.is_infinite()
    }

    pub(crate) fn is_negative(self) -> bool {
        self.value.is_sign_negative()
    }

    pub(crate) fn is_zero(self) -> bool {
        match self.scalar {
            Scalar::F128 => self.bits << 1 == 0,
            _ => self.value == 0.0,
        }
    }

    fn is_finite(self) -> bool {
        !self.is_nan() && !self.is_infinite()
    }

    /// The fewest digits that only this number of its type has; those of its absolute value. `wide` gives those of types of
    /// 16 bits that programs, which have wider types only, need to get exactly this number.
    fn shortest(self, wide: bool) -> Decimal {
        let value = self.value.abs();
        if self.is_zero() {
            return Decimal::parse("0e0");
        }
        match self.scalar {
            Scalar::F128 => quad::shortest(self.bits),
            Scalar::F16 | Scalar::BF16 if !wide => {
                let enough = |digits: &usize| {
                    let near: f64 = format!("{value:.digits$e}").parse().unwrap_or(value);
                    self.is_nearest_to(near)
                };
                let digits = (0..17).find(enough).unwrap_or(17);
                Decimal::parse(&format!("{value:.digits$e}"))
            }
            // It came from there.
            #[allow(clippy::cast_possible_truncation)]
            Scalar::F32 => even(&format!("{:e}", value as f32), value as f32),
            // So few that they are all short: types of 8 bits and less are always shown as exactly what they are.
            _ => even(&format!("{value:e}"), value),
        }
    }

    /// As many digits as wanted, rounded.
    fn rounded(self, digits: usize) -> Decimal {
        match self.scalar {
            Scalar::F128 => quad::rounded(self.bits, digits),
            _ => {
                let behind = digits.saturating_sub(1);
                Decimal::parse(&format!("{:.behind$e}", self.value.abs()))
            }
        }
    }

    /// Whether no other number of the type, which has 16 bits, is as near to `other`. All are absolute values.
    fn is_nearest_to(self, other: f64) -> bool {
        // The conversions of wider numbers round twice on some processors; neighbours are compared instead.
        let number = |bits: u16| self.scalar.to_f64(bits.into());
        let [low, high, ..] = self.bits.to_le_bytes();
        let bits = u16::from_le_bytes([low, high]) & 0x7fff;
        let (this, below) = (number(bits), number(bits.saturating_sub(1)));
        let above = match number(bits + 1) {
            // What comes behind the largest, if there were one.
            infinite if infinite.is_infinite() => this + (this - below),
            above => above,
        };
        let further = |neighbour: f64| (other - neighbour).abs() > (other - this).abs();
        further(below) && further(above)
    }

    fn sign(self, plus: bool) -> &'static str {
        match (self.is_negative() && !self.is_nan(), plus) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        }
    }

    /// Where it is not finite.
    fn word(self) -> Option<&'static str> {
        match (self.is_nan(), self.is_infinite()) {
            (true, _) => Some("nan"),
            (_, true) => Some("inf"),
            _ => None,
        }
    }

    /// The number by itself, as NumPy has it; `wide` gives all types the range without exponents that 64 bits have, and the
    /// digits that programs need to get exactly this number.
    pub(crate) fn alone(self, wide: bool) -> String {
        let sign = self.sign(false);
        if let Some(word) = self.word() {
            return format!("{sign}{word}");
        }
        let shortest = self.shortest(wide);
        let most = match (wide, decimals(self.scalar)) {
            (false, Some(decimals)) => decimals,
            _ => 16,
        };
        if self.is_zero() || (-4..most).contains(&shortest.exponent) {
            let (whole, behind) = shortest.positional();
            let behind = if behind.is_empty() { "0" } else { &behind };
            return format!("{sign}{whole}.{behind}");
        }
        let (first, behind) = shortest.digits.split_at(1);
        let point = if behind.is_empty() { "" } else { "." };
        format!(
            "{sign}{first}{point}{behind}{}",
            exponent(shortest.exponent, 2)
        )
    }
}

/// The shortest digits; of two that are equally near, the even ones.
fn even<T: LowerExp + FromStr + PartialEq>(shortest: &str, value: T) -> Decimal {
    let mantissa = shortest.split('e').next().unwrap_or_default();
    let behind = mantissa.len().saturating_sub(2);
    let rounded = format!("{value:.behind$e}");
    match rounded.parse() {
        Ok(same) if value == same => Decimal::parse(&rounded),
        _ => Decimal::parse(shortest),
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

impl Decimal {
    /// Reads `1.25e-7`.
    pub(super) fn parse(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits = mantissa.replace('.', "");
        let significant = digits.trim_end_matches('0');
        Self {
            digits: if significant.is_empty() {
                "0"
            } else {
                significant
            }
            .to_owned(),
            exponent: exponent.parse().unwrap_or(0),
        }
    }

    /// What stands before and behind the point, without zeros at the end.
    fn positional(&self) -> (String, String) {
        let Ok(whole) = usize::try_from(self.exponent + 1) else {
            let zeros = self.exponent.unsigned_abs() as usize - 1;
            return ("0".into(), "0".repeat(zeros) + &self.digits);
        };
        if whole == 0 {
            return ("0".into(), self.digits.clone());
        }
        let split = whole.min(self.digits.len());
        let (before, behind) = self.digits.split_at(split);
        (format!("{before:0<whole$}"), behind.to_owned())
    }
}

/// Digits behind the point that are shown of arrays, at most.
const PRECISION: usize = 8;

/// How the floating-point numbers of an array are shown.
pub(super) struct FloatFormat {
    /// Numbers that are not negative get a plus.
    plus: bool,
    /// From which number on exponents are used.
    large: f64,
    smallest: f64,
    largest: f64,
    /// Characters before the point, and behind it: without and with an exponent.
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
        if !value.is_finite() {
            let signed = self.plus || value.is_infinite() && value.is_negative();
            // An array with something like it has room for `inf` with the sign that any number gets here.
            self.word = self.word.max(3 + usize::from(signed));
            return;
        }
        self.has_finite = true;
        if !value.is_zero() {
            // What is 0 in 64 bits is not in 128.
            let size = value.value.abs().max(f64::MIN_POSITIVE);
            self.smallest = self.smallest.min(size);
            self.largest = self.largest.max(size);
        }
        let shortest = value.shortest(false);
        let sign = value.sign(self.plus).len();
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
        let sign = value.sign(self.plus);
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

/// What stands before and behind the point, not more than is shown of arrays.
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
