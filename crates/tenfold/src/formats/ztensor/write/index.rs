//! The indexes of the three generations, made of what was written.

use alloc::borrow::Cow;
use core::cmp::Ordering;

use crate::digest::hex;
use crate::error::{Error, Result};
use crate::format::Written;
use crate::formats::ztensor::capability::LAYOUT;
use crate::formats::ztensor::v01::Entry;
use crate::formats::ztensor::v1;
use crate::formats::ztensor::v2::{self as gen2, Footer};
use crate::formats::ztensor::write::pieces::{Object, Piece};
use crate::model::{Checksum, DigestKind, Metadata, TensorInfo, Tensors};
use crate::prelude::*;
use crate::wire::cbor::{Encoder, key_order};

/// What an index is made of.
pub(super) struct Catalog {
    pub(super) metadata: Metadata,
    pub(super) tensors: Tensors,
    pub(super) objects: Vec<Object>,
    /// The stored pieces of data: of which tensor, and of which of its parts.
    pub(super) blobs: Vec<(usize, usize)>,
}

/// Where each stored piece of data went.
struct Places<'w>(Vec<&'w Written>);

impl<'w> Places<'w> {
    fn new(blobs: &[(usize, usize)], written: &'w [Written]) -> Result<Self> {
        let by_part: LookupMap<_, _> = written
            .iter()
            .map(|written| ((written.index, written.part), written))
            .collect();
        let found = blobs.iter().map(|blob| {
            let place = by_part.get(blob).copied();
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

impl Catalog {
    /// The index of 0.1 and its size.
    pub(super) fn v01(self, written: &[Written]) -> Result<Vec<u8>> {
        let places = Places::new(&self.blobs, written)?;
        let mut cbor = Encoder::new();
        cbor.array(self.objects.len());
        for object in &self.objects {
            let info = object.info(&self.tensors)?;
            let [piece] = object.pieces.as_slice() else {
                return Err(Error::argument("a dense tensor has one part").in_tensor(&info.name));
            };
            let (range, checksum) = places.of(piece)?;
            let custom = object.metadata(info);
            // A layout that no program knows stays in its place.
            let layout = match custom.get(LAYOUT) {
                Some(_) => None,
                None => Some(Cow::Borrowed(&*object.layout)),
            };
            let entry = Entry {
                name: Cow::Borrowed(&info.name),
                offset: range.start,
                size: range.end - range.start,
                dtype: Cow::Borrowed(piece.dtype.0),
                layout,
                shape: Cow::Borrowed(&info.shape),
                encoding: Cow::Borrowed(piece.encoding.unwrap_or("raw")),
                data_endianness: piece.endian.map(|endian| Cow::Owned(endian.to_string())),
                checksum: checksum.map(Cow::Owned),
                custom: Cow::Borrowed(custom),
            };
            entry.encode(&mut cbor);
        }
        let mut bytes = cbor.into_bytes();
        let size = bytes.len() as u64;
        bytes.extend_from_slice(&size.to_le_bytes());
        Ok(bytes)
    }

    /// The manifest of 1.2, its size and the magic.
    pub(super) fn v12(mut self, written: &[Written]) -> Result<Vec<u8>> {
        let places = Places::new(&self.blobs, written)?;
        // Readers do not ask for an order; the packages write plain byte order.
        let objects = sorted(&mut self.objects, &self.tensors, Ord::cmp)?;
        let mut cbor = Encoder::new();
        cbor.map(2 + usize::from(!self.metadata.is_empty()));
        cbor.text("version").text("1.2.0");
        attributes(&mut cbor, &self.metadata);
        cbor.text("objects").map(objects.len());
        for (info, object) in objects {
            let metadata = object.metadata(info);
            cbor.text(&info.name)
                .map(3 + usize::from(!metadata.is_empty()));
            cbor.text("shape").numbers(&info.shape);
            cbor.text("format").text(&object.layout);
            attributes(&mut cbor, metadata);
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

    /// The manifest of 2, which begins at `at`, and the footer. Fields stand in the order of their encoded keys.
    pub(super) fn v2(mut self, written: &[Written], at: u64) -> Result<Vec<u8>> {
        let places = Places::new(&self.blobs, written)?;
        let objects = sorted(&mut self.objects, &self.tensors, key_order)?;
        let mut cbor = Encoder::deterministic();
        cbor.map(1 + usize::from(!self.metadata.is_empty()));
        cbor.text("objects").map(objects.len());
        for (info, object) in objects {
            let metadata = object.metadata(info);
            cbor.text(&info.name)
                .map(3 + usize::from(!metadata.is_empty()));
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
            cbor.text("shape").numbers(&info.shape);
            cbor.text("layout").text(&object.layout);
            attributes(&mut cbor, metadata);
        }
        attributes(&mut cbor, &self.metadata);
        let mut bytes = cbor.into_bytes();
        let footer = Footer {
            manifest_offset: at,
            manifest_length: bytes.len() as u64,
            manifest_hash: gen2::xxh3(&bytes),
        };
        footer.encode(&mut bytes);
        Ok(bytes)
    }
}

/// Tensors with their descriptions, and the pieces of each, in an order of their names.
fn sorted<'o>(
    objects: &'o mut [Object],
    tensors: &'o [TensorInfo],
    order: fn(&str, &str) -> Ordering,
) -> Result<Vec<(&'o TensorInfo, &'o Object)>> {
    for object in &mut *objects {
        object.pieces.sort_by(|a, b| order(&a.name, &b.name));
    }
    let described = objects
        .iter()
        .map(|object| Ok((object.info(tensors)?, object)));
    let mut described: Vec<_> = described.collect::<Result<_>>()?;
    described.sort_by(|(a, _), (b, _)| order(&a.name, &b.name));
    Ok(described)
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
