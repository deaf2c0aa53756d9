//! Other types for the elements of tensors.

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::format::{Effect, Loss, Lost};
use crate::model::{DType, Layout, Manifest, Scalar, TensorInfo};
use crate::prelude::*;
use crate::transform::{self, check_cast};

/// The same tensors with elements of other types: `to` says which, tensor by tensor, and `None` leaves one as it is.
///
/// Nothing is computed yet: numbers are turned into others while they are read, each from its exact value to the
/// nearest of the other type, ties to even. What is beyond its range becomes an infinity, NaN where there is none, and
/// the greatest or least number where there is neither; NaN becomes 0 as an integer.
/// [`Report::casts`](crate::ops::Report::casts) counts these. Any number but 0 is true. Elements may get more numbers,
/// which are 0, but not fewer: complex numbers cannot be made real. Of sparse and packed tensors the stored elements
/// are cast, and what is written is what the cast of the dense tensor is: where it would not be, as for negated
/// integers that get a narrower type, the tensor is written densely. Only tensors whose parts have a meaning of their
/// own, without a decoder, cannot be cast; and what is already cast to a type that does not hold every value of the
/// first has to be written before it is cast again.
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
    archive.try_change(|tensor| {
        let Some(dtype) = to(tensor).filter(|&dtype| dtype != tensor.dtype) else {
            return Ok(None);
        };
        check(tensor, dtype).map_err(|error| error.in_tensor(&tensor.name))?;
        let mut cast = tensor.clone();
        cast.dtype = dtype;
        Ok(Some(cast))
    })
}

fn check(tensor: &TensorInfo, to: DType) -> Result<()> {
    tensor.readable()?;
    // Numbers are made from those that are stored: what the first cast loses would come back.
    if let Some(from) = before_cast(tensor).filter(|&from| !is_exact(from, tensor.dtype)) {
        let message = format!(
            "it is already being cast from {from} to {}; write that first",
            tensor.dtype
        );
        return Err(Error::unsupported("cast", message));
    }
    // What is decoded becomes numbers of the decoder's type first.
    if let (Layout::Decoded, Some(decoder)) = (&tensor.layout, &tensor.decoder) {
        return check_cast(decoder.dtype(), to);
    }
    if matches!(tensor.layout, Layout::Decoded | Layout::Opaque { .. }) {
        let message = format!(
            "its layout is {}; tenfold cannot read its parts as numbers",
            tensor.layout.name()
        );
        return Err(Error::unsupported("cast", message));
    }
    check_cast(tensor.stored_dtype(), to)
}

/// Whether every value of one type is a value of the other.
pub fn is_exact(from: DType, to: DType) -> bool {
    let (DType::Number(number, lanes), DType::Number(other, more)) = (from, to) else {
        return from == to;
    };
    let has_zero = lanes == more || transform::is_exact(Scalar::U1, other);
    lanes <= more && has_zero && transform::is_exact(number, other)
}

/// Which casts of the tensors of a description change values.
pub(super) fn cast_losses(what: &Manifest) -> Vec<Loss> {
    let mut pairs: Vec<(DType, DType, Vec<&str>)> = Vec::new();
    for tensor in &what.tensors {
        let Some(from) = before_cast(tensor).filter(|&from| !is_exact(from, tensor.dtype)) else {
            continue;
        };
        let pair = (from, tensor.dtype);
        match pairs.iter_mut().find(|(from, to, _)| (*from, *to) == pair) {
            Some((.., names)) => names.push(&tensor.name),
            None => pairs.push((pair.0, pair.1, vec![&tensor.name])),
        }
    }
    let loss = |(from, to, names): (DType, DType, Vec<&str>)| {
        let tensor = match names.as_slice() {
            [only] => Some((*only).to_owned()),
            _ => None,
        };
        let tensors = names.len();
        let what = Lost::Values { from, to, tensors };
        Loss::new(tensor, what, "values may change", Effect::Changed)
    };
    pairs.into_iter().map(loss).collect()
}

/// The type of the numbers that a tensor's are made from, where that is another one.
pub(super) fn before_cast(tensor: &TensorInfo) -> Option<DType> {
    let from = match (&tensor.layout, &tensor.decoder) {
        // Numbers as blocks: the blocks come from the numbers that are stored.
        (Layout::Decoded, Some(decoder)) if matches!(decoder.dtype(), DType::Block(_)) => {
            tensor.parts.first()?.dtype
        }
        (Layout::Decoded, Some(decoder)) => decoder.dtype(),
        (Layout::Decoded | Layout::Opaque { .. }, _) => return None,
        _ => tensor.stored_dtype(),
    };
    // True and false in words of 32 bits are no other numbers.
    let is_bool = (from, tensor.dtype) == (DType::U32, DType::BOOL);
    (from != tensor.dtype && !is_bool).then_some(from)
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
            ("f32", "c64"),
            ("i64", "f128"),
            ("f4_e2m1", "f6_e2m3"),
            ("f6_e3m2", "f8_e4m3"),
            ("f8_e8m0", "bf16"),
            ("u4", "i8"),
            ("u1", "bool"),
            ("bool", "f4_e2m1"),
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
            ("c64", "f32"),
            ("i128", "f128"),
            ("f8_e8m0", "f16"),
            ("f8_e5m2", "f8_e4m3"),
            ("f8_e4m3", "f8_e4m3fnuz"),
            ("bool", "f8_e8m0"),
            ("f32", "bool"),
        ] {
            assert!(!exact(from, to), "{from} {to}");
        }
    }

    #[test]
    fn a_cast_rounds_and_takes_the_nearest_that_there_is() {
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
        assert_eq!(unsigned.tensor("n").unwrap().canonical().unwrap()[..], [0]);
        assert_eq!(unsigned.tensor("x").unwrap().info().dtype, DType::F64);
        let complex = cast(&archive, |_| Some(DType::C64)).unwrap();
        let pair = [(-1f32).to_le_bytes(), 0f32.to_le_bytes()].concat();
        assert_eq!(complex.tensor("n").unwrap().canonical().unwrap(), pair);
        // As two casts, and not as if the first had not been.
        let error = cast(&narrow, |_| Some(DType::F64)).map(drop).unwrap_err();
        assert_eq!(error.rule(), "file.cast");
        let wide = cast(&archive, |tensor| {
            (tensor.name == "n").then_some(DType::F64)
        });
        let both = cast(&wide.unwrap(), |_| Some(DType::F16)).unwrap();
        assert_eq!(
            both.tensor("n").unwrap().canonical().unwrap()[..],
            [0x00, 0xbc]
        );
        let block = DType::from_name("gguf:Q8_0");
        let error = cast(&archive, |_| block).map(drop).unwrap_err();
        assert_eq!(error.rule(), "file.cast");
    }
}
