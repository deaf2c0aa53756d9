//! What must be known of the content before a file is laid out.

use crate::archive::Archive;
use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::execute::Execution;
use crate::format::{PackSearch, Survey};
use crate::model::{Checksum, DigestKind, Endian, Layout, Order, Over, Part, Symmetry, TensorInfo};
use crate::ops::sparse;
use crate::prelude::*;
use crate::threads::{self, Control};
use crate::transform::{Scatter, View, check_symmetry};

/// An archive after a survey, and what is worth telling about it.
pub(in crate::ops) struct Surveyed {
    /// The archive, described as far as the survey found out.
    pub(in crate::ops) archive: Archive,
    /// What was found, for people.
    pub(in crate::ops) notes: Vec<String>,
}

/// Reads the tensors as far as `what` asks for, and describes what was found.
pub(in crate::ops) fn survey(
    archive: &Archive,
    what: &Survey,
    options: &Execution<'_>,
) -> Result<Surveyed> {
    let archive = &archive
        .with_threads(options.threads)
        .watched(options.control);
    if what.rising_columns {
        check_columns(archive, options.control)?;
    }
    let mut surveyed = Surveyed {
        archive: archive.clone(),
        notes: Vec::new(),
    };
    if let Some(endian) = what.pairs {
        let sort = |archive: &Archive, tensor: &TensorInfo| {
            sparse::sort_pairs(archive, tensor, endian(tensor.dtype), options.tally)
        };
        surveyed.archive = each(&surveyed.archive, options, sort)?;
    }
    if let Some(search) = &what.pack {
        let found = parallel_tensors(&surveyed.archive, options, |archive, tensor| {
            find_symmetry(archive, tensor, search)
        })?;
        let mut manifest = surveyed.archive.manifest().clone();
        for (tensor, (symmetry, note)) in manifest.tensors.iter_mut().zip(found) {
            tensor.set_pack(symmetry);
            surveyed.notes.extend(note);
        }
        surveyed.archive = surveyed.archive.with_manifest(manifest);
    }
    if let Some(kind) = what.digest {
        surveyed.archive = hash_parts(&surveyed.archive, kind, options)?;
    }
    surveyed.archive = surveyed.archive.unwatched();
    Ok(surveyed)
}

/// Applies a change to every tensor.
fn each(
    archive: &Archive,
    options: &Execution<'_>,
    change: impl Fn(&Archive, &TensorInfo) -> Result<TensorInfo> + Sync,
) -> Result<Archive> {
    let mut manifest = archive.manifest().clone();
    manifest.tensors = parallel_tensors(archive, options, change)?.into();
    Ok(archive.with_manifest(manifest))
}

fn parallel_tensors<T: Send>(
    archive: &Archive,
    options: &Execution<'_>,
    work: impl Fn(&Archive, &TensorInfo) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let tensors = &archive.manifest().tensors;
    let threads = archive.threads_for(options.threads);
    threads::map(threads, tensors, |tensor, (): &mut ()| {
        options.control.check()?;
        work(archive, tensor).map_err(|error| error.in_tensor(&tensor.name))
    })
}

/// The first of the candidates that the tensor has, and what packing by it changes.
fn find_symmetry(
    archive: &Archive,
    tensor: &TensorInfo,
    search: &PackSearch,
) -> Result<(Option<Symmetry>, Option<String>)> {
    let mut missed = None;
    for symmetry in (search.candidates)(tensor)? {
        let verdict = check_symmetry(archive.data(), tensor.readable()?, &symmetry)?;
        if verdict.violation.is_none() {
            let note = (verdict.zeros > 0).then(|| {
                format!(
                    "tensor {:?}: packed by {}, {} of its zeros change sign",
                    tensor.name, symmetry.operation, verdict.zeros
                )
            });
            return Ok((Some(symmetry), note));
        }
        missed = missed.or(verdict.violation.zip(Some(symmetry)));
    }
    match missed {
        Some((index, symmetry)) if search.required => Err(Error::mismatch(
            "symmetry",
            format!(
                "it cannot be packed: the element at {index:?} is not {} of its counterpart under the symmetry",
                symmetry.operation
            ),
        )),
        _ => Ok((None, None)),
    }
}

fn hash_parts(archive: &Archive, kind: DigestKind, options: &Execution<'_>) -> Result<Archive> {
    let mut manifest = archive.manifest().clone();
    let tensors = archive.manifest().tensors.iter();
    let parts = tensors.flat_map(|tensor| tensor.parts.iter().map(move |part| (tensor, part)));
    let threads = archive.threads_for(options.threads);
    let sums = threads::map(threads, parts, |(tensor, part), (): &mut ()| {
        hash_part(archive, tensor, part, kind, options.control)
            .map_err(|error| error.in_tensor(&tensor.name))
    })?;
    let parts = manifest.tensors.iter_mut();
    for (part, sum) in parts.flat_map(|tensor| &mut *tensor.parts).zip(sums) {
        part.checksum = Some(Box::new(sum));
    }
    Ok(archive.with_manifest(manifest))
}

/// The checksum of a part's little-endian bytes.
fn hash_part(
    archive: &Archive,
    tensor: &TensorInfo,
    part: &Part,
    kind: DigestKind,
    control: &Control,
) -> Result<Checksum> {
    tensor.readable()?;
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
        let scatter = Scatter::load(archive.data(), info, Order::RowMajor);
        if !scatter.map_err(|error| tensor.blame(error))?.is_sorted() {
            let message =
                "the columns of a row are not in ascending order, as the output needs them";
            return Err(tensor.blame(Error::unsupported("sparse", message)));
        }
    }
    Ok(())
}
