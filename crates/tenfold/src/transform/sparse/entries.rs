//! The entries of each sparse layout: their places in the dense tensor, and their values.

use bytes::Bytes;

use super::broken;
use crate::error::{Error, Result};
use crate::format::Form;
use crate::model::{DType, Endian, Layout, PairIndex, Part, Role, Scalar, TensorInfo};
use crate::prelude::*;
use crate::transform::elements::ElementMap;
use crate::transform::{Data, View, as_size};

/// The places in the order of the file, and the values in the wanted form.
pub(super) fn read(
    data: Data<'_>,
    tensor: &TensorInfo,
    form: &Form,
    strides: &[u64],
) -> Result<(Vec<u64>, Bytes)> {
    match &tensor.layout {
        Layout::Coo { nnz } => Ok((
            coo(data, tensor, *nnz, strides)?,
            values(data, tensor, form)?,
        )),
        Layout::Csr { nnz } => Ok((
            csr(data, tensor, *nnz, strides)?,
            values(data, tensor, form)?,
        )),
        Layout::Pairs { nnz, index, .. } => pairs(data, tensor, form, *nnz, *index, strides),
        _ => Err(Error::argument("not a sparse layout")),
    }
}

fn coo(data: Data<'_>, tensor: &TensorInfo, nnz: u64, strides: &[u64]) -> Result<Vec<u64>> {
    let coords = integers(data, tensor, &Role::Coords)?;
    // A scalar has no coordinates that could show a count to be wrong.
    if tensor.elements().is_none_or(|elements| nnz > elements) {
        return Err(broken(format!("{nnz} entries, more than elements")));
    }
    let nnz = as_size(nnz)?;
    if nnz.checked_mul(tensor.shape.len()) != Some(coords.len()) {
        let message = format!(
            "{} coordinates for {nnz} entries of {} dimensions",
            coords.len(),
            tensor.shape.len()
        );
        return Err(broken(message));
    }
    let mut places = vec![0; nnz];
    for (dim, indices) in coords.chunks_exact(nnz.max(1)).enumerate() {
        for (n, &index) in indices.iter().enumerate() {
            places[n] += in_range(tensor, dim, n, index)? * strides[dim];
        }
    }
    Ok(places)
}

fn csr(data: Data<'_>, tensor: &TensorInfo, nnz: u64, strides: &[u64]) -> Result<Vec<u64>> {
    let &[rows, _] = tensor.shape.as_slice() else {
        return Err(broken(format!(
            "rows are stored for a tensor of {} dimensions",
            tensor.shape.len()
        )));
    };
    let starts = integers(data, tensor, &Role::Indptr)?;
    let columns = integers(data, tensor, &Role::Indices)?;
    if starts.len() as u64 != rows.saturating_add(1) || columns.len() as u64 != nnz {
        let message = format!(
            "indptr has {} entries for {rows} rows, indices {} for {nnz} values",
            starts.len(),
            columns.len()
        );
        return Err(broken(message));
    }
    if starts.first() != Some(&0) || starts.last() != Some(&i128::from(nnz)) || !starts.is_sorted()
    {
        return Err(broken(format!("indptr must rise from 0 to {nnz}")));
    }
    let mut places = Vec::new();
    for (row, bounds) in starts.windows(2).enumerate() {
        // Rising from 0 to the number of columns, so both fit.
        let bounds =
            usize::try_from(bounds[0]).unwrap_or(0)..usize::try_from(bounds[1]).unwrap_or(0);
        for n in bounds {
            let column = in_range(tensor, 1, n, columns[n])?;
            places.push(row as u64 * strides[0] + column * strides[1]);
        }
    }
    Ok(places)
}

