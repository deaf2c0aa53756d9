//! What files say about themselves.

use std::sync::OnceLock;

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use tenfold::model::{self, List, Map, Value};
use tenfold::{Archive, Error};

use crate::error::raised;

/// What a file or a tensor says about itself: a read-only mapping in file order.
///
/// Values are those of Python; `types` says what they are in the file. Long lists are read when they are asked for.
#[pyclass(frozen, mapping, module = "tenfold")]
pub(crate) struct Metadata {
    archive: Archive,
    /// The tensor, if it is one that speaks.
    place: Option<usize>,
    loaded: OnceLock<model::Metadata>,
}

impl Metadata {
    pub(crate) fn of(archive: Archive, place: Option<usize>) -> Self {
        Self {
            archive,
            place,
            loaded: OnceLock::new(),
        }
    }

    fn said(&self) -> &model::Metadata {
        let tensor = self.place.and_then(|place| self.archive.tensor_at(place));
        match tensor {
            Some(tensor) => &tensor.info().metadata,
            None => self.archive.metadata(),
        }
    }

    /// A value for Python, read from the file where it was not yet.
    fn value<'py>(&self, py: Python<'py>, key: &str, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        if !matches!(value, Value::Elsewhere(_)) {
            return to_python(py, value);
        }
        if self.loaded.get().is_none() {
            let loaded = py.detach(|| self.archive.load_metadata().map(|all| all.into_owned()));
            // Whoever was first has loaded the same.
            let _ = self.loaded.set(loaded.map_err(raised)?);
        }
        let loaded = self.loaded.get().and_then(|all| all.get(key));
        match loaded {
            Some(value) => to_python(py, value),
            None => Err(PyKeyError::new_err(key.to_owned())),
        }
    }
}

#[pymethods]
impl Metadata {
    fn __len__(&self) -> usize {
        self.said().len()
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> bool {
        let key = key.extract::<String>();
        key.is_ok_and(|key| self.said().get(&key).is_some())
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = key.extract::<String>().ok();
        let found = found.and_then(|key| Some((self.said().get(&key)?, key)));
        match found {
            Some((value, key)) => self.value(py, &key, value),
            None => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    #[pyo3(signature = (key, default=None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.__getitem__(py, key) {
            Err(error) if error.is_instance_of::<PyKeyError>(py) => {
                Ok(default.unwrap_or_else(|| py.None().into_bound(py)))
            }
            found => found,
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let keys: Vec<&str> = self.said().iter().map(|(key, _)| key).collect();
        Ok(PyList::new(py, keys)?.try_iter()?.into_any())
    }

    fn keys<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(&slf, "KeysView")
    }

    fn values<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(&slf, "ValuesView")
    }

    fn items<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        view(&slf, "ItemsView")
    }

    /// What the values are in the file: `{"epoch": "u32", …}`.
    #[getter]
    fn types<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let types = PyDict::new(py);
        for (key, value) in self.said().iter() {
            types.set_item(key, value.type_name())?;
        }
        Ok(types)
    }

    /// All of it as a dictionary of its own.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (key, value) in self.said().iter() {
            all.set_item(key, self.value(py, key, value)?)?;
        }
        Ok(all)
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let ours = self.to_dict(py)?;
        if let Ok(other) = other.cast::<Metadata>() {
            return ours.eq(other.get().to_dict(py)?);
        }
        match other.cast::<PyMapping>() {
            Ok(other) => ours.eq(py.get_type::<PyDict>().call1((other,))?),
            Err(_) => Ok(false),
        }
    }

    /// Lists that are long or not read yet are only counted.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        const LONG: usize = 16;
        let mut shown = Vec::new();
        for (key, value) in self.said().iter() {
            let value = match value {
                Value::Elsewhere(list) => format!("[… {} of {}]", list.count, list.kind.name()),
                Value::List(list) if list.len() > LONG => format!("[… {} entries]", list.len()),
                value => to_python(py, value)?.repr()?.to_string(),
            };
            shown.push(format!("{}: {value}", PyString::new(py, key).repr()?));
        }
        Ok(format!("Metadata({{{}}})", shown.join(", ")))
    }
}

/// One of the views that every mapping has.
pub(crate) fn view<'py, T: pyo3::PyClass>(
    mapping: &Bound<'py, T>,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let abc = mapping.py().import("collections.abc")?;
    abc.getattr(name)?.call1((mapping,))
}

/// A value for Python.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    static ENCODED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::F32(value) => PyFloat::new(py, f64::from(*value)).into_any(),
        Value::F64(value) => PyFloat::new(py, *value).into_any(),
        Value::Integer(digits) => py.get_type::<PyInt>().call1((digits,))?,
        Value::Str(text) => PyString::new(py, text).into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::List(items) => {
            let list = PyList::empty(py);
            for item in items.iter() {
                list.append(to_python(py, &item)?)?;
            }
            list.into_any()
        }
        Value::Map(entries) => {
            let map = PyDict::new(py);
            for (key, value) in entries.iter() {
                map.set_item(key, to_python(py, &value)?)?;
            }
            map.into_any()
        }
        Value::Encoded { encoding, bytes } => {
            let class = ENCODED.import(py, "tenfold._results", "Encoded")?;
            class.call1((encoding.name(), PyBytes::new(py, bytes)))?
        }
        other => match (other.as_i64(), other.as_u64()) {
            (Some(number), _) => PyInt::new(py, number).into_any(),
            (_, Some(number)) => PyInt::new(py, number).into_any(),
            // A list without entries.
            _ => PyList::empty(py).into_any(),
        },
    })
}

