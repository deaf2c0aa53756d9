//! Elements of less than a byte: a store has a byte for each, a tensor has them packed.

use bytes::Bytes;

use crate::error::Result;
use crate::io::{Limits, Source};
use crate::model::{Chunks, Make, Payload};
use crate::prelude::*;
use crate::transform::{Data, View};

/// Makes a tensor of so many bits an element from chunks of bytes.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) chunks: Arc<Chunks>,
    pub(super) main: Arc<dyn Source>,
    pub(super) limits: Limits,
    pub(super) bits: u32,
}

impl Make for Packed {
    fn make(&self) -> Result<Bytes> {
        let sources = [self.main.clone()];
        let data = Data::new(&sources, &self.limits);
        let payload = Payload::Chunks(self.chunks.clone());
        let view = View::decoded(data, &payload)?;
        let bytes = view.collect(self.limits.tensor_memory)?;
        Ok(pack(&bytes, self.bits).into())
    }
}

/// The lowest bits of every byte, the first of them lowest.
fn pack(bytes: &[u8], bits: u32) -> Vec<u8> {
    let mask = (1u64 << bits) - 1;
    let mut out = Vec::with_capacity(bytes.len());
    // Eight elements are as many bytes as one has bits.
    for elements in bytes.chunks(8) {
        let mut word = 0;
        for (element, shift) in elements.iter().zip((0u32..).step_by(1)) {
            word |= (u64::from(*element) & mask) << (shift * bits);
        }
        let len = (elements.len() as u64 * u64::from(bits)).div_ceil(8);
        let taken = word.to_le_bytes().into_iter().zip(0..len);
        out.extend(taken.map(|(byte, _)| byte));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_element_is_in_the_lowest_bits() {
        assert_eq!(pack(&[0x0e, 0x01, 0xf3], 4), [0x1e, 0x03]);
        assert_eq!(pack(&[1, 2, 3, 0, 1], 2), [0b0011_1001, 1]);
        assert_eq!(pack(&[0x3f; 8], 6), [0xff; 6]);
    }
}
