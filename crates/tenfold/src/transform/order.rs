//! Row-major to column-major and back, rectangle by rectangle.
//!
//! A row-major tensor is the column-major one of the reversed shape, so one direction serves both. In column-major order
//! the first index runs fastest. The result is a matrix: a row for every first index, a column for every choice of the
//! others, and a column is stored as one run of neighbouring elements. A rectangle of it is gathered column by column into
//! a small buffer, which is turned in the cache.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::model::{Layout, Part, Payload};
use crate::prelude::*;
use crate::transform::{Data, Input, View, as_size, overflow};

/// Bytes of the buffer that is turned at once: it stays in the cache.
const BUFFER: usize = 64 << 10;
/// Columns in it, at most and where they are long at least.
const MOST_COLUMNS: usize = 256;
const LEAST_COLUMNS: usize = 16;
/// Columns begin this many bytes apart more than they are long: at equal places of equally far lines they would fight for
/// the same places of the cache.
const PAD: usize = 128;
/// Bytes of a piece of whole rows, at most.
const STRIP: u64 = 16 << 20;
/// Bytes of a column of a piece that are worth a read of their own.
const LONG_RUN: u64 = 1 << 10;
/// Bytes of a column that are read at once, and of a row of a rectangle that is written run by run.
const TILE_SIDE: u64 = 4 << 10;
/// Bytes of such a rectangle.
#[cfg(feature = "std")]
const TILE: u64 = 4 << 20;
/// Columns that are no further apart than this are fetched together.
const NEAR: u64 = 2 << 10;
/// Bytes that are fetched together then.
const WINDOW: u64 = 256 << 10;

/// A dense tensor in the other order.
pub(super) struct Reorder<'a> {
    input: Input<'a>,
    /// The stored bytes, where they are in memory.
    memory: Option<Bytes>,
    rows: u64,
    columns: u64,
    /// The dimensions behind the first, in stored order.
    others: Vec<u64>,
    width: usize,
}

/// Rows and columns of the result.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Rectangle {
    rows: Range<u64>,
    columns: Range<u64>,
}

impl<'a> Reorder<'a> {
    pub(super) fn new(
        data: Data<'a>,
        values: &Part,
        shape: &[u64],
        stored: &Layout,
    ) -> Result<Self> {
        let width = values.dtype.width().ok_or_else(|| {
            Error::unsupported("order", format!("{} has no other order", values.dtype))
        })?;
        let mut others = shape.to_vec();
        if *stored == Layout::RowMajor {
            others.reverse();
        }
        let rows = others.remove(0);
        let columns = others.iter().copied().try_fold(1, u64::checked_mul);
        let columns = columns.ok_or_else(|| overflow("the size of a row"))?;
        let input = match &values.payload {
            // It cannot be entered in the middle: held whole.
            Payload::Encoded { .. } => {
                let whole = View::part(data, values, values.dtype, values.endian)?;
                Input::Memory(whole.collect(data.limits.tensor_memory)?.into())
            }
            payload => data.input(payload)?,
        };
        let memory = match input.is_memory() {
            true => Some(input.read(0, input.len())?),
            false => None,
        };
        Ok(Self {
            input,
            memory,
            rows,
            columns,
            others,
            width,
        })
    }

    /// Bytes of a piece of the result that is made at once: whole rows where that is possible, so many that the columns
    /// of the piece are long.
    pub(super) fn piece_len(&self, usual: u64) -> u64 {
        let row = self.row_len();
        if row > STRIP {
            return usual;
        }
        let rows = usual / row;
        let wanted = (LONG_RUN / self.width as u64).min(STRIP / row);
        let rows = match self.memory {
            Some(_) => rows,
            None => rows.max(wanted),
        };
        row * rows.clamp(1, self.rows.max(1))
    }

    fn row_len(&self) -> u64 {
        self.columns * self.width as u64
    }

