//! From one number type to another.
//!
//! Every number is taken at its exact value and rounded once, to the nearest number of the other type, ties to even; that
//! holds for integers too, so 1.5 and 2.5 become 2. What is beyond the range of the other type becomes an infinity, where
//! there is none NaN, and where there is no NaN either the type's greatest or least number. NaN becomes NaN, quiet, with
//! its sign and as much of its payload as there is room for; an integer 0. Any number but 0 is true. This is what numpy
//! and ml_dtypes do wherever they round to the nearest, for numbers that they do not round twice.
//!
//! Most pairs of types go through [`Exact`]; those that large files are cast between have loops of their own.

mod encode;
mod exact;
mod fast;
mod range;
#[cfg(test)]
mod tests;

pub(crate) use range::{is_exact, precision};

use crate::model::{CastCounts, Scalar};
use crate::prelude::*;
use crate::threads::Counter;

use exact::{Class, Exact};

/// Counts of several threads together.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    numbers: Counter,
    overflows: Counter,
    underflows: Counter,
    nans: Counter,
}

impl Tally {
    pub(crate) fn add(&self, counts: CastCounts) {
        self.numbers.add(counts.numbers);
        self.overflows.add(counts.overflows);
        self.underflows.add(counts.underflows);
        self.nans.add(counts.nans);
    }

    pub(crate) fn counts(&self) -> CastCounts {
        CastCounts {
            numbers: self.numbers.get(),
            overflows: self.overflows.get(),
            underflows: self.underflows.get(),
            nans: self.nans.get(),
        }
    }
}

impl Scalar {
    /// The number that the lowest bits stand for, or the f64 nearest to it: integers of more than 53 bits and f128 are
    /// rounded, and what is finite stays finite.
    ///
    /// ```
    /// use tenfold::model::Scalar;
    /// assert_eq!(Scalar::F8E4M3.to_f64(0xc4), -3.0);
    /// assert_eq!(Scalar::I4.to_f64(0xf), -1.0);
    /// ```
    pub fn to_f64(self, bits: u128) -> f64 {
        let mut number = [Exact::ZERO];
        exact::decoder(self)(&bits.to_le_bytes(), &mut number);
        let mut nearest = [0; 8];
        encode::encoder(Scalar::F64)(&number, &mut nearest, &mut CastCounts::default());
        let nearest = f64::from_le_bytes(nearest);
        match number {
            [number] if number.class == Class::Finite => nearest.clamp(f64::MIN, f64::MAX),
            _ => nearest,
        }
    }
}

/// Reads consecutive numbers at their exact values.
type Decode = fn(&[u8], &mut [Exact]);
/// Writes consecutive numbers. The last byte is filled up with zeros.
type Encode = fn(&[Exact], &mut [u8], &mut CastCounts);

/// Numbers that are decoded and encoded at a time: whole bytes of any type.
const BATCH: usize = 256;

/// A cast of little-endian, packed numbers.
#[derive(Clone, Copy)]
pub(crate) struct Cast {
    from: Scalar,
    to: Scalar,
    fast: Option<fast::Fast>,
    decode: Decode,
    encode: Encode,
}

impl Cast {
    pub(super) fn new(from: Scalar, to: Scalar) -> Self {
        Self {
            from,
            to,
            fast: fast::find(from, to),
            decode: exact::decoder(from),
            encode: encode::encoder(to),
        }
    }

    /// Casts as many numbers; both slices have exactly the bytes for them.
    pub(super) fn apply(&self, numbers: usize, input: &[u8], output: &mut [u8]) -> CastCounts {
        let mut counts = match self.fast {
            Some(fast) => fast(input, output),
            None if self.from.bits() == 8 && self.to.bits() >= 8 && numbers >= 2 * BATCH => {
                self.look_up(input, output)
            }
            None => self.one_by_one(numbers, input, output),
        };
        counts.numbers = numbers as u64;
        counts
    }

    /// The first number that is beyond the range of the other type, for a message.
    pub(super) fn misfit(&self, numbers: usize, input: &[u8]) -> Option<String> {
        let mut exact = [Exact::ZERO; BATCH];
        let bytes = BATCH * self.from.bits() as usize / 8;
        for (n, input) in input.chunks(bytes).enumerate() {
            let batch = BATCH.min(numbers.saturating_sub(n * BATCH));
            (self.decode)(input, &mut exact[..batch]);
            for number in &exact[..batch] {
                let mut counts = CastCounts::default();
                (self.encode)(&[*number], &mut [0; 16], &mut counts);
                if !counts.is_clean() {
                    return Some(number.to_string());
                }
            }
        }
        None
    }

    fn one_by_one(&self, numbers: usize, input: &[u8], output: &mut [u8]) -> CastCounts {
        let mut counts = CastCounts::default();
        let mut exact = [Exact::ZERO; BATCH];
        let bytes = |scalar: Scalar| BATCH * scalar.bits() as usize / 8;
        let batches = input
            .chunks(bytes(self.from))
            .zip(output.chunks_mut(bytes(self.to)));
        for (n, (input, output)) in batches.enumerate() {
            let batch = BATCH.min(numbers.saturating_sub(n * BATCH));
            (self.decode)(input, &mut exact[..batch]);
            (self.encode)(&exact[..batch], output, &mut counts);
        }
        counts
    }

    /// Casts every byte that there is, and then looks the numbers up.
    fn look_up(&self, input: &[u8], output: &mut [u8]) -> CastCounts {
        match self.to.bits() {
            8 => self.look_up_fixed::<1>(input, output),
            16 => self.look_up_fixed::<2>(input, output),
            32 => self.look_up_fixed::<4>(input, output),
            64 => self.look_up_fixed::<8>(input, output),
            _ => self.look_up_fixed::<16>(input, output),
        }
    }

    fn look_up_fixed<const WIDTH: usize>(&self, input: &[u8], output: &mut [u8]) -> CastCounts {
        let mut exact = [Exact::ZERO; 256];
        let bytes: [u8; 256] = core::array::from_fn(|byte| byte.to_le_bytes()[0]);
        (self.decode)(&bytes, &mut exact);
        let mut table = [[0; WIDTH]; 256];
        let mut remarkable = [CastCounts::default(); 256];
        for ((number, entry), counts) in exact.iter().zip(&mut table).zip(&mut remarkable) {
            (self.encode)(&[*number], entry, counts);
        }
        for (byte, out) in input.iter().zip(output.as_chunks_mut().0) {
            *out = table[usize::from(*byte)];
        }
        let mut counts = CastCounts::default();
        if remarkable.iter().any(|counts| !counts.is_clean()) {
            for byte in input {
                counts += remarkable[usize::from(*byte)];
            }
        }
        counts
    }
}

impl core::fmt::Display for Exact {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        match self.class {
            Class::Nan => f.write_str("NaN"),
            Class::Infinite => write!(f, "{sign}infinity"),
            Class::Finite => match self.to_integer() {
                Some((magnitude, true)) => write!(f, "{sign}{magnitude}"),
                _ => write!(f, "{sign}{} * 2^{}", self.mantissa, self.exponent),
            },
        }
    }
}

/// A number of a type, little-endian, nearest to another one. One of less than a byte takes one.
pub(crate) fn number_bytes(scalar: Scalar, number: f64) -> Vec<u8> {
    let mut exact = [Exact::ZERO];
    exact::decoder(Scalar::F64)(&number.to_le_bytes(), &mut exact);
    let mut bytes = vec![0; usize::try_from(scalar.bits().div_ceil(8)).unwrap_or(1)];
    encode::encoder(scalar)(&exact, &mut bytes, &mut CastCounts::default());
    bytes
}
