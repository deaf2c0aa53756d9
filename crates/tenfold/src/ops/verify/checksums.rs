//! What bytes hash to, compared with what the file says.

use crate::archive::{Archive, Tensor};
use crate::digest::{Hasher, Hex};
use crate::error::{Error, Result};
use crate::model::{Checksum, Over, Part, Payload, SealedRange, SourceId};
use crate::ops::verify::VerifyOptions;
use crate::prelude::*;
use crate::threads::{self, Control, Work};
use crate::transform::{Input, PIECE, View, as_size};

/// Compares the checksums of tensors and of the ranges that these lie in, where there are some. The first that is wrong is
/// the error, that of a tensor before that of a range. [`verify`](crate::ops::verify()) finds all of them, and more.
///
/// ```
/// use tenfold::{Archive, ErrorKind, ops};
/// # use tenfold::Bytes;
/// # use tenfold::format::{Checksums, Registry};
/// # use tenfold::model::{DType, DigestKind};
/// # let mut builder = Archive::builder();
/// # builder.push("x", DType::U8, &[4], Bytes::from_static(&[1, 2, 3, 4]))?;
/// # let mut output = tenfold::io::MemoryOutput::new();
/// # let options = ops::ConvertOptions::new().checksums(Checksums::With(DigestKind::Crc32c));
/// # let registry = Registry::standard();
/// # ops::Conversion::prepare(&builder.finish(), registry.get("ztensor")?, &options)?.write_to("x.zt", &mut output)?;
/// # let mut file = output.into_files().remove("x.zt").unwrap().to_vec();
/// // A zTensor file with a checksum, and a byte of its data that was changed.
/// let archive = Archive::from_bytes(file.clone())?;
/// ops::compare_checksums(&archive, &Default::default())?;
/// let at = archive.tensor("x")?.info().parts[0].payload.stored().unwrap().1.start;
/// file[at as usize] ^= 1;
/// let error = ops::compare_checksums(&Archive::from_bytes(file)?, &Default::default()).unwrap_err();
/// assert_eq!((error.kind(), error.tensor()), (ErrorKind::Mismatch, Some("x")));
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn compare_checksums(archive: &Archive, options: &VerifyOptions) -> Result<()> {
    compare_checksums_watched(archive, &options.work)
}

/// The same as a part of other work.
pub(in crate::ops) fn compare_checksums_watched(archive: &Archive, options: &Work) -> Result<()> {
    options.control.check()?;
    let archive = &archive.watched(&options.control);
    let id = archive.format().map_or("file", |spec| spec.id);
    let seals = Seals::of(archive);
    for sealed in &seals.sealed {
        let Range { start, end } = sealed.range;
        options.control.expect(end.saturating_sub(start));
    }
    let threads = archive.threads_for(options.threads);
    let compared = threads::map(threads, &seals.sealed, |sealed, (): &mut ()| {
        compare_seal(archive, sealed, &options.control).map_err(|error| error.in_format(id))
    });
    match compared {
        // Bytes that are what they were when they were sealed need not be hashed again.
        Ok(_) => compare_tensors(archive, options, &seals),
        // Which tensor it is helps more, where that is known.
        Err(error) => compare_tensors(archive, options, &Seals::default()).and(Err(error)),
    }
}

/// Compares the checksums of tensors, except of stored bytes that were sealed.
fn compare_tensors(archive: &Archive, options: &Work, seals: &Seals<'_>) -> Result<()> {
    let is_open = |part: &&Part| part.checksum.is_some() && !seals.cover(part);
    let has_sum = |tensor: &Tensor<'_>| {
        let info = tensor.info();
        info.defect.is_none() && info.parts.iter().any(|part| is_open(&part))
    };
    let tensors: Vec<_> = archive.tensors().filter(has_sum).collect();
    for part in (tensors.iter()).flat_map(|tensor| tensor.info().parts.iter().filter(is_open)) {
        options.control.expect(hashed_len(part));
    }
    let threads = archive.threads_for(options.threads);
    threads::map(threads, &tensors, |tensor, (): &mut ()| {
        let mut parts = tensor.info().parts.iter().filter(is_open);
        let compared = parts.try_for_each(|part| match &part.checksum {
            Some(checksum) => compare_checksum(archive, &part.payload, checksum, &options.control),
            None => Ok(()),
        });
        compared.map_err(|error| tensor.blame(error))
    })?;
    Ok(())
}

