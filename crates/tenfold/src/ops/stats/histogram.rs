//! Histograms: equal bins from the smallest to the largest finite number.

use crate::archive::Tensor;
use crate::error::Result;
use crate::ops::shared::unless_canceled;
use crate::ops::shared::values::CHUNK;
use crate::ops::stats::sparse::{self, Stretch};
use crate::ops::stats::{Job, Pass, Scratch, Stats};
use crate::prelude::*;
use crate::threads::{Control, InPieces, Opened, Pace, Steps};
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
        let (low, high) = if low < high {
            (low, high)
        } else {
            (low - 0.5, low + 0.5)
        };
        let n = f64::from(bins);
        // The difference of two finite numbers may be infinite.
        let step = if (high - low).is_finite() {
            (high - low) / n
        } else {
            high / n - low / n
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

/// Histograms that are added to figures that are known, by a second pass over the data.
pub(super) struct Histograms {
    /// Empty, for every tensor that has finite numbers.
    own: Vec<Option<Histogram>>,
    all: Histogram,
    steps: Steps<Result<Both>>,
}

impl Histograms {
    /// `None` where there are no finite numbers.
    pub(super) fn new(bins: u32, found: &[Result<Stats>], total: &Stats) -> Option<Self> {
        let empty = |stats: &Stats| {
            let (low, high) = (stats.min?.to_f64(), stats.max?.to_f64());
            Some(Histogram::new(low, high, bins))
        };
        let own = found.iter();
        let own = own.map(|found| found.as_ref().ok().and_then(empty));
        Some(Self {
            own: own.collect(),
            all: empty(total)?,
            steps: Steps::default(),
        })
    }

    /// Goes on with counting; true when the figures have their histograms.
    pub(super) fn go_on(
        &mut self,
        pass: Pass<'_>,
        tensors: &[Tensor<'_>],
        pace: &Pace<'_>,
        found: &mut [Result<Stats>],
        total: &mut Stats,
    ) -> Result<bool> {
        let all = &self.all;
        let items = tensors.iter().copied().zip(&self.own);
        let Some(counted) = self.steps.go_on(&Count { pass, all }, items, pace)? else {
            return Ok(false);
        };
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
        Ok(true)
    }
}

struct Count<'a> {
    pass: Pass<'a>,
    all: &'a Histogram,
}

/// Of the tensor by itself, and in the bins of all.
type Both = Option<(Histogram, Histogram)>;

#[derive(Default)]
struct Buffers {
    scratch: Scratch,
    values: Vec<f64>,
}

impl<'a> InPieces for Count<'a> {
    /// A tensor with its bins, if it has finite numbers.
    type Item = (Tensor<'a>, &'a Option<Histogram>);
    type Job = (Job<'a>, &'a Histogram);
    type Found = Result<(Histogram, Histogram)>;
    type Outcome = Result<Both>;
    type Scratch = Buffers;

    fn open(&self, (tensor, own): Self::Item) -> Result<Opened<Self::Job, Self::Outcome>> {
        let Some(own) = own else {
            return Ok(Opened::done(Ok(None)));
        };
        Ok(match unless_canceled(self.pass.job(tensor))? {
            Ok(job) => {
                let pieces = job.cut.pieces();
                let outcome = Ok(Some((own.clone(), self.all.clone())));
                Opened::new((job, own), pieces, outcome)
            }
            Err(error) => Opened::done(Err(error)),
        })
    }

    fn is_light(&self, (job, _): &Self::Job) -> bool {
        job.values.is_light
    }

    fn piece(
        &self,
        (job, empty): &Self::Job,
        piece: u64,
        buffers: &mut Buffers,
    ) -> Result<Self::Found> {
        let (mut own, mut all) = ((*empty).clone(), self.all.clone());
        let control = self.pass.control;
        let counted = count_piece(job, piece, buffers, control, (&mut own, &mut all));
        unless_canceled(
            counted
                .map_err(|error| job.tensor.blame(error))
                .map(|()| (own, all)),
        )
    }

    fn fold(&self, outcome: &mut Self::Outcome, found: Self::Found) -> bool {
        match (&mut *outcome, found) {
            (Ok(Some((own, all))), Ok((more, more_all))) => {
                own.add(&more);
                all.add(&more_all);
            }
            (Ok(_), Err(error)) => *outcome = Err(error),
            _ => {}
        }
        outcome.is_ok()
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
