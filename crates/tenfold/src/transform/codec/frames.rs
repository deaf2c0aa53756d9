//! Frames with a table of them, so that any of them can be decoded by itself.

use bytes::Bytes;

use super::{MAX_RATIO, damaged, decode_frame};
use crate::error::{Error, Result};
use crate::model::Codec;
use crate::prelude::*;
use crate::transform::{Input, as_size};

/// Decoded bytes of a frame with a table entry, at most.
const MAX_FRAME: u64 = 16 << 20;

/// The magic of a skippable frame that holds a table.
pub(super) const TABLE_FRAME: u32 = 0x184d_2a5e;

/// The magic at the very end.
pub(super) const TABLE_END: u32 = 0x8f92_eab1;

/// Bytes around the entries: the skippable frame's head, and count, descriptor and magic at the end.
const TABLE_HEAD: u64 = 8;

const TABLE_FOOT: u64 = 9;

/// The only descriptor beside 0: every entry ends with a checksum.
const HAS_CHECKSUMS: u8 = 0x80;

/// Frames of equal decoded size with a table of them at the end: any of them can be decoded by itself.
pub(in crate::transform) struct Frames<'a> {
    input: Input<'a>,
    /// Where each frame begins among the stored bytes, and where the last one ends.
    starts: Vec<u64>,
    /// The checksum of each frame, if the table has them.
    checksums: Vec<u32>,
    frame_len: u64,
    len: u64,
}

impl<'a> Frames<'a> {
    pub(super) fn new(input: Input<'a>, codec: Codec, len: u64) -> Result<Self> {
        let fail = |message: String| damaged(codec, &input, message);
        let table = Table::read(&input, &fail)?;
        let mut starts = vec![0];
        let mut checksums = Vec::new();
        let mut stored = 0u64;
        let mut decoded = 0u64;
        let mut frame_len = 0;
        for (n, entry) in table.entries().enumerate() {
            let (frame_stored, frame_decoded) =
                (u64::from(le32(entry, 0)), u64::from(le32(entry, 4)));
            if n == 0 {
                frame_len = frame_decoded;
            }
            let last = n as u64 + 1 == table.count;
            let equal = frame_decoded == frame_len || last && frame_decoded <= frame_len;
            let possible =
                frame_stored > 0 && frame_decoded <= frame_stored.saturating_mul(MAX_RATIO);
            if !equal || !possible || frame_decoded > MAX_FRAME {
                let message = format!(
                    "frame {n} of the seek table: {frame_decoded} bytes from {frame_stored}"
                );
                return Err(fail(message));
            }
            stored += frame_stored;
            decoded += frame_decoded;
            starts.push(stored);
            if entry.len() > 8 {
                checksums.push(le32(entry, 8));
            }
        }
        if stored != table.at || decoded != len {
            let message = format!(
                "the seek table covers {stored} of {} stored bytes and gives {decoded} of {len} decoded ones",
                table.at
            );
            return Err(fail(message));
        }
        Ok(Self {
            input,
            starts,
            checksums,
            frame_len,
            len,
        })
    }

    /// Decoded bytes of every frame but the last.
    pub(in crate::transform) fn frame_len(&self) -> u64 {
        self.frame_len
    }

