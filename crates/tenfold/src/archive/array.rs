//! Tensors as arrays of the crate `ndarray`, and arrays as tensors.

use ndarray::{Array, ArrayBase, ArrayD, Data, Dimension};

use super::{Sliced, Tensor, Values};
use crate::error::{Error, Result};
use crate::io::as_size;
use crate::prelude::*;
use crate::typed::Element;

impl Tensor<'_> {
    /// The elements as an array of its own, whatever they are stored as, see [`to`](Tensor::to).
    ///
    /// ```
    /// let mut b = tenfold::Archive::builder();
    /// b.tensor("m", [2, 2], [1i8, 2, 3, 4])?;
    /// let archive = b.finish();
    /// assert_eq!(archive.tensor("m")?.array::<f32>()?[[1, 0]], 3.0);
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn array<T: Element>(&self) -> Result<ArrayD<T>> {
        self.slice(&[])?.array()
    }
}

impl Sliced<'_> {
    /// The elements as an array of its own, whatever they are stored as.
    pub fn array<T: Element>(&self) -> Result<ArrayD<T>> {
        let dims = self.shape().into_iter().map(as_size);
        let dims = dims.collect::<Result<Vec<_>>>()?;
        ArrayD::from_shape_vec(dims, self.to_vec()?)
            .map_err(|cause| Error::argument(format!("no array can have this shape: {cause}")))
    }
}

fn shape(dims: &[usize]) -> Vec<u64> {
    dims.iter().map(|&dim| dim as u64).collect()
}

impl<T: Element, D: Dimension> From<Array<T, D>> for Values {
    /// Takes the array's memory if that holds just the array, row-major; else copies it.
    fn from(array: Array<T, D>) -> Self {
        let (dims, len) = (shape(array.shape()), array.len());
        if !array.is_standard_layout() {
            return Values::from(&array);
        }
        let (mut elements, first) = array.into_raw_vec_and_offset();
        elements.drain(..first.unwrap_or(0));
        elements.truncate(len);
        Values::new(dims, elements)
    }
}

impl<T: Element, S: Data<Elem = T>, D: Dimension> From<&ArrayBase<S, D>> for Values {
    /// A copy, row-major.
    fn from(array: &ArrayBase<S, D>) -> Self {
        let elements: Vec<T> = array.iter().copied().collect();
        Values::new(shape(array.shape()), elements)
    }
}
