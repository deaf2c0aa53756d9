//! Data in chunks: which, and the B-tree that finds them.

use super::encode::UNDEFINED;
use crate::error::{Error, Result};
use crate::format::{PlanOptions, Written};
use crate::model::{Cuts, Filter, Payload, TensorInfo};
use crate::prelude::*;

/// Bytes of a chunk, about, where nothing else is said.
const USUAL: u64 = 1 << 20;
/// Entries of a node: twice what readers take for granted where the file says nothing.
const ENTRIES: u64 = 64;
/// Bytes of a chunk that its size has room for.
const MOST: u64 = u32::MAX as u64;

/// How data is to be cut.
pub(super) enum Chunking {
    /// As it is where it comes from.
    Alike,
    /// As the options say.
    Asked {
        /// Sides that were given, for tensors of as many dimensions.
        sides: Option<Vec<u64>>,
        level: Option<i32>,
        shuffle: bool,
    },
    /// Not at all.
    Whole,
}

impl Chunking {
    pub(super) fn new(options: &PlanOptions) -> Result<Self> {
        let level = options.number("deflate")?;
        let level = level
            .map(|level| match i32::try_from(level) {
                Ok(level @ 0..=9) => Ok(level),
                _ => Err(options.wrong("deflate", "expected a level from 0 to 9")),
            })
            .transpose()?;
        let shuffle = options.flag("shuffle")?;
        let is_filtered = level.is_some_and(|level| level > 0) || shuffle;
        let sides = match options.option("chunk") {
            Some("none") if is_filtered => {
                return Err(options.wrong("chunk", "only chunks are compressed or shuffled"));
            }
            Some("none") => return Ok(Self::Whole),
            None | Some("auto") => None,
            Some(text) => {
                let sides = text
                    .split('x')
                    .map(|side| side.parse().ok().filter(|side| *side > 0));
                let sides: Option<Vec<u64>> = sides.collect();
                let wrong = || options.wrong("chunk", "expected auto, none or sides such as 64x64");
                Some(sides.ok_or_else(wrong)?)
            }
        };
        let is_asked = options.option("chunk").is_some() || level.is_some() || shuffle;
        Ok(if is_asked {
            Self::Asked {
                sides,
                level: level.filter(|level| *level > 0),
                shuffle,
            }
        } else {
            Self::Alike
        })
    }

    /// How a tensor is cut; `None` where there is nothing to cut.
    pub(super) fn of(&self, tensor: &TensorInfo) -> Result<Option<Cut>> {
        if tensor.shape.is_empty() || tensor.shape.contains(&0) {
            return Ok(None);
        }
        let (sides, level, shuffle) = match self {
            Self::Whole => return Ok(None),
            Self::Alike => return Ok(alike(tensor)),
            Self::Asked {
                sides,
                level,
                shuffle,
            } => (sides, level, *shuffle),
        };
        let width = tensor.dtype.width().unwrap_or(1);
        let given = sides
            .as_deref()
            .filter(|sides| sides.len() == tensor.shape.len());
        let sides = match given {
            Some(sides) => within(sides.iter(), &tensor.shape),
            None => usual(&tensor.shape, width as u64),
        };
        let mut filters = Vec::new();
        if shuffle && width > 1 {
            let width = u32::try_from(width).unwrap_or(1);
            filters.push(Filter::Shuffle { width });
        }
        filters.extend(level.map(|level| Filter::Deflate { level }));
        match Cut::new(tensor, sides, filters) {
            Ok(cut) => Ok(Some(cut)),
            Err(sides) => {
                let message = format!("chunks of {sides:?} are too large: 2 GiB at most");
                Err(Error::argument(message).in_tensor(&tensor.name))
            }
        }
    }
}

/// The cut that a tensor has where it comes from; `None` where it is in one piece there, or in chunks that are not written.
fn alike(tensor: &TensorInfo) -> Option<Cut> {
    let [part] = &*tensor.parts else {
        return None;
    };
    let Payload::Chunks(chunks) = &part.payload else {
        return None;
    };
    // Where no chunk is stored there is no reason for one.
    chunks.index.as_ref()?;
    let sides = chunks.grid.iter().map(|cuts| match cuts {
        Cuts::Every(side) => Some(side),
        Cuts::At(_) => None,
    });
    let sides: Vec<&u64> = sides.collect::<Option<_>>()?;
    let width = tensor.dtype.width()?;
    let filters = chunks.filters.iter().filter_map(|filter| match *filter {
        Filter::Shuffle { .. } if width == 1 => None,
        Filter::Shuffle { .. } => {
            let width = u32::try_from(width).ok()?;
            Some(Filter::Shuffle { width })
        }
        Filter::Deflate { level: 1..=9 } | Filter::Fletcher32 => Some(*filter),
        Filter::Deflate { .. } => Some(Filter::Deflate { level: 6 }),
        Filter::Crc32c => Some(Filter::Fletcher32),
        // Only h5py reads it, and it is as fast as this; for the others HDF5 needs plugins.
        Filter::Blosc
        | Filter::Gzip
        | Filter::Lz4
        | Filter::Lz4Blocks
        | Filter::Lzf
        | Filter::Zstd { .. } => Some(Filter::Deflate { level: 1 }),
    });
    Cut::new(
        tensor,
        within(sides.into_iter(), &tensor.shape),
        filters.collect(),
    )
    .ok()
}

