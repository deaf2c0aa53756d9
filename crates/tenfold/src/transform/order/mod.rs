//! Row-major to column-major and back, rectangle by rectangle.
//!
//! A row-major tensor is the column-major one of the reversed shape, so one direction serves both. In column-major order
//! the first index runs fastest. The result is a matrix: a row for every first index, a column for every choice of the
//! others, and a column is stored as one run of neighbouring elements. A rectangle of it is gathered column by column into
//! a small buffer, which is turned in the cache.

mod columns;
mod turn;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::model::{DType, Order, Part};
use crate::prelude::*;
use crate::transform::{Data, Input, as_size, overflow};

use columns::{Columns, NEAR, Window};
use turn::{Shape, turn};

/// Bytes of the buffer that is turned at once: it stays in the cache.
const BUFFER: usize = 64 << 10;
/// The same where answers come late.
const LATE_BUFFER: usize = 1 << 20;
/// Columns in it, at most and where they are long at least.
const MOST_COLUMNS: usize = 256;
const LEAST_COLUMNS: usize = 16;
/// Columns begin this many bytes apart more than they are long: at equal places of equally far lines they would fight for
/// the same places of the cache.
const PAD: usize = 128;
/// Bytes of a piece of whole rows, at most.
const STRIP: u64 = 16 << 20;
/// Bytes of a column of a piece that are worth a read of their own.
const LONG_RUN: u64 = 1 << 10;
/// Bytes of a column that are read at once, and of a row of a rectangle that is written run by run.
const TILE_SIDE: u64 = 4 << 10;
/// Bytes of such a rectangle.
#[cfg(feature = "std")]
const TILE: u64 = 4 << 20;

/// A dense tensor in the other order.
pub(super) struct Reorder<'a> {
    input: Input<'a>,
    /// The stored bytes, where they are in memory.
    memory: Option<Bytes>,
    rows: u64,
    columns: u64,
    /// The dimensions after the first, in stored order.
    others: Vec<u64>,
    width: usize,
}

/// Rows and columns of the result.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Rectangle {
    rows: Range<u64>,
    columns: Range<u64>,
}

impl<'a> Reorder<'a> {
    pub(super) fn new(data: Data<'a>, values: &Part, shape: &[u64], stored: Order) -> Result<Self> {
        let width = values.dtype.width().ok_or_else(|| {
            Error::unsupported("order", format!("{} has no other order", values.dtype))
        })?;
        let mut others = shape.to_vec();
        if stored == Order::RowMajor {
            others.reverse();
        }
        let rows = others.remove(0);
        let columns = others.iter().copied().try_fold(1, u64::checked_mul);
        let columns = columns.ok_or_else(|| overflow("the size of a row"))?;
        let input = data.random_access(&values.payload)?;
        let memory = if input.is_memory() {
            Some(input.read(0, input.len())?)
        } else {
            None
        };
        Ok(Self {
            input,
            memory,
            rows,
            columns,
            others,
            width,
        })
    }

    /// Whether elements of a type can be turned: those of a few whole bytes.
    pub(super) fn can_turn(dtype: DType) -> bool {
        dtype
            .width()
            .is_some_and(|width| width.is_power_of_two() && width <= 128)
    }

    /// Bytes of a piece of the result that is made at once: whole rows where that is possible, so many that the columns
    /// of the piece are long.
    pub(super) fn piece_len(&self, usual: u64) -> u64 {
        let row = self.row_len();
        if row > STRIP {
            return usual;
        }
        let rows = usual / row;
        let wanted = (LONG_RUN / self.width as u64).min(STRIP / row);
        let rows = match self.memory {
            Some(_) => rows,
            None => rows.max(wanted),
        };
        row * rows.clamp(1, self.rows.max(1))
    }

    fn row_len(&self) -> u64 {
        self.columns * self.width as u64
    }

