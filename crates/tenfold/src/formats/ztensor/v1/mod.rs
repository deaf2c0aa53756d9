//! Generations 1.0, 1.1 and 1.2: a manifest of objects made of components.

mod raw;

use core::cell::Cell;

use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::ztensor::assemble::{Assembler, Assembly, StoredPart};
use crate::formats::ztensor::capability::DEPTH_1;
use crate::formats::ztensor::{names, read};
use crate::model::{Codec, DType, Layout, Manifest, Part, Payload, Role, SourceId, TensorInfo};
use crate::prelude::*;
use crate::transform::{Input, measure};
use crate::wire::cbor::Decoder;

use raw::{Component, Frame, Object, attributes};

pub(super) const MAGIC: &[u8] = b"ZTEN1000";
pub(super) const ALIGN: u64 = 64;
/// Bytes of the keys that an object must have, rounded down.
const MIN_OBJECT: usize = 32;
/// Bytes that are decoded at most to find lengths which 1.0 and 1.1 do not give.
const MEASURE: u64 = 1 << 30;

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
    let (mut version, mut objects) = (None, false);
    let list = if frame.is_10 { "tensors" } else { "objects" };
    let mut cbor = Decoder::new(&bytes, frame.manifest.start, &read::RULES, DEPTH_1);
    cbor.map("the manifest", |cbor, key| {
        match &*key {
            "version" => version = Some((cbor.pos(), cbor.text("version")?)),
            "attributes" => manifest.metadata = attributes(cbor)?,
            key if key == list => {
                objects = true;
                manifest.tensors.reserve(cbor.room(MIN_OBJECT));
                reading.blobs.reserve(cbor.room(MIN_OBJECT));
                cbor.map(list, |cbor, name| {
                    let object = Object::parse(cbor, reading.cx)?;
                    let tensor = reading.tensor(&name, object);
                    manifest
                        .tensors
                        .push(tensor.map_err(|error| error.in_tensor(&name))?);
                    Ok(())
                })?;
            }
            _ => cbor.skip()?,
        }
        Ok(())
    })?;
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

/// The generation that the manifest names.
fn label(version: &str, at: u64, cx: &mut Context<'_>) -> Result<String> {
    let range = at..at + 1 + version.len() as u64;
    let minor = version
        .strip_prefix("1.")
        .map(|rest| rest.split('.').next().unwrap_or(rest));
    let Some(minor) = minor.filter(|minor| minor.parse::<u32>().is_ok()) else {
        let message = format!("the manifest is of version {version:?}, 1.x is expected");
        return Err(Error::malformed("ztensor.version", message).at(range));
    };
    if !matches!(minor, "0" | "1" | "2") {
        let message = format!("version {version:?} is newer than those known here (1.0 to 1.2)");
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
        for component in &object.components {
            let Component {
                offset, length, at, ..
            } = component;
            if !self.is_10 {
                read::required(component.dtype.as_ref(), "dtype", at)?;
            }
            let range = read::place(*offset, *length, ALIGN, self.end, at)?;
            let blob = read::Blob {
                file: 0,
                range: range.clone(),
                at: at.clone(),
            };
            push_tight(&mut self.blobs, blob);
            places.push(range);
        }
        let found = self.assemble(&object, elements, &places);
        let mut info = TensorInfo::new(name, DType::UNKNOWN, object.shape, Layout::RowMajor);
        info.metadata = object.attributes;
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
            Err(error) if error.rule() == "ztensor.overflow" => return Err(error),
            Err(defect) => {
                for (component, range) in object.components.iter().zip(places) {
                    let role = Role::Named(component.name.clone().into_owned());
                    let part = Part::new(role, DType::UNKNOWN, Payload::main(range));
                    push_tight(&mut info.parts, part);
                }
                info.defect = Some(defect);
            }
        }
        Ok(info)
    }

    fn assemble(
        &mut self,
        object: &Object<'_>,
        elements: u64,
        places: &[Range<u64>],
    ) -> Result<Assembly> {
        let mut parts = Vec::new();
        for (component, range) in object.components.iter().zip(places) {
            parts.push(self.part(object, component, range.clone())?);
        }
        let assembler = Assembler {
            shape: &object.shape,
            elements,
            narrow_indices: false,
            at: object.at.clone(),
            measure: &|part| self.measure(part),
        };
        match &*object.format {
            "dense" => assembler.dense(parts),
            "sparse_csr" => assembler.csr(parts),
            "sparse_coo" => assembler.coo(parts),
            scheme => assembler.opaque(scheme, parts),
        }
    }

    fn part<'b>(
        &mut self,
        object: &Object<'_>,
        component: &Component<'b>,
        range: Range<u64>,
    ) -> Result<StoredPart<'b>> {
        let at = &component.at;
        let dtype = self.dtype(object, component)?;
        let codec = match component.encoding.as_deref() {
            None | Some("raw") => None,
            Some("zstd") => Some(Codec::Zstd { level: 0 }),
            Some(other) => {
                let message = format!("encoding {other:?} is not known");
                return Err(Error::unsupported("ztensor.encoding", message).at(at.clone()));
            }
        };
        let checksum = match &component.digest {
            Some(text) => read::checksum(self.cx, text, at)?,
            None => None,
        };
        let stored = range.end - range.start;
        let len = match codec {
            Some(_) => component.uncompressed_length,
            None => Some(stored),
        };
        if codec.is_none()
            && component
                .uncompressed_length
                .is_some_and(|len| len != stored)
        {
            let message = "uncompressed_length differs from the length of uncompressed data";
            return Err(Error::malformed("ztensor.size", message).at(at.clone()));
        }
        let name = component.name.clone();
        let source = SourceId::MAIN;
        Ok(StoredPart {
            name,
            dtype,
            source,
            range,
            codec,
            len,
            checksum,
            at: at.clone(),
        })
    }

    fn dtype(&mut self, object: &Object<'_>, component: &Component<'_>) -> Result<DType> {
        let at = &component.at;
        let unknown = |what: &str, name: &str| {
            Error::unsupported("ztensor.dtype", format!("{what} {name:?} is not known"))
                .at(at.clone())
        };
        if self.is_10 {
            let name = object.dtype.as_deref().unwrap_or_default();
            let dtype = names::from_01(name).ok_or_else(|| unknown("dtype", name))?;
            let is_elements = matches!(&*component.name, "data" | "values");
            return Ok(if is_elements { dtype } else { DType::U64 });
        }
        let name = component.dtype.as_deref().unwrap_or_default();
        let storage = names::from_storage(name).ok_or_else(|| unknown("dtype", name))?;
        let Some(logical) = component.logical.as_deref() else {
            return Ok(storage);
        };
        match names::from_logical(logical, false) {
            Some((over, dtype)) if over == storage => Ok(dtype),
            Some((over, _)) => {
                let message = format!("type {logical:?} over {storage}, it is stored as {over}");
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

    /// The length of compressed data that the file does not give: sparse tensors of 1.0 and 1.1.
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
        };
        let len = measure(input, limit)?;
        self.budget.set(limit.saturating_sub(len));
        self.measured.set(Some((place, len)));
        Ok(len)
    }
}
