//! The order of the bytes of a number.

/// Reverses the bytes of every number of `width` bytes. Bytes at the end that make no whole number stay.
pub(super) fn swap(bytes: &mut [u8], width: usize) {
    // A fixed width lets the compiler use the processor's byte shuffles.
    match width {
        2 => swap_fixed::<2>(bytes),
        4 => swap_fixed::<4>(bytes),
        8 => swap_fixed::<8>(bytes),
        16 => swap_fixed::<16>(bytes),
        _ => bytes
            .chunks_exact_mut(width.max(1))
            .for_each(<[u8]>::reverse),
    }
}

fn swap_fixed<const WIDTH: usize>(bytes: &mut [u8]) {
    for number in bytes.as_chunks_mut::<WIDTH>().0 {
        number.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::swap;
    use crate::prelude::*;

    #[test]
    fn every_width_is_reversed_number_by_number() {
        for width in [1, 2, 3, 4, 8, 16] {
            let original: Vec<u8> = (0..96).collect();
            let mut swapped = original.clone();
            swap(&mut swapped, width);
            for (number, reversed) in original.chunks(width).zip(swapped.chunks(width)) {
                assert!(number.iter().rev().eq(reversed), "width {width}");
            }
        }
    }
}
