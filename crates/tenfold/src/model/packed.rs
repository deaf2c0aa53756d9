//! Lists and maps of metadata, packed: a file that is full of small values takes little more memory than its bytes.
//!
//! A list is the tag that all entries have, or [`MIXED`], their number, and the entries: without their tags where they
//! all have the same, which is what lists of numbers, bools and strings are. A map is the number of its entries, then
//! keys and values. Whole numbers are as short as they can be. No bytes are an empty list, or an empty map.

use core::fmt;

use bytes::Bytes;

use super::metadata::{Encoding, Metadata, Value, ValueKind};
use crate::prelude::*;

mod packer;

pub(crate) use packer::Packer;

/// In a list: every entry has a tag of its own.
const MIXED: u8 = 0;
const NULL: u8 = 1;
const BOOL: u8 = 2;
const U8: u8 = 3;
const U16: u8 = 4;
const U32: u8 = 5;
const U64: u8 = 6;
const I8: u8 = 7;
const I16: u8 = 8;
const I32: u8 = 9;
const I64: u8 = 10;
const F32: u8 = 11;
const F64: u8 = 12;
const STR: u8 = 13;
const INTEGER: u8 = 14;
const BYTES: u8 = 15;
const LIST: u8 = 16;
const MAP: u8 = 17;
const EMPTY: u8 = 18;
const CBOR: u8 = 19;

/// A list of values, each made when it is asked for.
///
/// ```
/// use tenfold::model::{List, Value, ValueKind};
/// let list: List = (0..1000).map(Value::U32).collect();
/// assert_eq!((list.len(), list.kind()), (1000, Some(ValueKind::U32)));
/// assert_eq!(list.iter().nth(7), Some(Value::U32(7)));
/// assert_eq!(list.as_u64s().map(|numbers| numbers.iter().sum()), Some(499_500));
/// ```
#[derive(Clone, Default)]
pub struct List(Bytes);

impl List {
    /// No entries.
    pub const fn new() -> Self {
        Self(Bytes::new())
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.items().left
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What all entries are, where they all are numbers, bools or text of one kind.
    pub fn kind(&self) -> Option<ValueKind> {
        kind_of(self.items().tag).filter(|kind| *kind != ValueKind::List)
    }

    /// The entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value> {
        self.items()
    }

    /// The first entry.
    pub fn first(&self) -> Option<Value> {
        self.items().next()
    }

    /// The entries as unsigned integers, whatever their widths, if they all are.
    pub fn as_u64s(&self) -> Option<Vec<u64>> {
        self.items().map(|item| item.as_u64()).collect()
    }

    fn items(&self) -> Items<'_> {
        let mut cursor = Cursor::new(&self.0);
        let tag = cursor.byte().unwrap_or(MIXED);
        let left = cursor.len().unwrap_or(0);
        Items { cursor, tag, left }
    }

    /// Whether two lists are the same, also where numbers are not equal to themselves.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<Value> for List {
    /// A list that was not loaded has no place inside another, and is empty there.
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        let mut packer = Packer::list();
        for item in items {
            packer.value(&item);
        }
        packer.into_list()
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> Self {
        items.into_iter().collect()
    }
}

struct Items<'a> {
    cursor: Cursor<'a>,
    tag: u8,
    left: usize,
}

impl Iterator for Items<'_> {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        match self.tag {
            MIXED => self.cursor.tagged(),
            tag => self.cursor.value(tag),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Items<'_> {}

/// Named values inside a value, each made when it is asked for.
#[derive(Clone, Default)]
pub struct Map(Bytes);

impl Map {
    /// No entries.
    pub const fn new() -> Self {
        Self(Bytes::new())
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries().left
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys and values in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, Value)> {
        self.entries()
    }

    /// The value of a key. Costs a walk over the entries.
    pub fn get(&self, key: &str) -> Option<Value> {
        let mut entries = self.entries();
        while let Some(known) = entries.key() {
            if known == key {
                return entries.cursor.tagged();
            } else {
                entries.cursor.skip_tagged()?
            }
        }
        None
    }

