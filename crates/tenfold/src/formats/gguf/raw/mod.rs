//! The fields of a file as they are on disk, in both byte orders and with both widths of lengths.

mod values;

pub(super) use values::kind_id;

use super::types;
use crate::error::{Error, Result};
use crate::io::{Reader, Source};
use crate::model::{DType, Endian, Shape};
use crate::prelude::*;

/// The rule under which missing bytes are reported.
const TRUNCATED: &str = "gguf.truncated";

pub(super) const MAGIC: &[u8; 4] = b"GGUF";

/// Dimensions, at most. ggml takes 4.
pub(super) const MAX_RANK: u32 = 8;
/// Bytes of a tensor's name. ggml takes 63.
const MAX_NAME: u64 = 65_535;

/// How numbers and lengths are stored in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    pub(super) endian: Endian,
    /// Lengths and dims have 64 bits; in version 1 they have 32.
    pub(super) wide: bool,
}

/// What a file begins with.
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) dialect: Dialect,
    pub(super) tensor_count: u64,
    pub(super) kv_count: u64,
}

/// A tensor as the file describes it, with the dims in the order of shapes.
pub(super) struct TensorRecord {
    pub(super) name: String,
    pub(super) shape: Shape,
    /// Its type, or why there is none: that loses only this tensor.
    pub(super) dtype: Result<DType>,
    pub(super) offset: u64,
    /// Where the record is.
    pub(super) at: Range<u64>,
}

/// Reads fields of one file.
pub(super) struct Fields<'a> {
    pub(super) r: Reader<'a>,
    source: &'a dyn Source,
    dialect: Dialect,
    /// Bytes that may be read.
    limit: u64,
}

impl<'a> Fields<'a> {
    /// Reads the header, and goes on after it, up to `limit`.
    pub(super) fn begin(source: &'a dyn Source, limit: u64) -> Result<(Self, Header)> {
        let mut r = Reader::new(source, TRUNCATED);
        let magic = r.array::<4>("the magic")?;
        if magic != *MAGIC {
            let message = format!("begins with {magic:02x?}, not with \"GGUF\"");
            return Err(Error::malformed("gguf.magic", message).at(0..4));
        }
        let mut version = r.u32("the version")?;
        let mut endian = Endian::Little;
        if version & 0xffff == 0 {
            version = version.swap_bytes();
            endian = Endian::Big;
        }
        if !(1..=3).contains(&version) {
            let message = format!("version {version}, 1 to 3 are known");
            return Err(Error::malformed("gguf.version", message).at(4..8));
        }
        let dialect = Dialect {
            endian,
            wide: version > 1,
        };
        let mut fields = Self {
            r,
            source,
            dialect,
            limit,
        };
        let tensor_count = fields.len("tensor_count")?;
        let kv_count = fields.len("kv_count")?;
        let header = Header {
            version,
            dialect,
            tensor_count,
            kv_count,
        };
        Ok((fields, header))
    }

    /// Reads the records of the tensors.
    pub(super) fn tensors(&mut self, count: u64) -> Result<Vec<TensorRecord>> {
        let least = self.len_size() + 4 + 4 + 8;
        let count = self.r.count(count, least, "tensor_count")?;
        let mut records = Vec::new();
        for _ in 0..count {
            push_tight(&mut records, self.tensor()?);
            self.check_limit(self.r.pos())?;
        }
        Ok(records)
    }

    /// The length of some text that follows. What would go past the limit is not read; what would go past the end of the
    /// file is for the reader to refuse.
    fn text_len(&mut self, field: &'static str) -> Result<u64> {
        let len = self.len(field)?;
        if len <= self.r.remaining() {
            self.check_limit(self.r.pos() + len)?;
        }
        Ok(len)
    }

    fn check_limit(&self, end: u64) -> Result<()> {
        let limit = self.limit;
        if end > limit {
            let message = format!("the header has more than {limit} bytes, the limit for headers");
            let error = Error::limit("gguf.limit", message).at(0..end);
            return Err(error.raised_by("header_bytes", None));
        }
        Ok(())
    }

    fn tensor(&mut self) -> Result<TensorRecord> {
        let at = self.r.pos();
        let len = self.len("the length of a tensor's name")?;
        if len > MAX_NAME {
            let message = format!("a name of {len} bytes, at most {MAX_NAME} are read");
            return Err(Error::malformed("gguf.name", message).at(at..self.r.pos()));
        }
        let name = self.r.text(len, "gguf.name", "a tensor's name")?;
        let blame = |error: Error| error.in_tensor(&name);
        let (shape, dtype) = self.shape_and_type().map_err(blame)?;
        let offset = self.u64("the offset of a tensor").map_err(blame)?;
        Ok(TensorRecord {
            name,
            shape,
            dtype,
            offset,
            at: at..self.r.pos(),
        })
    }

    fn shape_and_type(&mut self) -> Result<(Shape, Result<DType>)> {
        let at = self.r.pos();
        let n_dims = self.u32("n_dims")?;
        if n_dims > MAX_RANK {
            let message = format!("{n_dims} dimensions, at most {MAX_RANK} are read");
            return Err(Error::malformed("gguf.rank", message).at(at..at + 4));
        }
        let mut shape = Shape::new();
        for _ in 0..n_dims {
            shape.push(self.len("a dimension")?);
        }
        shape.reverse();
        let at = self.r.pos();
        let id = self.u32("the type of a tensor")?;
        let dtype =
            types::from_id(id).map_err(|why| Error::malformed("gguf.type", why).at(at..at + 4));
        Ok((shape, dtype))
    }

    fn len_size(&self) -> u64 {
        if self.dialect.wide { 8 } else { 4 }
    }

    fn len(&mut self, field: &'static str) -> Result<u64> {
        if self.dialect.wide {
            self.u64(field)
        } else {
            self.u32(field).map(u64::from)
        }
    }

    fn u16(&mut self, field: &'static str) -> Result<u16> {
        let bytes = self.r.array(field)?;
        Ok(match self.dialect.endian {
            Endian::Little => u16::from_le_bytes(bytes),
            Endian::Big => u16::from_be_bytes(bytes),
        })
    }

    fn u32(&mut self, field: &'static str) -> Result<u32> {
        let bytes = self.r.array(field)?;
        Ok(match self.dialect.endian {
            Endian::Little => u32::from_le_bytes(bytes),
            Endian::Big => u32::from_be_bytes(bytes),
        })
    }

    fn u64(&mut self, field: &'static str) -> Result<u64> {
        let bytes = self.r.array(field)?;
        Ok(match self.dialect.endian {
            Endian::Little => u64::from_le_bytes(bytes),
            Endian::Big => u64::from_be_bytes(bytes),
        })
    }
}
