//! Views that are written tile by tile.

use super::{Body, View};
use crate::error::{Error, Result};
use crate::prelude::*;
use crate::transform::as_size;

impl View<'_> {
    /// How many tiles there are, where a file is better written tile by tile than piece by piece.
    pub(crate) fn tiles(&self) -> Option<u64> {
        match &self.body {
            Body::Reorder(reorder) => reorder.tiles().map(|tiles| tiles.count),
            _ => None,
        }
    }

    /// From the first byte of a tile to its last; what lies in between is not all its own.
    pub(crate) fn tile_span(&self, tile: u64) -> Option<Range<u64>> {
        let Body::Reorder(reorder) = &self.body else {
            return None;
        };
        let span = reorder.span(&reorder.tiles()?, tile)?;
        Some(self.map.scale(span.start)..self.map.scale(span.end))
    }

    /// Gives the runs of a tile with their places.
    pub(crate) fn read_tile(
        &self,
        tile: u64,
        piece: &mut Vec<u8>,
        put: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let Body::Reorder(reorder) = &self.body else {
            return Err(Error::argument("a view without tiles"));
        };
        let tiles = reorder
            .tiles()
            .ok_or_else(|| Error::argument("a view without tiles"))?;
        let rectangle = reorder.read_tile(&tiles, tile, piece)?;
        self.map.apply(piece, self.tally)?;
        let mut rest = piece.as_slice();
        for run in reorder.runs(&rectangle) {
            let (at, end) = (self.map.scale(run.start), self.map.scale(run.end));
            let (now, later) = rest.split_at(as_size(end - at)?);
            put(at, now)?;
            rest = later;
        }
        Ok(())
    }
}
