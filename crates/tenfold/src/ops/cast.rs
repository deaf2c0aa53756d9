//! Other types for the elements of tensors.

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::model::{DType, Layout, Scalar, TensorInfo};
use crate::prelude::*;
use crate::transform::check_cast;

/// The same tensors with elements of other types: `to` says which, tensor by tensor, and `None` leaves one as it is.
///
/// Nothing is computed yet: numbers are turned into others while they are read. Floating-point numbers take the nearest
/// value; a number that an integer type cannot hold is an error then. Only dense tensors of numbers can be cast.
///
/// ```
/// use tenfold::{ArchiveBuilder, Bytes, model::DType, ops};
/// let mut builder = ArchiveBuilder::new();
/// builder.push("bias", DType::U8, &[2], Bytes::from_static(&[1, 2]))?;
/// let cast = ops::cast(&builder.finish(), |_| Some(DType::F32))?;
/// assert_eq!(cast.tensor("bias")?.typed::<f32>()?.to_vec(), [1.0, 2.0]);
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn cast(archive: &Archive, to: impl Fn(&TensorInfo) -> Option<DType>) -> Result<Archive> {
    let mut manifest = archive.manifest().clone();
    for tensor in &mut manifest.tensors {
        if let Some(dtype) = to(tensor).filter(|&dtype| dtype != tensor.dtype) {
            check(tensor, dtype).map_err(|error| error.in_tensor(&tensor.name))?;
            tensor.dtype = dtype;
        }
    }
    Ok(archive.with_manifest(manifest))
}

fn check(tensor: &TensorInfo, to: DType) -> Result<()> {
    tensor.readable()?;
    // What is decoded becomes numbers of the decoder's type first.
    if let (Layout::Decoded, Some(decoder)) = (&tensor.layout, &tensor.decoder) {
        return check_cast(decoder.dtype(), to);
    }
    if !tensor.layout.is_dense() {
        let message = format!(
            "its layout is {}, and only dense tensors can be cast",
            tensor.layout.name()
        );
        return Err(Error::unsupported("cast", message));
    }
    tensor
        .parts
        .iter()
        .try_for_each(|part| check_cast(part.dtype, to))
}

/// Whether every value of one type is a value of the other.
pub fn is_exact(from: DType, to: DType) -> bool {
    let (DType::Number(from, lanes), DType::Number(to, to_lanes)) = (from, to) else {
        return from == to;
    };
    lanes == to_lanes && (from == to || fits(from, to))
}

fn fits(from: Scalar, to: Scalar) -> bool {
    match (integer(from), integer(to), float(from), float(to)) {
        (Some((signed, bits)), Some((to_signed, to_bits)), ..) => {
            // A sign takes a bit of its own.
            to_bits >= bits + u32::from(to_signed && !signed) && (to_signed || !signed)
        }
        (Some((_, bits)), _, _, Some((digits, exponent))) => bits <= digits && bits <= exponent,
        (_, _, Some((digits, exponent)), Some((to_digits, to_exponent))) => {
            digits <= to_digits && exponent <= to_exponent
        }
        _ => false,
    }
}

/// Whether there is a sign, and the bits with it.
fn integer(scalar: Scalar) -> Option<(bool, u32)> {
    Some(match scalar {
        Scalar::Bool => (false, 1),
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => (false, scalar.bits()),
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => (true, scalar.bits()),
        _ => return None,
    })
}

/// Binary digits, and the largest exponent.
fn float(scalar: Scalar) -> Option<(u32, u32)> {
    Some(match scalar {
        Scalar::F16 => (11, 15),
        Scalar::BF16 => (8, 127),
        Scalar::F32 => (24, 127),
        Scalar::F64 => (53, 1023),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArchiveBuilder, Bytes};

    #[test]
    fn what_is_exact_needs_room_for_every_value() {
        let exact = |from, to| {
            let dtype = |name| DType::from_name(name).unwrap();
            is_exact(dtype(from), dtype(to))
        };
        for (from, to) in [
            ("f16", "f32"),
            ("bf16", "f32"),
            ("f32", "f64"),
            ("u8", "f16"),
            ("i16", "f32"),
            ("i32", "f64"),
            ("u8", "i16"),
            ("bool", "u8"),
            ("i8", "i8"),
            ("c64", "c128"),
        ] {
            assert!(exact(from, to), "{from} {to}");
        }
        for (from, to) in [
            ("f64", "f32"),
            ("f16", "bf16"),
            ("bf16", "f16"),
            ("i32", "f32"),
            ("u16", "f16"),
            ("u8", "i8"),
            ("i8", "u16"),
            ("f32", "i64"),
            ("f32", "c64"),
        ] {
            assert!(!exact(from, to), "{from} {to}");
        }
    }

    #[test]
    fn a_cast_rounds_and_refuses_what_does_not_fit() {
        let mut builder = ArchiveBuilder::new();
        let numbers: Vec<u8> = [0.1f64, -1e300, 3.0]
            .into_iter()
            .flat_map(f64::to_le_bytes)
            .collect();
        builder
            .push("x", DType::F64, &[3], Bytes::from(numbers))
            .unwrap();
        builder
            .push("n", DType::I32, &[1], Bytes::from_static(&[0xff; 4]))
            .unwrap();
        let archive = builder.finish();
        let narrow = cast(&archive, |_| Some(DType::F32)).unwrap();
        let values = narrow.tensor("x").unwrap().typed::<f32>().unwrap();
        assert_eq!(values.to_vec(), [0.1, f32::NEG_INFINITY, 3.0]);
        assert_eq!(
            narrow.tensor("n").unwrap().typed::<f32>().unwrap().to_vec(),
            [-1.0]
        );
        let unsigned = cast(&archive, |tensor| (tensor.name == "n").then_some(DType::U8)).unwrap();
        let error = unsigned.tensor("n").unwrap().canonical().unwrap_err();
        assert!(error.message().contains("-1 does not fit u8"), "{error}");
        assert_eq!(unsigned.tensor("x").unwrap().info().dtype, DType::F64);
        let error = cast(&archive, |_| Some(DType::C64)).map(drop).unwrap_err();
        assert_eq!(error.rule(), "file.cast");
    }
}
