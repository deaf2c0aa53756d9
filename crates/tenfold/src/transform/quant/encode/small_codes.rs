//! Codes of one or two bits, and digits of base three.

use super::legacy::{most, round};
use super::search::code;
use super::super_blocks::SUPER;
use super::{inverse, put_half};

/// -1, 0 or 1 as 0, 1 or 2.
fn digits(x: &[f32; SUPER], inverse: f32) -> [u8; SUPER] {
    x.map(|x| code(round(x * inverse) + 1.0))
}

pub(super) fn tq1_0(x: &[f32; SUPER], out: &mut [u8; 54]) {
    let d = most(x);
    let digits = digits(x, inverse(d));
    // A run of bytes holds a digit each of as many numbers, then of the next ones.
    let mut first = 0;
    for (bytes, count) in [(0..32, 5), (32..48, 5), (48..52, 4)] {
        let run = bytes.len();
        for (m, out) in out[bytes].iter_mut().enumerate() {
            *out = packed((0..count).map(|n| digits[first + m + n * run]));
        }
        first += run * count;
    }
    put_half(d, &mut out[52..]);
}

/// Up to five digits as a fraction of 256, rounded up: the next digit is what a product with three carries.
fn packed(digits: impl Iterator<Item = u8>) -> u8 {
    let (mut number, mut place) = (0u16, 81);
    for digit in digits {
        number += u16::from(digit) * place;
        place /= 3;
    }
    // At most 242 * 256 / 243.
    (number * 256).div_ceil(243).to_le_bytes()[0]
}

pub(super) fn tq2_0(x: &[f32; SUPER], out: &mut [u8; 66]) {
    let d = most(x);
    let digits = digits(x, inverse(d));
    for (out, digits) in out.chunks_exact_mut(32).zip(digits.chunks_exact(128)) {
        for (l, out) in out.iter_mut().enumerate() {
            let at = |n: usize| digits[l + 32 * n] << (2 * n);
            *out = at(0) | at(1) | at(2) | at(3);
        }
    }
    put_half(d, &mut out[64..]);
}

#[allow(clippy::cast_precision_loss)] // 128
pub(super) fn q1_0(x: &[f32; 128], out: &mut [u8; 18]) {
    let sum = x.iter().fold(0.0, |sum, x| sum + x.abs());
    put_half(sum / x.len() as f32, out);
    for (out, x) in out[2..].iter_mut().zip(x.chunks_exact(8)) {
        *out = (x.iter().rev()).fold(0, |bits, x| bits << 1 | u8::from(*x >= 0.0));
    }
}

pub(super) fn q2_0(x: &[f32; 64], out: &mut [u8; 18]) {
    let d = most(x);
    let inverse = inverse(d);
    put_half(d, out);
    for (out, x) in out[2..].iter_mut().zip(x.chunks_exact(4)) {
        *out = (x.iter().rev()).fold(0, |bits, x| {
            bits << 2 | code((round(x * inverse) + 1.0).clamp(0.0, 3.0))
        });
    }
}
