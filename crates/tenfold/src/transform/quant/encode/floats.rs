//! Floating-point numbers of four bits with a scale that is one of eight.

use super::legacy::{SMALL, most};
use crate::transform::quant::legacy::{half_of_power, half_of_unsigned_e4m3};

/// Between the magnitudes of four-bit numbers, doubled as they are: a number halfway is the smaller one.
const MIDDLES: [f32; 7] = [0.5, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0];

/// The nearest of the sixteen numbers. There is one zero.
#[inline(always)]
fn nearest(x: f32, middles: &[f32; 7]) -> u8 {
    let magnitude = x.abs();
    let above = middles.map(|middle| u8::from(magnitude > middle));
    let code: u8 = above.iter().sum();
    if x < 0.0 && code > 0 { code | 8 } else { code }
}

#[inline(always)]
fn put_codes(x: &[f32], scale: f32, out: &mut [u8]) {
    if scale == 0.0 {
        return out.fill(0);
    }
    let middles = MIDDLES.map(|middle| middle * scale);
    let (low, high) = x.split_at(x.len() / 2);
    for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
        *out = nearest(*low, &middles) | nearest(*high, &middles) << 4;
    }
}

pub(super) fn mxfp4(x: &[f32; SMALL], out: &mut [u8; 17]) {
    let most = most(x);
    let e = match most {
        0.0 => 0,
        // Where the reference has a negative number in a byte, the least there is.
        most => (power_below(most) - 2 + 127).clamp(0, 255),
    };
    out[0] = e.to_le_bytes()[0];
    put_codes(x, half_of_power(out[0]), &mut out[1..]);
}

/// The greatest whole number that is not above the logarithm, rounded to 32 bits, of a positive number: just below a large
/// power of two, that is its exponent already.
#[allow(clippy::cast_possible_truncation)] // eleven bits of an exponent
fn power_below(x: f32) -> i32 {
    let bits = (f64::from(x)).to_bits();
    let power = i32::from_le_bytes(((bits >> 52) as u32).to_le_bytes()) - 1023 + 1;
    // How far below the next power of two, as a part of it, and so the logarithm below its exponent.
    let part = 1.0 - f64::from_bits(bits & (u64::MAX >> 12) | 1022 << 52);
    let below = (part + part * part / 2.0) * core::f64::consts::LOG2_E;
    // Half the distance of the numbers of 32 bits below the exponent: those nearer to zero are closer to each other.
    let bits = (power as f32).to_bits();
    let next = if power > 0 { bits - 1 } else { bits + 1 };
    let half = (f64::from(power) - f64::from(f32::from_bits(next))) / 2.0;
    if power != 0 && below < half {
        power
    } else {
        power - 1
    }
}

pub(super) fn nvfp4(x: &[f32; 64], out: &mut [u8; 36]) {
    let (scales, codes) = out.split_at_mut(4);
    let parts = x.chunks_exact(16).zip(codes.chunks_exact_mut(8));
    for ((x, codes), out) in parts.zip(scales) {
        *out = unsigned_e4m3(most(x) / 6.0);
        put_codes(x, half_of_unsigned_e4m3(*out), codes);
    }
}

/// The nearest eight-bit float without a sign, halves up, as the reference has it: from 256 on it is the greatest.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below 8 before it is cut off
fn unsigned_e4m3(x: f32) -> u8 {
    const LEAST_NORMAL: f32 = 0.015_625;
    const GREATEST: u8 = 0x7e;
    if x < LEAST_NORMAL {
        return ((x * 512.0 + 0.5) as u8).min(7);
    }
    if x >= 256.0 {
        return GREATEST;
    }
    // Exponent and three bits of the fraction, and one more to round by.
    let bits = x.to_bits() >> 19;
    let rounded = bits.div_ceil(2) - (120 << 3);
    match u8::try_from(rounded) {
        Ok(code) if code < 15 << 3 => code,
        _ => GREATEST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::cast_possible_truncation, clippy::unwrap_used)]
    fn just_below_some_powers_the_rounded_logarithm_is_the_exponent() {
        for k in -125..128 {
            let power = f32::from_bits(u32::try_from(k + 127).unwrap() << 23);
            for step in 0..60 {
                let x = f32::from_bits(power.to_bits() - step);
                let log = f64::from(x).log2() as f32;
                assert_eq!(power_below(x), log.floor() as i32, "2^{k} less {step}");
            }
        }
    }
}
