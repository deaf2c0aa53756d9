//! Compressed data: streams that are read from the beginning, and frames with a table of them.

use crate::error::{Error, Result};
use crate::model::Codec;
use crate::prelude::*;
use crate::transform::{Body, Input, as_size};

#[cfg(feature = "deflate")]
mod deflate;
#[cfg(feature = "zstd")]
mod zstd;
#[cfg(feature = "deflate")]
pub(crate) use deflate::{END as DEFLATE_END, Inflate, encode as encode_deflate};
#[cfg(feature = "zstd-write")]
pub(crate) use zstd::encode;
#[cfg(feature = "zstd")]
use zstd::{Decoder, decode_frame};

/// A zstd block takes at least 4 bytes and gives at most 128 KiB: more than this many times cannot come out.
const MAX_RATIO: u64 = 32 << 10;
/// A deflated match of 258 bytes takes at least 2 bits.
const DEFLATE_MAX_RATIO: u64 = 1032;
/// Decoded bytes of a frame with a table entry, at most.
const MAX_FRAME: u64 = 16 << 20;

/// How the bytes of `input` are decoded to `len` bytes.
pub(super) fn open(input: Input<'_>, codec: Codec, len: u64) -> Result<Body<'_>> {
    // The decoders disagree about it, and no writer does it.
    if input.len() == 0 {
        return Err(damaged(
            codec,
            &input,
            "there are no compressed bytes: nothing is a frame too",
        ));
    }
    let most = match codec {
        Codec::Deflate { .. } => DEFLATE_MAX_RATIO,
        Codec::Zstd { .. } | Codec::ZstdSeekable { .. } => MAX_RATIO,
    };
    if len > input.len().saturating_mul(most) {
        let message = format!("{} compressed bytes cannot decode to {len}", input.len());
        return Err(damaged(codec, &input, message));
    }
    match codec {
        Codec::Deflate { .. } | Codec::Zstd { .. } => Ok(Body::Sequential(input, codec, len)),
        Codec::ZstdSeekable { .. } => Frames::new(input, codec, len).map(Body::Frames),
    }
}

/// How many bytes zstd frames give, for formats that do not say it. Decodes them all, and refuses more than `limit`.
#[cfg(feature = "ztensor")]
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
                format!("compressed data without a given length gives more than {limit} bytes");
            return Err(Error::limit("zstd", message).raised_by("tensor_memory"));
        }
    }
}

/// An error about compressed data.
fn damaged(codec: Codec, input: &Input<'_>, message: impl Into<String>) -> Error {
    let rule = match codec {
        Codec::Deflate { .. } => "deflate",
        Codec::Zstd { .. } | Codec::ZstdSeekable { .. } => "zstd",
    };
    let error = Error::malformed(rule, message);
    match input.place() {
        Some((source, range)) => error.at_source(source, range),
        None => error,
    }
}

/// A decoder of one of the codecs that are read from the beginning.
enum Stream<'a> {
    #[cfg(feature = "deflate")]
    Deflate(Inflate<'a>),
    Zstd(Box<Decoder<'a>>),
}

impl<'a> Stream<'a> {
    fn new(input: Input<'a>, codec: Codec) -> Result<Self> {
        match codec {
            #[cfg(feature = "deflate")]
            Codec::Deflate { skip, .. } => {
                let mut stream = Inflate::new(input);
                let mut skipped = vec![0; as_size(skip.into())?];
                stream.fill(&mut skipped)?;
                Ok(Stream::Deflate(stream))
            }
            #[cfg(not(feature = "deflate"))]
            Codec::Deflate { .. } => Err(no_deflate()),
            Codec::Zstd { .. } | Codec::ZstdSeekable { .. } => {
                Ok(Stream::Zstd(Box::new(Decoder::new(input)?)))
            }
        }
    }

    /// Some decoded bytes; 0 at the end.
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        match self {
            #[cfg(feature = "deflate")]
            Stream::Deflate(stream) => stream.read(out),
            Stream::Zstd(stream) => stream.read(out),
        }
    }
}

/// A stream that is read from the beginning. Must give exactly the bytes that were declared.
pub(super) struct Sequential<'a> {
    codec: Codec,
    input: Input<'a>,
    decoder: Stream<'a>,
    len: u64,
    left: u64,
    ended: bool,
}

impl<'a> Sequential<'a> {
    pub(super) fn new(input: Input<'a>, codec: Codec, len: u64) -> Result<Self> {
        let decoder = Stream::new(input.clone(), codec).map_err(|error| placed(error, &input))?;
        Ok(Self {
            codec,
            input,
            decoder,
            len,
            left: len,
            ended: false,
        })
    }

