//! A buffer of columns that is turned into rows, in the cache.

use crate::prelude::*;

/// What a buffer of columns is, and where it goes.
pub(super) struct Shape {
    pub(super) rows: usize,
    /// Bytes from the beginning of a column to that of the next.
    pub(super) pitch: usize,
    /// The columns of the result that these are, and how many a row of the result has.
    pub(super) columns: Range<usize>,
    pub(super) row: usize,
}

/// Rows that are turned together: so many elements of a column lie in one line of the cache, for the smaller ones.
const BAND: usize = 16;

/// Puts a buffer of columns into the rows of the result.
pub(super) fn turn<const WIDTH: usize>(buffer: &[u8], shape: &Shape, out: &mut [u8]) {
    let from = buffer.as_chunks::<WIDTH>().0;
    let to = out.as_chunks_mut::<WIDTH>().0;
    let pitch = shape.pitch / WIDTH;
    let count = shape.columns.len();
    for top in (0..shape.rows).step_by(BAND) {
        for i in top..shape.rows.min(top + BAND) {
            let place = i * shape.row + shape.columns.start;
            let row = &mut to[place..place + count];
            let column = from[i..].iter().step_by(pitch);
            for (to, from) in row.iter_mut().zip(column) {
                *to = *from;
            }
        }
    }
}
