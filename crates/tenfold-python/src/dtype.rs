//! Types of elements.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tenfold::model::{self, Endian, Lanes, Scalar};

use crate::error::raised;

/// The type of a tensor's elements.
///
/// `name` is what NumPy, or ml_dtypes for it, calls the type; equality, and `tenfold.dtype()`, know the spellings of NumPy,
/// PyTorch, safetensors and GGUF.
///
/// >>> import tenfold
/// >>> tenfold.dtype("BF16")
/// dtype('bfloat16')
/// >>> tenfold.dtype("BF16") == "torch.bfloat16"
/// True
#[pyclass(frozen, module = "tenfold")]
pub(crate) struct DType {
    pub(crate) dtype: model::DType,
    /// NumPy's, in little-endian and big-endian order.
    numpy: [PyOnceLock<Py<PyAny>>; 2],
}

/// The type as an object: one for each type, for as long as the interpreter runs.
pub(crate) fn interned(py: Python<'_>, dtype: model::DType) -> PyResult<Py<DType>> {
    static KNOWN: PyOnceLock<Mutex<HashMap<model::DType, Py<DType>>>> = PyOnceLock::new();
    let known = KNOWN.get_or_init(py, Mutex::default);
    if let Some(found) = (known.lock().unwrap_or_else(PoisonError::into_inner)).get(&dtype) {
        return Ok(found.clone_ref(py));
    }
    let numpy = [PyOnceLock::new(), PyOnceLock::new()];
    let made = Py::new(py, DType { dtype, numpy })?;
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(known.entry(dtype).or_insert(made).clone_ref(py))
}

/// What NumPy calls a type, else what is closest to that.
pub(crate) fn name_of(dtype: model::DType) -> String {
    if let Some(name) = dtype.numpy_name() {
        return name.to_owned();
    }
    match dtype {
        model::DType::Number(scalar, Lanes::Real) => match scalar {
            Scalar::U1 => "uint1".into(),
            Scalar::U128 => "uint128".into(),
            Scalar::I128 => "int128".into(),
            Scalar::F128 => "float128".into(),
            other => other.name().into(),
        },
        model::DType::Number(scalar, lanes) => {
            let one = name_of(model::DType::Number(scalar, Lanes::Real));
            format!("{one}x{}", lanes.count())
        }
        model::DType::Block(spec) => spec.name.into(),
        other => other.to_string(),
    }
}

/// The type that is meant: one of ours, or any spelling.
pub(crate) fn parse(object: &Bound<'_, PyAny>) -> PyResult<model::DType> {
    if let Ok(dtype) = object.cast::<DType>() {
        return Ok(dtype.get().dtype);
    }
    let text = spelling(object)?;
    let of_ours = || model::DType::all().find(|dtype| name_of(*dtype) == text);
    match model::DType::parse(&text) {
        Ok(dtype) => Ok(dtype),
        Err(error) => of_ours().ok_or_else(|| raised(error)),
    }
}

/// How an object spells a type: a text, a type of NumPy, PyTorch, JAX or TensorFlow, or a class such as `float`.
fn spelling(object: &Bound<'_, PyAny>) -> PyResult<String> {
    static SPELL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if let Ok(text) = object.extract::<String>() {
        return Ok(text);
    }
    let spell = SPELL.import(object.py(), "tenfold._frameworks", "spelling")?;
    spell.call1((object,))?.extract()
}

