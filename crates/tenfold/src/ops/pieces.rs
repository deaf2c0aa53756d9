//! Work on tensors that is cut into pieces, so that several threads can share one tensor.
//!
//! Which pieces there are does not depend on the number of threads, and what comes of them is put together in their
//! order: the result is the same on any number of threads.

use crate::prelude::*;

/// Something to do with every one of some jobs, piece by piece.
pub(super) trait Work: Sync {
    /// What is opened once and then shared by the pieces.
    type Job: Send + Sync;
    /// What comes of a piece.
    type Part: Send;
    /// What comes of a job.
    type Outcome: Send;
    /// Buffers of a thread.
    type Scratch: Default;

    /// Opens a job.
    fn open(&self, index: usize) -> Self::Job;

    /// How many pieces it has, and what is known of its outcome without them.
    fn begin(&self, job: &Self::Job) -> (u64, Self::Outcome);

    /// Does one piece.
    fn piece(&self, job: &Self::Job, piece: u64, scratch: &mut Self::Scratch) -> Self::Part;

    /// Adds what came of a piece; called in the order of the pieces.
    fn fold(&self, outcome: &mut Self::Outcome, part: Self::Part);
}

/// The outcomes of jobs 0 to `count`, on one thread.
fn run_alone<W: Work>(work: &W, count: usize) -> Vec<W::Outcome> {
    let mut scratch = W::Scratch::default();
    let one = |index| {
        let job = work.open(index);
        let (pieces, mut outcome) = work.begin(&job);
        for piece in 0..pieces {
            let part = work.piece(&job, piece, &mut scratch);
            work.fold(&mut outcome, part);
        }
        outcome
    };
    (0..count).map(one).collect()
}

/// The outcomes of jobs 0 to `count`, in that order. 0 `threads` is one for every core.
#[cfg(not(feature = "std"))]
pub(super) fn run<W: Work>(work: &W, count: usize, _threads: usize) -> Vec<W::Outcome> {
    run_alone(work, count)
}

#[cfg(feature = "std")]
pub(super) use parallel::run;

#[cfg(feature = "std")]
mod parallel {
    use alloc::collections::BTreeMap;
    use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

    use super::Work;
    use crate::prelude::*;

