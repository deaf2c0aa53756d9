//! The inner loops: figures of a block of numbers, and figures put together.

use crate::model::Scalar;
use crate::ops::stats::{Number, Stats};
use crate::prelude::*;
use crate::transform::{Block, Buffers, Numbers, power, precision, square_root};

/// Figures that can be put together, in the same way always: the order decides about the last digits.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) finite: u64,
    pub(super) extremes: Option<(Number, Number)>,
    /// The sum, and what was lost of it to rounding.
    pub(super) sum: (f64, f64),
    /// Sum of the squares of the distances from the mean.
    pub(super) squares: f64,
    pub(super) zeros: u64,
    pub(super) nans: u64,
    pub(super) positive_infinities: u64,
    pub(super) negative_infinities: u64,
    pub(super) subnormals: u64,
}

impl Figures {
    /// Adds the figures of more numbers (Chan, Golub and LeVeque for the squares, Neumaier for the sum).
    pub(super) fn add(&mut self, other: &Self) {
        if self.finite > 0 && other.finite > 0 {
            let (n, m) = (self.finite as f64, other.finite as f64);
            let distance = other.mean() - self.mean();
            self.squares += other.squares + distance * distance * (n / (n + m) * m);
        } else {
            self.squares += other.squares;
        }
        let (sum, lost) = two_sum(self.sum.0, other.sum.0);
        self.sum = (sum, self.sum.1 + other.sum.1 + lost);
        self.extremes = match (self.extremes, other.extremes) {
            (Some((min, max)), Some((other_min, other_max))) => {
                Some((min.min(other_min), max.max(other_max)))
            }
            (known, other) => known.or(other),
        };
        self.finite += other.finite;
        self.zeros += other.zeros;
        self.nans += other.nans;
        self.positive_infinities += other.positive_infinities;
        self.negative_infinities += other.negative_infinities;
        self.subnormals += other.subnormals;
    }

    fn mean(&self) -> f64 {
        (self.sum.0 + self.sum.1) / self.finite as f64
    }

    pub(super) fn finish(&self, elements: u64) -> Stats {
        let known = |value: f64| Some(value).filter(|value| self.finite > 0 && value.is_finite());
        Stats {
            elements,
            numbers: self.finite + self.nans + self.positive_infinities + self.negative_infinities,
            finite: self.finite,
            min: self.extremes.map(|(min, _)| min),
            max: self.extremes.map(|(_, max)| max),
            mean: known(self.mean()),
            std_dev: known(square_root(self.squares / self.finite as f64)),
            zeros: self.zeros,
            nans: self.nans,
            positive_infinities: self.positive_infinities,
            negative_infinities: self.negative_infinities,
            subnormals: self.subnormals,
            histogram: None,
        }
    }
}

/// The sum, and its rounding error. What is infinite has none.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    (sum, if error.is_finite() { error } else { 0.0 })
}

/// The figures of the first `count` numbers of `bytes`, at most a block.
pub(super) fn figures(
    numbers: &Numbers,
    bytes: &[u8],
    count: usize,
    buffers: &mut Buffers,
) -> Figures {
    let scalar = numbers.scalar();
    let least_normal = match precision(scalar) {
        // Every value of it is a power of two, and none is special but NaN.
        None | Some((1, _)) => 0.0,
        Some((_, exponent)) => power(exponent),
    };
    let mut found = match numbers.decode(bytes, count, buffers) {
        // A power of two that f32 has.
        #[allow(clippy::cast_possible_truncation)]
        Block::Narrow(values) => narrow(values, least_normal as f32),
        Block::Wide(values) => wide(values, least_normal),
    };
    if scalar == Scalar::F128 {
        classify_quads(bytes, &mut found);
    }
    found.extremes = (found.extremes).map(|floats| integers(scalar, bytes, floats));
    found
}

/// Extremes of integer types as integers, with all of their digits.
fn integers(scalar: Scalar, bytes: &[u8], floats: (Number, Number)) -> (Number, Number) {
    match scalar {
        Scalar::U64 => exact(bytes, |b| Number::Unsigned(u64::from_le_bytes(b).into())),
        Scalar::I64 => exact(bytes, |b| Number::Signed(i64::from_le_bytes(b).into())),
        Scalar::U128 => exact(bytes, |b| Number::Unsigned(u128::from_le_bytes(b))),
        Scalar::I128 => exact(bytes, |b| Number::Signed(i128::from_le_bytes(b))),
        _ if scalar.is_float() => None,
        // Whole numbers of at most 32 bits: exact.
        #[allow(clippy::cast_possible_truncation)]
        _ => Some((
            Number::Signed(floats.0.to_f64() as i128),
            Number::Signed(floats.1.to_f64() as i128),
        )),
    }
    .unwrap_or(floats)
}

