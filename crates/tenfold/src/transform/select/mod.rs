//! Some elements of a tensor, in the order of a selection, reading only the bytes that they need.
//!
//! Where the wanted elements are stored is computed for a batch of them, the places are sorted, and neighbours are read
//! together. Elements below a byte are gathered one to a byte and packed again at the end.

mod gather;
mod lines;

pub(super) use gather::{Gather, Runs, Stored};
pub(super) use lines::Lines;

use crate::error::Result;
use crate::model::Endian;
use crate::prelude::*;
use crate::transform::layouts::{Boxes, Exchange, Scatter};
use crate::transform::{as_size, overflow};

/// Units that are gathered at once, at most: what their places take is bounded too. A multiple of 8, so that a batch of
/// units below a byte ends with a byte.
const BATCH: u64 = 1 << 19;

/// Selected elements of a tensor.
pub(super) struct Selected<'a> {
    from: From<'a>,
    /// Units in all: elements, or the numbers that they consist of where these are less than a byte.
    units: u64,
    /// Of a unit.
    bits: u64,
}

enum From<'a> {
    /// Every element has its place.
    Placed(Stored<'a>, Lines),
    /// Every element has its place, or that of the one at exchanged indices.
    Exchanged(Stored<'a>, Box<Exchange>),
    /// What is not 0, by place in the result.
    Listed(Scatter),
    /// In chunks that are decoded one by one.
    Boxes(Box<Boxes<'a>>),
}

impl<'a> Selected<'a> {
    /// Elements that have a place each.
    pub(super) fn placed(stored: Stored<'a>, lines: Lines) -> Result<Self> {
        let lines = lines.times(stored.units())?;
        Ok(Self {
            units: counted(lines.units())?,
            bits: stored.bits(),
            from: From::Placed(stored, lines),
        })
    }

    /// Elements that have a place each, or that of another.
    pub(super) fn exchanged(stored: Stored<'a>, exchange: Exchange) -> Result<Self> {
        Ok(Self {
            units: counted(exchange.elements())?,
            bits: stored.bits(),
            from: From::Exchanged(stored, Box::new(exchange)),
        })
    }

    /// Elements of which only those that are not 0 are known, `elements` in all.
    pub(super) fn listed(scatter: Scatter, elements: Option<u64>) -> Result<Self> {
        Ok(Self {
            units: counted(elements)?,
            bits: scatter.width() as u64 * 8,
            from: From::Listed(scatter),
        })
    }

    /// Elements in chunks.
    pub(super) fn boxes(boxes: Boxes<'a>) -> Result<Self> {
        Ok(Self {
            units: counted(boxes.elements())?,
            bits: boxes.width() as u64 * 8,
            from: From::Boxes(Box::new(boxes)),
        })
    }

    /// The byte order of the elements.
    pub(super) fn endian(&self) -> Endian {
        match &self.from {
            From::Boxes(boxes) => boxes.endian(),
            From::Placed(stored, _) | From::Exchanged(stored, _) => stored.endian(),
            From::Listed(_) => Endian::Little,
        }
    }

    /// Whether it can be entered anywhere at no great cost.
    pub(super) fn is_random(&self) -> bool {
        match &self.from {
            From::Placed(stored, _) | From::Exchanged(stored, _) => !stored.is_stream(),
            From::Listed(_) | From::Boxes(_) => true,
        }
    }

    /// Bytes that hold whole elements.
    pub(super) fn step_len(&self) -> u64 {
        if let From::Boxes(boxes) = &self.from {
            return boxes.step_len();
        }
        // Units below a byte fill one together in eights.
        let unit = if self.bits < 8 {
            self.bits
        } else {
            self.bits / 8
        };
        128 * unit
    }

    /// Reads neighbouring elements; better than one by one when they are read in order.
    pub(super) fn reader(&self) -> Reader<'_, 'a> {
        let gather = match &self.from {
            From::Placed(stored, _) | From::Exchanged(stored, _) => Some(Gather::new(stored)),
            From::Listed(_) | From::Boxes(_) => None,
        };
        Reader {
            selected: self,
            gather,
            runs: Runs::default(),
            exchanged: Vec::new(),
            numbers: Vec::new(),
        }
    }
}

fn counted(units: Option<u64>) -> Result<u64> {
    units.ok_or_else(|| overflow("the number of elements"))
}

/// Reads selected elements.
pub(super) struct Reader<'s, 'a> {
    selected: &'s Selected<'a>,
    gather: Option<Gather<'s, 'a>>,
    runs: Runs,
    exchanged: Vec<usize>,
    /// Units below a byte, a byte for each.
    numbers: Vec<u8>,
}

impl Reader<'_, '_> {
    /// The bytes from `at` on, which is at a multiple of [`step_len`](Selected::step_len); `out` comes filled with zeros.
    pub(super) fn read_into(&mut self, at: u64, out: &mut [u8]) -> Result<()> {
        let Selected { from, units, bits } = self.selected;
        match from {
            From::Listed(scatter) => {
                scatter.read_into(at, out);
                return Ok(());
            }
            From::Boxes(boxes) => return boxes.read_into(at, out),
            From::Placed(..) | From::Exchanged(..) => {}
        }
        // Eight units are as many bytes as a unit has bits.
        let mut first = if *bits < 8 {
            at / bits * 8
        } else {
            at / (bits / 8)
        };
        for out in out.chunks_mut(as_size(BATCH / 8 * bits)?) {
            let count = BATCH.min(units.saturating_sub(first));
            let count = count.min(out.len() as u64 * 8 / bits);
            let batch = first..first + count;
            first = batch.end;
            if *bits >= 8 {
                self.gather(batch, out)?;
                continue;
            }
            let mut numbers = core::mem::take(&mut self.numbers);
            numbers.clear();
            numbers.resize(as_size(count)?, 0);
            self.gather(batch, &mut numbers)?;
            pack(&numbers, *bits, out);
            self.numbers = numbers;
        }
        Ok(())
    }

    /// Some neighbouring units, each in bytes of its own.
    fn gather(&mut self, batch: Range<u64>, out: &mut [u8]) -> Result<()> {
        let Some(gather) = &mut self.gather else {
            return Ok(());
        };
        self.runs.clear();
        self.exchanged.clear();
        match &self.selected.from {
            From::Placed(_, lines) => lines.runs(batch, &mut self.runs)?,
            From::Exchanged(_, exchange) => {
                exchange.runs(batch, &mut self.runs, &mut self.exchanged)?;
            }
            From::Listed(_) | From::Boxes(_) => {}
        }
        gather.fill_into(&mut self.runs, out)?;
        if let From::Exchanged(stored, exchange) = &self.selected.from {
            let width = stored.width();
            for &at in &self.exchanged {
                exchange.apply(&mut out[at * width..(at + 1) * width]);
            }
        }
        Ok(())
    }
}

/// Numbers of a byte each become neighbouring bits, the first in the lowest.
fn pack(numbers: &[u8], bits: u64, out: &mut [u8]) {
    let (mut word, mut filled) = (0u32, 0);
    let mut bytes = out.iter_mut();
    let mut put = |word: u32| {
        if let Some(byte) = bytes.next() {
            *byte = word.to_le_bytes()[0];
        }
    };
    for &number in numbers {
        word |= u32::from(number) << filled;
        filled += bits;
        while filled >= 8 {
            put(word);
            word >>= 8;
            filled -= 8;
        }
    }
    if filled > 0 {
        put(word);
    }
}
