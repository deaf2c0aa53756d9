//! What is in a `.mag` file, as it is on disk: `parse` and `encode` of every structure side by side.

pub(crate) mod manifest;
pub(crate) mod snapshot;
pub(crate) mod v1;

use super::{MAGIC, PRERELEASE_MAGIC, SNAPSHOT_010, SNAPSHOT_020, SNAPSHOT_030};
use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::io::{Reader, Source};
use crate::model::DType;
use crate::prelude::*;

/// The rule under which missing bytes are reported.
pub(super) const TRUNCATED: &str = "mag.truncated";

/// The number that a file gives as its version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Version {
    /// 1: the layout of the specification, or that of magnetron 0.1.2.
    V1,
    /// 100.
    Snapshot010,
    /// 200.
    Snapshot020,
    /// 300.
    Snapshot030,
}

impl Version {
    /// Reads magic and version.
    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let magic = r.array::<4>("magic")?;
        if magic == *PRERELEASE_MAGIC {
            let message = "MAG& marks the streams of development builds of April to July 2025, \
                           which no release reads or writes";
            return Err(Error::unsupported("mag.prerelease", message).at(0..4));
        }
        if magic != *MAGIC {
            let message = format!(
                "the magic is {:?}, not MAG!",
                magic.escape_ascii().to_string()
            );
            return Err(Error::malformed("mag.magic", message).at(0..4));
        }
        match r.u32("version")? {
            1 => Ok(Version::V1),
            100 => Ok(Version::Snapshot010),
            200 => Ok(Version::Snapshot020),
            300 => Ok(Version::Snapshot030),
            other => {
                let (major, minor, patch) = (other / 10_000, other / 100 % 100, other % 100);
                let message = format!(
                    "version {other} ({major}.{minor}.{patch}) does not exist; known are 1, 100, 200 and 300"
                );
                Err(Error::unsupported("mag.version", message).at(4..8))
            }
        }
    }

    /// Writes magic and version.
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let number: u32 = match self {
            Version::V1 => 1,
            Version::Snapshot010 => 100,
            Version::Snapshot020 => 200,
            Version::Snapshot030 => 300,
        };
        out.extend(MAGIC);
        out.extend(number.to_le_bytes());
    }

    /// The label in listings; version 1 alone does not decide it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Version::V1 => "1",
            Version::Snapshot010 => SNAPSHOT_010,
            Version::Snapshot020 => SNAPSHOT_020,
            Version::Snapshot030 => SNAPSHOT_030,
        }
    }
}

/// Checks that `count` records can follow.
fn count(r: &Reader<'_>, count: u32, min_record: u64, field: &'static str) -> Result<usize> {
    r.count(count.into(), min_record, field).map_err(|error| {
        let message = format!("{}: truncated, or the count is wrong", error.message());
        Error::malformed("mag.count", message).at(r.pos()..r.pos())
    })
}

/// Text without NUL: magnetron keeps keys as C strings, and the layouts of version 1 are told apart by it.
fn key(r: &mut Reader<'_>, len: u64, field: &'static str) -> Result<String> {
    let at = r.pos();
    let key = r.text(len, "mag.utf8", field)?;
    match key.find('\0') {
        Some(place) => {
            let at = at + place as u64;
            Err(Error::malformed("mag.name", format!("NUL in {field} {key:?}")).at(at..at + 1))
        }
        None => Ok(key),
    }
}

/// The type with this number in a table.
fn dtype(table: &[DType], number: u64, at: Range<u64>) -> Result<DType> {
    let known = usize::try_from(number)
        .ok()
        .and_then(|number| table.get(number));
    known.copied().ok_or_else(|| {
        let message = format!(
            "dtype {number} is not defined, 0 to {} are",
            table.len() - 1
        );
        Error::malformed("mag.dtype", message).at(at)
    })
}

/// The number of a type in a table.
fn dtype_number(table: &[DType], dtype: DType) -> Result<u8> {
    let number = table.iter().position(|&known| known == dtype);
    number
        .and_then(|number| u8::try_from(number).ok())
        .ok_or_else(|| Error::unsupported("mag.dtype", format!("there is no number for {dtype}")))
}

/// A length or a count as 32 bits.
pub(super) fn as_u32(len: usize, what: &str) -> Result<u32> {
    u32::try_from(len)
        .map_err(|cause| Error::argument(format!("{len} {what} are too many")).because(cause))
}

/// Takes in a range of a file piece by piece.
fn hash(hasher: &mut Hasher, source: &dyn Source, range: Range<u64>) -> Result<()> {
    const PIECE: u64 = 1 << 20;
    let mut at = range.start;
    while at < range.end {
        let to = range.end.min(at + PIECE);
        hasher.update(&source.read(at..to)?);
        at = to;
    }
    Ok(())
}

/// A checksum of 32 bits, given with its most significant byte first.
fn as_number(digest: &[u8]) -> u32 {
    digest
        .iter()
        .fold(0, |number, &byte| number << 8 | u32::from(byte))
}
