//! Writes segments one after the other; workers prepare the pieces.

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::format::execute::pool::{Pool, with_pool};
use crate::format::execute::target::Target;
use crate::format::execute::{Digesting, ExecuteOptions, Progress, padding, tensor};
use crate::format::{Segment, Spell, Want, Written};
use crate::model::{Codec, Payload, SourceId};
use crate::prelude::*;
use crate::transform::{DEFLATE_END, PIECE, View, as_size, encode, encode_deflate, seek_table};

/// A piece to be prepared.
struct Job<'v> {
    piece: PieceOf<'v>,
    codec: Option<Codec>,
    spell: Option<Spell>,
    keep_decoded: bool,
}

enum PieceOf<'v> {
    /// Read and transformed by the worker.
    View {
        view: Arc<View<'v>>,
        at: u64,
        len: u64,
    },
    /// Decoded already, because its stream could only be read from the beginning.
    Decoded(Vec<u8>),
}

/// A piece that is ready to be written.
struct Piece {
    stored: Vec<u8>,
    /// The bytes before compression, where a hash over them is wanted.
    decoded: Option<Vec<u8>>,
    decoded_len: u64,
}

pub(super) fn write(
    run: &[Segment],
    from: &Archive,
    target: &mut Target<'_>,
    at: u64,
    progress: &mut Progress,
    options: &ExecuteOptions,
) -> Result<u64> {
    #[cfg(feature = "std")]
    let threads = crate::threads::thread_count(options.threads);
    #[cfg(not(feature = "std"))]
    let threads = 1;
    let mut writer = Writer {
        target,
        at,
        options,
    };
    let work = |job: Job<'_>| {
        // Asked here too: what waits in line behind a stop need not be done.
        options.control.advance(0)?;
        prepare(job)
    };
    with_pool(threads, &work, |pool| {
        for segment in run {
            match segment {
                Segment::Bytes(bytes) => writer.put(bytes)?,
                Segment::Align { to, fill } => {
                    let len = padding(writer.at, *to);
                    options.control.expect(len);
                    writer.fill(len, *fill)?;
                }
                Segment::Copy { source, range } => writer.copy(from, *source, range.clone())?,
                Segment::Late { len, .. } => {
                    progress.late.push(writer.at);
                    writer.fill(*len, 0)?;
                }
                Segment::Tensor {
                    index,
                    part,
                    want,
                    codec,
                    digest,
                } => {
                    let info = tensor(from, *index)?;
                    let view = View::new(from.data().counted(&options.tally), info, *part, want)?;
                    let sum = Digesting::new(*digest)?;
                    let done = writer
                        .tensor(pool, view, *codec, None, sum)
                        .map_err(|error| error.in_tensor(&info.name))?;
                    progress.written.push(Written {
                        index: *index,
                        part: *part,
                        ..done
                    });
                }
                Segment::Text { index, form, spell } => {
                    let info = tensor(from, *index)?;
                    let want = Want::Dense(*form);
                    let view = View::new(from.data().counted(&options.tally), info, 0, &want)?;
                    let sum = Digesting::new(None)?;
                    let done = writer
                        .tensor(pool, view, None, Some(*spell), sum)
                        .map_err(|error| error.in_tensor(&info.name))?;
                    progress.written.push(Written {
                        index: *index,
                        ..done
                    });
                }
                Segment::Computed(_) => return Err(Error::argument("a computed segment in a run")),
            }
        }
        Ok(())
    })?;
    Ok(writer.at)
}

struct Writer<'w, 's> {
    target: &'w mut Target<'s>,
    at: u64,
    options: &'w ExecuteOptions,
}

