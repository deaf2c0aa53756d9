//! Rows and columns of a tensor, and the bands that they are read in.

use super::{MOST_CELLS, PictureOptions};
use crate::archive::{Sliced, Tensor};
use crate::error::{Error, Result};
use crate::model::{Layout, Payload, Slice};
use crate::prelude::*;

/// What is read whole without being asked for.
const READ_WHOLE: u64 = 32 << 20;
/// Bytes of a band, about: large enough to be worth a read, small enough to stop behind it.
const BAND: u64 = 1 << 20;
/// The same of chunks, which are undone whole.
const CHUNKED_BAND: u64 = 16 << 20;
/// What lies between two numbers is read with them up to here.
const GAP: u64 = 1 << 10;

/// A matrix in a tensor.
#[derive(Clone, Debug)]
pub(super) struct Plane {
    way: Way,
    pub(super) rows: Range<u64>,
    pub(super) columns: Range<u64>,
    /// Rows and columns of cells.
    pub(super) size: (u64, u64),
    pub(super) is_by_columns: bool,
    /// Of how many neighbours in a line one is read.
    pub(super) stride: u64,
    plan: Plan,
}

#[derive(Clone, Debug)]
enum Way {
    /// The dimensions of rows and columns, if there are two, and the index along every dimension.
    Axes {
        rows: Option<usize>,
        columns: Option<usize>,
        at: Vec<u64>,
    },
    /// Lines of a vector, and its length.
    Folded { line: u64, len: u64 },
}

#[derive(Clone, Copy, Debug)]
enum Plan {
    /// All lines, so many at once.
    Whole { at_once: u64 },
    /// A line for each cell.
    Sampled,
}

/// Lines that are read together, counted from the first row and column of the picture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Band {
    pub(super) rows: Range<u64>,
    pub(super) columns: Range<u64>,
}

impl Plane {
    pub(super) fn new(tensor: Tensor<'_>, options: &PictureOptions) -> Result<Self> {
        let shape = &tensor.info().shape;
        let (way, row_count, column_count) = Way::new(shape, options)?;
        let rows = within(options.rows.as_ref(), row_count, "rows")?;
        let columns = within(options.columns.as_ref(), column_count, "columns")?;
        let (row_count, column_count) = (rows.end - rows.start, columns.end - columns.start);
        let (high, wide) = options.cells.unwrap_or((512, 512));
        let cells = |wanted: u32, there: u64| u64::from(wanted.clamp(1, MOST_CELLS)).min(there);
        let mut plane = Self {
            way,
            rows,
            columns,
            size: (cells(high, row_count), cells(wide, column_count)),
            is_by_columns: false,
            stride: 1,
            plan: Plan::Whole { at_once: u64::MAX },
        };
        plane.choose(tensor, options.all)?;
        Ok(plane)
    }

    /// Decides which lines are read, and in which order.
    fn choose(&mut self, tensor: Tensor<'_>, all: bool) -> Result<()> {
        let info = tensor.info();
        let (rows, columns) = (self.row_count(), self.column_count());
        let inner = innermost(&info.layout, info.shape.len());
        let (row_axis, column_axis) = match &self.way {
            Way::Axes { rows, columns, .. } => (*rows, *columns),
            Way::Folded { .. } => (None, inner),
        };
        self.is_by_columns = row_axis.is_some() && row_axis == inner;
        let is_together = self.is_by_columns || column_axis == inner || inner.is_none();
        let dtype = Sliced::new(tensor, &[])?.dtype();
        let width = dtype.bytes_for(8).unwrap_or(64).div_ceil(8).max(1);
        let between = if is_together { width } else { GAP.max(width) };
        let (line, lines) = if self.is_by_columns {
            (rows, columns)
        } else {
            (columns, rows)
        };
        let line_bytes = line.saturating_mul(between).max(1);
        let is_chunked = |payload: &Payload| matches!(payload, Payload::Chunks(_));
        let is_stream = info.layout.is_sparse()
            || (info.parts.iter()).any(|part| matches!(part.payload, Payload::Encoded { .. }));
        let is_chunked = info.parts.iter().any(|part| is_chunked(&part.payload));
        if is_stream {
            // Every line would be looked for from the beginning.
            return Ok(());
        }
        let is_small = line_bytes.saturating_mul(lines) <= READ_WHOLE;
        if all || is_small || is_chunked {
            let band = if is_chunked { CHUNKED_BAND } else { BAND };
            let at_once = (band / line_bytes).max(1);
            self.plan = Plan::Whole { at_once };
            return Ok(());
        }
        self.plan = Plan::Sampled;
        if !is_together {
            self.stride = (columns / self.size.1.max(1)).max(1);
        }
        Ok(())
    }

