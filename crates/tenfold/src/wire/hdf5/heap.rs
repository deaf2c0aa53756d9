//! Heaps: where names, links, attributes and texts are that have no place of their own.

use super::block::{Block, Fetch as _, File};
use super::checksum::lookup3;
use super::header::number;
use super::tree2::Tree;
use crate::error::{Error, Result};
use crate::prelude::*;

/// The names of a group's entries, in old groups.
pub(super) struct LocalHeap(Block);

impl LocalHeap {
    pub(super) fn read(file: &mut File<'_>, address: u64) -> Result<Self> {
        let head = file.block(address, 32, "a local heap")?;
        head.signed(*b"HEAP", "a local heap")?;
        let (size, data) = head.parse(|r| {
            r.skip(8, "version")?;
            let size = r.u64("size of a heap")?;
            r.skip(8, "free list")?;
            Ok((size, r.u64("address of a heap")?))
        })?;
        file.block(data, size, "the data of a local heap").map(Self)
    }

    /// The text at an offset, which ends with a zero byte.
    pub(super) fn text(&self, offset: u64) -> Result<&[u8]> {
        let from = usize::try_from(offset).ok();
        let rest = from.and_then(|from| self.0.bytes.get(from..));
        let text = rest.and_then(|rest| {
            rest.split(|byte| *byte == 0)
                .next()
                .filter(|text| text.len() < rest.len())
        });
        text.ok_or_else(|| {
            let message = format!(
                "a name at byte {offset} of a heap of {} bytes, or without an end",
                self.0.len()
            );
            self.0.wrong("hdf5.heap", message)
        })
    }
}

/// Links and attributes of objects that have many of them.
pub(super) struct FractalHeap {
    head: Block,
    /// Bytes of an offset and of a length.
    offset_len: u64,
    length_len: u64,
    width: u64,
    start: u64,
    most_direct: u64,
    root: u64,
    rows: u16,
    /// Whether blocks have a checksum.
    is_sealed: bool,
    /// The B-tree of objects that are too large for blocks.
    huge: u64,
    /// The block of addresses that was read last: its address, and the addresses.
    table: Option<(u64, Block)>,
    /// The blocks of objects that were read: these are met in the order of hashes, which is none.
    blocks: LookupMap<u64, Block>,
}

/// How many bytes numbers up to this one take.
fn bytes_for(most: u64) -> u64 {
    u64::from(most.max(1).ilog2()) / 8 + 1
}

impl FractalHeap {
    pub(super) fn read(file: &mut File<'_>, address: u64) -> Result<Self> {
        let head = file.sealed(address, 146, *b"FRHP", "a fractal heap")?;
        head.parse(|r| {
            r.skip(4, "signature")?;
            if r.u8("version of a heap")? != 0 {
                return Err(Error::unsupported("hdf5.heap", "a fractal heap of a version that is not known"));
            }
            r.skip(2, "length of an id")?;
            if r.u16("length of filters")? != 0 {
                return Err(Error::unsupported("hdf5.heap", "a fractal heap with filters, which is not read"));
            }
            let is_sealed = r.u8("flags")? & 2 != 0;
            let most_managed = r.u32("greatest managed object")?;
            r.skip(8, "next huge object")?;
            let huge = r.u64("address of huge objects")?;
            r.skip(80, "statistics")?;
            let width = r.u16("width of a heap")?;
            let start = r.u64("size of the first block")?;
            let most_direct = r.u64("greatest direct block")?;
            let bits = r.u16("bits of an offset")?;
            r.skip(2, "first rows")?;
            let root = r.u64("address of a root block")?;
            let rows = r.u16("rows of a heap")?;
            let is_sound = width > 0
                && start.is_power_of_two()
                && most_direct.is_power_of_two()
                && start <= most_direct
                && (1..=64).contains(&bits)
                && u64::from(width).saturating_mul(most_direct) < 1 << 56;
            if !is_sound {
                let message = format!(
                    "a fractal heap with {width} blocks of {start} to {most_direct} bytes and offsets of {bits} bits"
                );
                return Err(Error::malformed("hdf5.heap", message));
            }
            Ok(Self {
                head: head.clone(),
                offset_len: u64::from(bits).div_ceil(8),
                length_len: bytes_for(most_direct).min(bytes_for(most_managed.into())),
                width: width.into(),
                start,
                most_direct,
                root,
                rows,
                is_sealed,
                huge,
                table: None,
                blocks: LookupMap::new(),
            })
        })
    }

    /// The object of an id.
    pub(super) fn object(&mut self, file: &mut File<'_>, id: &Block) -> Result<Block> {
        let first = id.parse(|r| r.u8("id of an object"))?;
        if first >> 6 != 0 {
            return Err(id.wrong("hdf5.heap", format!("an id of version {}", first >> 6)));
        }
        match first >> 4 & 3 {
            0 => {}
            1 => return self.huge(file, id),
            2 => return id.part(1, u64::from(first & 15) + 1, "an object of a heap"),
            kind => return Err(id.wrong("hdf5.heap", format!("an object of kind {kind}"))),
        }
        let (offset, len) = id.parse(|r| {
            r.skip(1, "kind")?;
            let offset = number(r, self.offset_len, "offset of an object")?;
            Ok((offset, number(r, self.length_len, "length of an object")?))
        })?;
        let (block, begin, size) = self.direct(file, offset)?;
        let within = offset - begin;
        if within.checked_add(len).is_none_or(|end| end > size) {
            let message = format!("{len} bytes at {within} of a block of {size}");
            return Err(id.wrong("hdf5.heap", message));
        }
        self.block(file, block, size)?
            .part(within, len, "an object of a heap")
    }

