//! Hashing, verifying, summarizing and comparing: what items find, and what it comes to.

use super::compare::PairRecord;
use super::data::{Input, Item, Plan, Receipt, Verb};
use super::records::{
    Failed, Found, OpenedRecord, Row, VerifiedRecord, damaged, dtype, format_id, hex, sum,
};
use super::state::{Site, State, changed, is_unchanged};
use crate::archive::Archive;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Finding, Severity};
use crate::io::Limits;
use crate::model::{Manifest, TensorInfo};
use crate::ops::diff::DiffSteps;
use crate::ops::digest::{content_of, digest_part, in_content};
use crate::ops::stats::{stats_of, stats_part};
use crate::ops::verify::{VerifySteps, compare_checksums_watched};
use crate::ops::{ArchiveStats, Diff, Digests, Verified, VerifyOptions, check_numbers};
use crate::prelude::*;

/// What was found in an input.
#[derive(Debug)]
#[non_exhaustive]
pub struct FileReport<T> {
    /// The input, as it was called when the plan was made.
    pub name: String,
    /// What was found; an error where it could not be opened.
    pub found: Result<T>,
}

impl<T> FileReport<T> {
    /// What was found in an input.
    pub fn new(name: impl Into<String>, found: Result<T>) -> Self {
        let name = name.into();
        Self { name, found }
    }
}

/// What a file holds, as hashes.
#[derive(Debug)]
#[non_exhaustive]
pub struct DigestReport {
    /// The id of its format.
    pub format: Option<&'static str>,
    /// The hashes.
    pub digests: Digests,
    /// The first checksum in the file that is wrong.
    pub mismatch: Option<Error>,
}

/// Whether a file is sound.
#[derive(Debug)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The id of its format.
    pub format: Option<&'static str>,
    /// What was found.
    pub verified: Verified,
    /// What was found about its numbers, where that was asked for.
    pub numbers: Option<Verified>,
    /// The format's name and version, for people.
    pub format_name: String,
    /// The version alone.
    pub version: String,
    /// Tensors.
    pub tensors: usize,
    /// Bytes of its files.
    pub bytes: u64,
    /// The names of its files.
    pub sources: Vec<Option<String>>,
}

/// What the numbers of a file are like.
#[derive(Debug)]
#[non_exhaustive]
pub struct StatsReport {
    /// The tensors that are numbers, without their data.
    pub archive: Archive,
    /// Their figures.
    pub stats: ArchiveStats,
    /// The format's name and version, for people.
    pub format_name: String,
    /// Tensors that are no numbers.
    pub others: Vec<String>,
}

/// Does an item.
pub(super) fn run(plan: &Plan, item: &Item, state: &State, site: &Site) -> Result<Receipt> {
    let mut receipt = Receipt::default();
    match item {
        Item::Tensors { tensors, .. } if plan.verb == Verb::Diff => {
            receipt.found.push(run_diff(plan, *tensors, site)?);
        }
        Item::Tensors { input, tensors } => {
            let pinned = plan.inputs.get(*input).ok_or_else(no_input)?;
            let part = Some(tensors[0]..tensors[1]);
            receipt.found.push(look(plan, *input, pinned, part, site)?);
        }
        Item::Inputs { inputs, list } => {
            for (place, input) in super::inputs_of(plan, *inputs, list.as_deref(), state)? {
                receipt.found.push(look(plan, place, &input, None, site)?);
            }
        }
        Item::Bytes { .. } | Item::Files { .. } => {
            return Err(Error::argument("only conversions have items like this"));
        }
    }
    Ok(receipt)
}

fn no_input() -> Error {
    Error::argument("the plan has no such input")
}

/// Looks at an input, or at some of its tensors. One that cannot be read is a finding.
fn look(
    plan: &Plan,
    place: usize,
    input: &Input,
    part: Option<Range<usize>>,
    site: &Site,
) -> Result<Found> {
    let mut found = Found {
        input: place,
        name: input.name().to_owned(),
        ..Found::default()
    };
    let opening = plan.options.opening(plan.verb == Verb::Verify)?;
    let looked = site.open_unchanged(input, &opening).and_then(|archive| {
        let Some(archive) = archive else {
            return Ok(false);
        };
        found_in(plan, archive.clone(), part, &mut found, site)?;
        Ok(is_unchanged(input, &archive))
    });
    let is_only = plan.input_count() == 1;
    match looked {
        Ok(true) => Ok(found),
        // Of one among others it is a finding: the others are what they were.
        Ok(false) if is_only => Err(changed(input)),
        Ok(false) => Ok(failed(place, input, &changed(input), site)),
        Err(error) if is_trouble(&error, is_only) => Err(error),
        Err(error) => Ok(failed(place, input, &error, site)),
    }
}

