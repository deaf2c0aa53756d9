//! What formats share that can be edited in place.

use crate::error::{Error, Hint, Result};
use crate::model::{Manifest, SourceId, TensorInfo};
use crate::prelude::*;

/// Where the header of a file ends that begins with one.
pub(crate) fn header_end(stored: &Manifest) -> u64 {
    let at_begin = stored.regions.iter().find(|region| region.range.start == 0);
    at_begin.map_or(0, |region| region.range.end)
}

/// Where the bytes of a tensor's part are.
pub(crate) fn place(tensor: Option<&TensorInfo>, part: usize) -> Result<Range<u64>> {
    let part = tensor.and_then(|tensor| tensor.parts.get(part));
    match part.and_then(|part| part.payload.stored()) {
        Some((SourceId::MAIN, range)) => Ok(range),
        _ => Err(Error::unsupported(
            "in-place",
            "a tensor whose data is not in this file",
        )),
    }
}

/// That a new header is too long for the place of the old one.
pub(crate) fn no_room(needed: u64, room: u64) -> Error {
    let message = format!(
        "the new header needs {needed} bytes, and there is room for {room}: the data after it would have to move"
    );
    let hint = Hint::FormatOption {
        key: "reserve",
        value: "65536",
        does: "leaves room when the file is written again",
    };
    Error::unsupported("no-room", message).hinting(hint)
}
