//! The superblock: what a file begins with.

use super::block::{Block, Fetch as _, File};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Source, read_ranges_exactly};
use crate::prelude::*;

/// How every file begins, after what may be in front of it.
pub(crate) const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
/// How far in front of a file something else may reach.
const FARTHEST: u64 = 1 << 20;
/// Where it is looked for, if not at the beginning.
const FIRST: u64 = 512;

/// Where a file begins in `range` of a source: at its start, or at a power of two from 512 on.
pub(crate) fn find(source: &dyn Source, range: &Range<u64>) -> Result<Option<u64>> {
    let len = SIGNATURE.len() as u64;
    let end = range.end.min(source.len());
    let offsets = core::iter::successors(Some(FIRST), |offset| offset.checked_mul(2));
    let offsets = offsets.take_while(|&offset| offset <= FARTHEST);
    let places = offsets.map(|offset| range.start.saturating_add(offset));
    let places = places.map(|at| at..at.saturating_add(len));
    let places: Vec<Range<u64>> = places.take_while(|place| place.end <= end).collect();
    let first = range.start..range.start.saturating_add(len);
    if first.end > end {
        return Ok(None);
    }
    // Almost always there: the others are not fetched before.
    if source.read(first)? == SIGNATURE[..] {
        return Ok(Some(range.start));
    }
    let found = read_ranges_exactly(source, &places)?;
    let mut found = places.iter().zip(found);
    let found = found.find(|(_, bytes)| *bytes == SIGNATURE[..]);
    Ok(found.map(|(place, _)| place.start))
}

/// What it says.
pub(super) struct Superblock {
    pub(super) version: u8,
    /// The address of the root group's header.
    pub(super) root: u64,
    /// The address after the last byte.
    pub(super) end: u64,
}

impl Superblock {
    /// Reads the superblock of a file that begins at `at` and can have bytes up to `limit`.
    pub(super) fn read(file: &mut File<'_>, at: u64, limit: u64) -> Result<Self> {
        let available = file.space.end;
        let cut_off = |error: Error| {
            if error.kind() == ErrorKind::Limit {
                return error;
            }
            let message = "the file ends within its superblock: it is truncated";
            Error::malformed("hdf5.truncated", message)
                .at(at..limit)
                .because(error)
        };
        let version = file.block(0, 9, "the superblock").map_err(cut_off)?;
        let version = version.parse(|r| {
            r.skip(8, "signature")?;
            r.u8("the superblock's version")
        })?;
        let len = match version {
            0 => 96,
            1 => 100,
            2 | 3 => 48,
            _ => {
                let message = format!("superblock of version {version}, 0 to 3 are known");
                return Err(Error::unsupported("hdf5.version", message).at(at + 8..at + 9));
            }
        };
        let block = file.block(0, len, "the superblock").map_err(cut_off)?;
        let superblock = if version < 2 {
            block.parse(|r| {
                r.skip(13, "versions")?;
                check_sizes(r.u8("size of offsets")?, r.u8("size of lengths")?)?;
                r.skip(if version == 0 { 9 } else { 13 }, "sizes of groups")?;
                let base = r.u64("base address")?;
                let _free = r.u64("free space")?;
                // Counted from the beginning of whatever is in front of the file.
                let end = r.u64("end of file")?.saturating_sub(base);
                let _driver = r.u64("driver block")?;
                let _name = r.u64("name of the root")?;
                let root = r.u64("address of the root")?;
                Ok(Self { version, root, end })
            })?
        } else {
            let sealed = block.sealed("the superblock")?;
            sealed.parse(|r| {
                r.skip(9, "version")?;
                check_sizes(r.u8("size of offsets")?, r.u8("size of lengths")?)?;
                let _flags = r.u8("flags")?;
                let base = r.u64("base address")?;
                let _extension = r.u64("extension")?;
                // Counted from the beginning of whatever is in front of the file.
                let end = r.u64("end of file")?.saturating_sub(base);
                let root = r.u64("address of the root")?;
                Ok(Self { version, root, end })
            })?
        };
        superblock.check_end(&block, available)?;
        Ok(superblock)
    }

    fn check_end(&self, block: &Block, len: u64) -> Result<()> {
        if self.end <= len {
            return Ok(());
        }
        let message = format!(
            "the file should have {} bytes and has {len}: it is truncated",
            self.end
        );
        Err(block.wrong("hdf5.truncated", message))
    }
}

fn check_sizes(offsets: u8, lengths: u8) -> Result<()> {
    if (offsets, lengths) == (8, 8) {
        return Ok(());
    }
    let message =
        format!("addresses of {offsets} and lengths of {lengths} bytes, 8 and 8 are read");
    Err(Error::unsupported("hdf5.version", message))
}
