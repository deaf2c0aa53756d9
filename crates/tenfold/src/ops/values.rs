//! The numbers of a tensor: what statistics and comparisons are made of.

use crate::archive::{Archive, Tensor};
use crate::error::{Error, Result};
use crate::format::Form;
use crate::model::{DType, Endian, Layout, TensorInfo};
use crate::prelude::*;
use crate::transform::{BLOCK, Numbers, View};

/// Numbers of a chunk, a whole number of blocks.
pub(super) const CHUNK: u64 = 32 * BLOCK as u64;

/// A tensor's numbers: dense, little-endian, quantized ones decoded.
pub(super) struct Values<'a> {
    pub(super) view: View<'a>,
    pub(super) numbers: Numbers,
    /// Numbers of an element.
    pub(super) lanes: u64,
    pub(super) elements: u64,
}

impl<'a> Values<'a> {
    /// In row-major order; in the stored one if `any_order`, which spares the exchange of rows and columns.
    pub(super) fn open(archive: &'a Archive, tensor: &Tensor<'_>, any_order: bool) -> Result<Self> {
        Self::of(archive, tensor.info(), any_order).map_err(|error| tensor.blame(error))
    }

    fn of(archive: &'a Archive, info: &TensorInfo, any_order: bool) -> Result<Self> {
        let info = decoded(info.readable()?);
        let DType::Number(scalar, lanes) = info.dtype else {
            return Err(Error::unsupported(
                "numbers",
                format!("it is {}, which is not known as numbers here", info.dtype),
            ));
        };
        let form = Form {
            dtype: info.dtype,
            order: info
                .layout
                .order()
                .filter(|_| any_order)
                .unwrap_or_default(),
            endian: Endian::Little,
        };
        let view = View::dense(archive.data(), &info, &form)?;
        Ok(Self {
            view,
            numbers: Numbers::new(scalar),
            lanes: u64::from(lanes.count()),
            elements: info.elements().unwrap_or(0),
        })
    }

    pub(super) fn count(&self) -> u64 {
        self.elements.saturating_mul(self.lanes)
    }

    /// Bytes of a chunk of [`CHUNK`] numbers.
    pub(super) fn chunk(&self) -> u64 {
        self.numbers.len_of(CHUNK)
    }
}

/// The type of the numbers that a tensor stands for.
pub(super) fn number_type(info: &TensorInfo) -> DType {
    match &info.decoder {
        Some(decoder) => decoder.dtype(),
        None => info.dtype,
    }
}

/// The tensor as the numbers that it stands for, where it is quantized and that is known.
fn decoded(info: &TensorInfo) -> TensorInfo {
    let mut info = info.clone();
    if let Some(decoder) = &info.decoder
        && !matches!(info.layout, Layout::Decoded)
    {
        info.dtype = decoder.dtype();
        info.layout = Layout::Decoded;
    }
    info
}
