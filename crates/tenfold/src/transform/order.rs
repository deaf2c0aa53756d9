//! Row-major to column-major and back, in strips.
//!
//! A row-major tensor is the column-major one of the reversed shape, so one direction serves both. In column-major order
//! the first index runs fastest: a strip of rows of the result needs, for every choice of the other indices, one run of
//! neighbouring stored elements.

use crate::error::{Error, Result};
use crate::model::{Layout, Part, Payload};
use crate::prelude::*;
use crate::transform::{Data, Input, View, as_size, overflow};

/// Runs shorter than this are picked out of larger reads.
const SHORT_RUN: usize = 4096;
/// The size of such a larger read.
const WINDOW: u64 = 1 << 20;
/// Elements along a side of the square that is turned at once: both sides of it stay in the cache.
const TILE: usize = 32;

/// A dense tensor in the other order.
pub(super) struct Reorder<'a> {
    input: Input<'a>,
    /// The dimensions, the one that runs fastest in the stored order first.
    shape: Vec<usize>,
    width: usize,
    row_len: u64,
}

impl<'a> Reorder<'a> {
    pub(super) fn new(
        data: Data<'a>,
        values: &Part,
        shape: &[u64],
        stored: &Layout,
    ) -> Result<Self> {
        let width = values.dtype.width().ok_or_else(|| {
            Error::unsupported("order", format!("{} has no other order", values.dtype))
        })?;
        let mut shape: Vec<usize> = shape
            .iter()
            .map(|&dim| as_size(dim))
            .collect::<Result<_>>()?;
        if *stored == Layout::RowMajor {
            shape.reverse();
        }
        let input = match &values.payload {
            // It cannot be entered in the middle: held whole.
            Payload::Encoded { .. } => {
                let whole = View::part(data, values, values.dtype, values.endian)?;
                Input::Memory(whole.collect(data.limits.tensor_memory)?.into())
            }
            payload => data.input(payload)?,
        };
        let rest: u64 = shape[1..].iter().map(|&dim| dim as u64).product();
        let row_len = rest
            .checked_mul(width as u64)
            .ok_or_else(|| overflow("the size of a row"))?;
        if row_len > data.limits.tensor_memory {
            let message = format!("a row of {row_len} bytes is needed at once to change the order");
            return Err(Error::limit("memory", message));
        }
        Ok(Self {
            input,
            shape,
            width,
            row_len,
        })
    }

    /// Bytes of one row of the result: of everything that has the same first index.
    pub(super) fn row_len(&self) -> u64 {
        self.row_len
    }

    /// Whole rows of the result.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let first = as_size(at / self.row_len)?;
        let rows = out.len() / as_size(self.row_len)?;
        let strip = self.strip(first, rows)?;
        match self.width {
            1 => turn::<1>(&strip, rows, &self.shape, out),
            2 => turn::<2>(&strip, rows, &self.shape, out),
            4 => turn::<4>(&strip, rows, &self.shape, out),
            8 => turn::<8>(&strip, rows, &self.shape, out),
            16 => turn::<16>(&strip, rows, &self.shape, out),
            32 => turn::<32>(&strip, rows, &self.shape, out),
            64 => turn::<64>(&strip, rows, &self.shape, out),
            128 => turn::<128>(&strip, rows, &self.shape, out),
            width => {
                return Err(Error::unsupported(
                    "order",
                    format!("elements of {width} bytes"),
                ));
            }
        }
        Ok(())
    }

    /// The stored elements of some rows of the result, in stored order, without the other rows between them.
    fn strip(&self, first: usize, rows: usize) -> Result<Vec<u8>> {
        let run = rows * self.width;
        let pitch = self.shape[0] * self.width;
        let runs = as_size(self.row_len)? / self.width;
        let mut strip = vec![0; run * runs];
        if run == pitch {
            self.input.read_into(0, &mut strip)?;
        } else if run >= SHORT_RUN {
            for (n, place) in strip.chunks_exact_mut(run).enumerate() {
                self.input
                    .read_into((n * pitch + first * self.width) as u64, place)?;
            }
        } else {
            let mut window = Vec::new();
            let mut window_at = 0u64;
            for (n, place) in strip.chunks_exact_mut(run).enumerate() {
                let from = (n * pitch + first * self.width) as u64;
                if from < window_at || from + run as u64 > window_at + window.len() as u64 {
                    let len = WINDOW.min(self.input.len() - from).max(run as u64);
                    window.resize(as_size(len)?, 0);
                    window_at = from;
                    self.input.read_into(from, &mut window)?;
                }
                let start = as_size(from - window_at)?;
                place.copy_from_slice(&window[start..start + run]);
            }
        }
        Ok(strip)
    }
}

/// Turns a strip of `rows` rows, square by square: between the first dimension and the last, for every choice of those
/// between them.
fn turn<const WIDTH: usize>(strip: &[u8], rows: usize, shape: &[usize], out: &mut [u8]) {
    let from = strip.as_chunks::<WIDTH>().0;
    let to = out.as_chunks_mut::<WIDTH>().0;
    let (middle, last) = match shape {
        [_, middle @ .., last] => (middle, *last),
        _ => return,
    };
    let middle_len: usize = middle.iter().product();
    let row = middle_len * last;
    let mut index = vec![0; middle.len()];
    for place in 0..middle_len {
        // Where this choice of the middle indices is in stored order, the first of them running fastest.
        let stored = index
            .iter()
            .zip(middle)
            .rev()
            .fold(0, |sum, (&i, &dim)| sum * dim + i);
        for top in (0..rows).step_by(TILE) {
            for left in (0..last).step_by(TILE) {
                for i in top..rows.min(top + TILE) {
                    for j in left..last.min(left + TILE) {
                        to[i * row + place * last + j] = from[(j * middle_len + stored) * rows + i];
                    }
                }
            }
        }
        step(&mut index, middle);
    }
}

/// The next choice of indices, the last running fastest.
fn step(index: &mut [usize], shape: &[usize]) {
    for (i, &dim) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < dim {
            return;
        }
        *i = 0;
    }
}
