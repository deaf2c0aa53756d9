//! Numbers as quantized blocks, to the last bit as the reference has them.
//!
//! Every operation is rounded on its own and every sum runs from the first number of its part to the last. What is done
//! at once are parts and blocks, which know nothing of each other.

// Lanes of several arrays at once: with their numbers the compiler sees that they can be worked on together.
#![allow(clippy::needless_range_loop, clippy::type_complexity)]

mod floats;
// Its tables are made once.
#[cfg(feature = "std")]
mod grids;
mod legacy;
mod nonlinear;
mod search;
mod small_codes;
mod super_blocks;
mod types;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::model::CastCounts;
use crate::model::{BlockSpec, DType, Decode, Endian, Part, TensorInfo};
use crate::prelude::*;
use crate::transform::as_size;
use crate::transform::elements::ElementMap;

use types::{Encoder, Scales, TYPES};

/// The largest row, in bytes, of types whose blocks depend on their row: it is worked on as a whole.
const MOST_ROW: u64 = 64 << 20;

/// The types that numbers are quantized to.
pub(crate) fn types() -> impl Iterator<Item = &'static BlockSpec> {
    let of = |encoder: &Encoder| BlockSpec::from_name(encoder.name);
    TYPES.iter().filter_map(of)
}

/// Whether numbers can be quantized to this type only if their importances are known.
pub(crate) fn needs_importance(spec: &BlockSpec) -> bool {
    find(spec).is_some_and(|encoder| encoder.plain.is_none())
}

/// Whether the importances of numbers make a difference.
pub(crate) fn uses_importance(spec: &BlockSpec) -> bool {
    find(spec).is_some_and(|encoder| encoder.weighted.is_some())
}

fn find(spec: &BlockSpec) -> Option<&'static Encoder> {
    TYPES.iter().find(|encoder| encoder.name == spec.name)
}

/// What turns the numbers of a tensor into blocks of this type, or why that cannot be. Importances are those of the columns,
/// for each matrix of a tensor that has several.
pub(crate) fn quantizer(
    tensor: &TensorInfo,
    spec: &'static BlockSpec,
    importance: Option<Arc<[f32]>>,
) -> Result<Arc<dyn Decode>> {
    let Some(encoder) = find(spec) else {
        let known: Vec<_> = TYPES.iter().map(|encoder| encoder.name).collect();
        let message = format!(
            "numbers cannot be written as {}; they can as {}",
            spec.name,
            known.join(", ")
        );
        return Err(Error::unsupported("quantize", message));
    };
    let row = tensor.shape.last().copied().unwrap_or(1);
    if !row.is_multiple_of(spec.elements.into()) {
        let message = format!(
            "rows of {row} elements, {} has blocks of {}",
            spec.name, spec.elements
        );
        return Err(Error::unsupported("quantize", message));
    }
    let from = match &tensor.decoder {
        Some(decoder) if !tensor.layout.is_dense() => match decoder.dtype() {
            DType::F32 => From::Decoder(decoder.clone()),
            other => {
                let message = format!("its decoder gives {other}, f32 is needed");
                return Err(Error::unsupported("quantize", message));
            }
        },
        _ => {
            let part = tensor.parts.first();
            From::Part(number_map(part.filter(|_| tensor.layout.is_dense()))?)
        }
    };
    let encode = match (importance, encoder.weighted, encoder.plain) {
        (Some(importance), Some(encode), _) => {
            let importances = Importances::new(tensor, importance)?;
            if encoder.whole_rows && row.saturating_mul(4) > MOST_ROW {
                let message = format!(
                    "rows of {row} elements; {} looks at whole rows where importances are given, and those are too long",
                    spec.name
                );
                return Err(Error::unsupported("quantize", message));
            }
            Encode::Weighted(encode, importances)
        }
        (_, _, Some(encode)) => Encode::Plain(encode),
        (None, _, None) | (Some(_), None, None) => {
            let message = format!("{} needs importances of the numbers", spec.name);
            return Err(Error::unsupported("quantize", message));
        }
    };
    Ok(Arc::new(Quantizer {
        spec,
        encoder,
        encode,
        row,
        from,
    }))
}