    /// The bytes of the result from `at` on, which is at an element.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let width = self.width as u64;
        let mut place = at / width;
        let end = place + out.len() as u64 / width;
        let mut rest = out;
        // A part of a row, whole rows, a part of a row.
        while place < end {
            let (row, column) = (place / self.columns, place % self.columns);
            let whole = (end - place) / self.columns;
            let rectangle = if column == 0 && whole > 0 {
                Rectangle {
                    rows: row..row + whole,
                    columns: 0..self.columns,
                }
            } else {
                Rectangle {
                    rows: row..row + 1,
                    columns: column..self.columns.min(column + end - place),
                }
            };
            let count = rectangle.elements();
            let (now, later) = rest.split_at_mut(as_size(count * width)?);
            self.fill(&rectangle, now)?;
            place += count;
            rest = later;
        }
        Ok(())
    }

    /// Rectangles that are better written run by run than as whole rows, because rows are so long that few of them make a
    /// piece, and their columns would be read bit by bit. None where rows are good enough.
    #[cfg(feature = "std")]
    pub(super) fn tiles(&self) -> Option<Tiles> {
        let width = self.width as u64;
        let is_good = |rows: u64| rows * width >= LONG_RUN || rows >= self.rows;
        if self.memory.is_some() || is_good(STRIP / self.row_len().max(1)) {
            return None;
        }
        let rows = (TILE_SIDE / width).min(self.rows).max(1);
        let columns = (TILE / width / rows).min(self.columns).max(1);
        Some(Tiles {
            rows,
            columns,
            across: self.columns.div_ceil(columns),
            count: self.columns.div_ceil(columns) * self.rows.div_ceil(rows),
        })
    }

    /// A rectangle of the tiling, and its elements row by row.
    #[cfg(feature = "std")]
    pub(super) fn read_tile(&self, tiles: &Tiles, n: u64, out: &mut Vec<u8>) -> Result<Rectangle> {
        let rectangle = self.rectangle(tiles, n);
        out.clear();
        out.resize(as_size(rectangle.elements() * self.width as u64)?, 0);
        self.fill(&rectangle, out)?;
        Ok(rectangle)
    }

    #[cfg(feature = "std")]
    fn rectangle(&self, tiles: &Tiles, n: u64) -> Rectangle {
        let side = |n: u64, len: u64, all: u64| n * len..all.min((n + 1) * len);
        Rectangle {
            rows: side(n / tiles.across, tiles.rows, self.rows),
            columns: side(n % tiles.across, tiles.columns, self.columns),
        }
    }

    /// From the first byte of a tile to its last.
    #[cfg(feature = "std")]
    pub(super) fn span(&self, tiles: &Tiles, n: u64) -> Option<Range<u64>> {
        let rectangle = self.rectangle(tiles, n);
        let mut runs = self.runs(&rectangle);
        let first = runs.next()?;
        let last = runs.last().unwrap_or(first.clone());
        Some(first.start..last.end)
    }

    /// The rows of a rectangle, as bytes of the result.
    #[cfg(feature = "std")]
    pub(super) fn runs(&self, rectangle: &Rectangle) -> impl Iterator<Item = Range<u64>> {
        let width = self.width as u64;
        let (columns, all) = (rectangle.columns.clone(), self.columns);
        (rectangle.rows.clone())
            .map(move |row| (row * all + columns.start) * width..(row * all + columns.end) * width)
    }

    /// Fills `out` with a rectangle, row by row.
    fn fill(&self, rectangle: &Rectangle, out: &mut [u8]) -> Result<()> {
        let band = TILE_SIDE / self.width as u64;
        let row = as_size((rectangle.columns.end - rectangle.columns.start) * self.width as u64)?;
        let mut rest = out;
        for first in rectangle.rows.clone().step_by(as_size(band)?) {
            let rows = first..rectangle.rows.end.min(first + band);
            let (now, later) = rest.split_at_mut(as_size(rows.end - rows.start)? * row);
            self.fill_band(&rows, &rectangle.columns, now)?;
            rest = later;
        }
        Ok(())
    }

    /// Fills `out` with so few rows that a column of them is short.
    fn fill_band(&self, rows: &Range<u64>, columns: &Range<u64>, out: &mut [u8]) -> Result<()> {
        let count = as_size(rows.end - rows.start)?;
        let row = as_size(columns.end - columns.start)?;
        let run = count * self.width;
        let pitch = run + PAD;
        let at_once = (BUFFER / pitch).clamp(LEAST_COLUMNS, MOST_COLUMNS).min(row);
        let mut buffer = vec![0; at_once * pitch];
        let mut window = Window::default();
        let mut order = Columns::new(&self.others, columns.start);
        if self.input.is_late() {
            return self.fill_band_at_once(rows, order, row, out);
        }
        let near = order
            .distance()
            .saturating_mul(self.rows * self.width as u64)
            <= NEAR;
        for first in (0..row).step_by(at_once) {
            let columns = first..row.min(first + at_once);
            for column in buffer.chunks_exact_mut(pitch).take(columns.len()) {
                let at = (order.place() * self.rows + rows.start) * self.width as u64;
                order.step();
                let column = &mut column[..run];
                match &self.memory {
                    Some(memory) => {
                        let at = as_size(at)?;
                        column.copy_from_slice(&memory[at..at + run]);
                    }
                    None if near => window.read(&self.input, at, column)?,
                    None => self.input.read_into(at, column)?,
                }
            }
            let shape = Shape {
                rows: count,
                pitch,
                columns,
                row,
            };
            self.turn(&buffer, &shape, out)?;
        }
        Ok(())
    }

    /// The same from an input whose answers come late: many columns are asked for at once.
    fn fill_band_at_once(
        &self,
        rows: &Range<u64>,
        mut order: Columns,
        row: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let count = as_size(rows.end - rows.start)?;
        let run = count * self.width;
        let at_once = (LATE_BUFFER / run).max(1).min(row);
        let mut buffer = Vec::new();
        for first in (0..row).step_by(at_once) {
            let columns = first..row.min(first + at_once);
            let mut ranges = Vec::new();
            for _ in columns.clone() {
                let at = (order.place() * self.rows + rows.start) * self.width as u64;
                order.step();
                ranges.push(at..at + run as u64);
            }
            buffer.clear();
            for column in self.input.read_ranges(&ranges)? {
                buffer.extend_from_slice(&column);
            }
            let shape = Shape {
                rows: count,
                pitch: run,
                columns,
                row,
            };
            self.turn(&buffer, &shape, out)?;
        }
        Ok(())
    }

    fn turn(&self, buffer: &[u8], shape: &Shape, out: &mut [u8]) -> Result<()> {
        match self.width {
            1 => turn::<1>(buffer, shape, out),
            2 => turn::<2>(buffer, shape, out),
            4 => turn::<4>(buffer, shape, out),
            8 => turn::<8>(buffer, shape, out),
            16 => turn::<16>(buffer, shape, out),
            32 => turn::<32>(buffer, shape, out),
            64 => turn::<64>(buffer, shape, out),
            128 => turn::<128>(buffer, shape, out),
            width => {
                let message = format!("elements of {width} bytes");
                return Err(Error::unsupported("order", message));
            }
        }
        Ok(())
    }
}

impl Rectangle {
    fn elements(&self) -> u64 {
        (self.rows.end - self.rows.start) * (self.columns.end - self.columns.start)
    }
}

/// How the result is divided into rectangles.
#[cfg(feature = "std")]
#[derive(Clone, Debug)]
pub(super) struct Tiles {
    rows: u64,
    columns: u64,
    across: u64,
    pub(super) count: u64,
}

#[cfg(test)]
mod tests;