/// Sides that are no longer than the dimensions.
fn within<'s>(sides: impl Iterator<Item = &'s u64>, shape: &[u64]) -> Vec<u64> {
    sides.zip(shape).map(|(side, dim)| *side.min(dim)).collect()
}

/// Whole lines of about a MiB, so that neighbours of the tensor are neighbours in the file.
fn usual(shape: &[u64], width: u64) -> Vec<u64> {
    let mut sides = shape.to_vec();
    for axis in 0..sides.len() {
        let inner: u64 = sides
            .iter()
            .skip(axis + 1)
            .copied()
            .fold(width, u64::saturating_mul);
        if let Some(side) = sides.get_mut(axis) {
            *side = (USUAL / inner.max(1)).clamp(1, *side);
            if *side > 1 {
                break;
            }
        }
    }
    sides
}

/// How a tensor is cut into chunks.
#[derive(Clone)]
pub(super) struct Cut {
    pub(super) sides: Vec<u64>,
    pub(super) filters: Vec<Filter>,
    pub(super) width: u64,
    counts: Vec<u64>,
}

impl Cut {
    /// Chunks with these sides, or the sides again where they are too large.
    fn new(tensor: &TensorInfo, sides: Vec<u64>, filters: Vec<Filter>) -> Result<Self, Vec<u64>> {
        let width = tensor.dtype.width().unwrap_or(1) as u64;
        let len = sides.iter().copied().try_fold(width, u64::checked_mul);
        if len.is_none_or(|len| len > MOST / 2) {
            return Err(sides);
        }
        let counts = (tensor.shape.iter().zip(&sides)).map(|(dim, side)| dim.div_ceil(*side));
        Ok(Self {
            counts: counts.collect(),
            sides,
            filters,
            width,
        })
    }

    fn count(&self) -> u64 {
        self.counts.iter().product()
    }

    fn key(&self) -> u64 {
        8 + 8 * (self.sides.len() as u64 + 1)
    }

    /// Bytes of a node, whether it is full or not.
    fn node(&self) -> u64 {
        24 + (ENTRIES + 1) * self.key() + ENTRIES * 8
    }

    /// Nodes at every level, the leaves first.
    fn levels(&self) -> Vec<u64> {
        let mut levels = vec![self.count().div_ceil(ENTRIES)];
        while let Some(&last) = levels.last()
            && last > 1
        {
            levels.push(last.div_ceil(ENTRIES));
        }
        levels
    }

    /// Bytes of the B-tree.
    pub(super) fn tree_len(&self) -> u64 {
        self.levels().iter().sum::<u64>() * self.node()
    }

    /// The address of the root of a B-tree that begins at `at`: it comes last.
    pub(super) fn root(&self, at: u64) -> u64 {
        at + self.tree_len() - self.node()
    }

    /// The B-tree of chunks that were written, at an address.
    pub(super) fn tree(&self, at: u64, written: &Written) -> Result<Vec<u8>> {
        if written.chunks.len() as u64 != self.count() {
            return Err(Error::argument("chunks that were not written"));
        }
        // The chunks as entries of the leaves: size and address.
        let mut address = written.range.start;
        let mut entries: Vec<(u64, u32, u64)> = Vec::new();
        for (number, size) in (0..).zip(&written.chunks) {
            entries.push((number, *size, address));
            address += u64::from(*size);
        }
        let mut out = Vec::new();
        let mut level = 0u8;
        let mut begin = at;
        loop {
            let nodes = entries.len().div_ceil(ENTRIES_LEN).max(1);
            let mut above = Vec::new();
            for (place, node) in entries.chunks(ENTRIES_LEN).enumerate() {
                let next = entries.get((place + 1) * ENTRIES_LEN);
                let own = begin + place as u64 * self.node();
                let left = if place == 0 {
                    UNDEFINED
                } else {
                    own - self.node()
                };
                let right = if place + 1 == nodes {
                    UNDEFINED
                } else {
                    own + self.node()
                };
                let start = out.len() as u64;
                out.extend_from_slice(b"TREE\x01");
                out.push(level);
                let count = u16::try_from(node.len()).unwrap_or(u16::MAX);
                out.extend_from_slice(&count.to_le_bytes());
                out.extend_from_slice(&left.to_le_bytes());
                out.extend_from_slice(&right.to_le_bytes());
                for (number, size, child) in node {
                    self.put_key(*number, *size, &mut out);
                    out.extend_from_slice(&child.to_le_bytes());
                }
                let (number, size) =
                    next.map_or((self.count(), 0), |(number, size, _)| (*number, *size));
                self.put_key(number, size, &mut out);
                let end = usize::try_from(start + self.node()).unwrap_or(out.len());
                out.resize(end, 0);
                if let Some((number, size, _)) = node.first() {
                    above.push((*number, *size, own));
                }
            }
            if nodes == 1 {
                return Ok(out);
            }
            begin += nodes as u64 * self.node();
            entries = above;
            level += 1;
        }
    }

    /// The key of a chunk; that behind the last one is beyond the first dimension.
    fn put_key(&self, number: u64, size: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        let mut rest = number;
        let mut offsets: Vec<u64> = Vec::new();
        for (axis, (count, side)) in self.counts.iter().zip(&self.sides).enumerate().rev() {
            let place = if axis == 0 { rest } else { rest % count };
            rest /= count;
            offsets.push(place * side);
        }
        for offset in offsets.iter().rev().chain([&0]) {
            out.extend_from_slice(&offset.to_le_bytes());
        }
    }
}

const ENTRIES_LEN: usize = 64;
