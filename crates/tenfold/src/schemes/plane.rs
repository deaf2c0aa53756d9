//! Matrices of numbers as they lie in a part, packed in one way or another.

use core::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;

use super::bits;
use crate::error::{Error, Result};
use crate::io::as_size;
use crate::model::Scalar;
use crate::prelude::*;
use crate::transform::{Block, Buffers, Numbers};

/// Gives bytes of a part.
pub(super) type Read<'r> = &'r dyn Fn(usize, Range<u64>) -> Result<Bytes>;

/// Bytes that are read at once for the sake of a part of them, at most, and how many times the part they may be.
const SPAN: u64 = 8 << 20;
const SPARE: u64 = 4;
/// Bytes that are looked through at once.
const LOOK: u64 = 1 << 20;
/// Sides of the squares that are turned together.
const SQUARE: usize = 16;

/// Matrices of numbers of one size behind each other in a part.
#[derive(Debug)]
pub(super) struct Plane {
    pub(super) part: usize,
    /// Of a matrix as it is stored, in numbers.
    pub(super) rows: u64,
    pub(super) cols: u64,
    pub(super) packing: Packing,
    pub(super) values: Values,
    /// Rows and columns are exchanged when it is read.
    pub(super) turned: bool,
}

/// How numbers lie in a part.
#[derive(Clone, Copy, Debug)]
pub(super) enum Packing {
    /// Each in bytes of its own.
    Numbers(Scalar),
    /// A stream of bits along each row, the lowest first; a row begins every `row_len` bytes.
    Along { bits: u32, row_len: u64 },
    /// As many codes along a row as go into a word of 32 bits whole.
    Padded { bits: u32, row_len: u64 },
    /// A stream of bits down each column, in words of 32 bits.
    Down { bits: u32 },
    /// As many codes down a column as go into a word of 32 bits whole.
    PaddedDown { bits: u32 },
    /// Eight codes of 4 bits in a word, in the order that AWQ's kernels want.
    Interleaved,
    /// Two codes in a byte, the first in the high bits.
    HighFirst,
    /// `height` rows of words, each of which holds a code of several rows: that of row `p * height + t` is field `p` of row `t`.
    Fields {
        bits: u32,
        height: u64,
        /// Bytes of a word.
        width: u64,
        /// Where field 0 begins, and whether those that follow are below it.
        first: u32,
        falling: bool,
    },
}

/// Which number a code stands for.
#[derive(Debug)]
pub(super) enum Values {
    /// Its own.
    Same,
    /// So much less.
    Less(u8),
    /// The next one; 0 for the last.
    Next,
    /// That of a small floating-point type.
    Scalar(Scalar),
    /// The same of 4 bits, without a negative zero.
    E2m1OneZero,
    /// The number at its place in a part of `f32`.
    Listed(usize),
    /// Its own where all codes are the same certain one, else the next.
    SameIfAll(u8, Once),
}

/// Something that follows from the data and is looked up once.
#[derive(Debug, Default)]
pub(super) struct Once(AtomicU8);

impl Once {
    /// What `look` finds. Threads that ask at the same time all look, and find the same.
    pub(super) fn get(&self, look: impl FnOnce() -> Result<bool>) -> Result<bool> {
        match self.0.load(Ordering::Relaxed) {
            0 => {
                let found = look()?;
                self.0.store(1 + u8::from(found), Ordering::Relaxed);
                Ok(found)
            }
            known => Ok(known == 2),
        }
    }
}

/// A rectangle of a matrix.
#[derive(Clone, Debug)]
pub(super) struct Rect {
    pub(super) matrix: u64,
    pub(super) rows: Range<u64>,
    pub(super) cols: Range<u64>,
}

impl Rect {
    fn turned(&self) -> Self {
        Self {
            matrix: self.matrix,
            rows: self.cols.clone(),
            cols: self.rows.clone(),
        }
    }

    pub(super) fn height(&self) -> Result<usize> {
        as_size(self.rows.end - self.rows.start)
    }

    pub(super) fn width(&self) -> Result<usize> {
        as_size(self.cols.end - self.cols.start)
    }
}

impl Plane {
    /// Numbers of a type, row after row.
    pub(super) fn numbers(part: usize, scalar: Scalar, rows: u64, cols: u64) -> Self {
        Self {
            part,
            rows,
            cols,
            packing: Packing::Numbers(scalar),
            values: Values::Same,
            turned: false,
        }
    }

