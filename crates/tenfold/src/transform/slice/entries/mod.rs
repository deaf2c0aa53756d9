//! The entries of a sparse tensor that a slice wants: indices are looked at piece by piece, values only where they count.

mod records;
mod rows;

use crate::error::{Error, Result};
use crate::model::{Axis, DType, Layout, Part, Role, Scalar, Selection, TensorInfo};
use crate::prelude::*;
use crate::transform::slice::gather::{Gather, Run, Stored};
use crate::transform::{Data, as_size};

/// Entries that are looked at together.
const CHUNK: u64 = 1 << 16;

/// What is not 0 in a slice.
pub(super) struct Entries {
    /// Places in the result, rising, each with the number of its value.
    places: Vec<(u64, usize)>,
    values: Vec<u8>,
    width: usize,
}

impl Entries {
    /// The entries that are selected; `None` where symmetries or a compressed stream want all of them in memory.
    pub(super) fn select(
        data: Data<'_>,
        tensor: &TensorInfo,
        dtype: DType,
        selection: &Selection,
    ) -> Result<Option<Self>> {
        let Some(width) = dtype.width() else {
            let message = format!("sparse elements of {dtype}");
            return Err(Error::unsupported("sparse", message));
        };
        let most = as_size(data.limits.tensor_memory)? / (width + size_of::<(u64, usize)>());
        let mut search = Search {
            data,
            tensor,
            dtype,
            axes: &selection.axes,
            most,
            wanted: Vec::new(),
            values: Vec::new(),
        };
        let known = match &tensor.layout {
            Layout::Coo { nnz } => search.coo(*nnz)?,
            Layout::Csr { nnz } => search.csr(*nnz)?,
            Layout::Pairs { nnz, index, orbits } if orbits.is_empty() => {
                search.pairs(*nnz, *index)?
            }
            _ => false,
        };
        if !known {
            return Ok(None);
        }
        let mut places: Vec<(u64, usize)> = (search.wanted.iter().enumerate())
            .map(|(n, &(place, _))| (place, n))
            .collect();
        places.sort_unstable();
        if let Some(pair) = places.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let number = |n: usize| search.wanted[n].1;
            let message = format!(
                "entries {} and {} have the same place",
                number(pair[0].1),
                number(pair[1].1)
            );
            return Err(broken(message));
        }
        Ok(Some(Self {
            places,
            values: search.values,
            width,
        }))
    }

    /// Some neighbouring elements of the result; `out` comes filled with zeros.
    pub(super) fn read(&self, range: Range<u64>, out: &mut [u8]) {
        let width = self.width;
        let from = self
            .places
            .partition_point(|(place, _)| *place < range.start);
        let inside = self.places[from..].iter();
        for &(place, n) in inside.take_while(|(place, _)| *place < range.end) {
            // Inside of `out`, so it fits.
            let at = usize::try_from(place - range.start).unwrap_or(usize::MAX) * width;
            out[at..at + width].copy_from_slice(&self.values[n * width..(n + 1) * width]);
        }
    }
}

struct Search<'s, 'a> {
    data: Data<'a>,
    tensor: &'s TensorInfo,
    dtype: DType,
    axes: &'s [Axis],
    most: usize,
    /// Places in the result, and the numbers of the entries.
    wanted: Vec<(u64, u64)>,
    values: Vec<u8>,
}

