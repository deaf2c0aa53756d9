//! The file or stream that is written.

#[cfg(feature = "std")]
use std::fs::File;

use crate::error::{Error, Result};
use crate::io::Sink;
use crate::prelude::*;
#[cfg(feature = "std")]
use crate::threads::Control;
#[cfg(feature = "std")]
use crate::transform::Input;

/// A file, written at any place, or a stream, written in order.
pub(super) struct Target<'s> {
    sink: &'s mut dyn Sink,
    /// For messages.
    name: &'s str,
    /// How far a stream has come.
    at: u64,
}

impl<'s> Target<'s> {
    pub(super) fn new(sink: &'s mut dyn Sink, name: &'s str) -> Self {
        Self { sink, name, at: 0 }
    }

    /// The file, if it is one.
    #[cfg(feature = "std")]
    pub(super) fn file(&self) -> Option<NamedFile<'_>> {
        let file = self.sink.as_file()?;
        let name = self.name;
        Some(NamedFile { file, name })
    }

    /// Whether it can be written at any place.
    pub(super) fn is_file(&self) -> bool {
        #[cfg(feature = "std")]
        return self.file().is_some();
        #[cfg(not(feature = "std"))]
        false
    }

    /// Writes bytes at a place, which for a stream must be where it is.
    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        #[cfg(feature = "std")]
        if let Some(file) = self.file() {
            return write_at(file, at, bytes);
        }
        if at != self.at {
            return Err(Error::argument(format!(
                "a stream at byte {} cannot be written at {at}",
                self.at
            )));
        }
        self.sink.write(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Makes sure that the file has its whole length, also where padding at its end was not written.
    pub(super) fn finish(self, len: u64) -> Result<()> {
        #[cfg(feature = "std")]
        if let Some(file) = self.file() {
            return crate::io::fault::point("length")
                .and_then(|()| file.file.set_len(len))
                .map_err(|cause| file.cannot("set the length of", cause));
        }
        let _ = len;
        Ok(())
    }
}

/// A file that is written, and its name for messages.
#[cfg(feature = "std")]
#[derive(Clone, Copy)]
pub(super) struct NamedFile<'f> {
    pub(super) file: &'f File,
    pub(super) name: &'f str,
}

#[cfg(feature = "std")]
impl NamedFile<'_> {
    fn cannot(self, what: &str, cause: std::io::Error) -> Error {
        Error::io(format_args!("cannot {what} {}", self.name), cause)
    }
}

#[cfg(feature = "std")]
pub(super) fn write_at(to: NamedFile<'_>, at: u64, bytes: &[u8]) -> Result<()> {
    crate::io::write_all_at(to.file, bytes, at).map_err(|cause| to.cannot("write", cause))
}

/// Bytes that the kernel is asked to move at once: between two of these the work can be stopped.
#[cfg(feature = "std")]
const KERNEL_COPY: u64 = 16 << 20;

/// Moves `from..from + len` of an input to a place in a file: by the kernel where there are two files, else straight from
/// memory, else through `buffer`.
#[cfg(feature = "std")]
pub(super) fn copy(
    input: &Input<'_>,
    from: u64,
    len: u64,
    file: NamedFile<'_>,
    at: u64,
    buffer: &mut Vec<u8>,
    control: &Control,
) -> Result<()> {
    let mut done = 0;
    let mut by_kernel = true;
    while done < len {
        let step = (len - done).min(KERNEL_COPY);
        let moved = if by_kernel {
            kernel_copy(input, from + done, step, file, at + done)?
        } else {
            None
        };
        let moved = match moved {
            Some(moved) => moved,
            None => {
                by_kernel = false;
                let step = step.min(crate::transform::PIECE as u64);
                if input.is_memory() {
                    write_at(file, at + done, &input.read(from + done, step)?)?;
                } else {
                    buffer.resize(crate::transform::as_size(step)?, 0);
                    input.read_into(from + done, buffer)?;
                    write_at(file, at + done, buffer)?;
                }
                step
            }
        };
        done += moved;
        control.advance(moved)?;
    }
    Ok(())
}

/// Asks the kernel to move bytes; `None` where it cannot.
#[cfg(all(feature = "std", target_os = "linux"))]
fn kernel_copy(
    input: &Input<'_>,
    from: u64,
    len: u64,
    file: NamedFile<'_>,
    at: u64,
) -> Result<Option<u64>> {
    use rustix::io::Errno;
    let Input::Source {
        id, source, range, ..
    } = input
    else {
        return Ok(None);
    };
    let Some(from_file) = source.as_file() else {
        return Ok(None);
    };
    let mut from_at = range.start + from;
    let mut to_at = at;
    let len = crate::transform::as_size(len)?;
    crate::io::fault::point("copy").map_err(|cause| file.cannot("write", cause))?;
    match rustix::fs::copy_file_range(
        from_file,
        Some(&mut from_at),
        file.file,
        Some(&mut to_at),
        len,
    ) {
        // Some file systems move nothing and say so: then the bytes are read, if they are there.
        Ok(0) => match from_file.metadata() {
            Ok(now) if now.len() > range.start + from => Ok(None),
            _ => {
                let message = "the file shrank while it was being read";
                Err(Error::mismatch("changed", message).at_source(*id, range.clone()))
            }
        },
        Ok(moved) => Ok(Some(moved as u64)),
        Err(Errno::INTR) => Ok(Some(0)),
        Err(
            Errno::XDEV
            | Errno::INVAL
            | Errno::NOSYS
            | Errno::OPNOTSUPP
            | Errno::PERM
            | Errno::BADF,
        ) => Ok(None),
        Err(errno) => Err(file.cannot("write", errno.into())),
    }
}

#[cfg(all(feature = "std", not(target_os = "linux")))]
fn kernel_copy(_: &Input<'_>, _: u64, _: u64, _: NamedFile<'_>, _: u64) -> Result<Option<u64>> {
    Ok(None)
}
