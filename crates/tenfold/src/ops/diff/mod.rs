//! How two archives differ, in any formats.

mod bytes;
mod exact;
mod metadata;
mod names;
mod numbers;
mod tolerance;

use core::fmt;

pub use metadata::MetadataChange;
pub use numbers::{Difference, First};
pub use tolerance::Tolerance;

use crate::archive::{Archive, Tensor};
use crate::error::{Error, Result};
use crate::model::{DType, TensorInfo};
use crate::ops::Parts;
use crate::ops::shared::unless_canceled;
use crate::ops::shared::values::{number_type, numbers_len};
use crate::prelude::*;
use crate::threads::{Pace, Progress, Steps, Work};

use numbers::Sums;

/// How archives are compared.
#[derive(Clone, Debug, Default)]
pub struct DiffOptions {
    tolerance: Option<Tolerance>,
    ignore_dtype: bool,
    ignore_metadata: bool,
    names_only: bool,
    work: Work,
}

impl DiffOptions {
    /// Everything counts, every bit of it.
    pub fn new() -> Self {
        Self::default()
    }

    /// How far apart numbers may be. Without a tolerance, every bit counts: 0 and -0 differ, and so do different NaNs.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Option<Tolerance>) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Whether tensors of different types are equal if their numbers are.
    #[must_use]
    pub fn ignore_dtype(mut self, ignore: bool) -> Self {
        self.ignore_dtype = ignore;
        self
    }

    /// Whether metadata, of files and of tensors, is ignored.
    #[must_use]
    pub fn ignore_metadata(mut self, ignore: bool) -> Self {
        self.ignore_metadata = ignore;
        self
    }

    /// Whether only the names are compared; no data is read.
    #[must_use]
    pub fn names_only(mut self, names_only: bool) -> Self {
        self.names_only = names_only;
        self
    }

    /// Threads, and a control.
    #[must_use]
    pub fn work(mut self, work: Work) -> Self {
        self.work = work;
        self
    }
}

/// The differences between two archives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diff {
    /// The tensors that are not the same in both: those of the first archive in its order, then what the second adds.
    pub changes: Vec<Change>,
    /// Tensors that are the same in both.
    pub equal: usize,
    /// The metadata in which the files and the tensors differ.
    pub metadata: Vec<MetadataChange>,
}

impl Diff {
    /// Whether nothing is different.
    pub fn is_equal(&self) -> bool {
        self.changes.is_empty() && self.metadata.is_empty()
    }
}

/// A tensor that is not the same in both archives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Change {
    /// Its name in the first archive, or in the second if it is only there.
    pub name: String,
    /// What it is in the first archive.
    pub a: Option<Side>,
    /// What it is in the second.
    pub b: Option<Side>,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// A tensor in one of the archives.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Side {
    /// Its name there.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// What its parts are, if it has no dense form.
    pub parts: Option<Parts>,
}

impl Side {
    fn new(info: &TensorInfo) -> Self {
        Self {
            name: info.name.clone(),
            dtype: info.dtype,
            shape: info.shape.to_vec(),
            parts: Parts::of(info),
        }
    }
}

/// What happened to a tensor from the first archive to the second.
#[allow(clippy::large_enum_variant)] // one for each tensor that differs, of which there are few
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChangeKind {
    /// Only the second has it.
    Added,
    /// Its shape, its type or its values differ. The values are compared where both are known as numbers and the shapes
    /// are equal, or differ in the size of one dimension: then in the part that both have.
    Changed(Option<Difference>),
    /// Only the first has it.
    Removed,
    /// The second has the same content, type and shape under another name.
    Renamed,
    /// It cannot be read, so nothing is known.
    Unreadable {
        /// In which archive; in both perhaps, then it is the first.
        of: Which,
        /// Why.
        error: Error,
    },
}

/// One of the two archives that are compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs)] // the names say it
pub enum Which {
    First,
    Second,
}

/// A tensor that cannot be read, and in which archive.
type Unreadable = (Which, Error);

/// An error of one of the two, or of neither: the work was stopped.
enum Trouble {
    Stopped(Error),
    Unreadable(Which, Error),
}

impl Trouble {
    fn of(which: Which, tensor: &Tensor<'_>, error: Error) -> Self {
        Self::Unreadable(which, tensor.blame(error))
    }

