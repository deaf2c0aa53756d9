//! How different the numbers of two tensors are.

use super::tolerance::{Tolerance, grain};
use super::{
    DiffOptions, Pair, Trouble, Unreadable, Verdict, Which, are_numbers, common_shape, exact,
    open_pairs, same_type,
};
use crate::archive::Archive;
use crate::error::Result;
use crate::model::DType;
use crate::ops::Number;
use crate::ops::shared::chunks::Cut;
use crate::ops::shared::values::{CHUNK, Values, number_type};
use crate::prelude::*;
use crate::threads::{InPieces, Opened, Pace, Steps};
use crate::transform::{BLOCK, Buffers, Numbers};

/// How different the numbers of two tensors are. Errors are those of the second against the first, of numbers that are
/// finite in both; sums are in f64.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// Numbers that were compared: the elements, or their components.
    pub numbers: u64,
    /// Numbers that count as different: beyond the tolerance, or in any bit where there is none.
    pub different: u64,
    /// Of them, those that are 0 in both, with different signs.
    pub signs_of_zero: u64,
    /// Of them, those that are NaN in both, with different bits.
    pub nan_bits: u64,
    /// Of them, those that are finite in one only, or infinite with different signs.
    pub not_finite: u64,
    /// What was compared of tensors that have other sizes along one dimension: the shape of the part that both have,
    /// from the first index on.
    pub common: Option<Vec<u64>>,
    /// The first that is different.
    pub first: Option<First>,
    /// The largest absolute error.
    pub max_abs: Option<f64>,
    /// The largest error relative to the first number, where that is not 0.
    pub max_rel: Option<f64>,
    /// The length of the difference, relative to the length of the first tensor.
    pub relative_l2: Option<f64>,
    /// The cosine of the angle between both.
    pub cosine: Option<f64>,
    /// The sums of squares of the difference and of both, and the sum of products, to be added to those of others.
    pub(crate) sums: [f64; 4],
}

/// A place where tensors differ.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct First {
    /// The indices of the element.
    pub index: Vec<u64>,
    /// The number in the first tensor.
    pub a: Number,
    /// The number in the second.
    pub b: Number,
}

/// Goes on with comparing the numbers of pairs of which nothing is known; true when that is done.
pub(super) fn go_on(
    archives: (&Archive, &Archive),
    pairs: &[Pair<'_>],
    verdicts: &mut [Option<Verdict>],
    options: &DiffOptions,
    steps: &mut Steps<Result<Sums, Unreadable>>,
    pace: &Pace<'_>,
) -> Result<bool> {
    let open = open_pairs(pairs, verdicts, are_numbers);
    let pass = Pass { archives, options };
    let items = open.iter().map(|(pair, _)| *pair);
    let Some(found) = steps.go_on(&pass, items, pace)? else {
        return Ok(false);
    };
    for ((pair, verdict), found) in open.into_iter().zip(found) {
        *verdict = Some(match found.map(|sums| sums.finish(pair)) {
            Ok(found)
                if found.different == 0
                    && found.common.is_none()
                    && (options.ignore_dtype || same_type(pair)) =>
            {
                Verdict::Equal
            }
            Ok(found) => Verdict::Changed(Some(found)),
            Err((of, error)) => Verdict::Unreadable(of, error),
        });
    }
    Ok(true)
}

/// Compares the numbers of pairs that have the same shape, or of what they have in common.
struct Pass<'a> {
    archives: (&'a Archive, &'a Archive),
    options: &'a DiffOptions,
}

struct Job<'a> {
    pair: &'a Pair<'a>,
    a: Values<'a>,
    b: Values<'a>,
    cut: Cut,
    /// Same bits, same number: types are equal, and nothing is decoded.
    by_bits: bool,
}

#[derive(Default)]
struct Scratch {
    bytes: [Vec<u8>; 2],
    buffers: Buffers,
    values: [Vec<f64>; 2],
    differing: Vec<bool>,
    distances: Vec<f64>,
}

impl<'a> InPieces for Pass<'a> {
    type Item = &'a Pair<'a>;
    type Job = Job<'a>;
    type Found = Result<Vec<Sums>, Unreadable>;
    type Outcome = Result<Sums, Unreadable>;
    type Scratch = Scratch;

    fn open(&self, pair: &'a Pair<'a>) -> Result<Opened<Job<'a>, Self::Outcome>> {
        Ok(match Trouble::unless_stopped(self.job(pair))? {
            Ok(job) => {
                let pieces = job.cut.pieces();
                Opened::new(job, pieces, Ok(Sums::default()))
            }
            Err(unreadable) => Opened::done(Err(unreadable)),
        })
    }

    fn is_light(&self, job: &Job<'a>) -> bool {
        job.a.is_light && job.b.is_light
    }

    fn piece(&self, job: &Job<'a>, piece: u64, scratch: &mut Scratch) -> Result<Self::Found> {
        Trouble::unless_stopped(self.sums(job, piece, scratch))
    }

    fn fold(&self, outcome: &mut Self::Outcome, found: Self::Found) -> bool {
        match (&mut *outcome, found) {
            (Ok(sums), Ok(found)) => found.iter().for_each(|more| sums.add(more)),
            (Ok(_), Err(error)) => *outcome = Err(error),
            (Err(_), _) => {}
        }
        outcome.is_ok()
    }
}

