//! What there is: all archives, one of them, one tensor, and what was noticed.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use tenfold::documents::FindingDocument;
use tenfold::format::{Finding, Registry, Severity};
use tenfold::model::{DType, Lanes, Scalar, SourceId, TensorInfo};
use tenfold::{Archive, ErrorKind};

use crate::answer::{Answer, Int, Refusal};
use crate::opened::Opened;
use crate::query::Query;
use crate::{Mode, bytes, values, words};

#[derive(Serialize)]
struct Hello<'a> {
    schema: &'static str,
    version: &'static str,
    mode: &'static str,
    archives: Vec<Listed<'a>>,
    /// The two that were asked for together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pair: Option<[usize; 2]>,
    formats: Vec<Format>,
    limits: Limits,
}

#[derive(Serialize)]
struct Listed<'a> {
    a: usize,
    name: &'a str,
    /// Whether it could be opened; unknown before somebody asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    opened: Option<bool>,
}

#[derive(Serialize)]
struct Format {
    id: &'static str,
    name: &'static str,
    extensions: &'static [&'static str],
    /// Whether this build reads it.
    is_read: bool,
}

#[derive(Serialize)]
struct Limits {
    cells: u32,
    values: u64,
    stored: u64,
}

pub(crate) fn hello(
    mode: Mode,
    archives: &[Option<Arc<Opened>>],
    pair: Option<[usize; 2]>,
) -> Result<Answer, Refusal> {
    let listed = archives.iter().enumerate().filter_map(|(a, opened)| {
        let opened = opened.as_ref()?;
        Some(Listed {
            a,
            name: opened.name(),
            opened: opened.known().map(Result::is_ok),
        })
    });
    let registry = Registry::standard();
    let formats = registry.entries().iter();
    Answer::json(&Hello {
        schema: "tenfold.view/1",
        version: env!("CARGO_PKG_VERSION"),
        mode: match mode {
            Mode::Dropped => "dropped",
            Mode::Served => "served",
        },
        archives: listed.collect(),
        pair,
        formats: formats
            .map(|entry| Format {
                id: entry.spec.id,
                name: entry.spec.name,
                extensions: entry.spec.extensions,
                is_read: entry.codec().is_ok(),
            })
            .collect(),
        limits: Limits {
            cells: 1024,
            values: values::MOST,
            stored: bytes::MOST,
        },
    })
}

#[derive(Serialize)]
struct Summary<'a> {
    name: &'a str,
    format: Option<&'static str>,
    format_name: Option<&'static str>,
    version: Option<&'a str>,
    /// Bytes of all files.
    bytes: Int,
    files: Vec<File<'a>>,
    tensors: usize,
    elements: Int,
    /// Bytes of the tensors as they are stored, and as they would be written out densely.
    stored: Int,
    dense: Int,
    types: Vec<Type>,
    metadata: usize,
    errors: usize,
    warnings: usize,
    notes: usize,
    unreadable: usize,
    checksums: usize,
    passed_over: Vec<String>,
}

#[derive(Serialize)]
struct File<'a> {
    name: Option<&'a str>,
    bytes: Int,
}

#[derive(Serialize)]
struct Type {
    name: String,
    tensors: usize,
    elements: Int,
    stored: Int,
}

/// Bytes that a tensor takes in its files.
pub(crate) fn stored_len(info: &TensorInfo) -> u64 {
    let lens = info.parts.iter().map(|part| match part.payload.stored() {
        Some((_, range)) => range.end.saturating_sub(range.start),
        None => part.payload.len(),
    });
    lens.fold(0, u64::saturating_add)
}

pub(crate) fn summary(opened: &Opened) -> Result<Answer, Refusal> {
    let archive = opened.archive()?;
    let tensors = &archive.manifest().tensors;
    let mut types: Vec<(DType, usize, u64, u64)> = Vec::new();
    for info in tensors.iter() {
        let place = types.iter().position(|(dtype, ..)| *dtype == info.dtype);
        if place.is_none() {
            types.push((info.dtype, 0, 0, 0));
        }
        let place = place.unwrap_or(types.len() - 1);
        if let Some((_, count, elements, stored)) = types.get_mut(place) {
            *count += 1;
            *elements = elements.saturating_add(info.elements().unwrap_or(0));
            *stored = stored.saturating_add(stored_len(info));
        }
    }
    types.sort_by_key(|(.., stored)| std::cmp::Reverse(*stored));
    let dense = tensors.iter().map(|info| info.dense_len().unwrap_or(0));
    let count = |severity: Severity| {
        let findings = archive.findings().iter();
        findings.filter(|found| found.severity == severity).count()
    };
    let parts = tensors.iter().flat_map(|info| info.parts.iter());
    Answer::json(&Summary {
        name: opened.name(),
        format: archive.format().map(|spec| spec.id),
        format_name: archive.format().map(|spec| spec.name),
        version: Some(archive.version()).filter(|version| !matches!(*version, "" | "-")),
        bytes: Int(archive.stored_bytes()),
        files: archive
            .sources()
            .map(|(name, source)| File {
                name,
                bytes: Int(source.len()),
            })
            .collect(),
        tensors: tensors.len(),
        elements: Int(types
            .iter()
            .fold(0, |sum, (_, _, n, _)| sum.saturating_add(*n))),
        stored: Int(types.iter().fold(0, |sum, (.., n)| sum.saturating_add(*n))),
        dense: Int(dense.fold(0, u64::saturating_add)),
        types: types
            .into_iter()
            .map(|(dtype, tensors, elements, stored)| Type {
                name: dtype.to_string(),
                tensors,
                elements: Int(elements),
                stored: Int(stored),
            })
            .collect(),
        metadata: archive.metadata().len(),
        errors: count(Severity::Error) + unreadable(archive),
        warnings: count(Severity::Warning),
        notes: count(Severity::Note),
        unreadable: unreadable(archive),
        checksums: parts.filter(|part| part.checksum.is_some()).count(),
        passed_over: passed_over(archive),
    })
}

