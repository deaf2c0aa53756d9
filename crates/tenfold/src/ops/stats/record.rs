//! Figures as they are kept for another process: every bit of them.

use serde::{Deserialize, Serialize};

use super::kernel::Figures;
use super::{Found, Number};
use crate::prelude::*;

/// Figures of a tensor, to be put together with those of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::ops) struct FiguresRecord {
    elements: u64,
    finite: u64,
    extremes: Option<(NumberRecord, NumberRecord)>,
    /// Bits of numbers: they may be infinite, and the last digit counts.
    sum: (u64, u64),
    squares: u64,
    zeros: u64,
    nans: u64,
    positive_infinities: u64,
    negative_infinities: u64,
    subnormals: u64,
}

impl FiguresRecord {
    pub(super) fn new(elements: u64, figures: &Figures) -> Self {
        let extremes = figures.extremes;
        Self {
            elements,
            finite: figures.finite,
            extremes: extremes.map(|(min, max)| (min.into(), max.into())),
            sum: (figures.sum.0.to_bits(), figures.sum.1.to_bits()),
            squares: figures.squares.to_bits(),
            zeros: figures.zeros,
            nans: figures.nans,
            positive_infinities: figures.positive_infinities,
            negative_infinities: figures.negative_infinities,
            subnormals: figures.subnormals,
        }
    }

    /// What it was made of; nothing where it was damaged.
    pub(super) fn found(&self) -> Option<Found> {
        let extremes = match &self.extremes {
            Some((min, max)) => Some((min.number()?, max.number()?)),
            None => None,
        };
        let figures = Figures {
            finite: self.finite,
            extremes,
            sum: (f64::from_bits(self.sum.0), f64::from_bits(self.sum.1)),
            squares: f64::from_bits(self.squares),
            zeros: self.zeros,
            nans: self.nans,
            positive_infinities: self.positive_infinities,
            negative_infinities: self.negative_infinities,
            subnormals: self.subnormals,
        };
        Some(Found {
            elements: self.elements,
            figures,
        })
    }
}

/// A number with all of its digits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::ops) enum NumberRecord {
    /// Bits.
    Float(u64),
    Signed(String),
    Unsigned(String),
}

impl From<Number> for NumberRecord {
    fn from(number: Number) -> Self {
        match number {
            Number::Float(value) => Self::Float(value.to_bits()),
            Number::Signed(value) => Self::Signed(value.to_string()),
            Number::Unsigned(value) => Self::Unsigned(value.to_string()),
        }
    }
}

impl NumberRecord {
    pub(in crate::ops) fn number(&self) -> Option<Number> {
        Some(match self {
            Self::Float(bits) => Number::Float(f64::from_bits(*bits)),
            Self::Signed(digits) => Number::Signed(digits.parse().ok()?),
            Self::Unsigned(digits) => Number::Unsigned(digits.parse().ok()?),
        })
    }
}
