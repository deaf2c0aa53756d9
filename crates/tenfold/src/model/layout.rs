//! How a tensor's elements are arranged in its parts.

use core::fmt;

use crate::prelude::*;

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[allow(missing_docs)] // the names say it
pub enum Endian {
    #[default]
    Little,
    Big,
}

impl Endian {
    /// That of the machine that this runs on.
    pub const NATIVE: Endian = if cfg!(target_endian = "little") {
        Endian::Little
    } else {
        Endian::Big
    };
}

impl fmt::Display for Endian {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Endian::Little => "little",
            Endian::Big => "big",
        })
    }
}

/// The order of the elements of a dense tensor.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Order {
    /// The last index runs fastest, as in C.
    #[default]
    RowMajor,
    /// The first index runs fastest, as in Fortran.
    ColumnMajor,
}

/// How the elements are arranged in the tensor's parts.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Layout {
    /// Dense, the last index running fastest. One part, `values`.
    RowMajor,
    /// Dense, the first index running fastest. One part, `values`.
    ColumnMajor,
    /// Sparse: `values`, and `coords` with all indices of the first dimension, then all of the second, and so on.
    Coo {
        /// Stored entries.
        nnz: u64,
    },
    /// Sparse matrix by rows: `values`, `indices` (columns), `indptr` (rows + 1 positions).
    Csr {
        /// Stored entries.
        nnz: u64,
    },
    /// Sparse matrix by columns: `values`, `indices` (rows), `indptr` (columns + 1 positions).
    Csc {
        /// Stored entries.
        nnz: u64,
    },
    /// Dense, the first index running fastest, without the elements that an exchange of two dimensions restores. One
    /// part, `values`.
    Packed(Box<Symmetry>),
    /// Sparse: one part of records, each with the indices as little-endian u64 and the value.
    Pairs(Box<Pairs>),
    /// Elements of one part, `values`, at equal distances along every dimension: a view of a storage, which may be
    /// larger, be shared with other tensors, and hold elements that the tensor has more than once.
    Strided(Box<Strides>),
    /// Dense and row-major in one part, `values`, but for what lies between two records: all elements with the same
    /// first index are neighbours, and those with the next one begin so many bytes later.
    Records {
        /// Bytes from the beginning of a record to that of the next; no multiple of an element, maybe.
        distance: u64,
    },
    /// Dense, in a grid of chunks that are stored one by one. One part, `values`, whose payload is
    /// [`Payload::Chunks`](crate::model::Payload::Chunks).
    Chunked,
    /// Dense and row-major, made from quantized parts by the tensor's decoder.
    Decoded,
    /// Several parts with a meaning of their own, such as codes and scales; passed on as they are.
    Opaque(Box<Scheme>),
}

impl Layout {
    /// Whether every element has its place in one part.
    pub fn is_dense(&self) -> bool {
        matches!(self, Layout::RowMajor | Layout::ColumnMajor)
    }

    /// Whether only some of the elements are stored, each with its place.
    pub fn is_sparse(&self) -> bool {
        self.nnz().is_some()
    }

    /// The entries that a sparse tensor stores.
    pub fn nnz(&self) -> Option<u64> {
        match self {
            Layout::Coo { nnz } | Layout::Csr { nnz } | Layout::Csc { nnz } => Some(*nnz),
            Layout::Pairs(pairs) => Some(pairs.nnz),
            _ => None,
        }
    }

    /// The order of the elements in the one part of a dense tensor.
    pub fn order(&self) -> Option<Order> {
        match self {
            Layout::RowMajor => Some(Order::RowMajor),
            Layout::ColumnMajor => Some(Order::ColumnMajor),
            _ => None,
        }
    }

    /// The symmetries by which elements that are not stored follow from those that are.
    pub fn symmetries(&self) -> &[Symmetry] {
        match self {
            Layout::Packed(symmetry) => core::slice::from_ref(symmetry),
            Layout::Pairs(pairs) => &pairs.orbits,
            _ => &[],
        }
    }

    /// The name in listings and JSON.
    pub fn name(&self) -> &str {
        match self {
            Layout::RowMajor => "row-major",
            Layout::ColumnMajor => "column-major",
            Layout::Coo { .. } => "coo",
            Layout::Csr { .. } => "csr",
            Layout::Csc { .. } => "csc",
            Layout::Packed(_) => "packed",
            Layout::Pairs { .. } => "pairs",
            Layout::Strided(_) => "strided",
            Layout::Records { .. } => "records",
            Layout::Chunked => "chunked",
            Layout::Decoded => "decoded",
            Layout::Opaque(scheme) => &scheme.name,
        }
    }
}

impl From<Pairs> for Layout {
    fn from(pairs: Pairs) -> Self {
        Layout::Pairs(Box::new(pairs))
    }
}

impl From<Scheme> for Layout {
    fn from(scheme: Scheme) -> Self {
        Layout::Opaque(Box::new(scheme))
    }
}

impl From<Order> for Layout {
    fn from(order: Order) -> Self {
        match order {
            Order::RowMajor => Layout::RowMajor,
            Order::ColumnMajor => Layout::ColumnMajor,
        }
    }
}

/// Where the elements of a tensor of [`Layout::Strided`] are in its storage, counted in elements.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Strides {
    /// The place of the first element.
    pub offset: u64,
    /// How far a step along each dimension goes; 0 where all its elements are the same one.
    pub steps: Vec<u64>,
}

