//! Elements below a byte, which have a byte each in the file, as Flax and TensorFlow store them.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::{Source, read_exactly};
use crate::model::{Make, SourceId};
use crate::prelude::*;

/// Bytes that are read at once.
const PIECE: u64 = 1 << 20;

/// Packs the low bits of bytes of a file.
pub(super) struct Narrow {
    pub(super) id: SourceId,
    pub(super) source: Arc<dyn Source>,
    /// Where the bytes are, piece by piece.
    pub(super) ranges: Vec<Range<u64>>,
    /// Bits of an element: 2 or 4.
    pub(super) bits: u32,
    /// Whether the bits above must be 0; else they mean nothing.
    pub(super) is_strict: bool,
    /// The most that is made.
    pub(super) limit: u64,
}

impl core::fmt::Debug for Narrow {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Narrow({} bits, {:?})", self.bits, self.ranges)
    }
}

impl Make for Narrow {
    fn make(&self) -> Result<Bytes> {
        let count: u64 = self
            .ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum();
        let len = count.div_ceil(u64::from(8 / self.bits));
        if len > self.limit {
            let message = format!(
                "{len} bytes are needed at once, the limit is {}",
                self.limit
            );
            return Err(Error::limit("memory", message).raised_by("tensor_memory", len));
        }
        let mask = (1u8 << self.bits) - 1;
        let (mut packed, mut byte, mut filled) = (Vec::new(), 0u8, 0);
        for range in &self.ranges {
            let mut at = range.start;
            while at < range.end {
                let end = range.end.min(at + PIECE);
                for element in &read_exactly(&*self.source, at..end)? {
                    if self.is_strict && element & !mask != 0 {
                        let message = format!(
                            "an element of {} bits is stored as {element:#04x}",
                            self.bits
                        );
                        let error = Error::malformed("narrow", message);
                        return Err(error.at_source(self.id, at..end));
                    }
                    byte |= (element & mask) << filled;
                    filled += self.bits;
                    if filled == 8 {
                        packed.push(byte);
                        (byte, filled) = (0, 0);
                    }
                }
                at = end;
            }
        }
        if filled > 0 {
            packed.push(byte);
        }
        Ok(packed.into())
    }

    fn made_from(&self) -> Option<(SourceId, Range<u64>)> {
        match self.ranges.as_slice() {
            [only] => Some((self.id, only.clone())),
            _ => None,
        }
    }
}
