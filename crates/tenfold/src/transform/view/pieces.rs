//! A view piece by piece.

use super::{Body, View};
use crate::error::Result;
use crate::prelude::*;
use crate::transform::as_size;
use crate::transform::codec::Sequential;
use crate::transform::select::Reader;

/// The pieces of a view in order.
pub(crate) struct Pieces<'v> {
    view: &'v View<'v>,
    at: u64,
    stream: Option<Stream<'v>>,
    /// Bytes before a cast.
    stored: Vec<u8>,
}

/// What can only be read from the beginning.
enum Stream<'v> {
    Decoder(Sequential<'v>),
    Selected(Box<Reader<'v, 'v>>),
}

impl Stream<'_> {
    fn read(&mut self, at: u64, len: u64, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Stream::Decoder(decoder) => decoder.read(as_size(len)?, out),
            Stream::Selected(reader) => {
                out.clear();
                out.resize(as_size(len)?, 0);
                reader.read_into(at, out)
            }
        }
    }
}

impl Pieces<'_> {
    /// Puts the next piece into `out`; false when there are no more, and the stream was found to be whole.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let left = self.view.len - self.at;
        let len = left.min(self.view.piece());
        match &mut self.stream {
            Some(stream) if self.view.map.is_in_place() => {
                stream.read(self.at, len, out)?;
                self.view.map.apply_in_place(out);
            }
            Some(stream) => {
                let View { map, tally, .. } = self.view;
                let piece = self.view.piece_at(self.at, len);
                stream.read(piece.stored.start, piece.stored_len(), &mut self.stored)?;
                map.prepare(&mut self.stored);
                out.resize(as_size(len)?, 0);
                map.cast_into(piece.numbers, &self.stored, out, *tally)?;
            }
            None if len > 0 => self.view.read(self.at, len, out)?,
            None => {}
        }
        self.at += len;
        Ok(len > 0)
    }
}

impl View<'_> {
    /// The pieces in order.
    pub(crate) fn pieces(&self) -> Result<Pieces<'_>> {
        let stream = match &self.body {
            Body::Sequential(input, codec, len, parked) => {
                let decoder = Sequential::new(input.clone(), *codec, *len, *parked)?;
                Some(Stream::Decoder(decoder))
            }
            Body::Selected(selected) if !selected.is_random() => {
                Some(Stream::Selected(Box::new(selected.reader())))
            }
            _ => None,
        };
        Ok(Pieces {
            view: self,
            at: 0,
            stream,
            stored: Vec::new(),
        })
    }

    /// What wanted bytes are made from.
    pub(super) fn piece_at(&self, at: u64, len: u64) -> PieceOf {
        let is_last = at + len == self.len;
        let before = self.map.numbers_before(at);
        let (numbers, end) = if is_last {
            (self.numbers, self.stored_len)
        } else {
            (
                self.map.numbers_before(at + len),
                self.map.unscale(at + len),
            )
        };
        PieceOf {
            numbers: numbers.saturating_sub(before),
            stored: self.map.unscale(at)..end,
        }
    }
}

/// The stored numbers that some wanted bytes are made from.
pub(super) struct PieceOf {
    pub(super) numbers: u64,
    pub(super) stored: Range<u64>,
}

impl PieceOf {
    pub(super) fn stored_len(&self) -> u64 {
        self.stored.end.saturating_sub(self.stored.start)
    }
}
