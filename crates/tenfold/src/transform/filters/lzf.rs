//! LZF: literals and copies of what came before, as h5py's filter has it.

use crate::error::{Error, Result};
use crate::prelude::*;

/// Control bytes below this are followed by literals.
const LITERALS: u8 = 32;
/// A copy of so many bytes has its length in another byte.
const LONG: usize = 7;

/// At most `most` bytes.
pub(super) fn undo(bytes: &[u8], most: usize) -> Result<Vec<u8>> {
    // A copy of 264 bytes takes 3: nothing else makes as much of as little.
    let mut out = Vec::with_capacity(most.min(bytes.len().saturating_mul(88)));
    let mut rest = bytes.iter();
    let mut next = || {
        rest.next()
            .copied()
            .ok_or_else(|| broken("it ends in the middle"))
    };
    let mut taken = 0;
    while taken < bytes.len() {
        let control = next()?;
        taken += 1;
        if control < LITERALS {
            let count = usize::from(control) + 1;
            check_room(out.len(), count, most)?;
            for _ in 0..count {
                out.push(next()?);
            }
            taken += count;
            continue;
        }
        let mut len = usize::from(control >> 5);
        if len == LONG {
            len += usize::from(next()?);
            taken += 1;
        }
        len += 2;
        let distance = (usize::from(control & 31) << 8 | usize::from(next()?)) + 1;
        taken += 1;
        check_room(out.len(), len, most)?;
        let from = out.len().checked_sub(distance);
        let from = from.ok_or_else(|| broken("it copies from before its beginning"))?;
        // What is copied may be made by the copy itself.
        for at in from..from + len {
            let byte = out[at];
            out.push(byte);
        }
    }
    Ok(out)
}

fn check_room(len: usize, more: usize, most: usize) -> Result<()> {
    if len + more > most {
        return Err(broken(format_args!("it decodes to more than {most} bytes")));
    }
    Ok(())
}

fn broken(what: impl core::fmt::Display) -> Error {
    Error::malformed("lzf", format!("LZF data is damaged: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies_are_put_together() {
        // "abc", then 4 bytes from 3 before, then 9 + 3 bytes from 1 before.
        let packed = [2, b'a', b'b', b'c', 2 << 5, 2, 7 << 5, 3, 0];
        assert_eq!(undo(&packed, 100).unwrap(), b"abcabcaaaaaaaaaaaaa");
    }

    #[test]
    fn damaged_data_is_refused() {
        for (packed, most) in [
            (&[5, 1, 2][..], 100),
            (&[1 << 5, 0], 100),
            (&[0, 1, 7 << 5], 100),
            (&[0, 1, 7 << 5, 255, 0], 100),
        ] {
            assert_eq!(undo(packed, most).unwrap_err().rule(), "file.lzf");
        }
    }
}
