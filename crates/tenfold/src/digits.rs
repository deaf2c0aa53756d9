//! Numbers of elements as text, exactly: with the feature `digits`.

mod natural;
mod quad;

use core::fmt::{self, LowerExp};
use core::str::FromStr;

use crate::model::{DType, Scalar};
use crate::prelude::*;

/// One number of an element, exactly. Its text has as many digits as it takes to be told from every other number of its
/// type, or of f64 where the type has 16 bits or less.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Number {
    /// A truth value.
    Bool(bool),
    /// A floating-point number.
    Float(Float),
    /// An integer of a type with signs.
    Signed(i128),
    /// An integer of a type without.
    Unsigned(u128),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Bool(true) => f.write_str("True"),
            Number::Bool(false) => f.write_str("False"),
            Number::Float(value) => write!(f, "{value}"),
            Number::Signed(value) => write!(f, "{value}"),
            Number::Unsigned(value) => write!(f, "{value}"),
        }
    }
}

impl Number {
    /// Those below a byte are in the lowest bits of one.
    pub(crate) fn decode(scalar: Scalar, bytes: &[u8]) -> Self {
        let mut wide = [0; 16];
        for (to, from) in wide.iter_mut().zip(bytes) {
            *to = *from;
        }
        let value = u128::from_le_bytes(wide);
        match scalar {
            Scalar::Bool => Number::Bool(value != 0),
            signed if signed.is_signed_integer() => {
                let unused = 128 - scalar.bits();
                Number::Signed((value << unused).cast_signed() >> unused)
            }
            _ => match Float::new(scalar, value) {
                Some(float) => Number::Float(float),
                None => Number::Unsigned(value),
            },
        }
    }
}

/// The numbers of a piece of little-endian elements. Those that are less than a byte are packed: bits that are left over at
/// the end may give some more.
pub(crate) fn numbers(dtype: DType, bytes: &[u8], mut each: impl FnMut(Number)) {
    let DType::Number(scalar, _) = dtype else {
        return;
    };
    let bits = scalar.bits() as usize;
    if bits >= 8 {
        bytes
            .chunks_exact(bits / 8)
            .for_each(|number| each(Number::decode(scalar, number)));
        return;
    }
    let byte = |at: usize| bytes.get(at).map_or(0, |byte| u16::from(*byte));
    for n in 0..bytes.len() * 8 / bits {
        let (at, shift) = (n * bits / 8, n * bits % 8);
        let value = (byte(at) | byte(at + 1) << 8) >> shift & ((1 << bits) - 1);
        each(Number::decode(scalar, &value.to_le_bytes()));
    }
}

/// An element as programs read it: `0.1`, `(1+2j)` as Python has it, `(1, 0, 0, 0)`.
pub fn text(element: &[Number]) -> String {
    match element {
        [number] => number.to_string(),
        [Number::Float(real), Number::Float(imaginary)] => {
            complex(*real, *imaginary, |value| value.to_string())
        }
        numbers => {
            let words: Vec<_> = numbers.iter().map(ToString::to_string).collect();
            format!("({})", words.join(", "))
        }
    }
}

/// As Python writes complex numbers, `(1+2j)` and `1j`, of parts that are written as `text` does.
pub fn complex(real: Float, imaginary: Float, text: impl Fn(Float) -> String) -> String {
    let part = |value: Float| {
        let text = text(value);
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    };
    if real.is_zero() && !real.is_negative() {
        return format!("{}j", part(imaginary));
    }
    let sign = if imaginary.is_nan() || !imaginary.is_negative() {
        "+"
    } else {
        ""
    };
    format!("({}{sign}{}j)", part(real), part(imaginary))
}

/// A floating-point number of any type.
#[derive(Clone, Copy, Debug)]
pub struct Float {
    scalar: Scalar,
    bits: u128,
    /// The number, or the nearest to it of 64 bits, which has its sign and is finite if it is.
    value: f64,
}

impl Float {
    /// The number with these bits, if the type is one of floating-point numbers.
    pub fn new(scalar: Scalar, bits: u128) -> Option<Self> {
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

    /// Its type.
    pub fn scalar(self) -> Scalar {
        self.scalar
    }

    /// The number of 64 bits that is nearest to it; it has its sign and is finite if it is.
    pub fn to_f64(self) -> f64 {
        self.value
    }

    /// Whether it is NaN.
    pub fn is_nan(self) -> bool {
        self.value.is_nan()
    }

    /// Whether it is an infinity.
    pub fn is_infinite(self) -> bool {
        self.value.is_infinite()
    }

    /// Whether it is below 0, or -0.
    pub fn is_negative(self) -> bool {
        self.value.is_sign_negative()
    }

    /// Whether it is 0 or -0.
    pub fn is_zero(self) -> bool {
        match self.scalar {
            Scalar::F128 => self.bits << 1 == 0,
            _ => self.value == 0.0,
        }
    }

    /// The fewest digits that tell this number from every other of its type, for its absolute value. For 16-bit types,
    /// `wide` gives the digits that programs with only wider types need to get exactly this number.
    pub fn shortest(self, wide: bool) -> Decimal {
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

    /// Its absolute value, rounded to so many digits.
    pub fn rounded(self, digits: usize) -> Decimal {
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
            // What comes after the largest, if there were one.
            infinite if infinite.is_infinite() => this + (this - below),
            above => above,
        };
        let further = |neighbour: f64| (other - neighbour).abs() > (other - this).abs();
        further(below) && further(above)
    }

    /// `nan` or `inf` if it is not finite.
    pub fn word(self) -> Option<&'static str> {
        match (self.is_nan(), self.is_infinite()) {
            (true, _) => Some("nan"),
            (_, true) => Some("inf"),
            _ => None,
        }
    }
}

impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative() && !self.is_nan() {
            f.write_str("-")?;
        }
        match self.word() {
            Some(word) => f.write_str(word),
            // From where on 64 bits have exponents.
            None => f.write_str(&self.shortest(true).text(16)),
        }
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

/// The digits of a number, the first of them worth `10^exponent`. Without zeros at the end; `0` alone is zero.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Decimal {
    /// The digits.
    pub digits: String,
    /// The power of ten that the first of them counts.
    pub exponent: i32,
}

impl Decimal {
    /// Reads `1.25e-7`.
    fn parse(text: &str) -> Self {
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

    /// The digits before and after the point, without zeros at the end.
    pub fn positional(&self) -> (String, String) {
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

    /// With a point and no exponent, if its first digit is worth at least `10^-4` and less than `10^most`: `0.1`, `2.0`. Else
    /// with an exponent of two digits or more: `1.5e-07`.
    pub fn text(&self, most: i32) -> String {
        if self.digits == "0" || (-4..most).contains(&self.exponent) {
            let (whole, behind) = self.positional();
            let behind = if behind.is_empty() { "0" } else { &behind };
            return format!("{whole}.{behind}");
        }
        let (first, behind) = self.digits.split_at(1);
        let point = if behind.is_empty() { "" } else { "." };
        let sign = if self.exponent < 0 { '-' } else { '+' };
        let exponent = self.exponent.unsigned_abs();
        format!("{first}{point}{behind}e{sign}{exponent:02}")
    }
}

#[cfg(test)]
mod tests;
