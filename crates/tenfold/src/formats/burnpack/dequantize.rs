//! Quantized values as numbers: a code times its scale.

mod numbers;

use bytes::Bytes;

use super::scheme::{Arrangement, dims};
use super::{BURN_SCHEME, Scale, Scheme, Store};
use crate::error::{Error, Result};
use crate::model::{DType, Decode, TensorInfo, element_count};
use crate::prelude::*;
use numbers::table;

/// Bytes of codes that are held at once where they lie in another order than the elements.
const HELD: u64 = 8 << 20;

/// Turns one tensor's codes and scales into `f32`.
#[derive(Debug)]
pub(super) struct QFloat {
    dims: Vec<u64>,
    codes: Codes,
    scales: Scales,
}

/// Where codes are, and what they mean.
struct Codes {
    /// The number for each value of a byte, or of the bits of a packed code.
    table: Vec<f32>,
    bits: u64,
    /// Codes that lie one after the other, and the bytes from the first of them to the first of the next line.
    line: u64,
    line_len: u64,
    /// The axis that lies innermost in place of the last one.
    axis: usize,
}

impl core::fmt::Debug for Codes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Codes({} bits, lines of {} in {} bytes, axis {})",
            self.bits, self.line, self.line_len, self.axis
        )
    }
}

/// Where scales are.
#[derive(Debug)]
struct Scales {
    dtype: Scale,
    /// Where they begin.
    at: u64,
    blocks: Option<Blocks>,
    /// Where the scale above the blocks is.
    global: Option<u64>,
}

#[derive(Debug)]
struct Blocks {
    /// Elements of a block along every axis.
    size: Vec<u64>,
    /// Scales from one block to the next along every axis.
    stride: Vec<u64>,
}

type Read<'r> = &'r dyn Fn(usize, Range<u64>) -> Result<Bytes>;

impl QFloat {
    /// A decoder of a tensor whose bytes are arranged so; `None` where that is not defined.
    pub(super) fn new(scheme: &Scheme, shape: &[u64], arrangement: Arrangement) -> Option<Self> {
        let dims = dims(shape);
        let axis = scheme.packed_axis(dims.len())?;
        let elements = element_count(&dims)?;
        let (line, line_len, codes_len) = match arrangement {
            Arrangement::Rows => {
                let line = *dims.get(axis)?;
                (line, scheme.line_len(line)?, scheme.row_codes_len(shape)?)
            }
            Arrangement::OneRun => {
                let len = scheme.run_codes_len(shape)?;
                (elements, len, len)
            }
            Arrangement::Unknown => return None,
        };
        let bits = match scheme.store {
            Store::Native => 8,
            _ => scheme.value.bits(),
        };
        let codes = Codes {
            table: table(scheme.value, bits),
            bits: bits.into(),
            line: line.max(1),
            line_len,
            axis,
        };
        let scales = Scales::new(scheme, shape, axis, codes_len)?;
        Some(Self {
            dims,
            codes,
            scales,
        })
    }
}

impl Decode for QFloat {
    fn dtype(&self) -> DType {
        DType::F32
    }

    fn step(&self) -> u64 {
        1
    }

    fn describes(&self) -> &'static [&'static str] {
        &[BURN_SCHEME]
    }

    fn decode(
        &self,
        _: &TensorInfo,
        read: Read<'_>,
        elements: Range<u64>,
        out: &mut [u8],
    ) -> Result<()> {
        let mut numbers = vec![0f32; out.len() / 4];
        if self.codes.axis + 1 == self.dims.len() {
            self.codes.in_order(read, &elements, &mut numbers)?
        } else {
            self.codes
                .swapped(&self.dims, read, &elements, &mut numbers)?
        }
        self.scales
            .apply(&self.dims, read, &elements, &mut numbers)?;
        for (bytes, number) in out.chunks_exact_mut(4).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        Ok(())
    }
}

impl Codes {
    /// The byte that a code is in, by its place in the stored order.
    fn byte(&self, place: u64) -> u64 {
        place / self.line * self.line_len + place % self.line * self.bits / 8
    }

    /// The number that the code at a place means; `bytes` begin at `from`.
    fn number(&self, bytes: &[u8], from: u64, place: u64) -> Result<f32> {
        let index = size(self.byte(place).saturating_sub(from));
        let shift = place % self.line * self.bits % 8;
        let byte = *bytes.get(index).ok_or_else(short)?;
        let mask = u8::MAX >> (8 - self.bits);
        let number = self.table.get(usize::from(byte >> shift & mask));
        number.copied().ok_or_else(short)
    }

    /// Elements that are stored in their own order.
    fn in_order(&self, read: Read<'_>, elements: &Range<u64>, out: &mut [f32]) -> Result<()> {
        if elements.is_empty() {
            return Ok(());
        }
        let from = self.byte(elements.start);
        let bytes = read(0, from..self.byte(elements.end - 1) + 1)?;
        for (number, place) in out.iter_mut().zip(elements.clone()) {
            *number = self.number(&bytes, from, place)?;
        }
        Ok(())
    }

