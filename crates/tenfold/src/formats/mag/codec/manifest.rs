//! Version 300: `snapshot-0.3.0`.

use super::super::raw::Version;
use super::super::raw::manifest::{self as raw, Entry, Header, PAGE};
use super::super::{OTHER_FIELDS, SPEC};
use super::{
    aligned, behind, cut_off, data, data_range, out_of_bounds, planned_len, unique_names,
    within_limits,
};
use crate::error::{Error, Result};
use crate::format::{Context, Segment};
use crate::io::Reader;
use crate::model::{Endian, Kept, Manifest, Map, Payload, SourceId, TensorInfo, Value};
use crate::prelude::*;

pub(super) fn describe(cx: &mut Context<'_>, mut r: Reader<'_>) -> Result<Manifest> {
    let header = Header::parse(&mut r)?;
    let source = cx.source();
    let place = manifest_place(&header, source.len())?;
    within_limits(cx, header.meta_span)?;
    let text = source.read(place.clone())?;
    let depth = cx.limits().depth;
    let parsed = raw::Manifest::parse(&text, place.start, depth, &mut |key, at| {
        let message = format!("an object has the key {key:?} more than once; the last one counts");
        cx.warn("mag.duplicate", at..at + 1, message)
    })?;

    let places: Vec<u64> = parsed.tensor_map.iter().map(|entry| entry.at).collect();
    let tiled = check_tiling(&parsed.tensor_map, header.blob_span);
    let mut manifest = Manifest::new(Version::Snapshot030.label());
    manifest.region(0..Header::LEN, "header");
    manifest.region(place, "manifest");
    manifest.metadata = parsed.usr_metadata;
    manifest.kept = (parsed.others.into_iter())
        .map(|(name, range)| Kept::new(SPEC.id, name, SourceId::MAIN, range))
        .collect();
    manifest.tensors = to_tensors(parsed.tensor_map, &header)?.into();
    unique_names(&manifest.tensors, &places)?;
    let blob = header.data()?;
    if blob.end > source.len() {
        // A section in its usual place that the tensors fill is right, and the file is cut off.
        let usual = blob.start - header.manifest()?.end < PAGE;
        if tiled.is_err() || !usual {
            return Err(out_of_bounds(&blob, source.len()).at(28..44));
        }
        cut_off(source.len(), blob.end).settle(cx, &mut manifest.tensors)?;
    }
    tiled?;
    if header.big_endian {
        let message = "the data is big endian, which magnetron on little-endian machines refuses";
        cx.note("mag.endian", 8..12, message);
    }
    Ok(manifest)
}

/// Where the manifest is: in the file, and before the data.
fn manifest_place(header: &Header, file: u64) -> Result<Range<u64>> {
    let place = header.manifest()?;
    if place.end > file {
        let message = format!(
            "the manifest lies at bytes {}..{}, the file has {}",
            place.start, place.end, file
        );
        return Err(Error::malformed("mag.bounds", message).at(12..28));
    }
    if header.blob_offset < place.end {
        let message = format!(
            "the data begins at byte {}, the manifest ends at {}",
            header.blob_offset, place.end
        );
        return Err(Error::malformed("mag.bounds", message).at(28..36));
    }
    Ok(place)
}

/// Every tensor begins on a page of its own, and no page of the data is without a tensor.
fn check_tiling(entries: &[Entry], span: u64) -> Result<()> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by_key(|entry| entry.offset);
    let mut last = 0;
    for entry in sorted {
        let Entry { offset, nbytes, .. } = *entry;
        let blame = |rule, message: String| {
            Err(Error::malformed(rule, message)
                .at(entry.at..entry.at + 1)
                .in_tensor(&entry.name))
        };
        let end = match offset.checked_add(nbytes) {
            Some(end) if end <= span => end,
            _ => {
                return blame(
                    "mag.bounds",
                    format!("offset {offset} and {nbytes} bytes, but all data has {span}"),
                );
            }
        };
        if offset < last {
            return blame(
                "mag.overlap",
                format!("the offset is {offset}, the tensor before it ends at {last}"),
            );
        }
        if nbytes > 0 && !offset.is_multiple_of(PAGE) {
            return blame(
                "mag.alignment",
                format!("the offset {offset} is not a multiple of {PAGE}"),
            );
        }
        if offset - last >= PAGE {
            return blame(
                "mag.uncovered",
                format!("{} bytes before it belong to no tensor", offset - last),
            );
        }
        last = end;
    }
    if span - last >= PAGE {
        let message = format!(
            "the last {} bytes of the data belong to no tensor",
            span - last
        );
        return Err(Error::malformed("mag.uncovered", message).at(36..44));
    }
    Ok(())
}

