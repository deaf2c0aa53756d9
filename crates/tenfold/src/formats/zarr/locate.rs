//! Finds the chunks of an array: their keys, and where they are in shards.

use core::fmt;

use bytes::Bytes;

use super::array::Array;
use super::pipeline::Shard;
use super::store::{Place, Store};
use crate::error::{Error, Result};
use crate::model::{Endian, Locate, Located, ReadFile};
use crate::prelude::*;

/// Where the chunks of one array are.
#[derive(Debug)]
pub(super) struct Chunks {
    pub(super) store: Arc<Store>,
    /// The path of the array with a slash behind it; empty at the root.
    pub(super) prefix: String,
    pub(super) array: Array,
    pub(super) recent: Arc<Recent>,
    /// Bytes that may be taken to undo what was done to a whole shard.
    pub(super) memory: u64,
    /// The files that there are, once somebody needed to know.
    #[cfg(feature = "std")]
    pub(super) present: std::sync::OnceLock<Vec<u64>>,
}

/// A number of an index that says that there is no chunk.
const MISSING: u64 = u64::MAX;

impl Locate for Chunks {
    fn locate(&self, read: &ReadFile<'_>, chunk: &[u64]) -> Result<Option<Located>> {
        // The first element of the chunk along every dimension.
        let first: Option<Vec<u64>> = (chunk.iter().zip(&self.array.pipeline.sides))
            .map(|(number, side)| number.checked_mul(*side))
            .collect();
        let first = first.ok_or_else(|| Error::argument("a chunk behind the last one"))?;
        let numbers = first.iter().zip(&self.array.sides);
        let numbers: Vec<u64> = numbers
            .map(|(first, side)| first.checked_div(*side).unwrap_or(0))
            .collect();
        let key = format!("{}{}", self.prefix, self.array.keys.name(&numbers));
        let found = self.find(read, &key, &first);
        let found = found.map_err(|error| error.adding(&format!(" ({key})")))?;
        Ok(found.map(|place| Located::new(place.payload())))
    }

    #[cfg(feature = "std")]
    fn knows_all(&self) -> bool {
        self.store.is_known_whole()
    }

    #[cfg(feature = "std")]
    fn may_have(&self, chunks: &[Range<u64>]) -> bool {
        let present = self.present.get_or_init(|| self.list());
        let Some(counts) = self.counts() else {
            return true;
        };
        // In numbers of files, which shards have fewer of than chunks.
        let mut wanted = Vec::new();
        for (n, range) in chunks.iter().enumerate() {
            let at = |list: &[u64]| list.get(n).copied().unwrap_or(1).max(1);
            let file = |number: u64| {
                number.saturating_mul(at(&self.array.pipeline.sides)) / at(&self.array.sides)
            };
            wanted.push(file(range.start)..file(range.end.saturating_sub(1)).saturating_add(1));
        }
        let corner = |of: fn(&Range<u64>) -> u64| linear(wanted.iter().map(of), &counts);
        let first = corner(|range| range.start);
        let last = corner(|range| range.end.saturating_sub(1));
        let begin = present.partition_point(|number| *number < first);
        let end = present.partition_point(|number| *number <= last);
        let between = present.get(begin..end).unwrap_or_default();
        // Between two corners of a box there are others, too: where they are many, some may be in it.
        between.len() > Self::LOOKED_AT
            || between.iter().any(|number| {
                let mut rest = *number;
                let mut dims = wanted.iter().zip(&counts).rev();
                dims.all(|(range, count)| {
                    let along = rest % count;
                    rest /= count;
                    range.contains(&along)
                })
            })
    }
}

/// Which of all files of a grid one is, in row-major order.
#[cfg(feature = "std")]
fn linear(numbers: impl Iterator<Item = u64>, counts: &[u64]) -> u64 {
    let numbers = numbers.zip(counts);
    numbers.fold(0u64, |before, (number, count)| {
        before.saturating_mul(*count).saturating_add(number)
    })
}

#[cfg(feature = "std")]
impl Chunks {
    /// Files that are looked at to say whether one of them is in a box.
    const LOOKED_AT: usize = 64;

    /// Files along every dimension; `None` where all of them cannot be counted.
    fn counts(&self) -> Option<Vec<u64>> {
        let counts = self.array.shape.iter().zip(&self.array.sides);
        let counts: Vec<u64> = counts
            .map(|(dim, side)| dim.div_ceil((*side).max(1)).max(1))
            .collect();
        let all = counts.iter().copied().try_fold(1, u64::checked_mul);
        all.map(|_| counts)
    }

    /// The files that there are, in row-major order of their chunks.
    fn list(&self) -> Vec<u64> {
        let counts = self.counts().unwrap_or_default();
        let keys = self.store.below(&self.prefix);
        let numbers = keys.filter_map(|key| self.array.keys.numbers(key.get(self.prefix.len()..)?));
        let numbers = numbers.filter(|numbers| {
            let mut within = numbers.iter().zip(&counts);
            numbers.len() == counts.len() && within.all(|(number, count)| number < count)
        });
        let mut present: Vec<u64> = numbers
            .map(|numbers| linear(numbers.into_iter(), &counts))
            .collect();
        present.sort_unstable();
        present
    }
}

