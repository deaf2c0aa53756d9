//! Tensors that are stored in slices: boxes of them, each under a key of its own.

use super::dtypes;
use super::entry::{BundleEntry, Slice};
use super::names;
use super::shards::Shards;
use super::table::unmask;
use crate::error::{Error, Result};
use crate::model::{
    Checksum, Chunks, DType, DigestKind, Endian, FindTile, Layout, Located, Over, Part, Payload,
    ReadFile, Role, SealedRange, Shape, SourceId, TensorInfo, Tile, element_count,
};
use crate::prelude::*;

/// The slices of a bundle, by their keys.
pub(super) type Slices = LookupMap<Vec<u8>, BundleEntry>;

/// Where the slices of a tensor are.
#[derive(Debug)]
struct Pieces(Vec<Payload>);

impl FindTile for Pieces {
    fn find(&self, _: &ReadFile<'_>, tile: usize) -> Result<Located> {
        let piece = self.0.get(tile).cloned();
        piece
            .map(Located::new)
            .ok_or_else(|| Error::argument("a slice that is not listed"))
    }
}

/// The bytes of elements of a type, as they are stored.
pub(super) fn len(shape: &[u64], dtype: DType) -> Result<u64> {
    // What has no elements must not overflow either: strides are made of it.
    let others: Vec<u64> = shape.iter().copied().filter(|dim| *dim > 0).collect();
    let stored = dtypes::stored(dtype);
    let most = element_count(&others).and_then(|count| stored.bytes_for(count));
    let len = element_count(shape).and_then(|count| stored.bytes_for(count));
    let len = len.filter(|_| most.is_some_and(|most| i64::try_from(most).is_ok()));
    len.ok_or_else(|| {
        let message = format!("shape {shape:?} of {dtype} has more bytes than can be counted");
        Error::malformed("tf_checkpoint.shape", message)
    })
}

/// Refuses a tensor or a slice that does not have the bytes that its shape needs.
pub(super) fn check_size(entry: &BundleEntry, dtype: DType) -> Result<()> {
    let needed = len(&entry.shape, dtype)?;
    if entry.size != needed {
        let message = format!(
            "it has {} bytes, shape {:?} of {dtype} needs {needed}",
            entry.size, entry.shape
        );
        return Err(Error::malformed("tf_checkpoint.size", message));
    }
    Ok(())
}

/// A tensor that is put together from its slices, with their checksums.
pub(super) fn tensor(
    name: &str,
    entry: &BundleEntry,
    (dtype, endian): (DType, Endian),
    slices: &mut Slices,
    shards: &Shards,
) -> Result<(TensorInfo, Vec<SealedRange>)> {
    len(&entry.shape, dtype)?;
    let Some(width) = dtype.width() else {
        let message = format!("elements of {dtype} in slices");
        return Err(Error::unsupported("tf_checkpoint.slices", message));
    };
    let (mut tiles, mut pieces, mut sealed) = (Vec::new(), Vec::new(), Vec::new());
    let mut files: Vec<SourceId> = Vec::new();
    let mut places: LookupMap<SourceId, u32> = LookupMap::default();
    let mut room = 0u64;
    for slice in &entry.slices {
        let tile = tile(slice, &entry.shape)?;
        let piece = slices
            .remove(&names::of_slice(name, slice))
            .ok_or_else(|| {
                let message = format!("its slice {tile} is not in the index, or twice");
                Error::malformed("tf_checkpoint.slice-missing", message)
            })?;
        if piece.dtype != entry.dtype || piece.shape != tile.sides {
            let message = format!(
                "its slice {tile} is of shape {:?} and type {}, {} is expected",
                piece.shape, piece.dtype, entry.dtype
            );
            return Err(Error::malformed("tf_checkpoint.slices", message));
        }
        check_size(&piece, dtype)?;
        let (id, range) = match piece.size {
            0 => (SourceId::MAIN, 0..0),
            _ => shards
                .range(&piece)
                .map(|(shard, range)| (shard.id, range))?,
        };
        room = room.saturating_add(piece.size);
        let next = u32::try_from(files.len()).unwrap_or(u32::MAX);
        let place = *places.entry(id).or_insert_with(|| {
            files.push(id);
            next
        });
        if piece.size > 0 {
            let what = format!("slice {tile} of {name:?}");
            let sum = checksum(piece.crc32c, Over::Stored);
            push_tight(&mut sealed, SealedRange::new(id, range.clone(), sum, what));
        }
        push_tight(&mut tiles, tile);
        let source = SourceId(place);
        push_tight(&mut pieces, Payload::Raw { source, range });
    }
    let found = Chunks::tiled(&entry.shape, width, tiles, Arc::new(Pieces(pieces)));
    let mut chunks = found.map_err(|message| Error::malformed("tf_checkpoint.slices", message))?;
    (chunks.files, chunks.room) = (files, room);
    let mut info = TensorInfo::new(name, dtype, entry.shape.clone(), Layout::Chunked);
    let mut part = Part::new(Role::Values, dtype, Payload::Chunks(Arc::new(chunks)));
    part.endian = endian;
    info.parts = part.into();
    Ok((info, sealed))
}

/// The box that a slice is.
fn tile(slice: &Slice, shape: &Shape) -> Result<Tile> {
    if slice.len() != shape.len() {
        let message = format!(
            "a slice of {} dimensions, it has {}",
            slice.len(),
            shape.len()
        );
        return Err(Error::malformed("tf_checkpoint.slices", message));
    }
    let extents = || slice.iter().zip(&**shape);
    let extents = || extents().map(|(extent, dim)| extent.unwrap_or((0, *dim)));
    Ok(Tile {
        start: extents().map(|(start, _)| start).collect(),
        sides: extents().map(|(_, len)| len).collect(),
    })
}

/// A checksum as it is stored.
pub(super) fn checksum(masked: u32, over: Over) -> Checksum {
    let value = unmask(masked).to_be_bytes();
    Checksum::new(DigestKind::Crc32c, over, value.to_vec())
}
