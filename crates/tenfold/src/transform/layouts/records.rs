//! Records at equal distances: all elements with the same first index are neighbours, and other data lies between.

use super::{Arrangement, Opening, Whole};
use crate::error::{Error, Result};
use crate::model::{Layout, Order, Part, Selection, TensorInfo};
use crate::prelude::*;
use crate::transform::select::{Lines, Selected, Stored};
use crate::transform::strides::strides;
use crate::transform::{Body, overflow};

pub(super) struct Records;

impl Arrangement for Records {
    fn whole<'a, 't>(&self, tensor: &Opening<'a, 't>, order: Order) -> Result<Whole<'a, 't>> {
        let view = View::new(tensor)?;
        let selected = match order {
            Order::RowMajor => view.select(Selection::whole(&tensor.tensor.shape), &view.steps)?,
            // The row-major elements of the tensor with its dimensions reversed.
            Order::ColumnMajor => {
                let reversed = |numbers: &[u64]| numbers.iter().rev().copied().collect::<Vec<_>>();
                let shape = reversed(&tensor.tensor.shape);
                view.select(Selection::whole(&shape), &reversed(&view.steps))?
            }
        };
        let body = Body::Selected(Box::new(selected));
        Ok(Whole::Made(body, view.values.dtype, view.values.endian))
    }

    fn some<'a>(&self, tensor: &Opening<'a, '_>, selection: Selection) -> Result<Selected<'a>> {
        let view = View::new(tensor)?;
        view.select(selection, &view.steps)
    }

    fn check(&self, tensor: &Opening<'_, '_>) -> Result<Vec<super::Deviation>> {
        View::new(tensor).map(|_| Vec::new())
    }

    fn expands(&self, tensor: &TensorInfo) -> bool {
        super::is_longer_than_stored(tensor)
    }
}

/// A tensor whose records are known to be inside its part, and not inside each other.
struct View<'o, 'a, 't> {
    tensor: &'o Opening<'a, 't>,
    values: &'t Part,
    /// Bytes of a unit: the most that both an element and the way to the next record are multiples of.
    unit: u64,
    /// Units of an element.
    element: u64,
    /// Units that a step along each dimension goes.
    steps: Vec<u64>,
}

impl<'o, 'a, 't> View<'o, 'a, 't> {
    fn new(tensor: &'o Opening<'a, 't>) -> Result<Self> {
        let values = tensor.values()?;
        let shape = &tensor.tensor.shape;
        let (Layout::Records { distance }, Some(width), Some(records)) =
            (&tensor.tensor.layout, values.dtype.width(), shape.first())
        else {
            let message = format!("records of {} {shape:?}", values.dtype);
            return Err(Error::malformed("records", message));
        };
        let (distance, width) = (*distance, width as u64);
        let mut steps = strides(shape, Order::RowMajor)?;
        let record = steps.first().map_or(0, |elements| *elements);
        let too_large = || overflow("the size of a record");
        let len = record.checked_mul(width).ok_or_else(too_large)?;
        let last = records.saturating_sub(1).checked_mul(distance);
        let end = last.and_then(|last| last.checked_add(len));
        let end = end.ok_or_else(too_large)?;
        let is_inside = distance >= len && end <= values.payload.len();
        if !shape.contains(&0) && !is_inside {
            let message = format!(
                "{records} records of {len} bytes, {distance} bytes apart, in {} bytes",
                values.payload.len()
            );
            return Err(Error::malformed("records", message));
        }
        let unit = greatest_common_divisor(distance, width);
        let element = width / unit;
        for step in &mut steps {
            *step = step.checked_mul(element).ok_or_else(too_large)?;
        }
        if let Some(first) = steps.first_mut() {
            *first = distance / unit;
        }
        Ok(Self {
            tensor,
            values,
            unit,
            element,
            steps,
        })
    }

    fn select(&self, selection: Selection, steps: &[u64]) -> Result<Selected<'a>> {
        let lines = Lines::of_units(selection, 0, steps, self.element)?;
        let stored = Stored::part(self.tensor.data, self.values)?;
        Selected::placed(stored.in_units(self.unit), lines)
    }
}

