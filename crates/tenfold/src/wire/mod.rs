//! Small decoders and encoders that several formats share.

#[cfg(any(feature = "burnpack", feature = "ztensor"))]
// Each format uses a part of it.
#[cfg_attr(
    not(all(feature = "burnpack", feature = "ztensor")),
    allow(dead_code, unused_imports)
)]
pub(crate) mod cbor;
#[cfg(feature = "tflite")]
pub(crate) mod flatbuffer;
#[cfg(any(feature = "hdf5", feature = "keras", feature = "mat"))]
// Each format uses a part of it.
#[cfg_attr(
    not(all(feature = "hdf5", feature = "keras", feature = "mat")),
    allow(dead_code, unused_imports)
)]
pub(crate) mod hdf5;
// Each format uses a part of it: GGUF only writes it, Keras only reads it.
#[cfg_attr(
    not(all(feature = "mag", feature = "safetensors")),
    allow(dead_code, unused_imports)
)]
pub(crate) mod json;
#[cfg(any(feature = "flax", feature = "primitiv"))]
// Each format uses a part of it.
#[cfg_attr(not(all(feature = "flax", feature = "primitiv")), allow(dead_code))]
pub(crate) mod msgpack;
// Paddle and PyTorch read types by it.
#[cfg_attr(
    not(all(feature = "npy", feature = "npz")),
    allow(dead_code, unused_imports)
)]
pub(crate) mod numpy;
#[cfg(any(feature = "paddle", feature = "pytorch"))]
// Each format uses a part of it.
#[cfg_attr(
    not(all(feature = "paddle", feature = "pytorch")),
    allow(dead_code, unused_imports)
)]
pub(crate) mod pickle;
#[cfg(any(feature = "onnx", feature = "tf_checkpoint"))]
// Each format uses a part of it.
#[cfg_attr(
    not(all(feature = "onnx", feature = "tf_checkpoint")),
    allow(dead_code, unused_imports)
)]
pub(crate) mod protobuf;
#[cfg(any(
    feature = "keras",
    feature = "npz",
    feature = "pytorch",
    feature = "zarr"
))]
// Each format uses a part of it.
#[cfg_attr(
    not(all(feature = "keras", feature = "npz", feature = "pytorch")),
    allow(dead_code, unused_imports)
)]
pub(crate) mod zip;
