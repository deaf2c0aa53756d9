//! A file whose reads are counted, and end when the work is stopped.

use bytes::Bytes;

use crate::error::Result;
use crate::io::Source;
use crate::prelude::*;
use crate::threads::Control;

pub(super) struct Watched<'a> {
    source: &'a dyn Source,
    control: &'a Control,
}

impl<'a> Watched<'a> {
    /// What is read twice is expected when it is.
    pub(super) fn new(source: &'a dyn Source, control: &'a Control) -> Self {
        control.expect(source.len());
        Self { source, control }
    }

    fn note(&self, len: u64) -> Result<()> {
        self.control.check()?;
        let left = self.control.total().saturating_sub(self.control.done());
        self.control.expect(len.saturating_sub(left));
        self.control.advance(len)
    }
}

impl Source for Watched<'_> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.note(range.end.saturating_sub(range.start))?;
        self.source.read(range)
    }

    fn read_into(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        self.note(buffer.len() as u64)?;
        self.source.read_into(at, buffer)
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let lens = ranges
            .iter()
            .map(|range| range.end.saturating_sub(range.start));
        self.note(lens.fold(0, u64::saturating_add))?;
        self.source.read_ranges(ranges)
    }

    fn concurrency(&self) -> Option<usize> {
        self.source.concurrency()
    }

    fn gap(&self) -> u64 {
        self.source.gap()
    }

    fn window(&self) -> u64 {
        self.source.window()
    }

    fn is_memory(&self) -> bool {
        self.source.is_memory()
    }

    fn is_in_order(&self) -> bool {
        self.source.is_in_order()
    }
}
