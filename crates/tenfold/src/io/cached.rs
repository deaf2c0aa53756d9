//! A few remembered stretches of a source that answers late.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::error::Result;
use crate::io::{Source, Stamp, as_size, check_range, read_exactly};
use crate::prelude::*;

/// A read that begins this many times the source's gap after a stretch still goes on from it. A gap is what a read costs
/// that is under way with others; here one waits for the other.
const WAITING: u64 = 32;

/// A source with a few stretches of it in memory, for sources where each read costs much: on a network, or a file of a
/// browser.
///
/// A small read that is not remembered fetches [`first`](Self::first) bytes; one that continues a stretch fetches twice
/// as many as that one did, up to [`longest`](Self::longest). Reads of more than [`small`](Self::small) bytes, and
/// [several ranges](Source::read_ranges) that are not remembered, go to the source as they are. The least recently used
/// stretch makes way for a new one, so that no more than `stretches × longest` bytes are held. At the end of the
/// source, where indexes are, twice its [`window`](Source::window) is fetched.
///
/// Nothing more than was asked for is fetched where the source's [`gap`](Source::gap) is 0, and `first` is 1.
///
/// Threads do not wait for each other: two that miss the same bytes at the same time both fetch them.
///
/// ```
/// use bytes::Bytes;
/// use tenfold::io::{Cached, Source};
///
/// let far_away = Bytes::from(vec![7; 1 << 20]);
/// // Pages of 256 KiB, 64 of them, without reading ahead.
/// let cached = Cached::new(far_away).first(256 << 10).longest(256 << 10).stretches(64);
/// assert_eq!(cached.read(1000..1004)?, [7; 4][..]);
/// # Ok::<(), tenfold::Error>(())
/// ```
#[derive(Debug)]
pub struct Cached<S> {
    source: S,
    first: u64,
    longest: u64,
    small: u64,
    count: usize,
    /// The one that was used last is the last.
    stretches: Mutex<Vec<Stretch>>,
}

/// Bytes that were fetched together.
#[derive(Clone, Debug)]
struct Stretch {
    at: u64,
    bytes: Bytes,
    /// How many were wanted when they were fetched: the next ones are twice as many.
    wanted: u64,
}

impl<S: Source> Cached<S> {
    /// Remembers four stretches of a source: 64 KiB at first, 8 MiB at most; reads of more than 128 KiB pass by.
    pub fn new(source: S) -> Self {
        Self {
            source,
            first: 64 << 10,
            longest: 8 << 20,
            small: 128 << 10,
            count: 4,
            stretches: Mutex::default(),
        }
    }

    /// How many bytes are fetched where nothing is known yet. Such stretches begin at a multiple of it.
    #[must_use]
    pub fn first(mut self, bytes: u64) -> Self {
        self.first = bytes.max(1);
        self
    }

    /// How many bytes are fetched at most, however long a file is read in sequence.
    #[must_use]
    pub fn longest(mut self, bytes: u64) -> Self {
        self.longest = bytes;
        self
    }

    /// How many bytes a read may have at most to be remembered.
    #[must_use]
    pub fn small(mut self, bytes: u64) -> Self {
        self.small = bytes;
        self
    }

    /// How many stretches are held.
    #[must_use]
    pub fn stretches(mut self, count: usize) -> Self {
        self.count = count.max(1);
        self
    }

    /// Adds bytes that are already known, such as those that came with the answer to the first request.
    pub fn remember(&self, at: u64, bytes: Bytes) {
        let wanted = self.first.max(bytes.len() as u64);
        self.keep(Stretch { at, bytes, wanted });
    }

    /// The source without what is remembered.
    pub fn get_ref(&self) -> &S {
        &self.source
    }

