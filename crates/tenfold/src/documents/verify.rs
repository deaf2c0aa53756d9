//! Whether a file is sound, and what it holds.

use alloc::borrow::Cow;

use serde::Serialize;

use super::failure::pair;
use super::{Words, text};
use crate::format::{Finding, Severity};
use crate::prelude::*;

/// `tenfold.verify/1`: what was found in a file, and what was checked.
#[derive(Debug, Serialize)]
pub struct Verification<'a> {
    schema: &'static str,
    file: &'a str,
    format: Option<&'static str>,
    version: Option<&'a str>,
    sound: bool,
    findings: Vec<FindingDocument<'a>>,
    notes: Vec<FindingDocument<'a>>,
}

impl<'a> Verification<'a> {
    /// `format` and `version` as far as they are known.
    pub fn new(
        file: &'a str,
        format: Option<&'static str>,
        version: Option<&'a str>,
        sound: bool,
        findings: impl Iterator<Item = FindingDocument<'a>>,
    ) -> Self {
        let (notes, findings) = findings.partition(|found| found.severity == Severity::Note);
        Self {
            schema: "tenfold.verify/1",
            file,
            format,
            version: version.filter(|version| *version != "-"),
            sound,
            findings,
            notes,
        }
    }
}

/// A finding, and the path of the file that it is about.
#[derive(Debug, Serialize)]
pub struct FindingDocument<'a> {
    #[serde(serialize_with = "text")]
    severity: Severity,
    rule: &'a str,
    tensor: Option<&'a str>,
    file: Cow<'a, str>,
    range: Option<[u64; 2]>,
    message: String,
}

impl<'a> FindingDocument<'a> {
    /// `file` is what the finding's source is called by whoever reads the document.
    pub fn new(finding: &'a Finding, file: Cow<'a, str>, words: Words) -> Self {
        Self {
            severity: finding.severity,
            rule: &finding.rule,
            tensor: finding.tensor.as_deref(),
            file,
            range: finding.at.as_ref().map(|(_, range)| pair(range)),
            message: format!("{}{}", finding.message, words(&finding.hints)),
        }
    }
}

#[cfg(feature = "digest")]
pub use digests::DigestDocument;

#[cfg(feature = "digest")]
mod digests {
    use serde::{Serialize, Serializer};

    use super::super::value::Digits;
    use crate::digest::Hex;
    use crate::ops::{CONTENT_VERSION, Digests};

    /// `tenfold.digest/1`: what a file holds, as hashes.
    #[derive(Debug, Serialize)]
    pub struct DigestDocument<'a> {
        schema: &'static str,
        file: &'a str,
        format: Option<&'a str>,
        #[serde(serialize_with = "sum")]
        content: Option<&'a [u8; 32]>,
        content_version: u32,
        #[serde(serialize_with = "tensors")]
        tensors: &'a Digests,
    }

    impl<'a> DigestDocument<'a> {
        /// The digests of a file.
        pub fn new(file: &'a str, format: Option<&'a str>, digests: &'a Digests) -> Self {
            Self {
                schema: "tenfold.digest/1",
                file,
                format,
                content: digests.content.as_ref(),
                content_version: CONTENT_VERSION,
                tensors: digests,
            }
        }
    }

    #[derive(Serialize)]
    struct Row<'a> {
        name: &'a str,
        #[serde(serialize_with = "sum")]
        sha256: Option<&'a [u8; 32]>,
    }

    fn tensors<S: Serializer>(digests: &Digests, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(digests.tensors.iter().map(|(name, sum)| Row {
            name,
            sha256: sum.as_ref().ok(),
        }))
    }

    fn sum<S: Serializer>(sum: &Option<&[u8; 32]>, serializer: S) -> Result<S::Ok, S::Error> {
        sum.map(|sum| Digits(Hex(sum))).serialize(serializer)
    }
}
