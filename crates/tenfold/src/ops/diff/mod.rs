//! What is different between two archives, in any formats.

mod bytes;
mod exact;
mod metadata;
mod names;
mod numbers;
mod tolerance;

pub use metadata::MetadataChange;
pub use numbers::{Difference, First};
pub use tolerance::Tolerance;

use crate::archive::{Archive, Tensor};
use crate::error::{Error, Result};
use crate::format::Control;
use crate::model::{DType, TensorInfo};
use crate::ops::Parts;
use crate::ops::values::number_type;
use crate::prelude::*;

/// How archives are compared.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DiffOptions {
    /// How far numbers may be apart. Without, every bit counts: 0 and -0 differ, and so do different NaNs.
    pub tolerance: Option<Tolerance>,
    /// Tensors of different types are equal if their numbers are.
    pub ignore_dtype: bool,
    /// What files and tensors say beside their numbers is not compared.
    pub ignore_metadata: bool,
    /// Only the names are compared; no data is read.
    pub names_only: bool,
    /// Threads; 0 is one for every core. The result does not depend on it.
    pub threads: usize,
    /// Lets another thread watch and stop the work.
    pub control: Arc<Control>,
}

/// The differences between two archives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diff {
    /// The tensors that are not the same in both: those of the first archive in its order, then what the second adds.
    pub changes: Vec<Change>,
    /// Tensors that are the same in both.
    pub equal: usize,
    /// What the files and the tensors say differently beside the numbers.
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
            shape: info.shape.clone(),
            parts: Parts::of(info),
        }
    }
}

/// What happened to a tensor from the first archive to the second.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ChangeKind {
    /// Only the second has it.
    Added,
    /// Its shape, its type or its values are others. The values are compared where the shapes are equal and both are
    /// known as numbers.
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

/// An error of one of the two, or of neither: the work was stopped.
#[derive(Clone)]
struct Trouble {
    of: Option<Which>,
    error: Error,
}

impl Trouble {
    fn of(which: Which, tensor: &Tensor<'_>, error: Error) -> Self {
        Self {
            of: Some(which),
            error: tensor.blame(error),
        }
    }