    /// Codes that stand for themselves.
    pub(super) fn codes(part: usize, packing: Packing, rows: u64, cols: u64) -> Self {
        Self {
            packing,
            ..Self::numbers(part, Scalar::U8, rows, cols)
        }
    }

    pub(super) fn meaning(self, values: Values) -> Self {
        Self { values, ..self }
    }

    pub(super) fn turned(self) -> Self {
        let turned = !self.turned;
        Self { turned, ..self }
    }

    /// Rows and columns as they are read.
    pub(super) fn size(&self) -> (u64, u64) {
        if self.turned {
            (self.cols, self.rows)
        } else {
            (self.rows, self.cols)
        }
    }

    /// Bytes that so many matrices take at least; `None` where that does not fit 64 bits.
    pub(super) fn bytes(&self, matrices: u64) -> Option<u64> {
        let (rows, len) = match self.packing {
            Packing::Numbers(scalar) => (self.rows, self.cols.checked_mul(width_of(scalar))?),
            Packing::Along { bits, row_len } => {
                let used = self.cols.checked_mul(bits.into())?.div_ceil(8);
                (self.rows, (used <= row_len).then_some(row_len)?)
            }
            Packing::Padded { bits, row_len } => {
                let used = self.cols.div_ceil(u64::from(32 / bits)).checked_mul(4)?;
                (self.rows, (used <= row_len).then_some(row_len)?)
            }
            Packing::Down { bits } => {
                let words = self.rows.checked_mul(bits.into())?.div_ceil(32);
                (words, self.cols.checked_mul(4)?)
            }
            Packing::PaddedDown { bits } => {
                let words = self.rows.div_ceil(u64::from(32 / bits));
                (words, self.cols.checked_mul(4)?)
            }
            Packing::Interleaved => (self.rows, self.cols.div_ceil(8).checked_mul(4)?),
            Packing::HighFirst => (self.rows, self.cols.div_ceil(2)),
            Packing::Fields {
                bits,
                height,
                width,
                first,
                falling,
            } => {
                let fields = if falling {
                    first / bits + 1
                } else {
                    u32::try_from(width.checked_mul(8)?).ok()? / bits
                };
                let held = height.checked_mul(fields.into())?;
                (held >= self.rows).then_some(())?;
                (height, self.cols.checked_mul(width)?)
            }
        };
        rows.checked_mul(len)?.checked_mul(matrices)
    }

    /// The part that lists the numbers for codes, and its bytes.
    pub(super) fn list(&self) -> Option<(usize, u64)> {
        match self.values {
            Values::Listed(part) => Some((part, 4 << self.bits().min(8))),
            _ => None,
        }
    }

    /// The numbers of a rectangle, row after row.
    pub(super) fn read(&self, read: Read<'_>, rect: &Rect, out: &mut Vec<f32>) -> Result<()> {
        out.clear();
        if !self.turned {
            return self.read_stored(read, rect, out);
        }
        let mut stored = Vec::new();
        self.read_stored(read, &rect.turned(), &mut stored)?;
        turn(&stored, rect.height()?, rect.width()?, out);
        Ok(())
    }

    fn read_stored(&self, read: Read<'_>, rect: &Rect, out: &mut Vec<f32>) -> Result<()> {
        if let (Packing::Numbers(scalar), Values::Same) = (self.packing, &self.values) {
            let width = width_of(scalar);
            let bytes = self.fetch(read, rect, self.cols * width, width)?;
            return numbers(scalar, &bytes, rect, out);
        }
        let mut codes = Vec::new();
        self.read_codes(read, rect, &mut codes)?;
        let table = self.table(read)?;
        // A code has no more bits than the table has places for.
        out.extend(codes.iter().map(|&code| table[usize::from(code)]));
        Ok(())
    }

