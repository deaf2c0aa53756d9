//! What the readers of all generations share: places and shapes.

use alloc::borrow::Cow;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::ztensor::capability::MAX_RANK;
use crate::model::{DType, Shape, element_count};
use crate::prelude::*;
use crate::wire::cbor::{Decoder, Rules};

/// The rules under which CBOR is refused.
pub(super) static RULES: Rules = Rules {
    syntax: "ztensor.cbor",
    depth: "ztensor.cbor-depth",
    form: "ztensor.cbor-form",
    duplicate: "ztensor.duplicate",
    schema: "ztensor.schema",
};

/// Bytes of an index at most, whatever the limits allow.
const MAX_INDEX: u64 = 1 << 30;
/// A zstd block takes at least 4 bytes and gives at most 128 KiB: more than this many times cannot come out.
const MAX_RATIO: u64 = 32 << 10;

/// Whether bytes are one item of CBOR, nested no deeper than `depth`.
pub(super) fn is_cbor(bytes: &[u8], depth: usize, deterministic: bool) -> bool {
    let mut cbor = Decoder::new(bytes, 0, &RULES, depth);
    if deterministic {
        cbor = cbor.deterministic();
    }
    cbor.skip().and_then(|()| cbor.finish()).is_ok()
}

/// Reads the bytes of an index, which is known to lie in the file.
pub(super) fn index(cx: &Context<'_>, range: Range<u64>) -> Result<Bytes> {
    let len = range.end - range.start;
    let limit = cx.limits().header_bytes.min(MAX_INDEX);
    if len > limit {
        let message = format!("the index has {len} bytes, the limit (header_bytes) is {limit}");
        let error = Error::limit("ztensor.index", message).at(range);
        return Err(if limit < MAX_INDEX {
            error.raised_by("header_bytes", len)
        } else {
            error
        });
    }
    cx.source().read(range)
}

/// A required field.
pub(super) fn required<T>(field: Option<T>, name: &str, at: &Range<u64>) -> Result<T> {
    field.ok_or_else(|| {
        Error::malformed(
            "ztensor.schema",
            format!("the required field {name} is missing"),
        )
        .at(at.clone())
    })
}

/// The dimensions of a tensor.
pub(super) fn shape(cbor: &mut Decoder<'_>, cx: &Context<'_>) -> Result<Shape> {
    let at = cbor.pos();
    let limit = cx.limits().rank.min(MAX_RANK);
    let mut shape = Shape::new();
    cbor.array("shape", |cbor| {
        if shape.len() == limit {
            let message = format!("more than {limit} dimensions");
            let place = at..cbor.pos();
            return Err(if limit < MAX_RANK {
                (Error::limit("ztensor.shape", message).at(place)).raised_by("rank", None)
            } else {
                Error::malformed("ztensor.shape", message).at(place)
            });
        }
        shape.push(cbor.unsigned("a dimension")?);
        Ok(())
    })?;
    Ok(shape)
}

/// The number of elements.
pub(super) fn elements(shape: &[u64], at: &Range<u64>) -> Result<u64> {
    element_count(shape).ok_or_else(|| {
        let message = format!("the number of elements of shape {shape:?} does not fit 64 bits");
        Error::malformed("ztensor.overflow", message).at(at.clone())
    })
}

/// Bytes of the dense tensor of 0.1 and 1.x: they must fit 64 bits without the dimensions of 0 too.
pub(super) fn sound_dense_len(dtype: DType, shape: &[u64], at: &Range<u64>) -> Result<u64> {
    let elements = elements(shape, at)?;
    if elements == 0 {
        let others = shape.iter().filter(|&&size| size > 0).product();
        dense_len(dtype, others, at)?;
    }
    dense_len(dtype, elements, at)
}

