//! Objects that were saved beside the tensors: metadata under their names.

use bytes::Bytes;

use super::SPEC;
use super::items::{self, Item, SMALL};
use super::metadata::Place;
use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::torch::{Allowed, Around, Saved, flatten, whole};
use crate::io::{Source, read_ranges_exactly};
use crate::model::{Manifest, Payload, SourceId, Value};
use crate::prelude::*;
use crate::wire::pickle;

/// What an object may become that is compressed, however short it is, and for each of its bytes.
const FREE: u64 = 8 << 20;
const TIMES: u64 = 8;

/// An object: its name, and where its item is.
pub(super) struct Object {
    pub(super) name: String,
    pub(super) place: Place,
}

/// The items of objects that are small, asked for at once.
fn fetch(files: &[Arc<dyn Source>], objects: &[Object]) -> Result<Vec<Option<Bytes>>> {
    let mut fetched: Vec<Option<Bytes>> = objects.iter().map(|_| None).collect();
    for (number, file) in files.iter().enumerate() {
        let is_wanted = |place: &Place| {
            place.file as usize == number && place.len <= SMALL && place.end() <= file.len()
        };
        let wanted: Vec<usize> = (objects.iter().enumerate())
            .filter(|(_, object)| is_wanted(&object.place) && !object.place.is_zstd)
            .map(|(place, _)| place)
            .collect();
        let ranges = wanted.iter().filter_map(|place| objects.get(*place));
        let ranges: Vec<Range<u64>> = ranges
            .map(|object| object.place.offset..object.place.end())
            .collect();
        for (place, bytes) in wanted
            .into_iter()
            .zip(read_ranges_exactly(&**file, &ranges)?)
        {
            if let Some(slot) = fetched.get_mut(place) {
                *slot = Some(bytes);
            }
        }
    }
    Ok(fetched)
}

/// Adds what objects hold to a description. One that cannot be read spoils nothing else.
pub(super) fn read(
    cx: &mut Context<'_>,
    files: &[Arc<dyn Source>],
    ids: &[SourceId],
    objects: &[Object],
    manifest: &mut Manifest,
) -> Result<()> {
    let fetched = fetch(files, objects)?;
    for (object, bytes) in objects.iter().zip(fetched) {
        let number = object.place.file as usize;
        let (Some(file), Some(id)) = (files.get(number), ids.get(number)) else {
            continue;
        };
        let at = object.place.offset..object.place.end();
        let read = one(cx, file, object, bytes, manifest);
        let Err(error) = read else { continue };
        let error = error
            .in_tensor(&object.name)
            .in_format(SPEC.id)
            .at_source(*id, at);
        manifest.metadata.push(
            &object.name,
            Value::Str(format!("not read: {}", error.message())),
        );
        cx.fault(error)?;
    }
    Ok(())
}

fn one(
    cx: &mut Context<'_>,
    file: &Arc<dyn Source>,
    object: &Object,
    bytes: Option<Bytes>,
    manifest: &mut Manifest,
) -> Result<()> {
    let Object { name, place } = object;
    let limits = cx.limits();
    let item = match bytes {
        Some(bytes) => Item::of(Arc::new(bytes), limits)?,
        None => {
            let most = FREE.saturating_add(place.len.saturating_mul(TIMES));
            Item::open(file, place, most, limits)?
        }
    };
    let (bytes, at) = item.pickle(limits)?;
    let allowed = Allowed {
        script: false,
        opaque: cx.is_opaque(),
    };
    let mut budget = items::budget(bytes.len());
    let tree = items::run((&bytes, at), allowed, &mut budget)?;
    if let Some(value) = whole(allowed, &tree.root()?, &mut budget, 0)? {
        manifest.metadata.push(name, value);
        return Ok(());
    }
    let storages = item.storages()?;
    let around = Around {
        format: SPEC.id,
        root: None,
        allowed,
        storages: &storages,
        limits,
        place: &pickle::Place::At(at),
        pickle: bytes.len(),
        file: item.source().len(),
        stem: name,
    };
    let saved = flatten(&tree, around, &mut budget)?;
    if let Some(message) = saved.left_out() {
        cx.warn("dcp.left-out", 0..0, message)?;
    }
    add(saved, object, &item, manifest)
}

/// Adds tensors and values under the name of the object that they are in.
fn add(saved: Saved, object: &Object, item: &Item, manifest: &mut Manifest) -> Result<()> {
    let Object { name, place } = object;
    let below = |path: &str| {
        if path == name {
            path.to_owned()
        } else {
            format!("{name}.{path}")
        }
    };
    for mut tensor in saved.tensors {
        tensor.name = below(&tensor.name);
        tensor.set_unnamed(false);
        for part in &mut *tensor.parts {
            let Payload::Raw { source, range } = &part.payload else {
                continue;
            };
            part.payload = if place.is_zstd {
                Payload::Inline(item.source().read(range.clone())?)
            } else {
                let _ = source;
                let moved = |at: u64| place.offset.saturating_add(at);
                Payload::Raw {
                    source: SourceId(place.file),
                    range: moved(range.start)..moved(range.end),
                }
            };
        }
        manifest.tensors.push(tensor);
    }
    for (key, value) in saved.metadata.iter() {
        manifest.metadata.push(below(key), value.clone());
    }
    Ok(())
}

/// That an object has no item.
pub(super) fn missing(name: &str) -> Error {
    let message = "storage_data has no place for this object";
    Error::malformed("dcp.item-missing", message).in_tensor(name)
}
