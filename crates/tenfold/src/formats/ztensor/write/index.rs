//! The indexes of the three generations, made of what was written.

use alloc::borrow::Cow;

use crate::digest::hex;
use crate::error::{Error, Result};
use crate::format::Written;
use crate::formats::ztensor::v01::Entry;
use crate::formats::ztensor::v1;
use crate::formats::ztensor::v2::{self as gen2, Footer};
use crate::formats::ztensor::write::pieces::{Object, Piece, Request};
use crate::model::{Checksum, DigestKind, Metadata};
use crate::prelude::*;
use crate::wire::cbor::{Encoder, key_order};

/// Where each stored piece of data went.
struct Places<'w>(Vec<&'w Written>);

impl<'w> Places<'w> {
    fn new(blobs: &[Request], written: &'w [Written]) -> Result<Self> {
        let by_part: LookupMap<_, _> = written
            .iter()
            .map(|written| ((written.index, written.part), written))
            .collect();
        let found = blobs.iter().map(|blob| {
            let place = by_part.get(&(blob.index, blob.part)).copied();
            place.ok_or_else(|| Error::argument("a part that was planned was not written"))
        });
        found.collect::<Result<_>>().map(Self)
    }

    /// The place and the checksum of a piece.
    fn of(&self, piece: &Piece) -> Result<(Range<u64>, Option<String>)> {
        let written = self.0.get(piece.blob);
        let written = written.ok_or_else(|| Error::argument("a part without a place"))?;
        let checksum = piece
            .carried
            .as_ref()
            .or(written.digest.as_ref())
            .map(checksum_text);
        Ok((written.range.clone(), checksum))
    }
}

fn checksum_text(checksum: &Checksum) -> String {
    let digits = hex(&checksum.value);
    match checksum.kind {
        DigestKind::Crc32c => format!("crc32c:0x{}", digits.to_ascii_uppercase()),
        kind => format!("{kind}:{digits}"),
    }
}

/// The index of 0.1 and its size.
pub(super) fn v01(objects: &[Object], blobs: &[Request], written: &[Written]) -> Result<Vec<u8>> {
    let places = Places::new(blobs, written)?;
    let mut cbor = Encoder::new();
    cbor.array(objects.len());
    for object in objects {
        let [piece] = object.pieces.as_slice() else {
            return Err(Error::argument("a dense tensor has one part").in_tensor(&object.name));
        };
        let (range, checksum) = places.of(piece)?;
        let entry = Entry {
            name: Cow::Borrowed(&object.name),
            offset: range.start,
            size: range.end - range.start,
            dtype: Cow::Borrowed(piece.dtype.0),
            layout: Some(Cow::Borrowed(&object.layout)),
            shape: Cow::Borrowed(&object.shape),
            encoding: Cow::Borrowed(piece.encoding.unwrap_or("raw")),
            data_endianness: piece.endian.map(|endian| Cow::Owned(endian.to_string())),
            checksum: checksum.map(Cow::Owned),
            custom: Cow::Borrowed(&object.metadata),
        };
        entry.encode(&mut cbor);
    }
    let mut bytes = cbor.into_bytes();
    let size = bytes.len() as u64;
    bytes.extend_from_slice(&size.to_le_bytes());
    Ok(bytes)
}

/// The manifest of 1.2, its size and the magic.
pub(super) fn v12(
    metadata: &Metadata,
    mut objects: Vec<Object>,
    blobs: &[Request],
    written: &[Written],
) -> Result<Vec<u8>> {
    let places = Places::new(blobs, written)?;
    // Readers do not ask for an order; the packages write plain byte order.
    objects.sort_by(|a, b| a.name.cmp(&b.name));
    let mut cbor = Encoder::new();
    cbor.map(2 + usize::from(!metadata.is_empty()));
    cbor.text("version").text("1.2.0");
    attributes(&mut cbor, metadata);
    cbor.text("objects").map(objects.len());
    for object in &mut objects {
        object.pieces.sort_by(|a, b| a.name.cmp(&b.name));
        cbor.text(&object.name)
            .map(3 + usize::from(!object.metadata.is_empty()));
        cbor.text("shape").numbers(&object.shape);
        cbor.text("format").text(&object.layout);
        attributes(&mut cbor, &object.metadata);
        cbor.text("components").map(object.pieces.len());
        for piece in &object.pieces {
            let (range, digest) = places.of(piece)?;
            let (dtype, logical) = piece.dtype;
            let fields = 3
                + usize::from(logical.is_some())
                + 2 * usize::from(piece.encoding.is_some())
                + usize::from(digest.is_some());
            cbor.text(&piece.name).map(fields);
            cbor.text("dtype").text(dtype);
            optional(&mut cbor, "type", logical);
            cbor.text("offset").unsigned(range.start);
            cbor.text("length").unsigned(range.end - range.start);
            if piece.encoding.is_some() {
                cbor.text("uncompressed_length").unsigned(piece.len);
            }
            optional(&mut cbor, "encoding", piece.encoding);
            optional(&mut cbor, "digest", digest.as_deref());
        }
    }
    let mut bytes = cbor.into_bytes();
    let size = bytes.len() as u64;
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes.extend_from_slice(v1::MAGIC);
    Ok(bytes)
}

fn attributes(cbor: &mut Encoder, metadata: &Metadata) {
    if !metadata.is_empty() {
        cbor.text("attributes").entries(metadata);
    }
}

fn optional(cbor: &mut Encoder, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        cbor.text(key).text(value);
    }
}

/// The manifest of 2, which begins at `at`, and the footer. Fields stand in the order of their encoded keys.
pub(super) fn v2(
    metadata: &Metadata,
    mut objects: Vec<Object>,
    blobs: &[Request],
    written: &[Written],
    at: u64,
) -> Result<Vec<u8>> {
    let places = Places::new(blobs, written)?;
    objects.sort_by(|a, b| key_order(&a.name, &b.name));
    let mut cbor = Encoder::deterministic();
    cbor.map(1 + usize::from(!metadata.is_empty()));
    cbor.text("objects").map(objects.len());
    for object in &mut objects {
        object.pieces.sort_by(|a, b| key_order(&a.name, &b.name));
        cbor.text(&object.name)
            .map(3 + usize::from(!object.metadata.is_empty()));
        cbor.text("parts").map(object.pieces.len());
        for piece in &object.pieces {
            let (range, digest) = places.of(piece)?;
            let (dtype, logical) = piece.dtype;
            let fields = 2
                + usize::from(logical.is_some())
                + usize::from(digest.is_some())
                + 2 * usize::from(piece.encoding.is_some());
            cbor.text(&piece.name).map(fields);
            cbor.text("blob")
                .numbers(&[range.start, range.end - range.start]);
            optional(&mut cbor, "type", logical);
            cbor.text("dtype").text(dtype);
            optional(&mut cbor, "digest", digest.as_deref());
            optional(&mut cbor, "encoding", piece.encoding);
            if piece.encoding.is_some() {
                cbor.text("decoded_length").unsigned(piece.len);
            }
        }
        cbor.text("shape").numbers(&object.shape);
        cbor.text("layout").text(&object.layout);
        attributes(&mut cbor, &object.metadata);
    }
    attributes(&mut cbor, metadata);
    let mut bytes = cbor.into_bytes();
    let footer = Footer {
        manifest_offset: at,
        manifest_length: bytes.len() as u64,
        manifest_hash: gen2::xxh3(&bytes),
    };
    footer.encode(&mut bytes);
    Ok(bytes)
}
