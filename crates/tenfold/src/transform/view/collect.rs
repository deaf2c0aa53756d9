//! A whole view in memory, made by several threads where it is large.

use bytes::Bytes;

use super::View;
use crate::error::{Error, Result};
use crate::prelude::*;
#[cfg(feature = "std")]
use crate::transform::PIECE;
use crate::transform::as_size;

impl View<'_> {
    /// Everything in one buffer, which grows as data arrives.
    pub(crate) fn collect(&self, limit: u64) -> Result<Vec<u8>> {
        if self.len > limit {
            let message = format!(
                "{} bytes are needed at once, the limit (tensor_memory) is {limit}",
                self.len
            );
            return Err(Error::limit("memory", message).raised_by("tensor_memory"));
        }
        as_size(self.len)?;
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
        use std::sync::{Mutex, PoisonError};
        let piece = self.piece();
        let places = all
            .chunks_mut(as_size(piece)?)
            .zip((0..).step_by(as_size(piece)?));
        let places = Mutex::new(places);
        let failed = Mutex::new(None);
        let work = || {
            // The lock is held only to take the next place.
            while let Some((place, at)) = {
                let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
                places.next()
            } {
                if let Err(error) = self.read_into(at, place) {
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    failed.get_or_insert(error);
                    return;
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
