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
        for range in ranges {
            self.note(range.end.saturating_sub(range.start))?;
        }
        self.source.read_ranges(ranges)
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
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A source that answers late, and notes how many ranges it is asked for at once.
    struct Late(Bytes, Mutex<Vec<usize>>);

    impl Source for Late {
        fn len(&self) -> u64 {
            Source::len(&self.0)
        }

        fn read(&self, range: Range<u64>) -> Result<Bytes> {
            self.1.lock().unwrap().push(1);
            self.0.read(range)
        }

        fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
            self.1.lock().unwrap().push(ranges.len());
            ranges
                .iter()
                .map(|range| self.0.read(range.clone()))
                .collect()
        }

        fn concurrency(&self) -> Option<usize> {
            Some(32)
        }
    }

    #[test]
    fn ranges_that_are_asked_for_at_once_stay_one_request_and_are_counted() {
        let late = Late(Bytes::from(vec![7; 100]), Mutex::default());
        let control = Control::new();
        let watched = Watched::new(&late, &control);
        let read = watched.read_ranges(&[0..10, 20..50]).unwrap();
        assert_eq!(read.iter().map(Bytes::len).collect::<Vec<_>>(), [10, 30]);
        assert_eq!(*late.1.lock().unwrap(), [2]);
        assert_eq!(control.done(), 40);
        assert_eq!(watched.concurrency(), Some(32));
        control.cancel();
        assert!(
            watched
                .read_ranges(core::slice::from_ref(&(0..10)))
                .is_err()
        );
        assert_eq!(
            *late.1.lock().unwrap(),
            [2],
            "nothing is asked for after a cancel"
        );
    }
}
