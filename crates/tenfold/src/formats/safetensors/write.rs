//! Laying out one file, or several and their index.

use super::raw::{Encoder, PREFIX};
use super::{FAMILY, dtypes};
use crate::error::{Error, Result};
use crate::format::in_place;
use crate::format::{FilePlan, Form, Plan, PlanOptions, Segment, Want};
use crate::formats::sharded;
use crate::io::Patch;
use crate::model::{Manifest, TensorInfo};
use crate::prelude::*;

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let room = Room::new(options)?;
    sharded::plan(&FAMILY, what, options, &|places, name, _| {
        file(what, places, name, room)
    })
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
            return Err(options.wrong("align", "expected a multiple of 8"));
        }
        Ok(Self { reserve, align })
    }
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
    Ok(FilePlan::new(name, segments))
}

fn len(tensor: &TensorInfo) -> Result<u64> {
    dtypes::bytes(tensor.dtype, &tensor.shape).map_err(|_| too_large().in_tensor(&tensor.name))
}

fn too_large() -> Error {
    let message = "the file would be larger than 64 bits can count";
    Error::unsupported("safetensors.overflow", message)
}
