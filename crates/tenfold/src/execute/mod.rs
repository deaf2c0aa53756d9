//! Carries a plan out, in the cheapest way that the source and the target allow.
//!
//! Where the target is a file and every place in it is known beforehand, workers write at those places in parallel, and
//! bytes that do not change are moved by the kernel ([`positioned`]). Otherwise, after a codec or into a stream, workers
//! prepare pieces and one thread writes them in order ([`in_order`]). Both hold pieces, never tensors.

mod in_order;
#[cfg(feature = "std")]
mod positioned;
#[cfg(feature = "scale")]
pub(crate) mod spread;
mod target;

use crate::archive::Archive;
use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::format::{FilePlan, Plan, Segment, Want, Written};
use crate::io::{Output, Sink};
use crate::model::{Checksum, DigestKind, Over, TensorInfo};
use crate::prelude::*;
use crate::threads::{Control, Work};
use crate::transform::{Data, LATE_PIECE, PIECE, Tally, View};

use target::Target;

/// How a plan is carried out.
#[derive(Clone, Copy)]
pub(crate) struct Execution<'e> {
    /// Threads; 0 is one for every core.
    pub(crate) threads: usize,
    pub(crate) control: &'e Arc<Control>,
    /// Counts the numbers that are cast.
    pub(crate) tally: &'e Tally,
}

impl<'e> Execution<'e> {
    pub(crate) fn new(work: &'e Work, tally: &'e Tally) -> Self {
        Self {
            threads: work.threads,
            control: &work.control,
            tally,
        }
    }
}

/// Writes the files of a plan that was made for the tensors of `from`, and says how long each of them is.
pub(crate) fn execute(
    plan: Plan,
    from: &Archive,
    out: &mut dyn Output,
    options: &Execution<'_>,
) -> Result<Vec<u64>> {
    let from = &from.with_threads(options.threads).watched(options.control);
    for segment in plan.files.iter().flat_map(|file| &file.segments) {
        options.control.expect(work(segment, from)?);
    }
    // What says what others hold comes after them, and last the file that names all.
    let mut order: Vec<(usize, FilePlan)> = plan.files.into_iter().enumerate().collect();
    order.sort_by_key(|(place, file)| (*place == 0, file.is_index));
    let mut lengths: Vec<u64> = order.iter().map(|_| 0).collect();
    let mut written = Vec::new();
    for (place, file) in order {
        let mut executor = Executor::new(from, options);
        if file.is_index {
            executor.before = core::mem::take(&mut written);
        }
        let (len, done) = executor.file(file, out)?;
        if let Some(known) = lengths.get_mut(place) {
            *known = len;
        }
        written.extend(done);
    }
    Ok(lengths)
}

/// Bytes of pieces that are held at once where the number of threads does not follow from the processors.
const HELD: u64 = 32 << 20;

/// Writes one file.
struct Executor<'e> {
    from: &'e Archive,
    options: &'e Execution<'e>,
    /// How far the file has come.
    at: u64,
    /// The parts of tensors that are in it.
    written: Vec<Written>,
    /// Those in the files before it, where it names these.
    before: Vec<Written>,
    /// Where the late segments stand, in their order.
    late: Vec<u64>,
}

impl<'e> Executor<'e> {
    fn new(from: &'e Archive, options: &'e Execution<'e>) -> Self {
        Self {
            from,
            options,
            at: 0,
            written: Vec::new(),
            before: Vec::new(),
            late: Vec::new(),
        }
    }

    /// Writes all of it, and says how long it is and what is in it and in those that it knows.
    fn file(mut self, file: FilePlan, out: &mut dyn Output) -> Result<(u64, Vec<Written>)> {
        let mut known = Some(0);
        for segment in &file.segments {
            let Some(at) = known else { break };
            known = known_len(segment, self.from, at)?.map(|len| at.saturating_add(len));
        }
        // Where all lengths are known, the disk is asked for the room beforehand.
        let mut sink = out.create(&file.name, known)?;
        let mut target = Target::new(&mut *sink, &file.name);
        let mut segments = file.segments;
        let is_late = |segment: &Segment| matches!(segment, Segment::Late { .. });
        let mut promised = Vec::new();
        if !target.is_file() && segments.iter().any(is_late) {
            (segments, promised) = late_as_bytes(segments, self.from, self.options)?;
        }
        let mut late = Vec::new();
        let mut segments = segments.into_iter().peekable();
        while segments.peek().is_some() {
            let mut known = Vec::new();
            while let Some(segment) =
                segments.next_if(|segment| !matches!(segment, Segment::Computed(_)))
            {
                known.push(segment);
            }
            self.segments(&known, &mut target)?;
            late.extend(known.into_iter().filter(is_late));
            if let Some(Segment::Computed(make)) = segments.next() {
                let bytes = match (self.before.as_slice(), self.written.as_slice()) {
                    ([], written) | (written, []) => make(written, self.at)?,
                    (before, written) => make(&[before, written].concat(), self.at)?,
                };
                target.write(self.at, &bytes)?;
                self.at += bytes.len() as u64;
            }
        }
        for (segment, &place) in late.into_iter().zip(&self.late) {
            if let Some(bytes) = make_late(segment, &self.written, place)? {
                target.write(place, &bytes)?;
            }
        }
        keep_promises(&promised, &self.written)?;
        target.finish(self.at)?;
        sink.finish()?;
        self.before.append(&mut self.written);
        Ok((self.at, self.before))
    }

