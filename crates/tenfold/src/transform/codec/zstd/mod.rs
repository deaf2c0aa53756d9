//! Zstandard: the C library where it is built in, else the decoder in Rust.

use crate::error::{Error, Result};
use crate::prelude::*;
use crate::transform::Input;

#[cfg(not(feature = "zstd-write"))]
pub(super) use in_rust::{Decoder, decode_frame};
#[cfg(feature = "zstd-write")]
pub(crate) use with_c::encode;
#[cfg(feature = "zstd-write")]
pub(super) use with_c::{Decoder, decode_frame};

/// The largest window that a frame may ask for, as a power of two: what it makes a decoder allocate.
const WINDOW_LOG: u32 = 27;

fn broken(message: impl core::fmt::Display) -> Error {
    Error::malformed("zstd", format!("the compressed data is damaged: {message}"))
}

/// Compressed bytes as the decoders want them: a reader that remembers why it failed.
struct Feed<'a> {
    input: Input<'a>,
    at: u64,
    failed: Option<Error>,
}

impl<'a> Feed<'a> {
    fn new(input: Input<'a>) -> Self {
        Self {
            input,
            at: 0,
            failed: None,
        }
    }

    fn left(&self) -> u64 {
        self.input.len() - self.at
    }

    /// `None` after a failure, which [`failure`](Self::failure) gives.
    fn fill(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let n = usize::try_from(self.left())
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        match self.input.read_into(self.at, &mut buffer[..n]) {
            Ok(()) => {
                self.at += n as u64;
                Some(n)
            }
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }

    /// The reason of the source, if it was the source that failed.
    fn failure(&mut self, otherwise: impl core::fmt::Display) -> Error {
        self.failed.take().unwrap_or_else(|| broken(otherwise))
    }
}

#[cfg(feature = "zstd-write")]
mod with_c {
    use std::cell::RefCell;
    use std::io::{self, BufReader, Read};

    use zstd::bulk;
    use zstd::stream::raw::{CParameter, DParameter, Encoder, InBuffer, Operation as _, OutBuffer};
    use zstd::stream::read;

    use super::super::{Check, STEP};
    use super::{Error, Feed, Input, Result, Vec, WINDOW_LOG, broken, format};

    impl Read for Feed<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.fill(buffer).ok_or_else(|| io::ErrorKind::Other.into())
        }
    }

    /// Decodes frames one after the other; skippable ones are skipped.
    pub(in super::super) struct Decoder<'a>(read::Decoder<'static, BufReader<Feed<'a>>>);

    impl<'a> Decoder<'a> {
        pub(in super::super) fn new(input: Input<'a>) -> Result<Self> {
            let mut decoder = read::Decoder::new(Feed::new(input)).map_err(broken)?;
            decoder
                .set_parameter(DParameter::WindowLogMax(WINDOW_LOG))
                .map_err(broken)?;
            Ok(Self(decoder))
        }

        /// Some decoded bytes; 0 at the end of the last frame.
        pub(in super::super) fn read(&mut self, out: &mut [u8]) -> Result<usize> {
            self.0
                .read(out)
                .map_err(|cause| self.0.get_mut().get_mut().failure(cause))
        }
    }

    /// Decodes one frame into exactly `out`.
    pub(in super::super) fn decode_frame(stored: &[u8], out: &mut [u8]) -> Result<()> {
        match bulk::decompress_to_buffer(stored, out) {
            Ok(n) if n == out.len() => Ok(()),
            Ok(n) => Err(broken(format!(
                "a frame decodes to {n} bytes instead of {}",
                out.len()
            ))),
            Err(cause) => Err(broken(cause)),
        }
    }

    std::thread_local! {
        /// Setting up a compressor costs more than compressing a small tensor.
        static COMPRESSOR: RefCell<Option<(i32, Encoder<'static>)>> = const { RefCell::new(None) };
    }

    /// Compresses a piece to a frame of its own, with its size and a checksum.
    pub(crate) fn encode(level: i32, piece: &[u8], check: Check<'_>) -> Result<Vec<u8>> {
        COMPRESSOR.with_borrow_mut(|kept| {
            let compressor = match kept {
                Some((with, compressor)) if *with == level => compressor,
                _ => &mut kept.insert((level, compressor(level)?)).1,
            };
            compress(compressor, piece, check)
        })
    }

    /// The highest levels take seconds for a piece: it is given block by block.
    fn compress(
        compressor: &mut Encoder<'static>,
        piece: &[u8],
        check: Check<'_>,
    ) -> Result<Vec<u8>> {
        let fail = |cause| Error::io("cannot compress", cause);
        // One that was stopped may be in the middle of another frame.
        compressor.reinit().map_err(fail)?;
        let len = Some(piece.len() as u64);
        compressor.set_pledged_src_size(len).map_err(fail)?;
        let mut frame = Vec::with_capacity(zstd::zstd_safe::compress_bound(piece.len()));
        let mut out = OutBuffer::around(&mut frame);
        for block in piece.chunks(STEP) {
            check()?;
            let mut block = InBuffer::around(block);
            while block.pos() < block.src.len() {
                compressor.run(&mut block, &mut out).map_err(fail)?;
            }
        }
        check()?;
        while compressor.finish(&mut out, true).map_err(fail)? > 0 {}
        Ok(frame)
    }

    fn compressor(level: i32) -> Result<Encoder<'static>> {
        let range = zstd::compression_level_range();
        if !range.contains(&level) {
            let message = format!(
                "zstd level {level}: {} to {} are possible",
                range.start(),
                range.end()
            );
            return Err(Error::argument(message));
        }
        let fail = |cause| Error::io("cannot set up zstd", cause);
        let mut compressor = Encoder::new(level).map_err(fail)?;
        compressor
            .set_parameter(CParameter::ChecksumFlag(true))
            .map_err(fail)?;
        Ok(compressor)
    }
}

