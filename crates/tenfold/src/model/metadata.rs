//! Metadata: named values in file order, with the widths that the file gave them.

use alloc::borrow::Cow;
use core::fmt;

use bytes::Bytes;

use crate::error::Result;
use crate::model::SourceId;
use crate::prelude::*;

/// One value of metadata. Widths are kept, so that typed formats survive a round trip.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // the names say it
pub enum Value {
    Null,
    Bool(bool),
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
    /// An integer of more than 64 bits, in decimal digits with an optional minus sign.
    Integer(String),
    Str(String),
    Bytes(Bytes),
    List(Vec<Value>),
    /// A list without entries, in a format where it says what they would be.
    Empty(ValueKind),
    /// A long list that was not loaded.
    Elsewhere(Elsewhere),
    Map(Metadata),
    /// A value that has no form here (a CBOR tag, a map with keys that are not text), as it is encoded in the file.
    Encoded {
        /// The encoding: `cbor`.
        encoding: &'static str,
        /// The whole encoded value.
        bytes: Bytes,
    },
}

impl Value {
    /// The value for a message: one of a few characters as it is, anything else by what it is.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            // The shortest digits, with an exponent where they are many.
            Value::F32(value) => format!("{value:?}"),
            Value::F64(value) => format!("{value:?}"),
            Value::Integer(digits) => digits.clone(),
            Value::Str(text) => format!("{text:?}"),
            Value::Bytes(_) | Value::Encoded { .. } => "bytes".to_owned(),
            Value::Empty(_) => "an empty list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
            other => match (other.as_i64(), other.as_u64()) {
                (Some(value), _) => value.to_string(),
                (_, Some(value)) => value.to_string(),
                _ => "a list".to_owned(),
            },
        }
    }

    /// What the value is, where lists can have entries of that kind only; `None` for lists themselves and all others.
    pub fn kind(&self) -> Option<ValueKind> {
        Some(match self {
            Value::Bool(_) => ValueKind::Bool,
            Value::U8(_) => ValueKind::U8,
            Value::U16(_) => ValueKind::U16,
            Value::U32(_) => ValueKind::U32,
            Value::U64(_) => ValueKind::U64,
            Value::I8(_) => ValueKind::I8,
            Value::I16(_) => ValueKind::I16,
            Value::I32(_) => ValueKind::I32,
            Value::I64(_) => ValueKind::I64,
            Value::F32(_) => ValueKind::F32,
            Value::F64(_) => ValueKind::F64,
            Value::Str(_) => ValueKind::Str,
            _ => return None,
        })
    }

    /// The value as an unsigned integer, whatever its width.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::U8(v) => Some(v.into()),
            Value::U16(v) => Some(v.into()),
            Value::U32(v) => Some(v.into()),
            Value::U64(v) => Some(v),
            Value::I8(_) | Value::I16(_) | Value::I32(_) | Value::I64(_) => {
                self.as_i64()?.try_into().ok()
            }
            _ => None,
        }
    }

    /// The value as a signed integer, whatever its width.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Value::I8(v) => Some(v.into()),
            Value::I16(v) => Some(v.into()),
            Value::I32(v) => Some(v.into()),
            Value::I64(v) => Some(v),
            Value::U8(_) | Value::U16(_) | Value::U32(_) | Value::U64(_) => {
                self.as_u64()?.try_into().ok()
            }
            _ => None,
        }
    }

    /// The value as a floating-point number; integers only where that is exact.
    pub fn as_f64(&self) -> Option<f64> {
        const EXACT: i64 = 1 << f64::MANTISSA_DIGITS;
        match *self {
            Value::F32(v) => Some(v.into()),
            Value::F64(v) => Some(v),
            #[allow(clippy::cast_precision_loss)] // within the exact integers
            _ => self
                .as_i64()
                .filter(|v| (-EXACT..=EXACT).contains(v))
                .map(|v| v as f64),
        }
    }

    /// The value as text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The value as true or false.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

/// What the entries of a list are, where they all are the same.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // the names say it
pub enum ValueKind {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    List,
    /// Text, and strings of bytes that are not.
    Str,
}

impl ValueKind {
    /// The name in listings and JSON.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::Bool => "bool",
            ValueKind::U8 => "u8",
            ValueKind::U16 => "u16",
            ValueKind::U32 => "u32",
            ValueKind::U64 => "u64",
            ValueKind::I8 => "i8",
            ValueKind::I16 => "i16",
            ValueKind::I32 => "i32",
            ValueKind::I64 => "i64",
            ValueKind::F32 => "f32",
            ValueKind::F64 => "f64",
            ValueKind::List => "list",
            ValueKind::Str => "string",
        }
    }
}

/// A long list that was not loaded: how many entries of which kind, and where they are.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Elsewhere {
    /// What the entries are.
    pub kind: ValueKind,
    /// How many there are.
    pub count: u64,
    /// The file.
    pub source: SourceId,
    /// The bytes of all entries.
    pub range: Range<u64>,
    /// Turns those bytes into entries.
    pub loader: Arc<dyn Load>,
}

impl Elsewhere {
    /// A list of `count` entries in `range`.
    pub fn new(
        kind: ValueKind,
        count: u64,
        source: SourceId,
        range: Range<u64>,
        loader: Arc<dyn Load>,
    ) -> Self {
        Self {
            kind,
            count,
            source,
            range,
            loader,
        }
    }
}

impl PartialEq for Elsewhere {
    /// The same bytes of the same file.
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.count, self.source) == (other.kind, other.count, other.source)
            && self.range == other.range
    }
}

