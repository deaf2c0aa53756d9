//! Where codes and scales are, and how many bytes they take.

use super::{Scale, Scheme, Store, ValueType};
use crate::model::element_count;
use crate::prelude::*;

/// How the codes of a tensor lie in its bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) enum Arrangement {
    /// One after the other, and the end filled up to 4 bytes: Burn 0.20 and 0.21, where it makes a difference.
    OneRun,
    /// Each line along the packed axis in whole words: Burn 0.22 and later.
    Rows,
    /// Neither has as many bytes.
    Unknown,
}

impl Scheme {
    /// How codes lie in `len` bytes.
    pub(in super::super) fn arrangement(&self, shape: &[u64], len: u64) -> Arrangement {
        if self.rows_len(shape) == Some(len) {
            Arrangement::Rows
        } else if self.one_run_len(shape) == Some(len) {
            Arrangement::OneRun
        } else {
            Arrangement::Unknown
        }
    }

    /// Bytes of a tensor whose lines begin with a word; `None` where that is not defined.
    fn rows_len(&self, shape: &[u64]) -> Option<u64> {
        self.row_codes_len(shape)?
            .checked_add(self.scales_len(shape)?)
    }

    /// Bytes of a tensor in one run; `None` where that is not defined.
    pub(in super::super) fn one_run_len(&self, shape: &[u64]) -> Option<u64> {
        self.run_codes_len(shape)?
            .checked_add(self.scales_len(shape)?)
    }

    /// Bytes of the codes in lines.
    pub(in super::super) fn row_codes_len(&self, shape: &[u64]) -> Option<u64> {
        let dims = dims(shape);
        let line = *dims.get(self.packed_axis(dims.len())?)?;
        let lines = product(&dims)?.checked_div(line).unwrap_or(0);
        lines.checked_mul(self.line_len(line)?)
    }

    /// Bytes of the codes in one run.
    pub(in super::super) fn run_codes_len(&self, shape: &[u64]) -> Option<u64> {
        let dims = dims(shape);
        self.packed_axis(dims.len())?;
        self.line_len(product(&dims)?)?.checked_next_multiple_of(4)
    }

    /// Bytes of as many codes one after the other, in whole words.
    pub(in super::super) fn line_len(&self, codes: u64) -> Option<u64> {
        let (word, per_word) = match self.store {
            Store::Native => (1, 1),
            Store::PackedU32(_) => (4, u64::from(32 / self.value.bits())),
            // Burn packs these alone into bytes.
            Store::PackedNative(_) if self.value == ValueType::E2M1 => (1, 2),
            Store::PackedNative(_) => return None,
        };
        codes.div_ceil(per_word).checked_mul(word)
    }

    /// The axis along which codes are packed.
    pub(in super::super) fn packed_axis(&self, rank: usize) -> Option<usize> {
        rank.checked_sub(1)?
            .checked_sub(usize::try_from(self.store.axis()).ok()?)
    }

    /// Bytes of all scales.
    pub(in super::super) fn scales_len(&self, shape: &[u64]) -> Option<u64> {
        let Some(block) = &self.block else {
            return Some(self.tensor.unwrap_or(Scale::F32).bytes());
        };
        let blocks = product(&self.grid(shape)?)?.checked_mul(block.dtype.bytes())?;
        // The scale above blocks is an F32, whatever its type is said to be.
        blocks.checked_add(if self.tensor.is_some() {
            Scale::F32.bytes()
        } else {
            0
        })
    }

    /// The size of blocks along every axis.
    pub(in super::super) fn block_sizes(&self, rank: usize) -> Option<Vec<u64>> {
        let size = &self.block.as_ref()?.size;
        let ones = rank.checked_sub(size.len())?;
        let ones = core::iter::repeat_n(1, ones);
        Some(ones.chain(size.iter().map(|&size| size.into())).collect())
    }

    /// How many blocks there are along every axis.
    pub(in super::super) fn grid(&self, shape: &[u64]) -> Option<Vec<u64>> {
        let dims = dims(shape);
        let sizes = self.block_sizes(dims.len())?;
        Some(
            dims.iter()
                .zip(sizes)
                .map(|(dim, size)| dim.div_ceil(size))
                .collect(),
        )
    }
}

/// A shape with at least one axis.
pub(in super::super) fn dims(shape: &[u64]) -> Vec<u64> {
    match shape {
        [] => vec![1],
        shape => shape.to_vec(),
    }
}

fn product(dims: &[u64]) -> Option<u64> {
    element_count(dims)
}
