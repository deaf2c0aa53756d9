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
    feature = "safetensors"
))]
// GGUF only writes it.
#[cfg_attr(
    not(any(feature = "keras", feature = "mag", feature = "safetensors")),
    allow(dead_code, unused_imports)
)]
pub(crate) mod json;
#[cfg(feature = "primitiv")]
pub(crate) mod msgpack;
pub(crate) mod numpy;
#[cfg(any(feature = "keras", feature = "npz"))]
// Keras only reads it.
#[cfg_attr(not(feature = "npz"), allow(dead_code, unused_imports))]
pub(crate) mod zip;
