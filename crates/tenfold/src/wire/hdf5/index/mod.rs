//! Where chunks are: five kinds of indexes, each entered where a chunk is looked for.

mod arrays;
mod tree1;

use bytes::Bytes;

use super::block::{Block, Fetch, File, Space, UNDEFINED};
use super::header::number;
use super::recent::{Key, Recent};
use super::storage::{ChunkStorage, IndexKind};
use super::tree2::Tree;
use super::types::Dataspace;
use crate::error::{Error, Result};
use crate::model::{Locate, Located, Payload, ReadFile, SourceId};
use crate::prelude::*;

/// The file that an index speaks of: there is one.
const FILE: SourceId = SourceId(0);

/// The index of a dataset's chunks.
#[derive(Debug)]
pub(super) struct Index {
    space: Space,
    recent: Arc<Recent>,
    storage: ChunkStorage,
    dims: Vec<u64>,
    most: Vec<u64>,
    has_filters: bool,
}

/// A chunk that an index has an entry for.
struct Entry {
    address: u64,
    /// Bytes that are stored, where the index says it.
    size: Option<u64>,
    skipped: u32,
}

impl Index {
    pub(super) fn new(
        file: &File<'_>,
        storage: ChunkStorage,
        dataspace: &Dataspace,
        has_filters: bool,
    ) -> Self {
        Self {
            space: file.space,
            recent: file.recent.clone(),
            storage,
            dims: dataspace.dims.clone(),
            most: dataspace.most.clone(),
            has_filters,
        }
    }

    /// Bytes of a chunk before the filters.
    fn chunk_len(&self) -> Result<u64> {
        let sides = self.storage.dims.iter().copied();
        let len = sides
            .clone()
            .try_fold(self.storage.element, u64::checked_mul);
        len.ok_or_else(|| {
            Error::malformed("hdf5.layout", "the size of a chunk does not fit 64 bits")
        })
    }

    /// The number of a chunk among all that the dataset can grow to, the last dimension running fastest. An unlimited
    /// dimension comes first, where there may be one.
    fn number(&self, chunk: &[u64], unlimited: bool) -> Result<u64> {
        let mut axes: Vec<(u64, u64)> = (chunk.iter().zip(&self.most).zip(&self.storage.dims))
            .map(|((number, most), side)| (*number, most.div_ceil(*side)))
            .collect();
        let free = self.most.iter().position(|most| *most == u64::MAX);
        if let Some(free) = free.filter(|_| unlimited) {
            let first = axes.remove(free);
            axes.insert(0, first);
        }
        let place = (axes.iter().enumerate()).try_fold(0u64, |place, (axis, (number, count))| {
            let count = if axis == 0 { 1 } else { *count };
            place.checked_mul(count)?.checked_add(*number)
        });
        place.ok_or_else(|| Error::malformed("hdf5.layout", "more chunks than 64 bits count"))
    }

    fn entry(&self, file: &mut dyn Fetch, chunk: &[u64]) -> Result<Option<Entry>> {
        let ChunkStorage { index, address, .. } = self.storage;
        let width = |element: u64| {
            element
                .checked_sub(12)
                .filter(|width| (1..=8).contains(width))
        };
        match index {
            IndexKind::Single(said) => Ok(Some(Entry {
                address,
                size: said.map(|(size, _)| size),
                skipped: said.map_or(0, |(_, skipped)| skipped),
            })),
            IndexKind::Implicit => {
                let before = self.number(chunk, false)?.checked_mul(self.chunk_len()?);
                let address = before.and_then(|before| address.checked_add(before));
                Ok(address.map(Entry::plain))
            }
            IndexKind::OldTree => tree1::find(file, address, chunk, &self.storage.dims),
            IndexKind::Fixed => arrays::fixed(file, address, self.number(chunk, false)?),
            IndexKind::Extensible => arrays::extensible(file, address, self.number(chunk, true)?),
            IndexKind::Tree => {
                let tree = Tree::read(file, address)?;
                let scaled = 8 * chunk.len() as u64;
                let front = tree.record.checked_sub(scaled);
                let size = match (tree.kind, front) {
                    (10, Some(8)) => None,
                    (11, Some(front)) => Some(width(front).ok_or_else(|| no_width(front))?),
                    (kind, _) => {
                        let message = format!(
                            "a B-tree of type {kind} with records of {} bytes, for chunks of {} dimensions",
                            tree.record,
                            chunk.len()
                        );
                        return Err(Error::malformed("hdf5.btree", message));
                    }
                };
                let front = front.unwrap_or_default();
                let record = tree.find(file, &|record: &Block| {
                    record.parse(|r| {
                        r.skip(front, "place of a chunk")?;
                        for wanted in chunk {
                            let order = wanted.cmp(&r.u64("place of a chunk")?);
                            if order.is_ne() {
                                return Ok(order);
                            }
                        }
                        Ok(core::cmp::Ordering::Equal)
                    })
                })?;
                record.map(|record| Entry::parse(&record, size)).transpose()
            }
        }
    }
}

