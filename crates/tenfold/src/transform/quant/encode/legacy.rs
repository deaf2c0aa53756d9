//! Types with blocks of 32 numbers and a scale for each.

use super::search::{Affine, LANES, Lane, affine, code, lanes, signed};
use super::{inverse, put_half, square_root};

/// Numbers of a block.
pub(super) const SMALL: usize = 32;

type Numbers = [f32; SMALL];

/// The number of the largest magnitude, the first of them; 0 where all are 0.
#[inline(always)]
fn largest(x: &Numbers) -> f32 {
    let (mut low, mut high) = ([0f32; 8], [0f32; 8]);
    for row in x.as_chunks::<8>().0 {
        for ((low, high), &x) in low.iter_mut().zip(&mut high).zip(row) {
            *low = if x < *low { x } else { *low };
            *high = if x > *high { x } else { *high };
        }
    }
    let low = low
        .iter()
        .fold(0.0, |low: f32, &x| if x < low { x } else { low });
    let high = high
        .iter()
        .fold(0.0, |high: f32, &x| if x > high { x } else { high });
    if high > -low {
        high
    } else if high < -low {
        low
    } else {
        // Both signs have it, or all are 0.
        let found = x.iter().copied().find(|value| value.abs() == high);
        found.filter(|_| high > 0.0).unwrap_or(0.0)
    }
}

/// The largest magnitude. Four at a time, as that is the same in any order.
#[inline(always)]
pub(super) fn most(values: &[f32]) -> f32 {
    let (rows, rest) = values.as_chunks::<8>();
    let mut most = [0f32; 8];
    for row in rows {
        for (most, value) in most.iter_mut().zip(row) {
            let value = value.abs();
            *most = if value > *most { value } else { *most };
        }
    }
    let larger = |most: f32, &value: &f32| {
        if value.abs() > most {
            value.abs()
        } else {
            most
        }
    };
    rest.iter().chain(&most).fold(0.0, larger)
}

/// The least and the greatest number, the first of each.
#[inline(always)]
fn bounds(x: &Numbers) -> (f32, f32) {
    let (mut low, mut high) = ([f32::MAX; 8], [f32::MIN; 8]);
    for row in x.as_chunks::<8>().0 {
        for ((low, high), &x) in low.iter_mut().zip(&mut high).zip(row) {
            *low = if x < *low { x } else { *low };
            *high = if x > *high { x } else { *high };
        }
    }
    let low = low
        .iter()
        .fold(f32::MAX, |low, &x| if x < low { x } else { low });
    let high = high
        .iter()
        .fold(f32::MIN, |high, &x| if x > high { x } else { high });
    // Which of several equal numbers was first can be seen of zeros only.
    let first = |value: f32| match value {
        0.0 => x.iter().copied().find(|x| *x == 0.0).unwrap_or(value),
        value => value,
    };
    (first(low), first(high))
}

/// What is left of a number without its fraction, of one that is neither negative nor above 255.
#[inline(always)]
fn trunc(value: f32) -> u8 {
    let whole = super::search::near(value);
    let code = code(whole);
    if whole > value {
        code.wrapping_sub(1)
    } else {
        code
    }
}

/// Four bits of each code, those of the second half above those of the first.
#[inline(always)]
fn pack_nibbles(codes: &[u8; SMALL], out: &mut [u8]) {
    let (low, high) = codes.split_at(SMALL / 2);
    for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
        *out = low & 15 | high << 4;
    }
}

/// The fifth bit of each code.
#[inline(always)]
fn put_fifth_bits(codes: &[u8; SMALL], out: &mut [u8]) {
    for (out, codes) in out.iter_mut().take(4).zip(codes.chunks_exact(8)) {
        *out = codes
            .iter()
            .rev()
            .fold(0, |bits, code| bits << 1 | code >> 4 & 1);
    }
}

pub(super) fn q8_0(x: &Numbers, out: &mut [u8; 34]) {
    let d = most(x) / 127.0;
    let inverse = inverse(d);
    put_half(d, out);
    for (out, x) in out[2..].iter_mut().zip(x) {
        *out = code(round(x * inverse));
    }
}

/// To the nearest whole number, halves away from zero, of a number that is not large.
#[inline(always)]
pub(super) fn round(value: f32) -> f32 {
    let whole = super::search::near(value);
    // Ties went to the even neighbor.
    let rest = value - whole;
    if rest == 0.5 && value > 0.0 {
        whole + 1.0
    } else if rest == -0.5 && value < 0.0 {
        whole - 1.0
    } else {
        whole
    }
}

pub(super) fn q4_0(x: &Numbers, out: &mut [u8; 18]) {
    let d = largest(x) / -8.0;
    let inverse = inverse(d);
    put_half(d, out);
    let codes = x.map(|x| trunc(x * inverse + 8.5).min(15));
    pack_nibbles(&codes, &mut out[2..]);
}

