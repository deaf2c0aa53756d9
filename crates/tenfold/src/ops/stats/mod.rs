//! What the numbers of tensors are like: extremes, mean, spread, and those that should not be there.

mod histogram;
mod kernel;
mod number;
#[cfg(feature = "scale")]
mod record;
mod sparse;

use core::fmt;

pub use histogram::Histogram;
use histogram::Histograms;
pub use number::Number;
#[cfg(feature = "scale")]
pub(super) use record::{FiguresRecord, NumberRecord};

use crate::archive::{Archive, Tensor};
use crate::error::Result;
use crate::ops::shared::chunks::{Chunks, Cut};
use crate::ops::shared::unless_canceled;
use crate::ops::shared::values::{CHUNK, Values, numbers_len};
use crate::prelude::*;
use crate::threads::{Control, InPieces, Opened, Pace, Progress, Steps, Work};
use crate::transform::{BLOCK, Buffers};

/// What [`stats()`] computes.
#[derive(Clone, Debug, Default)]
pub struct StatsOptions {
    bins: Option<u32>,
    work: Work,
}

impl StatsOptions {
    /// No histograms.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bins of the histograms; without a number, none are made. They need a second look at the data.
    #[must_use]
    pub fn bins(mut self, bins: Option<u32>) -> Self {
        self.bins = bins;
        self
    }

    /// Threads, and a control.
    #[must_use]
    pub fn work(mut self, work: Work) -> Self {
        self.work = work;
        self
    }
}

/// Figures of the numbers of a tensor, or of several.
///
/// An element of several numbers (complex, quaternion) counts as those: its components. Quantized tensors count as what
/// they stand for, sparse ones with their zeros. `min` to `std_dev` are of the finite numbers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Elements of the tensor.
    pub elements: u64,
    /// Numbers that were looked at: the elements, or their components.
    pub numbers: u64,
    /// Of them, those that are neither NaN nor infinite.
    pub finite: u64,
    /// The smallest.
    pub min: Option<Number>,
    /// The largest.
    pub max: Option<Number>,
    /// The arithmetic mean, accumulated in f64; `None` too where sums are beyond that.
    pub mean: Option<f64>,
    /// The standard deviation of the population: divided by the count, not by one less. `None` like the mean.
    pub std_dev: Option<f64>,
    /// Zeros of either sign.
    pub zeros: u64,
    /// Not a number.
    pub nans: u64,
    /// Positive infinities.
    pub positive_infinities: u64,
    /// Negative infinities.
    pub negative_infinities: u64,
    /// Numbers other than 0 that are nearer to it than the smallest normal number of their type.
    pub subnormals: u64,
    /// How the finite numbers are spread, if that was asked for and there are any.
    pub histogram: Option<Histogram>,
}

impl Stats {
    /// The largest absolute value.
    pub fn abs_max(&self) -> Option<Number> {
        Some(Number::farther(self.min?, self.max?))
    }

    /// The squares of the finite numbers together; infinite where `mean` and `std_dev` are beyond f64.
    pub(crate) fn sum_of_squares(&self) -> f64 {
        match (self.mean, self.std_dev) {
            (Some(mean), Some(std_dev)) => (mean * mean + std_dev * std_dev) * self.finite as f64,
            _ if self.finite == 0 => 0.0,
            _ => f64::INFINITY,
        }
    }

    /// Infinities of either sign.
    pub fn infinities(&self) -> u64 {
        self.positive_infinities + self.negative_infinities
    }
}

/// The figures of an archive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ArchiveStats {
    /// Of each tensor, in file order; an error where one cannot be read as numbers.
    pub tensors: Vec<(String, Result<Stats>)>,
    /// Of all tensors that could be read together.
    pub total: Stats,
}

/// Computes figures of every tensor and of all together, in one pass over the data and in bounded memory.
///
/// ```
/// use tenfold::{ArchiveBuilder, Bytes, model::DType, ops};
/// let mut builder = ArchiveBuilder::new();
/// builder.push("x", DType::U8, &[4], Bytes::from_static(&[1, 0, 3, 4]))?;
/// let stats = ops::stats(&builder.finish(), &Default::default())?;
/// let x = stats.tensors[0].1.as_ref().unwrap();
/// assert_eq!((x.mean, x.zeros), (Some(2.0), 1));
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn stats(archive: &Archive, options: &StatsOptions) -> Result<ArchiveStats> {
    StatsSteps::new(archive, options).finish()
}

/// [`stats()`] in steps, for those who have one thread and something else to do. The result is the same.
///
/// See [`Progress`] for an example.
pub struct StatsSteps {
    archive: Archive,
    options: StatsOptions,
    steps: Steps<Result<Found>>,
    /// Of every tensor and of all, when the first pass is done.
    found: Option<(Vec<Result<Stats>>, Stats)>,
    /// While there is a second pass.
    histograms: Option<Histograms>,
}

