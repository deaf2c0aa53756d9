//! Jobs that are done by several threads, and what comes of them in the order of the jobs.
//!
//! Jobs are handed out in their order, and each goes to whoever is free. So when one fails, all before it were handed out
//! too and are finished: the error that is reported is that of the first job that fails, on any number of threads.

use crate::prelude::*;

/// The results of `work` for every item, in the order of the items. 0 `threads` is one for every core. An error stops what
/// was not begun yet. `S` is what a thread keeps between items.
pub(crate) fn map<I: Send, S: Default, T: Send, E: Send>(
    threads: usize,
    items: impl IntoIterator<Item = I, IntoIter: Send>,
    work: impl Fn(I, &mut S) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let mut results = Vec::new();
    let jobs = items.into_iter().map(Ok);
    // Results are kept in any case: nothing is gained by waiting for the first of them.
    run(threads, usize::MAX, jobs, work, |result| {
        results.push(result);
        Ok(())
    })?;
    Ok(results)
}

/// Gives what comes of jobs to `consume`, in the order of the jobs. 0 `threads` is one for every core.
///
/// Jobs are made one at a time, when somebody is free to do them, and no more than two for each of a few threads, or one
/// for each of many, are under way or wait to be consumed. An error of any of the three ends the work.
pub(crate) fn in_order<J: Send, R: Send, E: Send>(
    threads: usize,
    jobs: impl Iterator<Item = Result<J, E>> + Send,
    work: impl Fn(J) -> Result<R, E> + Sync,
    consume: impl FnMut(R) -> Result<(), E> + Send,
) -> Result<(), E> {
    #[cfg(feature = "std")]
    let threads = super::thread_count(threads);
    // Many threads mostly wait for answers, and results are held.
    let ahead = threads.saturating_mul(2).min(threads.max(32));
    run(threads, ahead, jobs, |job, (): &mut ()| work(job), consume)
}

#[cfg(not(feature = "std"))]
fn run<J, S: Default, R, E>(
    _threads: usize,
    _ahead: usize,
    jobs: impl Iterator<Item = Result<J, E>>,
    work: impl Fn(J, &mut S) -> Result<R, E>,
    consume: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    run_alone(jobs, work, consume)
}

/// One job after the other.
fn run_alone<J, S: Default, R, E>(
    jobs: impl Iterator<Item = Result<J, E>>,
    work: impl Fn(J, &mut S) -> Result<R, E>,
    mut consume: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let mut scratch = S::default();
    for job in jobs {
        consume(work(job?, &mut scratch)?)?;
    }
    Ok(())
}

#[cfg(feature = "std")]
use parallel::run;

#[cfg(feature = "std")]
mod parallel {
    use alloc::collections::BTreeMap;
    use std::sync::{Condvar, Mutex};

    use crate::threads::{lock, on_threads, thread_count, wait};

    /// Does jobs on several threads, of which no more than `ahead` wait for one in front of them.
    pub(super) fn run<J: Send, S: Default, R: Send, E: Send>(
        threads: usize,
        ahead: usize,
        jobs: impl Iterator<Item = Result<J, E>> + Send,
        work: impl Fn(J, &mut S) -> Result<R, E> + Sync,
        consume: impl FnMut(R) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let most = jobs.size_hint().1.unwrap_or(usize::MAX);
        let threads = thread_count(threads).min(most);
        if threads <= 1 {
            return super::run_alone(jobs, work, consume);
        }
        let line = Line {
            ahead,
            jobs: Mutex::new((0, jobs.fuse())),
            work,
            consume: Mutex::new(consume),
            results: Mutex::new(Results {
                next: 0,
                early: BTreeMap::new(),
                consuming: false,
                stopped: false,
                failed: None,
            }),
            moved: Condvar::new(),
        };
        on_threads(threads, || line.help());
        let results = lock(&line.results).failed.take();
        results.map_or(Ok(()), Err)
    }

    struct Line<I, W, C, R, E> {
        ahead: usize,
        /// The number of the next job, and where it comes from.
        jobs: Mutex<(usize, I)>,
        work: W,
        consume: Mutex<C>,
        results: Mutex<Results<R, E>>,
        /// Told when a result was consumed, or the work was stopped.
        moved: Condvar,
    }

    struct Results<R, E> {
        /// The number of the job whose result is consumed next.
        next: usize,
        /// Results from there on.
        early: BTreeMap<usize, Result<R, E>>,
        /// Whether somebody consumes results: the others only leave theirs.
        consuming: bool,
        /// No more jobs are begun.
        stopped: bool,
        failed: Option<E>,
    }

