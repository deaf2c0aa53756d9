//! K-quants: blocks of 256 numbers, and scales for parts of them that are codes themselves.

use super::search::{
    Affine, LANES, Lane, TINY, affine, code, lanes, near_within, positive, signed, squares,
    three_bits,
};
use super::{put_half, square_root, sum_of_squares};

/// Numbers of a block.
pub(super) const SUPER: usize = 256;

type Numbers = [f32; SUPER];

/// How parts are searched where numbers have importances.
const WEIGHTED: Affine = Affine {
    top: 0.0,
    start: -0.9,
    step: 0.05,
    tries: 36,
    squared: true,
};

/// The codes of the numbers of a block, one byte each, and the scales and minima of its parts.
struct Parts<const PARTS: usize> {
    codes: [u8; SUPER],
    scales: [f32; PARTS],
    mins: [f32; PARTS],
    /// The sums of the weights of the parts.
    weights: [f32; PARTS],
}

/// Searches all parts, several at once. `weigh` gives the weights of numbers, and their place is that of the first of them.
#[inline(always)]
fn search<const N: usize, const PARTS: usize>(
    x: &Numbers,
    weigh: impl Fn(usize, &[Lane<LANES>; N]) -> [Lane<LANES>; N],
    find: impl Fn(&[Lane<LANES>; N], &[Lane<LANES>; N]) -> ([Lane<LANES>; N], Lane<LANES>, Lane<LANES>),
) -> Parts<PARTS> {
    let mut parts = Parts {
        codes: [0; SUPER],
        scales: [0.0; PARTS],
        mins: [0.0; PARTS],
        weights: [0.0; PARTS],
    };
    for (group, numbers) in x.chunks_exact(N * LANES).enumerate() {
        let x = lanes::<N, LANES>(numbers);
        let w = weigh(group * N * LANES, &x);
        let (codes, scales, mins) = find(&x, &w);
        let first = group * LANES;
        for l in 0..LANES {
            parts.scales[first + l] = scales[l];
            parts.mins[first + l] = mins[l];
            for (i, codes) in codes.iter().enumerate() {
                parts.codes[(first + l) * N + i] = code(codes[l]);
            }
        }
        for w in &w {
            for l in 0..LANES {
                parts.weights[first + l] += w[l];
            }
        }
    }
    parts
}

/// Weights of numbers with importances: each importance times the root of what numbers of this size weigh at least.
#[inline(always)]
fn important<const N: usize>(
    importance: &Numbers,
    mean: f32,
) -> impl Fn(usize, &[Lane<LANES>; N]) -> [Lane<LANES>; N] {
    move |first, x| {
        let mut w = lanes::<N, LANES>(&importance[first..]);
        for (w, x) in w.iter_mut().zip(x) {
            for l in 0..LANES {
                w[l] *= square_root(mean + x[l] * x[l]);
            }
        }
        w
    }
}

/// A weight for each number, from it alone.
#[inline(always)]
fn of_each<const N: usize>(
    weight: impl Fn(f32) -> f32,
) -> impl Fn(usize, &[Lane<LANES>; N]) -> [Lane<LANES>; N] {
    move |_, x| x.map(|x| x.map(&weight))
}

/// Codes again, from the scales that are stored: a part whose scale is 0 keeps those it has.
#[inline(always)]
fn again<const N: usize>(
    x: &Numbers,
    codes: &mut [u8; SUPER],
    stored: impl Fn(usize) -> (f32, f32),
    low: f32,
    high: f32,
) {
    let parts = x.chunks_exact(N).zip(codes.chunks_exact_mut(N));
    for (part, (x, codes)) in parts.enumerate() {
        let (scale, min) = stored(part);
        if scale == 0.0 {
            continue;
        }
        for (x, out) in x.iter().zip(codes) {
            let value = (x + min) / scale;
            // Where the scale is beyond every number: the reference has 0 for what is none.
            let value = if value.is_nan() { 0.0 } else { value };
            *out = code(near_within(value, low, high) - low);
        }
    }
}

/// The whole number of a scale in units of the largest.
#[inline(always)]
fn in_units(unit: f32, value: f32, low: f32, high: f32) -> f32 {
    near_within(unit * value, low, high)
}

fn half(value: f32) -> f32 {
    half::f16::from_f32(value).to_f32()
}

