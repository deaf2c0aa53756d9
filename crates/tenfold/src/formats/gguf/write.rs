//! Laying out one file, or several parts.

use alloc::borrow::Cow;

use super::{
    ALIGNMENT, ARCHITECTURE, PADDING, QUANTIZATION_VERSION, UNKNOWN, codec, is_alignment, raw,
    split, types,
};
use crate::error::{Error, Result};
use crate::format::in_place;
use crate::format::{FilePlan, Form, Plan, PlanOptions, Segment, Want};
use crate::io::Patch;
use crate::model::{DType, Manifest, Metadata, TensorInfo, Value, ValueKind};
use crate::prelude::*;

type Entries<'m> = Vec<(&'m str, Cow<'m, Value>)>;

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let align = alignment(&what.metadata, options)?;
    let mut entries = entries(what, options, align);
    if let Some(reserve) = reserve(options)? {
        entries.push((PADDING, Cow::Owned(Value::Str(" ".repeat(reserve)))));
    }
    let file_name = &options.file_name;
    let shards = options.shards.clone().unwrap_or_default();
    if shards.len() < 2 {
        let all: Vec<_> = (0..what.tensors.len()).collect();
        return Ok(Plan {
            files: vec![file(what, &all, file_name.clone(), &entries, align)?],
        });
    }
    let count = shards.len() as u64;
    let stem = split::stem(file_name);
    let mut files = Vec::new();
    for (number, places) in (1u64..).zip(shards) {
        let own = split_entries(number - 1, count, what.tensors.len())?;
        let name = split::name(stem, number, count);
        let mut entries = match number {
            1 => entries.clone(),
            // Every part is a file of its own, and is read with its own alignment.
            _ => entries
                .iter()
                .filter(|(key, _)| *key == ALIGNMENT)
                .cloned()
                .collect(),
        };
        entries.extend(own);
        files.push(file(what, &places, name, &entries, align)?);
    }
    Ok(Plan { files })
}

/// Room that was asked for.
fn reserve(options: &PlanOptions) -> Result<Option<usize>> {
    /// What readers of headers still take.
    const MOST: u64 = 100_000_000;
    match options.number("reserve")? {
        None | Some(0) => Ok(None),
        Some(bytes @ 1..=MOST) => Ok(usize::try_from(bytes).ok()),
        Some(_) => Err(options.wrong("reserve", format_args!("expected at most {MOST}"))),
    }
}

fn alignment(metadata: &Metadata, options: &PlanOptions) -> Result<u64> {
    match options.number("align")? {
        None => codec::alignment(metadata),
        Some(align) if is_alignment(align) => Ok(align),
        Some(_) => Err(options.wrong("align", "expected a power of two, 8 or more")),
    }
}

/// The metadata of the file: the architecture first, and what readers need at the end.
fn entries<'m>(what: &'m Manifest, options: &PlanOptions, align: u64) -> Entries<'m> {
    let metadata = &what.metadata;
    let architecture = match (options.option("architecture"), metadata.get(ARCHITECTURE)) {
        (Some(name), _) => Cow::Owned(Value::Str(name.to_owned())),
        (None, Some(value)) => Cow::Borrowed(value),
        (None, None) => Cow::Owned(Value::Str(UNKNOWN.to_owned())),
    };
    let align = Value::U32(u32::try_from(align).unwrap_or(32));
    let mut entries = vec![(ARCHITECTURE, architecture)];
    for (key, value) in metadata.iter() {
        match key {
            ARCHITECTURE => {}
            ALIGNMENT => entries.push((key, Cow::Owned(align.clone()))),
            _ => entries.push((key, Cow::Borrowed(value))),
        }
    }
    if align != Value::U32(32) && metadata.get(ALIGNMENT).is_none() {
        entries.push((ALIGNMENT, Cow::Owned(align)));
    }
    let quantized = |tensor: &TensorInfo| matches!(tensor.dtype, DType::Block(_));
    if metadata.get(QUANTIZATION_VERSION).is_none() && what.tensors.iter().any(quantized) {
        entries.push((QUANTIZATION_VERSION, Cow::Owned(Value::U32(2))));
    }
    entries
}

