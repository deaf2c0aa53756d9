//! Where the elements of a slice are stored.

use super::gather::{Run, Stored};
use crate::error::{Error, Result};
use crate::model::{Axis, DType, Endian, Part, Selection, Steps, Symmetry, TensorInfo};
use crate::prelude::*;
use crate::transform::operation::Apply;
use crate::transform::packed::{self, Triangle};
use crate::transform::strides::strides;
use crate::transform::{as_size, overflow};

/// The places of the units of a result where every step along a dimension goes equally far.
pub(super) struct Lines {
    /// All dimensions but the last that is not taken whole: indices, and how far a step goes.
    outer: Vec<(Axis, u64)>,
    inner: (Axis, u64),
    /// Units that are neighbours here and there.
    unit: u64,
}

impl Lines {
    pub(super) fn new(selection: Selection, strides: &[u64]) -> Result<Self> {
        let mut outer: Vec<(Axis, u64)> = (selection.axes.into_iter())
            .zip(strides.iter().copied())
            .collect();
        let mut unit = 1u64;
        while let Some((axis, _)) =
            outer.pop_if(|(axis, stride)| axis.is_whole() && (*stride == unit || axis.dim == 1))
        {
            unit = unit
                .checked_mul(axis.dim)
                .ok_or_else(|| overflow("the number of elements"))?;
        }
        let once = Axis {
            dim: 1,
            steps: vec![Steps {
                start: 0,
                step: 1,
                count: 1,
            }],
            kept: true,
        };
        let inner = outer.pop().unwrap_or((once, unit));
        Ok(Self { outer, inner, unit })
    }

    /// The runs of stored units that make up some neighbouring units of the result.
    pub(super) fn runs(&self, range: Range<u64>, runs: &mut Vec<Run>) -> Result<()> {
        let (axis, stride) = &self.inner;
        let line_len = axis.count() * self.unit;
        let mut at = range.start;
        while at < range.end {
            let base = self.base(at / line_len);
            let mut within = at % line_len;
            let line_end = line_len.min(within + (range.end - at));
            while within < line_end {
                let (index, rest) = axis.at(within / self.unit);
                let offset = within % self.unit;
                let together = match rest.step == 1 && *stride == self.unit {
                    true => rest.count * self.unit,
                    false => self.unit,
                };
                let len = (together - offset).min(line_end - within);
                runs.push(Run {
                    place: base + index * stride + offset,
                    len,
                    out: as_size(at - range.start)?,
                });
                within += len;
                at += len;
            }
        }
        Ok(())
    }

    /// Where a line begins.
    fn base(&self, mut line: u64) -> u64 {
        let mut base = 0;
        for (axis, stride) in self.outer.iter().rev() {
            let count = axis.count();
            base += axis.at(line % count).0 * stride;
            line /= count;
        }
        base
    }
}

/// The places of the elements of a packed tensor.
pub(super) struct Exchange {
    triangle: Triangle,
    parts: Vec<packed::Axis>,
    axes: Vec<Axis>,
    pub(super) apply: Apply,
}

impl Exchange {
    pub(super) fn new(
        tensor: &TensorInfo,
        values: &Part,
        dtype: DType,
        symmetry: &Symmetry,
        selection: Selection,
    ) -> Result<Self> {
        if tensor.elements().is_none() {
            return Err(overflow("the number of elements"));
        }
        let triangle = Triangle::new(&tensor.shape, symmetry)?;
        let stored = triangle.stored();
        if values.dtype.width().is_none()
            || values.dtype.bytes_for(stored) != Some(values.payload.len())
        {
            let message = format!("{} bytes for {stored} elements", values.payload.len());
            return Err(Error::malformed("size", message));
        }
        // Of the elements as they are gathered.
        let (dtype, endian) = match Stored::is_mapped_later(values) {
            true => (values.dtype, values.endian),
            false => (dtype, Endian::Little),
        };
        Ok(Self {
            parts: triangle.axes(&tensor.shape),
            triangle,
            axes: selection.axes,
            apply: Apply::new(symmetry.operation, dtype, endian)?,
        })
    }

    pub(super) fn runs(
        &self,
        range: Range<u64>,
        runs: &mut Vec<Run>,
        exchanged: &mut Vec<usize>,
    ) -> Result<()> {
        let mut index = vec![0; self.axes.len()];
        for at in range.clone() {
            let mut place = at;
            for (index, axis) in index.iter_mut().zip(&self.axes).rev() {
                let count = axis.count();
                *index = axis.at(place % count).0;
                place /= count;
            }
            let out = as_size(at - range.start)?;
            let Some((place, swapped)) = self.triangle.find(&self.parts, &index) else {
                continue;
            };
            if swapped {
                exchanged.push(out);
            }
            match runs.last_mut() {
                Some(run)
                    if run.place + run.len == place && run.out as u64 + run.len == out as u64 =>
                {
                    run.len += 1;
                }
                _ => runs.push(Run { place, len: 1, out }),
            }
        }
        Ok(())
    }
}

/// The numbers of an element stay together, whatever the order of the elements is.
pub(super) fn column_major(
    tensor: &TensorInfo,
    shape: &[u64],
    selection: Selection,
) -> Result<Lines> {
    let numbers: u64 = shape[tensor.shape.len()..].iter().product();
    let mut strides = strides(&tensor.shape, true)?;
    for stride in &mut strides {
        *stride = stride
            .checked_mul(numbers)
            .ok_or_else(|| overflow("the number of elements"))?;
    }
    strides.resize(shape.len(), 1);
    Lines::new(selection, &strides)
}
