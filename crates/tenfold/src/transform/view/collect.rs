//! A whole view in memory, made by several threads where it is large.

use bytes::Bytes;

use super::View;
use crate::error::{Error, Result};
use crate::prelude::*;
#[cfg(feature = "std")]
use crate::threads;
#[cfg(feature = "std")]
use crate::transform::PIECE;
use crate::transform::as_size;

impl View<'_> {
    /// Refuses more than `limit` bytes in memory at once.
    pub(crate) fn check_memory(&self, limit: u64) -> Result<usize> {
        if self.len > limit {
            let message = format!(
                "{} bytes are needed at once, the limit (tensor_memory) is {limit}",
                self.len
            );
            return Err(Error::limit("memory", message).raised_by("tensor_memory", self.len));
        }
        as_size(self.len)
    }

    /// Refuses memory that is not exactly as long as the view.
    pub(crate) fn check_room(&self, out: &[u8]) -> Result<()> {
        if out.len() as u64 == self.len {
            return Ok(());
        }
        let message = format!("{} bytes into memory of {}", self.len, out.len());
        Err(Error::argument(message))
    }

    /// Everything in memory of the caller, which is as long as it.
    pub(crate) fn read_all(&self, out: &mut [u8]) -> Result<()> {
        self.check_room(out)?;
        #[cfg(feature = "std")]
        if self.is_large() {
            self.clear(out);
            return self.fill(out);
        }
        if !self.is_random() {
            return self.read_piece(0, out);
        }
        let piece = as_size(self.piece())?;
        let mut places = (0..).step_by(piece).zip(out.chunks_mut(piece));
        places.try_for_each(|(at, place)| self.read_piece(at, place))
    }

    /// A piece in memory of the caller; of what can only be read from the beginning, everything.
    pub(crate) fn read_piece(&self, at: u64, out: &mut [u8]) -> Result<()> {
        if self.is_random() {
            self.clear(out);
            return self.read_into(at, out);
        }
        let (mut pieces, mut made) = (self.pieces()?, Vec::new());
        for place in out.chunks_mut(as_size(self.piece())?) {
            pieces.next(&mut made)?;
            place.copy_from_slice(&made);
        }
        // That nothing follows is seen past the end.
        pieces.next(&mut made).map(drop)
    }

    fn clear(&self, out: &mut [u8]) {
        if self.needs_zeros() {
            out.fill(0);
        }
    }

    /// Everything in one buffer, which grows as data arrives.
    pub(crate) fn collect(&self, limit: u64) -> Result<Vec<u8>> {
        self.check_memory(limit)?;
        #[cfg(feature = "std")]
        if self.is_large() {
            let mut all = crate::io::zeros(self.len)?;
            self.fill(&mut all)?;
            return Ok(all);
        }
        let mut all = Vec::new();
        let mut piece = Vec::new();
        let mut pieces = self.pieces()?;
        while pieces.next(&mut piece)? {
            if all.is_empty() && piece.len() as u64 == self.len {
                return Ok(piece);
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    /// Everything, as [`collect`](Self::collect) gives it, to be shared.
    pub(crate) fn collect_shared(&self, limit: u64) -> Result<Bytes> {
        #[cfg(feature = "mmap")]
        if self.is_large()
            && self.len <= limit
            && let Some(mut all) = crate::io::zeroed(as_size(self.len)?)
        {
            self.fill(&mut all)?;
            return Ok(Bytes::from_owner(all));
        }
        self.collect(limit).map(Bytes::from)
    }
}

#[cfg(feature = "std")]
impl View<'_> {
    /// Whether several threads are worth their while.
    fn is_large(&self) -> bool {
        self.is_random() && self.len > 4 * PIECE as u64
    }

    /// Everything in one place, made by several threads.
    fn fill(&self, all: &mut [u8]) -> Result<()> {
        let piece = as_size(self.piece())?;
        let places = (0..).step_by(piece).zip(all.chunks_mut(piece));
        threads::map(self.threads, places, |(at, place), (): &mut ()| {
            self.read_into(at, place)
        })?;
        Ok(())
    }
}

#[cfg(test)]
#[cfg(feature = "std")]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    use super::*;
    use crate::io::Source;
    use crate::model::DType;
    use crate::{Archive, ArchiveBuilder};

    /// Zeros, of which it is noted who reads how many.
    #[derive(Default)]
    struct Watched {
        len: u64,
        readers: Mutex<HashSet<ThreadId>>,
        read: Mutex<u64>,
        /// The first bytes cannot be read; whoever reads others takes its time.
        broken: bool,
    }

    impl Source for Watched {
        fn len(&self) -> u64 {
            self.len
        }

        fn read(&self, range: Range<u64>) -> Result<Bytes> {
            self.readers.lock().unwrap().insert(thread::current().id());
            if self.broken && range.start == 0 {
                return Err(Error::mismatch("test", "broken"));
            }
            if self.broken {
                thread::sleep(Duration::from_millis(20));
            }
            *self.read.lock().unwrap() += range.end - range.start;
            Ok(vec![0; as_size(range.end - range.start)?].into())
        }
    }

    fn cast(watched: &Arc<Watched>) -> Archive {
        let mut builder = ArchiveBuilder::new();
        let shape = [watched.len / 4];
        builder
            .push("t", DType::F32, &shape, watched.clone())
            .unwrap();
        crate::ops::cast(&builder.finish(), |_| Some(DType::F64)).unwrap()
    }

    #[test]
    fn no_more_threads_make_a_tensor_than_were_asked_for() {
        for asked in [1, 3] {
            let watched = Arc::new(Watched {
                len: 10 * PIECE as u64,
                ..Watched::default()
            });
            let archive = cast(&watched).with_threads(asked);
            archive.tensor("t").unwrap().canonical().unwrap();
            let readers = watched.readers.lock().unwrap().len();
            assert!((1..=asked).contains(&readers), "{readers} of {asked}");
            // Operations with an option of their own go by that.
            watched.readers.lock().unwrap().clear();
            let archive = archive.with_threads(8);
            let work = crate::Work::new().threads(asked);
            let options = crate::ops::StatsOptions::new().work(work);
            crate::ops::stats(&archive, &options).unwrap();
            let readers = watched.readers.lock().unwrap().len();
            assert!((1..=asked).contains(&readers), "{readers} of {asked}");
        }
    }

    #[test]
    fn a_piece_that_fails_stops_the_others() {
        let watched = Arc::new(Watched {
            len: 10 * PIECE as u64,
            broken: true,
            ..Watched::default()
        });
        let archive = cast(&watched).with_threads(4);
        let error = archive.tensor("t").unwrap().canonical().unwrap_err();
        assert_eq!(error.rule(), "file.test");
        let read = *watched.read.lock().unwrap();
        assert!(read <= watched.len / 4, "{read} of {}", watched.len);
    }
}
