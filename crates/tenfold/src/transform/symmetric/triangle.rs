//! Which elements of a tensor are stored when those that an exchange of two dimensions gives back are not.
//!
//! Stored are the elements whose index along the first of the two dimensions is not greater than that along the second
//! (is smaller, where the operation is a plain negation and the diagonal is 0), in column-major order without gaps. So
//! the place of every element can be computed, and nothing has to be held in memory.

use crate::error::{Error, Result};
use crate::model::{Operation, Part, Symmetry, TensorInfo};
use crate::prelude::*;
use crate::transform::overflow;

/// Which elements are stored, and where.
#[derive(Clone, Debug)]
pub(crate) struct Triangle {
    /// The exchanged dimensions, and their length.
    p: usize,
    q: usize,
    pub(super) n: u64,
    /// Elements along the dimensions before the first, between the two, and after the second.
    pub(super) inner: u64,
    pub(super) middle: u64,
    pub(super) outer: u64,
    /// The diagonal is not stored.
    pub(super) strict: bool,
}

impl Triangle {
    /// For a shape whose number of elements fits 64 bits.
    pub(crate) fn new(shape: &[u64], symmetry: &Symmetry) -> Result<Self> {
        let wrong = |why: &str| Error::malformed("packed", why);
        let (p, q) = symmetry
            .transposition()
            .ok_or_else(|| wrong("packed by something other than an exchange of two dimensions"))?;
        let (Some(&n), Some(&other)) = (shape.get(p), shape.get(q)) else {
            return Err(wrong("packed by dimensions that do not exist"));
        };
        if n != other || symmetry.permutation.len() != shape.len() {
            return Err(wrong("packed by dimensions of different lengths"));
        }
        let product = |dims: &[u64]| {
            if shape.contains(&0) {
                return Ok(0);
            }
            let product = dims.iter().copied().try_fold(1, u64::checked_mul);
            product.ok_or_else(|| overflow("the number of elements"))
        };
        Ok(Self {
            p,
            q,
            n,
            inner: product(&shape[..p])?,
            middle: product(&shape[p + 1..q])?,
            outer: product(&shape[q + 1..])?,
            strict: symmetry.operation == Operation::Negate,
        })
    }

    /// Of a packed tensor, whose values are as many as are stored.
    pub(in crate::transform) fn of(
        tensor: &TensorInfo,
        values: &Part,
        symmetry: &Symmetry,
    ) -> Result<Self> {
        if tensor.elements().is_none() {
            return Err(overflow("the number of elements"));
        }
        if values.dtype.width().is_none() {
            let message = format!("packed elements of {}", values.dtype);
            return Err(Error::unsupported("packed", message));
        }
        let triangle = Self::new(&tensor.shape, symmetry)?;
        let stored = triangle.stored();
        if values.dtype.bytes_for(stored) != Some(values.payload.len()) {
            let message = format!("{} bytes for {stored} elements", values.payload.len());
            return Err(Error::malformed("size", message));
        }
        Ok(triangle)
    }

    /// Elements that are stored.
    pub(crate) fn stored(&self) -> u64 {
        self.block() * self.outer
    }

    /// Elements that are stored for one choice of the indices after the second dimension.
    pub(super) fn block(&self) -> u64 {
        self.before(self.n) * self.inner * self.middle
    }

    /// Stored indices along the first dimension, for an index along the second.
    pub(super) fn below(&self, high: u64) -> u64 {
        if self.strict { high } else { high + 1 }
    }

    /// Stored pairs of indices whose second one is below `high`.
    pub(super) fn before(&self, high: u64) -> u64 {
        // One of the two is even; halved first, so that the product fits.
        let other = if self.strict {
            high.saturating_sub(1)
        } else {
            high + 1
        };
        let (a, b) = (high, other);
        if a % 2 == 0 { a / 2 * b } else { b / 2 * a }
    }

    /// What every dimension of the shape has to do with the place of an element.
    pub(in crate::transform) fn groups(&self, shape: &[u64]) -> Vec<Group> {
        let mut strides = [1, 1, 1];
        let mut take = |group: usize, dim: u64| {
            let stride = strides[group];
            strides[group] *= dim;
            stride
        };
        (shape.iter().enumerate())
            .map(|(k, &dim)| match k {
                k if k == self.p => Group::Low,
                k if k == self.q => Group::High,
                k if k < self.p => Group::Inner(take(0, dim)),
                k if k < self.q => Group::Middle(take(1, dim)),
                _ => Group::Outer(take(2, dim)),
            })
            .collect()
    }

    /// The place of the stored element for some indices, and whether it is the one at exchanged indices; `None` where
    /// nothing is stored, because it is 0.
    pub(in crate::transform) fn find(
        &self,
        groups: &[Group],
        index: &[u64],
    ) -> Option<(u64, bool)> {
        let mut rest = Rest::default();
        let (mut low, mut high) = (0, 0);
        for (&i, &group) in index.iter().zip(groups) {
            group.add(i, &mut low, &mut high, &mut rest);
        }
        if self.strict && low == high {
            return None;
        }
        Some((self.place(low.min(high), low.max(high), rest), low > high))
    }

    /// The place of a stored element: `low` and `high` along the two dimensions, the others as places in their groups.
    pub(super) fn place(&self, low: u64, high: u64, rest: Rest) -> u64 {
        rest.outer * self.block()
            + self.inner * (self.middle * self.before(high) + rest.middle * self.below(high) + low)
            + rest.inner
    }
}

/// The indices along the dimensions that are not exchanged, as column-major places in their groups.
#[derive(Clone, Copy, Default)]
pub(super) struct Rest {
    pub(super) inner: u64,
    pub(super) middle: u64,
    pub(super) outer: u64,
}

/// A dimension's part in the place of an element: in which group, and how far a step goes there.
#[derive(Clone, Copy)]
pub(in crate::transform) enum Group {
    Low,
    High,
    Inner(u64),
    Middle(u64),
    Outer(u64),
}

impl Group {
    /// Adds an index along the dimension.
    pub(super) fn add(self, index: u64, low: &mut u64, high: &mut u64, rest: &mut Rest) {
        match self {
            Group::Low => *low += index,
            Group::High => *high += index,
            Group::Inner(stride) => rest.inner += index * stride,
            Group::Middle(stride) => rest.middle += index * stride,
            Group::Outer(stride) => rest.outer += index * stride,
        }
    }
}
