use super::*;
use crate::io::Limits;
use crate::model::{DType, Endian, Form, Lanes, Payload, Scalar, TensorInfo, Want};
use crate::transform::View;

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

fn tensor(dtype: DType, shape: &[u64], order: Order) -> TensorInfo {
    let len = as_size(dtype.bytes_for(shape.iter().product()).unwrap()).unwrap();
    // Neighbouring bytes differ, and so do bytes that are any small number of rows apart.
    let bytes: Vec<u8> = (0..len)
        .map(|n| (n ^ n >> 8).wrapping_mul(167).to_le_bytes()[0])
        .collect();
    let mut info = TensorInfo::dense("t", dtype, shape.to_vec(), Payload::Inline(bytes.into()));
    info.layout = order.into();
    info
}

fn other(order: Order) -> Order {
    match order {
        Order::RowMajor => Order::ColumnMajor,
        Order::ColumnMajor => Order::RowMajor,
    }
}

/// Element by element, as slow and plain as it can be.
fn naive(info: &TensorInfo) -> Vec<u8> {
    let order = info.layout.order().unwrap();
    let width = info.dtype.width().unwrap();
    let Payload::Inline(stored) = &info.parts[0].payload else {
        panic!("not in memory");
    };
    let place = |index: &[u64], order: Order| {
        let dims = index.iter().zip(&info.shape);
        let step = |sum: u64, (i, dim): (&u64, &u64)| sum * dim + i;
        let place = match order {
            Order::RowMajor => dims.fold(0, step),
            Order::ColumnMajor => dims.rev().fold(0, step),
        };
        usize::try_from(place).unwrap() * width
    };
    let mut out = vec![0; stored.len()];
    let mut index = vec![0; info.shape.len()];
    for _ in 0..info.elements().unwrap() {
        let (from, to) = (place(&index, order), place(&index, other(order)));
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
fn check(dtype: DType, shape: &[u64], order: Order, rows: &[u64]) {
    let info = tensor(dtype, shape, order);
    let expected = naive(&info);
    let limits = Limits::default();
    let data = Data::new(&[], &limits);
    let want = Want::Dense(Form {
        dtype,
        order: other(order),
        endian: Endian::Little,
    });
    let view = View::new(data, &info, 0, &want).unwrap();
    let what = format!("{dtype} {shape:?} {order:?}");
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
            for order in [Order::ColumnMajor, Order::RowMajor] {
                check(dtype, shape, order, &[1, 2, 3, 1000]);
            }
        }
    }
}

#[test]
fn tall_and_wide_ones_are_read_in_long_runs_and_in_windows() {
    // Runs of a strip longer and shorter than what is read directly, over more than one window.
    for shape in [[3000, 3], [3, 3000], [1100, 300], [300, 1100]] {
        for order in [Order::ColumnMajor, Order::RowMajor] {
            check(DType::U32, &shape, order, &[7, 1023, 1024, 1025]);
        }
    }
}

#[test]
fn nothing_and_vectors_have_only_one_order() {
    for shape in [&[][..], &[7], &[0], &[0, 3], &[3, 0], &[2, 0, 2]] {
        check(DType::F32, shape, Order::ColumnMajor, &[]);
    }
}

#[test]
fn elements_below_a_byte_are_turned_too() {
    let limits = Limits::default();
    let data = Data::new(&[], &limits);
    // The numbers 0 to 5, by columns: 0 2 4 and 1 3 5.
    let nibble = DType::Number(Scalar::U4, Lanes::Real);
    let payload = Payload::Inline(vec![0x10, 0x32, 0x54].into());
    let mut info = TensorInfo::dense("t", nibble, vec![2, 3], payload);
    info.layout = Order::ColumnMajor.into();
    let want = Want::Dense(Form::canonical(nibble));
    let view = View::new(data, &info, 0, &want).unwrap();
    assert_eq!(view.collect(u64::MAX).unwrap(), [0x20, 0x14, 0x53]);
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
    let mut info = tensor(dtype, shape, Order::ColumnMajor);
    let expected = naive(&info);
    let Payload::Inline(bytes) = &info.parts[0].payload else {
        panic!("not in memory");
    };
    let sources: [Arc<dyn crate::io::Source>; 1] = [Arc::new(Elsewhere(bytes.to_vec()))];
    info.parts[0].payload = Payload::main(0..expected.len() as u64);
    let limits = Limits::default();
    let data = Data::new(&sources, &limits);
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
