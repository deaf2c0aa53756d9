//! Work on items that is cut into pieces, so that several threads can share one item.
//!
//! Which pieces there are does not depend on the number of threads, and what comes of them is put together in their
//! order: the result is the same on any number of threads, and in steps.

use crate::error::Result;
use crate::prelude::*;

/// Something to do with every one of some items, piece by piece. An error ends all of it: what goes wrong with one item
/// only is part of its outcome.
pub(crate) trait InPieces: Sync {
    /// What there are many of.
    type Item: Send;
    /// What is opened once for an item, and then shared by its pieces.
    type Job: Send + Sync;
    /// What comes of a piece.
    type Found: Send;
    /// What comes of an item.
    type Outcome: Send;
    /// Buffers of a thread.
    type Scratch: Default;

    /// Opens an item.
    fn open(&self, item: Self::Item) -> Result<Opened<Self::Job, Self::Outcome>>;

    /// Whether it costs next to nothing to open the item again. One that is expensive is done to its end.
    fn is_light(&self, job: &Self::Job) -> bool;

    /// Does one piece.
    fn piece(
        &self,
        job: &Self::Job,
        piece: u64,
        scratch: &mut Self::Scratch,
    ) -> Result<Self::Found>;

    /// Adds what came of a piece; called in the order of the pieces. False when nothing can change the outcome, and the
    /// rest of the item need not be done.
    fn fold(&self, outcome: &mut Self::Outcome, found: Self::Found) -> bool;
}

/// An item that was opened.
pub(crate) struct Opened<J, O> {
    /// What is to be done, and in how many pieces.
    job: Option<(J, u64)>,
    /// What is known without them.
    outcome: O,
}

impl<J, O> Opened<J, O> {
    pub(crate) fn new(job: J, pieces: u64, outcome: O) -> Self {
        let job = Some((job, pieces)).filter(|_| pieces > 0);
        Self { job, outcome }
    }

    /// An item of which everything is known.
    pub(crate) fn done(outcome: O) -> Self {
        Self { job: None, outcome }
    }
}

/// The outcomes of items, in their order. 0 `threads` is one for every core.
pub(crate) fn in_pieces<W: InPieces>(
    work: &W,
    items: impl IntoIterator<Item = W::Item, IntoIter: Send>,
    threads: usize,
) -> Result<Vec<W::Outcome>> {
    #[cfg(feature = "std")]
    {
        let threads = super::thread_count(threads);
        if threads > 1 {
            return parallel::run(work, items.into_iter(), threads);
        }
    }
    let _ = threads;
    let mut scratch = W::Scratch::default();
    let one = |item| go_on(work, item, None, &mut scratch, || false).map(Half::outcome);
    items.into_iter().map(one).collect()
}

/// What has come of an item.
pub(super) enum Half<O> {
    Done(O),
    /// The piece to go on with, and what came of those before.
    Begun(u64, O),
}

impl<O> Half<O> {
    fn outcome(self) -> O {
        match self {
            Half::Done(outcome) | Half::Begun(_, outcome) => outcome,
        }
    }
}

/// Does the pieces of an item, from the one on that it was left at: one of them, and more until it is enough.
pub(super) fn go_on<W: InPieces>(
    work: &W,
    item: W::Item,
    begun: Option<(u64, W::Outcome)>,
    scratch: &mut W::Scratch,
    is_enough: impl Fn() -> bool,
) -> Result<Half<W::Outcome>> {
    let Opened { job, outcome } = work.open(item)?;
    let (first, mut outcome) = begun.unwrap_or((0, outcome));
    let Some((job, pieces)) = job else {
        return Ok(Half::Done(outcome));
    };
    for piece in first..pieces {
        let found = work.piece(&job, piece, scratch)?;
        if !work.fold(&mut outcome, found) {
            break;
        }
        if piece + 1 < pieces && is_enough() && work.is_light(&job) {
            return Ok(Half::Begun(piece + 1, outcome));
        }
    }
    Ok(Half::Done(outcome))
}

#[cfg(feature = "std")]
mod parallel {
    use alloc::collections::BTreeMap;
    use std::sync::{Condvar, Mutex};

    use super::{InPieces, Opened};
    use crate::error::{Error, Result};
    use crate::prelude::*;
    use crate::threads::{lock, on_threads, wait};

