//! Laying out a store: metadata, and a file for every chunk.

use alloc::collections::{BTreeMap, BTreeSet};

use super::array::Keys;
use super::{ARRAY, ATTRIBUTES, DIMENSIONS, GROUP, NODE, V2, types, zip};
use crate::error::{Error, Result};
use crate::format::{
    Arranged, Compression, Effect, FilePlan, Finding, Form, Loss, Lost, Plan, PlanOptions, Segment,
    Severity, Want, Written,
};
use crate::model::{Filter, Manifest, Map, Metadata, TensorInfo, Value};
use crate::prelude::*;
use crate::wire::json::encode;

/// Bytes of a chunk, about, where nothing else is said. Larger ones would be fewer files, but every worker holds some.
const USUAL: u64 = 4 << 20;
/// The level of zstd where a tensor was compressed otherwise.
const LEVEL: i32 = 3;

/// Whether a store of this name is a directory.
pub(super) fn is_directory(file_name: &str) -> bool {
    !file_name.to_ascii_lowercase().ends_with(".zip")
}

/// Names that cannot be beside each other: an array has no other nodes in it.
pub(super) fn arrange(what: &Manifest) -> Option<Arranged> {
    let mut names = BTreeSet::new();
    names.extend(what.tensors.iter().map(|tensor| tensor.name.as_str()));
    let inside = |tensor: &TensorInfo| {
        let slashes = tensor.name.match_indices('/');
        let mut above = slashes.filter_map(|(at, _)| tensor.name.get(..at));
        above
            .find(|above| names.contains(above))
            .map(ToOwned::to_owned)
    };
    let losses = what.tensors.iter().filter_map(|tensor| {
        let above = inside(tensor)?;
        let why = format!("{above:?} is an array, and an array has no others in it");
        let name = Some(tensor.name.clone());
        Some(Loss::new(name, Lost::Name, why, Effect::Impossible))
    });
    let losses: Vec<Loss> = losses.collect();
    (!losses.is_empty()).then(|| Arranged::new(what.clone(), losses))
}

/// Which types other programs do not take.
pub(super) fn remarks(what: &Manifest) -> Vec<Finding> {
    let is_rare = |tensor: &&TensorInfo| types::is_rare(tensor.dtype);
    let Some(tensor) = what.tensors.iter().find(is_rare) else {
        return Vec::new();
    };
    let message = format!(
        "{} is read by tensorstore, and not by zarr-python",
        tensor.dtype
    );
    vec![Finding::new(Severity::Warning, "zarr.dtype", message)]
}

/// How a tensor is written.
struct Cut {
    index: usize,
    sides: Vec<u64>,
    count: u64,
    filters: Vec<Filter>,
    /// All chunks in one file.
    is_sharded: bool,
}

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let is_v2 = options.version == V2;
    let chunk = match options.number("chunk")? {
        Some(0) => return Err(options.wrong("chunk", "at least one byte is expected")),
        Some(bytes) => bytes,
        None => USUAL,
    };
    let shards = options.flag("shard")?;
    if shards && is_v2 {
        return Err(options.wrong("shard", "v2 has no shards"));
    }
    if shards && !is_directory(&options.file_name) {
        return Err(options.wrong("shard", "shards are written into directories"));
    }
    let (root, groups) = groups(what);
    let mut files = vec![group("", &root, is_v2)];
    for (path, attributes) in &groups {
        files.push(group(path, attributes, is_v2));
    }
    let mut files: Vec<FilePlan> = files.into_iter().flatten().collect();
    // All metadata first: whoever lists an archive reads it in one piece.
    let mut data = Vec::new();
    for (index, tensor) in what.tensors.iter().enumerate() {
        let mut cut = Cut::new(index, tensor, chunk, options)?;
        cut.is_sharded = shards && cut.count > 1;
        files.extend(if is_v2 {
            cut.v2(tensor)?
        } else {
            vec![cut.v3(tensor)?]
        });
        cut.data(tensor, is_v2, &mut data);
    }
    files.append(&mut data);
    if is_directory(&options.file_name) {
        return Ok(Plan { files });
    }
    let segments = zip::segments(files)?;
    Ok(Plan::single(options.file_name.clone(), segments))
}

