//! Packed to dense.

use super::operation::Apply;
use super::pages::Pages;
use super::triangle::{Group, Rest, Triangle};
use crate::error::{Error, Result};
use crate::model::{DType, Endian, Order, Role, Symmetry, TensorInfo};
use crate::prelude::*;
use crate::transform::{Data, Input, PIECE, as_size};

/// A packed tensor as a dense one.
pub(in crate::transform) struct Unpack<'a> {
    input: Input<'a>,
    shape: Vec<u64>,
    triangle: Triangle,
    apply: Apply,
    dtype: DType,
    endian: Endian,
    width: usize,
    /// The dimension whose index runs fastest in the wanted order: the first or the last.
    fastest: usize,
}

impl<'a> Unpack<'a> {
    pub(in crate::transform) fn new(
        data: Data<'a>,
        tensor: &TensorInfo,
        symmetry: &Symmetry,
        order: Order,
    ) -> Result<Self> {
        let values = tensor
            .part(&Role::Values)
            .ok_or_else(|| Error::malformed("layout", "a packed tensor without values"))?;
        let triangle = Triangle::of(tensor, values, symmetry)?;
        let input = data.random_access(&values.payload)?;
        Ok(Self {
            input,
            shape: tensor.shape.to_vec(),
            triangle,
            apply: Apply::new(symmetry.operation, values.dtype, values.endian)?,
            dtype: values.dtype,
            endian: values.endian,
            width: values.dtype.width().unwrap_or(1),
            fastest: match order {
                Order::ColumnMajor => 0,
                Order::RowMajor => tensor.shape.len() - 1,
            },
        })
    }

    /// The type and the byte order of the elements.
    pub(in crate::transform) fn stored_as(&self) -> (DType, Endian) {
        (self.dtype, self.endian)
    }

    /// Bytes of a piece that is made at once: of a file so many lines that what they need of it lies together.
    pub(in crate::transform) fn piece_len(&self, usual: u64) -> u64 {
        /// Bytes of neighbours that are worth fetching a page for.
        const RUN: u64 = 1 << 10;
        const MOST: u64 = 16 << 20;
        let line = self.shape[self.fastest].saturating_mul(self.width as u64);
        if self.input.is_memory() {
            return usual;
        }
        let lines = line.saturating_mul(RUN / self.width as u64);
        lines.clamp(usual, MOST)
    }

