//! Layouts, each in a file of its own: how the elements of a tensor are arranged in its parts.
//!
//! What the rest of the library wants to know of a layout it asks its [`Arrangement`]: where all elements come from,
//! where some of them do, what must hold between the parts. A new layout is a variant of [`Layout`], a file here and a
//! line in [`of`].

mod chunked;
mod coo;
mod csr;
mod decoded;
mod dense;
mod listed;
mod opaque;
mod packed;
mod pairs;
mod records;
mod strided;

pub(super) use chunked::{Boxes, all as chunked};
pub(super) use decoded::Decoded;
pub(crate) use listed::Scatter;
pub(super) use packed::Exchange;

use alloc::borrow::Cow;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::Limits;
use crate::model::{DType, Endian, Layout, Order, Part, Role, Scalar, Selection, TensorInfo};
use crate::prelude::*;
use crate::transform::select::Selected;
use crate::transform::{Body, Data};

use listed::Search;

/// A tensor that is opened, and where its bytes are.
#[derive(Clone, Copy)]
pub(super) struct Opening<'a, 't> {
    pub(super) data: Data<'a>,
    pub(super) tensor: &'t TensorInfo,
}

impl<'a, 't> Opening<'a, 't> {
    /// Another tensor of the same files.
    fn of<'o>(&self, tensor: &'o TensorInfo) -> Opening<'a, 'o> {
        let data = self.data;
        Opening { data, tensor }
    }

    /// The part with the elements.
    fn values(&self) -> Result<&'t Part> {
        self.part(&Role::Values)
    }

    fn part(&self, role: &Role) -> Result<&'t Part> {
        self.tensor.part(role).ok_or_else(|| {
            let is_sparse = self.tensor.layout.is_sparse();
            let rule = if is_sparse { "sparse" } else { "layout" };
            Error::malformed(rule, format!("there is no part {:?}", role.name()))
        })
    }
}

/// Where all elements of a tensor come from.
#[allow(clippy::large_enum_variant)] // one for each tensor that is read
pub(super) enum Whole<'a, 't> {
    /// They are one part, in the wanted order.
    Part(Cow<'t, Part>),
    /// They are made, as elements of a type in a byte order.
    Made(Body<'a>, DType, Endian),
}

/// Something about a tensor that readers tolerate.
pub(crate) struct Deviation {
    pub(crate) rule: &'static str,
    pub(crate) message: String,
    /// Whether a format that is strict about content refuses it.
    pub(crate) is_content: bool,
}

impl Deviation {
    fn of_symmetry(message: String) -> Self {
        Self {
            rule: "symmetry",
            message,
            is_content: false,
        }
    }
}

/// What a layout answers. All of it is about elements as they are stored: casts come after it.
pub(super) trait Arrangement: Sync {
    /// All elements one after the other in an order.
    fn whole<'a, 't>(&self, tensor: &Opening<'a, 't>, order: Order) -> Result<Whole<'a, 't>>;

    /// Some of the elements, row-major.
    fn some<'a>(&self, tensor: &Opening<'a, '_>, selection: Selection) -> Result<Selected<'a>>;

    /// Finds the entries that a search wants, where elements are listed with their places.
    fn entries(&self, _: &mut Search<'_, '_>) -> Result<()> {
        Err(Error::argument("elements that are not listed"))
    }

    /// What must hold between the parts beyond what reading them shows.
    fn check(&self, _: &Opening<'_, '_>) -> Result<Vec<Deviation>> {
        Ok(Vec::new())
    }

    /// Whether few stored bytes can stand for many elements, so that their number has a limit.
    fn expands(&self, _: &TensorInfo) -> bool {
        false
    }

    /// Bytes that the elements may have then.
    fn limit(&self, _: &TensorInfo, limits: &Limits) -> u64 {
        limits.dense_bytes
    }

    /// Whether it costs nothing to open, so that everybody who works on the tensor can do it.
    fn is_light(&self) -> bool {
        true
    }
}

/// The answers of a layout.
pub(super) fn of(layout: &Layout) -> &'static dyn Arrangement {
    match layout {
        Layout::RowMajor => &dense::Dense(Order::RowMajor),
        Layout::ColumnMajor => &dense::Dense(Order::ColumnMajor),
        Layout::Coo { .. } => &coo::Coo,
        Layout::Csr { .. } => &csr::Csr { line: 0 },
        Layout::Csc { .. } => &csr::Csr { line: 1 },
        Layout::Packed(_) => &packed::Packed,
        Layout::Pairs { .. } => &pairs::Pairs,
        Layout::Strided(_) => &strided::Strided,
        Layout::Records { .. } => &records::Records,
        Layout::Chunked => &chunked::Chunked,
        Layout::Decoded => &decoded::Quantized,
        Layout::Opaque { .. } => &opaque::Opaque,
    }
}

/// Whether few stored bytes can stand for many elements of a tensor.
#[cfg(feature = "digest")]
pub(crate) fn expands(tensor: &TensorInfo) -> bool {
    of(&tensor.layout).expands(tensor)
}

/// Whether a tensor has more elements than are stored of it.
fn is_longer_than_stored(tensor: &TensorInfo) -> bool {
    let stored: u64 = tensor.parts.iter().map(|part| part.payload.len()).sum();
    tensor.dense_len().is_none_or(|len| len > stored)
}

/// What is tolerated of a tensor; what is not is an error.
pub(crate) fn check(data: Data<'_>, tensor: &TensorInfo) -> Result<Vec<Deviation>> {
    of(&tensor.layout).check(&Opening { data, tensor })
}

/// The elements of a tensor where they are in memory one after the other, in either order, as elements of its type. Costs no
/// allocation where the layout is dense.
pub(crate) fn in_place(data: Data<'_>, tensor: &TensorInfo) -> Option<(Bytes, Endian, Order)> {
    let values = tensor.part(&Role::Values)?;
    // Any byte but 0 is true, and readers get 1 for it.
    let is_made = matches!(tensor.dtype, DType::Number(Scalar::Bool, _));
    if is_made || !values.dtype.is(tensor.dtype) || tensor.defect.is_some() {
        return None;
    }
    let Some(order) = tensor.layout.order() else {
        return match &tensor.layout {
            Layout::Chunked => in_place(data, &chunked::only(data, tensor).ok()??),
            _ => run_in_place(data, tensor),
        };
    };
    if tensor.dense_len() != Some(values.payload.len()) {
        return None;
    }
    // A line is in both.
    let order = if tensor.shape.len() < 2 {
        Order::RowMajor
    } else {
        order
    };
    Some((data.shared(&values.payload)?, values.endian, order))
}

/// The same for strides that are those of one of the orders.
fn run_in_place(data: Data<'_>, tensor: &TensorInfo) -> Option<(Bytes, Endian, Order)> {
    let is_strided = matches!(tensor.layout, Layout::Strided(_));
    // What is not in memory would be opened for nothing.
    data.shared(&tensor.part(&Role::Values).filter(|_| is_strided)?.payload)?;
    let opening = Opening { data, tensor };
    let mut orders = [Order::RowMajor, Order::ColumnMajor].into_iter();
    orders.find_map(|order| match of(&tensor.layout).whole(&opening, order) {
        Ok(Whole::Part(part)) => Some((data.shared(&part.payload)?, part.endian, order)),
        _ => None,
    })
}
