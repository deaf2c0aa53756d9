//! Verification: reading with the warnings shown, and every checksum computed.

mod checksums;
#[cfg(feature = "digest")]
mod digests;
mod numbers;

use core::fmt;

pub use checksums::compare_checksums;
pub(super) use checksums::compare_checksums_watched;
#[cfg(feature = "digest")]
pub use digests::{Expected, compare_digests};
pub use numbers::check_numbers;

use crate::archive::{Archive, Tensor};
use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::format::{Finding, Severity};
use crate::model::{Checksum, DType, DigestKind, Over, Part, Role, SourceId, TensorInfo};
use crate::ops::extents::{ExtentKind, PADDING, claimed, is_padding};
use crate::ops::shared::unless_canceled;
use crate::prelude::*;
use crate::threads::{self, Control, Pace, Progress, Work};
use crate::transform::{
    NO_NEGATIVE, View, check_bools, check_content, check_layout, check_symmetry,
};

use checksums::{Sum, compare, compare_seal, hashed_len};

/// How archives are verified.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    work: Work,
}

impl VerifyOptions {
    /// On all cores.
    pub fn new() -> Self {
        Self::default()
    }

    /// Threads, and a control.
    #[must_use]
    pub fn work(mut self, work: Work) -> Self {
        self.work = work;
        self
    }
}

/// What verification found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verified {
    /// What is worth telling, in the order of the file.
    pub findings: Vec<Finding>,
    /// What was checked: without findings it says how much that means.
    pub checked: Checked,
    /// The numbers were looked at, and nothing else.
    is_of_numbers: bool,
}

impl Verified {
    /// Whether no finding is an error. Warnings are about what readers tolerate.
    pub fn is_sound(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.all(|finding| finding.severity < Severity::Error)
    }

    #[cfg(feature = "scale")]
    pub(in crate::ops) fn nothing(is_of_numbers: bool) -> Self {
        Self {
            findings: Vec::new(),
            checked: Checked::default(),
            is_of_numbers,
        }
    }

    /// How much was checked, as a note to be told beside the findings.
    pub fn note(&self, archive: &Archive) -> Finding {
        self.note_in(archive.format().map(|spec| spec.id))
    }

    /// The same of a file in this format.
    pub fn note_in(&self, format: Option<&'static str>) -> Finding {
        let error = match (self.is_of_numbers, self.checked.tensors) {
            (false, _) => Error::malformed("checked", self.checked.to_string()),
            (true, 1) => Error::malformed("numbers", "the numbers of 1 tensor were checked"),
            (true, n) => {
                let message = format!("the numbers of {n} tensors were checked");
                Error::malformed("numbers", message)
            }
        };
        Finding {
            severity: Severity::Note,
            ..Finding::from(&format.into_iter().fold(error, Error::in_format))
        }
    }
}

/// How much was checked.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Checked {
    /// Tensors that were read: all but those with a defect.
    pub tensors: usize,
    /// Parts of tensors whose checksum was compared, for each kind of checksum.
    pub checksums: Vec<(DigestKind, usize)>,
    /// Parts with a checksum that is not known here.
    pub unknown_checksums: usize,
    /// Parts without a checksum.
    pub without_checksum: usize,
}

impl Checked {
    pub(in crate::ops) fn add(&mut self, other: Self) {
        self.tensors += other.tensors;
        self.unknown_checksums += other.unknown_checksums;
        self.without_checksum += other.without_checksum;
        for (kind, n) in other.checksums {
            match (self.checksums.iter_mut()).find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += n,
                None => self.checksums.push((kind, n)),
            }
        }
    }
}

/// `6 tensors were checked, 5 parts were verified by crc32c, 1 part has no checksum`
impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let were = |n: usize, what: &str| match n {
            1 => format!("1 {what} was"),
            _ => format!("{n} {what}s were"),
        };
        write!(f, "{} checked", were(self.tensors, "tensor"))?;
        for (kind, n) in &self.checksums {
            write!(f, ", {} verified by {kind}", were(*n, "part"))?;
        }
        match self.unknown_checksums {
            0 => {}
            1 => f.write_str(", 1 part has a checksum that is not verified")?,
            n => write!(f, ", {n} parts have checksums that are not verified")?,
        }
        match self.without_checksum {
            0 => Ok(()),
            1 => f.write_str(", 1 part has no checksum"),
            n => write!(f, ", {n} parts have no checksum"),
        }
    }
}