fn to_tensors(entries: Vec<Entry>, header: &Header) -> Result<Vec<TensorInfo>> {
    let endian = if header.big_endian {
        Endian::Big
    } else {
        Endian::Little
    };
    let mut tensors = Vec::with_capacity(entries.len());
    for Entry {
        name,
        shape,
        dtype,
        offset,
        nbytes,
        others,
        at,
    } in entries
    {
        let range = data_range(header.blob_offset, offset, nbytes)
            .map_err(|error| error.at(at..at + 1).in_tensor(&name))?;
        let mut tensor = TensorInfo::dense(name, dtype, shape, Payload::main(range));
        for part in &mut tensor.parts {
            part.endian = endian;
        }
        if !others.is_empty() {
            tensor.metadata.push(OTHER_FIELDS, Value::Map(others));
        }
        tensors.push(tensor);
    }
    Ok(tensors)
}

pub(super) fn plan(what: &Manifest, timestamp: u64) -> Result<Vec<Segment>> {
    let mut manifest = raw::Manifest {
        usr_metadata: what.metadata.clone(),
        tensor_map: Vec::new(),
        others: Vec::new(),
    };
    let mut segments = vec![Segment::Align { to: PAGE, fill: 0 }];
    let mut end = 0;
    for (index, tensor) in what.tensors.iter().enumerate() {
        let nbytes = planned_len(tensor)?;
        // A tensor without bytes sits at the end of the one before it, as magnetron has it.
        if nbytes > 0 {
            end = aligned(end, PAGE)?;
            segments.push(Segment::Align { to: PAGE, fill: 0 });
        }
        manifest.tensor_map.push(Entry {
            name: tensor.name.clone(),
            shape: tensor.shape.clone(),
            dtype: tensor.dtype,
            offset: end,
            nbytes,
            others: match tensor.metadata.get(OTHER_FIELDS) {
                Some(Value::Map(others)) => others.clone(),
                _ => Map::new(),
            },
            at: 0,
        });
        segments.push(data(index, tensor));
        end = behind(end, nbytes)?;
    }
    let mut text = manifest.encode(timestamp)?;
    let mut kept = Vec::new();
    let mut meta_span = text.len() as u64 + 1;
    let mut names = LookupMap::default();
    for field in what.kept.iter().filter(|kept| kept.format == SPEC.id) {
        let (source, range) = (field.source, field.range.clone());
        if names.insert(field.name.as_str(), ()).is_some() {
            let message = format!(
                "two of the files have the field {:?}, which tenfold does not know and cannot merge",
                field.name
            );
            return Err(Error::argument(message));
        }
        meta_span = behind(meta_span, 1 + (range.end - range.start))?;
        kept.push(Segment::Bytes(b",".to_vec()));
        kept.push(Segment::Copy { source, range });
    }
    let header = Header {
        big_endian: false,
        meta_offset: Header::LEN,
        meta_span,
        blob_offset: aligned(Header::LEN + meta_span, PAGE)?,
        blob_span: end,
    };
    let mut head = Vec::new();
    header.encode(&mut head);
    if kept.is_empty() {
        text.push('}');
    } else {
        kept.push(Segment::Bytes(b"}".to_vec()));
    }
    head.extend(text.into_bytes());
    let head = core::iter::once(Segment::Bytes(head)).chain(kept);
    Ok(head.chain(segments).collect())
}
