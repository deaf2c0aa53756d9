//! The fields of a file as they are on disk, in both byte orders and with both widths of lengths.

use bytes::Bytes;

use super::{ALIGNMENT, types};
use crate::error::{Error, Result};
use crate::io::{Reader, Source};
use crate::model::{DType, Elsewhere, Endian, Load, Metadata, SourceId, Value, ValueKind};
use crate::prelude::*;

/// The rule under which missing bytes are reported.
const TRUNCATED: &str = "gguf.truncated";

pub(super) const MAGIC: &[u8; 4] = b"GGUF";

/// Arrays in arrays, at most.
const MAX_DEPTH: usize = 16;
/// Dimensions, at most. ggml takes 4.
pub(super) const MAX_RANK: u32 = 8;
/// Bytes of a tensor's name. ggml takes 63.
const MAX_NAME: u64 = 65_535;
/// Arrays with more entries are not loaded.
const LONG: u64 = 64;
/// Nor are arrays of arrays with more entries in all.
const LONG_NESTED: u64 = 4096;

const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// The types of values: number, kind, bytes. Strings and arrays have no fixed size.
const KINDS: &[(u32, ValueKind, u64)] = &[
    (0, ValueKind::U8, 1),
    (1, ValueKind::I8, 1),
    (2, ValueKind::U16, 2),
    (3, ValueKind::I16, 2),
    (4, ValueKind::U32, 4),
    (5, ValueKind::I32, 4),
    (6, ValueKind::F32, 4),
    (7, ValueKind::Bool, 1),
    (STRING, ValueKind::Str, 0),
    (ARRAY, ValueKind::List, 0),
    (10, ValueKind::U64, 8),
    (11, ValueKind::I64, 8),
    (12, ValueKind::F64, 8),
];

/// The number of a kind of values.
pub(super) fn kind_id(kind: ValueKind) -> Option<u32> {
    KINDS
        .iter()
        .find(|(_, known, _)| *known == kind)
        .map(|(id, ..)| *id)
}

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
    pub(super) shape: Vec<u64>,
    pub(super) dtype: DType,
    pub(super) offset: u64,
    /// Where the record is.
    pub(super) at: Range<u64>,
}

/// Metadata, and what ggml would refuse in it.
pub(super) struct Pairs {
    pub(super) metadata: Metadata,
    /// Where the first array of arrays is.
    pub(super) nested: Option<u64>,
    /// Where the alignment is said.
    pub(super) alignment: Option<Range<u64>>,
}

/// Reads fields of one file.
pub(super) struct Fields<'a> {
    pub(super) r: Reader<'a>,
    source: &'a dyn Source,
    dialect: Dialect,
}

