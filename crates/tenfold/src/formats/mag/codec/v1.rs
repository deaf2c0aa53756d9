//! Version 1: `spec-1` and `archive-1`.

use bytes::Bytes;

use super::super::raw::v1::{
    ArchiveTensor, Header, Kind, MetaRecord, MetaValue, Reading, SpecTensor,
};
use super::super::raw::{TRUNCATED, as_u32};
use super::super::{SPEC_1, shape};
use super::{
    aligned, behind, cut_off, data, data_range, extent, out_of_bounds, planned_elements,
    planned_len, put_checksum, unique_names, within_limits, wrong_checksum,
};
use crate::error::{Error, Result};
use crate::format::salvage::CutOff;
use crate::format::{Context, Segment};
use crate::io::Reader;
use crate::model::{Manifest, Metadata, Payload, TensorInfo, Value};
use crate::prelude::*;

/// What buffers are written at.
const ALIGN: u64 = 64;
/// What padding is made of, as in magnetron's own files.
const FILL: u8 = 0xff;
/// Where the checksum is.
const CHECKSUM: Range<u64> = 8..12;

/// The tensors of a file, with the places of their records.
struct Records {
    kind: Kind,
    tensors: Vec<TensorInfo>,
    places: Vec<u64>,
    end: u64,
}

pub(super) fn describe(cx: &mut Context<'_>, mut r: Reader<'_>) -> Result<Manifest> {
    let header = Header::parse(&mut r)?;
    let meta = metadata_records(cx, &mut r, header.num_meta_kv)?;
    let spec_only = meta.iter().find(|(record, _)| record.is_spec_only());
    let mut manifest = Manifest::new("1");
    manifest.region(0..24, "header");
    manifest.region(24..r.pos(), "metadata");

    if header.num_tensors == 0 {
        if spec_only.is_some() {
            manifest.version = SPEC_1.into();
        }
        check_sum(cx, &header, Kind::Spec, r.pos())?;
    } else {
        let mut records = tensor_records(cx, &header, r.pos())?;
        if let (Kind::Archive, Some((record, at))) = (records.kind, spec_only) {
            return Err(refuse_spec_only(record, *at));
        }
        manifest.version = records.kind.label().into();
        manifest.region(r.pos()..records.end, "tensor records");
        check_sum(cx, &header, records.kind, records.end)?;
        unique_names(&records.tensors, &records.places)?;
        let mut cut = None;
        let checked = check_extents(&records, cx.source().len(), &mut cut);
        if let Some(cut) = cut {
            cut.settle(cx, &mut records.tensors)?;
        }
        checked?;
        if records.kind == Kind::Archive {
            // Behind the padding of the last buffer magnetron leaves zeros that it never used.
            let last = records
                .tensors
                .iter()
                .map(|tensor| extent(tensor).end)
                .max()
                .unwrap_or(0);
            let len = cx.source().len();
            // Not in a file that was cut off.
            if last <= len {
                let padded = last.next_multiple_of(ALIGN).min(len);
                manifest.region(last..padded, "padding");
            }
        }
        manifest.tensors = records.tensors.into();
    }
    manifest.metadata = to_metadata(meta)?;
    Ok(manifest)
}

fn metadata_records(
    cx: &Context<'_>,
    r: &mut Reader<'_>,
    num_meta_kv: u32,
) -> Result<Vec<(MetaRecord, u64)>> {
    let mut records = Vec::new();
    for _ in 0..num_meta_kv {
        let at = r.pos();
        push_tight(&mut records, (MetaRecord::parse(r)?, at));
        within_limits(cx, r.pos())?;
    }
    Ok(records)
}

/// Reads the tensor records as the layout that the first of them says.
fn tensor_records(cx: &Context<'_>, header: &Header, at: u64) -> Result<Records> {
    let source = cx.source();
    let kind = Kind::decide(source, at)?;
    parse_as(cx, header, kind, at).or_else(|error| {
        // A damaged first record can look like one of the other layout. If only that one's records end where the
        // checksum says, it is the one to report about.
        if fits(cx, header, kind.other(), at) && !fits(cx, header, kind, at) {
            parse_as(cx, header, kind.other(), at)
        } else {
            Err(error)
        }
    })
}

/// Whether the checksum is right for the records of a layout.
fn fits(cx: &Context<'_>, header: &Header, kind: Kind, at: u64) -> bool {
    let source = cx.source();
    kind.end_of_records(source, at, header.num_tensors)
        .filter(|&end| end <= cx.limits().header_bytes)
        .and_then(|end| Reading::Crc32cBehind.compute(source, end).ok())
        .is_some_and(|computed| computed == header.checksum)
}