    /// The dense bytes from `at` on, which is at an element; `out` comes filled with zeros.
    pub(in crate::transform) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        // Few enough that the pages which a stretch of a line needs are held until the next line needs them too.
        const STRETCH: u64 = 256;
        let mut pages = Pages::new(&self.input)?;
        let groups = self.groups();
        let width = self.width as u64;
        let line = self.shape[self.fastest];
        let elements = at / width..(at + out.len() as u64) / width;
        let lines = elements.start / line..elements.end.div_ceil(line);
        for from in (0..line).step_by(as_size(STRETCH)?) {
            let to = line.min(from + STRETCH);
            for n in lines.clone() {
                let first = (n * line + from).max(elements.start);
                let last = (n * line + to).min(elements.end);
                if first >= last {
                    continue;
                }
                let range = as_size((first - elements.start) * width)?
                    ..as_size((last - elements.start) * width)?;
                let along = first - n * line..last - n * line;
                self.line(&mut pages, &groups, n, along, &mut out[range])?;
            }
        }
        Ok(())
    }

    fn groups(&self) -> Vec<Group> {
        self.triangle.groups(&self.shape)
    }

    /// A stretch of the line number `n` along the dimension that runs fastest.
    fn line(
        &self,
        pages: &mut Pages<'_>,
        groups: &[Group],
        mut n: u64,
        along: Range<u64>,
        out: &mut [u8],
    ) -> Result<()> {
        let (mut low, mut high, mut rest) = (0, 0, Rest::default());
        let mut fix = |k: usize| {
            if k != self.fastest {
                groups[k].add(n % self.shape[k], &mut low, &mut high, &mut rest);
                n /= self.shape[k];
            }
        };
        match self.fastest {
            0 => (0..groups.len()).for_each(&mut fix),
            _ => (0..groups.len()).rev().for_each(&mut fix),
        }
        match groups[self.fastest] {
            Group::Low => self.across(pages, high, along, true, rest, out),
            Group::High => self.across(pages, low, along, false, rest, out),
            group => {
                if self.triangle.strict && low == high {
                    return Ok(());
                }
                let (mut first, mut next) = (rest, rest);
                group.add(along.start, &mut 0, &mut 0, &mut first);
                group.add(along.start + 1, &mut 0, &mut 0, &mut next);
                let place = |rest| self.triangle.place(low.min(high), low.max(high), rest);
                let (first, next) = (place(first), place(next));
                pages.gather(self.width, first, next - first, 0, out)?;
                if low > high {
                    self.apply.apply(out);
                }
                Ok(())
            }
        }
    }

    /// A stretch along one of the exchanged dimensions, where the index along the other is `fixed`.
    fn across(
        &self,
        pages: &mut Pages<'_>,
        fixed: u64,
        along: Range<u64>,
        along_low: bool,
        rest: Rest,
        out: &mut [u8],
    ) -> Result<()> {
        let triangle = &self.triangle;
        let (before, after) = split(
            out,
            (fixed.clamp(along.start, along.end) - along.start) * self.width as u64,
        )?;
        let diagonal = if (along.clone()).contains(&fixed) {
            self.width as u64
        } else {
            0
        };
        let (diagonal, after) = split(after, diagonal)?;
        if !before.is_empty() {
            let place = triangle.place(along.start, fixed, rest);
            pages.gather(self.width, place, triangle.inner, 0, before)?;
            if !along_low {
                self.apply.apply(before);
            }
        }
        if !diagonal.is_empty() && !triangle.strict {
            let place = triangle.place(fixed, fixed, rest);
            pages.gather(self.width, place, 0, 0, diagonal)?;
        }
        if !after.is_empty() {
            let x = along.start.max(fixed + 1);
            let place = triangle.place(fixed, x, rest);
            let growth = triangle.inner * triangle.middle;
            let delta = growth * triangle.below(x) + rest.middle * triangle.inner;
            pages.gather(self.width, place, delta, growth, after)?;
            if along_low {
                self.apply.apply(after);
            }
        }
        Ok(())
    }
}

impl Unpack<'_> {
    /// Where the stored diagonal is not what the symmetry makes of it: the index along the exchanged dimensions.
    pub(in crate::transform) fn diagonal_violation(&self) -> Result<Option<u64>> {
        let triangle = &self.triangle;
        if triangle.strict {
            return Ok(None);
        }
        let mut pages = Pages::new(&self.input)?;
        let mut element = vec![0; self.width];
        let mut turned = Vec::new();
        for outer in 0..triangle.outer {
            for n in 0..triangle.n {
                for middle in 0..triangle.middle {
                    for inner in 0..triangle.inner {
                        let rest = Rest {
                            inner,
                            middle,
                            outer,
                        };
                        let place = triangle.place(n, n, rest);
                        pages.gather(self.width, place, 0, 0, &mut element)?;
                        turned.clone_from(&element);
                        self.apply.apply(&mut turned);
                        if !self.apply.same(&element, &turned) {
                            return Ok(Some(n));
                        }
                    }
                }
            }
        }
        Ok(None)
    }
}

impl Unpack<'_> {
    /// Which of the stored elements is the first that the symmetry negates and that has no negative.
    pub(in crate::transform) fn first_wrapped(&self) -> Result<Option<u64>> {
        if !self.apply.can_wrap() {
            return Ok(None);
        }
        let width = self.width as u64;
        let step = (PIECE as u64 / width).max(1) * width;
        let len = self.input.len();
        let mut at = 0;
        while at < len {
            let piece = self.input.read(at, step.min(len - at))?;
            if let Some(place) = self.apply.first_wrapped(&piece) {
                return Ok(Some(at / width + place as u64));
            }
            at += step.min(len - at);
        }
        Ok(None)
    }
}

fn split(out: &mut [u8], at: u64) -> Result<(&mut [u8], &mut [u8])> {
    Ok(out.split_at_mut(as_size(at)?))
}