impl Writer<'_, '_> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(bytes)?;
        self.options.control.advance(bytes.len() as u64)
    }

    /// Writes bytes that are counted otherwise.
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.target.write(self.at, bytes)?;
        self.at += bytes.len() as u64;
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
    fn copy(&mut self, from: &Archive, source: SourceId, range: Range<u64>) -> Result<()> {
        let input = from.data().input(&Payload::Raw { source, range })?;
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

    /// Writes one tensor's part, piece by piece.
    fn tensor<'v>(
        &mut self,
        pool: &mut Pool<'_, Job<'v>, Piece>,
        view: View<'v>,
        codec: Option<Codec>,
        spell: Option<Spell>,
        mut sum: Digesting,
    ) -> Result<Written> {
        let start = self.at;
        let raw_len = view.len();
        let keep_decoded = sum.wants_decoded() && codec.is_some();
        let mut frames = Vec::new();
        let mut consume = |piece: Piece| {
            sum.update(piece.decoded.as_deref().unwrap_or(&piece.stored));
            frames.push((
                as_u32(piece.stored.len() as u64)?,
                as_u32(piece.decoded_len)?,
            ));
            self.write(&piece.stored)?;
            // What goes in is known beforehand, what comes out is not.
            self.options.control.advance(piece.decoded_len)
        };
        // The pieces of a codec are its frames, so that the bytes do not depend on where the data comes from.
        let wanted = match codec {
            Some(Codec::ZstdSeekable { frame, .. }) => u64::from(frame),
            Some(Codec::Deflate { .. } | Codec::Zstd { .. }) => PIECE as u64,
            None => view.piece(),
        };
        let view = Arc::new(view);
        if view.is_random() && wanted % view.step() == 0 {
            let mut at = 0;
            while at < raw_len {
                let len = wanted.min(raw_len - at);
                let piece = PieceOf::View {
                    view: view.clone(),
                    at,
                    len,
                };
                pool.submit(
                    Job {
                        piece,
                        codec,
                        spell,
                        keep_decoded,
                    },
                    &mut consume,
                )?;
                at += len;
            }
        } else {
            let mut pieces = view.pieces()?;
            let mut gathered = Vec::new();
            let mut piece = Vec::new();
            let size = as_size(wanted)?;
            while pieces.next(&mut piece)? {
                gathered.extend_from_slice(&piece);
                while gathered.len() >= size {
                    let rest = gathered.split_off(size);
                    let piece = PieceOf::Decoded(core::mem::replace(&mut gathered, rest));
                    pool.submit(
                        Job {
                            piece,
                            codec,
                            spell,
                            keep_decoded,
                        },
                        &mut consume,
                    )?;
                }
            }
            if !gathered.is_empty() {
                pool.submit(
                    Job {
                        piece: PieceOf::Decoded(gathered),
                        codec,
                        spell,
                        keep_decoded,
                    },
                    &mut consume,
                )?;
            }
        }
        if raw_len == 0 && matches!(codec, Some(Codec::Zstd { .. })) {
            // Nothing is a frame too.
            pool.submit(
                Job {
                    piece: PieceOf::Decoded(Vec::new()),
                    codec,
                    spell,
                    keep_decoded,
                },
                &mut consume,
            )?;
        }
        pool.drain(&mut consume)?;
        let end = match codec {
            Some(Codec::ZstdSeekable { .. }) => seek_table(&frames),
            Some(Codec::Deflate { .. }) => DEFLATE_END.to_vec(),
            Some(Codec::Zstd { .. }) | None => Vec::new(),
        };
        if !sum.wants_decoded() {
            sum.update(&end);
        }
        self.write(&end)?;
        Ok(Written {
            index: 0,
            part: 0,
            range: start..self.at,
            raw_len,
            digest: sum.finish(),
        })
    }
}

/// What a worker does with a piece.
fn prepare(job: Job<'_>) -> Result<Piece> {
    let decoded = match job.piece {
        PieceOf::View { view, at, len } => {
            let mut piece = Vec::new();
            view.read(at, len, &mut piece)?;
            piece
        }
        PieceOf::Decoded(piece) => piece,
    };
    let decoded_len = decoded.len() as u64;
    if let Some(spell) = job.spell {
        let mut stored = Vec::new();
        spell(&decoded, &mut stored)?;
        return Ok(Piece {
            stored,
            decoded: None,
            decoded_len,
        });
    }
    let stored = match job.codec {
        None => {
            return Ok(Piece {
                stored: decoded,
                decoded: None,
                decoded_len,
            });
        }
        Some(Codec::Deflate { level, .. }) => encode_deflate(level, &decoded)?,
        Some(Codec::Zstd { level } | Codec::ZstdSeekable { level, .. }) => encode(level, &decoded)?,
    };
    Ok(Piece {
        stored,
        decoded: job.keep_decoded.then_some(decoded),
        decoded_len,
    })
}

fn as_u32(len: u64) -> Result<u32> {
    u32::try_from(len)
        .map_err(|cause| Error::limit("frame", format!("a frame of {len} bytes")).because(cause))
}
