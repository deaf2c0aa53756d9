//! Writes segments one after the other; workers prepare the pieces.

use bytes::Bytes;

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::execute::target::Target;
use crate::execute::{Digesting, Executor, padding, tensor};
use crate::format::{Segment, Spell, Want, Written};
use crate::model::{Codec, DigestKind, Filter, Over, Payload};
use crate::prelude::*;
use crate::threads;
use crate::transform::{
    DEFLATE_END, Data, Input, LATE_PIECE, PIECE, Pieces, View, apply_filters, as_size, encode,
    encode_deflate, read_together, seek_table,
};

/// What stands before a piece, and the piece: a worker prepares one, or several small ones that are read together.
struct Unit<'s, 'e> {
    before: Vec<Small<'s>>,
    piece: Option<Unmade<'s, 'e>>,
}

/// What is made when it is written, because it takes no time, or depends on where it stands.
enum Small<'s> {
    Bytes(&'s [u8]),
    Align { to: u64, fill: u8 },
    Late(u64),
}

/// A piece of a tensor, or of one of the source's files.
struct Unmade<'s, 'e> {
    of: Arc<Of<'s>>,
    origin: Origin<'e>,
    is_last: bool,
}

/// Where the bytes of a piece come from.
enum Origin<'e> {
    /// A view, read and transformed by the worker.
    View {
        view: Arc<View<'e>>,
        at: u64,
        len: u64,
    },
    /// Decoded already, because its stream could only be read from the beginning.
    Decoded(Vec<u8>),
    Copy {
        input: Input<'e>,
        at: u64,
        len: u64,
    },
    /// There are none.
    Nowhere,
}

/// What pieces are of.
struct Of<'s> {
    tensor: Option<(usize, usize)>,
    raw_len: u64,
    change: Change<'s>,
    digest: Option<(DigestKind, Over)>,
}

/// The same when it is ready to be written.
struct Ready<'s> {
    before: Vec<Small<'s>>,
    piece: Option<(Arc<Of<'s>>, Option<Piece>, bool)>,
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

/// Bytes of the source's files that are read at once, to be written as they are.
const COPY: u64 = PIECE as u64 / 4;

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
    let work = |units| options.control.check().and_then(|()| make_all(units, from));
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

/// The work that segments are, piece after piece.
struct Jobs<'j, 's, 'e> {
    from: &'e Archive,
    data: Data<'e>,
    segments: &'j mut core::slice::Iter<'s, Segment>,
    before: Vec<Small<'s>>,
    /// What is handed out now: how far it is, and how long its pieces are.
    now: Option<Handed<'s, 'e>>,
    /// What came next and cannot be entered anywhere.
    in_order: Option<(Of<'s>, View<'e>)>,
}

struct Handed<'s, 'e> {
    of: Arc<Of<'s>>,
    from: Handing<'e>,
    at: u64,
    end: u64,
    piece: u64,
}

