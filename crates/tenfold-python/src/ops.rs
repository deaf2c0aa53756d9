//! What is found out about archives, as documents of JSON: those of the command.

use std::borrow::Cow;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use tenfold::documents::{
    DiffDocument, DigestDocument, FindingDocument, Inspection, StatsDocument, Verification,
};
use tenfold::format::{Finding, Severity};
use tenfold::model::SourceId;
use tenfold::ops::{
    self, DiffOptions, DigestOptions, ExtentKind, StatsOptions, Tolerance, VerifyOptions,
};

use crate::archive::{Archive, directory_of};
use crate::error::raised;
use crate::hint::words;
use crate::supervise::supervised;

/// A document as the text that Python parses.
pub(crate) fn json(document: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(document).map_err(|cause| PyValueError::new_err(cause.to_string()))
}

/// What is in a file.
#[pyfunction]
pub(crate) fn inspect(
    py: Python<'_>,
    archive: &Archive,
    file: &str,
    full: bool,
) -> PyResult<String> {
    let archive = archive.get()?;
    let metadata = if full {
        py.detach(|| archive.load_metadata()).map_err(raised)?
    } else {
        Cow::Borrowed(archive.metadata())
    };
    let tensors: Vec<_> = archive.manifest().tensors.iter().collect();
    json(&Inspection::new(
        file, &archive, &metadata, &tensors, full, words,
    ))
}

/// What every byte of an archive's files belongs to: the file, where it begins and ends, what it is called, and the place of
/// the tensor and its part where it is data.
#[pyfunction]
#[allow(clippy::type_complexity)] // rows
pub(crate) fn extents(
    py: Python<'_>,
    archive: &Archive,
) -> PyResult<Vec<(usize, u64, u64, &'static str, Option<(usize, usize)>)>> {
    let archive = archive.get()?;
    let files = py.detach(|| ops::extents(&archive)).map_err(raised)?;
    let mut rows = Vec::new();
    for file in files {
        for extent in file.extents {
            let (what, data) = match extent.kind {
                ExtentKind::Header(label) => (label, None),
                ExtentKind::Data { tensor, part } => ("data", Some((tensor, part))),
                ExtentKind::Padding => ("padding", None),
                ExtentKind::Overlap => ("overlap", None),
                _ => ("unclaimed", None),
            };
            let at = extent.range;
            rows.push((file.source.index(), at.start, at.end, what, data));
        }
    }
    Ok(rows)
}

/// Whether a file is sound.
#[pyfunction]
#[pyo3(signature = (archive, file, strict, content, progress, threads))]
pub(crate) fn verify(
    py: Python<'_>,
    archive: &Archive,
    file: &str,
    strict: bool,
    content: bool,
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
) -> PyResult<String> {
    let archive = archive.get()?;
    let findings = supervised(py, progress, threads, |watch| {
        let options = VerifyOptions::new().work(watch.work());
        let verified = ops::verify(&archive, &options)?;
        let note = verified.note(&archive);
        let mut findings = verified.findings;
        findings.push(note);
        if content {
            let options = VerifyOptions::new().work(watch.work());
            let numbers = ops::check_numbers(&archive, &options)?;
            let note = numbers.note(&archive);
            findings.extend(numbers.findings);
            findings.push(note);
        }
        Ok(findings)
    })?;
    let directory = archive.path().map(directory_of);
    let file_of = |finding: &Finding| {
        let source = finding.at.as_ref().map(|(source, _)| *source);
        let is_dir = archive.path().is_some_and(|path| path.is_dir());
        let source = source.filter(|source| *source != SourceId::MAIN || is_dir);
        let name = source.and_then(|source| archive.source_name(source));
        match (name, directory) {
            (Some(name), Some(directory)) => {
                Cow::Owned(directory.join(name).to_string_lossy().into_owned())
            }
            _ => Cow::Borrowed(file),
        }
    };
    let format = archive.format().map(|spec| spec.id);
    let format = (format, Some(archive.version()));
    verification(file, format, strict, &findings, file_of)
}

/// What verification says of a file, of this format and version; `file_of` says which of its files a finding is about.
pub(crate) fn verification<'f>(
    file: &str,
    (format, version): (Option<&'static str>, Option<&str>),
    strict: bool,
    findings: &[Finding],
    file_of: impl Fn(&Finding) -> Cow<'f, str>,
) -> PyResult<String> {
    let worst = if strict {
        Severity::Warning
    } else {
        Severity::Error
    };
    let sound = !findings.iter().any(|finding| finding.severity >= worst);
    let rows = findings
        .iter()
        .map(|finding| FindingDocument::new(finding, file_of(finding), words));
    json(&Verification::new(file, format, version, sound, rows))
}

/// What a file holds, as hashes.
#[pyfunction]
#[pyo3(signature = (archive, file, progress, threads))]
pub(crate) fn digest(
    py: Python<'_>,
    archive: &Archive,
    file: &str,
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
) -> PyResult<String> {
    let archive = archive.get()?;
    let digests = supervised(py, progress, threads, |watch| {
        ops::digest(&archive, &DigestOptions::new().work(watch.work()))
    })?;
    let format = archive.format().map(|spec| spec.id);
    json(&DigestDocument::new(file, format, &digests))
}

/// What is different between two files.
#[pyfunction]
#[pyo3(signature = (a, b, files, tolerance, ignore_dtype, ignore_metadata, names_only, progress, threads))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn diff(
    py: Python<'_>,
    a: &Archive,
    b: &Archive,
    files: (String, String),
    tolerance: Option<(f64, f64, u64)>,
    ignore_dtype: bool,
    ignore_metadata: bool,
    names_only: bool,
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
) -> PyResult<String> {
    let (a, b) = (a.get()?, b.get()?);
    let diff = supervised(py, progress, threads, |watch| {
        let options = DiffOptions::new()
            .tolerance(tolerance.map(|(rtol, atol, ulp)| Tolerance::new(rtol, atol, ulp)))
            .ignore_dtype(ignore_dtype)
            .ignore_metadata(ignore_metadata)
            .names_only(names_only)
            .work(watch.work());
        ops::diff(&a, &b, &options)
    })?;
    json(&DiffDocument::new(&files.0, &files.1, &diff, words))
}

/// What the numbers of a file are like.
#[pyfunction]
#[pyo3(signature = (archive, file, bins, progress, threads))]
pub(crate) fn stats(
    py: Python<'_>,
    archive: &Archive,
    file: &str,
    bins: Option<u32>,
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
) -> PyResult<String> {
    let archive = archive.get()?;
    let stats = supervised(py, progress, threads, |watch| {
        let options = StatsOptions::new().bins(bins).work(watch.work());
        ops::stats(&archive, &options)
    })?;
    json(&StatsDocument::new(file, &archive, &stats, words))
}
