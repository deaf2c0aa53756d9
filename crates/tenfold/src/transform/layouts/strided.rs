//! Elements of a storage at equal distances along every dimension.

use alloc::borrow::Cow;

use super::{Arrangement, Opening, Whole};
use crate::error::{Error, Result};
use crate::model::{DType, Layout, Order, Part, Payload, Selection, Strides, TensorInfo};
use crate::prelude::*;
use crate::transform::order::Reorder;
use crate::transform::select::{Lines, Selected, Stored};
use crate::transform::strides::strides;
use crate::transform::{Body, overflow};

pub(super) struct Strided;

impl Arrangement for Strided {
    fn whole<'a, 't>(&self, tensor: &Opening<'a, 't>, order: Order) -> Result<Whole<'a, 't>> {
        let view = View::new(tensor)?;
        let (shape, values) = (&tensor.tensor.shape, view.values);
        // One run of the storage in one of the two orders is the dense tensor of that order.
        if let Some(run) = view.run(order)? {
            return Ok(Whole::Part(Cow::Owned(run)));
        }
        let other = match order {
            Order::RowMajor => Order::ColumnMajor,
            Order::ColumnMajor => Order::RowMajor,
        };
        let body = match view.run(other)? {
            Some(run) if Reorder::can_turn(values.dtype) => {
                Body::Reorder(Reorder::new(tensor.data, &run, shape, other)?)
            }
            _ => Body::Selected(Box::new(match order {
                Order::RowMajor => view.select(Selection::whole(shape))?,
                Order::ColumnMajor => view.turned()?,
            })),
        };
        Ok(Whole::Made(body, values.dtype, values.endian))
    }

    fn some<'a>(&self, tensor: &Opening<'a, '_>, selection: Selection) -> Result<Selected<'a>> {
        View::new(tensor)?.select(selection)
    }

    fn check(&self, tensor: &Opening<'_, '_>) -> Result<Vec<super::Deviation>> {
        View::new(tensor).map(|_| Vec::new())
    }

    fn expands(&self, tensor: &TensorInfo) -> bool {
        super::is_longer_than_stored(tensor)
    }
}

/// A tensor whose elements are known to be inside the storage.
struct View<'o, 'a, 't> {
    tensor: &'o Opening<'a, 't>,
    values: &'t Part,
    strides: &'t Strides,
}

impl<'o, 'a, 't> View<'o, 'a, 't> {
    fn new(tensor: &'o Opening<'a, 't>) -> Result<Self> {
        let values = tensor.values()?;
        let Layout::Strided(strides) = &tensor.tensor.layout else {
            return Err(Error::argument("a layout without strides"));
        };
        let view = Self {
            tensor,
            values,
            strides,
        };
        view.check_bounds()?;
        Ok(view)
    }

    fn check_bounds(&self) -> Result<()> {
        let count = needed(&self.tensor.tensor.shape, self.strides)?;
        if count == 0 {
            return Ok(());
        }
        let needed = match self.values.dtype {
            DType::Number(..) => self.values.dtype.bytes_for(count),
            // What is stored in blocks has no elements of its own.
            _ => None,
        };
        if needed.is_none_or(|needed| needed > self.values.payload.len()) {
            let message = format!(
                "the last element is number {count} of a storage of {} bytes of {}",
                self.values.payload.len(),
                self.values.dtype
            );
            return Err(Error::malformed("strides", message));
        }
        Ok(())
    }

    /// The part of the storage that is the tensor in this order, if there is one.
    fn run(&self, order: Order) -> Result<Option<Part>> {
        let shape = &self.tensor.tensor.shape;
        let dense = strides(shape, order)?;
        let is_same = (shape.iter().zip(&self.strides.steps).zip(dense))
            .all(|((dim, step), dense)| *dim < 2 || *step == dense);
        let elements = self.tensor.tensor.elements();
        let (Some(width), Some(elements)) = (self.values.dtype.width(), elements) else {
            return Ok(None);
        };
        if !is_same && elements > 0 {
            return Ok(None);
        }
        let bytes = |elements: u64| {
            let bytes = elements.checked_mul(width as u64);
            bytes.ok_or_else(|| overflow("the size of a tensor"))
        };
        let at = if elements == 0 {
            0
        } else {
            self.strides.offset
        };
        let (at, len) = (bytes(at)?, bytes(elements)?);
        let payload = match &self.values.payload {
            Payload::Raw { source, range } => Payload::Raw {
                source: *source,
                range: range.start + at..range.start + at + len,
            },
            Payload::Inline(bytes) => Payload::Inline(
                bytes.slice(crate::transform::as_size(at)?..crate::transform::as_size(at + len)?),
            ),
            whole if at == 0 && len == whole.len() => whole.clone(),
            _ => return Ok(None),
        };
        let mut run = self.values.clone();
        run.payload = payload;
        // It covers the storage.
        run.checksum = None;
        Ok(Some(run))
    }

    fn select(&self, selection: Selection) -> Result<Selected<'a>> {
        self.stepped(selection, &self.strides.steps)
    }

    /// All elements, column-major: the row-major ones of the tensor with its dimensions reversed.
    fn turned(&self) -> Result<Selected<'a>> {
        let reversed = |numbers: &[u64]| numbers.iter().rev().copied().collect::<Vec<_>>();
        let shape = reversed(&self.tensor.tensor.shape);
        let steps = reversed(&self.strides.steps);
        self.stepped(Selection::whole(&shape), &steps)
    }

    fn stepped(&self, selection: Selection, steps: &[u64]) -> Result<Selected<'a>> {
        let lines = Lines::new(selection, self.strides.offset, steps)?;
        let stored = Stored::part(self.tensor.data, self.values)?;
        Selected::placed(stored, lines)
    }
}

/// How many elements a storage must have for those at these distances to be in it.
fn needed(shape: &[u64], strides: &Strides) -> Result<u64> {
    let Strides { offset, steps } = strides;
    if steps.len() != shape.len() {
        let message = format!("{} strides for {} dimensions", steps.len(), shape.len());
        return Err(Error::malformed("strides", message));
    }
    if shape.contains(&0) {
        return Ok(0);
    }
    let last = (shape.iter().zip(steps)).try_fold(*offset, |place, (dim, step)| {
        place.checked_add((dim - 1).checked_mul(*step)?)
    });
    let count = last.and_then(|last| last.checked_add(1));
    count.ok_or_else(|| overflow("the place of the last element"))
}

/// Refuses distances that lead out of a storage of `count` elements.
pub(super) fn check_bounds(shape: &[u64], strides: &Strides, count: u64) -> Result<()> {
    let needed = needed(shape, strides)?;
    if needed <= count {
        return Ok(());
    }
    let message = format!("the last element is number {needed} of a storage of {count}");
    Err(Error::malformed("strides", message))
}

#[cfg(test)]
mod tests;
