//! The formats: a folder each, and one line each in the table.

pub mod burnpack;
pub mod cc4s;
pub mod dcp;
pub mod flax;
pub mod gguf;
pub mod hdf5;
mod indexed;
pub mod keras;
pub mod mag;
pub mod mat;
mod narrow;
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
mod sharded;
pub mod tens;
pub mod tf_checkpoint;
pub mod tflite;
mod torch;
pub mod zarr;
pub mod ztensor;

use crate::format::{Entry, Registry};
#[cfg(feature = "pytorch")]
pub(crate) use torch::is_known as is_known_to_torch;

/// Every format that is known, what most people have first. Detection, the command, documentation and tests go through
/// this table, and list formats in its order.
pub static FORMATS: &[Entry] = &[
    safetensors::ENTRY,
    gguf::ENTRY,
    pytorch::ENTRY,
    dcp::ENTRY,
    onnx::ENTRY,
    hdf5::ENTRY,
    keras::ENTRY,
    npy::ENTRY,
    npz::ENTRY,
    flax::ENTRY,
    paddle::ENTRY,
    tflite::ENTRY,
    tf_checkpoint::ENTRY,
    netcdf::ENTRY,
    zarr::ENTRY,
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
