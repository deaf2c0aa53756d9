//! What is to be stored, and which pieces share it.

use bytes::Bytes;

use super::pieces::{Maker, Object};
use crate::error::{Error, Result};
use crate::format::{Segment, Want};
use crate::formats::ztensor::write::Generation;
use crate::model::{
    Codec, DType, DigestKind, Endian, Layout, Over, Part, Payload, Shape, TensorInfo,
};
use crate::prelude::*;

/// Data to be stored for a piece.
pub(super) struct Request {
    /// Of which tensor, and of which of its parts.
    pub(super) of: (usize, usize),
    pub(super) want: Want,
    pub(super) codec: Option<Codec>,
    pub(super) digest: Option<DigestKind>,
    pub(super) identity: Option<Identity>,
}

/// What makes two requests one.
#[derive(Clone, Eq, Hash, PartialEq)]
pub(super) enum Identity {
    /// No bytes at all, in a generation that lets everything empty share a place.
    Empty,
    /// The same stored bytes, as they are.
    Stored(u32, Range<u64>),
    /// The same stored bytes, changed in the same way.
    Changed(Box<Change>),
    /// Bytes with the same SHA-256 and so many in the end, and what becomes of them, where they do not stay as they are.
    Content(Bytes, u64, Option<Box<Recast>>),
}

/// Little-endian numbers, and what becomes of them.
#[derive(Clone, Eq, Hash, PartialEq)]
pub(super) struct Recast {
    from: DType,
    to: DType,
    /// The arrangement, where it changes.
    arrangement: Option<(Layout, Shape)>,
}

/// Stored bytes, and what becomes of them.
#[derive(Clone, Eq, Hash, PartialEq)]
pub(super) struct Change {
    stored: (u32, Range<u64>, Option<Codec>),
    from: (DType, Endian),
    /// The arrangement, where it changes.
    arrangement: Option<(Layout, Shape)>,
    to: (DType, Endian, Option<Codec>),
}

impl Request {
    pub(super) fn segment(self, over: Over) -> Segment {
        let (index, part) = self.of;
        Segment::Tensor {
            index,
            part,
            want: self.want,
            codec: self.codec,
            digest: self.digest.map(|kind| (kind, over)),
        }
    }
}

impl Maker<'_> {
    /// What makes a request the same as others.
    pub(super) fn identity(
        &self,
        stored: &Part,
        len: u64,
        want: &Want,
        codec: Option<Codec>,
    ) -> Option<Identity> {
        if len == 0 {
            return (self.target.generation == Generation::V2).then_some(Identity::Empty);
        }
        if self.target.canonical {
            let sum = stored
                .checksum
                .as_ref()
                .filter(|sum| sum.kind == DigestKind::Sha256)?;
            let to = match want {
                Want::Part { dtype, .. } => *dtype,
                Want::Dense(form) => form.dtype,
                Want::Lane { .. } | Want::Packed { .. } | Want::Stored | Want::Stretch { .. } => {
                    stored.dtype
                }
            };
            let recast = Recast {
                from: stored.dtype,
                to,
                arrangement: self.arrangement(),
            };
            let changes = to != stored.dtype || recast.arrangement.is_some();
            let recast = changes.then(|| Box::new(recast));
            return Some(Identity::Content(sum.value.clone(), len, recast));
        }
        let (source, range) = stored.payload.stored()?;
        let to = match want {
            Want::Stored => return Some(Identity::Stored(source.0, range)),
            Want::Part { dtype, endian } => (*dtype, *endian, codec),
            Want::Dense(form) => (form.dtype, form.endian, codec),
            Want::Lane { .. } | Want::Packed { .. } | Want::Stretch { .. } => return None,
        };
        let packed = match stored.payload {
            Payload::Encoded { codec, .. } => Some(codec),
            _ => None,
        };
        Some(Identity::Changed(Box::new(Change {
            stored: (source.0, range, packed),
            from: (stored.dtype, stored.endian),
            arrangement: self.arrangement(),
            to,
        })))
    }

    /// How elements are arranged that get another order.
    fn arrangement(&self) -> Option<(Layout, Shape)> {
        let rearranged = self.info.layout == Layout::ColumnMajor;
        rearranged.then(|| (self.info.layout.clone(), self.info.shape.clone()))
    }
}

/// Sorts requests by plain byte order of tensor and part, whose names must be in normalization form C.
pub(super) fn canonical_order(
    tensors: &[TensorInfo],
    objects: &mut [Object],
    requests: Vec<Request>,
) -> Result<Vec<Request>> {
    let check = |name: &str| {
        if name.is_ascii() || unicode_normalization::is_nfc(name) {
            return Ok(());
        }
        let message = format!(
            "the name {name:?} is not in Unicode normalization form C, which canonical files need"
        );
        Err(Error::argument(message))
    };
    let mut pieces = Vec::with_capacity(requests.len());
    for object in objects {
        let name = &object.info(tensors)?.name;
        check(name)?;
        for piece in &mut object.pieces {
            check(&piece.name)?;
            pieces.push((name.as_bytes(), piece));
        }
    }
    pieces.sort_unstable_by(|(a, left), (b, right)| {
        (a, left.name.as_bytes()).cmp(&(b, right.name.as_bytes()))
    });
    let mut requests: Vec<_> = requests.into_iter().map(Some).collect();
    let mut sorted = Vec::with_capacity(requests.len());
    for (_, piece) in pieces {
        let request = requests.get_mut(piece.blob).and_then(Option::take);
        piece.blob = sorted.len();
        sorted.extend(request);
    }
    Ok(sorted)
}

/// Lets pieces that want the same share it: what is to be stored, each only once, in the order of the requests.
pub(super) fn share(objects: &mut [Object], requests: Vec<Request>) -> Vec<Request> {
    let mut blobs: Vec<Request> = Vec::with_capacity(requests.len());
    let mut known = LookupMap::default();
    known.reserve(requests.len());
    let mut chosen = Vec::with_capacity(requests.len());
    for mut request in requests {
        let next = blobs.len();
        let blob = match request.identity.take() {
            Some(identity) => *known.entry(identity).or_insert(next),
            None => next,
        };
        chosen.push(blob);
        match (blobs.get_mut(blob), request.digest) {
            (None, _) => blobs.push(request),
            // One of those who share wants a hash that the first did not.
            (Some(blob), Some(kind)) => {
                blob.digest.get_or_insert(kind);
            }
            (Some(_), None) => {}
        }
    }
    for piece in objects.iter_mut().flat_map(|object| &mut object.pieces) {
        piece.blob = chosen.get(piece.blob).copied().unwrap_or(usize::MAX);
    }
    blobs
}
