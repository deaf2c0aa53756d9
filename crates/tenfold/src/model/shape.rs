//! The dimensions of a tensor.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::{Deref, DerefMut};

use crate::prelude::*;

/// As many dimensions as nearly every tensor has at most.
const FEW: usize = 4;

/// The dimensions of a tensor, outermost first: a slice. Up to four of them need no memory of their own.
///
/// ```
/// use tenfold::model::Shape;
/// let mut shape = Shape::from([2, 3]);
/// shape.push(4);
/// assert_eq!(shape, [2, 3, 4]);
/// assert_eq!(shape.iter().product::<u64>(), 24);
/// ```
#[derive(Clone)]
pub struct Shape(Dims);

#[derive(Clone)]
enum Dims {
    Few { len: u8, dims: [u64; FEW] },
    Many(Vec<u64>),
}

impl Shape {
    /// No dimensions: a scalar.
    pub const fn new() -> Self {
        Self(Dims::Few {
            len: 0,
            dims: [0; FEW],
        })
    }

    /// All dimensions.
    pub fn as_slice(&self) -> &[u64] {
        self
    }

    /// Adds an innermost dimension.
    pub fn push(&mut self, dim: u64) {
        match &mut self.0 {
            Dims::Few { len, dims } => match dims.get_mut(usize::from(*len)) {
                Some(place) => (*place, *len) = (dim, *len + 1),
                None => {
                    let mut many = Vec::with_capacity(2 * FEW);
                    many.extend_from_slice(dims);
                    many.push(dim);
                    self.0 = Dims::Many(many);
                }
            },
            Dims::Many(dims) => push_tight(dims, dim),
        }
    }
}

impl Default for Shape {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for Shape {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        match &self.0 {
            Dims::Few { len, dims } => dims.get(..usize::from(*len)).unwrap_or_default(),
            Dims::Many(dims) => dims,
        }
    }
}

impl DerefMut for Shape {
    fn deref_mut(&mut self) -> &mut [u64] {
        match &mut self.0 {
            Dims::Few { len, dims } => dims.get_mut(..usize::from(*len)).unwrap_or_default(),
            Dims::Many(dims) => dims,
        }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

impl Eq for Shape {}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.deref().hash(state);
    }
}

impl<T: AsRef<[u64]> + ?Sized> PartialEq<T> for Shape {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl AsRef<[u64]> for Shape {
    fn as_ref(&self) -> &[u64] {
        self
    }
}

impl PartialEq<Shape> for Vec<u64> {
    fn eq(&self, other: &Shape) -> bool {
        **self == **other
    }
}

impl From<&[u64]> for Shape {
    fn from(dims: &[u64]) -> Self {
        dims.iter().copied().collect()
    }
}

impl<const RANK: usize> From<[u64; RANK]> for Shape {
    fn from(dims: [u64; RANK]) -> Self {
        dims.into_iter().collect()
    }
}

impl From<Vec<u64>> for Shape {
    fn from(dims: Vec<u64>) -> Self {
        if dims.len() <= FEW {
            dims.into_iter().collect()
        } else {
            Self(Dims::Many(dims))
        }
    }
}

impl FromIterator<u64> for Shape {
    fn from_iter<I: IntoIterator<Item = u64>>(dims: I) -> Self {
        let mut shape = Self::new();
        dims.into_iter().for_each(|dim| shape.push(dim));
        shape
    }
}

impl<'a> IntoIterator for &'a Shape {
    type Item = &'a u64;
    type IntoIter = core::slice::Iter<'a, u64>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_dimensions_is_kept() {
        for rank in 0..10 {
            let dims: Vec<u64> = (1..=rank).collect();
            let mut shape = Shape::from(dims.as_slice());
            assert_eq!(shape, dims);
            assert_eq!(shape, Shape::from(dims.clone()));
            assert_eq!(format!("{shape:?}"), format!("{dims:?}"));
            if let Some(last) = shape.last_mut() {
                *last += 1;
                assert_ne!(shape, dims);
            }
        }
    }
}
