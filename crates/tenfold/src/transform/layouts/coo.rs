//! Values, and the indices of all of them along every dimension, one dimension after the other.

use super::listed::{CHUNK, Listing, Search, broken};
use crate::error::Result;
use crate::model::{Layout, Role};
use crate::prelude::*;
use crate::transform::as_size;
use crate::transform::select::Runs;

pub(super) struct Coo;

impl Listing for Coo {
    fn find(&self, search: &mut Search<'_, '_>) -> Result<()> {
        let info = search.tensor.tensor;
        let Layout::Coo { nnz } = info.layout else {
            return Err(broken("no list of coordinates"));
        };
        let rank = info.shape.len();
        let coords = search.integers(&Role::Coords, nnz.checked_mul(rank as u64))?;
        // A scalar has no coordinates that could show a count to be wrong.
        if info.elements().is_none_or(|elements| nnz > elements) {
            return Err(broken(format!("{nnz} entries, more than elements")));
        }
        let mut reader = coords.reader();
        let mut places = Vec::new();
        for first in (0..nnz).step_by(as_size(CHUNK)?) {
            let count = CHUNK.min(nnz - first);
            // Places in the result, as far as they are known; none for what is not wanted.
            places.clear();
            places.resize(as_size(count)?, Some(0));
            for dim in 0..rank {
                let mut runs = Runs::of(dim as u64 * nnz + first, count);
                let indices = reader.read(&mut runs, as_size(count)?)?;
                for ((place, index), n) in places.iter_mut().zip(indices).zip(first..) {
                    let index = search.in_range(dim, n, index)?;
                    *place = search.step(*place, dim, index);
                }
            }
            for (place, n) in places.iter().zip(first..) {
                search.want(*place, n)?;
            }
        }
        search.fetch_values(nnz)
    }
}
