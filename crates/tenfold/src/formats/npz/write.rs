//! Laying out an archive.

use super::EXTENSION;
use crate::digest::Crc32;
use crate::error::{Error, Result};
use crate::format::{Compression, FilePlan, Form, Plan, PlanOptions, Segment, Want, Written};
use crate::model::{Codec, DigestKind, Manifest, Over, Payload, TensorInfo};
use crate::prelude::*;
use crate::wire::numpy;
use crate::wire::zip::{CentralRecord, LocalHeader, encode_directory};

/// Arrays that are stored begin at a multiple of this.
const ALIGN: u64 = 64;
/// Deflated data can be longer than it was, by less than this part of it.
const LARGE: u64 = 0xf000_0000;
const DEFAULT_LEVEL: i32 = 6;

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let level = level(options)?;
    let mut members = Vec::new();
    let mut segments = Vec::new();
    // Where the next member begins; not known after a deflated one.
    let mut at = Some(0u64);
    for (index, tensor) in what.tensors.iter().enumerate() {
        let level = level_of(tensor, level, options);
        let member = Member::new(tensor, level.is_some(), at)?;
        at = match level {
            Some(_) => None,
            None => at.and_then(|at| at.checked_add(member.local.len())?.checked_add(member.size)),
        };
        segments.push((index, level, member.local.len(), member.front()));
        members.push(member);
    }
    let members = Arc::new(members);
    let mut file = Vec::new();
    for (place, (index, level, len, front)) in segments.into_iter().enumerate() {
        let all = members.clone();
        let make = move |written: &[Written], _: u64| {
            let (member, done) = (all.get(place), written.get(place));
            let (member, done) = member.zip(done).ok_or_else(missing)?;
            member.local_header(done)
        };
        file.push(Segment::Late {
            len,
            make: Box::new(make),
        });
        file.push(Segment::Bytes(front));
        file.push(data(what, index, level));
    }
    file.push(Segment::Computed(Box::new(move |written, at| {
        directory(&members, written, at)
    })));
    Ok(Plan {
        files: vec![FilePlan::new(options.file_name.clone(), file)],
    })
}

/// What the option says: `None` when it is not given, 0 for not at all.
fn level(options: &PlanOptions) -> Result<Option<i32>> {
    options
        .number("deflate")?
        .map(|level| match i32::try_from(level) {
            Ok(level @ 0..=9) => Ok(level),
            _ => Err(options.wrong("deflate", "expected a level from 0 to 9")),
        })
        .transpose()
}

/// The level that a tensor is deflated with, if it is.
fn level_of(tensor: &TensorInfo, asked: Option<i32>, options: &PlanOptions) -> Option<i32> {
    let is_deflated = |payload: &Payload| {
        matches!(
            payload,
            Payload::Encoded {
                codec: Codec::Deflate { .. },
                ..
            }
        )
    };
    let level = match (asked, (options.compression)(tensor)) {
        (Some(level), _) => level,
        (None, Compression::Keep) if tensor.parts.iter().any(|part| is_deflated(&part.payload)) => {
            DEFAULT_LEVEL
        }
        (None, _) => 0,
    };
    // Nothing is not made smaller.
    (level > 0 && tensor.dense_len() != Some(0)).then_some(level)
}

/// The elements, with the checksum that header and directory need.
fn data(what: &Manifest, index: usize, level: Option<i32>) -> Segment {
    let dtype = what.tensors.get(index).map(|tensor| tensor.dtype);
    Segment::Tensor {
        index,
        part: 0,
        want: Want::Dense(Form::canonical(
            dtype.unwrap_or(crate::model::DType::UNKNOWN),
        )),
        codec: level.map(|level| Codec::Deflate { level, skip: 0 }),
        digest: Some((DigestKind::Crc32, Over::Decoded)),
    }
}

/// A member to be written.
struct Member {
    local: LocalHeader,
    /// The array's header.
    head: Vec<u8>,
    /// Bytes when unpacked.
    size: u64,
}

impl Member {
    fn new(tensor: &TensorInfo, is_deflated: bool, at: Option<u64>) -> Result<Self> {
        let fail = |message: &str| Error::unsupported("npz.write", message).in_tensor(&tensor.name);
        let head = numpy::encode(tensor.dtype, &tensor.shape)
            .ok_or_else(|| fail("its type cannot be written"))?;
        let len =
            numpy::data_len(tensor.dtype, &tensor.shape).ok_or_else(|| fail("it is too large"))?;
        let size = len
            .checked_add(head.len() as u64)
            .ok_or_else(|| fail("it is too large"))?;
        let name = format!("{}{EXTENSION}", tensor.name);
        let local = match at {
            Some(at) if !is_deflated => {
                LocalHeader::aligned(name, at, size >= u32::MAX.into(), ALIGN)
            }
            _ => LocalHeader {
                name,
                is_deflated,
                is_wide: size >= LARGE,
                padding: 0,
            },
        };
        Ok(Self { local, head, size })
    }

    /// The array's header as it stands in the file. In front of deflated elements it is a block of the stream that is
    /// stored as it is: the elements' blocks follow it.
    fn front(&self) -> Vec<u8> {
        if !self.local.is_deflated {
            return self.head.clone();
        }
        // At most 64 dimensions of 20 digits.
        let len = u16::try_from(self.head.len()).unwrap_or(0);
        let mut block = vec![0];
        block.extend_from_slice(&len.to_le_bytes());
        block.extend_from_slice(&(!len).to_le_bytes());
        block.extend_from_slice(&self.head);
        block
    }

    /// Bytes of the member as it is stored.
    fn compressed(&self, done: &Written) -> u64 {
        self.front_len() + (done.range.end - done.range.start)
    }

    fn front_len(&self) -> u64 {
        self.head.len() as u64 + if self.local.is_deflated { 5 } else { 0 }
    }

    fn crc32(&self, done: &Written) -> Result<u32> {
        let value = done.digest.as_ref().map(|digest| digest.value.as_ref());
        let value = value
            .and_then(|value| value.try_into().ok())
            .ok_or_else(missing)?;
        let mut sum = Crc32::default();
        sum.update(&self.head);
        Ok(sum.in_front_of(done.raw_len) ^ u32::from_be_bytes(value))
    }

    fn local_header(&self, done: &Written) -> Result<Vec<u8>> {
        Ok(self
            .local
            .encode(self.crc32(done)?, self.compressed(done), self.size))
    }
}

fn directory(members: &[Member], written: &[Written], at: u64) -> Result<Vec<u8>> {
    let mut records = Vec::new();
    for (place, member) in members.iter().enumerate() {
        let done = written.get(place).ok_or_else(missing)?;
        let front = member.front_len() + member.local.len();
        records.push(CentralRecord {
            header: &member.local,
            crc32: member.crc32(done)?,
            compressed: member.compressed(done),
            size: member.size,
            local_at: done.range.start.checked_sub(front).ok_or_else(missing)?,
        });
    }
    Ok(encode_directory(records.into_iter(), at))
}

fn missing() -> Error {
    Error::argument("a member was not written, or without its checksum")
}