/// Bytes that are read to compare the checksum of a part.
pub(super) fn hashed_len(part: &Part) -> u64 {
    match (&part.checksum, part.payload.stored()) {
        (Some(sum), Some((_, stored))) if sum.over == Over::Stored => {
            stored.end.saturating_sub(stored.start)
        }
        _ => part.payload.len(),
    }
}

/// Sealed ranges that hold data of tensors, or what is kept of a file.
#[derive(Default)]
struct Seals<'m> {
    sealed: Vec<&'m SealedRange>,
    ranges: Ranges,
}

impl<'m> Seals<'m> {
    fn of(archive: &'m Archive) -> Self {
        let manifest = archive.manifest();
        let tensors = manifest.tensors.iter();
        let parts = tensors.flat_map(|tensor| tensor.parts.iter());
        let kept = manifest.kept.iter();
        let stored = parts.clone().filter_map(|part| match &part.payload {
            Payload::Lazy { maker, .. } => maker.made_from(),
            payload => payload.stored(),
        });
        let needed = Ranges::new(stored.chain(kept.map(|kept| (kept.source, kept.range.clone()))));
        // Where chunks are is found only when they are read.
        let chunked = parts.filter_map(|part| match &part.payload {
            Payload::Chunks(chunks) => Some(chunks.files.iter().copied()),
            _ => None,
        });
        let mut chunked: Vec<SourceId> = chunked.flatten().collect();
        chunked.sort_unstable();
        chunked.dedup();
        let known = |sealed: &&SealedRange| Hasher::new(sealed.checksum.kind).is_some();
        let is_needed = |sealed: &&SealedRange| {
            needed.overlap(sealed.source, &sealed.range)
                || chunked.binary_search(&sealed.source).is_ok()
        };
        let sealed = manifest.sealed.iter().filter(known).filter(is_needed);
        let sealed: Vec<_> = sealed.collect();
        let ranges = sealed.iter();
        let ranges = Ranges::new(ranges.map(|sealed| (sealed.source, sealed.range.clone())));
        Self { sealed, ranges }
    }

    /// Whether the checksum of a part says nothing that a seal does not say.
    fn cover(&self, part: &Part) -> bool {
        let is_stored = matches!(part.payload, Payload::Raw { .. })
            || (part.checksum.as_ref()).is_some_and(|sum| sum.over == Over::Stored);
        let covers = |(source, range)| self.ranges.cover(source, &range);
        is_stored && part.payload.stored().is_some_and(covers)
    }
}

/// Ranges of files that do not touch each other, in order.
#[derive(Default)]
struct Ranges(Vec<(SourceId, Range<u64>)>);

impl Ranges {
    fn new(ranges: impl Iterator<Item = (SourceId, Range<u64>)>) -> Self {
        let mut all: Vec<_> = ranges.filter(|(_, range)| !range.is_empty()).collect();
        all.sort_unstable_by_key(|(source, range)| (*source, range.start));
        let mut merged: Vec<(SourceId, Range<u64>)> = Vec::new();
        for (source, range) in all {
            match merged.last_mut() {
                Some((last, before)) if *last == source && range.start <= before.end => {
                    before.end = before.end.max(range.end);
                }
                _ => merged.push((source, range)),
            }
        }
        Self(merged)
    }

