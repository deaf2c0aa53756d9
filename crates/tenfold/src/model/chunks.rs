//! Elements in a grid of chunks, each of which is stored by itself.

use core::fmt;

use bytes::Bytes;

use crate::error::Result;
use crate::model::{Payload, Shape, SourceId, Strides};
use crate::prelude::*;

mod tiles;

pub(crate) use tiles::{FindTile, Tile};

/// How the elements of a [`Layout::Chunked`](crate::model::Layout::Chunked) tensor are cut into chunks, and how a chunk
/// is found and decoded.
///
/// ```
/// use tenfold::model::{Chunks, Cuts};
/// let mut chunks = Chunks::new([5, 7], 4);
/// chunks.grid = vec![Cuts::Every(2), Cuts::Every(3)];
/// assert_eq!(chunks.counts(), [3, 3]);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Chunks {
    /// The tensor's dimensions.
    pub shape: Shape,
    /// Where each dimension is cut.
    pub grid: Vec<Cuts>,
    /// Whether a chunk at the edge is stored as long as any other; else it is cut where the tensor ends.
    pub padded: bool,
    /// Bytes of an element.
    pub width: usize,
    /// Which dimension of the tensor each of a stored chunk is, the one that runs slowest first; in their order, where it
    /// is empty.
    pub axes: Vec<usize>,
    /// What the elements of a chunk went through, in the order in which they did.
    pub filters: Vec<Filter>,
    /// An element of the chunks that are not stored; zeros where it is empty.
    pub fill: Bytes,
    /// Finds chunks; `None` where none is stored.
    pub index: Option<Arc<dyn Locate>>,
    /// The files that the index refers to: its first one, its second one, and so on.
    pub files: Vec<SourceId>,
    /// All bytes that chunks can be stored in: those of the files.
    pub room: u64,
    /// Whether finding a chunk takes decoding all of it, even without filters, because it lies in something compressed.
    pub at_once: bool,
}

impl Chunks {
    /// A single chunk that is not stored, to start from.
    pub fn new(shape: impl Into<Shape>, width: usize) -> Self {
        let shape = shape.into();
        Self {
            grid: shape.iter().map(|dim| Cuts::Every((*dim).max(1))).collect(),
            shape,
            padded: true,
            width,
            axes: Vec::new(),
            filters: Vec::new(),
            fill: Bytes::new(),
            index: None,
            files: Vec::new(),
            room: 0,
            at_once: false,
        }
    }

    /// Elements in pieces of a file, one after the other: bytes and how many elements each has.
    pub(crate) fn joined(pieces: Vec<(Payload, u64)>, width: usize) -> Option<Self> {
        let mut cuts = Vec::new();
        let mut count = 0u64;
        let mut room = 0u64;
        // Empty ones would be at the same place as what follows them.
        let pieces: Vec<_> = pieces
            .into_iter()
            .filter(|(_, elements)| *elements > 0)
            .collect();
        for (payload, elements) in &pieces {
            if count > 0 {
                cuts.push(count);
            }
            count = count.checked_add(*elements)?;
            room = room.checked_add(payload.len())?;
        }
        let mut chunks = Self::new([count], width);
        chunks.grid = vec![Cuts::At(cuts)];
        chunks.padded = false;
        chunks.files = vec![SourceId::MAIN];
        // As many bytes as there are chunks: all of them are known to be there.
        chunks.room = room;
        let pieces = pieces.into_iter().map(|(payload, _)| payload).collect();
        chunks.index = (count > 0).then(|| Arc::new(Pieces(pieces)) as Arc<dyn Locate>);
        Some(chunks)
    }

    /// How many chunks there are along every dimension.
    pub fn counts(&self) -> Vec<u64> {
        (self.shape.iter().zip(&self.grid))
            .map(|(dim, cuts)| cuts.count(*dim))
            .collect()
    }

