//! Tar archives, known by the checksum of their first header: the oldest have no other mark.

use crate::error::{Error, Result};
use crate::io::Source;
use crate::prelude::*;

/// Headers and what fills up the last one of a member's data.
pub(super) const BLOCK: u64 = 512;

/// A member of an archive.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) data: Range<u64>,
    /// Where readers look for the next header.
    pub(super) next: u64,
    /// Why readers see other data.
    pub(super) odd: Option<&'static str>,
}

/// Whether some bytes begin with the header of a member.
pub(super) fn is_header(head: &[u8]) -> bool {
    const CHECKSUM: Range<usize> = 148..156;
    let Some(block) = head.get(..512) else {
        return false;
    };
    let Some(said) = block.get(CHECKSUM).and_then(number) else {
        return false;
    };
    let counted = || {
        let bytes = block.iter().enumerate();
        bytes.map(
            |(at, byte)| {
                if CHECKSUM.contains(&at) { b' ' } else { *byte }
            },
        )
    };
    let unsigned: u64 = counted().map(u64::from).sum();
    // Some systems added up signed characters.
    let signed: i64 = counted().map(|byte| i64::from(byte.cast_signed())).sum();
    said == unsigned || i64::try_from(said) == Ok(signed)
}

/// The member whose header is at a place or behind the zeros there, as Python's `tarfile` goes through them; `None` at the
/// end of the archive.
pub(super) fn member(source: &dyn Source, mut at: u64) -> Result<Option<Member>> {
    let header = loop {
        let Some(end) = at.checked_add(BLOCK).filter(|end| *end <= source.len()) else {
            return Ok(None);
        };
        let header = source.read(at..end)?;
        at = end;
        if header.iter().any(|byte| *byte != 0) {
            break header;
        }
    };
    let wrong = |message: &str| Err(Error::malformed("scan.tar", message).at(at - BLOCK..at));
    if !is_header(&header) {
        return wrong("no header of a tar archive where one should begin");
    }
    let Some(size) = header.get(124..136).and_then(number) else {
        return wrong("a member of a tar archive whose size is no number");
    };
    let kind = header.get(156).copied().unwrap_or_default();
    let name = header.get(..100).unwrap_or_default();
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    let is_folder = kind == b'5' || kind == 0 && name.ends_with('/');
    let has_data = !is_folder && !matches!(kind, b'1'..=b'6');
    let Some(end) = at.checked_add(size).filter(|end| *end <= source.len()) else {
        return wrong("a tar archive ends within a member");
    };
    let odd = match kind {
        b'S' => Some("a sparse member of a tar archive, whose parts are not put together"),
        _ if !has_data && size > 0 => {
            Some("a member of a tar archive that has data for some readers only")
        }
        b'x' | b'g' => {
            let text = source.read(at..end.min(at.saturating_add(1 << 20)))?;
            let says = |what: &[u8]| text.windows(what.len()).any(|found| found == what);
            (end - at > 1 << 20 || says(b"size=") || says(b"GNU.sparse"))
                .then_some("a tar archive that says sizes in a second place")
        }
        _ => None,
    };
    Ok(Some(Member {
        name,
        data: at..end,
        next: if has_data {
            end.checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX)
        } else {
            at
        },
        odd,
    }))
}

/// A number of a header: octal digits, or bytes with the highest bit of the first one set.
fn number(field: &[u8]) -> Option<u64> {
    if let [0x80, rest @ ..] = field {
        return rest.iter().try_fold(0u64, |number, byte| {
            number.checked_mul(256)?.checked_add(u64::from(*byte))
        });
    }
    let text = field.split(|byte| *byte == 0).next()?;
    // As Python reads numbers.
    let text = core::str::from_utf8(text).ok()?.trim().replace('_', "");
    let digits = text.strip_prefix("0o").or(text.strip_prefix("0O"));
    match digits.unwrap_or(&text) {
        "" => Some(0),
        digits => u64::from_str_radix(digits, 8).ok(),
    }
}