fn split_entries(number: u64, count: u64, tensors: usize) -> Result<Entries<'static>> {
    let too_many =
        |cause| Error::argument(format!("{count} parts of {tensors} tensors")).because(cause);
    let part = |n: u64| u16::try_from(n).map(Value::U16).map_err(too_many);
    let tensors = i32::try_from(tensors).map(Value::I32).map_err(too_many)?;
    Ok(vec![
        (split::NUMBER, Cow::Owned(part(number)?)),
        (split::COUNT, Cow::Owned(part(count)?)),
        (split::TENSORS, Cow::Owned(tensors)),
    ])
}

fn file(
    what: &Manifest,
    places: &[usize],
    name: String,
    entries: &Entries<'_>,
    align: u64,
) -> Result<FilePlan> {
    let tensors = || {
        places
            .iter()
            .filter_map(|&place| Some((place, what.tensors.get(place)?)))
    };
    let mut offsets = Vec::new();
    let pad = || Segment::Align { to: align, fill: 0 };
    let mut segments = vec![Segment::Bytes(Vec::new()), pad()];
    let mut offset = 0u64;
    for (index, tensor) in tensors() {
        offsets.push((tensor, offset));
        offset = len(tensor)?
            .checked_next_multiple_of(align)
            .and_then(|padded| offset.checked_add(padded))
            .ok_or_else(|| too_large(tensor))?;
        segments.push(Segment::Tensor {
            index,
            part: 0,
            want: Want::Dense(Form::canonical(tensor.dtype)),
            codec: None,
            digest: None,
        });
        segments.push(pad());
    }
    if let Some(first) = segments.first_mut() {
        *first = Segment::Bytes(header(&offsets, entries)?);
    }
    Ok(FilePlan::new(name, segments))
}

/// The header, up to where the data is aligned: tensors, each with the place of its data, and metadata.
fn header(tensors: &[(&TensorInfo, u64)], entries: &Entries<'_>) -> Result<Vec<u8>> {
    let mut out = raw::MAGIC.to_vec();
    out.extend(3u32.to_le_bytes());
    put_len(tensors.len(), &mut out);
    put_len(entries.len(), &mut out);
    for (key, value) in entries {
        put_string(key.as_bytes(), &mut out);
        let kind = kind(value).ok_or_else(|| no_place(key, value))?;
        put_kind(kind, &mut out);
        put(value, &mut out).ok_or_else(|| no_place(key, value))?;
    }
    for (tensor, offset) in tensors {
        put_tensor(tensor, *offset, &mut out);
    }
    Ok(out)
}

/// The header alone, ending in front of the same data: padded by its alignment, and where that is too little by a key.
pub(super) fn amend(
    what: &Manifest,
    stored: &Manifest,
    options: &PlanOptions,
) -> Result<Vec<Patch>> {
    let begin = in_place::header_end(stored);
    let align = alignment(&what.metadata, options)?;
    if align != codec::alignment(&stored.metadata)? {
        let message = "another alignment would move the data";
        return Err(Error::unsupported("gguf.alignment", message));
    }
    let mut offsets = Vec::new();
    for (place, tensor) in what.tensors.iter().enumerate() {
        let range = in_place::place(stored.tensors.get(place), 0)?;
        offsets.push((tensor, range.start.saturating_sub(begin)));
    }
    let mut entries = entries(what, options, align);
    entries.retain(|(key, _)| *key != PADDING);
    let mut bytes = header(&offsets, &entries)?;
    let len = bytes.len() as u64;
    let room = begin.checked_sub(len);
    let room = room.ok_or_else(|| in_place::no_room(len, begin))?;
    if room >= align {
        entries.push((PADDING, Cow::Owned(padding(room))));
        bytes = header(&offsets, &entries)?;
    }
    // The rest is less than the alignment, which is what readers skip.
    let size = usize::try_from(begin).map_err(|_| in_place::no_room(len, begin))?;
    bytes.resize(size.max(bytes.len()), 0);
    Ok(vec![Patch::new(0, bytes)])
}

