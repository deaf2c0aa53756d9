//! CBOR (RFC 8949) over `minicbor`: with the places of errors, limits, and two sets of rules.
//!
//! Any well-formed encoding is read unless [`Decoder::deterministic`] asks for the core deterministic encoding of section
//! 4.2.1, without tags. Nothing is allocated because an item says how long it is: items are read until the bytes end.

mod encode;
mod head;

use alloc::borrow::Cow;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::model::{Metadata, Value};
use crate::prelude::*;

pub(crate) use encode::{Encoder, key_order};
use head::Kind;

/// The rules of a format under which its CBOR is refused.
pub(crate) struct Rules {
    /// Not well-formed, or not of the kind that the format permits.
    pub(crate) syntax: &'static str,
    /// Nested too deep.
    pub(crate) depth: &'static str,
    /// Well-formed, but not the deterministic encoding.
    pub(crate) form: &'static str,
    /// A key that is there twice.
    pub(crate) duplicate: &'static str,
    /// An item of another kind than the field needs.
    pub(crate) schema: &'static str,
}

/// Map keys that are compared one by one, before a table is made of them.
const FEW_KEYS: usize = 16;
const BREAK: u8 = 0xff;
/// The upper three bits of a tag's first byte.
const TAG: u8 = 6;
const STRAY_BREAK: &str = "a break where an item should be";

/// The keys of a map so far.
struct KnownKeys<'b> {
    /// A bit for each, by [`mark`]: most new keys are found to be new by it.
    marks: u64,
    /// How others are found to be new.
    order: KeyOrder<'b>,
}

enum KeyOrder<'b> {
    /// Each was greater than the one before it.
    Rising,
    /// One by one.
    Few,
    Many(LookupMap<Cow<'b, str>, ()>),
}

/// A bit that is the same for equal keys, and seldom for the different keys of a map.
fn mark(key: &str) -> u64 {
    let bytes = key.as_bytes();
    let first = bytes.first().copied().unwrap_or(0);
    let last = bytes.last().copied().unwrap_or(0);
    1 << ((bytes.len() as u64 * 5 + u64::from(first) + u64::from(last) * 3) % 64)
}

/// Reads items one after the other.
pub(crate) struct Decoder<'b> {
    inner: minicbor::Decoder<'b>,
    /// Where the bytes begin in their file.
    base: u64,
    rules: &'static Rules,
    deterministic: bool,
    lenient: bool,
    max_depth: usize,
    depth: usize,
    /// The keys of the maps that are being read, innermost last.
    keys: Vec<Cow<'b, str>>,
}

impl<'b> Decoder<'b> {
    /// A decoder of any well-formed CBOR whose bytes begin at `base` of their file.
    pub(crate) fn new(bytes: &'b [u8], base: u64, rules: &'static Rules, max_depth: usize) -> Self {
        let inner = minicbor::Decoder::new(bytes);
        Self {
            inner,
            base,
            rules,
            deterministic: false,
            lenient: false,
            max_depth,
            depth: 0,
            keys: Vec::new(),
        }
    }

    /// Permits the deterministic encoding only.
    pub(crate) fn deterministic(mut self) -> Self {
        self.deterministic = true;
        self
    }