fn most(values: &[f32]) -> f32 {
    let larger = |most: f32, &value: &f32| if value > most { value } else { most };
    values.iter().fold(0.0, larger)
}

/// The value of the largest magnitude, the first of them.
fn largest(values: &[f32]) -> f32 {
    let larger = |most: f32, &value: &f32| {
        if value.abs() > most.abs() {
            value
        } else {
            most
        }
    };
    values.iter().fold(0.0, larger)
}

/// Two bits of each number, those of numbers that are 32 apart in one byte.
fn pack_two_bits(codes: &[u8; SUPER], out: &mut [u8]) {
    for (out, codes) in out.chunks_exact_mut(32).zip(codes.chunks_exact(128)) {
        for (l, out) in out.iter_mut().enumerate() {
            let at = |n: usize| codes[l + 32 * n] & 3;
            *out = at(0) | at(1) << 2 | at(2) << 4 | at(3) << 6;
        }
    }
}

pub(super) fn q2_k(x: &Numbers, out: &mut [u8; 84]) {
    const HOW: Affine = Affine {
        top: 3.0,
        start: -0.5,
        step: 0.1,
        tries: 15,
        squared: false,
    };
    let parts: Parts<16> = search::<16, 16>(x, of_each(f32::abs), |x, w| {
        let found = affine(x, w, &HOW);
        (found.codes, found.scale, found.min)
    });
    let units = |values: &[f32; 16]| {
        let most = most(values);
        if most > 0.0 {
            let unit = 15.0 / most;
            (values.map(|v| in_units(unit, v, 0.0, 15.0)), most / 15.0)
        } else {
            ([0.0; 16], 0.0)
        }
    };
    let (scales, d) = units(&parts.scales);
    let (mins, m) = units(&parts.mins);
    finish_q2_k(x, parts.codes, (scales, d), (mins, m), out);
}

pub(super) fn q2_k_weighted(x: &Numbers, importance: &Numbers, out: &mut [u8; 84]) {
    const HOW: Affine = Affine {
        top: 3.0,
        ..WEIGHTED
    };
    let mean = sum_of_squares(x) / 256.0;
    let parts: Parts<16> = search::<16, 16>(x, important(importance, mean), |x, w| {
        let found = affine(x, w, &HOW);
        (found.codes, found.scale, found.min)
    });
    let scales = positive(&parts.scales, &parts.weights, 15.0);
    let mins = positive(&parts.mins, &parts.weights, 15.0);
    finish_q2_k(x, parts.codes, scales, mins, out);
}

fn finish_q2_k(
    x: &Numbers,
    mut codes: [u8; SUPER],
    (scales, d): ([f32; 16], f32),
    (mins, m): ([f32; 16], f32),
    out: &mut [u8; 84],
) {
    for (out, (scale, min)) in out.iter_mut().zip(scales.iter().zip(&mins)) {
        *out = code(*scale) | code(*min) << 4;
    }
    let stored = |part: usize| (half(d) * scales[part], half(m) * mins[part]);
    again::<16>(x, &mut codes, stored, 0.0, 3.0);
    pack_two_bits(&codes, &mut out[16..80]);
    put_half(d, &mut out[80..]);
    put_half(m, &mut out[82..]);
}

pub(super) fn q3_k(x: &Numbers, out: &mut [u8; 110]) {
    let parts: Parts<16> = search::<16, 16>(x, of_each(|_| 0.0), |x, _| {
        let found = three_bits(x);
        (found.codes, found.scale, [0.0; LANES])
    });
    let largest = largest(&parts.scales);
    let (scales, d) = if largest == 0.0 {
        ([0; 16], 0.0)
    } else {
        let unit = -32.0 / largest;
        let scales = parts.scales;
        let scales = scales.map(|scale| code(in_units(unit, scale, -32.0, 31.0) + 32.0));
        (scales, 1.0 / unit)
    };
    finish_q3_k(x, parts.codes, scales, d, out);
}

pub(super) fn q3_k_weighted(x: &Numbers, importance: &Numbers, out: &mut [u8; 110]) {
    let mean = 2.0 * sum_of_squares(x) / 256.0;
    let parts: Parts<16> = search::<16, 16>(x, important(importance, mean), |x, w| {
        let found = signed(x, w, 4.0);
        (found.codes, found.scale, [0.0; LANES])
    });
    let one = |values: [f32; 16]| values.map(|value| [value]);
    let scales = signed(&one(parts.scales), &one(parts.weights), 32.0);
    let codes = scales.codes.map(|[scale]| code(scale));
    finish_q3_k(x, parts.codes, codes, scales.scale[0], out);
}

