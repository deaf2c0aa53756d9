//! The archive: its members, and what was saved in it.

use bytes::Bytes;

use super::codec::ROOT;
use super::{SPEC, salvage};
use crate::digest::Crc32;
use crate::error::{Error, ErrorKind, Result};
use crate::format::Context;
use crate::formats::torch::{
    self, Allowed, Archive, Around, FREE, Saved, Storages, checksum, crc32, flatten, no_pickle,
    unpack,
};
use crate::io::Source;
use crate::model::{Manifest, Region, SealedRange, SourceId};
use crate::prelude::*;
use crate::wire::pickle::{self, Budget, Place};
use crate::wire::zip::{self, Member, TORCH_PICKLE as PICKLE, Zip};

/// What only TorchScript archives have.
const CONSTANTS: &str = "constants.pkl";
/// Versions that torch reads.
const VERSIONS: core::ops::RangeInclusive<u64> = 1..=10;

/// Describes an archive, which may be one of several files.
pub(super) fn describe(
    cx: &mut Context<'_>,
    id: SourceId,
    source: &dyn Source,
    manifest: &mut Manifest,
) -> Result<Saved> {
    let limit = cx.limits().header_bytes;
    let (zip, cut_off) = match Zip::open(source, limit)? {
        Some(zip) => (zip, None),
        None => {
            let error = zip::no_end(source);
            let allowed = Allowed {
                script: false,
                opaque: cx.is_opaque(),
            };
            match salvage::open(source, limit, allowed) {
                Ok(zip)
                    if zip
                        .members
                        .iter()
                        .any(|m| zip::torch_root(&m.name).is_some()) =>
                {
                    (zip, Some(error))
                }
                Err(other) if other.kind() == ErrorKind::Io => return Err(other),
                _ => return Err(error),
            }
        }
    };
    let described = described(cx, id, source, &zip, cut_off.is_some(), manifest);
    match (described, cut_off) {
        (described, None) => described,
        (Ok(mut saved), Some(error)) => {
            salvage::settle(cx, (id, source.len()), &mut saved, error)?;
            Ok(saved)
        }
        (Err(other), Some(_)) if cx.salvages() => Err(other),
        (Err(_), Some(error)) => Err(error),
    }
}

/// Describes what these members hold, of which the last may be cut off.
fn described(
    cx: &mut Context<'_>,
    id: SourceId,
    source: &dyn Source,
    zip: &Zip,
    is_cut_off: bool,
    manifest: &mut Manifest,
) -> Result<Saved> {
    for (rule, at, message) in &zip.remarks {
        cx.warn_in(id, rule, at.clone(), message)?;
    }
    let archive = Archive::new(zip, id)?;
    let len = source.len();
    for member in zip.members.iter().filter(|member| member.data.end <= len) {
        regions(archive, member, manifest);
    }
    manifest
        .regions
        .push(Region::new(id, zip.tail.clone(), "directory"));
    if !is_cut_off {
        check_version(archive, cx, source)?;
    }
    let mut storages = archive.storages(source)?;
    storages.is_cut_off = is_cut_off;
    let allowed = Allowed {
        script: archive.member(CONSTANTS).is_some(),
        opaque: cx.is_opaque(),
    };
    if let Some(member) = archive.member(CONSTANTS) {
        check_constants(cx, id, source, member, allowed)?;
    }
    let data = archive.member(PICKLE).ok_or_else(no_pickle)?;
    let program = Program::read(cx, source, data)?;
    let mut budget = program.budget(zip.tail.end - zip.tail.start);
    let mut policy = allowed;
    let tree = pickle::run(&program.bytes, &program.place, &mut policy, &mut budget)?;
    let stem = cx.tensor_name();
    let around = Around {
        format: SPEC.id,
        root: cx.option(ROOT.key),
        allowed,
        storages: &storages,
        limits: cx.limits(),
        place: &program.place,
        pickle: program.bytes.len(),
        file: source.len(),
        stem: &stem,
    };
    let saved = flatten(&tree, around, &mut budget)?;
    seal(archive, &storages, &saved, manifest);
    Ok(saved)
}

/// Notes where a member is, if it is no storage.
fn regions(archive: Archive<'_>, member: &Member, manifest: &mut Manifest) {
    let mut add = |range: Range<u64>, label| {
        push_tight(&mut manifest.regions, Region::new(archive.id, range, label));
    };
    add(member.header.clone(), "member's header");
    if let Some(range) = &member.descriptor {
        add(range.clone(), "member's descriptor");
    }
    if archive.key(member).is_none() {
        add(member.data.clone(), "member");
    }
}

