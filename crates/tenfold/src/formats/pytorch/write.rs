//! Laying out an archive.

use super::FAMILY;
use super::encode::{Program, Record};
use super::storages::{self, Plan as Storages, Stored};
use crate::digest::Crc32;
use crate::error::{Error, Result};
use crate::format::{Arranged, Effect, FilePlan, Loss, Lost, Plan, PlanOptions, Segment, Written};
use crate::formats::sharded;
use crate::model::{DigestKind, Manifest, Over, Value};
use crate::prelude::*;
use crate::wire::zip::{CentralRecord, LocalHeader, encode_directory};

/// The folder of every archive: the same input, the same bytes.
const ROOT: &str = "archive";
/// Data of members begins at a multiple of this, as torch writes it.
const ALIGN: u64 = 64;

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    sharded::plan(&FAMILY, what, options, &|places, name, is_first| {
        file(what, places, name, is_first)
    })
}

/// What cannot stand beside the tensors in one dict: values that are called as a tensor. That the file is one of PyTorch,
/// which safetensors has as `format`, needs no saying in one.
pub(super) fn arrange(what: &Manifest) -> Option<Arranged> {
    let mut tensors = LookupMap::new();
    tensors.extend(what.tensors.iter().map(|tensor| (tensor.name.as_str(), ())));
    let says_format = |key: &str, value: &Value| key == "format" && value.as_str() == Some("pt");
    let is_taken = |key: &str| tensors.contains_key(key);
    let mut values = what.metadata.iter();
    if !values.any(|(key, value)| says_format(key, value) || is_taken(key)) {
        return None;
    }
    let mut losses = Vec::new();
    let mut manifest = what.clone();
    for (key, value) in what.metadata.iter() {
        if is_taken(key) {
            let why = "a tensor has this name, and both would be one entry of a dict";
            let lost = Lost::Metadata(key.to_owned());
            losses.push(Loss::new(None, lost, why, Effect::Dropped));
        } else if !says_format(key, value) {
            continue;
        }
        manifest.metadata.remove(key);
    }
    Some(Arranged::new(manifest, losses))
}

/// One file with the tensors at `places`, and with the metadata where it is wanted.
pub(super) fn file(
    what: &Manifest,
    places: Vec<usize>,
    name: String,
    with_metadata: bool,
) -> Result<FilePlan> {
    let tensors: Vec<_> = places
        .iter()
        .filter_map(|&place| Some((place, what.tensors.get(place)?)))
        .collect();
    let Storages { stored, views } = storages::plan(&tensors)?;
    let mut program = Program::new();
    for ((_, tensor), view) in tensors.iter().zip(&views) {
        let storage = stored.get(view.storage).ok_or_else(missing)?;
        program.tensor(&Record {
            tensor,
            view,
            key: view.storage,
            len: storage.len,
        })?;
    }
    if with_metadata {
        for (key, value) in what.metadata.iter() {
            program.entry(key, value)?;
        }
    }
    layout(program.finish(), stored, name)
}

/// The members one after the other.
fn layout(program: Vec<u8>, stored: Vec<Stored>, name: String) -> Result<FilePlan> {
    let mut members = Vec::new();
    let mut segments = Vec::new();
    let mut at = 0u64;
    let known = |name: &str, bytes: Vec<u8>, at: &mut u64, members: &mut Vec<Member>| {
        let member = Member::new(name, *at, bytes.len() as u64, Some(Crc32::of(&bytes)))?;
        *at = member.end();
        let mut all = member.header(None)?;
        all.extend_from_slice(&bytes);
        members.push(member);
        Ok::<_, Error>(Segment::Bytes(all))
    };
    segments.push(known("data.pkl", program, &mut at, &mut members)?);
    let text = b"little".to_vec();
    segments.push(known("byteorder", text, &mut at, &mut members)?);
    for (key, storage) in stored.into_iter().enumerate() {
        let member = Member::new(&format!("data/{key}"), at, storage.len, None)?;
        at = member.end();
        let late = member.clone();
        segments.push(Segment::Late {
            len: member.local.len(),
            make: Box::new(move |written, _| late.header(written.get(key))),
        });
        segments.push(Segment::Tensor {
            index: storage.index,
            part: 0,
            want: storage.want,
            codec: None,
            digest: Some((DigestKind::Crc32, Over::Decoded)),
        });
        members.push(member);
    }
    let version = b"3\n".to_vec();
    segments.push(known("version", version, &mut at, &mut members)?);
    segments.push(Segment::Computed(Box::new(move |written, at| {
        directory(&members, written, at)
    })));
    Ok(FilePlan { name, segments })
}

/// A member to be written.
#[derive(Clone)]
struct Member {
    local: LocalHeader,
    at: u64,
    size: u64,
    /// Where its bytes are known.
    crc32: Option<u32>,
}

impl Member {
    fn new(name: &str, at: u64, size: u64, crc32: Option<u32>) -> Result<Self> {
        let name = format!("{ROOT}/{name}");
        let local = LocalHeader::aligned(name, at, size >= u32::MAX.into(), ALIGN);
        let end = at
            .checked_add(local.len())
            .and_then(|at| at.checked_add(size));
        if end.is_none_or(|end| end > i64::MAX as u64) {
            let message = "the file would be larger than 63 bits can count";
            return Err(Error::unsupported("pytorch.overflow", message));
        }
        Ok(Self {
            local,
            at,
            size,
            crc32,
        })
    }

    fn end(&self) -> u64 {
        self.at + self.local.len() + self.size
    }

    fn crc32(&self, done: Option<&Written>) -> Result<u32> {
        if let Some(known) = self.crc32 {
            return Ok(known);
        }
        let digest = done.and_then(|done| done.digest.as_ref());
        let value = digest.and_then(|digest| digest.value.as_ref().try_into().ok());
        value.map(u32::from_be_bytes).ok_or_else(missing)
    }

    fn header(&self, done: Option<&Written>) -> Result<Vec<u8>> {
        Ok(self.local.encode(self.crc32(done)?, self.size, self.size))
    }
}

fn directory(members: &[Member], written: &[Written], at: u64) -> Result<Vec<u8>> {
    let mut written = written.iter();
    let mut records = Vec::new();
    for member in members {
        let done = match member.crc32 {
            Some(_) => None,
            None => written.next(),
        };
        records.push(CentralRecord {
            header: &member.local,
            crc32: member.crc32(done)?,
            compressed: member.size,
            size: member.size,
            local_at: member.at,
        });
    }
    Ok(encode_directory(records.into_iter(), at))
}

fn missing() -> Error {
    Error::argument("a storage was not written, or without its checksum")
}
