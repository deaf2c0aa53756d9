//! Codes and scales as numbers.

use core::fmt;

use bytes::Bytes;

use super::plane::{Once, Plane, Read, Rect, short};
use crate::error::{Error, Result};
use crate::io::as_size;
use crate::model::{DType, Decode, Scheme, TensorInfo};
use crate::prelude::*;

/// Numbers that are made together where they lie in another order than they are wanted.
const TURNED: u64 = 1 << 18;
/// Places of a list of groups that are looked through at once.
const LOOK: u64 = 1 << 18;

/// How the numbers of one tensor are made: a code for each, and a scale for a block of them.
///
/// Everything is computed in `f32`, each operation rounded by itself, in the order in which the packages have them.
pub(super) struct Quant {
    /// The tensor, row after row, is so many matrices of this size.
    pub(super) matrices: u64,
    pub(super) rows: u64,
    pub(super) cols: u64,
    pub(super) codes: Plane,
    pub(super) scale: Grid,
    /// Zero points, biases, shifts.
    pub(super) other: Option<Grid>,
    pub(super) formula: Formula,
    pub(super) then: Then,
    /// Where columns do not belong to blocks in their order.
    pub(super) order: Option<Order>,
}

/// What a number is made of: a code `q`, a scale `s`, and another number `z`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Formula {
    /// `q * s`
    Times,
    /// `q / s`
    Over,
    /// `(q - z) * s`
    Offset,
    /// `q * s + z`
    Plus,
}

/// What is done to every number at the end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    Nothing,
    Times(f32),
    Plus(f32),
}

/// One number for each block of a matrix; blocks at the edges may be cut.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) numbers: Numbers,
    /// Rows and columns of a block.
    pub(super) block: [u64; 2],
    /// One number for all of them.
    pub(super) global: Option<Global>,
    /// There is one grid for all matrices.
    pub(super) shared: bool,
}

/// Where the numbers of a grid come from.
#[derive(Debug)]
pub(super) enum Numbers {
    Plane(Plane),
    /// Quantized themselves.
    Quant(Box<Quant>),
}

/// What a number of all blocks does to each of theirs, before it is used.
#[derive(Debug)]
pub(super) struct Global {
    pub(super) number: Plane,
    pub(super) divides: bool,
}

/// Which block each column belongs to.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) blocks: Plane,
    /// A place below 0 among them means that columns belong to blocks in their order; it is an error otherwise.
    pub(super) may_be_plain: bool,
    pub(super) is_plain: Once,
}

impl fmt::Debug for Quant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quant")
            .field("codes", &self.codes)
            .field("scale", &self.scale)
            .field("formula", &self.formula)
            .finish_non_exhaustive()
    }
}

impl Quant {
    /// Codes times scales, of one matrix.
    pub(super) fn new(codes: Plane, scale: Grid) -> Self {
        let (rows, cols) = codes.size();
        Self {
            matrices: 1,
            rows,
            cols,
            codes,
            scale,
            other: None,
            formula: Formula::Times,
            then: Then::Nothing,
            order: None,
        }
    }

    pub(super) fn matrices(self, matrices: u64) -> Self {
        Self { matrices, ..self }
    }

    pub(super) fn with(self, formula: Formula, other: impl Into<Option<Grid>>) -> Self {
        let other = other.into();
        Self {
            formula,
            other,
            ..self
        }
    }

    pub(super) fn then(self, then: Then) -> Self {
        Self { then, ..self }
    }

    /// Everything that is read, with the bytes that each part has at least: `None` where that does not fit 64 bits, or
    /// numbers do not cover the matrix.
    pub(super) fn needs(&self) -> Option<Vec<(usize, u64)>> {
        let mut needs = vec![(self.codes.part, self.codes.bytes(self.matrices)?)];
        needs.extend(self.codes.list());
        let (rows, cols) = self.codes.size();
        let fits = rows >= self.rows && cols >= self.cols;
        fits.then_some(())?;
        let grids = [Some(&self.scale), self.other.as_ref()];
        for grid in grids.into_iter().flatten() {
            let (rows, cols) = grid.size();
            let [height, width] = grid.block;
            let covers = |count: u64, block: u64, of: u64| {
                block > 0 && count.checked_mul(block).is_none_or(|all| all >= of)
            };
            let listed = self.order.is_some() && cols <= self.cols;
            let covered =
                covers(rows, height, self.rows) && (covers(cols, width, self.cols) || listed);
            covered.then_some(())?;
            let matrices = if grid.shared { 1 } else { self.matrices };
            match &grid.numbers {
                Numbers::Plane(plane) => needs.push((plane.part, plane.bytes(matrices)?)),
                Numbers::Quant(quant) => needs.extend(quant.needs()?),
            }
            if let Some(global) = &grid.global {
                needs.push((global.number.part, global.number.bytes(1)?));
            }
        }
        if let Some(order) = &self.order {
            let plane = &order.blocks;
            (plane.cols >= self.cols).then_some(())?;
            needs.push((plane.part, plane.bytes(1)?));
        }
        Some(needs)
    }