    impl<I, W, C, J, R, E> Line<I, W, C, R, E>
    where
        I: Iterator<Item = Result<J, E>>,
        C: FnMut(R) -> Result<(), E>,
    {
        fn help<S: Default>(&self)
        where
            W: Fn(J, &mut S) -> Result<R, E>,
        {
            let _stop = StopOnPanic(self);
            let mut scratch = S::default();
            while let Some((number, job)) = self.take() {
                let result = job.and_then(|job| (self.work)(job, &mut scratch));
                self.deliver(number, result);
            }
        }

        /// The next job, when there is room for what comes of it.
        fn take(&self) -> Option<(usize, Result<J, E>)> {
            let mut jobs = lock(&self.jobs);
            let (number, jobs) = &mut *jobs;
            let mut results = lock(&self.results);
            while !results.stopped && *number - results.next >= self.ahead {
                results = wait(&self.moved, results);
            }
            if results.stopped {
                return None;
            }
            drop(results);
            let job = jobs.next()?;
            *number += 1;
            Some((*number - 1, job))
        }

        /// Consumes a result and those after it, if it is its turn and nobody else does.
        fn deliver(&self, number: usize, result: Result<R, E>) {
            let mut results = lock(&self.results);
            results.stopped |= result.is_err();
            results.early.insert(number, result);
            if results.consuming {
                return;
            }
            results.consuming = true;
            loop {
                let next = results.next;
                let Some(result) = results.early.remove(&next) else {
                    break;
                };
                if results.failed.is_some() {
                    break;
                }
                drop(results);
                let consumed = result.and_then(|result| lock(&self.consume)(result));
                results = lock(&self.results);
                results.next += 1;
                if let Err(error) = consumed {
                    results.stopped = true;
                    results.failed = Some(error);
                }
                self.moved.notify_all();
            }
            results.consuming = false;
        }
    }

    /// Whoever waits for a job that was lost must not wait for ever.
    struct StopOnPanic<'l, I, W, C, R, E>(&'l Line<I, W, C, R, E>);

    impl<I, W, C, R, E> Drop for StopOnPanic<'_, I, W, C, R, E> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                lock(&self.0.results).stopped = true;
                self.0.moved.notify_all();
            }
        }
    }
}

#[cfg(test)]
#[cfg(feature = "std")]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    /// Takes longer for some, so that later ones are ready before.
    fn slowly(n: usize) -> usize {
        if n.is_multiple_of(7) {
            sleep(Duration::from_millis(2));
        }
        n * n
    }

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let wanted: Vec<_> = (0..100).map(|n| n * n).collect();
        for threads in [1, 2, 5] {
            let square = |n, (): &mut ()| Ok::<_, ()>(slowly(n));
            assert_eq!(map(threads, 0..100, square).unwrap(), wanted);
            assert_eq!(map(threads, 0..0, square), Ok(Vec::new()));
            let mut found = Vec::new();
            let jobs = (0..100).map(Ok::<_, ()>);
            let consume = |result| {
                found.push(result);
                Ok(())
            };
            in_order(threads, jobs, |n| Ok(slowly(n)), consume).unwrap();
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn the_error_is_that_of_the_first_item_that_fails_and_stops_the_others() {
        for threads in [1, 2, 5] {
            let begun = AtomicUsize::new(0);
            let fail = |n: usize, (): &mut ()| {
                begun.fetch_add(1, Relaxed);
                if n >= 70 { Err(n) } else { Ok(n) }
            };
            assert_eq!(map(threads, 0..1_000_000, fail), Err(70));
            assert!(begun.into_inner() < 1000);
        }
    }

    #[test]
    fn no_more_is_held_than_a_few_jobs_for_each_thread() {
        let (made, consumed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let jobs = (0..200).map(|n| {
            let held = made.fetch_add(1, Relaxed) - consumed.load(Relaxed);
            assert!(held < 2 * 3, "{held}");
            Ok::<_, ()>(n)
        });
        let consume = |_| {
            sleep(Duration::from_micros(100));
            consumed.fetch_add(1, Relaxed);
            Ok(())
        };
        in_order(3, jobs, |n| Ok(slowly(n)), consume).unwrap();
        assert_eq!(consumed.into_inner(), 200);
    }

    #[test]
    fn a_panic_of_any_of_the_three_reaches_the_caller_and_nobody_waits_for_ever() {
        for whose in 0..3 {
            let panic_at = |who: usize, n: usize| assert!(who != whose || n != 5, "it was {who}");
            let jobs = (0..1000).map(|n| {
                panic_at(0, n);
                Ok::<_, ()>(n)
            });
            let work = |n| {
                panic_at(1, n);
                Ok(n)
            };
            let consume = |n| {
                panic_at(2, n);
                Ok(())
            };
            let run = AssertUnwindSafe(|| in_order(3, jobs, work, consume));
            let panic = catch_unwind(run).unwrap_err();
            let message = panic.downcast_ref::<String>().unwrap();
            assert_eq!(*message, format!("it was {whose}"));
        }
    }
}
