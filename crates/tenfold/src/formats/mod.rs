//! The formats: a folder each, and one line each in the table.

pub mod burnpack;
pub mod cc4s;
pub mod flax;
pub mod gguf;
pub mod hdf5;
pub mod keras;
pub mod mag;
pub mod netcdf;
pub mod npy;
pub mod npz;
mod numpy;
pub mod onnx;
pub mod paddle;
pub mod primitiv;
pub mod pytorch;
pub mod safetensors;
#[cfg(any(feature = "pytorch", feature = "safetensors"))]
mod sharded;
pub mod tens;
pub mod tflite;
pub mod ztensor;

use crate::format::{Entry, Registry};

/// Every format that is known. Detection, the command, documentation and tests go through this table.
pub static FORMATS: &[Entry] = &[
    mag::ENTRY,
    ztensor::ENTRY,
    burnpack::ENTRY,
    primitiv::ENTRY,
    tens::ENTRY,
    cc4s::ENTRY,
    safetensors::ENTRY,
    gguf::ENTRY,
    npy::ENTRY,
    npz::ENTRY,
    pytorch::ENTRY,
    onnx::ENTRY,
    hdf5::ENTRY,
    keras::ENTRY,
    netcdf::ENTRY,
    flax::ENTRY,
    paddle::ENTRY,
    tflite::ENTRY,
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
