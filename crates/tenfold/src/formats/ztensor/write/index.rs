//! The indexes of the three generations, made of what was written.

use alloc::borrow::Cow;
use core::cmp::Ordering;

use crate::error::{Error, Result};
use crate::format::Written;
use crate::formats::ztensor::capability::LAYOUT;
use crate::formats::ztensor::raw::{self, RawPart};
use crate::formats::ztensor::v01::Entry;
use crate::formats::ztensor::write::pieces::{Object, Piece};
use crate::formats::ztensor::{checksum, v1, v2};
use crate::model::{Metadata, Tensors};
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
            .map(checksum::encode);
        Ok((written.range.clone(), checksum))
    }

    /// A piece as 1.2 and 2 describe it.
    fn part<'p>(&self, piece: &'p Piece) -> Result<RawPart<'p>> {
        let (range, digest) = self.of(piece)?;
        let (dtype, logical) = piece.dtype;
        Ok(RawPart {
            name: Cow::Borrowed(&piece.name),
            dtype: Some(Cow::Borrowed(dtype)),
            logical: logical.map(Cow::Borrowed),
            blob: [range.start, range.end - range.start],
            shard: None,
            encoding: piece.encoding.map(Cow::Borrowed),
            decoded_length: piece.encoding.map(|_| piece.len),
            digest: digest.map(Cow::Owned),
            at: 0..0,
        })
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
                shape: info.shape.clone(),
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

    /// The manifest of 1.2 and what follows it. Readers do not ask for an order; the packages write plain byte order.
    pub(super) fn v12(self, written: &[Written]) -> Result<Vec<u8>> {
        let places = Places::new(&self.blobs, written)?;
        Ok(v1::encode(&self.metadata, &self.sorted(&places, Ord::cmp)?))
    }

    /// The manifest of 2, which begins at `at`, and what follows it.
    pub(super) fn v2(self, written: &[Written], at: u64) -> Result<Vec<u8>> {
        let places = Places::new(&self.blobs, written)?;
        let objects = self.sorted(&places, key_order)?;
        Ok(v2::encode(&self.metadata, &objects, at))
    }

    /// Tensors as 1.2 and 2 describe them, and the parts of each, in an order of their names.
    fn sorted(
        &self,
        places: &Places<'_>,
        order: fn(&str, &str) -> Ordering,
    ) -> Result<Vec<(&str, raw::Object<'_>)>> {
        let mut objects = Vec::with_capacity(self.objects.len());
        for object in &self.objects {
            let info = object.info(&self.tensors)?;
            let parts = object.pieces.iter().map(|piece| places.part(piece));
            let mut parts: Vec<_> = parts.collect::<Result<_>>()?;
            parts.sort_by(|a, b| order(&a.name, &b.name));
            let described = raw::Object {
                dtype: None,
                shape: info.shape.clone(),
                layout: Cow::Borrowed(&object.layout),
                attributes: Cow::Borrowed(object.metadata(info)),
                parts,
                at: 0..0,
            };
            objects.push((&*info.name, described));
        }
        objects.sort_by(|(a, _), (b, _)| order(a, b));
        Ok(objects)
    }
}
