//! Histograms: equal bins from the smallest to the largest finite number.

use crate::archive::{Archive, Tensor};
use crate::error::Result;
use crate::format::Control;
use crate::ops::pieces::{self, Work};
use crate::ops::stats::sparse::{self, Stretch};
use crate::ops::stats::{Job, Pass, Scratch, Stats, StatsOptions, stored_len};
use crate::ops::values::CHUNK;
use crate::prelude::*;
use crate::transform::BLOCK;

/// More bins than anybody looks at.
const MOST_BINS: u32 = 1 << 16;

/// How many numbers lie in each of some equal bins.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Histogram {
    /// Where the bins begin, and at last where they end: one more than there are bins.
    pub edges: Vec<f64>,
    /// Numbers from an edge on and below the next; those at the last edge are in the last bin.
    pub counts: Vec<u64>,
}

impl Histogram {
    /// Empty bins from `low` to `high`; around the number where both are the same.
    fn new(low: f64, high: f64, bins: u32) -> Self {
        let bins = bins.clamp(1, MOST_BINS);
        let (low, high) = match low < high {
            true => (low, high),
            false => (low - 0.5, low + 0.5),
        };
        let n = f64::from(bins);
        // The difference of two finite numbers may be infinite.
        let step = match (high - low).is_finite() {
            true => (high - low) / n,
            false => high / n - low / n,
        };
        let mut edges: Vec<f64> = (0..bins).map(|i| f64::from(i) * step + low).collect();
        edges.push(high);
        Self {
            edges,
            counts: vec![0; bins as usize],
        }
    }

    /// Counts a value that is there so many times.
    fn count(&mut self, value: f64, scale: f64, times: u64) {
        let (Some(&low), Some(last)) = (self.edges.first(), self.counts.len().checked_sub(1))
        else {
            return;
        };
        // Rounds towards zero, and what is too large or NaN becomes the nearest that there is.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let mut bin = ((value * scale - low * scale) as usize).min(last);
        // Rounding may have led to a neighbour.
        while bin > 0 && self.edges.get(bin).is_some_and(|&edge| value < edge) {
            bin -= 1;
        }
        while bin < last && self.edges.get(bin + 1).is_some_and(|&edge| value >= edge) {
            bin += 1;
        }
        if let Some(count) = self.counts.get_mut(bin) {
            *count += times;
        }
    }

    /// Bins for one unit.
    fn scale(&self) -> f64 {
        let (low, high) = (self.edges.first(), self.edges.last());
        let bins = self.counts.len() as f64;
        match (low, high) {
            (Some(low), Some(high)) if (high - low).is_finite() => bins / (high - low),
            (Some(low), Some(high)) => 1.0 / (high / bins - low / bins),
            _ => 0.0,
        }
    }

    fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }
}

/// Adds histograms to figures that are known, by a second pass over the data.
pub(super) fn fill(
    archive: &Archive,
    tensors: &[Tensor<'_>],
    bins: u32,
    found: &mut [Result<Stats>],
    total: &mut Stats,
    options: &StatsOptions,
) {
    for tensor in tensors {
        options.control.expect(stored_len(tensor));
    }
    let empty = |stats: &Stats| {
        let (low, high) = (stats.min?.to_f64(), stats.max?.to_f64());
        Some(Histogram::new(low, high, bins))
    };
    let Some(all) = empty(total) else { return };
    let own: Vec<_> = (found.iter())
        .map(|found| found.as_ref().ok().and_then(empty))
        .collect();
    let pass = Count {
        pass: Pass {
            archive,
            tensors,
            control: &options.control,
        },
        own: &own,
        all: &all,
    };
    let counted = pieces::run(&pass, tensors.len(), options.threads);
    let mut sum = all.clone();
    for (stats, counted) in found.iter_mut().zip(counted) {
        match (counted, &mut *stats) {
            (Ok(Some((own, of_all))), Ok(stats)) => {
                stats.histogram = Some(own);
                sum.add(&of_all);
            }
            (Err(error), Ok(_)) => *stats = Err(error),
            _ => {}
        }
    }
    total.histogram = Some(sum);
}

struct Count<'a> {
    pass: Pass<'a>,
    own: &'a [Option<Histogram>],
    all: &'a Histogram,
}

