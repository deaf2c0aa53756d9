//! Whether tensors have the same bytes, without looking at numbers.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::{DiffOptions, Pair, Trouble, Which, same_type};
use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::format::{Control, Form, Want};
use crate::model::{Codec, DType, Layout, Part, Payload, TensorInfo};
use crate::ops::chunks::Cut;
use crate::ops::parts::by_role;
use crate::ops::pieces::{self, Work};
use crate::prelude::*;
use crate::transform::View;

/// Bytes that are compared at once: two such buffers stay in the cache.
const CHUNK: u64 = 256 << 10;

/// Which bytes are compared.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum How {
    /// Dense, row-major, little-endian; the parts of a tensor without such a form.
    Canonical,
    /// As they are in the files. Where these are the same, so is all that is made of them.
    Stored,
}

impl How {
    /// Whether a pair can be compared like this, and it is worth it.
    pub(super) fn applies(self, pair: &Pair<'_>) -> bool {
        let (a, b) = (pair.0.info(), pair.1.info());
        match self {
            How::Canonical => same_type(pair),
            How::Stored => {
                let alike = a
                    .parts
                    .iter()
                    .zip(&b.parts)
                    .all(|(a, b)| stored_alike(a, b));
                let plain = is_canonical(a) && is_canonical(b);
                same_type(pair)
                    && !plain
                    && a.layout == b.layout
                    && a.parts.len() == b.parts.len()
                    && alike
            }
        }
    }

    /// The views to compare, side by side; `None` where the parts are not even the same.
    fn views<'a>(
        self,
        archives: (&'a Archive, &'a Archive),
        (a_tensor, b_tensor): &Pair<'_>,
    ) -> Result<Option<Vec<[View<'a>; 2]>>, Trouble> {
        let (left, right) = (archives.0.data(), archives.1.data());
        let (a, b) = (a_tensor.info(), b_tensor.info());
        let both = |a: Result<View<'a>>, b: Result<View<'a>>| -> Result<[View<'a>; 2], Trouble> {
            let a = a.map_err(|error| Trouble::of(Which::First, a_tensor, error))?;
            let b = b.map_err(|error| Trouble::of(Which::Second, b_tensor, error))?;
            Ok([a, b])
        };
        if self == How::Stored {
            let stored = |part| {
                let want = &Want::Stored;
                both(
                    View::new(left, a, part, want),
                    View::new(right, b, part, want),
                )
            };
            return (0..a.parts.len())
                .map(stored)
                .collect::<Result<_, _>>()
                .map(Some);
        }
        if !matches!(a.layout, Layout::Opaque { .. }) && !matches!(b.layout, Layout::Opaque { .. })
        {
            let form = Form::canonical(a.dtype);
            let views = both(View::dense(left, a, &form), View::dense(right, b, &form))?;
            return Ok(Some(vec![views]));
        }
        let (a, b) = (by_role(a), by_role(b));
        let mut views = Vec::new();
        for ((_, a), (_, b)) in a.iter().zip(&b) {
            if a.payload.len() != b.payload.len() {
                return Ok(None);
            }
            views.push(both(
                View::decoded(left, &a.payload),
                View::decoded(right, &b.payload),
            )?);
        }
        Ok((a.len() == b.len()).then_some(views))
    }
}

/// Whether equal stored bytes mean equal parts.
fn stored_alike(a: &Part, b: &Part) -> bool {
    let codec = |part: &Part| match &part.payload {
        Payload::Encoded { codec, .. } => Some(match codec {
            Codec::Deflate { skip, .. } => (2, *skip),
            Codec::Zstd { .. } => (0, 0),
            Codec::ZstdSeekable { frame, .. } => (1, *frame),
        }),
        _ => None,
    };
    let stored = |part: &Part| match part.payload.stored() {
        Some((_, range)) => range.end.saturating_sub(range.start),
        None => part.payload.len(),
    };
    a.role == b.role
        && (a.dtype, a.endian) == (b.dtype, b.endian)
        && codec(a) == codec(b)
        && a.payload.len() == b.payload.len()
        && stored(a) == stored(b)
}

/// Whether it is stored as it is compared anyway.
fn is_canonical(info: &TensorInfo) -> bool {
    let rows = info.layout == Layout::RowMajor
        || info.layout == Layout::ColumnMajor && info.shape.len() < 2;
    let plain = |part: &Part| {
        let ordered = part.dtype.is_ordered() && part.endian != crate::model::Endian::Little;
        !ordered
            && part.dtype == info.dtype
            && part.dtype != DType::BOOL
            && !matches!(part.payload, Payload::Encoded { .. })
    };
    rows && info.parts.iter().all(plain)
}

