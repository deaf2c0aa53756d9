//! Rows and columns of a tensor, and the bands that they are read in.

use super::{MOST_CELLS, PictureOptions};
use crate::archive::{Sliced, Tensor};
use crate::error::{Error, Result};
use crate::model::{Cuts, Layout, Payload, Slice, TensorInfo};
use crate::prelude::*;

/// What is read whole without being asked for.
const READ_WHOLE: u64 = 32 << 20;
/// Bytes of a band, about: large enough to be worth a read, small enough to stop behind it.
const BAND: u64 = 1 << 20;
/// The same of chunks, which are undone whole.
const CHUNKED_BAND: u64 = 16 << 20;
/// What lies between two numbers is read with them up to here.
const GAP: u64 = 1 << 10;
/// What is read of a long line at one place, at least.
const SEGMENT: u64 = 4 << 10;

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
    /// Bytes of the numbers that are read, about.
    pub(super) bytes: u64,
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

#[derive(Clone, Debug)]
enum Plan {
    /// Everything: so many lines at once, and so much along them.
    Whole { lines: u64, along: u64 },
    /// The middle line of each cell; of a long line, so many elements in the middle of each cell along it.
    Lines {
        order: Scattered,
        along: Option<u64>,
    },
    /// Some of the chunks, which are undone whole.
    Chunks { order: Scattered, grid: Grid },
}

