//! `BloscLZ`: literals and copies of what came before.

use crate::error::{Error, Result};

/// Control bytes below this are followed by literals.
const LITERALS: u8 = 32;
/// A copy of so many bytes has more of its length in further bytes.
const LONG: usize = 7;
/// A copy from further away has its distance in two more bytes.
const FAR: usize = 8192;

/// Exactly as many bytes as there is room for.
pub(super) fn undo(stored: &[u8], out: &mut [u8]) -> Result<()> {
    let mut from = stored.iter();
    let mut next = || from.next().copied();
    let ended = || broken("it ends in the middle");
    let mut made = 0;
    // The first control byte begins with literals always.
    let mut control = next().ok_or_else(ended)? & (LITERALS - 1);
    loop {
        if control < LITERALS {
            let count = usize::from(control) + 1;
            let room = out.get_mut(made..made + count).ok_or_else(too_long)?;
            for place in room {
                *place = next().ok_or_else(ended)?;
            }
            made += count;
        } else {
            let mut len = usize::from(control >> 5);
            if len == LONG {
                loop {
                    let more = next().ok_or_else(ended)?;
                    len += usize::from(more);
                    if more < u8::MAX {
                        break;
                    }
                }
            }
            len += 2;
            let low = next().ok_or_else(ended)?;
            let distance = if control & 31 == 31 && low == u8::MAX {
                let [high, low] = [next().ok_or_else(ended)?, next().ok_or_else(ended)?];
                usize::from(u16::from_be_bytes([high, low])) + FAR
            } else {
                (usize::from(control & 31) << 8 | usize::from(low)) + 1
            };
            copy(out, made, distance, len)?;
            made += len;
        }
        match next() {
            Some(byte) => control = byte,
            None if made == out.len() => return Ok(()),
            None => return Err(broken(format_args!("it decodes to {made} bytes only"))),
        }
    }
}

/// Copies what was made before, which may be made by the copy itself.
pub(super) fn copy(out: &mut [u8], made: usize, distance: usize, len: usize) -> Result<()> {
    let from = made.checked_sub(distance).filter(|_| distance > 0);
    let from = from.ok_or_else(|| broken("it copies from before its beginning"))?;
    let end = made.checked_add(len).filter(|end| *end <= out.len());
    end.ok_or_else(too_long)?;
    if distance >= len {
        out.copy_within(from..from + len, made);
    } else {
        for n in 0..len {
            out[made + n] = out[from + n];
        }
    }
    Ok(())
}

fn too_long() -> Error {
    broken("it decodes to more bytes than it should")
}

fn broken(what: impl core::fmt::Display) -> Error {
    super::broken(format_args!("a compressed stream: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies_are_put_together() {
        // "abc", 4 bytes from 3 before, 9 + 1 bytes from 1 before, with a length of its own.
        let stored = [2, b'a', b'b', b'c', 2 << 5, 2, 7 << 5, 1, 0];
        let mut out = [0; 17];
        undo(&stored, &mut out).unwrap();
        assert_eq!(&out, b"abcabcaaaaaaaaaaa");
        for (stored, len) in [
            (&stored[..], 16),
            (&stored[..], 18),
            (&stored[..8], 17),
            (&[][..], 1),
            (&[0, 1, 1 << 5, 9], 4),
        ] {
            assert!(
                undo(stored, &mut crate::prelude::vec![0; len]).is_err(),
                "{stored:?}"
            );
        }
    }
}
