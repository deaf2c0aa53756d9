//! Versions 100 and 200: `snapshot-0.1.0` and `snapshot-0.2.0`.

use super::super::raw::snapshot::{
    DATA, DESCRIPTORS, Descriptor, Header, METADATA, POOL, Pool, marker,
};
use super::super::raw::v1::{Kind, MetaRecord, Reading};
use super::super::raw::{TRUNCATED, Version, as_u32};
use super::super::{shape, tables};
use super::{
    aligned, behind, cut_off, data, data_range, extent, out_of_bounds, planned_elements,
    planned_len, seal, unique_names, within_limits, wrong_checksum,
};
use crate::error::{Error, Result};
use crate::format::salvage::CutOff;
use crate::format::{Context, Segment};
use crate::io::{Reader, Source};
use crate::model::{DType, Manifest, Payload, TensorInfo};
use crate::prelude::*;

/// What tensors of `snapshot-0.2.0` are aligned to.
const ALIGN: u64 = 16;
/// Where the checksum is.
const CHECKSUM: Range<u64> = 16..20;

pub(super) fn describe(
    cx: &mut Context<'_>,
    mut r: Reader<'_>,
    version: Version,
) -> Result<Manifest> {
    if version == Version::Snapshot010 {
        refuse_development_build(cx.source())?;
    }
    let header = Header::parse(&mut r)?;
    let mut manifest = Manifest::new(version.label());
    manifest.region(0..r.pos(), "header");
    let at = r.pos();
    marker(&mut r, POOL)?;
    let pool = Pool::parse(&mut r)?;
    within_limits(cx, r.pos())?;
    manifest.region(at..r.pos(), "names");
    let at = r.pos();
    marker(&mut r, METADATA)?;
    marker(&mut r, DESCRIPTORS)?;
    let (descriptors, places) = descriptors(cx, &mut r, &header, table(version))?;
    let end = r.pos();
    marker(&mut r, DATA)?;
    manifest.region(at..r.pos(), "descriptors");
    check_sum(cx, &header, end)?;

    let base = match version {
        Version::Snapshot010 => r.pos(),
        _ => r.pos().next_multiple_of(ALIGN),
    };
    manifest.tensors = to_tensors(pool, descriptors, &places, base)?.into();
    unique_names(&manifest.tensors, &places)?;
    let mut cut = None;
    let extents = Extents {
        base,
        file: cx.source().len(),
        version,
    };
    let checked = extents.check(&mut manifest.tensors, &places, &mut cut);
    if let Some(cut) = cut {
        cut.settle(cx, &mut manifest.tensors)?;
    }
    checked?;
    warn_of_no_elements(cx, &manifest.tensors, &places)?;
    Ok(manifest)
}

fn warn_of_no_elements(cx: &mut Context<'_>, tensors: &[TensorInfo], places: &[u64]) -> Result<()> {
    for (tensor, &at) in tensors.iter().zip(places) {
        if tensor.shape.contains(&0) {
            let message = format!(
                "tensor {:?} has no elements: magnetron 0.1.8 and 0.1.9 write that, but no release reads it",
                tensor.name
            );
            cx.warn("mag.zero-elements", at..at + Descriptor::MIN, message)?;
        }
    }
    Ok(())
}

fn table(version: Version) -> &'static [DType] {
    match version {
        Version::Snapshot010 => tables::SNAPSHOT_010,
        _ => tables::SNAPSHOT_020,
    }
}

/// Builds of October to December 2025 wrote the layout of `archive-1` under the number 100.
fn refuse_development_build(source: &dyn Source) -> Result<()> {
    if source.len() < 24 {
        return Ok(());
    }
    let mut r = Reader::new(source, TRUNCATED);
    if source.len() >= 36 && source.read(32..36)? == POOL.as_slice() {
        return Ok(());
    }
    r.skip(8, "magic and version")?;
    let checksum = r.u32("checksum")?;
    let num_tensors = r.u32("num_tensors")?;
    let num_meta_kv = r.u32("num_meta_kv")?;
    let aux = r.u32("aux")?;
    let readable = (0..num_meta_kv).all(|_| MetaRecord::parse(&mut r).is_ok());
    let end = if readable && aux == 0 {
        Kind::Archive.end_of_records(source, r.pos(), num_tensors)
    } else {
        None
    };
    match end {
        Some(end) if Reading::Crc32cBehind.compute(source, end)? == checksum => {
            let message = "the archive layout under version 100, which only unreleased development builds of \
                           October to December 2025 wrote";
            Err(Error::unsupported("mag.prerelease", message).at(4..8))
        }
        _ => Ok(()),
    }
}