impl<'a> Fields<'a> {
    /// Reads the header, and goes on behind it.
    pub(super) fn begin(source: &'a dyn Source) -> Result<(Self, Header)> {
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
        let mut fields = Self { r, source, dialect };
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

    /// Reads the metadata of the file `id`.
    pub(super) fn pairs(&mut self, count: u64, id: SourceId, limit: u64) -> Result<Pairs> {
        let least = self.len_size() + 1 + 4 + 1;
        let count = self.r.count(count, least, "kv_count")?;
        let mut pairs = Pairs {
            metadata: Metadata::new(),
            nested: None,
            alignment: None,
        };
        let mut places = Vec::new();
        for _ in 0..count {
            places.push(self.r.pos());
            let key = self.key()?;
            let at = self.r.pos();
            let value = self
                .typed_value(id, at, &mut pairs.nested)
                .map_err(|error| error.adding(&format!(" (metadata {key:?})")))?;
            if key == ALIGNMENT {
                pairs.alignment = Some(at..self.r.pos());
            }
            pairs.metadata.push(key, value);
            self.check_limit(limit)?;
        }
        check_duplicates(&pairs.metadata, &places)?;
        Ok(pairs)
    }

    /// Reads the records of the tensors.
    pub(super) fn tensors(&mut self, count: u64, limit: u64) -> Result<Vec<TensorRecord>> {
        let least = self.len_size() + 4 + 4 + 8;
        let count = self.r.count(count, least, "tensor_count")?;
        let mut records = Vec::new();
        for _ in 0..count {
            records.push(self.tensor()?);
            self.check_limit(limit)?;
        }
        Ok(records)
    }

    fn check_limit(&self, limit: u64) -> Result<()> {
        let at = self.r.pos();
        if at > limit {
            let message = format!("the header has more than {limit} bytes, the limit for headers");
            let error = Error::limit("gguf.limit", message).at(0..at);
            return Err(error.raised_by("header_bytes"));
        }
        Ok(())
    }

    /// A value with its type in front of it, at `at`.
    fn typed_value(&mut self, id: SourceId, at: u64, nested: &mut Option<u64>) -> Result<Value> {
        let kind = self.kind()?;
        match kind.0 {
            ARRAY => self.array(id, at, nested),
            _ => self.value(kind),
        }
    }

    fn key(&mut self) -> Result<String> {
        let at = self.r.pos();
        let len = self.len("the length of a key")?;
        if len == 0 {
            return Err(Error::malformed("gguf.key", "a key is empty").at(at..self.r.pos()));
        }
        self.r.text(len, "gguf.key", "a key")
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

    fn shape_and_type(&mut self) -> Result<(Vec<u64>, DType)> {
        let at = self.r.pos();
        let n_dims = self.u32("n_dims")?;
        if n_dims > MAX_RANK {
            let message = format!("{n_dims} dimensions, at most {MAX_RANK} are read");
            return Err(Error::malformed("gguf.rank", message).at(at..at + 4));
        }
        let mut shape = Vec::new();
        for _ in 0..n_dims {
            shape.push(self.len("a dimension")?);
        }
        shape.reverse();
        let at = self.r.pos();
        let id = self.u32("the type of a tensor")?;
        let dtype =
            types::from_id(id).map_err(|why| Error::malformed("gguf.type", why).at(at..at + 4))?;
        Ok((shape, dtype))
    }

    /// The number of a type of values, with its kind and size.
    fn kind(&mut self) -> Result<(u32, ValueKind, u64)> {
        let at = self.r.pos();
        let id = self.u32("the type of a value")?;
        let row = KINDS.iter().find(|(known, ..)| *known == id);
        row.copied().ok_or_else(|| {
            let message = format!("values of type {id}, 0 to 12 are known");
            Error::malformed("gguf.value-type", message).at(at..at + 4)
        })
    }

    /// An array of metadata: walked to its end, and loaded if it is short.
    fn array(&mut self, id: SourceId, at: u64, nested: &mut Option<u64>) -> Result<Value> {
        let (kind, count) = self.array_head()?;
        if kind.0 == ARRAY && nested.is_none() {
            *nested = Some(at);
        }
        let begin = self.r.pos();
        let mut entries = 0;
        self.walk(kind, count, 1, &mut entries)?;
        let range = begin..self.r.pos();
        if count == 0 {
            return Ok(Value::Empty(kind.1));
        }
        let long = match kind.0 {
            ARRAY => count > LONG || entries > LONG_NESTED,
            _ => count > LONG,
        };
        if long {
            let loader = Arc::new(self.dialect);
            let list = Elsewhere::new(kind.1, count, id, range, loader);
            return Ok(Value::Elsewhere(list));
        }
        let mut again = Fields {
            r: Reader::over(self.source, range, TRUNCATED),
            source: self.source,
            dialect: self.dialect,
        };
        Ok(Value::List(again.items(kind, count)?))
    }

    fn array_head(&mut self) -> Result<((u32, ValueKind, u64), u64)> {
        let kind = self.kind()?;
        let count = self.len("the length of an array")?;
        let least = match kind.0 {
            STRING => self.len_size(),
            ARRAY => 4 + self.len_size(),
            _ => kind.2,
        };
        self.r.count(count, least, "the length of an array")?;
        Ok((kind, count))
    }

    /// Goes to the end of an array's entries, and counts all that are in it.
    fn walk(
        &mut self,
        kind: (u32, ValueKind, u64),
        count: u64,
        depth: usize,
        entries: &mut u64,
    ) -> Result<()> {
        if depth > MAX_DEPTH {
            let message = format!("arrays in arrays, deeper than {MAX_DEPTH}");
            let at = self.r.pos();
            return Err(Error::malformed("gguf.depth", message).at(at..at));
        }
        *entries = entries.saturating_add(count);
        match kind.1 {
            ValueKind::Str => {
                for _ in 0..count {
                    let len = self.len("the length of a string")?;
                    self.r.skip(len, "a string")?;
                }
            }
            ValueKind::List => {
                for _ in 0..count {
                    let (kind, count) = self.array_head()?;
                    self.walk(kind, count, depth + 1, entries)?;
                }
            }
            ValueKind::Bool => self.walk_bools(count)?,
            _ => {
                // `array_head` has compared the product with the bytes that are left.
                self.r.skip(count.saturating_mul(kind.2), "an array")?;
            }
        }
        Ok(())
    }

    fn walk_bools(&mut self, mut count: u64) -> Result<()> {
        while count > 0 {
            let at = self.r.pos();
            let bytes = self.r.take(count.min(4096), "an array of bools")?;
            count -= bytes.len() as u64;
            if let Some(place) = bytes.iter().position(|&byte| byte > 1) {
                let byte = bytes.get(place).copied().unwrap_or_default();
                return Err(not_bool(byte, at + place as u64));
            }
        }
        Ok(())
    }

    /// The entries of an array that was walked before.
    fn items(&mut self, kind: (u32, ValueKind, u64), count: u64) -> Result<Vec<Value>> {
        let mut items = Vec::new();
        for _ in 0..count {
            let item = match kind.0 {
                ARRAY => {
                    let (kind, count) = self.array_head()?;
                    match count {
                        0 => Value::Empty(kind.1),
                        _ => Value::List(self.items(kind, count)?),
                    }
                }
                _ => self.value(kind)?,
            };
            items.push(item);
        }
        Ok(items)
    }

    /// A value that is no array.
    fn value(&mut self, kind: (u32, ValueKind, u64)) -> Result<Value> {
        const VALUE: &str = "a value";
        Ok(match kind.1 {
            ValueKind::U8 => Value::U8(self.r.u8(VALUE)?),
            ValueKind::I8 => Value::I8(self.r.u8(VALUE)?.cast_signed()),
            ValueKind::U16 => Value::U16(self.u16(VALUE)?),
            ValueKind::I16 => Value::I16(self.u16(VALUE)?.cast_signed()),
            ValueKind::U32 => Value::U32(self.u32(VALUE)?),
            ValueKind::I32 => Value::I32(self.u32(VALUE)?.cast_signed()),
            ValueKind::U64 => Value::U64(self.u64(VALUE)?),
            ValueKind::I64 => Value::I64(self.u64(VALUE)?.cast_signed()),
            ValueKind::F32 => Value::F32(f32::from_bits(self.u32(VALUE)?)),
            ValueKind::F64 => Value::F64(f64::from_bits(self.u64(VALUE)?)),
            ValueKind::Bool => {
                let at = self.r.pos();
                match self.r.u8(VALUE)? {
                    0 => Value::Bool(false),
                    1 => Value::Bool(true),
                    byte => return Err(not_bool(byte, at)),
                }
            }
            ValueKind::Str | ValueKind::List => {
                let len = self.len("the length of a string")?;
                let bytes = self.r.take(len, "a string")?;
                match core::str::from_utf8(&bytes) {
                    Ok(text) => Value::Str(text.to_owned()),
                    // Tokenizers have pieces of characters. A copy, so that the window can go.
                    Err(_) => Value::Bytes(Bytes::copy_from_slice(&bytes)),
                }
            }
        })
    }

    fn len_size(&self) -> u64 {
        if self.dialect.wide { 8 } else { 4 }
    }

    fn len(&mut self, field: &'static str) -> Result<u64> {
        match self.dialect.wide {
            true => self.u64(field),
            false => self.u32(field).map(u64::from),
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

impl Load for Dialect {
    fn load(&self, list: &Elsewhere, bytes: &Bytes) -> Result<Vec<Value>> {
        let row = KINDS.iter().find(|(_, kind, _)| *kind == list.kind);
        let kind = row.copied().ok_or_else(|| {
            Error::argument(format!("GGUF has no arrays of {}", list.kind.name()))
        })?;
        let mut fields = Fields {
            r: Reader::new(bytes, TRUNCATED),
            source: bytes,
            dialect: *self,
        };
        fields.items(kind, list.count)
    }
}

fn not_bool(byte: u8, at: u64) -> Error {
    let message = format!("a bool is stored as byte {byte}, 0 and 1 are its values");
    Error::malformed("gguf.bool", message).at(at..at + 1)
}

fn check_duplicates(metadata: &Metadata, places: &[u64]) -> Result<()> {
    let mut seen = LookupMap::with_capacity(metadata.len());
    for ((key, _), &at) in metadata.iter().zip(places) {
        if seen.insert(key, ()).is_some() {
            let message = format!("the key {key:?} is there twice");
            return Err(Error::malformed("gguf.duplicate-key", message).at(at..at + 1));
        }
    }
    Ok(())
}
