//! The formats: a folder each, and one line each in the table.

pub mod burnpack;
pub mod cc4s;
pub mod flax;
pub mod gguf;
pub mod hdf5;
#[cfg(any(feature = "keras", feature = "pytorch", feature = "safetensors"))]
mod indexed;
pub mod keras;
pub mod mag;
pub mod mat;
pub mod netcdf;
pub mod npy;
pub mod npz;
mod numpy;
pub mod onnx;
pub mod paddle;
pub mod primitiv;
pub mod pytorch;
pub mod raw;
pub mod safetensors;
#[cfg(any(feature = "pytorch", feature = "safetensors"))]
mod sharded;
pub mod tens;
pub mod tflite;
pub mod ztensor;

use crate::format::{Entry, Registry};

/// Every format that is known, what most people have first. Detection, the command, documentation and tests go through
/// this table, and list formats in its order.
pub static FORMATS: &[Entry] = &[
    safetensors::ENTRY,
    gguf::ENTRY,
    pytorch::ENTRY,
    onnx::ENTRY,
    hdf5::ENTRY,
    keras::ENTRY,
    npy::ENTRY,
    npz::ENTRY,
    flax::ENTRY,
    paddle::ENTRY,
    tflite::ENTRY,
    netcdf::ENTRY,
    mat::ENTRY,
    mag::ENTRY,
    ztensor::ENTRY,
    burnpack::ENTRY,
    primitiv::ENTRY,
    tens::ENTRY,
    cc4s::ENTRY,
    raw::ENTRY,
];

impl Registry {
    /// Every format of this library.
    pub fn standard() -> Self {
        Self::new(FORMATS)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::standard()
    }
}