    /// The next `n` bytes. After the last ones, makes sure that nothing follows.
    pub(super) fn read(&mut self, n: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.resize(n, 0);
        let mut filled = 0;
        while filled < n {
            let got = self.decode(|decoder| decoder.read(&mut out[filled..]))?;
            if got == 0 {
                let message = format!(
                    "decodes to {} bytes, {} are declared",
                    self.len - self.left + filled as u64,
                    self.len
                );
                return Err(damaged(self.codec, &self.input, message));
            }
            filled += got;
        }
        self.left -= n as u64;
        if self.left == 0 && !self.ended {
            self.ended = true;
            if self.decode(|decoder| decoder.read(&mut [0]))? > 0 {
                let message = format!(
                    "decodes to more than the {} bytes that are declared",
                    self.len
                );
                return Err(damaged(self.codec, &self.input, message));
            }
        }
        Ok(())
    }

    fn decode(&mut self, step: impl FnOnce(&mut Stream<'a>) -> Result<usize>) -> Result<usize> {
        step(&mut self.decoder).map_err(|error| placed(error, &self.input))
    }
}

/// An error about compressed data that does not know its place yet.
fn placed(error: Error, input: &Input<'_>) -> Error {
    match input.place() {
        Some((source, range)) if error.range().is_none() => error.at_source(source, range),
        _ => error,
    }
}

/// Frames of equal decoded size with a table of them at the end: any of them can be decoded by itself.
pub(super) struct Frames<'a> {
    input: Input<'a>,
    /// Where each frame begins among the stored bytes, and where the last one ends.
    starts: Vec<u64>,
    /// The checksum of each frame, if the table has them.
    checksums: Vec<u32>,
    frame_len: u64,
    len: u64,
}

/// The magic of a skippable frame that holds a table.
const TABLE_FRAME: u32 = 0x184d_2a5e;
/// The magic at the very end.
const TABLE_END: u32 = 0x8f92_eab1;
/// Bytes around the entries: the skippable frame's head, and count, descriptor and magic at the end.
const TABLE_HEAD: u64 = 8;
const TABLE_FOOT: u64 = 9;
/// The only descriptor beside 0: every entry ends with a checksum.
const HAS_CHECKSUMS: u8 = 0x80;

impl<'a> Frames<'a> {
    fn new(input: Input<'a>, codec: Codec, len: u64) -> Result<Self> {
        let fail = |message: String| damaged(codec, &input, message);
        let total = input.len();
        let foot_at = total
            .checked_sub(TABLE_FOOT)
            .ok_or_else(|| fail("there is no seek table".into()))?;
        let foot = input.read(foot_at, TABLE_FOOT)?;
        if le32(&foot, 5) != TABLE_END {
            return Err(fail(
                "there is no seek table at the end of the compressed data".into(),
            ));
        }
        let count = u64::from(le32(&foot, 0));
        let entry_len = match foot[4] {
            0 => 8,
            HAS_CHECKSUMS => 12,
            other => {
                let message =
                    format!("the seek table's descriptor is {other:#04x}, 0 or 0x80 is expected");
                return Err(fail(message));
            }
        };
        let table_len = TABLE_HEAD + count * entry_len + TABLE_FOOT;
        let table_at = total.checked_sub(table_len).ok_or_else(|| {
            fail(format!(
                "the seek table says {count} frames, which do not fit"
            ))
        })?;
        let table = input.read(table_at, table_len)?;
        if le32(&table, 0) != TABLE_FRAME || u64::from(le32(&table, 4)) != table_len - TABLE_HEAD {
            return Err(fail(format!(
                "the seek table says {count} frames, and does not begin where it should"
            )));
        }
        let mut starts = vec![0];
        let mut checksums = Vec::new();
        let mut stored = 0u64;
        let mut decoded = 0u64;
        let mut frame_len = 0;
        let entries = &table[as_size(TABLE_HEAD)?..as_size(table_len - TABLE_FOOT)?];
        for (n, entry) in entries.chunks_exact(as_size(entry_len)?).enumerate() {
            let (frame_stored, frame_decoded) =
                (u64::from(le32(entry, 0)), u64::from(le32(entry, 4)));
            if n == 0 {
                frame_len = frame_decoded;
            }
            let last = n as u64 + 1 == count;
            let equal = frame_decoded == frame_len || last && frame_decoded <= frame_len;
            let possible =
                frame_stored > 0 && frame_decoded <= frame_stored.saturating_mul(MAX_RATIO);
            if !equal || !possible || frame_decoded > MAX_FRAME {
                let message = format!(
                    "frame {n} of the seek table: {frame_decoded} bytes from {frame_stored}"
                );
                return Err(fail(message));
            }
            stored += frame_stored;
            decoded += frame_decoded;
            starts.push(stored);
            if entry.len() > 8 {
                checksums.push(le32(entry, 8));
            }
        }
        if stored != table_at || decoded != len {
            let message = format!(
                "the seek table covers {stored} of {table_at} stored bytes and gives {decoded} of {len} decoded ones"
            );
            return Err(fail(message));
        }
        Ok(Self {
            input,
            starts,
            checksums,
            frame_len,
            len,
        })
    }

