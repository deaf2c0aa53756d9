//! Packed to dense.

use super::{Axis, Rest, Triangle, add};
use crate::error::{Error, Result};
use crate::model::{DType, Endian, Layout, Payload, Role, Symmetry, TensorInfo};
use crate::prelude::*;
use crate::transform::operation::Apply;
use crate::transform::places::Places;
use crate::transform::{Data, Input, PIECE, View, as_size};

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
        column_major: bool,
    ) -> Result<Self> {
        let triangle = Triangle::new(&tensor.shape, symmetry)?;
        let values = tensor
            .part(&Role::Values)
            .ok_or_else(|| Error::malformed("layout", "a packed tensor without values"))?;
        let width = values.dtype.width().ok_or_else(|| {
            Error::unsupported("packed", format!("packed elements of {}", values.dtype))
        })?;
        let stored = triangle.stored();
        if values.dtype.bytes_for(stored) != Some(values.payload.len()) {
            let message = format!("{} bytes for {stored} elements", values.payload.len());
            return Err(Error::malformed("size", message));
        }
        let input = match &values.payload {
            // It cannot be entered in the middle: held whole.
            Payload::Encoded { .. } => {
                let whole = View::decoded(data, &values.payload)?;
                Input::Memory(whole.collect(data.limits.tensor_memory)?.into())
            }
            payload => data.input(payload)?,
        };
        Ok(Self {
            input,
            shape: tensor.shape.clone(),
            triangle,
            apply: Apply::new(symmetry.operation, values.dtype, values.endian)?,
            dtype: values.dtype,
            endian: values.endian,
            width,
            fastest: if column_major {
                0
            } else {
                tensor.shape.len() - 1
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
        match self.input.is_memory() {
            true => usual,
            false => line
                .saturating_mul(RUN / self.width as u64)
                .clamp(usual, MOST),
        }
    }

    /// The dense bytes from `at` on, which is at an element; `out` comes filled with zeros.
    pub(in crate::transform) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        // Few enough that the pages which a stretch of a line needs are held until the next line needs them too.
        const STRETCH: u64 = 256;
        let mut places = Places::new(&self.input)?;
        let axes = self.axes();
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
                self.line(&mut places, &axes, n, along, &mut out[range])?;
            }
        }
        Ok(())
    }

    /// One element; nothing where it is not stored, because it is 0.
    pub(in crate::transform) fn element(&self, index: &[u64], out: &mut [u8]) -> Result<()> {
        let Some((place, exchanged)) = self.triangle.find(&self.axes(), index) else {
            return Ok(());
        };
        self.input.read_into(place * self.width as u64, out)?;
        if exchanged {
            self.apply.apply(out);
        }
        Ok(())
    }

    fn axes(&self) -> Vec<Axis> {
        self.triangle.axes(&self.shape)
    }

    /// A stretch of the line number `n` along the dimension that runs fastest.
    fn line(
        &self,
        places: &mut Places<'_>,
        axes: &[Axis],
        mut n: u64,
        along: Range<u64>,
        out: &mut [u8],
    ) -> Result<()> {
        let (mut low, mut high, mut rest) = (0, 0, Rest::default());
        let mut fix = |k: usize| {
            if k != self.fastest {
                add(axes[k], n % self.shape[k], &mut low, &mut high, &mut rest);
                n /= self.shape[k];
            }
        };
        match self.fastest {
            0 => (0..axes.len()).for_each(&mut fix),
            _ => (0..axes.len()).rev().for_each(&mut fix),
        }
        match axes[self.fastest] {
            Axis::Low => self.across(places, high, along, true, rest, out),
            Axis::High => self.across(places, low, along, false, rest, out),
            axis => {
                if self.triangle.strict && low == high {
                    return Ok(());
                }
                let (mut first, mut next) = (rest, rest);
                add(axis, along.start, &mut 0, &mut 0, &mut first);
                add(axis, along.start + 1, &mut 0, &mut 0, &mut next);
                let place = |rest| self.triangle.place(low.min(high), low.max(high), rest);
                let (first, next) = (place(first), place(next));
                places.gather(self.width, first, next - first, 0, out)?;
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
        places: &mut Places<'_>,
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
            places.gather(self.width, place, triangle.inner, 0, before)?;
            if !along_low {
                self.apply.apply(before);
            }
        }
        if !diagonal.is_empty() && !triangle.strict {
            let place = triangle.place(fixed, fixed, rest);
            places.gather(self.width, place, 0, 0, diagonal)?;
        }
        if !after.is_empty() {
            let x = along.start.max(fixed + 1);
            let place = triangle.place(fixed, x, rest);
            let growth = triangle.inner * triangle.middle;
            let delta = growth * triangle.below(x) + rest.middle * triangle.inner;
            places.gather(self.width, place, delta, growth, after)?;
            if along_low {
                self.apply.apply(after);
            }
        }
        Ok(())
    }
}

/// Where the stored diagonal of a packed tensor is not what the symmetry makes of it: the index along the exchanged
/// dimensions.
pub(crate) fn diagonal_violation(data: Data<'_>, tensor: &TensorInfo) -> Result<Option<u64>> {
    match &tensor.layout {
        Layout::Packed(symmetry) => Unpack::new(data, tensor, symmetry, true)?.diagonal_violation(),
        _ => Ok(None),
    }
}

/// Which of the stored elements of a packed tensor is the first that the symmetry negates and that has no negative.
pub(crate) fn first_wrapped(data: Data<'_>, tensor: &TensorInfo) -> Result<Option<u64>> {
    match &tensor.layout {
        Layout::Packed(symmetry) => Unpack::new(data, tensor, symmetry, true)?.first_wrapped(),
        _ => Ok(None),
    }
}

impl Unpack<'_> {
    fn diagonal_violation(&self) -> Result<Option<u64>> {
        let triangle = &self.triangle;
        if triangle.strict {
            return Ok(None);
        }
        let mut places = Places::new(&self.input)?;
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
                        places.gather(self.width, place, 0, 0, &mut element)?;
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
    fn first_wrapped(&self) -> Result<Option<u64>> {
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
