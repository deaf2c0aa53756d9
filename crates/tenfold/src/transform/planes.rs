//! Elements put together from numbers that are stored apart, or as another type.

use bytes::Bytes;

use super::elements::ElementMap;
use super::{Data, Input, as_size, is_exact, overflow};
use crate::error::{Error, Result};
use crate::model::{DType, Endian, Lanes, Part, Planes, Scalar};
use crate::prelude::*;

/// Elements that are put together at once.
const BATCH: u64 = 16 << 10;

/// Elements of numbers from several places. Entered anywhere: what is compressed is held in memory.
pub(crate) struct Woven<'a> {
    threads: Vec<Thread<'a>>,
    /// Bytes of a number of an element.
    width: usize,
    len: u64,
}

/// One number of every element.
struct Thread<'a> {
    input: Input<'a>,
    /// What numbers are stored as.
    stored: Scalar,
    map: ElementMap,
    /// The way back, where a number that does not come back is none of the type.
    back: Option<ElementMap>,
    name: &'static str,
}

impl<'a> Woven<'a> {
    pub(super) fn open(data: Data<'a>, planes: &Planes) -> Result<Arc<Self>> {
        let len = planes.len().ok_or_else(|| overflow("the size of a part"))?;
        let width = real(planes.scalar).width();
        let width = width.ok_or_else(|| not_whole(planes.scalar))?;
        let threads = planes.planes.iter();
        let threads = threads.map(|plane| Thread::open(data, plane, planes));
        Ok(Arc::new(Self {
            threads: threads.collect::<Result<_>>()?,
            width,
            len,
        }))
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn inputs(&self) -> impl Iterator<Item = &Input<'a>> {
        self.threads.iter().map(|thread| &thread.input)
    }

    pub(super) fn read(&self, at: u64, len: u64) -> Result<Bytes> {
        let mut bytes = crate::io::zeros(len)?;
        self.read_into(at, &mut bytes)?;
        Ok(bytes.into())
    }

    /// Fills `out` with the bytes from `at` on, which may be inside an element.
    pub(super) fn read_into(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let element = (self.width * self.threads.len()).max(1);
        let size = element as u64;
        let (mut from, mut rest) = (at, out);
        let mut made = Vec::new();
        let mut numbers = Vec::new();
        while !rest.is_empty() {
            let first = from / size;
            let skipped = as_size(from % size)?;
            let count = (rest.len() + skipped).div_ceil(element);
            let count = BATCH.min(count as u64);
            made.clear();
            made.resize(as_size(count * size)?, 0);
            for (n, thread) in self.threads.iter().enumerate() {
                thread.read(first, count, &mut numbers)?;
                let elements = made.chunks_exact_mut(element);
                for (element, number) in elements.zip(numbers.chunks_exact(self.width)) {
                    element[n * self.width..(n + 1) * self.width].copy_from_slice(number);
                }
            }
            let wanted = (made.len() - skipped).min(rest.len());
            let (now, later) = rest.split_at_mut(wanted);
            now.copy_from_slice(&made[skipped..skipped + wanted]);
            from += wanted as u64;
            rest = later;
        }
        Ok(())
    }
}

impl<'a> Thread<'a> {
    fn open(data: Data<'a>, plane: &Part, planes: &Planes) -> Result<Self> {
        let (from, to) = (plane.dtype, real(planes.scalar));
        let DType::Number(stored, Lanes::Real) = from else {
            return Err(Error::argument(format!("{from} in a plane of {to}")));
        };
        if from.width().is_none() {
            return Err(not_whole(stored));
        }
        if from.bytes_for(planes.elements) != Some(plane.payload.len()) {
            let message = format!(
                "{} bytes for {} numbers of {from}",
                plane.payload.len(),
                planes.elements
            );
            return Err(Error::malformed("size", message));
        }
        let map = ElementMap::new(from, plane.endian, to, Endian::Little)?.strict();
        // Between floating-point numbers rounding is what is meant, and any number but 0 is true.
        let is_rounded = (stored.is_float() && planes.scalar.is_float())
            || planes.scalar == Scalar::Bool
            || is_exact(stored, planes.scalar);
        let back = (!is_rounded)
            .then(|| ElementMap::new(to, Endian::Little, from, plane.endian))
            .transpose()?;
        Ok(Self {
            input: data.random_access(&plane.payload)?,
            stored,
            map,
            back,
            name: planes.scalar.name(),
        })
    }

