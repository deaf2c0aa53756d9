//! Codes that stand for rows of a code book: the row that is nearest, and how it is found.

use std::sync::OnceLock;

use super::search::{code, near_within};
use super::super_blocks::SUPER;
use super::{put_half, square_root, sum_of_squares};
use crate::prelude::*;
use crate::transform::quant::grids;

/// Rows of codes, and for any codes the row that has them, or those that are near.
struct Book<const N: usize> {
    /// The rows, as `2 * code + 1`.
    rows: Vec<[f32; N]>,
    /// By the codes of a row.
    found: Vec<Found>,
    bits: u32,
}

enum Found {
    Row(u16),
    /// In the order of their distance, and then of their numbers.
    Near(Box<[u16]>),
}

impl<const N: usize> Book<N> {
    /// A book of rows of `codes`, of which there are `values`. Of rows that are not in it those at the `wanted` least distances
    /// are near.
    fn new(codes: &[[u8; N]], values: u8, bits: u32, wanted: usize) -> Self {
        let mut found = Vec::new();
        let places = 1usize << (bits as usize * N);
        found.resize_with(places, || Found::Near(Box::default()));
        for (place, slot) in found.iter_mut().enumerate() {
            let at = |k: usize| (place >> (bits as usize * k)).to_le_bytes()[0] & ((1 << bits) - 1);
            let row: [u8; N] = core::array::from_fn(at);
            // Codes that do not occur are not looked up either.
            if row.iter().all(|code| *code < values) {
                *slot = Found::Near(nearest(codes, &row, wanted));
            }
        }
        for (number, row) in (0..).zip(codes) {
            let place = place_of(row, bits);
            if let Some(slot) = found.get_mut(place) {
                *slot = Found::Row(number);
            }
        }
        let odd = |codes: &[u8; N]| codes.map(|code| f32::from(2 * code + 1));
        Self {
            rows: codes.iter().map(odd).collect(),
            found,
            bits,
        }
    }

    /// The row with these codes, or of those that are near the one that is nearest to the numbers; the codes become its, and
    /// it is said whether they were in the book.
    fn find(&self, codes: &mut [f32; N], x: &[f32], w: &[f32], scale: f32) -> (u16, bool) {
        let bytes = codes.map(code);
        let near = match &self.found[place_of(&bytes, self.bits)] {
            Found::Row(number) => return (*number, true),
            Found::Near(near) => near,
        };
        let (mut best, mut least) = (0, f32::MAX);
        for &number in near {
            let mut distance = 0.0;
            for ((row, x), w) in self.rows[usize::from(number)].iter().zip(x).zip(w) {
                let off = scale * row - x;
                distance += w * off * off;
            }
            if distance < least {
                (best, least) = (number, distance);
            }
        }
        *codes = self.rows[usize::from(best)].map(|value| (value - 1.0) / 2.0);
        (best, false)
    }
}

fn place_of<const N: usize>(codes: &[u8; N], bits: u32) -> usize {
    (codes.iter().rev()).fold(0, |place, code| place << bits | usize::from(*code))
}

fn nearest<const N: usize>(rows: &[[u8; N]], to: &[u8; N], wanted: usize) -> Box<[u16]> {
    let distance = |row: &[u8; N]| -> u32 {
        let off = row.iter().zip(to).map(|(a, b)| u32::from(a.abs_diff(*b)));
        off.map(|off| off * off).sum()
    };
    let mut near: Vec<(u32, u16)> = rows.iter().map(distance).zip(0..).collect();
    near.sort_unstable();
    let mut distances: Vec<u32> = near.iter().map(|(distance, _)| *distance).collect();
    distances.dedup();
    let most = distances.get(wanted - 1).or(distances.last()).copied();
    let near = near
        .into_iter()
        .take_while(|(distance, _)| Some(*distance) <= most);
    near.map(|(_, number)| number).collect()
}

fn iq3_s_book() -> &'static Book<4> {
    static BOOK: OnceLock<Book<4>> = OnceLock::new();
    BOOK.get_or_init(|| {
        let codes = grids::IQ3_S.map(|row| row.map(|value| value.unsigned_abs() / 2));
        Book::new(&codes, 8, 3, 3)
    })
}

/// Numbers of a part.
const PART: usize = 32;

/// A part of a block: the rows of its numbers, their signs, and its scale.
struct Part {
    rows: [u16; PART / 4],
    signs: [u8; PART / 8],
    scale: f32,
}

