//! Writing fields, in their shortest form.

use crate::prelude::*;

const VARINT: u64 = 0;
const LEN: u64 = 2;
const FIXED32: u64 = 5;

/// Writes fields one after the other.
#[derive(Debug, Default)]
pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Everything that was written.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// A number; negative ones of any width as 64 bits.
    pub(crate) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        self.varint(u64::from(field) << 3 | VARINT);
        self.varint(value);
        self
    }

    /// The head of a field of `len` bytes, which follow.
    pub(crate) fn head(&mut self, field: u32, len: u64) -> &mut Self {
        self.varint(u64::from(field) << 3 | LEN);
        self.varint(len);
        self
    }

    /// A number of 32 bits that always takes as many.
    pub(crate) fn fixed32(&mut self, field: u32, value: u32) -> &mut Self {
        self.varint(u64::from(field) << 3 | FIXED32);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Text, bytes, or a message.
    pub(crate) fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        self.head(field, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// A message that is written by `fill`.
    pub(crate) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Encoder)) -> &mut Self {
        let mut inside = Encoder::new();
        fill(&mut inside);
        self.bytes(field, &inside.0)
    }

    fn varint(&mut self, value: u64) {
        varint(&mut self.0, value);
    }
}

/// Seven bits in each byte, the least significant first.
pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while let Ok(low) = u8::try_from(value & 0x7f) {
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}
