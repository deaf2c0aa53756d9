//! Numbers as quantized blocks, rounded as the reference rounds.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::model::CastCounts;
use crate::model::{BlockSpec, DType, Decode, Endian, Part, TensorInfo};
use crate::prelude::*;
use crate::transform::elements::ElementMap;

/// Values of one block of the types that are written.
const BLOCK: usize = 32;

/// Appends a block, and gives its scale.
type Encode = fn(&[f32; BLOCK], &mut Vec<u8>) -> f32;

/// The types into which numbers are quantized.
const TYPES: &[(&str, Encode)] = &[("Q8_0", q8_0), ("Q4_0", q4_0)];

/// What turns the numbers of a tensor into blocks of this type, or why that cannot be.
pub(crate) fn quantizer(tensor: &TensorInfo, spec: &'static BlockSpec) -> Result<Arc<dyn Decode>> {
    let found = TYPES.iter().find(|(name, _)| *name == spec.name);
    let Some((_, encode)) = found else {
        let known: Vec<_> = TYPES.iter().map(|(name, _)| *name).collect();
        let message = format!("into {}; known are {}", spec.name, known.join(", "));
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
    Ok(Arc::new(Quantizer {
        spec,
        encode: *encode,
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

struct Quantizer {
    spec: &'static BlockSpec,
    encode: Encode,
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
        let own = u64::from(self.spec.elements);
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
        let numbers = match &self.from {
            From::Part((map, width)) => {
                let mut bytes = read(0, elements.start * width..elements.end * width)?.to_vec();
                map.apply(&mut bytes, None)?;
                bytes
            }
            From::Decoder(inner) => {
                let len = crate::transform::as_size(4 * (elements.end - elements.start))?;
                let mut bytes = vec![0; len];
                inner.decode(tensor, read, elements, &mut bytes)?;
                bytes
            }
        };
        let mut counts = CastCounts::default();
        let mut encoded = Vec::new();
        let mut values = [0.0; BLOCK];
        for block in numbers.chunks_exact(4 * BLOCK) {
            for (value, bytes) in values.iter_mut().zip(block.as_chunks().0) {
                *value = f32::from_le_bytes(*bytes);
            }
            let scale = (self.encode)(&values, &mut encoded);
            counts += count(&values, scale);
        }
        if encoded.len() != out.len() {
            return Err(Error::argument("numbers that are not whole blocks"));
        }
        out.copy_from_slice(&encoded);
        Ok(counts)
    }
}

/// What of a block is lost beyond rounding: NaN, of which there is none in a block, and all of it where the scale, which is
/// written as f16, has no place there.
fn count(values: &[f32; BLOCK], scale: f32) -> CastCounts {
    let number = |matches: fn(&&f32) -> bool| values.iter().filter(matches).count() as u64;
    let half = half::f16::from_f32(scale);
    let mut counts = CastCounts {
        numbers: BLOCK as u64,
        nans: number(|value| value.is_nan()),
        ..CastCounts::default()
    };
    if !half.is_finite() {
        counts.overflows = counts.numbers - counts.nans;
    } else if half == half::f16::ZERO {
        counts.underflows = number(|value| **value != 0.0 && !value.is_nan());
    }
    counts
}

/// One over the scale, or 0 where all values are.
fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

fn put_half(value: f32, out: &mut Vec<u8>) {
    out.extend(half::f16::from_f32(value).to_le_bytes());
}

// Saturating, as casts of floats are: what is not a number becomes 0.
#[allow(clippy::cast_possible_truncation)]
fn q8_0(values: &[f32; BLOCK], out: &mut Vec<u8>) -> f32 {
    let largest = values.iter().fold(0.0, |max: f32, v| max.max(v.abs()));
    let d = largest / 127.0;
    let inverse = inverse(d);
    put_half(d, out);
    out.extend(
        values
            .iter()
            .map(|v| (round(v * inverse) as i8).cast_unsigned()),
    );
    d
}

/// To the nearest whole number, halves away from zero. `core` has no rounding of its own in every release we build with.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn round(value: f32) -> f32 {
    let whole = value as i32 as f32;
    let rest = value - whole;
    if rest >= 0.5 {
        whole + 1.0
    } else if rest <= -0.5 {
        whole - 1.0
    } else {
        whole
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturating, and at most 15
fn q4_0(values: &[f32; BLOCK], out: &mut Vec<u8>) -> f32 {
    // The first number, not 0: the sign of a block of zeros is that of its first.
    let first = values.iter().copied().find(|value| !value.is_nan());
    let mut largest = first.unwrap_or(0.0);
    for &value in values {
        if value.abs() > largest.abs() {
            largest = value;
        }
    }
    let d = largest / -8.0;
    let inverse = inverse(d);
    put_half(d, out);
    let code = |value: f32| ((value * inverse + 8.5) as u8).min(15);
    let (low, high) = values.split_at(BLOCK / 2);
    out.extend(low.iter().zip(high).map(|(a, b)| code(*a) | code(*b) << 4));
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_zero_gives_a_block_of_zeros_its_sign() {
        let mut block = [0.0; BLOCK];
        let quantized = |block: &[f32; BLOCK]| {
            let mut out = Vec::new();
            q4_0(block, &mut out);
            out
        };
        // What gguf-py writes.
        let codes = [0x88; BLOCK / 2];
        assert_eq!(quantized(&block), [&[0x00, 0x80], &codes[..]].concat());
        block[0] = -0.0;
        assert_eq!(quantized(&block), [&[0x00, 0x00], &codes[..]].concat());
        block.swap(0, 1);
        assert_eq!(quantized(&block), [&[0x00, 0x80], &codes[..]].concat());
    }
}
