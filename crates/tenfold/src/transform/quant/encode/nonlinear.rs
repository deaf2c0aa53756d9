//! Four-bit codes whose values are not evenly spaced.

use super::legacy::SMALL;
use super::search::{LANES, Lane, TINY, code, lanes, largest, near_within};
use super::super_blocks::SUPER;
use super::{put_half, square_root, sum_of_squares};
use crate::transform::quant::NONLINEAR;

/// Halfway between the values of a code and the next: from there on, the next is nearer.
const MIDDLES: [f32; 15] = [
    -115.5, -93.5, -74.0, -57.0, -42.0, -28.5, -16.0, -4.5, 7.0, 19.0, 31.5, 45.5, 61.0, 79.0,
    101.0,
];

/// The distance of the values on both sides of a middle.
const GAPS: [f32; 15] = [
    23.0, 21.0, 18.0, 16.0, 14.0, 13.0, 12.0, 11.0, 12.0, 12.0, 13.0, 15.0, 16.0, 20.0, 24.0,
];

/// The code whose value is nearest, the upper one of two.
#[inline(always)]
fn nearest(x: f32) -> f32 {
    let above = MIDDLES.map(|middle| if x >= middle { 1.0 } else { 0.0 });
    above.iter().sum()
}

/// The value that is nearest.
#[inline(always)]
fn rounded(x: f32) -> f32 {
    let mut value = f32::from(NONLINEAR[0]);
    for (middle, gap) in MIDDLES.iter().zip(GAPS) {
        value += if x >= *middle { gap } else { 0.0 };
    }
    value
}

/// The scales of parts. No code is kept: they are made again from the scales.
#[inline(always)]
fn search(x: &[Lane<LANES>; SMALL], w: &[Lane<LANES>; SMALL]) -> Lane<LANES> {
    let lowest = f32::from(NONLINEAR[0]);
    let most = largest(x);
    let sums = |inverse: &Lane<LANES>| {
        let (mut products, mut squares) = ([0.0; LANES], [0.0; LANES]);
        for (x, w) in x.iter().zip(w) {
            for l in 0..LANES {
                let value = rounded(inverse[l] * x[l]);
                let wv = w[l] * value;
                products[l] += wv * x[l];
                squares[l] += wv * value;
            }
        }
        (products, squares)
    };
    let first: Lane<LANES> = most.map(|most| 1.0 / (-most / lowest));
    let (products, squares) = sums(&first);
    let (mut scale, mut best) = ([0.0; LANES], [0.0; LANES]);
    for l in 0..LANES {
        let ratio = products[l] / squares[l];
        scale[l] = if squares[l] > 0.0 { ratio } else { 0.0 };
        best[l] = scale[l] * products[l];
    }
    for step in -7i8..=7 {
        let tried: Lane<LANES> = most.map(|most| (f32::from(step) + lowest) / most);
        let (products, squares) = sums(&tried);
        for l in 0..LANES {
            let is_better = (squares[l] > 0.0) & (products[l] * products[l] > best[l] * squares[l]);
            let new = products[l] / squares[l];
            scale[l] = if is_better { new } else { scale[l] };
            best[l] = if is_better {
                new * products[l]
            } else {
                best[l]
            };
        }
    }
    for l in 0..LANES {
        scale[l] = if most[l].abs() < TINY { 0.0 } else { scale[l] };
    }
    scale
}

/// Weights without importances are squares; `means` are those of the parts.
#[inline(always)]
fn weights(
    x: &[Lane<LANES>; SMALL],
    importance: Option<&[f32]>,
    means: &Lane<LANES>,
) -> [Lane<LANES>; SMALL] {
    let Some(importance) = importance else {
        return x.map(|x| x.map(|x| x * x));
    };
    let mut w = lanes(importance);
    for (w, x) in w.iter_mut().zip(x) {
        for l in 0..LANES {
            let x: f32 = x[l];
            w[l] *= square_root(means[l] + x * x);
        }
    }
    w
}

/// One over a number, or 0 where that is what it is.
fn inverse(value: f32) -> f32 {
    if value == 0.0 { 0.0 } else { 1.0 / value }
}

#[inline(always)]
fn put_codes(x: &[f32], inverse: f32, out: &mut [u8]) {
    let (low, high) = x.split_at(SMALL / 2);
    for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
        *out = code(nearest(inverse * low)) | code(nearest(inverse * high)) << 4;
    }
}

/// Any number of blocks of a row.
pub(super) fn iq4_nl(x: &[f32], importance: Option<&[f32]>, out: &mut [u8]) {
    const BYTES: usize = 18;
    let groups = x.chunks(SMALL * LANES).zip(out.chunks_mut(BYTES * LANES));
    for (group, (x, out)) in groups.enumerate() {
        let first = group * SMALL * LANES;
        let importance = importance.map(|importance| &importance[first..first + x.len()]);
        let mut means = [0.0; LANES];
        for (mean, x) in means.iter_mut().zip(x.chunks_exact(SMALL)) {
            *mean = sum_of_squares(x) * (2.0 / 32.0);
        }
        let numbers = lanes(x);
        let scales = search(&numbers, &weights(&numbers, importance, &means));
        let blocks = x.chunks_exact(SMALL).zip(out.chunks_exact_mut(BYTES));
        for ((x, out), scale) in blocks.zip(scales) {
            put_half(scale, out);
            put_codes(x, inverse(scale), &mut out[2..]);
        }
    }
}

pub(super) fn iq4_xs(x: &[f32; SUPER], importance: Option<&[f32; SUPER]>, out: &mut [u8; 136]) {
    let mean = sum_of_squares(x) * (2.0 / 256.0);
    let numbers = lanes(x);
    let importance = importance.map(|importance| &importance[..]);
    let scales = search(&numbers, &weights(&numbers, importance, &[mean; LANES]));
    let larger = |most: f32, &scale: &f32| {
        if scale.abs() > most.abs() {
            scale
        } else {
            most
        }
    };
    let d = -scales.iter().fold(0.0, larger) / 32.0;
    let unit = inverse(d);
    out.fill(0);
    put_half(d, out);
    let mut high = 0;
    for (j, (scale, x)) in scales.iter().zip(x.chunks_exact(SMALL)).enumerate() {
        let l = near_within(unit * scale, -32.0, 31.0);
        put_codes(x, inverse(d * l), &mut out[8 + 16 * j..]);
        let l = code(l + 32.0);
        out[4 + j / 2] |= (l & 15) << (4 * (j % 2));
        high |= u16::from(l >> 4) << (2 * j);
    }
    out[2..4].copy_from_slice(&high.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_code_is_that_of_the_distances_as_they_are_rounded() {
        let values = NONLINEAR.map(f32::from);
        // What the reference does: it compares distances, which are rounded.
        let by_distance = |x: f32| {
            let above = values.iter().position(|value| x < *value);
            match above {
                Some(0) => 0,
                Some(n) if x - values[n - 1] < values[n] - x => n - 1,
                Some(n) => n,
                None => 15,
            }
        };
        let mut tried = 0;
        for middle in MIDDLES.iter().chain(&values).copied() {
            for step in -20i32..=20 {
                let bits = middle.to_bits().wrapping_add_signed(step);
                let x = f32::from_bits(bits);
                assert_eq!(usize::from(code(nearest(x))), by_distance(x), "{x}");
                assert_eq!(rounded(x), values[by_distance(x)], "{x}");
                tried += 1;
            }
        }
        assert_eq!(tried, 31 * 41);
    }
}
