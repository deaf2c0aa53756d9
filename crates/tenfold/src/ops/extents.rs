//! What every byte of a file belongs to.

use crate::archive::Archive;
use crate::error::Result;
use crate::model::SourceId;
use crate::prelude::*;

/// A file of an archive, from its first byte to its last.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FileExtents {
    /// The file.
    pub source: SourceId,
    /// Its bytes in order, without a gap.
    pub extents: Vec<Extent>,
}

/// Bytes of a file that belong to one thing.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Extent {
    /// The bytes.
    pub range: Range<u64>,
    /// What they are.
    pub kind: ExtentKind,
}

/// What bytes of a file are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ExtentKind {
    /// No tensor data; the label of the [`Region`](crate::model::Region), such as `header` or `index`.
    Header(&'static str),
    /// Data of a tensor. If several tensors share the bytes, as tied weights do, it is the first.
    Data {
        /// The place of the tensor among those of the archive.
        tensor: usize,
        /// Which of its parts.
        part: usize,
    },
    /// What writers put between data so that it is aligned: bytes of nothing but 0 and 255.
    Padding,
    /// Bytes that belong to nothing and are not padding.
    Unclaimed,
    /// Bytes that several things claim.
    Overlap,
}

/// Longer gaps are no padding, and are not read.
pub(super) const PADDING: u64 = 1 << 20;

/// Says of every byte of every file what it belongs to. Reads what lies between headers and data, and no more of it than
/// padding can be long.
///
/// ```
/// use tenfold::ops::{ExtentKind, extents};
/// let header = br#"{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#;
/// let mut file = (header.len() as u64).to_le_bytes().to_vec();
/// file.extend_from_slice(header);
/// file.extend([1, 2]);
/// let len = file.len() as u64;
/// let files = extents(&tenfold::Archive::from_bytes(file)?)?;
/// let data = files[0].extents.last().unwrap();
/// assert_eq!((data.range.clone(), data.kind), (len - 2..len, ExtentKind::Data { tensor: 0, part: 0 }));
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn extents(archive: &Archive) -> Result<Vec<FileExtents>> {
    let mut files = Vec::new();
    for source in (0..archive.source_count()).map(SourceId) {
        let mut extents = claimed(archive, source);
        for extent in &mut extents {
            if extent.kind == ExtentKind::Unclaimed && is_padding(archive, source, &extent.range)? {
                extent.kind = ExtentKind::Padding;
            }
        }
        files.push(FileExtents { source, extents });
    }
    Ok(files)
}

/// Whether a gap is what writers pad with, one after the other too.
pub(super) fn is_padding(archive: &Archive, file: SourceId, gap: &Range<u64>) -> Result<bool> {
    if gap.end - gap.start > PADDING {
        return Ok(false);
    }
    let Some(source) = archive.source(file) else {
        return Ok(false);
    };
    let bytes = source.read(gap.clone());
    let bytes = bytes.map_err(|error| error.at_source(file, gap.clone()))?;
    Ok(bytes.iter().all(|byte| matches!(byte, 0 | 0xff)))
}

/// What the description of a file says of its bytes. What it says nothing of is unclaimed.
pub(super) fn claimed(archive: &Archive, file: SourceId) -> Vec<Extent> {
    let len = archive.source(file).map_or(0, |source| source.len());
    let mut claims = claims(archive, file);
    for claim in &mut claims {
        // Data of a file that was cut off can lie past its end.
        claim.range = claim.range.start.min(len)..claim.range.end.min(len);
    }
    claims.retain(|claim| claim.range.start < claim.range.end);
    claims.sort_by_key(|claim| (claim.range.start, claim.range.end));
    let is_data = |claim: &Extent| matches!(claim.kind, ExtentKind::Data { .. });
    claims.dedup_by(|next, kept| next.range == kept.range && is_data(next) && is_data(kept));
    // Every place where a claim begins or ends. The sum of those that are open is the open one where it is alone.
    let mut borders: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * claims.len() + 1);
    for (place, claim) in claims.iter().enumerate() {
        borders.push((claim.range.start, true, place));
        borders.push((claim.range.end, false, place));
    }
    borders.sort_unstable();
    let (mut open, mut sum, mut at) = (0usize, 0usize, 0);
    let mut extents: Vec<Extent> = Vec::new();
    for (border, begins, place) in borders.into_iter().chain([(len, false, 0)]) {
        if at < border {
            let kind = match open {
                0 => ExtentKind::Unclaimed,
                1 => claims
                    .get(sum)
                    .map_or(ExtentKind::Overlap, |claim| claim.kind),
                _ => ExtentKind::Overlap,
            };
            match extents.last_mut() {
                Some(last) if last.kind == kind => last.range.end = border,
                _ => extents.push(Extent {
                    range: at..border,
                    kind,
                }),
            }
            at = border;
        }
        if begins {
            (open, sum) = (open + 1, sum.wrapping_add(place));
        } else {
            (open, sum) = (open.saturating_sub(1), sum.wrapping_sub(place));
        }
    }
    extents
}

