//! Tensors for other packages, by DLPack.
//!
//! The structures are those of `dlpack.h`, versions 0 and 1.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use tenfold::model::{DType, Endian, Lanes, Order, Scalar};
use tenfold::{Bytes, Result};

use crate::error::raised;
use crate::tensor::Tensor;

/// The device that memory of the machine is of.
pub(crate) const CPU: i32 = 1;
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;
const OLD: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: [i32; 2],
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct ManagedVersioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// What a capsule keeps alive. Whoever deletes it may be without the interpreter's lock, which a buffer of Python among it
/// takes when it goes.
struct Kept {
    bytes: Bytes,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// What DLPack calls a type: its code and bits.
fn code(dtype: DType) -> Option<(u8, u8)> {
    let DType::Number(scalar, lanes) = dtype else {
        return None;
    };
    if lanes == Lanes::Complex {
        return match scalar {
            Scalar::F16 => Some((5, 32)),
            Scalar::F32 => Some((5, 64)),
            Scalar::F64 => Some((5, 128)),
            _ => None,
        };
    }
    if lanes != Lanes::Real {
        return None;
    }
    let code = match scalar {
        Scalar::Bool => 6,
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => 1,
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => 0,
        Scalar::F16 | Scalar::F32 | Scalar::F64 => 2,
        Scalar::BF16 => 4,
        Scalar::F8E4M3 => 10,
        Scalar::F8E4M3Fnuz => 11,
        Scalar::F8E5M2 => 12,
        Scalar::F8E5M2Fnuz => 13,
        Scalar::F8E8M0 => 14,
        _ => return None,
    };
    Some((code, u8::try_from(scalar.bits()).ok()?))
}

/// Elements in memory as DLPack has them, and whether they were copied.
struct Found {
    bytes: Bytes,
    order: Order,
    is_copied: bool,
}

fn find(tensor: &tenfold::Tensor<'_>, dtype: DType, copy: bool) -> Result<Found> {
    let align = dtype.swap_width().max(1);
    let shared = tensor.in_place().filter(|found| {
        let native = found.endian == Endian::NATIVE || !dtype.is_ordered();
        native && found.bytes.as_ptr().align_offset(align) == 0 && dtype == tensor.info().dtype
    });
    match shared {
        Some(found) if !copy => Ok(Found {
            bytes: found.bytes,
            order: found.order,
            is_copied: false,
        }),
        _ => {
            let bytes = tensor.slice(&[])?.to_bytes()?;
            // What is decoded is in new memory already; a file's or the user's is not to be written to.
            let is_shared = tensor.in_place().is_some();
            let bytes = if is_shared || bytes.as_ptr().align_offset(align) != 0 {
                aligned(&bytes)
            } else {
                bytes
            };
            Ok(Found {
                bytes,
                order: Order::RowMajor,
                is_copied: true,
            })
        }
    }
}

/// A copy that begins where every type may begin.
fn aligned(bytes: &[u8]) -> Bytes {
    const ALIGN: usize = 64;
    let mut room = vec![0; bytes.len() + ALIGN];
    let skip = room.as_ptr().align_offset(ALIGN).min(ALIGN);
    if let Some(place) = room.get_mut(skip..skip + bytes.len()) {
        place.copy_from_slice(bytes);
    }
    Bytes::from(room).slice(skip..skip + bytes.len())
}

/// The tensor as a capsule.
pub(crate) fn export<'py>(
    slf: &Bound<'py, Tensor>,
    max_version: Option<(u32, u32)>,
    device: Option<(i64, i64)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = slf.py();
    if device.is_some_and(|device| device != (CPU.into(), 0)) {
        return Err(PyBufferError::new_err("tensors of files are on the CPU"));
    }
    let is_versioned = max_version.is_some_and(|(major, _)| major >= 1);
    let archive = slf.get().opened()?;
    let place = slf.get().place();
    let gone = || PyBufferError::new_err("there is no such tensor any more");
    let tensor = archive.tensor_at(place).ok_or_else(gone)?;
    let sliced = tensor.slice(&[]).map_err(raised)?;
    let dtype = sliced.dtype();
    let Some((code, bits)) = code(dtype) else {
        let name = crate::dtype::name_of(dtype);
        let message = format!("DLPack has no {name}; `numpy()` reads it");
        return Err(PyBufferError::new_err(message));
    };
    // What is older cannot say that memory is read-only.
    let must_copy = copy == Some(true) || !is_versioned;
    let found = py
        .detach(|| find(&tensor, dtype, must_copy))
        .map_err(raised)?;
    if copy == Some(false) && found.is_copied {
        let message = "it cannot be shared as it is stored; without copy=False it is copied";
        return Err(PyBufferError::new_err(message));
    }
    let shape: Vec<i64> = (tensor.info().shape.iter())
        .map(|&dim| i64::try_from(dim))
        .collect::<std::result::Result<_, _>>()?;
    let strides = strides(&shape, found.order);
    let kept = Kept {
        bytes: found.bytes,
        shape,
        strides,
    };
    capsule(py, kept, (code, bits), found.is_copied, is_versioned)
}

