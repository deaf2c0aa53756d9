//! A tensor cut into chunks, as files that have them are written.

use crate::error::{Error, Result};
use crate::model::{Axis, DType, Form, Payload, Selection, Steps, TensorInfo, Want};
use crate::prelude::*;
use crate::transform::{Data, View, as_size};

/// The elements of a tensor chunk by chunk.
pub(super) struct Tiled<'a> {
    data: Data<'a>,
    tensor: TensorInfo,
    dtype: DType,
    sides: Vec<u64>,
    width: usize,
    /// The first chunk that is wanted.
    first: u64,
}

/// How many chunks there are; `None` where 64 bits cannot count them.
pub(super) fn count(shape: &[u64], sides: &[u64]) -> Option<u64> {
    let counts = shape
        .iter()
        .zip(sides)
        .map(|(dim, side)| dim.div_ceil((*side).max(1)));
    if shape.contains(&0) {
        return Some(0);
    }
    counts.into_iter().try_fold(1, u64::checked_mul)
}

impl<'a> Tiled<'a> {
    pub(super) fn new(
        data: Data<'a>,
        tensor: &TensorInfo,
        dtype: DType,
        sides: &[u64],
        first: u64,
    ) -> Result<Self> {
        let width = dtype
            .width()
            .filter(|_| sides.len() == tensor.shape.len() && !sides.contains(&0));
        let width = width.ok_or_else(|| {
            Error::argument(format!(
                "chunks of {sides:?} for {dtype} of {:?}",
                tensor.shape
            ))
        })?;
        let form = Form::canonical(dtype);
        let tensor = if View::is_light(data, tensor, &Want::Dense(form)) {
            tensor.clone()
        } else {
            // It cannot be entered in the middle at no cost: held whole.
            let whole = View::dense(data, tensor, &form)?.collect(data.limits.tensor_memory)?;
            let payload = Payload::Inline(whole.into());
            TensorInfo::dense(tensor.name.clone(), dtype, tensor.shape.clone(), payload)
        };
        Ok(Self {
            data,
            tensor,
            dtype,
            sides: sides.to_vec(),
            width,
            first,
        })
    }

    /// Bytes of a chunk.
    pub(super) fn step_len(&self) -> u64 {
        self.sides.iter().product::<u64>() * self.width as u64
    }

    /// Chunks from a byte on that one begins at; `out` comes filled with zeros.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let step = self.step_len();
        for (number, out) in (self.first + at / step..).zip(out.chunks_mut(as_size(step)?)) {
            self.read_chunk(number, out)?;
        }
        Ok(())
    }

    fn read_chunk(&self, mut number: u64, out: &mut [u8]) -> Result<()> {
        let mut axes = Vec::new();
        for (&dim, &side) in self.tensor.shape.iter().zip(&self.sides).rev() {
            let count = dim.div_ceil(side);
            let start = number % count * side;
            number /= count;
            let steps = Steps {
                start,
                step: 1,
                count: side.min(dim - start),
            };
            axes.push(Axis {
                dim,
                steps: vec![steps],
                kept: true,
            });
        }
        axes.reverse();
        let lens: Vec<u64> = axes.iter().map(Axis::count).collect();
        let view = View::selected(self.data, &self.tensor, self.dtype, Selection { axes })?;
        if lens == self.sides {
            return view.read_all(out);
        }
        let mut inner = vec![0; as_size(view.len())?];
        view.read_all(&mut inner)?;
        self.spread(&lens, &inner, out)
    }

    /// Puts the lines of a smaller box to their places in a chunk.
    fn spread(&self, lens: &[u64], inner: &[u8], out: &mut [u8]) -> Result<()> {
        let line = as_size(lens.last().copied().unwrap_or(1))? * self.width;
        for (number, from) in inner.chunks_exact(line.max(1)).enumerate() {
            let (mut rest, mut place, mut stride) = (number as u64, 0, 1);
            for (axis, (len, side)) in lens.iter().zip(&self.sides).enumerate().rev() {
                if axis + 1 < lens.len() {
                    place += rest % len * stride;
                    rest /= len;
                }
                stride *= side;
            }
            let at = as_size(place)? * self.width;
            out[at..at + line].copy_from_slice(from);
        }
        Ok(())
    }
}
