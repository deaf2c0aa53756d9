//! Elements from anywhere: neighbours are read together, nothing is read twice for a batch.

use crate::error::{Error, Result};
use crate::model::{DType, Endian, Part, Payload};
use crate::prelude::*;
use crate::transform::elements::ElementMap;
use crate::transform::{Body, Data, Input, Pieces, View, as_size};

/// Bytes between two wanted ones that cost less to read than another read does.
const GAP: u64 = 1 << 10;
/// Bytes that are read together, at most, unless they are wanted together.
const SPAN: u64 = 1 << 20;

/// Neighbouring stored units, and where they go in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) place: u64,
    pub(super) len: u64,
    pub(super) out: usize,
}

/// Units in their stored order.
pub(super) struct Stored<'a> {
    kind: Kind<'a>,
    /// Of a unit, as it is gathered.
    bits: u64,
    /// What is done to gathered units.
    map: ElementMap,
}

enum Kind<'a> {
    /// Bytes of a file: exactly the wanted ones are read.
    Direct(Input<'a>),
    /// Frames or blocks: those that hold wanted bytes are decoded.
    Steps(View<'a>),
    /// Decoded from the beginning up to the last wanted byte.
    Stream(View<'a>),
}

impl<'a> Stored<'a> {
    /// The units of a part, as little-endian `dtype` in the end.
    pub(super) fn part(data: Data<'a>, part: &Part, dtype: DType) -> Result<Self> {
        let map = ElementMap::new(part.dtype, part.endian, dtype, Endian::Little)?;
        // Gathered units have bytes of their own, which is not how numbers of less than a byte are cast.
        if !map.has_whole_bytes() {
            let message = format!("{} cannot be cut and cast to {dtype} at once", part.dtype);
            return Err(Error::unsupported("cast", message));
        }
        if Self::is_mapped_later(part) {
            return Ok(Self {
                kind: Kind::Direct(data.input(&part.payload)?),
                bits: unit_bits(part.dtype),
                map,
            });
        }
        let view = View::mapped(data, part, map)?;
        Ok(Self::view(view, unit_bits(dtype)))
    }

    /// Records of any width, as they are.
    pub(super) fn records(data: Data<'a>, payload: &Payload, width: u64) -> Result<Self> {
        Ok(Self::view(View::decoded(data, payload)?, width * 8))
    }

    /// Units of a view.
    pub(super) fn view(view: View<'a>, bits: u64) -> Self {
        let kind = match &view.body {
            Body::Direct(input) if view.map.is_identity() => Kind::Direct(input.clone()),
            Body::Sequential(..) => Kind::Stream(view),
            _ => Kind::Steps(view),
        };
        Self {
            kind,
            bits,
            map: ElementMap::identity(),
        }
    }

    /// Whether units are gathered as they are stored, and changed afterwards.
    pub(super) fn is_mapped_later(part: &Part) -> bool {
        !matches!(part.payload, Payload::Encoded { .. })
    }

    /// Whether reading at a place costs reading everything before it.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::Stream(_))
    }

    /// Bytes of a gathered unit: a unit below a byte gets one.
    pub(super) fn width(&self) -> usize {
        // At most 8 numbers of 16 bytes, or a record of as many indices as there are dimensions.
        usize::try_from(self.bits.div_ceil(8)).unwrap_or(usize::MAX)
    }

    /// The stored bytes that hold some units.
    fn bytes(&self, place: u64, len: u64) -> Range<u64> {
        let byte = |unit: u64| (unit / 8 * self.bits, unit % 8 * self.bits);
        let ((a, more_a), (b, more_b)) = (byte(place), byte(place + len));
        a + more_a / 8..b + more_b.div_ceil(8)
    }

    fn len(&self) -> u64 {
        match &self.kind {
            Kind::Direct(input) => input.len(),
            Kind::Steps(view) | Kind::Stream(view) => view.len(),
        }
    }
}

/// Bits of what is gathered one by one: an element, or a number that is less than a byte.
fn unit_bits(dtype: DType) -> u64 {
    match (dtype.width(), dtype) {
        (Some(width), _) => width as u64 * 8,
        (None, DType::Number(scalar, _)) => scalar.bits().into(),
        (None, _) => 8,
    }
}

/// Reads runs of units.
pub(super) struct Gather<'w, 'a> {
    stored: &'w Stored<'a>,
    /// Bytes that were read last, and where they are stored.
    span: Vec<u8>,
    at: u64,
    /// The stream that the span is a piece of.
    pieces: Option<Pieces<'w>>,
}

impl<'w, 'a> Gather<'w, 'a> {
    pub(super) fn new(stored: &'w Stored<'a>) -> Self {
        Self {
            stored,
            span: Vec::new(),
            at: 0,
            pieces: None,
        }
    }

    /// Makes `out` hold `count` units, those of the runs where these go, zeros elsewhere.
    pub(super) fn fill(&mut self, runs: &mut [Run], count: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.resize(count * self.stored.width(), 0);
        runs.sort_unstable_by_key(|run| run.place);
        let mut rest = &*runs;
        while !rest.is_empty() {
            let (count, bytes) = self.together(rest);
            let (now, later) = rest.split_at(count);
            self.fetch(now, bytes, out)?;
            rest = later;
        }
        Ok(())
    }

    /// What is done to gathered units when nothing else is.
    pub(super) fn finish(&self, out: &mut Vec<u8>) -> Result<()> {
        self.stored.map.apply(out, None)
    }

    /// How many runs are read together, and the bytes that they are in.
    fn together(&self, runs: &[Run]) -> (usize, Range<u64>) {
        let gap = match &self.stored.kind {
            Kind::Direct(_) => GAP,
            Kind::Steps(view) => view.step(),
            Kind::Stream(_) => SPAN,
        };
        let mut bytes = 0..0;
        let mut count = 0;
        for run in runs {
            let next = self.stored.bytes(run.place, run.len);
            if count == 0 {
                bytes = next;
            } else {
                let end = bytes.end.max(next.end);
                if next.start > bytes.end.saturating_add(gap) || end - bytes.start > SPAN {
                    break;
                }
                bytes.end = end;
            }
            count += 1;
        }
        (count, bytes)
    }

    fn fetch(&mut self, runs: &[Run], bytes: Range<u64>, out: &mut [u8]) -> Result<()> {
        let stored = self.stored;
        if bytes.end > stored.len() {
            let message = format!("{} bytes, {} are needed", stored.len(), bytes.end);
            return Err(Error::malformed("size", message));
        }
        let held = bytes.start >= self.at && bytes.end <= self.at + self.span.len() as u64;
        match (&stored.kind, runs) {
            (Kind::Direct(input), [run]) if stored.bits.is_multiple_of(8) => {
                let (from, len) = (run.out * stored.width(), bytes.end - bytes.start);
                let to = from + as_size(len)?;
                return input.read_into(bytes.start, &mut out[from..to]);
            }
            _ if held => {}
            (Kind::Direct(input), _) => {
                self.span.resize(as_size(bytes.end - bytes.start)?, 0);
                self.at = bytes.start;
                input.read_into(bytes.start, &mut self.span)?;
            }
            (Kind::Steps(view), _) => {
                let step = view.step();
                let from = bytes.start - bytes.start % step;
                let to = bytes.end.next_multiple_of(step).min(view.len());
                view.read(from, to - from, &mut self.span)?;
                self.at = from;
            }
            (Kind::Stream(view), _) => {
                let collected = self.stream(view, &bytes)?;
                return self.copy(runs, &collected, bytes.start, out);
            }
        }
        self.copy(runs, &self.span, self.at, out)
    }

    /// Bytes of a stream, which goes on from where it was if it can.
    fn stream(&mut self, view: &'w View<'a>, bytes: &Range<u64>) -> Result<Vec<u8>> {
        if self.pieces.is_none() || bytes.start < self.at {
            self.pieces = Some(view.pieces()?);
            self.span.clear();
            self.at = 0;
        }
        let mut collected = Vec::new();
        let mut from = bytes.start;
        loop {
            let end = self.at + self.span.len() as u64;
            let to = bytes.end.min(end);
            if from < to {
                let part = as_size(from - self.at)?..as_size(to - self.at)?;
                collected.extend_from_slice(&self.span[part]);
                from = to;
            }
            if from >= bytes.end {
                return Ok(collected);
            }
            self.at = end;
            let more = match &mut self.pieces {
                Some(pieces) => pieces.next(&mut self.span)?,
                None => false,
            };
            if !more {
                let message = format!("{end} bytes, {} are needed", bytes.end);
                return Err(Error::malformed("size", message));
            }
        }
    }

    /// Puts the units of runs from the bytes that hold them to their places.
    fn copy(&self, runs: &[Run], span: &[u8], at: u64, out: &mut [u8]) -> Result<()> {
        let (bits, width) = (self.stored.bits, self.stored.width());
        for run in runs {
            let len = as_size(run.len)?;
            let to = &mut out[run.out * width..(run.out + len) * width];
            let from = as_size(self.stored.bytes(run.place, run.len).start - at)?;
            if bits.is_multiple_of(8) {
                to.copy_from_slice(&span[from..from + len * width]);
                continue;
            }
            // Below a byte: taken from one byte, or from two.
            let mut bit = as_size(run.place % 8 * bits % 8)?;
            let bits = as_size(bits)?;
            let mask = (1u16 << bits) - 1;
            for number in to {
                let byte = from + bit / 8;
                let low = u16::from(span[byte]);
                let high = span.get(byte + 1).map_or(0, |byte| u16::from(*byte));
                let value = (low | high << 8) >> (bit % 8) & mask;
                *number = value.to_le_bytes()[0];
                bit += bits;
            }
        }
        Ok(())
    }
}
