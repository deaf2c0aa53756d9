//! All tensors of an archive at once.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tenfold::{Error, Reading};

use crate::archive::Archive;
use crate::memory::Room;
use crate::shared::{mapped_at, shared_array};
use crate::supervise::supervised;
use crate::tensor::Tensor;

/// Arrays of NumPy under their names; of tensors that cannot be viewed, what `other` makes of them.
pub(crate) fn arrays<'py>(
    archive: &Bound<'py, Archive>,
    other: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = archive.py();
    let opened = archive.get().get()?;
    let arrays = PyDict::new(py);
    for (place, tensor) in opened.tensors().enumerate() {
        let array = match shared_array(py, &tensor)? {
            Some(array) => array,
            None => other.call1((Tensor::new(archive.clone().unbind(), place),))?,
        };
        arrays.set_item(tensor.name(), array)?;
    }
    Ok(arrays)
}

/// What `shared` makes of the tensors that can be viewed in a mapping, under their names, and the places of those of which it
/// makes `None`, or cannot.
pub(crate) fn viewed<'py>(
    archive: &Bound<'py, Archive>,
    shared: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyDict>, Vec<usize>)> {
    let py = archive.py();
    let opened = archive.get().get()?;
    let made = PyDict::new(py);
    let mut left = Vec::new();
    for (place, tensor) in opened.tensors().enumerate() {
        let found = match mapped_at(py, &tensor)? {
            Some(at) => shared.call1(at)?,
            None => py.None().into_bound(py),
        };
        if found.is_none() {
            left.push(place);
        }
        made.set_item(tensor.name(), found)?;
    }
    Ok((made, left))
}

/// Reads tensors, given by their places, into pieces of one memory, given by where they begin and how long they are.
pub(crate) fn read(
    py: Python<'_>,
    archive: &tenfold::Archive,
    pieces: &[(usize, (usize, usize))],
    out: &Bound<'_, PyAny>,
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
) -> PyResult<()> {
    let mut room = Room::of(out)?;
    supervised(py, progress, threads, move |watch| {
        let outside = || Error::argument("a piece is outside of the memory");
        let mut rest = room.bytes();
        let mut at = 0;
        let mut reads: Vec<(Reading<'_>, &mut [u8])> = Vec::new();
        for (place, (offset, len)) in pieces {
            let skip = offset.checked_sub(at).ok_or_else(outside)?;
            let (_, tail) = rest.split_at_mut_checked(skip).ok_or_else(outside)?;
            let (piece, tail) = tail.split_at_mut_checked(*len).ok_or_else(outside)?;
            (rest, at) = (tail, offset + len);
            let tensor = archive.tensor_at(*place).ok_or_else(outside)?;
            reads.push((tensor.slice(&[])?.into(), piece));
        }
        tenfold::Archive::read_many(reads, &watch.work())
    })
}
