//! What is asked to be written, and how: the arguments of Python as options of the library.

use std::path::Path;

use globset::GlobSet;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tenfold::Error;
use tenfold::format::{Checksums, Compression, Effect, Entry, Registry};
use tenfold::io::Remote;
use tenfold::model::DigestKind;
use tenfold::ops::{Conversion, ConvertOptions, Shards, Sparse};

use crate::archive::globs;
use crate::supervise::Watch;

/// What is asked for.
pub(crate) struct Request {
    /// The function that was called, and what the command calls it.
    pub(crate) function: String,
    pub(crate) command: String,
    pub(crate) inputs: Vec<String>,
    to: Option<String>,
    options: ConvertOptions,
    version: Option<String>,
    /// The version of the input is kept if it holds everything.
    is_rewrite: bool,
    pub(crate) check: bool,
    pub(crate) is_directory: bool,
    pub(crate) force: bool,
    pub(crate) sync: bool,
    pub(crate) dry_run: bool,
    /// The name of the files in a directory.
    pub(crate) name: String,
    /// How URLs are reached.
    pub(crate) remote: Remote,
}

impl Request {
    pub(crate) fn new(given: &Bound<'_, PyDict>) -> PyResult<Self> {
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
    pub(crate) fn target<'r>(
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

    pub(crate) fn prepare(
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
