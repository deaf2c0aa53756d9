//! Snappy, one block: the length of what comes out, then literals and copies of what came before.

use super::blosclz::copy;
use super::broken;
use crate::error::{Error, Result};

/// Exactly as many bytes as there is room for.
pub(super) fn undo(stored: &[u8], out: &mut [u8]) -> Result<()> {
    let mut from = stored;
    let ended = || broken("a Snappy stream ends in the middle");
    let number = |from: &mut &[u8], bytes: usize| -> Result<usize> {
        let (number, rest) = from.split_at_checked(bytes).ok_or_else(ended)?;
        *from = rest;
        Ok((number.iter().rev()).fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    let (mut len, mut shift) = (0u64, 0);
    loop {
        let byte = number(&mut from, 1)? as u64;
        len |= (byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            break;
        }
        if shift > 28 {
            return Err(broken("the length of a Snappy stream"));
        }
    }
    if len != out.len() as u64 {
        let message = format_args!("a Snappy stream of {len} bytes, not {}", out.len());
        return Err(broken(message));
    }
    let mut made = 0;
    while !from.is_empty() {
        let tag = number(&mut from, 1)?;
        let high = tag >> 2;
        let (len, distance) = match tag & 3 {
            0 => {
                let len = match high {
                    0..60 => high + 1,
                    // At most four bytes.
                    more => number(&mut from, more - 59)?
                        .checked_add(1)
                        .ok_or_else(too_long)?,
                };
                let (literal, rest) = from.split_at_checked(len).ok_or_else(ended)?;
                let room = out.get_mut(made..).and_then(|room| room.get_mut(..len));
                room.ok_or_else(too_long)?.copy_from_slice(literal);
                from = rest;
                made += len;
                continue;
            }
            1 => ((high & 7) + 4, (high >> 3) << 8 | number(&mut from, 1)?),
            2 => (high + 1, number(&mut from, 2)?),
            _ => (high + 1, number(&mut from, 4)?),
        };
        copy(out, made, distance, len)?;
        made += len;
    }
    if made < out.len() {
        let message = format_args!("a Snappy stream gives {made} bytes only");
        return Err(broken(message));
    }
    Ok(())
}

fn too_long() -> Error {
    broken("a Snappy stream gives more bytes than it should")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies_are_put_together() {
        // "abc", 4 bytes from 3 before, 3 from 1 before in 2 bytes and in 4.
        let stored = [
            13,
            2 << 2,
            b'a',
            b'b',
            b'c',
            1,
            3,
            2 << 2 | 2,
            1,
            0,
            2 << 2 | 3,
            1,
            0,
            0,
            0,
        ];
        let mut out = [0; 13];
        undo(&stored, &mut out).unwrap();
        assert_eq!(&out, b"abcabcaaaaaaa");
        for end in 0..stored.len() {
            assert!(undo(&stored[..end], &mut out).is_err(), "{end}");
        }
        assert!(undo(&stored, &mut [0; 12]).is_err());
        assert!(undo(&[1, 63 << 2, 255, 255, 255, 255, 0], &mut [0]).is_err());
    }
}
