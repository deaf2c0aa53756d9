//! Stored bytes: in a source or in memory.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::{Limits, Source, read_exactly};
use crate::model::{Payload, SourceId};
use crate::prelude::*;
use crate::threads::Control;
use crate::transform::planes::Woven;
use crate::transform::{Parked, Tally, View};

/// The files of an archive, and how much may be asked of them.
#[derive(Clone, Copy)]
pub(crate) struct Data<'a> {
    pub(crate) sources: &'a [Arc<dyn Source>],
    pub(crate) limits: &'a Limits,
    /// Where casts are counted, if they are.
    pub(crate) tally: Option<&'a Tally>,
    /// Who may stop what is read from them, between two steps.
    pub(crate) control: Option<&'a Control>,
    /// Decoders that stopped where others may go on.
    pub(crate) parked: Option<&'a Parked>,
    /// How many threads make one tensor; 0 is one for every core.
    pub(crate) threads: usize,
}

/// Bytes that are read between two looks at whether the work was stopped.
const STEP: usize = 1 << 20;

impl<'a> Data<'a> {
    /// Read by one thread that nobody watches.
    pub(crate) fn new(sources: &'a [Arc<dyn Source>], limits: &'a Limits) -> Self {
        Self {
            sources,
            limits,
            tally: None,
            control: None,
            parked: None,
            threads: 1,
        }
    }

    /// The same with its casts counted.
    pub(crate) fn counted(self, tally: &'a Tally) -> Self {
        let tally = Some(tally);
        Self { tally, ..self }
    }

    /// The stored bytes of a payload.
    pub(crate) fn input(self, payload: &Payload) -> Result<Input<'a>> {
        match payload {
            Payload::Raw { source, range } | Payload::Encoded { source, range, .. } => {
                Ok(Input::Source {
                    id: *source,
                    source: self.source(*source)?,
                    range: range.clone(),
                    control: self.control,
                })
            }
            Payload::Inline(bytes) => Ok(Input::Memory(bytes.clone())),
            Payload::Lazy { len, maker } => {
                let bytes = maker.make()?;
                if bytes.len() as u64 == *len {
                    Ok(Input::Memory(bytes))
                } else {
                    let message = format!("{} bytes were made, not {len}", bytes.len());
                    Err(Error::argument(message))
                }
            }
            Payload::Planes(planes) => Woven::open(self, planes).map(Input::Woven),
            Payload::Chunks(_) | Payload::Derived { .. } => {
                Err(Error::argument("data that is not stored cannot be read"))
            }
        }
    }

    /// The bytes of a payload after decompression, to be entered anywhere: held whole where they are compressed, or come
    /// in order.
    pub(crate) fn random_access(self, payload: &Payload) -> Result<Input<'a>> {
        let is_woven = matches!(payload, Payload::Planes(_));
        if is_woven || !payload.is_encoded() && !self.is_in_order(payload) {
            return self.input(payload);
        }
        let whole = View::decoded(self, payload)?.collect(self.limits.tensor_memory)?;
        Ok(Input::Memory(whole.into()))
    }

    /// Whether the bytes of a payload are to be read from the first on.
    pub(crate) fn is_in_order(self, payload: &Payload) -> bool {
        let source = payload.stored().and_then(|(id, _)| self.source(id).ok());
        source.is_some_and(Source::is_in_order)
    }

    /// The bytes of a payload, where they are in memory as they are.
    pub(crate) fn shared(self, payload: &Payload) -> Option<Bytes> {
        match payload {
            Payload::Raw { source, range } => {
                let source = self.sources.get(source.index())?;
                if !source.is_memory() {
                    return None;
                }
                let bytes = source.read(range.clone()).ok()?;
                (bytes.len() as u64 == range.end.saturating_sub(range.start)).then_some(bytes)
            }
            Payload::Inline(bytes) => Some(bytes.clone()),
            Payload::Encoded { .. }
            | Payload::Chunks(_)
            | Payload::Planes(_)
            | Payload::Lazy { .. }
            | Payload::Derived { .. } => None,
        }
    }

    /// Bytes of a file.
    pub(crate) fn read(self, id: SourceId, range: Range<u64>) -> Result<Bytes> {
        let read = read_exactly(self.source(id)?, range.clone());
        read.map_err(|error| place(error, id, &range))
    }

    fn source(self, id: SourceId) -> Result<&'a dyn Source> {
        match self.sources.get(id.index()) {
            Some(source) => Ok(&**source),
            None => Err(Error::argument(format!("there is no file {}", id.0))),
        }
    }
}

/// Stored bytes.
#[derive(Clone)]
pub(crate) enum Input<'a> {
    Memory(Bytes),
    Source {
        id: SourceId,
        source: &'a dyn Source,
        range: Range<u64>,
        control: Option<&'a Control>,
    },
    /// Put together from several.
    Woven(Arc<Woven<'a>>),
}