/// The attributes of the root, and of the groups that there are, by their paths.
fn groups(what: &Manifest) -> (Metadata, BTreeMap<String, Metadata>) {
    let mut groups: BTreeMap<String, Metadata> = BTreeMap::new();
    let mut add = |path: &str| {
        let mut above = Some(path);
        while let Some(path) = above {
            groups.entry(path.to_owned()).or_default();
            above = path.rsplit_once('/').map(|(above, _)| above);
        }
    };
    for tensor in &what.tensors {
        if let Some((path, _)) = tensor.name.rsplit_once('/') {
            add(path);
        }
    }
    let is_array = |path: &str| what.tensors.iter().any(|tensor| tensor.name == path);
    let mut root = Metadata::new();
    for (key, value, is_fact) in what.metadata.entries() {
        if is_fact {
            continue;
        }
        let path = key.strip_prefix('/');
        match (path, value) {
            (Some(path), Value::Map(map))
                if super::limits::name(path).is_ok() && !is_array(path) =>
            {
                let mut above = Some(path);
                while let Some(path) = above {
                    groups.entry(path.to_owned()).or_default();
                    above = path.rsplit_once('/').map(|(above, _)| above);
                }
                groups.insert(path.to_owned(), Metadata::from(map));
            }
            _ => root.push(key, value.clone()),
        }
    }
    (root, groups)
}

/// The documents of a group.
fn group(path: &str, attributes: &Metadata, is_v2: bool) -> Vec<FilePlan> {
    let key = |name: &str| key(path, name);
    if is_v2 {
        let document = object(vec![("zarr_format", Value::U64(2))]);
        let mut files = vec![document_file(key(GROUP), &document)];
        if !attributes.is_empty() {
            files.push(document_file(key(ATTRIBUTES), &Map::from(attributes)));
        }
        return files;
    }
    let document = object(vec![
        ("zarr_format", Value::U64(3)),
        ("node_type", text("group")),
        ("attributes", Value::Map(Map::from(attributes))),
    ]);
    vec![document_file(key(NODE), &document)]
}

fn key(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}/{name}"),
    }
}

fn text(text: &str) -> Value {
    Value::Str(text.to_owned())
}

fn object(entries: Vec<(&str, Value)>) -> Map {
    entries.into_iter().collect()
}

fn numbers(numbers: &[u64]) -> Value {
    Value::List(numbers.iter().map(|number| Value::U64(*number)).collect())
}

fn document_file(key: String, document: &Map) -> FilePlan {
    let mut out = String::new();
    // Everything that has no form was found to be lost before.
    let _ = encode(&Value::Map(document.clone()), &mut out);
    FilePlan::new(key, vec![Segment::Bytes(out.into_bytes())])
}

impl Cut {
    fn new(index: usize, tensor: &TensorInfo, chunk: u64, options: &PlanOptions) -> Result<Self> {
        let width = tensor.dtype.width().unwrap_or(1) as u64;
        let mut sides: Vec<u64> = tensor.shape.iter().map(|dim| (*dim).max(1)).collect();
        let row = sides
            .iter()
            .skip(1)
            .copied()
            .fold(width, u64::saturating_mul);
        // What is read from its beginning alone would be read again for every chunk.
        let is_stream = tensor.parts.iter().any(|part| part.payload.is_encoded());
        if let Some(first) = sides.first_mut().filter(|_| !is_stream) {
            *first = (chunk / row.max(1)).clamp(1, *first);
        }
        let count = match (tensor.shape.first(), sides.first()) {
            _ if tensor.shape.contains(&0) => 0,
            (Some(dim), Some(side)) => dim.div_ceil(*side),
            _ => 1,
        };
        let level = match (options.compression)(tensor) {
            Compression::Zstd(level) => Some(level),
            Compression::Keep if is_compressed(tensor) => Some(LEVEL),
            Compression::Keep | Compression::Raw => None,
        };
        let len = sides.iter().copied().try_fold(width, u64::checked_mul);
        if len.is_none_or(|len| len > u64::from(u32::MAX)) && (level.is_some() || count > 1) {
            let message = if is_stream {
                "it comes from one compressed stream, and what does is written as one chunk, which has 4 GiB at most where it is compressed; written without compression it has a place"
            } else {
                "its rows are too long for chunks: 4 GiB at most"
            };
            return Err(Error::unsupported("zarr.write", message).in_tensor(&tensor.name));
        }
        Ok(Self {
            index,
            sides,
            count,
            filters: level
                .map(|level| Filter::Zstd { level })
                .into_iter()
                .collect(),
            is_sharded: false,
        })
    }

