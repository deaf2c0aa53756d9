//! Ranges that are read together.

use bytes::Bytes;

use crate::error::Result;
use crate::io::{as_size, wrong_length};
use crate::prelude::*;

/// The most that is read at once for the sake of several ranges.
const LONGEST: u64 = 8 << 20;

/// Ranges with little between them put together, so that fewer reads are needed: for sources that implement
/// [`read_ranges`](crate::io::Source::read_ranges).
///
/// ```
/// use tenfold::io::Merged;
/// let merged = Merged::new(&[0..10, 100..200, 20..30], 16);
/// assert_eq!(merged.ranges(), [0..30, 100..200]);
/// ```
#[derive(Clone, Debug)]
pub struct Merged {
    ranges: Vec<Range<u64>>,
    /// For each of the ranges that were wanted: itself, and which of the others it is in.
    places: Vec<(Range<u64>, usize)>,
}

impl Merged {
    /// Puts ranges together that have less than `gap` bytes between them, up to 8 MiB.
    pub fn new(wanted: &[Range<u64>], gap: u64) -> Self {
        let mut order: Vec<(usize, &Range<u64>)> = wanted.iter().enumerate().collect();
        order.sort_by_key(|(_, range)| range.start);
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut places: Vec<(Range<u64>, usize)> =
            wanted.iter().map(|range| (range.clone(), 0)).collect();
        for (number, range) in order {
            match ranges.last_mut() {
                Some(last)
                    if range.end <= last.end
                        || range.start < last.end.saturating_add(gap)
                            && range.end.saturating_sub(last.start) <= LONGEST =>
                {
                    last.end = last.end.max(range.end);
                }
                _ => ranges.push(range.clone()),
            }
            if let Some((_, place)) = places.get_mut(number) {
                *place = ranges.len() - 1;
            }
        }
        Self { ranges, places }
    }

    /// What is to be read, in ascending order.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// The bytes of the ranges that were wanted, in their order, from those of [`ranges`](Self::ranges).
    pub fn split(&self, read: &[Bytes]) -> Result<Vec<Bytes>> {
        let cut = |(wanted, place): &(Range<u64>, usize)| {
            let (Some(range), Some(bytes)) = (self.ranges.get(*place), read.get(*place)) else {
                return Err(wrong_length(&[], wanted.clone()));
            };
            let from = as_size(wanted.start - range.start)?;
            let to = from.saturating_add(as_size(wanted.end.saturating_sub(wanted.start))?);
            match bytes.get(from..to) {
                Some(found) => Ok(bytes.slice_ref(found)),
                None => Err(wrong_length(bytes, range.clone())),
            }
        };
        self.places.iter().map(cut).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Source;

    #[test]
    fn every_range_comes_back_as_it_was_wanted() {
        let bytes: Vec<u8> = (0..=255).collect();
        let bytes = Bytes::from(bytes);
        let wanted = [200..210, 0..4, 2..3, 3..9, 30..30, 12..20, 255..256];
        for gap in [0, 4, 1000] {
            let merged = Merged::new(&wanted, gap);
            let read = merged
                .ranges()
                .iter()
                .map(|range| bytes.read(range.clone()));
            let read: Vec<Bytes> = read.map(|bytes| bytes.unwrap()).collect();
            let split = merged.split(&read).unwrap();
            for (range, found) in wanted.iter().zip(split) {
                assert_eq!(found, bytes.read(range.clone()).unwrap(), "{range:?}");
            }
        }
        let count = |gap| Merged::new(&wanted, gap).ranges().len();
        assert_eq!((count(0), count(4), count(1000)), (5, 4, 1));
    }

    #[test]
    fn a_source_that_gives_too_little_is_an_error() {
        let merged = Merged::new(&[0..4, 6..8], 4);
        assert!(merged.split(&[Bytes::from_static(b"abcdefg")]).is_err());
        assert!(merged.split(&[]).is_err());
    }
}