/// Records of indices and a value in one part.
fn pairs(
    data: Data<'_>,
    tensor: &TensorInfo,
    form: &Form,
    nnz: u64,
    index: PairIndex,
    strides: &[u64],
) -> Result<(Vec<u64>, Bytes)> {
    let part = role(tensor, &Role::Values)?;
    let width = part
        .dtype
        .width()
        .ok_or_else(|| broken("values without a size"))?;
    let indices = match index {
        PairIndex::Axes => tensor.shape.len(),
        PairIndex::ColumnMajor | PairIndex::RowMajor => 1,
    };
    let record = indices * 8 + width;
    let bytes = View::decoded(data, &part.payload)?.collect(data.limits.tensor_memory)?;
    if bytes.len() as u64 != nnz.saturating_mul(record as u64) {
        return Err(broken(format!(
            "{} bytes for {nnz} records of {record}",
            bytes.len()
        )));
    }
    let mut places = Vec::new();
    let mut values = Vec::new();
    for (n, record) in bytes.chunks_exact(record).enumerate() {
        let (index_bytes, value) = record.split_at(indices * 8);
        let mut numbers = index_bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| i128::from(u64::from_le_bytes(*bytes)));
        let place = if index == PairIndex::Axes {
            numbers.enumerate().try_fold(0, |sum, (dim, index)| {
                Ok::<u64, Error>(sum + in_range(tensor, dim, n, index)? * strides[dim])
            })?
        } else {
            let elements = tensor.elements().unwrap_or(0);
            let single = numbers
                .next()
                .and_then(|index| u64::try_from(index).ok())
                .unwrap_or(u64::MAX);
            if single >= elements {
                return Err(broken(format!(
                    "entry {n}: index {single}, there are {elements} elements"
                )));
            }
            place_of(single, index, &tensor.shape, strides)
        };
        places.push(place);
        values.extend_from_slice(value);
    }
    ElementMap::new(part.dtype, part.endian, form.dtype, form.endian)?.apply(&mut values, None)?;
    Ok((places, values.into()))
}

/// The place of the element with a single index, which is in range.
fn place_of(mut single: u64, index: PairIndex, shape: &[u64], strides: &[u64]) -> u64 {
    let mut place = 0;
    let mut step = |(dim, stride): (&u64, &u64)| {
        place += single % dim * stride;
        single /= dim;
    };
    let dims = shape.iter().zip(strides);
    match index {
        PairIndex::ColumnMajor => dims.for_each(&mut step),
        _ => dims.rev().for_each(&mut step),
    }
    place
}

/// The numbers of an index part, whatever integers they are stored as.
fn integers(data: Data<'_>, tensor: &TensorInfo, which: &Role) -> Result<Vec<i128>> {
    let part = role(tensor, which)?;
    let signed = matches!(
        part.dtype,
        DType::Number(Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64, _)
    );
    let wide = if signed { DType::I64 } else { DType::U64 };
    let bytes = View::part(data, part, wide, Endian::Little)?.collect(data.limits.tensor_memory)?;
    let numbers = bytes.as_chunks::<8>().0.iter();
    Ok(match signed {
        true => numbers
            .map(|bytes| i64::from_le_bytes(*bytes).into())
            .collect(),
        false => numbers
            .map(|bytes| u64::from_le_bytes(*bytes).into())
            .collect(),
    })
}

fn in_range(tensor: &TensorInfo, dim: usize, n: usize, index: i128) -> Result<u64> {
    let len = tensor.shape.get(dim).copied().unwrap_or(0);
    match u64::try_from(index) {
        Ok(index) if index < len => Ok(index),
        _ => Err(broken(format!(
            "entry {n}: index {index} along dimension {dim}, which has length {len}"
        ))),
    }
}

fn values(data: Data<'_>, tensor: &TensorInfo, form: &Form) -> Result<Bytes> {
    let part = role(tensor, &Role::Values)?;
    Ok(View::part(data, part, form.dtype, form.endian)?
        .collect(data.limits.tensor_memory)?
        .into())
}

fn role<'t>(tensor: &'t TensorInfo, role: &Role) -> Result<&'t Part> {
    tensor
        .part(role)
        .ok_or_else(|| broken(format!("there is no part {:?}", role.name())))
}
