//! The MessagePack that tensor files use, object by object: nothing is loaded that the caller does not ask for, and binary
//! data is located, not read.
//!
//! Numbers have one wire type each, because that is what the readers of these files accept. Lengths may be in any of
//! their forms when they are read, and are in the shortest one when they are written.

use crate::error::{Error, Result};
use crate::io::Reader;
use crate::prelude::*;

const BIN_8: u8 = 0xc4;
const FLOAT_32: u8 = 0xca;
const UINT_32: u8 = 0xce;
const STR_8: u8 = 0xd9;
const ARRAY_16: u8 = 0xdc;
const MAP_16: u8 = 0xde;

/// The rules of a format under which refusals are reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The file ends too early.
    pub(crate) truncated: &'static str,
    /// An object of another type than the one that belongs there.
    pub(crate) kind: &'static str,
    /// Text that is not UTF-8.
    pub(crate) utf8: &'static str,
}

/// Reads objects one after the other. Every method takes the name of the field, which goes into the error.
pub(crate) struct Decoder<'a> {
    r: Reader<'a>,
    rules: Rules,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(source: &'a dyn crate::io::Source, rules: Rules) -> Self {
        Self {
            r: Reader::new(source, rules.truncated),
            rules,
        }
    }

    /// Where the next object begins.
    pub(crate) fn pos(&self) -> u64 {
        self.r.pos()
    }

    /// Bytes that are left.
    pub(crate) fn remaining(&self) -> u64 {
        self.r.remaining()
    }

    /// A number of 32 bits in its full form.
    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32> {
        self.u32_or(field, "")
    }

    /// The same; what is said of another object goes on with `remark`.
    pub(crate) fn u32_or(&mut self, field: &'static str, remark: &str) -> Result<u32> {
        self.expect(UINT_32, field, remark)?;
        self.r.array(field).map(u32::from_be_bytes)
    }

    /// A floating-point number of 32 bits, with the bits that it has.
    pub(crate) fn f32(&mut self, field: &'static str) -> Result<f32> {
        self.expect(FLOAT_32, field, "")?;
        self.r.array(field).map(f32::from_be_bytes)
    }

    /// How many objects an array has. They follow.
    pub(crate) fn array(&mut self, field: &'static str) -> Result<u32> {
        let lengths = [None, Some(ARRAY_16), Some(ARRAY_16 + 1)];
        self.length(0x90..=0x9f, lengths, "an array", field)
    }

    /// How many pairs a map has. They follow, the key before the value.
    pub(crate) fn map(&mut self, field: &'static str) -> Result<u32> {
        let lengths = [None, Some(MAP_16), Some(MAP_16 + 1)];
        self.length(0x80..=0x8f, lengths, "a map", field)
    }

    /// How many bytes of binary data follow; [`skip`](Self::skip) passes over them.
    pub(crate) fn bin(&mut self, field: &'static str) -> Result<u32> {
        let lengths = [Some(BIN_8), Some(BIN_8 + 1), Some(BIN_8 + 2)];
        // An empty range: there is no short form.
        #[allow(clippy::reversed_empty_ranges)]
        self.length(1..=0, lengths, "a bin", field)
    }

    /// Passes over the bytes of binary data, and says where they are.
    pub(crate) fn skip(&mut self, len: u32, field: &'static str) -> Result<Range<u64>> {
        self.r.skip(len.into(), field)
    }

    /// Text of at most `limit` bytes.
    pub(crate) fn text(&mut self, limit: u64, field: &'static str) -> Result<String> {
        let at = self.pos();
        let lengths = [Some(STR_8), Some(STR_8 + 1), Some(STR_8 + 2)];
        let len = self.length(0xa0..=0xbf, lengths, "a str", field)?;
        if u64::from(len) > limit && u64::from(len) <= self.remaining() {
            let message = format!("{field} has {len} bytes, the limit for headers leaves {limit}");
            let error = Error::limit("limit", message).at(at..self.pos());
            return Err(error.raised_by("header_bytes", None));
        }
        self.r.text(len.into(), self.rules.utf8, field)
    }

    fn expect(&mut self, marker: u8, field: &'static str, remark: &str) -> Result<()> {
        let at = self.pos();
        let found = self.r.u8(field)?;
        if found == marker {
            Ok(())
        } else {
            let error = self.unexpected(found, name(marker), at, field);
            Err(error.adding(remark))
        }
    }

    /// A length: in the marker itself, or in 1, 2 or 4 bytes after one of the markers.
    fn length(
        &mut self,
        short: core::ops::RangeInclusive<u8>,
        [one, two, four]: [Option<u8>; 3],
        wanted: &str,
        field: &'static str,
    ) -> Result<u32> {
        let at = self.pos();
        let marker = self.r.u8(field)?;
        if short.contains(&marker) {
            return Ok(u32::from(marker - short.start()));
        }
        match Some(marker) {
            found if found == one => self.r.u8(field).map(u32::from),
            found if found == two => self.r.array(field).map(u16::from_be_bytes).map(u32::from),
            found if found == four => self.r.array(field).map(u32::from_be_bytes),
            _ => Err(self.unexpected(marker, wanted, at, field)),
        }
    }

    fn unexpected(&self, found: u8, wanted: &str, at: u64, field: &str) -> Error {
        let message = format!(
            "{field} is {} ({found:#04x}), expected {wanted}",
            name(found)
        );
        Error::malformed(self.rules.kind, message).at(at..at + 1)
    }
}