    /// A block of objects, whose checksum is right where it has one.
    fn block(&mut self, file: &mut File<'_>, address: u64, size: u64) -> Result<Block> {
        const WHAT: &str = "a block of a heap";
        if let Some(block) = self.blocks.get(&address) {
            return Ok(block.clone());
        }
        let block = file.block(address, size, WHAT)?;
        block.signed(*b"FHDB", WHAT)?;
        if self.is_sealed {
            // It is computed with a 0 in its place: after the signature, a version, an address and an offset.
            let at = 13 + self.offset_len;
            let sum = block.part(at, 4, WHAT)?;
            let stored = sum.parse(|r| r.u32("checksum"))?;
            let mut bytes = block.bytes.to_vec();
            let place = usize::try_from(at).ok();
            let place = place.and_then(|at| bytes.get_mut(at..at.checked_add(4)?));
            place.into_iter().for_each(|sum| sum.fill(0));
            let found = lookup3(&bytes);
            if found != stored {
                let message =
                    format!("the checksum of {WHAT} is {found:08x}, but {stored:08x} is stored");
                return Err(Error::mismatch("hdf5.checksum", message).at(block.range()));
            }
        }
        self.blocks.insert(address, block.clone());
        Ok(block)
    }

    /// An object that is too large for a block: its id is a number that a B-tree finds.
    fn huge(&self, file: &mut File<'_>, id: &Block) -> Result<Block> {
        let wanted = id.parse(|r| {
            r.skip(1, "kind")?;
            let len = r.remaining().min(8);
            number(r, len, "number of an object")
        })?;
        let tree = Tree::read(file, self.huge)?;
        let found = tree.find(file, &|record| {
            record.parse(|r| {
                r.skip(16, "place of an object")?;
                Ok(wanted.cmp(&r.u64("number of an object")?))
            })
        })?;
        let record = found
            .ok_or_else(|| id.wrong("hdf5.heap", format!("there is no huge object {wanted}")))?;
        let (address, len) = record.parse(|r| {
            Ok((
                r.u64("address of an object")?,
                r.u64("length of an object")?,
            ))
        })?;
        file.block(address, len, "an object of a heap")
    }

    /// The block that an offset is in: its address, where it begins, and its size.
    fn direct(&mut self, file: &mut File<'_>, offset: u64) -> Result<(u64, u64, u64)> {
        if self.rows == 0 {
            return Ok((self.root, 0, self.start));
        }
        let (mut address, mut rows, mut begin) = (self.root, u64::from(self.rows), 0u64);
        let head = self.head.clone();
        let outside = || head.wrong("hdf5.heap", format!("no block has offset {offset}"));
        loop {
            // The row that has it, and where that begins.
            let (mut row, mut at, mut size) = (0, begin, self.start);
            loop {
                if row >= rows {
                    return Err(outside());
                }
                let end = at.checked_add(size * self.width).ok_or_else(outside)?;
                if offset < end {
                    break;
                }
                at = end;
                row += 1;
                if row > 1 {
                    size = size
                        .checked_mul(2)
                        .filter(|size| *size < 1 << 50)
                        .ok_or_else(outside)?;
                }
            }
            let column = (offset - at) / size;
            let child = self.child(file, address, rows, row * self.width + column)?;
            begin = at + column * size;
            if size <= self.most_direct {
                return Ok((child, begin, size));
            }
            let first_row = self.start * self.width;
            // Smaller than this one, because its size is that of a single one of its blocks.
            let log = |size: u64| u64::from(size.max(1).ilog2());
            rows = (log(size) + 1)
                .checked_sub(log(first_row))
                .ok_or_else(outside)?;
            address = child;
        }
    }

    /// An address of a block of addresses.
    fn child(&mut self, file: &mut File<'_>, address: u64, rows: u64, place: u64) -> Result<u64> {
        let what = "a block of addresses";
        let front = 13 + self.offset_len;
        let table = match &self.table {
            Some((known, table)) if *known == address => table.clone(),
            _ => {
                let len = rows.saturating_mul(self.width).saturating_mul(8);
                let table = file.sealed(address, len.saturating_add(front + 4), *b"FHIB", what)?;
                self.table = Some((address, table.clone()));
                table
            }
        };
        table.parse(|r| {
            r.skip(front.saturating_add(place.saturating_mul(8)), what)?;
            r.u64("address of a block")
        })
    }
}

/// An object of a collection that texts of any length are in.
pub(super) fn global(collection: &Block, index: u32) -> Result<Block> {
    let mut at = 16;
    loop {
        let (number, size) = collection.parse(|r| {
            r.skip(at, "an object of a collection")?;
            let number = r.u16("index of an object")?;
            r.skip(6, "references")?;
            Ok((number, r.u64("size of an object")?))
        })?;
        if number == 0 {
            let message = format!("a collection has no object {index}");
            return Err(collection.wrong("hdf5.heap", message));
        }
        if u32::from(number) == index {
            return collection.part(at + 16, size, "an object of a collection");
        }
        let padded = size.checked_next_multiple_of(8).unwrap_or(u64::MAX);
        at = at.saturating_add(16).saturating_add(padded);
    }
}

/// A collection that texts of any length are in.
pub(super) fn collection(file: &mut File<'_>, address: u64) -> Result<Block> {
    let head = file.block(address, 16, "a collection of objects")?;
    head.signed(*b"GCOL", "a collection of objects")?;
    let size = head.parse(|r| {
        r.skip(8, "version")?;
        r.u64("size of a collection")
    })?;
    file.block(address, size, "a collection of objects")
}
