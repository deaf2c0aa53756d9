//! Archives in mapped files.

#![allow(unsafe_code)] // what is promised is promised by the caller

use std::path::Path;

use super::{Archive, OpenOptions};
use crate::error::Result;
use crate::io::{Access, Unchanged};

impl OpenOptions {
    /// Opens a file, or all files of a directory as one archive, and maps them: tensors that are stored in the wanted
    /// form are read without a copy. A file that is too long for memory, 2 GiB on 32-bit machines, is read as by
    /// [`open`](Self::open).
    ///
    /// # Safety
    ///
    /// As long as the archive, or any bytes that were read from it, exist, no process may shorten the files or write to
    /// them. One that is shortened makes the next access fail with a signal; one that is written to changes memory that
    /// Rust takes to be constant.
    pub unsafe fn map(&self, path: impl AsRef<Path>) -> Result<Archive> {
        let mut options = self.clone();
        // SAFETY: the caller promises it.
        options.access = Access::Map(unsafe { Unchanged::promised() });
        options.open(path)
    }
}

impl Archive {
    /// Opens and maps a file with the default [`OpenOptions`].
    ///
    /// ```no_run
    /// use tenfold::Archive;
    /// // SAFETY: nobody writes to this file while the program runs.
    /// let archive = unsafe { Archive::map("model.safetensors")? };
    /// let bias = archive.tensor("bias")?.typed::<f32>()?; // in the memory of the mapped file
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// As for [`OpenOptions::map`].
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller promises it.
        unsafe { OpenOptions::new().map(path) }
    }
}
