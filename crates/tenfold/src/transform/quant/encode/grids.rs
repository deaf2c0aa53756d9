//! Codes that stand for rows of a code book: the row that is nearest, and how it is found.

use core::cmp::Ordering;
use std::sync::LazyLock;

use super::search::{TINY, code, near_within, positive};
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

    /// The row with these codes, or of those that are near the one that is nearest to the numbers, by what values stand for;
    /// the codes become its, and it is said whether they were in the book.
    fn find(
        &self,
        codes: &mut [f32; N],
        value: impl Fn(f32) -> f32,
        x: &[f32; N],
        w: &[f32; N],
        scale: f32,
    ) -> (u16, bool) {
        let near = match &self.found[place_of(&codes.map(code), self.bits)] {
            Found::Row(number) => return (*number, true),
            Found::Near(near) => near,
        };
        let (mut best, mut least) = (0, f32::MAX);
        for &number in near {
            let mut distance = 0.0;
            for ((row, x), w) in self.rows[usize::from(number)].iter().zip(x).zip(w) {
                let off = scale * value(*row) - x;
                distance += w * off * off;
            }
            if distance < least {
                (best, least) = (number, distance);
            }
        }
        *codes = self.rows[usize::from(best)].map(|value| (value - 1.0) / 2.0);
        (best, false)
    }

    /// The row that has these codes.
    fn number(&self, codes: &[f32; N]) -> u16 {
        match &self.found[place_of(&codes.map(code), self.bits)] {
            Found::Row(number) => *number,
            Found::Near(_) => 0,
        }
    }
}

/// What the values of a book are where nothing shifts them.
fn itself(value: f32) -> f32 {
    value
}

fn place_of<const N: usize>(codes: &[u8; N], bits: u32) -> usize {
    (codes.iter().rev()).fold(0, |place, code| place << bits | usize::from(*code))
}

fn nearest<const N: usize>(rows: &[[u8; N]], to: &[u8; N], wanted: usize) -> Box<[u16]> {
    let distance = |row: &[u8; N]| -> u32 {
        let off = row.iter().zip(to).map(|(a, b)| u32::from(a.abs_diff(*b)));
        off.map(|off| off * off).sum()
    };
    let distances: Vec<u32> = rows.iter().map(distance).collect();
    // The least of them that differ, in order.
    let mut least: Vec<u32> = Vec::new();
    for &distance in &distances {
        if let Err(at) = least.binary_search(&distance) {
            least.insert(at, distance);
            least.truncate(wanted);
        }
    }
    let most = least.last().copied().unwrap_or(0);
    let mut near: Vec<(u32, u16)> = (distances.into_iter().zip(0..))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    near.sort_unstable();
    near.into_iter().map(|(_, number)| number).collect()
}

/// 8, 25 and 43 as 0, 1 and 2.
fn of_three(value: i8) -> u8 {
    value.unsigned_abs() / 17
}

static IQ2_XXS: LazyLock<Book<8>> =
    LazyLock::new(|| Book::new(&grids::IQ2_XXS.map(|row| row.map(of_three)), 3, 2, 2));
static IQ2_XS: LazyLock<Book<8>> =
    LazyLock::new(|| Book::new(&grids::IQ2_XS.map(|row| row.map(of_three)), 3, 2, 2));
static IQ2_S: LazyLock<Book<8>> =
    LazyLock::new(|| Book::new(&grids::IQ2_S.map(|row| row.map(of_three)), 3, 2, 1));
static IQ3_XXS: LazyLock<Book<4>> = LazyLock::new(|| {
    let codes = grids::IQ3_XXS.map(|row| row.map(|value| value.unsigned_abs() / 8));
    Book::new(&codes, 8, 3, 2)
});
static IQ3_S: LazyLock<Book<4>> = LazyLock::new(|| {
    let codes = grids::IQ3_S.map(|row| row.map(|value| value.unsigned_abs() / 2));
    Book::new(&codes, 8, 3, 3)
});
static IQ1: LazyLock<Book<8>> = LazyLock::new(|| {
    let codes = grids::IQ1_S.map(|row| row.map(|value| (value + 1).unsigned_abs()));
    Book::new(&codes, 3, 2, 3)
});