fn finish_q3_k(x: &Numbers, mut codes: [u8; SUPER], scales: [u8; 16], d: f32, out: &mut [u8; 110]) {
    let stored = |part: usize| (half(d) * (f32::from(scales[part]) - 32.0), 0.0);
    again::<16>(x, &mut codes, stored, -4.0, 3.0);
    for (l, out) in out[..32].iter_mut().enumerate() {
        *out = (0..8).fold(0, |bits, n| bits | (codes[l + 32 * n] >> 2 & 1) << n);
    }
    pack_two_bits(&codes, &mut out[32..96]);
    let packed = &mut out[96..108];
    packed.fill(0);
    for (s, scale) in scales.iter().enumerate() {
        packed[s % 8] |= (scale & 15) << (4 * (s / 8));
        packed[8 + s % 4] |= (scale >> 4) << (2 * (s / 4));
    }
    put_half(d, &mut out[108..]);
}

/// Scales and minima of eight parts in units of six bits.
struct SixBits {
    scales: [f32; 8],
    d: f32,
    mins: [f32; 8],
    m: f32,
}

impl SixBits {
    fn plain(parts: &Parts<8>) -> Self {
        let units = |values: &[f32; 8]| {
            let most = most(values);
            let unit = if most > 0.0 { 63.0 / most } else { 0.0 };
            (values.map(|v| in_units(unit, v, 0.0, 63.0)), most / 63.0)
        };
        let ((scales, d), (mins, m)) = (units(&parts.scales), units(&parts.mins));
        Self { scales, d, mins, m }
    }

    fn weighted(parts: &Parts<8>) -> Self {
        let (scales, d) = positive(&parts.scales, &parts.weights, 63.0);
        let (mins, m) = positive(&parts.mins, &parts.weights, 63.0);
        Self { scales, d, mins, m }
    }

    /// The two halves and the packed codes.
    fn write(&self, out: &mut [u8]) {
        put_half(self.d, out);
        put_half(self.m, &mut out[2..]);
        let packed = &mut out[4..16];
        for j in 0..4 {
            let (scale, min) = (code(self.scales[j]), code(self.mins[j]));
            let (later, later_min) = (code(self.scales[j + 4]), code(self.mins[j + 4]));
            packed[j] = scale | later >> 4 << 6;
            packed[j + 4] = min | later_min >> 4 << 6;
            packed[j + 8] = later & 15 | (later_min & 15) << 4;
        }
    }

    fn again(&self, x: &Numbers, codes: &mut [u8; SUPER], top: f32) {
        let (d, m) = (half(self.d), half(self.m));
        let stored = |part: usize| (d * self.scales[part], m * self.mins[part]);
        again::<32>(x, codes, stored, 0.0, top);
    }
}

/// The parts of a block with eight of them, without importances.
#[inline(always)]
fn eight_parts(x: &Numbers, how: Affine) -> Parts<8> {
    let weigh = |_: usize, x: &[Lane<LANES>; 32]| {
        let mut average: Lane<LANES> = squares(x);
        for sum in &mut average {
            *sum = square_root(*sum / 32.0);
        }
        let mut w = *x;
        for w in &mut w {
            for l in 0..LANES {
                w[l] = average[l] + w[l].abs();
            }
        }
        w
    };
    search::<32, 8>(x, weigh, move |x, w| {
        let found = affine(x, w, &how);
        (found.codes, found.scale, found.min)
    })
}

#[inline(always)]
fn eight_important_parts(x: &Numbers, importance: &Numbers, top: f32) -> Parts<8> {
    let how = Affine { top, ..WEIGHTED };
    let mean = 2.0 * sum_of_squares(x) / 256.0;
    search::<32, 8>(x, important(importance, mean), move |x, w| {
        let found = affine(x, w, &how);
        (found.codes, found.scale, found.min)
    })
}

pub(super) fn q4_k(x: &Numbers, out: &mut [u8; 144]) {
    let how = Affine {
        top: 15.0,
        start: -1.0,
        step: 0.1,
        tries: 20,
        squared: true,
    };
    let parts = eight_parts(x, how);
    finish_q4_k(x, parts.codes, &SixBits::plain(&parts), out);
}

