//! What must be known of the content before a file is laid out.

use crate::archive::Archive;
use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::format::{Control, ExecuteOptions, Survey};
use crate::model::{Checksum, DigestKind, Endian, Over};
use crate::ops::parallel;
use crate::prelude::*;
use crate::transform::View;

/// Reads the parts of every tensor as far as `what` asks for, and describes what was found: equal parts as the same stored
/// bytes, checksums over the decoded ones.
pub fn survey(archive: &Archive, what: Survey, options: &ExecuteOptions) -> Result<Archive> {
    if what == Survey::default() {
        return Ok(archive.clone());
    }
    let mut manifest = archive.manifest().clone();
    let places: Vec<_> = (manifest.tensors.iter().enumerate())
        .flat_map(|(index, tensor)| (0..tensor.parts.len()).map(move |part| (index, part)))
        .collect();
    let sums = parallel::map(places.len(), options.threads, |n| {
        let &(index, part) = places
            .get(n)
            .ok_or_else(|| Error::argument("no such part"))?;
        let tensor = archive
            .manifest()
            .tensors
            .get(index)
            .ok_or_else(|| Error::argument("no such tensor"))?;
        hash_part(archive, tensor, part, what, &options.control)
            .map_err(|error| error.in_tensor(&tensor.name))
    });
    let mut known = LookupMap::default();
    for (&(index, part), sums) in places.iter().zip(sums) {
        let (identity, checksum) = sums?;
        let Some(part) = manifest
            .tensors
            .get_mut(index)
            .and_then(|tensor| tensor.parts.get_mut(part))
        else {
            continue;
        };
        if let Some(identity) = identity {
            part.payload = known
                .entry((identity, part.payload.len()))
                .or_insert_with(|| part.payload.clone())
                .clone();
        }
        if checksum.is_some() {
            part.checksum = checksum;
        }
    }
    Ok(archive.with_manifest(manifest))
}

type Sums = (Option<bytes::Bytes>, Option<Checksum>);

/// The SHA-256 by which equal parts are found, and the checksum that is wanted, of a part's little-endian bytes.
fn hash_part(
    archive: &Archive,
    tensor: &crate::model::TensorInfo,
    part: usize,
    what: Survey,
    control: &Control,
) -> Result<Sums> {
    tensor.readable()?;
    let part = tensor
        .parts
        .get(part)
        .ok_or_else(|| Error::argument("no such part"))?;
    let hasher = |kind| {
        Hasher::new(kind)
            .ok_or_else(|| Error::unsupported("checksum", format!("{kind} is not built in")))
    };
    let mut identity = what
        .share_equal
        .then(|| hasher(DigestKind::Sha256))
        .transpose()?;
    let mut sum = what.digest.map(hasher).transpose()?;
    let view = View::part(archive.data(), part, part.dtype, Endian::Little)?;
    let mut pieces = view.pieces()?;
    let mut piece = Vec::new();
    while pieces.next(&mut piece)? {
        control.advance(0)?;
        for hasher in identity.iter_mut().chain(&mut sum) {
            hasher.update(&piece);
        }
    }
    let checksum = what.digest.zip(sum).map(|(kind, sum)| Checksum {
        kind,
        over: Over::Decoded,
        value: sum.finish(),
    });
    Ok((identity.map(Hasher::finish), checksum))
}
