//! A plan that several processes carry out: where everything will be, the part of one of them, and what can only be made
//! when all of them are done.

use std::fs::File;

use super::{Execution, Executor, known_len, make_late, padding, positioned, target};
use crate::archive::Archive;
use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::format::{FilePlan, Segment, Want, Written};
use crate::model::{Checksum, DigestKind};
use crate::prelude::*;

/// Where the segments of a file are.
pub(crate) struct Places {
    /// Where each of them begins, up to the first computed one, that one included.
    starts: Vec<u64>,
    /// Bytes before the first computed segment, or all of them.
    pub(crate) len: u64,
}

/// The part of a file that one process writes.
pub(crate) struct Window {
    pub(crate) range: Range<u64>,
    /// Nothing that is written by such parts is after it.
    pub(crate) is_last: bool,
}

impl Window {
    pub(super) fn overlaps(&self, range: &Range<u64>) -> bool {
        range.start < self.range.end && range.end > self.range.start
    }

    /// Whether a segment that begins there is its own.
    pub(super) fn owns(&self, start: u64) -> bool {
        self.range.contains(&start) || (self.is_last && start == self.range.end)
    }

    pub(super) fn end_of(&self, from: &Archive, start: u64, segment: &Segment) -> Result<u64> {
        let len = known_len(segment, from, start)?;
        let len = len.ok_or_else(|| Error::argument("a segment of unknown length"))?;
        Ok(start.saturating_add(len))
    }
}

/// The places of a file's segments, where all of them are known before anything is written but those of what is computed at
/// its end; `None` where they are not: after a codec, in text, or where data follows an index.
pub(crate) fn places(file: &FilePlan, from: &Archive) -> Result<Option<Places>> {
    let mut starts = Vec::new();
    let mut at = 0u64;
    let mut segments = file.segments.iter();
    for segment in segments.by_ref() {
        starts.push(at);
        if let Segment::Computed(_) = segment {
            let is_tail = |segment: &Segment| {
                matches!(
                    segment,
                    Segment::Computed(_) | Segment::Bytes(_) | Segment::Align { .. }
                )
            };
            return Ok(segments.all(is_tail).then_some(Places { starts, len: at }));
        }
        let Some(len) = known_len(segment, from, at)? else {
            return Ok(None);
        };
        at = at
            .checked_add(len)
            .ok_or_else(|| Error::limit("size", "a file of more than 2^64 bytes"))?;
    }
    Ok(Some(Places { starts, len: at }))
}

impl Places {
    /// Bytes that are known only when everything else is written.
    pub(crate) fn late(&self, file: &FilePlan) -> Vec<Range<u64>> {
        let placed = self.starts.iter().zip(&file.segments);
        placed
            .filter_map(|(&start, segment)| match segment {
                Segment::Late { len, .. } => Some(start..start + len),
                _ => None,
            })
            .collect()
    }

    /// Where the tensors begin, with the places of their segments: whoever writes that byte compares their checksums.
    pub(crate) fn tensors<'f>(
        &'f self,
        file: &'f FilePlan,
        window: &'f Window,
    ) -> impl Iterator<Item = usize> + 'f {
        let placed = self.starts.iter().zip(&file.segments);
        placed.filter_map(|(&start, segment)| match segment {
            Segment::Tensor { index, .. } if window.owns(start) => Some(*index),
            _ => None,
        })
    }
}

/// Writes what lies inside a window to its place in a file. Gives what the tensors hash to that begin there, with the
/// places of their segments.
pub(crate) fn write_window(
    file: &FilePlan,
    places: &Places,
    from: &Archive,
    window: &Window,
    (out, name): (&File, &str),
    options: &Execution<'_>,
) -> Result<Vec<(usize, Checksum)>> {
    let from = &from.with_threads(options.threads).watched(options.control);
    let executor = Executor::new(from, options);
    // What is computed is not for any of the parts.
    let known = places.starts.iter().copied().zip(&file.segments);
    let known = known.filter(|(_, segment)| !matches!(segment, Segment::Computed(_)));
    let known: Vec<_> = known.collect();
    let file = target::NamedFile { file: out, name };
    positioned::write_window(&executor, &known, window, file)
}

/// Bytes, and where they belong.
pub(crate) type Made = (u64, Vec<u8>);

