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

    /// The same over a part of the source: what an extension holds.
    pub(crate) fn over(source: &'a dyn crate::io::Source, range: Range<u64>, rules: Rules) -> Self {
        Self {
            r: Reader::over(source, range, rules.truncated),
            rules,
        }
    }

    /// The next object, whatever it is. What it consists of follows: entries, or bytes.
    pub(crate) fn item(&mut self, field: &'static str) -> Result<Item> {
        let at = self.pos();
        let marker = self.r.u8(field)?;
        Ok(match marker {
            0x00..=0x7f => Item::Integer(marker.into()),
            0x80..=0x8f => Item::Map(u32::from(marker - 0x80)),
            0x90..=0x9f => Item::Array(u32::from(marker - 0x90)),
            0xa0..=0xbf => Item::Text(u32::from(marker - 0xa0)),
            0xc0 => Item::Nil,
            0xc1 => return Err(self.unexpected(marker, "an object", at, field)),
            0xc2 | 0xc3 => Item::Bool(marker == 0xc3),
            0xc4..=0xc6 => Item::Bin(self.counted(marker - 0xc4, field)?),
            0xc7..=0xc9 => {
                let len = self.counted(marker - 0xc7, field)?;
                self.ext(len, field)?
            }
            0xca => Item::F32(f32::from_be_bytes(self.r.array(field)?)),
            0xcb => Item::F64(f64::from_be_bytes(self.r.array(field)?)),
            0xcc => Item::Integer(self.r.u8(field)?.into()),
            0xcd => Item::Integer(u16::from_be_bytes(self.r.array(field)?).into()),
            0xce => Item::Integer(u32::from_be_bytes(self.r.array(field)?).into()),
            0xcf => {
                let number = u64::from_be_bytes(self.r.array(field)?);
                i64::try_from(number).map_or(Item::Unsigned(number), Item::Integer)
            }
            0xd0 => Item::Integer(i8::from_be_bytes(self.r.array(field)?).into()),
            0xd1 => Item::Integer(i16::from_be_bytes(self.r.array(field)?).into()),
            0xd2 => Item::Integer(i32::from_be_bytes(self.r.array(field)?).into()),
            0xd3 => Item::Integer(i64::from_be_bytes(self.r.array(field)?)),
            0xd4..=0xd8 => self.ext(1 << (marker - 0xd4), field)?,
            0xd9..=0xdb => Item::Text(self.counted(marker - 0xd9, field)?),
            0xdc | 0xdd => Item::Array(self.counted(marker - 0xdc + 1, field)?),
            0xde | 0xdf => Item::Map(self.counted(marker - 0xde + 1, field)?),
            0xe0..=0xff => Item::Integer(i8::from_be_bytes([marker]).into()),
        })
    }

    /// A count in 1, 2 or 4 bytes.
    fn counted(&mut self, form: u8, field: &'static str) -> Result<u32> {
        match form {
            0 => self.r.u8(field).map(u32::from),
            1 => self.r.array(field).map(u16::from_be_bytes).map(u32::from),
            _ => self.r.array(field).map(u32::from_be_bytes),
        }
    }

    fn ext(&mut self, len: u32, field: &'static str) -> Result<Item> {
        let kind = i8::from_be_bytes(self.r.array(field)?);
        Ok(Item::Ext { kind, len })
    }

    /// Checks that so many entries of at least so many bytes can follow.
    pub(crate) fn count(&self, count: u32, least: u64, field: &'static str) -> Result<usize> {
        self.r.count(count.into(), least, field)
    }

    /// The bytes of text or binary data that was announced.
    pub(crate) fn take(&mut self, len: u32, field: &'static str) -> Result<bytes::Bytes> {
        self.r.take(len.into(), field)
    }

    /// The text that was announced.
    pub(crate) fn announced(&mut self, len: u32, field: &'static str) -> Result<String> {
        self.r.text(len.into(), self.rules.utf8, field)
    }

    /// Where the next object begins.
    pub(crate) fn pos(&self) -> u64 {
        self.r.pos()
    }

    /// Goes on from another place.
    pub(crate) fn go_to(&mut self, at: u64) {
        self.r.go_to(at);
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

/// An object, or the head of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Item {
    Nil,
    Bool(bool),
    Integer(i64),
    /// One that has 64 bits and no room for a sign.
    Unsigned(u64),
    F32(f32),
    F64(f64),
    /// So many bytes of text follow.
    Text(u32),
    /// So many bytes follow.
    Bin(u32),
    /// So many entries follow.
    Array(u32),
    /// So many keys and values follow.
    Map(u32),
    /// So many bytes of a type of extensions follow.
    Ext {
        kind: i8,
        len: u32,
    },
}

