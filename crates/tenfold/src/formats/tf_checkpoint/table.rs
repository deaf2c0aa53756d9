//! The index as it is on disk: blocks of keys and values, in the order of the keys.

use bytes::Bytes;

use crate::digest::crc32c;
use crate::error::{Error, Result};
use crate::format::Context;
use crate::io::{Reader, Source, read_exactly};
use crate::prelude::*;
use crate::transform::unpack_snappy;
#[cfg(feature = "write")]
use crate::wire::protobuf::put_varint;

/// The last bytes of a table.
pub(super) const MAGIC: [u8; 8] = [0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb];
/// Bytes behind the last block.
pub(super) const FOOTER: u64 = 48;
/// Bytes behind each block: compression and checksum.
const TRAILER: u64 = 5;
/// Tables of no more bytes are read at once.
const SMALL: u64 = 1 << 20;
/// What compressed blocks may become of few bytes, and of many.
const FREE: u64 = 8 << 20;
const TIMES: u64 = 8;

/// Turns a CRC-32C into the form that it is stored in: so that what holds checksums has one of its own.
pub(super) fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(DELTA)
}

/// The CRC-32C that a stored one stands for.
pub(super) fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(DELTA).rotate_left(15)
}

const DELTA: u32 = 0xa282_ead8;

/// Whether a source ends like a table.
pub(super) fn ends_like_one(source: &dyn Source) -> Result<bool> {
    let len = source.len();
    match len.checked_sub(MAGIC.len() as u64) {
        Some(at) => Ok(source.read(at..len)? == MAGIC[..]),
        None => Ok(false),
    }
}

/// Where a block is.
#[derive(Clone, Copy, Debug)]
struct Handle {
    offset: u64,
    size: u64,
}

impl Handle {
    fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let offset = varint(r)?;
        let size = varint(r)?;
        Ok(Self { offset, size })
    }
}

/// A number of up to 10 bytes, the least significant first.
pub(super) fn varint(r: &mut Reader<'_>) -> Result<u64> {
    let at = r.pos();
    let mut number = 0u64;
    for place in 0..10u32 {
        let byte = r.u8("a number")?;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Ok(number);
        }
    }
    let message = "a number of more than 10 bytes";
    Err(Error::malformed("tf_checkpoint.varint", message).at(at..r.pos()))
}

/// Hands out the entries of a table in the order of their keys, with where their values are in the table.
pub(super) fn read(
    cx: &mut Context<'_>,
    source: &dyn Source,
    mut each: impl FnMut(&mut Context<'_>, &[u8], &Bytes) -> Result<()>,
) -> Result<()> {
    let len = source.len();
    let Some(end) = len.checked_sub(FOOTER) else {
        let message = format!("the index has {len} bytes, its end alone has {FOOTER}");
        return Err(Error::malformed("tf_checkpoint.truncated", message).at(0..len));
    };
    let whole = if len <= SMALL {
        Some(read_exactly(source, 0..len)?)
    } else {
        None
    };
    let source: &dyn Source = match &whole {
        Some(whole) => whole,
        None => source,
    };
    let magic = read_exactly(source, len - 8..len)?;
    if magic != MAGIC[..] {
        let message = format!(
            "the index ends with \"{}\", a table of TensorFlow with \"{}\": it is cut off or something else",
            magic.escape_ascii(),
            MAGIC.escape_ascii()
        );
        return Err(Error::malformed("tf_checkpoint.magic", message).at(len - 8..len));
    }
    let mut r = Reader::over(source, end..len, TRUNCATED);
    let _metaindex = Handle::parse(&mut r)?;
    let index = Handle::parse(&mut r)?;
    let table = Table { source, end };
    let index = table.block(cx, index)?;
    let mut blocks = Entries::new(&index)?;
    let mut last: Option<Vec<u8>> = None;
    let mut end = 0;
    while let Some(handle) = blocks.next()? {
        let mut r = Reader::new(&handle, TRUNCATED);
        let handle = Handle::parse(&mut r)?;
        if handle.offset < end {
            let message = format!(
                "a block begins at byte {}, the one before it ends at {end}",
                handle.offset
            );
            return Err(Error::malformed("tf_checkpoint.block", message).at(index.at.clone()));
        }
        let block = table.block(cx, handle)?;
        end = block.at.end;
        let mut entries = Entries::new(&block)?;
        while let Some(value) = entries.next()? {
            let key = entries.key.as_slice();
            if last.as_deref().is_some_and(|last| last >= key) {
                let message = format!(
                    "the key {} comes behind {}: keys rise, and none is there twice",
                    shown(key),
                    shown(last.as_deref().unwrap_or_default())
                );
                return Err(Error::malformed("tf_checkpoint.order", message).at(block.at.clone()));
            }
            each(cx, key, &value).map_err(|error| match error.range() {
                Some(_) => error,
                None => error.at(block.at.clone()),
            })?;
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
        }
    }
    Ok(())
}

pub(super) const TRUNCATED: &str = "tf_checkpoint.truncated";

/// A key for a message.
fn shown(key: &[u8]) -> String {
    const MOST: usize = 64;
    let short = key.get(..MOST).unwrap_or(key);
    let more = if key.len() > MOST { ".." } else { "" };
    format!("\"{}{more}\"", short.escape_ascii())
}

struct Table<'s> {
    source: &'s dyn Source,
    /// Where the last block ends.
    end: u64,
}

