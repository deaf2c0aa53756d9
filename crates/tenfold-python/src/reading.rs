//! Reading tensors without the interpreter's lock.

use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tenfold::digest::Hex;
use tenfold::io::Limits;
use tenfold::model::{self, Payload};
use tenfold::ops::{self, DigestOptions};
use tenfold::{Archive, Bytes, Error, ErrorKind, Work};

use crate::error::raised;
use crate::index;
use crate::memory::Room;
use crate::supervise::supervised;
use crate::tensor::Tensor;

/// Less is read sooner than a thread begins.
const SHORT: u64 = 1 << 20;

impl Tensor {
    /// Reads without the interpreter's lock. Signals stop it where it takes long.
    pub(crate) fn read<T: Send>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(tenfold::Tensor<'_>) -> tenfold::Result<T> + Send,
    ) -> PyResult<T> {
        let archive = self.opened()?;
        let place = self.place();
        if is_short(&archive, place) {
            let read = py.detach(move || read(tensor_at(&archive, place)?));
            return read.map_err(raised);
        }
        supervised(py, None, 0, move |watch| {
            let archive = archive.watched(watch.control());
            read(tensor_at(&archive, place)?)
        })
    }

    /// Fills memory of the caller with the elements of the tensor or of a slice.
    pub(crate) fn fill(
        &self,
        py: Python<'_>,
        out: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let key = key.map(index::parse).transpose()?;
        if key.as_ref().is_some_and(|key| key.new_axes) {
            return Err(PyTypeError::new_err(
                "None has no meaning for memory without a shape",
            ));
        }
        let slices = key.map(|key| key.slices).unwrap_or_default();
        let mut room = Room::of(&bytes_of(out)?)?;
        let wanted = self.with(|tensor| {
            let sliced = tensor.slice(&slices).map_err(index_error)?;
            let elements = sliced.elements();
            Ok(elements.and_then(|elements| sliced.dtype().bytes_for(elements)))
        })?;
        if wanted != Some(room.len() as u64) {
            let (found, wanted) = (room.len(), wanted.unwrap_or(u64::MAX));
            let message = format!("the memory has {found} bytes, the elements take {wanted}");
            return Err(PyValueError::new_err(message));
        }
        let archive = self.opened()?;
        let place = self.place();
        // Memory of the system is copied by as many threads as there are.
        let is_short = (room.len() as u64) <= SHORT && is_short(&archive, place);
        let mut read = move |work: &Work| {
            let sliced = tensor_at(&archive, place)?.slice(&slices)?;
            Archive::read_many([(sliced, room.bytes())], work)
        };
        if is_short {
            return py.detach(|| read(&Work::new().threads(1))).map_err(raised);
        }
        supervised(py, None, 0, move |watch| read(&watch.work()))
    }

    /// Bytes that the elements of the tensor or of a slice take in memory, where they may be made there.
    ///
    /// What a file has is read without a limit. What becomes longer than it is in the file has
    /// [`Limits::tensor_memory`](tenfold::io::Limits::tensor_memory), or unless that was set, 64 times what the file has.
    pub(crate) fn room(&self, key: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        const TIMES: u64 = 64;
        let key = key.map(index::parse).transpose()?;
        let slices = key.map(|key| key.slices).unwrap_or_default();
        let limit = self.opened()?.limits().tensor_memory;
        self.with(|tensor| {
            let sliced = tensor.slice(&slices).map_err(index_error)?;
            let wanted = sliced.elements();
            let wanted = wanted.and_then(|elements| sliced.dtype().bytes_for(elements));
            let wanted = wanted.unwrap_or(u64::MAX);
            let stored = tensor.info().parts.iter().map(|part| match &part.payload {
                Payload::Inline(bytes) => bytes.len() as u64,
                payload => payload
                    .stored()
                    .map_or(0, |(_, range)| range.end.saturating_sub(range.start)),
            });
            let stored = stored.fold(0, u64::saturating_add);
            if wanted > stored {
                let most = if limit == Limits::default().tensor_memory {
                    limit.max(stored.saturating_mul(TIMES))
                } else {
                    limit
                };
                sliced.check_memory(most).map_err(raised)?;
            }
            Ok(wanted)
        })
    }

