//! Version 1: the layout of the specification (`spec-1`) and that of magnetron 0.1.2 (`archive-1`).

mod reading;

pub(crate) use reading::Reading;

use super::super::{ARCHIVE_1, MAX_KEY, SPEC_1, shape, tables};
use super::{Version, as_u32, count, dtype, dtype_number, key};
use crate::error::{Error, Result};
use crate::io::{Reader, Source};
use crate::model::{DType, Shape};
use crate::prelude::*;

/// The header, which both layouts share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Header {
    /// Of everything after it up to the end of the tensor records.
    pub(crate) checksum: u32,
    /// Tensor records.
    pub(crate) num_tensors: u32,
    /// Metadata records.
    pub(crate) num_meta_kv: u32,
}

impl Header {
    /// Reads what follows the version.
    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let header = Self {
            checksum: r.u32("checksum")?,
            num_tensors: r.u32("num_tensors")?,
            num_meta_kv: r.u32("num_meta_kv")?,
        };
        reserved(r, "the header's aux")?;
        count(r, header.num_meta_kv, MetaRecord::MIN, "num_meta_kv")?;
        count(r, header.num_tensors, ArchiveTensor::MIN, "num_tensors")?;
        Ok(header)
    }

    /// Writes magic, version and header.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        Version::V1.encode(out);
        let aux = 0;
        for field in [self.checksum, self.num_tensors, self.num_meta_kv, aux] {
            out.extend(field.to_le_bytes());
        }
    }
}

/// A value of metadata.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetaRecord {
    /// Its key. Empty keys can occur in `spec-1` only.
    pub(crate) key: String,
    /// Its value.
    pub(crate) value: MetaValue,
}

/// What the payload of a metadata record is; the record's `aux` says it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MetaValue {
    /// 0: not said, as the specification has it; an integer. In `spec-1` only.
    Untyped(i64),
    /// 1: a signed integer.
    Integer(i64),
    /// 2: an IEEE double.
    Double(f64),
}

impl MetaRecord {
    const MIN: u64 = 16;

    /// Reads a record.
    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let at = r.pos();
        let aux = r.u32("a metadata record's aux")?;
        let payload = r.array::<8>("a metadata record's payload")?;
        let key = sized_key(r, "a metadata key")?;
        let value = match aux {
            0 => MetaValue::Untyped(i64::from_le_bytes(payload)),
            1 => MetaValue::Integer(i64::from_le_bytes(payload)),
            2 => MetaValue::Double(f64::from_le_bytes(payload)),
            _ => {
                let message =
                    format!("metadata {key:?} has the type tag {aux}, 0 to 2 are defined");
                return Err(Error::malformed("mag.tag", message).at(at..at + 4));
            }
        };
        Ok(Self { key, value })
    }

    /// Writes the record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let (aux, payload) = match self.value {
            MetaValue::Untyped(value) => (0u32, value.to_le_bytes()),
            MetaValue::Integer(value) => (1, value.to_le_bytes()),
            MetaValue::Double(value) => (2, value.to_le_bytes()),
        };
        out.extend(aux.to_le_bytes());
        out.extend(payload);
        out.extend(as_u32(self.key.len(), "bytes of a key")?.to_le_bytes());
        out.extend(self.key.as_bytes());
        Ok(())
    }

    /// Whether only `spec-1` can have it.
    pub(crate) fn is_spec_only(&self) -> bool {
        self.key.is_empty() || matches!(self.value, MetaValue::Untyped(_))
    }
}

/// Which of the two layouts of version 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// That of magnetron 0.1.2.
    Archive,
    /// That of the specification.
    Spec,
}