/// From numbers as they are stored to `f32`, and the bytes of a stored one.
fn number_map(part: Option<&Part>) -> Result<(ElementMap, u64)> {
    let part = part.ok_or_else(|| {
        Error::unsupported("quantize", "only dense tensors of numbers can be quantized")
    })?;
    let map = ElementMap::new(part.dtype, part.endian, DType::F32, Endian::Little)?;
    match part.dtype.width() {
        Some(width) => Ok((map, width as u64)),
        None => Err(Error::unsupported("quantize", format!("{}", part.dtype))),
    }
}

/// How much each column of a matrix counts.
struct Importances {
    columns: Arc<[f32]>,
    /// Elements of the matrices that have columns of their own.
    matrix: u64,
}

impl Importances {
    fn new(tensor: &TensorInfo, columns: Arc<[f32]>) -> Result<Self> {
        let row = tensor.shape.last().copied().unwrap_or(1);
        let rows = tensor.shape.iter().rev().nth(1).copied().unwrap_or(1);
        let len = columns.len() as u64;
        // The number of matrices: all dimensions but the last two.
        let matrices = (tensor.shape.iter().rev().skip(2))
            .try_fold(1u64, |product, &dim| product.checked_mul(dim));
        let expected = matrices.and_then(|matrices| matrices.checked_mul(row));
        if expected != Some(len) {
            let message = format!(
                "{len} importances, expected {}",
                expected.map_or_else(|| "more".to_owned(), |expected| expected.to_string())
            );
            return Err(Error::unsupported("imatrix", message));
        }
        let matrix = rows.saturating_mul(row).max(1);
        Ok(Self { columns, matrix })
    }

    /// Those of a stretch of a row.
    fn of(&self, element: u64, row: u64, len: usize) -> Result<&[f32]> {
        let first = as_size(element / self.matrix * row + element % row)?;
        let range = first..first.saturating_add(len);
        (self.columns.get(range)).ok_or_else(|| Error::argument("numbers beyond their tensor"))
    }
}

enum Encode {
    Plain(types::Plain),
    Weighted(types::Weighted, Importances),
}

struct Quantizer {
    spec: &'static BlockSpec,
    encoder: &'static Encoder,
    encode: Encode,
    row: u64,
    from: From,
}

/// Where the numbers come from.
enum From {
    Part((ElementMap, u64)),
    /// Other blocks, decoded first.
    Decoder(Arc<dyn Decode>),
}

impl core::fmt::Debug for Quantizer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Quantizer({})", self.spec.name)
    }
}

impl Decode for Quantizer {
    fn dtype(&self) -> DType {
        DType::Block(self.spec)
    }

    fn step(&self) -> u64 {
        let own = match &self.encode {
            Encode::Weighted(..) if self.encoder.whole_rows => self.row.max(1),
            _ => u64::from(self.spec.elements),
        };
        match &self.from {
            From::Part(_) => own,
            From::Decoder(inner) => own.max(inner.step().next_multiple_of(own)),
        }
    }

    fn decode(
        &self,
        tensor: &TensorInfo,
        read: &dyn Fn(usize, Range<u64>) -> Result<Bytes>,
        elements: Range<u64>,
        out: &mut [u8],
    ) -> Result<()> {
        self.decode_counted(tensor, read, elements, out).map(drop)
    }

    fn decode_counted(
        &self,
        tensor: &TensorInfo,
        read: &dyn Fn(usize, Range<u64>) -> Result<Bytes>,
        elements: Range<u64>,
        out: &mut [u8],
    ) -> Result<CastCounts> {
        let numbers = self.numbers(tensor, read, elements.clone())?;
        if let Some(at) = numbers.iter().position(|value| !value.is_finite()) {
            let element = elements.start + at as u64;
            let message = format!(
                "element {element} is {}; blocks hold finite numbers only",
                numbers[at]
            );
            return Err(Error::unsupported("quantize", message).in_tensor(&tensor.name));
        }
        let (size, bytes) = (self.spec.elements as usize, self.spec.bytes as usize);
        if !numbers.len().is_multiple_of(size) || numbers.len() / size * bytes != out.len() {
            return Err(Error::argument("numbers that are not whole blocks"));
        }
        match &self.encode {
            Encode::Plain(encode) => encode(&numbers, out),
            Encode::Weighted(encode, importances) => {
                let (mut element, mut x, mut out) = (elements.start, &numbers[..], &mut *out);
                while !x.is_empty() {
                    let rest = as_size(self.row - element % self.row)?.min(x.len());
                    let (row, later) = x.split_at(rest);
                    let (blocks, later_blocks) = out.split_at_mut(rest / size * bytes);
                    let columns = importances.of(element, self.row, rest)?;
                    encode(row, columns, mean_of_squares(row), blocks);
                    element += rest as u64;
                    (x, out) = (later, later_blocks);
                }
            }
        }
        let mut counts = CastCounts::default();
        for (x, block) in numbers.chunks_exact(size).zip(out.chunks_exact(bytes)) {
            counts += self.encoder.count(x, block);
        }
        Ok(counts)
    }
}

