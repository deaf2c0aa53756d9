//! What stands for the codecs that are not built in.

use super::Check;
use crate::error::{Error, Result};
use crate::prelude::*;
#[cfg(not(feature = "zstd"))]
use crate::transform::Input;

#[cfg(not(feature = "zstd"))]
pub(super) struct Decoder<'a>(core::marker::PhantomData<&'a ()>);

#[cfg(not(feature = "zstd"))]
impl<'a> Decoder<'a> {
    pub(super) fn new(_: Input<'a>) -> Result<Self> {
        Err(not_built_in("zstd"))
    }

    pub(super) fn read(&mut self, _: &mut [u8]) -> Result<usize> {
        Err(not_built_in("zstd"))
    }
}

#[cfg(not(feature = "zstd"))]
pub(super) fn decode_frame(_: &[u8], _: &mut [u8]) -> Result<()> {
    Err(not_built_in("zstd"))
}

/// Compresses a piece. This build cannot.
#[cfg(not(feature = "zstd-write"))]
pub(crate) fn encode(_: i32, _: &[u8], _: Check<'_>) -> Result<Vec<u8>> {
    Err(not_built_in("zstd-write"))
}

/// Compresses a piece. This build cannot.
#[cfg(not(feature = "deflate"))]
pub(crate) fn encode_deflate(_: i32, _: &[u8], _: Check<'_>) -> Result<Vec<u8>> {
    Err(no_deflate())
}

/// Undoes a stream. This build cannot.
#[cfg(not(feature = "deflate"))]
pub(in crate::transform) fn inflate_zlib(_: &[u8], _: u64, _: Check<'_>) -> Result<Vec<u8>> {
    Err(no_deflate())
}

/// Makes a stream. This build cannot.
#[cfg(not(feature = "deflate"))]
pub(in crate::transform) fn deflate_zlib(_: &[u8], _: i32, _: Check<'_>) -> Result<Vec<u8>> {
    Err(no_deflate())
}

/// What this build never writes.
#[cfg(not(feature = "deflate"))]
pub(crate) const DEFLATE_END: [u8; 0] = [];

#[cfg(not(feature = "deflate"))]
pub(super) fn no_deflate() -> Error {
    Error::unsupported(
        "deflate",
        "deflate is not built in; enable feature `deflate`",
    )
}

#[cfg(not(feature = "zstd-write"))]
fn not_built_in(feature: &str) -> Error {
    Error::unsupported(
        "zstd",
        format!("zstd is not built in; enable feature `{feature}`"),
    )
}
