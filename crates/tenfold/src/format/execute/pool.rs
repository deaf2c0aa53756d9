//! Work on several threads with the results in order.

#[cfg(feature = "std")]
use crate::error::Error;
use crate::error::Result;
#[cfg(feature = "std")]
use crate::prelude::*;

/// Jobs go in, results come out in the same order. At most two jobs for each thread are under way.
///
/// Every worker has a line of its own, and jobs are dealt out in turn: so are the results collected.
pub(super) struct Pool<'p, J, R> {
    work: &'p (dyn Fn(J) -> Result<R> + Sync),
    #[cfg(feature = "std")]
    lines: Vec<Line<J, R>>,
    /// Jobs that were given out and results that were taken.
    #[cfg(feature = "std")]
    given: usize,
    #[cfg(feature = "std")]
    taken: usize,
}

#[cfg(feature = "std")]
struct Line<J, R> {
    jobs: std::sync::mpsc::SyncSender<J>,
    results: std::sync::mpsc::Receiver<Result<R>>,
}

/// Jobs and results that wait in one worker's line.
#[cfg(feature = "std")]
const DEPTH: usize = 2;

/// Runs `body` with a pool of workers that each do `work`.
pub(super) fn with_pool<J: Send, R: Send, T>(
    threads: usize,
    work: &(dyn Fn(J) -> Result<R> + Sync),
    body: impl FnOnce(&mut Pool<'_, J, R>) -> Result<T>,
) -> Result<T> {
    #[cfg(feature = "std")]
    if threads > 1 {
        return std::thread::scope(|scope| {
            let lines = (0..threads)
                .map(|_| {
                    let (jobs, waiting) = std::sync::mpsc::sync_channel::<J>(DEPTH);
                    let (done, results) = std::sync::mpsc::sync_channel(DEPTH);
                    scope.spawn(move || {
                        // Ends when the pool is dropped: then nobody sends, or nobody listens.
                        waiting.iter().try_for_each(|job| done.send(work(job)))
                    });
                    Line { jobs, results }
                })
                .collect();
            body(&mut Pool {
                work,
                lines,
                given: 0,
                taken: 0,
            })
        });
    }
    let _ = threads;
    body(&mut Pool {
        work,
        #[cfg(feature = "std")]
        lines: Vec::new(),
        #[cfg(feature = "std")]
        given: 0,
        #[cfg(feature = "std")]
        taken: 0,
    })
}

impl<J, R> Pool<'_, J, R> {
    /// Gives out a job; takes the oldest result first when all lines are full.
    pub(super) fn submit(
        &mut self,
        job: J,
        mut consume: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        #[cfg(feature = "std")]
        if !self.lines.is_empty() {
            if self.given - self.taken >= self.lines.len() * DEPTH {
                consume(self.take()?)?;
            }
            let line = self.given % self.lines.len();
            self.given += 1;
            let line = self.lines.get(line).ok_or_else(gone)?;
            return line.jobs.send(job).map_err(|_| gone());
        }
        consume((self.work)(job)?)
    }

    /// Takes the results that are still under way.
    pub(super) fn drain(&mut self, mut consume: impl FnMut(R) -> Result<()>) -> Result<()> {
        let _ = &mut consume;
        #[cfg(feature = "std")]
        while self.taken < self.given {
            consume(self.take()?)?;
        }
        Ok(())
    }

    #[cfg(feature = "std")]
    fn take(&mut self) -> Result<R> {
        let line = self
            .lines
            .get(self.taken % self.lines.len())
            .ok_or_else(gone)?;
        self.taken += 1;
        line.results.recv().map_err(|_| gone())?
    }
}

#[cfg(feature = "std")]
fn gone() -> Error {
    Error::new(
        crate::ErrorKind::Io,
        "worker",
        "a worker thread ended before its work",
    )
}
