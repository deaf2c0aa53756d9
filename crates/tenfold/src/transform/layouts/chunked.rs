//! A grid of chunks, each stored by itself through a pipeline of filters.
//!
//! Wanted elements are a box of the result, or a few of them. The box falls into as many smaller ones as it touches
//! chunks; a chunk is found, undone and copied from, and nothing of any other is read.

use alloc::borrow::Cow;

use bytes::Bytes;

use super::{Arrangement, Opening, Whole};
use crate::error::{Error, Result};
use crate::io::Limits;
use crate::model::{
    Axis, Chunks, Endian, Layout, Locate, Located, Make, Order, Part, Payload, Role, Selection,
    SourceId, Steps, Strides, TensorInfo,
};
use crate::prelude::*;
use crate::transform::select::{Lines, Selected, Stored};
use crate::transform::{Body, Data, Input, as_size, filters, overflow};

/// Bytes of a row of chunks that is made at once, unless a single chunk has more.
const BAND: u64 = 32 << 20;
/// Chunks that are looked for in a file that has no room for as many.
const MOST_MISSING: u64 = 1 << 20;
/// Chunks that are looked for one by one, also where the index can say of all of them that they are not there.
const FEW: u64 = 256;
/// Bytes that an index takes for a chunk, at least.
const INDEX_ENTRY: u64 = 8;
/// Chunks that are not stored, and compression, may stand for so many times the bytes of the files without a limit.
const EXPANSION: u64 = 64;

pub(super) struct Chunked;

impl Arrangement for Chunked {
    fn whole<'a, 't>(&self, tensor: &Opening<'a, 't>, order: Order) -> Result<Whole<'a, 't>> {
        if let Some(only) = only(tensor.data, tensor.tensor)? {
            return Ok(
                match super::of(&only.layout).whole(&tensor.of(&only), order)? {
                    Whole::Part(part) => Whole::Part(Cow::Owned(part.into_owned())),
                    Whole::Made(body, dtype, endian) => Whole::Made(body, dtype, endian),
                },
            );
        }
        let (chunks, endian) = chunks(tensor)?;
        let selection = Selection::whole(&chunks.shape);
        let boxes = Boxes::new(tensor.data, chunks, selection, order, endian)?;
        let body = Body::Selected(Box::new(Selected::boxes(boxes)?));
        Ok(Whole::Made(body, tensor.values()?.dtype, endian))
    }

    fn some<'a>(&self, tensor: &Opening<'a, '_>, selection: Selection) -> Result<Selected<'a>> {
        if let Some(only) = only(tensor.data, tensor.tensor)? {
            return super::of(&only.layout).some(&tensor.of(&only), selection);
        }
        let (chunks, endian) = chunks(tensor)?;
        let order = Order::RowMajor;
        Selected::boxes(Boxes::new(tensor.data, chunks, selection, order, endian)?)
    }

    fn expands(&self, tensor: &TensorInfo) -> bool {
        let expands = |payload: &Payload| match payload {
            Payload::Chunks(chunks) => expands(chunks),
            _ => false,
        };
        tensor.parts.iter().any(|part| expands(&part.payload))
    }

    fn limit(&self, tensor: &TensorInfo, limits: &Limits) -> u64 {
        let rooms = tensor.parts.iter().map(|part| match &part.payload {
            Payload::Chunks(chunks) => chunks.room,
            _ => 0,
        });
        limits.expanded(rooms.max().unwrap_or(0))
    }
}

