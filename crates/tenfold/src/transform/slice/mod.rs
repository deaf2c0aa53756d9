//! Some elements of a tensor, in the order of the slice, reading only the bytes that they need.
//!
//! Where the wanted elements are stored is computed for a batch of them, the places are sorted, and neighbours are read
//! together. Elements below a byte are gathered one to a byte and packed again at the end.

mod entries;
mod gather;

use crate::error::{Error, Result};
use crate::format::Form;
use crate::model::{
    Axis, DType, Endian, Lanes, Layout, Part, Role, Selection, Steps, Symmetry, TensorInfo,
};
use crate::prelude::*;
use crate::transform::operation::Apply;
use crate::transform::packed::{self, Triangle};
use crate::transform::{Data, PIECE, Scatter, View, as_size, overflow};

use entries::Entries;
use gather::{Gather, Run, Stored};

/// Elements that are gathered at once, at most: what their places take is bounded too.
const BATCH: u64 = 1 << 19;

/// Some elements of a tensor.
pub(crate) struct Cut<'a> {
    body: Body<'a>,
    /// Units in the result: elements, or the numbers that they consist of where these are less than a byte.
    units: u64,
    bits: u64,
}

enum Body<'a> {
    /// Every element has its place.
    Lines(Stored<'a>, Lines),
    /// Every element has its place, or that of the one at exchanged indices.
    Packed(Stored<'a>, Box<Exchange>),
    /// What is not 0, by place in the result.
    Entries(Entries),
    /// All entries of the tensor, by place in the whole tensor.
    Scatter(Scatter, Lines),
}

impl<'a> Cut<'a> {
    /// The selected elements of a tensor as little-endian elements of `dtype`.
    pub(crate) fn new(
        data: Data<'a>,
        tensor: &TensorInfo,
        dtype: DType,
        mut selection: Selection,
    ) -> Result<Self> {
        let DType::Number(scalar, lanes) = dtype else {
            let message = format!("{dtype} has no elements that can be read alone");
            return Err(Error::unsupported("slice", message));
        };
        let mut shape = tensor.shape.clone();
        let bits = match dtype.width() {
            Some(width) => width as u64 * 8,
            None => scalar.bits().into(),
        };
        if dtype.width().is_none() && lanes != Lanes::Real {
            // The numbers of an element as a dimension of their own.
            shape.push(lanes.count().into());
            selection.axes.push(Axis {
                dim: lanes.count().into(),
                steps: vec![Steps {
                    start: 0,
                    step: 1,
                    count: lanes.count().into(),
                }],
                kept: true,
            });
        }
        let units = selection
            .elements()
            .ok_or_else(|| overflow("the number of elements"))?;
        let body = Body::new(data, tensor, dtype, &shape, selection)?;
        Ok(Self { body, units, bits })
    }

    /// Bytes of the result.
    pub(crate) fn len(&self) -> Result<u64> {
        let whole = (self.units / 8).checked_mul(self.bits);
        let rest = (self.units % 8 * self.bits).div_ceil(8);
        whole
            .and_then(|whole| whole.checked_add(rest))
            .ok_or_else(|| overflow("the size of the slice"))
    }

    /// Gives the result piece by piece; every piece but the last ends with a whole byte and a whole element.
    pub(crate) fn stream(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut work = Work {
            gather: self.body.stored().map(Gather::new),
            runs: Vec::new(),
            exchanged: Vec::new(),
        };
        // Eight numbers end with a byte whatever they are, and no element has more.
        let batch = (PIECE as u64 * 8 / self.bits).min(BATCH) / 8 * 8;
        let mut out = Vec::new();
        let mut from = 0;
        while from < self.units {
            let range = from..self.units.min(from + batch);
            from = range.end;
            self.body.read(range, &mut work, self.bits, &mut out)?;
            if self.bits < 8 {
                pack(&mut out, self.bits);
            }
            put(&out)?;
        }
        Ok(())
    }
}

/// What is used again for every batch.
struct Work<'w, 'a> {
    gather: Option<Gather<'w, 'a>>,
    runs: Vec<Run>,
    exchanged: Vec<usize>,
}

impl<'a> Body<'a> {
    fn new(
        data: Data<'a>,
        tensor: &TensorInfo,
        dtype: DType,
        shape: &[u64],
        selection: Selection,
    ) -> Result<Self> {
        let row_major = |selection| Lines::new(selection, &strides(shape, false)?);
        match &tensor.layout {
            Layout::RowMajor | Layout::ColumnMajor => {
                let values = values(tensor)?;
                let stored = tensor.elements().and_then(|n| values.dtype.bytes_for(n));
                if stored != Some(values.payload.len()) {
                    let message = format!(
                        "{} bytes for shape {:?} of {}",
                        values.payload.len(),
                        tensor.shape,
                        values.dtype
                    );
                    return Err(Error::malformed("size", message));
                }
                let lines = match tensor.layout {
                    Layout::RowMajor => row_major(selection)?,
                    _ => column_major(tensor, shape, selection)?,
                };
                Ok(Body::Lines(Stored::part(data, values, dtype)?, lines))
            }
            Layout::Packed(symmetry) => {
                let values = values(tensor)?;
                let exchange = Exchange::new(tensor, values, dtype, symmetry, selection)?;
                let stored = Stored::part(data, values, dtype)?;
                Ok(Body::Packed(stored, Box::new(exchange)))
            }
            Layout::Coo { .. } | Layout::Csr { .. } | Layout::Pairs { .. } => {
                match Entries::select(data, tensor, dtype, &selection)? {
                    Some(entries) => Ok(Body::Entries(entries)),
                    None => {
                        let form = Form::canonical(dtype);
                        let mut scatter = Scatter::load(data, tensor, &form)?;
                        scatter.complete()?;
                        Ok(Body::Scatter(scatter, row_major(selection)?))
                    }
                }
            }
            Layout::Decoded | Layout::Opaque { .. } => {
                let view = View::dense(data, tensor, &Form::canonical(dtype))?;
                let bits = dtype.width().unwrap_or(1) as u64 * 8;
                Ok(Body::Lines(Stored::view(view, bits), row_major(selection)?))
            }
        }
    }

    fn stored(&self) -> Option<&Stored<'a>> {
        match self {
            Body::Lines(stored, _) | Body::Packed(stored, _) => Some(stored),
            Body::Entries(_) | Body::Scatter(..) => None,
        }
    }

    /// Some neighbouring units of the result.
    fn read(
        &self,
        range: Range<u64>,
        work: &mut Work<'_, 'a>,
        bits: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        out.clear();
        work.runs.clear();
        work.exchanged.clear();
        let count = as_size(range.end - range.start)?;
        let width = as_size(bits.div_ceil(8))?;
        match self {
            Body::Lines(_, lines) => lines.runs(range, &mut work.runs)?,
            Body::Packed(_, exchange) => {
                exchange.runs(range, &mut work.runs, &mut work.exchanged)?;
            }
            Body::Entries(entries) => {
                out.resize(count * width, 0);
                entries.read(range, out);
                return Ok(());
            }
            Body::Scatter(scatter, lines) => {
                out.resize(count * width, 0);
                lines.runs(range, &mut work.runs)?;
                for run in &work.runs {
                    let end = run.out + as_size(run.len)?;
                    let out = &mut out[run.out * width..end * width];
                    scatter.read_into(run.place * width as u64, out);
                }
                return Ok(());
            }
        }
        let Some(gather) = &mut work.gather else {
            return Ok(());
        };
        gather.fill(&mut work.runs, count, out)?;
        if let Body::Packed(stored, exchange) = self {
            let width = stored.width();
            for &at in &work.exchanged {
                exchange.apply.apply(&mut out[at * width..(at + 1) * width]);
            }
        }
        gather.finish(out)
    }
}

