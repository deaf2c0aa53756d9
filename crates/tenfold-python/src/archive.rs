//! A file that was opened.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use tenfold::io::Source as _;
use tenfold::model::SourceId;
use tenfold::ops::group_names;

use crate::hint;
use crate::many;
use crate::metadata::{Metadata, view};
use crate::tensor::Tensor;

/// A file that was opened: a mapping from names to tensors, in file order. Nothing is read before a tensor is asked for it.
///
/// Made by `tenfold.open`. Usable from many threads, and picklable where it was opened by a path or from bytes.
#[pyclass(frozen, mapping, weakref, dict, module = "tenfold")]
pub(crate) struct Archive {
    opened: RwLock<Option<tenfold::Archive>>,
    /// How it is opened again by another process.
    origin: Option<Py<PyAny>>,
    is_part: bool,
}

impl Archive {
    pub(crate) fn new(archive: tenfold::Archive, origin: Option<Py<PyAny>>) -> Self {
        Self {
            opened: RwLock::new(Some(archive)),
            origin,
            is_part: false,
        }
    }

    /// The archive, unless it was closed.
    pub(crate) fn get(&self) -> PyResult<tenfold::Archive> {
        self.with(Clone::clone)
    }

    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&tenfold::Archive) -> T) -> PyResult<T> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        match &*opened {
            Some(archive) => Ok(use_it(archive)),
            None => Err(PyValueError::new_err("the archive is closed")),
        }
    }
}

/// The names that were nearly meant, for a message.
fn near(py: Python<'_>, name: &str, archive: &tenfold::Archive) -> PyResult<String> {
    static NEAR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    const LOOKED_AT: usize = 20_000;
    let names: Vec<_> = archive
        .tensors()
        .take(LOOKED_AT)
        .map(|tensor| tensor.name())
        .collect();
    let near = NEAR.import(py, "tenfold._errors", "near")?;
    near.call1((name, names))?.extract()
}

#[pymethods]
impl Archive {
    fn __len__(&self) -> PyResult<usize> {
        self.with(|archive| archive.tensors().len())
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name.cast::<PyString>() {
            Ok(name) => {
                let name = name.to_cow().unwrap_or_default();
                self.with(|archive| archive.index_of(&name).is_some())
            }
            Err(_) => Ok(false),
        }
    }

    fn __getitem__(slf: &Bound<'_, Self>, name: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let py = slf.py();
        let Ok(text) = name.cast::<PyString>() else {
            return Err(PyKeyError::new_err(name.clone().unbind()));
        };
        let text = text.to_cow()?;
        let place = slf.get().with(|archive| archive.index_of(&text))?;
        match place {
            Some(place) => Ok(Tensor::new(slf.clone().unbind(), place)),
            None => {
                let archive = slf.get().get()?;
                Err(PyKeyError::new_err(near(py, &text, &archive)?))
            }
        }
    }

    #[pyo3(name = "get", signature = (name, default=None, /))]
    fn find<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if slf.get().__contains__(name)? {
            Ok(Bound::new(py, Self::__getitem__(slf, name)?)?.into_any())
        } else {
            Ok(default.unwrap_or_else(|| py.None().into_bound(py)))
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let archive = self.get()?;
        let names: Vec<_> = archive.tensors().map(|tensor| tensor.name()).collect();
        Ok(PyList::new(py, names)?.try_iter()?.into_any())
    }

