//! Elements that an exchange of two dimensions gives back are not stored.

use super::{Arrangement, Deviation, Opening, Whole};
use crate::error::{Error, Result};
use crate::model::{Axis, Layout, Order, Selection, Symmetry};
use crate::prelude::*;
use crate::transform::select::{Runs, Selected, Stored};
use crate::transform::symmetric::{Apply, Group, NO_NEGATIVE, Triangle, Unpack};
use crate::transform::{Body, as_size};

pub(super) struct Packed;

impl Arrangement for Packed {
    fn whole<'a, 't>(&self, tensor: &Opening<'a, 't>, order: Order) -> Result<Whole<'a, 't>> {
        let unpack = Unpack::new(tensor.data, tensor.tensor, symmetry(tensor)?, order)?;
        let (dtype, endian) = unpack.stored_as();
        Ok(Whole::Made(Body::Unpack(unpack), dtype, endian))
    }

    fn some<'a>(&self, tensor: &Opening<'a, '_>, selection: Selection) -> Result<Selected<'a>> {
        let values = tensor.values()?;
        let symmetry = symmetry(tensor)?;
        let triangle = Triangle::of(tensor.tensor, values, symmetry)?;
        let exchange = Exchange {
            groups: triangle.groups(&tensor.tensor.shape),
            triangle,
            axes: selection.axes,
            apply: Apply::new(symmetry.operation, values.dtype, values.endian)?,
        };
        Selected::exchanged(Stored::part(tensor.data, values)?, exchange)
    }

    fn check(&self, tensor: &Opening<'_, '_>) -> Result<Vec<Deviation>> {
        let unpack = Unpack::new(
            tensor.data,
            tensor.tensor,
            symmetry(tensor)?,
            Order::ColumnMajor,
        )?;
        let violation = unpack
            .diagonal_violation()?
            .map(|n| format!("the diagonal at {n} contradicts the symmetry; it is read as stored"));
        let wrapped = unpack.first_wrapped()?.map(|n| {
            format!(
                "element {n} of those stored is the lowest integer, and the symmetry negates it: {NO_NEGATIVE}"
            )
        });
        let messages = violation.into_iter().chain(wrapped);
        Ok(messages.map(Deviation::of_symmetry).collect())
    }
}

fn symmetry<'t>(tensor: &Opening<'_, 't>) -> Result<&'t Symmetry> {
    match &tensor.tensor.layout {
        Layout::Packed(symmetry) => Ok(symmetry),
        _ => Err(Error::argument("a layout without a symmetry")),
    }
}

/// The places of the selected elements, each its own or that of the one at exchanged indices.
pub(in crate::transform) struct Exchange {
    triangle: Triangle,
    groups: Vec<Group>,
    axes: Vec<Axis>,
    apply: Apply,
}

impl Exchange {
    /// How many elements are selected.
    pub(in crate::transform) fn elements(&self) -> Option<u64> {
        Selection::count(&self.axes)
    }

    /// The runs of stored elements that make up some neighbours of the result, and which of these are exchanged.
    pub(in crate::transform) fn runs(
        &self,
        range: Range<u64>,
        runs: &mut Runs,
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
            let Some((place, is_exchanged)) = self.triangle.find(&self.groups, &index) else {
                continue;
            };
            if is_exchanged {
                exchanged.push(out);
            }
            runs.push(place, 1, out);
        }
        Ok(())
    }

    /// Turns an element into the one at exchanged indices.
    pub(in crate::transform) fn apply(&self, element: &mut [u8]) {
        self.apply.apply(element);
    }
}