fn values(tensor: &TensorInfo) -> Result<&Part> {
    tensor
        .part(&Role::Values)
        .ok_or_else(|| Error::malformed("layout", "a tensor without values"))
}

/// How far a step along each dimension goes in a dense order.
fn strides(shape: &[u64], column_major: bool) -> Result<Vec<u64>> {
    let mut strides = vec![0; shape.len()];
    if shape.contains(&0) {
        return Ok(strides);
    }
    let mut next = 1u64;
    let mut set = |k: usize| -> Result<()> {
        strides[k] = next;
        next = next
            .checked_mul(shape[k])
            .ok_or_else(|| overflow("the number of elements"))?;
        Ok(())
    };
    match column_major {
        true => (0..shape.len()).try_for_each(&mut set)?,
        false => (0..shape.len()).rev().try_for_each(&mut set)?,
    }
    Ok(strides)
}

/// The numbers of an element stay together, whatever the order of the elements is.
fn column_major(tensor: &TensorInfo, shape: &[u64], selection: Selection) -> Result<Lines> {
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

/// The places of the units of a result where every step along a dimension goes equally far.
struct Lines {
    /// All dimensions but the last that is not taken whole: indices, and how far a step goes.
    outer: Vec<(Axis, u64)>,
    inner: (Axis, u64),
    /// Units that are neighbours here and there.
    unit: u64,
}

impl Lines {
    fn new(selection: Selection, strides: &[u64]) -> Result<Self> {
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
    fn runs(&self, range: Range<u64>, runs: &mut Vec<Run>) -> Result<()> {
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
struct Exchange {
    triangle: Triangle,
    parts: Vec<packed::Axis>,
    axes: Vec<Axis>,
    apply: Apply,
}

impl Exchange {
    fn new(
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

    fn runs(
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

/// Numbers of a byte each become neighbouring bits, the first in the lowest.
fn pack(numbers: &mut Vec<u8>, bits: u64) {
    let mut packed = Vec::new();
    let (mut word, mut filled) = (0u32, 0);
    for &number in &*numbers {
        word |= u32::from(number) << filled;
        filled += bits;
        while filled >= 8 {
            packed.push(word.to_le_bytes()[0]);
            word >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        packed.push(word.to_le_bytes()[0]);
    }
    *numbers = packed;
}
