//! What was written, or would be.

use serde::{Serialize, Serializer};

use super::value::Digits;
use super::{LossDocument, Words, text};
use crate::digest::Hex;
use crate::format::{Finding, Severity};
use crate::model::CastCounts;
use crate::ops::QuantizedGroup;
use crate::prelude::*;

/// `tenfold.convert/1` and its like: what a command that writes did. What has no value is left out or null, as the
/// documentation of the command says.
#[derive(Debug, Default, Serialize)]
#[allow(missing_docs)] // the fields are those of the document
pub struct Written<'a> {
    pub schema: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    pub output: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    pub format: &'static str,
    pub version: Option<&'static str>,
    pub because: Option<&'a str>,
    pub read_by: &'static str,
    pub losses: Vec<LossDocument<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<RemarkDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<LossDocument<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_metadata: Option<Vec<LossDocument<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<Vec<ConflictDocument<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "map")]
    pub renamed: Option<&'a [(String, String)]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<&'a str>>,
    /// How many bytes of the file itself were replaced, where no other one is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<String>,
    pub dry_run: bool,
    pub checked: bool,
    #[serde(serialize_with = "sum")]
    pub content: Option<[u8; 32]>,
    pub tensors: usize,
    pub bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub casts: Option<&'a CastCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dequantized: Option<Vec<DequantizedDocument<'a>>>,
    #[cfg(any(feature = "gguf", feature = "ztensor"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantized: Option<Vec<super::ChoiceDocument<'a>>>,
    #[cfg(any(feature = "gguf", feature = "ztensor"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<super::QualityDocument<'a>>,
    pub seconds: f64,
}

/// Something worth knowing about the output.
#[derive(Debug, Serialize)]
pub struct RemarkDocument {
    #[serde(serialize_with = "text")]
    severity: Severity,
    rule: String,
    message: String,
}

impl RemarkDocument {
    /// A remark, with what would help.
    pub fn new(remark: &Finding, words: Words) -> Self {
        Self {
            severity: remark.severity,
            rule: remark.rule.clone(),
            message: format!("{}{}", remark.message, words(&remark.hints)),
        }
    }
}

/// Tensors that were taken for one quantized tensor, which is written as numbers.
#[derive(Debug, Serialize)]
pub struct DequantizedDocument<'a> {
    name: &'a str,
    scheme: &'a str,
    parameters: &'a str,
    tensors: &'a [String],
}

impl<'a> DequantizedDocument<'a> {
    /// The document of a quantized tensor.
    pub fn new(group: &'a QuantizedGroup) -> Self {
        Self {
            name: &group.name,
            scheme: &group.scheme.name,
            parameters: &group.scheme.parameters,
            tensors: &group.tensors,
        }
    }
}

/// A tensor or a key that two files have, and whose counts.
#[derive(Debug, Serialize)]
#[allow(missing_docs)] // the fields are those of the document
pub struct ConflictDocument<'a> {
    pub what: &'static str,
    pub name: &'a str,
    pub kept: Option<String>,
    pub left_out: Option<String>,
}

fn map<S: Serializer>(
    pairs: &Option<&[(String, String)]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let pairs = pairs.unwrap_or_default().iter();
    serializer.collect_map(pairs.map(|(key, value)| (key, value)))
}

fn sum<S: Serializer>(sum: &Option<[u8; 32]>, serializer: S) -> Result<S::Ok, S::Error> {
    sum.as_ref()
        .map(|sum| Digits(Hex(sum)))
        .serialize(serializer)
}
