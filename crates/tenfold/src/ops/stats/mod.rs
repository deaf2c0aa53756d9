//! What the numbers of tensors are like: extremes, mean, spread, and those that should not be there.

mod histogram;
mod kernel;
mod number;
mod sparse;

pub use histogram::Histogram;
pub(super) use kernel::square_root;
pub use number::Number;

use crate::archive::{Archive, Tensor};
use crate::error::{Error, Result};
use crate::format::{Control, Finding, Severity};
use crate::ops::chunks::{Chunks, Cut};
use crate::ops::pieces::{self, Work};
use crate::ops::values::{CHUNK, Values};
use crate::prelude::*;
use crate::transform::{BLOCK, Buffers};

/// What [`stats`] computes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StatsOptions {
    /// Bins of the histograms; without, none are made. They need a second look at the data.
    pub bins: Option<u32>,
    /// Threads; 0 is one for every core. The result does not depend on it.
    pub threads: usize,
    /// Lets another thread watch and stop the work.
    pub control: Arc<Control>,
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
/// let stats = ops::stats(&builder.finish(), &Default::default());
/// let x = stats.tensors[0].1.as_ref().unwrap();
/// assert_eq!((x.mean, x.zeros), (Some(2.0), 1));
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn stats(archive: &Archive, options: &StatsOptions) -> ArchiveStats {
    let archive = &archive.with_threads(options.threads);
    let tensors: Vec<_> = archive.tensors().collect();
    for tensor in &tensors {
        options.control.expect(stored_len(tensor));
    }
    let pass = Pass {
        archive,
        tensors: &tensors,
        control: &options.control,
    };
    let figures = pieces::run(&pass, tensors.len(), options.threads);
    let mut total = kernel::Figures::default();
    let mut elements = 0u64;
    for figures in figures.iter().filter_map(|found| found.as_ref().ok()) {
        total.add(&figures.figures);
        elements = elements.saturating_add(figures.elements);
    }
    let mut total = total.finish(elements);
    let mut found: Vec<Result<Stats>> = figures
        .into_iter()
        .map(|found| found.map(|found| found.figures.finish(found.elements)))
        .collect();
    if let Some(bins) = options.bins {
        histogram::fill(archive, &tensors, bins, &mut found, &mut total, options);
    }
    let names = tensors.iter().map(|tensor| tensor.name().to_owned());
    ArchiveStats {
        tensors: names.zip(found).collect(),
        total,
    }
}

/// Warnings about numbers that a sound model seldom has: NaN, infinities, tensors of nothing but zeros.
///
/// Tensors that cannot be read are left to [`verify`](super::verify), those that are no numbers are passed over.
pub fn check_numbers(archive: &Archive, threads: usize) -> Vec<Finding> {
    let options = StatsOptions {
        threads,
        ..StatsOptions::default()
    };
    let found = stats(archive, &options);
    let mut findings = Vec::new();
    for (tensor, (_, stats)) in archive.tensors().zip(&found.tensors) {
        let Ok(stats) = stats else { continue };
        let plural = if stats.numbers == 1 { "" } else { "s" };
        let of = format!("of {} number{plural}", stats.numbers);
        let mut warn = |rule, message: String| {
            let error = tensor.blame(Error::malformed(rule, message));
            let place = tensor.info().parts.first();
            let error = match place.and_then(|part| part.payload.stored()) {
                Some((source, range)) => error.at_source(source, range),
                None => error,
            };
            findings.push(Finding {
                severity: Severity::Warning,
                ..Finding::from(&error)
            });
        };
        let are = |n: u64| if n == 1 { "is" } else { "are" };
        if stats.nans > 0 {
            warn(
                "nan",
                format!("{} {of} {} NaN", stats.nans, are(stats.nans)),
            );
        }
        if stats.infinities() > 0 {
            let n = stats.infinities();
            warn("infinite", format!("{n} {of} {} infinite", are(n)));
        }
        if stats.numbers > 0 && stats.zeros == stats.numbers {
            warn(
                "zeros",
                format!("all of its {} numbers are 0", stats.numbers),
            );
        }
    }
    let looked_at = found.tensors.iter().filter(|(_, stats)| stats.is_ok());
    let message = match looked_at.count() {
        1 => "the numbers of 1 tensor were looked at".to_owned(),
        n => format!("the numbers of {n} tensors were looked at"),
    };
    let id = archive.format().map_or("file", |spec| spec.id);
    findings.push(Finding {
        severity: Severity::Note,
        ..Finding::from(&Error::malformed("numbers", message).in_format(id))
    });
    findings
}

/// Bytes that will be read.
fn stored_len(tensor: &Tensor<'_>) -> u64 {
    let parts = tensor.info().parts.iter();
    parts
        .map(|part| part.payload.len())
        .fold(0, u64::saturating_add)
}

/// The pass over all numbers.
struct Pass<'a> {
    archive: &'a Archive,
    tensors: &'a [Tensor<'a>],
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

impl<'a> Work for Pass<'a> {
    type Job = Result<Job<'a>>;
    /// Figures for every chunk.
    type Part = Result<Vec<Run>>;
    type Outcome = Result<Found>;
    type Scratch = Scratch;

    fn open(&self, index: usize) -> Self::Job {
        let tensor = (self.tensors.get(index)).ok_or_else(|| Error::argument("no such tensor"))?;
        let values = Values::open(self.archive, tensor, true)?;
        let is_sparse = values.view.stored_from(0).is_some();
        let cut = match is_sparse {
            true => Cut::sparse(&values.view, values.chunk()),
            false => Cut::new(&[(&values.view, values.chunk())]),
        };
        Ok(Job {
            tensor: *tensor,
            values,
            cut,
            is_sparse,
        })
    }

    fn begin(&self, job: &Self::Job) -> (u64, Self::Outcome) {
        match job {
            Ok(job) => {
                let elements = job.values.elements;
                let figures = kernel::Figures::default();
                (job.cut.pieces(), Ok(Found { elements, figures }))
            }
            Err(error) => (0, Err(error.clone())),
        }
    }

    fn piece(&self, job: &Self::Job, piece: u64, scratch: &mut Scratch) -> Self::Part {
        let job = job.as_ref().map_err(Clone::clone)?;
        let figures = self.figures(job, piece, scratch);
        figures.map_err(|error| job.tensor.blame(error))
    }

    fn fold(&self, outcome: &mut Self::Outcome, part: Self::Part) {
        match (&mut *outcome, part) {
            (Ok(found), Ok(part)) => {
                for (times, figures) in part {
                    // One by one, also where all are the same: that decides about the last digits.
                    (0..times).for_each(|_| found.figures.add(&figures));
                }
            }
            (Ok(_), Err(error)) => *outcome = Err(error),
            (Err(_), _) => {}
        }
    }
}

#[cfg(test)]
mod tests;
