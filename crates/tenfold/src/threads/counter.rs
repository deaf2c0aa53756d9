//! A number that several threads add to.

use core::sync::atomic::Ordering::Relaxed;

#[cfg(target_has_atomic = "64")]
type Atomic = core::sync::atomic::AtomicU64;
#[cfg(not(target_has_atomic = "64"))]
type Atomic = core::sync::atomic::AtomicUsize;

/// Counts up. Where the processor has no atomics of 64 bits it is as wide as an address, and wraps around there.
#[derive(Debug, Default)]
pub(crate) struct Counter(Atomic);

impl Counter {
    #[allow(clippy::cast_possible_truncation, clippy::unnecessary_cast)] // only where it is smaller
    pub(crate) fn add(&self, n: u64) {
        if n > 0 {
            self.0.fetch_add(n as _, Relaxed);
        }
    }

    #[allow(clippy::unnecessary_cast)] // not where it is smaller
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed) as u64
    }
}