pub(super) fn q4_1(x: &Numbers, out: &mut [u8; 20]) {
    let (low, high) = bounds(x);
    let d = (high - low) / 15.0;
    let inverse = inverse(d);
    put_half(d, out);
    put_half(low, &mut out[2..]);
    let codes = x.map(|x| trunc((x - low) * inverse + 0.5).min(15));
    pack_nibbles(&codes, &mut out[4..]);
}

pub(super) fn q5_0(x: &Numbers, out: &mut [u8; 22]) {
    let d = largest(x) / -16.0;
    let inverse = inverse(d);
    put_half(d, out);
    let codes = x.map(|x| trunc(x * inverse + 16.5).min(31));
    put_fifth_bits(&codes, &mut out[2..]);
    pack_nibbles(&codes, &mut out[6..]);
}

pub(super) fn q5_1(x: &Numbers, out: &mut [u8; 24]) {
    let (low, high) = bounds(x);
    let d = (high - low) / 31.0;
    let inverse = inverse(d);
    put_half(d, out);
    put_half(low, &mut out[2..]);
    let codes = x.map(|x| trunc((x - low) * inverse + 0.5));
    put_fifth_bits(&codes, &mut out[4..]);
    pack_nibbles(&codes, &mut out[8..]);
}

/// Blocks of a row with importances, several at once. `find` gives codes, scales and minima, and `put` writes a block.
#[inline(always)]
fn weighted<const BYTES: usize>(
    x: &[f32],
    importance: &[f32],
    mean: f32,
    out: &mut [u8],
    find: impl Fn(
        &[Lane<LANES>; SMALL],
        &[Lane<LANES>; SMALL],
    ) -> ([Lane<LANES>; SMALL], Lane<LANES>, Lane<LANES>),
    put: impl Fn(&[u8; SMALL], f32, f32, &mut [u8; BYTES]),
) {
    let parts = x
        .chunks(SMALL * LANES)
        .zip(importance.chunks(SMALL * LANES));
    for ((x, q), out) in parts.zip(out.chunks_mut(BYTES * LANES)) {
        let (x, mut w) = (lanes(x), lanes(q));
        for (w, x) in w.iter_mut().zip(&x) {
            for l in 0..LANES {
                let x: f32 = x[l];
                w[l] *= square_root(mean + x * x);
            }
        }
        let (codes, scale, min) = find(&x, &w);
        for (l, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
            let codes = codes.map(|codes| code(codes[l]));
            put(&codes, scale[l], min[l], out);
        }
    }
}

pub(super) fn q4_0_weighted(x: &[f32], importance: &[f32], mean: f32, out: &mut [u8]) {
    let find = |x: &_, w: &_| {
        let found = signed(x, w, 8.0);
        (found.codes, found.scale, [0.0; LANES])
    };
    weighted::<18>(x, importance, mean, out, find, |codes, d, _, out| {
        put_half(d, out);
        pack_nibbles(codes, &mut out[2..]);
    });
}

pub(super) fn q5_0_weighted(x: &[f32], importance: &[f32], mean: f32, out: &mut [u8]) {
    let find = |x: &_, w: &_| {
        let found = signed(x, w, 16.0);
        (found.codes, found.scale, [0.0; LANES])
    };
    weighted::<22>(x, importance, mean, out, find, |codes, d, _, out| {
        put_half(d, out);
        put_fifth_bits(codes, &mut out[2..]);
        pack_nibbles(codes, &mut out[6..]);
    });
}

/// How blocks with a minimum are searched where numbers have importances.
const WEIGHTED: Affine = Affine {
    top: 15.0,
    start: -0.9,
    step: 0.05,
    tries: 36,
    squared: true,
};

pub(super) fn q4_1_weighted(x: &[f32], importance: &[f32], mean: f32, out: &mut [u8]) {
    let find = |x: &_, w: &_| {
        let found = affine(x, w, &WEIGHTED);
        (found.codes, found.scale, found.min)
    };
    weighted::<20>(x, importance, mean, out, find, |codes, d, min, out| {
        put_half(d, out);
        put_half(-min, &mut out[2..]);
        pack_nibbles(codes, &mut out[4..]);
    });
}

pub(super) fn q5_1_weighted(x: &[f32], importance: &[f32], mean: f32, out: &mut [u8]) {
    let how = Affine {
        top: 31.0,
        ..WEIGHTED
    };
    let find = |x: &_, w: &_| {
        let found = affine(x, w, &how);
        (found.codes, found.scale, found.min)
    };
    weighted::<24>(x, importance, mean, out, find, |codes, d, min, out| {
        put_half(d, out);
        put_half(-min, &mut out[2..]);
        put_fifth_bits(codes, &mut out[4..]);
        pack_nibbles(codes, &mut out[8..]);
    });
}