    /// The bytes of the result from `at` on, which is at an element.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let width = self.width as u64;
        let mut place = at / width;
        let end = place + out.len() as u64 / width;
        let mut rest = out;
        // A part of a row, whole rows, a part of a row.
        while place < end {
            let (row, column) = (place / self.columns, place % self.columns);
            let whole = (end - place) / self.columns;
            let rectangle = match column == 0 && whole > 0 {
                true => Rectangle {
                    rows: row..row + whole,
                    columns: 0..self.columns,
                },
                false => Rectangle {
                    rows: row..row + 1,
                    columns: column..self.columns.min(column + end - place),
                },
            };
            let count = rectangle.elements();
            let (now, later) = rest.split_at_mut(as_size(count * width)?);
            self.fill(&rectangle, now)?;
            place += count;
            rest = later;
        }
        Ok(())
    }

    /// Rectangles that are better written run by run than as whole rows, because rows are so long that few of them make a
    /// piece, and their columns would be read bit by bit. None where rows are good enough.
    #[cfg(feature = "std")]
    pub(super) fn tiles(&self) -> Option<Tiles> {
        let width = self.width as u64;
        let is_good = |rows: u64| rows * width >= LONG_RUN || rows >= self.rows;
        if self.memory.is_some() || is_good(STRIP / self.row_len().max(1)) {
            return None;
        }
        let rows = (TILE_SIDE / width).min(self.rows).max(1);
        let columns = (TILE / width / rows).min(self.columns).max(1);
        Some(Tiles {
            rows,
            columns,
            across: self.columns.div_ceil(columns),
            count: self.columns.div_ceil(columns) * self.rows.div_ceil(rows),
        })
    }

    /// A rectangle of the tiling, and its elements row by row.
    #[cfg(feature = "std")]
    pub(super) fn read_tile(&self, tiles: &Tiles, n: u64, out: &mut Vec<u8>) -> Result<Rectangle> {
        let side = |n: u64, len: u64, all: u64| n * len..all.min((n + 1) * len);
        let rectangle = Rectangle {
            rows: side(n / tiles.across, tiles.rows, self.rows),
            columns: side(n % tiles.across, tiles.columns, self.columns),
        };
        out.clear();
        out.resize(as_size(rectangle.elements() * self.width as u64)?, 0);
        self.fill(&rectangle, out)?;
        Ok(rectangle)
    }

    /// The rows of a rectangle, as bytes of the result.
    #[cfg(feature = "std")]
    pub(super) fn runs(&self, rectangle: &Rectangle) -> impl Iterator<Item = Range<u64>> {
        let width = self.width as u64;
        let (columns, all) = (rectangle.columns.clone(), self.columns);
        (rectangle.rows.clone())
            .map(move |row| (row * all + columns.start) * width..(row * all + columns.end) * width)
    }

    /// Fills `out` with a rectangle, row by row.
    fn fill(&self, rectangle: &Rectangle, out: &mut [u8]) -> Result<()> {
        let band = TILE_SIDE / self.width as u64;
        let row = as_size((rectangle.columns.end - rectangle.columns.start) * self.width as u64)?;
        let mut rest = out;
        for first in rectangle.rows.clone().step_by(as_size(band)?) {
            let rows = first..rectangle.rows.end.min(first + band);
            let (now, later) = rest.split_at_mut(as_size(rows.end - rows.start)? * row);
            self.fill_band(&rows, &rectangle.columns, now)?;
            rest = later;
        }
        Ok(())
    }

    /// Fills `out` with so few rows that a column of them is short.
    fn fill_band(&self, rows: &Range<u64>, columns: &Range<u64>, out: &mut [u8]) -> Result<()> {
        let count = as_size(rows.end - rows.start)?;
        let row = as_size(columns.end - columns.start)?;
        let run = count * self.width;
        let pitch = run + PAD;
        let at_once = (BUFFER / pitch).clamp(LEAST_COLUMNS, MOST_COLUMNS).min(row);
        let mut buffer = vec![0; at_once * pitch];
        let mut window = Window::default();
        let mut order = Order::new(&self.others, columns.start);
        let near = order
            .distance()
            .saturating_mul(self.rows * self.width as u64)
            <= NEAR;
        for first in (0..row).step_by(at_once) {
            let columns = first..row.min(first + at_once);
            for column in buffer.chunks_exact_mut(pitch).take(columns.len()) {
                let at = (order.place() * self.rows + rows.start) * self.width as u64;
                order.step();
                let column = &mut column[..run];
                match &self.memory {
                    Some(memory) => {
                        let at = as_size(at)?;
                        column.copy_from_slice(&memory[at..at + run]);
                    }
                    None if near => window.read(&self.input, at, column)?,
                    None => self.input.read_into(at, column)?,
                }
            }
            let shape = Shape {
                rows: count,
                pitch,
                columns,
                row,
            };
            self.turn(&buffer, &shape, out)?;
        }
        Ok(())
    }

    fn turn(&self, buffer: &[u8], shape: &Shape, out: &mut [u8]) -> Result<()> {
        match self.width {
            1 => turn::<1>(buffer, shape, out),
            2 => turn::<2>(buffer, shape, out),
            4 => turn::<4>(buffer, shape, out),
            8 => turn::<8>(buffer, shape, out),
            16 => turn::<16>(buffer, shape, out),
            32 => turn::<32>(buffer, shape, out),
            64 => turn::<64>(buffer, shape, out),
            128 => turn::<128>(buffer, shape, out),
            width => {
                let message = format!("elements of {width} bytes");
                return Err(Error::unsupported("order", message));
            }
        }
        Ok(())
    }
}

