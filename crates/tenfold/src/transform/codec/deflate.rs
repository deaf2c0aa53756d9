//! Deflate: one stream, as zip archives have it.

use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

use bytes::Bytes;

use super::{Check, STEP};
use crate::error::{Error, Result};
use crate::prelude::*;
use crate::transform::Input;

/// An empty last block: what ends a stream of pieces that were compressed one by one.
pub(crate) const END: [u8; 5] = [1, 0, 0, 0xff, 0xff];
/// Compressed bytes that are fetched at once: few at first, because often only the beginning is wanted, then more and more.
const FIRST: u64 = 256;
const LATER: u64 = 64 << 10;

/// Decodes a stream from its beginning.
pub(crate) struct Inflate<'a> {
    input: Input<'a>,
    /// How much of the input was fetched, and what of it is not used yet.
    at: u64,
    fetched: Bytes,
    state: Box<InflateState>,
    ended: bool,
    /// Whether something may lie behind the stream.
    is_followed: bool,
}

/// A decoder in the middle of a stream, without its input.
#[cfg(feature = "std")]
pub(super) struct Paused {
    at: u64,
    fetched: Bytes,
    state: Box<InflateState>,
}

impl<'a> Inflate<'a> {
    pub(crate) fn new(input: Input<'a>) -> Self {
        Self::framed(input, DataFormat::Raw)
    }

    /// The same in the frame of zlib, whose checksum is looked at where the stream is read to its end.
    pub(crate) fn zlib(input: Input<'a>) -> Self {
        Self::framed(input, DataFormat::Zlib)
    }

    fn framed(input: Input<'a>, format: DataFormat) -> Self {
        Self {
            input,
            at: 0,
            fetched: Bytes::new(),
            state: InflateState::new_boxed(format),
            ended: false,
            is_followed: false,
        }
    }

    /// The same where the end of the stream need not be the end of the input.
    #[cfg(feature = "pytorch")]
    pub(crate) fn followed(self) -> Self {
        Self {
            is_followed: true,
            ..self
        }
    }

    /// Goes on where another one stopped in the same input.
    #[cfg(feature = "std")]
    pub(super) fn resume(input: Input<'a>, paused: Paused) -> Self {
        Self {
            input,
            at: paused.at,
            fetched: paused.fetched,
            state: paused.state,
            ended: false,
            is_followed: false,
        }
    }

    /// What is needed to go on later; nothing at the end of a stream.
    #[cfg(feature = "std")]
    pub(super) fn pause(self) -> Option<Paused> {
        let Self {
            at, fetched, state, ..
        } = self;
        (!self.ended).then_some(Paused { at, fetched, state })
    }

    /// Some decoded bytes; 0 at the end of the stream, which must be the end of the input too.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        while !self.ended && !out.is_empty() {
            if self.fetched.is_empty() && self.at < self.input.len() {
                let most = (4 * self.at).clamp(FIRST, LATER);
                let n = (self.input.len() - self.at).min(most);
                self.fetched = self.input.read(self.at, n)?;
                self.at += n;
            }
            let step = inflate(&mut self.state, &self.fetched, out, MZFlush::None);
            let _used = self.fetched.split_to(step.bytes_consumed);
            match step.status {
                Ok(MZStatus::StreamEnd) => self.end()?,
                Ok(_) => {}
                // What came before the damage is given first.
                Err(_) if step.bytes_written > 0 => {}
                // Nothing more to read, and the stream is not at its end.
                Err(MZError::Buf) => return Err(broken("it ends in the middle")),
                Err(_) => return Err(broken("it has an invalid block")),
            }
            if step.bytes_written > 0 {
                return Ok(step.bytes_written);
            }
        }
        Ok(0)
    }

    /// Bytes of the input that were needed so far.
    pub(crate) fn used(&self) -> u64 {
        self.at - self.fetched.len() as u64
    }

    fn end(&mut self) -> Result<()> {
        self.ended = true;
        let left = self.input.len() - self.at + self.fetched.len() as u64;
        match left {
            0 => Ok(()),
            _ if self.is_followed => Ok(()),
            _ => Err(broken(format_args!("{left} bytes are left after its end"))),
        }
    }

    /// Passes over bytes, or all that there are.
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<bool> {
        let mut left = bytes;
        let mut skipped = vec![0; crate::io::as_size(left.min(LATER))?];
        while left > 0 {
            let most = skipped.len() as u64;
            let (step, _) = skipped.split_at_mut(crate::io::as_size(left.min(most))?);
            match self.read(step)? {
                0 => return Ok(false),
                n => left -= n as u64,
            }
        }
        Ok(true)
    }

    /// Fills `out` with the next bytes; false when the stream ends before.
    pub(crate) fn fill(&mut self, out: &mut [u8]) -> Result<bool> {
        let mut rest = out;
        while !rest.is_empty() {
            let n = self.read(rest)?;
            if n == 0 {
                return Ok(false);
            }
            rest = rest.get_mut(n..).unwrap_or_default();
        }
        Ok(true)
    }
}

fn broken(what: impl core::fmt::Display) -> Error {
    Error::malformed("deflate", format!("the deflated data is damaged: {what}"))
}

/// Compresses a piece to whole bytes, without ending the stream: pieces can follow each other, and [`END`] follows them.
pub(crate) fn encode(level: i32, piece: &[u8], check: Check<'_>) -> Result<Vec<u8>> {
    #[cfg(feature = "std")]
    {
        use std::cell::RefCell;
        std::thread_local! {
            /// A compressor takes more memory than most pieces.
            static COMPRESSOR: RefCell<Option<(i32, CompressorOxide)>> = const { RefCell::new(None) };
        }
        COMPRESSOR.with_borrow_mut(|kept| {
            let compressor = match kept {
                Some((with, compressor)) if *with == level => {
                    compressor.reset();
                    compressor
                }
                _ => &mut kept.insert((level, compressor(level))).1,
            };
            compress(compressor, piece, MZFlush::Sync, check)
        })
    }
    #[cfg(not(feature = "std"))]
    compress(&mut compressor(level), piece, MZFlush::Sync, check)
}

fn compressor(level: i32) -> CompressorOxide {
    // A negative window is a stream without a frame of zlib's.
    CompressorOxide::new(create_comp_flags_from_zip_params(level, -15, 0))
}

/// Compresses a piece step by step; after it the stream is flushed so.
pub(super) fn compress(
    compressor: &mut CompressorOxide,
    piece: &[u8],
    end: MZFlush,
    check: Check<'_>,
) -> Result<Vec<u8>> {
    let mut out = vec![0; piece.len() / 2 + 128];
    let mut filled = 0;
    let mut left = piece;
    loop {
        check()?;
        let (mut step, later) = left.split_at(left.len().min(STEP));
        let flush = if later.is_empty() { end } else { MZFlush::None };
        loop {
            let room = out.get_mut(filled..).unwrap_or_default();
            let len = room.len();
            let done = deflate(compressor, step, room, flush);
            step = step.get(done.bytes_consumed..).unwrap_or_default();
            filled += done.bytes_written;
            // Room that is left says that everything was flushed.
            if step.is_empty() && done.bytes_written < len {
                break;
            }
            if let Err(cause) = done.status
                && cause != MZError::Buf
            {
                return Err(Error::argument("the data cannot be deflated"));
            }
            if filled == out.len() {
                out.resize(out.len() * 2, 0);
            }
        }
        left = later;
        if left.is_empty() {
            break;
        }
    }
    out.truncate(filled);
    Ok(out)
}
