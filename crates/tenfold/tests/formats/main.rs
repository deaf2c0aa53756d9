//! What is special to single formats, beside what every format is tested for.

// A test may panic.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "burnpack")]
mod burnpack;
#[cfg(all(feature = "cc4s", feature = "ztensor"))]
mod cc4s;
#[cfg(feature = "dcp")]
mod dcp;
#[cfg(feature = "flax")]
mod flax;
#[cfg(all(feature = "gguf", feature = "safetensors"))]
mod gguf;
#[cfg(feature = "hdf5")]
mod hdf5;
#[cfg(feature = "keras")]
mod keras;
#[cfg(feature = "mag")]
mod mag;
#[cfg(all(feature = "mat", feature = "hdf5"))]
mod mat;
#[cfg(all(feature = "netcdf", feature = "safetensors"))]
mod netcdf;
#[cfg(all(feature = "npy", feature = "npz"))]
mod numpy;
#[cfg(all(feature = "onnx", feature = "serde"))]
mod onnx;
#[cfg(feature = "paddle")]
mod paddle;
#[cfg(all(feature = "mag", feature = "primitiv", feature = "ztensor"))]
mod primitiv;
#[cfg(all(feature = "pytorch", feature = "safetensors", feature = "ztensor"))]
mod pytorch;
#[cfg(feature = "raw")]
mod raw;
#[cfg(feature = "safetensors")]
mod safetensors;
#[cfg(feature = "safetensors")]
mod safetensors_shards;
#[cfg(all(feature = "npz", feature = "pytorch"))]
mod scan;
#[cfg(all(feature = "tens", feature = "mag", feature = "ztensor"))]
mod tens;
#[cfg(feature = "tf_checkpoint")]
mod tf_checkpoint;
#[cfg(feature = "tflite")]
mod tflite;
#[cfg(all(feature = "zarr", feature = "digest"))]
mod zarr;
#[cfg(feature = "ztensor")]
mod ztensor;