    /// The codes of a rectangle, a byte each.
    fn read_codes(&self, read: Read<'_>, rect: &Rect, codes: &mut Vec<u8>) -> Result<()> {
        let (height, width) = (rect.height()?, rect.width()?);
        codes.reserve(height.saturating_mul(width));
        if height == 0 || width == 0 {
            return Ok(());
        }
        let (from, to) = (rect.cols.start, rect.cols.end);
        let base = |row_len: u64| rect.matrix * self.rows * row_len;
        let lines = |row_len: u64, within: Range<u64>| {
            let at = base(row_len);
            fetch(read, self.part, at, row_len, &rect.rows, &within)
        };
        let rows_of_words = |words: Range<u64>| {
            let within = from * 4..to * 4;
            fetch(read, self.part, 0, self.cols * 4, &words, &within)
        };
        match self.packing {
            Packing::Numbers(_) => {
                let bytes = lines(self.cols, from..to)?;
                codes.extend_from_slice(&bytes);
            }
            Packing::Along { bits, row_len } => {
                let bit = |col: u64| col * u64::from(bits);
                let bytes = lines(row_len, bit(from) / 8..bit(to).div_ceil(8))?;
                let skip = as_size(bit(from) % 8)?;
                for row in rows_of(&bytes, height) {
                    bits::along(row, skip, bits, width, codes);
                }
            }
            Packing::Padded { bits, row_len } => {
                let per = u64::from(32 / bits);
                let bytes = lines(row_len, from / per * 4..to.div_ceil(per) * 4)?;
                let skip = as_size(from % per)?;
                for row in rows_of(&bytes, height) {
                    bits::padded(row, skip, bits, width, codes);
                }
            }
            Packing::HighFirst => {
                let bytes = lines(self.cols.div_ceil(2), from / 2..to.div_ceil(2))?;
                let skip = as_size(from % 2)?;
                for row in rows_of(&bytes, height) {
                    bits::high_first(row, skip, width, codes);
                }
            }
            Packing::Interleaved => {
                let bytes = lines(self.cols.div_ceil(8) * 4, from / 8 * 4..to.div_ceil(8) * 4)?;
                let skip = as_size(from % 8)?;
                for row in rows_of(&bytes, height) {
                    bits::interleaved(row, skip, width, codes);
                }
            }
            Packing::Down { bits } => {
                let bit = |row: u64| row * u64::from(bits);
                let words = bit(rect.rows.start) / 32..bit(rect.rows.end).div_ceil(32);
                let bytes = rows_of_words(words)?;
                let skip = as_size(bit(rect.rows.start) % 32)?;
                bits::down(&bytes, width, skip, bits, height, codes);
            }
            Packing::PaddedDown { bits } => {
                let per = u64::from(32 / bits);
                let words = rect.rows.start / per..rect.rows.end.div_ceil(per);
                let bytes = rows_of_words(words)?;
                let skip = as_size(rect.rows.start % per)?;
                bits::padded_down(&bytes, width, skip, bits, height, codes);
            }
            Packing::Fields { .. } => self.read_fields(read, rect, codes)?,
        }
        Ok(())
    }

    fn read_fields(&self, read: Read<'_>, rect: &Rect, codes: &mut Vec<u8>) -> Result<()> {
        let Packing::Fields {
            bits,
            height,
            width,
            first,
            falling,
        } = self.packing
        else {
            return Ok(());
        };
        let within = rect.cols.start * width..rect.cols.end * width;
        let mut row = rect.rows.start;
        while row < rect.rows.end {
            let (field, at) = (row / height, row % height);
            let count = (height - at).min(rect.rows.end - row);
            let lines = at..at + count;
            let bytes = fetch(read, self.part, 0, self.cols * width, &lines, &within)?;
            // There are at most 32 fields.
            let by = u32::try_from(field).unwrap_or(0) * bits;
            let shift = if falling {
                first.saturating_sub(by)
            } else {
                first + by
            };
            bits::fields(&bytes, as_size(width)?, shift, bits, codes);
            row += count;
        }
        Ok(())
    }

    fn fetch(&self, read: Read<'_>, rect: &Rect, row_len: u64, width: u64) -> Result<Bytes> {
        let within = rect.cols.start * width..rect.cols.end * width;
        let base = rect.matrix * self.rows * row_len;
        fetch(read, self.part, base, row_len, &rect.rows, &within)
    }

    fn bits(&self) -> u32 {
        match self.packing {
            Packing::Numbers(scalar) => scalar.bits(),
            Packing::Along { bits, .. }
            | Packing::Padded { bits, .. }
            | Packing::Down { bits }
            | Packing::PaddedDown { bits }
            | Packing::Fields { bits, .. } => bits,
            Packing::Interleaved | Packing::HighFirst => 4,
        }
    }

