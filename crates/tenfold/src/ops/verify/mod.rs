//! Verification: reading with the warnings shown, and every checksum computed.

mod checksums;

pub use checksums::compare_checksums;

use crate::archive::{Archive, Tensor};
use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::format::{Control, Finding, Severity};
use crate::model::{DType, Over, Part, Role, SourceId};
use crate::ops::parallel;
use crate::prelude::*;
use crate::transform::{
    NO_NEGATIVE, View, check_bools, check_content, check_layout, check_symmetry,
};

use checksums::{Sum, compare_checksum, compare_seal};

/// Everything that is worth telling about a file: what describing it noticed, what its checksums and its content say, and
/// bytes that belong to nothing. Uses `threads` threads; 0 is one for every core.
///
/// The file is sound when no finding is an error.
pub fn verify(archive: &Archive, threads: usize) -> Vec<Finding> {
    let archive = &archive.with_threads(threads);
    let mut findings = archive.findings().to_vec();
    let id = archive.format().map_or("file", |spec| spec.id);
    let tensors: Vec<_> = archive.tensors().collect();
    let checked = parallel::map(tensors.len(), threads, |index| {
        tensors
            .get(index)
            .map(|tensor| Checked::new(archive, tensor))
            .unwrap_or_default()
    });
    let mut counts = Counts::default();
    for one in checked {
        findings.extend(one.findings);
        counts.add(&one.counts);
    }
    for sealed in &archive.manifest().sealed {
        if let Err(error) = compare_seal(archive, sealed, &Control::default()) {
            findings.push(Finding::from(&error.in_format(id)));
        }
    }
    findings.extend(unclaimed(archive, id));
    let sound = tensors
        .iter()
        .filter(|tensor| tensor.info().defect.is_none());
    let message = counts.to_string(sound.count());
    findings.push(Finding {
        severity: Severity::Note,
        ..Finding::from(&Error::malformed("checked", message).in_format(id))
    });
    findings
}

/// What was checked.
#[derive(Default)]
struct Counts {
    verified: Vec<(&'static str, usize)>,
    unknown: usize,
    without: usize,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.unknown += other.unknown;
        self.without += other.without;
        for &(kind, n) in &other.verified {
            match self.verified.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += n,
                None => self.verified.push((kind, n)),
            }
        }
    }

    fn to_string(&self, tensors: usize) -> String {
        let number = |n: usize, what: &str| match n {
            1 => format!("1 {what} was"),
            _ => format!("{n} {what}s were"),
        };
        let mut text = format!("{} checked", number(tensors, "tensor"));
        for (kind, n) in &self.verified {
            text += &format!(", {} verified by {kind}", number(*n, "part"));
        }
        match self.unknown {
            0 => {}
            1 => text += ", 1 part has a checksum that is not verified",
            n => text += &format!(", {n} parts have checksums that are not verified"),
        }
        match self.without {
            0 => {}
            1 => text += ", 1 part has no checksum",
            n => text += &format!(", {n} parts have no checksum"),
        }
        text
    }
}

#[derive(Default)]
struct Checked {
    findings: Vec<Finding>,
    counts: Counts,
}

