//! What workers are given: pieces of one tensor after the other.

use super::make::Change;
use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::execute::tensor;
use crate::format::{Segment, Want};
use crate::model::{Codec, DigestKind, Over, Payload};
use crate::prelude::*;
use crate::transform::{Data, Input, LATE_PIECE, PIECE, Pieces, View};

/// What stands before a piece, and the piece: a worker prepares one, or several small ones that are read together.
pub(super) struct Unit<'s, 'e> {
    pub(super) before: Vec<Small<'s>>,
    pub(super) piece: Option<Unmade<'s, 'e>>,
}

/// What is made when it is written, because it takes no time, or depends on where it stands.
pub(super) enum Small<'s> {
    Bytes(&'s [u8]),
    Align { to: u64, fill: u8 },
    Late(u64),
}

/// A piece of a tensor, or of one of the source's files.
pub(super) struct Unmade<'s, 'e> {
    pub(super) of: Arc<Of<'s>>,
    pub(super) origin: Origin<'e>,
    pub(super) is_last: bool,
}

/// Where the bytes of a piece come from.
pub(super) enum Origin<'e> {
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
pub(super) struct Of<'s> {
    pub(super) tensor: Option<(usize, usize)>,
    pub(super) raw_len: u64,
    pub(super) change: Change<'s>,
    pub(super) digest: Option<(DigestKind, Over)>,
}

/// Bytes of the source's files that are read at once, to be written as they are.
const COPY: u64 = PIECE as u64 / 4;

/// The work that segments are, piece after piece.
pub(super) struct Jobs<'j, 's, 'e> {
    from: &'e Archive,
    data: Data<'e>,
    segments: &'j mut core::slice::Iter<'s, Segment>,
    pub(super) before: Vec<Small<'s>>,
    /// What is handed out now: how far it is, and how long its pieces are.
    now: Option<Handed<'s, 'e>>,
    /// What came next and cannot be entered anywhere.
    pub(super) in_order: Option<(Of<'s>, View<'e>)>,
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
    pub(super) fn new(
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
    pub(super) fn next(&mut self) -> Result<Option<Vec<Unit<'s, 'e>>>> {
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
                numbers,
                digest,
            } => {
                let info = tensor(self.from, *index)?;
                let view = View::tiled(self.data, info, *dtype, sides, numbers.as_ref());
                let view = view.map_err(|error| error.in_tensor(&info.name))?;
                self.view((*index, 0), view, Change::Filter(filters), *digest)?;
            }
            Segment::Text {
                index,
                form,
                spell,
                digest,
            } => {
                let change = Change::Spell(*spell);
                self.tensor((*index, 0), &Want::Dense(*form), change, *digest)?;
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
    pub(super) fn codec(&self) -> Option<Codec> {
        match self.change {
            Change::Encode(codec) => Some(codec),
            Change::Keep | Change::Filter(_) | Change::Spell(_) => None,
        }
    }

    /// How long pieces of a view are. Those of a codec are its frames, so that the bytes do not depend on where the data
    /// comes from.
    pub(super) fn wanted(&self, view: &View<'_>) -> u64 {
        match self.codec() {
            Some(Codec::ZstdSeekable { frame, .. }) => u64::from(frame),
            Some(Codec::Deflate { .. } | Codec::Zlib { .. } | Codec::Zstd { .. }) => PIECE as u64,
            None if matches!(self.change, Change::Filter(_)) => view.step(),
            None => view.piece(),
        }
    }

    /// Whether nothing is something, too: a frame.
    pub(super) fn frames_nothing(&self) -> bool {
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
    pub(super) fn stored(&self) -> Option<&Input<'_>> {
        match &self.origin {
            Origin::View { view, len, .. } if *len == view.len() => view.direct(),
            _ => None,
        }
    }
}

/// The bytes of a view that is read in order, in pieces of another length.
pub(super) struct Recut<'v> {
    pieces: Pieces<'v>,
    len: usize,
    piece: Vec<u8>,
    left: Vec<u8>,
}

impl<'v> Recut<'v> {
    pub(super) fn new(view: &'v View<'v>, len: usize) -> Result<Self> {
        Ok(Self {
            pieces: view.pieces()?,
            len,
            piece: Vec::new(),
            left: Vec::new(),
        })
    }

    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>> {
        while self.left.len() < self.len && self.pieces.next(&mut self.piece)? {
            self.left.extend_from_slice(&self.piece);
        }
        let rest = self.left.split_off(self.left.len().min(self.len));
        let piece = core::mem::replace(&mut self.left, rest);
        Ok((!piece.is_empty()).then_some(piece))
    }
}
