//! Single elements of a tensor, without expanding it.

use core::cmp::Ordering;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::Form;
use crate::model::{Layout, Operation, PairIndex, Payload, Role, TensorInfo};
use crate::prelude::*;
use crate::transform::elements::ElementMap;
use crate::transform::operation::Apply;
use crate::transform::orbit::Orbits;
use crate::transform::packed::Unpack;
use crate::transform::strides::strides;
use crate::transform::{Data, Input, PIECE, Scatter, View, as_size};

/// Finds elements of a tensor by their indices.
pub(crate) struct Random<'a> {
    shape: Vec<u64>,
    /// Bytes of an element before the map.
    width: usize,
    map: ElementMap,
    place: Place<'a>,
}

enum Place<'a> {
    /// Every element has its place; how far a step along each dimension goes.
    Dense(Input<'a>, Vec<u64>),
    Packed(Unpack<'a>),
    /// Sorted records, searched in the file.
    Records(Records<'a>),
    /// Entries in memory, and how far a step along each dimension goes.
    Entries(Scatter, Vec<u64>),
    /// Pieces of the dense form, and how far a step along each dimension goes there.
    View(Box<View<'a>>, Vec<u64>),
}

impl<'a> Random<'a> {
    pub(crate) fn new(data: Data<'a>, tensor: &TensorInfo) -> Result<Self> {
        let mut width = tensor.dtype.width().ok_or_else(|| {
            let message = format!("{} has no elements that can be read alone", tensor.dtype);
            Error::unsupported("element", message)
        })?;
        let rows = strides(&tensor.shape, false)?;
        let form = Form::canonical(tensor.dtype);
        let mut map = ElementMap::identity();
        let place = match (&tensor.layout, tensor.part(&Role::Values)) {
            (layout @ (Layout::RowMajor | Layout::ColumnMajor), Some(values))
                if values.dtype == tensor.dtype
                    && tensor.dense_len() == Some(values.payload.len())
                    && !matches!(values.payload, Payload::Encoded { .. }) =>
            {
                map = ElementMap::new(values.dtype, values.endian, form.dtype, form.endian)?;
                let strides = strides(&tensor.shape, *layout == Layout::ColumnMajor)?;
                Place::Dense(data.input(&values.payload)?, strides)
            }
            (Layout::Packed(symmetry), _) => {
                let unpack = Unpack::new(data, tensor, symmetry, true)?;
                let (dtype, endian) = unpack.stored_as();
                map = ElementMap::new(dtype, endian, form.dtype, form.endian)?;
                width = dtype.width().unwrap_or(width);
                Place::Packed(unpack)
            }
            (Layout::Coo { .. } | Layout::Csr { .. } | Layout::Pairs { .. }, _) => {
                let dtype = tensor.stored_dtype();
                width = dtype.width().unwrap_or(width);
                match Records::new(data, tensor)? {
                    Some(records) => {
                        map = ElementMap::new(dtype, records.endian, form.dtype, form.endian)?;
                        Place::Records(records)
                    }
                    None => {
                        map = ElementMap::new(dtype, form.endian, form.dtype, form.endian)?;
                        let mut scatter = Scatter::load(data, tensor, &Form::canonical(dtype))?;
                        scatter.complete()?;
                        Place::Entries(scatter, rows)
                    }
                }
            }
            _ => {
                let view = View::dense(data, tensor, &form)?;
                match view.is_random() {
                    true => Place::View(Box::new(view), rows),
                    // It cannot be entered in the middle: held whole.
                    false => {
                        let whole = view.collect(data.limits.tensor_memory)?;
                        Place::Dense(Input::Memory(whole.into()), rows)
                    }
                }
            }
        };
        Ok(Self {
            shape: tensor.shape.clone(),
            width,
            map,
            place,
        })
    }

    /// One element, little-endian.
    pub(crate) fn get(&self, index: &[u64]) -> Result<Bytes> {
        let inside = index.len() == self.shape.len()
            && index.iter().zip(&self.shape).all(|(i, dim)| i < dim);
        if !inside {
            let message = format!("there is no element {index:?} in shape {:?}", self.shape);
            return Err(Error::argument(message));
        }
        let mut element = vec![0; self.width];
        let at = |strides: &[u64]| {
            let places = index.iter().zip(strides).map(|(i, stride)| i * stride);
            places.sum::<u64>() * self.width as u64
        };
        match &self.place {
            Place::Dense(input, strides) => input.read_into(at(strides), &mut element)?,
            Place::Packed(unpack) => unpack.element(index, &mut element)?,
            Place::Records(records) => records.find(index, &mut element)?,
            Place::Entries(scatter, strides) => scatter.read_into(at(strides), &mut element),
            Place::View(view, strides) => {
                let at = at(strides);
                let from = at - at % view.step();
                let mut piece = Vec::new();
                view.read(from, view.step().min(view.len() - from), &mut piece)?;
                let start = as_size(at - from)?;
                element.copy_from_slice(&piece[start..start + self.width]);
            }
        }
        self.map.apply(&mut element, None)?;
        Ok(element.into())
    }
}

/// Records of indices and values that rise, so that one is found by halving.
struct Records<'a> {
    input: Input<'a>,
    count: u64,
    /// Numbers of an index.
    numbers: usize,
    record: u64,
    endian: crate::model::Endian,
    index: PairIndex,
    strides: Vec<u64>,
    orbits: Orbits,
    apply: Vec<Option<Apply>>,
    most: usize,
}

impl<'a> Records<'a> {
    /// The records of a tensor, if they are stored as they are and rise. Goes over them once.
    fn new(data: Data<'a>, tensor: &TensorInfo) -> Result<Option<Self>> {
        let Layout::Pairs { nnz, index, orbits } = &tensor.layout else {
            return Ok(None);
        };
        let Some(values) = tensor.part(&Role::Values) else {
            return Ok(None);
        };
        let numbers = match index {
            PairIndex::Axes => tensor.shape.len(),
            PairIndex::ColumnMajor | PairIndex::RowMajor => 1,
        };
        let record = (numbers * 8 + values.dtype.width().unwrap_or(0)) as u64;
        let whole = nnz.checked_mul(record) == Some(values.payload.len());
        if !whole || matches!(values.payload, Payload::Encoded { .. }) {
            return Ok(None);
        }
        let strides = strides(&tensor.shape, *index == PairIndex::ColumnMajor)?;
        let apply = |operation| Apply::new(operation, values.dtype, values.endian).ok();
        let records = Self {
            input: data.input(&values.payload)?,
            count: *nnz,
            numbers,
            record,
            endian: values.endian,
            index: *index,
            orbits: Orbits::new(orbits, values.dtype, &tensor.shape, &strides)?,
            strides,
            apply: Operation::ALL.map(apply).into(),
            most: as_size(data.limits.tensor_memory)? / 16,
        };
        Ok(records.rise()?.then_some(records))
    }

    fn rise(&self) -> Result<bool> {
        let per_piece = (PIECE as u64 / 4 / self.record).max(1);
        let mut last: Option<Vec<u64>> = None;
        let mut first = 0;
        while first < self.count {
            let count = per_piece.min(self.count - first);
            let piece = self.input.read(first * self.record, count * self.record)?;
            for record in piece.chunks_exact(as_size(self.record)?) {
                let key = key(record, self.numbers);
                if last.is_some_and(|last| last >= key) {
                    return Ok(false);
                }
                last = Some(key);
            }
            first += count;
        }
        Ok(true)
    }

    fn find(&self, index: &[u64], element: &mut [u8]) -> Result<()> {
        let place = index
            .iter()
            .zip(&self.strides)
            .map(|(i, stride)| i * stride)
            .sum();
        if self.index == PairIndex::Axes {
            self.value(index, element)?;
            return Ok(());
        }
        for (place, operation) in self.orbits.of(place, self.most)?.places {
            if self.value(&[place], element)? {
                if let Some(Some(apply)) = self.apply.get(operation as usize) {
                    apply.apply(element);
                }
                break;
            }
        }
        Ok(())
    }

    /// The value of the record with this index; false when there is none.
    fn value(&self, wanted: &[u64], element: &mut [u8]) -> Result<bool> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let record = self.input.read(middle * self.record, self.record)?;
            match key(&record, self.numbers).as_slice().cmp(wanted) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => {
                    element.copy_from_slice(&record[self.numbers * 8..]);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// The index of a record.
fn key(record: &[u8], numbers: usize) -> Vec<u64> {
    let all = record.as_chunks::<8>().0.iter();
    all.take(numbers)
        .map(|bytes| u64::from_le_bytes(*bytes))
        .collect()
}