fn no_width(element: u64) -> Error {
    let message = format!("an entry of {element} bytes has no room for the size of a chunk");
    Error::malformed("hdf5.chunk-index", message)
}

impl Entry {
    fn plain(address: u64) -> Self {
        Self {
            address,
            size: None,
            skipped: 0,
        }
    }

    /// An address, and the size in so many bytes with what was left out of the filters.
    fn parse(block: &Block, size: Option<u64>) -> Result<Self> {
        block.parse(|r| {
            let address = r.u64("address of a chunk")?;
            let Some(width) = size else {
                return Ok(Self::plain(address));
            };
            Ok(Self {
                address,
                size: Some(number(r, width, "size of a chunk")?),
                skipped: r.u32("filters left out")?,
            })
        })
    }
}

impl Locate for Index {
    fn locate(&self, read: &ReadFile<'_>, chunk: &[u64]) -> Result<Option<Located>> {
        let mut file = Remote {
            read,
            space: self.space,
            recent: &self.recent,
        };
        let Some(entry) = self.entry(&mut file, chunk)? else {
            return Ok(None);
        };
        if entry.address == UNDEFINED {
            return Ok(None);
        }
        let size = match entry.size {
            Some(size) => size,
            None => self.chunk_len()?,
        };
        let range = self.space.range(entry.address, size, "a chunk")?;
        let mut located = Located::new(Payload::Raw {
            source: FILE,
            range,
        });
        let is_partial =
            (chunk.iter().zip(&self.storage.dims).zip(&self.dims)).any(|((number, side), dim)| {
                let end = number
                    .checked_add(1)
                    .and_then(|next| next.checked_mul(*side));
                end.is_none_or(|end| end > *dim)
            });
        located.skipped = if self.has_filters && self.storage.plain_edges && is_partial {
            u32::MAX
        } else {
            entry.skipped
        };
        Ok(Some(located))
    }
}

/// A file behind a function that reads it.
struct Remote<'r> {
    read: &'r ReadFile<'r>,
    space: Space,
    recent: &'r Recent,
}

impl Remote<'_> {
    fn read(&self, address: u64, len: u64, what: &'static str) -> Result<Block> {
        let range = self.space.range(address, len, what)?;
        let bytes: Bytes = (self.read)(FILE, range.clone())?;
        Ok(Block {
            bytes,
            at: range.start,
        })
    }
}

impl Fetch for Remote<'_> {
    fn block(&mut self, address: u64, len: u64, what: &'static str) -> Result<Block> {
        let key = Key {
            address,
            len,
            is_sealed: false,
            signature: None,
        };
        self.recent.get(key, || self.read(address, len, what))
    }

    fn checked(
        &mut self,
        address: u64,
        len: u64,
        signature: Option<[u8; 4]>,
        what: &'static str,
    ) -> Result<Block> {
        let key = Key {
            address,
            len,
            is_sealed: true,
            signature,
        };
        self.recent.get(key, || {
            self.read(address, len, what)?.checked(signature, what)
        })
    }
}