/// Writes objects one after the other.
#[derive(Default)]
pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// What was written since the last time.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.0)
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.0.push(UINT_32);
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(crate) fn f32(&mut self, value: f32) -> &mut Self {
        self.0.push(FLOAT_32);
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// The head of an array of `len` objects.
    pub(crate) fn array(&mut self, len: usize) -> Result<&mut Self> {
        self.head(len as u64, (16, 0x90), None, ARRAY_16)
    }

    /// The head of a map of `len` pairs.
    pub(crate) fn map(&mut self, len: usize) -> Result<&mut Self> {
        self.head(len as u64, (16, 0x80), None, MAP_16)
    }

    /// The head of `len` bytes of binary data.
    pub(crate) fn bin(&mut self, len: u64) -> Result<&mut Self> {
        self.head(len, (0, 0), Some(BIN_8), BIN_8 + 1)
    }

    pub(crate) fn text(&mut self, text: &str) -> Result<&mut Self> {
        self.head(text.len() as u64, (32, 0xa0), Some(STR_8), STR_8 + 1)?;
        self.0.extend_from_slice(text.as_bytes());
        Ok(self)
    }

    /// A length in its shortest form. `wide` is the marker of 2 bytes; that of 4 bytes comes after it.
    fn head(
        &mut self,
        len: u64,
        (below, short): (u8, u8),
        one: Option<u8>,
        wide: u8,
    ) -> Result<&mut Self> {
        match (u8::try_from(len), u16::try_from(len), u32::try_from(len)) {
            (Ok(len), ..) if len < below => self.0.push(short + len),
            (Ok(len), ..) if one.is_some() => self.0.extend(one.into_iter().chain([len])),
            (_, Ok(len), _) => {
                self.0.push(wide);
                self.0.extend_from_slice(&len.to_be_bytes());
            }
            (_, _, Ok(len)) => {
                self.0.push(wide + 1);
                self.0.extend_from_slice(&len.to_be_bytes());
            }
            _ => {
                let message = format!("{len} is longer than MessagePack can count (32 bits)");
                return Err(Error::unsupported("overflow", message));
            }
        }
        Ok(self)
    }
}

/// What a marker announces, for messages.
fn name(marker: u8) -> &'static str {
    match marker {
        0x00..=0x7f => "a fixint",
        0x80..=0x8f | 0xde | 0xdf => "a map",
        0x90..=0x9f | 0xdc | 0xdd => "an array",
        0xa0..=0xbf | 0xd9..=0xdb => "a str",
        0xc0 => "nil",
        0xc1 => "a byte that MessagePack never uses",
        0xc2 | 0xc3 => "a bool",
        0xc4..=0xc6 => "a bin",
        0xc7..=0xc9 | 0xd4..=0xd8 => "an ext",
        0xca => "a float 32",
        0xcb => "a float 64",
        0xcc => "a uint 8",
        0xcd => "a uint 16",
        0xce => "a uint 32",
        0xcf => "a uint 64",
        0xd0 => "an int 8",
        0xd1 => "an int 16",
        0xd2 => "an int 32",
        0xd3 => "an int 64",
        0xe0..=0xff => "a negative fixint",
    }
}

#[cfg(test)]
mod tests;
