//! Writing archives.

use std::path::{Path, PathBuf};
use std::time::Instant;

use globset::GlobSet;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tenfold::documents::{LossDocument, Written};
use tenfold::format::{Checksums, Compression, Effect, Entry, Loss, Registry};
use tenfold::io::{AtomicOutput, Location, MemoryOutput, Output, Remote, RemoteOutput};
use tenfold::model::DigestKind;
use tenfold::ops::{Conversion, ConvertOptions, Report, Shards, Sparse};
use tenfold::{Error, ErrorKind, Hint};

use crate::archive::{Archive, globs};
use crate::error::{lossy, raised_about};
use crate::hint::{self, During};
use crate::source::ObjectOutput;
use crate::supervise::{Watch, supervised_as};

/// What is asked for.
struct Request {
    /// The function that was called, and what the command calls it.
    function: String,
    command: String,
    inputs: Vec<String>,
    to: Option<String>,
    options: ConvertOptions,
    version: Option<String>,
    /// The version of the input is kept if it holds everything.
    is_rewrite: bool,
    check: bool,
    is_directory: bool,
    force: bool,
    sync: bool,
    dry_run: bool,
    /// The name of the files in a directory.
    name: String,
    /// How URLs are reached.
    remote: Remote,
}

impl Request {
    fn new(given: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut request = Self {
            function: String::new(),
            command: String::new(),
            inputs: Vec::new(),
            to: None,
            options: ConvertOptions::new(),
            version: None,
            is_rewrite: false,
            check: false,
            is_directory: false,
            force: false,
            sync: true,
            dry_run: false,
            name: "model".into(),
            remote: Remote::new(),
        };
        for (key, value) in given.iter() {
            let key: String = key.extract()?;
            let options = std::mem::take(&mut request.options);
            request.options = match key.as_str() {
                "function" => set(&mut request.function, &value, options)?,
                "command" => set(&mut request.command, &value, options)?,
                "inputs" => set(&mut request.inputs, &value, options)?,
                "to" => set(&mut request.to, &value, options)?,
                "version" => {
                    let options = set(&mut request.version, &value, options)?;
                    options.version(request.version.as_deref())
                }
                "rewrite" => set(&mut request.is_rewrite, &value, options)?,
                "directory" => set(&mut request.is_directory, &value, options)?,
                "name" => set(&mut request.name, &value, options)?,
                "storage_options" if value.is_none() => options,
                "storage_options" => {
                    request.remote = crate::open::remote(value.extract()?);
                    options
                }
                "force" => set(&mut request.force, &value, options)?,
                "sync" => set(&mut request.sync, &value, options)?,
                "dry_run" => set(&mut request.dry_run, &value, options)?,
                "check" => {
                    let options = set(&mut request.check, &value, options)?;
                    options.check(request.check)
                }
                "allow" => options.allow(effect(value.extract()?)?),
                "verify" => options.verify(value.extract()?),
                "zstd" => match compression(value.extract()?)? {
                    Some(choose) => options.compression(choose),
                    None => options,
                },
                "checksums" => options.checksums(checksums(value.extract()?)?),
                "sparse" => options.sparse(sparse(value.extract()?)?),
                "timestamp" => options.timestamp(value.extract()?),
                "file_per_tensor" => options.file_per_tensor(value.extract()?),
                "shards" => options.shards(shards(&value)?),
                "options" => options.options(value.extract::<Vec<(String, String)>>()?),
                _ => return Err(PyTypeError::new_err(format!("there is no option {key}"))),
            };
        }
        Ok(request)
    }

