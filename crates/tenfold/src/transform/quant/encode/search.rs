//! The searches for scales: what the reference does with a part of a block, done with several parts at once.
//!
//! Each lane is a part by itself, and its sums run from the first number to the last, every operation rounded on its own.
//! So the codes are the reference's, and the compiler can still put lanes next to each other into one register.

/// Parts that are worked on together.
pub(super) const LANES: usize = 8;

/// A number of each part.
pub(super) type Lane<const L: usize> = [f32; L];

/// Parts whose largest number is below this are zeros.
pub(super) const TINY: f32 = 1e-15;

/// One and a half times 2^23: there is no room for a fraction beside it.
const ROUND: f32 = 12_582_912.0;

/// To the nearest whole number, ties to even, for numbers that are not larger than 2^22.
#[inline(always)]
pub(super) fn near(value: f32) -> f32 {
    (value + ROUND) - ROUND
}

/// The same, at least `low`, which NaN becomes too, and at most `high`.
#[inline(always)]
pub(super) fn near_within(value: f32, low: f32, high: f32) -> f32 {
    let code = near(value);
    let code = if code > low { code } else { low };
    if code < high { code } else { high }
}

/// A whole number from -128 to 255 as a code: the lowest bits of what was added to it.
#[inline(always)]
pub(super) fn code(value: f32) -> u8 {
    (value + ROUND).to_bits().to_le_bytes()[0]
}

#[inline(always)]
fn each<const L: usize>(of: impl FnMut(usize) -> f32) -> Lane<L> {
    core::array::from_fn(of)
}

/// Numbers of parts that follow each other, the first of each together, then the second of each.
#[inline(always)]
pub(super) fn lanes<const N: usize, const L: usize>(parts: &[f32]) -> [Lane<L>; N] {
    let mut out = [[0.0; L]; N];
    for (l, part) in parts.chunks_exact(N).take(L).enumerate() {
        for (out, x) in out.iter_mut().zip(part) {
            out[l] = *x;
        }
    }
    out
}

/// The sums of squares of the parts.
#[inline(always)]
pub(super) fn squares<const N: usize, const L: usize>(x: &[Lane<L>; N]) -> Lane<L> {
    let mut sum = [0.0; L];
    for x in x {
        for l in 0..L {
            sum[l] += x[l] * x[l];
        }
    }
    sum
}

/// The number of the largest magnitude, the first of them, of each part: 0 where there is none but zeros.
#[inline(always)]
pub(super) fn largest<const N: usize, const L: usize>(x: &[Lane<L>; N]) -> Lane<L> {
    let (mut most, mut largest) = ([0.0; L], [0.0; L]);
    for x in x {
        for l in 0..L {
            let magnitude = x[l].abs();
            let is_more = magnitude > most[l];
            most[l] = if is_more { magnitude } else { most[l] };
            largest[l] = if is_more { x[l] } else { largest[l] };
        }
    }
    largest
}

/// Codes and their scale.
pub(super) struct Found<const N: usize, const L: usize> {
    pub(super) codes: [Lane<L>; N],
    pub(super) scale: Lane<L>,
}

/// Codes from `-top` to `top - 1`, stored as 0 to `2 * top - 1`; a part of zeros has the code 0.
#[inline(always)]
pub(super) fn signed<const N: usize, const L: usize>(
    x: &[Lane<L>; N],
    w: &[Lane<L>; N],
    top: f32,
) -> Found<N, L> {
    let most = largest(x);
    let sums = |s: &Lane<L>| {
        let (mut products, mut squares) = ([0.0; L], [0.0; L]);
        for (x, w) in x.iter().zip(w) {
            for l in 0..L {
                let code = near_within(s[l] * x[l], -top, top - 1.0);
                products[l] += w[l] * x[l] * code;
                squares[l] += w[l] * code * code;
            }
        }
        (products, squares)
    };
    let mut chosen: Lane<L> = each(|l| -top / most[l]);
    let (products, squares) = sums(&chosen);
    let mut scale: Lane<L> = each(|l| ratio(products[l], squares[l]));
    let mut best: Lane<L> = each(|l| scale[l] * products[l]);
    for step in STEPS {
        let tried: Lane<L> = each(|l| -(top + 0.1 * step) / most[l]);
        let (products, squares) = sums(&tried);
        for l in 0..L {
            let is_better = squares[l] > 0.0 && products[l] * products[l] > best[l] * squares[l];
            let new = products[l] / squares[l];
            chosen[l] = if is_better { tried[l] } else { chosen[l] };
            scale[l] = if is_better { new } else { scale[l] };
            best[l] = if is_better {
                new * products[l]
            } else {
                best[l]
            };
        }
    }
    let mut codes = [[0.0; L]; N];
    for (codes, x) in codes.iter_mut().zip(x) {
        for l in 0..L {
            let code = near_within(chosen[l] * x[l], -top, top - 1.0) + top;
            codes[l] = if most[l].abs() < TINY { 0.0 } else { code };
        }
    }
    for l in 0..L {
        scale[l] = if most[l].abs() < TINY { 0.0 } else { scale[l] };
    }
    Found { codes, scale }
}