impl Checked {
    fn new(archive: &Archive, tensor: &Tensor<'_>) -> Self {
        let mut checked = Self::default();
        let info = tensor.info();
        if let Some(defect) = &info.defect {
            checked.fail(tensor, defect.clone());
            return checked;
        }
        let before = checked.findings.len();
        for part in &info.parts {
            if let Err(error) = checked.part(archive, tensor, part) {
                checked.fail(tensor, error);
            }
        }
        if checked.findings.len() == before
            && let Err(error) = checked.structure(archive, tensor)
        {
            checked.fail(tensor, error);
        }
        checked
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

    /// Reads a part to its end: its checksum, its codec, the values of its type.
    fn part(&mut self, archive: &Archive, tensor: &Tensor<'_>, part: &Part) -> Result<()> {
        let place = part.payload.stored();
        let at = |error: Error| match &place {
            Some((source, range)) if error.range().is_none() => {
                error.at_source(*source, range.clone())
            }
            _ => error,
        };
        if let Some(checksum) = part
            .checksum
            .as_ref()
            .filter(|sum| sum.over == Over::Stored)
        {
            compare_checksum(archive, &part.payload, checksum, &Control::default())?;
        }
        let mut decoded_sum = Sum::new(part.checksum.as_ref(), Over::Decoded);
        // Of a sparse tensor only the values are bools, the indices are numbers.
        let is_bool = tensor.info().dtype == DType::BOOL
            && part.dtype != DType::BOOL
            && part.role == Role::Values;
        let check = |bytes: &[u8], last, elements| match is_bool {
            true => check_bools(part.dtype, bytes),
            false => check_content(part.dtype, bytes, last, elements),
        };
        let has_content = check(&[0xff; 4], true, 1).is_some();
        let mut wrong = None;
        // Raw bytes that nothing is said about need not be read.
        let view = View::decoded(archive.data(), &part.payload)?;
        if decoded_sum.is_some() || has_content || view.direct().is_none() {
            // Only of a dense tensor is it known how many elements its part has.
            let info = tensor.info();
            let elements = if info.layout.is_dense() {
                info.elements().unwrap_or(0)
            } else {
                0
            };
            let mut left = view.len();
            let mut pieces = view.pieces()?;
            let mut piece = Vec::new();
            while pieces.next(&mut piece)? {
                left -= piece.len() as u64;
                Sum::update(&mut decoded_sum, &piece);
                if wrong.is_none() {
                    wrong = check(&piece, left == 0, elements);
                }
            }
        }
        Sum::compare(decoded_sum).map_err(at)?;
        match &part.checksum {
            Some(checksum) if Hasher::new(checksum.kind).is_some() => {
                self.counts.add(&Counts {
                    verified: vec![(checksum.kind.name(), 1)],
                    ..Counts::default()
                });
            }
            None if (part.unknown.as_ref()).is_some_and(|said| said.checksum.is_some()) => {
                self.counts.unknown += 1;
            }
            _ => self.counts.without += 1,
        }
        if let Some(message) = wrong {
            let error = at(Error::malformed("content", message));
            match archive.manifest().strict_content {
                true => return Err(error),
                false => self.warn(tensor, error),
            }
        }
        Ok(())
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
        for symmetry in info.symmetries.iter().take(MOST) {
            if info.dense_len().is_none_or(|len| len > limit) && !info.layout.is_dense() {
                let message = "the symmetries of so large a tensor were not checked";
                self.warn(tensor, Error::malformed("symmetry", message));
                return Ok(());
            }
            let verdict = check_symmetry(archive.data(), info, symmetry)?;
            if let Some(index) = verdict.violation {
                let message = format!(
                    "the element at {index:?} is not {} of the one that a symmetry of the file says",
                    symmetry.operation
                );
                self.warn(tensor, Error::malformed("symmetry", message));
            }
            if let Some(index) = verdict.wrapped {
                let message = format!(
                    "the element at {index:?} should be {} of the least integer: {NO_NEGATIVE}",
                    symmetry.operation
                );
                self.warn(tensor, Error::malformed("symmetry", message));
            }
        }
        Ok(())
    }
}

/// Padding up to this length is looked at.
const PADDING: u64 = 1 << 20;

/// Warnings about bytes of the main file that belong to nothing: gaps that are long or hold something.
fn unclaimed(archive: &Archive, id: &'static str) -> Vec<Finding> {
    let manifest = archive.manifest();
    let parts = manifest
        .tensors
        .iter()
        .flat_map(|tensor| &tensor.parts)
        .filter_map(|part| part.payload.stored());
    let regions = manifest
        .regions
        .iter()
        .map(|region| (region.source, region.range.clone()));
    let mut claimed: Vec<_> = parts
        .chain(regions)
        .filter(|(source, _)| *source == SourceId::MAIN)
        .map(|(_, range)| range)
        .collect();
    claimed.sort_unstable_by_key(|range| (range.start, range.end));
    let mut findings = Vec::new();
    let mut end = 0;
    let len = archive.len_bytes();
    for range in claimed.into_iter().chain(core::iter::once(len..len)) {
        // Data of a file that was cut off can lie behind its end.
        let start = range.start.min(len);
        if start > end {
            findings.extend(gap(archive, end..start, id));
        }
        end = end.max(range.end);
    }
    findings
}

fn gap(archive: &Archive, range: Range<u64>, id: &'static str) -> Option<Finding> {
    let len = range.end - range.start;
    let source = archive.source(SourceId::MAIN)?;
    let message = if len > PADDING {
        format!("{len} bytes belong to no tensor and no header")
    } else {
        let bytes = match source.read(range.clone()) {
            Ok(bytes) => bytes,
            Err(error) => return Some(Finding::from(&error.at(range).in_format(id))),
        };
        // What writers pad with, one behind the other too.
        if bytes.iter().all(|byte| matches!(byte, 0 | 0xff)) {
            return None;
        }
        format!("{len} bytes between the data hold something, and belong to no tensor")
    };
    let error = Error::malformed("unclaimed", message)
        .at(range)
        .in_format(id);
    Some(Finding {
        severity: Severity::Warning,
        ..Finding::from(&error)
    })
}
