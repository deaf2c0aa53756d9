//! Mapped files: the only `unsafe` of the library.

#![allow(unsafe_code)]

use std::fs::File;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::{FileSource, Source};
use crate::prelude::*;

/// A file in memory, shared with the system's cache.
#[derive(Debug)]
pub struct MappedFile {
    bytes: Bytes,
    file: FileSource,
}

/// Maps a file: its bytes are read without a copy.
///
/// Another process that truncates the file while it is mapped makes the next access fail with a signal. Whoever
/// cannot exclude that reads with [`FileSource`] instead.
pub fn map_file(file: FileSource) -> Result<MappedFile> {
    // Mapping nothing is an error on most systems.
    let bytes = if file.is_empty() {
        Bytes::new()
    } else {
        let fail = |cause| Error::io(format_args!("cannot map {}", file.path().display()), cause);
        let handle = file
            .as_file()
            .ok_or_else(|| fail(std::io::ErrorKind::Unsupported.into()))?;
        // SAFETY: the mapping is private and read-only, and we never write to a file that we opened for reading:
        // conversions go to a new file. That no other process shrinks or changes it is for the caller to uphold, as
        // the documentation of this function and of `OpenOptions::mmap` says.
        let map =
            unsafe { memmap2::MmapOptions::new().map_copy_read_only(handle) }.map_err(fail)?;
        Bytes::from_owner(map)
    };
    Ok(MappedFile { bytes, file })
}

impl Source for MappedFile {
    fn len(&self) -> u64 {
        Source::len(&self.bytes)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.bytes.read(range)
    }

    fn is_memory(&self) -> bool {
        true
    }

    fn as_file(&self) -> Option<&File> {
        self.file.as_file()
    }
}
