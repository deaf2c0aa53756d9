//! What must be known of the content before a file is laid out.

use crate::archive::Archive;
use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::format::{Control, ExecuteOptions, Form, Survey};
use crate::model::{Checksum, DigestKind, Endian, Layout, Over, TensorInfo};
use crate::ops::parallel;
use crate::prelude::*;
use crate::transform::{Scatter, View};

/// Reads the parts of every tensor as far as `what` asks for, and describes what was found.
pub fn survey(archive: &Archive, what: Survey, options: &ExecuteOptions) -> Result<Archive> {
    if what.rising_columns {
        check_columns(archive, &options.control)?;
    }
    let Some(kind) = what.digest else {
        return Ok(archive.clone());
    };
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
        hash_part(archive, tensor, part, kind, &options.control)
            .map_err(|error| error.in_tensor(&tensor.name))
    });
    for (&(index, part), sum) in places.iter().zip(sums) {
        let tensor = manifest.tensors.get_mut(index);
        if let Some(part) = tensor.and_then(|tensor| tensor.parts.get_mut(part)) {
            part.checksum = Some(sum?);
        }
    }
    Ok(archive.with_manifest(manifest))
}

/// The checksum of a part's little-endian bytes.
fn hash_part(
    archive: &Archive,
    tensor: &TensorInfo,
    part: usize,
    kind: DigestKind,
    control: &Control,
) -> Result<Checksum> {
    tensor.readable()?;
    let part = tensor
        .parts
        .get(part)
        .ok_or_else(|| Error::argument("no such part"))?;
    let mut hasher = Hasher::new(kind)
        .ok_or_else(|| Error::unsupported("checksum", format!("{kind} is not built in")))?;
    let view = View::part(archive.data(), part, part.dtype, Endian::Little)?;
    let mut pieces = view.pieces()?;
    let mut piece = Vec::new();
    while pieces.next(&mut piece)? {
        control.advance(0)?;
        hasher.update(&piece);
    }
    Ok(Checksum {
        kind,
        over: Over::Decoded,
        value: hasher.finish(),
    })
}

fn check_columns(archive: &Archive, control: &Control) -> Result<()> {
    for tensor in archive.tensors() {
        let info = tensor.info();
        if info.defect.is_some() || !matches!(info.layout, Layout::Csr { .. }) {
            continue;
        }
        control.advance(0)?;
        let form = Form::canonical(info.dtype);
        let scatter = Scatter::load(archive.data(), info, &form);
        if !scatter.map_err(|error| tensor.blame(error))?.is_sorted() {
            let message =
                "the columns of a row do not rise, as they must in the file to be written";
            return Err(tensor.blame(Error::unsupported("sparse", message)));
        }
    }
    Ok(())
}
