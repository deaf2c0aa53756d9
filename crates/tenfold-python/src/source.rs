//! Paths, memory and file objects of Python as files of the library.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tenfold::io::{FileSource, Output, Sink, Source};
use tenfold::{Bytes, Error, Result};

use crate::error::raised_about;
use crate::memory::{Memory, held};

/// What a user gives to be read.
pub(crate) struct Given {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) path: Option<PathBuf>,
}

impl Given {
    /// A path, a file object or a buffer.
    pub(crate) fn of(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(path) = given.extract::<PathBuf>() {
            let opened = given.py().detach(|| FileSource::open(&path));
            let source = opened.map_err(|error| raised_about(Some(&path), &error))?;
            return Ok(Self {
                source: Arc::new(source),
                path: Some(path),
            });
        }
        let source: Arc<dyn Source> = if given.hasattr("read")? && given.hasattr("seek")? {
            FileObject::open(given)?
        } else {
            Arc::new(held(given)?)
        };
        Ok(Self { source, path: None })
    }

    /// The file's name, for formats that are told by it.
    pub(crate) fn name(&self) -> Option<String> {
        let name = self.path.as_deref().and_then(std::path::Path::file_name);
        name.map(|name| name.to_string_lossy().into_owned())
    }
}

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
struct FileObject {
    object: Py<PyAny>,
    len: u64,
    turn: Mutex<()>,
}

impl FileObject {
    /// Asks where the end is.
    fn open(object: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Source>> {
        let len = object.call_method1("seek", (0, 2))?.extract()?;
        let file = Self {
            object: object.clone().unbind(),
            len,
            turn: Mutex::new(()),
        };
        Ok(match Ranges::of(object)? {
            Some((system, path)) => Arc::new(Ranges { file, system, path }),
            None => Arc::new(file),
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
                if piece.as_bytes().len() as u64 == len {
                    return held(piece.as_any());
                }
                found.extend_from_slice(piece.as_bytes());
            }
            Ok(Bytes::from(found))
        })
        .map_err(|error: PyErr| failed("cannot read the file object", error))
    }
}

/// A file of fsspec whose file system fetches several ranges at once, as those behind a network do.
struct Ranges {
    file: FileObject,
    system: Py<PyAny>,
    path: Py<PyAny>,
}

impl Ranges {
    /// How many bytes cost less than another request: those of a tenth of a second.
    const GAP: u64 = 1 << 20;
    /// As many as browsers and clients of object stores have open.
    const AT_ONCE: usize = 8;

    /// The file system of a file object and its path there. Those that work on one request after the other do better with
    /// the object itself, which stays open.
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<(Py<PyAny>, Py<PyAny>)>> {
        let (Some(system), Some(path)) = (object.getattr_opt("fs")?, object.getattr_opt("path")?)
        else {
            return Ok(None);
        };
        let is_async = match system.getattr_opt("async_impl")? {
            Some(is_async) => is_async.is_truthy()?,
            None => false,
        };
        let can = is_async && system.hasattr("cat_ranges")?;
        Ok(can.then(|| (system.unbind(), path.unbind())))
    }

    /// Nothing where a server answers otherwise than it was asked.
    fn fetch(&self, ranges: &[Range<u64>]) -> PyResult<Option<Vec<Bytes>>> {
        Python::attach(|py| {
            let path = self.path.bind(py);
            let paths = PyList::new(py, ranges.iter().map(|_| path))?;
            let starts = PyList::new(py, ranges.iter().map(|range| range.start))?;
            let ends = PyList::new(py, ranges.iter().map(|range| range.end))?;
            let system = self.system.bind(py);
            let found = system.call_method1("cat_ranges", (paths, starts, ends))?;
            let found = found.try_iter()?.map(|found| held(&found?));
            let found = found.collect::<PyResult<Vec<_>>>()?;
            let are_whole = found.len() == ranges.len()
                && (found.iter().zip(ranges)).all(|(found, range)| {
                    found.len() as u64 == range.end.saturating_sub(range.start)
                });
            Ok(are_whole.then_some(found))
        })
    }
}

impl Source for Ranges {
    fn len(&self) -> u64 {
        self.file.len
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let found = self.read_ranges(std::slice::from_ref(&range))?;
        match found.into_iter().next() {
            Some(found) => Ok(found),
            None => self.file.read(range),
        }
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let found = self.fetch(ranges);
        match found.map_err(|error| failed("cannot read the file object", error))? {
            Some(found) => Ok(found),
            None => ranges
                .iter()
                .map(|range| self.file.read(range.clone()))
                .collect(),
        }
    }

    fn gap(&self) -> u64 {
        Self::GAP
    }

    fn concurrency(&self) -> Option<usize> {
        Some(Self::AT_ONCE)
    }

    fn window(&self) -> u64 {
        Self::GAP
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
