//! File objects of Python as files of the library.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tenfold::io::{Output, Sink, Source};
use tenfold::{Bytes, Error, Result};

use crate::memory::Memory;

/// An exception as an error of the library: what it says, and the exception itself as the cause.
pub(crate) fn failed(what: &str, error: PyErr) -> Error {
    Error::io(what, std::io::Error::other(error.to_string())).because(Raised(error))
}

/// An exception that comes back through the library.
#[derive(Debug)]
pub(crate) struct Raised(pub(crate) PyErr);

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Raised {}

/// A file object that can be read at any place. It is asked for one thing at a time.
pub(crate) struct FileObject {
    object: Py<PyAny>,
    len: u64,
    turn: Mutex<()>,
}

impl FileObject {
    /// Asks where the end is.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let len = object.call_method1("seek", (0, 2))?.extract()?;
        Ok(Self {
            object: object.clone().unbind(),
            len,
            turn: Mutex::new(()),
        })
    }
}

impl Source for FileObject {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        // Before the interpreter's lock: whoever has the turn needs that one to end it.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let len = range.end.saturating_sub(range.start);
        Python::attach(|py| {
            let object = self.object.bind(py);
            object.call_method1("seek", (range.start,))?;
            let mut found = Vec::new();
            while (found.len() as u64) < len {
                let piece = object.call_method1("read", (len - found.len() as u64,))?;
                let piece = piece.cast_into::<PyBytes>()?;
                if piece.as_bytes().is_empty() {
                    break;
                }
                found.extend_from_slice(piece.as_bytes());
            }
            Ok(Bytes::from(found))
        })
        .map_err(|error: PyErr| failed("cannot read the file object", error))
    }
}

/// A file object that one file is written to, from its first byte to its last.
pub(crate) struct ObjectOutput {
    pub(crate) object: Py<PyAny>,
    pub(crate) is_taken: bool,
}

impl Output for ObjectOutput {
    fn create(&mut self, name: &str, _: Option<u64>) -> Result<Box<dyn Sink + '_>> {
        if std::mem::replace(&mut self.is_taken, true) {
            let message = format!("a file object takes one file; {name:?} would be another");
            return Err(Error::argument(message));
        }
        Ok(Box::new(ObjectSink(&self.object)))
    }

    fn written(&self, _: &str) -> Result<Option<std::sync::Arc<dyn Source>>> {
        Ok(None)
    }

    fn commit(&mut self) -> Result<()> {
        Ok(())
    }
}

struct ObjectSink<'a>(&'a Py<PyAny>);

impl Sink for ObjectSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let bytes = Bytes::copy_from_slice(bytes);
        Python::attach(|py| {
            let object = self.0.bind(py);
            let mut rest = bytes;
            while !rest.is_empty() {
                let memory = Memory {
                    bytes: rest.clone(),
                };
                let view = pyo3::types::PyMemoryView::from(Bound::new(py, memory)?.as_any())?;
                let taken = object.call_method1("write", (view,))?;
                // What does not say how much has taken all of it.
                let taken = taken.extract().unwrap_or(rest.len());
                rest = rest.slice(taken.min(rest.len())..);
            }
            Ok(())
        })
        .map_err(|error: PyErr| failed("cannot write to the file object", error))
    }
}