    /// Elements of a tensor that is stored with another axis in place of the last.
    ///
    /// Let the dimensions be `outer.., n, middle.., last`: elements lie as `outer.., last, middle.., n`. So those of one
    /// place in `outer` lie together, and for one place in `middle` and `last` one after the other.
    fn swapped(
        &self,
        dims: &[u64],
        read: Read<'_>,
        elements: &Range<u64>,
        out: &mut [f32],
    ) -> Result<()> {
        let count = |dims: Option<&[u64]>| dims.unwrap_or_default().iter().product::<u64>();
        let n = dims.get(self.axis).copied().unwrap_or(1);
        let last = dims.last().copied().unwrap_or(1);
        let inner = count(dims.get(self.axis + 1..));
        let middle = inner / last.max(1);
        let group = n * inner;
        let mut at = elements.start;
        while at < elements.end {
            let first = at / group * group;
            let here = at - first..(elements.end - first).min(group);
            let stored = self.byte(first)..self.byte(first + group - 1) + 1;
            let held = if stored.end - stored.start <= HELD {
                Some(read(0, stored.clone())?)
            } else {
                None
            };
            for place in 0..inner {
                let line = first + ((place % last) * middle + place / last) * n;
                let from = here.start.saturating_sub(place).div_ceil(inner);
                let to = here.end.saturating_sub(place).div_ceil(inner);
                if from >= to {
                    continue;
                }
                let (bytes, begin) = match &held {
                    Some(held) => (held.clone(), stored.start),
                    None => {
                        let begin = self.byte(line + from);
                        (read(0, begin..self.byte(line + to - 1) + 1)?, begin)
                    }
                };
                for step in from..to {
                    let number = self.number(&bytes, begin, line + step)?;
                    let to = first + step * inner + place - elements.start;
                    *out.get_mut(size(to)).ok_or_else(short)? = number;
                }
            }
            at = first + here.end;
        }
        Ok(())
    }
}

impl Scales {
    fn new(scheme: &Scheme, shape: &[u64], axis: usize, at: u64) -> Option<Self> {
        let Some(block) = &scheme.block else {
            let dtype = scheme.tensor.unwrap_or(Scale::F32);
            return Some(Self {
                dtype,
                at,
                blocks: None,
                global: None,
            });
        };
        let mut grid = scheme.grid(shape)?;
        let rank = grid.len();
        let scales_len = element_count(&grid)?.checked_mul(block.dtype.bytes())?;
        let global = at.checked_add(scales_len)?;
        // Scales lie in the order of the codes.
        grid.swap(axis, rank - 1);
        let mut stride = vec![0; rank];
        let mut blocks = 1u64;
        for (stride, count) in stride.iter_mut().zip(&grid).rev() {
            *stride = blocks;
            blocks = blocks.saturating_mul(*count);
        }
        stride.swap(axis, rank - 1);
        Some(Self {
            dtype: block.dtype,
            at,
            blocks: Some(Blocks {
                size: scheme.block_sizes(rank)?,
                stride,
            }),
            global: scheme.tensor.map(|_| global),
        })
    }

    /// Multiplies codes by their scales.
    fn apply(
        &self,
        dims: &[u64],
        read: Read<'_>,
        elements: &Range<u64>,
        numbers: &mut [f32],
    ) -> Result<()> {
        let width = self.dtype.bytes();
        let Some(blocks) = &self.blocks else {
            let scale = self.dtype.number(&read(0, self.at..self.at + width)?)?;
            numbers.iter_mut().for_each(|number| *number *= scale);
            return Ok(());
        };
        let global = match self.global {
            Some(at) => Scale::F32.number(&read(0, at..at + 4)?)?,
            None => 1.0,
        };
        let mut used: Option<Range<u64>> = None;
        blocks.runs(dims, elements, &mut |_, block| {
            let used = used.get_or_insert(block..block + 1);
            *used = used.start.min(block)..used.end.max(block + 1);
            Ok(())
        })?;
        let Some(used) = used else {
            return Ok(());
        };
        let scales = read(0, self.at + used.start * width..self.at + used.end * width)?;
        blocks.runs(dims, elements, &mut |run, block| {
            let from = size((block - used.start) * width);
            let scale = scales.get(from..from + size(width)).ok_or_else(short)?;
            let scale = self.dtype.number(scale)? * global;
            let run = numbers
                .get_mut(size(run.start)..size(run.end))
                .ok_or_else(short)?;
            run.iter_mut().for_each(|number| *number *= scale);
            Ok(())
        })
    }
}

impl Blocks {
    /// Gives the runs of neighbours in one block, counted from the first element, and the number of the block.
    fn runs(
        &self,
        dims: &[u64],
        elements: &Range<u64>,
        each: &mut dyn FnMut(Range<u64>, u64) -> Result<()>,
    ) -> Result<()> {
        let last = dims.last().copied().unwrap_or(1);
        let (Some(&width), Some(&stride)) = (self.size.last(), self.stride.last()) else {
            return Ok(());
        };
        let mut at = elements.start;
        while at < elements.end {
            let mut row = at / last;
            let row_start = row * last;
            let row_end = (row_start + last).min(elements.end);
            let mut block = 0;
            let axes = dims.iter().zip(&self.size).zip(&self.stride).rev().skip(1);
            for ((dim, size), stride) in axes {
                block += row % dim / size * stride;
                row /= dim;
            }
            while at < row_end {
                let column = (at - row_start) / width;
                let end = (row_start + (column + 1) * width).min(row_end);
                each(
                    at - elements.start..end - elements.start,
                    block + column * stride,
                )?;
                at = end;
            }
        }
        Ok(())
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn short() -> Error {
    Error::malformed(
        "burnpack.quant",
        "the data is shorter than its quantization needs",
    )
}