/// Steps in elements.
fn strides(shape: &[i64], order: Order) -> Vec<i64> {
    let mut strides = vec![0; shape.len()];
    let mut step = 1i64;
    let mut fill = |(stride, dim): (&mut i64, &i64)| {
        *stride = step;
        step = step.saturating_mul((*dim).max(1));
    };
    let pairs = strides.iter_mut().zip(shape);
    match order {
        Order::RowMajor => pairs.rev().for_each(&mut fill),
        Order::ColumnMajor => pairs.for_each(&mut fill),
    }
    strides
}

fn capsule<'py>(
    py: Python<'py>,
    kept: Kept,
    (code, bits): (u8, u8),
    is_copied: bool,
    is_versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut kept = Box::new(kept);
    let tensor = DlTensor {
        data: kept.bytes.as_ptr().cast_mut().cast(),
        device: [CPU, 0],
        ndim: i32::try_from(kept.shape.len())?,
        code,
        bits,
        lanes: 1,
        shape: kept.shape.as_mut_ptr(),
        strides: kept.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let context: *mut c_void = Box::into_raw(kept).cast();
    let (managed, name): (*mut c_void, &'static CStr) = if is_versioned {
        let managed = ManagedVersioned {
            version: [1, 1],
            context,
            deleter: Some(delete_versioned),
            flags: if is_copied { IS_COPIED } else { READ_ONLY },
            tensor,
        };
        (Box::into_raw(Box::new(managed)).cast(), VERSIONED)
    } else {
        let managed = Managed {
            tensor,
            context,
            deleter: Some(delete),
        };
        (Box::into_raw(Box::new(managed)).cast(), OLD)
    };
    // SAFETY: the pointer is not null, the name lives as long as the program, and the destructor knows both kinds by it.
    let made = unsafe { ffi::PyCapsule_New(managed, name.as_ptr(), Some(destroy)) };
    if made.is_null() {
        // SAFETY: made above, and nobody else has it.
        unsafe {
            if is_versioned {
                delete_versioned(managed.cast());
            } else {
                delete(managed.cast());
            }
        }
        return Err(PyErr::fetch(py));
    }
    // SAFETY: a new reference to an object.
    Ok(unsafe { Bound::from_owned_ptr(py, made) })
}

/// # Safety
///
/// Called once by whoever took the capsule, or by its destructor, with what `capsule` made.
unsafe extern "C" fn delete(managed: *mut Managed) {
    if managed.is_null() {
        return;
    }
    // SAFETY: both were made by `Box::into_raw`, and this is called once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Kept>()));
    }
}

/// # Safety
///
/// As for [`delete`].
unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    if managed.is_null() {
        return;
    }
    // SAFETY: both were made by `Box::into_raw`, and this is called once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Kept>()));
    }
}

/// Deletes what nobody took: who takes it gives the capsule another name.
///
/// # Safety
///
/// Called by the interpreter alone, with a capsule that `capsule` made.
unsafe extern "C" fn destroy(object: *mut ffi::PyObject) {
    // SAFETY: the object is a capsule, its pointer is that of the name that it still has.
    unsafe {
        if ffi::PyCapsule_IsValid(object, OLD.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(object, OLD.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(object, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(object, VERSIONED.as_ptr()).cast());
        }
    }
}
