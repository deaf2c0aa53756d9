//! Between a checkpoint and the description of its tensors.

use bytes::Bytes;

use super::items::{Chunk, Items};
use super::metadata::{Described, Overlap, Place, Saved, TensorMeta};
use super::objects::{self, Object};
use super::{DATA, METADATA, SPEC, globals};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Confidence, Context, Format, Head, OptionSpec, Spec};
use crate::formats::torch::MAX_RANK;
use crate::io::Source;
use crate::model::{
    Chunks, DType, Layout, Manifest, Part, Payload, Region, Role, Shape, SourceId, TensorInfo,
};
use crate::prelude::*;
use crate::wire::pickle::{self, Budget};

/// Reads PyTorch's distributed checkpoints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dcp;

/// What tells `.metadata` from other pickles, and how early it comes.
const MARKS: [&[u8]; 2] = [
    b"torch.distributed.checkpoint.metadata",
    globals::MEGATRON.as_bytes(),
];
const EARLY: usize = 128;

impl Format for Dcp {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        let first = head.first();
        let name = head.name().unwrap_or_default();
        let early = first.get(..EARLY).unwrap_or(first);
        let has = |mark: &&[u8]| early.windows(mark.len()).any(|window| window == *mark);
        let has_mark = || MARKS.iter().any(has);
        // The items of a file of data are archives of PyTorch: its name tells that they are items.
        if first.starts_with(&[0x80, 4, 0x95]) && has_mark() || name.ends_with(DATA) {
            return Ok(Confidence::Certain);
        }
        // A damaged one: describing it says so.
        Ok(if name == METADATA || is_of_rank(name) {
            Confidence::Possible
        } else {
            Confidence::No
        })
    }

    fn directory_file(&self, names: &[String]) -> Option<&'static str> {
        let has_data = || names.iter().any(|name| name.ends_with(DATA));
        let is_one = names.iter().any(|name| name == METADATA) && has_data();
        is_one.then_some(METADATA)
    }

    fn reading_options(&self) -> &'static [OptionSpec] {
        const { &[ROOT] }
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let (id, source) = metadata(cx)?;
        let limit = cx.limits().header_bytes.min(pickle::MAX_LEN);
        if source.len() > limit {
            let message = format!(".metadata has {} bytes, the limit is {limit}", source.len());
            let error = Error::limit("dcp.limit", message);
            return Err(error.raised_by("header_bytes", source.len()));
        }
        let bytes = match id {
            SourceId::MAIN => cx.source().read(0..source.len())?,
            _ => source.read(0..source.len())?,
        };
        describe(cx, id, &bytes).map_err(|error| match error.range() {
            Some((SourceId::MAIN, at)) => error.at_source(id, at),
            _ => error,
        })
    }
}

/// Which part of what was saved is listed.
const ROOT: OptionSpec = OptionSpec::new(
    "root",
    "KEY",
    "list what is under this key only, such as model or optimizer, without it in the names",
);

