//! Sparse initializers: values, and the indices of those that are not 0.

use bytes::Bytes;

use super::external::Files;
use super::raw::TensorProto;
use super::tensor;
use super::types::{self, Field as Typed};
use crate::error::{Error, Result};
use crate::format::Context;
use crate::io::{Source, read_exactly};
use crate::model::{DType, Layout, Make, Part, Payload, Role, TensorInfo};
use crate::prelude::*;
use crate::wire::protobuf::{Value, Walker};

/// A `SparseTensorProto`. Its name is that of its values.
#[derive(Debug, Default)]
pub(super) struct SparseTensorProto {
    pub(super) values: TensorProto,
    indices: TensorProto,
    /// Only its dimensions count.
    dense: TensorProto,
}

impl SparseTensorProto {
    pub(super) fn read(w: &mut Walker<'_>, message: &Range<u64>, max_rank: usize) -> Result<Self> {
        let mut sparse = Self::default();
        sparse.dense.at = message.clone();
        w.enter(message);
        while let Some(field) = w.next(message.end)? {
            match (field.number, &field.value) {
                (1, Value::Len(values)) => sparse.values.merge(w, values, max_rank)?,
                (2, Value::Len(indices)) => sparse.indices.merge(w, indices, max_rank)?,
                (3, value) => w.numbers(value, |number| {
                    sparse.dense.dim(number.cast_signed(), max_rank);
                    Ok(())
                })?,
                _ => {}
            }
        }
        Ok(sparse)
    }
}

/// The tensor that a sparse initializer describes.
pub(super) fn describe(
    cx: &mut Context<'_>,
    files: &mut Files,
    sparse: SparseTensorProto,
) -> Result<TensorInfo> {
    let SparseTensorProto {
        mut values,
        indices,
        mut dense,
    } = sparse;
    dense.name.clone_from(&values.name);
    dense.data_type = values.data_type;
    tensor::check_shape(cx, &dense)?;
    tensor::check_shape(cx, &values)?;
    let located = parts(cx, files, &values, &indices, &dense);
    let dtype = types::known(values.data_type).map_or(DType::UNKNOWN, |(dtype, _)| dtype);
    let nnz = values.dims.first().copied().unwrap_or(0);
    let name = core::mem::take(&mut values.name);
    let mut info = TensorInfo::new(name, dtype, dense.dims, Layout::Coo { nnz });
    match located {
        Ok([values, coords]) => {
            info.parts = Part::new(Role::Values, dtype, values).into();
            info.parts.push(Part::new(Role::Coords, DType::U64, coords));
        }
        Err(error) => info.defect = Some(error),
    }
    Ok(info)
}

/// The values, and the indices of every dimension, one dimension after the other.
fn parts(
    cx: &mut Context<'_>,
    files: &mut Files,
    values: &TensorProto,
    indices: &TensorProto,
    dense: &TensorProto,
) -> Result<[Payload; 2]> {
    let refuse = |message: String| dense.refuse("onnx.sparse", message);
    let (dtype, field) = tensor::data_type(values)?;
    let [nnz] = *values.dims.as_slice() else {
        return Err(refuse(format!(
            "the values have shape {:?}, expected a list",
            values.dims
        )));
    };
    let rank = dense.dims.len() as u64;
    let is_linear = match *indices.dims.as_slice() {
        [count] if count == nnz => true,
        [count, dims] if count == nnz && dims == rank => false,
        _ => {
            let message = format!(
                "the indices have shape {:?}, expected [{nnz}] or [{nnz}, {rank}]",
                indices.dims
            );
            return Err(refuse(message));
        }
    };
    if tensor::data_type(indices)?.0 != DType::I64 {
        return Err(refuse("the indices are not of type INT64".to_owned()));
    }
    let values = tensor::locate(cx, files, values, dtype, field)?;
    let indices = match tensor::locate(cx, files, indices, DType::I64, Typed::Int64)? {
        Payload::Lazy { maker, .. } => Stored::Made(maker),
        payload => match payload.stored().map(|(id, range)| (cx.open(id), range)) {
            Some((Some(source), range)) => Stored::At(source, range),
            _ => return Err(refuse("the indices are not stored".to_owned())),
        },
    };
    let len = nnz.checked_mul(rank).and_then(|n| n.checked_mul(8));
    let most = cx.limits().tensor_memory;
    let len = len.ok_or_else(|| refuse("more indices than fit 64 bits".to_owned()))?;
    if len > most {
        let message = format!("the indices take {len} bytes, the limit is {most}");
        return Err(Error::limit("onnx.memory", message).raised_by("tensor_memory", len));
    }
    let coords = Coords {
        indices,
        dims: dense.dims.to_vec(),
        is_linear,
        at: dense.at.clone(),
    };
    let coords = Payload::Lazy {
        len,
        maker: Arc::new(coords),
    };
    Ok([values, coords])
}

/// Where the indices are.
enum Stored {
    At(Arc<dyn Source>, Range<u64>),
    Made(Arc<dyn Make>),
}

/// Makes coordinates of indices, which stand entry by entry, or are places in the dense tensor.
struct Coords {
    indices: Stored,
    dims: Vec<u64>,
    is_linear: bool,
    at: Range<u64>,
}

impl core::fmt::Debug for Coords {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Coords({:?}, {:?})", self.dims, self.at)
    }
}

impl Make for Coords {
    fn make(&self) -> Result<Bytes> {
        let bytes = match &self.indices {
            Stored::At(source, range) => read_exactly(&**source, range.clone())?,
            Stored::Made(maker) => maker.make()?,
        };
        let (indices, _) = bytes.as_chunks::<8>();
        let mut out = Vec::new();
        // How many elements one step along a dimension passes over.
        let mut below: u64 = self.dims.iter().product();
        for (dim, &size) in self.dims.iter().enumerate() {
            below = below.checked_div(size).unwrap_or(0);
            let step = if self.is_linear { 1 } else { self.dims.len() };
            let first = if self.is_linear { 0 } else { dim };
            for index in indices.iter().skip(first).step_by(step) {
                let index = i64::from_le_bytes(*index);
                let Ok(index) = u64::try_from(index) else {
                    let message = format!("an index of {index}, expected 0 or more");
                    return Err(Error::malformed("onnx.sparse", message).at(self.at.clone()));
                };
                let coordinate = match self.is_linear {
                    // The first coordinate of one that is too large is too large, and is refused as any other.
                    true if dim == 0 => index.checked_div(below).unwrap_or(index),
                    true => (index.checked_div(below).unwrap_or(0))
                        .checked_rem(size)
                        .unwrap_or(0),
                    false => index,
                };
                out.extend(coordinate.to_le_bytes());
            }
        }
        Ok(out.into())
    }
}
