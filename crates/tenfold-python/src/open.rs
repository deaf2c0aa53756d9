//! How files are opened.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tenfold::format::Registry;
use tenfold::io::{Limits, Location, Remote};
use tenfold::{Error, ErrorKind, OpenOptions, ops};

use crate::archive::Archive;
use crate::dtype;
use crate::error::{raised, raised_about};
use crate::hint::During;
use crate::source::Given;

/// What all ways to open a file take.
fn options(given: &Bound<'_, PyDict>) -> PyResult<OpenOptions> {
    let mut options = OpenOptions::new();
    for (key, value) in given.iter() {
        let key: String = key.extract()?;
        options = match key.as_str() {
            "format" => options.format(value.extract::<Option<String>>()?.as_deref()),
            "strict" => options.strict(value.extract()?),
            "checksums" => options.checksums(value.extract()?),
            "salvage" => options.salvage(value.extract()?),
            "opaque" => options.opaque(value.extract()?),
            "options" => options.options(value.extract::<Vec<(String, String)>>()?),
            "threads" => options.threads(value.extract()?),
            "assume_dtype" if value.is_none() => options,
            "assume_dtype" => options.assume_dtype(Some(dtype::parse(&value)?)),
            "storage_options" => options.remote(&remote(value.extract()?)),
            "limits" if value.is_none() => options,
            "limits" => options.limits(limits(&value)?),
            // Done with what was opened.
            "dequantize" => options,
            _ => return Err(PyTypeError::new_err(format!("there is no option {key}"))),
        };
    }
    Ok(options)
}

/// What was opened, with quantized tensors as numbers where that is asked for.
fn as_asked(opened: tenfold::Archive, given: &Bound<'_, PyDict>) -> PyResult<tenfold::Archive> {
    match given.get_item("dequantize")? {
        Some(wanted) if wanted.extract::<bool>()? => ops::dequantize(&opened).map_err(raised),
        _ => Ok(opened),
    }
}

/// How URLs are reached, by what a store calls its options; two are not the stores'.
pub(crate) fn remote(given: Vec<(String, String)>) -> Remote {
    given
        .into_iter()
        .fold(Remote::new(), |remote, (key, value)| match key.as_str() {
            "allow_http" => remote.allow_http(value == "true"),
            "hub_cache" => remote.hub_cache(value == "true"),
            _ => remote.option(key, value),
        })
}

/// How much a file may ask for, of `tenfold.Limits`.
pub(crate) fn limits(given: &Bound<'_, PyAny>) -> PyResult<Limits> {
    Ok(Limits::default()
        .header_bytes(given.getattr("header_bytes")?.extract()?)
        .rank(given.getattr("rank")?.extract()?)
        .depth(given.getattr("depth")?.extract()?)
        .tensor_memory(given.getattr("tensor_memory")?.extract()?)
        .dense_bytes(given.getattr("dense_bytes")?.extract()?))
}

/// Opens a file, or all files of a directory, on this machine or behind a URL, for the function of `tenfold` that was called.
#[pyfunction]
#[pyo3(signature = (path, mmap, options, origin, function))]
#[allow(unsafe_code)]
pub(crate) fn open_file(
    py: Python<'_>,
    path: PathBuf,
    mmap: bool,
    options: &Bound<'_, PyDict>,
    origin: Option<Py<PyAny>>,
    function: &str,
) -> PyResult<Archive> {
    let (given, options) = (options, self::options(options)?);
    let during = During::opening(function);
    let location = Location::of(&path).map_err(raised)?;
    if let Location::Url(url) = &location {
        // Without what may be secret.
        let shown = PathBuf::from(url.to_string());
        let opened = py.detach(|| options.open_remote(url));
        let archive = opened.map_err(|error| raised_about(Some(&shown), &error, during))?;
        return Ok(Archive::new(as_asked(archive, given)?, origin));
    }
    let opened = py.detach(|| {
        if mmap {
            // SAFETY: mapping is what users of this package ask for by default, and `mmap=False` is there for those who do not:
            // `tenfold.open` says that files must not be shortened or written to meanwhile. Everything that this package
            // writes goes to a new file.
            unsafe { options.map(&path) }
        } else {
            options.open(&path)
        }
    });
    let archive = opened.map_err(|error| raised_about(Some(&path), &error, during))?;
    Ok(Archive::new(as_asked(archive, given)?, origin))
}

/// Opens bytes that are in memory, or a file object.
#[pyfunction]
#[pyo3(signature = (source, name, options, origin, function))]
pub(crate) fn open_source(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    name: Option<String>,
    options: &Bound<'_, PyDict>,
    origin: Option<Py<PyAny>>,
    function: &str,
) -> PyResult<Archive> {
    let (asked, options) = (options, self::options(options)?);
    let during = During::opening(function);
    let given = Given::of(source)?;
    let opened = py.detach(|| options.read(given.source, name.as_deref()));
    let archive = opened.map_err(|error| raised_about(None, &error, during))?;
    Ok(Archive::new(as_asked(archive, asked)?, origin))
}

/// The id of the format that a file, bytes or a file object are of.
#[pyfunction]
pub(crate) fn detect(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    let given = Given::of(source)?;
    let name = given.name();
    let found = py.detach(|| {
        let registry = Registry::standard();
        let entry = registry.detect(&*given.source, name.as_deref())?;
        Ok::<_, Error>(entry.codec.map(|codec| codec.spec().id))
    });
    match found {
        Err(error) if error.kind() == ErrorKind::Io => Err(raised(error)),
        // What else can be wrong is the content.
        found => Ok(found.ok().flatten()),
    }
}

/// The formats: id, name, extensions, versions that are read and that are written.
#[pyfunction]
#[allow(clippy::type_complexity)] // rows
pub(crate) fn formats() -> Vec<(
    &'static str,
    &'static str,
    Vec<&'static str>,
    Vec<&'static str>,
    Vec<&'static str>,
)> {
    let registry = Registry::standard();
    let entries = registry.entries().iter();
    let known = entries.filter(|entry| entry.codec.is_some());
    known
        .map(|entry| {
            let spec = entry.spec;
            let writes = spec.writes.iter().map(|profile| profile.version);
            (
                spec.id,
                spec.name,
                spec.extensions.to_vec(),
                spec.reads.to_vec(),
                writes.collect(),
            )
        })
        .collect()
}
