//! Arrays of places: of a fixed number of chunks, and of a number that grows along one dimension.

use super::{Entry, no_width};
use crate::error::{Error, Result};
use crate::prelude::*;
use crate::wire::hdf5::block::{Block, Fetch, UNDEFINED};

/// Bytes in front of the content of every block: signature, version, client, address of the header.
const FRONT: u64 = 14;
/// Bytes of a checksum.
const SUM: u64 = 4;

/// What entries look like.
#[derive(Clone, Copy)]
struct Elements {
    /// Bytes of an entry.
    len: u64,
    /// Bytes of the size in it, where there are filters.
    size: Option<u64>,
}

impl Elements {
    fn new(client: u8, len: u8) -> Result<Self> {
        let len = u64::from(len);
        let size = match (client, len) {
            (0, 8) => None,
            (1, 13..=20) => Some(len - 12),
            (0 | 1, _) => return Err(no_width(len)),
            _ => {
                let message = format!("an array of client {client}, 0 and 1 are known");
                return Err(Error::unsupported("hdf5.chunk-index", message));
            }
        };
        Ok(Self { len, size })
    }

    fn get(self, block: &Block, from: u64, place: u64) -> Result<Option<Entry>> {
        let at = place.saturating_mul(self.len).saturating_add(from);
        let entry = block.part(at, self.len, "an entry of an array")?;
        Entry::parse(&entry, self.size).map(Some)
    }

    /// An entry of a page of so many: pages are one after the other, each with a checksum.
    fn in_page(
        self,
        file: &mut dyn Fetch,
        pages: u64,
        place: u64,
        count: u64,
        per_page: u64,
    ) -> Result<Option<Entry>> {
        let page = place / per_page;
        let before = page.checked_mul(per_page * self.len + SUM);
        let address = before.and_then(|before| pages.checked_add(before));
        let address = address.ok_or_else(too_large)?;
        let entries = per_page.min(count - page * per_page);
        let what = "a page of an array";
        let block = file.checked(address, entries * self.len + SUM, None, what)?;
        self.get(&block, 0, place % per_page)
    }
}

fn too_large() -> Error {
    Error::malformed(
        "hdf5.chunk-index",
        "an array of more entries than a file can have",
    )
}

/// Entries of a page.
fn page(bits: u8) -> Result<u64> {
    // More would not fit into a file.
    1u64.checked_shl(bits.into())
        .filter(|_| bits < 40)
        .ok_or_else(too_large)
}

/// Whether a bit is set, the most significant of a byte being the first.
fn has_bit(block: &Block, from: u64, place: u64) -> Result<bool> {
    block.parse(|r| {
        r.skip(from.saturating_add(place / 8), "bits of pages")?;
        let byte = r.u8("bits of pages")?;
        Ok(byte & 0x80 >> (place % 8) != 0)
    })
}

/// Looks up an entry of a fixed array.
pub(super) fn fixed(file: &mut dyn Fetch, address: u64, place: u64) -> Result<Option<Entry>> {
    if address == UNDEFINED {
        return Ok(None);
    }
    let head = file.sealed(address, 28, *b"FAHD", "a fixed array")?;
    let (elements, per_page, count, data) = head.parse(|r| {
        r.skip(5, "version")?;
        let elements = Elements::new(r.u8("client of an array")?, r.u8("size of an entry")?)?;
        let per_page = page(r.u8("bits of a page")?)?;
        Ok((
            elements,
            per_page,
            r.u64("number of entries")?,
            r.u64("address of entries")?,
        ))
    })?;
    if place >= count {
        let message = format!("chunk {place} of an array of {count}");
        return Err(head.wrong("hdf5.chunk-index", message));
    }
    if data == UNDEFINED {
        return Ok(None);
    }
    let what = "the entries of a fixed array";
    if count <= per_page {
        let len = count
            .saturating_mul(elements.len)
            .saturating_add(FRONT + SUM);
        let block = file.sealed(data, len, *b"FADB", what)?;
        return elements.get(&block, FRONT, place);
    }
    let bits = count.div_ceil(per_page).div_ceil(8);
    let front = bits.saturating_add(FRONT + SUM);
    let block = file.sealed(data, front, *b"FADB", what)?;
    if !has_bit(&block, FRONT, place / per_page)? {
        return Ok(None);
    }
    let pages = data.checked_add(front).ok_or_else(too_large)?;
    elements.in_page(file, pages, place, count, per_page)
}

/// What the header of an extensible array says.
struct Extensible {
    elements: Elements,
    /// Bytes of an offset.
    offset: u64,
    /// Entries in the index block, and in the first data blocks.
    direct: u64,
    first: u64,
    /// Addresses of data blocks and of super blocks in the index block.
    blocks: u64,
    supers: u64,
    /// Super blocks whose data blocks the index block has itself.
    inlined: u64,
    per_page: u64,
}

