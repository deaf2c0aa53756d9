//! Writes segments at their places, in parallel.

mod read_ahead;
mod tasks;

use std::sync::OnceLock;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::execute::target::{NamedFile, copy, write_at};
use crate::execute::{Digesting, Executor, known_len};
use crate::format::{Segment, Written};
use crate::model::{Checksum, DigestKind, Over, Payload, TensorInfo, Want};
use crate::prelude::*;
use crate::threads;
use crate::transform::{Input, View, as_size, read_together};

use read_ahead::ReadAhead;
use tasks::{Task, divide};

/// Segments up to this length are put together in memory and written at once.
const SMALL: u64 = 256 << 10;
/// Padding with zeros from this length on is not written: a new file has them already.
const HOLE: u64 = 16 << 10;

/// Writes what lies inside `window`, of a file in which `starts` are the places of the segments, and gives what tensors
/// that begin there hash to, with the places of their segments.
///
/// Nothing else is read, but the rest of a tensor that is hashed, of a small segment, and of what cannot be entered anywhere.
#[cfg(feature = "scale")]
pub(super) fn write_window(
    executor: &Executor<'_>,
    segments: &[(u64, &Segment)],
    window: &super::spread::Window,
    file: NamedFile<'_>,
) -> Result<Vec<(usize, Checksum)>> {
    let mut placed = Vec::new();
    let mut numbers = Vec::new();
    for (number, (start, segment)) in segments.iter().enumerate() {
        let range = *start..window.end_of(executor.from, *start, segment)?;
        let begins = window.owns(range.start);
        let is_hashed = begins
            && matches!(
                segment,
                Segment::Tensor {
                    digest: Some(_),
                    ..
                }
            );
        if window.overlaps(&range) || is_hashed {
            let mut one = Placed::new(executor, segment, range)?;
            if let (What::Tensor(tensor), false) = (&mut one.what, begins) {
                tensor.digest = None;
            }
            placed.push(one);
            numbers.push(number);
        }
    }
    let job = Job {
        executor,
        file,
        window: window.range.clone(),
    };
    let work = |task: Task<'_>, scratch: &mut Scratch| job.task(task, scratch);
    let tasks = divide(&job, &placed)?;
    let all: Vec<_> = segments.iter().map(|(_, segment)| *segment).collect();
    let threads = executor.threads(all.iter().copied())?;
    threads::map(threads, tasks, work)?;
    let hashed = numbers.into_iter().zip(placed);
    Ok(hashed
        .filter_map(|(number, one)| Some((number, one.digest.into_inner()?)))
        .collect())
}

pub(super) fn write(
    executor: &mut Executor<'_>,
    segments: &[Segment],
    file: NamedFile<'_>,
) -> Result<()> {
    let mut placed = Vec::new();
    let mut end = executor.at;
    for segment in segments {
        let start = end;
        end += known_len(segment, executor.from, start)?
            .ok_or_else(|| Error::argument("a segment of unknown length"))?;
        if let Segment::Align { .. } = segment {
            executor.options.control.expect(end - start);
        }
        placed.push(Placed::new(executor, segment, start..end)?);
    }
    let job = Job {
        executor,
        file,
        window: 0..u64::MAX,
    };
    let work = |task: Task<'_>, scratch: &mut Scratch| job.task(task, scratch);
    let tasks = divide(&job, &placed)?;
    let threads = executor.threads(segments)?;
    threads::map(threads, tasks, work)?;
    for Placed {
        what,
        range,
        digest,
    } in placed
    {
        match what {
            What::Late => executor.late.push(range.start),
            What::Tensor(tensor) => executor.written.push(Written {
                index: tensor.index,
                part: tensor.part,
                raw_len: range.end - range.start,
                range,
                digest: digest.into_inner(),
                chunks: Vec::new(),
            }),
            What::Bytes(_) | What::Align(_) | What::Copy(_) => {}
        }
    }
    executor.at = end;
    Ok(())
}

/// A segment and its place.
struct Placed<'p> {
    what: What<'p>,
    range: Range<u64>,
    /// What a tensor hashes to, if that was asked for and it was written.
    digest: OnceLock<Checksum>,
}

/// A segment whose length is known.
enum What<'p> {
    Bytes(&'p [u8]),
    /// The byte that it is filled with.
    Align(u8),
    Copy(Payload),
    Late,
    Tensor(TensorPart<'p>),
}

/// A part of a tensor that is wanted in some form.
struct TensorPart<'p> {
    index: usize,
    info: &'p TensorInfo,
    part: usize,
    want: &'p Want,
    digest: Option<(DigestKind, Over)>,
}