/// Whether an error says nothing of an input: it may be gone when the item is done again. That a file must not be read is a
/// finding where there are others.
pub(super) fn is_trouble(error: &Error, is_only: bool) -> bool {
    match error.kind() {
        ErrorKind::Canceled => true,
        ErrorKind::Io => is_only || !is_forbidden(error),
        _ => false,
    }
}

fn is_forbidden(error: &Error) -> bool {
    let mut cause = core::error::Error::source(error);
    while let Some(inner) = cause {
        if let Some(found) = inner.downcast_ref::<std::io::Error>() {
            return found.kind() == std::io::ErrorKind::PermissionDenied;
        }
        cause = inner.source();
    }
    false
}

fn failed(place: usize, input: &Input, error: &Error, site: &Site) -> Found {
    Found {
        input: place,
        name: input.name().to_owned(),
        format: error.format().map(ToOwned::to_owned),
        failed: Some(Failed::new(error, site)),
        ..Found::default()
    }
}

pub(super) fn open(plan: &Plan, input: &Input, site: &Site) -> Result<Archive> {
    let opening = plan.options.opening(plan.verb == Verb::Verify)?;
    site.open_pinned(input, &opening)
}

/// What of an archive is looked at: for figures, the tensors that are numbers, by names of all.
pub(super) fn wanted(plan: &Plan, archive: Archive) -> Result<(Archive, Vec<String>)> {
    if plan.verb != Verb::Stats {
        return Ok((archive, Vec::new()));
    }
    let archive = plan.options.select(archive)?;
    let others = archive
        .tensors()
        .filter(|tensor| !tensor.info().is_numbers());
    let others = others.map(|tensor| tensor.name().to_owned()).collect();
    Ok((archive.select(TensorInfo::is_numbers), others))
}

fn found_in(
    plan: &Plan,
    archive: Archive,
    part: Option<Range<usize>>,
    found: &mut Found,
    site: &Site,
) -> Result<()> {
    let bytes = archive.stored_bytes();
    let (archive, others) = wanted(plan, archive)?;
    let all = archive.tensors().len();
    let part = part.unwrap_or(0..all);
    found.format = archive.format().map(|spec| spec.id.to_owned());
    if part.start == 0 {
        found.others = others;
        found.opened = Some(OpenedRecord {
            format_name: match archive.format() {
                Some(spec) => spec.with_version(archive.version()),
                None => "several formats".into(),
            },
            version: archive.version().to_owned(),
            tensors: all,
            bytes,
            sources: (archive.sources())
                .map(|(name, _)| name.map(ToOwned::to_owned))
                .collect(),
        });
    }
    let work = site.work.shared();
    let options = VerifyOptions::new().work(site.work.shared());
    match plan.verb {
        Verb::Verify => {
            let verified = VerifySteps::part(&archive, &options, part.clone()).finish()?;
            found.verified = Some(VerifiedRecord::new(&verified, site));
            if plan.options.content {
                let numbers = check_numbers(&some(&archive, &part), &options)?;
                found.numbers = Some(VerifiedRecord::new(&numbers, site));
            }
        }
        Verb::Digest => {
            if !plan.options.no_verify {
                let own = some(&archive, &part);
                match compare_checksums_watched(&own, &work) {
                    Err(error) if error.kind() == ErrorKind::Canceled => return Err(error),
                    Err(error) => found.mismatch = Some(Failed::new(&error, site)),
                    Ok(()) => {}
                }
            }
            let sums = digest_part(&archive, &work, part.clone())?;
            for (tensor, result) in archive.tensors().skip(part.start).zip(sums) {
                let mut row = row(tensor.info());
                match result {
                    Ok(sum) => {
                        let content = in_content(tensor.info(), &sum);
                        row.content = content.filter(|other| *other != sum).map(|sum| hex(&sum));
                        row.sha256 = Some(hex(&sum));
                    }
                    Err(error) => row.failed = Some(Box::new(Failed::new(&error, site))),
                }
                found.tensors.push(row);
            }
        }
        Verb::Stats => {
            let figures = stats_part(&archive, &work, part.clone())?;
            for (tensor, result) in archive.tensors().skip(part.start).zip(figures) {
                let mut row = row(tensor.info());
                match result {
                    Ok(figures) => row.figures = Some(Box::new(figures)),
                    Err(error) => row.failed = Some(Box::new(Failed::new(&error, site))),
                }
                found.tensors.push(row);
            }
        }
        Verb::Convert | Verb::Diff => return Err(Error::argument("this verb has no such items")),
    }
    Ok(())
}

