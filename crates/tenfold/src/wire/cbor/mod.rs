//! CBOR (RFC 8949) with the places of errors, limits, and three sets of rules.
//!
//! Any well-formed encoding is read unless [`Decoder::deterministic`] asks for the core deterministic encoding of section
//! 4.2.1, without tags. Nothing is allocated because an item says how long it is: items are read until the bytes end.

mod encode;
mod head;
mod keys;
mod value;

use alloc::borrow::Cow;

use crate::error::{Error, Result};
use crate::prelude::*;

pub(crate) use encode::{Encoder, key_order};
use head::{CUT, Head, Kind, NOT_UTF8};

/// The rules of a format under which its CBOR is refused.
pub(crate) struct Rules {
    /// Not well-formed, or not of the kind that the format permits.
    pub(crate) syntax: &'static str,
    /// Nested too deep.
    pub(crate) depth: &'static str,
    /// Well-formed, but not the deterministic encoding.
    pub(crate) form: &'static str,
    /// A key that appears twice.
    pub(crate) duplicate: &'static str,
    /// An item of another kind than the field needs.
    pub(crate) schema: &'static str,
}

const BREAK: u8 = 0xff;
const NO_FIELDS: &[&str] = &[];

/// Reads items one after the other.
pub(crate) struct Decoder<'b> {
    input: &'b [u8],
    /// How much of the input has been read.
    at: usize,
    /// Where the bytes begin in their file.
    base: u64,
    rules: &'static Rules,
    deterministic: bool,
    lenient: bool,
    max_depth: usize,
    depth: usize,
    /// Where the entry begins that [`fields`](Self::fields) gave out last.
    entry_at: usize,
    /// Where the keys are of the maps that are being read, innermost last.
    keys: Vec<usize>,
}

/// The key of an entry.
pub(crate) enum Key<'b> {
    /// The field at this place of the list.
    Field(usize),
    /// None of them.
    Other(Cow<'b, str>),
    /// No text.
    NotText,
}

impl<'b> Decoder<'b> {
    /// A decoder of any well-formed CBOR whose bytes begin at `base` of their file.
    pub(crate) fn new(input: &'b [u8], base: u64, rules: &'static Rules, max_depth: usize) -> Self {
        Self {
            input,
            at: 0,
            base,
            rules,
            deterministic: false,
            lenient: false,
            max_depth,
            depth: 0,
            entry_at: 0,
            keys: Vec::new(),
        }
    }

    /// Permits the deterministic encoding only.
    pub(crate) fn deterministic(mut self) -> Self {
        self.deterministic = true;
        self
    }

    /// Reads as Burn's decoder does: a tagged item is the item itself, an item that nobody asks for only has to be
    /// well-formed, and the depth is that of arrays, maps and tags, not of what is inside the innermost.
    pub(crate) fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Where the next item begins in the file.
    pub(crate) fn pos(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Makes sure that nothing is left.
    pub(crate) fn finish(self) -> Result<()> {
        let left = self.input.len() - self.at;
        if left > 0 {
            let at = self.pos();
            let message = format!("{left} bytes follow the one item that should be here");
            return Err(Error::malformed(self.rules.syntax, message).at(at..at + left as u64));
        }
        Ok(())
    }

    /// How many items the next array or map says that it has, as far as there is room for items of `size` bytes.
    pub(crate) fn room(&self, size: usize) -> usize {
        let declared = match Head::read(self.input, self.at) {
            Some(head) if head.end > self.input.len() => 0,
            head => head.and_then(|head| head.argument).unwrap_or(u64::MAX),
        };
        let room = (self.input.len() - self.at) / size;
        usize::try_from(declared).unwrap_or(usize::MAX).min(room)
    }

    /// Text.
    pub(crate) fn text(&mut self, field: &str) -> Result<Cow<'b, str>> {
        let head = self.expect(Kind::Text, field)?;
        self.text_item(&head)
    }