impl<'p> Placed<'p> {
    fn new(executor: &Executor<'p>, segment: &'p Segment, range: Range<u64>) -> Result<Self> {
        let what = match segment {
            Segment::Bytes(bytes) => What::Bytes(bytes),
            Segment::Align { fill, .. } => What::Align(*fill),
            Segment::Copy { source, range } => What::Copy(Payload::Raw {
                source: *source,
                range: range.clone(),
            }),
            Segment::Late { .. } => What::Late,
            Segment::Tensor {
                index,
                part,
                want,
                digest,
                ..
            } => What::Tensor(TensorPart {
                index: *index,
                info: executor.tensor(*index)?,
                part: *part,
                want,
                digest: *digest,
            }),
            Segment::Chunks { .. } | Segment::Text { .. } | Segment::Computed(_) => {
                return Err(Error::argument("a segment of unknown length"));
            }
        };
        Ok(Self {
            what,
            range,
            digest: OnceLock::new(),
        })
    }

    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }
}

struct Job<'j, 'e> {
    executor: &'j Executor<'e>,
    file: NamedFile<'j>,
    /// Nothing outside of it is written.
    window: Range<u64>,
}

/// What a worker keeps between tasks.
#[derive(Default)]
struct Scratch {
    buffer: Vec<u8>,
    piece: Vec<u8>,
    read_ahead: ReadAhead,
}