    /// The numbers of a rectangle, row after row.
    fn rect(&self, read: Read<'_>, rect: &Rect, out: &mut Vec<f32>) -> Result<()> {
        self.codes.read(read, rect, out)?;
        let blocks = self.blocks_of(read, &rect.cols)?;
        let scale = Lines::new(&self.scale, read, rect, &blocks)?;
        let other = self.other.as_ref();
        let other = other.map(|grid| Lines::new(grid, read, rect, &blocks));
        let other = other.transpose()?;
        let width = rect.width()?.max(1);
        let (mut scales, mut others) = (vec![0.0; width], vec![0.0; width]);
        let (mut last, mut last_other) = (None, None);
        for (row, line) in rect.rows.clone().zip(out.chunks_exact_mut(width)) {
            scale.spread(row, &mut last, &blocks, &mut scales)?;
            if let Some(other) = &other {
                other.spread(row, &mut last_other, &blocks, &mut others)?;
            }
            self.formula.apply(line, &scales, &others);
            self.then.apply(line);
        }
        Ok(())
    }

    /// Which block along the columns each of some columns belongs to.
    fn blocks_of(&self, read: Read<'_>, cols: &Range<u64>) -> Result<Blocks> {
        match &self.order {
            Some(order) if !order.is_plain(read)? => {
                let places = order.places(read, cols)?;
                let runs = places.chunk_by(|a, b| a == b);
                let runs = runs.filter_map(|run| Some((run.len(), *run.first()?)));
                Ok(Blocks::Listed(runs.collect()))
            }
            _ => Ok(Blocks::InOrder(cols.clone())),
        }
    }
}

impl Formula {
    fn apply(self, codes: &mut [f32], scales: &[f32], others: &[f32]) {
        let pairs = codes.iter_mut().zip(scales);
        match self {
            Formula::Times => pairs.for_each(|(q, s)| *q *= s),
            Formula::Over => pairs.for_each(|(q, s)| *q /= s),
            Formula::Offset => pairs.zip(others).for_each(|((q, s), z)| *q = (*q - z) * s),
            Formula::Plus => pairs.zip(others).for_each(|((q, s), z)| {
                // Rounded in between, as the packages do.
                let product = *q * s;
                *q = product + z;
            }),
        }
    }
}

impl Then {
    fn apply(self, numbers: &mut [f32]) {
        match self {
            Then::Nothing => {}
            Then::Times(by) => numbers.iter_mut().for_each(|number| *number *= by),
            Then::Plus(more) => numbers.iter_mut().for_each(|number| *number += more),
        }
    }
}

