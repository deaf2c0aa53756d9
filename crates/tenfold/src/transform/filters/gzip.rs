//! Gzip: deflated members, one after the other.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::Reader;
use crate::prelude::*;
use crate::transform::as_size;
use crate::transform::codec::gzip::{broken, head};
use crate::transform::codec::{Check, inflate_raw};

/// The bytes of all members, of which there may be `most`.
pub(super) fn undo(stored: &Bytes, most: u64, check: Check<'_>) -> Result<Vec<u8>> {
    let mut out: Vec<u8> = Vec::new();
    let mut r = Reader::new(stored, "gzip");
    loop {
        head(&mut r)?;
        let left = most.saturating_sub(out.len() as u64);
        let rest = stored.get(as_size(r.pos())?..).unwrap_or_default();
        let (bytes, used) = inflate_raw(rest, left, check)?;
        r.skip(used as u64, "deflated data")?;
        let (sum, len) = (r.u32("CRC-32")?, r.u32("length")?);
        let found = crc32fast::hash(&bytes);
        if sum != found {
            let message =
                format!("the CRC-32 of a gzip member is {found:08x}, but {sum:08x} is stored");
            return Err(Error::mismatch("checksum", message));
        }
        // The length counts modulo 2^32.
        if u64::from(len) != bytes.len() as u64 & u64::from(u32::MAX) {
            let message = format!("a member decodes to {} bytes, but says {len}", bytes.len());
            return Err(broken(message));
        }
        if out.is_empty() {
            out = bytes;
        } else {
            out.extend_from_slice(&bytes);
        }
        if r.remaining() == 0 {
            return Ok(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::codec::gzip::NAME;

    #[test]
    fn members_follow_each_other_and_have_their_checksums() {
        // `printf abc | gzip -n`, and the same with the name of a file.
        let plain = [
            0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x4c, 0x4a, 0x06, 0, 0xc2, 0x41, 0x24, 0x35,
            3, 0, 0, 0,
        ];
        let mut named = plain.to_vec();
        named[3] = NAME;
        named.splice(10..10, *b"x\0");
        let both: Bytes = [&plain[..], &named].concat().into();
        let undone = |bytes: &Bytes, most| undo(bytes, most, &|| Ok(()));
        assert_eq!(undone(&both, 6).unwrap(), b"abcabc");
        assert!(undone(&both, 5).is_err());
        for end in (0..both.len()).filter(|end| *end != plain.len()) {
            assert!(undone(&both.slice(..end), 6).is_err(), "{end}");
        }
        let mut damaged = plain.to_vec();
        damaged[16] ^= 1;
        let error = undone(&damaged.into(), 6).unwrap_err();
        assert_eq!(error.rule(), "file.checksum");
    }
}
