//! What a conversion will write, to be looked at.

use crate::archive::Archive;
use crate::error::Result;
use crate::execute::known_len;
use crate::format::{FilePlan, Segment};
use crate::model::SourceId;
use crate::prelude::*;

/// A file that will be written.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PlannedFile {
    /// Its name.
    pub name: String,
    /// Its length, where that is known beforehand: not after compression or text, and not where an index at the end
    /// depends on what was written.
    pub len: Option<u64>,
    /// What it consists of, in this order.
    pub segments: Vec<PlannedSegment>,
}

/// Some bytes of a file that will be written.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PlannedSegment {
    /// Where they will be, as far as that is known beforehand.
    pub range: Option<Range<u64>>,
    /// What they are.
    pub content: PlannedContent,
}

/// What some bytes of a file will be.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PlannedContent {
    /// Headers and records.
    Header,
    /// What comes before something that is aligned.
    Padding,
    /// Data of a tensor.
    Tensor {
        /// Its name.
        name: String,
        /// Which of its parts.
        part: usize,
    },
    /// Bytes of a file that the tensors came from, as they are.
    Copy {
        /// The file.
        source: SourceId,
        /// The bytes.
        range: Range<u64>,
    },
    /// Indexes and checksums, which follow from what is written.
    Computed,
}

impl PlannedFile {
    pub(super) fn new(file: &FilePlan, from: &Archive) -> Result<Self> {
        let mut at = Some(0u64);
        let mut segments = Vec::new();
        for segment in &file.segments {
            let start = at;
            at = match at {
                Some(at) => known_len(segment, from, at)?.map(|len| at.saturating_add(len)),
                None => None,
            };
            segments.push(PlannedSegment {
                range: start.zip(at).map(|(start, end)| start..end),
                content: PlannedContent::new(segment, from),
            });
        }
        Ok(Self {
            name: file.name.clone(),
            len: at,
            segments,
        })
    }
}

impl PlannedContent {
    fn new(segment: &Segment, from: &Archive) -> Self {
        let name = |index: usize| {
            let tensor = from.manifest().tensors.get(index);
            tensor.map(|tensor| tensor.name.clone()).unwrap_or_default()
        };
        match segment {
            Segment::Bytes(_) => Self::Header,
            Segment::Align { .. } => Self::Padding,
            Segment::Copy { source, range } => Self::Copy {
                source: *source,
                range: range.clone(),
            },
            Segment::Tensor { index, part, .. } => Self::Tensor {
                name: name(*index),
                part: *part,
            },
            Segment::Chunks { index, .. } | Segment::Text { index, .. } => Self::Tensor {
                name: name(*index),
                part: 0,
            },
            Segment::Computed(_) | Segment::Late { .. } => Self::Computed,
        }
    }
}