impl Order {
    fn is_plain(&self, read: Read<'_>) -> Result<bool> {
        if !self.may_be_plain {
            return Ok(false);
        }
        self.is_plain.get(|| {
            let (all, mut at) = (self.blocks.cols, 0);
            while at < all {
                let cols = at..all.min(at + LOOK);
                at = cols.end;
                if self.numbers(read, &cols)?.iter().any(|&place| place < 0.0) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    fn places(&self, read: Read<'_>, cols: &Range<u64>) -> Result<Vec<u64>> {
        // What is no whole number from 0 on is none that a tensor of integers has.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let place = |(col, &number): (u64, &f32)| {
            if number >= 0.0 {
                Ok(number as u64)
            } else {
                let message = format!("column {col} belongs to group {number}");
                Err(Error::malformed("quantized.index", message))
            }
        };
        let numbers = self.numbers(read, cols)?;
        cols.clone().zip(&numbers).map(place).collect()
    }

    fn numbers(&self, read: Read<'_>, cols: &Range<u64>) -> Result<Vec<f32>> {
        let mut numbers = Vec::new();
        let rect = Rect {
            matrix: 0,
            rows: 0..1,
            cols: cols.clone(),
        };
        self.blocks.read(read, &rect, &mut numbers)?;
        Ok(numbers)
    }
}

/// Which block along the columns each column of a rectangle belongs to.
enum Blocks {
    /// These columns, in their order.
    InOrder(Range<u64>),
    /// How many neighbours belong to which.
    Listed(Vec<(usize, u64)>),
}

impl Grid {
    pub(super) fn new(plane: Plane, block: [u64; 2]) -> Self {
        Self {
            numbers: Numbers::Plane(plane),
            block,
            global: None,
            shared: false,
        }
    }

    fn size(&self) -> (u64, u64) {
        match &self.numbers {
            Numbers::Plane(plane) => plane.size(),
            Numbers::Quant(quant) => (quant.rows, quant.cols),
        }
    }

    fn read(&self, read: Read<'_>, rect: &Rect) -> Result<Vec<f32>> {
        let mut out = Vec::new();
        match &self.numbers {
            Numbers::Plane(plane) => plane.read(read, rect, &mut out)?,
            Numbers::Quant(quant) => quant.rect(read, rect, &mut out)?,
        }
        if let Some(Global { number, divides }) = &self.global {
            let rect = Rect {
                matrix: 0,
                rows: 0..1,
                cols: 0..1,
            };
            let mut global = Vec::new();
            number.read(read, &rect, &mut global)?;
            let &global = global.first().ok_or_else(short)?;
            let each = out.iter_mut();
            if *divides {
                each.for_each(|number| *number /= global);
            } else {
                each.for_each(|number| *number *= global);
            }
        }
        Ok(out)
    }
}

/// The numbers of the blocks that a rectangle lies in.
struct Lines {
    numbers: Vec<f32>,
    /// The blocks that they are of.
    rows: Range<u64>,
    cols: Range<u64>,
    block: [u64; 2],
}

impl Lines {
    fn new(grid: &Grid, read: Read<'_>, rect: &Rect, blocks: &Blocks) -> Result<Self> {
        let [height, width] = grid.block;
        let (_, count) = grid.size();
        let cols = match blocks {
            Blocks::InOrder(cols) => cols.start / width..cols.end.div_ceil(width),
            Blocks::Listed(runs) => {
                let places = runs.iter().map(|(_, place)| *place);
                let first = places.clone().min().unwrap_or(0);
                let last = places.max().unwrap_or(0);
                if last >= count {
                    let message = format!("a column belongs to group {last} of {count}");
                    return Err(Error::malformed("quantized.index", message));
                }
                first..last + 1
            }
        };
        let rows = rect.rows.start / height..rect.rows.end.div_ceil(height);
        let wanted = Rect {
            matrix: if grid.shared { 0 } else { rect.matrix },
            rows: rows.clone(),
            cols: cols.clone(),
        };
        Ok(Self {
            numbers: grid.read(read, &wanted)?,
            rows,
            cols,
            block: grid.block,
        })
    }

    /// Puts the number of its block to every column of a row, unless that was done for the row before already.
    fn spread(
        &self,
        row: u64,
        last: &mut Option<u64>,
        blocks: &Blocks,
        out: &mut [f32],
    ) -> Result<()> {
        let [height, width] = self.block;
        let line = row / height;
        if last.replace(line) == Some(line) {
            return Ok(());
        }
        let len = as_size(self.cols.end - self.cols.start)?;
        let at = as_size(line - self.rows.start)? * len;
        let numbers = self.numbers.get(at..at + len).ok_or_else(short)?;
        match blocks {
            Blocks::InOrder(cols) => {
                let mut col = cols.start;
                let mut rest = out;
                for number in numbers {
                    let end = (col / width + 1).saturating_mul(width).min(cols.end);
                    let (these, others) = rest
                        .split_at_mut_checked(as_size(end - col)?)
                        .ok_or_else(short)?;
                    these.fill(*number);
                    (rest, col) = (others, end);
                }
            }
            Blocks::Listed(runs) => {
                let mut rest = out;
                for (len, place) in runs {
                    let number = numbers.get(as_size(place - self.cols.start)?);
                    let (these, others) = rest.split_at_mut_checked(*len).ok_or_else(short)?;
                    these.fill(*number.ok_or_else(short)?);
                    rest = others;
                }
            }
        }
        Ok(())
    }
}

/// A quantized tensor as `f32`.
#[derive(Debug)]
pub(super) struct Decoder {
    pub(super) quant: Quant,
    pub(super) scheme: Scheme,
}

impl Decode for Decoder {
    fn dtype(&self) -> DType {
        DType::F32
    }

    fn step(&self) -> u64 {
        1
    }

    fn stretch(&self) -> u64 {
        if self.quant.codes.turned {
            (TURNED / self.quant.cols.max(1)).max(1) * self.quant.cols.max(1)
        } else {
            1
        }
    }

    fn scheme(&self) -> Option<&Scheme> {
        Some(&self.scheme)
    }

    fn decode(
        &self,
        _: &TensorInfo,
        read: &dyn Fn(usize, Range<u64>) -> Result<Bytes>,
        elements: Range<u64>,
        out: &mut [u8],
    ) -> Result<()> {
        let Quant { rows, cols, .. } = self.quant;
        let (mut at, mut out) = (elements.start, out);
        let mut numbers = Vec::new();
        while at < elements.end {
            let (line, col) = (at / cols, at % cols);
            let (matrix, row) = (line / rows, line % rows);
            let left = elements.end - at;
            // The rest of a row, or as many whole rows as there are.
            let rect = if col > 0 || left < cols {
                Rect {
                    matrix,
                    rows: row..row + 1,
                    cols: col..cols.min(col + left),
                }
            } else {
                Rect {
                    matrix,
                    rows: row..row + (left / cols).min(rows - row),
                    cols: 0..cols,
                }
            };
            self.quant.rect(read, &rect, &mut numbers)?;
            at += (rect.rows.end - rect.rows.start) * (rect.cols.end - rect.cols.start);
            let (these, others) = out
                .split_at_mut_checked(numbers.len() * 4)
                .ok_or_else(short)?;
            for (bytes, number) in these.as_chunks_mut().0.iter_mut().zip(&numbers) {
                *bytes = number.to_le_bytes();
            }
            out = others;
        }
        Ok(())
    }
}