    fn entries(&self) -> Entries<'_> {
        let mut cursor = Cursor::new(&self.0);
        let left = cursor.len().unwrap_or(0);
        Entries { cursor, left }
    }

    /// Whether two maps are the same, also where numbers are not equal to themselves.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: AsRef<str>> FromIterator<(K, Value)> for Map {
    /// The caller makes sure that no key appears twice.
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        let mut packer = Packer::map();
        for (key, value) in entries {
            packer.key(key.as_ref());
            packer.value(&value);
        }
        packer.into_map()
    }
}

impl From<&Metadata> for Map {
    fn from(metadata: &Metadata) -> Self {
        let mut packer = Packer::map();
        for (key, value) in metadata.iter() {
            packer.key(key);
            packer.value(value);
        }
        packer.into_map()
    }
}

impl From<Metadata> for Map {
    fn from(metadata: Metadata) -> Self {
        Self::from(&metadata)
    }
}

struct Entries<'a> {
    cursor: Cursor<'a>,
    left: usize,
}

impl<'a> Entries<'a> {
    fn key(&mut self) -> Option<&'a str> {
        self.left = self.left.checked_sub(1)?;
        self.cursor.text()
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, Value);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.key()?;
        Some((key, self.cursor.tagged()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Entries<'_> {}

/// Reads packed values. What is not there, which does not happen, ends the list.
struct Cursor<'a> {
    rest: &'a [u8],
    whole: &'a Bytes,
}

impl<'a> Cursor<'a> {
    fn new(whole: &'a Bytes) -> Self {
        Self { rest: whole, whole }
    }

    /// For bytes of which nothing is shared.
    fn over(rest: &'a [u8]) -> Self {
        static NOTHING: Bytes = Bytes::new();
        Self {
            rest,
            whole: &NOTHING,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        let half = (number >> 1).cast_signed();
        Some(if number & 1 == 0 { half } else { !half })
    }

    fn len(&mut self) -> Option<usize> {
        self.number()?.try_into().ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.len()?;
        self.take(len)
    }

    /// Bytes that are shared, not copied.
    fn shared(&mut self) -> Option<Bytes> {
        let bytes = self.bytes()?;
        Some(if bytes.is_empty() {
            Bytes::new()
        } else {
            self.whole.slice_ref(bytes)
        })
    }

    fn text(&mut self) -> Option<&'a str> {
        core::str::from_utf8(self.bytes()?).ok()
    }

    fn tagged(&mut self) -> Option<Value> {
        let tag = self.byte()?;
        self.value(tag)
    }

    fn value(&mut self, tag: u8) -> Option<Value> {
        Some(match tag {
            NULL => Value::Null,
            BOOL => Value::Bool(self.byte()? != 0),
            U8 => Value::U8(self.byte()?),
            U16 => Value::U16(self.number()?.try_into().ok()?),
            U32 => Value::U32(self.number()?.try_into().ok()?),
            U64 => Value::U64(self.number()?),
            I8 => Value::I8(self.byte()?.cast_signed()),
            I16 => Value::I16(self.signed()?.try_into().ok()?),
            I32 => Value::I32(self.signed()?.try_into().ok()?),
            I64 => Value::I64(self.signed()?),
            F32 => Value::F32(f32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            F64 => Value::F64(f64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            STR => Value::Str(self.text()?.to_owned()),
            INTEGER => Value::Integer(self.text()?.to_owned()),
            BYTES => Value::Bytes(self.shared()?),
            LIST => Value::List(List(self.shared()?)),
            MAP => Value::Map(Map(self.shared()?)),
            EMPTY => Value::Empty(kind_of(self.byte()?)?),
            CBOR => Value::Encoded {
                encoding: Encoding::Cbor,
                bytes: self.shared()?,
            },
            _ => return None,
        })
    }

    fn skip_tagged(&mut self) -> Option<()> {
        let tag = self.byte()?;
        self.skip(tag)
    }

    fn skip(&mut self, tag: u8) -> Option<()> {
        match tag {
            NULL => Some(()),
            BOOL | U8 | I8 | EMPTY => self.take(1).map(drop),
            U16 | U32 | U64 | I16 | I32 | I64 => self.number().map(drop),
            F32 => self.take(4).map(drop),
            F64 => self.take(8).map(drop),
            _ => self.bytes().map(drop),
        }
    }
}

fn kind_of(tag: u8) -> Option<ValueKind> {
    Some(match tag {
        BOOL => ValueKind::Bool,
        U8 => ValueKind::U8,
        U16 => ValueKind::U16,
        U32 => ValueKind::U32,
        U64 => ValueKind::U64,
        I8 => ValueKind::I8,
        I16 => ValueKind::I16,
        I32 => ValueKind::I32,
        I64 => ValueKind::I64,
        F32 => ValueKind::F32,
        F64 => ValueKind::F64,
        STR => ValueKind::Str,
        LIST => ValueKind::List,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Value> {
        let list = |items: Vec<Value>| Value::List(items.into());
        vec![
            Value::Null,
            Value::Bool(true),
            Value::U8(255),
            Value::U16(300),
            Value::U32(u32::MAX),
            Value::U64(u64::MAX),
            Value::U64(127),
            Value::U64(128),
            Value::I8(-128),
            Value::I16(-300),
            Value::I32(i32::MIN),
            Value::I64(i64::MIN),
            Value::I64(i64::MAX),
            Value::I64(-1),
            Value::F32(-0.5),
            Value::F64(5e-324),
            Value::Integer("-18446744073709551617".into()),
            Value::Str("é".repeat(100)),
            Value::Bytes(vec![0, 255].into()),
            Value::Empty(ValueKind::List),
            Value::Encoded {
                encoding: Encoding::Cbor,
                bytes: vec![0xc0].into(),
            },
            list(vec![]),
            list(vec![Value::U8(1), Value::U8(2)]),
            list(vec![Value::U8(1), Value::U16(2), Value::Null]),
            list(vec![
                list(vec![Value::Null]),
                list(vec![]),
                Value::Bool(false),
            ]),
            Value::Map(Map::new()),
            Value::Map(
                [("k", list(vec![Value::Null])), ("", Value::Null)]
                    .into_iter()
                    .collect(),
            ),
        ]
    }

    #[test]
    fn everything_comes_back_wherever_it_stands() {
        let samples = samples();
        let list: List = samples.iter().cloned().collect();
        assert_eq!(list.iter().collect::<Vec<_>>(), samples);
        assert_eq!((list.len(), list.kind()), (samples.len(), None));
        for value in &samples {
            // Alone, with its like, and before and after something else.
            for (before, behind) in [(0, 0), (200, 0), (1, 1), (200, 3)] {
                let mut items = vec![value.clone(); before + 1];
                items.extend(vec![Value::Str("x".into()); behind]);
                let nested = Value::List(vec![Value::List(items.clone().into()); 2].into());
                let Value::List(nested) = nested else { return };
                for inner in nested.iter() {
                    let Value::List(inner) = inner else { return };
                    assert_eq!(inner.iter().collect::<Vec<_>>(), items, "{value:?}");
                }
            }
            let map: Map = [("a", value.clone()), ("b", Value::Null)]
                .into_iter()
                .collect();
            assert_eq!(map.get("a").as_ref(), Some(value));
            assert_eq!(map.get("b"), Some(Value::Null));
            assert_eq!((map.get("c"), map.len()), (None, 2));
        }
    }

    #[test]
    fn lists_of_one_kind_take_what_their_entries_take() {
        let list: List = (0..100u8).map(Value::U8).collect();
        assert_eq!(list.0.len(), 2 + 100);
        assert_eq!(list.kind(), Some(ValueKind::U8));
        let nulls: List = core::iter::repeat_n(Value::Null, 1000).collect();
        assert_eq!((nulls.0.len(), nulls.len()), (3, 1000));
        let mixed: List = [Value::U8(1), Value::U16(1)].into_iter().collect();
        assert_eq!(mixed.0.len(), 2 + 4);
    }

    #[test]
    fn what_turns_out_to_be_something_else_leaves_no_trace() {
        let mut packer = Packer::list();
        packer.value(&Value::U8(1));
        packer.open_map();
        packer.key("k");
        packer.str("v");
        packer.abandon();
        packer.value(&Value::U8(2));
        let list = packer.into_list();
        assert_eq!(list, vec![Value::U8(1), Value::U8(2)].into());
        assert_eq!(list.kind(), Some(ValueKind::U8));
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_value_is_five_words() {
        assert_eq!(size_of::<Value>(), 40);
    }
}