fn parse_as(cx: &Context<'_>, header: &Header, kind: Kind, at: u64) -> Result<Records> {
    let source = cx.source();
    let mut r = Reader::over(source, at..source.len(), TRUNCATED);
    let mut tensors = Vec::new();
    let mut places = Vec::new();
    for _ in 0..header.num_tensors {
        let at = r.pos();
        let tensor = match kind {
            Kind::Archive => from_archive(ArchiveTensor::parse(&mut r)?),
            Kind::Spec => from_spec(SpecTensor::parse(&mut r)?),
        };
        let tensor = tensor.map_err(|error| error.at(at..r.pos()))?;
        push_tight(&mut tensors, tensor);
        push_tight(&mut places, at);
        within_limits(cx, r.pos())?;
    }
    Ok(Records {
        kind,
        tensors,
        places,
        end: r.pos(),
    })
}

fn from_spec(record: SpecTensor) -> Result<TensorInfo> {
    let shape = record.dimensions()?;
    let range = data_range(0, record.data_offset, record.data_length)
        .map_err(|error| error.in_tensor(&record.key))?;
    Ok(TensorInfo::dense(
        record.key,
        record.dtype,
        shape,
        Payload::main(range),
    ))
}

fn from_archive(record: ArchiveTensor) -> Result<TensorInfo> {
    let range = shape::bytes(&record.shape, record.dtype)
        .and_then(|len| data_range(0, record.offset, len))
        .map_err(|error| error.in_tensor(&record.key))?;
    Ok(TensorInfo::dense(
        record.key,
        record.dtype,
        record.shape,
        Payload::main(range),
    ))
}

fn refuse_spec_only(record: &MetaRecord, at: u64) -> Error {
    let key = &record.key;
    let error = if key.is_empty() {
        Error::malformed(
            "mag.name",
            "a metadata key is empty, which the archive layout does not allow",
        )
    } else {
        let message = format!(
            "metadata {key:?} has the type tag 0, which the archive layout does not define"
        );
        Error::malformed("mag.tag", message)
    };
    error.at(at..at + 16)
}

/// Compares the checksum in all its readings, and says which one it is.
fn check_sum(cx: &mut Context<'_>, header: &Header, kind: Kind, end: u64) -> Result<()> {
    let readings: &[Reading] = match kind {
        Kind::Archive => &[Reading::Crc32cBehind],
        Kind::Spec => &Reading::ALL,
    };
    for &reading in readings {
        if reading.compute(cx.source(), end)? == header.checksum {
            let message = format!("the checksum is right: {}", reading.name());
            if reading == Reading::Crc32cBehind {
                cx.note("mag.checksum", CHECKSUM, message);
                return Ok(());
            }
            let message = format!("{message}, not the usual {}", Reading::Crc32cBehind.name());
            return cx.warn("mag.checksum", CHECKSUM, message);
        }
    }
    let computed = Reading::Crc32cBehind.compute(cx.source(), end)?;
    wrong_checksum(
        cx,
        CHECKSUM,
        header.checksum,
        computed,
        Reading::Crc32cBehind.name(),
    )
}

/// Data may lie in any order after the records, but inside the file, or past it where that is `cut` off, and no
/// byte belongs to two tensors.
fn check_extents(records: &Records, file: u64, cut: &mut Option<CutOff>) -> Result<()> {
    let Records {
        tensors,
        places,
        end: begin,
        ..
    } = records;
    let mut sorted: Vec<(Range<u64>, usize)> = Vec::with_capacity(tensors.len());
    for (index, (tensor, &at)) in tensors.iter().zip(places).enumerate() {
        let range = extent(tensor);
        if range.start < *begin {
            let message = format!(
                "data begins at byte {}, the records before it end at {begin}",
                range.start
            );
            return Err(Error::malformed("mag.bounds", message)
                .at(at..at + 1)
                .in_tensor(&tensor.name));
        }
        sorted.push((range, index));
    }
    sorted.sort_by_key(|(range, index)| (range.start, range.end, *index));
    let blame = |error: Error, index: usize| match (tensors.get(index), places.get(index)) {
        (Some(tensor), Some(&at)) => error.at(at..at + 1).in_tensor(&tensor.name),
        _ => error,
    };
    let ends = sorted.iter().map(|(range, _)| range.end);
    let expected = ends.max().unwrap_or(file);
    let mut last = *begin;
    for (range, index) in &sorted {
        if range.end > file {
            // Where a writer would have put it, the file is cut off; elsewhere, the offset may be wrong.
            let far = range.start > last.saturating_add(ALIGN);
            cut.get_or_insert_with(|| CutOff {
                error: far.then(|| blame(out_of_bounds(range, file), *index)),
                ..cut_off(file, expected)
            });
        }
        last = last.max(range.end);
    }
    let mut last = *begin;
    for (range, index) in sorted.iter().filter(|(range, _)| !range.is_empty()) {
        if range.start < last {
            let message = format!(
                "data at bytes {}..{} overlaps that of another tensor",
                range.start, range.end
            );
            return Err(blame(Error::malformed("mag.overlap", message), *index));
        }
        last = range.end;
    }
    Ok(())
}

