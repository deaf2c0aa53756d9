//! Writes segments one after the other; workers prepare the pieces.

mod jobs;
mod make;

use jobs::{Jobs, Of, Origin, Recut, Small, Unit, Unmade};
use make::{Change, Piece, Ready, make_all};

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::execute::target::Target;
use crate::execute::{Digesting, Executor, padding, tensor};
use crate::format::{Segment, Written};
use crate::model::Codec;
use crate::prelude::*;
use crate::threads;
use crate::transform::{DEFLATE_END, PIECE, as_size, seek_table};

/// Bytes of pieces, as they are stored and before.
type Frames = Vec<(u32, u32)>;

pub(super) fn write(
    executor: &mut Executor<'_>,
    segments: &[Segment],
    target: &mut Target<'_>,
) -> Result<()> {
    let (from, options) = (executor.from, executor.options);
    let data = executor.data();
    let threads = threads_for(executor, segments)?;
    let mut writer = Writer {
        executor,
        target,
        part: None,
    };
    // Asked here too: what waits in line behind a stop need not be done.
    let check = || options.control.check();
    let work = |units| check().and_then(|()| make_all(units, from, &check));
    let mut segments = segments.iter();
    loop {
        let mut jobs = Jobs::new(from, data, &mut segments);
        let line = core::iter::from_fn(|| jobs.next().transpose());
        threads::in_order(threads, line, work, |ready| writer.put_all(ready))?;
        // What can only be read from the beginning is read by one thread, in front of those that work on it.
        let Some((of, view)) = jobs.in_order else {
            return Ok(());
        };
        let of = Arc::new(of);
        let mut cut = Recut::new(&view, as_size(of.wanted(&view))?)
            .map_err(|error| blame(error, from, &of))?;
        let before = &mut jobs.before;
        let line = core::iter::from_fn(|| {
            let piece = cut.next().transpose()?;
            Some(piece.map(|piece| {
                let piece = Unmade {
                    of: of.clone(),
                    origin: Origin::Decoded(piece),
                    is_last: false,
                };
                vec![Unit {
                    before: core::mem::take(before),
                    piece: Some(piece),
                }]
            }))
        });
        let line = line.map(|units| units.map_err(|error| blame(error, from, &of)));
        threads::in_order(threads, line, work, |ready| writer.put_all(ready))?;
        let last = Unmade {
            of: of.clone(),
            origin: Origin::Nowhere,
            is_last: true,
        };
        let last = Unit {
            before: core::mem::take(before),
            piece: Some(last),
        };
        writer.put_all(work(vec![last])?)?;
    }
}

/// On how many threads it is done.
fn threads_for(executor: &Executor<'_>, segments: &[Segment]) -> Result<usize> {
    let threads = executor.threads(segments)?;
    if threads > 0 {
        return Ok(threads);
    }
    // They are not worth their while for little.
    let mut all = 0u64;
    for segment in segments {
        all = all.saturating_add(super::work(segment, executor.from)?);
    }
    Ok(usize::from(all <= PIECE as u64))
}

/// Says in which tensor an error happened.
fn blame(error: Error, from: &Archive, of: &Of<'_>) -> Error {
    let info = of.tensor.and_then(|(index, _)| tensor(from, index).ok());
    match info {
        Some(info) => error.in_tensor(&info.name),
        None => error,
    }
}

struct Writer<'w, 'e, 's> {
    executor: &'w mut Executor<'e>,
    target: &'w mut Target<'s>,
    /// The part that is being written.
    part: Option<Part>,
}

/// What is known of a part while it is written.
struct Part {
    start: u64,
    sum: Digesting,
    frames: Frames,
}

impl Writer<'_, '_, '_> {
    fn put_all(&mut self, ready: Vec<Ready<'_>>) -> Result<()> {
        ready.into_iter().try_for_each(|ready| self.put_unit(ready))
    }

    fn put_unit(&mut self, ready: Ready<'_>) -> Result<()> {
        for small in ready.before {
            match small {
                Small::Bytes(bytes) => self.put(bytes)?,
                Small::Align { to, fill } => {
                    let len = padding(self.executor.at, to);
                    self.executor.options.control.expect(len);
                    self.fill(len, fill)?;
                }
                Small::Late(len) => {
                    let at = self.executor.at;
                    self.executor.late.push(at);
                    self.fill(len, 0)?;
                }
            }
        }
        let Some((of, piece, is_last)) = ready.piece else {
            return Ok(());
        };
        let written = self.piece(&of, piece, is_last);
        written.map_err(|error| blame(error, self.executor.from, &of))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(bytes)?;
        self.executor.options.control.advance(bytes.len() as u64)
    }

    /// Writes bytes that are counted otherwise.
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.target.write(self.executor.at, bytes)?;
        self.executor.at += bytes.len() as u64;
        Ok(())
    }

    /// Writes `left` times the same byte.
    fn fill(&mut self, mut left: u64, byte: u8) -> Result<()> {
        while left > 0 {
            let n = left.min(64 << 10);
            self.put(&vec![byte; as_size(n)?])?;
            left -= n;
        }
        Ok(())
    }

    /// Writes a piece, and after the last one notes where the part is.
    fn piece(&mut self, of: &Of<'_>, piece: Option<Piece>, is_last: bool) -> Result<()> {
        let mut part = match self.part.take() {
            Some(part) => part,
            None => Part {
                start: self.executor.at,
                sum: Digesting::new(of.digest)?,
                frames: Vec::new(),
            },
        };
        if let Some(piece) = piece {
            (part.sum).update(piece.decoded.as_deref().unwrap_or(&piece.stored));
            part.frames.push((
                as_u32(piece.stored.len() as u64)?,
                as_u32(piece.decoded_len)?,
            ));
            self.write(&piece.stored)?;
            // What goes in is known beforehand, what comes out is not.
            self.executor.options.control.advance(piece.decoded_len)?;
        }
        if !is_last {
            self.part = Some(part);
            return Ok(());
        }
        let end = match of.codec() {
            Some(Codec::ZstdSeekable { .. }) => seek_table(&part.frames),
            Some(Codec::Deflate { .. }) => DEFLATE_END.to_vec(),
            Some(Codec::Zlib { .. } | Codec::Zstd { .. }) | None => Vec::new(),
        };
        if !part.sum.wants_decoded() {
            part.sum.update(&end);
        }
        self.write(&end)?;
        let Some((index, number)) = of.tensor else {
            return Ok(());
        };
        self.executor.written.push(Written {
            index,
            part: number,
            range: part.start..self.executor.at,
            raw_len: of.raw_len,
            digest: part.sum.finish(),
            chunks: match of.change {
                Change::Filter(_) => (part.frames.into_iter())
                    .map(|(stored, _)| stored)
                    .collect(),
                Change::Keep | Change::Encode(_) | Change::Spell(_) => Vec::new(),
            },
        });
        Ok(())
    }
}

fn as_u32(len: u64) -> Result<u32> {
    u32::try_from(len)
        .map_err(|cause| Error::limit("frame", format!("a frame of {len} bytes")).because(cause))
}
