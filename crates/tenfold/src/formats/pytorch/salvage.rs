//! An archive that lost its end, and with it the directory: its members are found by their own headers. Torch writes no sizes
//! there, but the pickle, which comes first, says how long every storage is.

use crate::error::lists::quoted;
use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::torch::{self, Allowed, Saved, StorageId};
use crate::io::Source;
use crate::model::{SourceId, TensorInfo};
use crate::prelude::*;
use crate::wire::pickle::{self, Budget, Kind, Place};
use crate::wire::zip::torch_root;
use crate::wire::zip::{DESCRIPTOR, Front, Member, Zip};

/// The members of an archive without a directory.
pub(super) fn open(source: &dyn Source, limit: u64, allowed: Allowed) -> Result<Zip> {
    let mut sizes = None;
    let mut folder = String::new();
    let front = Front::read_with(source, limit, &mut |name, at| {
        if let Some(root) = torch_root(name) {
            let program = pickle::read_next(source, at, limit)?;
            sizes = Some(storages(&program, at, allowed)?);
            root.clone_into(&mut folder);
            return Ok(Some(program.len() as u64));
        }
        let (_, inside) = name.split_once('/').unwrap_or_default();
        match (inside.strip_prefix("data/"), &sizes) {
            (Some(key), Some(sizes)) => Ok(sizes.get(key).copied()),
            (Some(_), None) => Ok(None),
            (None, _) => short(source, at),
        }
    })?;
    let len = source.len();
    let tail = front.end..len;
    let mut members = front.whole;
    members.extend(front.cut);
    // What has no bytes is there, wherever the file ends.
    let mut empty: LookupMap<String, ()> = LookupMap::new();
    for (key, _) in sizes.iter().flatten().filter(|(_, size)| **size == 0) {
        empty.insert(format!("{folder}/data/{key}"), ());
    }
    for member in &members {
        empty.remove(&member.name);
    }
    let mut empty: Vec<String> = empty.into_iter().map(|(name, ())| name).collect();
    empty.sort_unstable();
    members.extend(empty.into_iter().map(|name| Member {
        name,
        is_deflated: false,
        crc32: 0,
        size: 0,
        header: len..len,
        data: len..len,
        descriptor: None,
        beginning: bytes::Bytes::new(),
    }));
    Ok(Zip {
        members,
        tail,
        remarks: Vec::new(),
    })
}

/// Bytes of the storages that a pickle names.
fn storages(program: &[u8], at: u64, mut allowed: Allowed) -> Result<LookupMap<String, u64>> {
    let mut budget = Budget::new(torch::budget(program.len() as u64));
    let policy = allowed;
    let tree = pickle::run(program, &Place::At(at), &mut allowed, &mut budget)?;
    let mut sizes = LookupMap::new();
    for node in tree.nodes(Kind::Persistent) {
        if let Ok(id) = StorageId::parse(policy, node)
            && let Some(len) = id.len()
        {
            budget.charge(id.key.len() + size_of::<(String, u64)>())?;
            sizes.insert(id.key, len);
        }
    }
    Ok(sizes)
}

/// The length of one of the short texts of an archive: what stands behind it repeats it.
fn short(source: &dyn Source, at: u64) -> Result<Option<u64>> {
    /// Bytes of the longest, and of what stands behind it.
    const MOST: u64 = 256;
    let end = source.len().min(at.saturating_add(MOST));
    let bytes = source.read(at..end)?;
    let is_end = |place: &usize| {
        let rest = bytes.get(*place..).unwrap_or_default();
        let size = rest.get(8..12).and_then(|size| size.try_into().ok());
        let size = size.map(u32::from_le_bytes);
        rest.starts_with(&DESCRIPTOR)
            && size.and_then(|size| usize::try_from(size).ok()) == Some(*place)
    };
    Ok((0..bytes.len()).find(is_end).map(|place| place as u64))
}

/// Where it is wanted, marks the tensors that are not whole, and warns; else the `error` that says so, and which are whole.
pub(super) fn settle(
    cx: &mut Context<'_>,
    (id, file): (SourceId, u64),
    saved: &mut Saved,
    error: Error,
) -> Result<()> {
    for tensor in &mut saved.tensors {
        if let Some((there, all)) = missing(tensor, file) {
            let message = match there {
                0 => format!("the file is cut off before its {all} bytes"),
                there => format!("the file is cut off, {there} of its {all} bytes are there"),
            };
            let error = Error::malformed("pytorch.truncated", message);
            tensor.defect = Some(error.in_tensor(&tensor.name));
        }
    }
    let whole = || {
        saved
            .tensors
            .iter()
            .filter(|tensor| tensor.defect.is_none())
    };
    let count = whole().count();
    let mut message = format!("; {count} of {} tensors are complete", saved.tensors.len());
    if count > 0 {
        message += &format!(": {}", quoted(whole().map(|tensor| tensor.name.as_str())));
    }
    if !cx.salvages() {
        return Err(match count {
            0 => error.adding(&message),
            _ => error.leaving(message),
        });
    }
    let message = format!("{}{message}", error.message());
    cx.warn_in(id, "pytorch.salvaged", file..file, message)
}

/// How many of a tensor's stored bytes are in a file that ends before the last of them, and how many there should be.
fn missing(tensor: &TensorInfo, file: u64) -> Option<(u64, u64)> {
    let mut stored = tensor.parts.iter().filter_map(|part| part.payload.stored());
    let (_, range) = stored.find(|(_, range)| !range.is_empty() && range.end > file)?;
    Some((file.saturating_sub(range.start), range.end - range.start))
}
