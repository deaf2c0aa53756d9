//! The first bytes of items: which there are, and which are permitted.

use alloc::borrow::Cow;

use super::{BREAK, Decoder, encode};
use crate::error::{Error, Result};
use crate::prelude::*;

/// What is wrong with an item that the bytes end in.
pub(super) const CUT: &str = "the item here goes on past the end";
pub(super) const NOT_UTF8: &str = "text that is not UTF-8";

/// Kinds of items, as messages call them.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Kind {
    Array,
    Bool,
    Break,
    Bytes,
    Float,
    Map,
    Negative,
    Null,
    Simple,
    Tag,
    Text,
    Unsigned,
}

impl Kind {
    /// The kind of item that begins with this byte; `None` for the codes that CBOR reserves.
    pub(super) fn of(first: u8) -> Option<Self> {
        Some(match first {
            0x00..=0x1b => Kind::Unsigned,
            0x20..=0x3b => Kind::Negative,
            0x40..=0x5b | 0x5f => Kind::Bytes,
            0x60..=0x7b | 0x7f => Kind::Text,
            0x80..=0x9b | 0x9f => Kind::Array,
            0xa0..=0xbb | 0xbf => Kind::Map,
            0xc0..=0xdb => Kind::Tag,
            0xf4 | 0xf5 => Kind::Bool,
            0xf6 => Kind::Null,
            0xe0..=0xf3 | 0xf7 | 0xf8 => Kind::Simple,
            0xf9..=0xfb => Kind::Float,
            0xff => Kind::Break,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Array => "an array",
            Kind::Bool => "true or false",
            Kind::Break => "a break",
            Kind::Bytes => "a byte string",
            Kind::Float => "a floating-point number",
            Kind::Map => "a map",
            Kind::Negative => "a negative number",
            Kind::Null => "null",
            Kind::Simple => "a simple value",
            Kind::Tag => "a tagged value",
            Kind::Text => "text",
            Kind::Unsigned => "an unsigned number",
        }
    }
}

/// The kinds that have a number or a length in their first byte, by its upper three bits.
const SHORT: [Kind; 6] = [
    Kind::Unsigned,
    Kind::Negative,
    Kind::Bytes,
    Kind::Text,
    Kind::Array,
    Kind::Map,
];

/// The beginning of an item.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) first: u8,
    /// The number, the length, or the bits of a floating-point number; `None` for an indefinite length, and where the
    /// bytes end before the head does.
    pub(super) argument: Option<u64>,
    /// Where it begins and ends.
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Head {
    /// The head at a place; `None` at the end, and for reserved codes.
    #[inline]
    pub(super) fn read(input: &[u8], start: usize) -> Option<Self> {
        let (&first, rest) = input.get(start..)?.split_first()?;
        // RFC 8949, 3: the lower five bits are the argument, or say how many bytes of it follow.
        let (argument, len) = match (first & 0x1f, rest) {
            (few @ 0..=23, _) => (Some(few.into()), 0),
            (24, rest) => (rest.first().map(|&n| n.into()), 1),
            (25, rest) => (rest.first_chunk().map(|&n| u16::from_be_bytes(n).into()), 2),
            (26, rest) => (rest.first_chunk().map(|&n| u32::from_be_bytes(n).into()), 4),
            (27, rest) => (rest.first_chunk().map(|&n| u64::from_be_bytes(n)), 8),
            _ => (None, 0),
        };
        Some(Self {
            kind: Kind::of(first)?,
            first,
            argument,
            start,
            end: start + 1 + len,
        })
    }

    /// The bytes of a string and where it ends, or what is wrong with it. Of text, each chunk must be UTF-8; that a text
    /// without chunks is, is left to the caller.
    #[inline]
    pub(super) fn string<'b>(
        &self,
        input: &'b [u8],
    ) -> core::result::Result<(Cow<'b, [u8]>, usize), &'static str> {
        match self.bytes(input) {
            Some((bytes, end)) => Ok((Cow::Borrowed(bytes), end)),
            None if self.first & 0x1f != 31 => Err(CUT),
            None => (self.chunks(input)).map(|(bytes, end)| (Cow::Owned(bytes), end)),
        }
    }

    /// The bytes of a string that says how long it is, and where it ends; `None` where it does not, or is cut off.
    #[inline]
    pub(super) fn bytes<'b>(&self, input: &'b [u8]) -> Option<(&'b [u8], usize)> {
        let len = usize::try_from(self.argument?).ok()?;
        let end = self.end.checked_add(len)?;
        Some((input.get(self.end..end)?, end))
    }

