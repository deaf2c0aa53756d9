//! Streams a tensor from the form it is stored in to the form that is wanted, in bounded memory.
//!
//! A [`View`] is a part of a tensor in a wanted form: it knows its length, and gives its bytes piece by piece. Most views
//! can be entered anywhere, so that several threads can work on one tensor; only a compressed stream without a table of
//! its frames has to be read from the beginning.

// The inner loops work on buffers that were sized here; nothing in this folder parses a file.
#![allow(clippy::indexing_slicing)]

mod cast;
mod codec;
mod decoded;
mod elements;
mod endian;
mod input;
mod numbers;
mod operation;
mod orbit;
mod order;
mod packed;
mod places;
#[cfg(any(feature = "gguf", feature = "ztensor"))]
pub(crate) mod quant;
mod random;
mod slice;
mod sparse;
mod symmetry;

pub(crate) use crate::io::as_size;
pub use cast::CastCounts;
pub(crate) use cast::{Tally, is_exact};
#[cfg(feature = "npz")]
pub(crate) use codec::Inflate;
#[cfg(feature = "ztensor")]
pub(crate) use codec::measure;
pub(crate) use codec::{DEFLATE_END, encode, encode_deflate, seek_table};
pub(crate) use elements::{check_bools, check_content};
pub(crate) use input::{Data, Input};
pub(crate) use numbers::{BLOCK, Block, Buffers, Numbers, power, precision};
pub(crate) use packed::{Triangle, diagonal_violation};
pub(crate) use random::Random;
pub(crate) use slice::Cut;
pub(crate) use sparse::Scatter;
pub(crate) use symmetry::check as check_symmetry;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::format::{Form, Want};
use crate::model::{Codec, DType, Endian, Layout, Part, Payload, Role, Symmetry, TensorInfo};
use crate::prelude::*;

use codec::{Frames, Sequential};
use decoded::Decoded;
use elements::ElementMap;
use order::Reorder;
use packed::{Pack, Unpack};

/// Bytes that are worked on at once: large enough for the kernel and the caches, small enough for many threads.
pub(crate) const PIECE: usize = 4 << 20;

/// Bytes that are cast at once.
const CACHED: u64 = 256 << 10;

/// A part of a tensor in a wanted form.
pub(crate) struct View<'a> {
    body: Body<'a>,
    map: ElementMap,
    len: u64,
    /// Bytes and numbers before the map.
    stored_len: u64,
    numbers: u64,
    /// Where casts are counted.
    tally: Option<&'a Tally>,
}