    /// The outcomes of jobs 0 to `count`, in that order. 0 `threads` is one for every core.
    pub(in crate::ops) fn run<W: Work>(work: &W, count: usize, threads: usize) -> Vec<W::Outcome> {
        let threads = crate::threads::thread_count(threads);
        if threads == 1 {
            return super::run_alone(work, count);
        }
        let pool = Pool {
            work,
            outcomes: (0..count).map(|_| Mutex::new(None)).collect(),
            state: Mutex::new(State {
                next: 0,
                open: Vec::new(),
            }),
            opened: Condvar::new(),
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| pool.help());
            }
            pool.help();
        });
        let outcomes = pool.outcomes.into_iter();
        outcomes
            .filter_map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect()
    }

    struct Pool<'w, W: Work> {
        work: &'w W,
        outcomes: Vec<Mutex<Option<W::Outcome>>>,
        state: Mutex<State<W>>,
        /// Told when a job has been opened: its pieces can be taken.
        opened: Condvar,
    }

    struct State<W: Work> {
        /// The next job to open.
        next: usize,
        /// The jobs that are not done. No more than there are threads, because pieces are preferred to new jobs.
        open: Vec<Open<W>>,
    }

    struct Open<W: Work> {
        slot: Arc<Slot<W>>,
        /// `None` while it is being opened.
        pieces: Option<u64>,
        taken: u64,
    }

    struct Slot<W: Work> {
        index: usize,
        job: OnceLock<W::Job>,
        folded: Mutex<Folded<W>>,
    }

    struct Folded<W: Work> {
        outcome: Option<W::Outcome>,
        next: u64,
        pieces: u64,
        /// Parts that came before one that belongs in front of them.
        early: BTreeMap<u64, W::Part>,
    }

    /// A job while it is opened. If that panics, the others must not wait for its pieces for ever.
    struct Opening<'p, 'w, W: Work> {
        pool: &'p Pool<'w, W>,
        index: usize,
    }

    impl<W: Work> Drop for Opening<'_, '_, W> {
        fn drop(&mut self) {
            lock(&self.pool.state)
                .open
                .retain(|open| open.slot.index != self.index || open.pieces.is_some());
            self.pool.opened.notify_all();
        }
    }

    enum Task<W: Work> {
        Open(Arc<Slot<W>>),
        Piece(Arc<Slot<W>>, u64),
    }

    fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    impl<W: Work> Pool<'_, W> {
        fn help(&self) {
            let mut scratch = W::Scratch::default();
            while let Some(task) = self.take() {
                match task {
                    Task::Open(slot) => self.open(&slot),
                    Task::Piece(slot, piece) => self.piece(&slot, piece, &mut scratch),
                }
            }
        }

        /// Something to do; nothing when all of it is done or taken.
        fn take(&self) -> Option<Task<W>> {
            let mut state = lock(&self.state);
            loop {
                let mut open = state.open.iter_mut();
                if let Some(open) = open.find(|open| open.pieces.is_some_and(|n| open.taken < n)) {
                    open.taken += 1;
                    return Some(Task::Piece(open.slot.clone(), open.taken - 1));
                }
                if state.next < self.outcomes.len() {
                    return Some(Task::Open(self.next_slot(&mut state)));
                }
                if state.open.iter().all(|open| open.pieces.is_some()) {
                    return None;
                }
                state = (self.opened.wait(state)).unwrap_or_else(PoisonError::into_inner);
            }
        }

        fn next_slot(&self, state: &mut State<W>) -> Arc<Slot<W>> {
            let slot = Arc::new(Slot {
                index: state.next,
                job: OnceLock::new(),
                folded: Mutex::new(Folded {
                    outcome: None,
                    next: 0,
                    pieces: 0,
                    early: BTreeMap::new(),
                }),
            });
            state.next += 1;
            state.open.push(Open {
                slot: slot.clone(),
                pieces: None,
                taken: 0,
            });
            slot
        }

        fn open(&self, slot: &Slot<W>) {
            let _opening = Opening {
                pool: self,
                index: slot.index,
            };
            let job = slot.job.get_or_init(|| self.work.open(slot.index));
            let (pieces, outcome) = self.work.begin(job);
            if pieces == 0 {
                self.close(slot, Some(outcome));
            } else {
                let mut folded = lock(&slot.folded);
                folded.outcome = Some(outcome);
                folded.pieces = pieces;
                drop(folded);
                let mut state = lock(&self.state);
                let mut open = state.open.iter_mut();
                if let Some(open) = open.find(|open| open.slot.index == slot.index) {
                    open.pieces = Some(pieces);
                }
            }
        }

        fn piece(&self, slot: &Slot<W>, piece: u64, scratch: &mut W::Scratch) {
            let Some(job) = slot.job.get() else { return };
            let part = self.work.piece(job, piece, scratch);
            let mut guard = lock(&slot.folded);
            let folded = &mut *guard;
            folded.early.insert(piece, part);
            while let Some(part) = folded.early.remove(&folded.next) {
                if let Some(outcome) = &mut folded.outcome {
                    self.work.fold(outcome, part);
                }
                folded.next += 1;
            }
            if folded.next == folded.pieces {
                let outcome = folded.outcome.take();
                drop(guard);
                self.close(slot, outcome);
            }
        }

        fn close(&self, slot: &Slot<W>, outcome: Option<W::Outcome>) {
            if let Some(place) = self.outcomes.get(slot.index) {
                *lock(place) = outcome;
            }
            lock(&self.state)
                .open
                .retain(|open| open.slot.index != slot.index);
        }
    }
}

#[cfg(test)]
#[cfg(feature = "std")]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;

    use super::*;

    /// Jobs of which the first panics while another thread waits for what it will be.
    struct Panics(Barrier);

    impl Work for Panics {
        type Job = ();
        type Part = ();
        type Outcome = ();
        type Scratch = ();

        fn open(&self, index: usize) {
            self.0.wait();
            assert!(index > 0, "the first job cannot be opened");
        }

        fn begin(&self, (): &()) -> (u64, ()) {
            (1, ())
        }

        fn piece(&self, (): &(), _: u64, (): &mut ()) {}

        fn fold(&self, (): &mut (), (): ()) {}
    }

    #[test]
    fn a_panic_reaches_the_caller_and_nobody_waits_for_ever() {
        let work = Panics(Barrier::new(2));
        let panicked = catch_unwind(AssertUnwindSafe(|| run(&work, 2, 2)));
        assert!(panicked.is_err());
    }
}
