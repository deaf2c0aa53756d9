//! Versions 100 and 200: `snapshot-0.1.0` and `snapshot-0.2.0`.

use super::super::{MAX_POOL, MAX_POOL_BYTES, shape};
use super::{Version, as_u32, count, dtype, dtype_number, hash};
use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::io::{Reader, Source};
use crate::model::{DType, DigestKind, Shape};
use crate::prelude::*;

/// The marker of the string pool, at byte 32 of every such file.
pub(crate) const POOL: &[u8; 4] = b"SRP!";
/// The marker of the metadata, of which there never was any.
pub(crate) const METADATA: &[u8; 4] = b"MDT!";
/// The marker of the descriptors.
pub(crate) const DESCRIPTORS: &[u8; 4] = b"DSC!";
/// The marker of the data.
pub(crate) const DATA: &[u8; 4] = b"BUF!";

/// The header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Header {
    /// Seconds since 1970.
    pub(crate) timestamp: u64,
    /// CRC-32C of everything after it up to the end of the descriptors.
    pub(crate) checksum: u32,
    /// Written as 0, ignored by readers.
    pub(crate) aux: u32,
    /// Descriptors.
    pub(crate) tensor_count: u32,
}

impl Header {
    /// Where the checksum's bytes begin.
    pub(crate) const COVERED: u64 = 20;

    /// Reads what follows the version.
    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let timestamp = r.u64("timestamp")?;
        let checksum = r.u32("checksum")?;
        let aux = r.u32("aux")?;
        let at = r.pos();
        let metadata_map_len = r.u32("metadata_map_len")?;
        if metadata_map_len != 0 {
            let message = format!(
                "metadata_map_len is {metadata_map_len}, but no layout of metadata was ever defined"
            );
            return Err(Error::unsupported("mag.metadata", message).at(at..at + 4));
        }
        let tensor_count = r.u32("tensor count")?;
        count(r, tensor_count, Descriptor::MIN, "tensor count")?;
        Ok(Self {
            timestamp,
            checksum,
            aux,
            tensor_count,
        })
    }

    /// Writes magic, version and header.
    pub(crate) fn encode(&self, version: Version, out: &mut Vec<u8>) {
        version.encode(out);
        out.extend(self.timestamp.to_le_bytes());
        let metadata_map_len = 0;
        for field in [self.checksum, self.aux, metadata_map_len, self.tensor_count] {
            out.extend(field.to_le_bytes());
        }
    }

    /// The checksum of descriptors that end at `end`.
    pub(crate) fn compute_checksum(source: &dyn Source, end: u64) -> Result<u32> {
        let mut hasher = Hasher::new(DigestKind::Crc32c)
            .ok_or_else(|| Error::unsupported("mag.checksum", "crc32c is not built in"))?;
        hash(&mut hasher, source, Self::COVERED..end)?;
        Ok(super::as_number(&hasher.finish()))
    }
}

/// Reads a marker.
pub(crate) fn marker(r: &mut Reader<'_>, expected: &'static [u8; 4]) -> Result<()> {
    let at = r.pos();
    let found = r.array::<4>("a section marker")?;
    if found != *expected {
        let (expected, found) = (expected.escape_ascii(), found.escape_ascii());
        let message = format!("the marker {expected} should be here, found {found}");
        return Err(Error::malformed("mag.marker", message).at(at..at + 4));
    }
    Ok(())
}

/// The names, which descriptors refer to by their place.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Pool {
    /// In the order in which they were added.
    pub(crate) names: Vec<String>,
}

