//! Walks through the object: arrays and metadata by their paths. Bytes of arrays are passed over.

use super::leaves::{self, Array};
use super::{CHUNKED, MAX_DEPTH};
use crate::error::{Error, Result};
use crate::format::Context;
use crate::io::Source;
use crate::model::{Map, Metadata, Shape, SourceId, TensorInfo, Value};
use crate::prelude::*;
use crate::wire::msgpack::{Decoder, Item, Rules};

pub(super) const RULES: Rules = Rules {
    truncated: "flax.truncated",
    kind: "flax.kind",
    utf8: "flax.utf8",
};

/// What may be made of a file of any length, and for every byte of it that is no array's.
const FREE: u64 = 12 << 20;
const FOR_A_BYTE: u64 = 16;
/// What is made for a tensor and for a value, at most, beside their names: lists that grow are there twice.
const TENSOR: u64 = 560;
const VALUE: u64 = 160;

/// What a file holds, as far as it has been walked through.
pub(super) struct Walk<'a> {
    d: Decoder<'a>,
    source: &'a dyn Source,
    shared: Arc<dyn Source>,
    limits: &'a crate::io::Limits,
    /// The keys on the way, joined by dots.
    path: String,
    depth: usize,
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) metadata: Metadata,
    /// What was made so far, and bytes that were passed over for it.
    made: u64,
    skipped: u64,
}

/// A place that was walked to, and what had been found until then.
struct Mark {
    at: u64,
    tensors: usize,
    metadata: usize,
    skipped: u64,
}

impl<'a> Walk<'a> {
    pub(super) fn new(cx: &Context<'a>) -> Result<Self> {
        let shared = cx.open(SourceId::MAIN);
        let shared = shared.ok_or_else(|| Error::argument("a file that is gone"))?;
        Ok(Self {
            d: Decoder::new(cx.source(), RULES),
            source: cx.source(),
            shared,
            limits: cx.limits(),
            path: String::new(),
            depth: 0,
            tensors: Vec::new(),
            metadata: Metadata::new(),
            made: 0,
            skipped: 0,
        })
    }

    /// The whole file; `stem` is the name of an array that is all of it.
    pub(super) fn file(&mut self, stem: &str) -> Result<()> {
        let at = self.d.pos();
        match self.d.item("the object")? {
            Item::Map(count) => self.map(count, at)?,
            Item::Array(count) => self.array(count)?,
            item @ Item::Ext { .. } => {
                self.path = stem.to_owned();
                self.leaf(item, at)?;
                if let [only] = self.tensors.as_mut_slice() {
                    only.set_unnamed(true);
                }
            }
            other => {
                let message = format!("the file is {}, expected a map", other.what());
                return Err(Error::malformed("flax.root", message).at(at..self.d.pos()));
            }
        }
        let (end, len) = (self.d.pos(), self.source.len());
        if end < len {
            let message = format!("{} bytes follow the object", len - end);
            return Err(Error::malformed("flax.trailing", message).at(end..len));
        }
        self.unique_names()
    }

    fn value(&mut self) -> Result<()> {
        let at = self.d.pos();
        match self.d.item("a value")? {
            Item::Map(count) => self.map(count, at),
            Item::Array(count) => self.array(count),
            other => self.leaf(other, at),
        }
    }

    /// Goes a level deeper.
    fn deeper(&mut self, walk: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.depth += 1;
        let limit = MAX_DEPTH.min(self.limits.depth);
        if self.depth > limit {
            let message = format!("more than {limit} levels of maps and arrays");
            let mut error = Error::limit("flax.depth", message).at(self.d.pos()..self.d.pos());
            if limit < MAX_DEPTH {
                error = error.raised_by("depth", None);
            }
            return Err(error);
        }
        let done = walk(self);
        self.depth -= 1;
        done
    }

