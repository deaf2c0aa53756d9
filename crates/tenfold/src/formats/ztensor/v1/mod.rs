//! Generations 1.0, 1.1 and 1.2: a manifest of objects made of components.

mod frame;

use core::cell::Cell;

use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::ztensor::assemble::{Assembler, Assembly, Misfit, StoredPart};
use crate::formats::ztensor::capability::DEPTH_1;
use crate::formats::ztensor::checksum::Sum;
use crate::formats::ztensor::raw::{Object, Others, RawPart, SCHEMA_1};
use crate::formats::ztensor::{names, read};
use crate::model::{
    Codec, DType, Layout, Manifest, Metadata, Part, Payload, Role, SourceId, TensorInfo,
};
use crate::prelude::*;
use crate::transform::{Input, measure};
use crate::wire::cbor::{Decoder, Encoder, Key};

use frame::Frame;

pub(super) const MAGIC: &[u8] = b"ZTEN1000";
pub(super) const ALIGN: u64 = 64;
/// Bytes of the keys that an object must have, rounded down.
const MIN_OBJECT: usize = 32;
/// Bytes that are decoded at most to find lengths which 1.0 and 1.1 do not give.
const MEASURE: u64 = 1 << 30;

/// Fields of the manifest, in the order in which they are written. The last is in 1.0 only, and names the program.
const ROOT: [&str; 4] = ["version", "attributes", "objects", "generator"];
const ROOT_10: [&str; 4] = ["version", "attributes", "tensors", "generator"];

pub(super) fn describe(cx: &mut Context<'_>) -> Result<Manifest> {
    let frame = Frame::find(cx)?;
    let bytes = read::index(cx, frame.manifest.clone())?;
    let mut reading = Reading {
        source: cx.source(),
        end: frame.manifest.start,
        is_10: frame.is_10,
        blobs: Vec::new(),
        budget: Cell::new(MEASURE),
        measured: Cell::default(),
        cx,
    };
    let mut manifest = Manifest::default();
    let mut others = Others::default();
    let (mut version, mut objects) = (None, false);
    let keys = if frame.is_10 { ROOT_10 } else { ROOT };
    let [_, _, list, _] = keys;
    let mut cbor = Decoder::new(&bytes, frame.manifest.start, &read::RULES, DEPTH_1);
    cbor.fields("the manifest", &keys, |cbor, key| {
        match key {
            Key::Field(0) => version = Some((cbor.pos(), cbor.text("version")?)),
            Key::Field(1) => manifest.metadata = SCHEMA_1.attributes(cbor)?,
            Key::Field(2) => {
                objects = true;
                manifest.tensors.reserve(cbor.room(MIN_OBJECT));
                reading.blobs.reserve(cbor.room(MIN_OBJECT));
                cbor.map(list, |cbor, name| {
                    let object = Object::parse(cbor, &SCHEMA_1, reading.cx, &mut others)?;
                    let tensor = reading.tensor(&name, object);
                    manifest
                        .tensors
                        .push(tensor.map_err(|error| error.in_tensor(&name))?);
                    Ok(())
                })?;
            }
            Key::Field(_) => cbor.skip()?,
            key => others.take(cbor, &key)?,
        }
        Ok(())
    })?;
    manifest.kept.extend(others.into_kept());
    cbor.finish()?;
    let at = frame.manifest.clone();
    if !objects && frame.is_10 {
        return Err(frame.cut());
    }
    read::required(objects.then_some(()), list, &at)?;
    let (version_at, version) = read::required(version, "version", &at)?;
    manifest.version = label(&version, version_at, reading.cx)?;
    read::check_overlaps(reading.blobs)?;
    manifest.region(0..8, "magic");
    manifest.region(at, "manifest");
    manifest.region(frame.footer, "footer");
    Ok(manifest)
}