impl Rectangle {
    fn elements(&self) -> u64 {
        (self.rows.end - self.rows.start) * (self.columns.end - self.columns.start)
    }
}

/// How the result is divided into rectangles.
#[cfg(feature = "std")]
#[derive(Clone, Debug)]
pub(super) struct Tiles {
    rows: u64,
    columns: u64,
    across: u64,
    pub(super) count: u64,
}

/// The places of columns in the stored order: columns are counted with the last index running fastest, stored with the
/// first.
struct Order {
    /// For every dimension, the last first: length, how far a step goes, and the index.
    dims: Vec<(u64, u64, u64)>,
    place: u64,
}

impl Order {
    fn new(others: &[u64], mut column: u64) -> Self {
        let mut stride = 1;
        let mut dims: Vec<_> = (others.iter())
            .map(|&dim| {
                let this = stride;
                stride *= dim;
                (dim, this, 0)
            })
            .collect();
        dims.reverse();
        let mut place = 0;
        for (dim, stride, index) in &mut dims {
            *index = column % *dim;
            column /= *dim;
            place += *index * *stride;
        }
        Self { dims, place }
    }

    /// How far apart most neighbours are.
    fn distance(&self) -> u64 {
        self.dims.first().map_or(1, |&(_, stride, _)| stride)
    }

    fn place(&self) -> u64 {
        self.place
    }

    fn step(&mut self) {
        for (dim, stride, index) in &mut self.dims {
            *index += 1;
            self.place += *stride;
            if *index < *dim {
                return;
            }
            self.place -= *dim * *stride;
            *index = 0;
        }
    }
}

/// Neighbouring bytes of the input that are fetched together.
#[derive(Default)]
struct Window {
    at: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn read(&mut self, input: &Input<'_>, at: u64, out: &mut [u8]) -> Result<()> {
        let len = out.len() as u64;
        if at < self.at || at + len > self.at + self.bytes.len() as u64 {
            let fetch = WINDOW.min(input.len() - at).max(len);
            self.bytes.resize(as_size(fetch)?, 0);
            self.at = at;
            input.read_into(at, &mut self.bytes)?;
        }
        let from = as_size(at - self.at)?;
        out.copy_from_slice(&self.bytes[from..from + out.len()]);
        Ok(())
    }
}

/// What a buffer of columns is, and where it goes.
struct Shape {
    rows: usize,
    /// Bytes from the beginning of a column to that of the next.
    pitch: usize,
    /// The columns of the result that these are, and how many a row of the result has.
    columns: Range<usize>,
    row: usize,
}

/// Rows that are turned together: so many elements of a column lie in one line of the cache, for the smaller ones.
const BAND: usize = 16;

