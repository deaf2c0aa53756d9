//! Small decoders and encoders that several formats share.

pub(crate) mod cbor;
pub(crate) mod flatbuffer;
pub(crate) mod hdf5;
pub(crate) mod json;
pub(crate) mod msgpack;
pub(crate) mod numpy;
pub(crate) mod pickle;
pub(crate) mod protobuf;
#[cfg(all(feature = "crc32", feature = "deflate"))]
pub(crate) mod zip;