fn row(info: &TensorInfo) -> Row {
    Row {
        name: info.name.clone(),
        dtype: info.dtype.to_string(),
        shape: info.shape.to_vec(),
        ..Row::default()
    }
}

/// Some of the tensors, by their places.
fn some(archive: &Archive, part: &Range<usize>) -> Archive {
    if part.len() == archive.tensors().len() {
        return archive.clone();
    }
    let mut manifest = archive.manifest().clone();
    let tensors = archive.manifest().tensors.iter();
    manifest.tensors = tensors.take(part.end).skip(part.start).cloned().collect();
    archive.with_manifest(manifest)
}

/// Both archives of a comparison.
pub(super) fn both(plan: &Plan, site: &Site) -> Result<(Archive, Archive)> {
    let [a, b] = plan.inputs.as_slice() else {
        return Err(Error::argument("two archives are compared"));
    };
    let open = |input| {
        let archive = open(plan, input, site)?;
        // In one of them may be none of those that are wanted.
        Ok::<_, Error>(
            plan.options
                .select(archive.clone())
                .unwrap_or_else(|_| archive.select(|_| false)),
        )
    };
    Ok((open(a)?, open(b)?))
}

fn run_diff(plan: &Plan, [from, to]: [usize; 2], site: &Site) -> Result<Found> {
    let (a, b) = both(plan, site)?;
    let options = plan.options.comparing(site.work.shared());
    let part = DiffSteps::new(&a, &b, &options).part(from..to)?;
    for (input, archive) in plan.inputs.iter().zip([&a, &b]) {
        site.check(input, archive)?;
    }
    Ok(Found {
        pairs: PairRecord::all(part, site),
        ..Found::default()
    })
}

/// The differences.
pub(super) fn join_diff(plan: &Plan, receipts: &[Receipt], site: &Site) -> Result<Diff> {
    let (a, b) = both(plan, site)?;
    let options = plan.options.comparing(site.work.shared());
    let records = receipts.iter().flat_map(|receipt| &receipt.found);
    let part = PairRecord::part(records.flat_map(|found| &found.pairs))?;
    DiffSteps::new(&a, &b, &options).put_together(vec![part])
}

/// What was found, in the order of the inputs, each with its parts.
fn by_input(receipts: &[Receipt]) -> Vec<Vec<&Found>> {
    let mut inputs: Vec<Vec<&Found>> = Vec::new();
    for found in receipts.iter().flat_map(|receipt| &receipt.found) {
        match inputs.last_mut() {
            Some(last) if last.first().is_some_and(|first| first.input == found.input) => {
                last.push(found);
            }
            _ => inputs.push(vec![found]),
        }
    }
    inputs
}

fn reports<T>(
    receipts: &[Receipt],
    put_together: impl Fn(&[&Found]) -> Result<T>,
) -> Result<Vec<FileReport<T>>> {
    let inputs = by_input(receipts).into_iter();
    inputs
        .map(|parts| {
            let failed = parts.iter().find_map(|part| part.failed.as_ref());
            Ok(FileReport {
                name: parts
                    .first()
                    .map_or_else(String::new, |part| part.name.clone()),
                found: match failed {
                    Some(failed) => Err(failed.error()),
                    None => Ok(put_together(&parts)?),
                },
            })
        })
        .collect()
}

fn format_of(parts: &[&Found]) -> Option<&'static str> {
    parts.first()?.format.as_deref().and_then(format_id)
}

