//! Streams a tensor from the form it is stored in to the form that is wanted, in bounded memory.
//!
//! Some bytes have a word, here and in the rooms behind this one, and each word has one meaning:
//!
//! - a **part** is stored: the values of a tensor, or its indices, where a file has them;
//! - a **segment** is planned: what comes next in a file that will be written;
//! - a **piece** is what one thread works on at a time, of a part or of a segment;
//! - a **step** is how finely something can be entered or is done: a piece is a multiple of it;
//! - a **frame** is a codec's: what is decompressed by itself.
//!
//! Figures are made in **chunks** of **blocks**, which do not depend on any of them: that decides about the last digits.
//!
//! A [`View`] is a part of a tensor in a wanted form: it knows its length, and gives its bytes piece by piece. Most views
//! can be entered anywhere, so that several threads can work on one tensor; only a compressed stream without a table of
//! its frames has to be read from the beginning.

// The inner loops work on buffers that were sized here; nothing in this folder parses a file.
#![allow(clippy::indexing_slicing)]

mod cast;
mod codec;
mod elements;
mod endian;
mod filters;
mod input;
// A format that stores numbers apart asks for it.
mod lane;
mod layouts;
mod numbers;
mod order;
mod planes;
pub(crate) mod quant;
mod select;
mod stretch;
mod strides;
mod symmetric;
mod tiled;
mod view;

pub(crate) use crate::io::as_size;
pub(crate) use cast::{Tally, is_exact, number_bytes, precision};
#[cfg(feature = "deflate")]
pub(crate) use codec::Inflate;
pub(crate) use codec::gzip;
pub(crate) use codec::{
    Check, DEFLATE_END, Parked, encode, encode_deflate, measure, seek_table, unpack_snappy,
    unpack_zstd,
};
pub(crate) use elements::{check_bools, check_content};
pub(crate) use filters::apply as apply_filters;
pub(crate) use filters::undo_at_most as undo_filters;
pub(crate) use input::{Data, Input, read_together};
#[cfg(feature = "digest")]
pub(crate) use layouts::expands;
pub(crate) use layouts::{Scatter, check as check_layout, in_place};
pub(crate) use numbers::{BLOCK, Block, Buffers, Numbers, power, square_root};
pub(crate) use strides::dense_order;
pub(crate) use symmetric::{NO_NEGATIVE, Triangle, check_symmetry};
pub(crate) use view::{Pieces, View};

use crate::error::{Error, Result};
use crate::model::{DType, Endian};
use crate::prelude::*;

use elements::ElementMap;
use view::Body;

/// Bytes that are worked on at once: large enough for the kernel and the caches, small enough for many threads.
pub(crate) const PIECE: usize = 4 << 20;
/// The same where answers come late: many threads wait for one each.
pub(crate) const LATE_PIECE: u64 = 1 << 20;

/// Refuses a cast that is not known.
pub(crate) fn check_cast(from: DType, to: DType) -> Result<()> {
    ElementMap::new(from, Endian::Little, to, Endian::Little).map(drop)
}

/// Turns elements of one type and byte order into those of another.
pub(crate) fn cast_elements(
    from: (DType, Endian),
    to: (DType, Endian),
    elements: &mut Vec<u8>,
    tally: Option<&Tally>,
) -> Result<()> {
    ElementMap::new(from.0, from.1, to.0, to.1)?.apply(elements, tally)
}

/// Bytes of elements after a cast.
pub(crate) fn cast_len(from: DType, to: DType, len: u64) -> Result<u64> {
    ElementMap::new(from, Endian::Little, to, Endian::Little)?.output_len(len)
}

/// A size that no file can have.
fn overflow(what: &str) -> Error {
    Error::malformed("overflow", format!("{what} does not fit 64 bits"))
}

/// More elements than the few bytes that stand for them are let to make.
fn too_expanded(len: u64, limit: u64) -> Error {
    let message =
        format!("the dense tensor would take {len} bytes, the limit (dense_bytes) is {limit}");
    Error::limit("dense", message).raised_by("dense_bytes", len)
}