impl<'a> Search<'_, 'a> {
    fn coo(&mut self, nnz: u64) -> Result<bool> {
        let rank = self.axes.len() as u64;
        let (coords, signed) = self.integers(&Role::Coords, nnz.checked_mul(rank))?;
        let values = self.values(nnz)?;
        if self.tensor.elements().is_none_or(|elements| nnz > elements) {
            return Err(broken(format!("{nnz} entries, more than elements")));
        }
        // Every dimension has a list of its own: a stream would be read from the beginning again and again.
        if coords.is_stream() {
            return Ok(false);
        }
        let mut gather = Gather::new(&coords);
        let mut first = 0;
        while first < nnz {
            let count = CHUNK.min(nnz - first);
            // Places in the result, as far as they are known; none for what is not wanted.
            let mut places = vec![Some(0u64); as_size(count)?];
            for (dim, axis) in self.axes.iter().enumerate() {
                let run = Run {
                    place: dim as u64 * nnz + first,
                    len: count,
                    out: 0,
                };
                let numbers = numbers(&mut gather, &mut [run], as_size(count)?, signed)?;
                for ((place, index), n) in places.iter_mut().zip(numbers).zip(first..) {
                    let index = in_range(axis, dim, n, index)?;
                    *place = step(*place, axis, index);
                }
            }
            for (place, n) in places.into_iter().zip(first..) {
                self.want(place, n)?;
            }
            first += count;
        }
        self.fetch(&values)?;
        Ok(true)
    }

    fn want(&mut self, place: Option<u64>, n: u64) -> Result<()> {
        let Some(place) = place else {
            return Ok(());
        };
        if self.wanted.len() >= self.most {
            let message = format!("more than {} entries are in the slice", self.most);
            return Err(Error::limit("memory", message).raised_by("tensor_memory"));
        }
        self.wanted.push((place, n));
        Ok(())
    }

    /// Reads the values of the wanted entries.
    fn fetch(&mut self, values: &Stored<'a>) -> Result<()> {
        let mut runs: Vec<Run> = Vec::new();
        for (out, &(_, place)) in self.wanted.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if run.place + run.len == place => run.len += 1,
                _ => runs.push(Run { place, len: 1, out }),
            }
        }
        let mut gather = Gather::new(values);
        gather.fill(&mut runs, self.wanted.len(), &mut self.values)?;
        gather.finish(&mut self.values)
    }

    /// An index part as numbers of 64 bits, and whether these have a sign.
    fn integers(&self, role: &Role, expected: Option<u64>) -> Result<(Stored<'a>, bool)> {
        let part = self.role(role)?;
        let signed = matches!(
            part.dtype,
            DType::Number(Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64, _)
        );
        let expected_len = expected.and_then(|n| part.dtype.bytes_for(n));
        if expected_len != Some(part.payload.len()) {
            let message = format!(
                "{} bytes of {} in {:?}, which does not fit the number of entries",
                part.payload.len(),
                part.dtype,
                role.name()
            );
            return Err(broken(message));
        }
        let wide = if signed { DType::I64 } else { DType::U64 };
        Ok((Stored::part(self.data, part, wide)?, signed))
    }

    fn values(&self, nnz: u64) -> Result<Stored<'a>> {
        let part = self.role(&Role::Values)?;
        if part.dtype.bytes_for(nnz) != Some(part.payload.len()) {
            let message = format!("{} bytes of values for {nnz} entries", part.payload.len());
            return Err(broken(message));
        }
        Stored::part(self.data, part, self.dtype)
    }

    fn role(&self, role: &Role) -> Result<&Part> {
        self.tensor
            .part(role)
            .ok_or_else(|| broken(format!("there is no part {:?}", role.name())))
    }
}

/// Where an index leads from a place among the dimensions before it.
fn step(place: Option<u64>, axis: &Axis, index: u64) -> Option<u64> {
    // Places are below the number of elements of the slice, which was counted.
    Some(place? * axis.count() + axis.place_of(index)?)
}

fn in_range(axis: &Axis, dim: usize, n: u64, index: i128) -> Result<u64> {
    match u64::try_from(index) {
        Ok(index) if index < axis.dim => Ok(index),
        _ => Err(broken(format!(
            "entry {n}: index {index} along dimension {dim}, which has length {}",
            axis.dim
        ))),
    }
}

/// Neighbouring units.
fn fetch(gather: &mut Gather<'_, '_>, place: u64, len: u64, out: &mut Vec<u8>) -> Result<()> {
    let run = Run { place, len, out: 0 };
    gather.fill(&mut [run], as_size(len)?, out)?;
    gather.finish(out)
}

/// The numbers of some runs.
fn numbers(
    gather: &mut Gather<'_, '_>,
    runs: &mut [Run],
    count: usize,
    signed: bool,
) -> Result<Vec<i128>> {
    let mut bytes = Vec::new();
    gather.fill(runs, count, &mut bytes)?;
    gather.finish(&mut bytes)?;
    let numbers = bytes.as_chunks::<8>().0.iter();
    Ok(match signed {
        true => numbers.map(|n| i64::from_le_bytes(*n).into()).collect(),
        false => numbers.map(|n| u64::from_le_bytes(*n).into()).collect(),
    })
}

fn broken(message: impl Into<String>) -> Error {
    Error::malformed("sparse", message)
}