/// Bytes of the dense tensor.
pub(super) fn dense_len(dtype: DType, elements: u64, at: &Range<u64>) -> Result<u64> {
    dtype.bytes_for(elements).ok_or_else(|| {
        let message = format!("the size of {elements} elements of {dtype} does not fit 64 bits");
        Error::malformed("ztensor.overflow", message).at(at.clone())
    })
}

/// The place of data: a multiple of `align`, not at the beginning, ending before `end`.
pub(super) fn place(
    offset: u64,
    len: u64,
    align: u64,
    end: u64,
    at: &Range<u64>,
) -> Result<Range<u64>> {
    let refuse = |rule, message: String| Err(Error::malformed(rule, message).at(at.clone()));
    if !offset.is_multiple_of(align) || offset < align {
        let message = format!("data at byte {offset}, it must begin at a multiple of {align}");
        return refuse("ztensor.alignment", message);
    }
    match offset.checked_add(len) {
        None => refuse(
            "ztensor.overflow",
            format!("{len} bytes from byte {offset} on"),
        ),
        Some(found) if found > end => {
            let message = format!("data at bytes {offset}..{found}, there is room up to {end}");
            refuse("ztensor.bounds", message)
        }
        Some(found) => Ok(offset..found),
    }
}

/// Data of a tensor in one of the files: `file` is 0 for the one that was opened.
pub(super) struct Blob {
    pub(super) file: usize,
    pub(super) range: Range<u64>,
    /// Where the index speaks of it.
    pub(super) at: Range<u64>,
}

/// Parts of a tensor, at most: the largest layouts have a handful.
const MAX_PARTS: usize = 4096;

/// Refuses another part of a tensor that has `count` of them.
pub(super) fn check_parts(count: usize, at: u64) -> Result<()> {
    if count == MAX_PARTS {
        let message = format!("a tensor with more than {MAX_PARTS} parts");
        return Err(Error::limit("ztensor.limit", message).at(at..at + 1));
    }
    Ok(())
}

/// Data is shared as a whole, or not at all.
pub(super) fn check_overlaps(mut blobs: Vec<Blob>) -> Result<()> {
    blobs.retain(|blob| !blob.range.is_empty());
    let key = |blob: &Blob| (blob.file, blob.range.start, blob.range.end);
    if !blobs.is_sorted_by_key(key) {
        blobs.sort_unstable_by_key(key);
    }
    for pair in blobs.windows(2) {
        let [a, b] = pair else { continue };
        if a.file == b.file && b.range.start < a.range.end && a.range != b.range {
            let message = format!(
                "the data at bytes {}..{} and at bytes {}..{} overlap in part",
                a.range.start, a.range.end, b.range.start, b.range.end
            );
            return Err(Error::malformed("ztensor.overlap", message).at(b.at.clone()));
        }
    }
    Ok(())
}

/// Text that need not be there. Null says as much as nothing, with a warning.
pub(super) fn optional_text<'b>(
    cbor: &mut Decoder<'b>,
    cx: &mut Context<'_>,
    field: &str,
) -> Result<Option<Cow<'b, str>>> {
    let at = cbor.pos();
    if cbor.take_null()? {
        let message = format!("{field} is null, expected text; treated as absent");
        cx.warn("ztensor.schema", at..cbor.pos(), message)?;
        return Ok(None);
    }
    cbor.text(field).map(Some)
}

/// The encoding of a part that cannot be read, where that is not `raw`.
pub(super) fn listed_encoding(encoding: Option<&str>) -> Option<String> {
    encoding
        .filter(|encoding| *encoding != "raw")
        .map(ToOwned::to_owned)
}

/// Refuses compressed data that is too short for what it should give.
pub(super) fn check_ratio(stored: u64, decoded: u64, at: &Range<u64>) -> Result<()> {
    if decoded > stored.saturating_mul(MAX_RATIO) {
        let message = format!("{stored} compressed bytes cannot decode to {decoded}");
        return Err(Error::malformed("ztensor.zstd", message).at(at.clone()));
    }
    Ok(())
}