/// Of the tensor by itself, and in the bins of all.
type Both = Option<(Histogram, Histogram)>;

#[derive(Default)]
struct Buffers {
    scratch: Scratch,
    values: Vec<f64>,
}

impl<'a> Work for Count<'a> {
    type Job = (Both, Option<Result<Job<'a>>>);
    type Part = Result<Both>;
    type Outcome = Result<Both>;
    type Scratch = Buffers;

    fn open(&self, index: usize) -> Self::Job {
        let own = self.own.get(index).cloned().flatten();
        let opened = own.as_ref().map(|_| self.pass.open(index));
        (own.map(|own| (own, self.all.clone())), opened)
    }

    fn begin(&self, (empty, opened): &Self::Job) -> (u64, Self::Outcome) {
        match opened {
            None => (0, Ok(None)),
            Some(Ok(job)) => (job.cut.pieces(), Ok(empty.clone())),
            Some(Err(error)) => (0, Err(error.clone())),
        }
    }

    fn piece(&self, (empty, opened): &Self::Job, piece: u64, buffers: &mut Buffers) -> Self::Part {
        let (Some((own, all)), Some(Ok(job))) = (empty, opened) else {
            return Ok(None);
        };
        let (mut own, mut all) = (own.clone(), all.clone());
        let control = self.pass.control;
        count_piece(job, piece, buffers, control, (&mut own, &mut all))
            .map_err(|error| job.tensor.blame(error))?;
        Ok(Some((own, all)))
    }

    fn fold(&self, outcome: &mut Self::Outcome, part: Self::Part) {
        match (&mut *outcome, part) {
            (Ok(Some((own, all))), Ok(Some((more, more_all)))) => {
                own.add(&more);
                all.add(&more_all);
            }
            (Ok(_), Err(error)) => *outcome = Err(error),
            _ => {}
        }
    }
}

fn count_piece(
    job: &Job<'_>,
    piece: u64,
    buffers: &mut Buffers,
    control: &Control,
    (own, all): (&mut Histogram, &mut Histogram),
) -> Result<()> {
    let numbers = &job.values.numbers;
    let Buffers { scratch, values } = buffers;
    let block_len = usize::try_from(numbers.len_of(BLOCK as u64)).unwrap_or(usize::MAX);
    let (own_scale, all_scale) = (own.scale(), all.scale());
    let mut count_all = |values: &[f64]| {
        for &value in values.iter().filter(|value| value.is_finite()) {
            own.count(value, own_scale, 1);
            all.count(value, all_scale, 1);
        }
    };
    if job.is_sparse {
        let mut zeros = 0;
        let Scratch { bytes, buffers } = scratch;
        sparse::walk(job, piece, control, bytes, &mut |stretch| match stretch {
            Stretch::Chunks(count) => zeros += count * CHUNK,
            Stretch::Zeros(count) => zeros += count as u64,
            Stretch::Block(bytes, count) => {
                numbers.doubles(bytes, count, buffers, values);
                count_all(values);
            }
            Stretch::End => {}
        })?;
        own.count(0.0, own_scale, zeros);
        all.count(0.0, all_scale, zeros);
        return Ok(());
    }
    let mut left = job.numbers_from(piece);
    let mut chunks = job.stream(piece, &mut scratch.bytes)?;
    while let Some(chunk) = chunks.next()? {
        for block in chunk.chunks(block_len) {
            let count = usize::try_from(left.min(BLOCK as u64)).unwrap_or(BLOCK);
            numbers.doubles(block, count, &mut scratch.buffers, values);
            count_all(values);
            left -= count as u64;
        }
        control.advance(chunk.len() as u64)?;
    }
    scratch.bytes = chunks.into_buffer();
    Ok(())
}