impl Strides {
    /// The first element at `offset`, and a step for every dimension.
    pub fn new(offset: u64, steps: impl Into<Vec<u64>>) -> Self {
        Self {
            offset,
            steps: steps.into(),
        }
    }
}

impl From<Vec<u64>> for Strides {
    /// A step for every dimension, with the first element at the beginning.
    fn from(steps: Vec<u64>) -> Self {
        Self::new(0, steps)
    }
}

impl From<&[u64]> for Strides {
    fn from(steps: &[u64]) -> Self {
        Self::new(0, steps)
    }
}

impl<const N: usize> From<[u64; N]> for Strides {
    fn from(steps: [u64; N]) -> Self {
        Self::new(0, steps)
    }
}

/// What the records of [`Layout::Pairs`] are.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Pairs {
    /// Stored entries.
    pub nnz: u64,
    /// What the indices are.
    pub index: PairIndex,
    /// Symmetries under which every entry stands for all places that it is moved to, at most one entry for each
    /// set of such places.
    pub orbits: Vec<Symmetry>,
}

impl Pairs {
    /// This many entries, each of which stands for itself.
    pub fn new(nnz: u64, index: PairIndex) -> Self {
        Self {
            nnz,
            index,
            orbits: Vec::new(),
        }
    }
}

/// What the parts of [`Layout::Opaque`] are.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Scheme {
    /// The name that the file gives to it.
    pub name: String,
    /// What must be known beside the name to make numbers of the bytes, in a form that is the same wherever the same
    /// is meant; empty where a format leaves that to the metadata.
    pub parameters: String,
}

impl Scheme {
    /// A name, and what must be known beside it.
    pub fn new(name: impl Into<String>, parameters: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            parameters: parameters.into(),
        }
    }
}

/// What the index of a record of [`Layout::Pairs`] is.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum PairIndex {
    /// One number for each dimension.
    Axes,
    /// The place among the elements, the first index running fastest.
    ColumnMajor,
    /// The place among the elements, the last index running fastest.
    RowMajor,
}

/// A symmetry of a tensor: every element follows from the one at exchanged indices.
///
/// The element at `(i0, i1, ..)` is `operation` of the element whose index along dimension k is the one that the first
/// has along dimension `permutation[k]`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Symmetry {
    /// What is done to the value.
    pub operation: Operation,
    /// Which dimension's index goes where; every dimension once.
    pub permutation: Vec<usize>,
}

impl Symmetry {
    /// The element at permuted indices gives this one by `operation`.
    pub fn new(operation: Operation, permutation: impl Into<Vec<usize>>) -> Self {
        Self {
            operation,
            permutation: permutation.into(),
        }
    }

    /// The two dimensions that are exchanged, the first of them first, if that is all that happens.
    pub fn transposition(&self) -> Option<(usize, usize)> {
        let mut moved = (self.permutation.iter().enumerate()).filter(|(k, from)| k != *from);
        let (&(p, &q), &(r, &s)) = (&moved.next()?, &moved.next()?);
        (moved.next().is_none() && (p, q) == (s, r)).then_some((p, q))
    }

    /// Whether no index moves.
    pub fn is_identity(&self) -> bool {
        (self.permutation.iter().enumerate()).all(|(k, from)| k == *from)
    }
}

/// What a symmetry does to a value. Each undoes itself.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Operation {
    /// `x`: nothing.
    Same,
    /// `-x`: every number is negated.
    Negate,
    /// `conj(x)`: every number but the first is negated.
    Conjugate,
    /// `-conj(x)`: the first number is negated.
    NegateConjugate,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Operation; 4] = [
        Operation::Same,
        Operation::Negate,
        Operation::Conjugate,
        Operation::NegateConjugate,
    ];

    /// One after the other, in any order.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        match (self, next) {
            (Self::Same, other) | (other, Self::Same) => other,
            (a, b) if a == b => Self::Same,
            (Self::Negate, Self::Conjugate) | (Self::Conjugate, Self::Negate) => {
                Self::NegateConjugate
            }
            (Self::Negate, _) | (_, Self::Negate) => Self::Conjugate,
            _ => Self::Negate,
        }
    }

    /// The same for elements of one number, of which there is nothing to conjugate.
    #[must_use]
    pub fn of_reals(self) -> Self {
        match self {
            Self::Same | Self::Conjugate => Self::Same,
            Self::Negate | Self::NegateConjugate => Self::Negate,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Operation::Same => "x",
            Operation::Negate => "-x",
            Operation::Conjugate => "conj(x)",
            Operation::NegateConjugate => "-conj(x)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_a_group_in_which_each_undoes_itself() {
        for a in Operation::ALL {
            assert_eq!(a.then(a), Operation::Same);
            for b in Operation::ALL {
                assert_eq!(a.then(b), b.then(a));
                assert_eq!(a.then(b).then(b), a);
            }
        }
    }

    #[test]
    fn an_exchange_of_two_dimensions_is_told_from_other_permutations() {
        let of =
            |permutation: &[usize]| Symmetry::new(Operation::Same, permutation).transposition();
        assert_eq!(of(&[0, 3, 2, 1]), Some((1, 3)));
        assert_eq!(of(&[1, 0]), Some((0, 1)));
        assert_eq!(of(&[0, 1]), None);
        assert_eq!(of(&[1, 2, 0]), None);
        assert_eq!(of(&[1, 0, 3, 2]), None);
    }
}
