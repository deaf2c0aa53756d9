//! Shapes: how many elements they have, and how `spec-1` holds them without a rank.

use crate::error::{Error, Result};
use crate::model::DType;
use crate::prelude::*;

/// The elements of a shape; `None` when a size, their product or the strides do not fit a signed number.
pub(super) fn elements(shape: &[u64]) -> Option<u64> {
    const MAX: u64 = i64::MAX as u64;
    // The sizes beside a 0 must fit too: strides are made of them.
    let nonzero = shape.iter().filter(|&&size| size > 0);
    let product = nonzero.copied().try_fold(1, u64::checked_mul)?;
    if product > MAX {
        None
    } else if shape.contains(&0) {
        Some(0)
    } else {
        Some(product)
    }
}

/// The bytes of a tensor of this shape, or the refusal of one that has too many.
#[cfg(feature = "mag")]
pub(super) fn bytes(shape: &[u64], dtype: DType) -> Result<u64> {
    elements(shape)
        .and_then(|elements| dtype.bytes_for(elements))
        .ok_or_else(|| overflow(shape))
}

/// The six slots of a record of `spec-1`: the sizes, then zeros.
///
/// Filling up with 1, as magnetron did in memory, would lose sizes of 1 at the end.
pub(super) fn to_slots(shape: &[u64]) -> Option<[i64; 6]> {
    let mut slots = [0; 6];
    if shape.len() > slots.len() {
        return None;
    }
    for (slot, &size) in slots.iter_mut().zip(shape) {
        *slot = size.try_into().ok()?;
    }
    Some(slots)
}

/// The shape that six slots and a length mean.
pub(super) fn from_slots(slots: &[i64; 6], dtype: DType, data_length: u64) -> Result<Vec<u64>> {
    let width = dtype.width().unwrap_or(1) as u64;
    let mut sizes = Vec::new();
    for &slot in slots {
        let negative = |_| Error::malformed("mag.shape", format!("negative size in {slots:?}"));
        sizes.push(u64::try_from(slot).map_err(negative)?);
    }
    let filled_with_zeros = sizes.last() == Some(&0);
    let used = if filled_with_zeros {
        sizes
            .iter()
            .rposition(|&size| size > 0)
            .map_or(0, |last| last + 1)
    } else {
        // All six are used, or they are filled up with 1, after a size of 0 too; a shape of ones alone keeps one.
        sizes
            .iter()
            .rposition(|&size| size != 1)
            .map_or(1, |last| last + 1)
    };
    sizes.truncate(used);
    if data_length == 0 && filled_with_zeros && !sizes.contains(&0) {
        sizes.push(0);
    }
    let elements = elements(&sizes).ok_or_else(|| overflow(&sizes))?;
    let expected = elements
        .checked_mul(width)
        .ok_or_else(|| overflow(&sizes))?;
    if expected != data_length {
        let message = format!(
            "data_length is {data_length}, shape {sizes:?} of {dtype} has {expected} bytes"
        );
        return Err(Error::malformed("mag.length", message));
    }
    Ok(sizes)
}

/// Whether a shape comes back from its slots.
pub(super) fn reads_back(shape: &[u64]) -> bool {
    // The type does not matter; bytes keep the length small.
    let length = elements(shape);
    let slots = to_slots(shape);
    match (slots, length) {
        (Some(slots), Some(length)) => {
            from_slots(&slots, DType::U8, length).is_ok_and(|back| back == shape)
        }
        _ => false,
    }
}

fn overflow(shape: &[u64]) -> Error {
    let message = format!("shape {shape:?} has more elements or bytes than 64 bits can count");
    Error::malformed("mag.overflow", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_mean_what_the_fact_sheet_says() {
        let shape = |slots: [i64; 6], elements: u64| from_slots(&slots, DType::F32, elements * 4);
        let cases: [([i64; 6], u64, &[u64]); 16] = [
            ([2, 3, 0, 0, 0, 0], 6, &[2, 3]),
            ([2, 3, 1, 1, 1, 1], 6, &[2, 3]),
            ([6, 3, 1, 1, 0, 0], 18, &[6, 3, 1, 1]),
            ([0, 0, 0, 0, 0, 0], 1, &[]),
            ([0, 0, 0, 0, 0, 0], 0, &[0]),
            ([4, 0, 0, 0, 0, 0], 0, &[4, 0]),
            ([2, 0, 5, 0, 0, 0], 0, &[2, 0, 5]),
            ([1, 1, 1, 1, 1, 1], 1, &[1]),
            ([1, 0, 0, 0, 0, 0], 1, &[1]),
            ([2, 1, 1, 1, 1, 3], 6, &[2, 1, 1, 1, 1, 3]),
            ([0, 3, 0, 0, 0, 0], 0, &[0, 3]),
            ([0, 0, 0, 0, 0, 2], 0, &[0, 0, 0, 0, 0, 2]),
            ([0, 1, 1, 1, 1, 1], 0, &[0]),
            ([2, 0, 3, 1, 1, 1], 0, &[2, 0, 3]),
            ([0, 0, 0, 0, 0, 1], 0, &[0, 0, 0, 0, 0]),
            ([0, 1, 1, 0, 0, 0], 0, &[0, 1, 1]),
        ];
        for (slots, elements, expected) in cases {
            assert_eq!(shape(slots, elements).unwrap(), expected, "{slots:?}");
        }
        let refused = |slots, elements| shape(slots, elements).unwrap_err().rule().to_owned();
        assert_eq!(refused([2, 0, 3, 0, 0, 0], 6), "mag.length");
        assert_eq!(refused([2, 3, 0, 0, 0, 0], 5), "mag.length");
        assert_eq!(refused([2, 0, 3, 1, 1, 1], 6), "mag.length");
        assert_eq!(refused([2, 3, 1, 1, 1, 1], 0), "mag.length");
        assert_eq!(refused([0, 0, 0, 0, 0, 0], 2), "mag.length");
        assert_eq!(refused([-2, -3, 0, 0, 0, 0], 6), "mag.shape");
        assert_eq!(refused([1 << 32, 1 << 32, 0, 0, 0, 0], 1), "mag.overflow");
        assert_eq!(refused([1 << 62, 4, 0, 0, 0, 0], 0), "mag.overflow");
    }

    #[test]
    fn a_length_that_is_no_whole_number_of_elements_is_refused() {
        let error = from_slots(&[2, 0, 0, 0, 0, 0], DType::F32, 9).unwrap_err();
        assert_eq!(error.rule(), "mag.length");
    }

    #[test]
    fn shapes_that_do_not_come_back_are_known() {
        for shape in [
            &[][..],
            &[1],
            &[6, 3, 1, 1],
            &[0],
            &[4, 0],
            &[2, 0, 5],
            &[0, 3],
            &[1, 2, 3, 4, 5, 6],
        ] {
            assert!(reads_back(shape), "{shape:?}");
        }
        for shape in [
            &[3, 0, 0][..],
            &[0, 3, 0],
            &[2, 2, 2, 2, 2, 1],
            &[1; 6],
            &[1; 7],
            &[2, 0, 3, 1, 1, 1],
            &[0, 0],
            &[1 << 63],
        ] {
            assert!(!reads_back(shape), "{shape:?}");
        }
    }
}
