//! Programs that are written.

use super::text::integer;
use crate::error::{Error, Result};
use crate::model::Value;
use crate::prelude::*;

/// The program so far, in the opcodes of protocol 4.
#[derive(Debug, Default)]
pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    /// What was written since the last time.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.0)
    }

    /// Opcodes as they are.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// GLOBAL
    pub(crate) fn global(&mut self, module: &str, name: &str) -> &mut Self {
        self.put(b"c").put(module.as_bytes()).put(b"\n");
        self.put(name.as_bytes()).put(b"\n")
    }

    /// SHORT_BINUNICODE, BINUNICODE or BINUNICODE8
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.counted(text.len() as u64, [0x8c, b'X', 0x8d])
            .put(text.as_bytes())
    }

    /// The head of so many bytes: SHORT_BINBYTES, BINBYTES or BINBYTES8
    pub(crate) fn bytes(&mut self, len: u64) -> &mut Self {
        self.counted(len, [b'C', b'B', 0x8e])
    }

    fn counted(&mut self, len: u64, [one, four, eight]: [u8; 3]) -> &mut Self {
        match (u8::try_from(len), u32::try_from(len)) {
            (Ok(len), _) => self.put(&[one, len]),
            (_, Ok(len)) => self.put(&[four]).put(&len.to_le_bytes()),
            _ => self.put(&[eight]).put(&len.to_le_bytes()),
        }
    }

    pub(crate) fn bool(&mut self, value: bool) -> &mut Self {
        self.put(if value { b"\x88" } else { b"\x89" })
    }

    /// BININT1, BININT or LONG1
    pub(crate) fn number(&mut self, number: i64) -> &mut Self {
        match (u8::try_from(number), i32::try_from(number)) {
            (Ok(number), _) => self.put(&[b'K', number]),
            (_, Ok(number)) => self.put(b"J").put(&number.to_le_bytes()),
            _ => self.put(b"\x8a\x08").put(&number.to_le_bytes()),
        }
    }

    /// A value that has no parts.
    pub(crate) fn value(&mut self, value: &Value) -> Result<&mut Self> {
        Ok(match value {
            Value::Null => self.put(b"N"),
            Value::Bool(value) => self.bool(*value),
            Value::F32(number) => self.put(b"G").put(&f64::from(*number).to_be_bytes()),
            Value::F64(number) => self.put(b"G").put(&number.to_be_bytes()),
            Value::Str(text) => self.text(text),
            Value::Bytes(bytes) => self.bytes(bytes.len() as u64).put(bytes),
            Value::Integer(digits) => self.long(&integer(digits.as_bytes())?),
            other => match (other.as_i64(), other.as_u64()) {
                (Some(number), _) => self.number(number),
                (_, Some(number)) => {
                    // One byte more, so that the highest bit is not a sign.
                    let digits = [&number.to_le_bytes()[..], &[0]].concat();
                    self.long(&digits)
                }
                _ => {
                    let message = format!("{} cannot be written", other.in_words());
                    return Err(Error::unsupported("write", message));
                }
            },
        })
    }

    /// LONG1: an integer of few bytes, two's complement.
    fn long(&mut self, digits: &[u8]) -> &mut Self {
        // The capabilities allow for no more.
        let len = u8::try_from(digits.len()).unwrap_or(u8::MAX);
        self.put(&[0x8a, len]).put(digits)
    }
}
