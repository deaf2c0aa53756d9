//! Pictures, step by step.

use core::fmt;

use super::plane::{Band, Plane, border, cell_of};
use super::{Cell, Picture, PictureOptions};
use crate::archive::{Archive, Component, Sliced, Tensor};
use crate::error::{Error, Result};
use crate::model::DType;
use crate::prelude::*;
use crate::threads::{Progress, map};

/// Makes a picture of the tensor at a place of an archive.
///
/// ```
/// use tenfold::ops::{PictureOptions, picture};
/// let mut b = tenfold::Archive::builder();
/// b.tensor("w", [2, 4], [0f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, f32::NAN])?;
/// let picture = picture(&b.finish(), 0, &PictureOptions::new().cells(1, 2))?;
/// let means: Vec<_> = picture.cells.iter().map(|cell| cell.mean()).collect();
/// assert_eq!(means, [Some(2.5), Some(11.0 / 3.0)]);
/// assert_eq!(picture.cells[1].nans, 1);
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn picture(archive: &Archive, place: usize, options: &PictureOptions) -> Result<Picture> {
    PictureSteps::new(archive, place, options)?.finish()
}

/// [`picture()`] in steps, for those who show it while it sharpens. The result is the same.
pub struct PictureSteps {
    archive: Archive,
    place: usize,
    component: Option<Component>,
    plane: Plane,
    picture: Picture,
    /// Bands that were read.
    read: u64,
    threads: usize,
    bytes: u64,
}

impl fmt::Debug for PictureSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PictureSteps").finish_non_exhaustive()
    }
}

impl PictureSteps {
    /// Decides what is read. Reads nothing yet.
    pub fn new(archive: &Archive, place: usize, options: &PictureOptions) -> Result<Self> {
        let tensor = tensor_of(archive, place)?;
        let component = component_of(&tensor, options.component)?;
        let plane = Plane::new(tensor, options).map_err(|error| error.in_tensor(tensor.name()))?;
        let size = |side: u64| usize::try_from(side).unwrap_or(0);
        let size = (size(plane.size.0), size(plane.size.1));
        let picture = Picture {
            rows: plane.rows.clone(),
            columns: plane.columns.clone(),
            size,
            cells: vec![Cell::default(); size.0.saturating_mul(size.1)],
            lines: (0, plane.lines()),
            is_by_columns: plane.is_by_columns,
            stride: plane.stride,
            zeros: 0,
        };
        Ok(Self {
            archive: archive.clone(),
            place,
            component,
            plane,
            picture,
            read: 0,
            threads: options.threads,
            bytes: 0,
        })
    }

    /// The picture as far as it is read.
    pub fn picture(&self) -> &Picture {
        &self.picture
    }

    /// How many bytes of numbers it takes, about. What is read in one step because no part of it can be read by itself, as
    /// of a sparse tensor, is worth a question before.
    pub fn bytes(&self) -> u64 {
        self.plane.bytes
    }

    /// Reads about `budget` bytes, and one band of the picture at least: a sparse tensor, or one that is compressed as one
    /// stream, is read whole.
    pub fn step(&mut self, budget: u64) -> Result<Progress> {
        let before = self.bytes;
        let threads = at_once(self.threads);
        while self.read < self.plane.bands() && self.bytes - before < budget {
            let to = self.plane.bands().min(self.read + threads);
            let bands: Vec<_> = (self.read..to).map(|n| self.plane.band(n)).collect();
            self.fill(bands)?;
            self.read = to;
        }
        let (done, total) = (self.read, self.plane.bands());
        // Of what is read of every line, if all are alike.
        let total = match done {
            0 => 0,
            _ => (u128::from(self.bytes) * u128::from(total)).div_ceil(u128::from(done)),
        };
        Ok(Progress {
            done: self.bytes,
            total: u64::try_from(total).unwrap_or(u64::MAX),
            is_finished: self.read == self.plane.bands(),
        })
    }

    /// The picture. What is left is read first.
    pub fn finish(mut self) -> Result<Picture> {
        while !self.step(u64::MAX)?.is_finished {}
        Ok(self.picture)
    }

    fn fill(&mut self, bands: Vec<Band>) -> Result<()> {
        let tensor = tensor_of(&self.archive, self.place)?;
        let (plane, component) = (&self.plane, self.component);
        let filled = map(self.threads, bands, |band, (): &mut ()| {
            Filling::new(plane, band).read(tensor, component)
        })?;
        for filling in filled {
            self.picture.lines.0 += filling.lines();
            self.picture.zeros += filling.zeros;
            self.bytes = self.bytes.saturating_add(filling.bytes);
            filling.put(&mut self.picture);
        }
        Ok(())
    }
}

/// Bands that are read at the same time.
fn at_once(threads: usize) -> u64 {
    #[cfg(feature = "std")]
    return crate::threads::thread_count(threads) as u64;
    #[cfg(not(feature = "std"))]
    {
        let _ = threads;
        1
    }
}

fn tensor_of(archive: &Archive, place: usize) -> Result<Tensor<'_>> {
    archive.tensor_at(place).ok_or_else(|| {
        let count = archive.manifest().tensors.len();
        Error::argument(format!("tensor {place} was asked for, there are {count}"))
    })
}