/// A tensor of one chunk that is stored as it is, as the dense or strided tensor that it is: so that its bytes can be
/// shared, and copied by the kernel.
pub(super) fn only(data: Data<'_>, tensor: &TensorInfo) -> Result<Option<TensorInfo>> {
    let values = tensor.part(&Role::Values);
    let Some((part, Payload::Chunks(chunks))) = values.map(|part| (part, &part.payload)) else {
        return Ok(None);
    };
    let Some(index) = chunks.index.as_ref().filter(|_| {
        let is_plain = chunks.filters.is_empty() && !chunks.at_once;
        is_plain && chunks.counts().iter().all(|count| *count == 1)
    }) else {
        return Ok(None);
    };
    let number = vec![0; chunks.shape.len()];
    let Some(located) = find(data, chunks, &**index, &number)? else {
        return Ok(None);
    };
    let is_whole = chunks.len() == Some(located.payload.len());
    let layout = match located.strides {
        Some(strides) => Layout::Strided(strides),
        None if is_whole => Layout::RowMajor,
        // Reading it says what is wrong.
        None => return Ok(None),
    };
    let mut only = TensorInfo::new("", tensor.dtype, chunks.shape.clone(), layout);
    only.parts = Part {
        payload: located.payload,
        ..part.clone()
    }
    .into();
    Ok(Some(only))
}

/// A chunk by its number, with the archive's number of its file.
fn find(
    data: Data<'_>,
    chunks: &Chunks,
    index: &dyn Locate,
    number: &[u64],
) -> Result<Option<Located>> {
    let file = |file: SourceId| {
        let id = chunks.files.get(file.index()).copied();
        id.ok_or_else(|| Error::argument(format!("an index of chunks in file {}", file.0)))
    };
    let read = |id, range| data.read(file(id)?, range);
    let named = |error: Error| error.adding(&format!(" (chunk {number:?})"));
    let Some(mut located) = index.locate(&read, number).map_err(named)? else {
        return Ok(None);
    };
    if let Payload::Raw { source, .. } | Payload::Encoded { source, .. } = &mut located.payload {
        *source = file(*source)?;
    }
    Ok(Some(located))
}

/// Whether there are many more elements than the files have bytes.
pub(super) fn expands(chunks: &Chunks) -> bool {
    let free = chunks.room.saturating_mul(EXPANSION);
    chunks.len().is_none_or(|len| len > free)
}

/// All elements in row-major order, as they are stored.
pub(in crate::transform) fn all<'a>(data: Data<'a>, chunks: &Arc<Chunks>) -> Result<Body<'a>> {
    let len = chunks.len().unwrap_or(u64::MAX);
    let limit = data.limits.expanded(chunks.room);
    if len > limit && expands(chunks) {
        return Err(crate::transform::too_expanded(len, limit));
    }
    let selection = Selection::whole(&chunks.shape);
    let boxes = Boxes::new(data, chunks, selection, Order::RowMajor, Endian::Little)?;
    Ok(Body::Selected(Box::new(Selected::boxes(boxes)?)))
}

/// The chunks of a column-major tensor, whose grid has the tensor's dimensions in reverse.
pub(super) fn reversed<'t>(tensor: &Opening<'_, 't>) -> Option<(&'t Arc<Chunks>, Endian)> {
    let values = tensor.values().ok()?;
    let Payload::Chunks(chunks) = &values.payload else {
        return None;
    };
    let is_reversed = chunks.shape.iter().eq(tensor.tensor.shape.iter().rev())
        && Some(chunks.width) == values.dtype.width();
    is_reversed.then_some((chunks, values.endian))
}

/// The chunks of a tensor, and its byte order.
fn chunks<'t>(tensor: &Opening<'_, 't>) -> Result<(&'t Arc<Chunks>, Endian)> {
    let values = tensor.values()?;
    let Payload::Chunks(chunks) = &values.payload else {
        return Err(Error::argument("a chunked tensor without chunks"));
    };
    if chunks.shape != tensor.tensor.shape || Some(chunks.width) != values.dtype.width() {
        let message = format!(
            "chunks of a tensor {:?} with elements of {} bytes, for {} {:?}",
            chunks.shape, chunks.width, values.dtype, tensor.tensor.shape
        );
        return Err(Error::malformed("chunks", message));
    }
    Ok((chunks, values.endian))
}

