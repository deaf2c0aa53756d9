//! Quantized parts as numbers, by the tensor's decoder.

use crate::error::{Error, Result};
use crate::model::{DType, Decode, Payload, TensorInfo};
use crate::prelude::*;
use crate::transform::{Data, Input, Tally, View};

/// A tensor whose numbers are made from its parts.
pub(super) struct Decoded<'a> {
    decoder: Arc<dyn Decode>,
    tensor: TensorInfo,
    /// The decoded bytes of the parts: in the file, or in memory where they were compressed.
    inputs: Vec<Input<'a>>,
    /// Elements that have whole bytes together, and those bytes.
    unit: (u64, u64),
}

impl<'a> Decoded<'a> {
    pub(super) fn new(data: Data<'a>, tensor: &TensorInfo) -> Result<Self> {
        let decoder = tensor.decoder.clone().ok_or_else(|| {
            Error::unsupported("dequantize", "how it is quantized is not known here")
        })?;
        let unit = match decoder.dtype() {
            DType::Block(spec) => (spec.elements.into(), spec.bytes.into()),
            dtype => match dtype.width() {
                Some(width) => (1, width as u64),
                None => return Err(Error::unsupported("dequantize", format!("into {dtype}"))),
            },
        };
        let input = |payload: &Payload| match payload {
            // It cannot be entered in the middle: held whole.
            Payload::Encoded { .. } => Ok(Input::Memory(
                View::decoded(data, payload)?
                    .collect(data.limits.tensor_memory)?
                    .into(),
            )),
            payload => data.input(payload),
        };
        let inputs = tensor
            .parts
            .iter()
            .map(|part| input(&part.payload))
            .collect::<Result<_>>()?;
        Ok(Self {
            decoder,
            tensor: tensor.clone(),
            inputs,
            unit,
        })
    }

    pub(super) fn dtype(&self) -> DType {
        self.decoder.dtype()
    }

    /// Bytes of the elements that are decoded together.
    pub(super) fn step_len(&self) -> u64 {
        let (elements, bytes) = self.unit;
        let units = self.decoder.step().div_ceil(elements).max(1);
        units.saturating_mul(bytes)
    }

    /// The numbers from a byte on that is a multiple of a step.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8], tally: Option<&Tally>) -> Result<()> {
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
