//! Watching and stopping work from another thread.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::counter::Counter;
use crate::error::{Error, Result};

/// Shared between the work and whoever watches or stops it.
///
/// It counts all the work that it is given to. Once canceled it stays canceled, so the next work needs another.
#[derive(Debug, Default)]
pub struct Control {
    total: Counter,
    done: Counter,
    canceled: AtomicBool,
}

impl Control {
    /// A control under which nothing has been done yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes that will be done, as far as that is known.
    pub fn total(&self) -> u64 {
        self.total.get()
    }

    /// Bytes that are done.
    pub fn done(&self) -> u64 {
        self.done.get()
    }

    /// Asks the work to stop. It ends with an error of kind [`Canceled`](crate::ErrorKind::Canceled) soon after.
    pub fn cancel(&self) {
        self.canceled.store(true, Relaxed);
    }

    /// Whether the work was asked to stop.
    pub fn is_canceled(&self) -> bool {
        self.canceled.load(Relaxed)
    }

    pub(crate) fn expect(&self, bytes: u64) {
        self.total.add(bytes);
    }

    /// Notes progress; an error when the work was asked to stop.
    pub(crate) fn advance(&self, bytes: u64) -> Result<()> {
        self.done.add(bytes);
        self.check()
    }

    /// An error when the work was asked to stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_canceled() {
            Err(Error::canceled())
        } else {
            Ok(())
        }
    }
}