/// How the scale of a part is looked for.
struct Search {
    /// The largest value that a code stands for: codes stand for 1, 3, 5 and so on.
    top: f32,
    /// Steps to either side of the scale that fits the largest number, and how long one is.
    steps: i8,
    step: f32,
    /// Parts whose largest number is below this are zeros.
    tiny: f32,
    /// Groups of eight have an even number of signs, of which the last one is not written.
    even_signs: bool,
    again: Again,
}

/// Which groups get codes once more, for the scale that was found.
enum Again {
    Always,
    /// All of them, where one is not in the book.
    AllIfNew,
    /// Those that are not in the book.
    New,
}

/// The most groups that a part has.
const GROUPS: usize = 8;

/// A part of a block: codes of rows of the book, a bit for each number that is set where it is negative, and the scale.
struct Part<const PART: usize> {
    codes: [f32; PART],
    signs: u32,
    scale: f32,
}

impl<const PART: usize> Part<PART> {
    /// The signs of each group of eight without the last.
    fn sevens(&self) -> u32 {
        (0..PART / 8).fold(0, |all, k| all | (self.signs >> (8 * k) & 127) << (7 * k))
    }

    fn numbers<'b, const N: usize>(&'b self, book: &'b Book<N>) -> impl Iterator<Item = u16> + 'b {
        let rows = self.codes.as_chunks::<N>().0.iter();
        rows.map(|codes| book.number(codes))
    }
}

/// Magnitudes, and a bit for each number that is set where it is negative.
fn without_signs<const PART: usize>(x: &[f32; PART]) -> ([f32; PART], u32) {
    let mut signs = 0;
    let magnitude = |i: usize| {
        let is_negative = x[i] < 0.0;
        signs |= u32::from(is_negative) << i;
        if is_negative { -x[i] } else { x[i] }
    };
    (core::array::from_fn(magnitude), signs)
}

/// Where a group of eight has an odd number of signs, that of the number that counts least is turned round.
fn make_even<const PART: usize>(x: &mut [f32; PART], w: &[f32; PART], signs: &mut u32) {
    for k in (0..PART).step_by(8) {
        if (*signs >> k & 255).count_ones().is_multiple_of(2) {
            continue;
        }
        let cost = |i: usize| w[i] * x[i] * x[i];
        let least =
            (k + 1..k + 8).fold(k, |least, i| if cost(i) < cost(least) { i } else { least });
        x[least] = -x[least];
        *signs ^= 1 << least;
    }
}

/// The sums that decide about a scale: of products with the numbers, and of squares.
fn sums<const PART: usize>(codes: &[f32; PART], x: &[f32; PART], w: &[f32; PART]) -> (f32, f32) {
    let (mut products, mut squares) = (0.0, 0.0);
    for ((code, x), w) in codes.iter().zip(x).zip(w) {
        let value = 2.0 * code + 1.0;
        products += w * x * value;
        squares += w * value * value;
    }
    (products, squares)
}

/// The best scale and codes; none where all numbers are 0.
fn part<const N: usize, const PART: usize>(
    book: &Book<N>,
    search: &Search,
    x: &[f32; PART],
    w: &[f32; PART],
) -> Option<Part<PART>> {
    let (mut x, mut signs) = without_signs(x);
    if search.even_signs {
        make_even(&mut x, w, &mut signs);
    }
    let most = x
        .iter()
        .fold(x[0], |most, &x| if x > most { x } else { most });
    if most < search.tiny || most == 0.0 {
        return None;
    }
    let (most, scale) = match search.again {
        // From the scale that codes of their own would have.
        Again::Always => {
            let (_, scale) = positive(&x, w, 4.0);
            (scale * 3.0, scale)
        }
        _ => (most, most / search.top),
    };
    if most <= 0.0 {
        return None;
    }
    let mut part = search.run(book, &x, w, most, scale);
    part.signs = signs;
    if part.scale < 0.0 {
        (part.scale, part.signs) = (-part.scale, !part.signs);
    }
    Some(part)
}