fn unreadable(archive: &Archive) -> usize {
    let tensors = archive.manifest().tensors.iter();
    tensors.filter(|info| info.defect.is_some()).count()
}

fn passed_over(archive: &Archive) -> Vec<String> {
    let files = archive.passed_over().iter();
    files.map(|file| file.name.clone()).collect()
}

/// A finding with where it leads.
#[derive(Serialize)]
pub(crate) struct Found<'a> {
    #[serde(flatten)]
    finding: FindingDocument<'a>,
    t: Option<usize>,
    source: Option<u32>,
}

impl<'a> Found<'a> {
    pub(crate) fn new(archive: &'a Archive, finding: &'a Finding) -> Self {
        let source = finding.at.as_ref().map_or(SourceId::MAIN, |(id, _)| *id);
        let file = archive.source_name(source).unwrap_or_default();
        Self {
            t: finding
                .tensor
                .as_deref()
                .and_then(|name| archive.index_of(name)),
            source: finding.at.as_ref().map(|(source, _)| source.0),
            finding: FindingDocument::new(finding, Cow::Borrowed(file), words::words),
        }
    }
}

#[derive(Serialize)]
struct Findings<'a> {
    findings: Vec<Found<'a>>,
}

/// What was noticed while the file was described, and the tensors that cannot be read.
pub(crate) fn findings(opened: &Opened) -> Result<Answer, Refusal> {
    let archive = opened.archive()?;
    let tensors = archive.manifest().tensors.iter();
    let defects: Vec<Finding> = tensors
        .filter_map(|info| Some(Finding::from(&info.defect.clone()?.in_tensor(&info.name))))
        .collect();
    let all = archive.findings().iter().chain(&defects);
    Answer::json(&Findings {
        findings: all.map(|finding| Found::new(archive, finding)).collect(),
    })
}

#[derive(Serialize)]
struct Tensor<'a> {
    t: usize,
    name: &'a str,
    dtype: String,
    /// The type of the numbers that it stands for, and how many there are in an element.
    numbers: Option<Numbers>,
    shape: Vec<Int>,
    layout: &'a str,
    elements: Option<Int>,
    dense: Option<Int>,
    parts: Vec<Part<'a>>,
    metadata: tenfold::documents::ShownMetadata<'a>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

#[derive(Serialize)]
struct Numbers {
    dtype: String,
    lanes: u32,
    bits: u32,
    is_float: bool,
}

#[derive(Serialize)]
struct Part<'a> {
    role: &'a str,
    dtype: String,
    encoding: &'a str,
    endian: String,
    source: Option<u32>,
    file: Option<&'a str>,
    from: Option<Int>,
    bytes: Int,
    checksum: Option<&'a str>,
}

/// One tensor: what it is, and where.
pub(crate) fn tensor(opened: &Opened, query: &Query) -> Result<Answer, Refusal> {
    let archive = opened.archive()?;
    let (t, tensor) = opened.tensor(query)?;
    let info = tensor.info();
    let sliced = tensor.slice(&[]);
    let defect = match (&info.defect, &sliced) {
        (Some(defect), _) => Some(defect.clone()),
        (None, Err(error)) => Some(error.clone()),
        _ => None,
    };
    let numbers = |dtype: DType| match dtype {
        DType::Number(scalar, lanes) => Some(numbers_of(dtype, scalar, lanes)),
        _ => None,
    };
    let parts = info.parts.iter().map(|part| {
        let stored = part.payload.stored();
        let source = stored.as_ref().map(|(source, _)| *source);
        Part {
            role: part.role.name(),
            dtype: part.dtype.to_string(),
            encoding: part.encoding(),
            endian: part.endian.to_string(),
            source: source.map(|source| source.0),
            file: source.and_then(|source| archive.source_name(source)),
            from: stored.as_ref().map(|(_, range)| Int(range.start)),
            bytes: Int(stored.map_or(part.payload.len(), |(_, range)| {
                range.end.saturating_sub(range.start)
            })),
            checksum: part.checksum.as_ref().map(|sum| sum.kind.name()),
        }
    });
    Answer::json(&Tensor {
        t,
        name: &info.name,
        dtype: info.dtype.to_string(),
        numbers: sliced.ok().and_then(|sliced| numbers(sliced.dtype())),
        shape: info.shape.iter().copied().map(Int).collect(),
        layout: info.layout.name(),
        elements: info.elements().map(Int),
        dense: info.dense_len().map(Int),
        parts: parts.collect(),
        metadata: tenfold::documents::ShownMetadata::new(&info.metadata, false),
        why: defect.as_ref().map(words::message),
        rule: defect
            .filter(|defect| defect.kind() != ErrorKind::Argument)
            .map(|defect| defect.rule().to_owned()),
    })
}

fn numbers_of(dtype: DType, scalar: Scalar, lanes: Lanes) -> Numbers {
    Numbers {
        dtype: dtype.to_string(),
        lanes: lanes.count(),
        bits: scalar.bits(),
        is_float: scalar.is_float(),
    }
}