/// Turns the bytes of a long list into its entries.
pub trait Load: fmt::Debug + Send + Sync {
    /// The entries that `bytes`, which are those of the list's range, stand for.
    fn load(&self, list: &Elsewhere, bytes: &Bytes) -> Result<Vec<Value>>;
}

/// Named values in file order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata(Vec<Entry>);

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    /// Borrowed where it is a word of the program's own: most tensors of a file have the same few.
    key: Cow<'static, str>,
    value: Value,
    is_fact: bool,
}

impl Metadata {
    /// No values.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// One value, under a key of the program's own. Takes no more room than that: a vector that grows to its first entry
    /// has room for four.
    #[cfg(feature = "burnpack")]
    pub(crate) fn one(key: &'static str, value: Value) -> Self {
        Self(vec![Entry {
            key: Cow::Borrowed(key),
            value,
            is_fact: false,
        }])
    }

    /// Adds a value at the end. The caller makes sure that the key is new.
    pub fn push(&mut self, key: impl Into<String>, value: Value) {
        self.add(Cow::Owned(key.into()), value, false);
    }

    /// Adds a value that type, layout or place say already, in the file's own words: shown, and never carried to another
    /// file, which has words of its own for it.
    pub fn push_fact(&mut self, key: impl Into<String>, value: Value) {
        self.add(Cow::Owned(key.into()), value, true);
    }

    fn add(&mut self, key: Cow<'static, str>, value: Value, is_fact: bool) {
        self.0.push(Entry {
            key,
            value,
            is_fact,
        });
    }

    /// The value of a key. Costs a walk over the entries.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.value)
    }

    /// Keys and values in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|entry| (&*entry.key, &entry.value))
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a key is a fact, see [`push_fact`](Self::push_fact). Costs a walk over the entries.
    pub fn is_fact(&self, key: &str) -> bool {
        (self.0.iter()).any(|entry| entry.key == key && entry.is_fact)
    }

    /// Gives a key a value, in its place or at the end. Costs a walk over the entries.
    pub fn set(&mut self, key: &str, value: Value) {
        match self.0.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => entry.value = value,
            None => self.push(key, value),
        }
    }

    /// Removes a key; its value, if it was there. Costs a walk over the entries.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let place = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.remove(place).value)
    }

    /// The same keys with other values; facts stay facts.
    pub(crate) fn try_map(&self, mut map: impl FnMut(&Value) -> Result<Value>) -> Result<Self> {
        let mut mapped = Self::new();
        for entry in &self.0 {
            mapped.add(entry.key.clone(), map(&entry.value)?, entry.is_fact);
        }
        Ok(mapped)
    }

    /// Keys, values and whether they are facts, in file order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &Value, bool)> {
        (self.0.iter()).map(|entry| (&*entry.key, &entry.value, entry.is_fact))
    }

    /// The value at a place.
    pub(crate) fn at(&self, place: usize) -> Option<&Value> {
        self.0.get(place).map(|entry| &entry.value)
    }

    /// Replaces the value at a place.
    pub(crate) fn set_at(&mut self, place: usize, value: Value) {
        if let Some(entry) = self.0.get_mut(place) {
            entry.value = value;
        }
    }

    /// Keeps the entries that `keep` turns into something. Facts are not among them.
    pub(crate) fn filter_map(&self, mut keep: impl FnMut(&str, &Value) -> Option<Value>) -> Self {
        (self.0.iter())
            .filter(|entry| !entry.is_fact)
            .filter_map(|entry| Some((entry.key.to_string(), keep(&entry.key, &entry.value)?)))
            .collect()
    }
}

impl FromIterator<(String, Value)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(entries: I) -> Self {
        let entries = entries.into_iter().map(|(key, value)| Entry {
            key: Cow::Owned(key),
            value,
            is_fact: false,
        });
        Self(entries.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_set_in_its_place_and_facts_stay_facts() {
        let mut metadata = Metadata::new();
        metadata.push("a", Value::U8(1));
        metadata.push_fact("f", Value::U8(2));
        metadata.push("b", Value::U8(3));
        metadata.set("a", Value::Null);
        metadata.set("c", Value::Bool(true));
        assert_eq!(metadata.remove("b"), Some(Value::U8(3)));
        assert_eq!(metadata.remove("b"), None);
        let mapped = metadata.try_map(|value| Ok(value.clone())).unwrap();
        let keys: Vec<_> = mapped.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["a", "f", "c"]);
        assert!(mapped.is_fact("f") && !mapped.is_fact("a"));
    }

    #[test]
    fn messages_show_values_as_people_write_them() {
        for (value, shown) in [
            (Value::F64(f64::INFINITY), "inf"),
            (Value::F64(1e300), "1e300"),
            (Value::F32(0.5), "0.5"),
            (Value::I8(-3), "-3"),
            (Value::U64(u64::MAX), "18446744073709551615"),
            (Value::Bool(true), "true"),
            (Value::Str("a\\\n".into()), "\"a\\\\\\n\""),
            (Value::Integer("-123".into()), "-123"),
            (Value::List(vec![Value::Null]), "a list"),
            (Value::Map(Metadata::new()), "a map"),
        ] {
            assert_eq!(value.in_words(), shown);
        }
    }

    #[test]
    fn accessors_spare_the_widths() {
        assert_eq!(Value::I8(-1).as_i64(), Some(-1));
        assert_eq!(Value::I8(-1).as_u64(), None);
        assert_eq!(Value::U16(7).as_i64(), Some(7));
        assert_eq!(Value::U64(u64::MAX).as_i64(), None);
        assert_eq!(Value::U32(3).as_f64(), Some(3.0));
        assert_eq!(Value::I64(i64::MAX).as_f64(), None);
    }
}