/// Puts a buffer of columns into the rows of the result.
fn turn<const WIDTH: usize>(buffer: &[u8], shape: &Shape, out: &mut [u8]) {
    let from = buffer.as_chunks::<WIDTH>().0;
    let to = out.as_chunks_mut::<WIDTH>().0;
    let pitch = shape.pitch / WIDTH;
    let count = shape.columns.len();
    for top in (0..shape.rows).step_by(BAND) {
        for i in top..shape.rows.min(top + BAND) {
            let place = i * shape.row + shape.columns.start;
            let row = &mut to[place..place + count];
            let column = from[i..].iter().step_by(pitch);
            for (to, from) in row.iter_mut().zip(column) {
                *to = *from;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Form, Want};
    use crate::io::Limits;
    use crate::model::{DType, Endian, Lanes, Scalar, TensorInfo};

    /// Element types of every width that can be turned.
    fn dtypes() -> Vec<DType> {
        let lanes = [
            Lanes::Real,
            Lanes::Complex,
            Lanes::Quaternion,
            Lanes::Octonion,
        ];
        let scalars = [
            Scalar::U8,
            Scalar::U16,
            Scalar::F32,
            Scalar::F64,
            Scalar::F128,
        ];
        let all = scalars
            .into_iter()
            .flat_map(|scalar| lanes.map(|lanes| DType::Number(scalar, lanes)));
        all.collect()
    }

    fn tensor(dtype: DType, shape: &[u64], layout: &Layout) -> TensorInfo {
        let len = as_size(dtype.bytes_for(shape.iter().product()).unwrap()).unwrap();
        // Neighbouring bytes differ, and so do bytes that are any small number of rows apart.
        let bytes: Vec<u8> = (0..len)
            .map(|n| (n ^ n >> 8).wrapping_mul(167).to_le_bytes()[0])
            .collect();
        let mut info = TensorInfo::dense("t", dtype, shape.to_vec(), Payload::Inline(bytes.into()));
        info.layout = layout.clone();
        info
    }

    fn other(layout: &Layout) -> Layout {
        match layout {
            Layout::RowMajor => Layout::ColumnMajor,
            _ => Layout::RowMajor,
        }
    }

    /// Element by element, as slow and plain as it can be.
    fn naive(info: &TensorInfo) -> Vec<u8> {
        let width = info.dtype.width().unwrap();
        let Payload::Inline(stored) = &info.parts[0].payload else {
            panic!("not in memory");
        };
        let place = |index: &[u64], layout: &Layout| {
            let dims = index.iter().zip(&info.shape);
            let step = |sum: u64, (i, dim): (&u64, &u64)| sum * dim + i;
            let place = match layout {
                Layout::RowMajor => dims.fold(0, step),
                _ => dims.rev().fold(0, step),
            };
            usize::try_from(place).unwrap() * width
        };
        let mut out = vec![0; stored.len()];
        let mut index = vec![0; info.shape.len()];
        for _ in 0..info.elements().unwrap() {
            let (from, to) = (
                place(&index, &info.layout),
                place(&index, &other(&info.layout)),
            );
            out[to..to + width].copy_from_slice(&stored[from..from + width]);
            for (i, dim) in index.iter_mut().zip(&info.shape).rev() {
                *i += 1;
                if *i < *dim {
                    break;
                }
                *i = 0;
            }
        }
        out
    }

    /// Turns a tensor in one go and in strips of `rows`, and compares both with the plain way.
    fn check(dtype: DType, shape: &[u64], layout: &Layout, rows: &[u64]) {
        let info = tensor(dtype, shape, layout);
        let expected = naive(&info);
        let limits = Limits::default();
        let data = Data {
            sources: &[],
            limits: &limits,
            tally: None,
        };
        let want = Want::Dense(Form {
            dtype,
            layout: other(layout),
            endian: Endian::Little,
        });
        let view = View::new(data, &info, 0, &want).unwrap();
        let what = format!("{dtype} {shape:?} {layout:?}");
        assert!(
            view.collect(u64::MAX).unwrap() == expected,
            "{what}, at once"
        );
        for &rows in rows {
            let mut strips = Vec::new();
            let mut strip = Vec::new();
            let mut at = 0;
            while at < view.len() {
                let len = (rows * view.step()).min(view.len() - at);
                view.read(at, len, &mut strip).unwrap();
                strips.extend_from_slice(&strip);
                at += len;
            }
            assert!(strips == expected, "{what}, in strips of {rows} rows");
        }
    }

    #[test]
    fn every_width_and_rank_is_turned_like_the_plain_way_does() {
        let shapes: &[&[u64]] = &[
            &[1, 1],
            &[2, 3],
            &[33, 65],
            &[1, 40],
            &[40, 1],
            &[3, 4, 5],
            &[35, 1, 34],
            &[2, 3, 4, 5],
            &[5, 1, 3, 2],
            &[2, 3, 2, 4, 3],
            &[3, 1, 1, 1, 3],
        ];
        for dtype in dtypes() {
            for shape in shapes {
                for layout in [Layout::ColumnMajor, Layout::RowMajor] {
                    check(dtype, shape, &layout, &[1, 2, 3, 1000]);
                }
            }
        }
    }

    #[test]
    fn tall_and_wide_ones_are_read_in_long_runs_and_in_windows() {
        // Runs of a strip longer and shorter than what is read directly, over more than one window.
        for shape in [[3000, 3], [3, 3000], [1100, 300], [300, 1100]] {
            for layout in [Layout::ColumnMajor, Layout::RowMajor] {
                check(DType::U32, &shape, &layout, &[7, 1023, 1024, 1025]);
            }
        }
    }

    #[test]
    fn nothing_and_vectors_have_only_one_order() {
        for shape in [&[][..], &[7], &[0], &[0, 3], &[3, 0], &[2, 0, 2]] {
            check(DType::F32, shape, &Layout::ColumnMajor, &[]);
        }
    }

    #[test]
    fn elements_below_a_byte_have_no_other_order() {
        let limits = Limits::default();
        let data = Data {
            sources: &[],
            limits: &limits,
            tally: None,
        };
        let info = tensor(DType::F4_E2M1, &[4, 4], &Layout::ColumnMajor);
        let want = Want::Dense(Form::canonical(info.dtype));
        let error = View::new(data, &info, 0, &want).err().unwrap();
        assert_eq!(error.rule(), "file.order");
    }

    /// A file that is not in memory, so that it is read like one.
    struct Elsewhere(Vec<u8>);

    impl crate::io::Source for Elsewhere {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&self, range: Range<u64>) -> Result<Bytes> {
            let range = as_size(range.start)?..as_size(range.end)?;
            Ok(Bytes::copy_from_slice(&self.0[range]))
        }
    }

    /// Reads a tensor that is not in memory, by a view, and compares what `read` makes of that.
    fn from_file(dtype: DType, shape: &[u64], read: impl Fn(&View<'_>, &[u8]) -> Vec<u8>) {
        let mut info = tensor(dtype, shape, &Layout::ColumnMajor);
        let expected = naive(&info);
        let Payload::Inline(bytes) = &info.parts[0].payload else {
            panic!("not in memory");
        };
        let sources: [Arc<dyn crate::io::Source>; 1] = [Arc::new(Elsewhere(bytes.to_vec()))];
        info.parts[0].payload = Payload::main(0..expected.len() as u64);
        let limits = Limits::default();
        let data = Data {
            sources: &sources,
            limits: &limits,
            tally: None,
        };
        let view = View::new(data, &info, 0, &Want::Dense(Form::canonical(dtype))).unwrap();
        assert!(read(&view, &expected) == expected, "{dtype} {shape:?}");
    }

    #[test]
    #[cfg(feature = "std")]
    fn long_rows_are_written_in_tiles() {
        for shape in [&[600, 20000][..], &[700, 30, 700]] {
            from_file(DType::U16, shape, |view, expected| {
                let mut found = vec![0; expected.len()];
                let mut piece = Vec::new();
                for tile in 0..view.tiles().expect("few such rows make a piece") {
                    let mut put = |at: u64, bytes: &[u8]| {
                        let at = as_size(at)?;
                        found[at..at + bytes.len()].copy_from_slice(bytes);
                        Ok(())
                    };
                    view.read_tile(tile, &mut piece, &mut put).unwrap();
                }
                found
            });
        }
    }

    #[test]
    fn rows_longer_than_a_piece_are_read_in_stretches() {
        let octonion = DType::Number(Scalar::F128, Lanes::Octonion);
        from_file(octonion, &[3, 140_000], |view, expected| {
            assert!(view.piece() < expected.len() as u64 / 3);
            let mut found = Vec::new();
            let mut pieces = view.pieces().unwrap();
            let mut piece = Vec::new();
            while pieces.next(&mut piece).unwrap() {
                found.extend_from_slice(&piece);
            }
            found
        });
    }
}
