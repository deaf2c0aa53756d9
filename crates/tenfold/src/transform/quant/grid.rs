//! Types whose values come in groups of eight from a code book.

use super::{grids, half, u16_at, u32_at};

/// Seven signs and an eighth that makes their number even.
#[inline]
fn even(signs: u32) -> u8 {
    let [signs, ..] = (signs & 127).to_le_bytes();
    let odd = signs.count_ones() % 2 == 1;
    signs | u8::from(odd) << 7
}

/// A group: a row of the code book times a scale, with a sign for each.
#[inline]
fn group(out: &mut [f32], scale: f32, row: &[i8], signs: u8) {
    for (k, (out, &value)) in out.iter_mut().zip(row).enumerate() {
        let product = scale * f32::from(value);
        *out = if signs >> k & 1 == 1 {
            -product
        } else {
            product
        };
    }
}

/// Two halves of a group.
#[inline]
fn two_rows(out: &mut [f32], scale: f32, rows: [&[i8; 4]; 2], signs: u8) {
    group(&mut out[..4], scale, rows[0], signs);
    group(&mut out[4..], scale, rows[1], signs >> 4);
}

/// Four bits of a byte.
#[inline]
fn nibble(byte: u8, high: bool) -> u8 {
    if high { byte >> 4 } else { byte & 15 }
}

pub(super) fn iq2_xxs(block: &[u8; 66], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (g, out) in out.chunks_exact_mut(8).enumerate() {
        let (entry, p) = (&block[2 + g / 4 * 8..], g % 4);
        let word = u32_at(entry, 4);
        let scale = d * (0.5 + top_bits(word)) * 0.25;
        let row = &grids::IQ2_XXS[usize::from(entry[p])];
        group(out, scale, row, even(word >> (7 * p)));
    }
}

/// The scale in the four highest bits of a word.
#[inline]
fn top_bits(word: u32) -> f32 {
    let [.., top] = word.to_le_bytes();
    f32::from(top >> 4)
}

pub(super) fn iq2_xs(block: &[u8; 74], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (g, out) in out.chunks_exact_mut(8).enumerate() {
        let v = u16_at(block, 2 + 2 * g);
        let s = nibble(block[66 + g / 4], g / 2 % 2 == 1);
        let scale = d * (0.5 + f32::from(s)) * 0.25;
        let row = &grids::IQ2_XS[usize::from(v & 511)];
        group(out, scale, row, even((v >> 9).into()));
    }
}

pub(super) fn iq2_s(block: &[u8; 82], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (g, out) in out.chunks_exact_mut(8).enumerate() {
        let high = block[66 + g / 4] >> (2 * (g % 4)) & 3;
        let s = nibble(block[74 + g / 4], g / 2 % 2 == 1);
        let scale = d * (0.5 + f32::from(s)) * 0.25;
        let row = &grids::IQ2_S[place(block[2 + g], high)];
        group(out, scale, row, block[34 + g]);
    }
}

#[inline]
fn place(low: u8, high: u8) -> usize {
    usize::from(low) | usize::from(high) << 8
}

pub(super) fn iq3_xxs(block: &[u8; 98], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (g, out) in out.chunks_exact_mut(8).enumerate() {
        let word = u32_at(block, 66 + 4 * (g / 4));
        let scale = d * (0.5 + top_bits(word)) * 0.5;
        let row = |e: usize| &grids::IQ3_XXS[usize::from(block[2 + e])];
        let signs = even(word >> (7 * (g % 4)));
        two_rows(out, scale, [row(2 * g), row(2 * g + 1)], signs);
    }
}

pub(super) fn iq3_s(block: &[u8; 110], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (g, out) in out.chunks_exact_mut(8).enumerate() {
        let s = nibble(block[106 + g / 8], g / 4 % 2 == 1);
        let scale = d * (1.0 + 2.0 * f32::from(s));
        let row = |e: usize| {
            let high = block[66 + e / 8] >> (e % 8) & 1;
            &grids::IQ3_S[place(block[2 + e], high)]
        };
        two_rows(out, scale, [row(2 * g), row(2 * g + 1)], block[74 + g]);
    }
}

/// A group of values of -1, 0 and 1, all shifted by an eighth.
#[inline]
fn shifted(out: &mut [f32], scale: f32, row: &[i8; 8], down: bool) {
    let shift = if down { -0.125 } else { 0.125 };
    for (out, &value) in out.iter_mut().zip(row) {
        *out = scale * (f32::from(value) + shift);
    }
}

pub(super) fn iq1_s(block: &[u8; 50], out: &mut [f32; 256]) {
    let d = half(block, 0);
    for (g, out) in out.chunks_exact_mut(8).enumerate() {
        let q = u16_at(block, 34 + 2 * (g / 4));
        let high = usize::from(q >> (3 * (g % 4)) & 7);
        let scale = d * (2.0 * f32::from(q >> 12 & 7) + 1.0);
        let row = &grids::IQ1_S[usize::from(block[2 + g]) | high << 8];
        shifted(out, scale, row, q >> 15 == 1);
    }
}

pub(super) fn iq1_m(block: &[u8; 56], out: &mut [f32; 256]) {
    let scales: [u16; 4] = core::array::from_fn(|i| u16_at(block, 48 + 2 * i));
    // The scale of the block is in the highest bits of the scales of its parts.
    let bits =
        scales[0] >> 12 | scales[1] >> 12 << 4 | scales[2] >> 12 << 8 | scales[3] >> 12 << 12;
    let d = half::f16::from_bits(bits).to_f32();
    for (g, out) in out.chunks_exact_mut(8).enumerate() {
        let x = nibble(block[32 + g / 2], g % 2 == 1);
        let part = g / 2;
        let s = scales[part / 4] >> (3 * (part % 4)) & 7;
        let scale = d * (2.0 * f32::from(s) + 1.0);
        let row = &grids::IQ1_S[place(block[g], x & 7)];
        shifted(out, scale, row, x & 8 != 0);
    }
}
