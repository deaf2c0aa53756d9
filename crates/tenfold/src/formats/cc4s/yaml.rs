//! YAML as it is read: values with places, found in the list of the parser's events.

use core::cell::Cell;

use bytes::Bytes;

use super::events::{Events, MAX_BYTES, Tag};
use crate::error::{Error, Result};
use crate::io::{Limits, Source};
use crate::model::{Packer, Value};
use crate::prelude::*;

/// A file that is one YAML document.
pub(super) struct Yaml {
    text: Bytes,
    events: Events,
    /// Bytes that what is made of it may still take in memory.
    room: Cell<u64>,
}

impl Yaml {
    /// Reads a file.
    pub(super) fn read(source: &dyn Source, limits: &Limits) -> Result<Self> {
        let most = limits.header_bytes.min(MAX_BYTES);
        if source.len() > most {
            let message = format!("{} bytes of YAML, at most {most} are read", source.len());
            let error = Error::limit("cc4s.yaml", message).at(0..source.len());
            return Err(if most < MAX_BYTES {
                error.raised_by("header_bytes", source.len())
            } else {
                error
            });
        }
        let text = source.read(0..source.len())?;
        let characters = core::str::from_utf8(&text).map_err(|cause| {
            let at = cause.valid_up_to() as u64;
            let error = Error::malformed("cc4s.yaml", "the text is not UTF-8");
            error.at(at..at + 1).because(cause)
        })?;
        let room = (text.len() as u64).saturating_mul(ROOM_PER_BYTE) + ROOM;
        let events = Events::read(characters, limits.depth, room)?;
        let room = Cell::new(room.saturating_sub(events.memory()));
        Ok(Self { text, events, room })
    }

    /// The value that the document is.
    pub(super) fn root(&self) -> Node<'_> {
        Node {
            yaml: self,
            index: 0,
        }
    }
}

/// What a description may take in memory: so many times the text, and this.
const ROOM_PER_BYTE: u64 = 14;
const ROOM: u64 = 12 << 20;

/// A value of the file.
#[derive(Clone, Copy)]
pub(super) struct Node<'y> {
    yaml: &'y Yaml,
    index: usize,
}

impl<'y> Node<'y> {
    /// Where it begins.
    pub(super) fn at(self) -> u64 {
        self.yaml.events.get(self.index).map_or(0, |(_, _, at)| at)
    }

    pub(super) fn error(self, rule: &'static str, message: impl Into<String>) -> Error {
        Error::malformed(rule, message).at(self.at()..self.at() + 1)
    }

    fn tag(self) -> Option<Tag> {
        self.yaml.events.get(self.index).map(|(tag, _, _)| tag)
    }

    /// The value of a key of a map.
    pub(super) fn get(self, key: &str) -> Option<Node<'y>> {
        let found = self.entries()?.find(|(known, _)| *known == key);
        found.map(|(_, node)| node)
    }

    pub(super) fn text(self) -> Option<&'y str> {
        self.yaml.events.scalar(&self.yaml.text, self.index)
    }

    /// The keys and values of a map.
    pub(super) fn entries(self) -> Option<Entries<'y>> {
        match self.tag()? {
            Tag::Map => Some(Entries(self.children())),
            _ => None,
        }
    }

    /// The items of a list, or of a map with the keys 0, 1, ..., as cc4s writes lists.
    pub(super) fn items(self) -> Option<Items<'y>> {
        match self.tag()? {
            Tag::List => Some(Items::List(self.children())),
            Tag::Map => Entries(self.children()).items(),
            Tag::Plain | Tag::PlainMade if self.text()?.is_empty() => {
                Some(Items::Sorted(Vec::new().into_iter()))
            }
            Tag::Plain | Tag::PlainMade | Tag::Quoted | Tag::QuotedMade => None,
        }
    }

    fn children(self) -> Children<'y> {
        // Behind a scalar that is the next event, so that there is nothing in between.
        Children {
            yaml: self.yaml,
            next: self.index + 1,
            end: self.yaml.events.next(self.index),
        }
    }

    /// What a scalar stands for; `None` for lists and maps.
    pub(super) fn scalar(self) -> Option<Value> {
        let text = self.text()?;
        Some(match self.tag()? {
            Tag::Plain | Tag::PlainMade => plain_value(text),
            _ => Value::Str(text.to_owned()),
        })
    }

    /// A whole number.
    pub(super) fn integer(self) -> Option<i64> {
        self.scalar()?.as_i64()
    }

    /// The value as metadata. Refused where that would be out of proportion to the file, as lists of maps of nothing are.
    pub(super) fn value(self) -> Result<Value> {
        // While it is packed it grows by doubling.
        self.take(self.packed_len().saturating_mul(3))?;
        let mut packer = Packer::new();
        self.pack(&mut packer);
        Ok(packer.finish())
    }

    /// Refuses what would take more memory than is in proportion to the file.
    pub(super) fn take(self, bytes: u64) -> Result<()> {
        let room = &self.yaml.room;
        let Some(left) = room.get().checked_sub(bytes) else {
            let len = self.yaml.text.len();
            let message = format!(
                "the description takes more than {ROOM_PER_BYTE} times its {len} bytes in memory"
            );
            return Err(Error::limit("cc4s.yaml", message).at(self.at()..self.at() + 1));
        };
        room.set(left);
        Ok(())
    }

    /// Bytes of the value when it is packed, at most.
    fn packed_len(self) -> u64 {
        // A kind, a length, a number of entries.
        const HEAD: u64 = 4;
        const REAL: u64 = 9;
        if let Some(text) = self.text() {
            let is_real = text.starts_with(['+', '-', '.']) || text.contains(['.', 'e', 'E']);
            return text.len() as u64 + if is_real { REAL } else { HEAD };
        }
        let inside: u64 = match self.entries() {
            Some(entries) => entries
                .map(|(key, node)| key.len() as u64 + HEAD + node.packed_len())
                .sum(),
            None => self.children().map(Node::packed_len).sum(),
        };
        inside + HEAD
    }

    fn pack(self, packer: &mut Packer) {
        if let Some(value) = self.scalar() {
            packer.value(&value);
            return;
        }
        match self.entries() {
            Some(entries) => {
                packer.open_map();
                for (key, node) in entries {
                    packer.key(key);
                    node.pack(packer);
                }
            }
            None => {
                packer.open_list();
                self.children().for_each(|item| item.pack(packer));
            }
        }
        packer.close();
    }
}