    /// Something under a key.
    fn under(&mut self, key: &str, walk: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let len = self.path.len();
        if self.depth > 1 {
            self.path.push('.');
        }
        self.path.push_str(key);
        let done = walk(self);
        self.path.truncate(len);
        done
    }

    fn array(&mut self, count: u32) -> Result<()> {
        let count = self.d.count(count, 1, "an array")?;
        if count == 0 {
            return self.note(Value::List(crate::model::List::new()));
        }
        self.deeper(|walk| {
            for place in 0..count {
                walk.under(&place.to_string(), Self::value)?;
            }
            Ok(())
        })
    }

    fn map(&mut self, count: u32, at: u64) -> Result<()> {
        let count = self.d.count(count, 2, "a map")?;
        if count == 0 {
            // The file itself says nothing by it.
            return if self.depth == 0 {
                Ok(())
            } else {
                self.note(Value::Map(Map::new()))
            };
        }
        let mut keys = Keys::default();
        let begin = self.mark();
        self.deeper(|walk| {
            for _ in 0..count {
                let key = walk.key()?;
                if key == CHUNKED {
                    if count != 3 {
                        let message =
                            format!("an array in chunks has three keys, and this one has {count}");
                        return Err(Error::malformed("flax.chunks", message).at(at..walk.d.pos()));
                    }
                    // What came before the mark was taken for arrays and values of their own.
                    walk.go_back(&begin);
                    return walk.chunked(at);
                }
                keys.push(&key);
                walk.make(key.len() as u64 + 8, at)?;
                walk.under(&key, Self::value)?;
            }
            Ok(())
        })?;
        keys.check(at)
    }

    fn key(&mut self) -> Result<String> {
        let at = self.d.pos();
        let text = match self.d.item("a key")? {
            Item::Text(len) => self.d.announced(len, "a key")?,
            Item::Integer(number) => number.to_string(),
            Item::Unsigned(number) => number.to_string(),
            other => {
                let message = format!("a key is {}, expected a str", other.what());
                return Err(Error::malformed("flax.key", message).at(at..self.d.pos()));
            }
        };
        Ok(text)
    }

    /// Where it is, to [go back](Self::go_back) to.
    fn mark(&self) -> Mark {
        Mark {
            at: self.d.pos(),
            tensors: self.tensors.len(),
            metadata: self.metadata.len(),
            skipped: self.skipped,
        }
    }

    fn go_back(&mut self, to: &Mark) {
        self.d.go_to(to.at);
        self.tensors.truncate(to.tensors);
        self.metadata.truncate(to.metadata);
        self.skipped = to.skipped;
    }

    /// An array in chunks: its three keys, in any order.
    fn chunked(&mut self, at: u64) -> Result<()> {
        let refuse = |message: &str, end: u64| {
            let message = format!("an array in chunks: {message}");
            Err(Error::malformed("flax.chunks", message).at(at..end))
        };
        let (mut is_marked, mut shape, mut chunks) = (false, None, None);
        for _ in 0..3 {
            match self.key()?.as_str() {
                CHUNKED if !is_marked => {
                    is_marked = self.d.item("a mark")? == Item::Bool(true);
                    if !is_marked {
                        return refuse("its mark is not true", self.d.pos());
                    }
                }
                "shape" if shape.is_none() => shape = Some(self.numbered(Self::dimension)?),
                "chunks" if chunks.is_none() => chunks = Some(self.numbered(Self::chunk)?),
                key => {
                    let shown = crate::model::brief(key);
                    return refuse(&format!("a key {shown}"), self.d.pos());
                }
            }
        }
        let (Some(dims), Some(chunks)) = (shape, chunks) else {
            return refuse("shape or chunks are missing", self.d.pos());
        };
        if dims.len() > self.limits.rank {
            let message = format!(
                "{} dimensions, the limit is {}",
                dims.len(),
                self.limits.rank
            );
            let error = Error::limit("flax.rank", message).raised_by("rank", dims.len() as u64);
            return Err(error.at(at..self.d.pos()).in_tensor(&self.path));
        }
        let mut shape = Shape::new();
        dims.into_iter().for_each(|dim| shape.push(dim));
        let name = self.path.clone();
        let tensor = leaves::join(name, shape, chunks, &self.shared, self.limits);
        self.push(tensor.map_err(|error| error.in_tensor(&self.path))?, at)
    }