/// The manifest of 1.2, its size and the magic.
pub(super) fn encode(metadata: &Metadata, objects: &[(&str, Object<'_>)]) -> Vec<u8> {
    let [version, attributes, list, _] = ROOT;
    let mut cbor = Encoder::new();
    cbor.map(2 + usize::from(!metadata.is_empty()));
    cbor.text(version).text("1.2.0");
    if !metadata.is_empty() {
        cbor.text(attributes).entries(metadata);
    }
    cbor.text(list).map(objects.len());
    for (name, object) in objects {
        object.encode(&SCHEMA_1, cbor.text(name));
    }
    let mut bytes = cbor.into_bytes();
    let size = bytes.len() as u64;
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes.extend_from_slice(MAGIC);
    bytes
}

/// The generation that the manifest names.
fn label(version: &str, at: u64, cx: &mut Context<'_>) -> Result<String> {
    let range = at..at + 1 + version.len() as u64;
    let minor = version
        .strip_prefix("1.")
        .map(|rest| rest.split('.').next().unwrap_or(rest));
    let Some(minor) = minor.filter(|minor| minor.parse::<u32>().is_ok()) else {
        let message = format!("the manifest is of version {version:?}, expected 1.x");
        return Err(Error::malformed("ztensor.version", message).at(range));
    };
    if !matches!(minor, "0" | "1" | "2") {
        let message =
            format!("version {version:?} is newer than the ones tenfold reads (1.0 to 1.2)");
        cx.warn("ztensor.version", range, message)?;
    }
    Ok(format!("1.{minor}"))
}

struct Reading<'r, 'c> {
    cx: &'r mut Context<'c>,
    source: &'c dyn crate::io::Source,
    /// Where data ends and the manifest begins.
    end: u64,
    is_10: bool,
    blobs: Vec<read::Blob>,
    /// Bytes that may still be decoded to find lengths.
    budget: Cell<u64>,
    /// The last length that was found, so that shared data is decoded once.
    measured: Cell<Option<((u64, u64), u64)>>,
}

impl Reading<'_, '_> {
    /// The tensor; what is wrong with it alone is its defect.
    fn tensor(&mut self, name: &str, object: Object<'_>) -> Result<TensorInfo> {
        let elements = read::elements(&object.shape, &object.at)?;
        if self.is_10 {
            read::required(object.dtype.as_ref(), "dtype", &object.at)?;
        }
        let mut places = Vec::new();
        for RawPart {
            dtype, blob, at, ..
        } in &object.parts
        {
            if !self.is_10 {
                read::required(dtype.as_ref(), "dtype", at)?;
            }
            let [offset, length] = *blob;
            let range = read::place(offset, length, ALIGN, self.end, at)?;
            let blob = read::Blob {
                file: 0,
                range: range.clone(),
                at: at.clone(),
            };
            push_tight(&mut self.blobs, blob);
            places.push(range);
        }
        let found = self.assemble(&object, elements, &places);
        let mut info =
            TensorInfo::new(name, DType::UNKNOWN, object.shape.clone(), Layout::RowMajor);
        info.metadata = object.attributes.into_owned();
        match found {
            Ok(assembly) => {
                if assembly.dtype != DType::PARTS {
                    read::sound_dense_len(assembly.dtype, &info.shape, &object.at)?;
                }
                info.dtype = assembly.dtype;
                info.layout = assembly.layout;
                info.parts = assembly.parts;
            }
            // Sizes that do not fit 64 bits are nothing that a sound writer could have written.
            Err(Misfit::Overflow(error)) => return Err(error),
            Err(defect) => {
                for (raw, range) in object.parts.into_iter().zip(places) {
                    let encoding = read::listed_encoding(raw.encoding.as_deref());
                    let sum = Sum::listed(raw.digest.as_deref(), false);
                    let role = Role::Named(raw.name.into_owned());
                    let part = Part::new(role, DType::UNKNOWN, Payload::main(range));
                    info.parts.push(sum.on(part, encoding));
                }
                info.defect = Some(defect.into());
            }
        }
        Ok(info)
    }

    fn assemble(
        &mut self,
        object: &Object<'_>,
        elements: u64,
        places: &[Range<u64>],
    ) -> Result<Assembly, Misfit> {
        let mut parts = Vec::new();
        for (raw, range) in object.parts.iter().zip(places) {
            parts.push(self.part(object, raw, range.clone())?);
        }
        let assembler = Assembler {
            shape: &object.shape,
            elements,
            narrow_indices: false,
            at: object.at.clone(),
            measure: &|part| self.measure(part),
        };
        match &*object.layout {
            "dense" => assembler.dense(parts),
            "sparse_csr" => assembler.csr(parts),
            "sparse_coo" => assembler.coo(parts),
            scheme => assembler.opaque(scheme, parts),
        }
    }

    fn part<'b>(
        &mut self,
        object: &Object<'_>,
        raw: &RawPart<'b>,
        range: Range<u64>,
    ) -> Result<StoredPart<'b>> {
        let at = &raw.at;
        let dtype = self.dtype(object, raw)?;
        let codec = match raw.encoding.as_deref() {
            None | Some("raw") => None,
            Some("zstd") => Some(Codec::Zstd { level: 0 }),
            Some(other) => {
                let message = format!("encoding {other:?} is not known");
                return Err(Error::unsupported("ztensor.encoding", message).at(at.clone()));
            }
        };
        let sum = Sum::parse(self.cx, raw.digest.as_deref(), false, at)?;
        let stored = range.end - range.start;
        let len = match codec {
            Some(_) => raw.decoded_length,
            None => Some(stored),
        };
        if codec.is_none() && raw.decoded_length.is_some_and(|len| len != stored) {
            let message = "uncompressed_length differs from the length of uncompressed data";
            return Err(Error::malformed("ztensor.size", message).at(at.clone()));
        }
        Ok(StoredPart {
            name: raw.name.clone(),
            dtype,
            source: SourceId::MAIN,
            range,
            codec,
            len,
            sum,
            encoding: None,
            at: at.clone(),
        })
    }

    fn dtype(&mut self, object: &Object<'_>, raw: &RawPart<'_>) -> Result<DType> {
        let at = &raw.at;
        let unknown = |what: &str, name: &str| {
            Error::unsupported("ztensor.dtype", format!("{what} {name:?} is not known"))
                .at(at.clone())
        };
        if self.is_10 {
            let name = object.dtype.as_deref().unwrap_or_default();
            let dtype = names::from_01(name).ok_or_else(|| unknown("dtype", name))?;
            let is_elements = matches!(&*raw.name, "data" | "values");
            return Ok(if is_elements { dtype } else { DType::U64 });
        }
        let name = raw.dtype.as_deref().unwrap_or_default();
        let storage = names::from_storage(name).ok_or_else(|| unknown("dtype", name))?;
        let Some(logical) = raw.logical.as_deref() else {
            return Ok(storage);
        };
        match names::from_logical(logical, false) {
            Some((over, dtype)) if over == storage => Ok(dtype),
            Some((over, _)) => {
                let message =
                    format!("type {logical:?} over {storage}, but it should be over {over}");
                Err(Error::malformed("ztensor.dtype", message).at(at.clone()))
            }
            None => {
                let message = format!(
                    "type {logical:?} is not known: shown as the {storage} it is stored as"
                );
                self.cx.warn("ztensor.dtype", at.clone(), message)?;
                Ok(storage)
            }
        }
    }

    /// The length of compressed data that the file does not give: of sparse and opaque tensors of 1.0 and 1.1, whose
    /// number of entries is known from it alone. It is the only tensor data that a description looks at.
    fn measure(&self, part: &StoredPart<'_>) -> Result<u64> {
        let range = part.range.clone();
        let place = (range.start, range.end);
        if let Some((_, len)) = self.measured.get().filter(|(known, _)| *known == place) {
            return Ok(len);
        }
        // Data that uses up what is left leaves nothing for others.
        let limit = self.budget.replace(0);
        let input = Input::Source {
            id: SourceId::MAIN,
            source: self.source,
            range,
            control: None,
        };
        let len = measure(input, limit)?;
        self.budget.set(limit.saturating_sub(len));
        self.measured.set(Some((place, len)));
        Ok(len)
    }
}