/// The tries of [`signed`], in tenths.
const STEPS: [f32; 18] = [
    -9.0, -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0,
    9.0,
];

#[inline(always)]
fn ratio(products: f32, squares: f32) -> f32 {
    if squares == 0.0 {
        0.0
    } else {
        products / squares
    }
}

/// Codes of three bits, -4 to 3, stored as 0 to 7: from the first try of [`signed`] on, each code is changed where that
/// makes the error less, in at most five passes.
#[inline(always)]
pub(super) fn three_bits<const N: usize, const L: usize>(x: &[Lane<L>; N]) -> Found<N, L> {
    const TOP: f32 = 4.0;
    let most = largest(x);
    let mut codes = [[0.0; L]; N];
    let (mut products, mut squares) = ([0.0; L], [0.0; L]);
    let s: Lane<L> = each(|l| -TOP / most[l]);
    for (codes, x) in codes.iter_mut().zip(x) {
        for l in 0..L {
            let w = x[l] * x[l];
            let code = near_within(s[l] * x[l], -TOP, TOP - 1.0);
            codes[l] = code;
            products[l] += w * x[l] * code;
            squares[l] += w * code * code;
        }
    }
    for _ in 0..5 {
        let mut changes = false;
        for (codes, x) in codes.iter_mut().zip(x) {
            for l in 0..L {
                let (x, old) = (x[l], codes[l]);
                let w = x * x;
                let (p, q) = (products[l] - w * x * old, squares[l] - w * old * old);
                let new = near_within(x * q / p, -TOP, TOP - 1.0);
                let (with, squared) = (p + w * x * new, q + w * new * new);
                let is_better = (p > 0.0)
                    & (new != old)
                    & (squared > 0.0)
                    & (with * with * squares[l] > products[l] * products[l] * squared);
                codes[l] = if is_better { new } else { old };
                products[l] = if is_better { with } else { products[l] };
                squares[l] = if is_better { squared } else { squares[l] };
                changes |= is_better;
            }
        }
        if !changes {
            break;
        }
    }
    let is_zero: [bool; L] = core::array::from_fn(|l| most[l].abs() < TINY);
    for codes in &mut codes {
        for l in 0..L {
            codes[l] = if is_zero[l] { 0.0 } else { codes[l] + TOP };
        }
    }
    let found: Lane<L> = each(|l| ratio(products[l], squares[l]));
    let scale = each(|l| if is_zero[l] { 0.0 } else { found[l] });
    Found { codes, scale }
}

/// How codes with a scale and a minimum are searched.
#[derive(Clone, Copy)]
pub(super) struct Affine {
    /// The greatest code.
    pub(super) top: f32,
    /// What the first try adds to it, and how much more each later one does.
    pub(super) start: f32,
    pub(super) step: f32,
    /// The last try.
    pub(super) tries: u8,
    /// Whether errors are squared.
    pub(super) squared: bool,
}

/// Codes from 0 on, their scale, and how far below 0 the least number is.
pub(super) struct FoundAffine<const N: usize, const L: usize> {
    pub(super) codes: [Lane<L>; N],
    pub(super) scale: Lane<L>,
    pub(super) min: Lane<L>,
}