impl<'e> Job<'_, 'e> {
    fn task(&self, task: Task<'_>, scratch: &mut Scratch) -> Result<()> {
        match task {
            Task::Together(segments) => self.together(segments, scratch),
            Task::Piece { of, from, len } => blame(of, self.piece(of, from, len, scratch)),
            Task::Tile { of, tensor, tile } => {
                blame(of, self.tile(of, tensor, tile, &mut scratch.piece))
            }
            Task::Whole { of, tensor } => blame(of, self.whole(of, tensor, &mut scratch.piece)),
        }
    }

    /// Whether others write the rest of the file.
    fn is_part(&self) -> bool {
        self.window != (0..u64::MAX)
    }

    /// What of a range, from `start` on, lies in the window.
    fn inside(&self, range: &Range<u64>, start: u64) -> Range<u64> {
        let from = range.start.max(self.window.start).min(range.end);
        let to = range.end.min(self.window.end).max(from);
        from - start..to - start
    }

    /// Writes what of some bytes lies in the window.
    fn put(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let inside = self.inside(&(at..at + bytes.len() as u64), at);
        let wanted = bytes.get(as_size(inside.start)?..as_size(inside.end)?);
        match wanted.unwrap_or_default() {
            [] => Ok(()),
            wanted => write_at(self.file, at + inside.start, wanted),
        }
    }

    fn advance(&self, bytes: usize) -> Result<()> {
        self.executor.options.control.advance(bytes as u64)
    }

    fn view(&self, tensor: &TensorPart<'_>) -> Result<View<'e>> {
        View::new(self.executor.data(), tensor.info, tensor.part, tensor.want)
    }

    fn tile(
        &self,
        of: &Placed<'_>,
        tensor: &TensorPart<'_>,
        tile: u64,
        piece: &mut Vec<u8>,
    ) -> Result<()> {
        let view = self.view(tensor)?;
        view.read_tile(tile, piece, &mut |at, bytes| {
            self.put(of.range.start + at, bytes)?;
            self.advance(bytes.len())
        })
    }

    /// Puts neighbouring segments together in memory and writes them at once.
    fn together(&self, segments: &[Placed<'_>], scratch: &mut Scratch) -> Result<()> {
        let mut start = segments.first().map_or(0, |first| first.range.start);
        scratch.buffer.clear();
        let known = self.read_late(segments)?;
        for (segment, known) in segments.iter().zip(known) {
            let end = segment.range.end;
            match &segment.what {
                What::Bytes(bytes) => scratch.buffer.extend_from_slice(bytes),
                // A part may be written where something else was before.
                What::Align(0) if segment.len() >= HOLE && !self.is_part() => {
                    self.flush(start, &mut scratch.buffer)?;
                    self.executor.options.control.advance(segment.len())?;
                    start = end;
                }
                What::Align(fill) => scratch.buffer.resize(as_size(end - start)?, *fill),
                // Not a part's to write: whoever puts them together may have done so already.
                What::Late if self.is_part() => {
                    self.flush(start, &mut scratch.buffer)?;
                    start = end;
                }
                What::Late => scratch.buffer.resize(as_size(end - start)?, 0),
                What::Copy(payload) => {
                    let input = self.executor.data().input(payload)?;
                    scratch.read_ahead.read(&input, &mut scratch.piece)?;
                    scratch.buffer.extend_from_slice(&scratch.piece);
                }
                What::Tensor(tensor) => {
                    blame(segment, self.small(segment, tensor, known, scratch))?;
                    scratch.buffer.extend_from_slice(&scratch.piece);
                }
            }
        }
        self.flush(start, &mut scratch.buffer)
    }

    /// The bytes of tensors that are stored as they are wanted, where answers come late.
    fn read_late(&self, segments: &[Placed<'_>]) -> Result<Vec<Option<Bytes>>> {
        if self.executor.from.waiting().is_none() {
            return Ok(segments.iter().map(|_| None).collect());
        }
        let views: Vec<Option<View<'_>>> = segments
            .iter()
            .map(|segment| match &segment.what {
                What::Tensor(tensor) => self.view(tensor).ok(),
                _ => None,
            })
            .collect();
        let inputs: Vec<_> = views
            .iter()
            .map(|view| view.as_ref().and_then(View::direct))
            .collect();
        read_together(&inputs)
    }

    /// Reads and hashes a tensor that is small.
    fn small(
        &self,
        of: &Placed<'_>,
        tensor: &TensorPart<'_>,
        known: Option<Bytes>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let view = self.view(tensor)?;
        match view.direct() {
            Some(input) => match known {
                Some(known) => scratch.piece = known.to_vec(),
                None => scratch.read_ahead.read(input, &mut scratch.piece)?,
            },
            None => scratch.piece = view.collect(u64::MAX)?,
        }
        let mut sum = Digesting::new(tensor.digest)?;
        sum.update(&scratch.piece);
        of.hashed(sum);
        Ok(())
    }

    /// Writes what was put together.
    fn flush(&self, at: u64, bytes: &mut Vec<u8>) -> Result<()> {
        if !bytes.is_empty() {
            self.put(at, bytes)?;
            self.advance(bytes.len())?;
            bytes.clear();
        }
        Ok(())
    }

    /// Writes `from..from + len` of a large segment.
    fn piece(&self, of: &Placed<'_>, from: u64, len: u64, scratch: &mut Scratch) -> Result<()> {
        let at = of.range.start + from;
        let control = &self.executor.options.control;
        let buffer = &mut scratch.buffer;
        let mut copy = |input: &Input<'_>| copy(input, from, len, self.file, at, buffer, control);
        let tensor = match &of.what {
            What::Tensor(tensor) => tensor,
            What::Copy(payload) => return copy(&self.executor.data().input(payload)?),
            What::Align(fill) => {
                buffer.clear();
                buffer.resize(as_size(len.min(SMALL))?, *fill);
                let mut place = at;
                while place < at + len {
                    let step = as_size((at + len - place).min(SMALL))?;
                    self.put(place, buffer.get(..step).unwrap_or_default())?;
                    self.advance(step)?;
                    place += step as u64;
                }
                return Ok(());
            }
            What::Bytes(_) | What::Late => return Ok(()),
        };
        let view = self.view(tensor)?;
        if let Some(input) = view.direct() {
            return copy(input);
        }
        // The pieces of the view that begin here: each belongs to one task, wherever the tasks are cut.
        let step = view.piece();
        let mut place = from.next_multiple_of(step);
        while place < from + len {
            let len = step.min(view.len() - place);
            view.read(place, len, &mut scratch.piece)?;
            self.put(of.range.start + place, &scratch.piece)?;
            control.advance(len)?;
            place += len;
        }
        Ok(())
    }

    /// Writes a tensor from its beginning to its end, hashing it on the way.
    fn whole(&self, of: &Placed<'_>, tensor: &TensorPart<'_>, piece: &mut Vec<u8>) -> Result<()> {
        let view = self.view(tensor)?;
        let mut sum = Digesting::new(tensor.digest)?;
        let mut pieces = view.pieces()?;
        let mut at = of.range.start;
        while pieces.next(piece)? {
            sum.update(piece);
            self.put(at, piece)?;
            at += piece.len() as u64;
            self.advance(piece.len())?;
            if at >= self.window.end && tensor.digest.is_none() {
                break;
            }
        }
        of.hashed(sum);
        Ok(())
    }
}

impl Placed<'_> {
    fn hashed(&self, sum: Digesting) {
        if let Some(digest) = sum.finish() {
            // One task writes it, and once.
            let _ = self.digest.set(digest);
        }
    }
}

/// Says in which tensor an error happened.
fn blame(of: &Placed<'_>, result: Result<()>) -> Result<()> {
    match &of.what {
        What::Tensor(tensor) => result.map_err(|error| error.in_tensor(&tensor.info.name)),
        _ => result,
    }
}
