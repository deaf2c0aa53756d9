//! Small reads that lie together.

use super::SMALL;
use crate::error::{Error, Result};
use crate::prelude::*;
use crate::transform::{Input, PIECE, as_size};

/// Neighbouring small reads from a file, fetched together.
#[derive(Default)]
pub(super) struct ReadAhead {
    source: usize,
    at: u64,
    bytes: Vec<u8>,
}

impl ReadAhead {
    pub(super) fn read(&mut self, input: &Input<'_>, out: &mut Vec<u8>) -> Result<()> {
        let len = as_size(input.len())?;
        out.clear();
        let (id, source, range) = match input {
            Input::Source {
                id, source, range, ..
            } if !source.is_memory() && len < PIECE / 64 => (id, source, range),
            _ => {
                out.resize(len, 0);
                return input.read_into(0, out);
            }
        };
        let inside = id.index() == self.source
            && range.start >= self.at
            && range.end <= self.at + self.bytes.len() as u64;
        if !inside {
            let fetch = as_size(
                (source.len().saturating_sub(range.start))
                    .min(SMALL)
                    .max(len as u64),
            )?;
            // Forgotten first, so that a failed read leaves nothing that looks like data.
            self.source = usize::MAX;
            self.bytes.resize(fetch, 0);
            source.read_into(range.start, &mut self.bytes)?;
            self.source = id.index();
            self.at = range.start;
        }
        let from = as_size(range.start - self.at)?;
        let wanted = self.bytes.get(from..from + len);
        let wanted = wanted.ok_or_else(|| Error::argument("it was not read ahead"))?;
        out.extend_from_slice(wanted);
        Ok(())
    }
}
