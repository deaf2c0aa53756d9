//! Sources that answer late, and count what is asked of them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tenfold::io::{Merged, Source};
use tenfold::{Bytes, Result};

/// A file far away: a gap of 8 KiB costs less than a request, and 32 of these at once take no longer than one. On real
/// networks the gap is 64 KiB, and so are tensors larger than those of tests.
pub struct Counting {
    bytes: Bytes,
    delay: Duration,
    batches: AtomicU64,
    requests: AtomicU64,
    read: AtomicU64,
    /// Requests that are being answered, and the most that there were.
    under_way: AtomicU64,
    most: AtomicU64,
}

/// What was asked of a source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cost {
    /// One `read`, or one batch of ranges: where one thread reads, each waits for the one before.
    pub trips: u64,
    /// One `read`, or one range of a batch after those with little between them were put together.
    pub requests: u64,
    pub bytes: u64,
}

impl Counting {
    pub fn new(bytes: &Bytes) -> Arc<Self> {
        Self::late(bytes, Duration::ZERO)
    }

    /// One that takes its time for every request.
    pub fn late(bytes: &Bytes, delay: Duration) -> Arc<Self> {
        Arc::new(Self {
            bytes: bytes.clone(),
            delay,
            batches: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            read: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            most: AtomicU64::new(0),
        })
    }

    /// What was asked since it was asked for this.
    pub fn take(&self) -> Cost {
        Cost {
            trips: self.batches.swap(0, Relaxed),
            requests: self.requests.swap(0, Relaxed),
            bytes: self.read.swap(0, Relaxed),
        }
    }

    /// How many requests were under way at once, at most.
    pub fn most_at_once(&self) -> u64 {
        self.most.load(Relaxed)
    }

    fn answer(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let count = ranges.len() as u64;
        self.batches.fetch_add(1, Relaxed);
        self.requests.fetch_add(count, Relaxed);
        let now = self.under_way.fetch_add(count, Relaxed) + count;
        self.most.fetch_max(now, Relaxed);
        std::thread::sleep(self.delay);
        self.under_way.fetch_sub(count, Relaxed);
        let read = ranges.iter().map(|range| {
            self.read.fetch_add(range.end - range.start, Relaxed);
            self.bytes.read(range.clone())
        });
        read.collect()
    }
}

impl Source for Counting {
    fn len(&self) -> u64 {
        Source::len(&self.bytes)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let mut answer = self.answer(&[range])?;
        Ok(answer.pop().unwrap_or_default())
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let merged = Merged::new(ranges, self.gap());
        if merged.ranges().is_empty() {
            return Ok(Vec::new());
        }
        merged.split(&self.answer(merged.ranges())?)
    }

    fn gap(&self) -> u64 {
        8 << 10
    }

    fn concurrency(&self) -> Option<usize> {
        Some(32)
    }
}