    /// Tells what ends the work from what is known of a pair of tensors.
    fn unless_stopped<T>(result: Result<T, Self>) -> Result<Result<T, Unreadable>> {
        match result {
            Ok(found) => Ok(Ok(found)),
            Err(Self::Stopped(error)) => Err(error),
            Err(Self::Unreadable(which, error)) => {
                unless_canceled(Err(error)).map(|found| found.map_err(|error| (which, error)))
            }
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Stopped(error)
    }
}

/// Compares two archives: names, shapes, types, values, metadata.
///
/// Equal bytes are found without looking at numbers; what differs is read a second time for its figures. Memory is
/// bounded, and the result is the same for any number of threads.
///
/// ```
/// use tenfold::{Archive, ops};
/// let archive = |numbers: [u8; 3]| {
///     let mut builder = Archive::builder();
///     builder.tensor("x", [3], numbers)?;
///     Ok::<_, tenfold::Error>(builder.finish())
/// };
/// let diff = ops::diff(&archive([1, 2, 3])?, &archive([1, 2, 5])?, &Default::default())?;
/// let ops::ChangeKind::Changed(Some(values)) = &diff.changes[0].kind else { panic!() };
/// assert_eq!((values.different, values.max_abs), (1, Some(2.0)));
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn diff(a: &Archive, b: &Archive, options: &DiffOptions) -> Result<Diff> {
    DiffSteps::new(a, b, options).finish()
}

/// [`diff()`] in steps, for those who have one thread and something else to do. The result is the same.
///
/// ```
/// use tenfold::{ArchiveBuilder, Bytes, model::DType, ops};
/// let mut builder = ArchiveBuilder::new();
/// builder.push("x", DType::U8, &[3], Bytes::from_static(&[1, 2, 3]))?;
/// let archive = builder.finish();
/// let mut steps = ops::DiffSteps::new(&archive, &archive, &Default::default());
/// while !steps.step(1 << 20)?.is_finished {
///     // Time for everything else.
/// }
/// assert!(steps.finish()?.is_equal());
/// # Ok::<(), tenfold::Error>(())
/// ```
pub struct DiffSteps {
    archives: [Archive; 2],
    options: DiffOptions,
    /// Of the pairs of tensors, in their order.
    verdicts: Vec<Option<Verdict>>,
    /// For every tensor that is only in the first archive, the place of the one that it became in the second.
    renames: Vec<Option<usize>>,
    pass: Pass,
}

/// The passes over the data, one after the other. Each looks at the pairs of which nothing is known before.
enum Pass {
    Stored(Steps<Result<bool, Unreadable>>),
    Canonical(Steps<Result<bool, Unreadable>>),
    Numbers(Steps<Result<Sums, Unreadable>>),
    #[cfg(feature = "digest")]
    Renames(Steps<Result<[u8; 32]>>),
    Finished,
}

impl fmt::Debug for DiffSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiffSteps").finish_non_exhaustive()
    }
}

impl DiffSteps {
    /// Nothing is read yet. The threads of the options are those of [`finish`](Self::finish).
    pub fn new(a: &Archive, b: &Archive, options: &DiffOptions) -> Self {
        let Work { threads, control } = &options.work;
        let archives = [a, b].map(|archive| archive.with_threads(*threads).watched(control));
        let mut steps = Self {
            archives,
            options: options.clone().work(options.work.shared()),
            verdicts: Vec::new(),
            renames: Vec::new(),
            pass: Pass::Finished,
        };
        if !steps.options.names_only {
            let [a, b] = &steps.archives;
            let matched = names::pair(a, b);
            steps.verdicts = matched.pairs.iter().map(before_reading).collect();
            steps.pass = Pass::Stored(Steps::default());
            steps.expect();
        }
        steps
    }

    /// Does about `budget` bytes, and one piece at least: that is up to some MiB, or a whole tensor where it is sparse or
    /// compressed as one stream.
    pub fn step(&mut self, budget: u64) -> Result<Progress> {
        let control = self.options.work.control.clone();
        self.go_on(&Pace::about(budget, &control))?;
        let is_finished = matches!(self.pass, Pass::Finished);
        Ok(Progress::of(&control, is_finished))
    }