enum Handing<'e> {
    View(Arc<View<'e>>),
    Copy(Input<'e>),
}

impl<'j, 's, 'e> Jobs<'j, 's, 'e> {
    fn new(
        from: &'e Archive,
        data: Data<'e>,
        segments: &'j mut core::slice::Iter<'s, Segment>,
    ) -> Self {
        Self {
            from,
            data,
            segments,
            before: Vec::new(),
            now: None,
            in_order: None,
        }
    }

    /// What one worker does next: a piece, or several where answers come late and they are small.
    fn next(&mut self) -> Result<Option<Vec<Unit<'s, 'e>>>> {
        let enough = self.from.waiting().map_or(0, |_| LATE_PIECE);
        let (mut units, mut len) = (Vec::new(), 0);
        while let Some(unit) = self.unit()? {
            len += unit.piece.as_ref().map_or(0, Unmade::len);
            units.push(unit);
            if len >= enough {
                break;
            }
        }
        Ok((!units.is_empty()).then_some(units))
    }

    fn unit(&mut self) -> Result<Option<Unit<'s, 'e>>> {
        /// Small segments that are written with the next piece, at most.
        const TOGETHER: usize = 1024;
        loop {
            let piece = self.now.as_mut().map(Handed::next);
            if piece.as_ref().is_some_and(|piece| piece.is_last) {
                self.now = None;
            }
            if piece.is_some() || self.before.len() >= TOGETHER {
                let before = core::mem::take(&mut self.before);
                return Ok(Some(Unit { before, piece }));
            }
            if self.in_order.is_some() {
                return Ok(None);
            }
            match self.segments.next() {
                Some(segment) => self.begin(segment)?,
                None if self.before.is_empty() => return Ok(None),
                None => {
                    let before = core::mem::take(&mut self.before);
                    return Ok(Some(Unit { before, piece }));
                }
            }
        }
    }

    fn begin(&mut self, segment: &'s Segment) -> Result<()> {
        match segment {
            Segment::Bytes(bytes) => self.before.push(Small::Bytes(bytes)),
            Segment::Align { to, fill } => self.before.push(Small::Align {
                to: *to,
                fill: *fill,
            }),
            Segment::Late { len, .. } => self.before.push(Small::Late(*len)),
            Segment::Copy { source, range } => {
                let source = *source;
                let range = range.clone();
                let input = self.data.input(&Payload::Raw { source, range })?;
                let of = Of {
                    tensor: None,
                    raw_len: input.len(),
                    change: Change::Keep,
                    digest: None,
                };
                self.now = Some(Handed {
                    of: Arc::new(of),
                    at: 0,
                    end: input.len(),
                    piece: COPY,
                    from: Handing::Copy(input),
                });
            }
            Segment::Tensor {
                index,
                part,
                want,
                codec,
                digest,
            } => {
                let change = codec.map_or(Change::Keep, Change::Encode);
                self.tensor((*index, *part), want, change, *digest)?;
            }
            Segment::Chunks {
                index,
                dtype,
                sides,
                filters,
            } => {
                let info = tensor(self.from, *index)?;
                let view = View::tiled(self.data, info, *dtype, sides);
                let view = view.map_err(|error| error.in_tensor(&info.name))?;
                self.view((*index, 0), view, Change::Filter(filters), None)?;
            }
            Segment::Text { index, form, spell } => {
                let change = Change::Spell(*spell);
                self.tensor((*index, 0), &Want::Dense(*form), change, None)?;
            }
            Segment::Computed(_) => return Err(Error::argument("a computed segment in a run")),
        }
        Ok(())
    }

    fn tensor(
        &mut self,
        (index, part): (usize, usize),
        want: &Want,
        change: Change<'s>,
        digest: Option<(DigestKind, Over)>,
    ) -> Result<()> {
        let info = tensor(self.from, index)?;
        let view = View::new(self.data, info, part, want)?;
        self.view((index, part), view, change, digest)
    }

    fn view(
        &mut self,
        tensor: (usize, usize),
        view: View<'e>,
        change: Change<'s>,
        digest: Option<(DigestKind, Over)>,
    ) -> Result<()> {
        let of = Of {
            tensor: Some(tensor),
            raw_len: view.len(),
            change,
            digest,
        };
        let piece = of.wanted(&view);
        if view.is_random() && piece.is_multiple_of(view.step()) {
            self.now = Some(Handed {
                of: Arc::new(of),
                at: 0,
                end: view.len(),
                piece,
                from: Handing::View(Arc::new(view)),
            });
        } else {
            self.in_order = Some((of, view));
        }
        Ok(())
    }
}

impl<'s, 'e> Handed<'s, 'e> {
    fn next(&mut self) -> Unmade<'s, 'e> {
        let at = self.at;
        let len = self.piece.min(self.end - at);
        self.at += len;
        let origin = match &self.from {
            _ if len == 0 => Origin::Nowhere,
            Handing::View(view) => Origin::View {
                view: view.clone(),
                at,
                len,
            },
            Handing::Copy(input) => Origin::Copy {
                input: input.clone(),
                at,
                len,
            },
        };
        Unmade {
            of: self.of.clone(),
            origin,
            is_last: self.at == self.end,
        }
    }
}

impl Of<'_> {
    fn codec(&self) -> Option<Codec> {
        match self.change {
            Change::Encode(codec) => Some(codec),
            Change::Keep | Change::Filter(_) | Change::Spell(_) => None,
        }
    }

    /// How long pieces of a view are. Those of a codec are its frames, so that the bytes do not depend on where the data
    /// comes from.
    fn wanted(&self, view: &View<'_>) -> u64 {
        match self.codec() {
            Some(Codec::ZstdSeekable { frame, .. }) => u64::from(frame),
            Some(Codec::Deflate { .. } | Codec::Zstd { .. }) => PIECE as u64,
            None if matches!(self.change, Change::Filter(_)) => view.step(),
            None => view.piece(),
        }
    }

    /// Whether nothing is something, too: a frame.
    fn frames_nothing(&self) -> bool {
        self.raw_len == 0 && matches!(self.codec(), Some(Codec::Zstd { .. }))
    }
}

