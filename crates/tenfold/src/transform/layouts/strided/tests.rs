//! Views of a storage against the elements that their places say.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

use super::*;
use crate::io::Limits;
use crate::model::{Axis, Endian, Form, Lanes, Role, Scalar, Steps};
use crate::transform::{Data, View};

fn tensor(dtype: DType, shape: &[u64], offset: u64, steps: &[u64], bytes: &[u8]) -> TensorInfo {
    let layout = Layout::Strided(Box::new(Strides::new(offset, steps)));
    let mut info = TensorInfo::new("t", dtype, shape.to_vec(), layout);
    let payload = Payload::Inline(bytes.to_vec().into());
    info.parts = vec![Part::new(Role::Values, dtype, payload)].into();
    info
}

fn with<T>(work: impl FnOnce(Data<'_>) -> T) -> T {
    let limits = Limits::default();
    work(Data::new(&[], &limits))
}

fn read(info: &TensorInfo, form: &Form) -> Result<Vec<u8>> {
    with(|data| View::dense(data, info, form)?.collect(1 << 20))
}

/// What the places say, for elements of one byte that are their own places.
fn expected(shape: &[u64], offset: u64, steps: &[u64], order: Order) -> Vec<u8> {
    let count: u64 = shape.iter().product();
    let place = |mut n: u64| {
        let mut place = offset;
        let mut step = |(dim, step): (&u64, &u64)| {
            place += n % dim * step;
            n /= dim;
        };
        let dims = shape.iter().zip(steps);
        match order {
            Order::ColumnMajor => dims.for_each(&mut step),
            Order::RowMajor => dims.rev().for_each(&mut step),
        }
        u8::try_from(place).unwrap()
    };
    (0..count).map(place).collect()
}

#[test]
fn every_kind_of_view_is_read_in_both_orders_and_in_slices() {
    let storage: Vec<u8> = (0..=255).collect();
    let views: &[(&[u64], u64, &[u64])] = &[
        (&[], 7, &[]),
        (&[5], 3, &[2]),
        (&[4, 6], 0, &[6, 1]),
        (&[4, 6], 10, &[6, 1]),
        // Transposed, every other column, a diagonal, one row for all, one element for all.
        (&[6, 4], 0, &[1, 6]),
        (&[6, 4], 9, &[1, 6]),
        (&[4, 3], 1, &[6, 2]),
        (&[5], 0, &[7]),
        (&[3, 5], 40, &[0, 1]),
        (&[3, 5], 40, &[1, 0]),
        (&[2, 2, 2], 255, &[0, 0, 0]),
        (&[2, 3, 4], 5, &[4, 50, 9]),
        // A dimension of length 1 has any stride.
        (&[4, 1, 6], 2, &[6, 99, 1]),
    ];
    for &(shape, offset, steps) in views {
        let info = tensor(DType::U8, shape, offset, steps, &storage);
        for order in [Order::RowMajor, Order::ColumnMajor] {
            let form = Form::new(DType::U8, order, Endian::Little);
            let found = read(&info, &form).unwrap();
            assert_eq!(
                found,
                expected(shape, offset, steps, order),
                "{shape:?} {order:?}"
            );
        }
        let Some(&rows) = shape.first() else { continue };
        // The rows backwards.
        let mut selection = Selection::whole(shape);
        selection.axes[0] = Axis {
            dim: rows,
            steps: vec![Steps {
                start: rows - 1,
                step: -1,
                count: rows,
            }],
            kept: true,
        };
        let found = with(|data| {
            View::selected(data, &info, DType::U8, selection)
                .and_then(|view| view.collect(1 << 20))
                .unwrap()
        });
        let whole = expected(shape, offset, steps, Order::RowMajor);
        let row = whole.len() / usize::try_from(rows).unwrap();
        let backwards: Vec<u8> = whole.chunks(row).rev().flatten().copied().collect();
        assert_eq!(found, backwards, "{shape:?}");
    }
}

#[test]
fn one_run_of_the_storage_is_shared() {
    let storage: Vec<u8> = (0..64).collect();
    let info = tensor(DType::U16, &[3, 4], 5, &[4, 1], &storage);
    with(|data| {
        let view = View::dense(data, &info, &Form::canonical(DType::U16)).unwrap();
        let input = view.direct().unwrap();
        assert_eq!(&*input.read(0, input.len()).unwrap(), &storage[10..34]);
    });
}

#[test]
fn elements_are_cast_and_swapped_like_others() {
    let storage: Vec<u8> = (0..6u16).flat_map(|n| (n * 300).to_be_bytes()).collect();
    let mut info = tensor(DType::U16, &[3, 2], 0, &[1, 3], &storage);
    info.parts[0].endian = Endian::Big;
    info.dtype = DType::F32;
    let found = read(&info, &Form::canonical(DType::F32)).unwrap();
    let expected = [0f32, 900.0, 300.0, 1200.0, 600.0, 1500.0];
    let expected: Vec<u8> = expected.iter().flat_map(|n| n.to_le_bytes()).collect();
    assert_eq!(found, expected);
}

#[test]
fn numbers_below_a_byte_are_taken_from_their_bits() {
    // Sixteen numbers of four bits: 0 to 15.
    let storage = [0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe];
    let nibble = DType::Number(Scalar::U4, Lanes::Real);
    let info = tensor(nibble, &[4, 3], 1, &[1, 4], &storage);
    let found = read(&info, &Form::canonical(nibble)).unwrap();
    // 1 5 9, 2 6 10, 3 7 11, 4 8 12
    assert_eq!(found, [0x51, 0x29, 0xa6, 0x73, 0x4b, 0xc8]);
}

#[test]
fn views_beyond_their_storage_are_refused() {
    let storage = [0u8; 16];
    let refused = |shape: &[u64], offset: u64, steps: &[u64]| {
        let info = tensor(DType::U32, shape, offset, steps, &storage);
        let error = read(&info, &Form::canonical(DType::U32)).unwrap_err();
        error.rule().to_owned()
    };
    assert_eq!(refused(&[5], 0, &[1]), "file.strides");
    assert_eq!(refused(&[4], 1, &[1]), "file.strides");
    assert_eq!(refused(&[2], 0, &[4]), "file.strides");
    assert_eq!(refused(&[2, 2], 0, &[2]), "file.strides");
    assert_eq!(refused(&[3], 0, &[u64::MAX]), "file.overflow");
    assert_eq!(refused(&[2], u64::MAX, &[1]), "file.overflow");
    // Nothing is anywhere.
    let nothing = tensor(DType::U32, &[0, 5], 99, &[1, 1], &storage);
    assert!(
        read(&nothing, &Form::canonical(DType::U32))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn few_bytes_do_not_stand_for_any_number_of_elements() {
    let info = tensor(DType::U8, &[1 << 20, 1 << 20], 0, &[0, 0], &[1]);
    let error = read(&info, &Form::canonical(DType::U8)).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Limit);
}
