//! Laying out a bundle: a file of data with the tensors in the order of their names, and the index of it.

use bytes::Bytes;

use super::dtypes;
use super::entry::{BundleEntry, Header};
use super::shards::{INDEX, data_name};
use super::strings::{self, Texts};
use super::table::{self, mask};
use super::{OBJECT_GRAPH, SPEC, text_shape};
use crate::error::{Error, Result};
use crate::format::{
    Arranged, Effect, FilePlan, Finding, Form, Loss, Lost, Plan, PlanOptions, Segment, Severity,
    Want, Written,
};
use crate::model::{
    DType, DigestKind, Kept, Lanes, List, Manifest, Over, Scalar, Shape, TensorInfo, Value,
};
use crate::prelude::*;

/// Tensors begin at a multiple of this, so that they can be mapped.
const ALIGN: u64 = 64;

/// Puts the tensors into the order of the index, and says what has the name of another.
pub(super) fn arrange(what: &Manifest) -> Arranged {
    let mut manifest = what.clone();
    let mut losses = Vec::new();
    let tensors: LookupMap<&str, ()> = (what.tensors.iter())
        .map(|tensor| (tensor.name.as_str(), ()))
        .collect();
    let entries = what.metadata.entries().filter(|(.., is_fact)| !is_fact);
    for (key, _, _) in entries.filter(|(key, ..)| tensors.contains_key(key)) {
        let why = "a tensor has its key as a name";
        let what = Lost::Metadata(key.to_owned());
        losses.push(Loss::new(None, what, why, Effect::Dropped));
        manifest.metadata.remove(key);
    }
    for tensor in &what.tensors {
        // What has less than a byte is written as bytes, which would be cast from what is stored.
        if tensor.stored_dtype() != tensor.dtype && dtypes::is_narrow(tensor.dtype) {
            let why = "it would be cast twice on the way; write the cast to another format first";
            let (name, lost) = (Some(tensor.name.clone()), Lost::DType(tensor.dtype));
            losses.push(Loss::new(name, lost, why, Effect::Impossible));
        }
    }
    let names = || what.tensors.iter().map(|tensor| tensor.name.as_bytes());
    if !names().is_sorted() {
        let mut sorted: Vec<TensorInfo> = what.tensors.iter().cloned().collect();
        sorted.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        manifest.tensors = sorted.into();
    }
    Arranged::new(manifest, losses)
}

/// That no objects can be restored by it.
pub(super) fn remarks(what: &Manifest) -> Vec<Finding> {
    if graph(what).is_some() {
        return Vec::new();
    }
    let message = "the checkpoint has no graph of objects: tf.train.load_checkpoint and tf.compat.v1.train.Saver read it, tf.train.Checkpoint.restore does not";
    vec![Finding::new(
        Severity::Note,
        "tf_checkpoint.objects",
        message,
    )]
}

/// The graph of objects that the tensors came with.
fn graph(what: &Manifest) -> Option<&Kept> {
    let mut kept = what.kept.iter();
    kept.find(|kept| kept.format == SPEC.id && kept.name == OBJECT_GRAPH)
}

/// What an entry of the index is of.
enum Content {
    /// A tensor, by its place.
    Tensor(usize),
    Text(Vec<u8>),
    Graph(Kept),
}

/// An entry of the index, as far as it is known before the data is written.
struct Planned {
    key: String,
    entry: BundleEntry,
    content: Content,
}

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let name = &options.file_name;
    let Some(prefix) = name.strip_suffix(INDEX).filter(|prefix| !prefix.is_empty()) else {
        let message = format!(
            "{name:?} is no name of a checkpoint's index, which ends with {INDEX}: its other file is named after it"
        );
        return Err(Error::argument(message));
    };
    let mut planned = Vec::new();
    for (index, tensor) in what.tensors.iter().enumerate() {
        planned.push(Planned::tensor(index, tensor)?);
    }
    for (key, value, is_fact) in what.metadata.entries() {
        if !is_fact {
            planned.push(Planned::text(key, value)?);
        }
    }
    if let Some(kept) = graph(what) {
        planned.push(Planned::graph(kept, options)?);
    }
    planned.sort_by(|a, b| a.key.as_bytes().cmp(b.key.as_bytes()));
    let data = data(&mut planned)?;
    let index = Segment::Computed(Box::new(move |written, _| index(&planned, written)));
    let mut plan = Plan::single(name.clone(), vec![index]);
    plan.files
        .push(FilePlan::new(data_name(prefix, 0, 1), data));
    Ok(plan)
}