fn to_metadata(records: Vec<(MetaRecord, u64)>) -> Result<Metadata> {
    let mut seen = LookupMap::new();
    for (record, at) in &records {
        if seen.insert(record.key.as_str(), ()).is_some() {
            let message = format!("the metadata key {:?} appears twice", record.key);
            return Err(Error::malformed("mag.duplicate", message).at(*at..at + 16));
        }
    }
    drop(seen);
    Ok(records
        .into_iter()
        .map(|(record, _)| {
            let value = match record.value {
                MetaValue::Untyped(value) | MetaValue::Integer(value) => Value::I64(value),
                MetaValue::Double(value) => Value::F64(value),
            };
            (record.key, value)
        })
        .collect())
}

pub(super) fn plan_spec(what: &Manifest, reading: Reading) -> Result<Vec<Segment>> {
    plan(what, Kind::Spec, reading, |tensor, offset, out| {
        let shape = shape::to_slots(&tensor.shape).ok_or_else(|| {
            let message = format!("shape {:?} does not fit six slots", tensor.shape);
            Error::unsupported("mag.rank", message).in_tensor(&tensor.name)
        })?;
        let record = SpecTensor {
            key: tensor.name.clone(),
            shape,
            dtype: tensor.dtype,
            data_length: planned_len(tensor)?,
            data_offset: offset,
        };
        record.encode(out)
    })
}

pub(super) fn plan_archive(what: &Manifest) -> Result<Vec<Segment>> {
    plan(
        what,
        Kind::Archive,
        Reading::Crc32cBehind,
        |tensor, offset, out| {
            let record = ArchiveTensor {
                dtype: tensor.dtype,
                numel: planned_elements(tensor)?,
                offset,
                shape: tensor.shape.clone(),
                key: tensor.name.clone(),
            };
            record.encode(out)
        },
    )
}

/// Lays out a file of version 1; `encode` writes a tensor's record.
fn plan(
    what: &Manifest,
    kind: Kind,
    reading: Reading,
    encode: impl Fn(&TensorInfo, u64, &mut Vec<u8>) -> Result<()>,
) -> Result<Vec<Segment>> {
    let mut head = encode_head(what, kind)?;
    // The length of a record does not depend on the offset in it.
    let mut at = head.len() as u64;
    let mut measured = Vec::new();
    for tensor in &what.tensors {
        measured.clear();
        encode(tensor, 0, &mut measured)?;
        at = behind(at, measured.len() as u64)?;
    }
    let mut segments = vec![Segment::Bytes(Vec::new())];
    for (index, tensor) in what.tensors.iter().enumerate() {
        at = aligned(at, ALIGN)?;
        encode(tensor, at, &mut head)?;
        at = behind(at, planned_len(tensor)?)?;
        segments.push(Segment::Align {
            to: ALIGN,
            fill: FILL,
        });
        segments.push(data(index, tensor));
    }
    if kind == Kind::Archive && !what.tensors.is_empty() {
        segments.push(Segment::Align {
            to: ALIGN,
            fill: FILL,
        });
    }
    let head = Bytes::from(head);
    let checksum = reading.compute(&head, head.len() as u64)?;
    let mut head = Vec::from(head);
    put_checksum(&mut head, CHECKSUM, checksum);
    if let Some(first) = segments.first_mut() {
        *first = Segment::Bytes(head);
    }
    Ok(segments)
}

/// Header and metadata, without the checksum.
fn encode_head(what: &Manifest, kind: Kind) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let header = Header {
        checksum: 0,
        num_tensors: as_u32(what.tensors.len(), "tensors")?,
        num_meta_kv: as_u32(what.metadata.len(), "metadata entries")?,
    };
    header.encode(&mut head);
    for (key, value) in what.metadata.iter() {
        let record = MetaRecord {
            key: key.to_owned(),
            value: to_meta_value(key, value, kind)?,
        };
        record.encode(&mut head)?;
    }
    Ok(head)
}

/// The specification has no types for metadata; a tag of 2 is what makes a double come back as one.
fn to_meta_value(key: &str, value: &Value, kind: Kind) -> Result<MetaValue> {
    match (value, value.as_i64(), kind) {
        (Value::F32(value), ..) => Ok(MetaValue::Double((*value).into())),
        (Value::F64(value), ..) => Ok(MetaValue::Double(*value)),
        (_, Some(value), Kind::Spec) => Ok(MetaValue::Untyped(value)),
        (_, Some(value), Kind::Archive) => Ok(MetaValue::Integer(value)),
        _ => Err(Error::unsupported(
            "mag.tag",
            format!("metadata {key:?} is not a 64-bit number"),
        )),
    }
}
