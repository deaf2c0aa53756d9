//! Records of indices and a value, perhaps with symmetries under which a record stands for several elements.

use super::listed::{CHUNK, Listing, Search, broken};
use crate::error::Result;
use crate::model::{Layout, PairIndex};
use crate::prelude::*;
use crate::transform::as_size;
use crate::transform::select::{Gather, Runs, Stored};

pub(super) struct Pairs;

impl Listing for Pairs {
    fn find(&self, search: &mut Search<'_, '_>) -> Result<()> {
        let info = search.tensor.tensor;
        let Layout::Pairs(pairs) = &info.layout else {
            return Err(broken("no list of records"));
        };
        let (nnz, index) = (pairs.nnz, pairs.index);
        let part = search.tensor.values()?;
        let width = part.dtype.width();
        let width = width.ok_or_else(|| broken("values without a size"))?;
        let indices = match index {
            PairIndex::Axes => info.shape.len(),
            PairIndex::ColumnMajor | PairIndex::RowMajor => 1,
        };
        let record = indices * 8 + width;
        if nnz.checked_mul(record as u64) != Some(part.payload.len()) {
            let message = format!("{} bytes for {nnz} records of {record}", part.payload.len());
            return Err(broken(message));
        }
        let stored = Stored::records(search.tensor.data, &part.payload, record as u64)?;
        let mut gather = Gather::new(&stored);
        let mut chunk = Vec::new();
        for first in (0..nnz).step_by(as_size(CHUNK)?) {
            let count = CHUNK.min(nnz - first);
            gather.fill(&mut Runs::of(first, count), as_size(count)?, &mut chunk)?;
            for (record, n) in chunk.chunks_exact(record).zip(first..) {
                let (numbers, value) = record.split_at(indices * 8);
                if search.want(place_of(search, numbers, index, n)?, n)? {
                    search.push_value(value);
                }
            }
        }
        Ok(())
    }
}

/// The place in the result of the record number `n`, if it is wanted.
fn place_of(
    search: &Search<'_, '_>,
    numbers: &[u8],
    index: PairIndex,
    n: u64,
) -> Result<Option<u64>> {
    let mut numbers = (numbers.as_chunks::<8>().0.iter()).map(|n| u64::from_le_bytes(*n));
    if index == PairIndex::Axes {
        let mut dims = numbers.enumerate();
        return dims.try_fold(Some(0), |place, (dim, index)| {
            let index = search.in_range(dim, n, index.into())?;
            Ok(search.step(place, dim, index))
        });
    }
    let elements = search.tensor.tensor.elements().unwrap_or(0);
    let mut single = numbers.next().unwrap_or(u64::MAX);
    if single >= elements {
        let message = format!("entry {n}: index {single}, there are {elements} elements");
        return Err(broken(message));
    }
    let mut place = Some(0);
    let mut step = |dim: usize| {
        let len = search.axes[dim].dim;
        place = search.step(place, dim, single % len);
        single /= len;
    };
    let dims = 0..search.axes.len();
    match index {
        PairIndex::ColumnMajor => dims.for_each(&mut step),
        _ => dims.rev().for_each(&mut step),
    }
    Ok(place)
}
