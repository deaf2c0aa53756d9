//! A tensor in memory, to be put into an archive.

use bytes::Bytes;

use crate::model::DType;
use crate::prelude::*;
use crate::typed::{Element, Typed};

/// A tensor in memory: elements of a Rust type, row-major, with their shape.
///
/// ```
/// use tenfold::Values;
/// let table = Values::new([2, 3], vec![1f32; 6]); // the vector itself, not a copy
/// let line = Values::from([1i64, 2, 3]); // one dimension
/// # let _ = (table, line);
/// ```
#[derive(Clone, Debug)]
pub struct Values {
    pub(super) dtype: DType,
    pub(super) shape: Vec<u64>,
    /// In this machine's byte order.
    pub(super) bytes: Bytes,
}

impl Values {
    /// Elements and their shape, outermost dimension first. Whether their number fits the shape is checked when the
    /// tensor is added to an archive, where it has a name.
    pub fn new<T: Element>(shape: impl AsRef<[u64]>, elements: impl Into<Typed<T>>) -> Self {
        Self {
            dtype: T::DTYPE,
            shape: shape.as_ref().to_vec(),
            bytes: elements.into().into_bytes(),
        }
    }

    fn line<T: Element>(elements: impl Into<Typed<T>>) -> Self {
        let elements = elements.into();
        Self::new([elements.len() as u64], elements)
    }
}

macro_rules! lines {
    ($($from:ty $(, $n:ident)?;)*) => {$(
        impl<T: Element $(, const $n: usize)?> From<$from> for Values {
            /// One dimension.
            fn from(elements: $from) -> Self {
                Self::line(elements)
            }
        }
    )*};
}

lines! {
    Vec<T>;
    &Vec<T>;
    &[T];
    Box<[T]>;
    [T; N], N;
    &[T; N], N;
    Typed<T>;
}
