//! Arrays over memory that is there already.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use tenfold::InPlace;
use tenfold::model::{self, Endian, Order};

use crate::dtype::{self, DType};
use crate::memory::Memory;

/// The type of the numbers that a tensor is read as: its own, or of those that a quantized one stands for.
pub(crate) fn numbers(info: &model::TensorInfo) -> model::DType {
    match (&info.decoder, info.dtype) {
        (Some(decoder), model::DType::Block(_) | model::DType::Opaque(_)) => decoder.dtype(),
        (_, own) => own,
    }
}

/// An array of NumPy over memory that is there already; `None` where something has to be read or made.
pub(crate) fn shared_array<'py>(
    py: Python<'py>,
    tensor: &tenfold::Tensor<'_>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    static ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let info = tensor.info();
    let Some(found) = viewed(tensor) else {
        return Ok(None);
    };
    let dtype = dtype::interned(py, info.dtype)?;
    let dtype = dtype.get();
    let extra = dtype::extra_dimension(info.dtype);
    let endian = if info.dtype.is_ordered() {
        found.endian
    } else {
        Endian::NATIVE
    };
    let numpy = dtype.numpy_in(py, endian)?;
    let array = ARRAY.import(py, "numpy", "ndarray")?;
    let mut shape = info.shape.to_vec();
    shape.extend(extra.map(u64::from));
    let shape = PyTuple::new(py, shape)?;
    let memory = Memory { bytes: found.bytes };
    let order = match found.order {
        Order::RowMajor => pyo3::intern!(py, "C"),
        Order::ColumnMajor => pyo3::intern!(py, "F"),
    };
    if memory.bytes.is_empty() {
        // NumPy takes no memory of no bytes that begins nowhere.
        return Ok(None);
    }
    let arguments = (shape, numpy, memory, 0, py.None(), order);
    array.call1(arguments).map(Some)
}

/// The elements in memory, if NumPy can have them as they are there.
pub(crate) fn viewed(tensor: &tenfold::Tensor<'_>) -> Option<InPlace> {
    let dtype = tensor.info().dtype;
    // What ml_dtypes adds to NumPy has one byte order.
    let is_foreign = |found: &InPlace| {
        let is_wide = matches!(dtype, model::DType::Number(model::Scalar::BF16, _));
        is_wide && found.endian != Endian::NATIVE
    };
    // A dimension more would be the first of column-major ones.
    let is_turned = |found: &InPlace| {
        found.order == Order::ColumnMajor && dtype::extra_dimension(dtype).is_some()
    };
    let found = tensor.in_place().filter(|_| is_viewed(dtype));
    found.filter(|found| !is_foreign(found) && !is_turned(found))
}

/// Whether NumPy can have the type in memory as it is in the file.
fn is_viewed(dtype: model::DType) -> bool {
    match dtype {
        model::DType::Number(scalar, _) => {
            let wide = matches!(
                scalar,
                model::Scalar::U128 | model::Scalar::I128 | model::Scalar::F128
            );
            scalar.bits() >= 8 && !wide
        }
        _ => false,
    }
}

/// Where a tensor can be viewed in a mapping of its file by programs that have this machine's byte order only: the file, where in
/// it, whether it is column-major, its shape, its elements, and its type.
pub(crate) type MappedAt<'py> = (u32, u64, bool, Bound<'py, PyTuple>, u64, Py<DType>);

/// `None` where it cannot be viewed so.
pub(crate) fn mapped_at<'py>(
    py: Python<'py>,
    tensor: &tenfold::Tensor<'_>,
) -> PyResult<Option<MappedAt<'py>>> {
    let info = tensor.info();
    let stored = info.parts.first().and_then(|part| part.payload.stored());
    let (Some(found), Some((file, range))) = (viewed(tensor), stored) else {
        return Ok(None);
    };
    let is_native = found.endian == Endian::NATIVE || !info.dtype.is_ordered();
    let aligned = range.start.is_multiple_of(info.dtype.swap_width() as u64);
    if !is_native || !aligned || found.bytes.is_empty() {
        return Ok(None);
    }
    let is_columns = found.order == Order::ColumnMajor;
    let shape = PyTuple::new(py, info.shape.iter())?;
    let elements = info.elements().unwrap_or(0);
    let dtype = dtype::interned(py, info.dtype)?;
    Ok(Some((
        file.0,
        range.start,
        is_columns,
        shape,
        elements,
        dtype,
    )))
}
