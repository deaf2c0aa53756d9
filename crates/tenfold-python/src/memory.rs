//! Memory that Rust and Python both see.

#![allow(unsafe_code)]

use std::ffi::c_int;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;
use tenfold::Bytes;

/// Bytes of a file or of an archive, as a read-only buffer. Keeps them alive, whatever becomes of the archive.
#[pyclass(frozen, module = "tenfold")]
pub(crate) struct Memory {
    pub(crate) bytes: Bytes,
}

#[pymethods]
impl Memory {
    fn __len__(&self) -> usize {
        self.bytes.len()
    }

    fn __repr__(&self) -> String {
        format!("<Memory of {} bytes>", self.bytes.len())
    }

    /// # Safety
    ///
    /// Called by the interpreter alone, with a view to be filled.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("there is no view to fill"));
        }
        let bytes = &slf.get().bytes;
        let length = ffi::Py_ssize_t::try_from(bytes.len())
            .map_err(|_| PyBufferError::new_err("more bytes than a buffer has"))?;
        // SAFETY: the view is the interpreter's. The bytes do not move and stay as long as this object, to which the view
        // gets a reference; read-only is asked for, so nobody writes to them.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                bytes.as_ptr().cast_mut().cast(),
                length,
                1,
                flags,
            )
        };
        if filled == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }
}

/// A buffer of Python as bytes of the library: nothing is copied, and the object lives as long as they do.
struct Held(PyUntypedBuffer);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        if self.0.len_bytes() == 0 {
            return &[];
        }
        // SAFETY: contiguous (`held` looks), so many bytes from there on are the buffer's, and the interpreter keeps them where
        // they are until it is released, which dropping `self` does. That nobody writes to them meanwhile is what the
        // package's documentation asks of its users, as every package does that reads memory without the interpreter's lock.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

/// The buffer of an object. Views add the strides that some leave out, such as arrays of ctypes.
fn buffer_of(object: &Bound<'_, PyAny>) -> PyResult<PyUntypedBuffer> {
    match PyUntypedBuffer::get(object) {
        Err(error) if error.is_instance_of::<PyBufferError>(object.py()) => {
            PyUntypedBuffer::get(PyMemoryView::from(object)?.as_any())
        }
        found => found,
    }
}

/// The bytes of an object that has a contiguous buffer.
pub(crate) fn held(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let buffer = buffer_of(object)?;
    if buffer.is_c_contiguous() || buffer.is_fortran_contiguous() {
        Ok(Bytes::from_owner(Held(buffer)))
    } else {
        Err(PyBufferError::new_err("its memory is not contiguous"))
    }
}

/// Memory of Python that is written to.
pub(crate) struct Room(PyUntypedBuffer);

impl Room {
    /// The memory of an object, which must be contiguous and writable.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = buffer_of(object)?;
        if buffer.readonly() {
            return Err(PyValueError::new_err("the memory is read-only"));
        }
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("the memory is not C-contiguous"));
        }
        Ok(Self(buffer))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len_bytes()
    }

    /// The bytes to fill.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        if self.0.len_bytes() == 0 {
            return &mut [];
        }
        // SAFETY: contiguous and writable (`of` looks), kept by the interpreter until `self` is dropped, and reached through
        // `&mut self` alone. That nobody else uses it while it is filled is what `readinto` of files asks for too.
        unsafe { std::slice::from_raw_parts_mut(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}
