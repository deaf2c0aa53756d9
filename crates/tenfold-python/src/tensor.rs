//! A tensor of an archive.

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PyTuple};
use tenfold::model::Endian;
use tenfold::ops;

use crate::archive::Archive;
use crate::dtype::{self, DType};
use crate::error::{self, raised};
use crate::index;
use crate::memory::Memory;
use crate::metadata::Metadata;
use crate::reading::index_error;
use crate::shared::{self, MappedAt, numbers, shared_array, viewed};

/// A tensor of an archive: what it is, and the ways to read it. Nothing is read until it is asked for.
#[pyclass(frozen, weakref, module = "tenfold")]
pub(crate) struct Tensor {
    archive: Py<Archive>,
    place: usize,
}

impl Tensor {
    pub(crate) fn new(archive: Py<Archive>, place: usize) -> Self {
        Self { archive, place }
    }

    pub(crate) fn with<T>(
        &self,
        use_it: impl FnOnce(tenfold::Tensor<'_>) -> PyResult<T>,
    ) -> PyResult<T> {
        let gone = || PyIndexError::new_err("there is no such tensor any more");
        self.archive.get().with(|archive| {
            let tensor = archive.tensor_at(self.place);
            use_it(tensor.ok_or_else(gone)?)
        })?
    }

    /// The archive to read from without the interpreter's lock: whoever closes it meanwhile does not wait.
    pub(crate) fn opened(&self) -> PyResult<tenfold::Archive> {
        self.archive.get().get()
    }

    pub(crate) fn place(&self) -> usize {
        self.place
    }
}

/// A function of `tenfold._frameworks`.
fn glue<'py>(
    slf: &Bound<'py, Tensor>,
    name: &str,
    arguments: &[(&str, Option<Bound<'py, PyAny>>)],
) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    let named = PyDict::new(py);
    for (key, value) in arguments {
        named.set_item(key, value)?;
    }
    let function = py.import("tenfold._frameworks")?.getattr(name)?;
    function.call((slf,), Some(&named))
}

#[pymethods]
impl Tensor {
    /// Its name.
    #[getter]
    fn name(&self) -> PyResult<String> {
        self.with(|tensor| Ok(tensor.name().to_owned()))
    }

    /// The type of its elements: of quantized tensors that of the blocks.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<DType>> {
        self.with(|tensor| dtype::interned(py, tensor.info().dtype))
    }

    /// The type of the numbers that it is read as: `dtype`, and of quantized tensors that of the numbers they stand for.
    #[getter]
    fn _numbers(&self, py: Python<'_>) -> PyResult<Py<DType>> {
        self.with(|tensor| dtype::interned(py, numbers(tensor.info())))
    }

