//! Small decoders and encoders that several formats share.

#[cfg(feature = "ztensor")]
pub(crate) mod cbor;
#[cfg(any(feature = "mag", feature = "safetensors"))]
pub(crate) mod json;
