//! Writes segments at their places, in parallel.

mod tasks;
mod window;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::format::execute::target::{NamedFile, copy, write_at};
use crate::format::execute::{Digesting, ExecuteOptions, Progress, known_len, tensor};
use crate::format::{Segment, Written};
use crate::model::{Checksum, Payload};
use crate::prelude::*;
use crate::threads::thread_count;
use crate::transform::{Input, View, as_size};

use tasks::Task;
use window::Window;

/// Segments up to this length are gathered in memory and written together.
const SMALL: u64 = 256 << 10;
/// Padding with zeros from this length on is not written: a new file has them already.
const HOLE: u64 = 16 << 10;
pub(super) fn write(
    run: &[Segment],
    from: &Archive,
    file: NamedFile<'_>,
    at: u64,
    progress: &mut Progress,
    options: &ExecuteOptions,
) -> Result<u64> {
    let mut places = vec![at];
    let mut end = at;
    for segment in run {
        end += known_len(segment, from, end)?
            .ok_or_else(|| Error::argument("a segment of unknown length"))?;
        places.push(end);
    }
    let job = Job {
        run,
        places: &places,
        from,
        file,
        options,
    };
    let paddings = run.iter().enumerate();
    for (segment, _) in paddings.filter(|(_, what)| matches!(what, Segment::Align { .. })) {
        let padding = job.range(segment);
        options.control.expect(padding.end - padding.start);
    }
    let tasks = job.tasks()?;
    let digests = job.carry_out(&tasks)?;
    for (segment, what) in run.iter().enumerate() {
        if let Segment::Late { .. } = what {
            progress.late.push(job.range(segment).start);
        }
        if let &Segment::Tensor { index, part, .. } = what {
            let range = job.range(segment);
            let raw_len = range.end - range.start;
            let digest = digests.get(&segment).cloned();
            progress.written.push(Written {
                index,
                part,
                range,
                raw_len,
                digest,
            });
        }
    }
    Ok(end)
}

struct Job<'j> {
    run: &'j [Segment],
    /// Where each segment begins, and where the last one ends.
    places: &'j [u64],
    from: &'j Archive,
    file: NamedFile<'j>,
    options: &'j ExecuteOptions,
}

/// What a worker keeps between tasks.
#[derive(Default)]
struct Scratch {
    buffer: Vec<u8>,
    piece: Vec<u8>,
    window: Window,
}

