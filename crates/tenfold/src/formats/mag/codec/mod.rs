//! Between what is on disk and the model.

mod manifest;
mod snapshot;
mod v1;

use super::raw::v1::Reading;
use super::raw::{TRUNCATED, Version};
use super::{ARCHIVE_1, SNAPSHOT_010, SNAPSHOT_020, SNAPSHOT_030, SPEC, SPEC_1};
use crate::digest::crc32c;
use crate::error::{Error, Result};
use crate::format::salvage::CutOff;
use crate::format::{Context, FilePlan, Form, Format, Plan, PlanOptions, Segment, Spec, Want};
use crate::io::Reader;
use crate::model::{Manifest, SourceId, TensorInfo};
use crate::prelude::*;

/// Reads and writes `.mag`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mag;

impl Format for Mag {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let mut r = Reader::new(cx.source(), TRUNCATED);
        match Version::parse(&mut r)? {
            Version::V1 => v1::describe(cx, r),
            version @ (Version::Snapshot010 | Version::Snapshot020) => {
                snapshot::describe(cx, r, version)
            }
            Version::Snapshot030 => manifest::describe(cx, r),
        }
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        let reading = checksum_option(options)?;
        let segments = match options.version {
            SPEC_1 => v1::plan_spec(what, reading),
            ARCHIVE_1 => v1::plan_archive(what),
            SNAPSHOT_010 => snapshot::plan(what, options.timestamp, Version::Snapshot010),
            SNAPSHOT_020 => snapshot::plan(what, options.timestamp, Version::Snapshot020),
            SNAPSHOT_030 => manifest::plan(what, options.timestamp),
            other => Err(Error::argument(format!("mag has no version {other:?}"))),
        }?;
        let name = options.file_name.clone();
        Ok(Plan {
            files: vec![FilePlan::new(name, segments)],
        })
    }
}

/// Which checksum `spec-1` gets.
fn checksum_option(options: &PlanOptions) -> Result<Reading> {
    let Some(word) = options.option("checksum") else {
        return Ok(Reading::Crc32cBehind);
    };
    if options.version != SPEC_1 {
        let version = options.version;
        let why = format!("it is for version {SPEC_1}; {version} leaves no choice");
        return Err(options.wrong("checksum", why));
    }
    Reading::from_word(word).ok_or_else(|| {
        let words = Reading::ALL.map(Reading::word).join(", ");
        options.wrong("checksum", format_args!("expected one of {words}"))
    })
}

/// Refuses headers that go on past the limit.
fn within_limits(cx: &Context<'_>, at: u64) -> Result<()> {
    let limit = cx.limits().header_bytes;
    if at > limit {
        let message = format!("the header goes on past {limit} bytes, the limit for headers");
        let error = Error::limit("mag.limit", message).at(limit..at);
        return Err(error.raised_by("header_bytes", None));
    }
    Ok(())
}

/// Refuses a header whose checksum is wrong, or says that it is.
fn wrong_checksum(
    cx: &mut Context<'_>,
    field: Range<u64>,
    stored: u32,
    computed: u32,
    covered: &str,
) -> Result<()> {
    let message =
        format!("checksum mismatch: stored {stored:#010x}, computed {computed:#010x} ({covered})");
    cx.mismatch("mag.checksum", field, message)
}

/// Refuses names that are there twice. `records` are the places of the tensors' records.
fn unique_names(tensors: &[TensorInfo], records: &[u64]) -> Result<()> {
    match crate::model::repeated(tensors.iter().map(|tensor| tensor.name.as_str())) {
        Some((place, name)) => {
            let at = records.get(place).copied().unwrap_or_default();
            let error = Error::malformed("mag.duplicate", "two tensors have this name");
            Err(error.at(at..at + 1).in_tensor(name))
        }
        None => Ok(()),
    }
}

/// The bytes of a tensor's only part.
fn extent(tensor: &TensorInfo) -> Range<u64> {
    let stored = tensor.parts.first().and_then(|part| part.payload.stored());
    stored.map_or(0..0, |(_, range)| range)
}

/// The range of data, if it is one.
fn data_range(base: u64, offset: u64, len: u64) -> Result<Range<u64>> {
    let range = base
        .checked_add(offset)
        .and_then(|start| Some(start..start.checked_add(len)?));
    range.ok_or_else(|| {
        let message = format!("data at offset {offset} of {len} bytes ends past any end of a file");
        Error::malformed("mag.bounds", message)
    })
}

/// Data that ends past the end of the file, from where a writer would not have put it: perhaps it is elsewhere.
fn out_of_bounds(range: &Range<u64>, file: u64) -> Error {
    let message = format!(
        "data lies at bytes {}..{}, the file has {file}",
        range.start, range.end
    );
    Error::malformed("mag.bounds", message)
}

/// A file that was cut off: data ends past its end.
fn cut_off(file: u64, expected: u64) -> CutOff {
    CutOff {
        source: SourceId::MAIN,
        file,
        expected,
        remark: "",
        error: None,
        rule: TRUNCATED,
        salvaged: "mag.salvaged",
    }
}

/// Puts the checksum of everything after `field` into it.
fn seal(head: &mut [u8], field: Range<u64>) {
    let end = usize::try_from(field.end).unwrap_or(usize::MAX);
    let checksum = crc32c(head.get(end..).unwrap_or_default());
    put_checksum(head, field, checksum);
}

fn put_checksum(head: &mut [u8], field: Range<u64>, checksum: u32) {
    let (Ok(start), Ok(end)) = (usize::try_from(field.start), usize::try_from(field.end)) else {
        return;
    };
    if let Some(field) = head.get_mut(start..end) {
        field.copy_from_slice(&checksum.to_le_bytes());
    }
}

/// The dense data of a tensor.
fn data(index: usize, tensor: &TensorInfo) -> Segment {
    Segment::Tensor {
        index,
        part: 0,
        want: Want::Dense(Form::canonical(tensor.dtype)),
        codec: None,
        digest: None,
    }
}

/// The bytes that a tensor will have.
fn planned_len(tensor: &TensorInfo) -> Result<u64> {
    tensor
        .dense_len()
        .ok_or_else(|| too_large().in_tensor(&tensor.name))
}

/// The elements that a tensor will have.
fn planned_elements(tensor: &TensorInfo) -> Result<u64> {
    tensor
        .elements()
        .ok_or_else(|| too_large().in_tensor(&tensor.name))
}

/// Where the next tensor begins.
fn aligned(at: u64, to: u64) -> Result<u64> {
    at.checked_next_multiple_of(to).ok_or_else(too_large)
}

/// Where a tensor ends.
fn behind(at: u64, len: u64) -> Result<u64> {
    at.checked_add(len).ok_or_else(too_large)
}

fn too_large() -> Error {
    Error::unsupported(
        "mag.overflow",
        "the file would be larger than 64 bits can count",
    )
}
