//! What extensions hold: arrays and complex numbers.

use super::dtypes;
use crate::error::{Error, Result};
use crate::formats::narrow::Narrow;
use crate::io::{Limits, Source};
use crate::model::{
    Chunks, DType, Layout, Part, Payload, Role, Shape, SourceId, TensorInfo, Value, element_count,
};
use crate::prelude::*;
use crate::wire::msgpack::{Decoder, Item};

/// An array: what it is, and where its bytes are.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) shape: Shape,
    pub(super) dtype: DType,
    /// What an element is stored as.
    stored: DType,
    pub(super) data: Range<u64>,
}

impl Array {
    /// The body of an extension of so many bytes, from its first byte to its last.
    pub(super) fn parse(d: &mut Decoder<'_>, len: u32, limits: &Limits) -> Result<Self> {
        let body = body(d, len)?;
        let wrong = |message: String| Error::malformed("flax.array", message).at(body.clone());
        match d.item("an array")? {
            Item::Array(3) => {}
            other => {
                let message = format!(
                    "{}, expected an array of shape, dtype and bytes",
                    other.what()
                );
                return Err(wrong(message));
            }
        }
        let shape = match d.item("a shape")? {
            Item::Array(rank) => {
                let rank = d.count(rank, 1, "a shape")?;
                if rank > limits.rank {
                    let message = format!("{rank} dimensions, the limit is {}", limits.rank);
                    let error = Error::limit("flax.rank", message).at(body.clone());
                    return Err(error.raised_by("rank", rank as u64));
                }
                dims(d, rank)?
            }
            other => {
                return Err(wrong(format!(
                    "the shape is {}, expected an array",
                    other.what()
                )));
            }
        };
        let at = d.pos();
        let name = match d.item("a dtype")? {
            Item::Text(len) if len <= 64 => d.announced(len, "a dtype")?,
            other => {
                return Err(wrong(format!(
                    "the dtype is {}, expected a short str",
                    other.what()
                )));
            }
        };
        let Some((dtype, stored)) = dtypes::known(&name) else {
            let message = format!("dtype {name:?}, which is not read");
            return Err(Error::unsupported("flax.dtype", message).at(at..d.pos()));
        };
        let data = match d.item("the bytes of an array")? {
            Item::Bin(len) => d.skip(len, "the bytes of an array")?,
            other => {
                return Err(wrong(format!(
                    "its bytes are {}, expected a bin",
                    other.what()
                )));
            }
        };
        if d.pos() != body.end {
            let (found, end) = (d.pos(), body.end);
            return Err(wrong(format!(
                "the three values end at byte {found}, the extension at {end}"
            )));
        }
        let array = Self {
            shape,
            dtype,
            stored,
            data,
        };
        let found = array.data.end - array.data.start;
        let expected = array.len(&array.shape, &body)?;
        if found != expected {
            let message = format!("{found} bytes, {name} of {:?} has {expected}", array.shape);
            return Err(Error::malformed("flax.size", message).at(array.data));
        }
        Ok(array)
    }

    /// Bytes of so many elements in the file.
    fn len(&self, shape: &[u64], at: &Range<u64>) -> Result<u64> {
        // Other sizes count beside one of 0: strides are made of them.
        let others: Vec<u64> = shape.iter().copied().filter(|dim| *dim > 0).collect();
        let most = element_count(&others).and_then(|count| self.stored.bytes_for(count));
        let len = element_count(shape).and_then(|count| self.stored.bytes_for(count));
        match (len, most) {
            (Some(len), Some(most)) if i64::try_from(most).is_ok() => Ok(len),
            _ => {
                let message = format!("shape {shape:?} has more bytes than 63 bits can count");
                Err(Error::malformed("flax.overflow", message).at(at.clone()))
            }
        }
    }

    /// The tensor that it is.
    pub(super) fn tensor(
        self,
        name: String,
        source: &Arc<dyn Source>,
        limits: &Limits,
    ) -> Result<TensorInfo> {
        let shape = self.shape.clone();
        join(name, shape, vec![self], source, limits)
    }
}