    /// The bytes of a string in chunks, and where it ends.
    #[cold]
    fn chunks(&self, input: &[u8]) -> core::result::Result<(Vec<u8>, usize), &'static str> {
        let (mut all, mut at) = (Vec::new(), self.end);
        loop {
            if input.get(at).ok_or(CUT)? == &BREAK {
                return Ok((all, at + 1));
            }
            let chunk = Self::read(input, at).filter(|head| head.kind == self.kind);
            let chunk = chunk.filter(|head| head.first & 0x1f != 31);
            let chunk = chunk.ok_or("a chunk of a string is of another kind")?;
            let (bytes, end) = chunk.bytes(input).ok_or(CUT)?;
            if self.kind == Kind::Text && core::str::from_utf8(bytes).is_err() {
                return Err(NOT_UTF8);
            }
            all.extend_from_slice(bytes);
            at = end;
        }
    }

    /// A floating-point number of up to 32 bits.
    pub(super) fn narrow_float(&self, bits: u64) -> Option<f32> {
        match self.first {
            0xf9 => Some(half::f16::from_bits(u16::try_from(bits).ok()?).to_f32()),
            0xfa => Some(f32::from_bits(u32::try_from(bits).ok()?)),
            _ => None,
        }
    }
}

impl Decoder<'_> {
    /// The head of the next item, which is permitted here.
    #[inline(always)]
    pub(super) fn head(&self) -> Result<Head> {
        // Nearly all are one byte long, and there is nothing to check: neither tags nor what ends in another way.
        if let Some(&first) = self.input.get(self.at)
            && let Some(&kind) = SHORT.get(usize::from(first >> 5))
            && first & 0x1f < 24
            && self.depth < self.max_depth
        {
            return Ok(Head {
                kind,
                first,
                argument: Some(u64::from(first & 0x1f)),
                start: self.at,
                end: self.at + 1,
            });
        }
        self.any_head()
    }

    fn any_head(&self) -> Result<Head> {
        if self.depth > self.max_depth && self.at < self.input.len() {
            return Err(self.too_deep());
        }
        let Some(head) = Head::read(self.input, self.at) else {
            return Err(self.no_head());
        };
        if self.lenient
            && self.depth == self.max_depth
            && matches!(head.kind, Kind::Array | Kind::Map | Kind::Tag)
        {
            return Err(self.too_deep());
        }
        if self.deterministic {
            self.check_form(&head)?;
        }
        if head.first & 0x1f > 23 {
            self.check_room(&head)?;
        }
        Ok(head)
    }

    #[cold]
    fn no_head(&self) -> Error {
        match self.input.get(self.at) {
            Some(first) => self.syntax(&format!("the reserved code {first:#04x}")),
            None => self.syntax("the bytes end where an item should begin"),
        }
    }

    #[cold]
    fn too_deep(&self) -> Error {
        let message = format!("nested deeper than {}", self.max_depth);
        Error::malformed(self.rules.depth, message).at(self.pos()..self.pos() + 1)
    }

    /// A declared length needs as many bytes: a byte for each item, and two for each entry of a map.
    fn check_room(&self, head: &Head) -> Result<()> {
        let size = match head.kind {
            Kind::Array | Kind::Bytes | Kind::Text => 1,
            Kind::Map => 2,
            _ => return Ok(()),
        };
        let room = self.input.len().saturating_sub(head.end) as u64 / size;
        match head.argument {
            Some(len) if len > room => {
                let kind = head.kind.name();
                Err(self.syntax(&format!("{kind} of length {len}, there is room for {room}")))
            }
            _ => Ok(()),
        }
    }

    /// Makes sure that a head is of the deterministic encoding.
    fn check_form(&self, head: &Head) -> Result<()> {
        let form = |message: &str| {
            let at = self.pos()..self.pos() + 1;
            Err(Error::malformed(self.rules.form, message).at(at))
        };
        if let Kind::Tag | Kind::Simple = head.kind {
            return Err(self.syntax(&format!("{} is not permitted", head.kind.name())));
        }
        let info = head.first & 0x1f;
        if info == 31 && head.kind != Kind::Break {
            return Err(self.syntax("an indefinite length is not permitted"));
        }
        // Reading it finds that it is cut.
        let Some(argument) = head.argument else {
            return Ok(());
        };
        if head.kind == Kind::Float {
            let narrow = head.narrow_float(argument);
            let value = narrow.map_or_else(|| f64::from_bits(argument), f64::from);
            if value.is_nan() && (head.first, argument) != (0xf9, 0x7e00) {
                return form("a NaN other than f9 7e 00");
            }
            if head.end - head.start > 1 + encode::float_len(value) {
                return form("a floating-point number that is not in its shortest form");
            }
            return Ok(());
        }
        let least = match info {
            24 => 24,
            25 => 1 << 8,
            26 => 1 << 16,
            27 => 1 << 32,
            _ => 0,
        };
        if argument < least {
            return form("a number or length that is not in its shortest form");
        }
        Ok(())
    }
}