/// Which number of an element is shown; `None` where there is only one.
fn component_of(tensor: &Tensor<'_>, asked: Option<Component>) -> Result<Option<Component>> {
    let is_single = match Sliced::new(*tensor, &[])?.dtype() {
        DType::Number(_, lanes) => lanes.count() == 1,
        dtype => {
            let error = Error::unsupported("numbers", format!("{dtype} has no numbers"));
            return Err(error.in_tensor(tensor.name()));
        }
    };
    #[cfg(feature = "std")]
    let usual = Component::Modulus;
    #[cfg(not(feature = "std"))]
    let usual = Component::Number(0);
    Ok(asked.or((!is_single).then_some(usual)))
}

/// One side of a band: which lines, every how many, and the cells that they fall into.
struct Side {
    range: Range<u64>,
    stride: u64,
    cells: u64,
    count: u64,
}

impl Side {
    fn first_cell(&self) -> u64 {
        cell_of(self.range.start, self.cells, self.count)
    }

    fn cell_count(&self) -> u64 {
        let last = self.range.end.saturating_sub(1);
        cell_of(last, self.cells, self.count) + 1 - self.first_cell()
    }

    /// How many lines come before the end of each cell.
    fn ends(&self) -> Vec<u64> {
        let first = self.first_cell();
        let ends = (first..first + self.cell_count()).map(|cell| {
            let end = border(cell + 1, self.cells, self.count).min(self.range.end);
            (end - self.range.start).div_ceil(self.stride)
        });
        ends.collect()
    }

    /// The cell of the `n`th line, counted from the first.
    fn cell(&self, n: u64) -> u64 {
        let line = self
            .range
            .start
            .saturating_add(n.saturating_mul(self.stride));
        cell_of(line, self.cells, self.count) - self.first_cell()
    }
}

/// The cells of one band while its numbers come.
struct Filling<'p> {
    plane: &'p Plane,
    band: Band,
    /// The side whose lines come one after the other, and the one along them.
    outer: Side,
    inner: Side,
    ends: Vec<u64>,
    cells: Vec<Cell>,
    zeros: u64,
    bytes: u64,
    /// The line, the place in it, and the cell of that place.
    at: (u64, u64, usize),
}

impl<'p> Filling<'p> {
    fn new(plane: &'p Plane, band: Band) -> Self {
        let rows = Side {
            range: band.rows.clone(),
            stride: 1,
            cells: plane.size.0,
            count: plane.row_count(),
        };
        let columns = Side {
            range: band.columns.clone(),
            stride: plane.stride,
            cells: plane.size.1,
            count: plane.column_count(),
        };
        let (outer, inner) = if plane.is_transposed() {
            (columns, rows)
        } else {
            (rows, columns)
        };
        // No more than the picture has.
        let cells = usize::try_from(outer.cell_count() * inner.cell_count()).unwrap_or(0);
        Self {
            plane,
            band,
            ends: inner.ends(),
            outer,
            inner,
            cells: vec![Cell::default(); cells],
            zeros: 0,
            bytes: 0,
            at: (0, 0, 0),
        }
    }

    fn read(mut self, tensor: Tensor<'_>, component: Option<Component>) -> Result<Self> {
        for (first, slices) in self.plane.slices(&self.band) {
            let sliced = tensor.slice(&slices)?;
            if !self.plane.is_transposed() {
                self.at = (first - self.band.rows.start, 0, 0);
            }
            let elements = sliced.elements().unwrap_or(u64::MAX);
            self.bytes += sliced.dtype().bytes_for(elements).unwrap_or(u64::MAX / 2);
            let put = &mut |numbers: &[f64]| {
                self.add(numbers);
                Ok(())
            };
            match component {
                Some(component) => sliced.component(component, put)?,
                None => sliced.numbers(put)?,
            }
        }
        Ok(self)
    }

    fn add(&mut self, mut numbers: &[f64]) {
        while !numbers.is_empty() && !self.ends.is_empty() {
            let (line, place, cell) = self.at;
            let Some(&end) = self.ends.get(cell) else {
                self.at = (line + 1, 0, 0);
                continue;
            };
            let count = usize::try_from(end - place).unwrap_or(usize::MAX);
            let (now, rest) = numbers.split_at(count.min(numbers.len()));
            let index =
                usize::try_from(self.outer.cell(line)).unwrap_or(0) * self.ends.len() + cell;
            if let Some(cell) = self.cells.get_mut(index) {
                self.zeros += cell.add(now);
            }
            let place = place + now.len() as u64;
            self.at = (line, place, cell + usize::from(place == end));
            numbers = rest;
        }
    }

    /// Lines of the file that were read to their end.
    fn lines(&self) -> u64 {
        self.plane.whole_lines(&self.band)
    }

    fn put(&self, picture: &mut Picture) {
        let wide = picture.size.1;
        let place = |cell: u64| usize::try_from(cell).unwrap_or(0);
        let outer = place(self.outer.first_cell());
        let inner = place(self.inner.first_cell());
        for (n, cells) in self.cells.chunks(self.ends.len().max(1)).enumerate() {
            for (m, cell) in cells.iter().enumerate() {
                let (row, column) = if self.plane.is_transposed() {
                    (inner + m, outer + n)
                } else {
                    (outer + n, inner + m)
                };
                if let Some(shown) = picture.cells.get_mut(row * wide + column) {
                    shown.merge(cell);
                }
            }
        }
    }
}
