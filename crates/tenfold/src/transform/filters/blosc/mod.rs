//! Blosc 1: a frame of blocks, each compressed by itself, whose bytes or bits of equal significance lie together.
//!
//! | bytes        | what                                                                                                  |
//! |--------------|-------------------------------------------------------------------------------------------------------|
//! | 16           | version, version of the codec, flags, width of an element, then u32: bytes, bytes of a block, all bytes |
//! | 4 each       | where each block begins                                                                               |
//! | the rest     | blocks: a stream for every byte of an element, or one; i32 length, then the stream                     |
//!
//! The frame is read here because the only other reader is the C library; its inner codecs are those that are there, but
//! for `BloscLZ` and Snappy, whose decoders are a page each.

mod blosclz;

use bytes::Bytes;

use super::shuffle;
use crate::error::{Error, Result};
use crate::io::Reader;
use crate::prelude::*;
use crate::transform::as_size;
use crate::transform::codec::{self, Check};

const HEAD: u64 = 16;
const SHUFFLED: u8 = 0x01;
const STORED: u8 = 0x02;
const BIT_SHUFFLED: u8 = 0x04;
const NOT_SPLIT: u8 = 0x10;
/// Elements of more bytes are in one stream, and so are those of which a stream would be short.
const MOST_STREAMS: u64 = 16;
const LEAST_STREAM: u64 = 128;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Inner {
    BloscLz,
    Lz4,
    Snappy,
    Zlib,
    Zstd,
}

struct Frame {
    flags: u8,
    width: u64,
    len: u64,
    block: u64,
    inner: Inner,
}

/// The bytes of a frame, of which there may be `most`.
pub(super) fn undo(stored: &Bytes, most: u64, check: Check<'_>) -> Result<Bytes> {
    let mut r = Reader::new(stored, "blosc");
    let frame = Frame::read(&mut r, stored.len() as u64)?;
    if frame.len > most {
        let message = format!("it decodes to {} bytes, not {most}", frame.len);
        return Err(broken(message));
    }
    if frame.flags & STORED != 0 {
        if r.remaining() != frame.len {
            let message = format!("{} stored bytes for {}", r.remaining(), frame.len);
            return Err(broken(message));
        }
        return Ok(stored.slice(as_size(HEAD)?..));
    }
    frame.blocks(&mut r, stored, check)
}

impl Frame {
    fn read(r: &mut Reader<'_>, stored: u64) -> Result<Self> {
        let version = r.u8("version")?;
        if version > 2 {
            let message =
                format!("a Blosc frame of version {version}, which is Blosc 2; 1 and 2 are read");
            return Err(Error::unsupported("blosc", message));
        }
        let _version_of_codec = r.u8("version of the codec")?;
        let flags = r.u8("flags")?;
        let width = r.u8("width of an element")?.into();
        let len = r.u32("bytes")?.into();
        let block = r.u32("bytes of a block")?.into();
        let all = u64::from(r.u32("bytes of the frame")?);
        if all != stored {
            let message = format!("it says that it has {all} bytes, but there are {stored}");
            return Err(broken(message));
        }
        let inner = match flags >> 5 {
            0 => Inner::BloscLz,
            1 => Inner::Lz4,
            2 => Inner::Snappy,
            3 => Inner::Zlib,
            4 => Inner::Zstd,
            other => {
                let message = format!("a Blosc frame with codec {other}, 0 to 4 are known");
                return Err(Error::unsupported("blosc", message));
            }
        };
        if width == 0 || (block == 0 && len > 0) {
            return Err(broken("its elements or its blocks have no bytes"));
        }
        Ok(Self {
            flags,
            width,
            len,
            block,
            inner,
        })
    }

    /// Undoes all blocks.
    fn blocks(&self, r: &mut Reader<'_>, stored: &Bytes, check: Check<'_>) -> Result<Bytes> {
        let count = self.len.div_ceil(self.block.max(1));
        // Before memory is taken for what may not be there: every block has a place and a stream with its length.
        if count.saturating_mul(8) > r.remaining() {
            return Err(broken(format!("it has no room for {count} blocks")));
        }
        let starts: Vec<u64> = (0..count)
            .map(|_| r.u32("start of a block").map(u64::from))
            .collect::<Result<_>>()?;
        let front = r.pos();
        let mut out = crate::io::zeros(self.len)?;
        for (start, out) in starts.into_iter().zip(out.chunks_mut(as_size(self.block)?)) {
            check()?;
            if start < front {
                return Err(broken(format!(
                    "a block begins at byte {start}, inside its header"
                )));
            }
            let mut r = Reader::new(stored, "blosc");
            r.skip_to(start, "a block")?;
            self.block(&mut r, out, check)?;
        }
        Ok(out.into())
    }

    fn block(&self, r: &mut Reader<'_>, out: &mut [u8], check: Check<'_>) -> Result<()> {
        let len = out.len() as u64;
        let is_split = self.flags & NOT_SPLIT == 0
            && self.width <= MOST_STREAMS
            && self.block / self.width >= LEAST_STREAM
            && len == self.block;
        let streams = if is_split { self.width } else { 1 };
        if !len.is_multiple_of(streams) {
            return Err(broken(
                "a block is split that is not a whole number of elements",
            ));
        }
        let width = as_size(self.width)?;
        let stream = as_size(len / streams)?;
        let is_mixed = self.flags & (SHUFFLED | BIT_SHUFFLED) != 0;
        if !is_mixed {
            return self.streams(r, out, stream, check);
        }
        let mut mixed = crate::io::zeros(len)?;
        self.streams(r, &mut mixed, stream, check)?;
        if self.flags & SHUFFLED != 0 {
            shuffle::undo_into(&mixed, out, width);
        } else {
            undo_bits(&mixed, out, width);
        }
        Ok(())
    }

