//! Elements from anywhere: neighbours are read together, nothing is read twice for a batch.

use crate::error::{Error, Result};
use crate::model::{DType, Endian, Part, Payload};
use crate::prelude::*;
use crate::transform::{Body, Data, Input, Pieces, View, as_size};

/// Bytes that are read together, at most, unless they are wanted together.
const SPAN: u64 = 1 << 20;
/// Bytes that are asked for at once where answers come late.
const AT_ONCE: u64 = 8 << 20;

/// Runs of neighbouring stored units, and where they go in a batch.
#[derive(Debug, Default)]
pub(in crate::transform) struct Runs(Vec<Run>);

#[derive(Clone, Copy, Debug)]
struct Run {
    place: u64,
    len: u64,
    out: usize,
}

impl Runs {
    /// One run that begins a batch.
    pub(in crate::transform) fn of(place: u64, len: u64) -> Self {
        Self(vec![Run { place, len, out: 0 }])
    }

    /// Adds units; those that follow the last ones here and there make one run with them.
    pub(in crate::transform) fn push(&mut self, place: u64, len: u64, out: usize) {
        match self.0.last_mut() {
            Some(run) if run.place + run.len == place && run.out as u64 + run.len == out as u64 => {
                run.len += len;
            }
            _ => self.0.push(Run { place, len, out }),
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Units in their stored order: elements, or the numbers that they consist of where these are less than a byte.
pub(in crate::transform) struct Stored<'a> {
    kind: Kind<'a>,
    /// Of a unit.
    bits: u64,
    /// Units of an element.
    units: u64,
    endian: Endian,
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
    /// The elements of a part.
    pub(in crate::transform) fn part(data: Data<'a>, part: &Part) -> Result<Self> {
        let stored = Self::view(View::decoded(data, &part.payload)?, part.dtype);
        Ok(Self {
            endian: part.endian,
            ..stored
        })
    }

    /// The elements of a part, held in memory where it can only be read from the beginning.
    pub(in crate::transform) fn random(data: Data<'a>, part: &Part) -> Result<Self> {
        let stored = Self::part(data, part)?;
        if !stored.is_stream() {
            return Ok(stored);
        }
        Ok(Self {
            kind: Kind::Direct(data.random_access(&part.payload)?),
            ..stored
        })
    }

    /// The same bytes, counted in units of so many bytes instead of elements.
    pub(in crate::transform) fn in_units(self, width: u64) -> Self {
        Self {
            bits: width * 8,
            units: 1,
            ..self
        }
    }

    /// Records of any width.
    pub(in crate::transform) fn records(
        data: Data<'a>,
        payload: &Payload,
        width: u64,
    ) -> Result<Self> {
        let stored = Self::view(View::decoded(data, payload)?, DType::U8);
        Ok(Self {
            bits: width * 8,
            ..stored
        })
    }

    /// The little-endian elements of a view.
    pub(in crate::transform) fn view(view: View<'a>, dtype: DType) -> Self {
        let kind = match &view.body {
            Body::Direct(input) if view.map.is_identity() => Kind::Direct(input.clone()),
            _ if view.is_random() => Kind::Steps(view),
            _ => Kind::Stream(view),
        };
        let (bits, units) = match (dtype.width(), dtype) {
            (Some(width), _) => (width as u64 * 8, 1),
            (None, DType::Number(scalar, lanes)) => (scalar.bits().into(), lanes.count().into()),
            (None, _) => (8, 1),
        };
        Self {
            kind,
            bits,
            units,
            endian: Endian::Little,
        }
    }

    /// Whether reading at a place costs reading everything before it.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::Stream(_))
    }

    /// The byte order of the elements.
    pub(super) fn endian(&self) -> Endian {
        self.endian
    }

    /// Bits of a unit.
    pub(super) fn bits(&self) -> u64 {
        self.bits
    }

    /// Units of an element.
    pub(super) fn units(&self) -> u64 {
        self.units
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

/// Reads runs of units.
pub(in crate::transform) struct Gather<'w, 'a> {
    stored: &'w Stored<'a>,
    /// Bytes that were read last, and where they are stored.
    span: Vec<u8>,
    at: u64,
    /// The stream that the span is a piece of.
    pieces: Option<Pieces<'w>>,
}

impl<'w, 'a> Gather<'w, 'a> {
    pub(in crate::transform) fn new(stored: &'w Stored<'a>) -> Self {
        Self {
            stored,
            span: Vec::new(),
            at: 0,
            pieces: None,
        }
    }

    /// Makes `out` hold `count` units, those of the runs where these go, zeros elsewhere.
    pub(in crate::transform) fn fill(
        &mut self,
        runs: &mut Runs,
        count: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        out.clear();
        out.resize(count * self.stored.width(), 0);
        self.fill_into(runs, out)
    }

    /// Puts the units of the runs to their places in `out`, which comes filled with zeros.
    pub(super) fn fill_into(&mut self, runs: &mut Runs, out: &mut [u8]) -> Result<()> {
        runs.0.sort_unstable_by_key(|run| run.place);
        let mut rest = runs.0.as_slice();
        if let Kind::Direct(input) = &self.stored.kind
            && input.is_late()
        {
            return self.fill_at_once(input, rest, out);
        }
        while !rest.is_empty() {
            let (count, bytes) = self.together(rest);
            let (now, later) = rest.split_at(count);
            self.fetch(now, bytes, out)?;
            rest = later;
        }
        Ok(())
    }

    /// The same from an input whose answers come late: many are asked for at once.
    fn fill_at_once(&self, input: &Input<'_>, mut rest: &[Run], out: &mut [u8]) -> Result<()> {
        while !rest.is_empty() {
            let (mut asked, mut groups, mut ranges) = (0, Vec::new(), Vec::new());
            while !rest.is_empty() && asked < AT_ONCE {
                let (count, bytes) = self.together(rest);
                self.check(&bytes)?;
                asked += bytes.end - bytes.start;
                let (now, later) = rest.split_at(count);
                groups.push(now);
                ranges.push(bytes);
                rest = later;
            }
            let read = input.read_ranges(&ranges)?;
            for ((runs, range), bytes) in groups.into_iter().zip(ranges).zip(read) {
                self.copy(runs, &bytes, range.start, out)?;
            }
        }
        Ok(())
    }

    fn check(&self, bytes: &Range<u64>) -> Result<()> {
        if bytes.end > self.stored.len() {
            let message = format!("{} bytes, but {} are needed", self.stored.len(), bytes.end);
            return Err(Error::malformed("size", message));
        }
        Ok(())
    }

    /// How many runs are read together, and the bytes that they are in.
    fn together(&self, runs: &[Run]) -> (usize, Range<u64>) {
        let gap = match &self.stored.kind {
            Kind::Direct(input) => input.gap(),
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
        self.check(&bytes)?;
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
                let message = format!("{end} bytes, but {} are needed", bytes.end);
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