impl Chunks {
    fn find(&self, read: &ReadFile<'_>, key: &str, first: &[u64]) -> Result<Option<Place>> {
        let shards = &self.array.pipeline.shards;
        let Some((last, outer)) = shards.split_last() else {
            return self.store.open(read, key);
        };
        // What shard within what shard it is, from the file on.
        let mut name = key.to_owned();
        let mut place: Option<Place> = None;
        for (level, shard) in shards.iter().enumerate() {
            let opened = match self.recent.get(&name) {
                Some(opened) => opened,
                None => {
                    let stored = match place.take() {
                        Some(place) => Some(place),
                        None => self.store.open(read, key)?,
                    };
                    let Some(stored) = stored else {
                        return Ok(None);
                    };
                    let opened = Arc::new(Opened::new(read, shard, stored, self.memory)?);
                    self.recent.put(&name, &opened);
                    opened
                }
            };
            let inner = shards
                .get(level + 1)
                .map_or(&self.array.pipeline.sides, |s| &s.sides);
            let number = shard.number(first, inner);
            let Some(range) = opened.range(shard, number)? else {
                return Ok(None);
            };
            place = opened.place.part(range);
            if level < outer.len() {
                name += &format!("#{number}");
            }
        }
        let _ = last;
        Ok(place)
    }
}

impl Shard {
    /// Which of its chunks begins at an element: they have these sides along the dimensions of the tensor.
    fn number(&self, first: &[u64], inner: &[u64]) -> u64 {
        let mut number = 0u64;
        for (axis, count) in self.axes.iter().zip(&self.counts) {
            let at = |list: &[u64]| list.get(*axis).copied().unwrap_or(1);
            let within = at(first) % at(&self.sides).max(1) / at(inner).max(1);
            number = number.saturating_mul(*count).saturating_add(within);
        }
        number
    }
}

/// A shard whose index was read.
pub(super) struct Opened {
    place: Place,
    index: Bytes,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opened({} bytes)", self.place.len())
    }
}

impl Opened {
    fn new(read: &ReadFile<'_>, shard: &Shard, stored: Place, memory: u64) -> Result<Self> {
        let place = if shard.behind.is_empty() {
            stored
        } else {
            let bytes = stored.read(read)?;
            Place::Memory(crate::transform::undo_filters(
                &shard.behind,
                bytes,
                memory,
            )?)
        };
        let (len, index) = (place.len(), shard.index_len());
        let range = if shard.index_at_end {
            len.checked_sub(index).map(|start| start..len)
        } else {
            Some(0..index)
        };
        let index = range.and_then(|range| place.part(range));
        let index = index.ok_or_else(|| {
            let message = format!(
                "a shard of {len} bytes, its index of {} chunks alone takes more",
                shard.count()
            );
            Error::malformed("zarr.shard", message)
        })?;
        let mut index = index.read(read)?;
        if shard.index_has_checksum
            && let Some((entries, sum)) = index.split_last_chunk::<4>()
        {
            let (sum, found) = (u32::from_le_bytes(*sum), crate::digest::crc32c(entries));
            if sum != found {
                let message =
                    format!("the CRC-32C of a shard's index is {found:08x}, {sum:08x} is stored");
                return Err(Error::mismatch("zarr.checksum", message));
            }
            index.truncate(index.len() - 4);
        }
        Ok(Self { place, index })
    }

    /// The bytes of a chunk, if it is there.
    fn range(&self, shard: &Shard, number: u64) -> Result<Option<Range<u64>>> {
        let entries = self.index.as_chunks::<16>().0;
        let entry = usize::try_from(number)
            .ok()
            .and_then(|number| entries.get(number));
        let entry = entry.ok_or_else(|| Error::argument("a chunk that is in no index"))?;
        let (offset, len) = entry.split_at(8);
        let number_of = |bytes: &[u8]| {
            let bytes = bytes.try_into().unwrap_or_default();
            match shard.index_endian {
                Endian::Little => u64::from_le_bytes(bytes),
                Endian::Big => u64::from_be_bytes(bytes),
            }
        };
        let (offset, len) = (number_of(offset), number_of(len));
        if (offset, len) == (MISSING, MISSING) {
            return Ok(None);
        }
        let end = offset
            .checked_add(len)
            .filter(|end| *end <= self.place.len());
        match end {
            Some(end) => Ok(Some(offset..end)),
            None => {
                let message = format!(
                    "{len} bytes from byte {offset} on for a chunk, its shard has {}",
                    self.place.len()
                );
                Err(Error::malformed("zarr.shard", message))
            }
        }
    }
}

/// Shards that were looked into lately, so that an index is not read once for each of its chunks. Without `std` there is
/// nothing that several threads could keep them in.
#[derive(Default)]
pub(super) struct Recent {
    #[cfg(feature = "std")]
    shards: std::sync::Mutex<Vec<(String, Arc<Opened>)>>,
}

impl fmt::Debug for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recent")
    }
}

#[cfg(feature = "std")]
impl Recent {
    /// How many are kept, and how many bytes of indexes.
    const MOST: usize = 64;
    const MOST_BYTES: usize = 16 << 20;

    fn get(&self, name: &str) -> Option<Arc<Opened>> {
        let shards = self.shards.lock().ok()?;
        let found = shards.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, opened)| opened.clone())
    }

    fn put(&self, name: &str, opened: &Arc<Opened>) {
        let Ok(mut shards) = self.shards.lock() else {
            return;
        };
        shards.push((name.to_owned(), opened.clone()));
        let held = |opened: &Opened| {
            let unpacked = match &opened.place {
                Place::Memory(bytes) => bytes.len(),
                _ => 0,
            };
            opened.index.len() + unpacked
        };
        // The last one stays, whatever it takes: it is in use.
        while shards.len() > 1
            && (shards.len() > Self::MOST
                || shards.iter().map(|(_, opened)| held(opened)).sum::<usize>() > Self::MOST_BYTES)
        {
            shards.remove(0);
        }
    }
}

#[cfg(not(feature = "std"))]
impl Recent {
    #[allow(clippy::unused_self)] // as with `std`
    fn get(&self, _: &str) -> Option<Arc<Opened>> {
        None
    }

    #[allow(clippy::unused_self)]
    fn put(&self, _: &str, _: &Arc<Opened>) {}
}