/// Finds everything that is worth telling about a file: what describing it noticed, what its checksums and its content
/// say, and bytes that belong to nothing.
///
/// ```
/// use tenfold::{Archive, Bytes, model::DType, ops};
/// let mut builder = Archive::builder();
/// builder.push("flags", DType::BOOL, &[3], Bytes::from_static(&[0, 1, 2]))?;
/// let verified = ops::verify(&builder.finish(), &Default::default())?;
/// assert_eq!(verified.findings[0].tensor.as_deref(), Some("flags")); // 2 is neither true nor false
/// assert_eq!((verified.checked.tensors, verified.checked.without_checksum), (1, 1));
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn verify(archive: &Archive, options: &VerifyOptions) -> Result<Verified> {
    VerifySteps::new(archive, options).finish()
}

/// [`verify()`] in steps, for those who have one thread and something else to do. The result is the same.
///
/// ```
/// use tenfold::{Archive, Bytes, model::DType, ops};
/// let mut builder = Archive::builder();
/// builder.push("flags", DType::BOOL, &[3], Bytes::from_static(&[0, 1, 1]))?;
/// let mut steps = ops::VerifySteps::new(&builder.finish(), &Default::default());
/// while !steps.step(1 << 20)?.is_finished {
///     // Time for everything else.
/// }
/// assert!(steps.finish()?.is_sound());
/// # Ok::<(), tenfold::Error>(())
/// ```
pub struct VerifySteps {
    archive: Archive,
    work: Work,
    /// Of the tensors that are done.
    looks: Vec<Look>,
    /// Of the one after them, if it was begun.
    begun: Option<Look>,
    /// Of the sealed ranges that are done, when all tensors are.
    seals: Vec<Option<Finding>>,
    /// Which tensors are looked at: all, or some of them where others look at the rest.
    part: Range<usize>,
}

impl fmt::Debug for VerifySteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifySteps").finish_non_exhaustive()
    }
}

impl VerifySteps {
    /// Nothing is read yet. The threads of the options are those of [`finish`](Self::finish).
    pub fn new(archive: &Archive, options: &VerifyOptions) -> Self {
        let all = archive.manifest().tensors.len();
        Self::part(archive, options, 0..all)
    }

    /// For some of the tensors. What describing the file noticed belongs to the first of them, what is after all tensors to
    /// the last.
    pub(in crate::ops) fn part(
        archive: &Archive,
        options: &VerifyOptions,
        part: Range<usize>,
    ) -> Self {
        let Work { threads, control } = &options.work;
        let archive = archive.with_threads(*threads).watched(control);
        let manifest = archive.manifest();
        let own = manifest.tensors.iter().skip(part.start).take(part.len());
        for info in own.filter(|info| info.defect.is_none()) {
            for part in &info.parts {
                control.expect(read_len(info, part));
            }
        }
        let is_last = part.end >= manifest.tensors.len();
        for sealed in manifest.sealed.iter().filter(|_| is_last) {
            let Range { start, end } = sealed.range;
            control.expect(end.saturating_sub(start));
        }
        Self {
            archive,
            work: options.work.shared(),
            looks: Vec::new(),
            begun: None,
            seals: Vec::new(),
            part,
        }
    }

    fn is_last(&self) -> bool {
        self.part.end >= self.archive.manifest().tensors.len()
    }

    /// Does about `budget` bytes, and one piece at least: that is up to some MiB, or all of a part that is compressed as one
    /// stream, or of a range that has one checksum.
    pub fn step(&mut self, budget: u64) -> Result<Progress> {
        let control = self.work.control.clone();
        self.go_on(&Pace::about(budget, &control))?;
        Ok(Progress::of(&control, self.is_finished()))
    }