impl Pool {
    /// Reads what follows the marker.
    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let at = r.pos();
        let declared = r.u32("the string pool's count")?;
        count(r, declared, 5, "the string pool's count")?;
        if declared > MAX_POOL {
            let message =
                format!("the string pool has {declared} names, at most {MAX_POOL} are possible");
            return Err(Error::malformed("mag.count", message).at(at..at + 4));
        }
        let mut ends = Vec::new();
        let mut last = None;
        for _ in 0..=declared {
            let at = r.pos();
            let offset = r.u32("a string's offset")?;
            let ascends = match last {
                None => offset == 0,
                Some(last) => offset > last,
            };
            if !ascends {
                let expected = last.map_or("0".to_owned(), |last| format!("more than {last}"));
                let message = format!("a string's offset is {offset}, expected {expected}");
                return Err(Error::malformed("mag.pool", message).at(at..at + 4));
            }
            if last.is_some() {
                ends.push(offset);
            }
            last = Some(offset);
        }
        let size = last.unwrap_or(0);
        if size > MAX_POOL_BYTES {
            let message =
                format!("the names have {size} bytes, at most {MAX_POOL_BYTES} are possible");
            return Err(Error::malformed("mag.pool", message).at(r.pos() - 4..r.pos()));
        }
        if u64::from(size) > r.remaining() {
            // Says that the file is too short.
            r.skip(size.into(), "the string pool")?;
        }
        let mut names = Vec::with_capacity(ends.len());
        let mut begin = 0;
        for end in ends {
            names.push(super::key(r, u64::from(end - begin), "a name")?);
            begin = end;
        }
        Ok(Self { names })
    }

    /// Writes marker and pool.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend(POOL);
        out.extend(as_u32(self.names.len(), "names")?.to_le_bytes());
        let mut size = 0;
        out.extend([0; 4]);
        for name in &self.names {
            size += name.len();
            out.extend(as_u32(size, "bytes of names")?.to_le_bytes());
        }
        if size > MAX_POOL_BYTES as usize {
            let message = format!("the names have {size} bytes, at most {MAX_POOL_BYTES} fit");
            return Err(Error::unsupported("mag.pool", message));
        }
        for name in &self.names {
            out.extend(name.as_bytes());
        }
        Ok(())
    }
}

/// A tensor.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Descriptor {
    /// The type of the elements.
    pub(crate) dtype: DType,
    /// The place of its name in the pool.
    pub(crate) key_id: u32,
    /// Elements: the product of the shape.
    pub(crate) numel: u64,
    /// Where the data begins, counted from the beginning of all data.
    pub(crate) offset: u64,
    /// The sizes.
    pub(crate) shape: Shape,
}

impl Descriptor {
    /// Bytes of the shortest one.
    pub(crate) const MIN: u64 = 24;
    /// What the record can hold at most; magnetron reads up to 16.
    pub(crate) const MAX_RANK: u8 = 63;

    /// Reads a descriptor whose type is a number of `table`.
    pub(crate) fn parse(r: &mut Reader<'_>, table: &[DType]) -> Result<Self> {
        let at = r.pos();
        let [rank, number, reserved @ ..] = r.array::<4>("a descriptor")?;
        if rank > Self::MAX_RANK {
            let message = format!("rank {rank}, at most {} is possible", Self::MAX_RANK);
            return Err(Error::malformed("mag.rank", message).at(at..at + 1));
        }
        let dtype = dtype(table, number.into(), at + 1..at + 2)?;
        if reserved != [0; 2] {
            let message = format!("reserved bytes of a descriptor are {reserved:02x?}, not 0");
            return Err(Error::malformed("mag.reserved", message).at(at + 2..at + 4));
        }
        let key_id = r.u32("a descriptor's key_id")?;
        let numel = r.u64("a descriptor's numel")?;
        let offset = r.u64("a descriptor's offset")?;
        let mut shape = Shape::new();
        for _ in 0..rank {
            shape.push(r.u64("a descriptor's shape")?);
        }
        let descriptor = Self {
            dtype,
            key_id,
            numel,
            offset,
            shape,
        };
        descriptor.check().map_err(|error| error.at(at..r.pos()))?;
        Ok(descriptor)
    }

    fn check(&self) -> Result<()> {
        let Self { shape, numel, .. } = self;
        shape::bytes(shape, self.dtype)?;
        match shape::elements(shape) {
            Some(elements) if elements == *numel => Ok(()),
            elements => {
                let elements = elements.unwrap_or(0);
                let message = format!("numel is {numel}, shape {shape:?} has {elements} elements");
                Err(Error::malformed("mag.length", message))
            }
        }
    }

    /// Writes the descriptor.
    pub(crate) fn encode(&self, table: &[DType], out: &mut Vec<u8>) -> Result<()> {
        let rank = u8::try_from(self.shape.len()).map_err(|cause| {
            Error::argument(format!("{} dimensions are too many", self.shape.len())).because(cause)
        })?;
        out.extend([rank, dtype_number(table, self.dtype)?, 0, 0]);
        out.extend(self.key_id.to_le_bytes());
        out.extend(self.numel.to_le_bytes());
        out.extend(self.offset.to_le_bytes());
        for size in &self.shape {
            out.extend(size.to_le_bytes());
        }
        Ok(())
    }
}
