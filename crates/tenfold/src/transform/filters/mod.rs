//! What the bytes of a chunk go through before they are stored, undone: from the last filter to the first.

#[cfg(feature = "blosc")]
mod blosc;
#[cfg(feature = "blosc")]
mod gzip;
#[cfg(feature = "blosc")]
mod lz4;
mod lzf;
mod shuffle;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::model::Filter;
use crate::prelude::*;
use crate::transform::as_size;
use crate::transform::codec::{self, Check};

/// Bytes of a checksum.
const SUM: u64 = 4;

/// Whether a chunk is stored as it is.
pub(super) fn are_all_skipped(filters: &[Filter], skipped: u32) -> bool {
    (0..filters.len()).all(|place| is_skipped(skipped, place))
}

fn is_skipped(skipped: u32, place: usize) -> bool {
    u32::try_from(place).is_ok_and(|place| skipped.checked_shr(place).unwrap_or(0) & 1 == 1)
}

/// How many bytes there are before a filter.
#[derive(Clone, Copy)]
enum Len {
    Exactly(u64),
    /// Behind a codec it is not known.
    AtMost(u64),
}

impl Len {
    fn most(self) -> u64 {
        match self {
            Len::Exactly(len) | Len::AtMost(len) => len,
        }
    }

    fn check(self, found: usize) -> Result<()> {
        let found = found as u64;
        match self {
            Len::Exactly(len) if found != len => Err(wrong_size(found, len)),
            Len::AtMost(len) if found > len => Err(wrong_size(found, len)),
            _ => Ok(()),
        }
    }

    /// What a filter makes of it.
    fn behind(self, filter: Filter) -> Self {
        match (filter, self) {
            (Filter::Shuffle { .. }, len) => len,
            (Filter::Crc32c | Filter::Fletcher32, Len::Exactly(len)) => {
                Len::Exactly(len.saturating_add(SUM))
            }
            (Filter::Crc32c | Filter::Fletcher32, Len::AtMost(len)) => {
                Len::AtMost(len.saturating_add(SUM))
            }
            // What cannot be made smaller gets a little longer.
            (
                Filter::Blosc
                | Filter::Deflate { .. }
                | Filter::Gzip
                | Filter::Lz4
                | Filter::Lz4Blocks
                | Filter::Lzf
                | Filter::Zstd { .. },
                len,
            ) => Len::AtMost(len.most().saturating_add(len.most() / 8 + 1024)),
        }
    }
}

/// The bytes of a chunk before it went through the filters: `len` of them. Bit k of `skipped` says that filter k was left
/// out.
pub(super) fn undo(
    filters: &[Filter],
    skipped: u32,
    stored: Bytes,
    len: u64,
    check: Check<'_>,
) -> Result<Bytes> {
    undo_known(filters, skipped, stored, Len::Exactly(len), check)
}

/// The same for bytes of which it is only known how many there are at most.
pub(crate) fn undo_at_most(filters: &[Filter], stored: Bytes, most: u64) -> Result<Bytes> {
    undo_known(filters, 0, stored, Len::AtMost(most), &|| Ok(()))
}

fn undo_known(
    filters: &[Filter],
    skipped: u32,
    stored: Bytes,
    wanted: Len,
    check: Check<'_>,
) -> Result<Bytes> {
    let mut before = Vec::new();
    let mut known = wanted;
    for (place, filter) in filters.iter().enumerate() {
        if !is_skipped(skipped, place) {
            before.push((*filter, known));
            known = known.behind(*filter);
        }
    }
    let mut bytes = stored;
    for (filter, known) in before.into_iter().rev() {
        check()?;
        // Places in a chunk are none in a file.
        bytes = undo_one(filter, known, bytes, check).map_err(Error::nowhere)?;
        known.check(bytes.len())?;
    }
    wanted.check(bytes.len())?;
    Ok(bytes)
}

fn undo_one(filter: Filter, known: Len, bytes: Bytes, check: Check<'_>) -> Result<Bytes> {
    match filter {
        Filter::Shuffle { width } => Ok(shuffle::undo(bytes, as_size(width.into())?)),
        Filter::Deflate { .. } => codec::inflate_zlib(&bytes, known.most(), check).map(Bytes::from),
        Filter::Lzf => lzf::undo(&bytes, as_size(known.most())?).map(Bytes::from),
        Filter::Fletcher32 => check_sum(bytes),
        #[cfg(feature = "blosc")]
        Filter::Blosc => blosc::undo(&bytes, known.most(), check),
        #[cfg(feature = "blosc")]
        Filter::Gzip => gzip::undo(&bytes, known.most(), check).map(Bytes::from),
        #[cfg(feature = "blosc")]
        Filter::Lz4 => lz4::undo(&bytes, known.most()).map(Bytes::from),
        #[cfg(feature = "blosc")]
        Filter::Lz4Blocks => lz4::undo_blocks(&bytes, known.most(), check).map(Bytes::from),
        #[cfg(feature = "blosc")]
        Filter::Zstd { .. } => codec::unpack_zstd(&bytes, known.most(), check).map(Bytes::from),
        #[cfg(feature = "blosc")]
        Filter::Crc32c => check_crc32c(bytes),
        #[cfg(not(feature = "blosc"))]
        other => {
            let message = format!("{} is not built in; enable feature `blosc`", other.name());
            Err(Error::unsupported("filter", message))
        }
    }
}