#[inline(always)]
pub(super) fn affine<const N: usize, const L: usize>(
    x: &[Lane<L>; N],
    w: &[Lane<L>; N],
    how: &Affine,
) -> FoundAffine<N, L> {
    let top = how.top;
    let (mut low, mut high) = (x[0], x[0]);
    let mut weights = w[0];
    let mut weighted: Lane<L> = each(|l| w[0][l] * x[0][l]);
    for (x, w) in x.iter().zip(w).skip(1) {
        for l in 0..L {
            low[l] = if x[l] < low[l] { x[l] } else { low[l] };
            high[l] = if x[l] > high[l] { x[l] } else { high[l] };
            weights[l] += w[l];
            weighted[l] += w[l] * x[l];
        }
    }
    for low in &mut low {
        *low = if *low > 0.0 { 0.0 } else { *low };
    }
    let is_flat: [bool; L] = core::array::from_fn(|l| high[l] <= low[l]);
    let flat_min: Lane<L> = each(|l| -low[l]);
    let codes_of = |s: &Lane<L>, low: &Lane<L>| {
        let mut codes = [[0.0; L]; N];
        for (codes, x) in codes.iter_mut().zip(x) {
            for l in 0..L {
                codes[l] = near_within(s[l] * (x[l] - low[l]), 0.0, top);
            }
        }
        codes
    };
    let error_of = |codes: &[Lane<L>; N], scale: &Lane<L>, low: &Lane<L>| {
        let mut error = [0.0; L];
        for ((code, x), w) in codes.iter().zip(x).zip(w) {
            for l in 0..L {
                let off = scale[l] * code[l] + low[l] - x[l];
                let off = if how.squared { off * off } else { off.abs() };
                error[l] += w[l] * off;
            }
        }
        error
    };
    let mut chosen: Lane<L> = each(|l| top / (high[l] - low[l]));
    let mut chosen_low = low;
    let mut scale: Lane<L> = each(|l| 1.0 / chosen[l]);
    let mut error = error_of(&codes_of(&chosen, &low), &scale, &low);
    for step in 0..=how.tries {
        let add = how.start + how.step * f32::from(step) + top;
        let tried: Lane<L> = each(|l| add / (high[l] - low[l]));
        let codes = codes_of(&tried, &low);
        let (mut sum, mut squares, mut products) = ([0.0; L], [0.0; L], [0.0; L]);
        for ((code, x), w) in codes.iter().zip(x).zip(w) {
            for l in 0..L {
                let wc = w[l] * code[l];
                sum[l] += wc;
                squares[l] += wc * code[l];
                products[l] += wc * x[l];
            }
        }
        let det: Lane<L> = each(|l| weights[l] * squares[l] - sum[l] * sum[l]);
        let mut a: Lane<L> = each(|l| (weights[l] * products[l] - weighted[l] * sum[l]) / det[l]);
        let mut b: Lane<L> = each(|l| (squares[l] * weighted[l] - sum[l] * products[l]) / det[l]);
        for l in 0..L {
            let is_above = b[l] > 0.0;
            a[l] = if is_above {
                products[l] / squares[l]
            } else {
                a[l]
            };
            b[l] = if is_above { 0.0 } else { b[l] };
        }
        let found = error_of(&codes, &a, &b);
        for l in 0..L {
            let is_better = (det[l] > 0.0) & (found[l] < error[l]);
            chosen[l] = if is_better { tried[l] } else { chosen[l] };
            chosen_low[l] = if is_better { low[l] } else { chosen_low[l] };
            error[l] = if is_better { found[l] } else { error[l] };
            scale[l] = if is_better { a[l] } else { scale[l] };
            low[l] = if is_better { b[l] } else { low[l] };
        }
    }
    let mut codes = codes_of(&chosen, &chosen_low);
    for codes in &mut codes {
        for l in 0..L {
            codes[l] = if is_flat[l] { 0.0 } else { codes[l] };
        }
    }
    FoundAffine {
        codes,
        scale: each(|l| if is_flat[l] { 0.0 } else { scale[l] }),
        min: each(|l| if is_flat[l] { flat_min[l] } else { -low[l] }),
    }
}

/// Codes from 0 to `top` of numbers that should not be negative, and their scale.
pub(super) fn positive<const N: usize>(x: &[f32; N], w: &[f32; N], top: f32) -> ([f32; N], f32) {
    let most = x
        .iter()
        .fold(0.0, |most, &x| if x > most { x } else { most });
    if most < TINY {
        return ([0.0; N], 0.0);
    }
    let code_of = |s: f32, x: f32| {
        let code = near(s * x);
        if code < top { code } else { top }
    };
    // Some numbers may be negative after all. Where the reference keeps their codes, it keeps them in bytes.
    let in_byte = |code: f32| if code < 0.0 { code + 256.0 } else { code };
    let itself = |code: f32| code;
    let error_of = |s: f32, kept: fn(f32) -> f32| {
        let scale = 1.0 / s;
        let mut error = 0.0;
        for (x, w) in x.iter().zip(w) {
            let off = x - scale * kept(code_of(s, *x));
            error += w * off * off;
        }
        error
    };
    let mut chosen = top / most;
    let mut error = error_of(chosen, in_byte);
    for step in [-4.0f32, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0] {
        let tried = (0.1 * step + top) / most;
        let found = error_of(tried, itself);
        if found < error {
            (chosen, error) = (tried, found);
        }
    }
    let (mut products, mut squares) = (0.0, 0.0);
    let mut codes = [0.0; N];
    for ((code, x), w) in codes.iter_mut().zip(x).zip(w) {
        let found = code_of(chosen, *x);
        products += w * x * found;
        squares += w * found * found;
        *code = in_byte(found);
    }
    for _ in 0..5 {
        let mut changes = false;
        for ((code, x), w) in codes.iter_mut().zip(x).zip(w) {
            let (p, q) = (products - w * x * *code, squares - w * *code * *code);
            if p > 0.0 && q > 0.0 {
                let new = near(x * q / p);
                let new = if new < top { new } else { top };
                let (p, q) = (p + w * x * new, q + w * new * new);
                if new != *code && p * p * squares > products * products * q {
                    (*code, products, squares) = (in_byte(new), p, q);
                    changes = true;
                }
            }
        }
        if !changes {
            break;
        }
    }
    (
        codes,
        if squares > 0.0 {
            products / squares
        } else {
            0.0
        },
    )
}
