//! A variable in a zlib stream: what is known is stored in it as it is, data of tensors is deflated piece by piece.

use super::{Piece, Pieces, segment};
use crate::digest::Adler32;
use crate::error::{Error, Result};
use crate::format::{Segment, Written};
use crate::formats::mat::types::COMPRESSED;
use crate::model::Codec;
use crate::prelude::*;
use crate::transform::DEFLATE_END;

/// Deflate in a window of 32 KiB.
const HEADER: [u8; 2] = [0x78, 0x9c];
/// Bytes of a stored block, at most.
const BLOCK: usize = 0xffff;

/// A stretch of a stream, for its length and its checksum.
enum Stretch {
    /// Its sum, its length, and that of the blocks that it is stored in.
    Known(Adler32, u64, u64),
    /// The place among what was written.
    Written(usize),
}

/// Adds the segments of a compressed variable.
pub(super) fn segments(
    element: Pieces,
    level: i32,
    written: &mut usize,
    segments: &mut Vec<Segment>,
) {
    let mut stretches = Vec::new();
    let mut body = vec![Segment::Bytes(HEADER.to_vec())];
    for piece in element.list {
        match piece {
            Piece::Bytes(bytes) => {
                let mut sum = Adler32::default();
                sum.update(&bytes);
                let blocks = stored(&bytes);
                let len = bytes.len() as u64;
                stretches.push(Stretch::Known(sum, len, blocks.len() as u64));
                body.push(Segment::Bytes(blocks));
            }
            Piece::Data {
                index, part, want, ..
            } => {
                let codec = Codec::Zlib {
                    level,
                    skip: 0,
                    ends: false,
                };
                stretches.push(Stretch::Written(*written));
                *written += 1;
                body.push(segment(index, part, want, Some(codec)));
            }
        }
    }
    let stretches = Arc::new(stretches);
    let all = stretches.clone();
    segments.push(Segment::Late {
        len: 8,
        make: Box::new(move |written, _| tag(&all, written)),
    });
    segments.append(&mut body);
    segments.push(Segment::Bytes(DEFLATE_END.to_vec()));
    // Late as well: behind what is computed, nothing can be late.
    segments.push(Segment::Late {
        len: 4,
        make: Box::new(move |written, _| checksum(&stretches, written)),
    });
}

/// Bytes as blocks of a stream that are not compressed.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut blocks = Vec::new();
    for bytes in bytes.chunks(BLOCK) {
        let len = u16::try_from(bytes.len()).unwrap_or(0);
        blocks.push(0);
        blocks.extend_from_slice(&len.to_le_bytes());
        blocks.extend_from_slice(&(!len).to_le_bytes());
        blocks.extend_from_slice(bytes);
    }
    blocks
}

/// The tag in front of the stream, which says how long it got.
fn tag(stretches: &[Stretch], written: &[Written]) -> Result<Vec<u8>> {
    let mut len = (HEADER.len() + DEFLATE_END.len() + 4) as u64;
    for stretch in stretches {
        len += match stretch {
            Stretch::Known(_, _, blocks) => *blocks,
            Stretch::Written(place) => {
                let done = written.get(*place).ok_or_else(missing)?;
                done.range.end.saturating_sub(done.range.start)
            }
        };
    }
    let len = u32::try_from(len).map_err(|_| super::too_large(len))?;
    Ok([COMPRESSED.to_le_bytes(), len.to_le_bytes()].concat())
}

/// What a stream ends with.
fn checksum(stretches: &[Stretch], written: &[Written]) -> Result<Vec<u8>> {
    let mut sum = Adler32::default();
    for stretch in stretches {
        match stretch {
            Stretch::Known(known, len, _) => sum.append(known.value(), *len),
            Stretch::Written(place) => {
                let done = written.get(*place).ok_or_else(missing)?;
                let value = done.digest.as_ref().map(|digest| digest.value.as_ref());
                let value = value.and_then(|value| value.try_into().ok());
                let value = u32::from_be_bytes(value.ok_or_else(missing)?);
                sum.append(value, done.raw_len);
            }
        }
    }
    Ok(sum.value().to_be_bytes().to_vec())
}

fn missing() -> Error {
    Error::argument("data that was not written, or without its checksum")
}