/// Looks up an entry of an extensible array.
pub(super) fn extensible(file: &mut dyn Fetch, address: u64, place: u64) -> Result<Option<Entry>> {
    if address == UNDEFINED {
        return Ok(None);
    }
    let head = file.sealed(address, 72, *b"EAHD", "an extensible array")?;
    let (array, index) = head.parse(|r| {
        r.skip(5, "version")?;
        let elements = Elements::new(r.u8("client of an array")?, r.u8("size of an entry")?)?;
        let bits = r.u8("bits of an index")?;
        let direct = u64::from(r.u8("entries of the index block")?);
        let first = u64::from(r.u8("entries of a data block")?);
        let pointers = u64::from(r.u8("pointers of a super block")?);
        let per_page = page(r.u8("bits of a page")?)?;
        r.skip(48, "statistics")?;
        let index = r.u64("address of the index block")?;
        let is_sound = first.is_power_of_two() && pointers.is_power_of_two() && bits <= 64;
        let supers = (u64::from(bits) + 1).checked_sub(first.max(1).ilog2().into());
        let inlined = 2 * u64::from(pointers.max(1).ilog2());
        let supers = supers.and_then(|supers| supers.checked_sub(inlined));
        let Some(supers) = supers.filter(|_| is_sound) else {
            let message = format!(
                "an extensible array of {bits} bits, blocks of {first} entries and {pointers} pointers"
            );
            return Err(Error::malformed("hdf5.chunk-index", message));
        };
        let array = Extensible {
            elements,
            offset: u64::from(bits).div_ceil(8),
            direct,
            first,
            blocks: 2 * (pointers - 1),
            supers,
            inlined,
            per_page,
        };
        Ok((array, index))
    })?;
    if index == UNDEFINED {
        return Ok(None);
    }
    array.find(file, index, place)
}

impl Extensible {
    fn find(&self, file: &mut dyn Fetch, index: u64, place: u64) -> Result<Option<Entry>> {
        let own = self.direct * self.elements.len;
        let len = FRONT + own + 8 * (self.blocks + self.supers) + SUM;
        let block = file.sealed(index, len, *b"EAIB", "the index block of an array")?;
        let Some(place) = place.checked_sub(self.direct) else {
            return self.elements.get(&block, FRONT, place);
        };
        // Super block n has as many entries as all before it, and as the first data block more.
        let number = (place / self.first).saturating_add(1).ilog2();
        let before = self
            .first
            .checked_mul((1u64 << number) - 1)
            .ok_or_else(too_large)?;
        let entries = 1u64
            .checked_shl(number.div_ceil(2))
            .and_then(|n| n.checked_mul(self.first));
        let entries = entries.ok_or_else(too_large)?;
        let within = place - before;
        let (data, place) = (within / entries, within % entries);
        let number = u64::from(number);
        let is_paged = entries > self.per_page;
        let address = |block: &Block, at: u64| {
            block.parse(|r| {
                r.skip(at, "address of a block")?;
                r.u64("address of a block")
            })
        };
        if number < self.inlined {
            let earlier: u64 = (0..number).map(|n| 1u64 << (n / 2)).sum();
            let at = FRONT + own + 8 * (earlier + data);
            let block = address(&block, at)?;
            return self.in_block(file, block, entries, place);
        }
        let at = FRONT + own + 8 * (self.blocks + number - self.inlined);
        let super_block = address(&block, at)?;
        if super_block == UNDEFINED {
            return Ok(None);
        }
        let bits = if is_paged {
            (entries / self.per_page).div_ceil(8)
        } else {
            0
        };
        let count = 1u64 << (number / 2);
        let front = FRONT + self.offset;
        let all_bits = bits.saturating_mul(count);
        let len = front
            .saturating_add(all_bits)
            .saturating_add(8 * count + SUM);
        let what = "a super block of an array";
        let block = file.sealed(super_block, len, *b"EASB", what)?;
        if is_paged && !has_bit(&block, front + bits * data, place / self.per_page)? {
            return Ok(None);
        }
        let data = address(&block, front + all_bits + 8 * data)?;
        self.in_block(file, data, entries, place)
    }

    /// Looks up an entry of a data block.
    fn in_block(
        &self,
        file: &mut dyn Fetch,
        address: u64,
        entries: u64,
        place: u64,
    ) -> Result<Option<Entry>> {
        if address == UNDEFINED {
            return Ok(None);
        }
        let front = FRONT + self.offset;
        let what = "a data block of an array";
        if entries > self.per_page {
            file.sealed(address, front + SUM, *b"EADB", what)?;
            let pages = address.checked_add(front + SUM).ok_or_else(too_large)?;
            return self
                .elements
                .in_page(file, pages, place, entries, self.per_page);
        }
        let block = file.sealed(
            address,
            front + entries * self.elements.len + SUM,
            *b"EADB",
            what,
        )?;
        self.elements.get(&block, front, place)
    }
}