    /// Whole frames.
    pub(in crate::transform) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let first = as_size(at / self.frame_len.max(1))?;
        let frame_len = as_size(self.frame_len.max(1))?;
        for (n, (frame, place)) in self.starts[first..]
            .windows(2)
            .zip(out.chunks_mut(frame_len))
            .enumerate()
        {
            let stored = self.input.read(frame[0], frame[1] - frame[0])?;
            let decoded = decode_frame(&stored, place);
            let checked = decoded.and_then(|()| self.check(first + n, &stored));
            checked.map_err(|error| match self.input.place() {
                Some((source, range)) => {
                    error.at_source(source, range.start + frame[0]..range.start + frame[1])
                }
                None => error,
            })?;
        }
        debug_assert!(at + out.len() as u64 <= self.len);
        Ok(())
    }

    /// Compares the checksum of the table with the frame's own, which decoding has compared with the content.
    fn check(&self, n: usize, stored: &[u8]) -> Result<()> {
        let own = stored.last_chunk().map(|own| u32::from_le_bytes(*own));
        match (self.checksums.get(n), own) {
            (Some(table), Some(own)) if has_checksum(stored) && *table != own => {
                let message = format!(
                    "frame {n} has the checksum {own:08x}, the seek table says {table:08x}"
                );
                Err(Error::malformed("zstd", message))
            }
            _ => Ok(()),
        }
    }
}

/// The seek table of a file.
struct Table {
    /// Where it begins, which is where the frames end.
    at: u64,
    count: u64,
    entry_len: usize,
    bytes: Bytes,
}

impl Table {
    fn read(input: &Input<'_>, fail: &dyn Fn(String) -> Error) -> Result<Self> {
        let total = input.len();
        let foot_at = total
            .checked_sub(TABLE_FOOT)
            .ok_or_else(|| fail("there is no seek table".into()))?;
        let foot = input.read(foot_at, TABLE_FOOT)?;
        if le32(&foot, 5) != TABLE_END {
            return Err(fail(
                "there is no seek table at the end of the compressed data".into(),
            ));
        }
        let count = u64::from(le32(&foot, 0));
        let entry_len = match foot[4] {
            0 => 8,
            HAS_CHECKSUMS => 12,
            other => {
                let message =
                    format!("the seek table's descriptor is {other:#04x}, expected 0 or 0x80");
                return Err(fail(message));
            }
        };
        let len = TABLE_HEAD + count * entry_len + TABLE_FOOT;
        let at = total.checked_sub(len).ok_or_else(|| {
            fail(format!(
                "the seek table says {count} frames, which do not fit"
            ))
        })?;
        let bytes = input.read(at, len)?;
        if le32(&bytes, 0) != TABLE_FRAME || u64::from(le32(&bytes, 4)) != len - TABLE_HEAD {
            return Err(fail(format!(
                "the seek table says {count} frames, and does not begin where it should"
            )));
        }
        let entries = as_size(TABLE_HEAD)?..as_size(len - TABLE_FOOT)?;
        Ok(Self {
            at,
            count,
            entry_len: as_size(entry_len)?,
            bytes: bytes.slice(entries),
        })
    }

    /// Stored and decoded size of each frame, and its checksum where the table has them.
    fn entries(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.entry_len)
    }
}

/// Whether a frame ends with the checksum of its content: a flag after its magic says so.
fn has_checksum(frame: &[u8]) -> bool {
    const FLAG: u8 = 0x04;
    matches!(frame, [0x28, 0xb5, 0x2f, 0xfd, descriptor, ..] if descriptor & FLAG != 0)
}

/// The table that makes frames seekable, from the stored and decoded sizes of each.
pub(crate) fn seek_table(frames: &[(u32, u32)]) -> Vec<u8> {
    let mut table = Vec::new();
    // The number of frames is bounded by a file's length over a frame's, far below 32 bits of table.
    let count = u32::try_from(frames.len()).unwrap_or(u32::MAX);
    table.extend_from_slice(&TABLE_FRAME.to_le_bytes());
    table.extend_from_slice(&(count.saturating_mul(8).saturating_add(9)).to_le_bytes());
    for (stored, decoded) in frames {
        table.extend_from_slice(&stored.to_le_bytes());
        table.extend_from_slice(&decoded.to_le_bytes());
    }
    table.extend_from_slice(&count.to_le_bytes());
    table.push(0);
    table.extend_from_slice(&TABLE_END.to_le_bytes());
    table
}

/// A number of 32 bits; the caller has made sure that the bytes are there.
fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
