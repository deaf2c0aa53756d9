//! Files that are compressed as a whole: what comes out of those that can be unpacked, and which others there are.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::{Reader, Source};
use crate::model::SourceId;
use crate::prelude::*;
use crate::transform::gzip;
use crate::transform::{Inflate, Input};

/// What cannot be looked into here, by how it begins.
const CLOSED: &[(&[u8], &str)] = &[
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\x04\x22\x4d\x18", "an lz4 file"),
    (b"\x02\x21\x4c\x18", "an old lz4 file"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    // A length in hexadecimal digits, and what zlib gave.
    (b"ZF0x", "a file of an old joblib"),
];

/// What a file is that cannot be looked into.
pub(super) fn closed(head: &[u8], name: &str) -> Option<&'static str> {
    let known = CLOSED.iter().find(|(magic, _)| head.starts_with(magic));
    if let Some((_, what)) = known {
        return Some(what);
    }
    match head {
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some("a bzip2 file"),
        // Zstd and lz4 can begin with a frame to pass over.
        [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some("a zstd or lz4 file"),
        _ if is_lzma(head) || name.to_ascii_lowercase().ends_with(".lzma") => Some("an LZMA file"),
        _ => None,
    }
}

/// LZMA without a container has no signature: properties, the size of a dictionary, which is one of few, and a length that
/// is unknown or reasonable.
fn is_lzma(head: &[u8]) -> bool {
    let Some((&[properties, a, b, c, d, ref len @ ..], [0, ..])) = head.split_first_chunk::<13>()
    else {
        return false;
    };
    let dictionary = u32::from_le_bytes([a, b, c, d]);
    let is_usual = dictionary.is_power_of_two() || (dictionary / 3).is_power_of_two();
    let is_whole = dictionary % 3 == 0 || dictionary.is_power_of_two();
    let len = u64::from_le_bytes(*len);
    properties < 225
        && dictionary >= 4096
        && (is_usual && is_whole || dictionary == u32::MAX)
        && (len == u64::MAX || (1..1 << 38).contains(&len))
}

/// How a file is compressed as a whole.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Packed {
    Gzip,
    /// As joblib writes it.
    Zlib,
}

/// What came out of a file, and why not everything did.
pub(super) struct Unpacked {
    pub(super) bytes: Bytes,
    pub(super) fault: Option<Error>,
}

impl Packed {
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => Some(Self::Zlib),
            head if head.starts_with(&gzip::MAGIC) => Some(Self::Gzip),
            _ => None,
        }
    }

    /// Everything that comes out up to a limit, also in front of a damage: who loads the file gets that too.
    pub(super) fn unpack(self, source: &dyn Source, limit: u64) -> Unpacked {
        let mut bytes = Vec::new();
        let fault = match self {
            Self::Gzip => members(source, limit, &mut bytes),
            Self::Zlib => {
                let mut inflate = inflate(source, 2.min(source.len())..source.len()).followed();
                drain(&mut inflate, limit, &mut bytes)
            }
        };
        Unpacked {
            bytes: bytes.into(),
            fault: fault.err(),
        }
    }
}

/// The members of a gzip file, one behind the other, perhaps with zeros behind the last.
fn members(source: &dyn Source, limit: u64, bytes: &mut Vec<u8>) -> Result<()> {
    let mut r = Reader::over(source, 0..source.len(), "scan.truncated");
    loop {
        gzip::head(&mut r)?;
        let mut inflate = inflate(source, r.pos()..source.len()).followed();
        drain(&mut inflate, limit, bytes)?;
        r.skip(inflate.used().saturating_add(gzip::TAIL), "a gzip member")?;
        loop {
            if r.remaining() == 0 {
                return Ok(());
            }
            let mut ahead = r.clone();
            if ahead.u8("what lies behind a member")? != 0 {
                break;
            }
            r = ahead;
        }
    }
}

/// A member of a zip archive, or what lies in the frame of another.
pub(super) fn inflate(source: &dyn Source, range: Range<u64>) -> Inflate<'_> {
    Inflate::new(Input::Source {
        id: SourceId::MAIN,
        source,
        range,
        control: None,
    })
}

/// Adds everything that comes out, of which there may be so many bytes in all.
pub(super) fn drain(inflate: &mut Inflate<'_>, limit: u64, bytes: &mut Vec<u8>) -> Result<()> {
    const PIECE: usize = 64 << 10;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    loop {
        let before = bytes.len();
        // One byte more shows that there is more.
        let room = most.saturating_add(1).saturating_sub(before).min(PIECE);
        bytes.resize(before.saturating_add(room), 0);
        let got = inflate.read(bytes.get_mut(before..).unwrap_or_default());
        bytes.truncate(before.saturating_add(*got.as_ref().unwrap_or(&0)));
        if got? == 0 {
            return Ok(());
        }
        if bytes.len() > most {
            bytes.truncate(most);
            let message = format!("more than {limit} bytes when unpacked");
            return Err(Error::limit("scan.limit", message));
        }
    }
}
