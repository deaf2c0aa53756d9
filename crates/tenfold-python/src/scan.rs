//! What the pickles in a file would import. Files are looked at as they are, and not opened as archives.

use pyo3::prelude::*;
use tenfold::documents::ScanDocument;
use tenfold::ops::{self, ScanOptions};

use crate::error::raised_about;
use crate::hint::{During, words};
use crate::open::limits;
use crate::ops::json;
use crate::source::Given;
use crate::supervise::supervised_as;

/// Looks for pickles in what is at a path, in memory or in a file object; `title` is what the document calls it.
#[pyfunction]
#[pyo3(signature = (source, name, title, limits, progress))]
pub(crate) fn scan(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    name: Option<String>,
    title: &str,
    limits: Option<&Bound<'_, PyAny>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let mut options = ScanOptions::new();
    if let Some(given) = limits {
        options = options.limits(self::limits(given)?);
    }
    let given = Given::of(source)?;
    let name = name.or_else(|| given.name());
    let scan = supervised_as(py, progress, 1, |watch| {
        let options = options.work(watch.work());
        ops::scan(&*given.source, name.as_deref(), &options)
    })?;
    let scan =
        scan.map_err(|error| raised_about(given.path.as_deref(), &error, During::default()))?;
    json(&ScanDocument::new(title, &scan, words))
}