/// Elements of a chunked tensor, in the order of a selection.
pub(in crate::transform) struct Boxes<'a> {
    data: Data<'a>,
    chunks: Arc<Chunks>,
    /// What is wanted along each dimension, the one that runs slowest first.
    axes: Vec<Axis>,
    /// How many there are along each of them.
    counts: Vec<u64>,
    /// Whether the dimensions are in the reversed order of the tensor's.
    reversed: bool,
    endian: Endian,
    step: u64,
}

/// Neighbouring places of a result along a dimension that are in the same chunk.
#[derive(Clone, Debug)]
struct Span {
    /// The number of the chunk, and the indices that it has.
    number: u64,
    chunk: Range<u64>,
    /// The first index within the chunk, and how far the next one is.
    first: u64,
    step: i64,
    count: u64,
    /// The place in the box.
    out: u64,
}

impl Span {
    /// The least and the greatest index within the chunk.
    fn bounds(&self) -> (u64, u64) {
        let last = self.index(self.count.saturating_sub(1));
        (self.first.min(last), self.first.max(last))
    }

    fn index(&self, n: u64) -> u64 {
        self.first
            .wrapping_add_signed(self.step.wrapping_mul(n.cast_signed()))
    }

    /// The same places where nothing but what is wanted of the chunk is there.
    fn alone(&self) -> Self {
        Self {
            chunk: 0..self.count,
            first: 0,
            step: 1,
            ..self.clone()
        }
    }
}

/// What a chunk holds.
enum Content {
    /// The element that stands for all that are not stored.
    Fill,
    /// Its bytes from an element on.
    Stored { bytes: Bytes, from: u64 },
    /// What is wanted of it and nothing else, in the order of the tensor's dimensions.
    Gathered(Bytes),
}

/// A chunk as it is stored.
enum Piece<'p> {
    Stored(Input<'p>),
    /// In a file of its own.
    Made(u64, &'p Arc<dyn Make>),
}

impl Piece<'_> {
    fn len(&self) -> u64 {
        match self {
            Piece::Stored(input) => input.len(),
            Piece::Made(len, _) => *len,
        }
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let len = range.end - range.start;
        match self {
            Piece::Stored(input) => input.read(range.start, len),
            Piece::Made(_, maker) => {
                let bytes = maker.part(range).map_err(Error::nowhere)?;
                if bytes.len() as u64 != len {
                    return Err(filters::wrong_size(bytes.len() as u64, len));
                }
                Ok(bytes)
            }
        }
    }

    fn place(&self) -> Option<(SourceId, Range<u64>)> {
        match self {
            Piece::Stored(input) => input.place(),
            Piece::Made(..) => None,
        }
    }
}

impl<'a> Boxes<'a> {
    pub(super) fn new(
        data: Data<'a>,
        chunks: &Arc<Chunks>,
        selection: Selection,
        order: Order,
        endian: Endian,
    ) -> Result<Self> {
        let rank = chunks.shape.len();
        if chunks.grid.len() != rank || selection.axes.len() != rank || chunks.width == 0 {
            let message = format!("a grid of {} dimensions for {rank}", chunks.grid.len());
            return Err(Error::malformed("chunks", message));
        }
        check_axes(&chunks.axes, rank)?;
        if !chunks.fill.is_empty() && chunks.fill.len() != chunks.width {
            let message = format!(
                "a fill value of {} bytes for elements of {}",
                chunks.fill.len(),
                chunks.width
            );
            return Err(Error::malformed("chunks", message));
        }
        check_count(chunks)?;
        let mut axes = selection.axes;
        let reversed = order == Order::ColumnMajor;
        if reversed {
            axes.reverse();
        }
        let counts = axes.iter().map(Axis::count).collect();
        let mut boxes = Self {
            data,
            chunks: chunks.clone(),
            axes,
            counts,
            reversed,
            endian,
            step: 0,
        };
        boxes.step = boxes.band()?.saturating_mul(chunks.width as u64);
        Ok(boxes)
    }