impl<'a> Pass<'a> {
    fn job(&self, pair: &'a Pair<'a>) -> Result<Job<'a>, Trouble> {
        let (left, right) = pair;
        let of_a = |error| Trouble::of(Which::First, left, error);
        let of_b = |error| Trouble::of(Which::Second, right, error);
        let (first, second) = self.archives;
        let (a, b) = match common_shape(pair) {
            None => (
                Values::open(first, left, false).map_err(of_a)?,
                Values::open(second, right, false).map_err(of_b)?,
            ),
            Some(shape) => (
                Values::open_part(first, left, &shape).map_err(of_a)?,
                Values::open_part(second, right, &shape).map_err(of_b)?,
            ),
        };
        let cut = Cut::new(&[(&a.view, a.chunk()), (&b.view, b.chunk())]);
        let by_bits = a.numbers.scalar() == b.numbers.scalar();
        Ok(Job {
            pair,
            a,
            b,
            cut,
            by_bits,
        })
    }

    /// The sums of the chunks of a piece.
    fn sums(&self, job: &Job<'_>, piece: u64, scratch: &mut Scratch) -> Result<Vec<Sums>, Trouble> {
        let Job { a, b, cut, .. } = job;
        let mut at = cut.first_chunk(piece).saturating_mul(CHUNK);
        let [left, right] = &mut scratch.bytes;
        let of_a = |error| Trouble::of(Which::First, &job.pair.0, error);
        let of_b = |error| Trouble::of(Which::Second, &job.pair.1, error);
        let mut a_chunks = cut.stream(&a.view, a.chunk(), piece, left).map_err(of_a)?;
        let mut b_chunks = cut.stream(&b.view, b.chunk(), piece, right).map_err(of_b)?;
        let block_len =
            |numbers: &Numbers| usize::try_from(numbers.len_of(BLOCK as u64)).unwrap_or(usize::MAX);
        let mut all = Vec::new();
        while let (Some(left), Some(right)) = (
            a_chunks.next().map_err(of_a)?,
            b_chunks.next().map_err(of_b)?,
        ) {
            let mut sums = Sums::default();
            let blocks = left.chunks(block_len(&a.numbers));
            for (left, right) in blocks.zip(right.chunks(block_len(&b.numbers))) {
                let left_over = a.count().saturating_sub(at);
                let count = usize::try_from(left_over.min(BLOCK as u64)).unwrap_or(BLOCK);
                let block = (left, right, count);
                sums.add(&self.block(job, block, at, scratch));
                at += count as u64;
            }
            self.options
                .work
                .control
                .advance((left.len() + right.len()) as u64)?;
            all.push(sums);
        }
        scratch.bytes = [a_chunks.into_buffer(), b_chunks.into_buffer()];
        Ok(all)
    }
}

impl Pass<'_> {
    /// The sums of a block of `count` numbers, the first of which is number `at`.
    fn block(
        &self,
        job: &Job<'_>,
        (left, right, count): (&[u8], &[u8], usize),
        at: u64,
        scratch: &mut Scratch,
    ) -> Sums {
        let (a, b) = (&job.a.numbers, &job.b.numbers);
        let Scratch {
            buffers,
            values: [x, y],
            differing,
            distances,
            ..
        } = scratch;
        a.doubles(left, count, buffers, x);
        b.doubles(right, count, buffers, y);
        let numbers = || x.iter().zip(y.iter());
        distances.clear();
        distances.extend(numbers().map(|(x, y)| (y - x).abs()));
        if job.by_bits {
            a.differing(left, right, count, differing);
        } else {
            differing.clear();
            differing.extend(numbers().map(|(x, y)| !(x == y || x.is_nan() && y.is_nan())));
        }
        if exact::is_long(a.scalar()) || exact::is_long(b.scalar()) {
            for (n, ((&x, &y), distance)) in numbers().zip(&mut *distances).enumerate() {
                let numbers = [(a, left, x), (b, right, y)]
                    .map(|(of, bytes, value)| Number::at(of.scalar(), bytes, n, value));
                if let Some(apart) = exact::distance(numbers) {
                    *distance = apart as f64;
                    if let Some(differs) = differing.get_mut(n) {
                        *differs |= apart > 0;
                    }
                }
            }
        }
        let rule = Rule {
            tolerance: self.options.tolerance,
            grain: grain(a.scalar(), b.scalar()),
        };
        let mut sums = Sums {
            numbers: count as u64,
            ..Sums::default()
        };
        let numbers = x.iter().zip(y.iter()).zip(distances.iter());
        for (n, (((&x, &y), &distance), &differs)) in numbers.zip(differing.iter()).enumerate() {
            sums.number(x, y, distance);
            if differs && sums.compare(x, y, distance, &rule) && sums.first.is_none() {
                let x = Number::at(a.scalar(), left, n, x);
                let y = Number::at(b.scalar(), right, n, y);
                sums.first = Some((at + n as u64, x, y));
            }
        }
        sums
    }
}

