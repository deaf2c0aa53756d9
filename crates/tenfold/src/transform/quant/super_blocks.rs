//! Types with blocks of 256 values and scales for parts of them.

use super::{NONLINEAR, half, u16_at, u32_at};

/// Two bits of each of 64 bytes at a time: 32 values from the lowest bits of the first 32 bytes, and so on. `value`
/// gets the place of the value, the byte's place and the two bits.
#[inline]
fn two_bits(qs: &[u8], out: &mut [f32; 256], value: impl Fn(usize, usize, u8) -> f32) {
    for (n, out) in out.chunks_exact_mut(32).enumerate() {
        let (high, shift) = (n / 4 * 32, 2 * (n % 4));
        for (l, out) in out.iter_mut().enumerate() {
            *out = value(32 * n + l, high + l, qs[high + l] >> shift & 3);
        }
    }
}

pub(super) fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let (d, m) = (half(block, 80), half(block, 82));
    let scales: [(f32, f32); 16] = core::array::from_fn(|s| {
        let scale = block[s];
        (d * f32::from(scale & 15), m * f32::from(scale >> 4))
    });
    two_bits(&block[16..80], out, |i, _, q| {
        let (scale, min) = scales[i / 16];
        scale * f32::from(q) - min
    });
}

pub(super) fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let d = half(block, 108);
    let packed = &block[96..108];
    let scales: [f32; 16] = core::array::from_fn(|s| {
        let low = if s < 8 {
            packed[s] & 15
        } else {
            packed[s - 8] >> 4
        };
        let high = packed[8 + s % 4] >> (2 * (s / 4)) & 3;
        d * f32::from((low | high << 4).cast_signed() - 32)
    });
    two_bits(&block[32..96], out, |i, _, q| {
        let high = block[i % 32] >> (i / 32) & 1;
        scales[i / 16] * f32::from((q | high << 2).cast_signed() - 4)
    });
}

/// The scale and the minimum of each of eight parts, from six bits each.
fn scales_and_mins(packed: &[u8], d: f32, m: f32) -> [(f32, f32); 8] {
    core::array::from_fn(|j| {
        let (scale, min) = if j < 4 {
            (packed[j] & 63, packed[j + 4] & 63)
        } else {
            (
                packed[j + 4] & 15 | packed[j - 4] >> 6 << 4,
                packed[j + 4] >> 4 | packed[j] >> 6 << 4,
            )
        };
        (d * f32::from(scale), m * f32::from(min))
    })
}

pub(super) fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let parts = scales_and_mins(&block[4..16], half(block, 0), half(block, 2));
    let pairs = out.chunks_exact_mut(64).zip(block[16..].chunks_exact(32));
    for ((out, qs), parts) in pairs.zip(parts.chunks_exact(2)) {
        let (low, high) = out.split_at_mut(32);
        let (scale, min) = parts[0];
        for (out, q) in low.iter_mut().zip(qs) {
            *out = scale * f32::from(q & 15) - min;
        }
        let (scale, min) = parts[1];
        for (out, q) in high.iter_mut().zip(qs) {
            *out = scale * f32::from(q >> 4) - min;
        }
    }
}

pub(super) fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let parts = scales_and_mins(&block[4..16], half(block, 0), half(block, 2));
    let high = &block[16..48];
    let qs = &block[48..];
    for (j, out) in out.chunks_exact_mut(32).enumerate() {
        let (scale, min) = parts[j];
        let shift = 4 * (j % 2);
        for (l, out) in out.iter_mut().enumerate() {
            let q = qs[32 * (j / 2) + l] >> shift & 15 | (high[l] >> j & 1) << 4;
            *out = scale * f32::from(q) - min;
        }
    }
}

pub(super) fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let d = half(block, 208);
    let scales: [f32; 16] = core::array::from_fn(|s| d * f32::from(block[192 + s].cast_signed()));
    for (n, out) in out.chunks_exact_mut(32).enumerate() {
        let (high, g) = (n / 4, n % 4);
        let low = &block[64 * high + 32 * (g % 2)..][..32];
        let top = &block[128 + 32 * high..][..32];
        let shift = 4 * (g / 2);
        for (l, out) in out.iter_mut().enumerate() {
            let q = low[l] >> shift & 15 | (top[l] >> (2 * g) & 3) << 4;
            *out = scales[2 * n + l / 16] * f32::from(q.cast_signed() - 32);
        }
    }
}

pub(super) fn q8_k(block: &[u8; 292], out: &mut [f32; 256]) {
    let d = f32::from_bits(u32_at(block, 0));
    for (out, q) in out.iter_mut().zip(&block[4..]) {
        *out = d * f32::from(q.cast_signed());
    }
}

pub(super) fn iq4_xs(block: &[u8; 136], out: &mut [f32; 256]) {
    let d = half(block, 0);
    let high = u16_at(block, 2);
    for (j, out) in out.chunks_exact_mut(32).enumerate() {
        let low = block[4 + j / 2] >> (4 * (j % 2)) & 15;
        let top = high >> (2 * j) & 3;
        let scale = d * (f32::from(low) + 16.0 * f32::from(top) - 32.0);
        for (l, byte) in block[8 + 16 * j..][..16].iter().enumerate() {
            out[l] = scale * f32::from(NONLINEAR[usize::from(byte & 15)]);
            out[l + 16] = scale * f32::from(NONLINEAR[usize::from(byte >> 4)]);
        }
    }
}

pub(super) fn tq1_0(block: &[u8; 54], out: &mut [f32; 256]) {
    const POWERS: [u8; 5] = [1, 3, 9, 27, 81];
    let d = half(block, 52);
    // A byte holds five digits of base three as a fraction: the next digit is what a product with three carries.
    let digit = |byte: u8, n: usize| {
        let carried = (u16::from(byte.wrapping_mul(POWERS[n])) * 3) >> 8;
        d * (f32::from(carried) - 1.0)
    };
    for (i, out) in out.iter_mut().enumerate() {
        *out = match i {
            0..160 => digit(block[i % 32], i / 32),
            160..240 => digit(block[32 + (i - 160) % 16], (i - 160) / 16),
            _ => digit(block[48 + (i - 240) % 4], (i - 240) / 4),
        };
    }
}

pub(super) fn tq2_0(block: &[u8; 66], out: &mut [f32; 256]) {
    let d = half(block, 64);
    two_bits(&block[..64], out, |_, _, q| {
        d * f32::from(q.cast_signed() - 1)
    });
}
