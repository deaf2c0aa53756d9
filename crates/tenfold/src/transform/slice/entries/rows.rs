//! A sparse matrix by rows.

use super::{CHUNK, Search, broken, in_range, numbers, step};
use crate::error::Result;
use crate::model::{Axis, Role};
use crate::prelude::*;
use crate::transform::as_size;
use crate::transform::slice::gather::{Gather, Run};

/// Entries of a matrix by rows whose columns are to be looked at together.
struct Columns<'c, 'a> {
    axis: &'c Axis,
    gather: Gather<'c, 'a>,
    signed: bool,
    /// Places of rows in the result, each with entries.
    pieces: Vec<(u64, Range<u64>)>,
    count: u64,
}

impl<'a> Search<'_, 'a> {
    /// Only the wanted rows are looked at.
    pub(super) fn csr(&mut self, nnz: u64) -> Result<bool> {
        let [rows, columns] = self.axes else {
            let message = format!("rows are stored for {} dimensions", self.axes.len());
            return Err(broken(message));
        };
        let (starts, starts_signed) = self.integers(&Role::Indptr, rows.dim.checked_add(1))?;
        let (indices, indices_signed) = self.integers(&Role::Indices, Some(nnz))?;
        let values = self.values(nnz)?;
        if starts.is_stream() || indices.is_stream() {
            return Ok(false);
        }
        let mut starts = Gather::new(&starts);
        let mut columns = Columns {
            axis: columns,
            gather: Gather::new(&indices),
            signed: indices_signed,
            pieces: Vec::new(),
            count: 0,
        };
        let mut first = 0;
        let mut seen = 0u64;
        while first < rows.count() {
            let places = first..rows.count().min(first + CHUNK);
            first = places.end;
            let bounds = bounds(&mut starts, rows, places.clone(), starts_signed)?;
            for (place, bounds) in places.zip(bounds) {
                if bounds.start > bounds.end || bounds.end > nnz {
                    let row = rows.at(place).0;
                    let message = format!("row {row} is entries {bounds:?} of {nnz}");
                    return Err(broken(message));
                }
                // Rows that share entries could make work of any size.
                seen = seen.saturating_add(bounds.end - bounds.start);
                if seen > nnz {
                    return Err(broken("rows share entries"));
                }
                self.row(&mut columns, place, bounds)?;
            }
        }
        self.columns(&mut columns)?;
        self.fetch(&values)?;
        Ok(true)
    }

    /// Notes the entries of a row, and looks at those that were noted when they are many.
    fn row(&mut self, columns: &mut Columns<'_, 'a>, place: u64, bounds: Range<u64>) -> Result<()> {
        let mut from = bounds.start;
        while from < bounds.end {
            let len = (CHUNK - columns.count).min(bounds.end - from);
            columns.pieces.push((place, from..from + len));
            columns.count += len;
            from += len;
            if columns.count == CHUNK {
                self.columns(columns)?;
            }
        }
        Ok(())
    }

    /// Looks at the entries that were noted.
    fn columns(&mut self, columns: &mut Columns<'_, 'a>) -> Result<()> {
        let mut runs = Vec::new();
        let mut out = 0;
        for (_, entries) in &columns.pieces {
            let (place, len) = (entries.start, entries.end - entries.start);
            runs.push(Run { place, len, out });
            out += as_size(len)?;
        }
        let found = numbers(&mut columns.gather, &mut runs, out, columns.signed)?;
        let entries = (columns.pieces.iter())
            .flat_map(|(place, entries)| entries.clone().map(move |n| (*place, n)));
        for ((place, n), index) in entries.zip(found) {
            let index = in_range(columns.axis, 1, n, index)?;
            self.want(step(Some(place), columns.axis, index), n)?;
        }
        columns.pieces.clear();
        columns.count = 0;
        Ok(())
    }
}

/// Which entries some of the wanted rows have.
fn bounds(
    gather: &mut Gather<'_, '_>,
    rows: &Axis,
    places: Range<u64>,
    signed: bool,
) -> Result<Vec<Range<u64>>> {
    let count = as_size(places.end - places.start)?;
    let mut runs: Vec<Run> = (places.enumerate())
        .map(|(n, place)| Run {
            place: rows.at(place).0,
            len: 2,
            out: 2 * n,
        })
        .collect();
    let numbers = numbers(gather, &mut runs, 2 * count, signed)?;
    let bound = |number: i128| {
        u64::try_from(number)
            .map_err(|cause| broken(format!("indptr holds {number}")).because(cause))
    };
    (numbers.as_chunks().0.iter())
        .map(|[from, to]| Ok(bound(*from)?..bound(*to)?))
        .collect()
}