    /// Numbers from the nth on, as they are wanted.
    fn read(&self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<()> {
        let width = u64::from(self.stored.bits() / 8);
        out.clear();
        out.resize(as_size(count * width)?, 0);
        self.input.read_into(first * width, out)?;
        let stored = self.back.as_ref().map(|_| out.clone());
        self.map.apply(out, None)?;
        if let (Some(back), Some(stored)) = (&self.back, stored) {
            let mut again = out.clone();
            back.apply(&mut again, None)?;
            if again != stored {
                let message = format!(
                    "a stored number of {} is not one of {}",
                    self.stored.name(),
                    self.name
                );
                return Err(Error::mismatch("cast", message));
            }
        }
        Ok(())
    }
}

fn real(scalar: Scalar) -> DType {
    DType::Number(scalar, Lanes::Real)
}

fn not_whole(scalar: Scalar) -> Error {
    let message = format!("planes of {}, which is smaller than a byte", scalar.name());
    Error::unsupported("planes", message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may panic

    use super::*;
    use crate::io::Limits;
    use crate::model::{Axis, Form, Layout, Payload, Role, Selection, Steps, TensorInfo};
    use crate::transform::View;

    fn plane(dtype: DType, endian: Endian, bytes: Vec<u8>) -> Part {
        let mut part = Part::new(Role::Values, dtype, Payload::Inline(bytes.into()));
        part.endian = endian;
        part
    }

    fn tensor(dtype: DType, shape: &[u64], layout: Layout, planes: Planes) -> TensorInfo {
        let mut info = TensorInfo::new("t", dtype, shape, layout);
        info.parts = Part::new(Role::Values, dtype, Payload::Planes(Arc::new(planes))).into();
        info
    }

    fn read(info: &TensorInfo) -> Result<Vec<u8>> {
        let limits = Limits::default();
        let data = Data::new(&[], &limits);
        View::dense(data, info, &Form::canonical(info.dtype))?.collect(1 << 20)
    }

    #[test]
    fn numbers_stored_apart_as_different_types_are_elements_in_any_order_and_slice() {
        let real: Vec<u8> = [1i16, -2, 3, 4, 5, 6]
            .iter()
            .flat_map(|n| n.to_be_bytes())
            .collect();
        let imaginary = [0.5f64, 1.5, 2.5, 3.5, 4.5, f64::NEG_INFINITY];
        let imaginary = imaginary.iter().flat_map(|n| n.to_le_bytes()).collect();
        let planes = Planes::new(
            Scalar::F64,
            6,
            vec![
                plane(DType::I16, Endian::Big, real),
                plane(DType::F64, Endian::Little, imaginary),
            ],
        );
        let number = |pair: (f64, f64)| [pair.0.to_le_bytes(), pair.1.to_le_bytes()].concat();
        let row_major = [
            (1.0, 0.5),
            (3.0, 2.5),
            (5.0, 4.5),
            (-2.0, 1.5),
            (4.0, 3.5),
            (6.0, f64::NEG_INFINITY),
        ]
        .map(number);
        let info = tensor(DType::C128, &[2, 3], Layout::ColumnMajor, planes);
        assert_eq!(read(&info).unwrap(), row_major.concat());
        let limits = Limits::default();
        let mut selection = Selection::whole(&[2, 3]);
        for (axis, dim, count) in [(0, 2, 1), (1, 3, 2)] {
            selection.axes[axis] = Axis {
                dim,
                steps: vec![Steps {
                    start: 1,
                    step: 1,
                    count,
                }],
                kept: true,
            };
        }
        let view = View::selected(Data::new(&[], &limits), &info, DType::C128, selection);
        let found = view.unwrap().collect(1 << 20).unwrap();
        assert_eq!(found, [&*row_major[4], &*row_major[5]].concat());
    }

    #[test]
    fn a_part_can_be_entered_inside_of_an_element() {
        let bytes: Vec<u8> = (0..40).collect();
        let planes = vec![
            plane(DType::U8, Endian::Little, bytes[..20].to_vec()),
            plane(DType::U8, Endian::Little, bytes[20..].to_vec()),
        ];
        let planes = Planes::new(Scalar::U8, 20, planes);
        let limits = Limits::default();
        let woven = Woven::open(Data::new(&[], &limits), &planes).unwrap();
        for (at, len) in [(0, 40), (1, 3), (3, 1), (39, 1), (7, 20), (5, 0)] {
            let expected: Vec<u8> = (at..at + len).map(|n| n / 2 + n % 2 * 20).collect();
            let found = woven.read(at.into(), len.into()).unwrap();
            assert_eq!(found, expected, "{at} {len}");
        }
    }

    #[test]
    fn numbers_that_the_type_does_not_have_are_refused() {
        let of = |from: DType, bytes: Vec<u8>, to: Scalar| {
            let planes = Planes::new(to, 1, vec![plane(from, Endian::Little, bytes)]);
            read(&tensor(real(to), &[1], Layout::RowMajor, planes))
        };
        let too_large = of(DType::I16, 300i16.to_le_bytes().to_vec(), Scalar::U8);
        assert!(too_large.unwrap_err().message().contains("300"));
        let broken = of(DType::F64, 1.5f64.to_le_bytes().to_vec(), Scalar::I32);
        assert_eq!(broken.unwrap_err().rule(), "file.cast");
        let wide = (1i64 << 53) + 1;
        assert!(of(DType::I64, wide.to_le_bytes().to_vec(), Scalar::F64).is_err());
        let whole = of(DType::F64, 7f64.to_le_bytes().to_vec(), Scalar::I32);
        assert_eq!(whole.unwrap(), 7i32.to_le_bytes());
        let rounded = of(DType::F64, 0.1f64.to_le_bytes().to_vec(), Scalar::F32);
        assert_eq!(rounded.unwrap(), 0.1f32.to_le_bytes());
        let truth = of(DType::F64, 2f64.to_le_bytes().to_vec(), Scalar::Bool);
        assert_eq!(truth.unwrap(), [1]);
    }
}
