//! The forms in which tensors can be wanted.

use crate::model::{DType, Endian, Order, Symmetry};
use crate::prelude::*;

/// The form in which a part of a tensor is written.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Want {
    /// The whole tensor, dense.
    Dense(Form),
    /// The whole tensor, packed by an exchange of two dimensions that it is symmetric under.
    Packed {
        /// The symmetry.
        symmetry: Symmetry,
        /// The byte order of the numbers.
        endian: Endian,
    },
    /// The part by itself, decoded, with numbers of this type and byte order.
    Part {
        /// The type of the numbers.
        dtype: DType,
        /// Their byte order.
        endian: Endian,
    },
    /// One number of every element of something else that is wanted, of a dense form or a part: real or imaginary parts.
    Lane {
        /// Which of the numbers of an element.
        number: u32,
        /// The elements.
        of: Box<Want>,
    },
    /// Some elements that follow each other in a dense form.
    Stretch {
        /// Which of them.
        elements: Range<u64>,
        /// All of them.
        of: Box<Want>,
    },
    /// The part's bytes as they are stored, compressed or not.
    Stored,
}

/// A dense form of a tensor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Form {
    /// The type of the elements.
    pub dtype: DType,
    /// The order of the elements.
    pub order: Order,
    /// The order of the bytes of a number.
    pub endian: Endian,
}

impl Form {
    /// A dense form.
    pub fn new(dtype: DType, order: Order, endian: Endian) -> Self {
        Self {
            dtype,
            order,
            endian,
        }
    }

    /// Dense, row-major, little-endian: what digests and comparisons are made of.
    pub fn canonical(dtype: DType) -> Self {
        Self::new(dtype, Order::RowMajor, Endian::Little)
    }
}
