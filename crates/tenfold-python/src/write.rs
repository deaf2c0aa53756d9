//! Writing archives.

use std::path::PathBuf;
use std::time::Instant;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tenfold::documents::{LossDocument, Written};
use tenfold::format::{Loss, Registry};
use tenfold::io::{AtomicOutput, Location, MemoryOutput, Output, RemoteOutput};
use tenfold::ops::Report;
use tenfold::{Error, ErrorKind, Hint};

use crate::archive::Archive;
use crate::error::{lossy, raised_about};
use crate::hint::{self, During};
use crate::request::Request;
use crate::source::ObjectOutput;
use crate::supervise::{Watch, supervised_as};

/// What was done, or why not.
struct Done {
    document: String,
    files: Vec<(String, Vec<u8>)>,
}

/// Why nothing was written.
enum Failed {
    Error(Error, Vec<Loss>),
    Document(String),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Error(error, Vec::new())
    }
}

/// Where it goes.
enum Place {
    File(PathBuf),
    Memory,
    Object(Py<PyAny>),
}

/// Writes to a path or a file object, and gives a document that says what was done.
#[pyfunction]
#[pyo3(signature = (archive, place, request, progress, threads))]
pub(crate) fn write(
    py: Python<'_>,
    archive: &Archive,
    place: &Bound<'_, PyAny>,
    request: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
) -> PyResult<String> {
    let place = if place.hasattr("write")? {
        Place::Object(place.clone().unbind())
    } else {
        Place::File(place.extract()?)
    };
    Ok(carry_out(py, archive, place, request, progress, threads)?.document)
}

/// Writes to memory.
#[pyfunction]
#[pyo3(signature = (archive, request, progress, threads))]
pub(crate) fn dumps<'py>(
    py: Python<'py>,
    archive: &Archive,
    request: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let done = carry_out(py, archive, Place::Memory, request, progress, threads)?;
    match done.files.as_slice() {
        [(_, only)] => Ok(PyBytes::new(py, only)),
        several => {
            let message = format!("bytes hold one file, there would be {}", several.len());
            Err(PyValueError::new_err(message))
        }
    }
}

fn carry_out(
    py: Python<'_>,
    archive: &Archive,
    place: Place,
    request: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
    threads: usize,
) -> PyResult<Done> {
    let request = Request::new(request)?;
    let archive = archive.get()?;
    let output = match &place {
        Place::File(path) => Some(path.clone()),
        _ => None,
    };
    let during = During::writing(&request.function);
    let done = supervised_as(py, progress, threads, |watch| {
        finish(&archive, place, &request, watch)
    })?;
    done.map_err(|failed| match failed {
        Failed::Error(error, losses) if error.kind() == ErrorKind::Lossy => {
            lossy(&error, &losses, during)
        }
        Failed::Error(error, _) if is_about_output(&error) => {
            raised_about(output.as_deref(), &error, during)
        }
        Failed::Error(error, _) => raised_about(None, &error, during),
        Failed::Document(cause) => PyValueError::new_err(cause),
    })
}

/// Whether the place of the output is the matter.
fn is_about_output(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::NotFound)
        || error.hints().contains(&Hint::Replace)
}

fn finish(
    archive: &tenfold::Archive,
    place: Place,
    request: &Request,
    watch: &Watch,
) -> Result<Done, Failed> {
    let started = Instant::now();
    let output = match &place {
        Place::File(path) => Some(path.as_path()),
        _ => None,
    };
    let registry = Registry::standard();
    let target = request.target(&registry, output, archive)?;
    let conversion = request.prepare(archive, target, watch)?;
    let extension = target.spec.extensions.first().copied().unwrap_or("bin");
    let in_directory = format!("{}.{extension}", request.name);
    let losses = [conversion.losses.as_slice(), &conversion.casts].concat();
    let (profile, because) = (conversion.profile, conversion.because.clone());
    let (tensors, is_cast) = (conversion.tensors(), !conversion.casts.is_empty());
    let mut files = Vec::new();
    let report = if request.dry_run {
        None
    } else {
        let blamed = losses.clone();
        let written = match place {
            Place::File(path) if matches!(Location::of(&path)?, Location::Url(_)) => {
                let Location::Url(url) = Location::of(&path)? else {
                    return Err(Error::argument("no URL").into());
                };
                let mut out = RemoteOutput::new(&request.remote, &url)?.force(request.force);
                let name = out.name().unwrap_or(&in_directory).to_owned();
                conversion.write_to(&name, &mut out)
            }
            Place::File(path) if request.is_directory => {
                let mut out = AtomicOutput::directory(path)?.sync(request.sync);
                conversion.write_to(&in_directory, &mut out)
            }
            Place::File(path) => {
                let out = AtomicOutput::file(path)?;
                let mut out = out.force(request.force).sync(request.sync);
                let name = out.main_name().to_owned();
                conversion.write_to(&name, &mut out)
            }
            Place::Memory => {
                let mut out = MemoryOutput::new();
                let written = conversion.write_to(&in_directory, &mut out);
                files.extend(out.into_files());
                written
            }
            Place::Object(object) => {
                let mut out = ObjectOutput {
                    object,
                    is_taken: false,
                };
                let written = conversion.write_to(&in_directory, &mut out);
                Python::attach(|_| drop(out));
                written
            }
        };
        Some(written.map_err(|error| Failed::Error(error, blamed))?)
    };
    let report = report.as_ref();
    let (input, inputs) = match request.inputs.as_slice() {
        [only] => (Some(only.clone()), Vec::new()),
        several => (None, several.to_vec()),
    };
    let document = Written {
        schema: format!("tenfold.{}/1", request.command),
        input,
        inputs,
        // Said by whoever knows what the place is called.
        output: String::new(),
        files: report.map(paths).unwrap_or_default(),
        format: target.spec.id,
        version: Some(profile.version).filter(|version| *version != "-"),
        because: because.as_deref(),
        read_by: profile.read_by,
        losses: (losses.iter())
            .map(|loss| LossDocument::new(loss, hint::words))
            .collect(),
        dry_run: request.dry_run,
        checked: request.check && report.is_some(),
        content: report.and_then(|report| report.content),
        tensors,
        bytes: report.map(|report| report.files.iter().map(|(_, len)| len).sum()),
        casts: report
            .map(|report| &report.casts)
            .filter(|casts| is_cast && casts.numbers > 0),
        seconds: (started.elapsed().as_secs_f64() * 1000.0).round() / 1000.0,
        ..Written::default()
    };
    let document = serde_json::to_string(&document);
    let document = document.map_err(|cause| Failed::Document(cause.to_string()))?;
    // What was noticed is for people, and no part of the document.
    let notes = report
        .map(|report| report.notes.clone())
        .unwrap_or_default();
    let notes =
        serde_json::to_string(&notes).map_err(|cause| Failed::Document(cause.to_string()))?;
    let document = format!("[{document},{notes}]");
    Ok(Done { document, files })
}

fn paths(report: &Report) -> Vec<String> {
    report.files.iter().map(|(name, _)| name.clone()).collect()
}