    #[getter]
    fn __numpy_dtype__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let dtype = self._numbers(py)?;
        dtype.get().numpy_in(py, Endian::NATIVE)
    }

    /// Its dimensions, outermost first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.with(|tensor| PyTuple::new(py, tensor.info().shape.iter()))
    }

    /// How many dimensions it has.
    #[getter]
    fn ndim(&self) -> PyResult<usize> {
        self.with(|tensor| Ok(tensor.info().shape.len()))
    }

    /// How many elements it has.
    #[getter]
    fn size(&self) -> PyResult<u64> {
        self.with(|tensor| Ok(tensor.info().elements().unwrap_or(u64::MAX)))
    }

    /// Bytes that it takes when it is dense, of its own type.
    #[getter]
    fn nbytes(&self) -> PyResult<u64> {
        self.with(|tensor| Ok(tensor.info().dense_len().unwrap_or(0)))
    }

    /// Bytes that it takes in the file.
    #[getter]
    fn stored_nbytes(&self) -> PyResult<u64> {
        self.with(|tensor| {
            let parts = tensor.info().parts.iter();
            let stored = parts.map(|part| match part.payload.stored() {
                Some((_, range)) => range.end.saturating_sub(range.start),
                None => part.payload.len(),
            });
            Ok(stored.fold(0u64, u64::saturating_add))
        })
    }

    /// How its elements are arranged: `row-major`, `column-major`, `strided`, `coo`, `csr`, `csc`, `packed`, `pairs`, `decoded`, or
    /// the name of a scheme.
    #[getter]
    fn layout(&self) -> PyResult<String> {
        self.with(|tensor| Ok(tensor.info().layout.name().to_owned()))
    }

    /// `little` or `big`: the order of the bytes of its numbers in the file.
    #[getter]
    fn byteorder(&self) -> PyResult<String> {
        self.with(|tensor| {
            let endian = tensor.info().parts.first().map(|part| part.endian);
            Ok(endian.unwrap_or_default().to_string())
        })
    }

    /// What its data is compressed with.
    #[getter]
    fn codec(&self) -> PyResult<Option<String>> {
        self.with(|tensor| {
            let encoding = tensor.info().parts.first().map(|part| part.encoding());
            Ok(encoding.filter(|name| *name != "raw").map(str::to_owned))
        })
    }

    /// What the file says about the tensor.
    #[getter]
    fn metadata(&self) -> PyResult<Metadata> {
        Ok(Metadata::of(self.opened()?, Some(self.place)))
    }

    /// The parts that it is stored as.
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        static PART: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let class = PART.import(py, "tenfold._results", "Part")?;
        self.with(|tensor| {
            let parts = tensor.info().parts.iter().map(|part| {
                let (source, range) = part.payload.stored().unzip();
                let nbytes = match &range {
                    Some(range) => range.end.saturating_sub(range.start),
                    None => part.payload.len(),
                };
                class.call1((
                    part.role.name(),
                    dtype::interned(py, part.dtype)?,
                    source.map(|source| source.0),
                    range.map(|range| range.start),
                    nbytes,
                    part.encoding(),
                    part.endian.to_string(),
                    part.checksum.as_ref().map(|checksum| checksum.kind.name()),
                ))
            });
            PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)
        })
    }

    /// Where its data begins in its file, where it is stored in one piece.
    #[getter]
    fn offset(&self) -> PyResult<Option<u64>> {
        self.with(|tensor| {
            let stored = tensor
                .info()
                .parts
                .first()
                .and_then(|part| part.payload.stored());
            Ok(stored.map(|(_, range)| range.start))
        })
    }

    /// The file that its data is in.
    #[getter]
    fn file<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let source = self.with(|tensor| {
            let stored = tensor
                .info()
                .parts
                .first()
                .and_then(|part| part.payload.stored());
            Ok(stored.map(|(source, _)| source.index()))
        })?;
        let files = self.archive.bind(py).getattr("files")?;
        source.map(|source| files.get_item(source)).transpose()
    }

    /// The archive.
    #[getter]
    fn archive(&self, py: Python<'_>) -> Py<Archive> {
        self.archive.clone_ref(py)
    }

    /// Why it cannot be read, as an exception that is not raised; `None` where it can.
    #[getter]
    fn defect<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.with(|tensor| {
            let defect = tensor.info().defect.as_ref();
            Ok(defect.map(|defect| error::defect(py, defect)))
        })
    }

    /// Whether `numpy()` gives an array over memory that is there already.
    #[getter]
    fn is_zero_copy(&self) -> PyResult<bool> {
        self.with(|tensor| Ok(viewed(&tensor).is_some()))
    }

    /// The bytes of its first part as they are in the file: a read-only view, which outlives the archive.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.read(py, |tensor| tensor.stored())?;
        let memory = Bound::new(py, Memory { bytes })?;
        Ok(PyMemoryView::from(memory.as_any())?.into_any())
    }

    /// Where it can be viewed in a mapping of its file by programs that have this machine's byte order only: the file, where in it,
    /// whether it is column-major, its shape, its elements, and its type.
    fn _mapped_at<'py>(&self, py: Python<'py>) -> PyResult<Option<MappedAt<'py>>> {
        self.with(|tensor| shared::mapped_at(py, &tensor))
    }

    /// The bytes of one part after decompression.
    fn _part(&self, py: Python<'_>, part: usize) -> PyResult<Memory> {
        let bytes = self.read(py, |tensor| tensor.part(part))?;
        Ok(Memory { bytes })
    }

    /// Its elements as an array of NumPy.
    ///
    /// The array lies over the file's memory where it can, read-only, and outlives the archive; otherwise it has memory of its
    /// own. `copy=False` refuses to copy (`ValueError`), `copy=True` always does, and then it can be written to. Quantized
    /// tensors give the numbers that they stand for, sparse ones their zeros too. `dtype` casts, rounding to nearest.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn numpy<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if dtype.is_none() && copy != Some(true) {
            let shared = slf.get().with(|tensor| shared_array(py, &tensor))?;
            if let Some(array) = shared {
                return Ok(array);
            }
        }
        let copy = copy.map(|copy| {
            copy.into_pyobject(py)
                .map(|copy| copy.to_owned().into_any())
        });
        glue(
            slf,
            "to_numpy",
            &[("dtype", dtype), ("copy", copy.transpose()?)],
        )
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf, dtype, copy)
    }

    /// Its elements as a tensor of PyTorch.
    ///
    /// On the CPU it lies over a private mapping of the file: nothing is copied before it is written to, and the file stays as
    /// it is. `copy=False` refuses to copy, `copy=True` always does.
    #[pyo3(signature = (*, device=None, dtype=None, copy=None))]
    fn torch<'py>(
        slf: &Bound<'py, Self>,
        device: Option<Bound<'py, PyAny>>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static SHARED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static MADE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = slf.py();
        // What is done for each of many tensors.
        if device.is_none() && dtype.is_none() && copy != Some(true) {
            let tensor = slf.get();
            if let Some(place) = tensor.with(|tensor| shared::mapped_at(py, &tensor))? {
                let shared = SHARED.import(py, "tenfold._torch", "shared")?;
                let made = shared.call1((&tensor.archive, place))?;
                if !made.is_none() {
                    return Ok(made);
                }
            }
        }
        let made = MADE.import(py, "tenfold._torch", "to_torch")?;
        made.call1((slf, device, dtype, copy))
    }

    /// Its elements as an array of JAX.
    #[pyo3(signature = (*, device=None, dtype=None))]
    fn jax<'py>(
        slf: &Bound<'py, Self>,
        device: Option<Bound<'py, PyAny>>,
        dtype: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        glue(slf, "to_jax", &[("device", device), ("dtype", dtype)])
    }

    fn __jax_array__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::jax(slf, None, None)
    }

    /// Its elements as a tensor of TensorFlow.
    #[pyo3(signature = (*, dtype=None))]
    fn tensorflow<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        glue(slf, "to_tensorflow", &[("dtype", dtype)])
    }

    /// Its elements as an array of MLX.
    #[pyo3(signature = (*, dtype=None))]
    fn mlx<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        glue(slf, "to_mlx", &[("dtype", dtype)])
    }

    /// A sparse tensor as a `coo_array`, `csr_array` or `csc_array` of SciPy, whose arrays share the file's memory.
    fn scipy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        glue(slf, "to_scipy", &[])
    }

    /// The blocks of a quantized tensor as they are in the file: an array of bytes, one row for each block.
    fn blocks<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        glue(slf, "blocks", &[])
    }

    /// Some of its elements, by integers, slices with any step, `...` and `None`, as NumPy has them. Reads what it needs.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        index::parse(&key)?;
        glue(slf, "sliced", &[("key", Some(key))])
    }

    /// The shape that a slice has, without the dimensions of `None`.
    fn _sliced_shape(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let key = index::parse(key)?;
        self.with(|tensor| {
            let sliced = tensor.slice(&key.slices).map_err(index_error)?;
            Ok(sliced.shape())
        })
    }

    /// Fills memory of the caller, which is exactly as long, with the elements: dense, row-major, as numbers of this machine.
    ///
    /// `out` is anything writable with a buffer: an array, pinned memory, shared memory.
    #[pyo3(signature = (out, key=None))]
    fn read_into(
        &self,
        py: Python<'_>,
        out: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.fill(py, out, key)
    }

    /// Its elements one after the other, as arrays of at most about so many bytes: memory does not grow with the tensor.
    #[pyo3(signature = (nbytes=4194304))]
    fn chunks<'py>(slf: &Bound<'py, Self>, nbytes: usize) -> PyResult<Bound<'py, PyAny>> {
        let nbytes = nbytes.into_pyobject(slf.py())?.into_any();
        glue(slf, "chunks", &[("nbytes", Some(nbytes))])
    }

    /// Its elements, dense, row-major and little-endian: of quantized tensors the blocks.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.read(py, |tensor| tensor.canonical())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The same without a copy where it is stored so.
    fn _canonical(&self, py: Python<'_>) -> PyResult<Memory> {
        let bytes = self.read(py, |tensor| tensor.canonical())?;
        Ok(Memory { bytes })
    }

    /// Bytes that its elements take, as numbers, or those of a slice; an error where the file asks for more memory than
    /// limits allow. Nothing is read.
    fn _room(&self, key: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        self.room(key)
    }

    /// Elements of less than a byte, one in each byte; those of a slice.
    fn _unpacked(&self, py: Python<'_>, key: Option<&Bound<'_, PyAny>>) -> PyResult<Memory> {
        let bytes = self.unpacked(py, key)?;
        Ok(Memory { bytes })
    }

    /// The tensor in another type, as an archive of it alone.
    fn _as(&self, dtype: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let dtype = dtype::parse(dtype)?;
        let name = self.name()?;
        let archive = self.opened()?.select(|info| info.name == name);
        let mut cast = ops::decoded(&archive).map_err(raised)?;
        cast = ops::cast(&cast, |_| Some(dtype)).map_err(raised)?;
        Python::attach(|py| {
            let archive = Py::new(py, self.archive.get().derived(cast))?;
            Ok(Tensor::new(archive, 0))
        })
    }

    /// The SHA-256 of its elements, dense, row-major and little-endian, in hexadecimal digits: the same in every format.
    fn digest(&self, py: Python<'_>) -> PyResult<String> {
        self.sum(py)
    }

    /// What its numbers are like: the least and the greatest, mean, zeros, NaN, and a histogram of `bins`.
    #[pyo3(signature = (*, bins=None))]
    fn stats<'py>(slf: &Bound<'py, Self>, bins: Option<u32>) -> PyResult<Bound<'py, PyAny>> {
        let bins = bins.map(|bins| bins.into_pyobject(slf.py()).map(Bound::into_any));
        glue(slf, "stats", &[("bins", bins.transpose()?)])
    }

    /// A capsule for other packages, see `dlpack`. Memory that is shared is marked as read-only.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i64, i64)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream;
        crate::dlpack::export(slf, max_version, dl_device, copy)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (crate::dlpack::CPU, 0)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.with(|tensor| match tensor.info().shape.first() {
            Some(first) => Ok(usize::try_from(*first)?),
            None => Err(PyTypeError::new_err("len() of a tensor without dimensions")),
        })
    }

    fn __iter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let iterator = slf.py().import("tenfold._frameworks")?;
        Ok(iterator.call_method1("rows", (slf,))?.unbind())
    }

    /// Its one element as a number of Python.
    fn item<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::numpy(slf, None, None)?.call_method0("item")
    }

    #[allow(clippy::type_complexity)] // a function and its arguments
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Py<Archive>, String))> {
        let py = slf.py();
        let again = py.import("operator")?.getattr("getitem")?;
        let tensor = slf.get();
        Ok((again, (tensor.archive.clone_ref(py), tensor.name()?)))
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let show = slf.py().import("tenfold._show")?;
        show.call_method1("tensor", (slf,))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let html = slf.py().import("tenfold._html")?;
        html.call_method1("tensor", (slf,))
    }
}
