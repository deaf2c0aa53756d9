//! A file behind a URL as a source: few requests, several at once, and always of the same file.

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt};

use super::object::{Identity, Object};
use super::runtime::wait;
use super::{Failure, Remote};
use crate::error::Result;
use crate::io::{Merged, Source, Stamp, check_range};
use crate::prelude::*;

/// What the first request brings.
const HEAD: u64 = 64 << 10;
/// Less than this between two ranges, and they are one request.
const GAP: u64 = 64 << 10;
/// More than this is several requests.
const PIECE: u64 = 8 << 20;
/// How many requests of one read are under way.
const AT_ONCE: usize = 64;
/// How many reads pay at once.
const READS: usize = 32;

/// A file behind a URL.
///
/// It is opened by one request, which brings its first bytes and what it is known by: its length and its tag (ETag). Every
/// later answer is compared with these, so that what is read is of one file, or an error with the rule `changed`.
#[derive(Debug)]
pub struct RemoteSource {
    remote: Remote,
    object: Arc<Object>,
    identity: Identity,
    head: Bytes,
}

impl RemoteSource {
    pub(super) fn open(remote: &Remote, object: Arc<Object>) -> Result<Self> {
        let asked = object.clone();
        let opened = wait(remote.control(), async move { first(&asked).await })?;
        Self::with(remote, object, opened)
    }

    /// With what the first request brought.
    pub(super) fn with(remote: &Remote, object: Arc<Object>, first: First) -> Result<Self> {
        let (head, identity) =
            first.map_err(|failure| failure.about(&object.url, &object.access()))?;
        Ok(Self {
            remote: remote.clone(),
            object,
            identity,
            head,
        })
    }

    /// What the first request brought, to be remembered above.
    pub(super) fn head(&self) -> Bytes {
        self.head.clone()
    }

    /// Fetches ranges, each of at most a piece.
    fn fetch(&self, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>> {
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        let (object, identity) = (self.object.clone(), self.identity.clone());
        let fetched = wait(self.remote.control(), async move {
            let requests = ranges.into_iter().map(|range| {
                let (object, identity) = (&object, &identity);
                async move {
                    let (bytes, _) = object.fetch(range, Some(identity)).await?;
                    Ok::<_, Failure>(bytes)
                }
            });
            let fetched: Vec<Bytes> = futures_util::stream::iter(requests)
                .buffered(AT_ONCE)
                .try_collect()
                .await?;
            Ok::<_, Failure>(fetched)
        })?;
        fetched.map_err(|failure| failure.about(&self.object.url, &self.object.access()))
    }
}

/// What the first request brings: the first bytes, and what file it is.
pub(super) type First = Result<(Bytes, Identity), Failure>;

pub(super) async fn first(object: &Object) -> First {
    match object.fetch(0..HEAD, None).await {
        // There is no first byte.
        Err(Failure::Status(status)) if status.number == 416 => match status.total {
            Some(0) => Ok((Bytes::new(), Identity::default())),
            _ => match object.head().await? {
                empty if empty.len == 0 => Ok((Bytes::new(), empty)),
                _ => Err(Failure::Status(status)),
            },
        },
        opened => opened,
    }
}

impl Source for RemoteSource {
    fn len(&self) -> u64 {
        self.identity.len
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let mut read = self.read_ranges(core::slice::from_ref(&range))?;
        Ok(read.pop().unwrap_or_default())
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        for range in ranges {
            check_range(self.identity.len, range)?;
        }
        let merged = Merged::new(ranges, GAP);
        let pieces: Vec<_> = merged.ranges().iter().map(pieces).collect();
        let mut fetched = self
            .fetch(pieces.iter().flatten().cloned().collect())?
            .into_iter();
        let read: Vec<_> = pieces
            .iter()
            .map(|pieces| joined(fetched.by_ref().take(pieces.len())))
            .collect();
        merged.split(&read)
    }

    fn gap(&self) -> u64 {
        GAP
    }

    fn concurrency(&self) -> Option<usize> {
        Some(READS)
    }

    fn stamp(&self) -> Option<Stamp> {
        let Identity {
            len,
            etag,
            modified,
        } = self.identity.clone();
        Some(Stamp::of_object(len, etag, modified))
    }
}

/// The requests for one of them.
fn pieces(span: &Range<u64>) -> Vec<Range<u64>> {
    let mut pieces = Vec::new();
    let mut at = span.start;
    while at < span.end {
        let end = at.saturating_add(PIECE).min(span.end);
        pieces.push(at..end);
        at = end;
    }
    pieces
}

/// Pieces behind each other; a single one as it is.
fn joined(mut pieces: impl ExactSizeIterator<Item = Bytes>) -> Bytes {
    if pieces.len() <= 1 {
        return pieces.next().unwrap_or_default();
    }
    let mut bytes = BytesMut::new();
    pieces.for_each(|piece| bytes.extend_from_slice(&piece));
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ranges_are_several_requests() {
        let whole = 1..1 + PIECE;
        assert_eq!(pieces(&whole), [whole]);
        assert_eq!(pieces(&(0..PIECE + 1)), [0..PIECE, PIECE..PIECE + 1]);
        assert!(pieces(&(7..7)).is_empty());
    }
}
