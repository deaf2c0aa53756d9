//! Work on several threads, watched and stopped from others.
//!
//! Three ways to share work, and no other: [`map`] for items that are done one by one, [`in_order`] for jobs whose results
//! are consumed one after the other, [`in_pieces`] for items of which one may keep all threads busy. What comes out does not
//! depend on the number of threads, a panic of any of them reaches the caller, and without `std` there is one.

mod control;
mod counter;
mod in_order;
mod in_pieces;
mod steps;
mod work;

pub use control::Control;
pub(crate) use counter::Counter;
pub(crate) use in_order::{in_order, map};
#[cfg(any(feature = "digest", feature = "std"))]
pub(crate) use in_pieces::in_pieces;
pub(crate) use in_pieces::{InPieces, Opened};
pub use steps::Progress;
pub(crate) use steps::{Pace, Steps};
pub use work::Work;

/// The threads that were asked for; 0 is one for every core.
#[cfg(feature = "std")]
pub(crate) fn thread_count(asked: usize) -> usize {
    // A browser starts none, and a program for it has no use for what shares work among them.
    if cfg!(all(target_family = "wasm", not(target_feature = "atomics"))) {
        return 1;
    }
    match asked {
        0 => std::thread::available_parallelism().map_or(1, core::num::NonZero::get),
        n => n,
    }
}

/// Runs the same on several threads, of which the caller is one, until all of them are done.
#[cfg(feature = "std")]
fn on_threads(threads: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(&work)).collect();
        work();
        for other in others {
            if let Err(panic) = other.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// What a mutex guards. If somebody panicked who held it, that is reported where the threads are joined.
#[cfg(feature = "std")]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(feature = "std")]
fn wait<'m, T>(told: &Condvar, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
    told.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(feature = "std")]
use crate::prelude::*;
#[cfg(feature = "std")]
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