/// The data of tensors and everything else that a description names in a file.
fn claims(archive: &Archive, file: SourceId) -> Vec<Extent> {
    let manifest = archive.manifest();
    let mut claims = Vec::new();
    for (tensor, info) in manifest.tensors.iter().enumerate() {
        for (part, stored) in info.parts.iter().enumerate() {
            let places = stored.payload.places().into_iter();
            for (_, range) in places.filter(|(source, _)| *source == file) {
                let kind = ExtentKind::Data { tensor, part };
                claims.push(Extent { range, kind });
            }
        }
    }
    let regions = manifest
        .regions
        .iter()
        .filter(|region| region.source == file);
    claims.extend(regions.map(|region| Extent {
        range: region.range.clone(),
        kind: ExtentKind::Header(region.label),
    }));
    claims
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DType, Payload, Region, TensorInfo};
    use crate::{ArchiveBuilder, Bytes};

    fn data(tensor: usize) -> ExtentKind {
        ExtentKind::Data { tensor, part: 0 }
    }

    /// The extents of a file of bytes in which some ranges are tensors and one is a header.
    fn of(
        file: &[u8],
        header: Range<u64>,
        tensors: &[Range<u64>],
    ) -> Vec<(Range<u64>, ExtentKind)> {
        let mut builder = ArchiveBuilder::new();
        let bytes = Bytes::copy_from_slice(file);
        let len = file.len() as u64;
        builder.push("whole", DType::U8, &[len], bytes).unwrap();
        let archive = builder.finish();
        let mut manifest = archive.manifest().clone();
        let source = manifest.tensors[0].parts[0].payload.stored().unwrap().0;
        manifest.tensors = (tensors.iter().enumerate())
            .map(|(n, range)| {
                let payload = Payload::Raw {
                    source,
                    range: range.clone(),
                };
                let shape = vec![range.end - range.start];
                TensorInfo::dense(format!("t{n}"), DType::U8, shape, payload)
            })
            .collect();
        manifest.regions.push(Region::new(source, header, "header"));
        let files = extents(&archive.with_manifest(manifest)).unwrap();
        let found = files
            .into_iter()
            .find(|file| file.source == source)
            .unwrap();
        let found = found.extents.into_iter();
        found.map(|extent| (extent.range, extent.kind)).collect()
    }

    #[test]
    fn every_byte_belongs_to_something() {
        let header = ExtentKind::Header("header");
        let file = [9, 9, 0, 0, 1, 1, 7, 7, 1, 1];
        assert_eq!(
            of(&file, 0..2, &[4..6, 8..10]),
            [
                (0..2, header),
                (2..4, ExtentKind::Padding),
                (4..6, data(0)),
                (6..8, ExtentKind::Unclaimed),
                (8..10, data(1)),
            ]
        );
        // Tied weights are one, a part of another's bytes is not.
        assert_eq!(
            of(&file, 0..4, &[4..8, 4..8, 6..20]),
            [
                (0..4, header),
                (4..6, data(0)),
                (6..8, ExtentKind::Overlap),
                (8..10, data(2)),
            ]
        );
        // One inside another, and nothing at all.
        assert_eq!(
            of(&file, 0..10, &[3..4, 5..5]),
            [(0..3, header), (3..4, ExtentKind::Overlap), (4..10, header),]
        );
        assert_eq!(of(&[], 0..0, &[]), []);
    }
}
