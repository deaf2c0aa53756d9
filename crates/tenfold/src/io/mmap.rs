//! Mapped files: the only `unsafe` of the library, but for the promise that its users make.

#![allow(unsafe_code)]

use std::fs::File;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::{FileSource, Source, Stamp};
use crate::prelude::*;

/// From here on a copy costs less than pages of a mapping that are touched once.
const COPIED: usize = 256 << 10;

/// A file in memory, shared with the system's cache.
#[derive(Debug)]
pub struct MappedFile {
    bytes: Bytes,
    file: FileSource,
}

/// The promise of whoever asked for mapped files that nobody changes them meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unchanged(());

impl Unchanged {
    /// # Safety
    ///
    /// No file that is mapped by this promise is shortened or written to as long as it is mapped.
    pub(crate) unsafe fn promised() -> Self {
        Self(())
    }
}

/// Maps a file: its bytes are read without a copy.
///
/// # Safety
///
/// As long as what is returned, or any bytes that were read from it, exist, no process may shorten the file or write to it.
/// One that is shortened makes the next access fail with a signal; one that is written to changes memory that Rust takes
/// to be constant. Whoever cannot promise that reads with [`FileSource`] instead.
pub unsafe fn map_file(file: FileSource) -> Result<MappedFile> {
    // SAFETY: what the caller promises is what is asked for.
    map_unchanged(file, unsafe { Unchanged::promised() })
}

pub(crate) fn map_unchanged(file: FileSource, _: Unchanged) -> Result<MappedFile> {
    // Mapping nothing is an error on most systems.
    let bytes = if file.is_empty() {
        Bytes::new()
    } else {
        let fail = |cause| Error::io(format_args!("cannot map {}", file.path().display()), cause);
        let handle = file
            .as_file()
            .ok_or_else(|| fail(std::io::ErrorKind::Unsupported.into()))?;
        // SAFETY: the mapping is private and read-only, and we never write to a file that we opened for reading:
        // conversions go to a new file. That no other process shortens or changes it was promised.
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

    fn read_into(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        // Whoever wants a copy of much has it from the kernel: no page of the mapping has to be made for it, and none to be
        // taken away when it ends.
        if buffer.len() >= COPIED {
            return self.file.read_into(at, buffer);
        }
        self.bytes.read_into(at, buffer)
    }

    fn is_memory(&self) -> bool {
        true
    }

    fn stamp(&self) -> Option<Stamp> {
        self.file.stamp()
    }

    fn as_file(&self) -> Option<&File> {
        self.file.as_file()
    }
}
