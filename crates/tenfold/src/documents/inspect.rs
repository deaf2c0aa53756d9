//! What is in a file.

use serde::{Serialize, Serializer};

use super::{Each, ShownMetadata, Words, text};
use crate::archive::Archive;
use crate::model::{DType, Endian, Metadata, Part, SourceId, TensorInfo};
use crate::ops::{QuantizedGroup, QuantizedGroups, elements_by_type};
use crate::prelude::*;

/// `tenfold.inspect/1`: an archive, its metadata and its tensors.
#[derive(Debug, Serialize)]
pub struct Inspection<'a> {
    schema: &'static str,
    file: &'a str,
    format: Option<&'static str>,
    version: Option<&'a str>,
    bytes: u64,
    elements: u64,
    dtypes: Types,
    metadata: ShownMetadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantized: Option<Groups<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tensors: Option<Tensors<'a>>,
}

/// What tensors of the file are quantized together.
#[derive(Debug, Serialize)]
struct Groups<'a> {
    /// The file that says how.
    config: Option<&'a str>,
    tensors: Vec<Group<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    left_out: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
}

/// Tensors of the file that are one quantized tensor.
#[derive(Debug, Serialize)]
struct Group<'a> {
    name: &'a str,
    shape: &'a [u64],
    scheme: &'a str,
    parameters: &'a str,
    stored: &'a [String],
}

impl<'a> Inspection<'a> {
    /// Says of the file that was opened as `file` which metadata and tensors it has: all of them, some, or in another order.
    /// Lists of more than 64 entries are only counted, unless `full`.
    pub fn new(
        file: &'a str,
        archive: &'a Archive,
        metadata: &'a Metadata,
        tensors: &'a [&'a TensorInfo],
        full: bool,
        words: Words,
    ) -> Self {
        let dtypes = elements_by_type(tensors.iter().copied());
        let elements = dtypes.iter().map(|(_, elements)| *elements);
        Self {
            schema: "tenfold.inspect/1",
            file,
            format: archive.format().map(|spec| spec.id),
            version: known_version(archive),
            bytes: archive.stored_bytes(),
            elements: elements.fold(0, u64::saturating_add),
            dtypes: Types(dtypes),
            metadata: ShownMetadata::new(metadata, full),
            quantized: None,
            tensors: Some(Tensors {
                archive,
                tensors,
                full,
                words,
            }),
        }
    }

    /// The same with what tensors are quantized together, where any are or seem to be.
    #[must_use]
    pub fn quantized(mut self, quantized: &'a QuantizedGroups) -> Self {
        let QuantizedGroups {
            archive,
            groups,
            config,
            left_out,
            problems,
        } = quantized;
        if groups.is_empty() && problems.is_empty() {
            return self;
        }
        let group = |group: &'a QuantizedGroup| Group {
            name: &group.name,
            shape: (archive.index_of(&group.name))
                .and_then(|place| archive.manifest().tensors.get(place))
                .map_or(&[], |tensor| tensor.shape.as_slice()),
            scheme: &group.scheme.name,
            parameters: &group.scheme.parameters,
            stored: &group.tensors,
        };
        self.quantized = Some(Groups {
            config: *config,
            tensors: groups.iter().map(group).collect(),
            left_out,
            problems: problems.iter().map(ToString::to_string).collect(),
        });
        self
    }

    /// The same without the list of tensors.
    #[must_use]
    pub fn without_tensors(mut self) -> Self {
        self.tensors = None;
        self
    }
}

/// The version of the format, if it has versions.
fn known_version(archive: &Archive) -> Option<&str> {
    Some(archive.version()).filter(|version| !matches!(*version, "" | "-"))
}

/// How many elements there are of each type: an object.
#[derive(Debug)]
struct Types(Vec<(DType, u64)>);

impl Serialize for Types {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let types = self.0.iter();
        serializer.collect_map(types.map(|(dtype, elements)| (dtype.to_string(), elements)))
    }
}

#[derive(Debug)]
struct Tensors<'a> {
    archive: &'a Archive,
    tensors: &'a [&'a TensorInfo],
    full: bool,
    words: Words,
}

impl Serialize for Tensors<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tensors = self.tensors.iter();
        serializer.collect_seq(tensors.map(|info| {
            Listed {
                name: &info.name,
                dtype: info.dtype,
                shape: &info.shape,
                layout: info.layout.name(),
                elements: info.elements(),
                bytes: info.dense_len(),
                stored: Each(|| {
                    (info.parts.iter()).map(|part| Stored::new(self.archive, info, part))
                }),
                metadata: ShownMetadata::new(&info.metadata, self.full),
                readable: info.defect.as_ref().map(|_| false),
                why: (info.defect.as_ref())
                    .map(|defect| format!("{}{}", defect.message(), (self.words)(defect.hints()))),
            }
        }))
    }
}

#[derive(Serialize)]
struct Listed<'a, P: Serialize> {
    name: &'a str,
    #[serde(serialize_with = "text")]
    dtype: DType,
    shape: &'a [u64],
    layout: &'a str,
    elements: Option<u64>,
    bytes: Option<u64>,
    stored: P,
    metadata: ShownMetadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    readable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// A part of a tensor.
#[derive(Serialize)]
struct Stored<'a> {
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dtype: Option<String>,
    offset: Option<u64>,
    bytes: u64,
    encoding: &'a str,
    #[serde(serialize_with = "text")]
    endian: Endian,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unverified: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

impl<'a> Stored<'a> {
    fn new(archive: &'a Archive, info: &TensorInfo, part: &'a Part) -> Self {
        let (source, place) = part.payload.stored().unzip();
        let unverified = match (&part.checksum, &part.unknown) {
            (None, Some(said)) => said.checksum.as_deref(),
            _ => None,
        };
        let known = part.checksum.as_ref().map(|checksum| checksum.kind.name());
        let algorithm = unverified.and_then(|text| text.split(':').next());
        Self {
            role: part.role.name(),
            dtype: (part.dtype != info.dtype).then(|| part.dtype.to_string()),
            offset: place.as_ref().map(|range| range.start),
            bytes: place.map_or_else(
                || part.payload.len(),
                |range| range.end.saturating_sub(range.start),
            ),
            encoding: part.encoding(),
            endian: part.endian,
            checksum: known.or(algorithm),
            unverified,
            file: source
                .filter(|source| *source != SourceId::MAIN)
                .and_then(|source| archive.source_name(source)),
        }
    }
}