    /// The number for every code.
    fn table(&self, read: Read<'_>) -> Result<Vec<f32>> {
        // Codes of more than 8 bits are numbers.
        let count = 1u16 << self.bits().min(8);
        let each = |value: &dyn Fn(u16) -> f32| (0..count).map(value).collect();
        Ok(match &self.values {
            Values::Same => each(&f32::from),
            Values::Less(less) => each(&|code| f32::from(code) - f32::from(*less)),
            Values::Next => each(&|code| f32::from((code + 1) % count)),
            Values::Scalar(scalar) => each(&|code| narrow(scalar.to_f64(code.into()))),
            Values::E2m1OneZero => each(&|code| narrow(Scalar::F4E2M1.to_f64(code.into())) + 0.0),
            Values::Listed(part) => {
                let bytes = read(*part, 0..u64::from(count) * 4)?;
                let numbers = bytes.as_chunks().0.iter();
                numbers.map(|bytes| f32::from_le_bytes(*bytes)).collect()
            }
            Values::SameIfAll(only, known) => {
                if known.get(|| self.is_all(read, *only))? {
                    each(&f32::from)
                } else {
                    each(&|code| f32::from((code + 1) % count))
                }
            }
        })
    }

    /// Whether all codes are this one.
    fn is_all(&self, read: Read<'_>, only: u8) -> Result<bool> {
        let step = (LOOK / self.cols.max(1)).max(1);
        let mut codes = Vec::new();
        let mut row = 0;
        while row < self.rows {
            let rows = row..self.rows.min(row + step);
            let mut col = 0;
            while col < self.cols {
                let cols = col..self.cols.min(col + LOOK);
                col = cols.end;
                codes.clear();
                let rows = rows.clone();
                let matrix = 0;
                self.read_codes(read, &Rect { matrix, rows, cols }, &mut codes)?;
                if codes.iter().any(|code| *code != only) {
                    return Ok(false);
                }
            }
            row = rows.end;
        }
        Ok(true)
    }
}

/// Bytes of a number: types of less than a byte are packed in other ways.
fn width_of(scalar: Scalar) -> u64 {
    u64::from(scalar.bits() / 8).max(1)
}

/// `f32` has all numbers of the small types.
#[allow(clippy::cast_possible_truncation)]
fn narrow(number: f64) -> f32 {
    number as f32
}

fn numbers(scalar: Scalar, bytes: &[u8], rect: &Rect, out: &mut Vec<f32>) -> Result<()> {
    let count = rect.height()?.saturating_mul(rect.width()?);
    let mut buffers = Buffers::default();
    match Numbers::new(scalar).decode(bytes, count, &mut buffers) {
        Block::Narrow(numbers) => out.extend_from_slice(numbers),
        Block::Wide(numbers) => out.extend(numbers.iter().map(|&number| narrow(number))),
    }
    if out.len() == count {
        Ok(())
    } else {
        Err(short())
    }
}

/// The same bytes of several rows, one row behind the other.
fn fetch(
    read: Read<'_>,
    part: usize,
    base: u64,
    row_len: u64,
    rows: &Range<u64>,
    within: &Range<u64>,
) -> Result<Bytes> {
    let count = rows.end - rows.start;
    let width = within.end - within.start;
    let first = base + rows.start * row_len + within.start;
    if count <= 1 || width == row_len {
        return read(part, first..first + count * width);
    }
    let wanted = count * width;
    let span = (count - 1) * row_len + width;
    let mut packed = Vec::with_capacity(as_size(wanted)?);
    if span <= SPAN && span <= wanted.saturating_mul(SPARE) {
        let bytes = read(part, first..first + span)?;
        for row in bytes.chunks(as_size(row_len)?) {
            packed.extend_from_slice(row.get(..as_size(width)?).ok_or_else(short)?);
        }
    } else {
        for row in 0..count {
            let at = first + row * row_len;
            packed.extend_from_slice(&read(part, at..at + width)?);
        }
    }
    Ok(packed.into())
}

fn rows_of(bytes: &[u8], count: usize) -> core::slice::ChunksExact<'_, u8> {
    bytes.chunks_exact((bytes.len() / count.max(1)).max(1))
}

/// Exchanges rows and columns: what comes out has `height` rows of `width` numbers.
fn turn(stored: &[f32], height: usize, width: usize, out: &mut Vec<f32>) {
    out.resize(stored.len(), 0.0);
    for top in (0..height).step_by(SQUARE) {
        for left in (0..width).step_by(SQUARE) {
            for row in top..height.min(top + SQUARE) {
                let line = &mut out[row * width..(row + 1) * width];
                for col in left..width.min(left + SQUARE) {
                    line[col] = stored[col * height + row];
                }
            }
        }
    }
}

