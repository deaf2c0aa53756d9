//! What is done to every element by itself: byte order, casts, true and false as 1 and 0.

use crate::error::{Error, Result};
use crate::model::{BlockSpec, CastCounts, DType, Endian, Lanes, Scalar};
use crate::prelude::*;
use crate::transform::cast::{Cast, Tally};
use crate::transform::{as_size, endian, overflow};

/// A change of every number by itself.
pub(crate) struct ElementMap {
    /// Bytes of stored numbers and of the wanted ones that they become; 1 and 1 when nothing changes.
    from_unit: usize,
    to_unit: usize,
    /// How many stored numbers that are: one, or eight where not every number has whole bytes.
    numbers: usize,
    change: Change,
}

enum Change {
    Nothing,
    /// The numbers in blocks get the other byte order.
    Blocks(&'static BlockSpec),
    /// Any byte but 0 is true, and true is 1.
    Bool,
    Cast(Casting),
    Swap(usize),
}

/// Other numbers, and more of them in an element where that is wanted.
struct Casting {
    from: Scalar,
    to: Scalar,
    cast: Cast,
    swaps_stored: bool,
    swaps_wanted: bool,
    /// Numbers of an element before and after.
    lanes: (usize, usize),
    /// Numbers that do not fit are an error.
    strict: bool,
}

impl ElementMap {
    /// From numbers as stored to numbers as wanted. A wanted bool is always 0 or 1.
    pub(crate) fn new(
        from: DType,
        from_endian: Endian,
        to: DType,
        to_endian: Endian,
    ) -> Result<Self> {
        if from != to {
            return Self::cast(from, from_endian, to, to_endian);
        }
        let mut map = Self::identity();
        if matches!(from, DType::Number(Scalar::Bool, _)) {
            map.change = Change::Bool;
        } else if from_endian == to_endian {
            return Ok(map);
        } else if let DType::Block(spec) = from {
            map.from_unit = spec.bytes as usize;
            map.change = Change::Blocks(spec);
        } else if from.swap_width() > 1 {
            map.from_unit = from.swap_width();
            map.change = Change::Swap(map.from_unit);
        }
        map.to_unit = map.from_unit;
        Ok(map)
    }

    fn cast(from: DType, from_endian: Endian, to: DType, to_endian: Endian) -> Result<Self> {
        let refused =
            |why: &str| Error::unsupported("cast", format!("{from} does not convert to {to}{why}"));
        let (DType::Number(a, from_lanes), DType::Number(b, to_lanes)) = (from, to) else {
            return Err(refused(""));
        };
        let lanes = (from_lanes.count() as usize, to_lanes.count() as usize);
        if lanes.0 > lanes.1 {
            return Err(refused(", which has fewer numbers in an element"));
        }
        let whole = a.bits() >= 8 && b.bits() >= 8;
        if lanes.0 < lanes.1 && !whole {
            return Err(refused(
                ", which has more numbers in an element, in one step",
            ));
        }
        // Eight numbers of as many bits as there are bytes.
        let numbers = match (whole, lanes.0 < lanes.1) {
            (true, false) => 1,
            (true, true) => lanes.0,
            (false, _) => 8,
        };
        let bytes = |scalar: Scalar, numbers: usize| scalar.bits() as usize * numbers / 8;
        let more = |numbers: usize| {
            if lanes.0 == lanes.1 {
                numbers
            } else {
                numbers / lanes.0 * lanes.1
            }
        };
        Ok(Self {
            from_unit: bytes(a, numbers),
            to_unit: bytes(b, more(numbers)),
            numbers,
            change: Change::Cast(Casting {
                from: a,
                to: b,
                cast: Cast::new(a, b),
                swaps_stored: from_endian == Endian::Big && from.swap_width() > 1,
                swaps_wanted: to_endian == Endian::Big && to.swap_width() > 1,
                lanes,
                strict: false,
            }),
        })
    }