    /// Reads as Burn's decoder does: a tagged item is the item itself, an item that nobody asks for only has to be
    /// well-formed, and the depth is that of arrays, maps and tags, not of what is inside of the innermost.
    #[cfg(feature = "burnpack")]
    pub(crate) fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// The next item, if it is text.
    #[cfg(feature = "burnpack")]
    pub(crate) fn take_text(&mut self) -> Result<Option<Cow<'b, str>>> {
        self.pass_tags()?;
        match self.head()? {
            Kind::Text => self.text_item().map(Some),
            _ => Ok(None),
        }
    }

    /// Passes over null, if that is the next item, and says whether it was.
    #[cfg(feature = "burnpack")]
    pub(crate) fn take_null(&mut self) -> Result<bool> {
        self.pass_tags()?;
        let null = self.head()? == Kind::Null;
        if null {
            self.run(|inner| inner.null())?;
        }
        Ok(null)
    }

    /// Where the next item begins in the file.
    pub(crate) fn pos(&self) -> u64 {
        self.base + self.inner.position() as u64
    }

    /// Makes sure that nothing is left.
    pub(crate) fn finish(self) -> Result<()> {
        let left = self.inner.input().len() - self.inner.position();
        if left > 0 {
            let at = self.pos();
            let message = format!("{left} bytes follow the one item that should be here");
            return Err(Error::malformed(self.rules.syntax, message).at(at..at + left as u64));
        }
        Ok(())
    }

    /// How many items the next array or map says that it has, as far as there is room for items of `size` bytes.
    pub(crate) fn room(&self, size: usize) -> usize {
        let declared = match self.peek().map(|first| first & 0x1f) {
            Some(few @ 0..=23) => u64::from(few),
            Some(info @ 24..=27) => self.argument(1 << (info - 24)).unwrap_or(0),
            _ => u64::MAX,
        };
        let left = self.inner.input().len() - self.inner.position();
        usize::try_from(declared)
            .unwrap_or(usize::MAX)
            .min(left / size)
    }

    /// Text.
    pub(crate) fn text(&mut self, field: &str) -> Result<Cow<'b, str>> {
        if let Some(text) = self.short_text() {
            return Ok(Cow::Borrowed(text));
        }
        self.expect(Kind::Text, field)?;
        self.text_item()
    }

    /// An unsigned number.
    pub(crate) fn unsigned(&mut self, field: &str) -> Result<u64> {
        if let Some(number) = self.short_argument(0x00) {
            return Ok(number.into());
        }
        if let Some(number) = self.long_unsigned() {
            return Ok(number);
        }
        self.expect(Kind::Unsigned, field)?;
        self.run(|inner| inner.u64())
    }

    /// An array, each of whose items `item` must read.
    pub(crate) fn array(
        &mut self,
        field: &str,
        mut item: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let mut left = match self.short_argument(0x80) {
            Some(len) => Some(len.into()),
            None => {
                self.expect(Kind::Array, field)?;
                self.run(|inner| inner.array())?
            }
        };
        self.depth += 1;
        while self.more(&mut left) {
            item(self)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// A map with text keys only, each of whose values `entry` must read.
    pub(crate) fn map(
        &mut self,
        field: &str,
        mut entry: impl FnMut(&mut Self, Cow<'b, str>) -> Result<()>,
    ) -> Result<()> {
        self.expect(Kind::Map, field)?;
        self.entries(&mut |cbor, at, key| match key {
            Some(key) => entry(cbor, key),
            None => {
                let message = format!("{field} has a key that is not text");
                Err(Error::malformed(cbor.rules.schema, message).at(at..cbor.pos()))
            }
        })
    }

    /// A map whose entries with other keys than text mean nothing.
    pub(crate) fn open_map(
        &mut self,
        field: &str,
        mut entry: impl FnMut(&mut Self, Cow<'b, str>) -> Result<()>,
    ) -> Result<()> {
        self.expect(Kind::Map, field)?;
        self.entries(&mut |cbor, _, key| match key {
            Some(key) => entry(cbor, key),
            None => cbor.skip(),
        })
    }

    /// A map of which some keys are known, in the order in which writers have them: `entry` must read the value of the
    /// key at a place of `keys`. Others are passed over.
    #[cfg(feature = "burnpack")]
    pub(crate) fn known_map(
        &mut self,
        field: &str,
        keys: &[&str],
        mut entry: impl FnMut(&mut Self, usize) -> Result<()>,
    ) -> Result<()> {
        self.expect(Kind::Map, field)?;
        let mut left = self.run(|inner| inner.map())?;
        self.depth += 1;
        let mut seen = 0u64;
        let mut next = 0;
        while self.more(&mut left) {
            let at = self.pos();
            let place = match self.take_key(keys.get(next)) {
                true => Some(next),
                false => self.other_key(keys)?,
            };
            let Some(place) = place else {
                self.skip()?;
                continue;
            };
            if seen & (1 << place) != 0 {
                let key = keys.get(place).unwrap_or(&"");
                let message = format!("the key {key:?} is there twice");
                return Err(Error::malformed(self.rules.duplicate, message).at(at..self.pos()));
            }
            seen |= 1 << place;
            next = place + 1;
            entry(self, place)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Passes over a short text in its shortest form, if that is the next item.
    #[cfg(feature = "burnpack")]
    fn take_key(&mut self, key: Option<&&str>) -> bool {
        let from = self.inner.position();
        let rest = self.inner.input().get(from..);
        let (Some(key), Some([first, rest @ ..])) = (key, rest) else {
            return false;
        };
        let is_it = usize::from(first ^ 0x60) == key.len() && rest.starts_with(key.as_bytes());
        if is_it && key.len() < 24 {
            self.inner.set_position(from + 1 + key.len());
        }
        is_it && key.len() < 24
    }

    /// The place of the next item among `keys`.
    #[cfg(feature = "burnpack")]
    fn other_key(&mut self, keys: &[&str]) -> Result<Option<usize>> {
        match self.take_text()? {
            Some(text) => Ok(keys.iter().position(|key| *key == text)),
            None => self.skip().map(|()| None),
        }
    }

    /// Any item, checked and passed over.
    pub(crate) fn skip(&mut self) -> Result<()> {
        match self.head()? {
            Kind::Array => self.array("", Self::skip),
            Kind::Map if self.lenient => self.skip_entries(),
            Kind::Map => self.entries(&mut |cbor, _, _| cbor.skip()),
            Kind::Tag if self.lenient => {
                self.run(|inner| inner.tag())?;
                self.depth += 1;
                self.skip()?;
                self.depth -= 1;
                Ok(())
            }
            _ => self.value().map(drop),
        }
    }

    /// The entries of a map that is known to begin here, whatever their keys are.
    fn skip_entries(&mut self) -> Result<()> {
        let mut left = self.run(|inner| inner.map())?;
        self.depth += 1;
        while self.more(&mut left) {
            self.skip()?;
            self.skip()?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Any item as a value. What has no form there is kept as it is encoded.
    pub(crate) fn value(&mut self) -> Result<Value> {
        self.pass_tags()?;
        let from = self.inner.position();
        Ok(match self.head()? {
            Kind::Unsigned => Value::U64(self.run(|inner| inner.u64())?),
            Kind::Negative => integer(self.run(|inner| inner.int())?.into()),
            Kind::Bytes => Value::Bytes(self.bytes_item()?),
            Kind::Text => Value::Str(self.text_item()?.into_owned()),
            Kind::Array => {
                let mut items = Vec::new();
                self.array("", |cbor| {
                    items.push(cbor.value()?);
                    Ok(())
                })?;
                Value::List(items)
            }
            Kind::Map => self.map_value(from)?,
            Kind::Tag => self.tagged(from)?,
            Kind::Bool => Value::Bool(self.run(|inner| inner.bool())?),
            Kind::Null => {
                self.run(|inner| inner.null())?;
                Value::Null
            }
            Kind::Float => self.float()?,
            Kind::Simple => {
                self.simple()?;
                self.encoded(from)
            }
            Kind::Break => return Err(self.syntax(STRAY_BREAK)),
        })
    }

    fn map_value(&mut self, from: usize) -> Result<Value> {
        let mut map = Metadata::new();
        let mut all_text = true;
        self.entries(&mut |cbor, _, key| {
            let value = cbor.value()?;
            match key {
                Some(key) => map.push(key, value),
                None => all_text = false,
            }
            Ok(())
        })?;
        Ok(if all_text {
            Value::Map(map)
        } else {
            self.encoded(from)
        })
    }

    fn tagged(&mut self, from: usize) -> Result<Value> {
        let tag = self.run(|inner| inner.tag())?.as_u64();
        self.depth += 1;
        let value = self.value()?;
        self.depth -= 1;
        let number = match (&value, tag) {
            (Value::Bytes(bytes), 2 | 3) => bignum(bytes, tag == 3),
            _ => None,
        };
        Ok(number.unwrap_or_else(|| self.encoded(from)))
    }

    fn float(&mut self) -> Result<Value> {
        Ok(match self.peek() {
            Some(0xf9) => Value::F32(self.run(|inner| inner.f16())?),
            Some(0xfa) => Value::F32(self.run(|inner| inner.f32())?),
            _ => Value::F64(self.run(|inner| inner.f64())?),
        })
    }

    fn simple(&mut self) -> Result<()> {
        if self.peek() == Some(0xf7) {
            return self.run(|inner| inner.undefined());
        }
        let long = self.peek() == Some(0xf8);
        let at = self.pos();
        let value = self.run(|inner| inner.simple())?;
        if long && value < 32 {
            let message = format!("simple value {value} in two bytes");
            return Err(Error::malformed(self.rules.syntax, message).at(at..at + 2));
        }
        Ok(())
    }

    /// The bytes of the item that began at `from`.
    fn encoded(&self, from: usize) -> Value {
        let bytes = self
            .inner
            .input()
            .get(from..self.inner.position())
            .unwrap_or_default();
        Value::Encoded {
            encoding: "cbor",
            bytes: Bytes::copy_from_slice(bytes),
        }
    }

    /// The entries of a map that is known to begin here: the place of a key, and the key itself if it is text.
    fn entries(&mut self, each: &mut Each<'_, 'b>) -> Result<()> {
        let mut left = self.run(|inner| inner.map())?;
        self.depth += 1;
        let first_key = self.keys.len();
        let mut known = KnownKeys {
            marks: 0,
            order: KeyOrder::Rising,
        };
        let mut previous = None;
        while self.more(&mut left) {
            self.pass_tags()?;
            let from = self.inner.position();
            let at = self.pos();
            let key = match self.short_text() {
                Some(key) => Some(Cow::Borrowed(key)),
                None if self.head()? == Kind::Text => Some(self.text_item()?),
                None => {
                    self.skip()?;
                    None
                }
            };
            if self.deterministic {
                previous = Some(self.check_order(previous, from)?);
            } else if let Some(key) = &key {
                self.check_new(key.clone(), first_key, &mut known, at)?;
            }
            each(self, at, key)?;
        }
        self.keys.truncate(first_key);
        self.depth -= 1;
        Ok(())
    }

    /// Deterministic keys rise by their encoded bytes, so that equal ones are neighbours.
    fn check_order(&self, previous: Option<Range<usize>>, from: usize) -> Result<Range<usize>> {
        let this = from..self.inner.position();
        let bytes = |range: Range<usize>| self.inner.input().get(range).unwrap_or_default();
        if let Some(previous) = previous {
            let (rule, message) = match bytes(previous).cmp(bytes(this.clone())) {
                core::cmp::Ordering::Less => return Ok(this),
                core::cmp::Ordering::Equal => (self.rules.duplicate, "the same key twice"),
                core::cmp::Ordering::Greater => (
                    self.rules.form,
                    "map keys are not in the order of their encoded bytes",
                ),
            };
            return Err(Error::malformed(rule, message).at(self.base + from as u64..self.pos()));
        }
        Ok(this)
    }

    fn check_new(
        &mut self,
        key: Cow<'b, str>,
        first_key: usize,
        known: &mut KnownKeys<'b>,
        at: u64,
    ) -> Result<()> {
        let keys = self.keys.get(first_key..).unwrap_or_default();
        let order = &mut known.order;
        if matches!(order, KeyOrder::Rising) && keys.last().is_some_and(|last| **last >= *key) {
            *order = KeyOrder::Few;
        }
        if matches!(order, KeyOrder::Few) && keys.len() >= FEW_KEYS {
            let keys = keys.iter().cloned();
            *order = KeyOrder::Many(keys.map(|key| (key, ())).collect());
        }
        let mark = mark(&key);
        let is_new = match order {
            KeyOrder::Rising => true,
            KeyOrder::Few => known.marks & mark == 0 || !keys.contains(&key),
            KeyOrder::Many(table) => table.insert(key.clone(), ()).is_none(),
        };
        known.marks |= mark;
        if !is_new {
            let message = format!("the key {key:?} is there twice");
            return Err(Error::malformed(self.rules.duplicate, message).at(at..self.pos()));
        }
        if !matches!(order, KeyOrder::Many(_)) {
            self.keys.push(key);
        }
        Ok(())
    }

    fn text_item(&mut self) -> Result<Cow<'b, str>> {
        if let Some(text) = self.short_text() {
            return Ok(Cow::Borrowed(text));
        }
        if self.peek() != Some(0x7f) {
            return self.run(|inner| inner.str()).map(Cow::Borrowed);
        }
        self.run(|inner| inner.str_iter()?.collect::<Result<String, _>>())
            .map(Cow::Owned)
    }

    /// The number in the first byte of an item of a kind, where it is there: less than 24. Without the general way.
    fn short_argument(&mut self, kind: u8) -> Option<u8> {
        let number = self.peek()? ^ kind;
        if number >= 24 || self.depth > self.max_depth {
            return None;
        }
        self.inner.set_position(self.inner.position() + 1);
        Some(number)
    }

    /// An unsigned number of one byte or more. Without the general way.
    fn long_unsigned(&mut self) -> Option<u64> {
        let first = self.peek().filter(|first| (0x18..=0x1b).contains(first))?;
        if self.deterministic || self.depth > self.max_depth {
            return None;
        }
        let len = 1 << (first - 0x18);
        let number = self.argument(len)?;
        self.inner.set_position(self.inner.position() + 1 + len);
        Some(number)
    }

    /// Text of less than 24 bytes, which nearly all keys and values are: without the general way.
    fn short_text(&mut self) -> Option<&'b str> {
        let first = self.peek().filter(|first| (0x60..=0x77).contains(first))?;
        if self.depth > self.max_depth {
            return None;
        }
        let from = self.inner.position() + 1;
        let end = from + usize::from(first - 0x60);
        let text = core::str::from_utf8(self.inner.input().get(from..end)?).ok()?;
        self.inner.set_position(end);
        Some(text)
    }

    fn bytes_item(&mut self) -> Result<Bytes> {
        if self.peek() != Some(0x5f) {
            return self.run(|inner| inner.bytes()).map(Bytes::copy_from_slice);
        }
        let mut bytes = Vec::new();
        self.run(|inner| {
            for chunk in inner.bytes_iter()? {
                bytes.extend_from_slice(chunk?);
            }
            Ok(())
        })?;
        Ok(bytes.into())
    }

    /// Whether a container has another item; passes over the break that ends one of indefinite length.
    fn more(&mut self, left: &mut Option<u64>) -> bool {
        match left {
            Some(0) => false,
            Some(n) => {
                *n -= 1;
                true
            }
            None if self.peek() == Some(BREAK) => {
                self.inner.set_position(self.inner.position() + 1);
                false
            }
            None => true,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.inner.input().get(self.inner.position()).copied()
    }

    /// Passes over tags where they mean nothing. They count as levels, so that there are not too many of them.
    fn pass_tags(&mut self) -> Result<()> {
        let depth = self.depth;
        while self.lenient && self.peek().is_some_and(|first| first >> 5 == TAG) {
            self.head()?;
            self.run(|inner| inner.tag())?;
            self.depth += 1;
        }
        self.depth = depth;
        Ok(())
    }

    fn expect(&mut self, kind: Kind, field: &str) -> Result<()> {
        self.pass_tags()?;
        let found = self.head()?;
        if found == Kind::Break {
            return Err(self.syntax(STRAY_BREAK));
        }
        if found != kind {
            let message = format!("{field} is {}, {} is expected", found.name(), kind.name());
            return Err(Error::malformed(self.rules.schema, message).at(self.pos()..self.pos() + 1));
        }
        Ok(())
    }

    /// Lets `minicbor` read, and puts its errors into our words and places.
    fn run<T>(
        &mut self,
        read: impl FnOnce(&mut minicbor::Decoder<'b>) -> Result<T, minicbor::decode::Error>,
    ) -> Result<T> {
        let from = self.pos();
        read(&mut self.inner).map_err(|cause| {
            let end = self.base + self.inner.input().len() as u64;
            let message = match cause.is_end_of_input() {
                true => format!("the item here goes on behind the end, byte {end}"),
                false => format!("{cause}"),
            };
            Error::malformed(self.rules.syntax, message)
                .at(from..end)
                .because(cause)
        })
    }

    fn syntax(&self, message: &str) -> Error {
        Error::malformed(self.rules.syntax, message).at(self.pos()..self.pos() + 1)
    }
}

/// What is done with an entry of a map: its place, and its key if that is text. Must read the value.
type Each<'a, 'b> = dyn FnMut(&mut Decoder<'b>, u64, Option<Cow<'b, str>>) -> Result<()> + 'a;

/// A number in the narrowest form that metadata has for it.
fn integer(number: i128) -> Value {
    match (u64::try_from(number), i64::try_from(number)) {
        (Ok(number), _) => Value::U64(number),
        (_, Ok(number)) => Value::I64(number),
        _ => Value::Integer(number.to_string()),
    }
}

/// A number of up to 128 bits from the bytes of a bignum; longer ones stay encoded.
fn bignum(bytes: &[u8], negative: bool) -> Option<Value> {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    let digits = bytes.get(zeros..).filter(|digits| digits.len() <= 16)?;
    let number = digits
        .iter()
        .fold(0u128, |n, &byte| n << 8 | u128::from(byte));
    match (i128::try_from(number), negative) {
        (Ok(number), false) => Some(integer(number)),
        (Ok(number), true) => Some(integer(-1 - number)),
        (Err(_), false) => Some(Value::Integer(number.to_string())),
        (Err(_), true) => None,
    }
}

#[cfg(test)]
mod tests;
