//! Deflate in the frame of zlib: a whole stream at once, as chunks have it.

use miniz_oxide::MZFlush;
use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use super::deflate::compress;
use super::{Check, DEFLATE_MAX_RATIO, STEP};
use crate::error::{Error, Result};
use crate::prelude::*;
use crate::transform::as_size;

/// The bytes of a stream, of which there may be `most`.
pub(in crate::transform) fn inflate(stream: &[u8], most: u64, check: Check<'_>) -> Result<Vec<u8>> {
    let framed =
        inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER | inflate_flags::TINFL_FLAG_COMPUTE_ADLER32;
    let (bytes, used) = inflate_with(framed, stream, most, check)?;
    match stream.len() - used {
        0 => Ok(bytes),
        left => Err(broken(format_args!("{left} bytes are left after its end"))),
    }
}

/// The bytes of a stream without a frame, of which there may be `most`, and how many bytes the stream has.
#[cfg(feature = "blosc")]
pub(in crate::transform) fn inflate_raw(
    stream: &[u8],
    most: u64,
    check: Check<'_>,
) -> Result<(Vec<u8>, usize)> {
    inflate_with(0, stream, most, check)
}

fn inflate_with(
    frame: u32,
    stream: &[u8],
    most: u64,
    check: Check<'_>,
) -> Result<(Vec<u8>, usize)> {
    // No more is made than the stream can give, whatever the file says.
    let room = (stream.len() as u64).saturating_mul(DEFLATE_MAX_RATIO);
    let mut out = crate::io::zeros(most.min(room))?;
    let flags = frame | inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let mut decoder = Box::<DecompressorOxide>::default();
    let (mut used, mut made) = (0, 0);
    let status = loop {
        check()?;
        let rest = stream.get(used..).unwrap_or_default();
        let (step, later) = rest.split_at(rest.len().min(STEP));
        let more = if later.is_empty() {
            0
        } else {
            inflate_flags::TINFL_FLAG_HAS_MORE_INPUT
        };
        let done = decompress(&mut decoder, step, &mut out, made, flags | more);
        let (status, taken, given) = done;
        used += taken;
        made += given;
        if status != TINFLStatus::NeedsMoreInput || later.is_empty() {
            break status;
        }
    };
    match status {
        TINFLStatus::Done => {}
        TINFLStatus::HasMoreOutput => {
            return Err(broken(format_args!("it decodes to more than {most} bytes")));
        }
        TINFLStatus::Adler32Mismatch => return Err(broken("its checksum does not match")),
        TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => {
            return Err(broken("it ends in the middle"));
        }
        _ => return Err(broken("it has an invalid block")),
    }
    out.truncate(as_size(made as u64)?);
    Ok((out, used))
}

fn broken(what: impl core::fmt::Display) -> Error {
    Error::malformed("deflate", format!("the deflated data is damaged: {what}"))
}

/// A stream of these bytes.
pub(in crate::transform) fn deflate(bytes: &[u8], level: i32, check: Check<'_>) -> Result<Vec<u8>> {
    // A positive window is a stream in the frame of zlib's.
    let flags = create_comp_flags_from_zip_params(level.clamp(0, 9), 15, 0);
    compress(
        &mut CompressorOxide::new(flags),
        bytes,
        MZFlush::Finish,
        check,
    )
}
