//! FlatBuffers, table by table: every offset, count and table is checked where it is followed, and nothing is loaded that
//! is not asked for.
//!
//! A table begins with how far its vtable is before it; the vtable has its own size, that of the table, and where each
//! field is in it, 0 where the field is not there. Strings, vectors and other tables are offsets from where they stand.
//! Everything is little-endian. Alignment is not relied on.

use core::cell::RefCell;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::{Source, read_exactly};
use crate::prelude::*;

/// Blocks that are kept, at most.
const MOST_BLOCKS: usize = 256;
/// Bytes of a block, at most.
const BLOCK: u64 = 16 << 10;
/// Sources that fetch less at once are asked for exactly what is needed.
const LEAST_BLOCK: u64 = 64;

/// The rules of a format under which refusals are reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Something lies past the end of the file.
    pub(crate) truncated: &'static str,
    /// An offset of 0, which leads nowhere.
    pub(crate) offset: &'static str,
    /// A vtable that is none.
    pub(crate) vtable: &'static str,
    /// Text that is not UTF-8.
    pub(crate) utf8: &'static str,
}

/// A file of tables.
pub(crate) struct Buffer<'a> {
    source: &'a dyn Source,
    rules: Rules,
    /// Neighbours of what was read: tables lie side by side, and are read field by field.
    blocks: RefCell<LookupMap<u64, Bytes>>,
}

/// A table whose vtable is known to be in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) at: u64,
    len: u64,
    vtable: u64,
    vtable_len: u64,
}

/// Elements of a vector, which are known to be in the file.
#[derive(Clone, Debug)]
pub(crate) struct Vector {
    pub(crate) range: Range<u64>,
    pub(crate) count: u64,
}

impl<'a> Buffer<'a> {
    pub(crate) fn new(source: &'a dyn Source, rules: Rules) -> Self {
        Self {
            source,
            rules,
            blocks: RefCell::default(),
        }
    }

    /// The table that the file begins with an offset to.
    pub(crate) fn root(&self) -> Result<Table> {
        let at = self.follow(0, "the root")?;
        self.table(at)
    }

    fn table(&self, at: u64) -> Result<Table> {
        let back = i64::from(i32::from_le_bytes(self.array(at, "a table")?));
        let wrong = |message: String| Error::malformed(self.rules.vtable, message).at(at..at + 4);
        let vtable = at.checked_add_signed(-back);
        let vtable = vtable.filter(|vtable| {
            vtable
                .checked_add(4)
                .is_some_and(|end| end <= self.source.len())
        });
        let vtable = vtable.ok_or_else(|| {
            wrong(format!(
                "its vtable is {back} bytes before it, outside the file"
            ))
        })?;
        let vtable_len = u64::from(self.u16(vtable, "the size of a vtable")?);
        let len = u64::from(self.u16(vtable + 2, "the size of a table")?);
        if vtable_len < 4 || vtable_len % 2 != 0 {
            let message = format!("a vtable of {vtable_len} bytes, expected an even number from 4");
            return Err(wrong(message));
        }
        if len < 4 {
            return Err(wrong(format!(
                "a table of {len} bytes, expected at least 4"
            )));
        }
        self.inside(vtable, vtable_len, "a vtable")?;
        self.inside(at, len, "a table")?;
        Ok(Table {
            at,
            len,
            vtable,
            vtable_len,
        })
    }

    /// Where a field of so many bytes is; `None` where it is not there.
    fn field(&self, table: Table, index: u64, width: u64) -> Result<Option<u64>> {
        let entry = 4 + 2 * index;
        if entry + 2 > table.vtable_len {
            return Ok(None);
        }
        let offset = u64::from(self.u16(table.vtable + entry, "a field")?);
        if offset == 0 {
            return Ok(None);
        }
        if offset < 4 || offset + width > table.len {
            let message = format!("a field at byte {offset} of a table of {} bytes", table.len);
            let place = table.vtable + entry;
            return Err(Error::malformed(self.rules.vtable, message).at(place..place + 2));
        }
        Ok(Some(table.at + offset))
    }

    pub(crate) fn number_u8(&self, table: Table, index: u64) -> Result<u8> {
        match self.field(table, index, 1)? {
            Some(at) => self.array::<1>(at, "a field").map(|[byte]| byte),
            None => Ok(0),
        }
    }

    pub(crate) fn number_u32(&self, table: Table, index: u64) -> Result<u32> {
        match self.field(table, index, 4)? {
            Some(at) => self.array(at, "a field").map(u32::from_le_bytes),
            None => Ok(0),
        }
    }

    pub(crate) fn number_u64(&self, table: Table, index: u64) -> Result<u64> {
        match self.field(table, index, 8)? {
            Some(at) => self.array(at, "a field").map(u64::from_le_bytes),
            None => Ok(0),
        }
    }

