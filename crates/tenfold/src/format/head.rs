//! What detection sees of a file.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;

use crate::error::{Error, Result};
#[cfg(feature = "std")]
use crate::io::Cached;
use crate::io::Source;
use crate::prelude::*;

/// Bytes at the beginning that every format may look at, where a source fetches less at once.
const LEAST: u64 = 320;
/// No more than this is fetched before it is known what the file is.
const MOST: u64 = 64 << 10;
/// Where nothing is known yet, as many bytes are fetched as this many [gaps](Source::gap), and no more than a window.
const GAPS: u64 = 4;
/// Stretches that are remembered while a file is opened: as long as each is twice the one before, a header of 16 MiB that
/// is read twice is fetched once.
#[cfg(feature = "std")]
const STRETCHES: usize = 8;

/// A file while it is being detected and described: its name, its length and its first bytes, which are read once for
/// all formats.
///
/// It is a [`Source`] too: what lies in the first bytes comes from memory, anything else is read, and costs a request
/// where the file is far away. So formats look at the beginning first, and at the end only if that tells nothing. Other
/// reads are remembered for a while, and consecutive ones are fetched in ever longer stretches.
#[derive(Debug)]
pub struct Head<'a> {
    source: Remembered<'a>,
    name: Option<&'a str>,
    first: Bytes,
    window: u64,
}

#[cfg(feature = "std")]
type Remembered<'a> = Cached<&'a dyn Source>;
#[cfg(not(feature = "std"))]
type Remembered<'a> = &'a dyn Source;

impl<'a> Head<'a> {
    /// Reads the first bytes of a source; `name` is the file's name without its directory, where there is one.
    pub fn new(source: &'a dyn Source, name: Option<&'a str>) -> Result<Self> {
        Ok(Self::of(source, name, Self::first_of(source)?))
    }

    /// The first bytes of several sources; all are asked for at once where they answer late. `described_by` says of the first
    /// bytes how many there are that describe a file: these come too, as long as they are no more than `most`.
    pub(crate) fn first_of_all(
        sources: &[Arc<dyn Source>],
        described_by: fn(&[u8]) -> Option<u64>,
        most: u64,
    ) -> Result<Vec<Bytes>> {
        let waiting = sources.iter().filter_map(|source| source.concurrency());
        let threads = waiting.max().unwrap_or(1);
        crate::threads::map(threads, sources, |source, (): &mut ()| {
            let first = Self::first_of(source)?;
            let (have, wanted) = (first.len() as u64, described_by(&first).unwrap_or(0));
            // Elsewhere, one after the other costs no more.
            if threads == 1 || wanted <= have || wanted > most.min(source.len()) {
                return Ok(first);
            }
            let rest = source.read(have..wanted)?;
            Ok([first, rest].concat().into())
        })
    }

    fn first_of(source: &dyn Source) -> Result<Bytes> {
        let wanted = source.window().clamp(LEAST, MOST);
        source.read(0..source.len().min(wanted))
    }

    /// A source whose first bytes were read.
    pub(crate) fn of(source: &'a dyn Source, name: Option<&'a str>, first: Bytes) -> Self {
        let window = if source.is_memory() {
            source.window()
        } else {
            let few = source.gap().saturating_mul(GAPS);
            source.window().min(few)
        };
        #[cfg(feature = "std")]
        let source = {
            let cached = Cached::new(source).first(window).stretches(STRETCHES);
            cached.remember(0, first.clone());
            cached
        };
        Self {
            source,
            name,
            first,
            window,
        }
    }

    /// What `ask` answers by the first bytes alone; `None` if it looks elsewhere, which is not fetched then.
    pub(super) fn by_first_bytes<T>(
        &self,
        ask: impl FnOnce(&Head<'_>) -> Result<T>,
    ) -> Option<Result<T>> {
        let elsewhere = Elsewhere {
            source: &self.source,
            wanted: AtomicBool::new(false),
        };
        let answer = ask(&Head::of(&elsewhere, self.name, self.first.clone()));
        (!elsewhere.wanted.into_inner()).then_some(answer)
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
            _ => self.source.read(range),
        }
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.source.read_ranges(ranges)
    }

    fn gap(&self) -> u64 {
        self.source.gap()
    }

    fn concurrency(&self) -> Option<usize> {
        self.source.concurrency()
    }

    /// Little: what follows is at hand.
    fn window(&self) -> u64 {
        self.window
    }

    fn is_memory(&self) -> bool {
        self.source.is_memory()
    }
}

/// What lies after the first bytes, while it is not to be fetched.
struct Elsewhere<'s> {
    source: &'s dyn Source,
    wanted: AtomicBool,
}

impl Source for Elsewhere<'_> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.wanted.store(true, Relaxed);
        let message = "only the first bytes of the file are known yet";
        Err(Error::unsupported("file.head", message).at(range))
    }

    fn gap(&self) -> u64 {
        self.source.gap()
    }

    fn window(&self) -> u64 {
        self.source.window()
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
        assert_eq!((reads.len(), reads.first()), (1, Some(&(0..MOST))));
    }
}
