//! A message that is written: fields of the original as they are, and others in between.

use crate::error::{Error, Result};
use crate::format::{Form, Segment, Want};
use crate::model::{DType, SourceId};
use crate::prelude::*;
use crate::wire::protobuf::Encoder;

/// The bytes of a message, in order, and how many they are.
#[derive(Debug, Default)]
pub(super) struct Splice {
    segments: Vec<Segment>,
    len: u64,
}

impl Splice {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn into_segments(self) -> Vec<Segment> {
        self.segments
    }

    /// Bytes of the original, as they are.
    pub(super) fn copy(&mut self, source: SourceId, range: Range<u64>) -> Result<()> {
        self.grow(range.end - range.start)?;
        self.push(Segment::Copy { source, range });
        Ok(())
    }

    /// Fields that `write` writes.
    pub(super) fn fields(&mut self, write: impl FnOnce(&mut Encoder)) -> Result<()> {
        let mut fields = Encoder::new();
        write(&mut fields);
        self.grow(fields.len())?;
        self.push(Segment::Bytes(fields.finish()));
        Ok(())
    }

    /// A message inside of this one.
    pub(super) fn message(&mut self, field: u32, message: Splice) -> Result<()> {
        self.fields(|fields| {
            fields.head(field, message.len);
        })?;
        self.grow(message.len)?;
        for segment in message.segments {
            self.push(segment);
        }
        Ok(())
    }

    /// All elements of a tensor, `len` bytes.
    pub(super) fn data(&mut self, index: usize, dtype: DType, len: u64) -> Result<()> {
        self.grow(len)?;
        self.push(data(index, dtype));
        Ok(())
    }

    fn grow(&mut self, len: u64) -> Result<()> {
        let too_large = || Error::unsupported("onnx.length", "the model does not fit 64 bits");
        self.len = self.len.checked_add(len).ok_or_else(too_large)?;
        Ok(())
    }

    /// Adds bytes that are counted; what continues the last ones is joined with them.
    fn push(&mut self, segment: Segment) {
        match (self.segments.last_mut(), segment) {
            (Some(Segment::Bytes(before)), Segment::Bytes(bytes)) => before.extend(bytes),
            (
                Some(Segment::Copy { source, range }),
                Segment::Copy {
                    source: from,
                    range: next,
                },
            ) if *source == from && range.end == next.start => range.end = next.end,
            (_, Segment::Copy { range, .. }) if range.is_empty() => {}
            (_, segment) => self.segments.push(segment),
        }
    }
}

/// All elements of a tensor.
pub(super) fn data(index: usize, dtype: DType) -> Segment {
    Segment::Tensor {
        index,
        part: 0,
        want: Want::Dense(Form::canonical(dtype)),
        codec: None,
        digest: None,
    }
}