impl fmt::Debug for StatsSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatsSteps").finish_non_exhaustive()
    }
}

impl StatsSteps {
    /// Nothing is read yet. The threads of the options are those of [`finish`](Self::finish).
    pub fn new(archive: &Archive, options: &StatsOptions) -> Self {
        let Work { threads, control } = &options.work;
        let archive = archive.with_threads(*threads).watched(control);
        expect(&archive, control);
        Self {
            archive,
            options: options.clone().work(options.work.shared()),
            steps: Steps::default(),
            found: None,
            histograms: None,
        }
    }

    /// Does about `budget` bytes, and one piece at least: that is up to some MiB, or a whole tensor where it is sparse or
    /// compressed as one stream.
    pub fn step(&mut self, budget: u64) -> Result<Progress> {
        let control = self.options.work.control.clone();
        self.go_on(&Pace::about(budget, &control))?;
        Ok(Progress::of(&control, self.is_finished()))
    }

    /// Does what is left, and gives the figures.
    pub fn finish(mut self) -> Result<ArchiveStats> {
        let threads = self.archive.threads_for(self.options.work.threads);
        while !self.is_finished() {
            self.go_on(&Pace::All { threads })?;
        }
        let names = self.archive.tensors();
        let names = names.map(|tensor| tensor.name().to_owned());
        let (tensors, total) = self.found.unwrap_or_else(|| put_together(Vec::new()));
        Ok(ArchiveStats {
            tensors: names.zip(tensors).collect(),
            total,
        })
    }

    fn is_finished(&self) -> bool {
        self.found.is_some() && self.histograms.is_none()
    }

    fn go_on(&mut self, pace: &Pace<'_>) -> Result<()> {
        let pass = Pass {
            archive: &self.archive,
            control: &self.options.work.control,
        };
        let tensors: Vec<_> = self.archive.tensors().collect();
        if let Some((found, total)) = &mut self.found {
            if let Some(histograms) = &mut self.histograms
                && histograms.go_on(pass, &tensors, pace, found, total)?
            {
                self.histograms = None;
            }
        } else if let Some(figures) = self.steps.go_on(&pass, tensors.iter().copied(), pace)? {
            let (found, total) = put_together(figures);
            let bins = self.options.bins;
            self.histograms = bins.and_then(|bins| Histograms::new(bins, &found, &total));
            if self.histograms.is_some() {
                expect(&self.archive, &self.options.work.control);
            }
            self.found = Some((found, total));
        }
        Ok(())
    }
}

/// The figures of some of the tensors, to be put together with those of others.
#[cfg(feature = "scale")]
pub(super) fn stats_part(
    archive: &Archive,
    work: &Work,
    part: Range<usize>,
) -> Result<Vec<Result<FiguresRecord>>> {
    let archive = archive.with_threads(work.threads).watched(&work.control);
    let pass = Pass {
        archive: &archive,
        control: &work.control,
    };
    let tensors = archive.tensors().take(part.end).skip(part.start);
    let tensors: Vec<_> = tensors.collect();
    let threads = archive.threads_for(work.threads);
    let found = crate::threads::in_pieces(&pass, tensors, threads)?;
    work.control.check()?;
    let found = found.into_iter();
    Ok(found
        .map(|found| found.map(|found| FiguresRecord::new(found.elements, &found.figures)))
        .collect())
}

/// The figures of tensors and of all of them, from those of their parts.
#[cfg(feature = "scale")]
pub(super) fn stats_of(tensors: Vec<(String, Result<FiguresRecord>)>) -> Option<ArchiveStats> {
    let (names, found): (Vec<_>, Vec<_>) = tensors.into_iter().unzip();
    let figures = found.into_iter().map(|found| match found {
        Ok(record) => record.found().map(Ok),
        Err(error) => Some(Err(error)),
    });
    let (tensors, total) = put_together(figures.collect::<Option<_>>()?);
    Some(ArchiveStats {
        tensors: names.into_iter().zip(tensors).collect(),
        total,
    })
}

/// Announces a pass over the numbers of all tensors.
fn expect(archive: &Archive, control: &Control) {
    for tensor in archive.tensors() {
        control.expect(numbers_len(tensor.info()));
    }
}

/// The figures of every tensor, and of all of them.
fn put_together(figures: Vec<Result<Found>>) -> (Vec<Result<Stats>>, Stats) {
    let mut total = kernel::Figures::default();
    let mut elements = 0u64;
    for figures in figures.iter().filter_map(|found| found.as_ref().ok()) {
        total.add(&figures.figures);
        elements = elements.saturating_add(figures.elements);
    }
    let figures = figures.into_iter();
    let each = figures.map(|found| found.map(|found| found.figures.finish(found.elements)));
    (each.collect(), total.finish(elements))
}