    /// Writes segments without a computed one among them.
    fn segments(&mut self, segments: &[Segment], target: &mut Target<'_>) -> Result<()> {
        #[cfg(feature = "std")]
        if let Some(file) = target.file()
            && !self.hashes_late(segments)
            && segments.iter().all(|segment| {
                !matches!(
                    segment,
                    Segment::Tensor { codec: Some(_), .. }
                        | Segment::Chunks { .. }
                        | Segment::Text { .. }
                )
            })
        {
            return positioned::write(self, segments, file);
        }
        in_order::write(self, segments, target)
    }

    /// Whether something is hashed whose answers come late: a hash needs the bytes in their order, and there they are asked
    /// for beforehand.
    #[cfg(feature = "std")]
    fn hashes_late(&self, segments: &[Segment]) -> bool {
        let is_hashed = |segment: &Segment| {
            let Segment::Tensor { digest, .. } = segment else {
                return false;
            };
            digest.is_some()
        };
        self.from.waiting().is_some() && segments.iter().any(is_hashed)
    }

    /// On how many threads segments are written; 0 is one for every core. Where answers come late and nobody said
    /// otherwise, on so many that enough of them are waited for, as long as their pieces do not take much memory.
    fn threads<'s>(&self, segments: impl IntoIterator<Item = &'s Segment>) -> Result<usize> {
        let asked = self.options.threads;
        let (0, Some(waiting)) = (asked, self.from.waiting()) else {
            return Ok(asked);
        };
        let mut largest = LATE_PIECE;
        for segment in segments {
            let piece = match segment {
                Segment::Tensor {
                    index,
                    part,
                    want,
                    codec: None,
                    ..
                } => {
                    let info = self.tensor(*index)?;
                    if View::is_light(self.data(), info, want) {
                        let view = View::new(self.data(), info, *part, want)?;
                        view.piece().min(view.len())
                    } else {
                        PIECE as u64
                    }
                }
                Segment::Tensor { .. } | Segment::Chunks { .. } | Segment::Text { .. } => {
                    PIECE as u64
                }
                _ => 0,
            };
            largest = largest.max(piece);
        }
        let most = usize::try_from(HELD / largest).unwrap_or(1);
        Ok(most.clamp(2, waiting.max(2)))
    }

    fn tensor(&self, index: usize) -> Result<&'e TensorInfo> {
        tensor(self.from, index)
    }

    /// The data that is read, with its casts counted.
    fn data(&self) -> Data<'e> {
        self.from.data().counted(self.options.tally)
    }
}

/// What was made for the sake of late segments alone must be what was written then: a source that changes in between
/// would give a file that contradicts itself.
fn keep_promises(promised: &[Written], written: &[Written]) -> Result<()> {
    let is_same = |(a, b): (&Written, &Written)| {
        (&a.range, a.raw_len, &a.digest) == (&b.range, b.raw_len, &b.digest)
    };
    if promised.len() <= written.len() && promised.iter().zip(written).all(is_same) {
        Ok(())
    } else {
        Err(Error::mismatch(
            "changed",
            "the input changed while it was being read, so the output contradicts itself; try again",
        ))
    }
}