    /// The format: what was asked for, else that of the output's name, else that of what is read.
    fn target<'r>(
        &self,
        registry: &'r Registry,
        output: Option<&Path>,
        archive: &tenfold::Archive,
    ) -> Result<&'r Entry, Error> {
        let name = output.map(Path::to_string_lossy);
        let by_name = name.as_ref().and_then(|name| registry.by_extension(name));
        let entry = match (&self.to, by_name, archive.format()) {
            (Some(id), ..) => registry.get(id)?,
            (None, Some(entry), _) => entry,
            (None, None, Some(spec)) => registry.get(spec.id)?,
            (None, None, None) => {
                let entries = registry.entries().iter();
                let ids = entries
                    .filter(|entry| is_written(entry))
                    .map(|entry| entry.spec.id);
                let ids: Vec<_> = ids.collect();
                let message = match name {
                    Some(name) => format!("{name}: its extension names no format"),
                    None => "which format is to be written?".into(),
                };
                let argument = match self.function.as_str() {
                    "save" | "dumps" => "format",
                    _ => "to",
                };
                let message = format!("{message}; {argument}= says which: {}", ids.join(", "));
                return Err(Error::argument(message));
            }
        };
        if is_written(entry) {
            return Ok(entry);
        }
        let message = format!("{} files are not written by this version", entry.spec.name);
        Err(Error::unsupported("read-only", message))
    }

    fn prepare(
        &self,
        archive: &tenfold::Archive,
        target: &Entry,
        watch: &Watch,
    ) -> Result<Conversion, Error> {
        let options = self.options.clone().work(watch.work());
        let same = archive.format().map(|spec| spec.id) == Some(target.spec.id)
            && target.spec.profile(archive.version()).is_some();
        if !self.is_rewrite || self.version.is_some() || !same {
            return Conversion::prepare(archive, target, &options);
        }
        let as_before = self.options.clone().version(Some(archive.version()));
        let before = Conversion::prepare(archive, target, &as_before.work(watch.work()))?;
        let lost = |conversion: &Conversion| {
            let effects = conversion.losses.iter().map(|loss| loss.effect);
            effects.max().filter(|&effect| effect > Effect::Rearranged)
        };
        if lost(&before).is_none() {
            return Ok(before);
        }
        let other = Conversion::prepare(archive, target, &options)?;
        Ok(if lost(&other) < lost(&before) {
            other
        } else {
            before
        })
    }
}

fn set<'py, T: pyo3::conversion::FromPyObjectOwned<'py>>(
    place: &mut T,
    value: &Bound<'py, PyAny>,
    options: ConvertOptions,
) -> PyResult<ConvertOptions> {
    *place = value.extract().map_err(Into::into)?;
    Ok(options)
}

fn is_written(entry: &Entry) -> bool {
    entry.codec.is_some() && !entry.spec.writes.is_empty()
}

fn unknown<T>(what: &str, given: &str, known: &str) -> PyResult<T> {
    let message = format!("{what} is {known}, not {given:?}");
    Err(PyValueError::new_err(message))
}

fn effect(name: &str) -> PyResult<Effect> {
    match name {
        "rearranged" => Ok(Effect::Rearranged),
        "changed" => Ok(Effect::Changed),
        "dropped" => Ok(Effect::Dropped),
        other => unknown("allow", other, "\"rearranged\", \"changed\" or \"dropped\""),
    }
}

fn sparse(name: &str) -> PyResult<Sparse> {
    match name {
        "as-is" => Ok(Sparse::AsIs),
        "keep" => Ok(Sparse::Keep),
        "all" => Ok(Sparse::All),
        other => unknown("sparse", other, "\"as-is\", \"keep\" or \"all\""),
    }
}

fn checksums(name: &str) -> PyResult<Checksums> {
    Ok(match name {
        "none" => Checksums::None,
        "keep" => Checksums::Keep,
        other => match DigestKind::from_name(other) {
            Some(kind) => Checksums::With(kind),
            None => {
                let known = "\"none\", \"keep\", \"crc32c\", \"sha256\" or \"xxh3\"";
                return unknown("checksums", other, known);
            }
        },
    })
}

/// Levels for tensors, each with the pattern of their names; the last that matches counts.
#[allow(clippy::type_complexity)] // rules
fn compression(
    rules: Vec<(i32, Option<String>)>,
) -> PyResult<Option<impl Fn(&tenfold::model::TensorInfo) -> Compression + Send + Sync + 'static>> {
    if rules.is_empty() {
        return Ok(None);
    }
    let mut sets: Vec<(i32, Option<GlobSet>)> = Vec::new();
    for (level, pattern) in rules {
        let set = pattern.map(|pattern| globs(&[pattern])).transpose()?;
        sets.push((level, set));
    }
    Ok(Some(move |info: &tenfold::model::TensorInfo| {
        let matches =
            |set: &Option<GlobSet>| set.as_ref().is_none_or(|set| set.is_match(&info.name));
        let mut rules = sets.iter().rev();
        match rules.find(|(_, set)| matches(set)) {
            Some((level, _)) => Compression::Zstd(*level),
            None => Compression::Keep,
        }
    }))
}

fn shards(value: &Bound<'_, PyAny>) -> PyResult<Option<Shards>> {
    if value.is_none() {
        return Ok(None);
    }
    let (kind, number): (String, u64) = value.extract()?;
    Ok(Some(match kind.as_str() {
        "layers" => Shards::Layers,
        "parts" => Shards::Parts(usize::try_from(number)?),
        "keep" => Shards::Keep,
        _ => Shards::Size(number),
    }))
}

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