    pub(super) fn run<W: InPieces>(
        work: &W,
        items: impl Iterator<Item = W::Item> + Send,
        threads: usize,
    ) -> Result<Vec<W::Outcome>> {
        let pool = Pool {
            work,
            state: Mutex::new(State {
                items: items.fuse(),
                number: 0,
                opening: 0,
                open: Vec::new(),
                outcomes: BTreeMap::new(),
                stopped: false,
                failed: None,
            }),
            opened: Condvar::new(),
        };
        on_threads(threads, || pool.help());
        let state = pool.state.into_inner();
        let state = state.unwrap_or_else(std::sync::PoisonError::into_inner);
        match state.failed {
            Some(error) => Err(error),
            None => Ok(state.outcomes.into_values().collect()),
        }
    }

    struct Pool<'w, W: InPieces, I> {
        work: &'w W,
        state: Mutex<State<W, I>>,
        /// Told when an item has been opened: its pieces can be taken.
        opened: Condvar,
    }

    struct State<W: InPieces, I> {
        items: I,
        /// The number of the next item.
        number: usize,
        /// Items that are being opened: they may have pieces for everybody.
        opening: usize,
        /// Those of which not all pieces were taken. No more than there are threads, because pieces are preferred to new
        /// items.
        open: Vec<Open<W>>,
        outcomes: BTreeMap<usize, W::Outcome>,
        /// Nothing more is begun.
        stopped: bool,
        failed: Option<Error>,
    }

    struct Open<W: InPieces> {
        item: Arc<Item<W>>,
        taken: u64,
    }

    struct Item<W: InPieces> {
        number: usize,
        job: W::Job,
        pieces: u64,
        folded: Mutex<Folded<W>>,
    }

    struct Folded<W: InPieces> {
        /// `None` when it is complete.
        outcome: Option<W::Outcome>,
        next: u64,
        /// What came of pieces before one that belongs in front of them.
        early: BTreeMap<u64, W::Found>,
    }

    enum Task<W: InPieces> {
        Open(usize, W::Item),
        Piece(Arc<Item<W>>, u64),
    }

    /// A thread while it has a task. If that panics, the others must not wait for its pieces for ever.
    struct StopOnPanic<'p, 'w, W: InPieces, I>(&'p Pool<'w, W, I>);

    impl<W: InPieces, I> Drop for StopOnPanic<'_, '_, W, I> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                lock(&self.0.state).stopped = true;
                self.0.opened.notify_all();
            }
        }
    }

    impl<W: InPieces, I: Iterator<Item = W::Item>> Pool<'_, W, I> {
        fn help(&self) {
            let _stop = StopOnPanic(self);
            let mut scratch = W::Scratch::default();
            while let Some(task) = self.take() {
                let done = match task {
                    Task::Open(number, item) => self.open(number, item),
                    Task::Piece(item, piece) => self.piece(&item, piece, &mut scratch),
                };
                if let Err(error) = done {
                    let mut state = lock(&self.state);
                    state.stopped = true;
                    state.failed.get_or_insert(error);
                    self.opened.notify_all();
                }
            }
        }

        /// Something to do; nothing when all of it is done or taken.
        fn take(&self) -> Option<Task<W>> {
            let mut guard = lock(&self.state);
            loop {
                let state = &mut *guard;
                if state.stopped {
                    return None;
                }
                if let Some(open) = state.open.first_mut() {
                    let (item, piece) = (open.item.clone(), open.taken);
                    open.taken += 1;
                    if open.taken == item.pieces {
                        state.open.remove(0);
                    }
                    return Some(Task::Piece(item, piece));
                }
                if let Some(item) = state.items.next() {
                    state.number += 1;
                    state.opening += 1;
                    return Some(Task::Open(state.number - 1, item));
                }
                if state.opening == 0 {
                    return None;
                }
                guard = wait(&self.opened, guard);
            }
        }

        fn open(&self, number: usize, item: W::Item) -> Result<()> {
            let Opened { job, outcome } = self.work.open(item)?;
            let mut state = lock(&self.state);
            state.opening -= 1;
            match job {
                None => {
                    state.outcomes.insert(number, outcome);
                }
                Some((job, pieces)) => {
                    let folded = Mutex::new(Folded {
                        outcome: Some(outcome),
                        next: 0,
                        early: BTreeMap::new(),
                    });
                    let item = Arc::new(Item {
                        number,
                        job,
                        pieces,
                        folded,
                    });
                    state.open.push(Open { item, taken: 0 });
                }
            }
            self.opened.notify_all();
            Ok(())
        }

        fn piece(&self, item: &Item<W>, piece: u64, scratch: &mut W::Scratch) -> Result<()> {
            let found = self.work.piece(&item.job, piece, scratch)?;
            let mut guard = lock(&item.folded);
            let folded = &mut *guard;
            folded.early.insert(piece, found);
            let mut goes_on = true;
            while let (Some(outcome), Some(found)) =
                (&mut folded.outcome, folded.early.remove(&folded.next))
            {
                goes_on = self.work.fold(outcome, found);
                folded.next += 1;
                if folded.next == item.pieces || !goes_on {
                    break;
                }
            }
            if folded.next < item.pieces && goes_on {
                return Ok(());
            }
            let outcome = folded.outcome.take();
            drop(guard);
            let mut state = lock(&self.state);
            state.open.retain(|open| open.item.number != item.number);
            state
                .outcomes
                .extend(outcome.map(|outcome| (item.number, outcome)));
            Ok(())
        }
    }
}

