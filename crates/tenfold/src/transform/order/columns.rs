//! Where the columns of the result are stored, and how they are fetched.

use crate::error::Result;
use crate::prelude::*;
use crate::transform::{Input, as_size};

/// Columns that are no further apart than this are fetched together.
pub(super) const NEAR: u64 = 2 << 10;
/// Bytes that are fetched together then.
const WINDOW: u64 = 256 << 10;

/// The places of columns in the stored order: columns are counted with the last index running fastest, stored with the
/// first.
pub(super) struct Columns {
    /// For every dimension, the last first: length, how far a step goes, and the index.
    dims: Vec<(u64, u64, u64)>,
    place: u64,
}

impl Columns {
    pub(super) fn new(others: &[u64], mut column: u64) -> Self {
        let mut stride = 1;
        let mut dims: Vec<_> = (others.iter())
            .map(|&dim| {
                let this = stride;
                stride *= dim;
                (dim, this, 0)
            })
            .collect();
        dims.reverse();
        let mut place = 0;
        for (dim, stride, index) in &mut dims {
            *index = column % *dim;
            column /= *dim;
            place += *index * *stride;
        }
        Self { dims, place }
    }

    /// How far apart most neighbours are.
    pub(super) fn distance(&self) -> u64 {
        self.dims.first().map_or(1, |&(_, stride, _)| stride)
    }

    pub(super) fn place(&self) -> u64 {
        self.place
    }

    pub(super) fn step(&mut self) {
        for (dim, stride, index) in &mut self.dims {
            *index += 1;
            self.place += *stride;
            if *index < *dim {
                return;
            }
            self.place -= *dim * *stride;
            *index = 0;
        }
    }
}

/// Neighbouring bytes of the input that are fetched together.
#[derive(Default)]
pub(super) struct Window {
    at: u64,
    bytes: Vec<u8>,
}

impl Window {
    pub(super) fn read(&mut self, input: &Input<'_>, at: u64, out: &mut [u8]) -> Result<()> {
        let len = out.len() as u64;
        if at < self.at || at + len > self.at + self.bytes.len() as u64 {
            let fetch = WINDOW.min(input.len() - at).max(len);
            self.bytes.resize(as_size(fetch)?, 0);
            self.at = at;
            input.read_into(at, &mut self.bytes)?;
        }
        let from = as_size(at - self.at)?;
        out.copy_from_slice(&self.bytes[from..from + out.len()]);
        Ok(())
    }
}
