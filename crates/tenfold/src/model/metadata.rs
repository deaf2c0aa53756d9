//! Metadata: named values in file order, with the widths that the file gave them.

use core::fmt;
use core::ops::{Deref, DerefMut};

use bytes::Bytes;

use crate::error::Result;
use crate::model::{List, Map, SourceId};
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
    List(List),
    /// A list without entries, in a format where it says what they would be.
    Empty(ValueKind),
    /// A long list that was not loaded.
    Elsewhere(Box<Elsewhere>),
    Map(Map),
    /// A value that has no form here (a CBOR tag, a map with keys that are not text), as it is encoded in the file.
    Encoded {
        /// The encoding.
        encoding: Encoding,
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
            Value::Integer(digits) if digits.len() > MESSAGE => {
                format!(
                    "an integer of {} digits",
                    digits.trim_start_matches('-').len()
                )
            }
            Value::Integer(digits) => digits.clone(),
            Value::Str(text) => brief(text),
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Elsewhere(list) => format!("a list of {}", list.count),
            Value::Bytes(_) | Value::Encoded { .. } => "bytes".to_owned(),
            Value::Empty(_) => "an empty list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
            other => match (other.as_i64(), other.as_u64()) {
                (Some(value), _) => value.to_string(),
                (_, Some(value)) => value.to_string(),
                _ => "a value".to_owned(),
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

    /// The name of its type: `"u32"`, `"string"`, `"list"`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Integer(_) => "integer",
            Value::Bytes(_) => "bytes",
            Value::List(_) | Value::Empty(_) | Value::Elsewhere(_) => "list",
            Value::Map(_) => "map",
            Value::Encoded { .. } => "encoded",
            other => other.kind().map_or("unknown", ValueKind::name),
        }
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

/// Characters of a value that a message shows.
const MESSAGE: usize = 60;

/// Text in quotes for a message, cut where it is long.
pub(crate) fn brief(text: &str) -> String {
    match text.char_indices().nth(MESSAGE) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
    }
}

/// How a value that has no form of its own is encoded.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Encoding {
    /// CBOR, RFC 8949.
    Cbor,
}

impl Encoding {
    /// The name in listings and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Cbor => "cbor",
        }
    }
}

macro_rules! values {
    ($($rust:ty, $kind:ident;)*) => {$(
        impl From<$rust> for Value {
            fn from(value: $rust) -> Self {
                Value::$kind(value.into())
            }
        }
    )*};
}

values! {
    bool, Bool;
    u8, U8;
    u16, U16;
    u32, U32;
    u64, U64;
    i8, I8;
    i16, I16;
    i32, I32;
    i64, I64;
    f32, F32;
    f64, F64;
    &str, Str;
    String, Str;
    &String, Str;
    Bytes, Bytes;
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(entries: Vec<T>) -> Self {
        let entries: Vec<Value> = entries.into_iter().map(Into::into).collect();
        Value::List(entries.into())
    }
}

impl<T: Into<Value>, const N: usize> From<[T; N]> for Value {
    fn from(entries: [T; N]) -> Self {
        Vec::from(entries).into()
    }
}

