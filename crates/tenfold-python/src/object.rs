//! File objects of Python that are read at any place.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use tenfold::io::Source;
use tenfold::{Bytes, Result};

use crate::memory::held;
use crate::source::failed;

/// Asks where the end is.
pub(crate) fn open(object: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Source>> {
    let len = object.call_method1("seek", (0, 2))?.extract()?;
    let file = FileObject {
        object: object.clone().unbind(),
        len,
        turn: Mutex::new(()),
    };
    Ok(match Ranges::of(object)? {
        Some((system, path)) => Arc::new(Ends::new(Ranges { file, system, path })),
        None => Arc::new(Ends::new(file)),
    })
}

/// A file whose first bytes and last ones are fetched at once: what a file is shows there, in many small reads, and behind an
/// object there may be a network that takes its time for each.
struct Ends<S> {
    source: S,
    first: OnceLock<Bytes>,
    last: OnceLock<Bytes>,
}

impl<S: Source> Ends<S> {
    /// What is longer is asked for by itself.
    const SHORT: u64 = 64 << 10;
    /// As far as formats look to be told.
    const FIRST: u64 = (1 << 20) + (64 << 10);
    const LAST: u64 = 64 << 10;

    fn new(source: S) -> Self {
        Self {
            source,
            first: OnceLock::new(),
            last: OnceLock::new(),
        }
    }

    /// The bytes of a range, if they are among the first or the last.
    fn near(&self, range: &Range<u64>) -> Result<Option<Bytes>> {
        let len = self.source.len();
        let is_short = range.end.saturating_sub(range.start) <= Self::SHORT;
        let first = 0..Self::FIRST.min(len);
        let last = len.saturating_sub(Self::LAST)..len;
        if !is_short {
            return Ok(None);
        }
        let (kept, all) = if range.end <= first.end {
            (&self.first, first)
        } else if range.start >= last.start && range.end <= last.end {
            (&self.last, last)
        } else {
            return Ok(None);
        };
        let from = all.start;
        let bytes = match kept.get() {
            Some(bytes) => bytes,
            None => {
                let fetched = self.source.read(all)?;
                kept.get_or_init(|| fetched)
            }
        };
        let place = |at: u64| usize::try_from(at.saturating_sub(from)).unwrap_or(usize::MAX);
        let places = place(range.start)..place(range.end);
        // A source that gave less than it was asked for is asked again, and found out.
        let is_inside = places.start <= places.end && places.end <= bytes.len();
        Ok(is_inside.then(|| bytes.slice(places)))
    }
}

impl<S: Source> Source for Ends<S> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        match self.near(&range)? {
            Some(bytes) => Ok(bytes),
            None => self.source.read(range),
        }
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let near: Result<Option<Vec<_>>> = ranges.iter().map(|range| self.near(range)).collect();
        match near? {
            Some(bytes) => Ok(bytes),
            None => self.source.read_ranges(ranges),
        }
    }

    fn gap(&self) -> u64 {
        self.source.gap()
    }

    fn concurrency(&self) -> Option<usize> {
        self.source.concurrency()
    }

    fn window(&self) -> u64 {
        self.source.window()
    }
}

/// A file object that can be read at any place. It is asked for one thing at a time.
struct FileObject {
    object: Py<PyAny>,
    len: u64,
    turn: Mutex<()>,
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
