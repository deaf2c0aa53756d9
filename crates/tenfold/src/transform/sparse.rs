//! Sparse to dense: the entries are held in memory, sorted by place, and written out piece by piece.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::Form;
use crate::model::{DType, Endian, Layout, Operation, PairIndex, Part, Role, Scalar, TensorInfo};
use crate::prelude::*;
use crate::transform::elements::ElementMap;
use crate::transform::operation::Apply;
use crate::transform::orbit::Orbits;
use crate::transform::{Data, View, as_size, overflow};

/// The entries of a sparse tensor, sorted by their place in the dense one.
pub(crate) struct Scatter {
    /// The place of an entry, which value it has, and what is done to that.
    entries: Vec<Entry>,
    values: Bytes,
    width: usize,
    sorted: bool,
    orbits: Orbits,
    /// What the operations do to values, in the order of [`Operation::ALL`]; empty without symmetries.
    operations: Vec<Option<Apply>>,
    memory: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    place: u64,
    value: usize,
    operation: Operation,
}

impl Scatter {
    /// Reads and checks the entries: every index in range, no place twice. Entries stand for their places alone until
    /// [`complete`](Self::complete) is called.
    pub(crate) fn load(data: Data<'_>, tensor: &TensorInfo, form: &Form) -> Result<Self> {
        let width = form.dtype.width().ok_or_else(|| {
            Error::unsupported("sparse", format!("sparse elements of {}", form.dtype))
        })?;
        let strides = strides(tensor, &form.layout)?;
        let (places, values) = match &tensor.layout {
            Layout::Coo { nnz } => (
                coo(data, tensor, *nnz, &strides)?,
                values(data, tensor, form)?,
            ),
            Layout::Csr { nnz } => (
                csr(data, tensor, *nnz, &strides)?,
                values(data, tensor, form)?,
            ),
            Layout::Pairs { nnz, index, .. } => pairs(data, tensor, form, *nnz, *index, &strides)?,
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
        let mut entries: Vec<_> = (places.into_iter().enumerate())
            .map(|(value, place)| Entry {
                place,
                value,
                operation: Operation::Same,
            })
            .collect();
        let sorted = entries.is_sorted_by_key(|entry| entry.place);
        entries.sort_unstable_by_key(|entry| (entry.place, entry.value));
        if let Some([a, b]) = first_shared_place(&entries) {
            let message = format!("entries {} and {} have the same place", a.value, b.value);
            return Err(broken(message));
        }
        let symmetries = match &tensor.layout {
            Layout::Pairs { orbits, .. } => orbits.as_slice(),
            _ => &[],
        };
        let operations = match symmetries.is_empty() {
            true => Vec::new(),
            false => Operation::ALL
                .map(|operation| Apply::new(operation, form.dtype, form.endian).ok())
                .into(),
        };
        Ok(Self {
            entries,
            values,
            width,
            sorted,
            orbits: Orbits::new(symmetries, form.dtype, &tensor.shape, &strides)?,
            operations,
            memory: data.limits.tensor_memory,
        })
    }

    /// Adds the entries at all places that symmetries move the stored ones to, after checking that no two stored ones
    /// are the same, and that a value which its own symmetries negate is 0.
    pub(crate) fn complete(&mut self) -> Result<()> {
        if self.orbits.is_trivial() {
            return Ok(());
        }
        let most = as_size(self.memory)? / size_of::<Entry>();
        let mut all = Vec::new();
        for entry in &self.entries {
            let orbit = self
                .orbits
                .of(entry.place, most.saturating_sub(all.len()))?;
            self.check_value(entry, orbit.is_zero())?;
            all.extend(orbit.places.into_iter().map(|(place, operation)| Entry {
                place,
                operation,
                ..*entry
            }));
        }
        all.sort_unstable_by_key(|entry| (entry.place, entry.value));
        if let Some([a, b]) = first_shared_place(&all) {
            return Err(same_orbit(a, b));
        }
        self.entries = all;
        Ok(())
    }

    /// What [`complete`](Self::complete) checks, without holding what it adds, and whether values that symmetries
    /// conjugate onto themselves are so. Gives up, and says so, where that would take too long.
    pub(crate) fn check_orbits(&self) -> Result<Vec<String>> {
        // Steps: enough for the symmetries of real tensors, a second for a small file that stands for a giant.
        const LEAST: usize = 1 << 26;
        const PER_ENTRY: usize = 1 << 10;
        let steps = LEAST.max(self.entries.len().saturating_mul(PER_ENTRY));
        let mut first: LookupMap<u64, Entry> = LookupMap::default();
        let mut warnings = Vec::new();
        let mut left = steps / self.orbits.cost().max(1);
        for entry in self.entries.iter().filter(|_| !self.orbits.is_trivial()) {
            let Ok(orbit) = self.orbits.of(entry.place, left) else {
                warnings.push("the symmetries of so many elements were not checked".to_owned());
                break;
            };
            left = left.saturating_sub(orbit.places.len());
            self.check_value(entry, orbit.is_zero())?;
            let lowest = orbit.places.iter().map(|(place, _)| *place).min();
            if let Some(other) = first.insert(lowest.unwrap_or(entry.place), *entry) {
                return Err(same_orbit(&other, entry));
            }
            let varies = |operation: &Operation| !self.is_fixed(entry, *operation);
            if let Some(operation) = orbit.fixing.iter().find(|op| varies(op))
                && warnings.is_empty()
            {
                warnings.push(format!(
                    "entry {} is moved onto itself as {operation}, and is not the same then",
                    entry.value
                ));
            }
        }
        Ok(warnings)
    }

    fn check_value(&self, entry: &Entry, must_be_zero: bool) -> Result<()> {
        let same = self.operations.first().and_then(Option::as_ref);
        if must_be_zero && same.is_some_and(|same| !same.is_zero(self.stored_value(entry))) {
            let message = format!(
                "entry {}: its symmetries negate it onto itself, but it is not 0",
                entry.value
            );
            return Err(Error::malformed("orbit", message));
        }
        Ok(())
    }

    fn is_fixed(&self, entry: &Entry, operation: Operation) -> bool {
        let stored = self.stored_value(entry);
        let mut turned = stored.to_vec();
        match self.apply(operation) {
            Some(apply) => {
                apply.apply(&mut turned);
                apply.same(stored, &turned)
            }
            None => true,
        }
    }

    fn stored_value(&self, entry: &Entry) -> &[u8] {
        &self.values[entry.value * self.width..(entry.value + 1) * self.width]
    }

    fn apply(&self, operation: Operation) -> Option<&Apply> {
        self.operations.get(operation as usize)?.as_ref()
    }

    /// Whether the entries were stored in the order of their places.
    pub(crate) fn is_sorted(&self) -> bool {
        self.sorted
    }

    /// Places and values of the entries, by place.
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = (u64, &[u8])> {
        (self.entries.iter()).map(|entry| (entry.place, self.stored_value(entry)))
    }

    /// The place of one of the entries, by place; its value goes into `out`.
    pub(crate) fn entry(&self, n: usize, out: &mut Vec<u8>) -> Option<u64> {
        let entry = self.entries.get(n)?;
        out.clear();
        out.extend_from_slice(self.stored_value(entry));
        if let Some(apply) = self.apply(entry.operation) {
            apply.apply(out);
        }
        Some(entry.place)
    }

    /// The dense bytes from `at` on; `out` comes filled with zeros.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) {
        let width = self.width as u64;
        let first = at / width;
        let end = first + out.len() as u64 / width;
        let from = self.entries.partition_point(|entry| entry.place < first);
        for entry in self.entries[from..]
            .iter()
            .take_while(|entry| entry.place < end)
        {
            // Inside of `out`, so it fits.
            let to = usize::try_from((entry.place - first) * width).unwrap_or(usize::MAX);
            let out = &mut out[to..to + self.width];
            out.copy_from_slice(self.stored_value(entry));
            if let Some(apply) = self.apply(entry.operation) {
                apply.apply(out);
            }
        }
    }
}

fn first_shared_place(sorted: &[Entry]) -> Option<[&Entry; 2]> {
    let pair = sorted
        .windows(2)
        .find(|pair| pair[0].place == pair[1].place)?;
    Some([&pair[0], &pair[1]])
}

fn same_orbit(a: &Entry, b: &Entry) -> Error {
    let message = format!(
        "entries {} and {} stand for the same elements: symmetries move one to the other",
        a.value.min(b.value),
        a.value.max(b.value)
    );
    Error::malformed("orbit", message)
}

/// How far a step along each dimension goes in the dense order.
fn strides(tensor: &TensorInfo, layout: &Layout) -> Result<Vec<u64>> {
    let shape = &tensor.shape;
    if shape.contains(&0) && matches!(tensor.layout, Layout::Pairs { .. }) {
        // Whatever the other lengths are, there is no place.
        return Ok(vec![0; shape.len()]);
    }
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
