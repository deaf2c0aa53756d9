//! Small decoders and encoders that several formats share.

#[cfg(any(feature = "burnpack", feature = "ztensor"))]
// Each format uses a part of it.
#[cfg_attr(
    not(all(feature = "burnpack", feature = "ztensor")),
    allow(dead_code, unused_imports)
)]
pub(crate) mod cbor;
#[cfg(any(feature = "hdf5", feature = "keras"))]
// Each format uses a part of it.
#[cfg_attr(
    not(all(feature = "hdf5", feature = "keras")),
    allow(dead_code, unused_imports)
)]
pub(crate) mod hdf5;
#[cfg(any(
    feature = "gguf",
    feature = "keras",
    feature = "mag",
    feature = "pytorch",
    feature = "safetensors",
    // The configurations of models.
    feature = "std"
))]
// Each format uses a part of it: GGUF only writes it, Keras only reads it.
#[cfg_attr(
    not(all(feature = "mag", feature = "safetensors")),
    allow(dead_code, unused_imports)
)]
pub(crate) mod json;
#[cfg(feature = "primitiv")]
pub(crate) mod msgpack;
// PyTorch reads types by it.
#[cfg_attr(
    not(all(feature = "npy", feature = "npz")),
    allow(dead_code, unused_imports)
)]
pub(crate) mod numpy;
#[cfg(feature = "pytorch")]
pub(crate) mod pickle;
#[cfg(feature = "onnx")]
pub(crate) mod protobuf;
#[cfg(any(feature = "keras", feature = "npz", feature = "pytorch"))]
// Each format uses a part of it.
#[cfg_attr(
    not(all(feature = "keras", feature = "npz", feature = "pytorch")),
    allow(dead_code, unused_imports)
)]
pub(crate) mod zip;