    pub(in crate::transform) fn elements(&self) -> Option<u64> {
        Selection::count(&self.axes)
    }

    pub(in crate::transform) fn width(&self) -> usize {
        self.chunks.width
    }

    pub(in crate::transform) fn endian(&self) -> Endian {
        self.endian
    }

    /// Bytes of the result that are best made together.
    pub(in crate::transform) fn step_len(&self) -> u64 {
        self.step
    }

    /// The dimension of the tensor that an axis of the result is.
    fn dimension(&self, axis: usize) -> usize {
        if self.reversed {
            self.axes.len() - 1 - axis
        } else {
            axis
        }
    }

    /// Elements that come from the same chunks: a row of chunks, or several lines of one that is very long.
    fn band(&self) -> Result<u64> {
        /// Where chunks make no difference.
        const ANY: u64 = 128;
        if self.chunks.index.is_none() {
            return Ok(ANY);
        }
        let sides: Vec<u64> = (self.chunks.shape.iter().zip(&self.chunks.grid))
            .map(|(dim, cuts)| cuts.longest(*dim))
            .collect();
        let width = self.chunks.width as u64;
        let chunk = sides.iter().copied().fold(width, u64::saturating_mul);
        let limit = self.data.limits.tensor_memory;
        // What can only be had whole is had once.
        let is_whole = self.chunks.at_once || !self.chunks.filters.is_empty();
        if chunk > limit && is_whole {
            let message = format!(
                "a chunk has {chunk} bytes, which are needed at once; the limit (tensor_memory) is {limit}"
            );
            return Err(Error::limit("memory", message).raised_by("tensor_memory", chunk));
        }
        let most = if is_whole { BAND.max(chunk) } else { BAND } / width;
        let mut is_single = true;
        for (axis, count) in self.counts.iter().enumerate() {
            let line = self.counts.iter().skip(axis + 1).copied();
            let line = line.fold(1, u64::saturating_mul).max(1);
            let side = sides[self.dimension(axis)];
            let step = self.axes[axis].steps.first();
            let step = step.map_or(1, |steps| steps.step.unsigned_abs()).max(1);
            let lines = (side / step).clamp(1, (*count).max(1));
            if lines > 1 && line <= most {
                let whole = if is_single || count.is_multiple_of(lines) {
                    lines
                } else {
                    // Rows of chunks do not end where lines of the result do: all of them together.
                    *count
                };
                let whole = if whole * line <= most { whole } else { lines };
                return Ok(line * whole.min(most / line).max(1));
            }
            is_single &= *count == 1;
        }
        Ok(ANY)
    }