fn descriptors(
    cx: &Context<'_>,
    r: &mut Reader<'_>,
    header: &Header,
    table: &[DType],
) -> Result<(Vec<Descriptor>, Vec<u64>)> {
    let mut descriptors = Vec::new();
    let mut places = Vec::new();
    for _ in 0..header.tensor_count {
        push_tight(&mut places, r.pos());
        push_tight(&mut descriptors, Descriptor::parse(r, table)?);
        within_limits(cx, r.pos())?;
    }
    Ok((descriptors, places))
}

fn check_sum(cx: &mut Context<'_>, header: &Header, end: u64) -> Result<()> {
    let covered = "CRC-32C of bytes 20 to the end of the descriptors";
    let computed = Header::compute_checksum(cx.source(), end)?;
    if computed == header.checksum {
        cx.note(
            "mag.checksum",
            CHECKSUM,
            format!("the checksum is right: {covered}"),
        );
        return Ok(());
    }
    wrong_checksum(cx, CHECKSUM, header.checksum, computed, covered)
}

fn to_tensors(
    pool: Pool,
    descriptors: Vec<Descriptor>,
    places: &[u64],
    base: u64,
) -> Result<Vec<TensorInfo>> {
    unique_pool(&pool)?;
    let mut names: Vec<Option<String>> = pool.names.into_iter().map(Some).collect();
    let count = names.len();
    let mut tensors = Vec::with_capacity(descriptors.len());
    for (descriptor, &at) in descriptors.into_iter().zip(places) {
        let Descriptor {
            dtype,
            key_id,
            offset,
            shape,
            ..
        } = descriptor;
        let name = names.get_mut(key_id as usize).map(Option::take);
        let name = match name {
            Some(Some(name)) => name,
            Some(None) => {
                let message = format!("key_id {key_id} is used by two tensors");
                return Err(Error::malformed("mag.duplicate", message).at(at + 4..at + 8));
            }
            None => {
                let message = format!("key_id {key_id}, but the pool has {count} names");
                return Err(Error::malformed("mag.pool", message).at(at + 4..at + 8));
            }
        };
        let range = shape::bytes(&shape, dtype)
            .and_then(|len| data_range(base, offset, len))
            .map_err(|error| error.at(at..at + Descriptor::MIN).in_tensor(&name))?;
        tensors.push(TensorInfo::dense(name, dtype, shape, Payload::main(range)));
    }
    Ok(tensors)
}

/// Names that no tensor uses must be unique too.
fn unique_pool(pool: &Pool) -> Result<()> {
    let mut seen = LookupMap::new();
    for name in &pool.names {
        if seen.insert(name.as_str(), ()).is_some() {
            let message = format!("the name {name:?} is in the string pool twice");
            return Err(Error::malformed("mag.duplicate", message).at(32..36));
        }
    }
    Ok(())
}

/// Where data may lie.
struct Extents {
    /// Where it begins.
    base: u64,
    /// Where the file ends.
    file: u64,
    version: Version,
}