/// Where the bytes of an extension are, which follow.
fn body(d: &Decoder<'_>, len: u32) -> Result<Range<u64>> {
    d.count(len, 1, "an extension")?;
    Ok(d.pos()..d.pos() + u64::from(len))
}

fn dims(d: &mut Decoder<'_>, rank: usize) -> Result<Shape> {
    let mut shape = Shape::new();
    for _ in 0..rank {
        let at = d.pos();
        match d.item("a dimension")? {
            Item::Integer(dim @ 0..) => shape.push(dim.unsigned_abs()),
            other => {
                let message = format!("a dimension of {}, expected a number from 0", other.what());
                return Err(Error::malformed("flax.shape", message).at(at..d.pos()));
            }
        }
    }
    Ok(shape)
}

/// An array in chunks, each of which has one dimension.
pub(super) fn join(
    name: String,
    shape: Shape,
    chunks: Vec<Array>,
    source: &Arc<dyn Source>,
    limits: &Limits,
) -> Result<TensorInfo> {
    let at = chunks.first().map_or(0..0, |first| first.data.clone());
    let refuse = |message: String| Err(Error::malformed("flax.chunks", message).at(at.clone()));
    let Some(first) = chunks.first() else {
        return refuse("an array in no chunks".to_owned());
    };
    let (dtype, stored) = (first.dtype, first.stored);
    if let Some(other) = chunks.iter().find(|chunk| chunk.dtype != dtype) {
        return refuse(format!("chunks of {dtype} and of {}", other.dtype));
    }
    let expected = first.len(&shape, &at)?;
    let found = chunks.iter().fold(0u64, |sum, chunk| {
        sum.saturating_add(chunk.data.end - chunk.data.start)
    });
    if found != expected {
        return refuse(format!(
            "the chunks have {found} bytes, {dtype} of {shape:?} has {expected}"
        ));
    }
    let mut ranges: Vec<Range<u64>> = chunks.into_iter().map(|chunk| chunk.data).collect();
    let payload = match (dtype, stored.width(), ranges.as_slice()) {
        (DType::Number(scalar, _), ..) if scalar.bits() < 8 => {
            ranges.retain(|range| !range.is_empty());
            let elements = element_count(&shape).unwrap_or(0);
            Payload::Lazy {
                len: dtype.bytes_for(elements).unwrap_or(0),
                maker: Arc::new(Narrow {
                    id: SourceId::MAIN,
                    source: source.clone(),
                    ranges,
                    bits: scalar.bits(),
                    is_strict: false,
                    limit: limits.tensor_memory,
                }),
            }
        }
        (_, _, [only]) => Payload::main(only.clone()),
        (_, Some(width), _) => {
            let pieces = ranges.into_iter().map(|range| {
                let elements = (range.end - range.start) / width as u64;
                (Payload::main(range), elements)
            });
            match Chunks::joined(pieces.collect(), width) {
                Some(chunks) => Payload::Chunks(Arc::new(chunks)),
                None => return refuse("chunks that cannot be counted".to_owned()),
            }
        }
        _ => return refuse(format!("chunks of {dtype}")),
    };
    let mut tensor = TensorInfo::new(name, dtype, shape, Layout::RowMajor);
    tensor.parts = Part::new(Role::Values, dtype, payload).into();
    Ok(tensor)
}

/// A complex number: its two parts.
pub(super) fn complex(d: &mut Decoder<'_>, len: u32) -> Result<Value> {
    let body = body(d, len)?;
    let head = d.item("a complex number")?;
    let mut part = || -> Result<Option<f64>> {
        Ok(match d.item("a part of a complex number")? {
            Item::F64(number) => Some(number),
            Item::F32(number) => Some(number.into()),
            _ => None,
        })
    };
    if head == Item::Array(2)
        && let (Some(real), Some(imaginary)) = (part()?, part()?)
        && d.pos() == body.end
    {
        return Ok(Value::from([real, imaginary]));
    }
    let message = "a complex number that is not an array of two floats";
    Err(Error::malformed("flax.complex", message).at(body))
}