/// Whether a name is that of the metadata of one rank: `__3.metadata`.
fn is_of_rank(name: &str) -> bool {
    let rank = name
        .strip_prefix("__")
        .and_then(|name| name.strip_suffix(METADATA));
    rank.is_some_and(|rank| !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The file `.metadata`: the one that is opened, or the one beside it.
fn metadata(cx: &mut Context<'_>) -> Result<(SourceId, Arc<dyn Source>)> {
    let name = cx.name().unwrap_or_default();
    let of_rank = |name: &str| {
        let message = format!(
            "{name:?} is the metadata of one rank: the checkpoint was saved without collectives, and there is no {METADATA}; load it with torch and save it again"
        );
        Error::unsupported("dcp.rank-metadata", message)
    };
    if is_of_rank(name) {
        return Err(of_rank(name));
    }
    let id = if name.ends_with(DATA) {
        match cx.sibling(METADATA) {
            Ok(id) => id,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if let Some(name) = cx.siblings()?.iter().find(|name| is_of_rank(name)) {
                    return Err(of_rank(name));
                }
                let message = format!(
                    "this is a part of a distributed checkpoint, and {METADATA}, which says what is in it, is not there"
                );
                return Err(Error::new(
                    ErrorKind::NotFound,
                    "dcp.metadata-missing",
                    message,
                ));
            }
            Err(error) => return Err(error),
        }
    } else {
        SourceId::MAIN
    };
    let source = cx.open(id);
    Ok((
        id,
        source.ok_or_else(|| Error::argument("a file that is not open"))?,
    ))
}

/// What is made of the shortest pickle, and of each byte of a longer one.
const FREE: u64 = 8 << 20;
const TIMES: u64 = 13;

fn describe(cx: &mut Context<'_>, id: SourceId, bytes: &Bytes) -> Result<Manifest> {
    let len = bytes.len() as u64;
    let mut budget = Budget::new(FREE.saturating_add(len.saturating_mul(TIMES)));
    let tree = pickle::run(
        bytes,
        &pickle::Place::At(0),
        &mut globals::Listed,
        &mut budget,
    )?;
    let described = Described::parse(&tree, MAX_RANK, &mut budget)?;
    let files = Files::open(cx, &described.files)?;
    let mut manifest = Manifest::new(described.version.as_deref().unwrap_or("none"));
    manifest.regions.push(Region::new(id, 0..len, "metadata"));
    if let Some(overlap) = described.overlapping() {
        files.report(cx, &overlap)?;
    }
    let root = cx.option(ROOT.key);
    let mut objects = Vec::new();
    let mut is_known = root.is_none() || described.saved.is_empty();
    for (name, saved) in &described.saved {
        let listed = match root {
            None => Some(name.clone()),
            Some(root) => described.below(name, root),
        };
        let Some(listed) = listed else { continue };
        is_known = true;
        match saved {
            Saved::Tensor(meta) => {
                let made = meta.as_ref().map_err(Clone::clone);
                let made =
                    made.and_then(|meta| tensor(cx, &described, &files, (name, &listed), meta));
                manifest.tensors.push(made.unwrap_or_else(|error| {
                    let mut tensor =
                        TensorInfo::new(&listed, DType::UNKNOWN, Shape::new(), Layout::RowMajor);
                    tensor.defect = Some(error.in_tensor(&listed).in_format(SPEC.id));
                    tensor
                }));
            }
            Saved::Object => {
                let place = described
                    .place(name, None)
                    .ok_or_else(|| objects::missing(name))?;
                files.check(&place)?;
                objects.push(Object {
                    name: listed,
                    place,
                });
            }
        }
    }
    if !is_known {
        let message = format!(
            "root {:?} leads nowhere: no name is below it",
            root.unwrap_or_default()
        );
        return Err(Error::argument(message));
    }
    objects::read(cx, &files.sources, &files.ids, &objects, &mut manifest)?;
    for tensor in &mut manifest.tensors {
        files.renumber(tensor);
    }
    Ok(manifest)
}

/// The files with items.
struct Files {
    names: Vec<String>,
    ids: Vec<SourceId>,
    sources: Arc<[Arc<dyn Source>]>,
}

impl Files {
    fn open(cx: &mut Context<'_>, names: &[String]) -> Result<Self> {
        let beside: Vec<&str> = names.iter().map(String::as_str).collect();
        let plain: Vec<&str> = beside
            .iter()
            .copied()
            .filter(|name| !name.contains('/'))
            .collect();
        cx.expect_siblings(&plain);
        let (mut ids, mut sources) = (Vec::new(), Vec::new());
        for name in beside {
            let opened = match name.split('/').collect::<Vec<_>>().as_slice() {
                [_] => cx.sibling(name),
                path => cx.below(path),
            };
            let id = opened.map_err(|error| match error.kind() {
                ErrorKind::NotFound => {
                    let message =
                        format!("{name:?}, which has a part of this checkpoint, is not there");
                    Error::new(ErrorKind::NotFound, "dcp.data-missing", message)
                }
                _ => error,
            })?;
            let source = cx.open(id);
            sources.push(source.ok_or_else(|| Error::argument("a file that is not open"))?);
            ids.push(id);
        }
        Ok(Self {
            names: names.to_vec(),
            ids,
            sources: sources.into(),
        })
    }

    /// Refuses an item that its file does not have.
    fn check(&self, place: &Place) -> Result<()> {
        let number = place.file as usize;
        let len = self.sources.get(number).map_or(0, |source| source.len());
        if place.end() <= len {
            return Ok(());
        }
        let name = self.names.get(number).map_or("", String::as_str);
        let message = format!(
            "an item of {} bytes from byte {} on in {name:?}, which has {len}: that is cut off or damaged",
            place.len, place.offset
        );
        let error = Error::malformed("dcp.bounds", message);
        Err(match self.ids.get(number) {
            Some(id) => error.at_source(*id, place.offset.min(len)..len),
            None => error,
        })
    }

    /// Says that items have bytes in common, which nothing that torch writes has.
    fn report(&self, cx: &mut Context<'_>, overlap: &Overlap) -> Result<()> {
        let [first, second] = &overlap.names;
        let number = overlap.file as usize;
        let file = self.names.get(number).map_or("", String::as_str);
        let more = match overlap.count {
            0 | 1 => String::new(),
            count => format!(", and {} more items overlap", count - 1),
        };
        let message =
            format!("items of {first:?} and {second:?} have the same bytes of {file:?}{more}");
        let id = self.ids.get(number).copied().unwrap_or(SourceId::MAIN);
        cx.warn_in(id, "dcp.overlap", overlap.bytes.clone(), message)
    }

    /// Files by their numbers among all that are open, of tensors that were found in objects.
    fn renumber(&self, tensor: &mut TensorInfo) {
        for part in &mut *tensor.parts {
            if let Payload::Raw { source, .. } = &mut part.payload
                && let Some(id) = self.ids.get(source.index())
            {
                *source = *id;
            }
        }
    }
}

/// A tensor that is put together from its chunks.
fn tensor(
    cx: &Context<'_>,
    described: &Described<'_>,
    files: &Files,
    (name, listed): (&str, &str),
    meta: &TensorMeta,
) -> Result<TensorInfo> {
    let TensorMeta {
        dtype,
        shape,
        chunks,
    } = meta;
    let width = dtype.width().ok_or_else(|| {
        let message = format!("elements of {dtype} in chunks");
        Error::unsupported("dcp.dtype", message)
    })?;
    let (mut tiles, mut items, mut used) = (Vec::new(), Vec::new(), Vec::new());
    let (mut room, mut at_once) = (0u64, false);
    for tile in chunks {
        let inside = tile.check_inside(shape);
        inside.map_err(|message| Error::malformed("dcp.chunks", message))?;
        // Of a rank that got nothing; it must lie inside all the same.
        if tile.sides.contains(&0) || shape.contains(&0) {
            let place = Place {
                file: 0,
                offset: 0,
                len: 0,
                is_zstd: false,
            };
            items.push(Chunk::new(place, 0, tile.sides.clone()));
            tiles.push(tile.clone());
            continue;
        }
        let place = described.place(name, Some(&tile.start)).ok_or_else(|| {
            let message = format!("storage_data has no place for its chunk {tile}");
            Error::malformed("dcp.item-missing", message)
        })?;
        files.check(&place)?;
        let id = files
            .ids
            .get(place.file as usize)
            .copied()
            .unwrap_or(SourceId::MAIN);
        let known = used.iter().position(|file| *file == id);
        let file = known.unwrap_or_else(|| {
            used.push(id);
            used.len() - 1
        });
        room = room.saturating_add(place.len);
        at_once |= place.is_zstd;
        let file = u32::try_from(file).unwrap_or(u32::MAX);
        push_tight(&mut items, Chunk::new(place, file, tile.sides.clone()));
        push_tight(&mut tiles, tile.clone());
    }
    let find = Items {
        dtype: *dtype,
        chunks: items,
        files: files.sources.clone(),
        limits: *cx.limits(),
    };
    let made = Chunks::tiled(shape, width, tiles, Arc::new(find));
    let mut made = made.map_err(|message| Error::malformed("dcp.chunks", message))?;
    (made.files, made.room, made.at_once) = (used, room, at_once);
    let mut tensor = TensorInfo::new(listed, *dtype, shape.clone(), Layout::Chunked);
    let payload = Payload::Chunks(Arc::new(made));
    tensor.parts = Part::new(Role::Values, *dtype, payload).into();
    Ok(tensor)
}