// Tests compare both decoders, whichever is used.
#[cfg(any(not(feature = "zstd-write"), test))]
mod in_rust {
    use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
    use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
    use ruzstd::io::{self, Read};

    use super::{Feed, Input, Result, WINDOW_LOG, broken, format};
    use bytes::Bytes;

    impl Read for Feed<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize, io::Error> {
            self.fill(buffer)
                .ok_or_else(|| io::Error::from(io::ErrorKind::Other))
        }
    }

    /// What the decoder says of which bit of which table is of use to its authors only, and its texts are large.
    const UNDECODABLE: &str = "a frame cannot be decoded";

    /// Decodes frames one after the other; skippable ones are skipped.
    pub(in super::super) struct Decoder<'a> {
        feed: Feed<'a>,
        frame: FrameDecoder,
        inside: bool,
    }

    impl<'a> Decoder<'a> {
        pub(in super::super) fn new(input: Input<'a>) -> Result<Self> {
            let mut frame = FrameDecoder::new();
            frame.set_max_window_size(1 << WINDOW_LOG);
            Ok(Self {
                feed: Feed::new(input),
                frame,
                inside: false,
            })
        }

        /// Some decoded bytes; 0 at the end of the last frame.
        pub(in super::super) fn read(&mut self, out: &mut [u8]) -> Result<usize> {
            loop {
                if !self.inside && !self.next_frame()? {
                    return Ok(0);
                }
                let n = self.frame.read(out).map_err(|_| broken(UNDECODABLE))?;
                if n > 0 {
                    return Ok(n);
                }
                if self.frame.is_finished() {
                    self.compare_checksum()?;
                    self.inside = false;
                    continue;
                }
                self.frame
                    .decode_blocks(&mut self.feed, BlockDecodingStrategy::UptoBytes(out.len()))
                    .map_err(|_| self.feed.failure(UNDECODABLE))?;
            }
        }

        /// Begins the next frame that holds data; false at the end.
        fn next_frame(&mut self) -> Result<bool> {
            while self.feed.left() > 0 {
                match self.frame.reset(&mut self.feed) {
                    Ok(()) => {
                        self.inside = true;
                        return Ok(true);
                    }
                    Err(FrameDecoderError::ReadFrameHeaderError(
                        ReadFrameHeaderError::SkipFrame { length, .. },
                    )) => {
                        if u64::from(length) > self.feed.left() {
                            return Err(broken("a skippable frame reaches past the end"));
                        }
                        self.feed.at += u64::from(length);
                    }
                    Err(FrameDecoderError::WindowSizeTooBig { requested, max }) => {
                        let message = format!(
                            "a frame's window has {requested} bytes, at most {max} are decoded"
                        );
                        return Err(broken(message));
                    }
                    Err(_) => return Err(self.feed.failure(UNDECODABLE)),
                }
            }
            Ok(false)
        }

        /// The decoder reads a frame's checksum and leaves comparing it to us.
        fn compare_checksum(&self) -> Result<()> {
            match (
                self.frame.get_checksum_from_data(),
                self.frame.get_calculated_checksum(),
            ) {
                (Some(stored), Some(computed)) if stored != computed => Err(broken(format!(
                    "frame checksum: stored {stored:08x}, computed {computed:08x}"
                ))),
                _ => Ok(()),
            }
        }
    }

    /// Decodes one frame into exactly `out`.
    pub(in super::super) fn decode_frame(stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut decoder = Decoder::new(Input::Memory(Bytes::copy_from_slice(stored)))?;
        let mut filled = 0;
        while filled < out.len() {
            match decoder.read(&mut out[filled..])? {
                0 => {
                    return Err(broken(format!(
                        "a frame decodes to {filled} bytes instead of {}",
                        out.len()
                    )));
                }
                n => filled += n,
            }
        }
        match decoder.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(broken(format!(
                "a frame decodes to more than {} bytes",
                out.len()
            ))),
        }
    }
}

#[cfg(all(test, feature = "zstd-write"))]
mod tests;