    /// Decoded bytes of every frame but the last.
    pub(super) fn frame_len(&self) -> u64 {
        self.frame_len
    }

    /// Whole frames.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let first = as_size(at / self.frame_len.max(1))?;
        let frame_len = as_size(self.frame_len.max(1))?;
        for (n, (frame, place)) in self.starts[first..]
            .windows(2)
            .zip(out.chunks_mut(frame_len))
            .enumerate()
        {
            let stored = self.input.read(frame[0], frame[1] - frame[0])?;
            let decoded = decode_frame(&stored, place);
            let checked = decoded.and_then(|()| self.check(first + n, &stored));
            checked.map_err(|error| match self.input.place() {
                Some((source, range)) => {
                    error.at_source(source, range.start + frame[0]..range.start + frame[1])
                }
                None => error,
            })?;
        }
        debug_assert!(at + out.len() as u64 <= self.len);
        Ok(())
    }

    /// Compares the checksum of the table with the frame's own, which decoding has compared with the content.
    fn check(&self, n: usize, stored: &[u8]) -> Result<()> {
        let own = stored.last_chunk().map(|own| u32::from_le_bytes(*own));
        match (self.checksums.get(n), own) {
            (Some(table), Some(own)) if has_checksum(stored) && *table != own => {
                let message = format!(
                    "frame {n} has the checksum {own:08x}, the seek table says {table:08x}"
                );
                Err(Error::malformed("zstd", message))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a frame ends with the checksum of its content: a flag behind its magic says so.
fn has_checksum(frame: &[u8]) -> bool {
    const FLAG: u8 = 0x04;
    matches!(frame, [0x28, 0xb5, 0x2f, 0xfd, descriptor, ..] if descriptor & FLAG != 0)
}

/// The table that makes frames seekable, from the stored and decoded sizes of each.
pub(crate) fn seek_table(frames: &[(u32, u32)]) -> Vec<u8> {
    let mut table = Vec::new();
    // The number of frames is bounded by a file's length over a frame's, far below 32 bits of table.
    let count = u32::try_from(frames.len()).unwrap_or(u32::MAX);
    table.extend_from_slice(&TABLE_FRAME.to_le_bytes());
    table.extend_from_slice(&(count.saturating_mul(8).saturating_add(9)).to_le_bytes());
    for (stored, decoded) in frames {
        table.extend_from_slice(&stored.to_le_bytes());
        table.extend_from_slice(&decoded.to_le_bytes());
    }
    table.extend_from_slice(&count.to_le_bytes());
    table.push(0);
    table.extend_from_slice(&TABLE_END.to_le_bytes());
    table
}

/// A number of 32 bits; the caller has made sure that the bytes are there.
fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(not(feature = "zstd"))]
struct Decoder<'a>(core::marker::PhantomData<&'a ()>);

#[cfg(not(feature = "zstd"))]
impl<'a> Decoder<'a> {
    fn new(_: Input<'a>) -> Result<Self> {
        Err(not_built_in("zstd"))
    }

    fn read(&mut self, _: &mut [u8]) -> Result<usize> {
        Err(not_built_in("zstd"))
    }
}

#[cfg(not(feature = "zstd"))]
fn decode_frame(_: &[u8], _: &mut [u8]) -> Result<()> {
    Err(not_built_in("zstd"))
}

/// Compresses a piece. This build cannot.
#[cfg(not(feature = "zstd-write"))]
pub(crate) fn encode(_: i32, _: &[u8]) -> Result<Vec<u8>> {
    Err(not_built_in("zstd-write"))
}

/// Compresses a piece. This build cannot.
#[cfg(not(feature = "deflate"))]
pub(crate) fn encode_deflate(_: i32, _: &[u8]) -> Result<Vec<u8>> {
    Err(no_deflate())
}

/// What this build never writes.
#[cfg(not(feature = "deflate"))]
pub(crate) const DEFLATE_END: [u8; 0] = [];

#[cfg(not(feature = "deflate"))]
fn no_deflate() -> Error {
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

#[cfg(all(test, feature = "zstd-write"))]
mod tests;
