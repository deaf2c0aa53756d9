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
#[cfg(feature = "deflate")]
use crate::transform::as_size;

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