/// When numbers whose bits differ count as different.
struct Rule {
    tolerance: Option<Tolerance>,
    grain: Option<(u32, i32)>,
}

/// What can be put together, in the same order always.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    numbers: u64,
    different: u64,
    signs_of_zero: u64,
    nan_bits: u64,
    not_finite: u64,
    first: Option<(u64, Number, Number)>,
    /// Numbers that are finite in both.
    finite: u64,
    max_abs: f64,
    max_rel: f64,
    squares: f64,
    squares_a: f64,
    squares_b: f64,
    product: f64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.numbers += other.numbers;
        self.different += other.different;
        self.signs_of_zero += other.signs_of_zero;
        self.nan_bits += other.nan_bits;
        self.not_finite += other.not_finite;
        self.first = self.first.or(other.first);
        self.finite += other.finite;
        self.max_abs = self.max_abs.max(other.max_abs);
        self.max_rel = self.max_rel.max(other.max_rel);
        self.squares += other.squares;
        self.squares_a += other.squares_a;
        self.squares_b += other.squares_b;
        self.product += other.product;
    }

    /// A pair of numbers.
    fn number(&mut self, x: f64, y: f64, distance: f64) {
        if x.is_finite() && y.is_finite() {
            self.finite += 1;
            self.squares += distance * distance;
            self.squares_a += x * x;
            self.squares_b += y * y;
            self.product += x * y;
            self.max_abs = self.max_abs.max(distance);
            if x != 0.0 {
                self.max_rel = self.max_rel.max(distance / x.abs());
            }
        }
    }

    /// A pair of numbers whose bits differ. Says whether they count as different.
    fn compare(&mut self, x: f64, y: f64, distance: f64, rule: &Rule) -> bool {
        let signs = x.is_sign_negative() != y.is_sign_negative();
        let zeros = x == 0.0 && y == 0.0 && distance == 0.0 && signs;
        let nans = x.is_nan() && y.is_nan();
        let finite = x.is_finite() && y.is_finite();
        if let Some(tolerance) = &rule.tolerance
            && (zeros || nans || finite && tolerance.allows(x, y, distance, rule.grain))
        {
            return false;
        }
        self.different += 1;
        self.signs_of_zero += u64::from(zeros);
        self.nan_bits += u64::from(nans);
        self.not_finite += u64::from(!finite && !nans);
        true
    }

    fn finish(&self, pair: &Pair<'_>) -> Difference {
        let (a, _) = pair;
        let lanes = match number_type(a.info()) {
            DType::Number(_, lanes) => u64::from(lanes.count()),
            _ => 1,
        };
        let common = common_shape(pair);
        let shape = common.as_deref().unwrap_or(&a.info().shape);
        let known = |value: f64| Some(value).filter(|value| self.finite > 0 && value.is_finite());
        let lengths = root(self.squares_a) * root(self.squares_b);
        Difference {
            numbers: self.numbers,
            different: self.different,
            signs_of_zero: self.signs_of_zero,
            nan_bits: self.nan_bits,
            not_finite: self.not_finite,
            first: self.first.map(|(at, a, b)| First {
                index: indices(at / lanes.max(1), shape),
                a,
                b,
            }),
            common: common.clone(),
            max_abs: known(self.max_abs),
            max_rel: known(self.max_rel),
            relative_l2: match self.squares {
                0.0 => known(0.0),
                squares => known(root(squares) / root(self.squares_a)),
            },
            cosine: known(self.product / lengths).map(|cosine| cosine.clamp(-1.0, 1.0)),
            sums: [self.squares, self.squares_a, self.squares_b, self.product],
        }
    }
}

fn root(value: f64) -> f64 {
    crate::transform::square_root(value)
}

/// The indices of an element by its place in row-major order.
fn indices(place: u64, shape: &[u64]) -> Vec<u64> {
    let mut rest = place;
    let mut indices: Vec<u64> = (shape.iter().rev())
        .map(|&size| {
            let index = rest % size.max(1);
            rest /= size.max(1);
            index
        })
        .collect();
    indices.reverse();
    indices
}
