//! Items: whole archives of `torch.save`, looked at when they are needed.

use bytes::Bytes;

use super::metadata::Place;
use crate::error::{Error, Result};
use crate::formats::torch::{self, Allowed, Archive, Storages, View, no_pickle, unpack};
use crate::io::{Limits, Part, Source, read_exactly};
use crate::model::{
    DType, Endian, FindTile, Layout, Located, Payload, ReadFile, Shape, SourceId, TensorInfo,
};
use crate::prelude::*;
use crate::wire::pickle::{self, Budget, Tree};
use crate::wire::zip::{self, TORCH_PICKLE, Zip};

/// Items of no more bytes are read at once.
pub(super) const SMALL: u64 = 64 << 10;
/// Bytes of an archive beside what it holds.
const BESIDE: u64 = 64 << 10;

/// An item, opened.
pub(super) struct Item {
    source: Arc<dyn Source>,
    zip: Zip,
}

impl Item {
    /// An item of a file. `most` is on the bytes of one that is compressed.
    pub(super) fn open(
        file: &Arc<dyn Source>,
        place: &Place,
        most: u64,
        limits: &Limits,
    ) -> Result<Self> {
        let range = place.offset..place.end();
        let source: Arc<dyn Source> = if place.is_zstd {
            let stored = read_exactly(&**file, range)?;
            let limit = most.saturating_add(BESIDE).min(limits.tensor_memory);
            Arc::new(Bytes::from(crate::transform::unpack_zstd(
                &stored,
                limit,
                &|| Ok(()),
            )?))
        } else if place.len <= SMALL && !file.is_memory() {
            Arc::new(read_exactly(&**file, range)?)
        } else {
            Arc::new(Part::new(file.clone(), range))
        };
        Self::of(source, limits)
    }

    /// One whose bytes are known.
    pub(super) fn of(source: Arc<dyn Source>, limits: &Limits) -> Result<Self> {
        let zip = Zip::open(&*source, limits.header_bytes)?;
        let zip = zip.ok_or_else(|| zip::no_end(&*source))?;
        Ok(Self { source, zip })
    }

    pub(super) fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    fn archive(&self) -> Result<Archive<'_>> {
        Archive::new(&self.zip, SourceId::MAIN)
    }

    /// The bytes of its pickle, and where they begin.
    pub(super) fn pickle(&self, limits: &Limits) -> Result<(Bytes, u64)> {
        let archive = self.archive()?;
        let member = archive.member(TORCH_PICKLE).ok_or_else(no_pickle)?;
        let limit = limits.header_bytes.min(pickle::MAX_LEN);
        if member.size > limit {
            let message = format!("the pickle has {} bytes, the limit is {limit}", member.size);
            return Err(Error::limit("limit", message));
        }
        if member.is_deflated {
            let message = "a pickle that is deflated, as torch never writes it";
            return Err(Error::unsupported("item", message));
        }
        let bytes = unpack(&*self.source, member)?;
        if let Some(expected) = torch::crc32(member)
            && crc32fast::hash(&bytes) != expected
        {
            let message = "the pickle of an item does not have the CRC-32 that its archive says";
            return Err(Error::mismatch("checksum", message));
        }
        Ok((bytes, member.data.start))
    }

    pub(super) fn storages(&self) -> Result<Storages> {
        self.archive()?.storages(&*self.source)
    }
}

/// What an item is run with.
pub(super) fn run<'b>(
    (bytes, at): (&'b Bytes, u64),
    allowed: Allowed,
    budget: &mut Budget,
) -> Result<Tree<'b>> {
    let mut policy = allowed;
    pickle::run(bytes, &pickle::Place::At(at), &mut policy, budget)
}

/// What a pickle of so many bytes may take.
pub(super) fn budget(len: usize) -> Budget {
    Budget::new(torch::budget(len as u64))
}

