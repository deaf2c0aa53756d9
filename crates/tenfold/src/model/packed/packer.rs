//! Packs metadata as it is read.

use bytes::Bytes;

use super::{
    BOOL, BYTES, CBOR, Cursor, EMPTY, F32, F64, I8, I16, I32, I64, INTEGER, LIST, List, MAP, MIXED,
    Map, NULL, STR, U8, U16, U32, U64,
};
use crate::error::Result;
use crate::model::metadata::{Encoding, Value, ValueKind};
use crate::prelude::*;

fn tag_of(kind: ValueKind) -> u8 {
    match kind {
        ValueKind::Bool => BOOL,
        ValueKind::U8 => U8,
        ValueKind::U16 => U16,
        ValueKind::U32 => U32,
        ValueKind::U64 => U64,
        ValueKind::I8 => I8,
        ValueKind::I16 => I16,
        ValueKind::I32 => I32,
        ValueKind::I64 => I64,
        ValueKind::F32 => F32,
        ValueKind::F64 => F64,
        ValueKind::Str => STR,
        ValueKind::List => LIST,
    }
}

/// Packs a value as it is read, containers and what is in them one after the other.
#[derive(Default)]
pub(crate) struct Packer {
    bytes: Vec<u8>,
    /// The containers that are not complete, innermost last.
    open: Vec<Open>,
}

struct Open {
    /// Where the entries begin.
    from: usize,
    count: usize,
    /// The tag that all entries of a list have had so far.
    tag: u8,
    is_map: bool,
}

impl Packer {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// With a list begun, for [`into_list`](Self::into_list).
    pub(crate) fn list() -> Self {
        let mut packer = Self::new();
        packer.open_list();
        packer
    }

    /// With a map begun, for [`into_map`](Self::into_map).
    pub(crate) fn map() -> Self {
        let mut packer = Self::new();
        packer.open_map();
        packer
    }

    /// Begins a list, whose entries follow until it is closed.
    pub(crate) fn open_list(&mut self) {
        self.open(false);
    }

    /// Begins a map, whose keys and values follow until it is closed.
    pub(crate) fn open_map(&mut self) {
        self.open(true);
    }

    fn open(&mut self, is_map: bool) {
        self.open.push(Open {
            from: self.bytes.len(),
            count: 0,
            tag: MIXED,
            is_map,
        });
    }

    /// The key of the value that follows.
    pub(crate) fn key(&mut self, key: &str) {
        self.counted(key.as_bytes());
    }

    /// Completes the innermost container.
    pub(crate) fn close(&mut self) {
        let Some(Open {
            from,
            count,
            tag,
            is_map,
        }) = self.open.pop()
        else {
            return;
        };
        let inner = match count {
            0 => 0,
            count => usize::from(!is_map) + number_len(count as u64),
        };
        let len = inner + self.bytes.len() - from;
        let (from, shown) = self.begin(if is_map { MAP } else { LIST }, from);
        let mut head = Vec::with_capacity(24);
        head.extend(shown);
        put_number(&mut head, len as u64);
        if count > 0 {
            head.extend((!is_map).then_some(tag));
            put_number(&mut head, count as u64);
        }
        self.bytes.splice(from..from, head);
    }

    /// Forgets the innermost container, which turned out to be something else.
    pub(crate) fn abandon(&mut self) {
        if let Some(open) = self.open.pop() {
            self.bytes.truncate(open.from);
        }
    }

    /// Makes room for an entry with this tag, whose content, if there is any yet, is at `from`: where it is then, and the
    /// tag if it is needed.
    fn begin(&mut self, tag: u8, from: usize) -> (usize, Option<u8>) {
        let mut moved = 0;
        let tagged = match self.open.last_mut() {
            None => true,
            Some(open) => {
                open.count += 1;
                if open.is_map {
                    true
                } else if open.count == 1 {
                    open.tag = tag;
                    false
                } else if open.tag != tag && open.tag != MIXED {
                    let known = core::mem::replace(&mut open.tag, MIXED);
                    let (first, count) = (open.from, open.count - 1);
                    moved = count;
                    self.add_tags(first, known, count);
                    true
                } else {
                    open.tag == MIXED
                }
            }
        };
        (from + moved, tagged.then_some(tag))
    }

    /// Puts a tag before each of the `count` entries from `from` on, which all had the same one and did not show it.
    fn add_tags(&mut self, from: usize, tag: u8, count: usize) {
        let old = self.bytes.split_off(from);
        let mut cursor = Cursor::over(&old);
        self.bytes.reserve(old.len() + count);
        for _ in 0..count {
            let before = cursor.rest;
            let _ = cursor.skip(tag);
            self.bytes.push(tag);
            let len = before.len() - cursor.rest.len();
            self.bytes
                .extend_from_slice(before.get(..len).unwrap_or_default());
        }
        self.bytes.extend_from_slice(cursor.rest);
    }

    fn scalar(&mut self, tag: u8) {
        let (_, head) = self.begin(tag, 0);
        self.bytes.extend(head);
    }