/// The content of a block, and where it is.
struct Block {
    bytes: Bytes,
    at: Range<u64>,
}

impl Table<'_> {
    /// A block, unpacked.
    fn block(&self, cx: &mut Context<'_>, handle: Handle) -> Result<Block> {
        let end = handle.offset.checked_add(handle.size);
        let behind = end.and_then(|end| end.checked_add(TRAILER));
        let (Some(end), Some(behind)) = (end, behind.filter(|behind| *behind <= self.end)) else {
            let message = format!(
                "a block of {} bytes at byte {}, the blocks end at byte {}",
                handle.size, handle.offset, self.end
            );
            let at = self.end..self.source.len();
            return Err(Error::malformed("tf_checkpoint.block", message).at(at));
        };
        let limit = cx.limits().header_bytes;
        if handle.size > limit {
            let message = format!("a block of {} bytes, the limit is {limit}", handle.size);
            let error = Error::limit("tf_checkpoint.limit", message);
            return Err(error
                .raised_by("header_bytes", handle.size)
                .at(handle.offset..end));
        }
        let stored = read_exactly(self.source, handle.offset..behind)?;
        let at = handle.offset..end;
        let (block, trailer) = stored.split_at(crate::transform::as_size(handle.size)?);
        let [kind, sum @ ..] = trailer else {
            return Err(Error::malformed(TRUNCATED, "a block without its checksum").at(at));
        };
        let covered = stored.len() - sum.len();
        let found = mask(crc32c(stored.get(..covered).unwrap_or_default()));
        if sum != found.to_le_bytes() {
            let message =
                "a block of the index does not have the checksum that is stored behind it";
            cx.mismatch("tf_checkpoint.checksum", at.clone(), message)?;
        }
        let bytes = match kind {
            0 => stored.slice(..block.len()),
            1 => {
                let most = FREE
                    .saturating_add(handle.size.saturating_mul(TIMES))
                    .min(limit);
                let unpacked = unpack_snappy(block, most);
                unpacked.map_err(|error| error.at(at.clone()))?.into()
            }
            other => {
                let message = format!(
                    "a block is compressed by method {other}; 0 (none) and 1 (snappy) are known"
                );
                return Err(Error::unsupported("tf_checkpoint.compression", message).at(at));
            }
        };
        Ok(Block { bytes, at })
    }
}

/// The entries of a block, one after the other.
struct Entries<'b> {
    block: &'b Block,
    r: Reader<'b>,
    /// That of the last entry.
    key: Vec<u8>,
}

impl<'b> Entries<'b> {
    fn new(block: &'b Block) -> Result<Self> {
        let len = block.bytes.len() as u64;
        let count = block
            .bytes
            .last_chunk::<4>()
            .copied()
            .map(u32::from_le_bytes);
        let restarts = count.map(|count| (u64::from(count) + 1) * 4);
        let Some(end) = restarts.and_then(|restarts| len.checked_sub(restarts)) else {
            let message = format!(
                "a block of {len} bytes that ends with {} restarts",
                count.unwrap_or_default()
            );
            let error = Error::malformed("tf_checkpoint.restarts", message);
            return Err(error.at(block.at.clone()));
        };
        Ok(Self {
            r: Reader::over(&block.bytes, 0..end, TRUNCATED),
            block,
            key: Vec::new(),
        })
    }