impl Kind {
    /// The label in listings.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Kind::Archive => ARCHIVE_1,
            Kind::Spec => SPEC_1,
        }
    }

    /// The other one.
    pub(crate) fn other(self) -> Self {
        match self {
            Kind::Archive => Kind::Spec,
            Kind::Spec => Kind::Archive,
        }
    }

    /// Tells the layouts apart by the first tensor record, which is at `at`.
    ///
    /// An `archive-1` record begins with dtype | rank << 8 and has 0 in the top byte of numel. To `spec-1` these are
    /// the length of a key of 256 bytes or more and a NUL in it, which keys do not have. So no file with a tensor is
    /// valid in both.
    pub(crate) fn decide(source: &dyn Source, at: u64) -> Result<Self> {
        let mut r = Reader::over(source, at..source.len(), super::TRUNCATED);
        let [_, rank, reserved @ ..] = r.array::<4>("the first tensor record")?;
        if reserved != [0; 2] || !(1..=6).contains(&rank) {
            return Ok(Kind::Spec);
        }
        match r.u64("the first tensor record")? >> 56 {
            0 => Ok(Kind::Archive),
            _ => Ok(Kind::Spec),
        }
    }

    /// Where `count` tensor records from `at` on end, going by their lengths alone; `None` if not in the file.
    pub(crate) fn end_of_records(self, source: &dyn Source, at: u64, count: u32) -> Option<u64> {
        let mut r = Reader::over(source, at..source.len(), super::TRUNCATED);
        for _ in 0..count {
            match self {
                Kind::Spec => {
                    let len = r.u32("").ok()?;
                    r.skip(u64::from(len) + SpecTensor::MIN - 4, "").ok()?;
                }
                Kind::Archive => {
                    let [_, rank, ..] = r.u32("").ok()?.to_le_bytes();
                    r.skip(16 + 8 * u64::from(rank), "").ok()?;
                    let len = r.u32("").ok()?;
                    r.skip(len.into(), "").ok()?;
                }
            }
        }
        Some(r.pos())
    }
}

/// A tensor record of `spec-1`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpecTensor {
    /// The tensor's name.
    pub(crate) key: String,
    /// The sizes; those that are not used are 0 (as written here) or 1.
    pub(crate) shape: [i64; 6],
    /// The type of the elements.
    pub(crate) dtype: DType,
    /// Bytes of the data.
    pub(crate) data_length: u64,
    /// Where the data begins in the file.
    pub(crate) data_offset: u64,
}

impl SpecTensor {
    /// Bytes of the shortest record.
    pub(crate) const MIN: u64 = 73;

    /// Reads a record.
    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let key = sized_key(r, "a tensor's key")?;
        let record = Self::parse_behind(r).map_err(|error| error.in_tensor(&key))?;
        Ok(Self { key, ..record })
    }

    /// Reads what follows the key.
    fn parse_behind(r: &mut Reader<'_>) -> Result<Self> {
        let mut shape = [0; 6];
        for slot in &mut shape {
            *slot = r.i64("a tensor's shape")?;
        }
        let at = r.pos();
        let number = r.u8("a tensor's dtype")?;
        let record = Self {
            key: String::new(),
            shape,
            dtype: dtype(tables::V1, number.into(), at..at + 1)?,
            data_length: r.u64("a tensor's data_length")?,
            data_offset: r.u64("a tensor's data_offset")?,
        };
        reserved(r, "a tensor's aux")?;
        Ok(record)
    }

    /// Writes the record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend(as_u32(self.key.len(), "bytes of a key")?.to_le_bytes());
        out.extend(self.key.as_bytes());
        for slot in self.shape {
            out.extend(slot.to_le_bytes());
        }
        out.push(dtype_number(tables::V1, self.dtype)?);
        out.extend(self.data_length.to_le_bytes());
        out.extend(self.data_offset.to_le_bytes());
        out.extend(0u32.to_le_bytes());
        Ok(())
    }

    /// The dimensions that the slots and the length mean.
    pub(crate) fn dimensions(&self) -> Result<Vec<u64>> {
        shape::from_slots(&self.shape, self.dtype, self.data_length)
            .map_err(|error| error.in_tensor(&self.key))
    }
}

/// A tensor record of `archive-1`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ArchiveTensor {
    /// The type of the elements.
    pub(crate) dtype: DType,
    /// Elements: the product of the shape.
    pub(crate) numel: u64,
    /// Where the data begins in the file.
    pub(crate) offset: u64,
    /// One to six sizes above 0.
    pub(crate) shape: Shape,
    /// The tensor's name.
    pub(crate) key: String,
}

impl ArchiveTensor {
    /// Bytes of the shortest record: one dimension, a key of one byte.
    pub(crate) const MIN: u64 = 33;

