//! The first bytes of items: which there are, and which are permitted.

use crate::error::{Error, Result};
use crate::prelude::*;
use crate::wire::cbor::{Decoder, encode};

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

impl Decoder<'_> {
    /// The kind of the next item, whose head has been found to be permitted.
    pub(super) fn head(&self) -> Result<Kind> {
        let Some(first) = self.peek() else {
            return Err(self.syntax("the bytes end where an item should begin"));
        };
        if self.depth > self.max_depth {
            return Err(self.too_deep());
        }
        let Some(kind) = Kind::of(first) else {
            return Err(self.syntax(&format!("the reserved code {first:#04x}")));
        };
        let is_level = matches!(kind, Kind::Array | Kind::Map | Kind::Tag);
        if self.lenient && is_level && self.depth == self.max_depth {
            return Err(self.too_deep());
        }
        if self.deterministic {
            self.check_head(first, kind)?;
        }
        self.check_len(first, kind)?;
        Ok(kind)
    }

    fn too_deep(&self) -> Error {
        let message = format!("nested deeper than {}", self.max_depth);
        Error::malformed(self.rules.depth, message).at(self.pos()..self.pos() + 1)
    }

    /// A declared length needs as many bytes: a byte for each item, and two for each entry of a map.
    fn check_len(&self, first: u8, kind: Kind) -> Result<()> {
        let (len, size) = match (kind, first & 0x1f) {
            (Kind::Array | Kind::Bytes | Kind::Map | Kind::Text, info @ 24..=27) => {
                let len = 1usize << (info - 24);
                (self.argument(len), 1 + len as u64)
            }
            _ => return Ok(()),
        };
        let left = (self.inner.input().len() - self.inner.position()) as u64;
        let room = left.saturating_sub(size) / if kind == Kind::Map { 2 } else { 1 };
        match len {
            Some(len) if len > room => {
                let message = format!("{} of length {len}, there is room for {room}", kind.name());
                Err(self.syntax(&message))
            }
            _ => Ok(()),
        }
    }

    fn check_head(&self, first: u8, kind: Kind) -> Result<()> {
        match kind {
            Kind::Tag | Kind::Simple => {
                return Err(self.syntax(&format!("{} is not permitted", kind.name())));
            }
            Kind::Float => return self.check_float(first),
            _ => {}
        }
        // RFC 8949, 3: the lower five bits say how many bytes of the argument follow.
        let shortest = match first & 0x1f {
            24 => self.argument(1).is_none_or(|n| n >= 24),
            25 => self.argument(2).is_none_or(|n| n > 0xff),
            26 => self.argument(4).is_none_or(|n| n > 0xffff),
            27 => self.argument(8).is_none_or(|n| n > 0xffff_ffff),
            31 if kind != Kind::Break => {
                return Err(self.syntax("an indefinite length is not permitted"));
            }
            _ => true,
        };
        if shortest {
            Ok(())
        } else {
            Err(self.form("a number or length that is not in its shortest form"))
        }
    }

    fn check_float(&self, first: u8) -> Result<()> {
        let len = 1 << (first - 0xf8);
        let Some(bits) = self.argument(len) else {
            return Ok(()); // reading it finds that it is cut
        };
        let value = match first {
            0xf9 => f64::from(half::f16::from_bits(u16::try_from(bits).unwrap_or(0))),
            0xfa => f64::from(f32::from_bits(u32::try_from(bits).unwrap_or(0))),
            _ => f64::from_bits(bits),
        };
        if value.is_nan() && (first, bits) != (0xf9, 0x7e00) {
            return Err(self.form("a NaN other than f9 7e 00"));
        }
        if len > encode::float_len(value) {
            return Err(self.form("a floating-point number that is not in its shortest form"));
        }
        Ok(())
    }

    /// The `len` bytes behind the first one of the next item, as a number.
    pub(super) fn argument(&self, len: usize) -> Option<u64> {
        let from = self.inner.position() + 1;
        let bytes = self.inner.input().get(from..from + len)?;
        Some(bytes.iter().fold(0, |n, &byte| n << 8 | u64::from(byte)))
    }

    fn form(&self, message: &str) -> Error {
        Error::malformed(self.rules.form, message).at(self.pos()..self.pos() + 1)
    }
}
