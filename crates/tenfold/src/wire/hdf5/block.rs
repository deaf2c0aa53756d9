//! Bytes of a file at an address, each read and checked in one place.

use bytes::Bytes;

use super::checksum::lookup3;
use super::recent::Recent;
use crate::error::{Error, Result};
use crate::io::{Limits, Reader, Source};
use crate::prelude::*;

/// An address that leads nowhere.
pub(super) const UNDEFINED: u64 = u64::MAX;

/// Bytes of a file, and where they are in it.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) bytes: Bytes,
    pub(super) at: u64,
}

impl Block {
    /// Reads fields from the first byte on. Errors get the place that they have in the file.
    pub(super) fn parse<T>(&self, read: impl FnOnce(&mut Reader<'_>) -> Result<T>) -> Result<T> {
        let mut reader = Reader::new(&self.bytes, "hdf5.truncated");
        read(&mut reader).map_err(|error| {
            let range = error.range().map_or(0..self.len(), |(_, range)| range);
            let place = |at: u64| self.at.saturating_add(at);
            error.at(place(range.start)..place(range.end))
        })
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The bytes from `from` on, `len` of them.
    pub(super) fn part(&self, from: u64, len: u64, what: &'static str) -> Result<Self> {
        self.parse(|r| {
            r.skip(from, what)?;
            r.take(len, what)
        })
        .map(|bytes| Self {
            bytes,
            at: self.at + from,
        })
    }

    /// Everything in front of a checksum at the end, which is right.
    pub(super) fn sealed(&self, what: &'static str) -> Result<Self> {
        let Some((data, sum)) = self.bytes.split_last_chunk::<4>() else {
            return Err(self.wrong("hdf5.truncated", format!("{what} has no checksum")));
        };
        let (stored, found) = (u32::from_le_bytes(*sum), lookup3(data));
        if stored != found {
            let message =
                format!("the checksum of {what} is {found:08x}, but {stored:08x} is stored");
            return Err(Error::mismatch("hdf5.checksum", message).at(self.range()));
        }
        Ok(Self {
            bytes: self.bytes.slice(..data.len()),
            at: self.at,
        })
    }

    /// The same of a block that begins with a signature, if one is given.
    pub(super) fn checked(&self, signature: Option<[u8; 4]>, what: &'static str) -> Result<Self> {
        if let Some(signature) = signature {
            self.signed(signature, what)?;
        }
        self.sealed(what)
    }

    /// Refuses a block that does not begin with its signature.
    pub(super) fn signed(&self, signature: [u8; 4], what: &'static str) -> Result<()> {
        if self.bytes.starts_with(&signature) {
            return Ok(());
        }
        let found = self.bytes.get(..4).unwrap_or(&self.bytes);
        let message = format!(
            "{what} begins with \"{}\", not with \"{}\"",
            found.escape_ascii(),
            signature.escape_ascii()
        );
        Err(self.wrong("hdf5.signature", message))
    }

    pub(super) fn range(&self) -> Range<u64> {
        self.at..self.at.saturating_add(self.len())
    }

    /// An error about this block.
    pub(super) fn wrong(&self, rule: &'static str, message: impl Into<String>) -> Error {
        Error::malformed(rule, message).at(self.range())
    }
}

/// Whatever gives the bytes at an address.
pub(super) trait Fetch {
    fn block(&mut self, address: u64, len: u64, what: &'static str) -> Result<Block>;

    /// A block with a checksum after it, without that, and with a signature in front, if one is given.
    fn checked(
        &mut self,
        address: u64,
        len: u64,
        signature: Option<[u8; 4]>,
        what: &'static str,
    ) -> Result<Block> {
        self.block(address, len, what)?.checked(signature, what)
    }

    /// A block with a signature in front and a checksum after it, without the latter.
    fn sealed(
        &mut self,
        address: u64,
        len: u64,
        signature: [u8; 4],
        what: &'static str,
    ) -> Result<Block> {
        self.checked(address, len, Some(signature), what)
    }
}

/// Where the addresses of a file lead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    /// What address 0 is.
    pub(super) base: u64,
    /// The address after the last byte.
    pub(super) end: u64,
}

impl Space {
    /// The bytes at an address.
    pub(super) fn range(&self, address: u64, len: u64, what: &str) -> Result<Range<u64>> {
        if address == UNDEFINED {
            let message = format!("{what} has no address");
            return Err(Error::malformed("hdf5.address", message));
        }
        match address.checked_add(len) {
            Some(end) if end <= self.end => Ok(self.base + address..self.base + end),
            _ => {
                let message = format!(
                    "{what} at address {address} needs {len} bytes, the file ends at {}",
                    self.end
                );
                let at = self.base.saturating_add(address.min(self.end));
                Err(Error::malformed("hdf5.address", message).at(at..at))
            }
        }
    }
}

/// A file while it is described.
pub(super) struct File<'a> {
    pub(super) space: Space,
    /// What the indexes of its datasets share.
    pub(super) recent: Arc<Recent>,
    window: u64,
    /// Stretches of the file that were fetched together, each for the places that it is chosen by.
    windows: Vec<Reader<'a>>,
    /// Bytes of structures that were looked at, and how many may be.
    parsed: u64,
    most: u64,
    /// Bytes that were made of them.
    made: u64,
}

/// How many stretches of a file are kept.
const WINDOWS: usize = 16;
/// A structure that is looked at once takes its own bytes; files may have some that several others share.
const MOST_PARSED: u64 = 16;
/// Bytes of names and values that one byte of a file may become.
const MOST_MADE: u64 = 4;
/// Small files are not counted so closely.
const FREE_MADE: u64 = 256 << 10;
const FREE_PARSED: u64 = 64 << 20;

impl<'a> File<'a> {
    pub(super) fn new(source: &'a dyn Source, space: Space, limits: &Limits) -> Self {
        let range = space.base..space.base.saturating_add(space.end);
        let reader = Reader::over(source, range, "hdf5.truncated");
        Self {
            space,
            recent: Arc::default(),
            window: source.window().max(1),
            windows: vec![reader; WINDOWS],
            parsed: 0,
            most: limits.header_bytes,
            made: 0,
        }
    }