    /// Elements of a file along every dimension.
    fn outer(&self) -> Vec<u64> {
        let mut sides = self.sides.clone();
        if let Some(first) = sides.first_mut().filter(|_| self.is_sharded) {
            *first = first.saturating_mul(self.count);
        }
        sides
    }

    fn level(&self) -> Option<i32> {
        self.filters.iter().find_map(|filter| match filter {
            Filter::Zstd { level } => Some(*level),
            _ => None,
        })
    }

    fn v2(&self, tensor: &TensorInfo) -> Result<Vec<FilePlan>> {
        let dtype = types::code(tensor.dtype).ok_or_else(|| unwritten(tensor))?;
        let compressor = self.level().map_or(Value::Null, |level| {
            let level = Value::I64(level.into());
            Value::Map(object(vec![("id", text("zstd")), ("level", level)]))
        });
        let document = object(vec![
            ("zarr_format", Value::U64(2)),
            ("shape", numbers(&tensor.shape)),
            ("chunks", numbers(&self.sides)),
            ("dtype", Value::Str(dtype)),
            ("compressor", compressor),
            ("fill_value", zero(tensor)),
            ("order", text("C")),
            ("filters", Value::Null),
            ("dimension_separator", text(".")),
        ]);
        let mut files = vec![document_file(key(&tensor.name, ARRAY), &document)];
        let attributes = attributes(tensor);
        if !attributes.is_empty() {
            let document = Map::from(&attributes);
            files.push(document_file(key(&tensor.name, ATTRIBUTES), &document));
        }
        Ok(files)
    }

    fn v3(&self, tensor: &TensorInfo) -> Result<FilePlan> {
        let name = types::name(tensor.dtype).ok_or_else(|| unwritten(tensor))?;
        let named = |name: &str, configuration: Vec<(&str, Value)>| {
            let configuration = Value::Map(object(configuration));
            Value::Map(object(vec![
                ("name", text(name)),
                ("configuration", configuration),
            ]))
        };
        let bytes = || named("bytes", vec![("endian", text("little"))]);
        let mut codecs = vec![bytes()];
        codecs.extend(self.level().map(|level| {
            let level = ("level", Value::I64(level.into()));
            named("zstd", vec![level, ("checksum", Value::Bool(true))])
        }));
        if self.is_sharded {
            let checksum = Value::Map(object(vec![("name", text("crc32c"))]));
            codecs = vec![named(
                "sharding_indexed",
                vec![
                    ("chunk_shape", numbers(&self.sides)),
                    ("codecs", Value::List(codecs.into())),
                    ("index_codecs", Value::List(vec![bytes(), checksum].into())),
                    ("index_location", text("end")),
                ],
            )];
        }
        let mut attributes = attributes(tensor);
        let names = dimension_names(tensor);
        if names.is_some() {
            attributes.remove(DIMENSIONS);
        }
        let grid = vec![("chunk_shape", numbers(&self.outer()))];
        let mut members = vec![
            ("zarr_format", Value::U64(3)),
            ("node_type", text("array")),
            ("shape", numbers(&tensor.shape)),
            ("data_type", text(name)),
            ("chunk_grid", named("regular", grid)),
            (
                "chunk_key_encoding",
                named("default", vec![("separator", text("/"))]),
            ),
            ("fill_value", zero(tensor)),
            ("codecs", Value::List(codecs.into())),
            ("attributes", Value::Map(Map::from(&attributes))),
        ];
        members.extend(names.map(|names| (DIMENSIONS, names)));
        Ok(document_file(key(&tensor.name, NODE), &object(members)))
    }

