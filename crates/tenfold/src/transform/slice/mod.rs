//! Some elements of a tensor, in the order of the slice, reading only the bytes that they need.
//!
//! Where the wanted elements are stored is computed for a batch of them, the places are sorted, and neighbours are read
//! together. Elements below a byte are gathered one to a byte and packed again at the end.

mod entries;
mod gather;
mod places;

use crate::error::{Error, Result};
use crate::format::Form;
use crate::model::{Axis, DType, Endian, Lanes, Layout, Part, Role, Selection, Steps, TensorInfo};
use crate::prelude::*;
use crate::transform::elements::ElementMap;
use crate::transform::strides::strides;
use crate::transform::{Data, PIECE, Scatter, View, as_size, overflow};

use entries::Entries;
use gather::{Gather, Run, Stored};
use places::{Exchange, Lines, column_major};

/// Elements that are gathered at once, at most: what their places take is bounded too.
const BATCH: u64 = 1 << 19;

/// Some elements of a tensor.
pub(crate) struct Cut<'a> {
    body: Body<'a>,
    /// Units in the result: elements, or the numbers that they consist of where these are less than a byte.
    units: u64,
    bits: u64,
    /// What becomes of the elements in the end, and of which type they are then.
    map: ElementMap,
    dtype: DType,
    /// Units of an element, and numbers of a unit.
    of: (u64, u64),
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
        let stored = tensor.stored_dtype();
        let (DType::Number(scalar, lanes), DType::Number(..)) = (stored, dtype) else {
            let message = format!("{dtype} has no elements that can be read alone");
            return Err(Error::unsupported("slice", message));
        };
        let mut shape = tensor.shape.clone();
        let numbers = u64::from(lanes.count());
        let (bits, of) = match stored.width() {
            Some(width) => (width as u64 * 8, (1, numbers)),
            None => (scalar.bits().into(), (numbers, 1)),
        };
        if stored.width().is_none() && lanes != Lanes::Real {
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
        Ok(Self {
            body: Body::new(data, tensor, stored, &shape, selection)?,
            units,
            bits,
            map: ElementMap::new(stored, Endian::Little, dtype, Endian::Little)?,
            dtype,
            of,
        })
    }

    /// Bytes of the result.
    pub(crate) fn len(&self) -> Result<u64> {
        let len = self.dtype.bytes_for(self.units / self.of.0);
        len.ok_or_else(|| overflow("the size of the slice"))
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
            let units = range.end - range.start;
            self.body.read(range, &mut work, self.bits, &mut out)?;
            if self.bits < 8 {
                pack(&mut out, self.bits);
            }
            self.cast(units, &mut out)?;
            put(&out)?;
        }
        Ok(())
    }

    /// Turns some units, in as many bytes as they need, into what they are wanted as.
    fn cast(&self, units: u64, out: &mut Vec<u8>) -> Result<()> {
        if self.map.is_in_place() {
            self.map.apply_in_place(out);
            return Ok(());
        }
        let len = self.dtype.bytes_for(units / self.of.0);
        let len = as_size(len.ok_or_else(|| overflow("the size of the slice"))?)?;
        let mut wanted = vec![0; len];
        self.map
            .cast_into(units * self.of.1, out, &mut wanted, None)?;
        *out = wanted;
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