/// What is directly in a list or a map.
#[derive(Clone)]
pub(super) struct Children<'y> {
    yaml: &'y Yaml,
    next: usize,
    end: usize,
}

impl<'y> Iterator for Children<'y> {
    type Item = Node<'y>;

    fn next(&mut self) -> Option<Node<'y>> {
        let index = self.next;
        if index >= self.end {
            return None;
        }
        self.next = self.yaml.events.next(index);
        Some(Node {
            yaml: self.yaml,
            index,
        })
    }

    /// Exact, by a walk: what is collected takes no more room than it needs.
    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.clone().count();
        (count, Some(count))
    }

    fn count(mut self) -> usize {
        let mut count = 0;
        while self.next().is_some() {
            count += 1;
        }
        count
    }
}

/// The keys and values of a map.
#[derive(Clone)]
pub(super) struct Entries<'y>(Children<'y>);

impl<'y> Iterator for Entries<'y> {
    type Item = (&'y str, Node<'y>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.0.next()?;
        Some((key.text()?, self.0.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.0.clone().count() / 2;
        (count, Some(count))
    }
}

impl<'y> Entries<'y> {
    /// The values by their keys, if those are 0, 1, ... in any order.
    fn items(self) -> Option<Items<'y>> {
        let number = |key: &str| key.parse::<u64>().ok();
        let mut counted = (0u64..).zip(self.clone());
        if counted.all(|(place, (key, _))| number(key) == Some(place)) {
            return Some(Items::Map(self));
        }
        let mut sorted = Vec::with_capacity(self.size_hint().0);
        for (key, node) in self {
            sorted.push((number(key)?, node));
        }
        sorted.sort_by_key(|(key, _)| *key);
        let counted = (0u64..).zip(&sorted).all(|(place, (key, _))| place == *key);
        counted.then(|| Items::Sorted(sorted.into_iter()))
    }
}

/// The items of a list.
#[derive(Clone)]
pub(super) enum Items<'y> {
    List(Children<'y>),
    Map(Entries<'y>),
    Sorted(vec::IntoIter<(u64, Node<'y>)>),
}

impl<'y> Iterator for Items<'y> {
    type Item = Node<'y>;

    fn next(&mut self) -> Option<Node<'y>> {
        match self {
            Items::List(children) => children.next(),
            Items::Map(entries) => entries.next().map(|(_, node)| node),
            Items::Sorted(sorted) => sorted.next().map(|(_, node)| node),
        }
    }
}

/// What a scalar without quotes stands for.
pub(super) fn plain_value(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Value::F64(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" => return Value::F64(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Value::F64(f64::NEG_INFINITY),
        _ => {}
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let numeric = |byte: u8| byte.is_ascii_digit() || b".eE+-".contains(&byte);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        || !digits.bytes().all(numeric)
    {
        return Value::Str(text.to_owned());
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return match (text.parse(), text.parse()) {
            (Ok(number), _) => Value::I64(number),
            (_, Ok(number)) => Value::U64(number),
            _ => Value::Integer(text.trim_start_matches('+').to_owned()),
        };
    }
    text.parse()
        .map_or_else(|_| Value::Str(text.to_owned()), Value::F64)
}