impl Job<'_> {
    fn range(&self, segment: usize) -> Range<u64> {
        let place = |n: usize| self.places.get(n).copied().unwrap_or_default();
        place(segment)..place(segment + 1)
    }

    /// Lets workers take tasks until none is left or one failed; gives the hashes that were asked for, by segment.
    fn carry_out(&self, tasks: &[Task]) -> Result<LookupMap<usize, Checksum>> {
        let next = AtomicUsize::new(0);
        let failed = Mutex::new(None);
        let digests = Mutex::new(LookupMap::default());
        let work = || {
            let mut scratch = Scratch::default();
            while let Some(task) = tasks.get(next.fetch_add(1, Relaxed)) {
                match self.task(task, &mut scratch) {
                    Ok(found) if found.is_empty() => {}
                    Ok(found) => lock(&digests).extend(found),
                    Err(error) => {
                        lock(&failed).get_or_insert(error);
                        next.store(tasks.len(), Relaxed);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..thread_count(self.options.threads).min(tasks.len()) {
                scope.spawn(work);
            }
            work();
        });
        match lock(&failed).take() {
            Some(error) => Err(error),
            None => Ok(core::mem::take(&mut *lock(&digests))),
        }
    }

    fn task(&self, task: &Task, scratch: &mut Scratch) -> Result<Vec<(usize, Checksum)>> {
        match task {
            Task::Gather { segments } => self.gather(segments.clone(), scratch),
            Task::Share { segment, from, len } => self
                .share(*segment, *from, *len, scratch)
                .map(|()| Vec::new())
                .map_err(|error| self.blame(*segment, error)),
            Task::Tile { segment, tile } => self
                .tile(*segment, *tile, scratch)
                .map(|()| Vec::new())
                .map_err(|error| self.blame(*segment, error)),
            Task::Whole { segment } => self
                .whole(*segment, scratch)
                .map_err(|error| self.blame(*segment, error)),
        }
    }

    /// Says in which tensor an error happened.
    fn blame(&self, segment: usize, error: Error) -> Error {
        match self.run.get(segment) {
            Some(Segment::Tensor { index, .. }) => match tensor(self.from, *index) {
                Ok(tensor) => error.in_tensor(&tensor.name),
                Err(_) => error,
            },
            _ => error,
        }
    }

    fn tile(&self, segment: usize, tile: u64, scratch: &mut Scratch) -> Result<()> {
        let start = self.range(segment).start;
        let view = self.view(segment)?;
        view.read_tile(tile, &mut scratch.piece, &mut |at, bytes| {
            write_at(self.file, start + at, bytes)?;
            self.options.control.advance(bytes.len() as u64)
        })
    }

    /// Puts neighbouring segments together in memory and writes them at once.
    fn gather(
        &self,
        segments: Range<usize>,
        scratch: &mut Scratch,
    ) -> Result<Vec<(usize, Checksum)>> {
        let mut start = self.range(segments.start).start;
        let mut digests = Vec::new();
        scratch.buffer.clear();
        for segment in segments {
            let range = self.range(segment);
            let len = range.end - range.start;
            match self.run.get(segment) {
                Some(Segment::Bytes(bytes)) => scratch.buffer.extend_from_slice(bytes),
                Some(Segment::Align { fill: 0, .. }) if len >= HOLE => {
                    self.flush(start, &mut scratch.buffer)?;
                    self.options.control.advance(len)?;
                    start = range.end;
                }
                Some(Segment::Align { fill, .. }) => {
                    let len = as_size(range.end - start)?;
                    scratch.buffer.resize(len, *fill);
                }
                Some(Segment::Late { .. }) => {
                    let len = as_size(range.end - start)?;
                    scratch.buffer.resize(len, 0);
                }
                Some(Segment::Copy { .. }) => {
                    let input = self.copied(segment)?;
                    scratch.window.read(&input, &mut scratch.piece)?;
                    scratch.buffer.extend_from_slice(&scratch.piece);
                }
                Some(Segment::Tensor { digest, .. }) => {
                    let view = self.view(segment)?;
                    let mut sum = Digesting::new(*digest)?;
                    match view.direct() {
                        Some(input) => scratch.window.read(input, &mut scratch.piece),
                        None => view.collect(u64::MAX).map(|all| scratch.piece = all),
                    }
                    .map_err(|error| self.blame(segment, error))?;
                    sum.update(&scratch.piece);
                    digests.extend(sum.finish().map(|digest| (segment, digest)));
                    scratch.buffer.extend_from_slice(&scratch.piece);
                }
                _ => {}
            }
        }
        self.flush(start, &mut scratch.buffer)?;
        Ok(digests)
    }

    /// Writes what was gathered.
    fn flush(&self, at: u64, gathered: &mut Vec<u8>) -> Result<()> {
        if !gathered.is_empty() {
            write_at(self.file, at, gathered)?;
            self.options.control.advance(gathered.len() as u64)?;
            gathered.clear();
        }
        Ok(())
    }

    /// Writes a part of a large tensor.
    fn share(&self, segment: usize, from: u64, len: u64, scratch: &mut Scratch) -> Result<()> {
        let at = self.range(segment).start + from;
        let mut copy = |input: &Input<'_>| {
            let control = &self.options.control;
            copy(
                input,
                from,
                len,
                self.file,
                at,
                &mut scratch.buffer,
                control,
            )
        };
        if let Some(Segment::Copy { .. }) = self.run.get(segment) {
            return copy(&self.copied(segment)?);
        }
        let view = self.view(segment)?;
        if let Some(input) = view.direct() {
            return copy(input);
        }
        // The pieces that begin in this share: each belongs to one share, wherever the shares are cut.
        let step = view.piece();
        let mut place = from.next_multiple_of(step);
        while place < from + len {
            let piece = step.min(view.len() - place);
            view.read(place, piece, &mut scratch.piece)?;
            write_at(self.file, at - from + place, &scratch.piece)?;
            self.options.control.advance(piece)?;
            place += piece;
        }
        Ok(())
    }

    /// Writes a tensor from its beginning to its end, hashing it on the way.
    fn whole(&self, segment: usize, scratch: &mut Scratch) -> Result<Vec<(usize, Checksum)>> {
        let Some(Segment::Tensor { digest, .. }) = self.run.get(segment) else {
            return Ok(Vec::new());
        };
        let view = self.view(segment)?;
        let mut sum = Digesting::new(*digest)?;
        let mut pieces = view.pieces()?;
        let mut at = self.range(segment).start;
        while pieces.next(&mut scratch.piece)? {
            sum.update(&scratch.piece);
            write_at(self.file, at, &scratch.piece)?;
            at += scratch.piece.len() as u64;
            self.options.control.advance(scratch.piece.len() as u64)?;
        }
        Ok(sum
            .finish()
            .map(|digest| (segment, digest))
            .into_iter()
            .collect())
    }

    /// The bytes of a segment that is copied from one of the source's files.
    fn copied(&self, segment: usize) -> Result<Input<'_>> {
        let Some(Segment::Copy { source, range }) = self.run.get(segment) else {
            return Err(Error::argument("not a copy"));
        };
        let (source, range) = (*source, range.clone());
        self.from.data().input(&Payload::Raw { source, range })
    }

    fn view(&self, segment: usize) -> Result<View<'_>> {
        let Some(Segment::Tensor {
            index, part, want, ..
        }) = self.run.get(segment)
        else {
            return Err(Error::argument("not a tensor"));
        };
        let data = self.from.data().counted(&self.options.tally);
        View::new(data, tensor(self.from, *index)?, *part, want)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A worker that panicked is reported by the scope; what it guarded is whole all the same.
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
