//! Work that is done in steps, where nobody can wait for all of it: a browser has one thread, and a page to keep alive.

use super::Control;
use super::in_pieces::{Half, InPieces, go_on, in_pieces};
use crate::error::Result;
use crate::prelude::*;

/// How far work has come that is done in steps.
///
/// ```
/// use tenfold::{ArchiveBuilder, Bytes, model::DType, ops};
/// let mut builder = ArchiveBuilder::new();
/// builder.push("x", DType::U8, &[4], Bytes::from_static(&[1, 0, 3, 4]))?;
/// let mut steps = ops::StatsSteps::new(&builder.finish(), &Default::default());
/// loop {
///     let progress = steps.step(1 << 20)?;
///     println!("{} of {} bytes", progress.done, progress.total);
///     if progress.is_finished {
///         break;
///     }
///     // Here is time for everything else, and to stop: who does not want the result does not ask for more steps.
/// }
/// assert_eq!(steps.finish()?.total.zeros, 1);
/// # Ok::<(), tenfold::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes that are done.
    pub done: u64,
    /// Bytes that will be done, as far as that is known.
    pub total: u64,
    /// Whether nothing is left to do.
    pub is_finished: bool,
}

/// How much is done before the caller goes on.
pub(crate) enum Pace<'c> {
    /// Everything, on so many threads.
    All { threads: usize },
    /// Pieces, until the control has counted so many bytes.
    Until { control: &'c Control, done: u64 },
}

impl<'c> Pace<'c> {
    /// About so many bytes, but a piece at least.
    pub(crate) fn about(budget: u64, control: &'c Control) -> Self {
        let done = control.done().saturating_add(budget);
        Self::Until { control, done }
    }

    /// Whether it is enough for now.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::All { .. } => false,
            Self::Until { control, done } => control.done() >= *done,
        }
    }
}

impl Progress {
    pub(crate) fn of(control: &Control, is_finished: bool) -> Self {
        Self {
            done: control.done(),
            total: control.total(),
            is_finished,
        }
    }
}

/// What has come of items so far. It holds nothing of what was opened, so that it can be kept anywhere.
pub(crate) struct Steps<O> {
    /// Of the items that are done.
    outcomes: Vec<O>,
    /// Of the one after them, if it was begun: its next piece, and what came of those before.
    begun: Option<(u64, O)>,
}

impl<O> Default for Steps<O> {
    fn default() -> Self {
        Self {
            outcomes: Vec::new(),
            begun: None,
        }
    }
}

impl<O: Send> Steps<O> {
    /// Goes on with items, which must be the same as before. The outcomes, when there are all of them.
    pub(crate) fn go_on<W: InPieces<Outcome = O>>(
        &mut self,
        work: &W,
        items: impl IntoIterator<Item = W::Item, IntoIter: Send>,
        pace: &Pace<'_>,
    ) -> Result<Option<Vec<O>>> {
        let items = items.into_iter().skip(self.outcomes.len());
        let mut items = items.peekable();
        let mut scratch = W::Scratch::default();
        loop {
            if let (Pace::All { threads }, None) = (pace, &self.begun) {
                self.outcomes.extend(in_pieces(work, items, *threads)?);
                break;
            }
            let Some(item) = items.next() else { break };
            match go_on(work, item, self.begun.take(), &mut scratch, || {
                pace.is_over()
            })? {
                Half::Done(outcome) => self.outcomes.push(outcome),
                Half::Begun(next, outcome) => self.begun = Some((next, outcome)),
            }
            if self.begun.is_some() || pace.is_over() && items.peek().is_some() {
                return Ok(None);
            }
        }
        Ok(Some(core::mem::take(&mut self.outcomes)))
    }
}