/// The chunks that rows and columns fall into.
#[derive(Clone, Debug)]
struct Grid {
    rows: Cuts,
    columns: Cuts,
    /// The first chunk of each, and how many there are.
    first: (u64, u64),
    count: (u64, u64),
    /// Bytes of a chunk when it is undone.
    bytes: u64,
    /// How many of them are read.
    read: u64,
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
            plan: Plan::Whole {
                lines: u64::MAX,
                along: u64::MAX,
            },
            bytes: 0,
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
        let all_bytes = line_bytes.saturating_mul(lines);
        let is_stream = info.layout.is_sparse()
            || (info.parts.iter()).any(|part| matches!(part.payload, Payload::Encoded { .. }));
        if is_stream {
            // Every line would be looked for from the beginning.
            let dims = info.shape.iter();
            self.bytes = dims.fold(width, |bytes, dim| bytes.saturating_mul(*dim));
            return Ok(());
        }
        if let Some(grid) = self.grid(info, width) {
            self.choose_chunks(grid, all);
            return Ok(());
        }
        if all || all_bytes <= READ_WHOLE {
            self.bytes = all_bytes;
            self.plan = Plan::Whole {
                lines: (BAND / line_bytes).max(1),
                along: (BAND / between).max(1),
            };
            return Ok(());
        }
        let (line_cells, along_cells) = self.cells_of_lines();
        if !is_together {
            self.stride = (columns / self.size.1.max(1)).max(1);
        }
        let cells = line_cells.saturating_mul(along_cells).max(1);
        let segment = (SEGMENT.max(READ_WHOLE / cells) / width).max(1);
        // Where cells are not longer than what is read of them, lines are read whole.
        let is_cut = is_together
            && line_cells.saturating_mul(line_bytes) > READ_WHOLE
            && line / along_cells.max(1) > segment;
        let along = is_cut.then_some(segment);
        self.bytes = match along {
            Some(along) => cells.saturating_mul(along * width),
            None => line_cells.saturating_mul(line_bytes),
        };
        let order = Scattered::new(line_cells, if is_cut { along_cells } else { 1 });
        self.plan = Plan::Lines { order, along };
        Ok(())
    }

    /// Where the chunks are cut that rows and columns fall into; `None` where there are none, or where they are pieces of
    /// lines, which can be read by themselves.
    fn grid(&self, info: &TensorInfo, width: u64) -> Option<Grid> {
        let chunks = info.parts.iter().find_map(|part| match &part.payload {
            Payload::Chunks(chunks) if chunks.shape == info.shape => Some(chunks),
            _ => None,
        })?;
        if self.row_count() == 0 || self.column_count() == 0 {
            return None;
        }
        let along = |axis: &Option<usize>| {
            let cuts = axis.and_then(|axis| chunks.grid.get(axis));
            cuts.cloned().unwrap_or(Cuts::Every(1))
        };
        let (rows, columns) = match &self.way {
            Way::Axes { rows, columns, .. } => (along(rows), along(columns)),
            Way::Folded { line, len } => {
                let side = chunks.grid.first().map_or(1, |cuts| cuts.longest(*len));
                (Cuts::Every((side / line).max(1)), Cuts::Every(*line))
            }
        };
        let sides = chunks.grid.iter().zip(&info.shape);
        let bytes = sides.fold(width, |bytes, (cuts, dim)| {
            bytes.saturating_mul(cuts.longest(*dim).min(*dim))
        });
        let number = |cuts: &Cuts, index: u64| cuts.around(index).0;
        let first = (
            number(&rows, self.rows.start),
            number(&columns, self.columns.start),
        );
        let count = (
            number(&rows, self.rows.end - 1) - first.0 + 1,
            number(&columns, self.columns.end - 1) - first.1 + 1,
        );
        Some(Grid {
            rows,
            columns,
            first,
            count,
            bytes: bytes.max(1),
            read: 0,
        })
    }

    /// All chunks, or as many as may be read without being asked for.
    fn choose_chunks(&mut self, mut grid: Grid, all: bool) {
        let (high, wide) = grid.count;
        let count = high.saturating_mul(wide);
        if all || count == 1 || count.saturating_mul(grid.bytes) <= READ_WHOLE {
            self.bytes = count.saturating_mul(grid.bytes);
            let mut sides = (
                grid.rows.longest(self.rows.end),
                grid.columns.longest(self.columns.end),
            );
            let mut across = wide;
            if self.is_by_columns {
                sides = (sides.1, sides.0);
                across = high;
            }
            let row_of_chunks = across.saturating_mul(grid.bytes);
            let chunks = |bytes: u64| (CHUNKED_BAND / bytes).max(1);
            self.plan = Plan::Whole {
                lines: sides.0.saturating_mul(chunks(row_of_chunks)),
                along: if row_of_chunks <= CHUNKED_BAND {
                    u64::MAX
                } else {
                    sides.1.saturating_mul(chunks(grid.bytes))
                },
            };
            return;
        }
        // No more of them than cells, which are all that is shown.
        let order = Scattered::new(high.min(self.size.0), wide.min(self.size.1));
        grid.read = (READ_WHOLE / grid.bytes).clamp(1, order.count());
        self.bytes = grid.read * grid.bytes;
        self.plan = Plan::Chunks { order, grid };
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

    /// Elements of a line.
    fn line_len(&self) -> u64 {
        if self.is_by_columns {
            self.row_count()
        } else {
            self.column_count()
        }
    }

    /// Cells that lines fall into, and cells along a line.
    fn cells_of_lines(&self) -> (u64, u64) {
        if self.is_by_columns {
            (self.size.1, self.size.0)
        } else {
            (self.size.0, self.size.1)
        }
    }

    /// How many bands there are to read.
    pub(super) fn bands(&self) -> u64 {
        if self.row_count() == 0 || self.column_count() == 0 {
            return 0;
        }
        match &self.plan {
            Plan::Whole { lines, along } => {
                let per_line = self.line_len().div_ceil(*along);
                self.lines().div_ceil(*lines).saturating_mul(per_line)
            }
            Plan::Lines { order, .. } => order.count(),
            Plan::Chunks { grid, .. } => grid.read,
        }
    }

    /// The band that is read as the `n`th.
    pub(super) fn band(&self, n: u64) -> Band {
        match &self.plan {
            Plan::Whole { lines, along } => {
                let per_line = self.line_len().div_ceil(*along).max(1);
                let stretch = |n: u64, at_once: u64, most: u64| {
                    let from = n.saturating_mul(at_once);
                    from..from.saturating_add(at_once).min(most)
                };
                self.across(
                    stretch(n / per_line, *lines, self.lines()),
                    stretch(n % per_line, *along, self.line_len()),
                )
            }
            Plan::Lines { order, along } => {
                let (line, cell) = order.place(n);
                let (line_cells, along_cells) = self.cells_of_lines();
                let line = middle(line, line_cells, self.lines(), 1);
                let part = match along {
                    Some(along) => middle(cell, along_cells, self.line_len(), *along),
                    None => 0..self.line_len(),
                };
                self.across(line, part)
            }
            Plan::Chunks { order, grid } => {
                let (row, column) = order.place(n);
                let (high, wide) = order.sides();
                let shown = |cuts: &Cuts, number: u64, part: &Range<u64>| {
                    let range = cuts.range(number);
                    range.start.max(part.start) - part.start..range.end.min(part.end) - part.start
                };
                let row = grid.first.0 + middle(row, high, grid.count.0, 1).start;
                let column = grid.first.1 + middle(column, wide, grid.count.1, 1).start;
                Band {
                    rows: shown(&grid.rows, row, &self.rows),
                    columns: shown(&grid.columns, column, &self.columns),
                }
            }
        }
    }

    fn across(&self, lines: Range<u64>, along: Range<u64>) -> Band {
        let (rows, columns) = if self.is_by_columns {
            (along, lines)
        } else {
            (lines, along)
        };
        Band { rows, columns }
    }

    /// How many lines are read to their end with a band.
    pub(super) fn whole_lines(&self, band: &Band) -> u64 {
        let (lines, along) = if self.is_by_columns {
            (&band.columns, &band.rows)
        } else {
            (&band.rows, &band.columns)
        };
        let is_end = match self.plan {
            // One part comes after the other.
            Plan::Whole { .. } => along.end == self.line_len(),
            Plan::Lines { along, .. } => along.is_none(),
            Plan::Chunks { .. } => false,
        };
        if is_end { lines.end - lines.start } else { 0 }
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

/// So many in the middle of a cell, or all that it has.
fn middle(cell: u64, cells: u64, count: u64, wanted: u64) -> Range<u64> {
    let (from, to) = (border(cell, cells, count), border(cell + 1, cells, count));
    let left = (to - from).saturating_sub(wanted);
    let from = from + left.div_ceil(2);
    from..from.saturating_add(wanted).min(to)
}

/// The places of a grid in an order that is spread over all of it from the first on.
#[derive(Clone, Debug)]
struct Scattered {
    rows: Vec<u64>,
    columns: Vec<u64>,
}

impl Scattered {
    /// A grid of so many rows and columns: at most as many as there are cells.
    fn new(rows: u64, columns: u64) -> Self {
        Self {
            rows: scattered(rows),
            columns: scattered(columns),
        }
    }

    fn sides(&self) -> (u64, u64) {
        (self.rows.len() as u64, self.columns.len() as u64)
    }

    fn count(&self) -> u64 {
        self.sides().0 * self.sides().1
    }

    /// Once through all rows, each time at another column; then again, one column on.
    fn place(&self, n: u64) -> (u64, u64) {
        let (high, wide) = self.sides();
        let (pass, row) = (n / high.max(1), n % high.max(1));
        let of = |places: &[u64], n: u64| {
            let n = usize::try_from(n).unwrap_or(usize::MAX);
            places.get(n).copied().unwrap_or(0)
        };
        let column = (pass + row) % wide.max(1);
        (of(&self.rows, row), of(&self.columns, column))
    }
}

/// All numbers below `count` in an order that is spread over them from the first on: with their bits reversed.
fn scattered(count: u64) -> Vec<u64> {
    let bits = 64 - count.saturating_sub(1).leading_zeros();
    // Of the next power of two, those that are too large are left out.
    let all = (0..1u64 << bits).map(|n: u64| {
        if bits == 0 {
            0
        } else {
            n.reverse_bits() >> (64 - bits)
        }
    });
    all.filter(|place| *place < count).collect()
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
        for count in [0, 1, 2, 3, 7, 8, 512, 700] {
            let mut places = scattered(count);
            if count > 4 {
                assert_eq!(places[..2], [0, count.next_power_of_two() / 2]);
            }
            places.sort_unstable();
            assert_eq!(places, (0..count).collect::<Vec<_>>());
        }
        for (rows, columns) in [(1, 1), (3, 5), (8, 4), (5, 1), (1, 6)] {
            let order = Scattered::new(rows, columns);
            let mut places: Vec<_> = (0..order.count()).map(|n| order.place(n)).collect();
            places.sort_unstable();
            let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
            assert_eq!(places, all.collect::<Vec<_>>());
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
