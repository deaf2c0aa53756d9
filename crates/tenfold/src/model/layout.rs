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

impl fmt::Display for Endian {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Endian::Little => "little",
            Endian::Big => "big",
        })
    }
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
    /// Sparse: one part of records, each the indices as u64 and the value.
    Pairs {
        /// Stored entries.
        nnz: u64,
        /// One index for each dimension; otherwise a single index into the row-major elements.
        per_axis: bool,
    },
    /// Dense and row-major, made from quantized parts by the tensor's decoder.
    Decoded,
    /// Several parts with a meaning of their own, such as codes and scales; passed on as they are.
    Opaque {
        /// The name that the file gives to it.
        scheme: String,
    },
}

impl Layout {
    /// Whether every element has its place in one part.
    pub fn is_dense(&self) -> bool {
        matches!(self, Layout::RowMajor | Layout::ColumnMajor)
    }

    /// The name in listings and JSON.
    pub fn name(&self) -> &str {
        match self {
            Layout::RowMajor => "row-major",
            Layout::ColumnMajor => "column-major",
            Layout::Coo { .. } => "coo",
            Layout::Csr { .. } => "csr",
            Layout::Pairs { .. } => "pairs",
            Layout::Decoded => "decoded",
            Layout::Opaque { scheme } => scheme,
        }
    }
}
