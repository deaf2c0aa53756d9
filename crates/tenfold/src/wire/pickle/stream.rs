//! Programs that lie one after the other in a file, none of which says how long it is.

use bytes::Bytes;

use super::MAX_LEN;
use super::op::{self, Decoded};
use crate::error::{Error, Result};
use crate::io::Source;
use crate::prelude::*;

/// Where the program ends that some bytes begin with: after its STOP.
pub(crate) fn find_end(bytes: &[u8]) -> Result<Option<usize>> {
    let mut at = 0;
    loop {
        match op::decode(bytes, at)? {
            Decoded::Short(_) => return Ok(None),
            Decoded::Op(op) if op.code == b'.' => return Ok(Some(op.end)),
            Decoded::Op(op) => at = op.end,
        }
    }
}

/// Reads the program that begins at a place, and nothing that lies more than a window after it.
pub(crate) fn read_next(source: &dyn Source, start: u64, limit: u64) -> Result<Bytes> {
    let left = source.len().saturating_sub(start);
    let limit = limit.min(MAX_LEN);
    let mut bytes: Vec<u8> = Vec::new();
    let mut at = 0;
    loop {
        let place = |range: Range<usize>| start + range.start as u64..start + range.end as u64;
        let needs = match op::decode(&bytes, at).map_err(|error| error.at(place(at..at + 1)))? {
            Decoded::Op(op) if op.code == b'.' => {
                bytes.truncate(op.end);
                return Ok(bytes.into());
            }
            Decoded::Op(op) => {
                at = op.end;
                continue;
            }
            Decoded::Short(needs) => at.saturating_add(needs) as u64,
        };
        let known = bytes.len() as u64;
        if needs > left {
            let message = match left.saturating_sub(at as u64) {
                0 => "the file ends within a pickle, which has no STOP".to_owned(),
                n => format!(
                    "an opcode takes {} bytes, {n} are left of the file",
                    needs - at as u64
                ),
            };
            let error = Error::malformed("truncated", message);
            return Err(error.at(start + at as u64..source.len()));
        }
        if needs > limit {
            let message = format!("a pickle of more than {limit} bytes");
            return Err(Error::limit("limit", message).at(place(0..at)));
        }
        let wanted = needs.max(known.saturating_add(source.window())).min(left);
        let more = source.read(start + known..start + wanted)?;
        let missing = (bytes.len() + more.len()).saturating_sub(bytes.capacity());
        if missing > 0 {
            bytes.reserve_exact(more.len().max(bytes.len() / 4));
        }
        bytes.extend_from_slice(&more);
    }
}