pub(super) fn short() -> Error {
    Error::malformed("quantized.shape", "a part is shorter than it should be")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(packing: Packing, rows: u64, cols: u64) -> Plane {
        Plane::codes(0, packing, rows, cols)
    }

    fn whole(plane: &Plane, bytes: &[u8]) -> Vec<f32> {
        let (rows, cols) = plane.size();
        let rect = Rect {
            matrix: 0,
            rows: 0..rows,
            cols: 0..cols,
        };
        part(plane, bytes, &rect)
    }

    fn part(plane: &Plane, bytes: &[u8], rect: &Rect) -> Vec<f32> {
        let mut out = Vec::new();
        let read = |_: usize, range: Range<u64>| {
            let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            Ok(Bytes::copy_from_slice(&bytes[range]))
        };
        plane.read(&read, rect, &mut out).unwrap();
        out
    }

    /// Numbers without a pattern that a wrong place could repeat.
    fn noise(len: u64) -> Vec<u8> {
        let mut state = 1u32;
        let next = (0..len).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()[3]
        });
        next.collect()
    }

    #[test]
    fn a_rectangle_is_the_same_as_in_the_whole() {
        let along = |bits: u32| Packing::Along {
            bits,
            row_len: (37 * u64::from(bits)).div_ceil(32) * 4,
        };
        let padded = |bits: u32| Packing::Padded {
            bits,
            row_len: 37u64.div_ceil(u64::from(32 / bits)) * 4,
        };
        let fields = Packing::Fields {
            bits: 3,
            height: 6,
            width: 4,
            first: 27,
            falling: true,
        };
        let low = Packing::Fields {
            bits: 2,
            height: 14,
            width: 1,
            first: 0,
            falling: false,
        };
        let mut packings = vec![
            Packing::Numbers(Scalar::F8E4M3),
            Packing::Numbers(Scalar::I32),
            Packing::HighFirst,
            Packing::Interleaved,
            fields,
            low,
        ];
        for bits in 2..=8 {
            packings.extend([along(bits), padded(bits)]);
            packings.extend([Packing::Down { bits }, Packing::PaddedDown { bits }]);
        }
        for packing in packings {
            for turned in [false, true] {
                let mut plane = plane(packing, 53, 37);
                plane.turned = turned;
                let bytes = noise(plane.bytes(1).unwrap());
                let all = whole(&plane, &bytes);
                let (rows, cols) = plane.size();
                for (r, c) in [
                    (0..rows, 5..6),
                    (3..4, 0..cols),
                    (7..30, 9..36),
                    (35..37, 1..34),
                ] {
                    let rect = Rect {
                        matrix: 0,
                        rows: r.clone(),
                        cols: c.clone(),
                    };
                    let some = part(&plane, &bytes, &rect);
                    let mut at = 0;
                    for row in r {
                        for col in c.clone() {
                            let place = usize::try_from(row * cols + col).unwrap();
                            let same = some[at].to_bits() == all[place].to_bits();
                            assert!(same, "{packing:?} {turned} {row} {col}");
                            at += 1;
                        }
                    }
                    assert_eq!(at, some.len());
                }
            }
        }
    }

    #[test]
    fn a_part_that_is_too_short_for_its_rows_is_noticed() {
        let row_len = 8;
        assert_eq!(
            plane(Packing::Along { bits: 3, row_len }, 2, 22).bytes(1),
            None
        );
        assert_eq!(
            plane(Packing::Along { bits: 3, row_len }, 2, 21).bytes(3),
            Some(48)
        );
        assert_eq!(
            plane(Packing::Padded { bits: 3, row_len }, 2, 21).bytes(1),
            None
        );
        assert_eq!(plane(Packing::Down { bits: 3 }, 32, 5).bytes(1), Some(60));
        assert_eq!(plane(Packing::Down { bits: 4 }, u64::MAX, 5).bytes(1), None);
        let padded = |rows| plane(Packing::PaddedDown { bits: 3 }, rows, 5).bytes(1);
        assert_eq!(
            (padded(30), padded(31), padded(u64::MAX)),
            (Some(60), Some(80), None)
        );
    }
}
