//! Compressed data: streams that are read from the beginning, and frames with a table of them.

#[cfg(not(all(feature = "zstd", feature = "zstd-write", feature = "deflate")))]
mod absent;
#[cfg(feature = "deflate")]
mod deflate;
mod frames;
pub(crate) mod gzip;
mod parked;
mod sequential;
mod snappy;
#[cfg(feature = "deflate")]
mod zlib;
#[cfg(feature = "zstd")]
mod zstd;

#[cfg(not(feature = "zstd-write"))]
pub(crate) use absent::encode;
#[cfg(not(feature = "deflate"))]
pub(crate) use absent::{DEFLATE_END, encode_deflate};
#[cfg(not(feature = "zstd"))]
use absent::{Decoder, decode_frame};
#[cfg(not(feature = "deflate"))]
pub(super) use absent::{deflate_zlib, inflate_zlib};
#[cfg(feature = "deflate")]
pub(crate) use deflate::{END as DEFLATE_END, Inflate, encode as encode_deflate};
pub(super) use frames::Frames;
pub(crate) use frames::seek_table;
pub(crate) use parked::Parked;
pub(super) use sequential::Sequential;
pub(crate) use snappy::unpack_snappy;
#[cfg(feature = "blosc")]
pub(super) use zlib::inflate_raw;
#[cfg(feature = "deflate")]
pub(super) use zlib::{deflate as deflate_zlib, inflate as inflate_zlib};
#[cfg(feature = "zstd-write")]
pub(crate) use zstd::encode;
#[cfg(feature = "zstd")]
use zstd::{Decoder, decode_frame};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::model::Codec;
use crate::prelude::*;
use crate::transform::{Body, Input};

/// Asked over and over while a codec works: an error stops it.
pub(crate) type Check<'c> = &'c dyn Fn() -> Result<()>;

/// Bytes that a codec is given between two of these questions: a block of zstd, which the slowest level takes a tenth of a
/// second for.
const STEP: usize = 128 << 10;

/// A zstd block takes at least 4 bytes and gives at most 128 KiB: more than this many times cannot come out.
const MAX_RATIO: u64 = 32 << 10;
/// A deflated match of 258 bytes takes at least 2 bits.
const DEFLATE_MAX_RATIO: u64 = 1032;

/// How the bytes of `input` are decoded to `len` bytes, by decoders that stopped before them where there are some.
pub(super) fn open<'a>(
    input: Input<'a>,
    codec: Codec,
    len: u64,
    parked: Option<&'a Parked>,
) -> Result<Body<'a>> {
    // The decoders disagree about it, and no writer does it.
    if input.len() == 0 {
        return Err(damaged(
            codec,
            &input,
            "there are no compressed bytes, but even empty data takes a frame",
        ));
    }
    let most = match codec {
        Codec::Deflate { .. } | Codec::Zlib { .. } => DEFLATE_MAX_RATIO,
        Codec::Zstd { .. } | Codec::ZstdSeekable { .. } => MAX_RATIO,
    };
    if len > input.len().saturating_mul(most) {
        let message = format!("{} compressed bytes cannot decode to {len}", input.len());
        return Err(damaged(codec, &input, message));
    }
    match codec {
        Codec::Deflate { .. } | Codec::Zlib { .. } | Codec::Zstd { .. } => {
            Ok(Body::Sequential(input, codec, len, parked))
        }
        Codec::ZstdSeekable { .. } => Frames::new(input, codec, len).map(Body::Frames),
    }
}

/// One zstd frame that gives exactly as many bytes as there is room for.
#[cfg(feature = "blosc")]
pub(super) fn unpack_zstd_frame(stored: &[u8], out: &mut [u8]) -> Result<()> {
    decode_frame(stored, out)
}

/// What zstd frames give, where nothing says how much that is: `most` bytes at most.
pub(crate) fn unpack_zstd(stored: &Bytes, most: u64, check: Check<'_>) -> Result<Vec<u8>> {
    let mut decoder = Decoder::new(Input::Memory(stored.clone()))?;
    let mut out = Vec::new();
    loop {
        check()?;
        let len = out.len();
        out.resize(len + 8 * STEP, 0);
        let read = decoder.read(out.get_mut(len..).unwrap_or_default())?;
        out.truncate(len + read);
        if read == 0 {
            return Ok(out);
        }
        if out.len() as u64 > most {
            let message = format!("the compressed data decodes to more than {most} bytes");
            return Err(Error::limit("zstd", message));
        }
    }
}

/// How many bytes zstd frames give, for formats that do not say it. Decodes them all, and refuses more than `limit`.
pub(crate) fn measure(input: Input<'_>, limit: u64) -> Result<u64> {
    let mut decoder = Decoder::new(input.clone())?;
    let mut piece = vec![0; 64 << 10];
    let mut len = 0u64;
    loop {
        match decoder
            .read(&mut piece)
            .map_err(|error| placed(error, &input))?
        {
            0 => return Ok(len),
            n => len += n as u64,
        }
        if len > limit {
            let message =
                format!("compressed data of unknown length decodes to more than {limit} bytes");
            return Err(Error::limit("zstd", message).raised_by("tensor_memory", None));
        }
    }
}

/// An error about compressed data.
fn damaged(codec: Codec, input: &Input<'_>, message: impl Into<String>) -> Error {
    let rule = match codec {
        Codec::Deflate { .. } | Codec::Zlib { .. } => "deflate",
        Codec::Zstd { .. } | Codec::ZstdSeekable { .. } => "zstd",
    };
    let error = Error::malformed(rule, message);
    match input.place() {
        Some((source, range)) => error.at_source(source, range),
        None => error,
    }
}

/// An error about compressed data that does not know its place yet.
fn placed(error: Error, input: &Input<'_>) -> Error {
    match input.place() {
        Some((source, range)) if error.range().is_none() => error.at_source(source, range),
        _ => error,
    }
}

#[cfg(all(test, feature = "zstd-write"))]
mod tests;