impl DType {
    /// NumPy's type for one number of an element.
    pub(crate) fn numpy_in<'py>(
        &self,
        py: Python<'py>,
        endian: Endian,
    ) -> PyResult<Bound<'py, PyAny>> {
        static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let [little, big] = &self.numpy;
        let cell = match endian {
            Endian::Little => little,
            Endian::Big => big,
        };
        let made = cell.get_or_try_init(py, || {
            let make = MAKE.import(py, "tenfold._frameworks", "numpy_dtype")?;
            let name = name_of(self.scalar());
            let made = make.call1((name, endian == Endian::Big))?;
            Ok::<_, PyErr>(made.unbind())
        })?;
        Ok(made.bind(py).clone())
    }

    /// The type of the numbers that NumPy gets: elements of several numbers that it does not know have a dimension more.
    fn scalar(&self) -> model::DType {
        match self.dtype {
            model::DType::Number(scalar, _) if self.dtype.numpy_name().is_none() => {
                model::DType::Number(scalar, Lanes::Real)
            }
            other => other,
        }
    }
}

/// The dimension that NumPy's arrays have more than the tensor.
pub(crate) fn extra_dimension(dtype: model::DType) -> Option<u32> {
    match dtype {
        model::DType::Number(_, lanes) if lanes != Lanes::Real => {
            (dtype.numpy_name().is_none()).then(|| lanes.count())
        }
        _ => None,
    }
}

#[pymethods]
impl DType {
    /// What NumPy, or ml_dtypes for it, calls the type; a name of the same kind where neither has it.
    #[getter]
    fn name(&self) -> String {
        name_of(self.dtype)
    }

    /// What the command and its JSON call the type, such as `f32`.
    #[getter]
    fn code(&self) -> String {
        self.dtype.to_string()
    }

    /// Bits of one element; `None` for quantized types.
    #[getter]
    fn bits(&self) -> Option<u32> {
        match self.dtype {
            model::DType::Number(scalar, lanes) => Some(scalar.bits() * lanes.count()),
            _ => None,
        }
    }

    /// Bytes of one element; `None` where that is no whole number.
    #[getter]
    fn itemsize(&self) -> Option<usize> {
        self.dtype.width()
    }

    /// `bool`, `uint`, `int`, `float`, `complex`, `lanes`, `quantized` or `opaque`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.dtype {
            model::DType::Number(Scalar::Bool, Lanes::Real) => "bool",
            model::DType::Number(scalar, Lanes::Real) if scalar.is_float() => "float",
            model::DType::Number(scalar, Lanes::Real) if scalar.is_signed_integer() => "int",
            model::DType::Number(_, Lanes::Real) => "uint",
            model::DType::Number(_, Lanes::Complex) => "complex",
            model::DType::Number(..) => "lanes",
            model::DType::Block(_) => "quantized",
            _ => "opaque",
        }
    }

    /// Elements and bytes of one block of a quantized type.
    #[getter]
    fn block(&self) -> Option<(u32, u32)> {
        match self.dtype {
            model::DType::Block(spec) => Some((spec.elements, spec.bytes)),
            _ => None,
        }
    }

    /// NumPy's type.
    #[getter]
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numpy_in(py, Endian::NATIVE)
    }

    /// NumPy's type, where NumPy looks for it.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numpy(py)
    }

    #[getter]
    fn __numpy_dtype__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numpy(py)
    }

    /// PyTorch's type.
    #[getter]
    fn torch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let glue = py.import("tenfold._torch")?;
        glue.call_method1("torch_dtype", (self.name(),))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        parse(other).is_ok_and(|other| other == self.dtype)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        use pyo3::types::PyString;
        PyString::new(py, &self.dtype.to_string()).hash()
    }

    fn __repr__(&self) -> String {
        format!("dtype('{}')", self.name())
    }

    fn __str__(&self) -> String {
        self.name()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let dtype = py.import("tenfold")?.getattr("dtype")?;
        Ok((dtype, (self.dtype.to_string(),)))
    }
}

/// The type that a text, a type of another package or a class stands for.
///
/// >>> import tenfold
/// >>> tenfold.dtype("F8_E4M3").name
/// 'float8_e4m3fn'
#[pyfunction]
#[pyo3(signature = (spelling, /))]
pub(crate) fn dtype(py: Python<'_>, spelling: &Bound<'_, PyAny>) -> PyResult<Py<DType>> {
    interned(py, parse(spelling)?)
}
