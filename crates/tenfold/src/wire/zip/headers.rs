//! The headers in front of the members, fetched together.

use bytes::Bytes;

use super::{DESCRIPTOR_FOLLOWS, Entry, LOCAL_LEN, Member};
use crate::error::Result;
use crate::io::{Reader, Source, as_size, read_ranges_exactly};
use crate::prelude::*;

/// Bytes for extra fields, whose length only the header says: most have less.
const EXTRA: u64 = 64;
/// Bytes that repeat the sizes of a member after it, at most.
const DESCRIPTOR: u64 = 24;

/// The headers of all members in the order of the file, and the bytes around them.
pub(super) struct Headers<'a> {
    source: &'a dyn Source,
    /// Where the members end.
    end: u64,
    known: Vec<Known>,
}

/// Bytes that were fetched, and where the header begins among them.
struct Known {
    at: u64,
    bytes: Bytes,
}

impl<'a> Headers<'a> {
    /// Fetches the headers of members that are sorted by their place, in front of the directory, with `beginning` bytes of
    /// each member: all of them at once, and those that turn out to be longer a second time.
    pub(super) fn fetch(
        source: &'a dyn Source,
        entries: &[&Entry],
        directory: &Range<u64>,
        beginning: u64,
    ) -> Result<Self> {
        let end = directory.start;
        // What may be fetched in vain, at no greater cost than another read.
        let spare = source.gap();
        let (extra, beginning) = (EXTRA.min(spare), beginning.min(spare));
        let next = entries.iter().skip(1).map(|entry| entry.local_at);
        let limits = next.chain([end]);
        let mut before = 0;
        let mut wanted = Vec::new();
        for (entry, limit) in entries.iter().zip(limits) {
            let at = entry.local_at.min(end);
            let len = LOCAL_LEN + entry.raw_name.len() as u64 + extra + beginning;
            // What is after the member before this one is read with it.
            let start = at.saturating_sub(before);
            wanted.push(start..at.saturating_add(len).min(limit.clamp(at, end)));
            before = behind(entry).min(spare);
        }
        let last = end.saturating_sub(before)..end;
        wanted.push(last);
        let mut known = Vec::new();
        let fetched = read_ranges_exactly(source, &wanted)?;
        for (range, bytes) in wanted.iter().zip(fetched) {
            let at = range.start;
            known.push(Known { at, bytes });
        }
        let mut headers = Self { source, end, known };
        headers.fetch_longer(entries, beginning)?;
        Ok(headers)
    }

    /// Fetches those whose extra fields are longer than most.
    fn fetch_longer(&mut self, entries: &[&Entry], beginning: u64) -> Result<()> {
        let mut longer = Vec::new();
        for (number, (entry, known)) in entries.iter().zip(&self.known).enumerate() {
            let Some(len) = known.len_from(entry.local_at) else {
                continue;
            };
            let data = entry.compressed.min(beginning);
            let end = entry.local_at.saturating_add(len).saturating_add(data);
            if end > known.end() && end <= self.end {
                longer.push((number, known.at..end));
            }
        }
        let ranges: Vec<_> = longer.iter().map(|(_, range)| range.clone()).collect();
        let fetched = read_ranges_exactly(self.source, &ranges)?;
        for ((number, _), bytes) in longer.into_iter().zip(fetched) {
            if let Some(known) = self.known.get_mut(number) {
                known.bytes = bytes;
            }
        }
        Ok(())
    }

    /// A reader of everything from `at` on, which knows what is around a header.
    pub(super) fn reader(&self, number: usize, at: u64) -> Reader<'a> {
        let reader = Reader::over(self.source, at..self.end, "zip.truncated");
        match self.known.get(number) {
            Some(Known { at, bytes }) => reader.knowing(*at, bytes.clone()),
            None => reader,
        }
    }

    /// A member with what is known of its beginning.
    pub(super) fn beginning(&self, number: usize, member: Member) -> Member {
        let beginning = self
            .known
            .get(number)
            .map(|known| known.within(&member.data));
        Member {
            beginning: beginning.unwrap_or_default(),
            ..member
        }
    }
}

/// Bytes after a member that are not part of it.
fn behind(entry: &Entry) -> u64 {
    match entry.flags & DESCRIPTOR_FOLLOWS {
        0 => 0,
        _ => DESCRIPTOR,
    }
}

impl Known {
    fn end(&self) -> u64 {
        self.at.saturating_add(self.bytes.len() as u64)
    }

    /// The length of the header at a place, if enough of it is known to tell.
    fn len_from(&self, at: u64) -> Option<u64> {
        let from = as_size(at.checked_sub(self.at)?).ok()?;
        let lens = self
            .bytes
            .get(from.checked_add(26)?..)?
            .first_chunk::<4>()?;
        let [name_low, name_high, extra_low, extra_high] = *lens;
        let name = u16::from_le_bytes([name_low, name_high]);
        let extra = u16::from_le_bytes([extra_low, extra_high]);
        Some(LOCAL_LEN + u64::from(name) + u64::from(extra))
    }

    fn within(&self, range: &Range<u64>) -> Bytes {
        let place = |at: u64| as_size(at.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let (from, to) = (place(range.start), place(range.end.min(self.end())));
        let found = self.bytes.get(from..to).unwrap_or_default();
        self.bytes.slice_ref(found)
    }
}
