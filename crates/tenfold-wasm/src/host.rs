//! Files of the host as sources.

use std::ops::Range;
use std::sync::Arc;

use tenfold::io::{Cached, Siblings, Source};
use tenfold::{Bytes, Error, ErrorKind, Result};

use crate::border;

/// What is read at once: every read costs a browser about a millisecond, however short it is.
const PAGE: u64 = 256 << 10;
/// How many of them are kept.
const PAGES: usize = 64;

/// A file that was dropped on the page.
pub(crate) struct HostFile {
    file: u32,
    len: u64,
}

impl HostFile {
    /// The file, with its last pages kept.
    pub(crate) fn open(file: u32) -> Arc<dyn Source> {
        let len = border::size(file);
        let pages = Cached::new(Self { file, len }).first(PAGE).longest(PAGE);
        Arc::new(pages.small(4 * PAGE).stretches(PAGES))
    }
}

impl Source for HostFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let len = range.end.saturating_sub(range.start);
        let size = usize::try_from(len).map_err(|_| changed(&range))?;
        let mut bytes = vec![0; size];
        self.read_into(range.start, &mut bytes)?;
        Ok(bytes.into())
    }

    fn read_into(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let range = at..at.saturating_add(buffer.len() as u64);
        if range.end <= self.len && border::read(self.file, at, buffer) {
            Ok(())
        } else {
            Err(changed(&range))
        }
    }

    fn gap(&self) -> u64 {
        512 << 10
    }

    fn window(&self) -> u64 {
        256 << 10
    }
}

fn changed(range: &Range<u64>) -> Error {
    let message = "the browser cannot read these bytes any more; the file was changed or moved, drop it again";
    Error::mismatch("changed", message).at(range.clone())
}

/// The files that were dropped together.
pub(crate) struct Beside(Vec<(String, u32)>);

impl Beside {
    pub(crate) fn new(files: Vec<(String, u32)>) -> Self {
        Self(files)
    }
}

impl Siblings for Beside {
    fn names(&self) -> Result<Option<Vec<String>>> {
        Ok(Some(self.0.iter().map(|(name, _)| name.clone()).collect()))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Source>> {
        match self.0.iter().find(|(known, _)| known == name) {
            Some((_, file)) => Ok(HostFile::open(*file)),
            None => {
                let message = format!("{name:?} was not dropped; drop it together with the others");
                Err(Error::new(ErrorKind::NotFound, "sibling", message))
            }
        }
    }
}