    /// Elements of less than a byte, one in each byte; those of a slice.
    pub(crate) fn unpacked(
        &self,
        py: Python<'_>,
        key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bytes> {
        let slices = match key {
            Some(key) => index::parse(key)?.slices,
            None => Vec::new(),
        };
        self.read(py, |tensor| {
            let sliced = tensor.slice(&slices)?;
            let elements = sliced.elements().unwrap_or(0);
            let packed = sliced.to_bytes()?;
            let model::DType::Number(scalar, lanes) = sliced.dtype() else {
                return Ok(packed);
            };
            let count = elements.saturating_mul(lanes.count().into());
            Ok(unpack(&packed, scalar, count))
        })
    }

    /// The SHA-256 of its elements in hexadecimal digits.
    pub(crate) fn sum(&self, py: Python<'_>) -> PyResult<String> {
        let archive = self.opened()?;
        let place = self.place();
        supervised(py, None, 0, move |watch| {
            let next = std::cell::Cell::new(0);
            let alone = archive.select(|_| next.replace(next.get() + 1) == place);
            let digests = ops::digest(&alone, &DigestOptions::new().work(watch.work()))?;
            match digests.tensors.into_iter().next() {
                Some((_, sum)) => sum.map(|sum| Hex(&sum).to_string()),
                None => Err(Error::argument("there is no such tensor any more")),
            }
        })
    }
}

/// Whether a tensor, or any slice of it, is read in no time.
fn is_short(archive: &Archive, place: usize) -> bool {
    archive.tensor_at(place).is_none_or(|tensor| {
        let len = tensor.info().dense_len();
        tensor.in_place().is_some() || len.is_some_and(|len| len <= SHORT)
    })
}

fn tensor_at(archive: &Archive, place: usize) -> tenfold::Result<tenfold::Tensor<'_>> {
    let tensor = archive.tensor_at(place);
    tensor.ok_or_else(|| Error::argument("there is no such tensor any more"))
}

/// An index that is outside is Python's `IndexError`.
pub(crate) fn index_error(error: Error) -> PyErr {
    match error.kind() {
        ErrorKind::Argument => PyIndexError::new_err(error.message().to_owned()),
        _ => raised(error),
    }
}

/// The memory of an object as bytes: arrays of types that buffers have no code for say it in their own way.
fn bytes_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static BYTES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let function = BYTES.import(object.py(), "tenfold._frameworks", "writable_bytes")?;
    function.call1((object,))
}

/// Numbers of less than a byte, the first in the lowest bits, as a byte each; signed ones keep their sign.
fn unpack(packed: &[u8], scalar: model::Scalar, count: u64) -> Bytes {
    let bits = scalar.bits();
    if bits >= 8 {
        return Bytes::copy_from_slice(packed);
    }
    let mask = (1u32 << bits) - 1;
    let sign = if scalar.is_signed_integer() {
        1u32 << (bits - 1)
    } else {
        0
    };
    let bits = u64::from(bits);
    let numbers = (0..count).map(|number| {
        let at = number * bits;
        let byte = |place: u64| {
            let place = usize::try_from(place).unwrap_or(usize::MAX);
            u32::from(packed.get(place).copied().unwrap_or(0))
        };
        let both = byte(at / 8) | (byte(at / 8 + 1) << 8);
        let number = (both >> (at % 8)) & mask;
        // The lowest eight bits are what is wanted.
        let [low, ..] = (number ^ sign).wrapping_sub(sign).to_le_bytes();
        low
    });
    numbers.collect::<Vec<u8>>().into()
}