    pub(crate) fn identity() -> Self {
        Self {
            from_unit: 1,
            to_unit: 1,
            numbers: 1,
            change: Change::Nothing,
        }
    }

    /// Makes a number that does not fit an error that shows it.
    pub(crate) fn strict(mut self) -> Self {
        if let Change::Cast(casting) = &mut self.change {
            casting.strict = true;
        }
        self
    }

    pub(crate) fn is_identity(&self) -> bool {
        matches!(self.change, Change::Nothing)
    }

    /// Whether numbers stay where they are.
    pub(crate) fn is_in_place(&self) -> bool {
        !matches!(self.change, Change::Cast(_))
    }

    /// Whether stored bytes are cast as they are, without a change of their order before.
    pub(crate) fn casts_shared(&self) -> bool {
        matches!(&self.change, Change::Cast(casting) if !casting.swaps_stored)
    }

    /// Whether every wanted number has bytes of its own.
    pub(crate) fn has_whole_bytes(&self) -> bool {
        self.numbers != 8
    }

    /// Stored bytes that hold whole numbers: `least`, or the next that do.
    pub(crate) fn whole(&self, least: u64) -> u64 {
        least.next_multiple_of(self.from_unit as u64)
    }

    /// Whether stored bytes hold whole numbers only.
    pub(crate) fn is_whole(&self, stored: u64) -> bool {
        stored.is_multiple_of(self.from_unit as u64)
    }

    /// Wanted bytes for stored ones that are whole.
    pub(crate) fn output_len(&self, stored: u64) -> Result<u64> {
        let units = stored / self.from_unit as u64;
        let rest = self.wanted_bytes(self.numbers_in(stored % self.from_unit as u64));
        units
            .checked_mul(self.to_unit as u64)
            .and_then(|bytes| bytes.checked_add(rest))
            .ok_or_else(|| overflow("the size after the cast"))
    }

    /// Wanted bytes for stored ones that are whole, in memory or a place inside something that is.
    pub(crate) fn scale(&self, stored: u64) -> u64 {
        (stored / self.from_unit as u64).saturating_mul(self.to_unit as u64)
    }

    /// Stored bytes for wanted ones that are whole.
    pub(crate) fn unscale(&self, wanted: u64) -> u64 {
        (wanted / self.to_unit as u64).saturating_mul(self.from_unit as u64)
    }

    /// How many numbers stored bytes hold at most.
    pub(crate) fn numbers_in(&self, stored: u64) -> u64 {
        match &self.change {
            Change::Cast(casting) => stored.saturating_mul(8) / u64::from(casting.from.bits()),
            _ => stored,
        }
    }

    /// How many stored numbers come before a wanted byte at which whole numbers begin.
    pub(crate) fn numbers_before(&self, wanted: u64) -> u64 {
        (wanted / self.to_unit as u64).saturating_mul(self.numbers as u64)
    }

    /// Wanted bytes for few stored numbers.
    fn wanted_bytes(&self, numbers: u64) -> u64 {
        match &self.change {
            Change::Cast(casting) => {
                let numbers = match casting.lanes {
                    (before, after) if before == after => numbers,
                    (before, after) => numbers / before as u64 * after as u64,
                };
                (numbers * u64::from(casting.to.bits())).div_ceil(8)
            }
            _ => numbers,
        }
    }

    /// Turns stored numbers into wanted ones that have the same places.
    pub(crate) fn apply_in_place(&self, bytes: &mut [u8]) {
        match self.change {
            Change::Blocks(spec) => spec.swap(bytes),
            Change::Bool => bytes
                .iter_mut()
                .for_each(|byte| *byte = u8::from(*byte != 0)),
            Change::Swap(width) => endian::swap(bytes, width),
            Change::Nothing | Change::Cast(_) => {}
        }
    }