    /// Never held while something is fetched.
    fn lock(&self) -> MutexGuard<'_, Vec<Stretch>> {
        let stretches = self.stretches.lock();
        stretches.unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, stretch: Stretch) {
        let mut stretches = self.lock();
        let fetched = stretch.range();
        stretches.retain(|known| {
            let known = known.range();
            known.start < fetched.start || fetched.end < known.end
        });
        while stretches.len() >= self.count {
            stretches.remove(0);
        }
        stretches.push(stretch);
    }

    /// What is known of a range: the bytes in front of a gap, the gap, and the bytes after it.
    fn known(&self, range: &Range<u64>) -> (Vec<Bytes>, Range<u64>, Vec<Bytes>) {
        let mut stretches = self.lock();
        let mut gap = range.clone();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        while !gap.is_empty()
            && let Some(known) = touch(&mut stretches, |known| known.holds(gap.start))
        {
            let end = known.range().end.min(gap.end);
            before.push(known.part(gap.start..end));
            gap.start = end;
        }
        while !gap.is_empty()
            && let Some(known) = touch(&mut stretches, |known| known.holds(gap.end - 1))
        {
            let start = known.at.max(gap.start);
            after.insert(0, known.part(start..gap.end));
            gap.end = start;
        }
        (before, gap, after)
    }

    /// What is fetched where a gap was found.
    fn plan(&self, gap: &Range<u64>) -> Range<u64> {
        let len = self.source.len();
        let near = self.source.gap().saturating_mul(WAITING);
        let stretches = self.lock();
        let twice = |known: &Stretch| known.wanted.saturating_mul(2).min(self.longest);
        let mut latest = stretches.iter().rev();
        let before = latest.find(|known| {
            let end = known.range().end;
            end <= gap.start && gap.start - end < near
        });
        if let Some(before) = before {
            let ahead = stretches.iter().map(|known| known.at);
            let ahead = ahead.filter(|&at| at >= gap.end).min().unwrap_or(len);
            let at = gap.start - gap.start % self.first;
            let at = at.max(before.range().end);
            let end = at.saturating_add(twice(before).max(self.first));
            return at..end.min(ahead).max(gap.end);
        }
        // Who goes back from the end, to an index and what it is about.
        let mut latest = stretches.iter().rev();
        let behind = latest.find(|known| known.at == gap.end && near > 0);
        if let Some(behind) = behind {
            let at = gap.end.saturating_sub(twice(behind).max(self.first));
            return at.min(gap.start)..gap.end;
        }
        // What describes a file from its end is looked for there, and lies before it.
        let end = self.source.window().saturating_mul(2).max(self.first);
        let at = (gap.start - gap.start % self.first).min(len.saturating_sub(end));
        let end = if len - at > end {
            at.saturating_add(self.first)
        } else {
            len
        };
        at..end.min(len).max(gap.end)
    }

    fn fetch(&self, gap: &Range<u64>) -> Result<Bytes> {
        let wanted = self.plan(gap);
        let bytes = read_exactly(&self.source, wanted.clone())?;
        let fetched = Stretch {
            at: wanted.start,
            bytes,
            wanted: wanted.end - wanted.start,
        };
        let found = fetched.part(gap.clone());
        self.keep(fetched);
        Ok(found)
    }

    fn is_small(&self, range: &Range<u64>) -> bool {
        range.end - range.start <= self.small
    }
}

/// The first stretch of this kind, which is the one that was used last from now on.
fn touch(stretches: &mut Vec<Stretch>, is_it: impl Fn(&Stretch) -> bool) -> Option<Stretch> {
    let place = stretches.iter().position(is_it)?;
    let found = stretches.remove(place);
    stretches.push(found.clone());
    Some(found)
}

/// Bytes that follow each other, in one piece.
fn join(mut parts: Vec<Bytes>) -> Bytes {
    match parts.len() {
        0 | 1 => parts.pop().unwrap_or_default(),
        _ => parts.concat().into(),
    }
}

impl Stretch {
    fn range(&self) -> Range<u64> {
        self.at..self.at + self.bytes.len() as u64
    }

    fn holds(&self, at: u64) -> bool {
        self.range().contains(&at)
    }

