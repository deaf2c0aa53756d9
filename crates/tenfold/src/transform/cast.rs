//! From one number type to another.
//!
//! Between integers, and from floating-point numbers to integers, the value must be representable: anything else is an
//! error that names it. Into floating-point numbers the nearest value is taken, ties to even.

use half::{bf16, f16};

use crate::error::{Error, Result};
use crate::model::Scalar;
use crate::prelude::*;

/// A number in the widest form of its kind.
#[derive(Clone, Copy)]
enum Wide {
    Float(f64),
    Integer(i128),
}

/// Refuses a pair of types that [`cast`] does not know.
pub(super) fn check(from: Scalar, to: Scalar) -> Result<()> {
    if reader(from).is_none() || writer(to).is_none() {
        return Err(Error::unsupported(
            "cast",
            format!("{} cannot be cast to {}", from.name(), to.name()),
        ));
    }
    Ok(())
}

/// Casts little-endian numbers.
pub(super) fn cast(from: Scalar, to: Scalar, input: &[u8]) -> Result<Vec<u8>> {
    check(from, to)?;
    let (Some(read), Some(write)) = (reader(from), writer(to)) else {
        return Ok(Vec::new());
    };
    let mut output = Vec::new();
    for number in input.chunks_exact((from.bits() / 8).max(1) as usize) {
        let wide = read(number);
        if !write(wide, &mut output) {
            let shown = match wide {
                Wide::Float(value) => format!("{value}"),
                Wide::Integer(value) => format!("{value}"),
            };
            return Err(Error::mismatch(
                "cast",
                format!("{shown} does not fit {}", to.name()),
            ));
        }
    }
    Ok(output)
}

/// Bytes as an array; the caller passes exactly as many.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}

fn reader(scalar: Scalar) -> Option<fn(&[u8]) -> Wide> {
    Some(match scalar {
        Scalar::Bool => |b| Wide::Integer((b != [0]).into()),
        Scalar::U8 => |b| Wide::Integer(u8::from_le_bytes(array(b)).into()),
        Scalar::U16 => |b| Wide::Integer(u16::from_le_bytes(array(b)).into()),
        Scalar::U32 => |b| Wide::Integer(u32::from_le_bytes(array(b)).into()),
        Scalar::U64 => |b| Wide::Integer(u64::from_le_bytes(array(b)).into()),
        Scalar::I8 => |b| Wide::Integer(i8::from_le_bytes(array(b)).into()),
        Scalar::I16 => |b| Wide::Integer(i16::from_le_bytes(array(b)).into()),
        Scalar::I32 => |b| Wide::Integer(i32::from_le_bytes(array(b)).into()),
        Scalar::I64 => |b| Wide::Integer(i64::from_le_bytes(array(b)).into()),
        Scalar::F16 => |b| Wide::Float(f16::from_le_bytes(array(b)).into()),
        Scalar::BF16 => |b| Wide::Float(bf16::from_le_bytes(array(b)).into()),
        Scalar::F32 => |b| Wide::Float(f32::from_le_bytes(array(b)).into()),
        Scalar::F64 => |b| Wide::Float(f64::from_le_bytes(array(b))),
        _ => return None,
    })
}

/// Appends the number; false when it does not fit.
type Write = fn(Wide, &mut Vec<u8>) -> bool;

fn writer(scalar: Scalar) -> Option<Write> {
    Some(match scalar {
        // As with bools in a byte of their own, any integer but 0 is true.
        Scalar::Bool => {
            |wide, out| integer(wide).is_some_and(|value| put(out, [u8::from(value != 0)]))
        }
        Scalar::U8 => {
            |wide, out| fit::<u8>(wide).is_some_and(|value| put(out, value.to_le_bytes()))
        }
        Scalar::U16 => {
            |wide, out| fit::<u16>(wide).is_some_and(|value| put(out, value.to_le_bytes()))
        }
        Scalar::U32 => {
            |wide, out| fit::<u32>(wide).is_some_and(|value| put(out, value.to_le_bytes()))
        }
        Scalar::U64 => {
            |wide, out| fit::<u64>(wide).is_some_and(|value| put(out, value.to_le_bytes()))
        }
        Scalar::I8 => {
            |wide, out| fit::<i8>(wide).is_some_and(|value| put(out, value.to_le_bytes()))
        }
        Scalar::I16 => {
            |wide, out| fit::<i16>(wide).is_some_and(|value| put(out, value.to_le_bytes()))
        }
        Scalar::I32 => {
            |wide, out| fit::<i32>(wide).is_some_and(|value| put(out, value.to_le_bytes()))
        }
        Scalar::I64 => {
            |wide, out| fit::<i64>(wide).is_some_and(|value| put(out, value.to_le_bytes()))
        }
        Scalar::F16 => |wide, out| put(out, f16::from_f64(float(wide)).to_le_bytes()),
        Scalar::BF16 => |wide, out| put(out, bf16::from_f64(float(wide)).to_le_bytes()),
        #[allow(clippy::cast_possible_truncation)] // rounds to the nearest, as wanted
        Scalar::F32 => |wide, out| put(out, (float(wide) as f32).to_le_bytes()),
        Scalar::F64 => |wide, out| put(out, float(wide).to_le_bytes()),
        _ => return None,
    })
}

fn put<const N: usize>(out: &mut Vec<u8>, bytes: [u8; N]) -> bool {
    out.extend_from_slice(&bytes);
    true
}

fn fit<T: TryFrom<i128>>(wide: Wide) -> Option<T> {
    T::try_from(integer(wide)?).ok()
}

fn integer(wide: Wide) -> Option<i128> {
    match wide {
        Wide::Integer(value) => Some(value),
        // Whole and inside of 64 bits, so that the conversion is exact.
        #[allow(clippy::cast_possible_truncation)]
        Wide::Float(value) => {
            (value % 1.0 == 0.0 && (-9.3e18..=1.9e19).contains(&value)).then_some(value as i128)
        }
    }
}

#[allow(clippy::cast_precision_loss)] // rounds to the nearest, as wanted
fn float(wide: Wide) -> f64 {
    match wide {
        Wide::Integer(value) => value as f64,
        Wide::Float(value) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_cast_when_they_fit_and_named_when_not() {
        let wide = cast(Scalar::I32, Scalar::U64, &7i32.to_le_bytes()).unwrap();
        assert_eq!(wide, 7u64.to_le_bytes());
        let error = cast(Scalar::I32, Scalar::U64, &(-1i32).to_le_bytes()).unwrap_err();
        assert!(error.message().contains("-1 does not fit u64"), "{error}");
        assert!(cast(Scalar::U64, Scalar::U32, &(1u64 << 32).to_le_bytes()).is_err());
    }

    #[test]
    fn floating_point_numbers_round_to_the_nearest_even() {
        let half = |value: f32| cast(Scalar::F32, Scalar::F16, &value.to_le_bytes()).unwrap();
        assert_eq!(
            half(1.0 + 1.0 / 2048.0),
            f16::from_bits(0x3c00).to_le_bytes()
        );
        assert_eq!(
            half(1.0 + 3.0 / 2048.0),
            f16::from_bits(0x3c02).to_le_bytes()
        );
        assert!(cast(Scalar::F32, Scalar::I8, &1.5f32.to_le_bytes()).is_err());
        assert!(cast(Scalar::F32, Scalar::I8, &f32::NAN.to_le_bytes()).is_err());
        assert_eq!(
            cast(Scalar::F32, Scalar::I8, &(-3f32).to_le_bytes()).unwrap(),
            (-3i8).to_le_bytes()
        );
    }
}
