//! What the readers of all generations share: places, shapes, checksums.

use alloc::borrow::Cow;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::ztensor::capability::MAX_RANK;
use crate::model::{Checksum, DType, DigestKind, Over, Part, Unknown, element_count};
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
        return Err(match limit < MAX_INDEX {
            true => error.raised_by("header_bytes"),
            false => error,
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
pub(super) fn shape(cbor: &mut Decoder<'_>, cx: &Context<'_>) -> Result<Vec<u64>> {
    let at = cbor.pos();
    let limit = cx.limits().rank.min(MAX_RANK);
    let mut shape = Vec::new();
    cbor.array("shape", |cbor| {
        if shape.len() == limit {
            let message = format!("more than {limit} dimensions");
            let place = at..cbor.pos();
            return Err(match limit < MAX_RANK {
                true => (Error::limit("ztensor.shape", message).at(place)).raised_by("rank"),
                false => Error::malformed("ztensor.shape", message).at(place),
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
        let message = format!("{field} is null, text is expected: taken as absent");
        cx.warn("ztensor.schema", at..cbor.pos(), message)?;
        return Ok(None);
    }
    cbor.text(field).map(Some)
}

/// The text of a checksum where nobody wants it checked: what is no text is passed over, with a warning.
pub(super) fn unchecked_text<'b>(
    cbor: &mut Decoder<'b>,
    cx: &mut Context<'_>,
    field: &str,
) -> Result<Option<Cow<'b, str>>> {
    let at = cbor.pos();
    if let Some(text) = cbor.take_text()? {
        return Ok(Some(text));
    }
    cbor.skip()?;
    let message = format!("{field} is not text: taken as absent");
    cx.warn("ztensor.checksum", at..cbor.pos(), message)?;
    Ok(None)
}

/// The text of a checksum of 0.1 and 1.x.
pub(super) fn checksum_text<'b>(
    cbor: &mut Decoder<'b>,
    cx: &mut Context<'_>,
    field: &str,
) -> Result<Option<Cow<'b, str>>> {
    if cx.checks_checksums() {
        optional_text(cbor, cx, field)
    } else {
        unchecked_text(cbor, cx, field)
    }
}

/// What becomes of the text of a checksum.
#[derive(Default)]
pub(super) struct Sum {
    pub(super) checksum: Option<Checksum>,
    /// The text, where it is not verified.
    pub(super) unknown: Option<String>,
}

impl Sum {
    /// The checksum, an algorithm that is not known, or why the text is malformed.
    pub(super) fn settle(
        cx: &mut Context<'_>,
        text: &str,
        parsed: Result<Option<Checksum>, String>,
        at: &Range<u64>,
    ) -> Result<Self> {
        const RULE: &str = "ztensor.checksum";
        match parsed {
            Ok(Some(checksum)) => {
                return Ok(Self {
                    checksum: Some(checksum),
                    unknown: None,
                });
            }
            Ok(None) => cx.note(RULE, at.clone(), format!("{text:?} is not verified")),
            Err(message) if cx.checks_checksums() => {
                return Err(Error::malformed(RULE, message).at(at.clone()));
            }
            Err(message) => cx.warn(RULE, at.clone(), message)?,
        }
        Ok(Self {
            checksum: None,
            unknown: Some(text.to_owned()),
        })
    }

    /// What can be said of a part that cannot be read.
    pub(super) fn listed(text: Option<&str>) -> Self {
        match text.map(|text| (text, parse_checksum(text))) {
            Some((_, Ok(checksum @ Some(_)))) => Self {
                checksum,
                unknown: None,
            },
            other => Self {
                checksum: None,
                unknown: other.map(|(text, _)| text.to_owned()),
            },
        }
    }

    /// A part with this checksum, in an encoding that is not known where one is named.
    pub(super) fn on(self, part: Part, encoding: Option<String>) -> Part {
        let unknown = Unknown {
            encoding,
            checksum: self.unknown,
        };
        Part {
            checksum: self.checksum,
            unknown: (unknown != Unknown::default()).then(|| Box::new(unknown)),
            ..part
        }
    }
}

/// The encoding of a part that cannot be read, where that is not `raw`.
pub(super) fn listed_encoding(encoding: Option<&str>) -> Option<String> {
    encoding
        .filter(|encoding| *encoding != "raw")
        .map(ToOwned::to_owned)
}

/// A checksum of 0.1 and 1.x, of the stored bytes.
pub(super) fn checksum(cx: &mut Context<'_>, text: &str, at: &Range<u64>) -> Result<Sum> {
    Sum::settle(cx, text, parse_checksum(text), at)
}

/// `crc32c:` and up to 8 digits, or `sha256:` and 64, with or without `0x`, in any case; nothing for other algorithms.
fn parse_checksum(text: &str) -> Result<Option<Checksum>, String> {
    let (kind, digits) = match text.split_once(':') {
        Some((name, digits)) if name.eq_ignore_ascii_case("crc32c") => (DigestKind::Crc32c, digits),
        Some((name, digits)) if name.eq_ignore_ascii_case("sha256") => (DigestKind::Sha256, digits),
        _ => return Ok(None),
    };
    let bare = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let digits = bare.unwrap_or(digits);
    let value = match (kind, digits.len()) {
        (DigestKind::Crc32c, 1..=8) => from_hex(&format!("{digits:0>8}")),
        (DigestKind::Sha256, 64) => from_hex(digits),
        _ => None,
    };
    let value = value
        .ok_or_else(|| format!("{text:?} is not crc32c:0x and 1 to 8 digits, or sha256: and 64"))?;
    Ok(Some(Checksum {
        kind,
        over: Over::Stored,
        value,
    }))
}

/// Bytes from hexadecimal digits in any case.
pub(super) fn from_hex(digits: &str) -> Option<Bytes> {
    let digit = |byte: &u8| {
        char::from(*byte)
            .to_digit(16)
            .and_then(|n| u8::try_from(n).ok())
    };
    let pairs = digits.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> = pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect();
    bytes.map(Bytes::from)
}

/// Refuses compressed data that is too short for what it should give.
pub(super) fn check_ratio(stored: u64, decoded: u64, at: &Range<u64>) -> Result<()> {
    if decoded > stored.saturating_mul(MAX_RATIO) {
        let message = format!("{stored} compressed bytes cannot decode to {decoded}");
        return Err(Error::malformed("ztensor.zstd", message).at(at.clone()));
    }
    Ok(())
}
