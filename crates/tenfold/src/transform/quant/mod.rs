//! Quantized blocks as numbers of 32 bits, and numbers as quantized blocks.
//!
//! Every product and every sum is rounded by itself, in the order in which the reference has them, so that the numbers
//! are the same to the last bit. Each type is a function from the bytes of one block to its values.

mod encode;
mod grid;
mod grids;
mod legacy;
mod super_blocks;

pub(crate) use encode::{needs_importance, quantizer, types, uses_importance};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::model::{BlockSpec, DType, Decode, Endian, TensorInfo};
use crate::prelude::*;

/// Decodes whole blocks into little-endian `f32`.
type Blocks = fn(&[u8], &mut [u8]);

/// The types that are decoded.
const TYPES: &[(&str, Blocks)] = &[
    ("Q4_0", |data, out| blocks(data, out, legacy::q4_0)),
    ("Q4_1", |data, out| blocks(data, out, legacy::q4_1)),
    ("Q5_0", |data, out| blocks(data, out, legacy::q5_0)),
    ("Q5_1", |data, out| blocks(data, out, legacy::q5_1)),
    ("Q8_0", |data, out| blocks(data, out, legacy::q8_0)),
    ("Q1_0", |data, out| blocks(data, out, legacy::q1_0)),
    ("Q2_0", |data, out| blocks(data, out, legacy::q2_0)),
    ("IQ4_NL", |data, out| blocks(data, out, legacy::iq4_nl)),
    ("MXFP4", |data, out| blocks(data, out, legacy::mxfp4)),
    ("NVFP4", |data, out| blocks(data, out, legacy::nvfp4)),
    ("Q2_K", |data, out| blocks(data, out, super_blocks::q2_k)),
    ("Q3_K", |data, out| blocks(data, out, super_blocks::q3_k)),
    ("Q4_K", |data, out| blocks(data, out, super_blocks::q4_k)),
    ("Q5_K", |data, out| blocks(data, out, super_blocks::q5_k)),
    ("Q6_K", |data, out| blocks(data, out, super_blocks::q6_k)),
    ("Q8_K", |data, out| blocks(data, out, super_blocks::q8_k)),
    ("IQ4_XS", |data, out| {
        blocks(data, out, super_blocks::iq4_xs)
    }),
    ("TQ1_0", |data, out| blocks(data, out, super_blocks::tq1_0)),
    ("TQ2_0", |data, out| blocks(data, out, super_blocks::tq2_0)),
    ("IQ2_XXS", |data, out| blocks(data, out, grid::iq2_xxs)),
    ("IQ2_XS", |data, out| blocks(data, out, grid::iq2_xs)),
    ("IQ2_S", |data, out| blocks(data, out, grid::iq2_s)),
    ("IQ3_XXS", |data, out| blocks(data, out, grid::iq3_xxs)),
    ("IQ3_S", |data, out| blocks(data, out, grid::iq3_s)),
    ("IQ1_S", |data, out| blocks(data, out, grid::iq1_s)),
    ("IQ1_M", |data, out| blocks(data, out, grid::iq1_m)),
];

/// What turns blocks of this type, stored in this byte order, into numbers; `None` where that is not known.
pub(crate) fn decoder(spec: &'static BlockSpec, endian: Endian) -> Option<Arc<dyn Decode>> {
    let (_, blocks) = TYPES.iter().find(|(name, _)| *name == spec.name)?;
    let swaps = endian == Endian::Big && spec.halves.is_some_and(|halves| !halves.is_empty());
    Some(Arc::new(BlockDecoder {
        spec,
        blocks: *blocks,
        swaps,
    }))
}

#[derive(Debug)]
struct BlockDecoder {
    spec: &'static BlockSpec,
    blocks: Blocks,
    /// The numbers in the blocks are in the other byte order.
    swaps: bool,
}

impl Decode for BlockDecoder {
    fn dtype(&self) -> DType {
        DType::F32
    }

    fn step(&self) -> u64 {
        self.spec.elements.into()
    }

    /// What zTensor says about blocks.
    fn describes(&self) -> &'static [&'static str] {
        &["block_bytes", "elems_per_block"]
    }

    fn decode(
        &self,
        _: &TensorInfo,
        read: &dyn Fn(usize, Range<u64>) -> Result<Bytes>,
        elements: Range<u64>,
        out: &mut [u8],
    ) -> Result<()> {
        let at = |element: u64| {
            let bytes = DType::Block(self.spec).bytes_for(element);
            bytes.ok_or_else(|| Error::argument(format!("{element} is not at a block's edge")))
        };
        let data = read(0, at(elements.start)?..at(elements.end)?)?;
        if self.swaps {
            let mut swapped = data.to_vec();
            self.spec.swap(&mut swapped);
            (self.blocks)(&swapped, out);
        } else {
            (self.blocks)(&data, out);
        }
        Ok(())
    }
}

/// Decodes block after block.
#[inline]
fn blocks<const BYTES: usize, const N: usize>(
    data: &[u8],
    out: &mut [u8],
    decode: impl Fn(&[u8; BYTES], &mut [f32; N]),
) {
    let whole = data.as_chunks().0.iter();
    // In memory that is where numbers can be, they are written once.
    if cfg!(target_endian = "little")
        && let Ok(numbers) = bytemuck::try_cast_slice_mut::<u8, f32>(out)
    {
        for (block, out) in whole.zip(numbers.as_chunks_mut().0) {
            decode(block, out);
        }
        return;
    }
    let mut values = [0.0; N];
    for (block, out) in whole.zip(out.chunks_exact_mut(4 * N)) {
        decode(block, &mut values);
        for (out, value) in out.as_chunks_mut().0.iter_mut().zip(&values) {
            *out = value.to_le_bytes();
        }
    }
}

/// The IEEE half at a byte, widened.
#[inline]
fn half(block: &[u8], at: usize) -> f32 {
    half::f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

#[inline]
fn u16_at(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

#[inline]
fn u32_at(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

/// The values of four-bit codes that are not evenly spaced.
const NONLINEAR: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_type_but_the_internal_one_is_decoded() {
        for spec in BlockSpec::all() {
            let known = decoder(spec, Endian::Little).is_some();
            assert_eq!(known, spec.name != "Q8_1", "{}", spec.name);
        }
    }

    #[test]
    fn blocks_have_the_sizes_of_their_types() {
        for spec in BlockSpec::all() {
            let Some((_, blocks)) = TYPES.iter().find(|(name, _)| *name == spec.name) else {
                continue;
            };
            let data = vec![0u8; 2 * spec.bytes as usize];
            let mut out = vec![0xaau8; 2 * 4 * spec.elements as usize];
            blocks(&data, &mut out);
            // Every byte was written: zero blocks give numbers, and 0xaa.. is none that they could give.
            assert!(
                !out.chunks(4).any(|value| value == [0xaa; 4]),
                "{}",
                spec.name
            );
        }
    }
}
