//! How two files differ.

use serde::{Serialize, Serializer};

use super::value::Float;
use super::{ShownValue, Words, line, text};
use crate::model::{DType, Value};
use crate::ops::{Change, ChangeKind, Diff, Difference, First, MetadataChange, Parts, Side};
use crate::prelude::*;

/// `tenfold.diff/1`: the differences of two archives.
#[derive(Debug, Serialize)]
pub struct DiffDocument<'a> {
    schema: &'static str,
    a: &'a str,
    b: &'a str,
    equal: bool,
    equal_tensors: usize,
    changes: Changes<'a>,
    #[serde(serialize_with = "metadata")]
    metadata: &'a [MetadataChange],
}

impl<'a> DiffDocument<'a> {
    /// What `diff` found in the files that were opened as `a` and `b`.
    pub fn new(a: &'a str, b: &'a str, diff: &'a Diff, words: Words) -> Self {
        Self {
            schema: "tenfold.diff/1",
            a,
            b,
            equal: diff.is_equal(),
            equal_tensors: diff.equal,
            changes: Changes {
                changes: &diff.changes,
                words,
            },
            metadata: &diff.metadata,
        }
    }
}

#[derive(Debug)]
struct Changes<'a> {
    changes: &'a [Change],
    words: Words,
}

impl Serialize for Changes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.changes.iter().map(|change| {
            let (word, values, error) = match &change.kind {
                ChangeKind::Added => ("added", None, None),
                ChangeKind::Removed => ("removed", None, None),
                ChangeKind::Renamed => ("renamed", None, None),
                ChangeKind::Changed(values) => ("changed", values.as_ref(), None),
                ChangeKind::Unreadable { error, .. } => {
                    ("unreadable", None, Some(line(error, self.words)))
                }
            };
            Row {
                change: word,
                name: &change.name,
                a: change.a.as_ref().map(Beside::new),
                b: change.b.as_ref().map(Beside::new),
                values: values.map(Figures::new),
                error,
            }
        }))
    }
}

#[derive(Serialize)]
struct Row<'a> {
    change: &'static str,
    name: &'a str,
    a: Option<Beside<'a>>,
    b: Option<Beside<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Figures<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The tensor of one of both.
#[derive(Serialize)]
struct Beside<'a> {
    name: &'a str,
    #[serde(serialize_with = "text")]
    dtype: DType,
    shape: &'a [u64],
    #[serde(skip_serializing_if = "Option::is_none")]
    scheme: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<PartOf<'a>>>,
}

impl<'a> Beside<'a> {
    fn new(side: &'a Side) -> Self {
        let parts = side.parts.as_ref();
        let parameters = parts.map(|parts| parts.parameters.as_str());
        Self {
            name: &side.name,
            dtype: side.dtype,
            shape: &side.shape,
            scheme: parts.map(|parts| parts.scheme.as_str()),
            parameters: parameters.filter(|text| !text.is_empty()),
            parts: parts.map(PartOf::all),
        }
    }
}

#[derive(Serialize)]
struct PartOf<'a> {
    role: &'a str,
    #[serde(serialize_with = "text")]
    dtype: DType,
}

impl<'a> PartOf<'a> {
    fn all(parts: &'a Parts) -> Vec<Self> {
        let parts = parts.parts.iter();
        parts
            .map(|(role, dtype)| Self {
                role,
                dtype: *dtype,
            })
            .collect()
    }
}

#[derive(Serialize)]
struct Figures<'a> {
    numbers: u64,
    different: u64,
    signs_of_zero: u64,
    nan_bits: u64,
    not_finite: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    common: Option<&'a [u64]>,
    max_abs: Option<Float>,
    max_rel: Option<Float>,
    relative_l2: Option<Float>,
    cosine: Option<Float>,
    first: Option<&'a First>,
}

impl<'a> Figures<'a> {
    fn new(values: &'a Difference) -> Self {
        Self {
            numbers: values.numbers,
            different: values.different,
            signs_of_zero: values.signs_of_zero,
            nan_bits: values.nan_bits,
            not_finite: values.not_finite,
            common: values.common.as_deref(),
            max_abs: values.max_abs.map(Float),
            max_rel: values.max_rel.map(Float),
            relative_l2: values.relative_l2.map(Float),
            cosine: values.cosine.map(Float),
            first: values.first.as_ref(),
        }
    }
}

fn metadata<S: Serializer>(changes: &&[MetadataChange], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(changes.iter().map(|change| Key {
        tensor: change.tensor.as_deref(),
        key: &change.key,
        a: change.a.as_ref().map(|value| ShownValue::new(value, false)),
        b: change.b.as_ref().map(|value| ShownValue::new(value, false)),
    }))
}

#[derive(Serialize)]
struct Key<'a> {
    tensor: Option<&'a str>,
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<ShownValue<&'a Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<ShownValue<&'a Value>>,
}