    /// Gives stored numbers the byte order that a cast needs.
    pub(crate) fn prepare(&self, stored: &mut [u8]) {
        if let Change::Cast(casting) = &self.change
            && casting.swaps_stored
        {
            endian::swap(stored, casting.from.bits() as usize / 8);
        }
    }

    /// Casts as many stored numbers, prepared, into as many bytes as they need.
    pub(crate) fn cast_into(
        &self,
        numbers: u64,
        stored: &[u8],
        out: &mut [u8],
        tally: Option<&Tally>,
    ) -> Result<()> {
        let Change::Cast(casting) = &self.change else {
            return Ok(());
        };
        let numbers = as_size(numbers)?;
        let counts = if casting.lanes.0 == casting.lanes.1 {
            casting.cast.apply(numbers, stored, out)
        } else {
            casting.spread(numbers, stored, out)
        };
        if casting.strict && !counts.is_clean() {
            let shown = casting.cast.misfit(numbers, stored).unwrap_or_default();
            let message = format!("{shown} does not fit {}", casting.to.name());
            return Err(Error::mismatch("cast", message));
        }
        if let Some(tally) = tally {
            tally.add(counts);
        }
        if casting.swaps_wanted {
            endian::swap(out, casting.to.bits() as usize / 8);
        }
        Ok(())
    }

    /// Turns all of some stored numbers into wanted ones.
    pub(crate) fn apply(&self, bytes: &mut Vec<u8>, tally: Option<&Tally>) -> Result<()> {
        if self.is_in_place() {
            self.apply_in_place(bytes);
            return Ok(());
        }
        let numbers = self.numbers_in(bytes.len() as u64);
        let mut wanted = vec![0; as_size(self.output_len(bytes.len() as u64)?)?];
        self.prepare(bytes);
        self.cast_into(numbers, bytes, &mut wanted, tally)?;
        *bytes = wanted;
        Ok(())
    }
}

impl Casting {
    /// Casts the numbers of elements that get more numbers, which are 0.
    fn spread(&self, numbers: usize, stored: &[u8], out: &mut [u8]) -> CastCounts {
        let width = self.to.bits() as usize / 8;
        let mut cast = vec![0; numbers * width];
        let counts = self.cast.apply(numbers, stored, &mut cast);
        let elements = cast.chunks_exact(width * self.lanes.0);
        out.fill(0);
        for (element, out) in elements.zip(out.chunks_exact_mut(width * self.lanes.1)) {
            out[..element.len()].copy_from_slice(element);
        }
        counts
    }
}

/// What is wrong with numbers that are read as bools.
pub(crate) fn check_bools(dtype: DType, bytes: &[u8]) -> Option<String> {
    let word = |bytes: &[u8]| bytes.first_chunk().map(|word| u32::from_le_bytes(*word));
    match dtype {
        DType::U32 => {
            let bad = bytes.chunks(4).filter_map(word).find(|&word| word > 1)?;
            Some(format!("a bool is stored as {bad}, expected 0 or 1"))
        }
        _ => None,
    }
}

/// What is wrong with the content of decoded bytes of a type: bytes that are not a value of it.
///
/// `last` says that these bytes end the part, and `elements` how many elements the whole part has.
pub(crate) fn check_content(
    dtype: DType,
    bytes: &[u8],
    last: bool,
    elements: u64,
) -> Option<String> {
    match dtype {
        DType::Number(Scalar::Bool, _) => {
            let bad = bytes.iter().find(|&&byte| byte > 1)?;
            Some(format!("a bool is stored as byte {bad}, expected 0 or 1"))
        }
        DType::Number(scalar, Lanes::Real) if scalar.bits() < 8 && last => {
            let used = elements % 8 * u64::from(scalar.bits()) % 8;
            let byte = *bytes.last()?;
            let unused = if used == 0 { 0 } else { byte >> used };
            (unused != 0)
                .then(|| format!("the unused bits of the last byte {byte:#04x} are not zero"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
