//! A part of a tensor in a wanted form: it knows its length, and gives its bytes from any place.

mod collect;
mod make;
mod pieces;
#[cfg(feature = "std")]
mod tiles;

use bytes::Bytes;

pub(crate) use pieces::Pieces;

use super::cast::Tally;
use super::codec::{Frames, Parked};
use super::elements::ElementMap;
use super::input::Input;
use super::lane::Lane;
use super::layouts::{Decoded, Scatter};
use super::order::Reorder;
use super::select::Selected;
use super::stretch::Stretch;
use super::symmetric::{Pack, Unpack};
use super::tiled::Tiled;
use super::{LATE_PIECE, PIECE, as_size};
use crate::error::{Error, Result};
use crate::model::Codec;
use crate::prelude::*;

/// Bytes that are cast at once.
const CACHED: u64 = 256 << 10;

/// A part of a tensor in a wanted form.
pub(crate) struct View<'a> {
    pub(super) body: Body<'a>,
    pub(super) map: ElementMap,
    len: u64,
    /// Bytes and numbers before the map.
    stored_len: u64,
    numbers: u64,
    /// Where casts are counted.
    tally: Option<&'a Tally>,
    /// How many threads make all of it; 0 is one for every core.
    threads: usize,
}

/// Where the elements come from, before they are mapped.
pub(super) enum Body<'a> {
    Decoded(Decoded<'a>),
    Direct(Input<'a>),
    Frames(Frames<'a>),
    /// As they are, from the first byte on.
    InOrder(Input<'a>),
    Lane(Box<Lane<'a>>),
    Sequential(Input<'a>, Codec, u64, Option<&'a Parked>),
    Pack(Pack<'a>),
    Reorder(Reorder<'a>),
    Scatter(Scatter),
    Selected(Box<Selected<'a>>),
    Stretch(Box<Stretch<'a>>),
    Tiled(Box<Tiled<'a>>),
    Unpack(Unpack<'a>),
}

impl<'a> View<'a> {
    /// Bytes in the wanted form.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The stored bytes, where they already are in the wanted form.
    pub(crate) fn direct(&self) -> Option<&Input<'a>> {
        match &self.body {
            Body::Direct(input) if self.map.is_identity() => Some(input),
            _ => None,
        }
    }

    /// Whether it can be entered anywhere.
    pub(crate) fn is_random(&self) -> bool {
        match &self.body {
            Body::InOrder(_) | Body::Sequential(..) => false,
            Body::Selected(selected) => selected.is_random(),
            _ => true,
        }
    }

    /// Whether rows and columns are exchanged, which is done faster in larger stretches.
    pub(crate) fn exchanges_rows(&self) -> bool {
        matches!(self.body, Body::Reorder(_))
    }

    /// Whether it is compressed, with a table of frames that can be entered.
    pub(crate) fn has_frames(&self) -> bool {
        matches!(self.body, Body::Frames(_))
    }

    /// Of a sparse tensor in the type that it is stored in: the first byte from that of the element at `at` on that is
    /// stored, or the length if there is none. Everything before is 0.
    pub(crate) fn stored_from(&self, at: u64) -> Option<u64> {
        match &self.body {
            Body::Scatter(scatter) if self.map.is_identity() => {
                Some(scatter.stored_from(at).unwrap_or(self.len))
            }
            _ => None,
        }
    }

    /// The steps in which a random view can be entered.
    pub(crate) fn step(&self) -> u64 {
        let stored = match &self.body {
            Body::Frames(frames) => frames.frame_len(),
            Body::Decoded(decoded) => decoded.step_len(),
            Body::Lane(lane) => lane.step_len(),
            Body::Stretch(stretch) => stretch.step_len(),
            Body::Tiled(tiled) => tiled.step_len(),
            Body::Selected(selected) => self.map.whole(selected.step_len()),
            // A multiple of every element's width, except those of blocks.
            Body::Direct(_)
            | Body::InOrder(_)
            | Body::Pack(_)
            | Body::Reorder(_)
            | Body::Sequential(..)
            | Body::Scatter(_)
            | Body::Unpack(_) => self.map.whole(128),
        };
        self.map.scale(stored.max(1))
    }

    /// How many bytes a piece should have: a multiple of the step, or rows that go together.
    pub(crate) fn piece(&self) -> u64 {
        let is_late = matches!(&self.body, Body::Direct(input) if input.is_late());
        let usual = if is_late { LATE_PIECE } else { PIECE as u64 };
        let wanted = match &self.body {
            Body::Reorder(reorder) => return self.map.scale(reorder.piece_len(usual)),
            Body::Unpack(unpack) => unpack.piece_len(usual),
            _ => usual,
        };
        let step = self.step();
        step * (wanted / step).max(1)
    }

    /// The bytes `at..at + len` of a random view, where `at` is a multiple of [`step`](Self::step) or of
    /// [`piece`](Self::piece), and so is `len` unless it is all that is left. `out` is cleared first.
    pub(crate) fn read(&self, at: u64, len: u64, out: &mut Vec<u8>) -> Result<()> {
        if self.needs_zeros() {
            out.clear();
        }
        out.resize(as_size(len)?, 0);
        self.read_into(at, out)
    }

    /// The bytes from `at` on, as [`read`](Self::read) gives them, in their place. They come filled with zeros where
    /// that is needed.
    fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        if self.map.is_in_place() {
            self.read_unmapped(at, out)?;
            self.map.apply_in_place(out);
            return Ok(());
        }
        let piece = self.piece_at(at, out.len() as u64);
        if let Body::Direct(input) = &self.body
            && input.is_memory()
            && self.map.casts_shared()
        {
            let stored = input.read(piece.stored.start, piece.stored_len())?;
            return self.map.cast_into(piece.numbers, &stored, out, self.tally);
        }
        // Little enough at a time that it is still in the cache when it is cast.
        let step = match self.fine_step() {
            Some(step) => step * (CACHED / step).max(1),
            // The last piece may end within a unit.
            None => self.map.whole(piece.stored_len().max(1)),
        };
        let mut scratch = Vec::new();
        for (place, out) in (at..)
            .step_by(as_size(self.map.scale(step).max(1))?)
            .zip(out.chunks_mut(as_size(self.map.scale(step).max(1))?))
        {
            let piece = self.piece_at(place, out.len() as u64);
            if self.needs_zeros() {
                scratch.clear();
            }
            scratch.resize(as_size(piece.stored_len())?, 0);
            self.read_unmapped(piece.stored.start, &mut scratch)?;
            self.map.prepare(&mut scratch);
            self.map
                .cast_into(piece.numbers, &scratch, out, self.tally)?;
        }
        Ok(())
    }

    /// Stored bytes in steps of which the elements can be read one after the other at no greater cost.
    fn fine_step(&self) -> Option<u64> {
        let step = match &self.body {
            // Asked for at once.
            Body::Direct(input) if input.is_late() => return None,
            Body::Direct(_) | Body::InOrder(_) => 1,
            Body::Decoded(decoded) => decoded.stretch_len(),
            _ => return None,
        };
        // A multiple of both.
        Some(step * self.map.whole(1))
    }

    /// Whether only what is not zero is put into its place.
    fn needs_zeros(&self) -> bool {
        !matches!(
            self.body,
            Body::Direct(_) | Body::InOrder(_) | Body::Decoded(_)
        )
    }

    /// The same into a buffer that is kept: where the bytes are stored like that, they are neither cleared before nor
    /// copied after; from memory they are shared.
    pub(crate) fn fetch(&self, at: u64, len: u64, out: &mut Vec<u8>) -> Result<Option<Bytes>> {
        match self.direct() {
            Some(input) if input.is_memory() => return input.read(at, len).map(Some),
            Some(input) => {
                out.resize(as_size(len)?, 0);
                input.read_into(at, out)?;
            }
            None => self.read(at, len, out)?,
        }
        Ok(None)
    }

    /// Stored elements in the wanted order; `out` comes filled with zeros.
    fn read_unmapped(&self, at: u64, out: &mut [u8]) -> Result<()> {
        match &self.body {
            Body::Direct(input) | Body::InOrder(input) => input.read_into(at, out),
            Body::Frames(frames) => frames.read_into(at, out),
            Body::Reorder(reorder) => reorder.read_into(at, out),
            Body::Scatter(scatter) => {
                scatter.read_into(at, out);
                Ok(())
            }
            Body::Decoded(decoded) => decoded.read_into(at, out, self.tally),
            Body::Lane(lane) => lane.read_into(at, out),
            Body::Stretch(stretch) => stretch.read_into(at, out),
            Body::Pack(pack) => pack.read_into(at, out),
            Body::Selected(selected) => selected.reader().read_into(at, out),
            Body::Tiled(tiled) => tiled.read_into(at, out),
            Body::Unpack(unpack) => unpack.read_into(at, out),
            Body::Sequential(..) => {
                Err(Error::argument("a compressed stream has no random access"))
            }
        }
    }
}
