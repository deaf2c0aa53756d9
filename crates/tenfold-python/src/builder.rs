//! Tensors of Python, to be written.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tenfold::model::{Form, Layout, Order, Part, Payload, Role, Strides, TensorInfo, Value};
use tenfold::{ArchiveBuilder, Bytes, Error, Pushed};

use crate::archive::Archive;
use crate::dtype::DType;
use crate::error::raised;
use crate::memory::held;
use crate::metadata::from_python;
use crate::source::failed;
use crate::tensor::Tensor;

/// Collects tensors and metadata.
#[pyclass(frozen, module = "tenfold._tenfold")]
pub(crate) struct Builder(Mutex<Option<ArchiveBuilder>>);

/// What is said about a tensor beside its elements.
type Said = Vec<(String, Value)>;

impl Builder {
    fn change<T>(&self, change: impl FnOnce(&mut ArchiveBuilder) -> PyResult<T>) -> PyResult<T> {
        let mut builder: MutexGuard<'_, _> = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = || PyRuntimeError::new_err("the builder is finished");
        change(builder.as_mut().ok_or_else(ended)?)
    }
}

fn say(pushed: Pushed<'_>, said: Said) {
    let _ = (said.into_iter()).fold(pushed, |pushed, (key, value)| pushed.meta(&key, value));
}

fn said(metadata: Option<&Bound<'_, PyAny>>) -> PyResult<Said> {
    let Some(metadata) = metadata else {
        return Ok(Vec::new());
    };
    match from_python(metadata, 0)? {
        Value::Map(map) => Ok(map
            .iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()),
        _ => Err(PyValueError::new_err(
            "the metadata of a tensor is a mapping",
        )),
    }
}

#[pymethods]
impl Builder {
    #[new]
    fn new() -> Self {
        Self(Mutex::new(Some(ArchiveBuilder::new())))
    }

    /// Adds a dense tensor that is in memory, row-major or column-major. The object is kept, and nothing is copied.
    #[pyo3(signature = (name, dtype, shape, memory, *, big_endian=false, column_major=false, metadata=None))]
    #[allow(clippy::too_many_arguments)]
    fn push(
        &self,
        name: String,
        dtype: &DType,
        shape: Vec<u64>,
        memory: &Bound<'_, PyAny>,
        big_endian: bool,
        column_major: bool,
        metadata: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (bytes, said) = (held(memory)?, said(metadata)?);
        self.change(|builder| {
            let pushed = if column_major {
                push_columns(builder, name, dtype.dtype, &shape, bytes)
            } else {
                builder.push(name, dtype.dtype, &shape, bytes)
            };
            let pushed = pushed.map_err(raised)?;
            say(
                if big_endian {
                    pushed.big_endian()
                } else {
                    pushed
                },
                said,
            );
            Ok(())
        })
    }

    /// Adds a dense tensor that `make` makes when it is written: it returns memory of the tensor's bytes, row-major and
    /// little-endian, which is let go as soon as it is written.
    #[pyo3(signature = (name, dtype, shape, make, *, metadata=None))]
    fn stream(
        &self,
        name: String,
        dtype: &DType,
        shape: Vec<u64>,
        make: Py<PyAny>,
        metadata: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let said = said(metadata)?;
        self.change(|builder| {
            let made = builder.stream(name, dtype.dtype, &shape, move |put| {
                // The interpreter's lock is not held while what is read from waits.
                let memory = Python::attach(|py| held(&make.bind(py).call0()?));
                put(&memory.map_err(|error| failed("cannot make the tensor", error))?)
            });
            say(made.map_err(raised)?, said);
            Ok(())
        })
    }

    /// Adds a dense tensor, row-major and little-endian, that is the whole of a file.
    #[pyo3(signature = (name, dtype, shape, path, *, metadata=None))]
    fn file(
        &self,
        name: String,
        dtype: &DType,
        shape: Vec<u64>,
        path: std::path::PathBuf,
        metadata: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let said = said(metadata)?;
        let source = tenfold::io::FileSource::open(&path).map_err(raised)?;
        self.change(|builder| {
            let pushed = builder.push(name, dtype.dtype, &shape, source);
            say(pushed.map_err(raised)?, said);
            Ok(())
        })
    }

