//! The value of what is not stored, as the bytes of an element.

use bytes::Bytes;

use super::json::wrong;
use crate::error::{Error, Result};
use crate::model::{DType, Endian, Lanes, Scalar, Value};
use crate::prelude::*;
use crate::transform::number_bytes;

/// An element in the order that stored ones have; elements of less than a byte take one. `null`, which version 2 has, says
/// that it does not matter: zeros.
pub(super) fn fill(value: &Value, dtype: DType, endian: Endian) -> Result<Bytes> {
    let DType::Number(scalar, lanes) = dtype else {
        return Ok(Bytes::new());
    };
    let mut bytes = match (lanes, value) {
        (_, Value::Null) => return Ok(Bytes::new()),
        (Lanes::Real, value) => number(value, scalar)?,
        (_, value @ Value::List(list)) => {
            if list.len() as u64 != u64::from(lanes.count()) {
                return Err(wrong("fill_value", "a real and an imaginary part", value));
            }
            let parts = list.iter().map(|part| number(&part, scalar));
            parts.collect::<Result<Vec<_>>>()?.concat()
        }
        // Zero without an imaginary part.
        (_, value) => {
            let mut bytes = number(value, scalar)?;
            bytes.resize(bytes.len() * 2, 0);
            bytes
        }
    };
    if endian == Endian::Big {
        for number in bytes.chunks_exact_mut(dtype.swap_width()) {
            number.reverse();
        }
    }
    // Zeros need no memory of their own.
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(Bytes::new());
    }
    Ok(bytes.into())
}

/// Little-endian.
fn number(value: &Value, scalar: Scalar) -> Result<Vec<u8>> {
    let refused = || {
        let message = format!(
            "fill_value {} is no {}",
            value.in_words(),
            DType::Number(scalar, Lanes::Real)
        );
        Error::malformed("zarr.fill", message)
    };
    if let Some(bits) = bits(value, scalar) {
        return Ok(bits);
    }
    if scalar == Scalar::Bool {
        return match (value, value.as_u64()) {
            (Value::Bool(value), _) => Ok(vec![u8::from(*value)]),
            (_, Some(number @ 0..=1)) => Ok(vec![u8::from(number == 1)]),
            _ => Err(refused()),
        };
    }
    if scalar.is_float() {
        let number = match value {
            Value::Str(word) => match word.as_str() {
                "NaN" => Some(f64::NAN),
                "Infinity" => Some(f64::INFINITY),
                "-Infinity" => Some(f64::NEG_INFINITY),
                _ => None,
            },
            Value::Integer(digits) => digits.parse().ok(),
            value => value.as_f64(),
        };
        return Ok(number_bytes(scalar, number.ok_or_else(refused)?));
    }
    integer(value, scalar).ok_or_else(refused)
}

/// A whole number, which may be written with a point.
fn integer(value: &Value, scalar: Scalar) -> Option<Vec<u8>> {
    let whole: i128 = match value {
        Value::I64(_) | Value::U64(_) => match (value.as_i64(), value.as_u64()) {
            (Some(number), _) => number.into(),
            (_, Some(number)) => number.into(),
            _ => return None,
        },
        Value::F64(number) => {
            // Exact up to 2^53, and nobody writes longer ones so.
            const MOST: f64 = 9_007_199_254_740_992.0;
            if number.abs() > MOST {
                return None;
            }
            let whole: i128 = format!("{number:.0}").parse().ok()?;
            let back: f64 = format!("{whole}").parse().ok()?;
            (back.to_bits() == number.abs().copysign(back).to_bits()).then_some(whole)?
        }
        _ => return None,
    };
    let bits = scalar.bits();
    let (least, most) = if scalar.is_signed_integer() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    if bits > 64 || whole < least || whole > most {
        return None;
    }
    let mut bytes = whole.to_le_bytes().to_vec();
    bytes.truncate(width(scalar));
    Some(bytes)
}

/// `0x` and the bits, the highest first.
fn bits(value: &Value, scalar: Scalar) -> Option<Vec<u8>> {
    let Value::Str(text) = value else {
        return None;
    };
    let digits = text.strip_prefix("0x")?;
    let width = width(scalar);
    let is_whole = digits.len() == width * 2 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let number = u128::from_str_radix(digits, 16).ok().filter(|_| is_whole)?;
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.truncate(width);
    Some(bytes)
}

/// Bytes of a number as it is stored here.
fn width(scalar: Scalar) -> usize {
    usize::try_from(scalar.bits().div_ceil(8)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: Value, dtype: DType) -> Option<Vec<u8>> {
        fill(&value, dtype, Endian::Little)
            .ok()
            .map(|bytes| bytes.to_vec())
    }

    #[test]
    fn every_form_of_a_number_is_an_element() {
        let text = |text: &str| Value::Str(text.to_owned());
        let nan = f64::NAN.to_le_bytes().to_vec();
        assert_eq!(of(text("NaN"), DType::F64), Some(nan));
        assert_eq!(
            of(text("0x7fc00001"), DType::F32),
            Some(vec![1, 0, 0xc0, 0x7f])
        );
        assert_eq!(of(Value::F64(1.0), DType::BF16), Some(vec![0x80, 0x3f]));
        assert_eq!(of(Value::I64(-2), DType::I16), Some(vec![0xfe, 0xff]));
        assert_eq!(of(Value::U64(u64::MAX), DType::U64), Some(vec![0xff; 8]));
        assert_eq!(of(Value::F64(3.0), DType::I8), Some(vec![3]));
        assert_eq!(of(Value::Bool(true), DType::BOOL), Some(vec![1]));
        assert_eq!(of(Value::Null, DType::F32), Some(vec![]));
        assert_eq!(of(Value::F64(-0.0), DType::F32), Some(vec![0, 0, 0, 0x80]));
        let pair = Value::List(vec![Value::F64(1.0), text("-Infinity")].into());
        let expected = [1f32, f32::NEG_INFINITY].map(f32::to_le_bytes).concat();
        assert_eq!(of(pair, DType::C64), Some(expected));
        let big = fill(&Value::I64(7), DType::I32, Endian::Big).unwrap();
        assert_eq!(big, &[0, 0, 0, 7][..]);
    }

    #[test]
    fn what_is_no_number_of_the_type_is_refused() {
        let text = |text: &str| Value::Str(text.to_owned());
        for (value, dtype) in [
            (text("many"), DType::F32),
            (text("0x7fc0"), DType::F32),
            (Value::I64(256), DType::U8),
            (Value::I64(-1), DType::U64),
            (Value::F64(0.5), DType::I32),
            (Value::I64(2), DType::BOOL),
            (Value::List(vec![Value::I64(1)].into()), DType::C64),
        ] {
            let error = fill(&value, dtype, Endian::Little).unwrap_err();
            assert!(
                ["zarr.fill", "zarr.json"].contains(&error.rule()),
                "{error}"
            );
        }
    }
}
