//! LZ4 blocks, in the two frames that arrays have them in.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::Reader;
use crate::prelude::*;
use crate::transform::as_size;
use crate::transform::codec::Check;

/// No block makes more of a byte.
const MAX_RATIO: u64 = 255;

/// A block that gives exactly as many bytes as there is room for.
pub(super) fn block(stored: &[u8], out: &mut [u8]) -> Result<()> {
    let made = lz4_flex::block::decompress_into(stored, out).map_err(broken)?;
    if made != out.len() {
        return Err(broken(format_args!("it decodes to {made} bytes only")));
    }
    Ok(())
}

/// As numcodecs has it: the length of what comes out, in 32 bits, and one block.
pub(super) fn undo(stored: &[u8], most: u64) -> Result<Vec<u8>> {
    let Some((len, stored)) = stored.split_first_chunk::<4>() else {
        return Err(broken("it ends within its length"));
    };
    let len = u64::from(u32::from_le_bytes(*len));
    let mut out = room(len, most, stored.len() as u64)?;
    block(stored, &mut out)?;
    Ok(out)
}

/// As HDF5's filter 32004 has it, with the highest bytes first: the length of what comes out in 64 bits, that of a block in
/// 32, then blocks after the bytes that each takes. Those that take as many as they give are not compressed.
pub(super) fn undo_blocks(stored: &Bytes, most: u64, check: Check<'_>) -> Result<Vec<u8>> {
    let mut r = Reader::new(stored, "lz4");
    let total = u64::from_be_bytes(r.array("bytes")?);
    let side = u64::from(u32::from_be_bytes(r.array("bytes of a block")?));
    if side == 0 && total > 0 {
        return Err(broken("its blocks have no bytes"));
    }
    let mut out = room(total, most, r.remaining())?;
    for out in out.chunks_mut(as_size(side.max(1))?) {
        check()?;
        let len = u64::from(u32::from_be_bytes(r.array("bytes of a block")?));
        let stored = r.take(len, "a block")?;
        if stored.len() == out.len() {
            out.copy_from_slice(&stored);
        } else {
            block(&stored, out)?;
        }
    }
    match r.remaining() {
        0 => Ok(out),
        left => Err(broken(format_args!("{left} bytes are left after its end"))),
    }
}

/// Memory for what comes out, if that is what may and can.
fn room(len: u64, most: u64, stored: u64) -> Result<Vec<u8>> {
    if len > most {
        return Err(broken(format_args!(
            "it decodes to {len} bytes, not {most}"
        )));
    }
    if len > stored.saturating_mul(MAX_RATIO) {
        return Err(broken(format_args!(
            "{stored} bytes cannot decode to {len}"
        )));
    }
    crate::io::zeros(len)
}

fn broken(what: impl core::fmt::Display) -> Error {
    Error::malformed("lz4", format!("the LZ4 data is damaged: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "abcabcabcabcabcabc": three literals, a copy of ten, five literals.
    const BLOCK: [u8; 12] = [
        0x36, b'a', b'b', b'c', 3, 0, 0x50, b'b', b'c', b'a', b'b', b'c',
    ];

    #[test]
    fn blocks_come_in_two_frames() {
        let expected = b"abcabcabcabcabcabc";
        let little = [&18u32.to_le_bytes()[..], &BLOCK].concat();
        assert_eq!(undo(&little, 18).unwrap(), expected);
        assert!(undo(&little, 17).is_err() && undo(&little[..14], 18).is_err());
        let mut long = little.clone();
        long[0] = 19;
        assert!(undo(&long, 100).is_err());
        let head = [&21u64.to_be_bytes()[..], &18u32.to_be_bytes()].concat();
        let blocks = [
            &12u32.to_be_bytes()[..],
            &BLOCK,
            &3u32.to_be_bytes(),
            b"xyz",
        ]
        .concat();
        let whole = [head, blocks].concat();
        let undone =
            |bytes: &[u8], most| undo_blocks(&Bytes::copy_from_slice(bytes), most, &|| Ok(()));
        assert_eq!(undone(&whole, 21).unwrap(), b"abcabcabcabcabcabcxyz");
        assert!(undone(&whole, 20).is_err());
        for end in 0..whole.len() {
            assert!(undone(&whole[..end], 21).is_err(), "{end}");
        }
    }
}