    /// Adds a tensor of another archive.
    #[pyo3(signature = (name, tensor, *, metadata=None))]
    fn tensor(
        &self,
        name: String,
        tensor: &Tensor,
        metadata: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let said = said(metadata)?;
        let archive = tensor.opened()?;
        let place = tensor.place();
        let gone = || PyValueError::new_err("there is no such tensor any more");
        let found = archive.tensor_at(place).ok_or_else(gone)?;
        let info = found.info();
        let (dtype, shape) = (info.dtype, info.shape.to_vec());
        self.change(|builder| {
            let pushed = match found.in_place() {
                Some(in_place) => {
                    let pushed = match in_place.order {
                        Order::RowMajor => builder.push(name, dtype, &shape, in_place.bytes),
                        Order::ColumnMajor => {
                            push_columns(builder, name, dtype, &shape, in_place.bytes)
                        }
                    };
                    let is_big = in_place.endian == tenfold::model::Endian::Big;
                    pushed.map(|pushed| if is_big { pushed.big_endian() } else { pushed })
                }
                None => {
                    let archive = archive.clone();
                    builder.stream(name, dtype, &shape, move |put| {
                        let gone = || Error::argument("there is no such tensor any more");
                        let tensor = archive.tensor_at(place).ok_or_else(gone)?;
                        tensor.stream(&Form::canonical(dtype), put)
                    })
                }
            };
            let pushed = pushed.map_err(raised)?;
            let own = info.metadata.iter();
            let own = own.map(|(key, value)| (key.to_owned(), value.clone()));
            say(pushed, own.chain(said).collect());
            Ok(())
        })
    }

    /// Adds a sparse matrix or tensor: values, then coordinates (`coo`, one row for each dimension), columns and places of rows
    /// (`csr`), or rows and places of columns (`csc`), these as 64-bit integers.
    #[pyo3(signature = (name, dtype, shape, layout, parts, *, metadata=None))]
    fn sparse(
        &self,
        name: String,
        dtype: &DType,
        shape: Vec<u64>,
        layout: &str,
        parts: Vec<Bound<'_, PyAny>>,
        metadata: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let said = said(metadata)?;
        let parts = parts.iter().map(held).collect::<PyResult<Vec<Bytes>>>()?;
        let width = dtype.dtype.width().unwrap_or(1);
        let nnz = parts.first().map_or(0, |values| values.len() / width) as u64;
        let (layout, roles) = match layout {
            "coo" => (Layout::Coo { nnz }, vec![Role::Values, Role::Coords]),
            other => {
                let layout = if other == "csc" {
                    Layout::Csc { nnz }
                } else {
                    Layout::Csr { nnz }
                };
                let roles = vec![Role::Values, Role::Indices, Role::Indptr];
                (layout, roles)
            }
        };
        let mut tensor = TensorInfo::new(name, dtype.dtype, shape, layout);
        for (role, bytes) in roles.into_iter().zip(parts) {
            let of = match role {
                Role::Values => dtype.dtype,
                _ => tenfold::model::DType::U64,
            };
            tensor
                .parts
                .push(Part::new(role, of, Payload::Inline(bytes)));
        }
        self.change(|builder| {
            say(builder.push_info(tensor).map_err(raised)?, said);
            Ok(())
        })
    }

    /// Says something about the file.
    fn meta(&self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = from_python(value, 0)?;
        self.change(|builder| {
            builder.meta(key, value);
            Ok(())
        })
    }

    /// Says about the file what another archive says.
    fn meta_of(&self, py: Python<'_>, archive: &Archive) -> PyResult<()> {
        let archive = archive.get()?;
        let loaded = py.detach(|| archive.load_metadata().map(|all| all.into_owned()));
        let loaded = loaded.map_err(raised)?;
        self.change(|builder| {
            for (key, value) in loaded.iter() {
                builder.meta(key, value.clone());
            }
            Ok(())
        })
    }

    /// The archive.
    fn finish(&self) -> PyResult<Archive> {
        let mut builder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = || PyRuntimeError::new_err("the builder is finished");
        let builder = builder.take().ok_or_else(ended)?;
        Ok(Archive::new(builder.finish(), None))
    }
}

/// A tensor whose first index runs fastest.
fn push_columns<'b>(
    builder: &'b mut ArchiveBuilder,
    name: String,
    dtype: tenfold::model::DType,
    shape: &[u64],
    bytes: Bytes,
) -> tenfold::Result<Pushed<'b>> {
    let mut step = 1u64;
    let steps = shape.iter().map(|&dim| {
        let here = step;
        step = step.saturating_mul(dim.max(1));
        here
    });
    let steps: Vec<u64> = steps.collect();
    builder.strided(name, dtype, shape, Strides::from(steps), bytes)
}
