//! What the numbers of a file are like.

use serde::{Serialize, Serializer};

use super::value::Float;
use super::{Each, Words, line, text};
use crate::archive::Archive;
use crate::model::DType;
use crate::ops::{ArchiveStats, Histogram, Number, Stats};
use crate::prelude::*;

/// `tenfold.stats/1`: figures of every tensor, and of all of them.
#[derive(Debug, Serialize)]
pub struct StatsDocument<'a> {
    schema: &'static str,
    file: &'a str,
    format: Option<&'static str>,
    tensors: Rows<'a>,
    #[serde(serialize_with = "figures")]
    total: &'a Stats,
}

impl<'a> StatsDocument<'a> {
    /// The figures of an archive that was opened as `file`.
    pub fn new(file: &'a str, archive: &'a Archive, stats: &'a ArchiveStats, words: Words) -> Self {
        Self {
            schema: "tenfold.stats/1",
            file,
            format: archive.format().map(|spec| spec.id),
            tensors: Rows {
                archive,
                stats,
                words,
            },
            total: &stats.total,
        }
    }
}

#[derive(Debug)]
struct Rows<'a> {
    archive: &'a Archive,
    stats: &'a ArchiveStats,
    words: Words,
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let infos = self.archive.manifest().tensors.iter();
        let rows = infos.zip(&self.stats.tensors);
        serializer.collect_seq(rows.map(|(info, (name, found))| Row {
            name,
            dtype: info.dtype,
            shape: &info.shape,
            found: match found {
                Ok(stats) => Found::Figures(Figures::new(stats)),
                Err(error) => Found::Error {
                    error: line(error, self.words),
                },
            },
        }))
    }
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    #[serde(serialize_with = "text")]
    dtype: DType,
    shape: &'a [u64],
    #[serde(flatten)]
    found: Found<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Found<'a> {
    Figures(Figures<'a>),
    Error { error: String },
}

fn figures<S: Serializer>(stats: &Stats, serializer: S) -> Result<S::Ok, S::Error> {
    Figures::new(stats).serialize(serializer)
}

#[derive(Serialize)]
struct Figures<'a> {
    elements: u64,
    numbers: u64,
    finite: u64,
    min: Option<Number>,
    max: Option<Number>,
    abs_max: Option<Number>,
    mean: Option<Float>,
    std: Option<Float>,
    zeros: u64,
    nan: u64,
    positive_infinities: u64,
    negative_infinities: u64,
    subnormals: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram: Option<Bins<'a>>,
}

impl<'a> Figures<'a> {
    fn new(stats: &'a Stats) -> Self {
        Self {
            elements: stats.elements,
            numbers: stats.numbers,
            finite: stats.finite,
            min: stats.min,
            max: stats.max,
            abs_max: stats.abs_max(),
            mean: stats.mean.map(Float),
            std: stats.std_dev.map(Float),
            zeros: stats.zeros,
            nan: stats.nans,
            positive_infinities: stats.positive_infinities,
            negative_infinities: stats.negative_infinities,
            subnormals: stats.subnormals,
            histogram: stats.histogram.as_ref().map(Bins),
        }
    }
}

struct Bins<'a>(&'a Histogram);

impl Serialize for Bins<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'a, E: Serialize> {
            edges: E,
            counts: &'a [u64],
        }
        Document {
            edges: Each(|| self.0.edges.iter().map(|&edge| Float(edge))),
            counts: &self.0.counts,
        }
        .serialize(serializer)
    }
}
