//! Tensors without the elements that an exchange of two dimensions gives back: expanded, and packed.
//!
//! Stored are the elements whose index along the first of the two dimensions is not greater than that along the second
//! (is smaller, where the operation is a plain negation and the diagonal is 0), in column-major order without gaps. So
//! the place of every element can be computed, and nothing has to be held in memory.

mod pack;
mod unpack;

pub(super) use pack::Pack;
pub(super) use unpack::Unpack;
pub(crate) use unpack::{diagonal_violation, first_wrapped};

use crate::error::{Error, Result};
use crate::model::{Operation, Symmetry};
use crate::prelude::*;
use crate::transform::overflow;

/// Which elements are stored, and where.
#[derive(Clone, Debug)]
pub(crate) struct Triangle {
    /// The exchanged dimensions, and their length.
    p: usize,
    q: usize,
    n: u64,
    /// Elements along the dimensions before the first, between the two, and behind the second.
    inner: u64,
    middle: u64,
    outer: u64,
    /// The diagonal is not stored.
    strict: bool,
}

impl Triangle {
    /// For a shape whose number of elements fits 64 bits.
    pub(crate) fn new(shape: &[u64], symmetry: &Symmetry) -> Result<Self> {
        let wrong = |why: &str| Error::malformed("packed", why);
        let (p, q) = symmetry
            .transposition()
            .ok_or_else(|| wrong("packed by something else than an exchange of two dimensions"))?;
        let (Some(&n), Some(&other)) = (shape.get(p), shape.get(q)) else {
            return Err(wrong("packed by dimensions that are not there"));
        };
        if n != other || symmetry.permutation.len() != shape.len() {
            return Err(wrong("packed by dimensions of different lengths"));
        }
        let product = |dims: &[u64]| match shape.contains(&0) {
            true => Some(0),
            false => dims.iter().copied().try_fold(1, u64::checked_mul),
        };
        let product =
            |dims: &[u64]| product(dims).ok_or_else(|| overflow("the number of elements"));
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

    /// Elements that are stored.
    pub(crate) fn stored(&self) -> u64 {
        self.block() * self.outer
    }

    /// Elements that are stored for one choice of the indices behind the second dimension.
    fn block(&self) -> u64 {
        self.before(self.n) * self.inner * self.middle
    }

    /// Stored indices along the first dimension, for an index along the second.
    fn below(&self, high: u64) -> u64 {
        if self.strict { high } else { high + 1 }
    }

    /// Stored pairs of indices whose second one is below `high`.
    fn before(&self, high: u64) -> u64 {
        // One of the two is even; halved first, so that the product fits.
        let (a, b) = match self.strict {
            true => (high, high.saturating_sub(1)),
            false => (high, high + 1),
        };
        if a % 2 == 0 { a / 2 * b } else { b / 2 * a }
    }

    /// What every dimension of the shape has to do with the place of an element.
    pub(super) fn axes(&self, shape: &[u64]) -> Vec<Axis> {
        let mut strides = [1, 1, 1];
        let mut take = |group: usize, dim: u64| {
            let stride = strides[group];
            strides[group] *= dim;
            stride
        };
        (shape.iter().enumerate())
            .map(|(k, &dim)| match k {
                k if k == self.p => Axis::Low,
                k if k == self.q => Axis::High,
                k if k < self.p => Axis::Inner(take(0, dim)),
                k if k < self.q => Axis::Middle(take(1, dim)),
                _ => Axis::Outer(take(2, dim)),
            })
            .collect()
    }

    /// The place of the stored element for some indices, and whether it is the one at exchanged indices; `None` where
    /// nothing is stored, because it is 0.
    pub(super) fn find(&self, axes: &[Axis], index: &[u64]) -> Option<(u64, bool)> {
        let mut rest = Rest::default();
        let (mut low, mut high) = (0, 0);
        for (&i, &axis) in index.iter().zip(axes) {
            add(axis, i, &mut low, &mut high, &mut rest);
        }
        match self.strict && low == high {
            true => None,
            false => Some((self.place(low.min(high), low.max(high), rest), low > high)),
        }
    }

    /// The place of a stored element: `low` and `high` along the two dimensions, the others as places in their groups.
    fn place(&self, low: u64, high: u64, rest: Rest) -> u64 {
        rest.outer * self.block()
            + self.inner * (self.middle * self.before(high) + rest.middle * self.below(high) + low)
            + rest.inner
    }
}

/// The indices along the dimensions that are not exchanged, as column-major places in their groups.
#[derive(Clone, Copy, Default)]
struct Rest {
    inner: u64,
    middle: u64,
    outer: u64,
}

/// A dimension's part in the place of an element: in which group, and how far a step goes there.
#[derive(Clone, Copy)]
pub(super) enum Axis {
    Low,
    High,
    Inner(u64),
    Middle(u64),
    Outer(u64),
}

fn add(axis: Axis, index: u64, low: &mut u64, high: &mut u64, rest: &mut Rest) {
    match axis {
        Axis::Low => *low += index,
        Axis::High => *high += index,
        Axis::Inner(stride) => rest.inner += index * stride,
        Axis::Middle(stride) => rest.middle += index * stride,
        Axis::Outer(stride) => rest.outer += index * stride,
    }
}