    fn keys<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().get()?;
        view(&slf, "KeysView")
    }

    fn values<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().get()?;
        view(&slf, "ValuesView")
    }

    fn items<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().get()?;
        view(&slf, "ItemsView")
    }

    fn __or__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let both = PyDict::new(slf.py());
        both.update(slf.as_any().cast()?)?;
        both.update(other.cast()?)?;
        Ok(both)
    }

    fn __ror__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let both = PyDict::new(slf.py());
        both.update(other.cast()?)?;
        both.update(slf.as_any().cast()?)?;
        Ok(both)
    }

    /// The format's id, such as `safetensors`; an empty text where the tensors are of several files of different formats, or
    /// of none.
    #[getter]
    fn format(&self) -> PyResult<&'static str> {
        self.with(|archive| archive.format().map_or("", |spec| spec.id))
    }

    /// The version of the format, if it has versions.
    #[getter]
    fn version(&self) -> PyResult<Option<String>> {
        self.with(|archive| {
            let version = archive.version();
            (!matches!(version, "" | "-")).then(|| version.to_owned())
        })
    }

    /// Bytes of all tensors when they are dense.
    #[getter]
    fn nbytes(&self) -> PyResult<u64> {
        self.with(|archive| {
            let lengths = archive
                .tensors()
                .filter_map(|tensor| tensor.info().dense_len());
            lengths.fold(0u64, u64::saturating_add)
        })
    }

    /// The path that it was opened by, as a `pathlib.Path`.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let path = self.with(|archive| archive.path().map(Path::to_owned))?;
        let path = path.map(|path| py.import("pathlib")?.getattr("Path")?.call1((path,)));
        path.transpose()
    }

    /// The files that it consists of, the one that was opened first.
    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        static FILE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let class = FILE.import(py, "tenfold._results", "File")?;
        let archive = self.get()?;
        let directory = archive.path().map(directory_of);
        let files = archive.sources().map(|(name, source)| {
            let path = directory.as_ref().zip(name).map(|(at, name)| at.join(name));
            class.call1((name, path, source.len()))
        });
        PyTuple::new(py, files.collect::<PyResult<Vec<_>>>()?)
    }

    /// What the file says about itself.
    #[getter]
    fn metadata(&self) -> PyResult<Metadata> {
        Ok(Metadata::of(self.get()?, None))
    }

    /// What was noticed while the file was opened.
    #[getter]
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        static FINDING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let class = FINDING.import(py, "tenfold._results", "Finding")?;
        let archive = self.get()?;
        let findings = archive.findings().iter().map(|finding| {
            let (source, range) = finding.at.clone().unzip();
            let file = archive.source_name(source.unwrap_or(SourceId::MAIN));
            let message = format!("{}{}", finding.message, hint::words(&finding.hints));
            let severity = finding.severity.to_string();
            let offset = range.map(|range| range.start);
            let rule = &finding.rule;
            class.call1((
                severity,
                rule,
                finding.tensor.as_deref(),
                file,
                offset,
                message,
            ))
        });
        PyTuple::new(py, findings.collect::<PyResult<Vec<_>>>()?)
    }

    /// The limits that it was opened with.
    #[getter]
    fn limits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static LIMITS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let class = LIMITS.import(py, "tenfold._results", "Limits")?;
        let limits = self.with(|archive| *archive.limits())?;
        class.call1((
            limits.header_bytes,
            limits.rank,
            limits.depth,
            limits.tensor_memory,
            limits.dense_bytes,
        ))
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.with(|_| ()).is_err()
    }

    /// Ends the archive: using it or its tensors is an error from now on. Arrays that were made of it stay as they are.
    fn close(&self, py: Python<'_>) {
        let opened = py.detach(|| {
            let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
            opened.take()
        });
        drop(opened);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (_kind=None, _value=None, _traceback=None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyType>>,
        _value: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) {
        self.close(py);
    }

    /// The tensors whose names match any of `include`, or all, and none of `exclude`, and for which `where` is true.
    ///
    /// Patterns are those of file names, in which `*` crosses dots.
    #[pyo3(signature = (include=None, exclude=None, *, r#where=None))]
    fn select<'py>(
        slf: &Bound<'py, Self>,
        include: Option<Bound<'py, PyAny>>,
        exclude: Option<Bound<'py, PyAny>>,
        r#where: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let select = slf.py().import("tenfold._load")?.getattr("select")?;
        select.call1((slf, include, exclude, r#where))
    }

    /// All tensors as arrays of NumPy, by their names: views of the file where they can be, see `Tensor.numpy`.
    #[pyo3(signature = (*, copy=None))]
    fn numpy<'py>(slf: &Bound<'py, Self>, copy: Option<bool>) -> PyResult<Bound<'py, PyAny>> {
        let glue = slf.py().import("tenfold._frameworks")?;
        glue.call_method1("archive_numpy", (slf, copy))
    }

    /// All tensors as tensors of PyTorch, by their names, see `Tensor.torch`.
    #[pyo3(signature = (*, device=None, copy=None))]
    fn torch<'py>(
        slf: &Bound<'py, Self>,
        device: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let glue = slf.py().import("tenfold._torch")?;
        glue.call_method1("archive_torch", (slf, device, copy))
    }

    /// The names as groups, with types, shapes and sizes, as a text.
    fn tree<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let show = slf.py().import("tenfold._show")?;
        show.call_method1("tree", (slf,))
    }

    /// The tensors with these places, as an archive.
    fn _take(&self, places: Vec<usize>) -> PyResult<Self> {
        let archive = self.get()?;
        let mut wanted = vec![false; archive.tensors().len()];
        for place in places {
            if let Some(wanted) = wanted.get_mut(place) {
                *wanted = true;
            }
        }
        let next = std::cell::Cell::new(0);
        let part = archive.select(|_| {
            let place = next.replace(next.get() + 1);
            wanted.get(place).copied().unwrap_or(false)
        });
        Ok(Self {
            is_part: true,
            ..self.derived(part)
        })
    }

    /// The places of the tensors whose names match any of `include`, or all, and none of `exclude`.
    fn _matching(
        &self,
        include: Option<Vec<String>>,
        exclude: Vec<String>,
    ) -> PyResult<Vec<usize>> {
        let include = include.map(|include| globs(&include)).transpose()?;
        let exclude = globs(&exclude)?;
        self.with(|archive| {
            let is_wanted = |name: &str| {
                include.as_ref().is_none_or(|set| set.is_match(name)) && !exclude.is_match(name)
            };
            let named = archive.tensors().enumerate();
            let wanted = named.filter(|(_, tensor)| is_wanted(tensor.name()));
            wanted.map(|(place, _)| place).collect()
        })
    }

    /// All tensors that can be viewed, as arrays of NumPy under their names; for the others the result of `other`.
    fn _arrays<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        many::arrays(slf, other)
    }

    /// What `shared` makes of what `Tensor._mapped_at` says of each tensor, under their names, and the places of the others.
    fn _viewed<'py>(
        slf: &Bound<'py, Self>,
        shared: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyDict>, Vec<usize>)> {
        many::viewed(slf, shared)
    }

    /// Reads tensors, as numbers, into pieces of one memory: each at its offset and as long as it is.
    #[pyo3(signature = (places, offsets, out, progress, threads))]
    fn _read_many(
        &self,
        py: Python<'_>,
        places: Vec<usize>,
        offsets: Vec<(usize, usize)>,
        out: &Bound<'_, PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
        threads: usize,
    ) -> PyResult<()> {
        let pieces: Vec<_> = places.into_iter().zip(offsets).collect();
        many::read(py, &self.get()?, &pieces, out, progress, threads)
    }

    /// A duplicate of the descriptor of one of its files, which the caller closes; `None` where there is no file.
    fn _descriptor(&self, file: u32) -> PyResult<Option<i64>> {
        let archive = self.get()?;
        let source = archive.source(SourceId(file));
        let Some(file) = source.and_then(|source| source.as_file()) else {
            return Ok(None);
        };
        #[cfg(unix)]
        {
            use std::os::fd::IntoRawFd;
            let copy = file.try_clone()?;
            Ok(Some(copy.into_raw_fd().into()))
        }
        #[cfg(not(unix))]
        {
            let _ = file;
            Ok(None)
        }
    }

    /// The paths of the files that lie beside the one that was opened, or in the directory, as shards do.
    fn _beside(&self) -> PyResult<Vec<PathBuf>> {
        self.with(|archive| {
            let names: Vec<_> = archive.sources().filter_map(|(name, _)| name).collect();
            match archive.path() {
                Some(path) if !names.is_empty() => {
                    let directory = directory_of(path);
                    names.iter().map(|name| directory.join(name)).collect()
                }
                _ => Vec::new(),
            }
        })
    }

    /// Names as groups: a pattern and the places of the tensors that it stands for.
    fn _groups(&self) -> PyResult<Vec<(String, Vec<usize>)>> {
        self.with(|archive| {
            let tensors = archive.manifest().tensors.iter();
            let kinds = tensors.map(|info| (info.name.as_str(), (info.dtype, info.shape.clone())));
            let groups = group_names(kinds);
            groups
                .into_iter()
                .map(|group| (group.pattern, group.members))
                .collect()
        })
    }

    /// How another process opens it.
    #[getter]
    fn _origin(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.origin.as_ref().map(|origin| origin.clone_ref(py))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let archive = slf.get().get()?;
        let Some(origin) = &slf.get().origin else {
            let message = "only archives that were opened by a path or from bytes can be pickled";
            return Err(PyTypeError::new_err(message));
        };
        let names = slf.get().is_part.then(|| {
            let names = archive.tensors().map(|tensor| tensor.name().to_owned());
            names.collect::<Vec<_>>()
        });
        let again = py.import("tenfold._open")?.getattr("reopen")?;
        Ok((again, (origin, names).into_pyobject(py)?))
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let show = slf.py().import("tenfold._show")?;
        show.call_method1("archive", (slf,))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let html = slf.py().import("tenfold._html")?;
        html.call_method1("archive", (slf,))
    }
}

impl Archive {
    /// Another archive of the same files.
    pub(crate) fn derived(&self, archive: tenfold::Archive) -> Self {
        let origin = Python::attach(|py| self._origin(py));
        Self::new(archive, origin)
    }
}

/// The directory itself, or that of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    if path.is_dir() {
        path
    } else {
        path.parent().unwrap_or(Path::new(""))
    }
}

/// A set of patterns as the command has them: `*` crosses dots.
pub(crate) fn globs(patterns: &[String]) -> PyResult<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(false)
            .backslash_escape(true)
            .build();
        let wrong = |cause: globset::Error| format!("{pattern:?}: {}", cause.kind());
        set.add(glob.map_err(|cause| PyValueError::new_err(wrong(cause)))?);
    }
    set.build()
        .map_err(|cause| PyValueError::new_err(format!("too many patterns: {cause}")))
}