    /// Bytes of a range that it holds. Few of many are copied: who keeps them would keep all.
    fn part(&self, range: Range<u64>) -> Bytes {
        let place = |at: u64| as_size(at.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let (from, to) = (place(range.start), place(range.end));
        let found = self.bytes.get(from..to).unwrap_or_default();
        if found.len() < self.bytes.len() / 4 {
            Bytes::copy_from_slice(found)
        } else {
            self.bytes.slice_ref(found)
        }
    }
}

impl<S: Source> Source for Cached<S> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        check_range(self.source.len(), &range)?;
        if self.source.is_memory() {
            return self.source.read(range);
        }
        let (mut parts, gap, after) = self.known(&range);
        if !gap.is_empty() {
            if !self.is_small(&range) {
                return self.source.read(range);
            }
            parts.push(self.fetch(&gap)?);
        }
        parts.extend(after);
        Ok(join(parts))
    }

    fn read_into(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let range = at..at.saturating_add(buffer.len() as u64);
        check_range(self.source.len(), &range)?;
        if self.is_small(&range) {
            buffer.copy_from_slice(&self.read(range)?);
            return Ok(());
        }
        self.source.read_into(at, buffer)
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if let [range] = ranges {
            return Ok(vec![self.read(range.clone())?]);
        }
        let known: Vec<Option<Bytes>> = ranges
            .iter()
            .map(|range| match self.known(range) {
                (before, gap, _) if gap.is_empty() => Some(join(before)),
                _ => None,
            })
            .collect();
        let missing = ranges.iter().zip(&known);
        let missing = missing.filter(|(_, known)| known.is_none());
        let missing: Vec<Range<u64>> = missing.map(|(range, _)| range.clone()).collect();
        if missing.is_empty() {
            return Ok(known.into_iter().flatten().collect());
        }
        let mut fetched = self.source.read_ranges(&missing)?.into_iter();
        let all = known.into_iter().zip(ranges);
        all.map(|(known, range)| match known.or_else(|| fetched.next()) {
            Some(bytes) => Ok(bytes),
            // One answer too few.
            None => read_exactly(&self.source, range.clone()),
        })
        .collect()
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

    fn is_in_order(&self) -> bool {
        self.source.is_in_order()
    }

    fn stamp(&self) -> Option<Stamp> {
        self.source.stamp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Notes what is read of a source of which each byte says where it is.
    struct Watched {
        bytes: Bytes,
        reads: Mutex<Vec<Range<u64>>>,
    }

    impl Watched {
        fn cached(len: u32) -> Cached<Self> {
            let bytes = (0..len).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]);
            let bytes = bytes.collect::<Vec<u8>>().into();
            let reads = Mutex::default();
            let cached = Cached::new(Self { bytes, reads }).first(64);
            cached.longest(512).small(128).stretches(2)
        }
    }

    impl Source for Watched {
        fn len(&self) -> u64 {
            Source::len(&self.bytes)
        }

        fn window(&self) -> u64 {
            32
        }

        fn read(&self, range: Range<u64>) -> Result<Bytes> {
            self.reads.lock().unwrap().push(range.clone());
            Source::read(&self.bytes, range)
        }
    }

    fn check(cached: &Cached<Watched>, range: Range<u64>) {
        let expected = Source::read(&cached.source.bytes, range.clone()).unwrap();
        assert_eq!(cached.read(range.clone()).unwrap(), expected, "{range:?}");
    }

    fn reads(cached: &Cached<Watched>) -> Vec<Range<u64>> {
        core::mem::take(&mut *cached.source.reads.lock().unwrap())
    }

    #[test]
    fn what_goes_on_is_fetched_in_twice_as_many_bytes_up_to_the_longest() {
        let cached = Watched::cached(10_000);
        for at in 0..9_999 {
            check(&cached, at..at + 2);
        }
        let lens: Vec<_> = reads(&cached).iter().map(|r| r.end - r.start).collect();
        assert_eq!(lens[..6], [64, 128, 256, 512, 512, 512]);
        // Each byte once.
        assert_eq!(lens.iter().sum::<u64>(), 10_000);
    }

    #[test]
    fn a_few_places_are_remembered_and_the_oldest_is_forgotten() {
        let far = |n: u64| n * WAITING * (2 << 10);
        let cached = Watched::cached(u32::try_from(far(2)).unwrap() + 64);
        for _ in 0..2 {
            check(&cached, far(0) + 8..far(0) + 9);
            check(&cached, far(1) + 8..far(1) + 9);
        }
        assert_eq!(reads(&cached), [0..64, far(1)..far(1) + 64]);
        check(&cached, far(2)..far(2) + 1);
        check(&cached, far(1)..far(1) + 1);
        check(&cached, 3..4);
        assert_eq!(reads(&cached), [far(2)..far(2) + 64, 0..64]);
    }

    #[test]
    fn the_end_is_fetched_with_what_lies_before_it() {
        let cached = Watched::cached(1000);
        check(&cached, 998..1000);
        check(&cached, 940..1000);
        // Back from there, twice as many.
        check(&cached, 930..940);
        check(&cached, 810..1000);
        assert_eq!(reads(&cached), [936..1000, 808..936]);
    }

    #[test]
    fn many_bytes_and_many_ranges_pass_by() {
        let cached = Watched::cached(4000);
        cached.remember(0, cached.source.bytes.slice(..64));
        check(&cached, 100..400);
        assert!(cached.lock().len() == 1);
        let ranges = [8..16, 1000..1010, 60..64, 3500..3501];
        let read = |range: &Range<u64>| Source::read(&cached.source.bytes, range.clone());
        let expected: Vec<_> = ranges.iter().map(|range| read(range).unwrap()).collect();
        assert_eq!(cached.read_ranges(&ranges).unwrap(), expected);
        assert_eq!(reads(&cached), [100..400, 1000..1010, 3500..3501]);
        let mut buffer = [0; 200];
        cached.read_into(3000, &mut buffer).unwrap();
        assert_eq!(buffer[..], cached.source.bytes[3000..3200]);
        assert!(cached.read(3999..4001).is_err());
    }
}