    /// Another table.
    pub(crate) fn inner(
        &self,
        table: Table,
        index: u64,
        what: &'static str,
    ) -> Result<Option<Table>> {
        match self.field(table, index, 4)? {
            Some(at) => self
                .follow(at, what)
                .and_then(|at| self.table(at))
                .map(Some),
            None => Ok(None),
        }
    }

    /// A vector of elements of so many bytes.
    pub(crate) fn vector(
        &self,
        table: Table,
        index: u64,
        width: u64,
        what: &'static str,
    ) -> Result<Option<Vector>> {
        let Some(field) = self.field(table, index, 4)? else {
            return Ok(None);
        };
        let at = self.follow(field, what)?;
        let count = u64::from(u32::from_le_bytes(self.array(at, what)?));
        let len = count.saturating_mul(width);
        let start = at + 4;
        self.inside(start, len, what)?;
        Ok(Some(Vector {
            range: start..start + len,
            count,
        }))
    }

    /// The tables of a vector, one by one.
    pub(crate) fn tables(
        &self,
        table: Table,
        index: u64,
        what: &'static str,
    ) -> Result<impl ExactSizeIterator<Item = Result<Table>>> {
        let vector = self.vector(table, index, 4, what)?;
        let (start, count) = vector.map_or((0, 0), |vector| (vector.range.start, vector.count));
        // A vector has at most 2^32 entries, each with bytes in the file.
        let count = usize::try_from(count).unwrap_or(0);
        Ok((0..count).map(move |place| {
            let at = self.follow(start + 4 * place as u64, what)?;
            self.table(at)
        }))
    }

    /// Text of at most `limit` bytes, and where it is.
    pub(crate) fn text(
        &self,
        table: Table,
        index: u64,
        limit: u64,
        what: &'static str,
    ) -> Result<Option<(String, Range<u64>)>> {
        let Some(vector) = self.vector(table, index, 1, what)? else {
            return Ok(None);
        };
        if vector.count > limit {
            let message = format!("{what} has {} bytes, the limit is {limit}", vector.count);
            let error = Error::limit("limit", message).at(vector.range);
            return Err(error.raised_by("header_bytes", vector.count));
        }
        let bytes = self.bytes(vector.range.clone())?;
        match core::str::from_utf8(&bytes) {
            Ok(text) => Ok(Some((text.to_owned(), vector.range))),
            Err(cause) => {
                let error = Error::malformed(self.rules.utf8, format!("{what} is not UTF-8"));
                Err(error.at(vector.range).because(cause))
            }
        }
    }

    /// Bytes of the file, which are known to be there.
    pub(crate) fn bytes(&self, range: Range<u64>) -> Result<Bytes> {
        read_exactly(self.source, range)
    }

    fn u16(&self, at: u64, what: &'static str) -> Result<u16> {
        self.array(at, what).map(u16::from_le_bytes)
    }

    /// Where an offset leads.
    fn follow(&self, at: u64, what: &'static str) -> Result<u64> {
        let offset = u32::from_le_bytes(self.array(at, what)?);
        if offset == 0 {
            let message = format!("the offset of {what} is 0, which points nowhere");
            return Err(Error::malformed(self.rules.offset, message).at(at..at + 4));
        }
        let to = at + u64::from(offset);
        self.inside(to, 4, what)?;
        Ok(to)
    }

    fn inside(&self, at: u64, len: u64, what: &'static str) -> Result<()> {
        let file = self.source.len();
        if at.checked_add(len).is_none_or(|end| end > file) {
            let message = format!(
                "{what} has {len} bytes from byte {at} on, the file has {file}: it is truncated or damaged"
            );
            return Err(Error::malformed(self.rules.truncated, message).at(at.min(file)..file));
        }
        Ok(())
    }

    fn array<const N: usize>(&self, at: u64, what: &'static str) -> Result<[u8; N]> {
        let len = N as u64;
        self.inside(at, len, what)?;
        let block = self.source.window().min(BLOCK);
        let exact = || {
            let bytes = read_exactly(self.source, at..at + len)?;
            let bytes = bytes.first_chunk::<N>().copied();
            bytes.ok_or_else(|| Error::malformed(self.rules.truncated, "too few bytes were read"))
        };
        if block < LEAST_BLOCK || self.source.is_memory() {
            return exact();
        }
        let first = at - at % block;
        if at + len > first + block {
            return exact();
        }
        let mut blocks = self.blocks.borrow_mut();
        if !blocks.contains_key(&first) {
            if blocks.len() >= MOST_BLOCKS {
                blocks.clear();
            }
            let end = self.source.len().min(first + block);
            blocks.insert(first, read_exactly(self.source, first..end)?);
        }
        let place = usize::try_from(at - first).unwrap_or(usize::MAX);
        let bytes = blocks.get(&first).and_then(|bytes| bytes.get(place..));
        let bytes = bytes.and_then(|bytes| bytes.first_chunk::<N>()).copied();
        bytes.ok_or_else(|| Error::malformed(self.rules.truncated, "too few bytes were read"))
    }
}
