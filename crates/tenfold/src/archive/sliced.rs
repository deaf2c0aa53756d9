//! Some elements of a tensor.

use bytes::Bytes;

use super::Tensor;
use crate::error::Result;
use crate::model::{DType, Layout, Selection, Slice, TensorInfo};
use crate::prelude::*;
use crate::transform::View;

/// Some elements of a tensor, see [`Tensor::slice`].
///
/// Of a file, little more is read than these elements take: what lies between two of them where that is little, whole
/// frames of compressed data, whole blocks of quantized data. Compressed data without a table of its frames is decoded from
/// the beginning. Of a sparse tensor the indices are looked at, and the values only where they are wanted.
#[derive(Clone, Debug)]
pub struct Sliced<'a> {
    tensor: Tensor<'a>,
    selection: Selection,
    dtype: DType,
}

impl<'a> Sliced<'a> {
    pub(crate) fn new(tensor: Tensor<'a>, slices: &[Slice]) -> Result<Self> {
        let selection = Selection::new(slices, &tensor.info().shape)
            .map_err(|error| error.in_tensor(tensor.name()))?;
        Self::of(tensor, selection)
    }

    pub(crate) fn of(tensor: Tensor<'a>, selection: Selection) -> Result<Self> {
        let info = tensor.info().readable()?;
        let dtype = match &info.decoder {
            Some(decoder) if info.layout != Layout::Decoded => decoder.dtype(),
            _ => info.dtype,
        };
        Ok(Self {
            tensor,
            selection,
            dtype,
        })
    }

    /// The type of the elements: that of the tensor, or of the numbers that a quantized one stands for.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The dimensions that are left, outermost first.
    pub fn shape(&self) -> Vec<u64> {
        self.selection.shape()
    }

    /// How many elements there are; `None` where that does not fit 64 bits.
    pub fn elements(&self) -> Option<u64> {
        self.selection.elements()
    }

    /// Whether it is the whole tensor in its own order.
    pub fn is_whole(&self) -> bool {
        self.selection.is_whole()
    }

    /// Only the first and the last `n` along every dimension that has more than twice as many: enough to show it.
    #[must_use]
    pub fn edges(mut self, n: u64) -> Self {
        self.selection = self.selection.edges(n);
        self
    }

    /// Gives the elements piece by piece, row-major, little-endian, in bounded memory. Every piece holds whole elements,
    /// and those below a byte are packed with the first in the lowest bits.
    pub fn stream(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.tensor.pieces(&self.view()?, put)
    }

    /// All of it in memory, within [`Limits::tensor_memory`](crate::io::Limits::tensor_memory).
    pub fn to_bytes(&self) -> Result<Bytes> {
        self.tensor.collect(&self.view()?)
    }

    fn view(&self) -> Result<View<'a>> {
        let info = self.tensor.info();
        let decoded;
        let info = if info.decoder.is_some() && info.layout != Layout::Decoded {
            decoded = TensorInfo {
                dtype: self.dtype,
                layout: Layout::Decoded,
                ..info.clone()
            };
            &decoded
        } else {
            info
        };
        let data = self.tensor.archive().data();
        View::selected(data, info, self.dtype, self.selection.clone())
            .map_err(|error| self.tensor.blame(error))
    }
}