pub(super) fn q4_k_weighted(x: &Numbers, importance: &Numbers, out: &mut [u8; 144]) {
    let parts = eight_important_parts(x, importance, 15.0);
    finish_q4_k(x, parts.codes, &SixBits::weighted(&parts), out);
}

fn finish_q4_k(x: &Numbers, mut codes: [u8; SUPER], scales: &SixBits, out: &mut [u8; 144]) {
    scales.again(x, &mut codes, 15.0);
    scales.write(out);
    pack_nibbles(&codes, &mut out[16..]);
}

/// Four bits of each number, those of numbers that are 32 apart in one byte.
fn pack_nibbles(codes: &[u8; SUPER], out: &mut [u8]) {
    for (out, codes) in out.chunks_exact_mut(32).zip(codes.chunks_exact(64)) {
        let (low, high) = codes.split_at(32);
        for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
            *out = low & 15 | high << 4;
        }
    }
}

pub(super) fn q5_k(x: &Numbers, out: &mut [u8; 176]) {
    let how = Affine {
        top: 31.0,
        start: -0.5,
        step: 0.1,
        tries: 15,
        squared: true,
    };
    let parts = eight_parts(x, how);
    finish_q5_k(x, parts.codes, &SixBits::plain(&parts), out);
}

pub(super) fn q5_k_weighted(x: &Numbers, importance: &Numbers, out: &mut [u8; 176]) {
    let parts = eight_important_parts(x, importance, 31.0);
    finish_q5_k(x, parts.codes, &SixBits::weighted(&parts), out);
}

fn finish_q5_k(x: &Numbers, mut codes: [u8; SUPER], scales: &SixBits, out: &mut [u8; 176]) {
    scales.again(x, &mut codes, 31.0);
    scales.write(out);
    for (l, out) in out[16..48].iter_mut().enumerate() {
        *out = (0..8).fold(0, |bits, n| bits | (codes[l + 32 * n] >> 4 & 1) << n);
    }
    pack_nibbles(&codes, &mut out[48..]);
}

pub(super) fn q6_k(x: &Numbers, out: &mut [u8; 210]) {
    finish_q6_k(x, search_six_bits(x, of_each(|x| x * x)), out);
}

pub(super) fn q6_k_weighted(x: &Numbers, importance: &Numbers, out: &mut [u8; 210]) {
    let weigh = |first: usize, _: &[Lane<LANES>; 16]| lanes(&importance[first..]);
    finish_q6_k(x, search_six_bits(x, weigh), out);
}

#[inline(always)]
fn search_six_bits(
    x: &Numbers,
    weigh: impl Fn(usize, &[Lane<LANES>; 16]) -> [Lane<LANES>; 16],
) -> Parts<16> {
    search::<16, 16>(x, weigh, |x, w| {
        let found = signed(x, w, 32.0);
        (found.codes, found.scale, [0.0; LANES])
    })
}

fn finish_q6_k(x: &Numbers, parts: Parts<16>, out: &mut [u8; 210]) {
    let largest = largest(&parts.scales);
    if largest.abs() < TINY {
        out.fill(0);
        return;
    }
    let unit = -128.0 / largest;
    let d = 1.0 / unit;
    let scales = parts
        .scales
        .map(|scale| in_units(unit, scale, -128.0, 127.0));
    let mut codes = parts.codes;
    again::<16>(
        x,
        &mut codes,
        |part| (half(d) * scales[part], 0.0),
        -32.0,
        31.0,
    );
    let (low, rest) = out.split_at_mut(128);
    for (low, codes) in low.chunks_exact_mut(64).zip(codes.chunks_exact(128)) {
        let (first, second) = codes.split_at(64);
        for ((low, first), second) in low.iter_mut().zip(first).zip(second) {
            *low = first & 15 | second << 4;
        }
    }
    for (high, codes) in rest[..64].chunks_exact_mut(32).zip(codes.chunks_exact(128)) {
        for (l, high) in high.iter_mut().enumerate() {
            let at = |n: usize| codes[l + 32 * n] >> 4;
            *high = at(0) | at(1) << 2 | at(2) << 4 | at(3) << 6;
        }
    }
    for (out, scale) in rest[64..80].iter_mut().zip(&scales) {
        *out = code(*scale);
    }
    put_half(d, &mut rest[80..]);
}
