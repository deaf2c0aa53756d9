//! Writes segments one after the other; workers prepare the pieces.

use crate::error::{Error, Result};
use crate::execute::target::Target;
use crate::execute::{Digesting, Executor, padding};
use crate::format::{Segment, Spell, Want, Written};
use crate::model::{Checksum, Codec, Filter, Payload, SourceId};
use crate::prelude::*;
use crate::threads;
use crate::transform::{
    Check, DEFLATE_END, PIECE, Pieces, View, apply_filters, as_size, encode, encode_deflate,
    seek_table,
};

/// A piece to be prepared.
enum Job {
    /// Bytes of a view that are read and transformed by the worker.
    Read { at: u64, len: u64 },
    /// Decoded already, because its stream could only be read from the beginning.
    Decoded(Vec<u8>),
}

/// Bytes of pieces, as they are stored and before.
type Frames = Vec<(u32, u32)>;

/// A piece that is ready to be written.
struct Piece {
    stored: Vec<u8>,
    /// The bytes before compression, where a hash over them is wanted.
    decoded: Option<Vec<u8>>,
    decoded_len: u64,
}

/// What is done to the bytes of a tensor before they are written.
#[derive(Clone, Copy)]
enum Change<'s> {
    Keep,
    Encode(Codec),
    /// Each piece is a chunk, and goes through these by itself.
    Filter(&'s [Filter]),
    Spell(Spell),
}

pub(super) fn write(
    executor: &mut Executor<'_>,
    segments: &[Segment],
    target: &mut Target<'_>,
) -> Result<()> {
    let mut writer = Writer { executor, target };
    for segment in segments {
        match segment {
            Segment::Bytes(bytes) => writer.put(bytes)?,
            Segment::Align { to, fill } => {
                let len = padding(writer.executor.at, *to);
                writer.executor.options.control.expect(len);
                writer.fill(len, *fill)?;
            }
            Segment::Copy { source, range } => writer.copy(*source, range.clone())?,
            Segment::Late { len, .. } => {
                let at = writer.executor.at;
                writer.executor.late.push(at);
                writer.fill(*len, 0)?;
            }
            Segment::Tensor {
                index,
                part,
                want,
                codec,
                digest,
            } => {
                let change = codec.map_or(Change::Keep, Change::Encode);
                let sum = Digesting::new(*digest)?;
                writer.tensor(*index, *part, want, change, sum)?;
            }
            Segment::Chunks {
                index,
                dtype,
                sides,
                filters,
            } => {
                let info = writer.executor.tensor(*index)?;
                let view = View::tiled(writer.executor.data(), info, *dtype, sides);
                let view = view.map_err(|error| error.in_tensor(&info.name))?;
                let sum = Digesting::new(None)?;
                writer.view((*index, 0), &view, Change::Filter(filters), sum)?;
            }
            Segment::Text { index, form, spell } => {
                let sum = Digesting::new(None)?;
                writer.tensor(*index, 0, &Want::Dense(*form), Change::Spell(*spell), sum)?;
            }
            Segment::Computed(_) => return Err(Error::argument("a computed segment in a run")),
        }
    }
    Ok(())
}

struct Writer<'w, 'e, 's> {
    executor: &'w mut Executor<'e>,
    target: &'w mut Target<'s>,
}