impl Item {
    /// What it is, for messages.
    pub(crate) fn what(self) -> String {
        match self {
            Item::Nil => "nil".to_owned(),
            Item::Bool(value) => value.to_string(),
            Item::Integer(number) => number.to_string(),
            Item::Unsigned(number) => number.to_string(),
            Item::F32(number) => format!("{number:?}"),
            Item::F64(number) => format!("{number:?}"),
            Item::Text(_) => "a str".to_owned(),
            Item::Bin(_) => "a bin".to_owned(),
            Item::Array(_) => "an array".to_owned(),
            Item::Map(_) => "a map".to_owned(),
            Item::Ext { kind, .. } => format!("an ext of type {kind}"),
        }
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

    pub(crate) fn nil(&mut self) -> &mut Self {
        self.0.push(0xc0);
        self
    }

    pub(crate) fn bool(&mut self, value: bool) -> &mut Self {
        self.0.push(if value { 0xc3 } else { 0xc2 });
        self
    }

    pub(crate) fn f64(&mut self, value: f64) -> &mut Self {
        self.0.push(0xcb);
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// A whole number in its shortest form.
    pub(crate) fn unsigned(&mut self, value: u64) -> &mut Self {
        match (
            u8::try_from(value),
            u16::try_from(value),
            u32::try_from(value),
        ) {
            (Ok(value @ 0..=0x7f), ..) => self.0.push(value),
            (Ok(value), ..) => self.0.extend([0xcc, value]),
            (_, Ok(value), _) => {
                self.0.push(0xcd);
                self.0.extend_from_slice(&value.to_be_bytes());
            }
            (_, _, Ok(value)) => return self.u32(value),
            _ => {
                self.0.push(0xcf);
                self.0.extend_from_slice(&value.to_be_bytes());
            }
        }
        self
    }

    /// The same with a sign.
    pub(crate) fn signed(&mut self, value: i64) -> &mut Self {
        if let Ok(value) = u64::try_from(value) {
            return self.unsigned(value);
        }
        match (
            i8::try_from(value),
            i16::try_from(value),
            i32::try_from(value),
        ) {
            (Ok(value @ -32..), ..) => self.0.extend_from_slice(&value.to_be_bytes()),
            (Ok(value), ..) => {
                self.0.push(0xd0);
                self.0.extend_from_slice(&value.to_be_bytes());
            }
            (_, Ok(value), _) => {
                self.0.push(0xd1);
                self.0.extend_from_slice(&value.to_be_bytes());
            }
            (_, _, Ok(value)) => {
                self.0.push(0xd2);
                self.0.extend_from_slice(&value.to_be_bytes());
            }
            _ => {
                self.0.push(0xd3);
                self.0.extend_from_slice(&value.to_be_bytes());
            }
        }
        self
    }

    /// The head of `len` bytes of a type of extensions.
    pub(crate) fn ext(&mut self, kind: i8, len: u64) -> Result<&mut Self> {
        if let Some(short @ 0..=4) = len.is_power_of_two().then(|| len.trailing_zeros()) {
            self.0.push(0xd4 + u8::try_from(short).unwrap_or(0));
        } else {
            self.head(len, (0, 0), Some(0xc7), 0xc8)?;
        }
        self.0.extend_from_slice(&kind.to_be_bytes());
        Ok(self)
    }

    /// Bytes as they are: what a head announced.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
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