    /// The bytes from `at` on, which is at an element; `out` comes filled with zeros.
    pub(in crate::transform) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let width = self.chunks.width as u64;
        let first = at / width;
        let elements = first..first + out.len() as u64 / width;
        if self.chunks.index.is_none() {
            fill(&self.chunks.fill, out);
            return Ok(());
        }
        let mut rest = out;
        self.boxes(elements, &mut Vec::new(), &mut |place| {
            let count: u64 = place.iter().map(|range| range.end - range.start).product();
            let (now, later) = core::mem::take(&mut rest).split_at_mut(as_size(count * width)?);
            rest = later;
            self.read_box(place, now)
        })
    }

    /// Cuts neighbouring elements of the result into boxes, in their order.
    fn boxes(
        &self,
        elements: Range<u64>,
        place: &mut Vec<Range<u64>>,
        visit: &mut dyn FnMut(&[Range<u64>]) -> Result<()>,
    ) -> Result<()> {
        let level = place.len();
        if elements.is_empty() {
            return Ok(());
        }
        if level == self.counts.len() {
            return visit(place);
        }
        let line: u64 = self.counts.iter().skip(level + 1).product();
        let (first, last) = (elements.start / line, elements.end / line);
        let (head, tail) = (elements.start % line, elements.end % line);
        let mut part = |rows: Range<u64>, within: Range<u64>| {
            if rows.is_empty() {
                return Ok(());
            }
            place.push(rows);
            let done = self.boxes(within, place, visit);
            place.pop();
            done
        };
        if first == last {
            return part(first..first + 1, head..tail);
        }
        let whole = if head == 0 {
            first
        } else {
            part(first..first + 1, head..line)?;
            first + 1
        };
        part(whole..last, 0..line)?;
        if tail > 0 {
            part(last..last + 1, 0..tail)?;
        }
        Ok(())
    }

    /// A box of the result.
    fn read_box(&self, place: &[Range<u64>], out: &mut [u8]) -> Result<()> {
        self.read_within(place, &mut place.to_vec(), out)
    }

    /// What a box of the result has within a smaller one. Where there are many chunks and the index knows that none is
    /// stored, none is looked for.
    fn read_within(
        &self,
        place: &[Range<u64>],
        within: &mut Vec<Range<u64>>,
        out: &mut [u8],
    ) -> Result<()> {
        let index = self.chunks.index.as_ref();
        if let Some(index) = index.filter(|index| index.knows_all()) {
            let mut numbers: Vec<Range<u64>> = (within.iter().enumerate())
                .map(|(axis, range)| self.numbers(axis, range))
                .collect();
            let counts = numbers.iter().map(|range| range.end - range.start);
            if counts.clone().fold(1, u64::saturating_mul) > FEW {
                let halves = counts.enumerate().filter(|(axis, _)| self.is_even(*axis));
                let longest = halves.max_by_key(|(_, count)| *count);
                let cut = longest.filter(|(_, count)| *count > 1).map(|(axis, _)| {
                    let whole = within[axis].clone();
                    (axis, self.middle(axis, &whole, &numbers[axis]), whole)
                });
                if self.reversed {
                    numbers.reverse();
                }
                if !index.may_have(&numbers) {
                    return self.fill_within(place, within, out);
                }
                if let Some((axis, middle, whole)) = cut {
                    for half in [whole.start..middle, middle..whole.end] {
                        within[axis] = half;
                        self.read_within(place, within, out)?;
                    }
                    within[axis] = whole;
                    return Ok(());
                }
            }
        }
        self.read_chunks(place, within, out)
    }

    /// Whether what is wanted along an axis is equally far apart. Of several steps nothing is known: they may go to and fro.
    fn is_even(&self, axis: usize) -> bool {
        self.axes[axis].steps.len() == 1
    }

    /// The first place in about the middle of a range that is in another chunk than the one before it, so that none is undone
    /// for both halves. The places are in several chunks.
    fn middle(&self, axis: usize, range: &Range<u64>, numbers: &Range<u64>) -> u64 {
        let middle = numbers.start + (numbers.end - numbers.start) / 2;
        let is_behind = |at| self.number(axis, at) >= middle;
        let (mut before, mut behind) = (range.start, range.end - 1);
        let rises = is_behind(behind);
        while behind - before > 1 {
            let at = before + (behind - before) / 2;
            if is_behind(at) == rises {
                behind = at;
            } else {
                before = at;
            }
        }
        behind
    }

    /// The number of the chunk along an axis that a place of the result is in.
    fn number(&self, axis: usize, at: u64) -> u64 {
        let cuts = &self.chunks.grid[self.dimension(axis)];
        cuts.around(self.axes[axis].at(at).0).0
    }

    /// The least and the greatest number of chunks along an axis that places of the result are in.
    fn numbers(&self, axis: usize, range: &Range<u64>) -> Range<u64> {
        if !self.is_even(axis) || range.is_empty() {
            let dimension = self.dimension(axis);
            return 0..self.chunks.grid[dimension].count(self.chunks.shape[dimension]);
        }
        let (first, last) = (
            self.number(axis, range.start),
            self.number(axis, range.end - 1),
        );
        first.min(last)..first.max(last) + 1
    }

    /// Elements of a box of the result that are in no chunk.
    fn fill_within(
        &self,
        place: &[Range<u64>],
        within: &[Range<u64>],
        out: &mut [u8],
    ) -> Result<()> {
        let spans: Vec<Span> = (within.iter().zip(place))
            .map(|(range, of)| Span {
                number: 0,
                chunk: 0..range.end - range.start,
                first: 0,
                step: 1,
                count: range.end - range.start,
                out: range.start - of.start,
            })
            .collect();
        let lens: Vec<u64> = place.iter().map(|range| range.end - range.start).collect();
        let spans: Vec<&Span> = spans.iter().collect();
        let copy = Copy {
            content: &Content::Fill,
            fill: &self.chunks.fill,
            width: self.chunks.width,
            spans: &spans,
            strides: &vec![0; spans.len()],
            lens: &lens,
        };
        copy.run(0, 0, 0, out)
    }

    /// The same chunk by chunk.
    fn read_chunks(
        &self,
        place: &[Range<u64>],
        within: &[Range<u64>],
        out: &mut [u8],
    ) -> Result<()> {
        let spans: Vec<Vec<Span>> = (within.iter().zip(place).enumerate())
            .map(|(axis, (range, of))| self.spans(axis, range, of.start))
            .collect();
        let lens: Vec<u64> = place.iter().map(|range| range.end - range.start).collect();
        let mut chosen = vec![0; spans.len()];
        loop {
            let combination: Vec<&Span> = (spans.iter().zip(&chosen))
                .filter_map(|(spans, &n)| spans.get(n))
                .collect();
            if combination.len() == spans.len() {
                self.copy_chunk(&combination, &lens, out)?;
            }
            // The next combination, the last axis running fastest.
            let is_next = (chosen.iter_mut().zip(&spans))
                .rev()
                .any(|(chosen, spans)| {
                    *chosen += 1;
                    if *chosen == spans.len() {
                        *chosen = 0;
                    }
                    *chosen > 0
                });
            if !is_next {
                return Ok(());
            }
        }
    }

    /// The chunks along an axis that places of the result are in; the box begins at `origin`.
    fn spans(&self, axis: usize, range: &Range<u64>, origin: u64) -> Vec<Span> {
        let dimension = self.dimension(axis);
        let (cuts, dim) = (&self.chunks.grid[dimension], self.chunks.shape[dimension]);
        let mut spans = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let (index, rest) = self.axes[axis].at(at);
            let (number, mut chunk) = cuts.around(index);
            if !self.chunks.padded || chunk.end == u64::MAX {
                chunk.end = chunk.end.min(dim);
            }
            let room = if rest.step > 0 {
                chunk.end.saturating_sub(index + 1)
            } else {
                index - chunk.start
            };
            let together = room / rest.step.unsigned_abs().max(1) + 1;
            let count = together.min(rest.count).min(range.end - at).max(1);
            spans.push(Span {
                number,
                first: index - chunk.start,
                chunk,
                step: rest.step,
                count,
                out: at - origin,
            });
            at += count;
        }
        spans
    }

    /// Copies what a box of the result has of one chunk.
    fn copy_chunk(&self, spans: &[&Span], lens: &[u64], out: &mut [u8]) -> Result<()> {
        let alone: Vec<Span>;
        let mut spans = spans.to_vec();
        if self.reversed {
            spans.reverse();
        }
        let mut strides = strides(&spans, &self.chunks.axes);
        let mut content = self.content(&spans, &strides)?;
        if let Content::Gathered(bytes) = content {
            alone = spans.iter().map(|span| span.alone()).collect();
            spans = alone.iter().collect();
            strides = self::strides(&spans, &[]);
            content = Content::Stored { bytes, from: 0 };
        }
        if self.reversed {
            spans.reverse();
            strides.reverse();
        }
        let copy = Copy {
            content: &content,
            fill: &self.chunks.fill,
            width: self.chunks.width,
            spans: &spans,
            strides: &strides,
            lens,
        };
        copy.run(0, 0, 0, out)
    }

    /// What is wanted of a chunk, given by its spans in the order of the tensor's dimensions.
    fn content(&self, spans: &[&Span], strides: &[u64]) -> Result<Content> {
        let Some(index) = &self.chunks.index else {
            return Ok(Content::Fill);
        };
        let check = || match self.data.control {
            Some(control) => control.check(),
            None => Ok(()),
        };
        check()?;
        let number: Vec<u64> = spans.iter().map(|span| span.number).collect();
        let named = |error: Error| error.adding(&format!(" (chunk {number:?})"));
        let Some(located) = find(self.data, &self.chunks, &**index, &number)? else {
            return Ok(Content::Fill);
        };
        if let Some(strides) = &located.strides {
            return self
                .gathered(spans, &located.payload, strides)
                .map_err(named);
        }
        let sides = spans.iter().map(|span| span.chunk.end - span.chunk.start);
        let elements = sides.clone().try_fold(1, u64::checked_mul);
        let width = self.chunks.width as u64;
        let len = elements.and_then(|elements| elements.checked_mul(width));
        let len = len.ok_or_else(|| overflow("the size of a chunk"))?;
        let piece = match &located.payload {
            Payload::Lazy { len, maker } => Piece::Made(*len, maker),
            payload => Piece::Stored(self.data.input(payload)?),
        };
        let placed = |error: Error| {
            let error = match piece.place() {
                Some((source, range)) if error.range().is_none() => error.at_source(source, range),
                _ => error,
            };
            named(error)
        };
        if filters::are_all_skipped(&self.chunks.filters, located.skipped) {
            if piece.len() != len {
                return Err(placed(filters::wrong_size(piece.len(), len)));
            }
            // Nothing but what is wanted has to be read.
            let (mut least, mut most) = (0, 0);
            for (span, stride) in spans.iter().zip(strides) {
                let (a, b) = span.bounds();
                (least, most) = (least + a * stride, most + b * stride);
            }
            let bytes = piece.read(least * width..(most + 1) * width);
            let bytes = bytes.map_err(placed)?;
            return Ok(Content::Stored { bytes, from: least });
        }
        let stored = piece.read(0..piece.len()).map_err(placed)?;
        let bytes = filters::undo(&self.chunks.filters, located.skipped, stored, len, &check);
        let bytes = bytes.map_err(placed)?;
        Ok(Content::Stored { bytes, from: 0 })
    }

    /// What is wanted of a chunk whose elements lie at equal distances.
    fn gathered(&self, spans: &[&Span], payload: &Payload, strides: &Strides) -> Result<Content> {
        if !self.chunks.filters.is_empty() {
            return Err(Error::argument("filters in front of strides"));
        }
        let sides: Vec<u64> = (spans.iter())
            .map(|span| span.chunk.end - span.chunk.start)
            .collect();
        let width = self.chunks.width as u64;
        super::strided::check_bounds(&sides, strides, payload.len() / width)?;
        let axes = spans.iter().zip(&sides).map(|(span, side)| Axis {
            dim: *side,
            steps: vec![Steps {
                start: span.first,
                step: span.step,
                count: span.count,
            }],
            kept: true,
        });
        let axes = axes.collect();
        let lines = Lines::new(Selection { axes }, strides.offset, &strides.steps)?;
        let selected = Selected::placed(Stored::records(self.data, payload, width)?, lines)?;
        let counts = spans.iter().map(|span| span.count);
        let len = counts.fold(width, u64::saturating_mul);
        let mut bytes = vec![0; as_size(len)?];
        selected.reader().read_into(0, &mut bytes)?;
        Ok(Content::Gathered(bytes.into()))
    }
}