    /// Reads a record.
    pub(crate) fn parse(r: &mut Reader<'_>) -> Result<Self> {
        let at = r.pos();
        let [number, rank, reserved @ ..] = r.array::<4>("a tensor's dtype and rank")?;
        if reserved != [0; 2] {
            let message = format!("reserved bits beside the rank are {reserved:02x?}, not 0");
            return Err(Error::malformed("mag.reserved", message).at(at + 2..at + 4));
        }
        if !(1..=6).contains(&rank) {
            let message = format!("rank {rank}, the archive layout has 1 to 6");
            return Err(Error::malformed("mag.rank", message).at(at + 1..at + 2));
        }
        let dtype = dtype(tables::V1, number.into(), at..at + 1)?;
        let numel = r.u64("a tensor's numel")?;
        let offset = r.u64("a tensor's offset")?;
        let mut shape = Shape::new();
        for _ in 0..rank {
            shape.push(r.u64("a tensor's shape")?);
        }
        let key_at = r.pos();
        let key = sized_key(r, "a tensor's key")?;
        if key.is_empty() {
            let message = "a tensor's key is empty, which the archive layout does not allow";
            return Err(Error::malformed("mag.name", message).at(key_at..key_at + 4));
        }
        let record = Self {
            dtype,
            numel,
            offset,
            shape,
            key,
        };
        match record.check() {
            Ok(()) => Ok(record),
            Err(error) => Err(error.at(at..r.pos()).in_tensor(&record.key)),
        }
    }

    fn check(&self) -> Result<()> {
        let Self { shape, numel, .. } = self;
        if shape.contains(&0) {
            let message =
                format!("a size of 0 in {shape:?}, which the archive layout does not allow");
            return Err(Error::malformed("mag.shape", message));
        }
        shape::bytes(shape, self.dtype)?;
        match shape::elements(shape) {
            Some(elements) if elements == *numel => Ok(()),
            elements => {
                let elements = elements.unwrap_or(0);
                let mut message =
                    format!("numel is {numel}, shape {shape:?} has {elements} elements");
                // What the builds of 28 August 2025 put there.
                let padded = self
                    .dtype
                    .bytes_for(elements)
                    .and_then(|bytes| bytes.checked_next_multiple_of(64));
                if padded == Some(*numel) {
                    message.push_str("; written by an unreleased development build?");
                }
                Err(Error::malformed("mag.length", message))
            }
        }
    }

    /// Writes the record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let rank = u8::try_from(self.shape.len()).map_err(|cause| {
            Error::argument(format!("{} dimensions are too many", self.shape.len())).because(cause)
        })?;
        out.extend([dtype_number(tables::V1, self.dtype)?, rank, 0, 0]);
        out.extend(self.numel.to_le_bytes());
        out.extend(self.offset.to_le_bytes());
        for size in &self.shape {
            out.extend(size.to_le_bytes());
        }
        out.extend(as_u32(self.key.len(), "bytes of a key")?.to_le_bytes());
        out.extend(self.key.as_bytes());
        Ok(())
    }
}

fn sized_key(r: &mut Reader<'_>, field: &'static str) -> Result<String> {
    let at = r.pos();
    let len = r.u32("key_length")?;
    let is_too_long = len as usize > MAX_KEY;
    if u64::from(len) > r.remaining() {
        // Says that the file is too short.
        r.skip(len.into(), field).map_err(|error| {
            if is_too_long {
                error.adding(&format!("; keys have at most {MAX_KEY} bytes"))
            } else {
                error
            }
        })?;
    }
    if is_too_long {
        let message = format!("{field} has {len} bytes; keys have at most {MAX_KEY} bytes");
        return Err(Error::malformed("mag.name", message).at(at..at + 4));
    }
    key(r, len.into(), field)
}

fn reserved(r: &mut Reader<'_>, field: &'static str) -> Result<()> {
    let at = r.pos();
    match r.u32(field)? {
        0 => Ok(()),
        aux => {
            let message = format!("{field} is {aux:#x}; it is reserved and must be 0");
            Err(Error::malformed("mag.reserved", message).at(at..at + 4))
        }
    }
}