    /// Counts what names and values take in memory: a small file must not become a large one. What is made once for every
    /// object is not counted, because each object is met once.
    pub(super) fn make(&mut self, bytes: usize) -> Result<()> {
        self.made = self.made.saturating_add(bytes as u64);
        let earned = self.parsed.min(self.space.end);
        if self.made > earned.saturating_mul(MOST_MADE).saturating_add(FREE_MADE) {
            let message = "names and attributes take many times the bytes they are stored in: structures are \
            used over and over";
            return Err(Error::limit("hdf5.shared", message));
        }
        Ok(())
    }
}

impl Fetch for File<'_> {
    fn block(&mut self, address: u64, len: u64, what: &'static str) -> Result<Block> {
        let range = self.space.range(address, len, what)?;
        self.parsed = self.parsed.saturating_add(len);
        if self.parsed > self.most {
            let message = format!(
                "the structures of the file have more than {} bytes, which is the limit for headers",
                self.most
            );
            let error = Error::limit("hdf5.limit", message).at(range);
            return Err(error.raised_by("header_bytes", None));
        }
        if self.parsed
            > self
                .space
                .end
                .saturating_mul(MOST_PARSED)
                .saturating_add(FREE_PARSED)
        {
            let message = "structures of the file overlap, or are used over and over";
            return Err(Error::limit("hdf5.shared", message).at(range));
        }
        let place = usize::try_from(range.start / self.window).unwrap_or(0) % WINDOWS;
        let reader = self.windows.get_mut(place);
        let reader = reader.ok_or_else(|| Error::argument("a window that is not there"))?;
        reader.go_to(range.start);
        Ok(Block {
            bytes: reader.take(len, what)?,
            at: range.start,
        })
    }
}
