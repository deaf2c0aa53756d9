//! One number of every element, as formats have them that store real and imaginary parts apart.

use super::{View, as_size};
use crate::error::Result;
use crate::prelude::*;

/// One number of every element of a view that can be entered anywhere.
pub(super) struct Lane<'a> {
    elements: View<'a>,
    /// Bytes of a number, and of an element.
    width: u64,
    element: u64,
    /// Which of the numbers.
    number: u64,
}

impl<'a> Lane<'a> {
    /// The `number`th of `lanes` numbers of `width` bytes.
    pub(super) fn new(elements: View<'a>, width: u64, lanes: u64, number: u64) -> Self {
        Self {
            elements,
            width,
            element: width * lanes,
            number,
        }
    }

    /// Bytes that come from whole steps of the elements.
    pub(super) fn step_len(&self) -> u64 {
        let step = self.elements.step();
        let mut whole = step;
        while !whole.is_multiple_of(self.element) {
            whole += step;
        }
        whole / self.element * self.width
    }

    /// The bytes from `at` on, which is at a step.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let mut elements = Vec::new();
        let len = out.len() as u64 / self.width * self.element;
        self.elements
            .read(at / self.width * self.element, len, &mut elements)?;
        let (width, element) = (as_size(self.width)?, as_size(self.element)?);
        let from = as_size(self.number)? * width;
        let numbers = elements.chunks_exact(element);
        for (number, out) in numbers.zip(out.chunks_exact_mut(width)) {
            out.copy_from_slice(&number[from..from + width]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may panic

    use crate::io::Limits;
    use crate::model::{DType, Endian, Form, Order, Payload, TensorInfo, Want};
    use crate::prelude::*;
    use crate::transform::{Data, View};

    #[test]
    fn a_number_of_every_element_is_taken_in_any_order() {
        let bytes: Vec<u8> = (0..6u8)
            .flat_map(|n| [f32::from(n), f32::from(n) + 0.5])
            .flat_map(f32::to_le_bytes)
            .collect();
        let info = TensorInfo::dense("c", DType::C64, [2, 3], Payload::Inline(bytes.into()));
        let limits = Limits::default();
        for (number, more) in [(0, 0.0), (1, 0.5)] {
            let form = Form::new(DType::C64, Order::ColumnMajor, Endian::Big);
            let of = Box::new(Want::Dense(form));
            let want = Want::Lane { number, of };
            assert_eq!(View::wanted_len(&info, 0, &want).unwrap(), 24);
            let view = View::new(Data::new(&[], &limits), &info, 0, &want).unwrap();
            let expected = [0.0f32, 3.0, 1.0, 4.0, 2.0, 5.0].map(|n| (n + more).to_be_bytes());
            assert_eq!(view.collect(100).unwrap(), expected.concat());
        }
        let of = Box::new(Want::Stored);
        let want = Want::Lane { number: 0, of };
        assert!(View::new(Data::new(&[], &limits), &info, 0, &want).is_err());
    }
}