    /// Bytes of all elements; `None` where 64 bits cannot count them.
    pub fn len(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        let width = u64::try_from(self.width).ok()?;
        self.shape.iter().copied().try_fold(width, u64::checked_mul)
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// How the chunks are stored, in words: `"shuffle+deflate"`.
    pub fn encoding(&self) -> &'static str {
        // A checksum changes nothing. The rest is what files have in practice; anything else is told by its last filter.
        let mut filters = self
            .filters
            .iter()
            .filter(|filter| !matches!(filter, Filter::Crc32c | Filter::Fletcher32));
        match (filters.next(), filters.next(), filters.next_back()) {
            (None, ..) => "raw",
            (Some(Filter::Shuffle { .. }), Some(Filter::Deflate { .. }), None) => "shuffle+deflate",
            (Some(Filter::Shuffle { .. }), Some(Filter::Lzf), None) => "shuffle+lzf",
            (Some(only), None, _) => only.name(),
            (_, Some(last), None) | (.., Some(last)) => last.name(),
        }
    }
}

/// Where a dimension is cut.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Cuts {
    /// After every so many elements.
    Every(u64),
    /// Where each chunk but the first begins, in ascending order.
    At(Vec<u64>),
}

impl Cuts {
    /// How many chunks a dimension of this length has.
    pub fn count(&self, dim: u64) -> u64 {
        match self {
            Cuts::Every(side) => dim.div_ceil((*side).max(1)),
            Cuts::At(_) if dim == 0 => 0,
            Cuts::At(places) => places.partition_point(|place| *place < dim) as u64 + 1,
        }
    }

    /// The chunk that an index is in, and its first index and the one after it, as if the dimension had no end.
    pub(crate) fn around(&self, index: u64) -> (u64, Range<u64>) {
        match self {
            Cuts::Every(side) => {
                let side = (*side).max(1);
                let number = index / side;
                let start = number * side;
                (number, start..start.saturating_add(side))
            }
            Cuts::At(places) => {
                let number = places.partition_point(|place| *place <= index);
                let before = number.checked_sub(1).and_then(|n| places.get(n));
                let start = before.copied().unwrap_or(0);
                let end = places.get(number).copied().unwrap_or(u64::MAX);
                (number as u64, start..end)
            }
        }
    }

    /// The first index of a chunk and the one behind it, as if the dimension had no end.
    pub(crate) fn range(&self, number: u64) -> Range<u64> {
        match self {
            Cuts::Every(side) => {
                let start = number.saturating_mul((*side).max(1));
                start..start.saturating_add((*side).max(1))
            }
            Cuts::At(places) => {
                let place = |n: u64| usize::try_from(n).ok().and_then(|n| places.get(n)).copied();
                let start = number
                    .checked_sub(1)
                    .map_or(0, |n| place(n).unwrap_or(u64::MAX));
                start..place(number).unwrap_or(u64::MAX)
            }
        }
    }

    /// The longest side of a chunk of a dimension of this length.
    pub(crate) fn longest(&self, dim: u64) -> u64 {
        match self {
            Cuts::Every(side) => (*side).max(1),
            Cuts::At(places) => {
                let starts = [0].into_iter().chain(places.iter().copied());
                let ends = places.iter().copied().chain([dim]);
                let sides = starts
                    .zip(ends)
                    .map(|(start, end)| end.saturating_sub(start));
                sides.max().unwrap_or(dim).max(1)
            }
        }
    }
}

/// What is done to the bytes of a chunk before they are stored.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Filter {
    /// Bytes of equal significance are put together: the first ones of all elements, then the second ones, and so on.
    Shuffle {
        /// Bytes of what is taken apart.
        width: u32,
    },
    /// One deflate stream with the frame of zlib. The level matters for writing only.
    Deflate {
        /// The level to write with.
        level: i32,
    },
    /// LZF, as h5py has it.
    Lzf,
    /// A Fletcher-32 checksum after the bytes.
    Fletcher32,
    /// A Blosc 1 frame, which itself says what is in it.
    Blosc,
    /// A CRC-32C after the bytes.
    Crc32c,
    /// Deflated, in the frame of gzip.
    Gzip,
    /// An LZ4 block after its decoded length, as numcodecs writes it.
    Lz4,
    /// LZ4 blocks, each after its length, as HDF5's filter 32004 writes them.
    Lz4Blocks,
    /// Zstandard frames. The level matters for writing only.
    Zstd {
        /// The level to write with.
        level: i32,
    },
}

