//! Row-major to column-major and back, in strips.
//!
//! A row-major tensor is the column-major one of the reversed shape, so one direction serves both. In column-major order
//! the first index runs fastest: a strip of rows of the result needs, for every choice of the other indices, one run of
//! neighbouring stored elements.

use crate::error::{Error, Result};
use crate::model::{Layout, Part, Payload};
use crate::prelude::*;
use crate::transform::{Data, Input, View, as_size, overflow};

/// Runs shorter than this are picked out of larger reads.
const SHORT_RUN: usize = 4096;
/// The size of such a larger read.
const WINDOW: u64 = 1 << 20;
/// Elements along a side of the square that is turned at once: both sides of it stay in the cache.
const TILE: usize = 32;

/// A dense tensor in the other order.
pub(super) struct Reorder<'a> {
    input: Input<'a>,
    /// The dimensions, the one that runs fastest in the stored order first.
    shape: Vec<usize>,
    width: usize,
    row_len: u64,
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
        let mut shape: Vec<usize> = shape
            .iter()
            .map(|&dim| as_size(dim))
            .collect::<Result<_>>()?;
        if *stored == Layout::RowMajor {
            shape.reverse();
        }
        let input = match &values.payload {
            // It cannot be entered in the middle: held whole.
            Payload::Encoded { .. } => {
                let whole = View::part(data, values, values.dtype, values.endian)?;
                Input::Memory(whole.collect(data.limits.tensor_memory)?.into())
            }
            payload => data.input(payload)?,
        };
        let rest: u64 = shape[1..].iter().map(|&dim| dim as u64).product();
        let row_len = rest
            .checked_mul(width as u64)
            .ok_or_else(|| overflow("the size of a row"))?;
        if row_len > data.limits.tensor_memory {
            let message = format!("a row of {row_len} bytes is needed at once to change the order");
            return Err(Error::limit("memory", message));
        }
        Ok(Self {
            input,
            shape,
            width,
            row_len,
        })
    }

    /// Bytes of one row of the result: of everything that has the same first index.
    pub(super) fn row_len(&self) -> u64 {
        self.row_len
    }

    /// Whole rows of the result.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let first = as_size(at / self.row_len)?;
        let rows = out.len() / as_size(self.row_len)?;
        let strip = self.strip(first, rows)?;
        match self.width {
            1 => turn::<1>(&strip, rows, &self.shape, out),
            2 => turn::<2>(&strip, rows, &self.shape, out),
            4 => turn::<4>(&strip, rows, &self.shape, out),
            8 => turn::<8>(&strip, rows, &self.shape, out),
            16 => turn::<16>(&strip, rows, &self.shape, out),
            32 => turn::<32>(&strip, rows, &self.shape, out),
            64 => turn::<64>(&strip, rows, &self.shape, out),
            128 => turn::<128>(&strip, rows, &self.shape, out),
            width => {
                return Err(Error::unsupported(
                    "order",
                    format!("elements of {width} bytes"),
                ));
            }
        }
        Ok(())
    }

    /// The stored elements of some rows of the result, in stored order, without the other rows between them.
    fn strip(&self, first: usize, rows: usize) -> Result<Vec<u8>> {
        let run = rows * self.width;
        let pitch = self.shape[0] * self.width;
        let runs = as_size(self.row_len)? / self.width;
        let mut strip = vec![0; run * runs];
        if run == pitch {
            self.input.read_into(0, &mut strip)?;
        } else if run >= SHORT_RUN {
            for (n, place) in strip.chunks_exact_mut(run).enumerate() {
                self.input
                    .read_into((n * pitch + first * self.width) as u64, place)?;
            }
        } else {
            let mut window = Vec::new();
            let mut window_at = 0u64;
            for (n, place) in strip.chunks_exact_mut(run).enumerate() {
                let from = (n * pitch + first * self.width) as u64;
                if from < window_at || from + run as u64 > window_at + window.len() as u64 {
                    let len = WINDOW.min(self.input.len() - from).max(run as u64);
                    window.resize(as_size(len)?, 0);
                    window_at = from;
                    self.input.read_into(from, &mut window)?;
                }
                let start = as_size(from - window_at)?;
                place.copy_from_slice(&window[start..start + run]);
            }
        }
        Ok(strip)
    }
}

/// Turns a strip of `rows` rows, square by square: between the first dimension and the last, for every choice of those
/// between them.
fn turn<const WIDTH: usize>(strip: &[u8], rows: usize, shape: &[usize], out: &mut [u8]) {
    let from = strip.as_chunks::<WIDTH>().0;
    let to = out.as_chunks_mut::<WIDTH>().0;
    let (middle, last) = match shape {
        [_, middle @ .., last] => (middle, *last),
        _ => return,
    };
    let middle_len: usize = middle.iter().product();
    let row = middle_len * last;
    let mut index = vec![0; middle.len()];
    for place in 0..middle_len {
        // Where this choice of the middle indices is in stored order, the first of them running fastest.
        let stored = index
            .iter()
            .zip(middle)
            .rev()
            .fold(0, |sum, (&i, &dim)| sum * dim + i);
        for top in (0..rows).step_by(TILE) {
            for left in (0..last).step_by(TILE) {
                for i in top..rows.min(top + TILE) {
                    for j in left..last.min(left + TILE) {
                        to[i * row + place * last + j] = from[(j * middle_len + stored) * rows + i];
                    }
                }
            }
        }
        step(&mut index, middle);
    }
}

/// The next choice of indices, the last running fastest.
fn step(index: &mut [usize], shape: &[usize]) {
    for (i, &dim) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < dim {
            return;
        }
        *i = 0;
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
        };
        let info = tensor(DType::F4_E2M1, &[4, 4], &Layout::ColumnMajor);
        let want = Want::Dense(Form::canonical(info.dtype));
        let error = View::new(data, &info, 0, &want).err().unwrap();
        assert_eq!(error.rule(), "file.order");
    }

    #[test]
    fn a_row_beyond_the_limit_is_refused_before_anything_is_read() {
        let limits = Limits::default().with_tensor_memory(1000);
        let data = Data {
            sources: &[],
            limits: &limits,
        };
        let info = tensor(DType::F32, &[2, 300], &Layout::ColumnMajor);
        let want = Want::Dense(Form::canonical(info.dtype));
        let error = View::new(data, &info, 0, &want).err().unwrap();
        assert_eq!(error.kind(), crate::ErrorKind::Limit);
    }
}
