//! Where selected elements are stored, when a step along a dimension always goes equally far.

use super::Runs;
use crate::error::Result;
use crate::model::{Axis, Selection, Steps};
use crate::prelude::*;
use crate::transform::{as_size, overflow};

/// The places of the units of a result where every step along a dimension goes equally far.
pub(in crate::transform) struct Lines {
    /// The place of the first element of the tensor.
    offset: u64,
    /// All dimensions but the last that is not taken whole: indices, and how far a step goes.
    outer: Vec<(Axis, u64)>,
    inner: (Axis, u64),
    /// Units that are neighbours here and there.
    unit: u64,
}

impl Lines {
    /// The selected elements of a tensor whose first one is at `offset`, with a step for every dimension.
    pub(in crate::transform) fn new(
        selection: Selection,
        offset: u64,
        steps: &[u64],
    ) -> Result<Self> {
        Self::of_units(selection, offset, steps, 1)
    }

    /// The same for elements that are so many neighbouring units each, with everything counted in units.
    pub(in crate::transform) fn of_units(
        selection: Selection,
        offset: u64,
        steps: &[u64],
        mut unit: u64,
    ) -> Result<Self> {
        let mut outer: Vec<(Axis, u64)> = (selection.axes.into_iter())
            .zip(steps.iter().copied())
            .collect();
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
        Ok(Self {
            offset,
            outer,
            inner,
            unit,
        })
    }

    /// The same for elements that are several neighbouring units each.
    pub(super) fn times(mut self, units: u64) -> Result<Self> {
        let steps = self.outer.iter_mut().map(|(_, step)| step);
        let all = steps.chain([&mut self.offset, &mut self.inner.1, &mut self.unit]);
        for number in all {
            *number = number
                .checked_mul(units)
                .ok_or_else(|| overflow("the number of elements"))?;
        }
        Ok(self)
    }

    /// How many units are selected.
    pub(super) fn units(&self) -> Option<u64> {
        let axes = self.outer.iter().chain([&self.inner]);
        let counts = axes.map(|(axis, _)| axis.count());
        if counts.clone().any(|count| count == 0) {
            return Some(0);
        }
        counts.chain([self.unit]).try_fold(1, u64::checked_mul)
    }

    /// The runs of stored units that make up some neighbouring units of the result.
    pub(super) fn runs(&self, range: Range<u64>, runs: &mut Runs) -> Result<()> {
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
                let together = if rest.step == 1 && *stride == self.unit {
                    rest.count * self.unit
                } else {
                    self.unit
                };
                let len = (together - offset).min(line_end - within);
                runs.push(
                    base + index * stride + offset,
                    len,
                    as_size(at - range.start)?,
                );
                within += len;
                at += len;
            }
        }
        Ok(())
    }

    /// Where a line begins.
    fn base(&self, mut line: u64) -> u64 {
        let mut base = self.offset;
        for (axis, stride) in self.outer.iter().rev() {
            let count = axis.count();
            base += axis.at(line % count).0 * stride;
            line /= count;
        }
        base
    }
}