impl Search {
    fn run<const N: usize, const PART: usize>(
        &self,
        book: &Book<N>,
        x: &[f32; PART],
        w: &[f32; PART],
        most: f32,
        mut scale: f32,
    ) -> Part<PART> {
        let roots = w.map(square_root);
        let groups = || x.as_chunks::<N>().0.iter().zip(roots.as_chunks::<N>().0);
        let last = (self.top - 1.0) / 2.0;
        let rounded = |x: &[f32; N], inverse: f32| {
            x.map(|x| near_within(0.5 * (inverse * x - 1.0), 0.0, last))
        };
        // Where no step fits, codes are made again in the types that make all of them again.
        let is_unknown = matches!(self.again, Again::AllIfNew);
        let (mut codes, mut is_new) = ([0.0; PART], [is_unknown; GROUPS]);
        let mut best = 0.0;
        for step in -self.steps..=self.steps {
            let inverse = (self.top + f32::from(step) * self.step) / most;
            let (mut tried, mut tried_new) = ([0.0; PART], [false; GROUPS]);
            let each = tried.as_chunks_mut::<N>().0.iter_mut().zip(&mut tried_new);
            for ((codes, is_new), (x, w)) in each.zip(groups()) {
                *codes = rounded(x, inverse);
                *is_new = !book.find(codes, itself, x, w, 1.0 / inverse).1;
            }
            let (products, squares) = sums(&tried, x, w);
            if squares > 0.0 && products * products > best * squares {
                scale = products / squares;
                best = scale * products;
                (codes, is_new) = (tried, tried_new);
            }
        }
        let again = match self.again {
            Again::Always => [true; GROUPS],
            Again::AllIfNew => [is_new.contains(&true); GROUPS],
            Again::New => is_new,
        };
        if again.contains(&true) && scale > 0.0 {
            let each = codes.as_chunks_mut::<N>().0.iter_mut().zip(again);
            for ((codes, _), (x, w)) in each.zip(groups()).filter(|((_, again), _)| *again) {
                *codes = rounded(x, 1.0 / scale);
                book.find(codes, itself, x, w, scale);
            }
            let (products, squares) = sums(&codes, x, w);
            if squares > 0.0 {
                scale = products / squares;
            }
        }
        let signs = 0;
        Part {
            codes,
            signs,
            scale,
        }
    }
}

/// What each number of a part counts.
fn weights<const PART: usize>(x: &[f32; PART], importance: &[f32], mean: f32) -> [f32; PART] {
    core::array::from_fn(|i| importance[i] * square_root(mean + x[i] * x[i]))
}

/// The scale of the scales of parts, and their codes; none where all are 0.
fn codes_of_scales<const PARTS: usize>(
    scales: &[f32; PARTS],
    top: f32,
) -> Option<(f32, [u8; PARTS])> {
    let most = scales
        .iter()
        .fold(0.0, |most, &scale| if scale > most { scale } else { most });
    if most == 0.0 {
        return None;
    }
    let (d, last) = (most / top, (top - 1.0) / 2.0);
    let inverse = 1.0 / d;
    let code_of = |scale: f32| code(near_within(0.5 * (inverse * scale - 1.0), 0.0, last));
    Some((d, scales.map(code_of)))
}

/// Two codes of four bits in each byte, the first in the low ones.
fn put_nibbles(codes: &[u8], out: &mut [u8]) {
    for (out, codes) in out.iter_mut().zip(codes.as_chunks::<2>().0) {
        *out = codes[0] | codes[1] << 4;
    }
}

/// Words of 28 bits of signs, with the codes of the scales above them.
fn put_words(words: &[u32; 8], scales: &[u8; 8], out: &mut [u8], step: usize) {
    for (out, (word, scale)) in out.chunks_mut(step).zip(words.iter().zip(scales)) {
        let word = word | u32::from(*scale) << 28;
        out[..4].copy_from_slice(&word.to_le_bytes());
    }
}

