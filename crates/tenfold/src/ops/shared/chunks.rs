//! Views in chunks of a fixed length, whatever the steps in which they can be entered.

use bytes::Bytes;

use crate::error::Result;
use crate::prelude::*;
use crate::transform::{PIECE, Pieces, View, as_size};

/// More than this is not held to enter a view in the middle; it is read from the beginning instead.
const MOST: u64 = 4 * PIECE as u64;

/// How views are cut that are read side by side: into pieces that threads can share, each of whole chunks. A chunk has a
/// length for every view.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Cut {
    /// Chunks of a piece; `None` where a view has to be read in order.
    per_piece: Option<u64>,
    /// Chunks of the whole.
    chunks: u64,
}

impl Cut {
    /// Cuts views, each given with its length of a chunk. They have equally many chunks.
    pub(in crate::ops) fn new(views: &[(&View<'_>, u64)]) -> Self {
        let mut per_piece = Some(1);
        for (view, chunk) in views {
            let (chunk, step) = ((*chunk).max(1), view.step().max(1));
            let least = step / common_divisor(step, chunk);
            let random = view.is_random();
            per_piece = per_piece
                .and_then(|n: u64| (n / common_divisor(n, least)).checked_mul(least))
                .filter(|n| random && n.saturating_mul(chunk) <= MOST);
        }
        // Rows and columns are exchanged in larger stretches, but not so large that several views side by side are too much.
        if views.iter().any(|(view, _)| view.exchanges_rows()) {
            let together: u64 = views.iter().map(|(_, chunk)| *chunk).sum();
            per_piece = per_piece.map(|n| n * (PIECE as u64 / n.saturating_mul(together)).max(1));
        }
        let chunks = views
            .first()
            .map_or(0, |(view, chunk)| view.len().div_ceil(*chunk));
        Self { per_piece, chunks }
    }

    /// The same for one view that is mostly zeros, of which many chunks are done together.
    pub(in crate::ops) fn sparse(view: &View<'_>, chunk: u64) -> Self {
        Self {
            per_piece: Some(16),
            chunks: view.len().div_ceil(chunk.max(1)),
        }
    }

    /// The chunks of a piece.
    pub(in crate::ops) fn range(&self, piece: u64) -> Range<u64> {
        let first = self.first_chunk(piece);
        first..(first + self.per_piece.unwrap_or(self.chunks)).min(self.chunks)
    }

    pub(in crate::ops) fn pieces(&self) -> u64 {
        match self.per_piece {
            Some(n) => self.chunks.div_ceil(n),
            None => self.chunks.min(1),
        }
    }

    /// The number of a piece's first chunk.
    pub(in crate::ops) fn first_chunk(&self, piece: u64) -> u64 {
        piece * self.per_piece.unwrap_or(0)
    }

    /// The chunks of a piece of a view. `buffer` is used again.
    pub(in crate::ops) fn stream<'v>(
        &self,
        view: &'v View<'v>,
        chunk: u64,
        piece: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<Chunks<'v>> {
        let mut bytes = core::mem::take(buffer);
        let (shared, pieces) = match self.per_piece {
            Some(n) => {
                let at = piece * n * chunk;
                let len = (n * chunk).min(view.len().saturating_sub(at));
                (view.fetch(at, len, &mut bytes)?, None)
            }
            None => {
                bytes.clear();
                (None, Some(view.pieces()?))
            }
        };
        Ok(Chunks {
            bytes,
            shared,
            at: 0,
            pieces,
            next: Vec::new(),
            chunk: as_size(chunk)?,
        })
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// The chunks of a piece in order.
pub(in crate::ops) struct Chunks<'v> {
    bytes: Vec<u8>,
    /// In memory already: instead of `bytes`.
    shared: Option<Bytes>,
    at: usize,
    /// Of a view that is read in order, where `bytes` is what was read and not given yet.
    pieces: Option<Pieces<'v>>,
    next: Vec<u8>,
    chunk: usize,
}

impl Chunks<'_> {
    /// The next chunk, shorter at the end of the view; `None` at the end of the piece.
    pub(in crate::ops) fn next(&mut self) -> Result<Option<&[u8]>> {
        if let Some(pieces) = &mut self.pieces
            && self.bytes.len() - self.at < self.chunk
        {
            self.bytes.drain(..self.at);
            self.at = 0;
            while self.bytes.len() < self.chunk && pieces.next(&mut self.next)? {
                self.bytes.extend_from_slice(&self.next);
            }
        }
        let bytes = self.shared.as_deref().unwrap_or(&self.bytes);
        let end = (self.at + self.chunk).min(bytes.len());
        let chunk = bytes.get(self.at..end).unwrap_or_default();
        self.at = end;
        Ok((!chunk.is_empty()).then_some(chunk))
    }

    /// Gives the buffer back.
    pub(in crate::ops) fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }
}
