//! Text, bytes and numbers, with a quick way for the short ones that most are.

use alloc::borrow::Cow;

use bytes::Bytes;

use super::Decoder;
use crate::error::Result;
use crate::prelude::*;

impl<'b> Decoder<'b> {
    pub(super) fn text_item(&mut self) -> Result<Cow<'b, str>> {
        if let Some(text) = self.short_text() {
            return Ok(Cow::Borrowed(text));
        }
        if self.peek() != Some(0x7f) {
            return self.run(|inner| inner.str()).map(Cow::Borrowed);
        }
        self.run(|inner| inner.str_iter()?.collect::<Result<String, _>>())
            .map(Cow::Owned)
    }

    pub(super) fn bytes_item(&mut self) -> Result<Bytes> {
        if self.peek() != Some(0x5f) {
            return self.run(|inner| inner.bytes()).map(Bytes::copy_from_slice);
        }
        let mut bytes = Vec::new();
        self.run(|inner| {
            for chunk in inner.bytes_iter()? {
                bytes.extend_from_slice(chunk?);
            }
            Ok(())
        })?;
        Ok(bytes.into())
    }

    /// Text of less than 256 bytes, which nearly all keys and values are: without the general way.
    pub(super) fn short_text(&mut self) -> Option<&'b str> {
        let at = self.inner.position();
        let (from, len) = match *self.inner.input().get(at..)? {
            [first @ 0x60..=0x77, ..] => (at + 1, first - 0x60),
            // A shorter one is not deterministic, which the general way finds out.
            [0x78, len @ 24..=0xff, ..] => (at + 2, len),
            _ => return None,
        };
        if self.depth > self.max_depth {
            return None;
        }
        let end = from + usize::from(len);
        let text = core::str::from_utf8(self.inner.input().get(from..end)?).ok()?;
        self.inner.set_position(end);
        Some(text)
    }

    /// The number in the first byte of an item of a kind, where it is there: less than 24. Without the general way.
    pub(super) fn short_argument(&mut self, kind: u8) -> Option<u8> {
        let number = self.peek()? ^ kind;
        if number >= 24 || self.depth > self.max_depth {
            return None;
        }
        self.inner.set_position(self.inner.position() + 1);
        Some(number)
    }

    /// An unsigned number of one byte or more behind the first one. Without the general way.
    pub(super) fn long_unsigned(&mut self) -> Option<u64> {
        if self.deterministic || self.depth > self.max_depth {
            return None;
        }
        let at = self.inner.position();
        let (number, len) = match *self.inner.input().get(at..)? {
            [0x18, a, ..] => (a.into(), 1),
            [0x19, a, b, ..] => (u16::from_be_bytes([a, b]).into(), 2),
            [0x1a, a, b, c, d, ..] => (u32::from_be_bytes([a, b, c, d]).into(), 4),
            [0x1b, a, b, c, d, e, f, g, h, ..] => (u64::from_be_bytes([a, b, c, d, e, f, g, h]), 8),
            _ => return None,
        };
        self.inner.set_position(at + 1 + len);
        Some(number)
    }
}
