//! Watching and stopping work from another thread.

use crate::error::{Error, Result};

#[cfg(feature = "std")]
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Shared between the work and whoever watches or stops it.
#[derive(Debug, Default)]
pub struct Control {
    #[cfg(feature = "std")]
    total: AtomicU64,
    #[cfg(feature = "std")]
    done: AtomicU64,
    #[cfg(feature = "std")]
    canceled: AtomicBool,
}

#[cfg(feature = "std")]
impl Control {
    /// Bytes that will be done, as far as that is known.
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Bytes that are done.
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// Asks the work to stop. It ends with an error of kind [`Canceled`](crate::ErrorKind::Canceled) soon after.
    pub fn cancel(&self) {
        self.canceled.store(true, Relaxed);
    }

    pub(crate) fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Relaxed);
    }

    /// Notes progress; an error when the work was asked to stop.
    pub(crate) fn advance(&self, bytes: u64) -> Result<()> {
        self.done.fetch_add(bytes, Relaxed);
        match self.canceled.load(Relaxed) {
            true => Err(Error::canceled()),
            false => Ok(()),
        }
    }
}

/// Without threads nobody watches.
#[cfg(not(feature = "std"))]
impl Control {
    pub(crate) fn expect(&self, _: u64) {}

    pub(crate) fn advance(&self, _: u64) -> Result<()> {
        Ok::<(), Error>(())
    }
}
