//! Whether tensors have the same bytes, without looking at numbers.

use super::{DiffOptions, Pair, Trouble, Unreadable, Verdict, Which, open_pairs, same_type};
use crate::archive::Archive;
use crate::error::Result;
use crate::format::{Form, Want};
use crate::model::{Codec, DType, Layout, Part, Payload, TensorInfo};
use crate::ops::shared::chunks::Cut;
use crate::ops::shared::parts::by_role;
use crate::prelude::*;
use crate::threads::{Control, InPieces, Opened, Pace, Steps};
use crate::transform::{Data, View};

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
        if a.shape != b.shape {
            return false;
        }
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

    /// Bytes of a tensor that are compared.
    pub(super) fn len(self, info: &TensorInfo) -> u64 {
        match (self, &info.layout) {
            (How::Stored, _) | (_, Layout::Opaque { .. }) => {
                let len = |part: &Part| match (self, part.payload.stored()) {
                    (How::Stored, Some((_, range))) => range.end.saturating_sub(range.start),
                    _ => part.payload.len(),
                };
                info.parts.iter().map(len).fold(0, u64::saturating_add)
            }
            (How::Canonical, _) => info.dense_len().unwrap_or(0),
        }
    }

    /// Whether it costs next to nothing to open a tensor again.
    fn is_light(self, data: Data<'_>, info: &TensorInfo, view: &View<'_>) -> bool {
        let form = Form::canonical(info.dtype);
        match (self, &info.layout) {
            (How::Stored, _) => true,
            (How::Canonical, Layout::Opaque { .. }) => view.direct().is_some() || view.has_frames(),
            (How::Canonical, _) => {
                view.has_frames() || View::is_light(data, info, &Want::Dense(form))
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
            Codec::Deflate { skip, .. } => (2, u64::from(*skip)),
            Codec::Zlib { skip, .. } => (3, *skip),
            Codec::Zstd { .. } => (0, 0),
            Codec::ZstdSeekable { frame, .. } => (1, u64::from(*frame)),
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
            && !part.payload.is_compressed()
    };
    rows && info.parts.iter().all(plain)
}

/// Goes on with comparing the bytes of pairs of which nothing is known; true when that is done.
pub(super) fn go_on(
    archives: (&Archive, &Archive),
    how: How,
    pairs: &[Pair<'_>],
    verdicts: &mut [Option<Verdict>],
    options: &DiffOptions,
    steps: &mut Steps<Result<bool, Unreadable>>,
    pace: &Pace<'_>,
) -> Result<bool> {
    let open = open_pairs(pairs, verdicts, |pair| how.applies(pair));
    let pass = Pass {
        archives,
        how,
        options,
    };
    let items = open.iter().map(|(pair, _)| *pair);
    let Some(same) = steps.go_on(&pass, items, pace)? else {
        return Ok(false);
    };
    for ((_, verdict), same) in open.into_iter().zip(same) {
        match same {
            Ok(true) => *verdict = Some(Verdict::Equal),
            Ok(false) => {}
            Err((of, error)) => *verdict = Some(Verdict::Unreadable(of, error)),
        }
    }
    Ok(true)
}

/// Compares the bytes of pairs.
struct Pass<'a> {
    archives: (&'a Archive, &'a Archive),
    how: How,
    options: &'a DiffOptions,
}

struct Job<'a> {
    pair: &'a Pair<'a>,
    views: Vec<([View<'a>; 2], Cut)>,
}

impl<'a> Pass<'a> {
    /// What there is to compare; `None` where the lengths differ already.
    fn job(&self, pair: &'a Pair<'a>) -> Result<Option<Job<'a>>, Trouble> {
        let views = self.how.views(self.archives, pair)?;
        let same_lengths =
            |views: &Vec<[View<'_>; 2]>| views.iter().all(|[a, b]| a.len() == b.len());
        let Some(views) = views.filter(same_lengths) else {
            return Ok(None);
        };
        let views = views.into_iter().map(|views| {
            let cut = Cut::new(&[(&views[0], CHUNK), (&views[1], CHUNK)]);
            (views, cut)
        });
        Ok(Some(Job {
            pair,
            views: views.collect(),
        }))
    }

    /// Whether the bytes of a piece are the same.
    fn is_same(
        &self,
        job: &Job<'_>,
        piece: u64,
        scratch: &mut [Vec<u8>; 2],
    ) -> Result<bool, Trouble> {
        let mut piece = piece;
        for ([a, b], cut) in &job.views {
            if piece >= cut.pieces() {
                piece -= cut.pieces();
                continue;
            }
            return same_bytes((a, b), cut, piece, scratch, job, &self.options.work.control);
        }
        Ok(true)
    }
}

impl<'a> InPieces for Pass<'a> {
    type Item = &'a Pair<'a>;
    type Job = Job<'a>;
    type Found = Result<bool, Unreadable>;
    /// Whether they are the same.
    type Outcome = Result<bool, Unreadable>;
    type Scratch = [Vec<u8>; 2];

    fn open(&self, pair: &'a Pair<'a>) -> Result<Opened<Job<'a>, Self::Outcome>> {
        Ok(match Trouble::unless_stopped(self.job(pair))? {
            Ok(Some(job)) => {
                let pieces = job.views.iter().map(|(_, cut)| cut.pieces()).sum();
                Opened::new(job, pieces, Ok(true))
            }
            Ok(None) => Opened::done(Ok(false)),
            Err(unreadable) => Opened::done(Err(unreadable)),
        })
    }

    fn is_light(&self, job: &Job<'a>) -> bool {
        let (a, b) = (job.pair.0.info(), job.pair.1.info());
        let mut views = job.views.iter().map(|(views, _)| views);
        let (first, second) = (self.archives.0.data(), self.archives.1.data());
        views.all(|[left, right]| {
            self.how.is_light(first, a, left) && self.how.is_light(second, b, right)
        })
    }

    fn piece(&self, job: &Job<'a>, piece: u64, scratch: &mut [Vec<u8>; 2]) -> Result<Self::Found> {
        Trouble::unless_stopped(self.is_same(job, piece, scratch))
    }

    fn fold(&self, outcome: &mut Self::Outcome, found: Self::Found) -> bool {
        *outcome = found;
        matches!(outcome, Ok(true))
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