/// Magnitudes, and a bit for each group of eight that is set where a number is negative.
fn without_signs(x: &[f32]) -> ([f32; PART], [u8; PART / 8]) {
    let (mut magnitudes, mut signs) = ([0.0; PART], [0; PART / 8]);
    for (i, (out, &x)) in magnitudes.iter_mut().zip(x).enumerate() {
        let is_negative = x < 0.0;
        *out = if is_negative { -x } else { x };
        signs[i / 8] |= u8::from(is_negative) << (i % 8);
    }
    (magnitudes, signs)
}

/// Codes of numbers, each rounded by itself.
fn codes_of(x: &[f32], inverse: f32) -> [f32; 4] {
    core::array::from_fn(|i| near_within(0.5 * (inverse * x[i] - 1.0), 0.0, 7.0))
}

/// The sums that decide about a scale: of products with the numbers, and of squares.
fn sums(codes: &[[f32; 4]; PART / 4], x: &[f32; PART], w: &[f32; PART]) -> (f32, f32) {
    let (mut products, mut squares) = (0.0, 0.0);
    for ((code, x), w) in codes.as_flattened().iter().zip(x).zip(w) {
        let value = 2.0 * code + 1.0;
        products += w * x * value;
        squares += w * value * value;
    }
    (products, squares)
}

/// The best scale and rows; none where all numbers are 0.
fn part(book: &Book<4>, x: &[f32], w: &[f32; PART]) -> Option<Part> {
    let (x, signs) = without_signs(x);
    let roots = w.map(square_root);
    let most = x
        .iter()
        .fold(x[0], |most, &x| if x > most { x } else { most });
    if most == 0.0 {
        return None;
    }
    let groups = || x.chunks_exact(4).zip(roots.chunks_exact(4));
    let (mut codes, mut in_book) = ([[0.0; 4]; PART / 4], false);
    let (mut best, mut scale) = (0.0, most / 15.0);
    for step in -9i8..=9 {
        let inverse = (15.0 + f32::from(step) * 0.2) / most;
        let (mut tried, mut all) = ([[0.0; 4]; PART / 4], true);
        for (codes, (x, w)) in tried.iter_mut().zip(groups()) {
            *codes = codes_of(x, inverse);
            let (_, is_row) = book.find(codes, x, w, 1.0 / inverse);
            all &= is_row;
        }
        let (products, squares) = sums(&tried, &x, w);
        if squares > 0.0 && products * products > best * squares {
            scale = products / squares;
            best = scale * products;
            (codes, in_book) = (tried, all);
        }
    }
    if !in_book && scale > 0.0 {
        for (codes, (x, w)) in codes.iter_mut().zip(groups()) {
            let mut again = codes_of(x, 1.0 / scale);
            book.find(&mut again, x, w, scale);
            *codes = again;
        }
        let (products, squares) = sums(&codes, &x, w);
        if squares > 0.0 {
            scale = products / squares;
        }
    }
    let rows = codes.map(|mut codes| book.find(&mut codes, &[], &[], 0.0).0);
    Some(Part { rows, signs, scale })
}

pub(super) fn iq3_s(x: &[f32; SUPER], importance: Option<&[f32; SUPER]>, out: &mut [u8; 110]) {
    let book = iq3_s_book();
    let mean = 2.0 * sum_of_squares(x) / 256.0;
    out.fill(0);
    let mut scales = [0.0; SUPER / PART];
    // The reference goes on after a part of zeros where that began: what follows is at another place than it is read from, and
    // the bytes at the end stay zeros.
    let mut place = 0;
    for (j, x) in x.chunks_exact(PART).enumerate() {
        let weights: [f32; PART] = core::array::from_fn(|i| match importance {
            Some(importance) => importance[PART * j + i] * square_root(mean + x[i] * x[i]),
            None => x[i] * x[i],
        });
        let Some(found) = part(book, x, &weights) else {
            continue;
        };
        scales[j] = found.scale;
        for (k, row) in found.rows.into_iter().enumerate() {
            let [low, high] = row.to_le_bytes();
            out[2 + 8 * place + k] = low;
            out[66 + j] |= high << k;
        }
        out[74 + 4 * place..78 + 4 * place].copy_from_slice(&found.signs);
        place += 1;
    }
    let most = scales
        .iter()
        .fold(0.0, |most, &scale| if scale > most { scale } else { most });
    if most == 0.0 {
        return;
    }
    let d = most / 31.0;
    put_half(d * 1.033, out);
    let inverse = 1.0 / d;
    for (j, scale) in scales.into_iter().enumerate() {
        let scale = code(near_within(0.5 * (inverse * scale - 1.0), 0.0, 15.0));
        out[106 + j / 2] |= scale << (4 * (j % 2));
    }
}
