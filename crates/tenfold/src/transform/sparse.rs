//! Sparse to dense: the entries are held in memory, sorted by place, and written out piece by piece.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::Form;
use crate::model::{DType, Endian, Layout, Part, Role, Scalar, TensorInfo};
use crate::prelude::*;
use crate::transform::elements::ElementMap;
use crate::transform::{Data, View, as_size, overflow};

/// The entries of a sparse tensor, sorted by their place in the dense one.
pub(crate) struct Scatter {
    /// The place of an entry, and which value it has.
    entries: Vec<(u64, usize)>,
    values: Bytes,
    width: usize,
    sorted: bool,
}

impl Scatter {
    /// Reads and checks the entries: every index in range, no place twice.
    pub(crate) fn load(data: Data<'_>, tensor: &TensorInfo, form: &Form) -> Result<Self> {
        let width = form.dtype.width().ok_or_else(|| {
            Error::unsupported("sparse", format!("sparse elements of {}", form.dtype))
        })?;
        let strides = strides(&tensor.shape, &form.layout)?;
        let (places, values) = match tensor.layout {
            Layout::Coo { nnz } => (
                coo(data, tensor, nnz, &strides)?,
                values(data, tensor, form)?,
            ),
            Layout::Csr { nnz } => (
                csr(data, tensor, nnz, &strides)?,
                values(data, tensor, form)?,
            ),
            Layout::Pairs { nnz, per_axis } => pairs(data, tensor, form, nnz, per_axis, &strides)?,
            _ => return Err(Error::argument("not a sparse layout")),
        };
        if values.len() / width != places.len() {
            let message = format!(
                "{} values for {} indices",
                values.len() / width,
                places.len()
            );
            return Err(broken(message));
        }
        let mut entries: Vec<_> = places
            .into_iter()
            .enumerate()
            .map(|(n, place)| (place, n))
            .collect();
        let sorted = entries.is_sorted();
        entries.sort_unstable();
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(broken(format!(
                "entries {} and {} have the same place",
                pair[0].1, pair[1].1
            )));
        }
        Ok(Self {
            entries,
            values,
            width,
            sorted,
        })
    }

    /// Whether the entries were stored in the order of their places.
    pub(crate) fn is_sorted(&self) -> bool {
        self.sorted
    }

    /// The dense bytes from `at` on; `out` comes filled with zeros.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) {
        let width = self.width as u64;
        let first = at / width;
        let end = first + out.len() as u64 / width;
        let from = self.entries.partition_point(|&(place, _)| place < first);
        for &(place, n) in self.entries[from..]
            .iter()
            .take_while(|&&(place, _)| place < end)
        {
            // Inside of `out`, so it fits.
            let to = usize::try_from((place - first) * width).unwrap_or(usize::MAX);
            out[to..to + self.width]
                .copy_from_slice(&self.values[n * self.width..(n + 1) * self.width]);
        }
    }
}

/// How far a step along each dimension goes in the dense order.
fn strides(shape: &[u64], layout: &Layout) -> Result<Vec<u64>> {
    let mut strides = vec![0; shape.len()];
    let mut next = 1u64;
    let mut set = |dim: usize| -> Result<()> {
        strides[dim] = next;
        next = next
            .checked_mul(shape[dim].max(1))
            .ok_or_else(|| overflow("the number of elements"))?;
        Ok(())
    };
    match layout {
        Layout::ColumnMajor => (0..shape.len()).try_for_each(&mut set)?,
        _ => (0..shape.len()).rev().try_for_each(&mut set)?,
    }
    Ok(strides)
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
    per_axis: bool,
    strides: &[u64],
) -> Result<(Vec<u64>, Bytes)> {
    let part = role(tensor, &Role::Values)?;
    let width = part
        .dtype
        .width()
        .ok_or_else(|| broken("values without a size"))?;
    let indices = if per_axis { tensor.shape.len() } else { 1 };
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
        let place = if per_axis {
            numbers.enumerate().try_fold(0, |sum, (dim, index)| {
                Ok::<u64, Error>(sum + in_range(tensor, dim, n, index)? * strides[dim])
            })?
        } else {
            let elements = tensor.elements().unwrap_or(0);
            let index = numbers
                .next()
                .and_then(|index| u64::try_from(index).ok())
                .unwrap_or(u64::MAX);
            if index >= elements {
                return Err(broken(format!(
                    "entry {n}: index {index}, there are {elements} elements"
                )));
            }
            row_major_place(index, &tensor.shape, strides)
        };
        places.push(place);
        values.extend_from_slice(value);
    }
    ElementMap::new(part.dtype, part.endian, form.dtype, form.endian)?.apply(&mut values)?;
    Ok((places, values.into()))
}

/// The place of the element with a row-major index, which is in range.
fn row_major_place(mut index: u64, shape: &[u64], strides: &[u64]) -> u64 {
    let mut place = 0;
    for (dim, stride) in shape.iter().zip(strides).rev() {
        place += index % dim * stride;
        index /= dim;
    }
    place
}

fn values(data: Data<'_>, tensor: &TensorInfo, form: &Form) -> Result<Bytes> {
    let part = role(tensor, &Role::Values)?;
    Ok(View::part(data, part, form.dtype, form.endian)?
        .collect(data.limits.tensor_memory)?
        .into())
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

fn role<'t>(tensor: &'t TensorInfo, role: &Role) -> Result<&'t Part> {
    tensor
        .part(role)
        .ok_or_else(|| broken(format!("there is no part {:?}", role.name())))
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

fn broken(message: impl Into<String>) -> Error {
    Error::malformed("sparse", message)
}

#[cfg(test)]
mod tests;