/// The bytes of a chunk as they are stored.
pub(crate) fn apply(filters: &[Filter], mut bytes: Vec<u8>, check: Check<'_>) -> Result<Vec<u8>> {
    for filter in filters {
        bytes = match filter {
            Filter::Shuffle { width } => shuffle::apply(&bytes, as_size((*width).into())?),
            Filter::Deflate { level } => codec::deflate_zlib(&bytes, *level, check)?,
            Filter::Zstd { level } => codec::encode(*level, &bytes, check)?,
            Filter::Fletcher32 => {
                let (low, high) = fletcher32(&bytes);
                bytes.extend((high << 16 | low).to_le_bytes());
                bytes
            }
            other => {
                let message = format!("{} is not written", other.name());
                return Err(Error::unsupported("filter", message));
            }
        };
    }
    Ok(bytes)
}

/// A chunk that does not have the bytes of its elements.
pub(super) fn wrong_size(found: u64, len: u64) -> Error {
    Error::malformed(
        "chunk-size",
        format!("a chunk of {found} bytes, but its elements take {len}"),
    )
}

/// The bytes in front of a checksum that is theirs.
fn check_sum(bytes: Bytes) -> Result<Bytes> {
    let Some((data, sum)) = bytes.split_last_chunk::<4>() else {
        return Err(wrong_size(bytes.len() as u64, SUM));
    };
    let sum = u32::from_le_bytes(*sum);
    // Two forms of the same remainder are in use: 0 and 65535.
    let halves = |sum: u32| ((sum & 0xffff) % MODULUS, (sum >> 16) % MODULUS);
    let found = fletcher32(data);
    if halves(sum) != found {
        let (low, high) = found;
        let message = format!(
            "the Fletcher-32 checksum of a chunk is {:08x}, but {sum:08x} is stored",
            high << 16 | low
        );
        return Err(Error::mismatch("checksum", message));
    }
    let len = data.len();
    Ok(bytes.slice(..len))
}

/// The bytes in front of a CRC-32C that is theirs.
#[cfg(feature = "blosc")]
fn check_crc32c(bytes: Bytes) -> Result<Bytes> {
    let Some((data, sum)) = bytes.split_last_chunk::<4>() else {
        return Err(wrong_size(bytes.len() as u64, SUM));
    };
    let (sum, found) = (u32::from_le_bytes(*sum), crate::digest::crc32c(data));
    if sum != found {
        let message = format!("the CRC-32C of a chunk is {found:08x}, but {sum:08x} is stored");
        return Err(Error::mismatch("checksum", message));
    }
    let len = data.len();
    Ok(bytes.slice(..len))
}

const MODULUS: u32 = 65535;

/// Both sums of the big-endian words of 16 bits; a last byte without another is the upper half of one.
fn fletcher32(bytes: &[u8]) -> (u32, u32) {
    /// Words whose sums cannot overflow.
    const BLOCK: usize = 256;
    let (mut low, mut high) = (0u32, 0u32);
    for block in bytes.chunks(2 * BLOCK) {
        for word in block.chunks(2) {
            let word = match *word {
                [a, b] => u16::from_be_bytes([a, b]),
                [a] => u16::from_be_bytes([a, 0]),
                _ => 0,
            };
            low += u32::from(word);
            high += low % MODULUS;
        }
        (low, high) = (low % MODULUS, high % MODULUS);
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undo(filters: &[Filter], skipped: u32, stored: Bytes, len: u64) -> Result<Bytes> {
        super::undo(filters, skipped, stored, len, &|| Ok(()))
    }

    #[test]
    fn a_checksum_is_taken_off_when_it_is_right() {
        // 0x0102 + 0x0300 and 0x0102 + 0x0402.
        let mut chunk = vec![1, 2, 3];
        chunk.extend([0x02, 0x04, 0x04, 0x05]);
        let filters = [Filter::Fletcher32];
        assert_eq!(
            undo(&filters, 0, chunk.clone().into(), 3).unwrap()[..],
            [1, 2, 3]
        );
        let error = undo(&filters, 0, chunk.clone().into(), 2).unwrap_err();
        assert_eq!(error.rule(), "file.chunk-size");
        chunk[0] = 9;
        let error = undo(&filters, 0, chunk.into(), 3).unwrap_err();
        assert_eq!(error.rule(), "file.checksum");
    }

    #[test]
    fn a_checksum_is_put_behind_what_it_is_of() {
        let stored = apply(&[Filter::Fletcher32], vec![1, 2, 3], &|| Ok(())).unwrap();
        assert_eq!(stored, [1, 2, 3, 0x02, 0x04, 0x04, 0x05]);
    }

    #[test]
    fn a_filter_that_was_skipped_is_not_undone() {
        let filters = [Filter::Shuffle { width: 2 }, Filter::Fletcher32];
        let stored = Bytes::from_static(&[1, 2, 3, 4]);
        assert_eq!(
            undo(&filters, 0b10, stored.clone(), 4).unwrap()[..],
            [1, 3, 2, 4]
        );
        assert_eq!(undo(&filters, 0b11, stored, 4).unwrap()[..], [1, 2, 3, 4]);
        assert!(are_all_skipped(&filters, 0b11));
        assert!(!are_all_skipped(&filters, 0b10));
    }

    #[cfg(feature = "deflate")]
    #[test]
    fn what_was_deflated_comes_back_and_has_the_length_that_it_must_have() {
        let bytes: Vec<u8> = (0..10_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        let filters = [Filter::Shuffle { width: 4 }, Filter::Deflate { level: 6 }];
        let stored: Bytes = apply(&filters, bytes.clone(), &|| Ok(())).unwrap().into();
        assert!(stored.len() < bytes.len() / 4);
        let len = bytes.len() as u64;
        assert_eq!(undo(&filters, 0, stored.clone(), len).unwrap(), bytes);
        for wrong in [0, len - 1, len + 1, 1 << 40] {
            let error = undo(&filters, 0, stored.clone(), wrong).unwrap_err();
            assert!(
                ["file.chunk-size", "file.deflate"].contains(&error.rule()),
                "{error}"
            );
        }
    }
}
