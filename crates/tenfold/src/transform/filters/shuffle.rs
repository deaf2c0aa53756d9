//! Bytes of equal significance together.

use bytes::Bytes;

use crate::prelude::*;

/// Puts the bytes of elements of `width` bytes together again. What is left behind the last whole one stays as it is.
pub(super) fn undo(bytes: Bytes, width: usize) -> Bytes {
    let count = bytes.len().checked_div(width).unwrap_or(0);
    if width < 2 || count < 2 {
        return bytes;
    }
    let mut out = vec![0; bytes.len()];
    undo_into(&bytes, &mut out, width);
    out.into()
}

/// The same for memory of the same length.
pub(super) fn undo_into(bytes: &[u8], out: &mut [u8], width: usize) {
    let count = bytes.len().checked_div(width).unwrap_or(0);
    if width < 2 || count < 2 {
        out.copy_from_slice(bytes);
        return;
    }
    match width {
        2 => gather::<2>(bytes, out, count),
        4 => gather::<4>(bytes, out, count),
        8 => gather::<8>(bytes, out, count),
        16 => gather::<16>(bytes, out, count),
        _ => {
            for (place, plane) in bytes.chunks_exact(count).take(width).enumerate() {
                for (element, byte) in out.chunks_exact_mut(width).zip(plane) {
                    element[place] = *byte;
                }
            }
        }
    }
    let whole = count * width;
    out[whole..].copy_from_slice(&bytes[whole..]);
}

/// The same for a width that the compiler knows, element by element.
fn gather<const WIDTH: usize>(bytes: &[u8], out: &mut [u8], count: usize) {
    let planes: [&[u8]; WIDTH] = core::array::from_fn(|n| &bytes[n * count..(n + 1) * count]);
    for (n, element) in out.as_chunks_mut::<WIDTH>().0.iter_mut().enumerate() {
        *element = core::array::from_fn(|byte| planes[byte][n]);
    }
}

/// Takes elements apart.
pub(super) fn apply(bytes: &[u8], width: usize) -> Vec<u8> {
    let count = bytes.len().checked_div(width).unwrap_or(0);
    if width < 2 || count < 2 {
        return bytes.to_vec();
    }
    let mut out = Vec::with_capacity(bytes.len());
    let (whole, rest) = bytes.split_at(count * width);
    for place in 0..width {
        out.extend(whole.chunks_exact(width).map(|element| element[place]));
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_together_again_and_a_rest_stays() {
        let mixed = Bytes::from_static(b"ACEGBDFHx");
        assert_eq!(undo(mixed, 2), &b"ABCDEFGHx"[..]);
        let mixed = Bytes::from_static(b"adbecfgh");
        assert_eq!(undo(mixed, 3), &b"abcdefgh"[..]);
    }

    #[test]
    fn every_width_comes_back() {
        let bytes: Vec<u8> = (0..=250).collect();
        for width in [0, 1, 2, 3, 4, 7, 8, 16, 32, 250, 300] {
            let mixed = apply(&bytes, width);
            assert_eq!(undo(mixed.into(), width), bytes, "{width}");
        }
    }
}