    /// The next item, if it is text.
    pub(crate) fn take_text(&mut self) -> Result<Option<Cow<'b, str>>> {
        self.pass_tags()?;
        let head = self.head()?;
        if head.kind != Kind::Text {
            return Ok(None);
        }
        self.text_item(&head).map(Some)
    }

    /// Passes over null, if that is the next item, and says whether it was.
    pub(crate) fn take_null(&mut self) -> Result<bool> {
        self.pass_tags()?;
        if self.peek() != Some(Kind::Null) {
            return Ok(false);
        }
        let head = self.head()?;
        self.argument(&head).map(|_| true)
    }

    /// An unsigned number.
    pub(crate) fn unsigned(&mut self, field: &str) -> Result<u64> {
        let head = self.expect(Kind::Unsigned, field)?;
        self.argument(&head)
    }

    /// An array, each of whose items `item` must read.
    pub(crate) fn array(
        &mut self,
        field: &str,
        item: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let head = self.expect(Kind::Array, field)?;
        self.items(&head, item)
    }

    /// A map with text keys only, each of whose values `entry` must read.
    pub(crate) fn map(
        &mut self,
        field: &str,
        mut entry: impl FnMut(&mut Self, Cow<'b, str>) -> Result<()>,
    ) -> Result<()> {
        let head = self.expect(Kind::Map, field)?;
        self.entries(&head, NO_FIELDS, |cbor, key, at| match key {
            Key::Other(key) => entry(cbor, key),
            _ => Err(cbor.not_text(field, at)),
        })
    }

    /// A map of fields that are known beforehand, each of whose values `entry` must read. There are at most 64 of them, and
    /// keys that come in their order are found without being decoded.
    ///
    /// No key appears twice; in lenient CBOR that is so for the fields only. Keys that are not text are given out in
    /// lenient and in deterministic CBOR, and refused elsewhere.
    pub(crate) fn fields(
        &mut self,
        what: &str,
        fields: &[impl AsRef<str>],
        mut entry: impl FnMut(&mut Self, Key<'b>) -> Result<()>,
    ) -> Result<()> {
        let head = self.expect(Kind::Map, what)?;
        self.entries(&head, fields, |cbor, key, at| match key {
            Key::NotText if !cbor.lenient && !cbor.deterministic => Err(cbor.not_text(what, at)),
            key => entry(cbor, key),
        })
    }

    /// Any item, checked and passed over.
    pub(crate) fn skip(&mut self) -> Result<()> {
        let head = self.head()?;
        match head.kind {
            Kind::Array => self.items(&head, Self::skip),
            // The keys are items as any other.
            Kind::Map if self.lenient => self.items(&head, |cbor| {
                cbor.skip()?;
                cbor.skip()
            }),
            Kind::Map => self.entries(&head, NO_FIELDS, |cbor, _, _| cbor.skip()),
            Kind::Tag if self.lenient => {
                self.argument(&head)?;
                self.depth += 1;
                self.skip()?;
                self.depth -= 1;
                Ok(())
            }
            Kind::Text => self.text_item(&head).map(drop),
            _ => self.scalar(&head).map(drop),
        }
    }

    /// Refuses the next item, which is not text, unless it is a map.
    pub(crate) fn text_or_map(&mut self, field: &str) -> Result<()> {
        self.pass_tags()?;
        match self.head()?.kind {
            // Whoever reads the map refuses a break.
            Kind::Map | Kind::Break => Ok(()),
            found => {
                let message = format!("{field} is {}, expected text or a map", found.name());
                let at = self.pos()..self.pos() + 1;
                Err(Error::malformed(self.rules.schema, message).at(at))
            }
        }
    }

    /// Passes over the value of the entry that [`fields`](Self::fields) gave out last; where the entry begins, and its
    /// bytes from the key on.
    pub(crate) fn skip_entry(&mut self) -> Result<(u64, &'b [u8])> {
        let from = self.entry_at;
        self.skip()?;
        Ok((self.base + from as u64, self.since(from)))
    }

    /// The items of an array.
    fn items(&mut self, head: &Head, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.argument(head)?;
        let mut left = head.argument;
        self.depth += 1;
        while self.more(&mut left) {
            item(self)?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// The entries of a map: their keys, and the places of those.
    fn entries(
        &mut self,
        head: &Head,
        fields: &[impl AsRef<str>],
        mut entry: impl FnMut(&mut Self, Key<'b>, u64) -> Result<()>,
    ) -> Result<()> {
        let mut known = self.known_keys();
        let mut previous = None;
        let (mut seen, mut next) = (0u64, 0);
        self.items(head, |cbor| {
            let entry_at = cbor.at;
            let (key, from) = match fields.get(next) {
                Some(field) if cbor.take_key(field.as_ref()) => (Key::Field(next), entry_at),
                _ => cbor.key(fields)?,
            };
            match &key {
                _ if cbor.deterministic => cbor.check_order(&mut previous, from)?,
                Key::Field(place) if seen & 1 << place != 0 => {
                    let field = fields.get(*place).map_or("", AsRef::as_ref);
                    return Err(cbor.duplicate(field, cbor.base + entry_at as u64));
                }
                Key::Other(key) if fields.is_empty() || !cbor.lenient => {
                    cbor.check_new(key, from, &mut known)?;
                }
                _ => {}
            }
            if let Key::Field(place) = key {
                seen |= 1 << place;
                next = place + 1;
            }
            cbor.entry_at = entry_at;
            entry(cbor, key, cbor.base + from as u64)
        })?;
        self.forget_keys(&known);
        Ok(())
    }

    /// Passes over a short text in its shortest form, if that is the next item.
    fn take_key(&mut self, key: &str) -> bool {
        let Some([first, rest @ ..]) = self.input.get(self.at..) else {
            return false;
        };
        let is_it = key.len() < 24
            && usize::from(first ^ 0x60) == key.len()
            && rest.starts_with(key.as_bytes());
        if is_it {
            self.at += 1 + key.len();
        }
        is_it
    }

    /// The next key, whatever it is, and where it begins.
    fn key(&mut self, fields: &[impl AsRef<str>]) -> Result<(Key<'b>, usize)> {
        self.pass_tags()?;
        let from = self.at;
        let head = self.head()?;
        if head.kind != Kind::Text {
            self.skip()?;
            return Ok((Key::NotText, from));
        }
        let key = self.text_item(&head)?;
        let place = fields.iter().position(|field| field.as_ref() == key);
        Ok((place.map_or(Key::Other(key), Key::Field), from))
    }

    /// Whether a container has another item; passes over the break that ends one of indefinite length.
    fn more(&mut self, left: &mut Option<u64>) -> bool {
        match left {
            Some(0) => false,
            Some(n) => {
                *n -= 1;
                true
            }
            None if self.input.get(self.at) == Some(&BREAK) => {
                self.at += 1;
                false
            }
            None => true,
        }
    }

    /// The kind of the next item, whether it is permitted or not.
    fn peek(&self) -> Option<Kind> {
        self.input.get(self.at).copied().and_then(Kind::of)
    }

    /// What was read since a place.
    fn since(&self, from: usize) -> &'b [u8] {
        self.input.get(from..self.at).unwrap_or_default()
    }

    /// Passes over tags where they mean nothing. They count as levels, so that there are not too many of them.
    #[inline]
    fn pass_tags(&mut self) -> Result<()> {
        const TAG: u8 = 6;
        let is_tag = |cbor: &Self| {
            cbor.input
                .get(cbor.at)
                .is_some_and(|first| first >> 5 == TAG)
        };
        if !self.lenient || !is_tag(self) {
            return Ok(());
        }
        let depth = self.depth;
        while is_tag(self) {
            let head = self.head()?;
            self.argument(&head)?;
            self.depth += 1;
        }
        self.depth = depth;
        Ok(())
    }

    /// The head of an item that must be of a kind.
    #[inline]
    fn expect(&mut self, kind: Kind, field: &str) -> Result<Head> {
        self.pass_tags()?;
        let head = self.head()?;
        if head.kind == kind {
            Ok(head)
        } else {
            Err(self.other_kind(head.kind, kind, field))
        }
    }

    #[cold]
    fn other_kind(&self, found: Kind, expected: Kind, field: &str) -> Error {
        if found == Kind::Break {
            return self.stray_break();
        }
        let (found, expected) = (found.name(), expected.name());
        let message = format!("{field} is {found}, expected {expected}");
        Error::malformed(self.rules.schema, message).at(self.pos()..self.pos() + 1)
    }

    /// Passes over a head: its argument, or 0 where that is an indefinite length.
    #[inline]
    fn argument(&mut self, head: &Head) -> Result<u64> {
        if head.end > self.input.len() {
            return Err(self.malformed(CUT));
        }
        self.at = head.end;
        Ok(head.argument.unwrap_or(0))
    }

    #[inline]
    fn text_item(&mut self, head: &Head) -> Result<Cow<'b, str>> {
        // Nearly all say how long they are.
        if let Some((bytes, end)) = head.bytes(self.input)
            && let Ok(text) = core::str::from_utf8(bytes)
        {
            self.at = end;
            return Ok(Cow::Borrowed(text));
        }
        self.other_text(head)
    }

    /// A text in chunks, or one that is wrong.
    #[cold]
    fn other_text(&mut self, head: &Head) -> Result<Cow<'b, str>> {
        let (bytes, end) = (head.string(self.input)).map_err(|why| self.malformed(why))?;
        let text = match bytes {
            Cow::Borrowed(bytes) => core::str::from_utf8(bytes).map(Cow::Borrowed).ok(),
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).ok(),
        };
        let text = text.ok_or_else(|| self.malformed(NOT_UTF8))?;
        self.at = end;
        Ok(text)
    }

    /// The error for an item that begins here and cannot be read: nobody knows where it ends.
    #[cold]
    fn malformed(&self, message: &str) -> Error {
        let end = self.base + self.input.len() as u64;
        Error::malformed(self.rules.syntax, message).at(self.pos()..end)
    }

    #[cold]
    fn syntax(&self, message: &str) -> Error {
        Error::malformed(self.rules.syntax, message).at(self.pos()..self.pos() + 1)
    }

    fn stray_break(&self) -> Error {
        self.syntax("a break where an item should be")
    }

    /// The error for a key at `at`, which has been read, that is not text.
    fn not_text(&self, what: &str, at: u64) -> Error {
        let message = format!("{what} has a key that is not text");
        Error::malformed(self.rules.schema, message).at(at..self.pos())
    }
}

#[cfg(test)]
mod tests;