/// A value that takes up so many bytes with its key, or as many as the alignment can make up for.
fn padding(room: u64) -> Value {
    // The lengths of the key and of the text, and the number of the type.
    const AROUND: u64 = 8 + PADDING.len() as u64 + 4 + 8;
    match room.checked_sub(AROUND).map(usize::try_from) {
        Some(Ok(len)) => Value::Str(" ".repeat(len)),
        _ => Value::Bool(true),
    }
}

fn put_tensor(tensor: &TensorInfo, offset: u64, out: &mut Vec<u8>) {
    put_string(tensor.name.as_bytes(), out);
    // At most 4, and all types have numbers: the capabilities say so.
    let rank = u32::try_from(tensor.shape.len()).unwrap_or(u32::MAX);
    out.extend(rank.to_le_bytes());
    for dim in tensor.shape.iter().rev() {
        out.extend(dim.to_le_bytes());
    }
    let id = types::id(tensor.dtype).unwrap_or(u32::MAX);
    out.extend(id.to_le_bytes());
    out.extend(offset.to_le_bytes());
}

/// The type of a value. Bytes are text that is not UTF-8.
fn kind(value: &Value) -> Option<ValueKind> {
    match value {
        Value::Bytes(_) => Some(ValueKind::Str),
        Value::List(_) | Value::Empty(_) => Some(ValueKind::List),
        other => other.kind(),
    }
}

fn put_kind(kind: ValueKind, out: &mut Vec<u8>) {
    out.extend(raw::kind_id(kind).unwrap_or(u32::MAX).to_le_bytes());
}

/// A value after its type; `None` where GGUF has none for it.
fn put(value: &Value, out: &mut Vec<u8>) -> Option<()> {
    match value {
        Value::Bool(value) => out.push((*value).into()),
        Value::U8(value) => out.push(*value),
        Value::U16(value) => out.extend(value.to_le_bytes()),
        Value::U32(value) => out.extend(value.to_le_bytes()),
        Value::U64(value) => out.extend(value.to_le_bytes()),
        Value::I8(value) => out.extend(value.to_le_bytes()),
        Value::I16(value) => out.extend(value.to_le_bytes()),
        Value::I32(value) => out.extend(value.to_le_bytes()),
        Value::I64(value) => out.extend(value.to_le_bytes()),
        Value::F32(value) => out.extend(value.to_le_bytes()),
        Value::F64(value) => out.extend(value.to_le_bytes()),
        Value::Str(text) => put_string(text.as_bytes(), out),
        Value::Bytes(bytes) => put_string(bytes, out),
        Value::Empty(kind) => {
            put_kind(*kind, out);
            put_len(0, out);
        }
        Value::List(items) => {
            put_kind(kind(&items.first()?)?, out);
            put_len(items.len(), out);
            items.iter().try_for_each(|item| put(&item, out))?;
        }
        _ => return None,
    }
    Some(())
}

fn put_string(bytes: &[u8], out: &mut Vec<u8>) {
    put_len(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn put_len(len: usize, out: &mut Vec<u8>) {
    out.extend((len as u64).to_le_bytes());
}

fn len(tensor: &TensorInfo) -> Result<u64> {
    tensor.dense_len().ok_or_else(|| too_large(tensor))
}

fn too_large(tensor: &TensorInfo) -> Error {
    let message = "the file would be larger than 64 bits can count";
    Error::unsupported("gguf.overflow", message).in_tensor(&tensor.name)
}

fn no_place(key: &str, value: &Value) -> Error {
    Error::argument(format!(
        "GGUF has no type for the value of {key:?}, {}",
        value.in_words()
    ))
}