fn exact<const N: usize>(
    bytes: &[u8],
    number: impl Fn([u8; N]) -> Number,
) -> Option<(Number, Number)> {
    let mut all = bytes.as_chunks::<N>().0.iter().map(|&bytes| number(bytes));
    let first = all.next()?;
    Some(all.fold((first, first), |(min, max), value| {
        (min.min(value), max.max(value))
    }))
}

/// Zeros and subnormal numbers of f128 by their bits: as f64 they would all be 0.
fn classify_quads(bytes: &[u8], found: &mut Figures) {
    (found.zeros, found.subnormals) = (0, 0);
    for bytes in bytes.as_chunks::<16>().0 {
        let magnitude = u128::from_le_bytes(*bytes) << 1 >> 1;
        found.zeros += u64::from(magnitude == 0);
        found.subnormals += u64::from(magnitude > 0 && magnitude >> 112 == 0);
    }
}

/// Numbers that are compared side by side, and numbers that are added: as many as there are registers for.
const LANES: usize = 16;
const SUMS: usize = 8;

// One plain loop for each figure: the compiler turns these into vector instructions, one that does everything at once it
// does not. A block stays in the cache meanwhile.
macro_rules! kernel {
    ($name:ident, $finite:ident, $float:ty) => {
        fn $name(values: &[$float], least_normal: $float) -> Figures {
            let sum = sum(values, |value| f64::from(value));
            // A sum of finite numbers may be infinite, one with others is never finite.
            if !sum.is_finite() && !values.iter().all(|value| value.is_finite()) {
                return $finite(values, least_normal);
            }
            if values.is_empty() {
                return Figures::default();
            }
            let mean = sum / values.len() as f64;
            let min = best(values, <$float>::INFINITY, |value, best| value < best);
            let max = best(values, <$float>::NEG_INFINITY, |value, best| value > best);
            let zeros = count(values, |value| value == 0.0);
            let small = count(values, |value| value.abs() < least_normal);
            Figures {
                finite: values.len() as u64,
                extremes: Some((Number::Float(min.into()), Number::Float(max.into()))),
                sum: (sum, 0.0),
                squares: self::sum(values, |value| {
                    let distance = f64::from(value) - mean;
                    distance * distance
                }),
                zeros,
                // Of integers nothing is below 0.
                subnormals: small.saturating_sub(zeros),
                ..Figures::default()
            }
        }

        /// A block with numbers that are not finite: those are counted, and the others looked at alone.
        fn $finite(values: &[$float], least_normal: $float) -> Figures {
            let finite: Vec<$float> = (values.iter().copied())
                .filter(|value| value.is_finite())
                .collect();
            Figures {
                nans: count(values, <$float>::is_nan),
                positive_infinities: count(values, |value| value == <$float>::INFINITY),
                negative_infinities: count(values, |value| value == <$float>::NEG_INFINITY),
                ..$name(&finite, least_normal)
            }
        }
    };
}

kernel!(narrow, narrow_finite, f32);
kernel!(wide, wide_finite, f64);

/// The sum of a function of the values, side by side and then in one order.
fn sum<T: Copy>(values: &[T], of: impl Fn(T) -> f64) -> f64 {
    let (chunks, rest) = values.as_chunks::<SUMS>();
    let mut sums = [0.0; SUMS];
    for chunk in chunks {
        for (sum, &value) in sums.iter_mut().zip(chunk) {
            *sum += of(value);
        }
    }
    for (sum, &value) in sums.iter_mut().zip(rest) {
        *sum += of(value);
    }
    sums.into_iter().sum()
}

/// The value that is better than all others.
fn best<T: Copy>(values: &[T], worst: T, is_better: impl Fn(T, T) -> bool) -> T {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut best = [worst; LANES];
    let better = |best: &mut T, value: T| {
        *best = if is_better(value, *best) {
            value
        } else {
            *best
        }
    };
    for chunk in chunks {
        for (best, &value) in best.iter_mut().zip(chunk) {
            better(best, value);
        }
    }
    let mut of_all = worst;
    for &value in best.iter().chain(rest) {
        better(&mut of_all, value);
    }
    of_all
}

/// How many values of a block are so.
fn count<T: Copy>(values: &[T], is_so: impl Fn(T) -> bool) -> u64 {
    let count: u32 = values.iter().map(|&value| u32::from(is_so(value))).sum();
    count.into()
}