    /// The values under the keys "0", "1" and so on, in the order of the numbers.
    fn numbered<T>(&mut self, read: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let at = self.d.pos();
        let count = match self.d.item("numbered values")? {
            Item::Map(count) => self.d.count(count, 2, "numbered values")?,
            other => {
                let message = format!("{}, expected a map of numbers", other.what());
                return Err(Error::malformed("flax.chunks", message).at(at..self.d.pos()));
            }
        };
        let mut found: Vec<(usize, T)> = Vec::new();
        for _ in 0..count {
            let key = self.key()?;
            let number = key.parse().ok().filter(|number| *number < count);
            let Some(number) = number.filter(|number: &usize| number.to_string() == key) else {
                let shown = crate::model::brief(&key);
                let message = format!("a key {shown}, expected a number below {count}");
                return Err(Error::malformed("flax.chunks", message).at(at..self.d.pos()));
            };
            self.make(TENSOR, at)?;
            found.push((number, read(self)?));
        }
        found.sort_by_key(|(number, _)| *number);
        let mut numbers = found.iter().enumerate();
        if numbers.any(|(place, (number, _))| place != *number) {
            let message = "a number is there twice, and another is missing";
            return Err(Error::malformed("flax.chunks", message).at(at..self.d.pos()));
        }
        Ok(found.into_iter().map(|(_, value)| value).collect())
    }

    fn dimension(&mut self) -> Result<u64> {
        let at = self.d.pos();
        match self.d.item("a dimension")? {
            Item::Integer(dim @ 0..) => Ok(dim.unsigned_abs()),
            other => {
                let message = format!("a dimension of {}, expected a number from 0", other.what());
                Err(Error::malformed("flax.shape", message).at(at..self.d.pos()))
            }
        }
    }

    fn chunk(&mut self) -> Result<Array> {
        let at = self.d.pos();
        let Item::Ext { kind: 1, len } = self.d.item("a chunk")? else {
            let message = "a chunk that is no array";
            return Err(Error::malformed("flax.chunks", message).at(at..self.d.pos()));
        };
        let array = Array::parse(&mut self.d, len, self.limits)?;
        self.skipped += array.data.end - array.data.start;
        if array.shape.len() != 1 {
            let message = format!(
                "a chunk with the shape {:?}, expected one dimension",
                array.shape
            );
            return Err(Error::malformed("flax.chunks", message).at(at..self.d.pos()));
        }
        Ok(array)
    }

    fn leaf(&mut self, item: Item, at: u64) -> Result<()> {
        let value = match item {
            Item::Nil => Value::Null,
            Item::Bool(value) => Value::Bool(value),
            Item::Integer(number) => Value::I64(number),
            Item::Unsigned(number) => Value::U64(number),
            Item::F32(number) => Value::F32(number),
            Item::F64(number) => Value::F64(number),
            Item::Text(len) => {
                self.check_limit(len, at)?;
                Value::Str(self.d.announced(len, "a text")?)
            }
            Item::Bin(len) => {
                self.check_limit(len, at)?;
                Value::Bytes(self.d.take(len, "bytes")?.to_vec().into())
            }
            Item::Ext { kind, len } => return self.extension(kind, len, at),
            Item::Array(_) | Item::Map(_) => return Err(Error::argument("no leaf")),
        };
        self.note(value)
    }

    fn check_limit(&self, len: u32, at: u64) -> Result<()> {
        let (len, limit) = (u64::from(len), self.limits.header_bytes);
        if len <= limit || len > self.d.remaining() {
            return Ok(());
        }
        let message = format!("a value of {len} bytes, the limit for headers is {limit}");
        let error = Error::limit("flax.limit", message).at(at..self.d.pos());
        Err(error.raised_by("header_bytes", len))
    }

