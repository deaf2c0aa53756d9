//! Paths, memory and file objects of Python as files of the library.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use tenfold::io::{FileSource, Location, Output, Remote, Sink, Source};
use tenfold::{Bytes, Error, Result};

use crate::error::{raised, raised_about};
use crate::hint::During;
use crate::memory::{Memory, held};
use crate::object;

/// What a user gives to be read.
pub(crate) struct Given {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) path: Option<PathBuf>,
}

impl Given {
    /// A path, a URL, a file object or a buffer.
    pub(crate) fn of(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(path) = given.extract::<PathBuf>() {
            let (path, opened) = match Location::of(&path).map_err(raised)? {
                Location::Path(path) => {
                    let opened = given.py().detach(|| FileSource::open(&path));
                    (path, opened.map(|file| Arc::new(file) as Arc<dyn Source>))
                }
                // Without what may be secret.
                Location::Url(url) => (
                    PathBuf::from(url.to_string()),
                    given.py().detach(|| Remote::new().source(&url)),
                ),
            };
            let source =
                opened.map_err(|error| raised_about(Some(&path), &error, During::default()))?;
            return Ok(Self {
                source,
                path: Some(path),
            });
        }
        let is_file = given.hasattr("read")? && given.hasattr("seek")?;
        // Mappings of files are both, and memory is better.
        let source: Arc<dyn Source> = match held(given) {
            Err(_) if is_file => object::open(given)?,
            bytes => Arc::new(bytes?),
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