    fn counted(&mut self, bytes: &[u8]) {
        put_number(&mut self.bytes, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn number(&mut self, tag: u8, number: impl Into<u64>) {
        self.scalar(tag);
        put_number(&mut self.bytes, number.into());
    }

    fn signed(&mut self, tag: u8, number: impl Into<i64>) {
        let number = number.into();
        self.number(tag, (number << 1 ^ number >> 63).cast_unsigned());
    }

    fn string(&mut self, tag: u8, bytes: &[u8]) {
        self.scalar(tag);
        self.counted(bytes);
    }

    /// Text.
    pub(crate) fn str(&mut self, text: &str) {
        self.string(STR, text.as_bytes());
    }

    /// Any value.
    pub(crate) fn value(&mut self, value: &Value) {
        let byte = |packer: &mut Self, tag, byte| {
            packer.scalar(tag);
            packer.bytes.push(byte);
        };
        match value {
            Value::Null => self.scalar(NULL),
            Value::Bool(value) => byte(self, BOOL, u8::from(*value)),
            Value::U8(value) => byte(self, U8, *value),
            Value::U16(value) => self.number(U16, *value),
            Value::U32(value) => self.number(U32, *value),
            Value::U64(value) => self.number(U64, *value),
            Value::I8(value) => byte(self, I8, value.cast_unsigned()),
            Value::I16(value) => self.signed(I16, *value),
            Value::I32(value) => self.signed(I32, *value),
            Value::I64(value) => self.signed(I64, *value),
            Value::F32(value) => {
                self.scalar(F32);
                self.bytes.extend(value.to_le_bytes());
            }
            Value::F64(value) => {
                self.scalar(F64);
                self.bytes.extend(value.to_le_bytes());
            }
            Value::Integer(digits) => self.string(INTEGER, digits.as_bytes()),
            Value::Str(text) => self.str(text),
            Value::Bytes(bytes) => self.string(BYTES, bytes),
            Value::List(List(bytes)) => self.string(LIST, bytes),
            Value::Map(Map(bytes)) => self.string(MAP, bytes),
            Value::Empty(kind) => byte(self, EMPTY, tag_of(*kind)),
            Value::Elsewhere(list) => byte(self, EMPTY, tag_of(list.kind)),
            Value::Encoded {
                encoding: Encoding::Cbor,
                bytes,
            } => self.string(CBOR, bytes),
        }
    }

    /// Leaves one entry of every key of the innermost map: the last value in the place of the first. `repeated` is told
    /// the key and which entry it was, for every one after the first.
    pub(crate) fn last_wins(
        &mut self,
        repeated: &mut dyn FnMut(&str, usize) -> Result<()>,
    ) -> Result<()> {
        let Some(&Open { from, count, .. }) = self.open.last() else {
            return Ok(());
        };
        if count < 2 {
            return Ok(());
        }
        let old = self.bytes.get(from..).unwrap_or_default();
        let starts = starts(old, count);
        let key = |place: usize| {
            let start = starts.get(place).copied().unwrap_or(0);
            key_at(old, start)
        };
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_unstable_by(|&a, &b| key(a).cmp(key(b)).then(a.cmp(&b)));
        let pairs = || order.iter().zip(order.iter().skip(1));
        if !pairs().any(|(&a, &b)| key(a) == key(b)) {
            return Ok(());
        }
        // For each entry the one whose value is taken; NONE for those after the first.
        const NONE: usize = usize::MAX;
        let mut taken: Vec<usize> = (0..count).collect();
        let mut first = order.first().copied().unwrap_or(0);
        for (&a, &b) in pairs() {
            if key(a) != key(b) {
                first = b;
            } else if let Ok([head, later]) = taken.get_disjoint_mut([first, b]) {
                (*head, *later) = (b, NONE);
            }
        }
        drop(order);
        let mut new = Vec::new();
        let mut kept = 0;
        for (place, taken) in taken.into_iter().enumerate() {
            if taken == NONE {
                repeated(key(place), place)?;
                continue;
            }
            let start = starts.get(taken).copied().unwrap_or(0);
            let end = starts.get(taken + 1).copied().unwrap_or(old.len());
            new.extend_from_slice(old.get(start..end).unwrap_or_default());
            kept += 1;
        }
        self.bytes.truncate(from);
        self.bytes.extend_from_slice(&new);
        if let Some(open) = self.open.last_mut() {
            open.count = kept;
        }
        Ok(())
    }

    /// The list that was begun first, and is complete.
    pub(crate) fn into_list(mut self) -> List {
        self.close();
        match self.finish() {
            Value::List(list) => list,
            _ => List::new(),
        }
    }

    /// The map that was begun first, and is complete.
    pub(crate) fn into_map(mut self) -> Map {
        self.close();
        match self.finish() {
            Value::Map(map) => map,
            _ => Map::new(),
        }
    }

    /// The one value that was packed.
    pub(crate) fn finish(mut self) -> Value {
        self.bytes.shrink_to_fit();
        let bytes = Bytes::from(self.bytes);
        Cursor::new(&bytes).tagged().unwrap_or(Value::Null)
    }
}

/// Where the entries of a map begin.
fn starts(entries: &[u8], count: usize) -> Vec<usize> {
    let mut cursor = Cursor::over(entries);
    let mut starts = Vec::with_capacity(count);
    for _ in 0..count {
        starts.push(entries.len() - cursor.rest.len());
        let _ = cursor.bytes().and_then(|_| cursor.skip_tagged());
    }
    starts
}

fn key_at(entries: &[u8], start: usize) -> &str {
    let mut cursor = Cursor::over(entries.get(start..).unwrap_or_default());
    cursor.text().unwrap_or_default()
}

/// Bytes that a number takes.
fn number_len(number: u64) -> usize {
    let bits = (u64::BITS - number.leading_zeros()).max(1);
    bits.div_ceil(7) as usize
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        // The lower seven bits, and that more follow.
        out.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or(0));
}
