//! Quantized tensors as numbers: `scale * (q - zero_point)`.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::model::{DType, Decode, Endian, Lanes, Metadata, Scalar, TensorInfo, Value};
use crate::prelude::*;

/// Elements that are decoded together: whole bytes of those below one.
const STEP: u64 = 64;
/// The keys of a tensor's metadata.
const SCALE: &str = "scale";
const ZERO_POINT: &str = "zero_point";
const DIMENSION: &str = "quantized_dimension";

/// How a tensor is quantized.
#[derive(Debug)]
pub(super) struct Quantization {
    /// One for all elements, or one for every index along a dimension.
    pub(super) scale: Vec<f32>,
    /// As many, or none: 0.
    pub(super) zero_point: Vec<i64>,
    pub(super) quantized_dimension: u32,
}

impl Quantization {
    pub(super) fn metadata(&self) -> Metadata {
        let mut metadata = Metadata::new();
        metadata.push(
            SCALE,
            Value::List(self.scale.iter().copied().map(Value::F32).collect()),
        );
        let zeros = self.zero_point.iter().copied().map(Value::I64);
        if !self.zero_point.is_empty() {
            metadata.push(ZERO_POINT, Value::List(zeros.collect()));
        }
        metadata.push(DIMENSION, Value::U32(self.quantized_dimension));
        metadata
    }

    /// Why numbers cannot be made of a tensor with it.
    pub(super) fn fault(&self, shape: &[u64]) -> Option<String> {
        let count = self.scale.len() as u64;
        let axis = usize::try_from(self.quantized_dimension).ok();
        let dim = axis.and_then(|axis| shape.get(axis)).copied();
        if count != 1 && dim != Some(count) {
            return Some(format!(
                "{count} scales for dimension {} of {shape:?}",
                self.quantized_dimension
            ));
        }
        let zeros = self.zero_point.len();
        if zeros > 1 && zeros != self.scale.len() {
            return Some(format!("{count} scales and {zeros} zero points"));
        }
        None
    }
}

/// Whether scales mean something for elements of a type.
pub(super) fn is_integer(dtype: DType) -> bool {
    use Scalar::{I2, I4, I8, I16, I32, I64, U4, U8, U16, U32};
    let DType::Number(scalar, Lanes::Real) = dtype else {
        return false;
    };
    matches!(scalar, I2 | I4 | I8 | I16 | I32 | I64 | U4 | U8 | U16 | U32)
}

impl Decode for Quantization {
    fn dtype(&self) -> DType {
        DType::F32
    }

    fn step(&self) -> u64 {
        STEP
    }

    fn describes(&self) -> &'static [&'static str] {
        &[SCALE, ZERO_POINT, DIMENSION]
    }

    fn decode(
        &self,
        tensor: &TensorInfo,
        read: &dyn Fn(usize, Range<u64>) -> Result<Bytes>,
        elements: Range<u64>,
        out: &mut [u8],
    ) -> Result<()> {
        let wrong = || Error::malformed("tflite.quantization", "a tensor that cannot be decoded");
        let part = tensor.parts.first().ok_or_else(wrong)?;
        let DType::Number(scalar, _) = part.dtype else {
            return Err(wrong());
        };
        debug_assert_eq!(part.endian, Endian::Little);
        let start = part.dtype.bytes_for(elements.start).ok_or_else(wrong)?;
        let end = part.dtype.bytes_for(elements.end).ok_or_else(wrong)?;
        let bytes = read(0, start..end)?;
        let axis = usize::try_from(self.quantized_dimension).unwrap_or(usize::MAX);
        let inner = tensor.shape.iter().skip(axis.saturating_add(1));
        let inner = inner.copied().fold(1, u64::saturating_mul).max(1);
        let dim = tensor.shape.get(axis).copied().unwrap_or(1).max(1);
        let numbers = out.chunks_exact_mut(4).zip(elements.clone());
        for (number, element) in numbers {
            let index = usize::try_from(element / inner % dim).unwrap_or(0);
            let scale = one_of(&self.scale, index).unwrap_or(0.0);
            let zero = one_of(&self.zero_point, index).unwrap_or(0);
            let place = usize::try_from(element - elements.start).unwrap_or(usize::MAX);
            let quantized = stored(scalar, &bytes, place).ok_or_else(wrong)?;
            // As the interpreter computes it.
            #[allow(clippy::cast_precision_loss)]
            let value = scale * quantized.saturating_sub(zero) as f32;
            number.copy_from_slice(&value.to_le_bytes());
        }
        Ok(())
    }
}

/// The entry for an index, or the only one.
fn one_of<T: Copy>(entries: &[T], index: usize) -> Option<T> {
    match entries {
        [only] => Some(*only),
        entries => entries.get(index).copied(),
    }
}

/// An integer of some that were read.
fn stored(scalar: Scalar, bytes: &[u8], place: usize) -> Option<i64> {
    let width = (scalar.bits() / 8) as usize;
    let at = |len: usize| bytes.get(place.checked_mul(len)?..)?.get(..len);
    Some(match scalar {
        Scalar::I2 | Scalar::I4 | Scalar::U4 => {
            let bits = scalar.bits() as usize;
            let each = 8 / bits;
            let byte = *bytes.get(place / each)?;
            let shifted = byte << (8 - bits - place % each * bits);
            if scalar == Scalar::U4 {
                i64::from(shifted >> (8 - bits))
            } else {
                i64::from(shifted.cast_signed() >> (8 - bits))
            }
        }
        Scalar::I8 => i8::from_le_bytes(at(width)?.try_into().ok()?).into(),
        Scalar::U8 => (*at(width)?.first()?).into(),
        Scalar::I16 => i16::from_le_bytes(at(width)?.try_into().ok()?).into(),
        Scalar::U16 => u16::from_le_bytes(at(width)?.try_into().ok()?).into(),
        Scalar::I32 => i32::from_le_bytes(at(width)?.try_into().ok()?).into(),
        Scalar::U32 => u32::from_le_bytes(at(width)?.try_into().ok()?).into(),
        Scalar::I64 => i64::from_le_bytes(at(width)?.try_into().ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may panic

    use super::*;

    #[test]
    fn integers_of_every_width_are_found() {
        let bytes = [0xf1, 0x8e, 0xff, 0x7f, 1, 0, 0, 0x80];
        let of = |scalar, place| stored(scalar, &bytes, place).unwrap();
        assert_eq!([0, 1, 2, 3].map(|n| of(Scalar::I4, n)), [1, -1, -2, -8]);
        assert_eq!([0, 1, 2, 3].map(|n| of(Scalar::U4, n)), [1, 15, 14, 8]);
        assert_eq!([0, 1, 2, 3].map(|n| of(Scalar::I2, n)), [1, 0, -1, -1]);
        assert_eq!((of(Scalar::I8, 1), of(Scalar::U8, 1)), (-114, 142));
        assert_eq!((of(Scalar::I16, 1), of(Scalar::U16, 1)), (32767, 32767));
        assert_eq!(of(Scalar::I32, 1), i64::from(i32::MIN) + 1);
        assert_eq!(stored(Scalar::I64, &bytes, 1), None);
    }
}
