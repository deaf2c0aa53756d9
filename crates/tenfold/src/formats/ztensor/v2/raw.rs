//! Objects and their parts as they are in the file.

use alloc::borrow::Cow;

use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::ztensor::read::{self, Sum};
use crate::formats::ztensor::v2::{attributes, named};
use crate::model::{Checksum, DigestKind, Metadata, Over};
use crate::prelude::*;
use crate::wire::cbor::Decoder;

pub(super) struct Object<'b> {
    pub(super) shape: Vec<u64>,
    pub(super) layout: Cow<'b, str>,
    pub(super) parts: Vec<RawPart<'b>>,
    pub(super) attributes: Metadata,
    pub(super) at: Range<u64>,
}

impl<'b> Object<'b> {
    pub(super) fn parse(cbor: &mut Decoder<'b>, cx: &mut Context<'_>) -> Result<Self> {
        let from = cbor.pos();
        let (mut shape, mut layout, mut parts) = (None, None, None);
        let mut metadata = Metadata::new();
        cbor.open_map("an object", |cbor, key| {
            match &*key {
                "shape" => shape = Some(read::shape(cbor, cx)?),
                "layout" => layout = Some(cbor.text("layout")?),
                "attributes" => metadata = attributes(cbor)?,
                "parts" => {
                    let list = parts.insert(Vec::new());
                    cbor.map("parts", |cbor, name| {
                        named("a part", &name, cbor.pos())?;
                        read::check_parts(list.len(), cbor.pos())?;
                        list.push(RawPart::parse(cbor, name, cx)?);
                        Ok(())
                    })?;
                }
                _ => cbor.skip()?,
            }
            Ok(())
        })?;
        let at = from..cbor.pos();
        let parts = read::required(parts, "parts", &at)?;
        if parts.is_empty() {
            return Err(Error::malformed("ztensor.schema", "an object without parts").at(at));
        }
        Ok(Self {
            shape: read::required(shape, "shape", &at)?,
            layout: read::required(layout, "layout", &at)?,
            parts,
            attributes: metadata,
            at,
        })
    }
}

pub(super) struct RawPart<'b> {
    pub(super) name: Cow<'b, str>,
    pub(super) dtype: Cow<'b, str>,
    /// The logical type, `type` in the file.
    pub(super) logical: Option<Cow<'b, str>>,
    pub(super) blob: (u64, u64),
    pub(super) shard: Option<Cow<'b, str>>,
    pub(super) encoding: Option<(Cow<'b, str>, u64)>,
    pub(super) digest: Option<Cow<'b, str>>,
    pub(super) at: Range<u64>,
}

impl<'b> RawPart<'b> {
    pub(super) fn parse(
        cbor: &mut Decoder<'b>,
        name: Cow<'b, str>,
        cx: &mut Context<'_>,
    ) -> Result<Self> {
        let from = cbor.pos();
        let (mut dtype, mut logical, mut blob, mut shard) = (None, None, None, None);
        let (mut encoding, mut decoded_length, mut digest) = (None, None, None);
        cbor.open_map("a part", |cbor, key| {
            match &*key {
                "dtype" => dtype = Some(cbor.text("dtype")?),
                "type" => logical = Some(cbor.text("type")?),
                "blob" => blob = Some(parse_blob(cbor)?),
                "shard" => shard = Some(cbor.text("shard")?),
                "encoding" => encoding = Some(cbor.text("encoding")?),
                "decoded_length" => decoded_length = Some(cbor.unsigned("decoded_length")?),
                "digest" => digest = parse_digest(cbor, cx)?,
                _ => cbor.skip()?,
            }
            Ok(())
        })?;
        let at = from..cbor.pos();
        let encoding = match (encoding, decoded_length) {
            (Some(encoding), Some(len)) => Some((encoding, len)),
            (None, None) => None,
            _ => {
                let message = "encoding and decoded_length stand together or not at all";
                return Err(Error::malformed("ztensor.schema", message).at(at));
            }
        };
        Ok(Self {
            name,
            dtype: read::required(dtype, "dtype", &at)?,
            logical,
            blob: read::required(blob, "blob", &at)?,
            shard,
            encoding,
            digest,
            at,
        })
    }
}

/// Offset and length.
fn parse_blob(cbor: &mut Decoder<'_>) -> Result<(u64, u64)> {
    let from = cbor.pos();
    let mut numbers = [None; 2];
    let mut count = 0;
    cbor.array("blob", |cbor| {
        let number = cbor.unsigned("a number of blob")?;
        if let Some(place) = numbers.get_mut(count) {
            *place = Some(number);
        }
        count += 1;
        Ok(())
    })?;
    match (numbers, count) {
        ([Some(offset), Some(length)], 2) => Ok((offset, length)),
        _ => {
            let message = format!("blob has {count} numbers, offset and length are expected");
            Err(Error::malformed("ztensor.schema", message).at(from..cbor.pos()))
        }
    }
}

/// The text of a digest, which need not be one where nobody wants it checked.
pub(super) fn parse_digest<'b>(
    cbor: &mut Decoder<'b>,
    cx: &mut Context<'_>,
) -> Result<Option<Cow<'b, str>>> {
    if !cx.checks_checksums() {
        return read::unchecked_text(cbor, cx, "digest");
    }
    let at = cbor.pos();
    let text = cbor.text("digest")?;
    check_digest(&text, &(at..cbor.pos()))?;
    Ok(Some(text))
}

/// A digest is `algorithm:digits`, all of it in lower case.
fn check_digest(text: &str, at: &Range<u64>) -> Result<()> {
    let sound = text.split_once(':').is_some_and(|(algorithm, digits)| {
        let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        !algorithm.is_empty()
            && algorithm.bytes().all(lower)
            && !digits.is_empty()
            && digits.bytes().all(hex)
    });
    if sound {
        return Ok(());
    }
    let message =
        format!("digest {text:?}: an algorithm, a colon and lower-case digits are expected");
    Err(Error::malformed("ztensor.schema", message).at(at.clone()))
}

/// The checksum that a digest gives.
pub(super) fn checksum(cx: &mut Context<'_>, text: &str, at: &Range<u64>) -> Result<Sum> {
    Sum::settle(cx, text, parse_checksum(text), at)
}

/// None for an algorithm that is not known.
fn parse_checksum(text: &str) -> Result<Option<Checksum>, String> {
    let (kind, len, digits) = match text.split_once(':') {
        Some(("xxh3", digits)) => (DigestKind::Xxh3, 8, digits),
        Some(("sha256", digits)) => (DigestKind::Sha256, 32, digits),
        _ => return Ok(None),
    };
    let value = read::from_hex(digits).filter(|value| value.len() == len);
    let value =
        value.ok_or_else(|| format!("{text:?} does not have the {} digits of {kind}", len * 2))?;
    Ok(Some(Checksum {
        kind,
        over: Over::Decoded,
        value,
    }))
}