/// Of two numbers of which the second is not 0.
fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if a.is_multiple_of(b) {
        b
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

    use super::*;
    use crate::io::Limits;
    use crate::model::{Axis, DType, Endian, Form, Payload, Role, Steps};
    use crate::transform::Data;

    fn tensor(dtype: DType, shape: &[u64], distance: u64, bytes: &[u8]) -> TensorInfo {
        let mut info = TensorInfo::new("t", dtype, shape, Layout::Records { distance });
        let payload = Payload::Inline(bytes.to_vec().into());
        info.parts = Part::new(Role::Values, dtype, payload).into();
        info
    }

    fn read(info: &TensorInfo, order: Order) -> Result<Vec<u8>> {
        let limits = Limits::default();
        let form = Form::new(info.dtype, order, Endian::Little);
        let data = Data::new(&[], &limits);
        crate::transform::View::dense(data, info, &form)?.collect(1 << 20)
    }

    /// Three records of 2 x 2 elements, with `between` bytes after each but the last.
    fn records(width: usize, between: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
        let mut bytes = (1..=u8::MAX).cycle();
        let (mut file, mut elements) = (Vec::new(), Vec::new());
        for n in 0..3 {
            for _ in 0..4 {
                let element: Vec<u8> = bytes.by_ref().take(width).collect();
                file.extend_from_slice(&element);
                elements.push(element);
            }
            file.resize(file.len() + if n < 2 { between } else { 0 }, 0xee);
        }
        (file, elements)
    }

    #[test]
    fn records_at_any_distance_are_read_in_both_orders_and_in_slices() {
        for (dtype, width) in [
            (DType::I8, 1),
            (DType::I16, 2),
            (DType::F64, 8),
            (DType::C128, 16),
        ] {
            for between in [0, 1, 2, 4, 12, 16] {
                let (file, elements) = records(width, between);
                let distance = (4 * width + between) as u64;
                let info = tensor(dtype, &[3, 2, 2], distance, &file);
                assert_eq!(read(&info, Order::RowMajor).unwrap(), elements.concat());
                let place = |n: usize| n % 3 * 4 + n / 3 % 2 * 2 + n / 6;
                let turned: Vec<u8> = (0..12).flat_map(|n| elements[place(n)].clone()).collect();
                assert_eq!(read(&info, Order::ColumnMajor).unwrap(), turned);
                let mut selection = Selection::whole(&[3, 2, 2]);
                let steps = |start, step, count| Steps { start, step, count };
                selection.axes[0] = Axis {
                    dim: 3,
                    steps: vec![steps(2, -2, 2)],
                    kept: true,
                };
                selection.axes[2] = Axis {
                    dim: 2,
                    steps: vec![steps(1, 1, 1)],
                    kept: true,
                };
                let limits = Limits::default();
                let data = Data::new(&[], &limits);
                let view = crate::transform::View::selected(data, &info, dtype, selection);
                let found = view.and_then(|view| view.collect(1 << 20)).unwrap();
                let expected = [9, 11, 1, 3].map(|n| elements[n].clone()).concat();
                assert_eq!(found, expected, "{dtype} {between}");
            }
        }
    }

    #[test]
    fn records_beyond_their_part_or_inside_of_each_other_are_refused() {
        for (shape, distance) in [(&[3u64, 2][..], 9), (&[4, 2], 8), (&[2, 3], 8), (&[], 4)] {
            let info = tensor(DType::F32, shape, distance, &[0; 24]);
            let error = read(&info, Order::RowMajor).unwrap_err();
            assert_eq!(error.rule(), "file.records", "{shape:?}");
        }
        let info = tensor(DType::F32, &[u64::MAX, 1], 8, &[0; 24]);
        // More than is ever expanded.
        let error = read(&info, Order::RowMajor).unwrap_err();
        assert_eq!(error.rule(), "file.dense");
        let nothing = tensor(DType::F32, &[0, 3], 0, &[]);
        assert!(read(&nothing, Order::RowMajor).unwrap().is_empty());
    }
}
