//! Records of indices and a value.

use super::{CHUNK, Search, broken, fetch, in_range, step};
use crate::error::Result;
use crate::model::{Axis, Endian, PairIndex, Role};
use crate::prelude::*;
use crate::transform::elements::ElementMap;
use crate::transform::slice::gather::{Gather, Stored};

impl Search<'_, '_> {
    /// Indices and values are records: all of them are looked at.
    pub(super) fn pairs(&mut self, nnz: u64, index: PairIndex) -> Result<bool> {
        let part = self.role(&Role::Values)?;
        let width = part
            .dtype
            .width()
            .ok_or_else(|| broken("values without a size"))?;
        let indices = match index {
            PairIndex::Axes => self.axes.len(),
            PairIndex::ColumnMajor | PairIndex::RowMajor => 1,
        };
        let record = indices * 8 + width;
        if nnz.checked_mul(record as u64) != Some(part.payload.len()) {
            let message = format!("{} bytes for {nnz} records of {record}", part.payload.len());
            return Err(broken(message));
        }
        let map = ElementMap::new(part.dtype, part.endian, self.dtype, Endian::Little)?;
        let stored = Stored::records(self.data, &part.payload, record as u64)?;
        let mut gather = Gather::new(&stored);
        let mut chunk = Vec::new();
        let mut first = 0;
        while first < nnz {
            let count = CHUNK.min(nnz - first);
            fetch(&mut gather, first, count, &mut chunk)?;
            for (record, n) in chunk.chunks_exact(record).zip(first..) {
                let (numbers, value) = record.split_at(indices * 8);
                let place = self.place_of(numbers, index, n)?;
                let before = self.wanted.len();
                self.want(place, n)?;
                if self.wanted.len() > before {
                    self.values.extend_from_slice(value);
                }
            }
            first += count;
        }
        map.apply(&mut self.values, None)?;
        Ok(true)
    }

    /// The place in the result of the record number `n`, if it is wanted.
    fn place_of(&self, numbers: &[u8], index: PairIndex, n: u64) -> Result<Option<u64>> {
        let mut numbers = (numbers.as_chunks::<8>().0.iter()).map(|n| u64::from_le_bytes(*n));
        let dims = self.axes.iter().enumerate();
        if index == PairIndex::Axes {
            return dims
                .zip(numbers)
                .try_fold(Some(0), |place, ((dim, axis), index)| {
                    let index = in_range(axis, dim, n, index.into())?;
                    Ok(step(place, axis, index))
                });
        }
        let elements = self.tensor.elements().unwrap_or(0);
        let mut single = numbers.next().unwrap_or(u64::MAX);
        if single >= elements {
            let message = format!("entry {n}: index {single}, there are {elements} elements");
            return Err(broken(message));
        }
        let mut of_axis = vec![0; self.axes.len()];
        let mut split = |dim: usize, axis: &Axis| {
            of_axis[dim] = single % axis.dim;
            single /= axis.dim;
        };
        match index {
            PairIndex::ColumnMajor => dims.for_each(|(dim, axis)| split(dim, axis)),
            _ => dims.rev().for_each(|(dim, axis)| split(dim, axis)),
        }
        let mut axes = self.axes.iter().zip(of_axis);
        Ok(axes.try_fold(0, |place, (axis, index)| step(Some(place), axis, index)))
    }
}
