//! The numbers of a tensor: what statistics and comparisons are made of.

use crate::archive::{Archive, Tensor};
use crate::error::{Error, Result};
use crate::format::{Form, Want};
use crate::model::{DType, Endian, Lanes, Layout, Scalar, Selection, Slice, TensorInfo};
use crate::prelude::*;
use crate::transform::{BLOCK, Numbers, View};

/// Numbers of a chunk, a whole number of blocks.
pub(in crate::ops) const CHUNK: u64 = 32 * BLOCK as u64;

/// A tensor's numbers: dense, little-endian, quantized ones decoded.
pub(in crate::ops) struct Values<'a> {
    pub(in crate::ops) view: View<'a>,
    pub(in crate::ops) numbers: Numbers,
    /// Numbers of an element.
    pub(in crate::ops) lanes: u64,
    pub(in crate::ops) elements: u64,
    /// Whether it costs next to nothing to open them again.
    pub(in crate::ops) is_light: bool,
}

impl<'a> Values<'a> {
    /// In row-major order; in the stored one if `any_order`, which spares the exchange of rows and columns.
    pub(in crate::ops) fn open(
        archive: &'a Archive,
        tensor: &Tensor<'_>,
        any_order: bool,
    ) -> Result<Self> {
        Self::of(archive, tensor.info(), any_order).map_err(|error| tensor.blame(error))
    }

    /// In row-major order, up to this index in every dimension.
    pub(in crate::ops) fn open_part(
        archive: &'a Archive,
        tensor: &Tensor<'_>,
        shape: &[u64],
    ) -> Result<Self> {
        Self::part(archive, tensor.info(), shape).map_err(|error| tensor.blame(error))
    }

    fn part(archive: &'a Archive, info: &TensorInfo, shape: &[u64]) -> Result<Self> {
        let info = decoded(info.readable()?);
        let (scalar, lanes) = numbers(&info)?;
        let slices: Vec<_> = (shape.iter())
            .map(|&end| Slice::range(0, i64::try_from(end).unwrap_or(i64::MAX)))
            .collect();
        let selection = Selection::new(&slices, &info.shape)?;
        let elements = selection.elements().unwrap_or(0);
        Ok(Self {
            is_light: View::is_light(
                archive.data(),
                &info,
                &Want::Dense(Form::canonical(info.dtype)),
            ),
            view: View::selected(archive.data(), &info, info.dtype, selection)?,
            numbers: Numbers::new(scalar),
            lanes: u64::from(lanes.count()),
            elements,
        })
    }

    fn of(archive: &'a Archive, info: &TensorInfo, any_order: bool) -> Result<Self> {
        let info = decoded(info.readable()?);
        let (scalar, lanes) = numbers(&info)?;
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
            is_light: view.has_frames()
                || View::is_light(archive.data(), &info, &Want::Dense(form)),
            view,
            numbers: Numbers::new(scalar),
            lanes: u64::from(lanes.count()),
            elements: info.elements().unwrap_or(0),
        })
    }

    pub(in crate::ops) fn count(&self) -> u64 {
        self.elements.saturating_mul(self.lanes)
    }

    /// Bytes of a chunk of [`CHUNK`] numbers.
    pub(in crate::ops) fn chunk(&self) -> u64 {
        self.numbers.len_of(CHUNK)
    }
}

/// What the elements are, and how many numbers each of them has.
fn numbers(info: &TensorInfo) -> Result<(Scalar, Lanes)> {
    match info.dtype {
        DType::Number(scalar, lanes) => Ok((scalar, lanes)),
        other => Err(Error::unsupported(
            "numbers",
            format!("tenfold cannot read {other} as numbers"),
        )),
    }
}

/// Bytes of a tensor's numbers, where it has some.
pub(in crate::ops) fn numbers_len(info: &TensorInfo) -> u64 {
    let DType::Number(..) = number_type(info) else {
        return 0;
    };
    let len = (info.elements()).and_then(|elements| number_type(info).bytes_for(elements));
    len.unwrap_or(0)
}

/// The type of the numbers that a tensor stands for.
pub(in crate::ops) fn number_type(info: &TensorInfo) -> DType {
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