pub(super) fn iq2_xxs(x: &[f32; SUPER], importance: &[f32; SUPER], out: &mut [u8; 66]) {
    const SEARCH: Search = Search {
        top: 5.0,
        steps: 6,
        step: 0.1,
        tiny: TINY,
        even_signs: true,
        again: Again::Always,
    };
    let mean = sum_of_squares(x) / 256.0;
    out.fill(0);
    let (mut scales, mut words) = ([0.0; 8], [0; 8]);
    for (j, x) in x.as_chunks::<32>().0.iter().enumerate() {
        let weights = weights(x, &importance[32 * j..], mean);
        let Some(found) = part(&IQ2_XXS, &SEARCH, x, &weights) else {
            continue;
        };
        (scales[j], words[j]) = (found.scale, found.sevens());
        for (out, row) in out[2 + 8 * j..6 + 8 * j]
            .iter_mut()
            .zip(found.numbers(&IQ2_XXS))
        {
            *out = row.to_le_bytes()[0];
        }
    }
    match codes_of_scales(&scales, 31.0) {
        Some((d, scales)) => {
            put_half(d, out);
            put_words(&words, &scales, &mut out[6..], 8);
        }
        None => out.fill(0),
    }
}

pub(super) fn iq2_xs(x: &[f32; SUPER], importance: &[f32; SUPER], out: &mut [u8; 74]) {
    const SEARCH: Search = Search {
        top: 5.0,
        steps: 9,
        step: 0.1,
        tiny: TINY,
        even_signs: true,
        again: Again::New,
    };
    let mean = sum_of_squares(x) / 256.0;
    out.fill(0);
    let mut scales = [0.0; 16];
    for (j, x) in x.as_chunks::<16>().0.iter().enumerate() {
        let weights = weights(x, &importance[16 * j..], mean);
        let Some(found) = part(&IQ2_XS, &SEARCH, x, &weights) else {
            continue;
        };
        scales[j] = found.scale;
        let signs = found.sevens();
        let words = out[2 + 4 * j..6 + 4 * j].as_chunks_mut::<2>().0;
        for (k, (out, row)) in words.iter_mut().zip(found.numbers(&IQ2_XS)).enumerate() {
            // Seven of 14 bits.
            let signs = u16::from((signs >> (7 * k)).to_le_bytes()[0] & 127);
            *out = (row | signs << 9).to_le_bytes();
        }
    }
    match codes_of_scales(&scales, 31.0) {
        Some((d, scales)) => {
            put_half(d, out);
            put_nibbles(&scales, &mut out[66..]);
        }
        None => out.fill(0),
    }
}

pub(super) fn iq2_s(x: &[f32; SUPER], importance: Option<&[f32; SUPER]>, out: &mut [u8; 82]) {
    const SEARCH: Search = Search {
        top: 5.0,
        steps: 9,
        step: 0.1,
        tiny: 1e-8,
        even_signs: false,
        again: Again::New,
    };
    let mean = 2.0 * sum_of_squares(x) / 256.0;
    out.fill(0);
    let mut scales = [0.0; 16];
    for (j, x) in x.as_chunks::<16>().0.iter().enumerate() {
        let weights = match importance {
            Some(importance) => weights(x, &importance[16 * j..], mean),
            None => x.map(|x| 0.25 * mean + x * x),
        };
        let Some(found) = part(&IQ2_S, &SEARCH, x, &weights) else {
            continue;
        };
        scales[j] = found.scale;
        for (k, row) in found.numbers(&IQ2_S).enumerate() {
            let ([low, high], group) = (row.to_le_bytes(), 2 * j + k);
            out[2 + group] = low;
            out[66 + group / 4] |= high << (2 * (group % 4));
        }
        out[34 + 2 * j..36 + 2 * j].copy_from_slice(&found.signs.to_le_bytes()[..2]);
    }
    if let Some((d, scales)) = codes_of_scales(&scales, 31.0) {
        put_half(d * 0.9875, out);
        put_nibbles(&scales, &mut out[74..]);
    }
}

