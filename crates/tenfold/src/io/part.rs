//! Neighbouring bytes of a source.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::Source;
use crate::prelude::*;

/// Some of the bytes of a source, as a source: what is in a file as if it were one.
pub(crate) struct Part {
    source: Arc<dyn Source>,
    range: Range<u64>,
}

impl Part {
    /// The bytes of a range, which lies inside the source.
    pub(crate) fn new(source: Arc<dyn Source>, range: Range<u64>) -> Self {
        Self { source, range }
    }

    fn place(&self, range: &Range<u64>) -> Result<Range<u64>> {
        let moved = |at: u64| self.range.start.checked_add(at);
        match moved(range.start).zip(moved(range.end)) {
            Some((start, end)) if end <= self.range.end => Ok(start..end),
            _ => {
                let message = format!("bytes of a part that has {}", self.len());
                Err(Error::argument(message).at(range.clone()))
            }
        }
    }
}

impl Source for Part {
    fn len(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.source.read(self.place(&range)?)
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let places = ranges.iter().map(|range| self.place(range));
        self.source
            .read_ranges(&places.collect::<Result<Vec<_>>>()?)
    }

    fn gap(&self) -> u64 {
        self.source.gap()
    }

    fn concurrency(&self) -> Option<usize> {
        self.source.concurrency()
    }

    fn window(&self) -> u64 {
        self.source.window()
    }

    fn is_memory(&self) -> bool {
        self.source.is_memory()
    }
}
