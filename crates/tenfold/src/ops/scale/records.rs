//! What items find, as it is kept in receipts: every number comes back as it was.

use serde::{Deserialize, Serialize};

use super::Site;
use crate::digest::{Hex, unhex};
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::format::{Finding, Registry, Severity};
use crate::model::{DType, SourceId};
use crate::ops::{Checked, Verified};
use crate::prelude::*;

/// What was found in an input, or in some of its tensors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) input: usize,
    /// How the input is called, for people.
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<Failed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) opened: Option<OpenedRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tensors: Vec<Row>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) verified: Option<VerifiedRecord>,
    /// With `content`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) numbers: Option<VerifiedRecord>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) pairs: Vec<super::compare::PairRecord>,
    /// Tensors that are no numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) others: Vec<String>,
    /// The first checksum that is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mismatch: Option<Failed>,
}

/// A tensor, and what it hashes to or its figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) dtype: String,
    pub(super) shape: Vec<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<String>,
    /// What stands for it in the digest of the content, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) figures: Option<Box<crate::ops::stats::FiguresRecord>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<Box<Failed>>,
}

/// What is said of a file that could be opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenedRecord {
    pub(super) format_name: String,
    pub(super) version: String,
    pub(super) tensors: usize,
    pub(super) bytes: u64,
    pub(super) sources: Vec<Option<String>>,
}

/// An error without what caused it. Hints are words in its message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Failed {
    kind: String,
    rule: String,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tensor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<(u32, u64, u64)>,
}

impl Failed {
    pub(super) fn new(error: &Error, site: &Site) -> Self {
        Self {
            kind: error.kind().name().to_owned(),
            rule: error.rule().to_owned(),
            message: site.worded(error.message(), error.hints()),
            format: error.format().map(ToOwned::to_owned),
            tensor: error.tensor().map(ToOwned::to_owned),
            at: error
                .range()
                .map(|(source, range)| (source.0, range.start, range.end)),
        }
    }

    pub(super) fn error(&self) -> Error {
        let kind = ErrorKind::named(&self.kind).unwrap_or(ErrorKind::Malformed);
        let error = Error::recorded(kind, self.rule.clone(), self.message.clone());
        let error = match self.at {
            Some((source, start, end)) => error.at_source(SourceId(source), start..end),
            None => error,
        };
        let error = match &self.tensor {
            Some(tensor) => error.in_tensor(tensor),
            None => error,
        };
        match self.format.as_deref().and_then(format_id) {
            Some(id) => error.told_in_format(id),
            None => error,
        }
    }
}

/// The id of a format that is built in.
pub(super) fn format_id(id: &str) -> Option<&'static str> {
    let registry = Registry::standard();
    let found = registry.entries().iter().find(|entry| entry.spec.id == id);
    found.map(|entry| entry.spec.id)
}

impl Site {
    pub(super) fn worded(&self, message: &str, hints: &[crate::error::Hint]) -> String {
        let words = self.words.map(|words| words(hints)).unwrap_or_default();
        format!("{message}{words}")
    }
}

/// A finding as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FindingRecord {
    severity: u8,
    kind: String,
    rule: String,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tensor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<(u32, u64, u64)>,
}

impl FindingRecord {
    pub(super) fn new(finding: &Finding, site: &Site) -> Self {
        Self {
            severity: match finding.severity {
                Severity::Note => 0,
                Severity::Warning => 1,
                Severity::Error => 2,
            },
            kind: finding.kind.name().to_owned(),
            rule: finding.rule.clone(),
            message: site.worded(&finding.message, &finding.hints),
            tensor: finding.tensor.clone(),
            at: (finding.at.as_ref()).map(|(source, range)| (source.0, range.start, range.end)),
        }
    }

    pub(super) fn finding(&self) -> Finding {
        let mut finding = Finding::new(
            match self.severity {
                0 => Severity::Note,
                1 => Severity::Warning,
                _ => Severity::Error,
            },
            "",
            self.message.clone(),
        );
        finding.kind = ErrorKind::named(&self.kind).unwrap_or(ErrorKind::Malformed);
        finding.rule.clone_from(&self.rule);
        finding.tensor.clone_from(&self.tensor);
        finding.at = self
            .at
            .map(|(source, start, end)| (SourceId(source), start..end));
        finding
    }
}

/// What verification came to, of a file or of some of its tensors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct VerifiedRecord {
    findings: Vec<FindingRecord>,
    tensors: usize,
    checksums: Vec<(String, usize)>,
    unknown_checksums: usize,
    without_checksum: usize,
}

impl VerifiedRecord {
    pub(super) fn new(verified: &Verified, site: &Site) -> Self {
        let Checked {
            tensors,
            checksums,
            unknown_checksums,
            without_checksum,
        } = &verified.checked;
        let findings = verified.findings.iter();
        Self {
            findings: findings
                .map(|finding| FindingRecord::new(finding, site))
                .collect(),
            tensors: *tensors,
            checksums: (checksums.iter())
                .map(|(kind, n)| (kind.name().to_owned(), *n))
                .collect(),
            unknown_checksums: *unknown_checksums,
            without_checksum: *without_checksum,
        }
    }

    pub(super) fn findings(&self) -> impl Iterator<Item = Finding> {
        self.findings.iter().map(FindingRecord::finding)
    }

    /// Several parts of one, in their order.
    pub(super) fn joined<'r>(
        parts: impl Iterator<Item = &'r Self>,
        is_of_numbers: bool,
    ) -> Verified {
        let mut verified = Verified::nothing(is_of_numbers);
        for part in parts {
            let findings = part.findings.iter();
            verified
                .findings
                .extend(findings.map(FindingRecord::finding));
            verified.checked.add(Checked {
                tensors: part.tensors,
                checksums: (part.checksums.iter())
                    .filter_map(|(kind, n)| Some((kind_named(kind)?, *n)))
                    .collect(),
                unknown_checksums: part.unknown_checksums,
                without_checksum: part.without_checksum,
            });
        }
        verified
    }
}

pub(super) fn kind_named(name: &str) -> Option<crate::model::DigestKind> {
    use crate::model::DigestKind::{Crc32, Crc32c, Sha1, Sha256, Xxh3};
    [Crc32, Crc32c, Sha1, Sha256, Xxh3]
        .into_iter()
        .find(|kind| kind.name() == name)
}

pub(super) fn hex(sum: &[u8]) -> String {
    Hex(sum).to_string()
}

pub(super) fn sum(digits: &str) -> Result<[u8; 32]> {
    let sum = unhex(digits).and_then(|sum| sum.try_into().ok());
    sum.ok_or_else(|| damaged("a digest in a receipt is none"))
}

pub(super) fn dtype(name: &str) -> Result<DType> {
    let opaque = [
        DType::UNKNOWN,
        DType::PARTS,
        DType::TEXT,
        DType::RECORDS,
        crate::formats::burnpack::QFLOAT,
    ];
    let opaque = || opaque.into_iter().find(|dtype| dtype.to_string() == name);
    DType::from_name(name)
        .or_else(opaque)
        .ok_or_else(|| damaged(&format!("the type {name:?} in a receipt is none")))
}

pub(super) fn damaged(what: &str) -> Error {
    let error = Error::new(ErrorKind::Mismatch, "plan.receipt", what);
    error.hinting(Hint::RunAgain(None))
}