pub(super) fn iq3_xxs(x: &[f32; SUPER], importance: Option<&[f32; SUPER]>, out: &mut [u8; 98]) {
    const SEARCH: Search = Search {
        top: 15.0,
        steps: 15,
        step: 0.2,
        tiny: 1e-8,
        even_signs: true,
        again: Again::New,
    };
    let mean = 2.0 * sum_of_squares(x) / 256.0;
    out.fill(0);
    let (mut scales, mut words) = ([0.0; 8], [0; 8]);
    for (j, x) in x.as_chunks::<32>().0.iter().enumerate() {
        let weights = match importance {
            Some(importance) => weights(x, &importance[32 * j..], mean),
            None => x.map(|x| x * x),
        };
        let Some(found) = part(&IQ3_XXS, &SEARCH, x, &weights) else {
            continue;
        };
        (scales[j], words[j]) = (found.scale, found.sevens());
        for (out, row) in out[2 + 8 * j..].iter_mut().zip(found.numbers(&IQ3_XXS)) {
            *out = row.to_le_bytes()[0];
        }
    }
    match codes_of_scales(&scales, 31.0) {
        Some((d, scales)) => {
            put_half(d * 1.0125, out);
            put_words(&words, &scales, &mut out[66..], 4);
        }
        None => out.fill(0),
    }
}

pub(super) fn iq3_s(x: &[f32; SUPER], importance: Option<&[f32; SUPER]>, out: &mut [u8; 110]) {
    const SEARCH: Search = Search {
        top: 15.0,
        steps: 9,
        step: 0.2,
        tiny: 0.0,
        even_signs: false,
        again: Again::AllIfNew,
    };
    let mean = 2.0 * sum_of_squares(x) / 256.0;
    out.fill(0);
    let mut scales = [0.0; 8];
    // The reference goes on after a part of zeros where that began: what follows is at another place than it is read from, and
    // the bytes at the end stay zeros.
    let mut place = 0;
    for (j, x) in x.as_chunks::<32>().0.iter().enumerate() {
        let weights = match importance {
            Some(importance) => weights(x, &importance[32 * j..], mean),
            None => x.map(|x| x * x),
        };
        let Some(found) = part(&IQ3_S, &SEARCH, x, &weights) else {
            continue;
        };
        scales[j] = found.scale;
        for (k, row) in found.numbers(&IQ3_S).enumerate() {
            let [low, high] = row.to_le_bytes();
            out[2 + 8 * place + k] = low;
            out[66 + j] |= high << k;
        }
        out[74 + 4 * place..78 + 4 * place].copy_from_slice(&found.signs.to_le_bytes());
        place += 1;
    }
    if let Some((d, scales)) = codes_of_scales(&scales, 31.0) {
        put_half(d * 1.033, out);
        put_nibbles(&scales, &mut out[106..]);
    }
}

/// What the codes of -1, 0 and 1 stand for: all are shifted by an eighth.
fn shifted(down: bool) -> [f32; 3] {
    if down {
        [-1.125, -0.125, 0.875]
    } else {
        [-0.875, 0.125, 1.125]
    }
}

/// The numbers of a part by their size; of equal ones the first comes first.
fn sorted(x: &[f32; 32]) -> [usize; 32] {
    let mut order = core::array::from_fn(|i| i);
    order.sort_by(|&a: &usize, &b| x[a].partial_cmp(&x[b]).unwrap_or(Ordering::Equal));
    order
}

fn most_of(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |most: f32, x| most.max(x.abs()))
}

/// Where sorted numbers are cut into those of -1, 0 and 1, and what they are shifted by.
struct Cuts {
    at: [usize; 2],
    down: bool,
    scale: f32,
    score: f32,
}

impl Cuts {
    /// None yet, which anything is better than.
    fn new() -> Self {
        let (at, down, scale, score) = ([0, 0], false, 0.0, f32::MIN);
        Self {
            at,
            down,
            scale,
            score,
        }
    }

    fn offer(&mut self, at: [usize; 2], down: bool, products: f32, squares: f32) {
        if squares > 0.0 && products * products > self.score * squares {
            let scale = products / squares;
            let score = scale * products;
            *self = Self {
                at,
                down,
                scale,
                score,
            };
        }
    }