    fn extension(&mut self, kind: i8, len: u32, at: u64) -> Result<()> {
        match kind {
            1 | 3 => {
                let named = |error: Error| error.in_tensor(&self.path);
                let array = Array::parse(&mut self.d, len, self.limits).map_err(named)?;
                if kind == 3 && !array.shape.is_empty() {
                    let message = format!("a scalar with the shape {:?}", array.shape);
                    let error = Error::malformed("flax.array", message).at(at..self.d.pos());
                    return Err(error.in_tensor(&self.path));
                }
                self.skipped += array.data.end - array.data.start;
                let name = self.path.clone();
                let tensor = array.tensor(name, &self.shared, self.limits)?;
                self.push(tensor, at)
            }
            2 => {
                let value = leaves::complex(&mut self.d, len)?;
                self.note(value)
            }
            other => {
                let message = format!("an extension of type {other}; flax has 1, 2 and 3");
                Err(Error::unsupported("flax.extension", message).at(at..self.d.pos()))
            }
        }
    }

    fn push(&mut self, tensor: TensorInfo, at: u64) -> Result<()> {
        self.make(TENSOR + tensor.name.len() as u64, at)?;
        push_tight(&mut self.tensors, tensor);
        Ok(())
    }

    fn note(&mut self, value: Value) -> Result<()> {
        self.make(VALUE + self.path.len() as u64, self.d.pos())?;
        self.metadata.push(&self.path, value);
        Ok(())
    }

    /// Refuses a file of which many times its bytes would be made.
    fn make(&mut self, bytes: u64, at: u64) -> Result<()> {
        self.made = self.made.saturating_add(bytes);
        let read = self.d.pos().saturating_sub(self.skipped);
        let limit = self.limits.header_bytes;
        if read > limit {
            let message = format!("more than {limit} bytes beside those of arrays");
            let error = Error::limit("flax.limit", message).at(at..self.d.pos());
            return Err(error.raised_by("header_bytes", read));
        }
        if self.made <= FREE.saturating_add(read.saturating_mul(FOR_A_BYTE)) {
            return Ok(());
        }
        let message = "it describes many times more than its bytes";
        Err(Error::limit("flax.limit", message).at(at..self.d.pos()))
    }

    /// Two paths may be the same when they are joined.
    fn unique_names(&self) -> Result<()> {
        let tensors = self.tensors.iter().map(|tensor| tensor.name.as_str());
        let names = tensors.chain(self.metadata.iter().map(|(key, _)| key));
        match crate::model::repeated(names) {
            Some((_, name)) => {
                let shown = crate::model::brief(name);
                let message = format!("two values are called {shown}");
                Err(Error::malformed("flax.duplicate", message))
            }
            None => Ok(()),
        }
    }
}

/// The keys of a map, in one piece: a map of a million keys would take many times its bytes otherwise.
#[derive(Default)]
struct Keys {
    text: String,
    ends: Vec<usize>,
}

impl Keys {
    fn push(&mut self, key: &str) {
        self.text.push_str(key);
        push_tight(&mut self.ends, self.text.len());
    }

    fn check(&self, at: u64) -> Result<()> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        let mut keys: Vec<&str> = ranges
            .map(|(start, end)| self.text.get(start..*end).unwrap_or_default())
            .collect();
        keys.sort_unstable();
        let mut neighbours = keys.iter().zip(keys.iter().skip(1));
        match neighbours.find(|(a, b)| a == b) {
            Some((key, _)) => {
                let shown = crate::model::brief(key);
                let message = format!("a map has the key {shown} twice");
                Err(Error::malformed("flax.duplicate", message).at(at..at + 1))
            }
            None => Ok(()),
        }
    }
}