    /// The last range that begins before a place.
    fn before(&self, source: SourceId, place: u64) -> Option<&Range<u64>> {
        let begins = |(own, range): &(SourceId, Range<u64>)| (*own, range.start) < (source, place);
        let after = self.0.partition_point(begins);
        let (own, range) = self.0.get(after.checked_sub(1)?)?;
        (*own == source).then_some(range)
    }

    /// Whether one of them has a byte of a range.
    fn overlap(&self, source: SourceId, range: &Range<u64>) -> bool {
        let before = self.before(source, range.end);
        before.is_some_and(|before| before.end > range.start)
    }

    /// Whether one of them has all bytes of a range.
    fn cover(&self, source: SourceId, range: &Range<u64>) -> bool {
        let before = self.before(source, range.end);
        before.is_some_and(|before| before.start <= range.start && range.end <= before.end)
    }
}

/// Reads a sealed range, and compares what it hashes to.
pub(super) fn compare_seal(
    archive: &Archive,
    sealed: &SealedRange,
    control: &Control,
) -> Result<()> {
    let payload = Payload::Raw {
        source: sealed.source,
        range: sealed.range.clone(),
    };
    compare_checksum(archive, &payload, &sealed.checksum, control)
        .map_err(|error| error.in_file(sealed.source, &sealed.what))
}

/// Reads bytes to their end, and compares what they hash to.
pub(super) fn compare_checksum(
    archive: &Archive,
    payload: &Payload,
    checksum: &Checksum,
    control: &Control,
) -> Result<()> {
    let mut sum = Sum::new(Some(checksum), checksum.over);
    let mut take = |piece: &[u8]| {
        Sum::update(&mut sum, piece);
        control.advance(piece.len() as u64)
    };
    match checksum.over {
        Over::Stored => read_all(&archive.data().input(payload)?, take)?,
        Over::Decoded => {
            let view = View::decoded(archive.data(), payload)?;
            let mut pieces = view.pieces()?;
            let mut piece = Vec::new();
            while pieces.next(&mut piece)? {
                take(&piece)?;
            }
        }
    }
    Sum::compare(sum).map_err(|error| match payload.stored() {
        Some((source, range)) => error.at_source(source, range),
        None => error,
    })
}

/// A checksum that is being computed, with what it should be.
pub(super) struct Sum<'c> {
    hasher: Hasher,
    expected: &'c Checksum,
}

impl<'c> Sum<'c> {
    /// `None` where there is nothing to compare, or the kind is not part of this build.
    pub(super) fn new(expected: Option<&'c Checksum>, over: Over) -> Option<Self> {
        let expected = expected.filter(|checksum| checksum.over == over)?;
        Some(Self {
            hasher: Hasher::new(expected.kind)?,
            expected,
        })
    }

    pub(super) fn update(sum: &mut Option<Self>, bytes: &[u8]) {
        if let Some(sum) = sum {
            sum.hasher.update(bytes);
        }
    }

    pub(super) fn compare(sum: Option<Self>) -> Result<()> {
        sum.map_or(Ok(()), |sum| compare(sum.hasher, sum.expected))
    }
}

/// Compares what bytes hash to with what the file says.
pub(super) fn compare(hasher: Hasher, expected: &Checksum) -> Result<()> {
    let computed = hasher.finish();
    if computed == expected.value {
        return Ok(());
    }
    let message = format!(
        "{}: stored {}, computed {}",
        expected.kind,
        Hex(&expected.value),
        Hex(&computed)
    );
    Err(Error::mismatch("checksum", message))
}

fn read_all(input: &Input<'_>, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut buffer = Vec::new();
    let mut at = 0;
    while at < input.len() {
        let n = (input.len() - at).min(PIECE as u64 / 4);
        if input.is_memory() {
            take(&input.read(at, n)?)?;
        } else {
            buffer.resize(as_size(n)?, 0);
            input.read_into(at, &mut buffer)?;
            take(&buffer)?;
        }
        at += n;
    }
    Ok(())
}
