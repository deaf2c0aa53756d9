//! Compressed streams that are read from the beginning.

#[cfg(feature = "deflate")]
use super::Inflate;
#[cfg(not(feature = "deflate"))]
use super::absent::no_deflate;
use super::{Decoder, damaged, placed};
use crate::error::Result;
use crate::model::Codec;
use crate::prelude::*;
use crate::transform::Input;

/// Fewer bytes than this pad the data of [`Codec::Zlib`] at the end of its stream.
#[cfg(feature = "deflate")]
const PADDING: usize = 8;

/// A stream that is read from the beginning. Must give exactly the bytes that were declared.
pub(in crate::transform) struct Sequential<'a> {
    codec: Codec,
    input: Input<'a>,
    decoder: Stream<'a>,
    len: u64,
    left: u64,
    ended: bool,
}

impl<'a> Sequential<'a> {
    pub(in crate::transform) fn new(input: Input<'a>, codec: Codec, len: u64) -> Result<Self> {
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
    pub(in crate::transform) fn read(&mut self, n: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.resize(n, 0);
        let mut filled = 0;
        while filled < n {
            let got = self.decode(|decoder| decoder.read(&mut out[filled..]))?;
            if got == 0 {
                let message = format!(
                    "decodes to {} bytes, but declares {}",
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
            if !self.decode(Stream::ends)? {
                let message = format!("decodes to more than the {} bytes it declares", self.len);
                return Err(damaged(self.codec, &self.input, message));
            }
        }
        Ok(())
    }

    fn decode<T>(&mut self, step: impl FnOnce(&mut Stream<'a>) -> Result<T>) -> Result<T> {
        step(&mut self.decoder).map_err(|error| placed(error, &self.input))
    }
}

/// A decoder of one of the codecs that are read from the beginning.
enum Stream<'a> {
    #[cfg(feature = "deflate")]
    Deflate(Inflate<'a>),
    /// A stretch, and whether the stream ends after it.
    #[cfg(feature = "deflate")]
    Zlib(Inflate<'a>, bool),
    Zstd(Box<Decoder<'a>>),
}

impl<'a> Stream<'a> {
    fn new(input: Input<'a>, codec: Codec) -> Result<Self> {
        match codec {
            #[cfg(feature = "deflate")]
            Codec::Deflate { skip, .. } => {
                let mut stream = Inflate::new(input);
                stream.skip(skip.into())?;
                Ok(Stream::Deflate(stream))
            }
            #[cfg(feature = "deflate")]
            Codec::Zlib { skip, ends, .. } => {
                let mut stream = Inflate::zlib(input);
                stream.skip(skip)?;
                Ok(Stream::Zlib(stream, ends))
            }
            #[cfg(not(feature = "deflate"))]
            Codec::Deflate { .. } | Codec::Zlib { .. } => Err(no_deflate()),
            Codec::Zstd { .. } | Codec::ZstdSeekable { .. } => {
                Ok(Stream::Zstd(Box::new(Decoder::new(input)?)))
            }
        }
    }

    /// Some decoded bytes; 0 at the end.
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        match self {
            #[cfg(feature = "deflate")]
            Stream::Deflate(stream) | Stream::Zlib(stream, _) => stream.read(out),
            Stream::Zstd(stream) => stream.read(out),
        }
    }

    /// Whether it ends after the data, as far as it does.
    fn ends(&mut self) -> Result<bool> {
        match self {
            #[cfg(feature = "deflate")]
            Stream::Zlib(_, false) => Ok(true),
            #[cfg(feature = "deflate")]
            Stream::Zlib(stream, true) => Ok(!stream.fill(&mut [0; PADDING])?),
            other => Ok(other.read(&mut [0])? == 0),
        }
    }
}
