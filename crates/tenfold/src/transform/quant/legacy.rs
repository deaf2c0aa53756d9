//! Types with small blocks and a scale for each.

use super::{NONLINEAR, half, u32_at};

/// The values of four-bit floats, doubled.
const E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// The low halves of 16 bytes, then the high ones.
#[inline]
fn nibbles(bytes: &[u8], out: &mut [f32; 32], value: impl Fn(usize, u8) -> f32) {
    for (i, &byte) in bytes.iter().take(16).enumerate() {
        out[i] = value(i, byte & 15);
        out[i + 16] = value(i + 16, byte >> 4);
    }
}

pub(super) fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = half(block, 0);
    nibbles(&block[2..], out, |_, q| d * f32::from(q.cast_signed() - 8));
}

pub(super) fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (half(block, 0), half(block, 2));
    nibbles(&block[4..], out, |_, q| d * f32::from(q) + m);
}

pub(super) fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let d = half(block, 0);
    let high = u32_at(block, 2);
    nibbles(&block[6..], out, |i, q| {
        d * f32::from(fifth_bit(q, high, i).cast_signed() - 16)
    });
}

pub(super) fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m) = (half(block, 0), half(block, 2));
    let high = u32_at(block, 4);
    nibbles(&block[8..], out, |i, q| {
        d * f32::from(fifth_bit(q, high, i)) + m
    });
}

#[inline]
fn fifth_bit(q: u8, high: u32, i: usize) -> u8 {
    q | (u8::from(high >> i & 1 == 1) << 4)
}

pub(super) fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let d = half(block, 0);
    for (out, q) in out.iter_mut().zip(&block[2..]) {
        *out = f32::from(q.cast_signed()) * d;
    }
}

pub(super) fn q1_0(block: &[u8; 18], out: &mut [f32; 128]) {
    let d = half(block, 0);
    for (out, byte) in out.chunks_exact_mut(8).zip(&block[2..]) {
        for (k, out) in out.iter_mut().enumerate() {
            *out = if byte >> k & 1 == 1 { d } else { -d };
        }
    }
}

pub(super) fn q2_0(block: &[u8; 18], out: &mut [f32; 64]) {
    let d = half(block, 0);
    for (out, byte) in out.chunks_exact_mut(4).zip(&block[2..]) {
        for (k, out) in out.iter_mut().enumerate() {
            *out = d * f32::from((byte >> (2 * k) & 3).cast_signed() - 1);
        }
    }
}

pub(super) fn iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = half(block, 0);
    nibbles(&block[2..], out, |_, q| {
        d * f32::from(NONLINEAR[usize::from(q)])
    });
}

pub(super) fn mxfp4(block: &[u8; 17], out: &mut [f32; 32]) {
    let scale = half_of_power(block[0]);
    nibbles(&block[1..], out, |_, q| {
        scale * f32::from(E2M1[usize::from(q)])
    });
}

/// Half of the power of two that a byte stands for, because the values are doubled.
pub(super) fn half_of_power(e: u8) -> f32 {
    f32::from_bits(match e {
        0 => 0x0020_0000,
        1 => 0x0040_0000,
        e => (u32::from(e) - 1) << 23,
    })
}

pub(super) fn nvfp4(block: &[u8; 36], out: &mut [f32; 64]) {
    for (k, out) in out.chunks_exact_mut(16).enumerate() {
        let scale = half_of_unsigned_e4m3(block[k]);
        for (i, byte) in block[4 + 8 * k..12 + 8 * k].iter().enumerate() {
            out[i] = scale * f32::from(E2M1[usize::from(byte & 15)]);
            out[i + 8] = scale * f32::from(E2M1[usize::from(byte >> 4)]);
        }
    }
}

/// An eight-bit float without a sign, halved because the values are doubled. All numbers in it are exact.
pub(super) fn half_of_unsigned_e4m3(x: u8) -> f32 {
    let (exponent, mantissa) = (x >> 3 & 15, f32::from(x & 7));
    match (x, exponent) {
        (0 | 0x7f, _) => 0.0,
        (_, 0) => mantissa * f32::from_bits((127 - 10) << 23),
        // (1 + m / 8) * 2^(e - 8)
        _ => (8.0 + mantissa) * f32::from_bits((u32::from(exponent) + 127 - 11) << 23),
    }
}