    fn streams(
        &self,
        r: &mut Reader<'_>,
        out: &mut [u8],
        stream: usize,
        check: Check<'_>,
    ) -> Result<()> {
        for out in out.chunks_mut(stream.max(1)) {
            let len = u64::from(r.u32("length of a stream")?);
            let stored = r.take(len, "a stream")?;
            if stored.len() == out.len() {
                out.copy_from_slice(&stored);
            } else {
                self.stream(&stored, out, check)?;
            }
        }
        Ok(())
    }

    fn stream(&self, stored: &[u8], out: &mut [u8], check: Check<'_>) -> Result<()> {
        match self.inner {
            Inner::BloscLz => blosclz::undo(stored, out),
            Inner::Lz4 => super::lz4::block(stored, out),
            Inner::Snappy => fill(out, &codec::unpack_snappy(stored, out.len() as u64)?),
            Inner::Zlib => {
                let bytes = codec::inflate_zlib(stored, out.len() as u64, check)?;
                fill(out, &bytes)
            }
            Inner::Zstd => codec::unpack_zstd_frame(stored, out),
        }
    }
}

/// Takes the bytes of a stream, which must be as many as there is room for.
fn fill(out: &mut [u8], bytes: &[u8]) -> Result<()> {
    if bytes.len() != out.len() {
        let message = format_args!(
            "a stream decodes to {} bytes, not {}",
            bytes.len(),
            out.len()
        );
        return Err(broken(message));
    }
    out.copy_from_slice(bytes);
    Ok(())
}

/// Puts the bits of elements together again: plane by plane, eight elements in a byte, the first in its lowest bit. The
/// bits of elements that are not a multiple of eight are not taken apart.
fn undo_bits(mixed: &[u8], out: &mut [u8], width: usize) {
    let count = mixed.len().checked_div(width).unwrap_or(0);
    if count == 0 || !count.is_multiple_of(8) {
        out.copy_from_slice(mixed);
        return;
    }
    let whole = count * width;
    let (planes, rest) = mixed.split_at(whole);
    let (elements, out_rest) = out.split_at_mut(whole);
    out_rest.copy_from_slice(rest);
    let row = count / 8;
    for (group, elements) in elements.chunks_exact_mut(8 * width).enumerate() {
        for byte in 0..width {
            // Eight bytes, one for each bit: a square of bits to be turned.
            let mut square = [0u8; 8];
            for (bit, place) in square.iter_mut().enumerate() {
                *place = planes[(byte * 8 + bit) * row + group];
            }
            let turned = turn(u64::from_le_bytes(square)).to_le_bytes();
            for (element, turned) in turned.into_iter().enumerate() {
                elements[element * width + byte] = turned;
            }
        }
    }
}

/// Exchanges rows and columns of 8 times 8 bits.
fn turn(mut x: u64) -> u64 {
    let mut t = (x ^ x >> 7) & 0x00aa_00aa_00aa_00aa;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000_cccc_0000_cccc;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ t << 28
}

fn broken(what: impl core::fmt::Display) -> Error {
    Error::malformed("blosc", format!("the Blosc frame is damaged: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_together_again() {
        // 16 elements of 2 bytes: plane by plane, as they would be taken apart one bit at a time.
        let elements: Vec<u8> = (0..32u8).map(|n| n.wrapping_mul(37)).collect();
        let mut mixed = vec![0u8; 32];
        for element in 0..16 {
            for bit in 0..16 {
                let set = elements[element * 2 + bit / 8] >> (bit % 8) & 1;
                mixed[bit * 2 + element / 8] |= set << (element % 8);
            }
        }
        let mut out = vec![0; 32];
        undo_bits(&mixed, &mut out, 2);
        assert_eq!(out, elements);
        undo_bits(&mixed[..30], &mut out[..30], 2);
        assert_eq!(out[..30], mixed[..30], "15 elements stay as they are");
    }

    #[test]
    fn frames_that_contradict_themselves_are_refused() {
        let frame = |version: u8, flags: u8, len: u32, block: u32, all: u32| {
            let mut frame = vec![version, 1, flags, 4];
            for number in [len, block, all] {
                frame.extend(number.to_le_bytes());
            }
            frame.extend(1u32.to_le_bytes());
            Bytes::from(frame)
        };
        let undo = |frame: &Bytes| undo(frame, 4, &|| Ok(()));
        assert_eq!(undo(&frame(2, 2, 4, 4, 20)).unwrap(), &[1, 0, 0, 0][..]);
        for (frame, rule) in [
            (frame(3, 2, 4, 4, 20), "file.blosc"),
            (frame(2, 0xc0, 4, 4, 20), "file.blosc"),
            (frame(2, 2, 4, 4, 19), "file.blosc"),
            (frame(2, 2, 8, 8, 20), "file.blosc"),
            (frame(2, 2, 3, 4, 20), "file.blosc"),
            (frame(2, 0, 4, 0, 20), "file.blosc"),
            (frame(2, 0, 4, 1, 20), "file.blosc"),
            (frame(2, 0, 4, 4, 20), "file.blosc"),
        ] {
            assert_eq!(undo(&frame).unwrap_err().rule(), rule, "{frame:?}");
        }
    }
}