    /// Does what is left, and gives the differences.
    pub fn finish(mut self) -> Result<Diff> {
        let [a, b] = &self.archives.clone();
        let matched = names::pair(a, b);
        let mut diff = Diff {
            changes: Vec::new(),
            equal: 0,
            metadata: Vec::new(),
        };
        if self.options.names_only {
            diff.equal = matched.pairs.len();
            diff.changes = matched.without_data();
            return Ok(diff);
        }
        if !self.options.ignore_metadata {
            metadata::compare(a, b, &matched.pairs, &mut diff.metadata)?;
        }
        let asked = self.options.work.threads;
        let threads = a.threads_for(asked).max(b.threads_for(asked));
        while !matches!(self.pass, Pass::Finished) {
            self.go_on(&Pace::All { threads })?;
        }
        for ((left, right), verdict) in matched.pairs.iter().zip(self.verdicts) {
            let kind = match verdict {
                Some(Verdict::Equal) => {
                    diff.equal += 1;
                    continue;
                }
                Some(Verdict::Changed(difference)) => ChangeKind::Changed(difference),
                Some(Verdict::Unreadable(of, error)) => ChangeKind::Unreadable { of, error },
                None => ChangeKind::Changed(None),
            };
            diff.changes.push(Change {
                name: left.name().to_owned(),
                a: Some(Side::new(left.info())),
                b: Some(Side::new(right.info())),
                kind,
            });
        }
        diff.changes.extend(matched.changes(&self.renames));
        names::sort(a, &mut diff.changes);
        Ok(diff)
    }

    /// Places that can be given to others: the tensors of the first archive, and after them those that only the second has.
    #[cfg(feature = "scale")]
    pub(super) fn places(&self) -> Vec<u64> {
        let [a, b] = &self.archives;
        names::pair(a, b).lens(a)
    }

    /// What is known of some of these places, when nothing else was looked at.
    #[cfg(feature = "scale")]
    pub(super) fn part(mut self, part: Range<usize>) -> Result<DiffPart> {
        let [a, b] = &self.archives.clone();
        let matched = names::pair(a, b);
        let own = matched.own(a, &part);
        // What others look at is taken for known.
        for (verdict, own) in self.verdicts.iter_mut().zip(&own.pairs) {
            if !own {
                *verdict = Some(Verdict::Equal);
            }
        }
        let threads = self.options.work.threads;
        let threads = a.threads_for(threads).max(b.threads_for(threads));
        let pace = Pace::All { threads };
        while !matches!(self.pass, Pass::Renames(_) | Pass::Finished) {
            self.go_on(&pace)?;
        }
        let control = self.options.work.control.clone();
        let digests = if self.options.names_only {
            Vec::new()
        } else {
            matched.digest_some((a, b), &control, &own.alike, threads)?
        };
        control.check()?;
        let pairs = own.pairs.iter().zip(self.verdicts).enumerate();
        Ok(DiffPart {
            verdicts: pairs
                .filter(|(_, (own, _))| **own)
                .map(|(place, (_, verdict))| (place, verdict))
                .collect(),
            digests,
        })
    }

    /// The differences, from what was found by parts.
    #[cfg(feature = "scale")]
    pub(super) fn put_together(mut self, parts: Vec<DiffPart>) -> Result<Diff> {
        let [a, b] = &self.archives.clone();
        let matched = names::pair(a, b);
        let mut digests: Vec<_> = (0..matched.alike_len())
            .map(|_| Err(Error::canceled()))
            .collect();
        for part in parts {
            for (place, verdict) in part.verdicts {
                if let Some(known) = self.verdicts.get_mut(place) {
                    *known = verdict;
                }
            }
            for (place, digest) in part.digests {
                if let Some(known) = digests.get_mut(place) {
                    *known = digest;
                }
            }
        }
        if !self.options.names_only {
            self.renames = matched.renames(&digests);
        }
        self.pass = Pass::Finished;
        self.finish()
    }

    fn go_on(&mut self, pace: &Pace<'_>) -> Result<()> {
        let [a, b] = &self.archives;
        let matched = names::pair(a, b);
        let options = &self.options;
        let (pairs, verdicts) = (&matched.pairs, &mut self.verdicts);
        let next = match &mut self.pass {
            Pass::Stored(steps) => bytes::go_on(
                (a, b),
                bytes::How::Stored,
                pairs,
                verdicts,
                options,
                steps,
                pace,
            )?
            .then(|| Pass::Canonical(Steps::default())),
            Pass::Canonical(steps) => bytes::go_on(
                (a, b),
                bytes::How::Canonical,
                pairs,
                verdicts,
                options,
                steps,
                pace,
            )?
            .then(|| Pass::Numbers(Steps::default())),
            Pass::Numbers(steps) => numbers::go_on((a, b), pairs, verdicts, options, steps, pace)?
                .then(|| {
                    #[cfg(feature = "digest")]
                    return Pass::Renames(Steps::default());
                    #[cfg(not(feature = "digest"))]
                    Pass::Finished
                }),
            #[cfg(feature = "digest")]
            Pass::Renames(steps) => {
                let digests = matched.digest((a, b), &options.work.control, steps, pace)?;
                self.renames = digests
                    .as_deref()
                    .map(|all| matched.renames(all))
                    .unwrap_or_default();
                digests.map(|_| Pass::Finished)
            }
            Pass::Finished => None,
        };
        if let Some(next) = next {
            self.pass = next;
            self.expect();
        }
        Ok(())
    }

