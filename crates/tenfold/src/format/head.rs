//! What detection sees of a file.

use bytes::Bytes;

use crate::error::Result;
use crate::io::Source;
use crate::prelude::*;

/// Bytes at the beginning that every format may look at, where a source fetches less at once.
const LEAST: u64 = 320;
/// No more than this is fetched before it is known what the file is.
const MOST: u64 = 4096;

/// A file while it is found out what it is: its name, its length and its first bytes, which are read once for all
/// formats.
///
/// It is a [`Source`] too: what lies in the first bytes comes from memory, anything else is read, and costs a request
/// where the file is far away. So formats look at the beginning first, and at the end only if that tells nothing. What
/// one of them has read there, the others have from memory too.
#[derive(Debug)]
pub struct Head<'a> {
    source: &'a dyn Source,
    name: Option<&'a str>,
    first: Bytes,
    #[cfg(feature = "std")]
    others: std::sync::Mutex<Others>,
}

/// What was read behind the first bytes.
#[cfg(feature = "std")]
#[derive(Debug, Default)]
struct Others {
    reads: LookupMap<(u64, u64), Bytes>,
    len: usize,
}

#[cfg(feature = "std")]
impl Others {
    /// Bytes that are kept: enough for the directory of an archive with thousands of members.
    const MOST: usize = 1 << 20;
}

impl<'a> Head<'a> {
    /// Reads the first bytes of a source; `name` is the file's name without its directory, where there is one.
    pub fn new(source: &'a dyn Source, name: Option<&'a str>) -> Result<Self> {
        let wanted = source.window().clamp(LEAST, MOST);
        let first = source.read(0..source.len().min(wanted))?;
        Ok(Self {
            source,
            name,
            first,
            #[cfg(feature = "std")]
            others: std::sync::Mutex::default(),
        })
    }

    /// Bytes that are not among the first. Formats with the same container look at the same places.
    #[cfg(feature = "std")]
    fn read_elsewhere(&self, range: Range<u64>) -> Result<Bytes> {
        let others = || {
            let others = self.others.lock();
            others.unwrap_or_else(std::sync::PoisonError::into_inner)
        };
        let place = (range.start, range.end);
        if let Some(bytes) = others().reads.get(&place) {
            return Ok(bytes.clone());
        }
        let bytes = self.source.read(range)?;
        let mut others = others();
        if others.len + bytes.len() <= Others::MOST {
            others.len += bytes.len();
            others.reads.insert(place, bytes.clone());
        }
        Ok(bytes)
    }

    #[cfg(not(feature = "std"))]
    fn read_elsewhere(&self, range: Range<u64>) -> Result<Bytes> {
        self.source.read(range)
    }

    /// The file's name without its directory, if it has one.
    pub fn name(&self) -> Option<&'a str> {
        self.name
    }

    /// The first bytes: some hundred at least, all where there are fewer.
    pub fn first(&self) -> &[u8] {
        &self.first
    }
}

impl Source for Head<'_> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let (start, end) = (usize::try_from(range.start), usize::try_from(range.end));
        match (start, end) {
            (Ok(start), Ok(end)) if start <= end && end <= self.first.len() => {
                Ok(self.first.slice(start..end))
            }
            _ => self.read_elsewhere(range),
        }
    }

    fn window(&self) -> u64 {
        self.source.window()
    }

    fn is_memory(&self) -> bool {
        self.source.is_memory()
    }
}

#[cfg(test)]
#[cfg(feature = "std")]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::format::Registry;

    /// Notes what is read.
    struct Watched(Bytes, Mutex<Vec<Range<u64>>>);

    impl Source for Watched {
        fn len(&self) -> u64 {
            Source::len(&self.0)
        }

        fn read(&self, range: Range<u64>) -> Result<Bytes> {
            self.1.lock().unwrap().push(range.clone());
            Source::read(&self.0, range)
        }
    }

    #[test]
    fn all_formats_look_at_the_same_first_bytes() {
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.resize(1 << 20, 0);
        let watched = Watched(file.into(), Mutex::default());
        let registry = Registry::standard();
        let found = registry.detect(&watched, None).unwrap();
        assert_eq!(found.spec.id, "gguf");
        let reads = watched.1.lock().unwrap();
        let at_the_beginning = reads.iter().filter(|read| read.start < MOST);
        assert_eq!(at_the_beginning.count(), 1, "{reads:?}");
    }
}