impl Extents {
    /// Data lies in the order of the descriptors, packed or at multiples of 16, and ends with the file, or past it where
    /// that is `cut` off.
    fn check(
        &self,
        tensors: &mut [TensorInfo],
        places: &[u64],
        cut: &mut Option<CutOff>,
    ) -> Result<()> {
        let Self {
            base,
            file,
            version,
        } = *self;
        let ends = tensors.iter().map(|tensor| extent(tensor).end);
        let expected = ends.max().unwrap_or(base);
        let mut last = base;
        let mut without_bytes = Vec::new();
        for (index, (tensor, &at)) in tensors.iter().zip(places).enumerate() {
            let range = extent(tensor);
            let blame = |error: Error| error.at(at..at + Descriptor::MIN).in_tensor(&tensor.name);
            let place = match version {
                Version::Snapshot010 => last,
                _ => last.checked_next_multiple_of(ALIGN).unwrap_or(u64::MAX),
            };
            if range.is_empty() && (last..=place).contains(&range.start) {
                // Its place can lie past the end, because nothing is padded after the last byte.
                without_bytes.push(index);
                continue;
            }
            if range.end > file {
                let far = range.start != place;
                cut.get_or_insert_with(|| CutOff {
                    error: far.then(|| blame(out_of_bounds(&range, file))),
                    ..cut_off(file, expected)
                });
            }
            check_place(&range, last, base, version).map_err(blame)?;
            last = range.end;
        }
        if last > file {
            cut.get_or_insert_with(|| cut_off(file, expected));
            return Ok(());
        }
        if file > expected {
            let message = format!(
                "the last tensor ends at byte {expected} and should end the file, which has {file}"
            );
            return Err(Error::malformed("mag.trailing", message).at(expected..file));
        }
        for tensor in without_bytes {
            move_into_file(tensors, tensor, file);
        }
        Ok(())
    }
}

/// What a place in the file breaks, given where the tensor before it ends.
fn check_place(range: &Range<u64>, last: u64, base: u64, version: Version) -> Result<()> {
    let Range { start, end } = *range;
    if start < last {
        let message = format!(
            "data at bytes {start}..{end} overlaps that of the tensor before it, up to {last}"
        );
        return Err(Error::malformed("mag.overlap", message));
    }
    if version == Version::Snapshot010 && start > last {
        let message = format!(
            "data begins at byte {start}, but is packed in this version and must begin at {last}"
        );
        return Err(Error::malformed("mag.gap", message));
    }
    if version == Version::Snapshot020 && !(start - base).is_multiple_of(ALIGN) {
        let message = format!("the offset {} is not a multiple of {ALIGN}", start - base);
        return Err(Error::malformed("mag.alignment", message));
    }
    Ok(())
}

/// Gives a tensor without bytes a place that can be read.
fn move_into_file(tensors: &mut [TensorInfo], index: usize, file: u64) {
    let Some(tensor) = tensors.get_mut(index) else {
        return;
    };
    let at = extent(tensor).start.min(file);
    for part in &mut tensor.parts {
        part.payload = Payload::main(at..at);
    }
}

pub(super) fn plan(what: &Manifest, timestamp: u64, version: Version) -> Result<Vec<Segment>> {
    let align = match version {
        Version::Snapshot010 => 1,
        _ => ALIGN,
    };
    let mut head = Vec::new();
    let header = Header {
        timestamp,
        checksum: 0,
        aux: 0,
        tensor_count: as_u32(what.tensors.len(), "tensors")?,
    };
    header.encode(version, &mut head);
    let names = what
        .tensors
        .iter()
        .map(|tensor| tensor.name.clone())
        .collect();
    Pool { names }.encode(&mut head)?;
    head.extend(METADATA);
    head.extend(DESCRIPTORS);
    let mut offset = 0;
    let mut segments = vec![Segment::Bytes(Vec::new())];
    if align > 1 {
        segments.push(Segment::Align { to: align, fill: 0 });
    }
    for (index, tensor) in what.tensors.iter().enumerate() {
        offset = aligned(offset, align)?;
        let descriptor = Descriptor {
            dtype: tensor.dtype,
            key_id: as_u32(index, "tensors")?,
            numel: planned_elements(tensor)?,
            offset,
            shape: tensor.shape.clone(),
        };
        descriptor.encode(table(version), &mut head)?;
        offset = behind(offset, planned_len(tensor)?)?;
        if align > 1 && index > 0 {
            segments.push(Segment::Align { to: align, fill: 0 });
        }
        segments.push(data(index, tensor));
    }
    seal(&mut head, CHECKSUM);
    head.extend(DATA);
    if let Some(first) = segments.first_mut() {
        *first = Segment::Bytes(head);
    }
    Ok(segments)
}
