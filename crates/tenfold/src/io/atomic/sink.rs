//! The writing itself.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::io::{Sink, fault};

/// A file that is open, written in order.
pub(super) struct FileSink<'a> {
    pub(super) file: &'a mut File,
    /// For messages.
    pub(super) target: PathBuf,
}

impl Sink for FileSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = fault::point("write").and_then(|()| self.file.write_all(bytes));
        written.map_err(|cause| {
            Error::io(
                format_args!("cannot write {}", self.target.display()),
                cause,
            )
        })
    }

    fn as_file(&self) -> Option<&File> {
        Some(self.file)
    }
}

/// Reserves space, so that a full disk is reported before anything is written; does nothing where the system cannot.
pub(super) fn preallocate(file: &File, len: u64) -> io::Result<()> {
    fault::point("reserve")?;
    #[cfg(target_os = "linux")]
    if len > 0 {
        use rustix::io::Errno;
        match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, len) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) | Ok(()) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    file.set_len(len)
}