/// How far a step along each dimension of the tensor goes in a chunk whose dimensions lie in the order of `axes`.
fn strides(spans: &[&Span], axes: &[usize]) -> Vec<u64> {
    let rank = spans.len();
    let mut strides = vec![0; rank];
    let mut stride = 1u64;
    for axis in (0..rank).rev() {
        let axis = axes.get(axis).copied().unwrap_or(axis);
        if let (Some(span), Some(place)) = (spans.get(axis), strides.get_mut(axis)) {
            *place = stride;
            stride = stride.saturating_mul(span.chunk.end - span.chunk.start);
        }
    }
    strides
}

/// Refuses an order of dimensions that is none.
fn check_axes(axes: &[usize], rank: usize) -> Result<()> {
    let has_all = axes.len() == rank && (0..rank).all(|axis| axes.contains(&axis));
    if has_all || axes.is_empty() {
        return Ok(());
    }
    let message = format!("chunks of {rank} dimensions in the order {axes:?}");
    Err(Error::malformed("chunks", message))
}

/// Refuses to look for more chunks than a file could have an index of, one by one.
fn check_count(chunks: &Chunks) -> Result<()> {
    if chunks.index.as_ref().is_none_or(|index| index.knows_all()) {
        return Ok(());
    }
    let counts = chunks.counts();
    let count = if counts.contains(&0) {
        Some(0)
    } else {
        counts.iter().copied().try_fold(1, u64::checked_mul)
    };
    let most = (chunks.room / INDEX_ENTRY).max(MOST_MISSING);
    match count {
        Some(count) if count <= most => Ok(()),
        _ => {
            let message = format!(
                "a grid of {counts:?} chunks, the file has room for {most} at most: nearly all of them would be missing"
            );
            Err(Error::limit("chunks", message))
        }
    }
}

