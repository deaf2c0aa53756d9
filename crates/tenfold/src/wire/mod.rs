//! Small decoders and encoders that several formats share.

#[cfg(feature = "mag")]
pub(crate) mod json;
