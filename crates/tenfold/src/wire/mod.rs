//! Small decoders and encoders that several formats share.

#[cfg(feature = "ztensor")]
pub(crate) mod cbor;
#[cfg(feature = "mag")]
pub(crate) mod json;
#[cfg(feature = "primitiv")]
pub(crate) mod msgpack;