    /// The files of its chunks.
    fn data(&self, tensor: &TensorInfo, is_v2: bool, files: &mut Vec<FilePlan>) {
        let keys = Keys {
            has_prefix: !is_v2,
            separator: if is_v2 { '.' } else { '/' },
        };
        let name = |number: u64| {
            let mut place = vec![0; tensor.shape.len()];
            if let Some(first) = place.first_mut() {
                *first = number;
            }
            key(&tensor.name, &keys.name(&place))
        };
        let chunks = |numbers: Range<u64>| Segment::Chunks {
            index: self.index,
            dtype: tensor.dtype,
            sides: self.sides.clone(),
            filters: self.filters.clone(),
            numbers: Some(numbers),
            digest: None,
        };
        if self.is_sharded {
            let make = |written: &[Written], at: u64| index(written, at);
            let segments = vec![chunks(0..self.count), Segment::Computed(Box::new(make))];
            files.push(FilePlan::new(name(0), segments));
            return;
        }
        for number in 0..self.count {
            let segment = if self.count == 1 && self.filters.is_empty() {
                Segment::Tensor {
                    index: self.index,
                    part: 0,
                    want: Want::Dense(Form::canonical(tensor.dtype)),
                    codec: None,
                    digest: None,
                }
            } else {
                chunks(number..number + 1)
            };
            files.push(FilePlan::new(name(number), vec![segment]));
        }
    }
}

/// The index of a shard, behind its chunks.
fn index(written: &[Written], _: u64) -> Result<Vec<u8>> {
    let [done] = written else {
        return Err(Error::argument("a shard that was not written"));
    };
    let mut out = Vec::new();
    let mut at = done.range.start;
    for len in &done.chunks {
        let len = u64::from(*len);
        out.extend_from_slice(&at.to_le_bytes());
        out.extend_from_slice(&len.to_le_bytes());
        at = at.saturating_add(len);
    }
    let sum = crate::digest::crc32c(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    Ok(out)
}

/// Whether it is compressed where it comes from.
fn is_compressed(tensor: &TensorInfo) -> bool {
    tensor.parts.iter().any(|part| match &part.payload {
        crate::model::Payload::Chunks(chunks) => {
            let is_codec = |filter: &Filter| {
                !matches!(
                    filter,
                    Filter::Crc32c | Filter::Fletcher32 | Filter::Shuffle { .. }
                )
            };
            chunks.filters.iter().any(is_codec)
        }
        payload => payload.is_encoded(),
    })
}

/// The metadata that is no fact of the file it comes from.
fn attributes(tensor: &TensorInfo) -> Metadata {
    let mut attributes = Metadata::new();
    for (key, value, is_fact) in tensor.metadata.entries() {
        if !is_fact {
            attributes.push(key, value.clone());
        }
    }
    attributes
}

/// The names of dimensions, where each has one or none.
fn dimension_names(tensor: &TensorInfo) -> Option<Value> {
    let names = tensor.metadata.get(DIMENSIONS)?;
    let Value::List(list) = names else {
        return None;
    };
    let is_name = |value: Value| matches!(value, Value::Str(_) | Value::Null);
    let fits = list.len() == tensor.shape.len() && list.iter().all(is_name);
    (fits && !tensor.metadata.is_fact(DIMENSIONS)).then(|| names.clone())
}

/// Zero, as the type writes it.
fn zero(tensor: &TensorInfo) -> Value {
    use crate::model::{DType, Lanes};
    match tensor.dtype {
        DType::BOOL => Value::Bool(false),
        DType::Number(_, Lanes::Complex) => {
            Value::List(vec![Value::F64(0.0), Value::F64(0.0)].into())
        }
        DType::Number(scalar, _) if scalar.is_float() => Value::F64(0.0),
        _ => Value::U64(0),
    }
}

fn unwritten(tensor: &TensorInfo) -> Error {
    let message = format!("elements of {} are not written", tensor.dtype);
    Error::unsupported("zarr.write", message).in_tensor(&tensor.name)
}
