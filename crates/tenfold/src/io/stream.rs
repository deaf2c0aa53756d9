//! Streams: what comes from a pipe, and what goes into one.

use std::io::{Read, Write};

use crate::error::{Error, Result};
use crate::io::{Output, Sink, Source, Spool};
use crate::prelude::*;

/// Keeps everything that a reader gives, up to a limit: in memory where that is little, else in a temporary file.
pub(crate) fn spool(reader: &mut dyn Read, limit: u64) -> Result<Arc<dyn Source>> {
    let mut spool = Spool::default();
    let mut buffer = vec![0; 1 << 16];
    let mut len = 0u64;
    loop {
        let n = match reader.read(&mut buffer) {
            Ok(0) => return spool.finish(),
            Ok(n) => n,
            Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(cause) => return Err(Error::io("cannot read the stream", cause)),
        };
        len = len.saturating_add(n as u64);
        if len > limit {
            let message =
                format!("the stream has more than {limit} bytes, the limit (spool_bytes)");
            return Err(Error::limit("stream", message).raised_by("spool_bytes", None));
        }
        spool.write(buffer.get(..n).unwrap_or_default())?;
    }
}

/// A single file that goes into a stream, from its first byte to its last. Nothing of it can be read back or taken back.
///
/// ```
/// use tenfold::format::Registry;
/// use tenfold::io::StreamOutput;
/// use tenfold::ops::{Conversion, ConvertOptions};
/// let mut b = tenfold::Archive::builder();
/// b.tensor("x", [2], [1f32, 2.0])?;
/// let registry = Registry::standard();
/// let conversion = Conversion::prepare(&b.finish(), registry.get("safetensors")?, &ConvertOptions::new())?;
/// let mut bytes = Vec::new();
/// conversion.write_to("x.safetensors", &mut StreamOutput::new(&mut bytes))?;
/// assert!(tenfold::Archive::from_bytes(bytes)?.get("x").is_some());
/// # Ok::<(), tenfold::Error>(())
/// ```
#[derive(Debug)]
pub struct StreamOutput<W> {
    stream: W,
    is_used: bool,
}

impl<W: Write + Send> StreamOutput<W> {
    /// Nothing has been written yet.
    pub fn new(stream: W) -> Self {
        Self {
            stream,
            is_used: false,
        }
    }
}

impl<W: Write + Send> Output for StreamOutput<W> {
    fn create(&mut self, _: &str, _: Option<u64>) -> Result<Box<dyn Sink + '_>> {
        if core::mem::replace(&mut self.is_used, true) {
            return Err(Error::argument(
                "a stream holds one file, and there are several",
            ));
        }
        Ok(Box::new(StreamSink(&mut self.stream)))
    }

    fn written(&self, _: &str) -> Result<Option<Arc<dyn Source>>> {
        Ok(None)
    }

    fn commit(&mut self) -> Result<()> {
        self.stream.flush().map_err(failed)
    }
}

struct StreamSink<'s, W>(&'s mut W);

impl<W: Write + Send> Sink for StreamSink<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).map_err(failed)
    }
}

fn failed(cause: std::io::Error) -> Error {
    Error::io("cannot write to the stream", cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_kept_up_to_the_limit() {
        let text = b"0123456789".repeat(20_000);
        let kept = spool(&mut &text[..], 200_000).unwrap();
        assert_eq!(kept.read(199_995..200_000).unwrap()[..], *b"56789");
        let error = spool(&mut &text[..], 199_999).unwrap_err();
        assert_eq!(error.rule(), "file.stream");
    }

    #[test]
    fn a_stream_takes_one_file() {
        let mut bytes = Vec::new();
        let mut output = StreamOutput::new(&mut bytes);
        output.create("a", None).unwrap().write(b"abc").unwrap();
        assert!(output.create("b", None).is_err());
        output.commit().unwrap();
        assert_eq!(bytes, b"abc");
    }
}