/// Fills memory, which is all zeros, with an element.
fn fill(element: &[u8], out: &mut [u8]) {
    if element.iter().any(|byte| *byte != 0) {
        for place in out.chunks_exact_mut(element.len()) {
            place.copy_from_slice(element);
        }
    }
}

/// From a chunk into a box of the result.
struct Copy<'c> {
    content: &'c Content,
    fill: &'c [u8],
    width: usize,
    /// In the order of the result, as all lists here.
    spans: &'c [&'c Span],
    /// How far a step along an axis goes in the chunk.
    strides: &'c [u64],
    lens: &'c [u64],
}

impl Copy<'_> {
    /// Copies what is after an axis, from an element of the chunk to one of the box.
    fn run(&self, axis: usize, from: u64, to: u64, out: &mut [u8]) -> Result<()> {
        let Some(span) = self.spans.get(axis) else {
            return self.elements(from, 1, 1, to, out);
        };
        let line: u64 = self.lens.iter().skip(axis + 1).product();
        let stride = self.strides[axis];
        if axis + 1 == self.spans.len() {
            let first = from + span.first * stride;
            let step = span.step.wrapping_mul(stride.cast_signed());
            return self.elements(first, step, span.count, to + span.out, out);
        }
        for n in 0..span.count {
            let from = from + span.index(n) * stride;
            self.run(axis + 1, from, to + (span.out + n) * line, out)?;
        }
        Ok(())
    }

    /// Copies elements that are equally far apart in the chunk and neighbours in the box.
    fn elements(&self, first: u64, step: i64, count: u64, to: u64, out: &mut [u8]) -> Result<()> {
        let width = self.width;
        let (to, count) = (as_size(to)?, as_size(count)?);
        let out = &mut out[to * width..(to + count) * width];
        let (bytes, from) = match self.content {
            Content::Stored { bytes, from } => (bytes, *from),
            Content::Gathered(bytes) => (bytes, 0),
            Content::Fill => {
                fill(self.fill, out);
                return Ok(());
            }
        };
        let first = as_size(first - from)?;
        if step == 1 {
            out.copy_from_slice(&bytes[first * width..(first + count) * width]);
            return Ok(());
        }
        let mut at = first as u64;
        for place in out.chunks_exact_mut(width) {
            let from = as_size(at)? * width;
            place.copy_from_slice(&bytes[from..from + width]);
            at = at.wrapping_add_signed(step);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
