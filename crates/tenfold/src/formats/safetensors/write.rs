//! Laying out one file, or several and their index.

use super::raw::{Encoder, PREFIX};
use super::{dtypes, index};
use crate::error::{Error, Hint, Result};
use crate::format::in_place;
use crate::format::{FilePlan, Form, Plan, PlanOptions, Segment, ShardName, Want};
use crate::io::Patch;
use crate::model::{Manifest, TensorInfo};
use crate::prelude::*;

const EXTENSION: &str = ".safetensors";

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let room = Room::new(options)?;
    let name = &options.file_name;
    let index_stem = index::stem(name);
    let Some(shards) = options.shards.clone() else {
        if index_stem.is_some() {
            let message =
                format!("{name:?} is the name of an index; a single file ends in {EXTENSION}");
            return Err(Error::argument(message).hinting(Hint::Shard));
        }
        let all = (0..what.tensors.len()).collect();
        return Ok(Plan {
            files: vec![file(what, all, name.clone(), room)?],
        });
    };
    // As others have it: what fits into one file needs no index, unless that is what was asked for.
    let names = (options.shard_names.clone()).filter(|names| fit(names, shards.len()));
    if let ([_] | [], None, None) = (shards.as_slice(), index_stem, &names) {
        let all = shards.into_iter().flatten().collect();
        return Ok(Plan {
            files: vec![file(what, all, name.clone(), room)?],
        });
    }
    let stem = index_stem.unwrap_or_else(|| name.strip_suffix(EXTENSION).unwrap_or(name));
    let count = shards.len();
    let numbered = |number: usize| ShardName {
        stem,
        number: number as u64,
        count: count as u64,
        extension: EXTENSION,
    };
    let numbered = |number| numbered(number).to_string();
    let names = names.unwrap_or_else(|| (1..=count).map(numbered).collect());
    sharded(what, shards, names, stem, room)
}

/// The header alone, as long as it was.
pub(super) fn amend(what: &Manifest, stored: &Manifest) -> Result<Vec<Patch>> {
    let data = in_place::header_end(stored);
    let mut places = Vec::new();
    for (place, tensor) in what.tensors.iter().enumerate() {
        let range = in_place::place(stored.tensors.get(place), 0)?;
        places.push((
            range.start.saturating_sub(data),
            range.end.saturating_sub(data),
            tensor,
        ));
    }
    places.sort_by_key(|(begin, end, _)| (*begin, *end));
    let mut header = Encoder::new(&what.metadata);
    for (begin, end, tensor) in places {
        let dtype = dtypes::name(tensor.dtype).unwrap_or_default();
        header.tensor(&tensor.name, dtype, &tensor.shape, &(begin..end));
    }
    let header = header.finish_in(data.saturating_sub(PREFIX))?;
    Ok(vec![Patch::new(PREFIX, header)])
}

/// Whether files can have these names, one for each of `count` shards.
fn fit(names: &[String], count: usize) -> bool {
    let is_file = |name: &String| name.ends_with(EXTENSION);
    count > 0 && names.len() == count && names.iter().all(is_file)
}

/// What is left free in headers.
#[derive(Clone, Copy)]
struct Room {
    reserve: u64,
    align: u64,
}

impl Room {
    fn new(options: &PlanOptions) -> Result<Self> {
        let reserve = options.number("reserve")?.unwrap_or(0);
        let align = options.number("align")?.unwrap_or(8);
        if align == 0 || align % 8 != 0 {
            return Err(options.wrong("align", "a multiple of 8 is expected"));
        }
        Ok(Self { reserve, align })
    }
}

fn sharded(
    what: &Manifest,
    shards: Vec<Vec<usize>>,
    names: Vec<String>,
    stem: &str,
    room: Room,
) -> Result<Plan> {
    let mut total = 0u64;
    let mut weight_map = Vec::new();
    for (places, name) in shards.iter().zip(&names) {
        for tensor in places.iter().filter_map(|&place| what.tensors.get(place)) {
            total = total.checked_add(len(tensor)?).ok_or_else(too_large)?;
            weight_map.push((tensor.name.as_str(), name.as_str()));
        }
    }
    let text = index::encode(total, weight_map);
    let mut files = vec![FilePlan {
        name: format!("{stem}{}", index::SUFFIX),
        segments: vec![Segment::Bytes(text.into_bytes())],
    }];
    for (places, name) in shards.into_iter().zip(names) {
        files.push(file(what, places, name, room)?);
    }
    Ok(Plan { files })
}

/// One file with the tensors at `places`, in the order of the reference: wide types first, then by name.
fn file(what: &Manifest, mut places: Vec<usize>, name: String, room: Room) -> Result<FilePlan> {
    places.sort_by_cached_key(|&place| {
        let tensor = what.tensors.get(place);
        let rank = tensor.map(|tensor| dtypes::rank(tensor.dtype));
        (
            core::cmp::Reverse(rank),
            tensor.map(|tensor| tensor.name.as_str()),
        )
    });
    let mut header = Encoder::new(&what.metadata);
    let mut segments = vec![Segment::Bytes(Vec::new())];
    let mut end = 0u64;
    for place in places {
        let Some(tensor) = what.tensors.get(place) else {
            continue;
        };
        let begin = end;
        end = begin.checked_add(len(tensor)?).ok_or_else(too_large)?;
        let dtype = dtypes::name(tensor.dtype).unwrap_or_default();
        header.tensor(&tensor.name, dtype, &tensor.shape, &(begin..end));
        segments.push(Segment::Tensor {
            index: place,
            part: 0,
            want: Want::Dense(Form::canonical(tensor.dtype)),
            codec: None,
            digest: None,
        });
    }
    let header = header.finish(room.reserve, room.align)?;
    if let Some(first) = segments.first_mut() {
        *first = Segment::Bytes(header);
    }
    Ok(FilePlan { name, segments })
}

fn len(tensor: &TensorInfo) -> Result<u64> {
    dtypes::bytes(tensor.dtype, &tensor.shape).map_err(|_| too_large().in_tensor(&tensor.name))
}

fn too_large() -> Error {
    let message = "the file would be larger than 64 bits can count";
    Error::unsupported("safetensors.overflow", message)
}
