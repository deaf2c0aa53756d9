//! Metadata as it is on disk: keys, types and values.

use bytes::Bytes;

use super::{Dialect, Fields, TRUNCATED};
use crate::error::{Error, Result};
use crate::formats::gguf::ALIGNMENT;
use crate::io::Reader;
use crate::model::{Elsewhere, List, Load, Metadata, Packer, SourceId, Value, ValueKind};
use crate::prelude::*;

/// Arrays in arrays, at most.
const MAX_DEPTH: usize = 16;

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
pub(in crate::formats::gguf) fn kind_id(kind: ValueKind) -> Option<u32> {
    KINDS
        .iter()
        .find(|(_, known, _)| *known == kind)
        .map(|(id, ..)| *id)
}

/// Metadata, and what ggml would refuse in it.
pub(in crate::formats::gguf) struct Pairs {
    pub(in crate::formats::gguf) metadata: Metadata,
    /// Where the first array of arrays is.
    pub(in crate::formats::gguf) nested: Option<u64>,
    /// Where the alignment is said.
    pub(in crate::formats::gguf) alignment: Option<Range<u64>>,
}

impl Fields<'_> {
    /// Reads the metadata of the file `id`.
    pub(in crate::formats::gguf) fn pairs(&mut self, count: u64, id: SourceId) -> Result<Pairs> {
        let least = self.len_size() + 1 + 4 + 1;
        let count = self.r.count(count, least, "kv_count")?;
        let mut pairs = Pairs {
            metadata: Metadata::new(),
            nested: None,
            alignment: None,
        };
        let mut places = Vec::new();
        for _ in 0..count {
            push_tight(&mut places, self.r.pos());
            let key = self.key()?;
            let at = self.r.pos();
            let value = self
                .typed_value(id, at, &mut pairs.nested)
                .map_err(|error| error.adding(&format!(" (metadata {key:?})")))?;
            if key == ALIGNMENT {
                pairs.alignment = Some(at..self.r.pos());
            }
            pairs.metadata.push(key, value);
            self.check_limit(self.r.pos())?;
        }
        check_duplicates(&pairs.metadata, &places)?;
        Ok(pairs)
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
        let len = self.text_len("the length of a key")?;
        if len == 0 {
            return Err(Error::malformed("gguf.key", "a key is empty").at(at..self.r.pos()));
        }
        self.r.text(len, "gguf.key", "a key")
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
            return Ok(Value::Elsewhere(Box::new(list)));
        }
        let mut again = Fields {
            r: Reader::over(self.source, range, TRUNCATED),
            source: self.source,
            dialect: self.dialect,
            limit: self.limit,
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
    fn items(&mut self, kind: (u32, ValueKind, u64), count: u64) -> Result<List> {
        let mut packer = Packer::list();
        self.pack(kind, count, &mut packer)?;
        Ok(packer.into_list())
    }

    fn pack(&mut self, kind: (u32, ValueKind, u64), count: u64, packer: &mut Packer) -> Result<()> {
        for _ in 0..count {
            match kind.0 {
                ARRAY => match self.array_head()? {
                    (kind, 0) => packer.value(&Value::Empty(kind.1)),
                    (kind, count) => {
                        packer.open_list();
                        self.pack(kind, count, packer)?;
                        packer.close();
                    }
                },
                _ => packer.value(&self.value(kind)?),
            }
        }
        Ok(())
    }

    /// A value that is not an array.
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
                let len = self.text_len("the length of a string")?;
                let bytes = self.r.take(len, "a string")?;
                match core::str::from_utf8(&bytes) {
                    Ok(text) => Value::Str(text.to_owned()),
                    // Tokenizers have pieces of characters. A copy, so that the window can go.
                    Err(_) => Value::Bytes(Bytes::copy_from_slice(&bytes)),
                }
            }
        })
    }
}

impl Load for Dialect {
    fn load(&self, list: &Elsewhere, bytes: &Bytes) -> Result<List> {
        let row = KINDS.iter().find(|(_, kind, _)| *kind == list.kind);
        let kind = row.copied().ok_or_else(|| {
            Error::argument(format!("GGUF has no arrays of {}", list.kind.name()))
        })?;
        let mut fields = Fields {
            r: Reader::new(bytes, TRUNCATED),
            source: bytes,
            dialect: *self,
            limit: u64::MAX,
        };
        fields.items(kind, list.count)
    }
}

fn not_bool(byte: u8, at: u64) -> Error {
    let message = format!("a bool is stored as byte {byte}, expected 0 or 1");
    Error::malformed("gguf.bool", message).at(at..at + 1)
}

fn check_duplicates(metadata: &Metadata, places: &[u64]) -> Result<()> {
    let mut seen = LookupMap::with_capacity(metadata.len());
    for ((key, _), &at) in metadata.iter().zip(places) {
        if seen.insert(key, ()).is_some() {
            let message = format!("the key {key:?} appears twice");
            return Err(Error::malformed("gguf.duplicate-key", message).at(at..at + 1));
        }
    }
    Ok(())
}