    /// The value of the next entry, whose key is [`key`](Self::key).
    fn next(&mut self) -> Result<Option<Bytes>> {
        if self.r.remaining() == 0 {
            return Ok(None);
        }
        self.entry()
            .map(Some)
            .map_err(|error| error.at(self.block.at.clone()))
    }

    fn entry(&mut self) -> Result<Bytes> {
        let shared = varint(&mut self.r)?;
        let unshared = varint(&mut self.r)?;
        let len = varint(&mut self.r)?;
        let known = self.key.len();
        let Some(shared) = usize::try_from(shared)
            .ok()
            .filter(|shared| *shared <= known)
        else {
            let message = format!("a key shares {shared} bytes with one that has {known}");
            return Err(Error::malformed("tf_checkpoint.key", message));
        };
        let unshared = self.r.take(unshared, "a key")?;
        self.key.truncate(shared);
        self.key.extend_from_slice(&unshared);
        self.r.take(len, "a value")
    }
}

/// Bytes of a block of data, about.
#[cfg(feature = "write")]
const BLOCK: usize = 256 << 10;
/// Keys up to the next one that is written whole.
#[cfg(feature = "write")]
const RESTART: u32 = 16;

/// Writes a table.
#[cfg(feature = "write")]
#[derive(Default)]
pub(super) struct Writer {
    out: Vec<u8>,
    block: BlockWriter,
    /// The last keys of the blocks, and where those are.
    blocks: Vec<(Vec<u8>, Vec<u8>)>,
}

#[cfg(feature = "write")]
impl Writer {
    /// Adds an entry; keys rise.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.block.add(key, value);
        if self.block.out.len() >= BLOCK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let block = core::mem::take(&mut self.block);
        let key = block.key.clone();
        let handle = self.put(block);
        self.blocks.push((key, handle));
    }

    /// Writes a block, and says where.
    fn put(&mut self, block: BlockWriter) -> Vec<u8> {
        let at = self.out.len() as u64;
        let mut block = block.finish();
        let size = block.len() as u64;
        block.push(0);
        let sum = mask(crc32c(&block));
        self.out.append(&mut block);
        self.out.extend_from_slice(&sum.to_le_bytes());
        let mut handle = Vec::new();
        put_varint(&mut handle, at);
        put_varint(&mut handle, size);
        handle
    }

    /// All of it.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if !self.block.out.is_empty() || self.blocks.is_empty() {
            self.flush();
        }
        let mut footer = self.put(BlockWriter::default());
        let mut index = BlockWriter::default();
        for (key, handle) in core::mem::take(&mut self.blocks) {
            index.add(&key, &handle);
        }
        footer.extend(self.put(index));
        footer.resize(
            crate::transform::as_size(FOOTER).unwrap_or(0) - MAGIC.len(),
            0,
        );
        self.out.extend(footer);
        self.out.extend(MAGIC);
        self.out
    }
}

#[cfg(feature = "write")]
#[derive(Default)]
struct BlockWriter {
    out: Vec<u8>,
    key: Vec<u8>,
    restarts: Vec<u32>,
    since: u32,
}

#[cfg(feature = "write")]
impl BlockWriter {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let shared = if self.since == RESTART || self.restarts.is_empty() {
            // Blocks are far shorter than 4 GiB.
            self.restarts
                .push(u32::try_from(self.out.len()).unwrap_or(0));
            self.since = 0;
            0
        } else {
            let pairs = self.key.iter().zip(key);
            pairs.take_while(|(a, b)| a == b).count()
        };
        let unshared = key.get(shared..).unwrap_or_default();
        put_varint(&mut self.out, shared as u64);
        put_varint(&mut self.out, unshared.len() as u64);
        put_varint(&mut self.out, value.len() as u64);
        self.out.extend_from_slice(unshared);
        self.out.extend_from_slice(value);
        self.key = key.to_vec();
        self.since += 1;
    }

    fn finish(mut self) -> Vec<u8> {
        if self.restarts.is_empty() {
            self.restarts.push(0);
        }
        for restart in &self.restarts {
            self.out.extend_from_slice(&restart.to_le_bytes());
        }
        let count = u32::try_from(self.restarts.len()).unwrap_or(0);
        self.out.extend_from_slice(&count.to_le_bytes());
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_checksum_comes_back() {
        // Of "123456789", by the definition of CRC-32C.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        for crc in [0, 1, 0xe306_9283, u32::MAX] {
            assert_eq!(unmask(mask(crc)), crc);
        }
        assert_eq!(mask(0), 0xa282_ead8);
    }
}
