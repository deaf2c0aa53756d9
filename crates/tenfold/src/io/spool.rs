//! Bytes that can be made only once: kept until they are wanted.

use bytes::Bytes;

use crate::error::Result;
use crate::io::Source;
use crate::prelude::*;

/// Bytes that are kept in memory; those of longer streams go to a file, where there are files.
#[cfg(feature = "std")]
const IN_MEMORY: usize = 16 << 20;

/// Keeps what is written to it.
#[derive(Default)]
pub(crate) struct Spool {
    memory: Vec<u8>,
    #[cfg(feature = "std")]
    file: Option<file::Scratch>,
}

impl Spool {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        #[cfg(feature = "std")]
        if self.file.is_some() || self.memory.len() + bytes.len() > IN_MEMORY {
            return self.write_file(bytes);
        }
        self.memory.extend_from_slice(bytes);
        Ok(())
    }

    /// What was written.
    pub(crate) fn finish(self) -> Result<Arc<dyn Source>> {
        #[cfg(feature = "std")]
        if let Some(file) = self.file {
            return Ok(Arc::new(file.into_source()?));
        }
        Ok(Arc::new(Bytes::from(self.memory)))
    }
}

#[cfg(feature = "std")]
mod file {
    use std::fs::File;
    use std::io::Write;
    use std::path::PathBuf;

    use bytes::Bytes;

    use super::Spool;
    use crate::error::{Error, Result};
    use crate::io::atomic::scratch_file;
    use crate::io::{FileSource, Source};
    use crate::prelude::*;

    /// A file that is gone with its last user.
    pub(super) struct Scratch {
        file: File,
        name: Name,
    }

    /// The name of a file that has to be removed; most have none any more.
    struct Name(Option<PathBuf>);

    impl Drop for Name {
        fn drop(&mut self) {
            if let Some(path) = &self.0 {
                // What is left of it is in the directory of temporary files.
                let _ = std::fs::remove_file(path);
            }
        }
    }

    impl Scratch {
        fn new() -> Result<Self> {
            let (file, path) = scratch_file(&std::env::temp_dir())?;
            // Where the system lets it, the file loses its name while it is open.
            let path = path.filter(|path| cfg!(not(unix)) || std::fs::remove_file(path).is_err());
            Ok(Self {
                file,
                name: Name(path),
            })
        }

        fn write(&mut self, bytes: &[u8]) -> Result<()> {
            (self.file.write_all(bytes))
                .map_err(|cause| Error::io("cannot keep a stream in a temporary file", cause))
        }

        pub(super) fn into_source(self) -> Result<impl Source> {
            let source = FileSource::from_file(self.file, "a temporary file".into())?;
            let name = self.name;
            Ok(Kept {
                source,
                _name: name,
            })
        }
    }

    impl Spool {
        /// Goes on in a file.
        pub(super) fn write_file(&mut self, bytes: &[u8]) -> Result<()> {
            if self.file.is_none() {
                let mut file = Scratch::new()?;
                file.write(&core::mem::take(&mut self.memory))?;
                self.file = Some(file);
            }
            (self.file.iter_mut()).try_for_each(|file| file.write(bytes))
        }
    }

    struct Kept {
        // Closed before it is removed.
        source: FileSource,
        _name: Name,
    }

    impl Source for Kept {
        fn len(&self) -> u64 {
            self.source.len()
        }

        fn read(&self, range: Range<u64>) -> Result<Bytes> {
            self.source.read(range)
        }

        fn read_into(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
            self.source.read_into(at, buffer)
        }

        fn as_file(&self) -> Option<&File> {
            self.source.as_file()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_streams_are_kept_like_short_ones() {
        for len in [0usize, 1000, 40 << 20] {
            let mut spool = Spool::default();
            let piece: Vec<u8> = (0..=255).cycle().take(1000).collect();
            let mut left = len;
            while left > 0 {
                let n = left.min(piece.len());
                spool.write(&piece[..n]).unwrap();
                left -= n;
            }
            let kept = spool.finish().unwrap();
            assert_eq!(kept.len(), len as u64);
            #[cfg(feature = "std")]
            assert_eq!(kept.as_file().is_some(), len > IN_MEMORY);
            if len >= 1000 {
                let at = len as u64 - 1000;
                let first = len % 1000;
                assert_eq!(kept.read(at..at + 5).unwrap()[..], piece[first..first + 5]);
            }
        }
    }
}
