//! Quantized parts as numbers, by the tensor's decoder.

use super::{Arrangement, Opening, Whole};
use crate::error::{Error, Result};
use crate::model::{DType, Decode, Endian, Form, Order, Selection, TensorInfo};
use crate::prelude::*;
use crate::transform::select::{Lines, Selected, Stored};
use crate::transform::strides::strides;
use crate::transform::{Body, Data, Input, Tally, View};

pub(super) struct Quantized;

impl Arrangement for Quantized {
    fn whole<'a, 't>(&self, tensor: &Opening<'a, 't>, order: Order) -> Result<Whole<'a, 't>> {
        let decoded = Decoded::new(tensor.data, tensor.tensor)?;
        let dtype = decoded.dtype();
        if order != Order::RowMajor && tensor.tensor.shape.len() > 1 {
            let message = "quantized tensors are decoded in row-major order only";
            return Err(Error::unsupported("order", message));
        }
        Ok(Whole::Made(Body::Decoded(decoded), dtype, Endian::Little))
    }

    fn some<'a>(&self, tensor: &Opening<'a, '_>, selection: Selection) -> Result<Selected<'a>> {
        let dtype = tensor.tensor.stored_dtype();
        let view = View::dense(tensor.data, tensor.tensor, &Form::canonical(dtype))?;
        let steps = strides(&tensor.tensor.shape, Order::RowMajor)?;
        let lines = Lines::new(selection, 0, &steps)?;
        Selected::placed(Stored::view(view, dtype), lines)
    }
}

/// A tensor whose numbers are made from its parts.
pub(in crate::transform) struct Decoded<'a> {
    decoder: Arc<dyn Decode>,
    tensor: TensorInfo,
    /// The decoded bytes of the parts: in the file, or in memory where they were compressed.
    inputs: Vec<Input<'a>>,
    /// Elements that have whole bytes together, and those bytes.
    unit: (u64, u64),
}

impl<'a> Decoded<'a> {
    pub(in crate::transform) fn new(data: Data<'a>, tensor: &TensorInfo) -> Result<Self> {
        let decoder = tensor.decoder.clone().ok_or_else(|| {
            Error::unsupported("dequantize", "tenfold does not know how it is quantized")
        })?;
        let unit = match decoder.dtype() {
            DType::Block(spec) => (spec.elements.into(), spec.bytes.into()),
            dtype => match dtype.width() {
                Some(width) => (1, width as u64),
                None => return Err(Error::unsupported("dequantize", format!("into {dtype}"))),
            },
        };
        let inputs = (tensor.parts.iter())
            .map(|part| data.random_access(&part.payload))
            .collect::<Result<_>>()?;
        Ok(Self {
            decoder,
            tensor: tensor.clone(),
            inputs,
            unit,
        })
    }

    pub(in crate::transform) fn dtype(&self) -> DType {
        self.decoder.dtype()
    }

    /// Bytes of the elements that are decoded together.
    pub(in crate::transform) fn step_len(&self) -> u64 {
        self.len_of(self.decoder.step())
    }

    /// Bytes of the elements that are best decoded together.
    pub(in crate::transform) fn stretch_len(&self) -> u64 {
        self.len_of(self.decoder.stretch())
    }

    fn len_of(&self, count: u64) -> u64 {
        let (elements, bytes) = self.unit;
        count.div_ceil(elements).max(1).saturating_mul(bytes)
    }

    /// The numbers from a byte on that is a multiple of a step.
    pub(in crate::transform) fn read_into(
        &self,
        at: u64,
        out: &mut [u8],
        tally: Option<&Tally>,
    ) -> Result<()> {
        let (unit, bytes) = self.unit;
        let first = at / bytes * unit;
        let elements = first..first + out.len() as u64 / bytes * unit;
        let read = |part: usize, range: Range<u64>| {
            let input = self
                .inputs
                .get(part)
                .ok_or_else(|| Error::argument(format!("there is no part {part}")))?;
            input.read(range.start, range.end.saturating_sub(range.start))
        };
        let decoder = &self.decoder;
        let counts = decoder.decode_counted(&self.tensor, &read, elements, out)?;
        if let Some(tally) = tally {
            tally.add(counts);
        }
        Ok(())
    }
}