/// The segments of the file of data; entries get their places.
fn data(planned: &mut [Planned]) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    let mut at = 0u64;
    for Planned {
        key,
        entry,
        content,
    } in planned
    {
        let too_large = || {
            let message = "it ends beyond what 63 bits can count";
            Error::unsupported("tf_checkpoint.write", message).in_tensor(key)
        };
        if matches!(content, Content::Tensor(_)) && entry.size > 0 {
            segments.push(Segment::Align { to: ALIGN, fill: 0 });
            at = at.checked_next_multiple_of(ALIGN).ok_or_else(too_large)?;
        }
        entry.offset = at;
        at = at.checked_add(entry.size).ok_or_else(too_large)?;
        i64::try_from(at).map_err(|_| too_large())?;
        segments.push(match content {
            Content::Tensor(index) => elements(*index, entry)?,
            Content::Text(bytes) => Segment::Bytes(core::mem::take(bytes)),
            Content::Graph(kept) => Segment::Copy {
                source: kept.source,
                range: kept.range.clone(),
            },
        });
    }
    Ok(segments)
}

/// The elements of a tensor, hashed on their way.
fn elements(index: usize, entry: &BundleEntry) -> Result<Segment> {
    let dtype = dtypes::known(entry.dtype).ok_or_else(missing)?;
    let digest = Some((DigestKind::Crc32c, Over::Decoded));
    if dtype == DType::Number(Scalar::I4, Lanes::Real) {
        return Ok(Segment::Text {
            index,
            form: Form::canonical(DType::I8),
            spell: low_halves,
            digest,
        });
    }
    Ok(Segment::Tensor {
        index,
        part: 0,
        want: Want::Dense(Form::canonical(dtypes::stored(dtype))),
        codec: None,
        digest,
    })
}

/// Numbers of four bits have zeros above them, also those below 0.
fn low_halves(elements: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend(elements.iter().map(|element| element & 0x0f));
    Ok(())
}

fn index(planned: &[Planned], written: &[Written]) -> Result<Vec<u8>> {
    let sums: LookupMap<usize, u32> = (written.iter())
        .filter_map(|part| {
            let sum = part.digest.as_ref()?.value.first_chunk()?;
            Some((part.index, u32::from_be_bytes(*sum)))
        })
        .collect();
    let mut table = table::Writer::default();
    table.add(b"", &Header::encode());
    for Planned {
        key,
        entry,
        content,
    } in planned
    {
        let mut entry = entry.clone();
        if let Content::Tensor(index) = content {
            entry.crc32c = mask(*sums.get(index).ok_or_else(missing)?);
        }
        table.add(key.as_bytes(), &entry.encode());
    }
    Ok(table.finish())
}

impl Planned {
    fn tensor(index: usize, tensor: &TensorInfo) -> Result<Self> {
        let refuse = || {
            let message = format!("{} {:?} cannot be written", tensor.dtype, tensor.shape);
            Error::unsupported("tf_checkpoint.write", message).in_tensor(&tensor.name)
        };
        let stored = dtypes::stored(tensor.dtype);
        let len = tensor.elements().and_then(|count| stored.bytes_for(count));
        Ok(Self {
            key: tensor.name.clone(),
            entry: BundleEntry {
                dtype: dtypes::number(tensor.dtype).ok_or_else(refuse)?,
                shape: tensor.shape.clone(),
                size: len.ok_or_else(refuse)?,
                ..BundleEntry::default()
            },
            content: Content::Tensor(index),
        })
    }

    /// A value of metadata, which is text.
    fn text(key: &str, value: &Value) -> Result<Self> {
        let mut texts = Vec::new();
        let shape = match value {
            Value::List(list) => text_shape(list, 0),
            _ => Some(Vec::new()),
        };
        let shape = shape.filter(|_| collect(value, &mut texts));
        let shape = shape.ok_or_else(|| {
            let message = format!("the value of {key:?} is no text");
            Error::unsupported("tf_checkpoint.write", message)
        })?;
        let (bytes, crc32c) = strings::encode(&texts);
        Ok(Self {
            key: key.to_owned(),
            entry: BundleEntry {
                dtype: dtypes::STRING,
                shape: Shape::from(shape),
                size: bytes.len() as u64,
                crc32c,
                ..BundleEntry::default()
            },
            content: Content::Text(bytes),
        })
    }

    /// The graph of objects, as it is stored.
    fn graph(kept: &Kept, options: &PlanOptions) -> Result<Self> {
        let source = options.sources.get(kept.source.index());
        let bytes = source.ok_or_else(missing)?.read(kept.range.clone())?;
        let texts = Texts::parse(bytes, 1)?;
        Ok(Self {
            key: OBJECT_GRAPH.to_owned(),
            entry: BundleEntry {
                dtype: dtypes::STRING,
                size: kept.range.end - kept.range.start,
                crc32c: texts.checksum,
                ..BundleEntry::default()
            },
            content: Content::Graph(kept.clone()),
        })
    }
}

/// The texts of a value, one after the other; false where it has something else.
fn collect(value: &Value, texts: &mut Vec<Bytes>) -> bool {
    let list =
        |list: &List, texts: &mut Vec<Bytes>| list.iter().all(|value| collect(&value, texts));
    match value {
        Value::Str(text) => texts.push(Bytes::copy_from_slice(text.as_bytes())),
        Value::Bytes(bytes) => texts.push(bytes.clone()),
        Value::List(values) => return list(values, texts),
        _ => return false,
    }
    true
}

fn missing() -> Error {
    Error::argument("a tensor was not written, or without its checksum")
}
