//! Variables that grow together: their data lies in records, a block of each variable in every one.

use super::RECORD_DIMENSION;
use super::write::{Dimensions, Entry};
use crate::error::{Error, Result};
use crate::model::Metadata;
use crate::prelude::*;

/// Blocks that are written one by one, at most: with more of them, each variable is written in one piece.
const MOST_BLOCKS: u64 = 1 << 16;

/// The records of a file that is written.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// The place of the dimension that counts them, where there is one.
    pub(super) dimension: Option<usize>,
    pub(super) count: u64,
}

impl Recorded {
    /// What the metadata says, where variables can lie so.
    pub(super) fn of(metadata: &Metadata, dimensions: &Dimensions, entries: &[Entry<'_>]) -> Self {
        let said = metadata
            .get(RECORD_DIMENSION)
            .and_then(|name| name.as_str());
        let mut named = dimensions.list.iter().enumerate();
        let Some((place, (_, count))) = named.find(|(_, (name, _))| Some(name.as_str()) == said)
        else {
            return Self::default();
        };
        let is_inside = |entry: &&Entry<'_>| entry.dimids.iter().skip(1).any(|id| *id == place);
        let recorded = |entry: &&Entry<'_>| entry.dimids.first() == Some(&place);
        let variables = entries.iter().filter(recorded).count() as u64;
        let blocks = variables.saturating_mul(*count);
        let fits = variables == 1 || (variables > 1 && blocks <= MOST_BLOCKS);
        if !fits || *count == 0 || entries.iter().any(|entry| is_inside(&entry)) {
            return Self::default();
        }
        Self {
            dimension: Some(place),
            count: *count,
        }
    }

    pub(super) fn has(&self, entry: &Entry<'_>) -> bool {
        self.dimension.is_some() && entry.dimids.first().copied() == self.dimension
    }

    /// Bytes of a variable in the list of the header: of one record, where it has some.
    pub(super) fn block(&self, entry: &Entry<'_>) -> u64 {
        if self.has(entry) {
            entry.len / self.count.max(1)
        } else {
            entry.len
        }
    }

    /// Where each variable begins, if the header ends at `at`.
    pub(super) fn begins(
        &self,
        entries: &[Entry<'_>],
        align: u64,
        mut at: u64,
    ) -> Result<Vec<u64>> {
        let mut begins = vec![0; entries.len()];
        for wanted in [false, true] {
            let places = entries.iter().zip(&mut begins);
            for (entry, begin) in places.filter(|(entry, _)| self.has(entry) == wanted) {
                let too_large = || {
                    let message = "the file would be too large";
                    Error::unsupported("netcdf.write", message).in_tensor(entry.name)
                };
                *begin = at.checked_next_multiple_of(align).ok_or_else(too_large)?;
                let end = begin.checked_add(self.block(entry));
                at = end.ok_or_else(too_large)?;
                // All records, the last of which begins there.
                begin.checked_add(entry.len).ok_or_else(too_large)?;
            }
        }
        Ok(begins)
    }
}