#[cfg(test)]
#[cfg(feature = "std")]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;

    use super::*;
    use crate::error::Error;

    /// Items of which the first panics while another thread waits for what it will be.
    struct Panics(Barrier);

    impl InPieces for Panics {
        type Item = usize;
        type Job = ();
        type Found = ();
        type Outcome = ();
        type Scratch = ();

        fn open(&self, item: usize) -> Result<Opened<(), ()>> {
            self.0.wait();
            assert!(item > 0, "the first item cannot be opened");
            Ok(Opened::new((), 1, ()))
        }

        fn is_light(&self, (): &()) -> bool {
            true
        }

        fn piece(&self, (): &(), _: u64, (): &mut ()) -> Result<()> {
            Ok(())
        }

        fn fold(&self, (): &mut (), (): ()) -> bool {
            true
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_nobody_waits_for_ever() {
        let work = Panics(Barrier::new(2));
        let panicked = catch_unwind(AssertUnwindSafe(|| in_pieces(&work, 0..2, 2)));
        let panic = panicked.err().unwrap();
        assert_eq!(
            panic.downcast_ref::<&str>(),
            Some(&"the first item cannot be opened")
        );
    }

    /// Items of as many pieces as they say, which are listed; work ends at a piece, and an item at another.
    struct Lists {
        fails_at: u64,
        enough_at: u64,
        done: AtomicU64,
    }

    impl InPieces for Lists {
        type Item = u64;
        type Job = u64;
        type Found = u64;
        type Outcome = Vec<u64>;
        type Scratch = ();

        fn open(&self, item: u64) -> Result<Opened<u64, Vec<u64>>> {
            Ok(Opened::new(item, item, Vec::new()))
        }

        fn is_light(&self, _: &u64) -> bool {
            true
        }

        fn piece(&self, _: &u64, piece: u64, (): &mut ()) -> Result<u64> {
            self.done.fetch_add(1, Relaxed);
            if piece == self.fails_at {
                return Err(Error::canceled());
            }
            if piece > self.fails_at.min(self.enough_at) {
                // What is not wanted any more gives way to the thread that is to find this out.
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(piece)
        }

        fn fold(&self, outcome: &mut Vec<u64>, found: u64) -> bool {
            outcome.push(found);
            found < self.enough_at
        }
    }

    #[test]
    fn pieces_are_put_together_in_order_on_any_number_of_threads() {
        let items = [0, 3, 1, 100_000, 2, 0];
        for threads in [1, 2, 5] {
            let work = Lists {
                fails_at: u64::MAX,
                enough_at: 400,
                done: AtomicU64::new(0),
            };
            let wanted = items.map(|n| (0..n.min(401)).collect::<Vec<_>>());
            assert_eq!(in_pieces(&work, items, threads).unwrap(), wanted);
            assert!(work.done.into_inner() < 100_000, "{threads}");
        }
    }

    #[test]
    fn an_error_stops_the_others() {
        for threads in [1, 4] {
            let work = Lists {
                fails_at: 10,
                enough_at: u64::MAX,
                done: AtomicU64::new(0),
            };
            in_pieces(&work, [1_000_000, 1_000_000], threads).unwrap_err();
            assert!(work.done.into_inner() < 100_000, "{threads}");
        }
    }
}