/// A value of Python for a file. Numbers of NumPy keep their width; others are as wide as they need to be, 64 bits or more.
pub(crate) fn from_python(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    const DEEPEST: usize = 256;
    if depth > DEEPEST {
        return Err(PyTypeError::new_err("metadata is nested too deeply"));
    }
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if let Some(typed) = of_width(object)? {
        return Ok(typed);
    }
    if let Ok(value) = object.cast::<PyInt>() {
        return Ok(match (value.extract::<i64>(), value.extract::<u64>()) {
            (Ok(value), _) => Value::I64(value),
            (_, Ok(value)) => Value::U64(value),
            _ => Value::Integer(value.str()?.to_string()),
        });
    }
    if let Ok(value) = object.cast::<PyFloat>() {
        return Ok(Value::F64(value.value()));
    }
    if let Ok(value) = object.cast::<PyString>() {
        return Ok(Value::Str(value.to_str()?.to_owned()));
    }
    if let Ok(value) = object.cast::<PyBytes>() {
        return Ok(Value::Bytes(value.as_bytes().to_vec().into()));
    }
    if let Ok(value) = object.cast::<PyMapping>() {
        let mut map = model::Metadata::new();
        for item in value.items()?.iter() {
            let (key, value): (String, Bound<'_, PyAny>) = item.extract()?;
            map.set(&key, from_python(&value, depth + 1)?);
        }
        return Ok(Value::Map(Map::from(map)));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let mut items = Vec::new();
        for item in object.try_iter()? {
            items.push(from_python(&item?, depth + 1)?);
        }
        return Ok(Value::List(List::from(items)));
    }
    let name = object.get_type().qualname()?;
    let message = format!(
        "metadata holds texts, numbers, truth values, bytes, lists and dictionaries, not {name}"
    );
    Err(PyTypeError::new_err(message))
}

/// A number of NumPy.
fn of_width(object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    let py = object.py();
    let module = object.get_type().module()?;
    if module != "numpy" {
        return Ok(None);
    }
    let name = object.get_type().name()?.to_string();
    let item = match object.call_method0(pyo3::intern!(py, "tolist")) {
        Ok(item) => item,
        Err(_) => return Ok(None),
    };
    Ok(Some(match name.as_str() {
        "bool" | "bool_" => Value::Bool(item.extract()?),
        "uint8" => Value::U8(item.extract()?),
        "uint16" => Value::U16(item.extract()?),
        "uint32" => Value::U32(item.extract()?),
        "uint64" => Value::U64(item.extract()?),
        "int8" => Value::I8(item.extract()?),
        "int16" => Value::I16(item.extract()?),
        "int32" => Value::I32(item.extract()?),
        "int64" => Value::I64(item.extract()?),
        #[allow(clippy::cast_possible_truncation)] // it was one before
        "float32" | "float16" => Value::F32(item.extract::<f64>()? as f32),
        "float64" => Value::F64(item.extract()?),
        // An array: the widths of its numbers.
        "ndarray" => {
            let mut items = Vec::new();
            for item in object.try_iter()? {
                items.push(from_python(&item?, 1)?);
            }
            Value::List(List::from(items))
        }
        _ => return Ok(None),
    }))
}

/// The same as the value that was there before, where that is possible: a number keeps its width.
pub(crate) fn like(before: Option<&Value>, value: Value) -> Result<Value, Error> {
    let Some(before) = before else {
        return Ok(value);
    };
    let whole = |value: &Value| {
        value
            .as_i64()
            .map(i128::from)
            .or(value.as_u64().map(i128::from))
    };
    macro_rules! narrow {
        ($($kind:ident),*) => {
            match (before, whole(&value)) {
                $((Value::$kind(_), Some(number)) => match number.try_into() {
                    Ok(number) => Ok(Value::$kind(number)),
                    Err(_) => Err(Error::argument(format!("{number} is no {}", before.type_name()))),
                },)*
                #[allow(clippy::cast_possible_truncation)] // the type that the file has
                (Value::F32(_), _) if value.as_f64().is_some() => {
                    Ok(Value::F32(value.as_f64().unwrap_or_default() as f32))
                }
                (Value::F64(_), _) if value.as_f64().is_some() => {
                    Ok(Value::F64(value.as_f64().unwrap_or_default()))
                }
                _ => Ok(value),
            }
        };
    }
    narrow!(U8, U16, U32, U64, I8, I16, I32, I64)
}
