//! The same work for every tensor, on several threads where there are any.

use crate::prelude::*;

/// The results of `work` for 0 to `count`, in that order, whichever thread did it. 0 `threads` is one for every core.
#[cfg(feature = "std")]
pub(super) fn map<T: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    let threads = crate::threads::thread_count(threads);
    if threads == 1 || count < 2 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let run = || {
        while let Some((index, place)) = {
            let index = next.fetch_add(1, Relaxed);
            results.get(index).map(|place| (index, place))
        } {
            let result = work(index);
            if let Ok(mut place) = place.lock() {
                *place = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            scope.spawn(run);
        }
        run();
    });
    results
        .into_iter()
        .filter_map(|place| place.into_inner().ok().flatten())
        .collect()
}

/// The results of `work` for 0 to `count`, in that order.
#[cfg(not(feature = "std"))]
pub(super) fn map<T: Send>(
    count: usize,
    _threads: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    (0..count).map(work).collect()
}
