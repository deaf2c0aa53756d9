//! Codes of a few bits, each put into a byte of its own.

use crate::prelude::*;

/// Codes along a stream of bits, the lowest first, from bit `skip` of the first byte on.
pub(super) fn along(bytes: &[u8], skip: usize, bits: u32, count: usize, codes: &mut Vec<u8>) {
    match (bits, skip) {
        (8, _) => codes.extend(bytes.iter().take(count)),
        (4, 0 | 4) => {
            let both = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
            codes.extend(both.skip(skip / 4).take(count));
        }
        (2, 0 | 2 | 4 | 6) => {
            let each = |byte: &u8| [byte & 3, byte >> 2 & 3, byte >> 4 & 3, byte >> 6];
            codes.extend(bytes.iter().flat_map(each).skip(skip / 2).take(count));
        }
        _ => {
            let mask = (1u16 << bits) - 1;
            let mut at = skip;
            for _ in 0..count {
                let low = bytes.get(at / 8).copied().unwrap_or(0);
                let high = bytes.get(at / 8 + 1).copied().unwrap_or(0);
                let pair = u16::from_le_bytes([low, high]) >> (at % 8);
                codes.push((pair & mask).to_le_bytes()[0]);
                at += bits as usize;
            }
        }
    }
}

/// Codes of which each word of 32 bits holds as many as are whole in it, from number `skip` of the first word on.
pub(super) fn padded(bytes: &[u8], skip: usize, bits: u32, count: usize, codes: &mut Vec<u8>) {
    let per = 32 / bits;
    let words = bytes.as_chunks::<4>().0.iter();
    let each = words.flat_map(|word| {
        let word = u32::from_le_bytes(*word);
        (0..per).map(move |n| low(word >> (n * bits), bits))
    });
    codes.extend(each.skip(skip).take(count));
}

/// Codes of 4 bits, the first of a byte in its high ones.
pub(super) fn high_first(bytes: &[u8], skip: usize, count: usize, codes: &mut Vec<u8>) {
    let both = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    codes.extend(both.skip(skip).take(count));
}

/// Where AWQ has the eight columns of a word: nibble by column.
const AWQ: [u32; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

/// Codes of 4 bits in AWQ's order.
pub(super) fn interleaved(bytes: &[u8], skip: usize, count: usize, codes: &mut Vec<u8>) {
    let words = bytes.as_chunks::<4>().0.iter();
    let each = words.flat_map(|word| {
        let word = u32::from_le_bytes(*word);
        AWQ.map(|nibble| low(word >> (nibble * 4), 4))
    });
    codes.extend(each.skip(skip).take(count));
}

/// Codes down columns of words of 32 bits, `width` columns beside each other, from bit `skip` of the first row of words on:
/// `height` rows of codes.
pub(super) fn down(
    bytes: &[u8],
    width: usize,
    skip: usize,
    bits: u32,
    height: usize,
    codes: &mut Vec<u8>,
) {
    let words = bytes.as_chunks::<4>().0;
    let row_of = |row: usize| words.get(row * width..(row + 1) * width).unwrap_or(&[]);
    for row in 0..height {
        let at = skip + row * bits as usize;
        let (word, shift) = (at / 32, at % 32);
        let lower = row_of(word).iter().map(|word| u32::from_le_bytes(*word));
        if shift + bits as usize <= 32 {
            codes.extend(lower.map(|word| low(word >> shift, bits)));
        } else {
            let upper = row_of(word + 1).iter();
            let upper = upper.map(|word| u32::from_le_bytes(*word) << (32 - shift));
            codes.extend(lower.zip(upper).map(|(a, b)| low(a >> shift | b, bits)));
        }
    }
}

/// The same where each word holds as many codes as are whole in it, from number `skip` of the first row of words on.
pub(super) fn padded_down(
    bytes: &[u8],
    width: usize,
    skip: usize,
    bits: u32,
    height: usize,
    codes: &mut Vec<u8>,
) {
    let words = bytes.as_chunks::<4>().0;
    let rows = words.chunks(width.max(1)).flat_map(|row| {
        let shifts = (0..32 / bits).map(move |n| n * bits);
        shifts.map(move |shift| (row, shift))
    });
    for (row, shift) in rows.skip(skip).take(height) {
        codes.extend(
            row.iter()
                .map(|word| low(u32::from_le_bytes(*word) >> shift, bits)),
        );
    }
}

/// The same field of every word of `width` bytes.
pub(super) fn fields(bytes: &[u8], width: usize, shift: u32, bits: u32, codes: &mut Vec<u8>) {
    match width {
        1 => codes.extend(
            bytes
                .iter()
                .map(|byte| low(u32::from(*byte) >> shift, bits)),
        ),
        _ => {
            let words = bytes.as_chunks::<4>().0.iter();
            codes.extend(words.map(|word| low(u32::from_le_bytes(*word) >> shift, bits)));
        }
    }
}

/// The lowest bits, 8 at most.
fn low(word: u32, bits: u32) -> u8 {
    (word & ((1 << bits) - 1)).to_le_bytes()[0]
}