impl Filter {
    /// The name in listings and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Filter::Shuffle { .. } => "shuffle",
            Filter::Deflate { .. } => "deflate",
            Filter::Lzf => "lzf",
            Filter::Fletcher32 => "fletcher32",
            Filter::Blosc => "blosc",
            Filter::Crc32c => "crc32c",
            Filter::Gzip => "gzip",
            Filter::Lz4 | Filter::Lz4Blocks => "lz4",
            Filter::Zstd { .. } => "zstd",
        }
    }
}

/// Reads bytes of a file, for [`Locate`].
pub type ReadFile<'r> = dyn Fn(SourceId, Range<u64>) -> Result<Bytes> + 'r;

/// Finds the chunks of a tensor.
pub trait Locate: fmt::Debug + Send + Sync {
    /// Where a chunk is, by its number along every dimension; `None` where it is not stored. Reads what it needs of an
    /// index to find this one. Files are numbered as [`Chunks::files`] lists them.
    fn locate(&self, read: &ReadFile<'_>, chunk: &[u64]) -> Result<Option<Located>>;

    /// Whether it can say of many chunks at once that none of them is stored, so that a grid may have many more than there
    /// are files.
    fn knows_all(&self) -> bool {
        false
    }

    /// Whether some chunks of a box may be stored, given by their numbers along every dimension. Costs little beside
    /// looking for each of them; what cannot be told may be.
    fn may_have(&self, chunks: &[Range<u64>]) -> bool {
        let _ = chunks;
        true
    }
}

impl PartialEq for dyn Locate {
    /// The very same, not only one that finds the same.
    fn eq(&self, other: &Self) -> bool {
        core::ptr::addr_eq(self, other)
    }
}

impl Eq for dyn Locate {}

/// A chunk that is stored.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Located {
    /// Its bytes, as the filters left them.
    pub payload: Payload,
    /// The filters that were left out for this chunk: bit 0 is the first.
    pub skipped: u32,
    /// How the elements lie in the payload, where they are not all of it, one after the other, the last index running
    /// fastest. Only of chunks that go through no filter.
    pub strides: Option<Box<Strides>>,
}

impl Located {
    /// A chunk that went through all filters.
    pub fn new(payload: Payload) -> Self {
        Self {
            payload,
            skipped: 0,
            strides: None,
        }
    }
}

/// Chunks along one dimension, all of which are known.
#[derive(Debug)]
struct Pieces(Vec<Payload>);

impl Locate for Pieces {
    fn locate(&self, _: &ReadFile<'_>, chunk: &[u64]) -> Result<Option<Located>> {
        let number = chunk
            .first()
            .and_then(|number| usize::try_from(*number).ok());
        let piece = number.and_then(|number| self.0.get(number));
        Ok(piece.cloned().map(Located::new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_in_the_chunk_that_begins_before_it() {
        let cuts = Cuts::At(vec![3, 4, 9]);
        assert_eq!((cuts.count(12), cuts.count(9), cuts.count(0)), (4, 3, 0));
        assert_eq!(cuts.longest(12), 5);
        let around: Vec<_> = [0, 2, 3, 4, 8, 9, 11]
            .map(|index| cuts.around(index))
            .into();
        let expected = [
            (0, 0..3),
            (0, 0..3),
            (1, 3..4),
            (2, 4..9),
            (2, 4..9),
            (3, 9..u64::MAX),
            (3, 9..u64::MAX),
        ];
        assert_eq!(around, expected);
        for (number, range) in around {
            assert_eq!(cuts.range(number), range);
        }
        assert_eq!(Cuts::Every(4).around(11), (2, 8..12));
        assert_eq!(Cuts::Every(4).count(9), 3);
    }
}