impl Quantizer {
    fn numbers(
        &self,
        tensor: &TensorInfo,
        read: &dyn Fn(usize, Range<u64>) -> Result<Bytes>,
        elements: Range<u64>,
    ) -> Result<Vec<f32>> {
        let bytes = match &self.from {
            From::Part((map, width)) => {
                let mut bytes = read(0, elements.start * width..elements.end * width)?.to_vec();
                map.apply(&mut bytes, None)?;
                bytes
            }
            From::Decoder(inner) => {
                let len = as_size(4 * (elements.end - elements.start))?;
                let mut bytes = vec![0; len];
                inner.decode(tensor, read, elements, &mut bytes)?;
                bytes
            }
        };
        let numbers = bytes.as_chunks().0.iter();
        Ok(numbers.map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}

impl Encoder {
    /// What of a block is lost beyond rounding: all that shares a scale which has no place where it is written, or is 0 there.
    fn count(&self, x: &[f32], block: &[u8]) -> CastCounts {
        let number = |matches: &dyn Fn(f32) -> bool| count(x, matches);
        let is_something = |value: f32| value != 0.0;
        let mut counts = CastCounts {
            numbers: x.len() as u64,
            ..CastCounts::default()
        };
        match self.scales {
            Scales::Halves(places) => {
                let bits = |at: &usize| u16::from_le_bytes([block[*at], block[*at + 1]]) & 0x7fff;
                if places.iter().any(|at| bits(at) >= 0x7c00) {
                    counts.overflows = counts.numbers;
                } else if places.iter().all(|at| bits(at) == 0) {
                    // A search that ran over ends without a scale.
                    let largest = half::f16::MAX.to_f32();
                    match number(&|value| value.abs() > largest) {
                        0 => counts.underflows = number(&is_something),
                        _ => counts.overflows = counts.numbers,
                    }
                }
            }
            Scales::Powers => {
                if block.iter().skip(1).all(|&codes| codes == 0) {
                    counts.underflows = number(&is_something);
                }
            }
            Scales::Bytes { most } => {
                counts.overflows = number(&|value| value.abs() > most);
                let parts = x.chunks_exact(16).zip(block);
                let lost = parts.filter(|(_, scale)| **scale == 0);
                counts.underflows = lost.map(|(part, _)| count(part, &is_something)).sum();
            }
        }
        counts
    }
}

fn count(x: &[f32], matches: &dyn Fn(f32) -> bool) -> u64 {
    let count: u32 = x.iter().map(|&value| u32::from(matches(value))).sum();
    u64::from(count)
}

/// One over the scale, or 0 where that is no number.
fn inverse(d: f32) -> f32 {
    let inverse = 1.0 / d;
    if inverse.is_finite() { inverse } else { 0.0 }
}

fn put_half(value: f32, out: &mut [u8]) {
    let half = half::f16::from_f32(value).to_le_bytes();
    for (out, byte) in out.iter_mut().zip(half) {
        *out = byte;
    }
}

/// From the first to the last, each sum rounded.
fn sum_of_squares(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |sum, x| sum + x * x)
}

#[allow(clippy::cast_precision_loss)] // as the reference
fn mean_of_squares(row: &[f32]) -> f32 {
    sum_of_squares(row) / row.len() as f32
}

#[cfg(feature = "std")]
#[inline(always)]
fn square_root(value: f32) -> f32 {
    value.sqrt()
}

/// By way of 64 bits, which is as exact as that of `std`.
#[cfg(not(feature = "std"))]
#[allow(clippy::cast_possible_truncation)]
fn square_root(value: f32) -> f32 {
    crate::transform::square_root(value.into()) as f32
}
