//! A sparse matrix by rows: values, their columns, and where each row begins among them. Or the same by columns.

use super::listed::{CHUNK, IntegerReader, Listing, Search, broken};
use crate::error::Result;
use crate::model::Role;
use crate::prelude::*;
use crate::transform::as_size;
use crate::transform::select::Runs;

/// Lines are rows, or columns.
pub(super) struct Csr {
    /// The dimension that numbers lines.
    pub(super) line: usize,
}

impl Listing for Csr {
    const RISES: bool = true;

    /// Looks at where the wanted lines begin and end, and at the indices within them.
    fn find(&self, search: &mut Search<'_, '_>) -> Result<()> {
        let info = search.tensor.tensor;
        let (Some(nnz), [_, _]) = (info.layout.nnz(), info.shape.as_slice()) else {
            let message = format!(
                "rows are stored for {} dimensions, expected 2",
                info.shape.len()
            );
            return Err(broken(message));
        };
        let line = self.line;
        let lines = info.shape[line];
        let starts = search.integers(&Role::Indptr, lines.checked_add(1))?;
        let indices = search.integers(&Role::Indices, Some(nnz))?;
        let mut starts = starts.reader();
        let mut columns = Columns {
            reader: indices.reader(),
            within: 1 - line,
            pieces: Vec::new(),
            count: 0,
        };
        let wrong = || broken(format!("indptr must rise from 0 to {nnz}"));
        let mut ends = Runs::of(0, 1);
        ends.push(lines, 1, 1);
        if !starts.read(&mut ends, 2)?.eq([0, nnz.into()]) {
            return Err(wrong());
        }
        let wanted = search.axes[line].count();
        let mut seen = 0;
        for first in (0..wanted).step_by(as_size(CHUNK)?) {
            let count = as_size(CHUNK.min(wanted - first))?;
            let mut bounds = Runs::default();
            for (n, place) in (first..).take(count).enumerate() {
                bounds.push(search.axes[line].at(place).0, 2, 2 * n);
            }
            let mut bounds = starts.read(&mut bounds, 2 * count)?;
            let mut place = first;
            while let (Some(start), Some(end)) = (bounds.next(), bounds.next()) {
                let bound = |number: i128| u64::try_from(number).ok().filter(|at| *at <= nnz);
                let (Some(start), Some(end)) = (bound(start), bound(end)) else {
                    return Err(wrong());
                };
                // Lines that share entries could make work of any size.
                seen += end.checked_sub(start).ok_or_else(wrong)?;
                if seen > nnz {
                    return Err(wrong());
                }
                columns.note(search, place * search.steps[line], start..end)?;
                place += 1;
            }
        }
        columns.look(search)?;
        search.fetch_values(nnz)
    }
}

/// Entries of wanted lines, whose indices are looked at together.
struct Columns<'i, 'a> {
    reader: IntegerReader<'i, 'a>,
    /// The dimension that the indices are of.
    within: usize,
    /// Places of lines in the result, each with entries.
    pieces: Vec<(u64, Range<u64>)>,
    count: u64,
}

impl Columns<'_, '_> {
    /// Notes the entries of a line, and looks at those that were noted when they are many.
    fn note(&mut self, search: &mut Search<'_, '_>, place: u64, entries: Range<u64>) -> Result<()> {
        let mut from = entries.start;
        while from < entries.end {
            let len = (CHUNK - self.count).min(entries.end - from);
            self.pieces.push((place, from..from + len));
            self.count += len;
            from += len;
            if self.count == CHUNK {
                self.look(search)?;
            }
        }
        Ok(())
    }

    /// Looks at the entries that were noted.
    fn look(&mut self, search: &mut Search<'_, '_>) -> Result<()> {
        let mut runs = Runs::default();
        let mut out = 0;
        for (_, entries) in &self.pieces {
            let len = entries.end - entries.start;
            runs.push(entries.start, len, out);
            out += as_size(len)?;
        }
        let entries = (self.pieces.iter())
            .flat_map(|(place, entries)| entries.clone().map(move |n| (*place, n)));
        for ((place, n), column) in entries.zip(self.reader.read(&mut runs, out)?) {
            let column = search.in_range(self.within, n, column)?;
            search.want(search.step(Some(place), self.within, column), n)?;
        }
        self.pieces.clear();
        self.count = 0;
        Ok(())
    }
}
