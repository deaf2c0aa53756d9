//! Values of tensors as text.

mod array;
mod float;
mod quad;

pub(crate) use array::Grid;
pub(crate) use float::Float;

use float::FloatFormat;
use tenfold::model::{DType, Lanes, Scalar};

/// One number of an element.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Bool(bool),
    Float(Float),
    Signed(i128),
    Unsigned(u128),
}

impl Number {
    /// The number as programs read it: as many digits as it takes to be told from every other number of its type, or of f64
    /// where the type has 16 bits or less.
    pub(crate) fn exact(self) -> String {
        match self {
            Number::Bool(value) => if value { "True" } else { "False" }.into(),
            Number::Float(value) => value.alone(true),
            Number::Signed(value) => value.to_string(),
            Number::Unsigned(value) => value.to_string(),
        }
    }

    /// The number as JSON has it; what JSON has no number for is text.
    pub(crate) fn json(self) -> String {
        match self {
            Number::Bool(value) => value.to_string(),
            Number::Float(value) if value.is_nan() => "\"NaN\"".into(),
            Number::Float(value) if value.is_infinite() => {
                if value.is_negative() {
                    "\"-Infinity\"".into()
                } else {
                    "\"Infinity\"".into()
                }
            }
            number => number.exact(),
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
            .for_each(|number| each(decode(scalar, number)));
        return;
    }
    let byte = |at: usize| bytes.get(at).map_or(0, |byte| u16::from(*byte));
    for n in 0..bytes.len() * 8 / bits {
        let (at, shift) = (n * bits / 8, n * bits % 8);
        let value = (byte(at) | byte(at + 1) << 8) >> shift & ((1 << bits) - 1);
        each(decode(scalar, &value.to_le_bytes()));
    }
}

/// One number; those below a byte are in the lowest bits of one.
fn decode(scalar: Scalar, bytes: &[u8]) -> Number {
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

/// How the elements of an array are shown, so that they line up: learned from all of them, then used for each.
pub(crate) struct Formatter {
    lanes: Lanes,
    /// One for each number of an element.
    numbers: Vec<NumberFormat>,
}

enum NumberFormat {
    Bool,
    Float(FloatFormat),
    /// Digits and sign of the longest.
    Integer(usize),
}

impl Formatter {
    pub(crate) fn new(dtype: DType) -> Option<Self> {
        let DType::Number(scalar, lanes) = dtype else {
            return None;
        };
        let number = |lane: u32| match decode(scalar, &[0]) {
            Number::Bool(_) => NumberFormat::Bool,
            Number::Float(_) => NumberFormat::Float(FloatFormat::new(
                lanes == Lanes::Complex && lane == 1,
                scalar,
            )),
            Number::Signed(_) | Number::Unsigned(_) => NumberFormat::Integer(0),
        };
        Some(Self {
            lanes,
            numbers: (0..lanes.count()).map(number).collect(),
        })
    }

    /// Makes room for an element.
    pub(crate) fn learn(&mut self, element: &[Number]) {
        for (format, number) in self.numbers.iter_mut().zip(element) {
            match (format, number) {
                (NumberFormat::Float(format), Number::Float(value)) => format.learn(*value),
                (NumberFormat::Integer(width), number) => {
                    *width = (*width).max(number.exact().len());
                }
                _ => {}
            }
        }
    }

    /// An element among others.
    pub(crate) fn format(&self, element: &[Number]) -> String {
        let mut words =
            (self.numbers.iter().zip(element)).map(|(format, number)| match (format, number) {
                (NumberFormat::Float(format), Number::Float(value)) => format.format(*value),
                (NumberFormat::Integer(width), number) => format!("{:>width$}", number.exact()),
                (_, number) => format!("{:>5}", number.exact()),
            });
        match self.lanes {
            Lanes::Real => words.next().unwrap_or_default(),
            Lanes::Complex if matches!(self.numbers.first(), Some(NumberFormat::Float(_))) => {
                let (real, imaginary) = (
                    words.next().unwrap_or_default(),
                    words.next().unwrap_or_default(),
                );
                let digits = imaginary.trim_end();
                let spaces = imaginary.len() - digits.len();
                format!("{real}{digits}j{:spaces$}", "")
            }
            _ => format!("({})", words.collect::<Vec<_>>().join(", ")),
        }
    }

    /// An element that stands alone.
    pub(crate) fn alone(&self, element: &[Number]) -> String {
        match (self.lanes, element) {
            (Lanes::Real, [Number::Float(value)]) => value.alone(false),
            (Lanes::Complex, [Number::Float(real), Number::Float(imaginary)]) => {
                complex(*real, *imaginary, false)
            }
            _ => exact(element),
        }
    }
}

/// An element as programs read it.
pub(crate) fn exact(element: &[Number]) -> String {
    match element {
        [number] => number.exact(),
        [Number::Float(real), Number::Float(imaginary)] => complex(*real, *imaginary, true),
        numbers => {
            let words: Vec<_> = numbers.iter().map(|number| number.exact()).collect();
            format!("({})", words.join(", "))
        }
    }
}

/// As Python writes complex numbers: `(1+2j)`, `1j`.
fn complex(real: Float, imaginary: Float, wide: bool) -> String {
    let part = |value: Float| {
        let text = value.alone(wide);
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

#[cfg(test)]
mod tests;
