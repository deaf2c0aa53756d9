//! Tensors as pictures: rows and columns of cells, each with what the numbers below it are like.
//!
//! A picture has a bounded number of cells whatever the size of the tensor. One of up to 32 MiB is read whole; of a larger one
//! a line for each row of cells, of long lines a stretch for each cell, and of one in chunks as many chunks as 32 MiB are: in
//! an order in which the picture sharpens everywhere at once.

mod cell;
mod plane;
mod steps;

pub use cell::Cell;
pub use steps::{PictureSteps, picture};

use crate::archive::Component;
use crate::prelude::*;

/// Cells along a side, at most.
pub(super) const MOST_CELLS: u32 = 1024;

/// What a picture shows of a tensor, and how.
///
/// By default it is the last two dimensions, at the first index of all others; a vector is one row.
#[derive(Clone, Debug, Default)]
pub struct PictureOptions {
    axes: Option<(usize, usize)>,
    at: Vec<u64>,
    fold: Option<u64>,
    rows: Option<Range<u64>>,
    columns: Option<Range<u64>>,
    cells: Option<(u32, u32)>,
    component: Option<Component>,
    all: bool,
    threads: usize,
}

impl PictureOptions {
    /// The last two dimensions in 512 by 512 cells.
    pub fn new() -> Self {
        Self::default()
    }

    /// The dimensions that are rows and columns.
    #[must_use]
    pub fn axes(mut self, axes: Option<(usize, usize)>) -> Self {
        self.axes = axes;
        self
    }

    /// An index for every dimension; those of rows and columns say nothing.
    #[must_use]
    pub fn at(mut self, at: impl Into<Vec<u64>>) -> Self {
        self.at = at.into();
        self
    }

    /// Elements of a line into which a vector is folded; without, it is one line.
    #[must_use]
    pub fn fold(mut self, fold: Option<u64>) -> Self {
        self.fold = fold;
        self
    }

    /// Which rows and which columns; all of them where nothing is said.
    #[must_use]
    pub fn part(mut self, rows: Option<Range<u64>>, columns: Option<Range<u64>>) -> Self {
        (self.rows, self.columns) = (rows, columns);
        self
    }

    /// Rows and columns of cells: at most 1024 of each, and never more than there are elements.
    #[must_use]
    pub fn cells(mut self, rows: u32, columns: u32) -> Self {
        self.cells = Some((rows, columns));
        self
    }

    /// Which number of elements that have several; by default the modulus of complex numbers.
    #[must_use]
    pub fn component(mut self, component: Option<Component>) -> Self {
        self.component = component;
        self
    }

    /// Whether every number is read, however many there are.
    #[must_use]
    pub fn all(mut self, all: bool) -> Self {
        self.all = all;
        self
    }

    /// Threads; 0 is one for every core. The cells do not depend on it.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }
}

/// A tensor, or a part of one, as a picture.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Picture {
    /// Rows of the tensor that it is about.
    pub rows: Range<u64>,
    /// Columns of the tensor that it is about.
    pub columns: Range<u64>,
    /// Rows and columns of cells.
    pub size: (usize, usize),
    /// The cells, row by row.
    pub cells: Vec<Cell>,
    /// Lines that were read to their end, and how many there are: rows, or columns where the file has those together. Of
    /// chunks, and of stretches of long lines, none are.
    pub lines: (u64, u64),
    /// Whether the lines are columns.
    pub is_by_columns: bool,
    /// Of how many neighbours in a line one was read: 1 unless neither rows nor columns are together in the file.
    pub stride: u64,
    /// Numbers that are 0, among those that were read.
    pub zeros: u64,
}

impl Picture {
    /// Whether every number was read: what it says of a part is not said of all else.
    pub fn is_exact(&self) -> bool {
        self.lines.0 == self.lines.1 && self.stride == 1
    }

    /// What all numbers that were read are like.
    pub fn total(&self) -> Cell {
        let mut total = Cell::default();
        self.cells.iter().for_each(|cell| total.merge(cell));
        total
    }
}

#[cfg(test)]
mod tests;