    /// Announces a pass.
    fn expect(&mut self) {
        let [a, b] = &self.archives;
        let matched = names::pair(a, b);
        let both = |pair: &Pair<'_>, len: &dyn Fn(&TensorInfo) -> u64| {
            len(pair.0.info()).saturating_add(len(pair.1.info()))
        };
        let open = |also: &dyn Fn(&Pair<'_>) -> bool, len: &dyn Fn(&TensorInfo) -> u64| {
            let known = matched.pairs.iter().zip(&self.verdicts);
            let open = known.filter(|(pair, verdict)| verdict.is_none() && also(pair));
            open.map(|(pair, _)| both(pair, len))
                .fold(0, u64::saturating_add)
        };
        let how = |how: bytes::How| open(&|pair| how.applies(pair), &|info| how.len(info));
        self.options.work.control.expect(match self.pass {
            Pass::Stored(_) => how(bytes::How::Stored),
            Pass::Canonical(_) => how(bytes::How::Canonical),
            Pass::Numbers(_) => open(&are_numbers, &numbers_len),
            #[cfg(feature = "digest")]
            Pass::Renames(_) => matched.digested_len(),
            Pass::Finished => 0,
        });
    }
}

/// What was found of a part of two archives.
#[cfg(feature = "scale")]
pub(super) struct DiffPart {
    /// Of pairs, by their places.
    pub(super) verdicts: Vec<(usize, Option<Verdict>)>,
    /// Of tensors that may have been renamed, by their places among those.
    pub(super) digests: Vec<(usize, Result<[u8; 32]>)>,
}

/// What is known of a pair of tensors.
#[allow(clippy::large_enum_variant)] // see `ChangeKind`
pub(super) enum Verdict {
    Equal,
    Changed(Option<Difference>),
    Unreadable(Which, Error),
}

type Pair<'t> = (Tensor<'t>, Tensor<'t>);

/// The pairs of which nothing is known yet, and for which `also` is true.
fn open_pairs<'p, 't>(
    pairs: &'p [Pair<'t>],
    verdicts: &'p mut [Option<Verdict>],
    also: impl Fn(&Pair<'_>) -> bool,
) -> Vec<(&'p Pair<'t>, &'p mut Option<Verdict>)> {
    let known = pairs.iter().zip(verdicts);
    known
        .filter(|(pair, verdict)| verdict.is_none() && also(pair))
        .collect()
}

/// What the descriptions decide.
fn before_reading((a, b): &Pair<'_>) -> Option<Verdict> {
    for (which, tensor) in [(Which::First, a), (Which::Second, b)] {
        if let Err(error) = tensor.info().readable() {
            return Some(Verdict::Unreadable(which, tensor.blame(error)));
        }
    }
    let is_alike = a.info().shape == b.info().shape || common_shape(&(*a, *b)).is_some();
    (!is_alike).then_some(Verdict::Changed(None))
}

/// The shape of the part that two tensors have in common, where they differ in the size of one dimension: an embedding
/// that got more rows.
fn common_shape((a, b): &Pair<'_>) -> Option<Vec<u64>> {
    let (a, b) = (&a.info().shape, &b.info().shape);
    let sizes = || a.iter().zip(b.iter());
    let is_resized = a.len() == b.len() && sizes().filter(|(a, b)| a != b).count() == 1;
    let common: Vec<u64> = sizes().map(|(a, b)| *a.min(b)).collect();
    (is_resized && !common.contains(&0)).then_some(common)
}

/// Whether equal bytes mean the same: in dense tensors if the types are equal, else if the parts are too.
fn same_type((a, b): &Pair<'_>) -> bool {
    kind(a.info()) == kind(b.info())
}

type Kind = (DType, Option<Parts>);

/// What a tensor is apart from its name, its shape and its bytes.
fn kind(info: &TensorInfo) -> Kind {
    (info.dtype, Parts::of(info))
}

/// Whether both are known as numbers, and elements have equally many.
fn are_numbers((a, b): &Pair<'_>) -> bool {
    match (number_type(a.info()), number_type(b.info())) {
        (DType::Number(_, lanes), DType::Number(_, others)) => lanes == others,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