    pub(super) fn row_count(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    pub(super) fn column_count(&self) -> u64 {
        self.columns.end - self.columns.start
    }

    /// All lines that there are.
    pub(super) fn lines(&self) -> u64 {
        if self.is_by_columns {
            self.column_count()
        } else {
            self.row_count()
        }
    }

    /// Cells along the lines' other side.
    fn line_cells(&self) -> u64 {
        if self.is_by_columns {
            self.size.1
        } else {
            self.size.0
        }
    }

    /// How many bands there are to read.
    pub(super) fn bands(&self) -> u64 {
        if self.row_count() == 0 || self.column_count() == 0 {
            return 0;
        }
        match self.plan {
            Plan::Whole { at_once } => self.lines().div_ceil(at_once),
            Plan::Sampled => self.line_cells(),
        }
    }

    /// The band that is read as the `n`th.
    pub(super) fn band(&self, n: u64) -> Band {
        let lines = match self.plan {
            Plan::Whole { at_once } => {
                let from = n.saturating_mul(at_once);
                from..from.saturating_add(at_once).min(self.lines())
            }
            Plan::Sampled => {
                let cells = self.line_cells();
                let cell = scattered(n, cells);
                let from = border(cell, cells, self.lines());
                let to = border(cell + 1, cells, self.lines());
                let middle = from + (to - from) / 2;
                middle..middle + 1
            }
        };
        if self.is_by_columns {
            Band {
                rows: 0..self.row_count(),
                columns: lines,
            }
        } else {
            Band {
                rows: lines,
                columns: 0..self.column_count(),
            }
        }
    }

    /// The slices of the tensor that a band consists of, each with its first row.
    pub(super) fn slices(&self, band: &Band) -> Vec<(u64, Vec<Slice>)> {
        let from = |start: u64, by: u64| start.saturating_add(by);
        let rows = from(self.rows.start, band.rows.start)..from(self.rows.start, band.rows.end);
        let columns = from(self.columns.start, band.columns.start)
            ..from(self.columns.start, band.columns.end);
        match &self.way {
            Way::Axes {
                rows: row_axis,
                columns: column_axis,
                at,
            } => {
                let slices = at.iter().enumerate().map(|(axis, &at)| {
                    if Some(axis) == *row_axis {
                        every(&rows, 1)
                    } else if Some(axis) == *column_axis {
                        every(&columns, self.stride)
                    } else {
                        Slice::Index(signed(at))
                    }
                });
                vec![(band.rows.start, slices.collect())]
            }
            Way::Folded { line, len } => {
                let place = |row: u64, column: u64| {
                    let place = row.saturating_mul(*line).saturating_add(column);
                    place.min(*len)
                };
                if columns == (0..*line) {
                    let range = place(rows.start, 0)..place(rows.end, 0);
                    return vec![(band.rows.start, vec![every(&range, 1)])];
                }
                let lines = rows.zip(band.rows.clone());
                lines
                    .map(|(row, first)| {
                        let range = place(row, columns.start)..place(row, columns.end);
                        (first, vec![every(&range, 1)])
                    })
                    .collect()
            }
        }
    }

    /// Whether numbers come column by column: those of dimensions that come later are given first.
    pub(super) fn is_transposed(&self) -> bool {
        let Way::Axes { rows, columns, .. } = &self.way else {
            return false;
        };
        matches!((rows, columns), (Some(rows), Some(columns)) if rows > columns)
    }
}

impl Way {
    /// The rows and columns of a shape, and how many there are of each.
    fn new(shape: &[u64], options: &PictureOptions) -> Result<(Self, u64, u64)> {
        if let ([len], Some(line)) = (shape, options.fold) {
            let line = line.clamp(1, (*len).max(1));
            let way = Way::Folded { line, len: *len };
            return Ok((way, len.div_ceil(line), line.min(*len)));
        }
        let rank = shape.len();
        let (rows, columns) = match options.axes {
            Some((rows, columns)) if rank >= 2 => {
                if rows == columns || rows >= rank || columns >= rank {
                    let message =
                        format!("axes {rows} and {columns} were asked for, there are {rank}");
                    return Err(Error::argument(message));
                }
                (Some(rows), Some(columns))
            }
            _ => (rank.checked_sub(2), rank.checked_sub(1)),
        };
        let count = |axis: Option<usize>| axis.and_then(|axis| shape.get(axis)).map_or(1, |n| *n);
        let (row_count, column_count) = (count(rows), count(columns));
        let mut at = Vec::new();
        let mut is_empty = false;
        for (axis, &dim) in shape.iter().enumerate() {
            let index = options.at.get(axis).copied().unwrap_or(0);
            let is_shown = Some(axis) == rows || Some(axis) == columns;
            is_empty |= dim == 0;
            if !is_shown && dim > 0 && index >= dim {
                let message = format!("index {index} along axis {axis}, there are {dim}");
                return Err(Error::argument(message));
            }
            at.push(index);
        }
        let way = Way::Axes { rows, columns, at };
        Ok(if is_empty {
            (way, 0, 0)
        } else {
            (way, row_count, column_count)
        })
    }
}

/// A range of those that there are.
fn within(range: Option<&Range<u64>>, count: u64, what: &str) -> Result<Range<u64>> {
    match range {
        None => Ok(0..count),
        Some(range) if range.start <= range.end && range.end <= count => Ok(range.clone()),
        Some(Range { start, end }) => {
            let message = format!("{what} {start}..{end} were asked for, there are {count}");
            Err(Error::argument(message))
        }
    }
}

/// The dimension whose neighbours are neighbours in the file, if one is.
fn innermost(layout: &Layout, rank: usize) -> Option<usize> {
    match layout {
        Layout::ColumnMajor | Layout::Packed(_) => (rank > 0).then_some(0),
        Layout::Strided(strides) => {
            let steps = strides.steps.iter().enumerate();
            let steps = steps.filter(|(_, step)| **step > 0);
            steps.min_by_key(|(_, step)| **step).map(|(axis, _)| axis)
        }
        _ => rank.checked_sub(1),
    }
}

/// Where a cell begins, of `cells` that `count` lines are shared among.
pub(super) fn border(cell: u64, cells: u64, count: u64) -> u64 {
    let place = (u128::from(cell) * u128::from(count)).div_ceil(u128::from(cells.max(1)));
    u64::try_from(place).unwrap_or(u64::MAX)
}

/// The cell that a line belongs to.
pub(super) fn cell_of(line: u64, cells: u64, count: u64) -> u64 {
    let cell = u128::from(line) * u128::from(cells) / u128::from(count.max(1));
    u64::try_from(cell).unwrap_or(u64::MAX)
}

/// All numbers below `count` in an order that is spread over them from the first on: with their bits reversed.
fn scattered(n: u64, count: u64) -> u64 {
    let bits = 64 - count.saturating_sub(1).leading_zeros();
    if bits == 0 {
        return 0;
    }
    let reversed = |n: u64| n.reverse_bits() >> (64 - bits);
    // Of the next power of two, those that are too large are left out.
    let mut left = n;
    (0..1u64 << bits)
        .map(reversed)
        .filter(|place| *place < count)
        .find(|_| {
            let is_it = left == 0;
            left = left.saturating_sub(1);
            is_it
        })
        .unwrap_or(0)
}

fn every(range: &Range<u64>, step: u64) -> Slice {
    Slice::Range {
        start: Some(signed(range.start)),
        stop: Some(signed(range.end)),
        step: signed(step),
    }
}

/// Indices of dimensions that are in memory or in a file are far below that.
fn signed(index: u64) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattered_places_are_all_places_and_far_from_each_other() {
        for count in [1, 2, 3, 7, 8, 512, 700] {
            let mut places: Vec<_> = (0..count).map(|n| scattered(n, count)).collect();
            if count > 4 {
                assert_eq!(places[..2], [0, count.next_power_of_two() / 2]);
            }
            places.sort_unstable();
            assert_eq!(places, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn cells_share_lines_without_a_gap() {
        for (cells, count) in [(1, 1), (3, 7), (512, 16384), (512, 1000), (5, 5)] {
            assert_eq!(
                (border(0, cells, count), border(cells, cells, count)),
                (0, count)
            );
            for cell in 0..cells {
                let (from, to) = (border(cell, cells, count), border(cell + 1, cells, count));
                assert!(from < to, "{cell} of {cells}, {count} lines");
                assert!((from..to).all(|line| cell_of(line, cells, count) == cell));
            }
        }
    }
}
