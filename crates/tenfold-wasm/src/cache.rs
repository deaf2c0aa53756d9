//! Pages of a source that were read lately: every read costs a browser about a millisecond, however short it is.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use tenfold::io::Source;
use tenfold::{Bytes, Result};

const PAGE: u64 = 256 << 10;
const PAGES: usize = 64;

/// A source whose last pages are in memory.
pub(crate) struct Cached<S> {
    source: S,
    /// The number of each page and its bytes, the one that was used last at the end.
    pages: Mutex<Vec<(u64, Bytes)>>,
}

impl<S: Source> Cached<S> {
    pub(crate) fn new(source: S) -> Self {
        Self {
            source,
            pages: Mutex::default(),
        }
    }

    fn page(&self, number: u64) -> Result<Bytes> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match pages.iter().position(|(known, _)| *known == number) {
            Some(place) => pages.remove(place).1,
            None => {
                let from = number.saturating_mul(PAGE);
                let to = from.saturating_add(PAGE).min(self.source.len());
                self.source.read(from..to)?
            }
        };
        if pages.len() >= PAGES {
            pages.remove(0);
        }
        pages.push((number, found.clone()));
        Ok(found)
    }
}

impl<S: Source> Source for Cached<S> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let len = range.end.saturating_sub(range.start);
        let first = range.start / PAGE;
        // What is longer than some pages is not read again soon, and what is outside is for the source to refuse.
        if len > 4 * PAGE || len == 0 || range.end > self.source.len() {
            return self.source.read(range);
        }
        if range.end <= (first + 1).saturating_mul(PAGE) {
            let page = self.page(first)?;
            return Ok(page.slice(within(&range, first)));
        }
        let mut bytes = Vec::new();
        for number in first..=(range.end - 1) / PAGE {
            let page = self.page(number)?;
            let begin = number.saturating_mul(PAGE);
            let part = range.start.max(begin)..range.end.min(begin + PAGE);
            bytes.extend_from_slice(&page.slice(within(&part, number)));
        }
        Ok(bytes.into())
    }

    fn gap(&self) -> u64 {
        self.source.gap()
    }

    fn window(&self) -> u64 {
        self.source.window()
    }
}

/// Where a range is in its page: below 256 KiB.
#[allow(clippy::cast_possible_truncation)]
fn within(range: &Range<u64>, page: u64) -> Range<usize> {
    let begin = page * PAGE;
    (range.start - begin) as usize..(range.end - begin) as usize
}