/// Whether the pairs at `chosen` have the same bytes.
pub(super) fn compare(
    a: &Archive,
    b: &Archive,
    pairs: &[Pair<'_>],
    chosen: &[usize],
    how: How,
    options: &DiffOptions,
) -> Vec<Result<bool, Trouble>> {
    let pass = Pass {
        archives: (a, b),
        pairs,
        chosen,
        how,
        options,
    };
    pieces::run(&pass, chosen.len(), options.threads)
}

struct Pass<'a> {
    archives: (&'a Archive, &'a Archive),
    pairs: &'a [Pair<'a>],
    chosen: &'a [usize],
    how: How,
    options: &'a DiffOptions,
}

struct Job<'a> {
    pair: &'a Pair<'a>,
    views: Vec<([View<'a>; 2], Cut)>,
    /// A difference was found: the rest need not be read.
    differs: AtomicBool,
}

impl<'a> Pass<'a> {
    fn pair(&self, index: usize) -> Result<&'a Pair<'a>> {
        let pair = self.chosen.get(index).and_then(|&at| self.pairs.get(at));
        pair.ok_or_else(|| Error::argument("no such tensor"))
    }

    fn open_pair(&self, pair: &'a Pair<'a>) -> Result<Job<'a>, Trouble> {
        let views = self.how.views(self.archives, pair)?;
        let same_lengths = |views: &[[View<'_>; 2]]| views.iter().all(|[a, b]| a.len() == b.len());
        let views = views.filter(|views| same_lengths(views));
        let job = Job {
            pair,
            differs: AtomicBool::new(views.is_none()),
            views: (views.unwrap_or_default().into_iter())
                .map(|views| {
                    let cut = Cut::new(&[(&views[0], CHUNK), (&views[1], CHUNK)]);
                    (views, cut)
                })
                .collect(),
        };
        for ([a, b], _) in &job.views {
            self.options.control.expect(a.len().saturating_add(b.len()));
        }
        Ok(job)
    }
}

impl<'a> Work for Pass<'a> {
    type Job = Result<Job<'a>, Trouble>;
    type Part = Result<bool, Trouble>;
    type Outcome = Result<bool, Trouble>;
    type Scratch = [Vec<u8>; 2];

    fn open(&self, index: usize) -> Self::Job {
        self.open_pair(self.pair(index)?)
    }

    fn begin(&self, job: &Self::Job) -> (u64, Self::Outcome) {
        match job {
            Ok(job) => {
                let pieces = job.views.iter().map(|(_, cut)| cut.pieces()).sum();
                (pieces, Ok(!job.differs.load(Relaxed)))
            }
            Err(error) => (0, Err(error.clone())),
        }
    }

    fn piece(&self, job: &Self::Job, piece: u64, scratch: &mut [Vec<u8>; 2]) -> Self::Part {
        let job = job.as_ref().map_err(Clone::clone)?;
        if job.differs.load(Relaxed) {
            return Ok(false);
        }
        let mut piece = piece;
        for ([a, b], cut) in &job.views {
            if piece >= cut.pieces() {
                piece -= cut.pieces();
                continue;
            }
            let same = same_bytes((a, b), cut, piece, scratch, job, &self.options.control)?;
            if !same {
                job.differs.store(true, Relaxed);
            }
            return Ok(same);
        }
        Ok(true)
    }

    fn fold(&self, outcome: &mut Self::Outcome, part: Self::Part) {
        match (&*outcome, part) {
            (Ok(same), Ok(more)) => *outcome = Ok(*same && more),
            (Ok(_), Err(error)) => *outcome = Err(error),
            (Err(_), _) => {}
        }
    }
}

/// Compares a piece chunk by chunk.
fn same_bytes(
    (a, b): (&View<'_>, &View<'_>),
    cut: &Cut,
    piece: u64,
    scratch: &mut [Vec<u8>; 2],
    job: &Job<'_>,
    control: &Control,
) -> Result<bool, Trouble> {
    let of_a = |error| Trouble::of(Which::First, &job.pair.0, error);
    let of_b = |error| Trouble::of(Which::Second, &job.pair.1, error);
    let [left, right] = scratch;
    let mut a = cut.stream(a, CHUNK, piece, left).map_err(of_a)?;
    let mut b = cut.stream(b, CHUNK, piece, right).map_err(of_b)?;
    while let (Some(a), Some(b)) = (a.next().map_err(of_a)?, b.next().map_err(of_b)?) {
        if a != b {
            return Ok(false);
        }
        control.advance(2 * a.len() as u64)?;
    }
    *scratch = [a.into_buffer(), b.into_buffer()];
    Ok(true)
}
