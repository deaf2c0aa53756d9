//! Some of the elements that follow each other in a view: a piece of a tensor that a file has by itself.

use super::{View, as_size};
use crate::error::Result;
use crate::prelude::*;

/// Bytes of a view that can be entered anywhere, from one of them on.
pub(super) struct Stretch<'a> {
    view: View<'a>,
    start: u64,
}

impl<'a> Stretch<'a> {
    pub(super) fn new(view: View<'a>, start: u64) -> Self {
        Self { view, start }
    }

    pub(super) fn step_len(&self) -> u64 {
        self.view.step()
    }

    /// The bytes from `at` on. What is before them in their step of the view is read too.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let from = self.start + at;
        let step = self.view.step().max(1);
        let before = from % step;
        let first = from - before;
        let end = (from + out.len() as u64).next_multiple_of(step);
        let len = end.min(self.view.len()) - first;
        let mut whole = Vec::new();
        self.view.read(first, len, &mut whole)?;
        let before = as_size(before)?;
        out.copy_from_slice(&whole[before..before + out.len()]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may panic

    use crate::io::Limits;
    use crate::model::{DType, Endian, Form, Layout, Order, Payload, TensorInfo, Want};
    use crate::prelude::*;
    use crate::transform::{Data, View};

    #[test]
    fn stretches_one_behind_the_other_are_the_whole() {
        let bytes: Vec<u8> = (0..1200u16).flat_map(u16::to_le_bytes).collect();
        let mut info = TensorInfo::dense("t", DType::U16, [30, 40], Payload::Inline(bytes.into()));
        info.layout = Layout::ColumnMajor;
        let limits = Limits::default();
        let data = Data::new(&[], &limits);
        let of = Want::Dense(Form::new(DType::U16, Order::RowMajor, Endian::Big));
        let whole = View::new(data, &info, 0, &of)
            .unwrap()
            .collect(9999)
            .unwrap();
        for size in [1, 7, 128, 599, 1200] {
            let mut found = Vec::new();
            for start in (0..1200).step_by(size) {
                let elements = start..(start + size as u64).min(1200);
                let of = Box::new(of.clone());
                let want = Want::Stretch { elements, of };
                let view = View::new(data, &info, 0, &want).unwrap();
                let len = View::wanted_len(&info, 0, &want).unwrap();
                let part = view.collect(9999).unwrap();
                assert_eq!(part.len() as u64, len);
                found.extend(part);
            }
            assert_eq!(found, whole, "{size}");
        }
        let of = Box::new(of);
        let want = Want::Stretch {
            elements: 1199..1201,
            of,
        };
        assert!(View::new(data, &info, 0, &want).is_err());
    }
}