impl Input<'_> {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Input::Memory(bytes) => bytes.len() as u64,
            Input::Source { range, .. } => range.end.saturating_sub(range.start),
            Input::Woven(woven) => woven.len(),
        }
    }

    /// Fills `out` with the bytes from `at` on.
    pub(crate) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        match self {
            Input::Memory(bytes) => Source::read_into(bytes, at, out),
            Input::Woven(woven) => woven.read_into(at, out),
            Input::Source {
                id,
                source,
                range,
                control,
            } => {
                let from = range.start.saturating_add(at);
                let read = |from, out: &mut [u8]| {
                    let read = source.read_into(from, out);
                    read.map_err(|error| place(error, *id, range))
                };
                let at_once = source.is_memory() || self.is_late();
                let Some(control) = control.filter(|_| !at_once) else {
                    if let Some(control) = control {
                        control.check()?;
                    }
                    return read(from, out);
                };
                let places = (from..).step_by(STEP);
                for (out, from) in out.chunks_mut(STEP).zip(places) {
                    control.check()?;
                    read(from, out)?;
                }
                Ok(())
            }
        }
    }

    /// The bytes `at..at + len`, shared where they already are in memory.
    pub(crate) fn read(&self, at: u64, len: u64) -> Result<Bytes> {
        match self {
            Input::Memory(bytes) => Source::read(bytes, at..at.saturating_add(len)),
            Input::Woven(woven) => woven.read(at, len),
            Input::Source {
                id,
                source,
                range,
                control,
            } => {
                if let Some(control) = control {
                    control.check()?;
                }
                let from = range.start.saturating_add(at);
                read_exactly(*source, from..from.saturating_add(len))
                    .map_err(|error| place(error, *id, range))
            }
        }
    }

    /// The bytes of several ranges, asked for at once.
    pub(crate) fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        match self {
            Input::Memory(bytes) => bytes.read_ranges(ranges),
            Input::Woven(woven) => {
                let ranges = ranges.iter();
                let read = |range: &Range<u64>| woven.read(range.start, range.end - range.start);
                ranges.map(read).collect()
            }
            Input::Source {
                id,
                source,
                range,
                control,
            } => {
                if let Some(control) = control {
                    control.check()?;
                }
                let place_of = |at: u64| range.start.saturating_add(at);
                let wanted = ranges.iter();
                let wanted = wanted.map(|wanted| place_of(wanted.start)..place_of(wanted.end));
                let wanted: Vec<Range<u64>> = wanted.collect();
                let read = crate::io::read_ranges_exactly(*source, &wanted);
                read.map_err(|error| place(error, *id, range))
            }
        }
    }

    /// How many bytes between two ranges cost less than another read.
    pub(crate) fn gap(&self) -> u64 {
        match self {
            Input::Memory(_) => 0,
            Input::Source { source, .. } => source.gap(),
            Input::Woven(woven) => woven.inputs().map(Input::gap).max().unwrap_or(0),
        }
    }

    /// Whether answers come late, so that it pays to ask for much at once.
    pub(crate) fn is_late(&self) -> bool {
        match self {
            Input::Memory(_) => false,
            Input::Source { source, .. } => source.concurrency().is_some(),
            Input::Woven(woven) => woven.inputs().any(Input::is_late),
        }
    }

    /// Whether reading shares memory.
    pub(crate) fn is_memory(&self) -> bool {
        match self {
            Input::Memory(_) => true,
            Input::Source { source, .. } => source.is_memory(),
            // Made each time.
            Input::Woven(_) => false,
        }
    }

    /// Whether it is to be read from its first byte on.
    pub(crate) fn is_in_order(&self) -> bool {
        match self {
            Input::Memory(_) | Input::Woven(_) => false,
            Input::Source { source, .. } => source.is_in_order(),
        }
    }

    /// The file and the range in it, for messages.
    pub(crate) fn place(&self) -> Option<(SourceId, Range<u64>)> {
        match self {
            Input::Memory(_) => None,
            Input::Source { id, range, .. } => Some((*id, range.clone())),
            Input::Woven(woven) => woven.inputs().find_map(Input::place),
        }
    }
}

/// The bytes of inputs whose answers come late, asked for together where there are several; `None` for all others.
pub(crate) fn read_together(inputs: &[Option<&Input<'_>>]) -> Result<Vec<Option<Bytes>>> {
    let mut known: Vec<Option<Bytes>> = inputs.iter().map(|_| None).collect();
    let mut late = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        if let Some(Input::Source {
            id, source, range, ..
        }) = input
            && source.concurrency().is_some()
        {
            late.push((*id, number, *source, range));
        }
    }
    if late.len() < 2 {
        return Ok(known);
    }
    late.sort_by_key(|(id, ..)| id.index());
    for of_one in late.chunk_by(|(a, ..), (b, ..)| a == b) {
        let Some((id, _, source, _)) = of_one.first() else {
            continue;
        };
        let ranges: Vec<Range<u64>> = of_one.iter().map(|(.., range)| (*range).clone()).collect();
        let read = crate::io::read_ranges_exactly(*source, &ranges).map_err(|error| {
            let range = error.range().map_or(0..0, |(_, range)| range);
            place(error, *id, &range)
        })?;
        for ((_, number, ..), bytes) in of_one.iter().zip(read) {
            known[*number] = Some(bytes);
        }
    }
    Ok(known)
}

fn place(error: Error, id: SourceId, range: &Range<u64>) -> Error {
    let at = error.range().map_or_else(|| range.clone(), |(_, at)| at);
    error.at_source(id, at)
}