    fn codes(&self, order: &[usize; 32]) -> [f32; 32] {
        let mut codes = [0.0; 32];
        for (rank, &i) in order.iter().enumerate() {
            codes[i] = f32::from(u8::from(rank >= self.at[0]) + u8::from(rank >= self.at[1]));
        }
        codes
    }
}

/// The rows of codes, which become those of the rows, and the scale that fits them better where they were in no row.
fn ternary_rows(
    codes: &mut [f32; 32],
    shift: f32,
    x: &[f32; 32],
    w: &[f32; 32],
    scale: &mut f32,
) -> [u16; 4] {
    let (mut rows, mut is_new) = ([0; 4], false);
    let groups = x.as_chunks::<8>().0.iter().zip(w.as_chunks::<8>().0);
    let groups = codes.as_chunks_mut::<8>().0.iter_mut().zip(groups);
    for ((codes, (x, w)), found) in groups.zip(&mut rows) {
        let value = |row: f32| (row - 3.0) / 2.0 + shift;
        let (row, known) = IQ1.find(codes, value, x, w, *scale);
        *found = row;
        is_new |= !known;
    }
    if is_new {
        let (mut products, mut squares) = (0.0, 0.0);
        for ((code, x), w) in codes.iter().zip(x).zip(w) {
            let q = code - 1.0 + shift;
            products += w * q * x;
            squares += w * q * q;
        }
        if products > 0.0 && squares > 0.0 {
            *scale = products / squares;
        }
    }
    rows
}

pub(super) fn iq1_s(x: &[f32; SUPER], importance: &[f32; SUPER], out: &mut [u8; 50]) {
    let mean = 2.0 * sum_of_squares(x) / 256.0;
    out.fill(0);
    let (mut scales, mut words) = ([0.0; 8], [0u16; 8]);
    for (j, x) in x.as_chunks::<32>().0.iter().enumerate() {
        let w = weights(x, &importance[32 * j..], mean);
        if most_of(x) < 1e-12 {
            continue;
        }
        let order = sorted(x);
        // Of numbers, and of their weights, up to each place.
        let (mut of_x, mut of_w) = ([0.0; 33], [0.0; 33]);
        for (rank, &i) in order.iter().enumerate() {
            of_x[rank + 1] = of_x[rank] + w[i] * x[i];
            of_w[rank + 1] = of_w[rank] + w[i];
        }
        let mut cuts = Cuts::new();
        for first in 0..=32 {
            for second in first..=32 {
                let between = |sums: &[f32; 33]| {
                    [
                        sums[first] - sums[0],
                        sums[second] - sums[first],
                        sums[32] - sums[second],
                    ]
                };
                let (x, w) = (between(&of_x), between(&of_w));
                for down in [false, true] {
                    let v = shifted(down);
                    let products = x[0] * v[0] + x[1] * v[1] + x[2] * v[2];
                    let squares = w[0] * v[0] * v[0] + w[1] * v[1] * v[1] + w[2] * v[2] * v[2];
                    cuts.offer([first, second], down, products, squares);
                }
            }
        }
        let mut codes = cuts.codes(&order);
        if cuts.scale < 0.0 {
            codes = codes.map(|code| 2.0 - code);
            (cuts.scale, cuts.down) = (-cuts.scale, !cuts.down);
        }
        let shift = if cuts.down { -0.125 } else { 0.125 };
        let rows = ternary_rows(&mut codes, shift, x, &w, &mut cuts.scale);
        for (k, row) in rows.into_iter().enumerate() {
            let [low, high] = row.to_le_bytes();
            out[2 + 4 * j + k] = low;
            words[j] |= u16::from(high) << (3 * k);
        }
        words[j] |= u16::from(cuts.down) << 15;
        scales[j] = cuts.scale;
    }
    let Some((d, scales)) = codes_of_scales(&scales, 15.0) else {
        return;
    };
    put_half(d * 1.125, out);
    let out = out[34..].as_chunks_mut::<2>().0.iter_mut();
    for (out, (word, scale)) in out.zip(words.into_iter().zip(scales)) {
        *out = (word | u16::from(scale) << 12).to_le_bytes();
    }
}
