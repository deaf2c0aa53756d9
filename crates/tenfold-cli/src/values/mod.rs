//! Values of tensors as text.

mod array;
mod float;

pub(crate) use array::Grid;

use tenfold::digits::{self, Number};
use tenfold::model::{DType, Lanes, Scalar};

use float::FloatFormat;

/// The number as JSON has it; what JSON has no number for is text.
pub(crate) fn json_text(number: Number) -> String {
    match number {
        Number::Bool(value) => value.to_string(),
        Number::Float(value) if value.is_nan() => "\"NaN\"".into(),
        Number::Float(value) if value.is_infinite() => {
            if value.is_negative() {
                "\"-Infinity\"".into()
            } else {
                "\"Infinity\"".into()
            }
        }
        number => number.to_string(),
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
        let number = |lane: u32| {
            if scalar == Scalar::Bool {
                NumberFormat::Bool
            } else if scalar.is_float() {
                let plus = lanes == Lanes::Complex && lane == 1;
                NumberFormat::Float(FloatFormat::new(plus, scalar))
            } else {
                NumberFormat::Integer(0)
            }
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
                    *width = (*width).max(number.to_string().len());
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
                (NumberFormat::Integer(width), number) => format!("{:>width$}", number.to_string()),
                (_, number) => format!("{:>5}", number.to_string()),
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
            (Lanes::Real, [Number::Float(value)]) => float::alone(*value),
            (Lanes::Complex, [Number::Float(real), Number::Float(imaginary)]) => {
                digits::complex(*real, *imaginary, float::alone)
            }
            _ => digits::text(element),
        }
    }
}

#[cfg(test)]
mod tests;
