//! Errors of the library as exceptions, which `tenfold._errors` defines.

use std::error::Error as _;
use std::io;
use std::path::Path;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};
use tenfold::format::Loss;
use tenfold::{Error, Hint};

use crate::hint::{self, During};
use crate::source::Raised;

/// An error as an exception.
pub(crate) fn raised(error: Error) -> PyErr {
    exception(&error, During::default(), None, &[])
}

/// The same, about a file, while a function of `tenfold` was at work.
pub(crate) fn raised_about(path: Option<&Path>, error: &Error, during: During<'_>) -> PyErr {
    exception(error, during, path, &[])
}

/// An error that may be about losses.
pub(crate) fn lossy(error: &Error, losses: &[Loss], during: During<'_>) -> PyErr {
    exception(error, during, None, losses)
}

/// The exception itself, as tensors have one that cannot be read.
pub(crate) fn defect<'py>(py: Python<'py>, error: &Error) -> Bound<'py, PyAny> {
    raised(error.clone())
        .into_value(py)
        .into_bound(py)
        .into_any()
}

fn exception(error: &Error, during: During<'_>, path: Option<&Path>, losses: &[Loss]) -> PyErr {
    Python::attach(|py| made(py, error, during, path, losses).unwrap_or_else(|failed| failed))
}

fn made(
    py: Python<'_>,
    error: &Error,
    during: During<'_>,
    path: Option<&Path>,
    losses: &[Loss],
) -> PyResult<PyErr> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    // What code of the user raised comes back as it is.
    if let Some(Raised(raised)) = error.source().and_then(|cause| cause.downcast_ref()) {
        return Ok(raised.clone_ref(py));
    }
    let make = MAKE.import(py, "tenfold._errors", "from_library")?;
    let facts = PyDict::new(py);
    facts.set_item("kind", error.kind().name())?;
    facts.set_item("rule", error.rule())?;
    facts.set_item("is_plain", error.is_plain())?;
    facts.set_item("format", error.format())?;
    facts.set_item("tensor", error.tensor())?;
    // A path of Python would make one slash of two, which URLs have.
    facts.set_item("path", path.map(Path::as_os_str))?;
    let range = error.range().map(|(_, range)| range);
    facts.set_item("offset", range.as_ref().map(|range| range.start))?;
    let length = range.map(|range| range.end.saturating_sub(range.start));
    facts.set_item("length", length)?;
    facts.set_item("message", error.message())?;
    facts.set_item("text", error.to_string())?;
    facts.set_item("hints", hint::list(error.hints(), during))?;
    facts.set_item("limit", error.hints().iter().find_map(limit))?;
    facts.set_item("exists", error.hints().contains(&Hint::Replace))?;
    let cause = io_cause(error);
    facts.set_item("errno", cause.and_then(io::Error::raw_os_error))?;
    let is_directory = cause.is_some_and(|cause| cause.kind() == io::ErrorKind::IsADirectory);
    facts.set_item("is_directory", is_directory)?;
    facts.set_item("losses", loss_rows(py, losses, during)?)?;
    Ok(PyErr::from_value(make.call1((facts,))?))
}

/// The losses as rows: tensor, what, why, effect.
fn loss_rows<'py>(
    py: Python<'py>,
    losses: &[Loss],
    during: During<'_>,
) -> PyResult<Bound<'py, PyList>> {
    let rows = losses.iter().map(|loss| {
        let mut why = loss.why.to_string();
        for hint in hint::list(&loss.hints, during) {
            why += "; ";
            why += &hint;
        }
        let effect = loss.effect.to_string();
        (loss.tensor.clone(), loss.what.to_string(), why, effect)
    });
    PyList::new(py, rows.collect::<Vec<_>>())
}

fn limit(hint: &Hint) -> Option<&'static str> {
    match hint {
        Hint::RaiseLimit { name, .. } => Some(name),
        _ => None,
    }
}

fn io_cause(error: &Error) -> Option<&io::Error> {
    error.source()?.downcast_ref()
}
