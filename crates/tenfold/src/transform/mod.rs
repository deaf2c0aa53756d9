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

#[cfg(feature = "deflate")]
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

/// A part of a tensor in a wanted form.
pub(crate) struct View<'a> {
    body: Body<'a>,
    map: ElementMap,
    len: u64,
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
                if tensor.shape.len() < 2 || tensor.layout == form.layout || elements == 0 {
                    return Self::part(data, values, form.dtype, form.endian);
                }
                let map = ElementMap::new(values.dtype, values.endian, form.dtype, form.endian)?;
                let reorder = Reorder::new(data, values, &tensor.shape, &tensor.layout)?;
                Ok(Self {
                    body: Body::Reorder(reorder),
                    map,
                    len,
                })
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
                Ok(Self {
                    body: Body::Scatter(scatter),
                    map,
                    len,
                })
            }
            Layout::Packed(symmetry) => {
                let column_major = form.layout == Layout::ColumnMajor;
                let unpack = Unpack::new(data, tensor, symmetry, column_major)?;
                let (dtype, endian) = unpack.stored_as();
                Ok(Self {
                    body: Body::Unpack(unpack),
                    map: ElementMap::new(dtype, endian, form.dtype, form.endian)?,
                    len,
                })
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
                Ok(Self {
                    body: Body::Decoded(decoded),
                    map,
                    len,
                })
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
            dense.body = Body::Direct(Input::Memory(whole.into()));
            dense.map = ElementMap::identity();
        }
        let width = tensor
            .dtype
            .width()
            .ok_or_else(|| Error::unsupported("packed", format!("packed {}", tensor.dtype)))?;
        let pack = Pack::new(dense, &tensor.shape, symmetry, width)?;
        Ok(Self {
            len: pack.len(),
            body: Body::Pack(pack),
            map: ElementMap::identity(),
        })
    }

    /// One part, decoded, with numbers of another type or byte order.
    pub(crate) fn part(data: Data<'a>, part: &Part, dtype: DType, endian: Endian) -> Result<Self> {
        let map = ElementMap::new(part.dtype, part.endian, dtype, endian)?;
        let len = map.output_len(part.payload.len())?;
        let mut view = Self::decoded(data, &part.payload)?;
        // A number that lies in two frames can only be put together by reading from the beginning.
        if let (Body::Frames(frames), Payload::Encoded { codec, len, .. }) =
            (&view.body, &part.payload)
            && !map.is_whole(frames.frame_len())
        {
            view.body = Body::Sequential(data.input(&part.payload)?, *codec, *len);
        }
        Ok(Self { map, len, ..view })
    }

    /// The bytes of a part after decompression, as they are.
    pub(crate) fn decoded(data: Data<'a>, payload: &Payload) -> Result<Self> {
        let input = data.input(payload)?;
        let body = match payload {
            Payload::Encoded { codec, len, .. } => codec::open(input, *codec, *len)?,
            _ => Body::Direct(input),
        };
        Ok(Self {
            body,
            map: ElementMap::identity(),
            len: payload.len(),
        })
    }

    /// The bytes of a part as they are stored, compressed or not.
    fn stored(data: Data<'a>, part: &Part) -> Result<Self> {
        let input = data.input(&part.payload)?;
        let len = input.len();
        Ok(Self {
            body: Body::Direct(input),
            map: ElementMap::identity(),
            len,
        })
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
        let stored_at = self.map.unscale(at);
        let stored_len = as_size(self.map.unscale(len))?;
        out.clear();
        out.resize(stored_len, 0);
        self.read_unmapped(stored_at, out)?;
        self.map.apply(out)
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
        self.map.apply(piece)?;
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
        #[cfg(feature = "std")]
        if self.is_random() && self.len > 4 * PIECE as u64 {
            return self.collect_parallel();
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

#[cfg(feature = "std")]
impl View<'_> {
    /// Everything in one buffer, made by several threads.
    fn collect_parallel(&self) -> Result<Vec<u8>> {
        use std::sync::{Mutex, PoisonError};
        let mut all = vec![0; as_size(self.len)?];
        let piece = self.piece();
        let places = all
            .chunks_mut(as_size(piece)?)
            .zip((0..).step_by(as_size(piece)?));
        let places = Mutex::new(places);
        let failed = Mutex::new(None);
        let work = || {
            let mut scratch = Vec::new();
            // The lock is held only to take the next place.
            while let Some((place, at)) = {
                let mut places = places.lock().unwrap_or_else(PoisonError::into_inner);
                places.next()
            } {
                let done = match self.map.is_identity() {
                    true => self.read_unmapped(at, place),
                    false => self
                        .read(at, place.len() as u64, &mut scratch)
                        .map(|()| place.copy_from_slice(&scratch)),
                };
                if let Err(error) = done {
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
            None => Ok(all),
        }
    }
}

/// The pieces of a view in order.
pub(crate) struct Pieces<'v> {
    view: &'v View<'v>,
    at: u64,
    decoder: Option<Sequential<'v>>,
}

impl Pieces<'_> {
    /// Puts the next piece into `out`; false when there are no more, and the stream was found to be whole.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        let left = self.view.len - self.at;
        let len = left.min(self.view.piece());
        match &mut self.decoder {
            Some(decoder) => {
                decoder.read(as_size(self.view.map.unscale(len))?, out)?;
                self.view.map.apply(out)?;
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

/// Refuses a cast that is not known.
pub(crate) fn check_cast(from: DType, to: DType) -> Result<()> {
    ElementMap::new(from, Endian::Little, to, Endian::Little).map(drop)
}

/// A length as a size in memory.
pub(crate) fn as_size(len: u64) -> Result<usize> {
    usize::try_from(len)
        .map_err(|cause| Error::limit("memory", format!("{len} bytes at once")).because(cause))
}
