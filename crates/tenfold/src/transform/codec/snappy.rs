//! Snappy's blocks: a length, then stretches of bytes and copies of what came before.

use crate::error::{Error, Result};
use crate::prelude::*;

/// The bytes of a block, `most` at most.
pub(crate) fn unpack_snappy(block: &[u8], most: u64) -> Result<Vec<u8>> {
    let mut from = From { rest: block };
    let len = from.varint()?;
    if len > most {
        let message = format!(
            "{} bytes of snappy become {len}, at most {most} are unpacked",
            block.len()
        );
        return Err(Error::limit("limit", message));
    }
    let len = usize::try_from(len).map_err(|_| damaged("a length that does not fit memory"))?;
    let mut out = Vec::new();
    while !from.rest.is_empty() {
        let tag = from.byte()?;
        let kind = tag & 3;
        let high = usize::from(tag >> 2);
        if kind == 0 {
            let count = match high {
                0..60 => high,
                // One to four bytes of the length.
                _ => from.number(high - 59)?,
            };
            let count = count
                .checked_add(1)
                .ok_or_else(|| damaged("a stretch without end"))?;
            let bytes = from.take(count)?;
            check_room(out.len(), count, len)?;
            out.extend_from_slice(bytes);
            continue;
        }
        let (count, distance) = match kind {
            1 => (4 + (high & 7), (high >> 3 << 8) | from.number(1)?),
            2 => (1 + high, from.number(2)?),
            _ => (1 + high, from.number(4)?),
        };
        check_room(out.len(), count, len)?;
        let start = out.len().checked_sub(distance).filter(|_| distance > 0);
        let start = start.ok_or_else(|| damaged("a copy from before the beginning"))?;
        // What is copied may be what is being written.
        for at in start..start + count {
            let byte = out.get(at).copied();
            out.push(byte.ok_or_else(|| damaged("a copy of nothing"))?);
        }
    }
    if out.len() == len {
        return Ok(out);
    }
    Err(damaged(&format!("{} bytes of {len}", out.len())))
}

fn check_room(have: usize, more: usize, len: usize) -> Result<()> {
    match len.checked_sub(have) {
        Some(room) if more <= room => Ok(()),
        _ => Err(damaged(&format!("more than its {len} bytes"))),
    }
}

fn damaged(what: &str) -> Error {
    Error::malformed("snappy", format!("snappy: {what}"))
}

struct From<'b> {
    rest: &'b [u8],
}

impl<'b> From<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8]> {
        let split = self.rest.split_at_checked(count);
        let (taken, rest) = split.ok_or_else(|| damaged("it ends in the middle"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        self.take(1)
            .map(|bytes| bytes.iter().fold(0, |_, byte| *byte))
    }

    /// A little-endian number of up to four bytes.
    fn number(&mut self, count: usize) -> Result<usize> {
        let mut number = [0; 4];
        for (place, byte) in number.iter_mut().zip(self.take(count)?) {
            *place = *byte;
        }
        usize::try_from(u32::from_le_bytes(number))
            .map_err(|_| damaged("a length that does not fit memory"))
    }

    fn varint(&mut self) -> Result<u64> {
        let mut number = 0u64;
        for place in 0..5 {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(damaged("a length of more than 5 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_and_copies_are_put_together() {
        // By the description of the format: "Wikipedia" and two copies, one of which overlaps what it makes.
        let block = b"\x14\x20Wikipedia\x05\x09\x16\x01\x00";
        assert_eq!(unpack_snappy(block, 100).unwrap(), b"WikipediaWikippppppp");
        // A stretch of 61 bytes has its length in a byte of its own.
        let long = [&[61, 60 << 2, 60][..], &[7; 61]].concat();
        assert_eq!(unpack_snappy(&long, 100).unwrap(), [7; 61]);
        assert!(unpack_snappy(&[0], 0).unwrap().is_empty());
    }

    #[test]
    fn damaged_blocks_are_refused() {
        for block in [
            &[][..],
            &[0x80; 6],
            &[1],
            &[1, 4, 1, 2],
            &[3, 0, 1],
            &[4, 0, 1, 1, 0],
            &[5, 0, 1, 1, 9],
            &[2, 0, 1, 0x06, 1, 0],
            &[9, 0xf0],
            &[9, 0xfc, 0xff, 0xff, 0xff, 0xff],
        ] {
            let error = unpack_snappy(block, 100).unwrap_err();
            assert_eq!(error.rule(), "file.snappy", "{block:?}");
        }
        assert_eq!(unpack_snappy(&[101], 100).unwrap_err().rule(), "file.limit");
    }
}