/// The items of a tensor, in the order of its chunks.
pub(super) struct Items {
    pub(super) dtype: DType,
    pub(super) chunks: Vec<Chunk>,
    /// The files of the checkpoint.
    pub(super) files: Arc<[Arc<dyn Source>]>,
    pub(super) limits: Limits,
}

/// An item of a tensor.
pub(super) struct Chunk {
    pub(super) place: Place,
    /// The file as the tensor's chunks number it.
    pub(super) file: u32,
    pub(super) sides: Shape,
    /// What was found when it was looked at.
    #[cfg(feature = "std")]
    found: std::sync::OnceLock<Located>,
}

impl Chunk {
    pub(super) fn new(place: Place, file: u32, sides: Shape) -> Self {
        Self {
            place,
            file,
            sides,
            #[cfg(feature = "std")]
            found: std::sync::OnceLock::new(),
        }
    }
}

impl core::fmt::Debug for Items {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Items({} of {})", self.chunks.len(), self.dtype)
    }
}

impl FindTile for Items {
    fn find(&self, _: &ReadFile<'_>, tile: usize) -> Result<Located> {
        let missing = || Error::argument("a chunk that is not listed");
        let chunk = self.chunks.get(tile).ok_or_else(missing)?;
        #[cfg(feature = "std")]
        if let Some(found) = chunk.found.get() {
            return Ok(found.clone());
        }
        let file = self
            .files
            .get(chunk.place.file as usize)
            .ok_or_else(missing)?;
        let located = self.look_at(chunk, file)?;
        // What had to be unpacked is not kept.
        #[cfg(feature = "std")]
        if matches!(located.payload, Payload::Raw { .. }) {
            return Ok(chunk.found.get_or_init(|| located).clone());
        }
        Ok(located)
    }
}

impl Items {
    /// Where the elements of an item are, which must be what `.metadata` says.
    fn look_at(&self, chunk: &Chunk, file: &Arc<dyn Source>) -> Result<Located> {
        let place = &chunk.place;
        let count = crate::model::element_count(&chunk.sides);
        let most = count.and_then(|count| self.dtype.bytes_for(count));
        let item = Item::open(file, place, most.unwrap_or(0), &self.limits)?;
        let tensor = tensor(&item, &self.limits)?;
        if tensor.dtype != self.dtype || tensor.shape != chunk.sides {
            let message = format!(
                "the item holds {} {:?}, .metadata says {} {:?}",
                tensor.dtype, tensor.shape, self.dtype, chunk.sides
            );
            return Err(Error::mismatch("dcp.item", message));
        }
        let Some(part) = tensor.parts.first() else {
            return Err(Error::argument("a tensor without a part"));
        };
        if part.endian == Endian::Big {
            let message = "an item with big-endian numbers";
            return Err(Error::unsupported("dcp.byte-order", message));
        }
        let mut located = Located::new(match &part.payload {
            Payload::Raw { range, .. } if place.is_zstd => {
                Payload::Inline(item.source().read(range.clone())?)
            }
            Payload::Raw { range, .. } => Payload::Raw {
                source: SourceId(chunk.file),
                range: place.offset.saturating_add(range.start)
                    ..place.offset.saturating_add(range.end),
            },
            Payload::Inline(bytes) => Payload::Inline(bytes.clone()),
            _ => {
                let message = "a storage that is deflated, as torch never writes it";
                return Err(Error::unsupported("dcp.item", message));
            }
        });
        if let Layout::Strided(strides) = &tensor.layout {
            located.strides = Some(strides.clone());
        }
        Ok(located)
    }
}

/// The tensor that an item is.
fn tensor(item: &Item, limits: &Limits) -> Result<TensorInfo> {
    let (bytes, at) = item.pickle(limits)?;
    let allowed = Allowed::default();
    let tree = run((&bytes, at), allowed, &mut budget(bytes.len()))?;
    let view = View::only(allowed, &tree.root()?)?;
    let (tensor, _) = view.place("", &item.storages()?, limits, item.source().len())?;
    Ok(tensor)
}