impl<T: Into<Value> + Clone> From<&[T]> for Value {
    fn from(entries: &[T]) -> Self {
        entries.to_vec().into()
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    /// Nothing is [`Value::Null`].
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

impl From<List> for Value {
    fn from(list: List) -> Self {
        Value::List(list)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Value::Map(map)
    }
}

impl From<Metadata> for Value {
    fn from(metadata: Metadata) -> Self {
        Value::Map(metadata.into())
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
    fn load(&self, list: &Elsewhere, bytes: &Bytes) -> Result<List>;
}

/// Named values in file order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata(Entries);

/// A list of one word, because most tensors have no entries.
#[derive(Clone, Default)]
#[allow(clippy::box_collection)] // for that word
struct Entries(Option<Box<Vec<Entry>>>);

impl Entries {
    fn of(list: Vec<Entry>) -> Self {
        Self((!list.is_empty()).then(|| Box::new(list)))
    }

    fn list(&mut self) -> &mut Vec<Entry> {
        self.0.get_or_insert_default()
    }
}

impl Deref for Entries {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl DerefMut for Entries {
    fn deref_mut(&mut self) -> &mut [Entry] {
        self.0.as_deref_mut().map_or(&mut [], Vec::as_mut_slice)
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    key: Key,
    value: Value,
}

/// Bytes of a key that need no memory of their own.
const SHORT: usize = 21;

/// A key and whether its value is a fact. Files with a million short keys exist to be hostile, and most tensors have the
/// same few words of the program's own: neither asks for memory.
#[derive(Clone)]
enum Key {
    // the others have none
    Word {
        is_fact: bool,
        text: &'static str,
    },
    Short {
        is_fact: bool,
        len: u8,
        text: [u8; SHORT],
    },
    Long {
        is_fact: bool,
        text: Box<str>,
    },
}

impl Key {
    fn new(key: &str, is_fact: bool) -> Self {
        let mut text = [0; SHORT];
        match (u8::try_from(key.len()), text.get_mut(..key.len())) {
            (Ok(len), Some(short)) => {
                short.copy_from_slice(key.as_bytes());
                Key::Short { is_fact, len, text }
            }
            _ => Key::Long {
                is_fact,
                text: key.into(),
            },
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Key::Word { text, .. } => text,
            Key::Short { len, text, .. } => {
                let text = text.get(..usize::from(*len)).unwrap_or_default();
                core::str::from_utf8(text).unwrap_or_default()
            }
            Key::Long { text, .. } => text,
        }
    }

    fn is(&self, key: &str) -> bool {
        match self {
            Key::Word { text, .. } => *text == key,
            Key::Short { len, text, .. } => text.get(..usize::from(*len)) == Some(key.as_bytes()),
            Key::Long { text, .. } => **text == *key,
        }
    }

    fn is_fact(&self) -> bool {
        let (Key::Word { is_fact, .. } | Key::Short { is_fact, .. } | Key::Long { is_fact, .. }) =
            self;
        *is_fact
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() && self.is_fact() == other.is_fact()
    }
}

impl Metadata {
    /// No values.
    pub const fn new() -> Self {
        Self(Entries(None))
    }

    /// One value, under a key of the program's own. Takes no more room than that: a vector that grows to its first entry
    /// has room for four.
    pub(crate) fn one(key: &'static str, value: Value) -> Self {
        let key = Key::Word {
            is_fact: false,
            text: key,
        };
        Self(Entries::of(vec![Entry { key, value }]))
    }

    /// The same for a fact, see [`push_fact`](Self::push_fact).
    pub(crate) fn one_fact(key: &'static str, value: Value) -> Self {
        let key = Key::Word {
            is_fact: true,
            text: key,
        };
        Self(Entries::of(vec![Entry { key, value }]))
    }

    /// Adds a value at the end. The caller makes sure that the key is new.
    pub fn push(&mut self, key: impl AsRef<str>, value: Value) {
        self.add(Key::new(key.as_ref(), false), value);
    }

    /// Adds a value that the type, the layout or the place already implies, in the file's own words: shown, but never
    /// carried to another file, which has its own words for it.
    pub fn push_fact(&mut self, key: impl AsRef<str>, value: Value) {
        self.add(Key::new(key.as_ref(), true), value);
    }

    /// Takes back what was added behind the first entries.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.len() {
            self.0.list().truncate(len);
        }
    }

    fn add(&mut self, key: Key, value: Value) {
        push_tight(self.0.list(), Entry { key, value });
    }

    /// The value of a key. Costs a walk over the entries.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|entry| entry.key.is(key))
            .map(|entry| &entry.value)
    }

    /// Keys and values in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0
            .iter()
            .map(|entry| (entry.key.as_str(), &entry.value))
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
        (self.0.iter()).any(|entry| entry.key.is(key) && entry.key.is_fact())
    }

    /// Gives a key a value, in its place or at the end. Costs a walk over the entries.
    pub fn set(&mut self, key: &str, value: Value) {
        match self.0.iter_mut().find(|entry| entry.key.is(key)) {
            Some(entry) => entry.value = value,
            None => self.push(key, value),
        }
    }

    /// Removes a key; its value, if it was there. Costs a walk over the entries.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let place = self.0.iter().position(|entry| entry.key.is(key))?;
        Some(self.0.list().remove(place).value)
    }

    /// The same keys with other values; facts stay facts.
    pub(crate) fn try_map(&self, mut map: impl FnMut(&Value) -> Result<Value>) -> Result<Self> {
        let mapped = self.0.iter().map(|entry| {
            Ok(Entry {
                key: entry.key.clone(),
                value: map(&entry.value)?,
            })
        });
        mapped
            .collect::<Result<_>>()
            .map(|list| Self(Entries::of(list)))
    }

    /// Keys, values and whether they are facts, in file order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Value, bool)> {
        (self.0.iter()).map(|entry| (entry.key.as_str(), &entry.value, entry.key.is_fact()))
    }

    /// The value at a place.
    pub(crate) fn at(&self, place: usize) -> Option<&Value> {
        self.0.get(place).map(|entry| &entry.value)
    }

    /// The key and the value at a place.
    pub(crate) fn entry_at(&self, place: usize) -> Option<(&str, &Value)> {
        let entry = self.0.get(place)?;
        Some((entry.key.as_str(), &entry.value))
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
            .filter(|entry| !entry.key.is_fact())
            .filter_map(|entry| {
                let key = entry.key.as_str();
                Some((key, keep(key, &entry.value)?))
            })
            .collect()
    }
}

impl<K: AsRef<str>> FromIterator<(K, Value)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        let entries = entries.into_iter().map(|(key, value)| Entry {
            key: Key::new(key.as_ref(), false),
            value,
        });
        Self(Entries::of(entries.collect()))
    }
}

impl From<&Map> for Metadata {
    fn from(map: &Map) -> Self {
        map.iter().collect()
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
            (Value::List(vec![Value::Null].into()), "a list of 1"),
            (Value::Integer("1".repeat(61)), "an integer of 61 digits"),
            (Value::Str("é".repeat(60)), &format!("{:?}", "é".repeat(60))),
            (
                Value::Str("é".repeat(61)),
                &format!("{:?}…", "é".repeat(60)),
            ),
            (Value::Map(Map::default()), "a map"),
        ] {
            assert_eq!(value.in_words(), shown);
        }
    }

    #[test]
    fn keys_of_any_length_are_kept() {
        let mut metadata = Metadata::new();
        for len in 0..64 {
            metadata.push("é".repeat(len), Value::U64(len as u64));
        }
        for len in 0..64 {
            let key = "é".repeat(len);
            assert_eq!(metadata.get(&key), Some(&Value::U64(len as u64)));
        }
        let keys: Vec<_> = metadata.iter().map(|(key, _)| key.len()).collect();
        assert_eq!(keys, (0..128).step_by(2).collect::<Vec<_>>());
        #[cfg(target_pointer_width = "64")]
        assert_eq!(size_of::<Entry>(), 64);
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