/// The pass over all numbers.
struct Pass<'a> {
    archive: &'a Archive,
    control: &'a Control,
}

struct Job<'a> {
    tensor: Tensor<'a>,
    values: Values<'a>,
    cut: Cut,
    /// Of a sparse tensor, whose zeros are not looked at.
    is_sparse: bool,
}

impl Pass<'_> {
    /// The figures of the chunks of a piece.
    fn figures(&self, job: &Job<'_>, piece: u64, scratch: &mut Scratch) -> Result<Vec<Run>> {
        if job.is_sparse {
            return sparse::figures(job, piece, scratch, self.control);
        }
        let numbers = &job.values.numbers;
        let mut figures = Vec::new();
        let block_len = usize::try_from(numbers.len_of(BLOCK as u64)).unwrap_or(usize::MAX);
        let mut left = job.numbers_from(piece);
        let mut chunks = job.stream(piece, &mut scratch.bytes)?;
        while let Some(chunk) = chunks.next()? {
            let mut of_chunk = kernel::Figures::default();
            for block in chunk.chunks(block_len) {
                let count = usize::try_from(left.min(BLOCK as u64)).unwrap_or(BLOCK);
                of_chunk.add(&kernel::figures(
                    numbers,
                    block,
                    count,
                    &mut scratch.buffers,
                ));
                left -= count as u64;
            }
            self.control.advance(chunk.len() as u64)?;
            figures.push((1, of_chunk));
        }
        scratch.bytes = chunks.into_buffer();
        Ok(figures)
    }
}

impl Job<'_> {
    fn stream(&self, piece: u64, buffer: &mut Vec<u8>) -> Result<Chunks<'_>> {
        let Values { view, .. } = &self.values;
        self.cut.stream(view, self.values.chunk(), piece, buffer)
    }

    /// How many numbers there are from a piece on.
    fn numbers_from(&self, piece: u64) -> u64 {
        let before = self.cut.first_chunk(piece).saturating_mul(CHUNK);
        self.values.count().saturating_sub(before)
    }
}

/// So many chunks, each with these figures.
type Run = (u64, kernel::Figures);

struct Found {
    elements: u64,
    figures: kernel::Figures,
}

#[derive(Default)]
struct Scratch {
    bytes: Vec<u8>,
    buffers: Buffers,
}

impl<'a> Pass<'a> {
    fn job(&self, tensor: Tensor<'a>) -> Result<Job<'a>> {
        let values = Values::open(self.archive, &tensor, true)?;
        let is_sparse = values.view.stored_from(0).is_some();
        let cut = if is_sparse {
            Cut::sparse(&values.view, values.chunk())
        } else {
            Cut::new(&[(&values.view, values.chunk())])
        };
        Ok(Job {
            tensor,
            values,
            cut,
            is_sparse,
        })
    }
}

impl<'a> InPieces for Pass<'a> {
    type Item = Tensor<'a>;
    type Job = Job<'a>;
    /// Figures for every chunk.
    type Found = Result<Vec<Run>>;
    type Outcome = Result<Found>;
    type Scratch = Scratch;

    fn open(&self, tensor: Tensor<'a>) -> Result<Opened<Job<'a>, Result<Found>>> {
        Ok(match unless_canceled(self.job(tensor))? {
            Ok(job) => {
                let elements = job.values.elements;
                let figures = kernel::Figures::default();
                let pieces = job.cut.pieces();
                Opened::new(job, pieces, Ok(Found { elements, figures }))
            }
            Err(error) => Opened::done(Err(error)),
        })
    }

    fn is_light(&self, job: &Job<'a>) -> bool {
        job.values.is_light
    }

    fn piece(&self, job: &Job<'a>, piece: u64, scratch: &mut Scratch) -> Result<Self::Found> {
        let figures = self.figures(job, piece, scratch);
        unless_canceled(figures.map_err(|error| job.tensor.blame(error)))
    }

    fn fold(&self, outcome: &mut Self::Outcome, found: Self::Found) -> bool {
        match (&mut *outcome, found) {
            (Ok(all), Ok(found)) => {
                for (times, figures) in found {
                    // One by one, also where all are the same: that decides about the last digits.
                    (0..times).for_each(|_| all.figures.add(&figures));
                }
            }
            (Ok(_), Err(error)) => *outcome = Err(error),
            (Err(_), _) => {}
        }
        outcome.is_ok()
    }
}

#[cfg(test)]
mod tests;
