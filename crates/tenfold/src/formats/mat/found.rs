//! What is found in a file: tensors and text by their names, and how much may be made of it.

use crate::error::{Error, Result};
use crate::io::Limits;
use crate::model::{
    DType, Endian, Kept, Lanes, Layout, Metadata, Part, Payload, Planes, Role, Scalar, Shape,
    SourceId, TensorInfo, Value, element_count,
};
use crate::prelude::*;

/// What may be made of a file of any length, and for every byte of it that is no array's.
const FREE: u64 = 12 << 20;
const FOR_A_BYTE: u64 = 16;
/// What is made for a tensor and for a value, at most, beside their names: lists that grow are there twice.
const TENSOR: u64 = 560;
const VALUE: u64 = 160;

/// What a file holds, as far as it was read.
pub(super) struct Found<'l> {
    pub(super) limits: &'l Limits,
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) metadata: Metadata,
    pub(super) kept: Vec<Kept>,
    /// What was made so far.
    made: u64,
    /// Bytes of the file that were looked at.
    pub(super) read: u64,
}

impl<'l> Found<'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            tensors: Vec::new(),
            metadata: Metadata::new(),
            kept: Vec::new(),
            made: 0,
            read: 0,
        }
    }

    pub(super) fn tensor(&mut self, tensor: TensorInfo, at: &Range<u64>) -> Result<()> {
        let held = tensor.parts.iter().map(|part| match &part.payload {
            Payload::Inline(bytes) => bytes.len() as u64,
            _ => 0,
        });
        let held: u64 = held.sum();
        self.make(TENSOR + tensor.name.len() as u64 + held, at)?;
        push_tight(&mut self.tensors, tensor);
        Ok(())
    }

    pub(super) fn text(&mut self, name: &str, value: Value, at: &Range<u64>) -> Result<()> {
        self.make(VALUE + name.len() as u64, at)?;
        self.metadata.push(name, value);
        Ok(())
    }

    /// Something that is no tensor, and that only this format understands.
    pub(super) fn keep(&mut self, format: &'static str, name: &str, at: &Range<u64>) -> Result<()> {
        self.make(VALUE + name.len() as u64, at)?;
        let kept = Kept::new(format, name, SourceId::MAIN, at.clone());
        push_tight(&mut self.kept, kept);
        Ok(())
    }

    /// Refuses a file of which many times its bytes would be made.
    pub(super) fn make(&mut self, bytes: u64, at: &Range<u64>) -> Result<()> {
        self.made = self.made.saturating_add(bytes);
        if self.made <= FREE.saturating_add(self.read.saturating_mul(FOR_A_BYTE)) {
            return Ok(());
        }
        let message = "it describes many times more than its bytes";
        Err(Error::limit("mat.limit", message).at(at.clone()))
    }

    /// Refuses names that are there twice.
    pub(super) fn unique_names(&self) -> Result<()> {
        let tensors = self.tensors.iter().map(|tensor| tensor.name.as_str());
        let texts = self.metadata.iter().map(|(key, _)| key);
        match crate::model::repeated(tensors.chain(texts)) {
            None => Ok(()),
            Some((_, name)) => {
                let shown = crate::model::brief(name);
                let message = format!("two variables are called {shown}");
                Err(Error::malformed("mat.duplicate", message))
            }
        }
    }
}

/// The dimensions of a variable: two at least, and their product fits.
pub(super) fn shape(dims: &[u64], limits: &Limits, at: &Range<u64>) -> Result<Shape> {
    if dims.len() < 2 {
        let message = format!("{} dimensions, a matrix has two at least", dims.len());
        return Err(Error::malformed("mat.dimensions", message).at(at.clone()));
    }
    if dims.len() > limits.rank {
        let rank = dims.len() as u64;
        let message = format!("{rank} dimensions, the limit is {}", limits.rank);
        let error = Error::limit("mat.rank", message).raised_by("rank", rank);
        return Err(error.at(at.clone()));
    }
    // 16 bytes are the most that an element has.
    if element_count(dims).is_none_or(|count| count.checked_mul(16).is_none()) {
        let message = format!("{dims:?} has more elements than 64 bits can count");
        return Err(Error::malformed("mat.dimensions", message).at(at.clone()));
    }
    Ok(Shape::from(dims))
}

/// Column-major, but for lines, which can be read from the first byte on.
pub(super) fn dense(shape: &[u64]) -> Layout {
    if shape.iter().filter(|dim| **dim != 1).count() < 2 {
        Layout::RowMajor
    } else {
        Layout::ColumnMajor
    }
}

/// A part with the elements that parts of numbers make: one, or one for real and one for imaginary parts.
pub(super) fn values(scalar: Scalar, elements: u64, mut planes: Vec<Part>) -> Part {
    let is_byte = |part: &Part| {
        // Any byte but 0 is true.
        scalar == Scalar::Bool && matches!(part.dtype, DType::U8 | DType::I8)
    };
    let lanes = if planes.len() == 1 {
        Lanes::Real
    } else {
        Lanes::Complex
    };
    let dtype = DType::Number(scalar, lanes);
    if let [only] = planes.as_mut_slice()
        && (only.dtype == dtype || is_byte(only))
    {
        let mut part = Part::new(Role::Values, dtype, only.payload.clone());
        part.endian = only.endian;
        return part;
    }
    let planes = Planes::new(scalar, elements, planes);
    let mut part = Part::new(Role::Values, dtype, Payload::Planes(Arc::new(planes)));
    part.endian = Endian::Little;
    part
}
