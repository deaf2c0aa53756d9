//! Every element has its place in one part, row-major or column-major.

use alloc::borrow::Cow;

use super::chunked::{self, Boxes};
use super::{Arrangement, Opening, Whole};
use crate::error::{Error, Result};
use crate::io::Limits;
use crate::model::{Order, Part, Payload, Selection, TensorInfo};
use crate::prelude::*;
use crate::transform::order::Reorder;
use crate::transform::select::{Lines, Selected, Stored};
use crate::transform::strides::strides;
use crate::transform::{Body, overflow};

pub(super) struct Dense(pub(super) Order);

impl Arrangement for Dense {
    fn whole<'a, 't>(&self, tensor: &Opening<'a, 't>, order: Order) -> Result<Whole<'a, 't>> {
        let values = whole_values(tensor)?;
        let shape = &tensor.tensor.shape;
        if shape.len() < 2 || self.0 == order || shape.contains(&0) {
            return Ok(Whole::Part(Cow::Borrowed(values)));
        }
        if self.0 == Order::ColumnMajor
            && let Some((chunks, endian)) = chunked::reversed(tensor)
        {
            // Row-major elements are those of the grid in the other order.
            let selection = Selection::whole(&chunks.shape);
            let order = Order::ColumnMajor;
            let boxes = Boxes::new(tensor.data, chunks, selection, order, endian)?;
            let body = Body::Selected(Box::new(Selected::boxes(boxes)?));
            return Ok(Whole::Made(body, values.dtype, endian));
        }
        let body = if Reorder::can_turn(values.dtype) {
            Body::Reorder(Reorder::new(tensor.data, values, shape, self.0)?)
        } else {
            // One by one. Column-major is row-major with the dimensions reversed.
            let mut shape = shape.clone();
            let mut steps = strides(&shape, self.0)?;
            if order == Order::ColumnMajor {
                shape.reverse();
                steps.reverse();
            }
            let lines = Lines::new(Selection::whole(&shape), 0, &steps)?;
            let stored = Stored::part(tensor.data, values)?;
            Body::Selected(Box::new(Selected::placed(stored, lines)?))
        };
        Ok(Whole::Made(body, values.dtype, values.endian))
    }

    fn some<'a>(&self, tensor: &Opening<'a, '_>, selection: Selection) -> Result<Selected<'a>> {
        let values = whole_values(tensor)?;
        if self.0 == Order::ColumnMajor
            && let Some((chunks, endian)) = chunked::reversed(tensor)
        {
            let mut selection = selection;
            selection.axes.reverse();
            let order = Order::ColumnMajor;
            let boxes = Boxes::new(tensor.data, chunks, selection, order, endian)?;
            return Selected::boxes(boxes);
        }
        let steps = strides(&tensor.tensor.shape, self.0)?;
        let lines = Lines::new(selection, 0, &steps)?;
        Selected::placed(Stored::part(tensor.data, values)?, lines)
    }

    fn expands(&self, tensor: &TensorInfo) -> bool {
        chunked::Chunked.expands(tensor)
    }

    fn limit(&self, tensor: &TensorInfo, limits: &Limits) -> u64 {
        let is_chunked = |part: &Part| matches!(part.payload, Payload::Chunks(_));
        if tensor.parts.iter().any(is_chunked) {
            chunked::Chunked.limit(tensor, limits)
        } else {
            limits.dense_bytes
        }
    }
}

/// The elements, as many as the shape has.
fn whole_values<'t>(tensor: &Opening<'_, 't>) -> Result<&'t Part> {
    let values = tensor.values()?;
    let elements = tensor.tensor.elements();
    let elements = elements.ok_or_else(|| overflow("the number of elements"))?;
    if values.dtype.bytes_for(elements) != Some(values.payload.len()) {
        let message = format!(
            "{} bytes for {elements} elements of {}",
            values.payload.len(),
            values.dtype
        );
        return Err(Error::malformed("size", message));
    }
    Ok(values)
}