fn check_version(archive: Archive<'_>, cx: &mut Context<'_>, source: &dyn Source) -> Result<()> {
    let (at, message) = match archive.text(source, "version")? {
        None => (
            archive.zip.tail.clone(),
            "there is no member \"version\": torch refuses the file".to_owned(),
        ),
        Some((text, _)) if text.parse().is_ok_and(|found| VERSIONS.contains(&found)) => {
            return Ok(());
        }
        Some((text, at)) => {
            let (first, last) = (VERSIONS.start(), VERSIONS.end());
            (
                at,
                format!("the version is {text:?}, torch reads {first} to {last}"),
            )
        }
    };
    cx.warn_in(archive.id, "pytorch.version", at, message)
}

/// Checksums that no tensor has: of storages that none is all of, and of other members.
fn seal(archive: Archive<'_>, storages: &Storages, saved: &Saved, manifest: &mut Manifest) {
    for member in &archive.zip.members {
        let place = archive.key(member).and_then(|key| storages.place(key));
        let is_covered = place
            .and_then(|place| saved.covered.get(place as usize))
            .is_some_and(|covered| *covered);
        let Some(crc32) = crc32(member).filter(|_| !is_covered && !member.is_deflated) else {
            continue;
        };
        if member.size == 0 || member.data.end > archive.zip.tail.end {
            continue;
        }
        let mut checksum = checksum(crc32);
        checksum.over = crate::model::Over::Stored;
        let what = format!("member {:?}", member.name);
        let sealed = SealedRange::new(archive.id, member.data.clone(), checksum, what);
        push_tight(&mut manifest.sealed, sealed);
    }
}

/// A pickle of the archive.
struct Program {
    bytes: Bytes,
    place: Place,
    stored: u64,
}

impl Program {
    fn read(cx: &mut Context<'_>, source: &dyn Source, member: &Member) -> Result<Self> {
        let limit = cx.limits().header_bytes.min(pickle::MAX_LEN);
        if member.size > limit {
            let message = format!("the pickle has {} bytes, the limit is {limit}", member.size);
            let error = Error::limit("pytorch.limit", message).at(member.header.clone());
            return Err(if limit < pickle::MAX_LEN {
                error.raised_by("header_bytes", member.size)
            } else {
                error
            });
        }
        let stored = member.data.end - member.data.start;
        // Deflated text is a thousand times shorter than itself, a pickle of tensors a few times.
        if member.is_deflated && member.size > FREE.saturating_add(stored.saturating_mul(4)) {
            let message = format!(
                "the pickle is deflated from {} bytes to {stored}: it takes too much memory",
                member.size
            );
            return Err(Error::limit("pytorch.limit", message).at(member.header.clone()));
        }
        let bytes = unpack(source, member)?;
        if let Some(expected) = crc32(member) {
            let found = Crc32::of(&bytes);
            if found != expected {
                let message = format!(
                    "the CRC-32 of member {:?} is {found:08x}, the directory says {expected:08x}",
                    member.name
                );
                cx.mismatch("pytorch.checksum", member.data.clone(), message)?;
            }
        }
        let place = if member.is_deflated {
            Place::Within(member.data.clone())
        } else {
            Place::At(member.data.start)
        };
        Ok(Self {
            bytes,
            place,
            stored,
        })
    }

    /// What it may take, with `beside` bytes of the archive that describe it too.
    fn budget(&self, beside: u64) -> Budget {
        let stored = self.stored.saturating_add(beside);
        let deflated = stored.saturating_mul(7).saturating_add(FREE);
        let len = self.bytes.len() as u64;
        Budget::new(torch::budget(len.saturating_add(beside)).min(deflated))
    }
}

/// The constants of TorchScript's code are a pickle too, and what it names is held to the same list.
fn check_constants(
    cx: &mut Context<'_>,
    id: SourceId,
    source: &dyn Source,
    member: &Member,
    allowed: Allowed,
) -> Result<()> {
    let program = Program::read(cx, source, member)?;
    let mut policy = allowed;
    let mut budget = program.budget(0);
    let tree = pickle::run(&program.bytes, &program.place, &mut policy, &mut budget)?;
    let count = tree.nodes(pickle::Kind::Persistent).count();
    if count > 0 {
        let message = format!("{count} constants of the code are tensors, which are not listed");
        cx.note_in(id, "pytorch.constants", member.data.clone(), message);
    }
    Ok(())
}