    /// What it says of a pair of tensors.
    fn verdict(self) -> Result<Verdict> {
        match self {
            Self {
                of: Some(of),
                error,
            } if error.kind() != crate::ErrorKind::Canceled => Ok(Verdict::Unreadable(of, error)),
            Self { error, .. } => Err(error),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self { of: None, error }
    }
}

/// Compares two archives: names, shapes, types, values, metadata.
///
/// Equal bytes are found without looking at numbers; what differs is read a second time for its figures. Memory is
/// bounded, and the result is the same for any number of threads.
///
/// ```
/// use tenfold::{ArchiveBuilder, Bytes, model::DType, ops};
/// let archive = |bytes: &'static [u8]| {
///     let mut builder = ArchiveBuilder::new();
///     builder.push("x", DType::U8, &[3], Bytes::from_static(bytes)).map(|()| builder.finish())
/// };
/// let diff = ops::diff(&archive(&[1, 2, 3])?, &archive(&[1, 2, 5])?, &Default::default())?;
/// let ops::ChangeKind::Changed(Some(values)) = &diff.changes[0].kind else { panic!() };
/// assert_eq!((values.different, values.max_abs), (1, Some(2.0)));
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn diff(a: &Archive, b: &Archive, options: &DiffOptions) -> Result<Diff> {
    let [a, b] = &[a, b].map(|archive| archive.with_threads(options.threads));
    let matched = names::pair(a, b);
    let mut diff = Diff {
        changes: Vec::new(),
        equal: 0,
        metadata: Vec::new(),
    };
    if options.names_only {
        diff.equal = matched.pairs.len();
        diff.changes = matched.without_data();
        return Ok(diff);
    }
    if !options.ignore_metadata {
        metadata::compare(a, b, &matched.pairs, &mut diff.metadata)?;
    }
    let verdicts = compare(a, b, &matched.pairs, options)?;
    for ((left, right), verdict) in matched.pairs.iter().zip(verdicts) {
        let kind = match verdict {
            Verdict::Equal => {
                diff.equal += 1;
                continue;
            }
            Verdict::Changed(difference) => ChangeKind::Changed(difference),
            Verdict::Unreadable(of, error) => ChangeKind::Unreadable { of, error },
        };
        diff.changes.push(Change {
            name: left.name().to_owned(),
            a: Some(Side::new(left.info())),
            b: Some(Side::new(right.info())),
            kind,
        });
    }
    diff.changes.extend(matched.found(a, b, options));
    names::sort(a, &mut diff.changes);
    Ok(diff)
}

/// What is known of a pair of tensors.
enum Verdict {
    Equal,
    Changed(Option<Difference>),
    Unreadable(Which, Error),
}

type Pair<'t> = (Tensor<'t>, Tensor<'t>);

/// Compares pairs of tensors: first bytes, then the numbers of those whose bytes or types differ.
fn compare(
    a: &Archive,
    b: &Archive,
    pairs: &[Pair<'_>],
    options: &DiffOptions,
) -> Result<Vec<Verdict>> {
    let mut verdicts: Vec<Option<Verdict>> = pairs.iter().map(before_reading).collect();
    for how in [bytes::How::Stored, bytes::How::Canonical] {
        let open = open_pairs(&verdicts, |index| {
            pairs.get(index).is_some_and(|pair| how.applies(pair))
        });
        let same = bytes::compare(a, b, pairs, &open, how, options);
        for (index, same) in open.into_iter().zip(same) {
            let Some(verdict) = verdicts.get_mut(index) else {
                continue;
            };
            match same {
                Ok(true) => *verdict = Some(Verdict::Equal),
                Ok(false) => {}
                Err(trouble) => *verdict = Some(trouble.verdict()?),
            }
        }
    }
    let has_numbers = |index: usize| pairs.get(index).is_some_and(are_numbers);
    let open = open_pairs(&verdicts, has_numbers);
    let found = numbers::compare(a, b, pairs, &open, options);
    for (index, found) in open.into_iter().zip(found) {
        let (Some(verdict), Some(pair)) = (verdicts.get_mut(index), pairs.get(index)) else {
            continue;
        };
        *verdict = Some(match found {
            Ok(found) if found.different == 0 && (options.ignore_dtype || same_type(pair)) => {
                Verdict::Equal
            }
            Ok(found) => Verdict::Changed(Some(found)),
            Err(trouble) => trouble.verdict()?,
        });
    }
    let verdicts = verdicts.into_iter();
    Ok(verdicts
        .map(|verdict| verdict.unwrap_or(Verdict::Changed(None)))
        .collect())
}

/// The pairs of which nothing is known yet, and for which `also` is true.
fn open_pairs(verdicts: &[Option<Verdict>], also: impl Fn(usize) -> bool) -> Vec<usize> {
    let known = verdicts.iter().enumerate();
    known
        .filter(|(index, verdict)| verdict.is_none() && also(*index))
        .map(|(index, _)| index)
        .collect()
}

/// What the descriptions decide.
fn before_reading((a, b): &Pair<'_>) -> Option<Verdict> {
    for (which, tensor) in [(Which::First, a), (Which::Second, b)] {
        if let Err(error) = tensor.info().readable() {
            return Some(Verdict::Unreadable(which, tensor.blame(error)));
        }
    }
    (a.info().shape != b.info().shape).then_some(Verdict::Changed(None))
}

/// Whether equal bytes mean the same: in dense tensors if the types are equal, else if the parts are too.
fn same_type((a, b): &Pair<'_>) -> bool {
    kind(a.info()) == kind(b.info())
}

/// What a tensor is apart from its name, its shape and its bytes.
fn kind(info: &TensorInfo) -> (DType, Option<Parts>) {
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