enum Body<'a> {
    Decoded(Decoded<'a>),
    Direct(Input<'a>),
    Frames(Frames<'a>),
    Sequential(Input<'a>, Codec, u64),
    Pack(Pack<'a>),
    Reorder(Reorder<'a>),
    Scatter(Scatter),
    Unpack(Unpack<'a>),
}

impl<'a> View<'a> {
    /// What [`Want`] asks for.
    pub(crate) fn new(
        data: Data<'a>,
        tensor: &TensorInfo,
        part: usize,
        want: &Want,
    ) -> Result<Self> {
        let view = || match want {
            Want::Dense(form) => Self::dense(data, tensor, form),
            Want::Packed { symmetry, endian } => Self::packed(data, tensor, symmetry, *endian),
            Want::Part { dtype, endian } => {
                Self::part(data, nth_part(tensor, part)?, *dtype, *endian)
            }
            Want::Stored => Self::stored(data, nth_part(tensor, part)?),
        };
        tensor.readable()?;
        view().map_err(|error| error.in_tensor(&tensor.name))
    }

    /// The whole tensor, dense.
    pub(crate) fn dense(data: Data<'a>, tensor: &TensorInfo, form: &Form) -> Result<Self> {
        let elements = tensor
            .elements()
            .ok_or_else(|| overflow("the number of elements"))?;
        let len = form.dtype.bytes_for(elements).ok_or_else(|| {
            Error::unsupported(
                "dense",
                format!("{} has no dense form", tensor.layout.name()),
            )
        })?;
        // As many bytes as the elements of a type take.
        let body = |body: Body<'a>, map: ElementMap, stored: DType| {
            let stored_len = stored.bytes_for(elements);
            let stored_len = stored_len.ok_or_else(|| overflow("the size of a tensor"))?;
            Ok(Self {
                body,
                map,
                len,
                stored_len,
                numbers: numbers(stored, elements)?,
                tally: data.tally,
            })
        };
        match &tensor.layout {
            Layout::RowMajor | Layout::ColumnMajor => {
                let values = tensor
                    .part(&Role::Values)
                    .ok_or_else(|| Error::malformed("layout", "a dense tensor without values"))?;
                if values.dtype.bytes_for(elements) != Some(values.payload.len()) {
                    let message = format!(
                        "{} bytes for {elements} elements of {}",
                        values.payload.len(),
                        values.dtype
                    );
                    return Err(Error::malformed("size", message));
                }
                let map = ElementMap::new(values.dtype, values.endian, form.dtype, form.endian)?;
                if tensor.shape.len() < 2 || tensor.layout == form.layout || elements == 0 {
                    let numbers = numbers(values.dtype, elements)?;
                    return Ok(Self {
                        len,
                        numbers,
                        ..Self::mapped(data, values, map)?
                    });
                }
                let reorder = Reorder::new(data, values, &tensor.shape, &tensor.layout)?;
                let reordered = body(Body::Reorder(reorder), map, values.dtype)?;
                match reordered.map.has_whole_bytes() {
                    true => Ok(reordered),
                    false => reordered.ordered_first(data.limits.tensor_memory),
                }
            }
            Layout::Coo { .. } | Layout::Csr { .. } | Layout::Pairs { .. } => {
                if len > data.limits.dense_bytes {
                    let limit = data.limits.dense_bytes;
                    let message = format!(
                        "the dense tensor would take {len} bytes, the limit (dense_bytes) is {limit}"
                    );
                    return Err(Error::limit("dense", message).raised_by("dense_bytes"));
                }
                let mut scatter = Scatter::load(data, tensor, form)?;
                scatter.complete()?;
                let map = ElementMap::new(form.dtype, form.endian, form.dtype, form.endian)?;
                body(Body::Scatter(scatter), map, form.dtype)
            }
            Layout::Packed(symmetry) => {
                let column_major = form.layout == Layout::ColumnMajor;
                let unpack = Unpack::new(data, tensor, symmetry, column_major)?;
                let (dtype, endian) = unpack.stored_as();
                let map = ElementMap::new(dtype, endian, form.dtype, form.endian)?;
                body(Body::Unpack(unpack), map, dtype)
            }
            Layout::Decoded => {
                let decoded = Decoded::new(data, tensor)?;
                let map =
                    ElementMap::new(decoded.dtype(), Endian::Little, form.dtype, form.endian)?;
                if form.layout != Layout::RowMajor && tensor.shape.len() > 1 {
                    return Err(Error::unsupported(
                        "order",
                        "quantized tensors are decoded row-major only",
                    ));
                }
                let dtype = decoded.dtype();
                body(Body::Decoded(decoded), map, dtype)
            }
            Layout::Opaque { .. } => Err(Error::unsupported(
                "dense",
                format!(
                    "layout {:?} has no dense form here; its parts can be read one by one",
                    tensor.layout.name()
                ),
            )),
        }
    }

    /// The whole tensor, packed by a symmetry that it has.
    fn packed(
        data: Data<'a>,
        tensor: &TensorInfo,
        symmetry: &Symmetry,
        endian: Endian,
    ) -> Result<Self> {
        if let (Layout::Packed(by), [part]) = (&tensor.layout, tensor.parts.as_slice())
            && **by == *symmetry
        {
            return Self::part(data, part, tensor.dtype, endian);
        }
        let form = Form {
            dtype: tensor.dtype,
            layout: Layout::ColumnMajor,
            endian,
        };
        let mut dense = Self::dense(data, tensor, &form)?;
        if !dense.is_random() {
            // It cannot be entered in the middle: held whole.
            let whole = dense.collect(data.limits.tensor_memory)?;
            dense = Self::plain(data, Body::Direct(Input::Memory(whole.into())), dense.len);
        }
        let width = tensor
            .dtype
            .width()
            .ok_or_else(|| Error::unsupported("packed", format!("packed {}", tensor.dtype)))?;
        let pack = Pack::new(dense, &tensor.shape, symmetry, width)?;
        let len = pack.len();
        Ok(Self::plain(data, Body::Pack(pack), len))
    }

    /// Bytes that are wanted as they are.
    fn plain(data: Data<'a>, body: Body<'a>, len: u64) -> Self {
        Self {
            body,
            map: ElementMap::identity(),
            len,
            stored_len: len,
            numbers: len,
            tally: data.tally,
        }
    }

    /// The same with its elements in order in memory, where a map needs several of them to make a byte.
    fn ordered_first(self, limit: u64) -> Result<Self> {
        let ordered = Self {
            map: ElementMap::identity(),
            len: self.stored_len,
            numbers: self.stored_len,
            tally: None,
            ..self
        };
        let whole = ordered.collect(limit)?;
        Ok(Self {
            body: Body::Direct(Input::Memory(whole.into())),
            map: self.map,
            len: self.len,
            numbers: self.numbers,
            tally: self.tally,
            ..ordered
        })
    }

    /// One part, decoded, with numbers of another type or byte order. A number that does not fit is an error.
    pub(crate) fn part(data: Data<'a>, part: &Part, dtype: DType, endian: Endian) -> Result<Self> {
        let map = ElementMap::new(part.dtype, part.endian, dtype, endian)?;
        Self::mapped(data, part, map.strict())
    }

    fn mapped(data: Data<'a>, part: &Part, map: ElementMap) -> Result<Self> {
        let len = map.output_len(part.payload.len())?;
        let mut view = Self::decoded(data, &part.payload)?;
        // A number that lies in two frames can only be put together by reading from the beginning.
        if let (Body::Frames(frames), Payload::Encoded { codec, len, .. }) =
            (&view.body, &part.payload)
            && !map.is_whole(frames.frame_len())
        {
            view.body = Body::Sequential(data.input(&part.payload)?, *codec, *len);
        }
        Ok(Self {
            numbers: map.numbers_in(part.payload.len()),
            map,
            len,
            ..view
        })
    }

    /// The bytes of a part after decompression, as they are.
    pub(crate) fn decoded(data: Data<'a>, payload: &Payload) -> Result<Self> {
        let input = data.input(payload)?;
        let body = match payload {
            Payload::Encoded { codec, len, .. } => codec::open(input, *codec, *len)?,
            _ => Body::Direct(input),
        };
        Ok(Self::plain(data, body, payload.len()))
    }

    /// The bytes of a part as they are stored, compressed or not.
    fn stored(data: Data<'a>, part: &Part) -> Result<Self> {
        let input = data.input(&part.payload)?;
        let len = input.len();
        Ok(Self::plain(data, Body::Direct(input), len))
    }

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
        !matches!(self.body, Body::Sequential(..))
    }

    /// Whether rows and columns are exchanged, which is done faster in larger stretches.
    pub(crate) fn exchanges_rows(&self) -> bool {
        matches!(self.body, Body::Reorder(_))
    }

    /// The steps in which a random view can be entered.
    pub(crate) fn step(&self) -> u64 {
        let stored = match &self.body {
            Body::Frames(frames) => frames.frame_len(),
            Body::Decoded(decoded) => decoded.step_len(),
            // A multiple of every element's width, except those of blocks.
            Body::Direct(_)
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
        if let Body::Reorder(reorder) = &self.body {
            return self.map.scale(reorder.piece_len(PIECE as u64));
        }
        let step = self.step();
        step * (PIECE as u64 / step).max(1)
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
            None => piece.stored_len().max(1),
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

    /// What wanted bytes are made from.
    fn piece_at(&self, at: u64, len: u64) -> PieceOf {
        let is_last = at + len == self.len;
        let before = self.map.numbers_before(at);
        let (numbers, end) = match is_last {
            true => (self.numbers, self.stored_len),
            false => (
                self.map.numbers_before(at + len),
                self.map.unscale(at + len),
            ),
        };
        PieceOf {
            numbers: numbers.saturating_sub(before),
            stored: self.map.unscale(at)..end,
        }
    }

    /// Stored bytes in steps of which the elements can be read one after the other at no greater cost.
    fn fine_step(&self) -> Option<u64> {
        let step = match &self.body {
            Body::Direct(_) => 1,
            Body::Decoded(decoded) => decoded.step_len(),
            _ => return None,
        };
        // A multiple of both.
        Some(step * self.map.whole(1))
    }

    /// Whether only what is not zero is put into its place.
    fn needs_zeros(&self) -> bool {
        !matches!(self.body, Body::Direct(_) | Body::Decoded(_))
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
            Body::Direct(input) => input.read_into(at, out),
            Body::Frames(frames) => frames.read_into(at, out),
            Body::Reorder(reorder) => reorder.read_into(at, out),
            Body::Scatter(scatter) => {
                scatter.read_into(at, out);
                Ok(())
            }
            Body::Decoded(decoded) => decoded.read_into(at, out),
            Body::Pack(pack) => pack.read_into(at, out),
            Body::Unpack(unpack) => unpack.read_into(at, out),
            Body::Sequential(..) => {
                Err(Error::argument("a compressed stream has no random access"))
            }
        }
    }

    /// How many tiles there are, where a file is better written tile by tile than piece by piece.
    #[cfg(feature = "std")]
    pub(crate) fn tiles(&self) -> Option<u64> {
        match &self.body {
            Body::Reorder(reorder) => reorder.tiles().map(|tiles| tiles.count),
            _ => None,
        }
    }

    /// Gives the runs of a tile with their places.
    #[cfg(feature = "std")]
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

    /// The pieces in order.
    pub(crate) fn pieces(&self) -> Result<Pieces<'_>> {
        let decoder = match &self.body {
            Body::Sequential(input, codec, len) => {
                Some(Sequential::new(input.clone(), *codec, *len)?)
            }
            _ => None,
        };
        Ok(Pieces {
            view: self,
            at: 0,
            decoder,
            stored: Vec::new(),
        })
    }

    /// Everything in one buffer, which grows as data arrives.
    pub(crate) fn collect(&self, limit: u64) -> Result<Vec<u8>> {
        if self.len > limit {
            let message = format!(
                "{} bytes are needed at once, the limit (tensor_memory) is {limit}",
                self.len
            );
            return Err(Error::limit("memory", message).raised_by("tensor_memory"));
        }
        as_size(self.len)?;
        #[cfg(feature = "std")]
        if self.is_large() {
            let mut all = crate::io::zeros(self.len)?;
            self.fill(&mut all)?;
            return Ok(all);
        }
        let mut all = Vec::new();
        let mut piece = Vec::new();
        let mut pieces = self.pieces()?;
        while pieces.next(&mut piece)? {
            if all.is_empty() && piece.len() as u64 == self.len {
                return Ok(piece);
            }
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }
}

impl View<'_> {
    /// Everything, as [`collect`](Self::collect) gives it, to be shared.
    pub(crate) fn collect_shared(&self, limit: u64) -> Result<bytes::Bytes> {
        #[cfg(feature = "mmap")]
        if self.is_large()
            && self.len <= limit
            && let Some(mut all) = crate::io::zeroed(as_size(self.len)?)
        {
            self.fill(&mut all)?;
            return Ok(bytes::Bytes::from_owner(all));
        }
        self.collect(limit).map(bytes::Bytes::from)
    }
}

#[cfg(feature = "std")]
impl View<'_> {
    /// Whether several threads are worth their while.
    fn is_large(&self) -> bool {
        self.is_random() && self.len > 4 * PIECE as u64
    }

    /// Everything in one place, made by several threads.
    fn fill(&self, all: &mut [u8]) -> Result<()> {
        use std::sync::{Mutex, PoisonError};
        let piece = self.piece();
        let places = all
            .chunks_mut(as_size(piece)?)
            .zip((0..).step_by(as_size(piece)?));
        let places = Mutex::new(places);
        let failed = Mutex::new(None);
        let work = || {
            // The lock is held only to take the next place.
            while let Some((place, at)) = {
                let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
                places.next()
            } {
                if let Err(error) = self.read_into(at, place) {
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    failed.get_or_insert(error);
                    return;
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

/// The pieces of a view in order.
pub(crate) struct Pieces<'v> {
    view: &'v View<'v>,
    at: u64,
    decoder: Option<Sequential<'v>>,
    /// Bytes before a cast.
    stored: Vec<u8>,
}

/// The stored numbers that some wanted bytes are made from.
struct PieceOf {
    numbers: u64,
    stored: Range<u64>,
}

impl PieceOf {
    fn stored_len(&self) -> u64 {
        self.stored.end.saturating_sub(self.stored.start)
    }
}

impl Pieces<'_> {
    /// Puts the next piece into `out`; false when there are no more, and the stream was found to be whole.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let left = self.view.len - self.at;
        let len = left.min(self.view.piece());
        match &mut self.decoder {
            Some(decoder) if self.view.map.is_in_place() => {
                decoder.read(as_size(len)?, out)?;
                self.view.map.apply_in_place(out);
            }
            Some(decoder) => {
                let View { map, tally, .. } = self.view;
                let piece = self.view.piece_at(self.at, len);
                decoder.read(as_size(piece.stored_len())?, &mut self.stored)?;
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

fn nth_part(tensor: &TensorInfo, part: usize) -> Result<&Part> {
    tensor
        .parts
        .get(part)
        .ok_or_else(|| Error::argument(format!("there is no part {part}")))
}

fn overflow(what: &str) -> Error {
    Error::malformed("overflow", format!("{what} does not fit 64 bits"))
}

/// The numbers of elements; of types without numbers their bytes.
fn numbers(dtype: DType, elements: u64) -> Result<u64> {
    let numbers = match dtype {
        DType::Number(_, lanes) => elements.checked_mul(lanes.count().into()),
        _ => dtype.bytes_for(elements),
    };
    numbers.ok_or_else(|| overflow("the number of elements"))
}

/// Refuses a cast that is not known.
pub(crate) fn check_cast(from: DType, to: DType) -> Result<()> {
    ElementMap::new(from, Endian::Little, to, Endian::Little).map(drop)
}