/// The hashes of every input.
pub(super) fn join_digest(receipts: &[Receipt]) -> Result<Vec<FileReport<DigestReport>>> {
    reports(receipts, |parts| {
        let rows: Vec<_> = parts.iter().flat_map(|part| &part.tensors).collect();
        let mut tensors = Vec::new();
        let mut content = Some(Vec::new());
        for row in &rows {
            let result = match (&row.sha256, &row.failed) {
                (Some(digits), _) => Ok(sum(digits)?),
                (_, Some(failed)) => Err(failed.error()),
                _ => return Err(damaged("a digest is missing in a receipt")),
            };
            match (&result, &mut content) {
                (Ok(own), Some(all)) => {
                    let stands = match &row.content {
                        Some(digits) => sum(digits)?,
                        None => *own,
                    };
                    all.push((row.name.as_str(), row.dtype.clone(), &*row.shape, stands));
                }
                _ => content = None,
            }
            tensors.push((row.name.clone(), result));
        }
        // Which tensor it is helps more than which range.
        let mut wrong: Vec<_> = parts
            .iter()
            .filter_map(|part| part.mismatch.as_ref())
            .collect();
        wrong.sort_by_key(|failed| failed.error().tensor().is_none());
        Ok(DigestReport {
            format: format_of(parts),
            digests: Digests {
                content: content.and_then(content_of),
                tensors,
            },
            mismatch: wrong.first().map(|failed| failed.error()),
        })
    })
}

/// What is wrong with every input.
pub(super) fn join_verify(receipts: &[Receipt]) -> Result<Vec<FileReport<VerifyReport>>> {
    reports(receipts, |parts| {
        let opened = parts.iter().find_map(|part| part.opened.as_ref());
        let opened = opened.ok_or_else(|| damaged("a receipt does not say what was opened"))?;
        let found = parts.iter().filter_map(|part| part.verified.as_ref());
        let numbers = parts.iter().filter_map(|part| part.numbers.as_ref());
        let has_numbers = parts.iter().any(|part| part.numbers.is_some());
        Ok(VerifyReport {
            format: format_of(parts),
            verified: VerifiedRecord::joined(found, false),
            numbers: has_numbers.then(|| VerifiedRecord::joined(numbers, true)),
            format_name: opened.format_name.clone(),
            version: opened.version.clone(),
            tensors: opened.tensors,
            bytes: opened.bytes,
            sources: opened.sources.clone(),
        })
    })
}

/// The figures of every input.
pub(super) fn join_stats(receipts: &[Receipt]) -> Result<Vec<FileReport<StatsReport>>> {
    reports(receipts, |parts| {
        let opened = parts.iter().find_map(|part| part.opened.as_ref());
        let opened = opened.ok_or_else(|| damaged("a receipt does not say what was opened"))?;
        let mut figures = Vec::new();
        let mut manifest = Manifest::new(opened.version.clone());
        for row in parts.iter().flat_map(|part| &part.tensors) {
            let found = match (&row.figures, &row.failed) {
                (Some(figures), _) => Ok((**figures).clone()),
                (_, Some(failed)) => Err(failed.error()),
                _ => return Err(damaged("figures are missing in a receipt")),
            };
            figures.push((row.name.clone(), found));
            let none = crate::model::Payload::Inline(bytes::Bytes::new());
            let info = TensorInfo::dense(
                row.name.clone(),
                dtype(&row.dtype)?,
                row.shape.clone(),
                none,
            );
            manifest.tensors.push(info);
        }
        let registry = crate::format::Registry::standard();
        let spec = format_of(parts).and_then(|id| registry.get(id).ok());
        let spec = spec.map(|entry| entry.spec);
        let nothing = (Vec::new(), Vec::new(), Vec::new());
        Ok(StatsReport {
            archive: Archive::assemble(
                spec,
                manifest,
                nothing.0,
                nothing.1,
                nothing.2,
                Limits::default(),
            ),
            stats: stats_of(figures).ok_or_else(|| damaged("figures in a receipt are none"))?,
            format_name: opened.format_name.clone(),
            others: parts.iter().flat_map(|part| part.others.clone()).collect(),
        })
    })
}

/// Whether something that was found is worth an exit code.
pub(super) fn has_findings(found: &Found, strict: bool) -> bool {
    let worst = if strict {
        Severity::Warning
    } else {
        Severity::Error
    };
    let is_bad = |record: &VerifiedRecord| record.has(worst);
    found.failed.is_some()
        || found.mismatch.is_some()
        || found.verified.as_ref().is_some_and(is_bad)
        || found.numbers.as_ref().is_some_and(is_bad)
        || found.tensors.iter().any(|row| row.failed.is_some())
}

impl VerifiedRecord {
    fn has(&self, worst: Severity) -> bool {
        let mut findings = self.findings();
        findings.any(|finding: Finding| finding.severity >= worst)
    }
}
