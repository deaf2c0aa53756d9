//! Compressed streams that are read from the beginning.

#[cfg(feature = "deflate")]
use super::Inflate;
#[cfg(not(feature = "deflate"))]
use super::absent::no_deflate;
#[cfg(all(feature = "std", feature = "deflate"))]
use super::parked::Place;
use super::{Decoder, Parked, damaged, placed};
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
    parked: Option<&'a Parked>,
    len: u64,
    left: u64,
    ended: bool,
}

impl<'a> Sequential<'a> {
    pub(in crate::transform) fn new(
        input: Input<'a>,
        codec: Codec,
        len: u64,
        parked: Option<&'a Parked>,
    ) -> Result<Self> {
        let decoder = Stream::new(input.clone(), codec, parked);
        let decoder = decoder.map_err(|error| placed(error, &input))?;
        Ok(Self {
            codec,
            input,
            decoder,
            parked,
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
            #[cfg(all(feature = "std", feature = "deflate"))]
            self.park();
        }
        Ok(())
    }

    /// Leaves the decoder to whoever wants what comes behind.
    #[cfg(all(feature = "std", feature = "deflate"))]
    fn park(&mut self) {
        if let Codec::Zlib {
            skip, ends: false, ..
        } = self.codec
            && let Some(parked) = self.parked
            && let Some(place) = Place::new(&self.input, skip.saturating_add(self.len))
            && let Stream::Zlib(stream, _) = core::mem::replace(&mut self.decoder, Stream::Done)
            && let Some(paused) = stream.pause()
        {
            parked.put(place, paused);
        }
    }

    fn decode<T>(&mut self, step: impl FnOnce(&mut Stream<'a>) -> Result<T>) -> Result<T> {
        step(&mut self.decoder).map_err(|error| placed(error, &self.input))
    }
}

/// A decoder of a zlib stream that has not passed a place, and how many bytes it has decoded.
#[cfg(feature = "deflate")]
fn begin<'a>(input: Input<'a>, skip: u64, parked: Option<&'a Parked>) -> (Inflate<'a>, u64) {
    #[cfg(feature = "std")]
    if let Some(parked) = parked
        && let Some(place) = Place::new(&input, skip)
        && let Some((paused, decoded)) = parked.take(&place)
    {
        return (Inflate::resume(input, paused), decoded);
    }
    #[cfg(not(feature = "std"))]
    let _ = (skip, parked);
    (Inflate::zlib(input), 0)
}

/// A decoder of one of the codecs that are read from the beginning.
enum Stream<'a> {
    #[cfg(feature = "deflate")]
    Deflate(Inflate<'a>),
    /// A stretch, and whether the stream ends after it.
    #[cfg(feature = "deflate")]
    Zlib(Inflate<'a>, bool),
    Zstd(Box<Decoder<'a>>),
    /// Everything was read, and somebody else has the decoder.
    #[cfg(all(feature = "std", feature = "deflate"))]
    Done,
}

impl<'a> Stream<'a> {
    fn new(input: Input<'a>, codec: Codec, parked: Option<&'a Parked>) -> Result<Self> {
        match codec {
            #[cfg(feature = "deflate")]
            Codec::Deflate { skip, .. } => {
                let mut stream = Inflate::new(input);
                stream.skip(skip.into())?;
                Ok(Stream::Deflate(stream))
            }
            #[cfg(feature = "deflate")]
            Codec::Zlib { skip, ends, .. } => {
                let (mut stream, decoded) = begin(input, skip, parked);
                stream.skip(skip - decoded)?;
                Ok(Stream::Zlib(stream, ends))
            }
            #[cfg(not(feature = "deflate"))]
            Codec::Deflate { .. } | Codec::Zlib { .. } => {
                let _ = parked;
                Err(no_deflate())
            }
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
            #[cfg(all(feature = "std", feature = "deflate"))]
            Stream::Done => Ok(0),
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