    /// Does what is left, and gives what verification found.
    pub fn finish(mut self) -> Result<Verified> {
        let threads = self.archive.threads_for(self.work.threads);
        while !self.is_finished() {
            self.go_on(&Pace::All { threads })?;
        }
        let is_last = self.is_last();
        let mut verified = Verified {
            findings: Vec::new(),
            checked: Checked::default(),
            is_of_numbers: false,
        };
        if self.part.start == 0 {
            verified.findings.extend_from_slice(self.archive.findings());
        }
        for look in self.looks {
            verified.findings.extend(look.findings);
            verified.checked.add(look.checked);
        }
        verified.findings.extend(self.seals.into_iter().flatten());
        let id = self.archive.format().map_or("file", |spec| spec.id);
        if is_last {
            verified.findings.extend(unclaimed(&self.archive, id));
        }
        self.work.control.check()?;
        Ok(verified)
    }

    fn is_finished(&self) -> bool {
        let sealed = if self.is_last() {
            self.archive.manifest().sealed.len()
        } else {
            0
        };
        self.looks.len() == self.part.len() && self.seals.len() == sealed
    }

    fn go_on(&mut self, pace: &Pace<'_>) -> Result<()> {
        let Work { threads, control } = &self.work;
        let archive = &self.archive;
        let tensors = archive.tensors().take(self.part.end);
        let tensors = tensors.skip(self.part.start + self.looks.len());
        if let (Pace::All { .. }, None) = (pace, &self.begun) {
            let tensors: Vec<_> = tensors.collect();
            let look = |tensor, (): &mut ()| {
                let mut look = Look::default();
                look.go_on(archive, tensor, control, pace)?;
                Ok::<_, Error>(look)
            };
            let looks = threads::map(archive.threads_for(*threads), &tensors, look)?;
            self.looks.extend(looks);
        } else {
            for tensor in tensors {
                let mut look = self.begun.take().unwrap_or_default();
                if look.go_on(archive, &tensor, control, pace)? {
                    self.looks.push(look);
                } else {
                    self.begun = Some(look);
                }
                if pace.is_over() {
                    return Ok(());
                }
            }
        }
        if !self.is_last() {
            return Ok(());
        }
        let id = archive.format().map_or("file", |spec| spec.id);
        for sealed in archive.manifest().sealed.iter().skip(self.seals.len()) {
            let compared = unless_canceled(compare_seal(archive, sealed, control))?;
            let finding = compared.map_err(|error| Finding::from(&error.in_format(id)));
            self.seals.push(finding.err());
            if pace.is_over() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Whether the bytes of a part can be wrong by themselves, and in which way to look at them.
fn content_check(info: &TensorInfo, part: &Part) -> impl Fn(&[u8], bool, u64) -> Option<String> {
    // Of a sparse tensor only the values are bools, the indices are numbers.
    let is_bool =
        info.dtype == DType::BOOL && part.dtype != DType::BOOL && part.role == Role::Values;
    let dtype = part.dtype;
    move |bytes, last, elements| {
        if is_bool {
            check_bools(dtype, bytes)
        } else {
            check_content(dtype, bytes, last, elements)
        }
    }
}

/// Whether a part is read after decompression: raw bytes that nothing is said about need not be.
fn is_decoded(info: &TensorInfo, part: &Part) -> bool {
    let sum = Sum::new(part.checksum.as_deref(), Over::Decoded);
    let has_content = content_check(info, part)(&[0xff; 4], true, 1).is_some();
    sum.is_some() || has_content || part.payload.is_encoded()
}

/// Bytes of a part that are read.
fn read_len(info: &TensorInfo, part: &Part) -> u64 {
    let sum = part.checksum.as_ref();
    let stored = sum.filter(|sum| sum.over == Over::Stored);
    let stored = stored.map_or(0, |_| hashed_len(part));
    let decoded = if is_decoded(info, part) {
        part.payload.len()
    } else {
        0
    };
    stored.saturating_add(decoded)
}

/// What was found in one tensor so far.
#[derive(Default)]
struct Look {
    findings: Vec<Finding>,
    checked: Checked,
    /// Parts that are done.
    parts: usize,
    /// Of the part after them, how far it is read: as it is stored, then decoded.
    stored: Reading,
    decoded: Reading,
    /// What is wrong with its content.
    wrong: Option<String>,
}

/// Bytes that are read to their end, perhaps in several steps.
#[derive(Default)]
struct Reading {
    at: u64,
    /// What they hash to, once they were begun.
    hasher: Option<Option<Hasher>>,
    is_done: bool,
}

impl Look {
    /// Goes on with a tensor; true when all of it was looked at.
    fn go_on(
        &mut self,
        archive: &Archive,
        tensor: &Tensor<'_>,
        control: &Control,
        pace: &Pace<'_>,
    ) -> Result<bool> {
        let info = tensor.info();
        if let Some(defect) = &info.defect {
            self.fail(tensor, defect.clone());
            return Ok(true);
        }
        self.checked.tensors = 1;
        for part in info.parts.iter().skip(self.parts) {
            match unless_canceled(self.part(archive, tensor, part, control, pace))? {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => self.fail(tensor, error),
            }
            self.parts += 1;
            (self.stored, self.decoded, self.wrong) = Default::default();
        }
        if self.findings.is_empty()
            && let Err(error) = unless_canceled(self.structure(archive, tensor))?
        {
            self.fail(tensor, error);
        }
        Ok(true)
    }

    fn fail(&mut self, tensor: &Tensor<'_>, error: Error) {
        self.findings.push(Finding::from(&tensor.blame(error)));
    }

    fn warn(&mut self, tensor: &Tensor<'_>, error: Error) {
        self.findings.push(Finding {
            severity: Severity::Warning,
            ..Finding::from(&tensor.blame(error))
        });
    }

    /// Reads a part to its end: its checksum, its codec, the values of its type. False where it is enough for now.
    fn part(
        &mut self,
        archive: &Archive,
        tensor: &Tensor<'_>,
        part: &Part,
        control: &Control,
        pace: &Pace<'_>,
    ) -> Result<bool> {
        let info = tensor.info();
        let place = part.payload.stored();
        let at = |error: Error| match &place {
            Some((source, range)) if error.range().is_none() => {
                error.at_source(*source, range.clone())
            }
            _ => error,
        };
        let sum = part.checksum.as_deref();
        if let Some(checksum) = sum.filter(|sum| sum.over == Over::Stored) {
            let view = View::stored(archive.data(), part)?;
            let mut ignore = |_: &[u8], _| {};
            if !self
                .stored
                .go_on(&view, Some(checksum), control, pace, &mut ignore)?
            {
                return Ok(false);
            }
            self.stored.compare(checksum).map_err(at)?;
        }
        let checksum = sum.filter(|sum| sum.over == Over::Decoded);
        // Also where nothing is read: what a codec says must be true.
        let view = View::decoded(archive.data(), &part.payload)?;
        if is_decoded(info, part) {
            let check = content_check(info, part);
            // Only of a dense tensor is it known how many elements its part has.
            let elements = if info.layout.is_dense() {
                info.elements().unwrap_or(0)
            } else {
                0
            };
            let wrong = &mut self.wrong;
            let mut look = |piece: &[u8], is_last| {
                if wrong.is_none() {
                    *wrong = check(piece, is_last, elements);
                }
            };
            if !self
                .decoded
                .go_on(&view, checksum, control, pace, &mut look)?
            {
                return Ok(false);
            }
        }
        if let Some(checksum) = checksum {
            self.decoded.compare(checksum).map_err(at)?;
        }
        match &part.checksum {
            Some(checksum) if Hasher::new(checksum.kind).is_some() => {
                self.checked.add(Checked {
                    checksums: vec![(checksum.kind, 1)],
                    ..Checked::default()
                });
            }
            None if (part.unknown.as_ref()).is_some_and(|said| said.checksum.is_some()) => {
                self.checked.unknown_checksums += 1;
            }
            _ => self.checked.without_checksum += 1,
        }
        if let Some(message) = self.wrong.take() {
            let error = at(Error::malformed("content", message));
            if archive.manifest().strict_content {
                return Err(error);
            }
            self.warn(tensor, error);
        }
        Ok(true)
    }

    /// What the parts must be to each other: indices in range, no place twice. And what the file says of the elements.
    fn structure(&mut self, archive: &Archive, tensor: &Tensor<'_>) -> Result<()> {
        for deviation in check_layout(archive.data(), tensor.info())? {
            let error = Error::malformed(deviation.rule, deviation.message);
            if deviation.is_content && archive.manifest().strict_content {
                return Err(error);
            }
            self.warn(tensor, error);
        }
        self.symmetries(archive, tensor)
    }

    /// Symmetries that the elements are said to have.
    fn symmetries(&mut self, archive: &Archive, tensor: &Tensor<'_>) -> Result<()> {
        /// More of them than any file has would only cost time.
        const MOST: usize = 64;
        let info = tensor.info();
        let limit = archive.limits().tensor_memory;
        for symmetry in info.symmetries().iter().take(MOST) {
            if info.dense_len().is_none_or(|len| len > limit) && !info.layout.is_dense() {
                let message = "the symmetries of so large a tensor were not checked";
                self.warn(tensor, Error::malformed("symmetry", message));
                return Ok(());
            }
            let verdict = check_symmetry(archive.data(), info, symmetry)?;
            if let Some(index) = verdict.violation {
                let message = format!(
                    "the element at {index:?} is not {} of its counterpart under a symmetry that the file declares",
                    symmetry.operation
                );
                self.warn(tensor, Error::malformed("symmetry", message));
            }
            if let Some(index) = verdict.wrapped {
                let message = format!(
                    "the element at {index:?} should be {} of the lowest integer: {NO_NEGATIVE}",
                    symmetry.operation
                );
                self.warn(tensor, Error::malformed("symmetry", message));
            }
        }
        Ok(())
    }
}

impl Reading {
    /// Goes on with a view, hashing it and giving its pieces to `look`; true when all of it was read.
    fn go_on(
        &mut self,
        view: &View<'_>,
        checksum: Option<&Checksum>,
        control: &Control,
        pace: &Pace<'_>,
        look: &mut dyn FnMut(&[u8], bool),
    ) -> Result<bool> {
        let hasher = || checksum.and_then(|checksum| Hasher::new(checksum.kind));
        let hasher = self.hasher.get_or_insert_with(hasher);
        let mut take = |at: &mut u64, piece: &[u8]| {
            *at += piece.len() as u64;
            if let Some(hasher) = hasher {
                hasher.update(piece);
            }
            look(piece, *at == view.len());
            control.advance(piece.len() as u64)
        };
        let mut piece = Vec::new();
        if !view.is_random() {
            // What is compressed as one stream cannot be entered again.
            let mut pieces = view.pieces()?;
            while !self.is_done && pieces.next(&mut piece)? {
                take(&mut self.at, &piece)?;
            }
        }
        while self.at < view.len() {
            let len = view.piece().min(view.len() - self.at);
            let shared = view.fetch(self.at, len, &mut piece)?;
            take(&mut self.at, shared.as_deref().unwrap_or(&piece))?;
            if pace.is_over() && self.at < view.len() {
                return Ok(false);
            }
        }
        self.is_done = true;
        Ok(true)
    }

    /// Compares what was read with what the file says of it.
    fn compare(&mut self, expected: &Checksum) -> Result<()> {
        match self.hasher.take().flatten() {
            Some(hasher) => compare(hasher, expected),
            None => Ok(()),
        }
    }
}

/// Warnings about bytes of the main file that belong to nothing: gaps that are long or hold something.
fn unclaimed(archive: &Archive, id: &'static str) -> Vec<Finding> {
    if archive.format().is_none() {
        return Vec::new();
    }
    let extents = claimed(archive, SourceId::MAIN).into_iter();
    let gaps = extents.filter(|extent| extent.kind == ExtentKind::Unclaimed);
    gaps.filter_map(|gap| unclaimed_gap(archive, gap.range, id))
        .collect()
}

fn unclaimed_gap(archive: &Archive, gap: Range<u64>, id: &'static str) -> Option<Finding> {
    let len = gap.end - gap.start;
    let message = match is_padding(archive, SourceId::MAIN, &gap) {
        Ok(true) => return None,
        Ok(false) if len > PADDING => format!("{len} bytes belong to no tensor and no header"),
        Ok(false) => {
            format!("{len} bytes between the data are not zero and belong to no tensor")
        }
        Err(error) => return Some(Finding::from(&error.in_format(id))),
    };
    let error = Error::malformed("unclaimed", message).at(gap).in_format(id);
    Some(Finding {
        severity: Severity::Warning,
        ..Finding::from(&error)
    })
}