/// What is known only when all parts are written: bytes and their places, in order, and how long the file gets. `digest` says
/// what the tensor of a segment hashes to.
pub(crate) fn finish(
    file: FilePlan,
    places: &Places,
    from: &Archive,
    digest: impl Fn(usize) -> Option<Checksum>,
) -> Result<(Vec<Made>, u64)> {
    let mut written = Vec::new();
    for (number, (&start, segment)) in places.starts.iter().zip(&file.segments).enumerate() {
        let Segment::Tensor {
            index,
            part,
            digest: asked,
            ..
        } = segment
        else {
            continue;
        };
        let len = known_len(segment, from, start)?.unwrap_or(0);
        let found = digest(number);
        if asked.is_some() != found.is_some() {
            let message = format!("the hash of segment {number} was not recorded");
            return Err(Error::mismatch("plan.receipt", message));
        }
        written.push(Written {
            index: *index,
            part: *part,
            range: start..start + len,
            raw_len: len,
            digest: found,
            chunks: Vec::new(),
        });
    }
    let mut bytes = Vec::new();
    let mut end = places.len;
    let mut is_behind = false;
    let starts = places.starts.iter().map(|&start| Some(start));
    let starts = starts.chain(core::iter::repeat(None));
    for (segment, start) in file.segments.into_iter().zip(starts) {
        is_behind |= matches!(segment, Segment::Computed(_));
        let made = match segment {
            Segment::Computed(make) => make(&written, end)?,
            Segment::Bytes(made) if is_behind => made,
            Segment::Align { to, fill } if is_behind => {
                vec![fill; crate::transform::as_size(padding(end, to))?]
            }
            late @ Segment::Late { .. } => {
                let start = start.unwrap_or(end);
                bytes.extend(make_late(late, &written, start)?.map(|made| (start, made)));
                continue;
            }
            _ => continue,
        };
        let at = end;
        end += made.len() as u64;
        bytes.push((at, made));
    }
    Ok((bytes, end))
}

/// SHA-256 of how a file will be laid out: the lengths of all segments as far as they are known, the bytes of those that are,
/// and what goes where.
pub(crate) fn layout_hash(file: &FilePlan, from: &Archive) -> Result<[u8; 32]> {
    let mut hash = Layout::new("tenfold.layout/1")?;
    hash.text(&file.name);
    hash.number(file.segments.len() as u64);
    let mut at = Some(0);
    for segment in &file.segments {
        let len = match at {
            Some(at) => known_len(segment, from, at)?,
            None => None,
        };
        hash.number(len.unwrap_or(u64::MAX));
        at = at
            .zip(len)
            .map(|(at, len): (u64, u64)| at.saturating_add(len));
        hash.segment(segment, from);
    }
    hash.finish()
}

/// What is hashed of a layout. Every text has its length in front.
struct Layout(Hasher);

impl Layout {
    fn new(what: &str) -> Result<Self> {
        let hasher = Hasher::new(DigestKind::Sha256)
            .ok_or_else(|| Error::unsupported("digest", "SHA-256 is not built in"))?;
        let mut new = Self(hasher);
        new.text(what);
        Ok(new)
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn segment(&mut self, segment: &Segment, from: &Archive) {
        // What it shows for debugging names everything but the bytes, and the tensor only by its place.
        match segment {
            Segment::Bytes(bytes) => self.bytes(bytes),
            Segment::Align { to, fill } => {
                self.number(*to);
                self.number((*fill).into());
            }
            other => self.text(&format!("{other:?}")),
        }
        if let Segment::Tensor { index, want, .. } = segment {
            let tensors = &from.manifest().tensors;
            let tensor = tensors.get(*index);
            self.text(tensor.map_or("", |tensor| &tensor.name));
            // Where stored bytes are moved, the same layout may move others.
            if let (Want::Stored, Some(tensor)) = (want, tensor) {
                let stored = tensor.parts.iter().filter_map(|part| part.payload.stored());
                stored.for_each(|(source, range)| {
                    self.number(source.index() as u64);
                    self.number(range.start);
                    self.number(range.end);
                });
            }
        }
    }

    fn finish(self) -> Result<[u8; 32]> {
        (self.0.finish().as_ref().try_into())
            .map_err(|cause| Error::argument("a digest of another length").because(cause))
    }
}