/// Makes everything up to the first computed segment without keeping it, to know what late segments are: a stream cannot
/// be returned to. Also gives what it made.
fn late_as_bytes(
    segments: Vec<Segment>,
    from: &Archive,
    options: &Execution<'_>,
) -> Result<(Vec<Segment>, Vec<Written>)> {
    let is_computed = |segment: &Segment| matches!(segment, Segment::Computed(_));
    let end = segments.iter().position(is_computed);
    let (known, _) = segments.split_at(end.unwrap_or(segments.len()));
    for segment in known {
        options.control.expect(work(segment, from)?);
    }
    let mut nowhere = Nowhere;
    let mut target = Target::new(&mut nowhere, "");
    // What is cast now is cast again when it is written, and counted then.
    let uncounted = Execution {
        tally: &Tally::default(),
        ..*options
    };
    let mut made = Executor::new(from, &uncounted);
    in_order::write(&mut made, known, &mut target)?;
    let mut places = made.late.iter();
    let make = |segment: Segment| {
        if !matches!(segment, Segment::Late { .. }) {
            return Ok(segment);
        }
        let Some(&place) = places.next() else {
            return Err(Error::argument(
                "a late segment after a computed one cannot be written to a stream",
            ));
        };
        let bytes = make_late(segment, &made.written, place)?;
        Ok(Segment::Bytes(bytes.unwrap_or_default()))
    };
    let segments = segments.into_iter().map(make).collect::<Result<_>>()?;
    Ok((segments, made.written))
}

/// The bytes of a late segment that stands at `place`; `None` for any other.
fn make_late(segment: Segment, written: &[Written], place: u64) -> Result<Option<Vec<u8>>> {
    let Segment::Late { len, make } = segment else {
        return Ok(None);
    };
    let bytes = make(written, place)?;
    if bytes.len() as u64 != len {
        let message = format!("{} bytes do not fit into room for {len}", bytes.len());
        return Err(Error::argument(message));
    }
    Ok(Some(bytes))
}

/// Takes bytes and keeps none.
struct Nowhere;

impl Sink for Nowhere {
    fn write(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// The length of a segment that begins at `at`; `None` when it is known only after it was written.
pub(crate) fn known_len(segment: &Segment, from: &Archive, at: u64) -> Result<Option<u64>> {
    Ok(match segment {
        Segment::Bytes(bytes) => Some(bytes.len() as u64),
        Segment::Align { to, .. } => Some(padding(at, *to)),
        Segment::Copy { range, .. } => Some(range.end.saturating_sub(range.start)),
        Segment::Tensor {
            index,
            part,
            want,
            codec: None,
            ..
        } => Some(View::wanted_len(tensor(from, *index)?, *part, want)?),
        Segment::Late { len, .. } => Some(*len),
        Segment::Tensor { codec: Some(_), .. }
        | Segment::Chunks { .. }
        | Segment::Text { .. }
        | Segment::Computed(_) => None,
    })
}

/// How much of the work a segment is: its bytes, and of one that is compressed or spelled out those that go in, because
/// how many come out is known only then. How long padding is shows where it stands: it is expected when it is written.
fn work(segment: &Segment, from: &Archive) -> Result<u64> {
    match segment {
        Segment::Tensor {
            index, part, want, ..
        } => View::wanted_len(tensor(from, *index)?, *part, want),
        Segment::Chunks {
            index,
            dtype,
            sides,
            numbers,
            ..
        } => View::chunks_len(tensor(from, *index)?, *dtype, sides, numbers.as_ref()),
        Segment::Text { index, form, .. } => {
            View::wanted_len(tensor(from, *index)?, 0, &Want::Dense(*form))
        }
        Segment::Align { .. } => Ok(0),
        other => Ok(known_len(other, from, 0)?.unwrap_or(0)),
    }
}

/// Bytes from `at` to the next multiple of `to`.
fn padding(at: u64, to: u64) -> u64 {
    at.checked_next_multiple_of(to)
        .map_or(0, |aligned| aligned - at)
}

fn tensor(from: &Archive, index: usize) -> Result<&TensorInfo> {
    let tensors = &from.manifest().tensors;
    tensors.get(index).ok_or_else(|| {
        Error::argument(format!(
            "the plan names tensor {index} of {}",
            tensors.len()
        ))
    })
}

/// The hash that a segment asks for, while its bytes pass.
struct Digesting(Option<(Hasher, DigestKind, Over)>);

impl Digesting {
    fn new(digest: Option<(DigestKind, Over)>) -> Result<Self> {
        let Some((kind, over)) = digest else {
            return Ok(Self(None));
        };
        let hasher = Hasher::new(kind)
            .ok_or_else(|| Error::unsupported("checksum", format!("{kind} is not built in")))?;
        Ok(Self(Some((hasher, kind, over))))
    }

    /// Whether decoded bytes are wanted too, not only those that are stored.
    fn wants_decoded(&self) -> bool {
        matches!(self.0, Some((_, _, Over::Decoded)))
    }

    fn update(&mut self, bytes: &[u8]) {
        if let Some((hasher, ..)) = &mut self.0 {
            hasher.update(bytes);
        }
    }

    fn finish(self) -> Option<Checksum> {
        self.0.map(|(hasher, kind, over)| Checksum {
            kind,
            over,
            value: hasher.finish(),
        })
    }
}
