//! Tensors without the elements that an exchange of two dimensions gives back: expanded, and packed.
//!
//! Stored are the elements whose index along the first of the two dimensions is not greater than that along the second
//! (is smaller, where the operation is a plain negation and the diagonal is 0), in column-major order without gaps. So
//! the place of every element can be computed, and nothing has to be held in memory.

use crate::error::{Error, Result};
use crate::model::{DType, Endian, Layout, Operation, Payload, Role, Symmetry, TensorInfo};
use crate::prelude::*;
use crate::transform::operation::Apply;
use crate::transform::places::Places;
use crate::transform::{Data, Input, View, as_size, overflow};

/// Which elements are stored, and where.
#[derive(Clone, Debug)]
pub(crate) struct Triangle {
    /// The exchanged dimensions, and their length.
    p: usize,
    q: usize,
    n: u64,
    /// Elements along the dimensions before the first, between the two, and behind the second.
    inner: u64,
    middle: u64,
    outer: u64,
    /// The diagonal is not stored.
    strict: bool,
}

impl Triangle {
    /// For a shape whose number of elements fits 64 bits.
    pub(crate) fn new(shape: &[u64], symmetry: &Symmetry) -> Result<Self> {
        let wrong = |why: &str| Error::malformed("packed", why);
        let (p, q) = symmetry
            .transposition()
            .ok_or_else(|| wrong("packed by something else than an exchange of two dimensions"))?;
        let (Some(&n), Some(&other)) = (shape.get(p), shape.get(q)) else {
            return Err(wrong("packed by dimensions that are not there"));
        };
        if n != other || symmetry.permutation.len() != shape.len() {
            return Err(wrong("packed by dimensions of different lengths"));
        }
        let product = |dims: &[u64]| match shape.contains(&0) {
            true => Some(0),
            false => dims.iter().copied().try_fold(1, u64::checked_mul),
        };
        let product =
            |dims: &[u64]| product(dims).ok_or_else(|| overflow("the number of elements"));
        Ok(Self {
            p,
            q,
            n,
            inner: product(&shape[..p])?,
            middle: product(&shape[p + 1..q])?,
            outer: product(&shape[q + 1..])?,
            strict: symmetry.operation == Operation::Negate,
        })
    }

    /// Elements that are stored.
    pub(crate) fn stored(&self) -> u64 {
        self.block() * self.outer
    }

    /// Elements that are stored for one choice of the indices behind the second dimension.
    fn block(&self) -> u64 {
        self.before(self.n) * self.inner * self.middle
    }

    /// Stored indices along the first dimension, for an index along the second.
    fn below(&self, high: u64) -> u64 {
        if self.strict { high } else { high + 1 }
    }

    /// Stored pairs of indices whose second one is below `high`.
    fn before(&self, high: u64) -> u64 {
        // One of the two is even; halved first, so that the product fits.
        let (a, b) = match self.strict {
            true => (high, high.saturating_sub(1)),
            false => (high, high + 1),
        };
        if a % 2 == 0 { a / 2 * b } else { b / 2 * a }
    }

    /// What every dimension of the shape has to do with the place of an element.
    pub(super) fn axes(&self, shape: &[u64]) -> Vec<Axis> {
        let mut strides = [1, 1, 1];
        let mut take = |group: usize, dim: u64| {
            let stride = strides[group];
            strides[group] *= dim;
            stride
        };
        (shape.iter().enumerate())
            .map(|(k, &dim)| match k {
                k if k == self.p => Axis::Low,
                k if k == self.q => Axis::High,
                k if k < self.p => Axis::Inner(take(0, dim)),
                k if k < self.q => Axis::Middle(take(1, dim)),
                _ => Axis::Outer(take(2, dim)),
            })
            .collect()
    }

    /// The place of the stored element for some indices, and whether it is the one at exchanged indices; `None` where
    /// nothing is stored, because it is 0.
    pub(super) fn find(&self, axes: &[Axis], index: &[u64]) -> Option<(u64, bool)> {
        let mut rest = Rest::default();
        let (mut low, mut high) = (0, 0);
        for (&i, &axis) in index.iter().zip(axes) {
            add(axis, i, &mut low, &mut high, &mut rest);
        }
        match self.strict && low == high {
            true => None,
            false => Some((self.place(low.min(high), low.max(high), rest), low > high)),
        }
    }

    /// The place of a stored element: `low` and `high` along the two dimensions, the others as places in their groups.
    fn place(&self, low: u64, high: u64, rest: Rest) -> u64 {
        rest.outer * self.block()
            + self.inner * (self.middle * self.before(high) + rest.middle * self.below(high) + low)
            + rest.inner
    }
}

/// The indices along the dimensions that are not exchanged, as column-major places in their groups.
#[derive(Clone, Copy, Default)]
struct Rest {
    inner: u64,
    middle: u64,
    outer: u64,
}

/// A packed tensor as a dense one.
pub(super) struct Unpack<'a> {
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

/// A dimension's part in the place of an element: in which group, and how far a step goes there.
#[derive(Clone, Copy)]
pub(super) enum Axis {
    Low,
    High,
    Inner(u64),
    Middle(u64),
    Outer(u64),
}

impl<'a> Unpack<'a> {
    pub(super) fn new(
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
    pub(super) fn stored_as(&self) -> (DType, Endian) {
        (self.dtype, self.endian)
    }

    /// Bytes of a piece that is made at once: of a file so many lines that what they need of it lies together.
    pub(super) fn piece_len(&self, usual: u64) -> u64 {
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
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
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
    pub(super) fn element(&self, index: &[u64], out: &mut [u8]) -> Result<()> {
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

fn add(axis: Axis, index: u64, low: &mut u64, high: &mut u64, rest: &mut Rest) {
    match axis {
        Axis::Low => *low += index,
        Axis::High => *high += index,
        Axis::Inner(stride) => rest.inner += index * stride,
        Axis::Middle(stride) => rest.middle += index * stride,
        Axis::Outer(stride) => rest.outer += index * stride,
    }
}

fn split(out: &mut [u8], at: u64) -> Result<(&mut [u8], &mut [u8])> {
    Ok(out.split_at_mut(as_size(at)?))
}

/// Where the stored diagonal of a packed tensor is not what the symmetry makes of it: the index along the exchanged
/// dimensions.
pub(crate) fn diagonal_violation(data: Data<'_>, tensor: &TensorInfo) -> Result<Option<u64>> {
    match &tensor.layout {
        Layout::Packed(symmetry) => Unpack::new(data, tensor, symmetry, true)?.diagonal_violation(),
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

/// A dense tensor as a packed one.
pub(super) struct Pack<'a> {
    /// The tensor, dense and column-major.
    dense: Box<View<'a>>,
    triangle: Triangle,
    width: u64,
}

impl<'a> Pack<'a> {
    pub(super) fn new(
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

    pub(super) fn len(&self) -> u64 {
        self.triangle.stored() * self.width
    }

    /// The packed bytes from `at` on, which is at an element.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let triangle = &self.triangle;
        let mut window = Window::default();
        let wanted = at / self.width..(at + out.len() as u64) / self.width;
        let mut done = wanted.start;
        // Column by column: everything with the same index along the second dimension and those behind it.
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
            match self.triangle.before(middle) * per <= inside {
                true => low = middle,
                false => high = middle,
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
