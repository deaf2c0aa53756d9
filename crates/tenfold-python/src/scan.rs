//! What the pickles in a file would import. Files are looked at as they are, and not opened as archives.

use std::ops::Range;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use tenfold::documents::ScanDocument;
use tenfold::io::{FileSource, Limits, Source};
use tenfold::{Bytes, Control, Error, Result, ops};

use crate::error::raised_about;
use crate::hint::words;
use crate::memory::held;
use crate::open::limits;
use crate::ops::json;
use crate::source::FileObject;
use crate::supervise::supervised_by;

/// Looks for pickles in a file.
#[pyfunction]
#[pyo3(signature = (path, title, limits))]
pub(crate) fn scan_file(
    py: Python<'_>,
    path: PathBuf,
    title: &str,
    limits: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let opened = py.detach(|| FileSource::open(&path));
    let source = opened.map_err(|error| raised_about(Some(&path), &error))?;
    let name = path.file_name().map(|name| name.to_string_lossy());
    scanned(py, &source, name.as_deref(), Some(&path), title, limits)
}

/// Looks for pickles in bytes that are in memory.
#[pyfunction]
#[pyo3(signature = (data, name, title, limits))]
pub(crate) fn scan_memory(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    name: Option<&str>,
    title: &str,
    limits: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    scanned(py, &held(data)?, name, None, title, limits)
}

/// Looks for pickles in a file object.
#[pyfunction]
#[pyo3(signature = (object, name, title, limits))]
pub(crate) fn scan_object(
    py: Python<'_>,
    object: &Bound<'_, PyAny>,
    name: Option<&str>,
    title: &str,
    limits: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    scanned(py, &FileObject::new(object)?, name, None, title, limits)
}

fn scanned(
    py: Python<'_>,
    source: &dyn Source,
    name: Option<&str>,
    path: Option<&Path>,
    title: &str,
    limits: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let limits = limits.map_or_else(|| Ok(Limits::default()), self::limits)?;
    let control = Control::new();
    let stoppable = Stoppable {
        source,
        control: &control,
    };
    let scan = supervised_by(py, None, &control, || ops::scan(&stoppable, name, &limits))?
        .map_err(|error| raised_about(path, &error))?;
    json(&ScanDocument::new(title, &scan, words))
}

/// A file that cannot be read any more once the work was asked to stop.
struct Stoppable<'a> {
    source: &'a dyn Source,
    control: &'a Control,
}

impl Source for Stoppable<'_> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        if self.control.is_canceled() {
            return Err(Error::canceled());
        }
        self.source.read(range)
    }

    fn window(&self) -> u64 {
        self.source.window()
    }

    fn is_memory(&self) -> bool {
        self.source.is_memory()
    }
}