impl Writer<'_, '_, '_> {
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

    /// Writes bytes of one of the source's files.
    fn copy(&mut self, source: SourceId, range: Range<u64>) -> Result<()> {
        let payload = Payload::Raw { source, range };
        let input = self.executor.data().input(&payload)?;
        let mut piece = Vec::new();
        let mut at = 0;
        while at < input.len() {
            piece.resize(as_size((input.len() - at).min(PIECE as u64 / 4))?, 0);
            input.read_into(at, &mut piece)?;
            self.put(&piece)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Writes one tensor's part, and notes where.
    fn tensor(
        &mut self,
        index: usize,
        part: usize,
        want: &Want,
        change: Change<'_>,
        sum: Digesting,
    ) -> Result<()> {
        let info = self.executor.tensor(index)?;
        let view = View::new(self.executor.data(), info, part, want)?;
        self.view((index, part), &view, change, sum)
    }

    /// Writes a view of a tensor's part, and notes where.
    fn view(
        &mut self,
        (index, part): (usize, usize),
        view: &View<'_>,
        change: Change<'_>,
        sum: Digesting,
    ) -> Result<()> {
        let info = self.executor.tensor(index)?;
        let start = self.executor.at;
        let (digest, frames) = self
            .pieces(view, change, sum)
            .map_err(|error| error.in_tensor(&info.name))?;
        self.executor.written.push(Written {
            index,
            part,
            range: start..self.executor.at,
            raw_len: view.len(),
            digest,
            chunks: match change {
                Change::Filter(_) => frames.into_iter().map(|(stored, _)| stored).collect(),
                Change::Keep | Change::Encode(_) | Change::Spell(_) => Vec::new(),
            },
        });
        Ok(())
    }

    /// Writes a view piece by piece.
    fn pieces(
        &mut self,
        view: &View<'_>,
        change: Change<'_>,
        mut sum: Digesting,
    ) -> Result<(Option<Checksum>, Frames)> {
        let codec = match change {
            Change::Encode(codec) => Some(codec),
            Change::Keep | Change::Filter(_) | Change::Spell(_) => None,
        };
        let keep_decoded = sum.wants_decoded() && codec.is_some();
        // The pieces of a codec are its frames, so that the bytes do not depend on where the data comes from.
        let wanted = match codec {
            Some(Codec::ZstdSeekable { frame, .. }) => u64::from(frame),
            Some(Codec::Deflate { .. } | Codec::Zstd { .. }) => PIECE as u64,
            None if matches!(change, Change::Filter(_)) => view.step(),
            None => view.piece(),
        };
        let options = self.executor.options;
        let mut frames = Vec::new();
        let work = |job: Job| {
            // Asked here too: what waits in line behind a stop need not be done.
            let check = || options.control.check();
            check()?;
            let decoded = match job {
                Job::Read { at, len } => {
                    let mut piece = Vec::new();
                    view.read(at, len, &mut piece)?;
                    piece
                }
                Job::Decoded(piece) => piece,
            };
            change.apply(decoded, keep_decoded, &check)
        };
        let consume = |piece: Piece| {
            sum.update(piece.decoded.as_deref().unwrap_or(&piece.stored));
            frames.push((
                as_u32(piece.stored.len() as u64)?,
                as_u32(piece.decoded_len)?,
            ));
            self.write(&piece.stored)?;
            // What goes in is known beforehand, what comes out is not.
            options.control.advance(piece.decoded_len)
        };
        // Threads are not worth their while for a single piece.
        let threads = if view.len() <= wanted {
            1
        } else {
            options.threads
        };
        if view.len() == 0 && matches!(codec, Some(Codec::Zstd { .. })) {
            // Nothing is a frame too.
            let nothing = [Ok(Job::Decoded(Vec::new()))];
            threads::in_order(threads, nothing.into_iter(), work, consume)?;
        } else if view.is_random() && wanted % view.step() == 0 {
            let places = (0..view.len()).step_by(as_size(wanted)?);
            let jobs = places.map(|at| {
                let len = wanted.min(view.len() - at);
                Ok(Job::Read { at, len })
            });
            threads::in_order(threads, jobs, work, consume)?;
        } else {
            let mut cut = Recut::new(view, as_size(wanted)?)?;
            let jobs = core::iter::from_fn(|| cut.next().transpose());
            let jobs = jobs.map(|piece| piece.map(Job::Decoded));
            threads::in_order(threads, jobs, work, consume)?;
        }
        let end = match codec {
            Some(Codec::ZstdSeekable { .. }) => seek_table(&frames),
            Some(Codec::Deflate { .. }) => DEFLATE_END.to_vec(),
            Some(Codec::Zstd { .. }) | None => Vec::new(),
        };
        if !sum.wants_decoded() {
            sum.update(&end);
        }
        self.write(&end)?;
        Ok((sum.finish(), frames))
    }
}

/// The bytes of a view that is read in order, in pieces of another length.
struct Recut<'v> {
    pieces: Pieces<'v>,
    len: usize,
    piece: Vec<u8>,
    left: Vec<u8>,
}

impl<'v> Recut<'v> {
    fn new(view: &'v View<'v>, len: usize) -> Result<Self> {
        Ok(Self {
            pieces: view.pieces()?,
            len,
            piece: Vec::new(),
            left: Vec::new(),
        })
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        while self.left.len() < self.len && self.pieces.next(&mut self.piece)? {
            self.left.extend_from_slice(&self.piece);
        }
        let rest = self.left.split_off(self.left.len().min(self.len));
        let piece = core::mem::replace(&mut self.left, rest);
        Ok((!piece.is_empty()).then_some(piece))
    }
}

impl Change<'_> {
    /// What a worker does with the bytes of a piece.
    fn apply(self, decoded: Vec<u8>, keep_decoded: bool, check: Check<'_>) -> Result<Piece> {
        let decoded_len = decoded.len() as u64;
        let stored = match self {
            Change::Keep => {
                return Ok(Piece {
                    stored: decoded,
                    decoded: None,
                    decoded_len,
                });
            }
            Change::Filter(filters) => {
                return Ok(Piece {
                    stored: apply_filters(filters, decoded, check)?,
                    decoded: None,
                    decoded_len,
                });
            }
            Change::Spell(spell) => {
                let mut text = Vec::new();
                spell(&decoded, &mut text)?;
                text
            }
            Change::Encode(Codec::Deflate { level, .. }) => encode_deflate(level, &decoded, check)?,
            Change::Encode(Codec::Zstd { level } | Codec::ZstdSeekable { level, .. }) => {
                encode(level, &decoded, check)?
            }
        };
        Ok(Piece {
            stored,
            decoded: keep_decoded.then_some(decoded),
            decoded_len,
        })
    }
}

fn as_u32(len: u64) -> Result<u32> {
    u32::try_from(len)
        .map_err(|cause| Error::limit("frame", format!("a frame of {len} bytes")).because(cause))
}
