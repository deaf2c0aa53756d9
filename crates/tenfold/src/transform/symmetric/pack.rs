//! Dense to packed.

use super::triangle::Triangle;
use crate::error::{Error, Result};
use crate::model::Symmetry;
use crate::prelude::*;
use crate::transform::{View, as_size};

/// A dense tensor as a packed one.
pub(in crate::transform) struct Pack<'a> {
    /// The tensor, dense and column-major.
    dense: Box<View<'a>>,
    triangle: Triangle,
    width: u64,
}

impl<'a> Pack<'a> {
    pub(in crate::transform) fn new(
        dense: View<'a>,
        shape: &[u64],
        symmetry: &Symmetry,
        width: usize,
    ) -> Result<Self> {
        if !dense.is_random() {
            return Err(Error::argument("a stream cannot be packed"));
        }
        Ok(Self {
            dense: Box::new(dense),
            triangle: Triangle::new(shape, symmetry)?,
            width: width as u64,
        })
    }

    pub(in crate::transform) fn len(&self) -> u64 {
        self.triangle.stored() * self.width
    }

    /// The packed bytes from `at` on, which is at an element.
    pub(in crate::transform) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let triangle = &self.triangle;
        let mut window = Window::default();
        let wanted = at / self.width..(at + out.len() as u64) / self.width;
        let mut done = wanted.start;
        // Column by column: everything with the same index along the second dimension and those after it.
        while done < wanted.end {
            let outer = done / triangle.block();
            let inside = done % triangle.block();
            let high = self.column(inside);
            let column = inside - triangle.inner * triangle.middle * triangle.before(high);
            let run = triangle.inner * triangle.below(high);
            let (middle, from) = (column / run, column % run);
            let count = (run - from).min(wanted.end - done);
            let dense = ((outer * triangle.n + high) * triangle.middle + middle)
                * triangle.n
                * triangle.inner
                + from;
            let place = as_size((done - wanted.start) * self.width)?;
            let len = as_size(count * self.width)?;
            window.read(
                &self.dense,
                dense * self.width,
                &mut out[place..place + len],
            )?;
            done += count;
        }
        Ok(())
    }

    /// The index along the second dimension of a stored place in a block.
    fn column(&self, inside: u64) -> u64 {
        let per = self.triangle.inner * self.triangle.middle;
        let (mut low, mut high) = (0, self.triangle.n);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.triangle.before(middle) * per <= inside {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Stretches of a view that can be entered only in steps.
#[derive(Default)]
struct Window {
    at: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn read(&mut self, view: &View<'_>, at: u64, out: &mut [u8]) -> Result<()> {
        if let Some(input) = view.direct() {
            return input.read_into(at, out);
        }
        let mut done = 0;
        while done < out.len() {
            let from = at + done as u64;
            if from < self.at || from >= self.at + self.bytes.len() as u64 {
                let len = view.piece();
                self.at = from - from % len;
                let mut bytes = core::mem::take(&mut self.bytes);
                view.read(self.at, len.min(view.len() - self.at), &mut bytes)?;
                self.bytes = bytes;
            }
            let start = as_size(from - self.at)?;
            let len = (self.bytes.len() - start).min(out.len() - done);
            out[done..done + len].copy_from_slice(&self.bytes[start..start + len]);
            done += len;
        }
        Ok(())
    }
}
