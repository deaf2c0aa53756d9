//! Indices as NumPy has them.

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PySlice, PyTuple};
use tenfold::model::Slice;

/// An index of a tensor: what is taken, and where dimensions of 1 are put in.
pub(crate) struct Key {
    pub(crate) slices: Vec<Slice>,
    /// The place among the parts of the key of each `None`.
    pub(crate) new_axes: bool,
}

/// What is in the brackets. Arrays are not: those need the whole tensor.
pub(crate) fn parse(key: &Bound<'_, PyAny>) -> PyResult<Key> {
    let mut parsed = Key {
        slices: Vec::new(),
        new_axes: false,
    };
    match key.cast::<PyTuple>() {
        Ok(parts) => {
            for part in parts.iter() {
                parsed.add(&part)?;
            }
        }
        Err(_) => parsed.add(key)?,
    }
    let ellipses = (parsed.slices.iter()).filter(|slice| matches!(slice, Slice::All));
    if ellipses.count() > 1 {
        let message = "an index can only have a single ellipsis ('...')";
        return Err(PyIndexError::new_err(message));
    }
    Ok(parsed)
}

impl Key {
    fn add(&mut self, part: &Bound<'_, PyAny>) -> PyResult<()> {
        if part.is_none() {
            self.new_axes = true;
        } else if part.is_instance_of::<PyEllipsis>() {
            self.slices.push(Slice::All);
        } else if let Ok(slice) = part.cast::<PySlice>() {
            self.slices.push(range(slice)?);
        } else if part.is_instance_of::<PyBool>() || !part.hasattr("__index__")? || is_array(part)?
        {
            let message = "tensors are indexed by integers, slices, `...` and None; for arrays and truth values \
                           read it first: tensor.numpy()[...]";
            return Err(PyIndexError::new_err(message));
        } else {
            self.slices.push(Slice::Index(integer(part)?));
        }
        Ok(())
    }
}

/// Whether it is an array with dimensions: those have `__index__` too, and some answer to it.
fn is_array(part: &Bound<'_, PyAny>) -> PyResult<bool> {
    match part.getattr_opt("ndim")? {
        Some(dimensions) => Ok(dimensions.extract::<usize>().map_or(true, |n| n > 0)),
        None => Ok(false),
    }
}

fn range(slice: &Bound<'_, PySlice>) -> PyResult<Slice> {
    let bound = |name: &str| {
        let bound = slice.getattr(name)?;
        if bound.is_none() {
            Ok(None)
        } else {
            clamped(&bound).map(Some)
        }
    };
    let step = bound("step")?.unwrap_or(1);
    if step == 0 {
        let message = "slice step cannot be zero";
        return Err(pyo3::exceptions::PyValueError::new_err(message));
    }
    Ok(Slice::Range {
        start: bound("start")?,
        stop: bound("stop")?,
        step,
    })
}

/// What `__index__` gives.
fn indexed<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    object.call_method0("__index__").map_err(|_| {
        PyTypeError::new_err("slice indices must be integers or None or have an __index__ method")
    })
}

/// A bound of a slice. Those beyond 64 bits are beyond every tensor.
fn clamped(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    let number = indexed(object)?;
    match number.extract() {
        Ok(number) => Ok(number),
        Err(_) if number.lt(0)? => Ok(i64::MIN + 1),
        Err(_) => Ok(i64::MAX),
    }
}

fn integer(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    let number = indexed(object)?;
    let beyond = |_| PyIndexError::new_err(format!("index {number} is out of bounds"));
    number.extract().map_err(beyond)
}
