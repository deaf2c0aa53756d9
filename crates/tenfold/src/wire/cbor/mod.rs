//! CBOR (RFC 8949) over `minicbor`: with the places of errors, limits, and two sets of rules.
//!
//! Any well-formed encoding is read unless [`Decoder::deterministic`] asks for the core deterministic encoding of section
//! 4.2.1, without tags. Nothing is allocated because an item says how long it is: items are read until the bytes end.

mod encode;
mod entries;
mod fields;
mod head;
#[cfg(feature = "burnpack")]
mod lenient;
mod short;
mod value;

use alloc::borrow::Cow;

use crate::error::{Error, Result};
use crate::prelude::*;

pub(crate) use encode::{Encoder, key_order};
pub(crate) use fields::Key;
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

const BREAK: u8 = 0xff;
/// The upper three bits of a tag's first byte.
const TAG: u8 = 6;
const STRAY_BREAK: &str = "a break where an item should be";

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
    /// Where the keys are of the maps that are being read, innermost last.
    keys: Vec<usize>,
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
        let len = self.map_len(field)?;
        self.entries(len, &mut |cbor, at, key| match key {
            Some(key) => entry(cbor, key),
            None => Err(cbor.not_text(field, at)),
        })
    }

    /// A map whose entries with other keys than text mean nothing.
    pub(crate) fn open_map(
        &mut self,
        field: &str,
        mut entry: impl FnMut(&mut Self, Cow<'b, str>) -> Result<()>,
    ) -> Result<()> {
        let len = self.map_len(field)?;
        self.entries(len, &mut |cbor, _, key| match key {
            Some(key) => entry(cbor, key),
            None => cbor.skip(),
        })
    }

    /// Any item, checked and passed over.
    pub(crate) fn skip(&mut self) -> Result<()> {
        match self.head()? {
            Kind::Array => self.array("", Self::skip),
            Kind::Map if self.lenient => self.skip_entries(),
            Kind::Map => {
                let len = self.map_len("")?;
                self.entries(len, &mut |cbor, _, _| cbor.skip())
            }
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

#[cfg(test)]
mod tests;