impl Unmade<'_, '_> {
    fn len(&self) -> u64 {
        match &self.origin {
            Origin::View { len, .. } | Origin::Copy { len, .. } => *len,
            Origin::Decoded(bytes) => bytes.len() as u64,
            Origin::Nowhere => 0,
        }
    }

    /// The stored bytes that it is, if it is all of them.
    fn stored(&self) -> Option<&Input<'_>> {
        match &self.origin {
            Origin::View { view, len, .. } if *len == view.len() => view.direct(),
            _ => None,
        }
    }
}

/// Prepares pieces; those whose answers come late are asked for together.
fn make_all<'s>(units: Vec<Unit<'s, '_>>, archive: &Archive) -> Result<Vec<Ready<'s>>> {
    let inputs: Vec<_> = units
        .iter()
        .map(|unit| unit.piece.as_ref().and_then(Unmade::stored))
        .collect();
    let known = read_together(&inputs)?;
    let units = units.into_iter().zip(known);
    units
        .map(|(unit, known)| make(unit, known, archive))
        .collect()
}

/// Prepares a piece, of which the stored bytes may be known.
fn make<'s>(unit: Unit<'s, '_>, known: Option<Bytes>, archive: &Archive) -> Result<Ready<'s>> {
    let Unit { before, piece } = unit;
    let Some(Unmade {
        of,
        origin,
        is_last,
    }) = piece
    else {
        let piece = None;
        return Ok(Ready { before, piece });
    };
    let decoded = match (origin, known) {
        (_, Some(known)) => Ok(Some(known.to_vec())),
        (Origin::Nowhere, _) if of.frames_nothing() => Ok(Some(Vec::new())),
        (Origin::Nowhere, _) => Ok(None),
        (Origin::Decoded(piece), _) => Ok(Some(piece)),
        (Origin::View { view, at, len }, _) => {
            let mut piece = Vec::new();
            view.read(at, len, &mut piece).map(|()| Some(piece))
        }
        (Origin::Copy { input, at, len }, _) => as_size(len).and_then(|len| {
            let mut piece = vec![0; len];
            input.read_into(at, &mut piece).map(|()| Some(piece))
        }),
    };
    let keep_decoded = matches!(of.digest, Some((_, Over::Decoded))) && of.codec().is_some();
    let made = decoded.and_then(|decoded| {
        let made = decoded.map(|decoded| of.change.apply(decoded, keep_decoded));
        made.transpose()
    });
    match made {
        Ok(piece) => Ok(Ready {
            before,
            piece: Some((of, piece, is_last)),
        }),
        Err(error) => Err(blame(error, archive, &of)),
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

    /// Writes a piece, and behind the last one notes where the part is.
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
            Some(Codec::Zstd { .. }) | None => Vec::new(),
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
    fn apply(self, decoded: Vec<u8>, keep_decoded: bool) -> Result<Piece> {
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
                    stored: apply_filters(filters, decoded)?,
                    decoded: None,
                    decoded_len,
                });
            }
            Change::Spell(spell) => {
                let mut text = Vec::new();
                spell(&decoded, &mut text)?;
                text
            }
            Change::Encode(Codec::Deflate { level, .. }) => encode_deflate(level, &decoded)?,
            Change::Encode(Codec::Zstd { level } | Codec::ZstdSeekable { level, .. }) => {
                encode(level, &decoded)?
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
