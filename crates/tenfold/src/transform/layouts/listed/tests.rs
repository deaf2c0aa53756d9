//! Sparse tensors against the dense ones that they stand for.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

use super::*;
use crate::io::Limits;
use crate::model::{DType, Endian, Form, Layout, PairIndex, Pairs, Part, Payload, Role, Want};
use crate::transform::View;

/// Entries of a matrix of 5 x 7, by place.
const ENTRIES: &[(u64, u64, i16)] = &[
    (0, 0, 11),
    (0, 6, -12),
    (2, 1, 0),
    (2, 2, 14),
    (4, 0, -15),
    (4, 6, 16),
];
const SHAPE: [u64; 2] = [5, 7];

fn inline(bytes: impl IntoIterator<Item = u8>) -> Payload {
    Payload::Inline(bytes.into_iter().collect())
}

/// Numbers as bytes of an integer type, in a byte order.
fn numbers(dtype: DType, endian: Endian, values: impl IntoIterator<Item = i64>) -> Payload {
    let width = dtype.width().unwrap();
    inline(values.into_iter().flat_map(|value| {
        let mut bytes = value.to_le_bytes()[..width].to_vec();
        if endian == Endian::Big {
            bytes.reverse();
        }
        bytes
    }))
}

fn part(role: Role, dtype: DType, endian: Endian, payload: Payload) -> Part {
    let mut part = Part::new(role, dtype, payload);
    part.endian = endian;
    part
}

fn coo_of(
    entries: &[(u64, u64, i16)],
    index: DType,
    index_endian: Endian,
    value_endian: Endian,
) -> TensorInfo {
    let nnz = entries.len() as u64;
    let mut info = TensorInfo::new("t", DType::I16, SHAPE.to_vec(), Layout::Coo { nnz });
    let rows = entries.iter().map(|entry| entry.0.cast_signed());
    let columns = entries.iter().map(|entry| entry.1.cast_signed());
    let coords = numbers(index, index_endian, rows.chain(columns));
    let values = numbers(
        DType::I16,
        value_endian,
        entries.iter().map(|entry| entry.2.into()),
    );
    info.parts = vec![
        part(Role::Values, DType::I16, value_endian, values),
        part(Role::Coords, index, index_endian, coords),
    ]
    .into();
    info
}

fn csr_of(indptr: &[i64], columns: &[i64], values: &[i16]) -> TensorInfo {
    let nnz = values.len() as u64;
    let mut info = TensorInfo::new("t", DType::I16, SHAPE.to_vec(), Layout::Csr { nnz });
    let little = Endian::Little;
    let value_bytes = numbers(DType::I16, little, values.iter().map(|&value| value.into()));
    let (indptr, columns) = (indptr.iter().copied(), columns.iter().copied());
    info.parts = vec![
        part(Role::Values, DType::I16, little, value_bytes),
        part(
            Role::Indptr,
            DType::U64,
            little,
            numbers(DType::U64, little, indptr),
        ),
        part(
            Role::Indices,
            DType::I32,
            little,
            numbers(DType::I32, little, columns),
        ),
    ]
    .into();
    info
}

fn pairs_of(entries: &[(u64, u64, i16)], per_axis: bool) -> TensorInfo {
    let nnz = entries.len() as u64;
    let index = if per_axis {
        PairIndex::Axes
    } else {
        PairIndex::RowMajor
    };
    let layout = Layout::from(Pairs::new(nnz, index));
    let mut info = TensorInfo::new("t", DType::I16, SHAPE.to_vec(), layout);
    let records = entries.iter().flat_map(|&(row, column, value)| {
        let mut record = Vec::new();
        if per_axis {
            record.extend_from_slice(&row.to_le_bytes());
            record.extend_from_slice(&column.to_le_bytes());
        } else {
            record.extend_from_slice(&(row * SHAPE[1] + column).to_le_bytes())
        }
        record.extend_from_slice(&value.to_le_bytes());
        record
    });
    let payload = inline(records);
    info.parts = vec![Part::new(Role::Values, DType::I16, payload)].into();
    info
}

fn read(info: &TensorInfo, form: &Form) -> Result<Vec<u8>> {
    let limits = Limits::default();
    let data = Data::new(&[], &limits);
    View::new(data, info, 0, &Want::Dense(*form))?.collect(u64::MAX)
}

fn dense(info: &TensorInfo) -> Result<Vec<u8>> {
    read(info, &Form::canonical(DType::I16))
}

/// The dense matrix, number by number.
fn naive(column_major: bool) -> Vec<i16> {
    let mut all = vec![0; 35];
    for &(row, column, value) in ENTRIES {
        let place = if column_major {
            column * SHAPE[0] + row
        } else {
            row * SHAPE[1] + column
        };
        all[usize::try_from(place).unwrap()] = value;
    }
    all
}

fn little(numbers: &[i16]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn assert_refused(info: &TensorInfo, expected: &str) {
    let error = dense(info).unwrap_err();
    assert_eq!(error.rule(), "file.sparse", "{error}");
    assert!(error.message().contains(expected), "{error}");
}

#[test]
fn coordinates_of_every_integer_type_and_byte_order_give_the_dense_matrix() {
    let integers = [
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
    ];
    for index in integers {
        for index_endian in [Endian::Little, Endian::Big] {
            for value_endian in [Endian::Little, Endian::Big] {
                let info = coo_of(ENTRIES, index, index_endian, value_endian);
                assert_eq!(dense(&info).unwrap(), little(&naive(false)), "{index}");
            }
        }
    }
}

#[test]
fn the_order_of_entries_does_not_matter() {
    let mut entries = ENTRIES.to_vec();
    entries.reverse();
    entries.swap(1, 3);
    let (index, endian) = (DType::U32, Endian::Little);
    let info = coo_of(&entries, index, endian, endian);
    assert_eq!(dense(&info).unwrap(), little(&naive(false)));
    assert_eq!(
        dense(&pairs_of(&entries, true)).unwrap(),
        little(&naive(false))
    );
}

#[test]
fn rows_give_the_dense_matrix_also_with_columns_that_do_not_rise() {
    let columns = [0, 6, 1, 2, 0, 6];
    let values: Vec<_> = ENTRIES.iter().map(|entry| entry.2).collect();
    let info = csr_of(&[0, 2, 2, 4, 4, 6], &columns, &values);
    assert_eq!(dense(&info).unwrap(), little(&naive(false)));

    let info = csr_of(
        &[0, 2, 2, 4, 4, 6],
        &[6, 0, 1, 2, 0, 6],
        &[-12, 11, 0, 14, -15, 16],
    );
    assert_eq!(dense(&info).unwrap(), little(&naive(false)));
    let limits = Limits::default();
    let data = Data::new(&[], &limits);
    let scatter = Scatter::load(data, &info, Order::RowMajor).unwrap();
    assert!(!scatter.is_sorted());
}

#[test]
fn pairs_give_the_dense_matrix_by_one_index_and_by_several() {
    for per_axis in [true, false] {
        let info = pairs_of(ENTRIES, per_axis);
        assert_eq!(dense(&info).unwrap(), little(&naive(false)), "{per_axis}");
    }
}

#[test]
fn every_layout_can_be_written_column_major_big_endian_and_wider() {
    let form = Form {
        dtype: DType::I64,
        order: Order::ColumnMajor,
        endian: Endian::Big,
    };
    let expected: Vec<u8> = (naive(true).into_iter())
        .flat_map(|value| i64::from(value).to_be_bytes())
        .collect();
    let values: Vec<_> = ENTRIES.iter().map(|entry| entry.2).collect();
    let all = [
        coo_of(ENTRIES, DType::U64, Endian::Little, Endian::Big),
        csr_of(&[0, 2, 2, 4, 4, 6], &[0, 6, 1, 2, 0, 6], &values),
        pairs_of(ENTRIES, true),
    ];
    for info in all {
        assert_eq!(read(&info, &form).unwrap(), expected, "{:?}", info.layout);
    }
}

#[test]
fn one_index_of_pairs_is_a_row_major_one_also_when_columns_are_wanted() {
    let form = Form {
        dtype: DType::I16,
        order: Order::ColumnMajor,
        endian: Endian::Little,
    };
    let found = read(&pairs_of(ENTRIES, false), &form).unwrap();
    assert_eq!(found, little(&naive(true)));
}

#[test]
fn any_stretch_of_the_dense_matrix_can_be_read() {
    let limits = Limits::default();
    let data = Data::new(&[], &limits);
    let info = pairs_of(ENTRIES, true);
    let scatter = Scatter::load(data, &info, Order::RowMajor).unwrap();
    let whole = little(&naive(false));
    for from in 0..35 {
        for to in from..=35 {
            let mut stretch = vec![0; (to - from) * 2];
            scatter.read_into(from as u64 * 2, &mut stretch);
            assert_eq!(stretch, whole[from * 2..to * 2], "{from}..{to}");
        }
    }
}

#[test]
fn a_place_that_is_named_twice_is_refused() {
    let mut entries = ENTRIES.to_vec();
    entries.push((2, 2, 5));
    let endian = Endian::Little;
    let expected = "entries 3 and 6 are at the same place";
    assert_refused(&coo_of(&entries, DType::U8, endian, endian), expected);
    assert_refused(&pairs_of(&entries, true), expected);
    assert_refused(&pairs_of(&entries, false), expected);
    assert_refused(
        &csr_of(&[0, 2, 2, 2, 2, 2], &[3, 3], &[1, 2]),
        "entries 0 and 1 are at the same place",
    );
}

#[test]
fn indices_out_of_range_are_refused_with_their_place() {
    let little = Endian::Little;
    for (row, column, dim) in [(5, 0, 0), (0, 7, 1), (u64::MAX, 0, 0), (0, 1 << 63, 1)] {
        let entries = [(0, 0, 1), (row, column, 2)];
        let expected = format!("along dimension {dim}");
        assert_refused(&coo_of(&entries, DType::U64, little, little), &expected);
        assert_refused(&coo_of(&entries, DType::I64, little, little), &expected);
        assert_refused(&pairs_of(&entries, true), &expected);
    }
    assert_refused(&pairs_of(&[(5, 0, 1)], false), "index 35");
    assert_refused(
        &csr_of(&[0, 1, 1, 1, 1, 1], &[7], &[1]),
        "index 7 along dimension 1",
    );
    assert_refused(
        &csr_of(&[0, 1, 1, 1, 1, 1], &[-1], &[1]),
        "index -1 along dimension 1",
    );
}

#[test]
fn row_starts_must_rise_from_0_to_the_number_of_entries() {
    let wrong: &[&[i64]] = &[
        &[1, 2, 2, 2, 2, 2],
        &[0, 2, 1, 2, 2, 2],
        &[0, 1, 1, 1, 1, 1],
        &[0, 3, 3, 3, 3, 3],
        &[0, 1, 2],
        &[0, 0, 0, 0, 0, 0, 2],
        &[],
    ];
    for indptr in wrong {
        assert_refused(&csr_of(indptr, &[0, 1], &[1, 2]), "indptr");
    }
}

#[test]
fn counts_that_do_not_fit_each_other_are_refused() {
    let little = Endian::Little;
    let good = || coo_of(ENTRIES, DType::U32, little, little);

    let mut info = good();
    info.layout = Layout::Coo { nnz: 7 };
    assert_refused(
        &info,
        "\"coords\" has 48 bytes, but 14 numbers of u32 are needed",
    );
    let mut info = good();
    info.parts[0].payload = inline([0; 10]);
    assert_refused(&info, "10 bytes of values for 6 entries");
    let mut info = good();
    info.parts = info.parts[0].clone().into();
    assert_refused(&info, "there is no part \"coords\"");
    let mut info = csr_of(&[0, 1, 1, 1, 1, 1], &[0], &[1]);
    info.shape = vec![5].into();
    assert_refused(&info, "1 dimensions");
    let mut info = pairs_of(ENTRIES, true);
    info.layout = Layout::from(Pairs::new(u64::MAX, PairIndex::Axes));
    assert_refused(&info, "records of 18");
}

#[test]
fn a_scalar_has_no_coordinates_and_at_most_one_entry() {
    let scalar = |nnz: u64, values: &[u8]| {
        let mut info = TensorInfo::new("t", DType::I16, vec![], Layout::Coo { nnz });
        info.parts = vec![
            Part::new(Role::Values, DType::I16, inline(values.iter().copied())),
            Part::new(Role::Coords, DType::U64, inline([])),
        ]
        .into();
        info
    };
    assert_eq!(dense(&scalar(1, &[3, 4])).unwrap(), [3, 4]);
    assert_eq!(dense(&scalar(0, &[])).unwrap(), [0, 0]);
    assert!(dense(&scalar(2, &[3, 4, 3, 4])).is_err());
    // A count that no coordinate backs must not become an allocation.
    assert!(dense(&scalar(1 << 60, &[3, 4])).is_err());
}

#[test]
fn a_sparse_matrix_without_entries_or_without_elements_is_dense_zeros_or_nothing() {
    let little = Endian::Little;
    assert_eq!(
        dense(&coo_of(&[], DType::U8, little, little)).unwrap(),
        [0; 70]
    );
    let mut info = coo_of(&[], DType::U8, little, little);
    info.shape = vec![0, 1 << 40].into();
    assert_eq!(dense(&info).unwrap(), [0u8; 0]);
    // Formats that refuse such a shape do so themselves.
    info.shape = vec![1 << 40, 1 << 40, 0].into();
    assert_eq!(dense(&info).unwrap(), [0u8; 0]);
}

#[test]
fn a_dense_form_beyond_the_limit_is_refused() {
    let little = Endian::Little;
    let mut info = coo_of(&[], DType::U8, little, little);
    info.shape = vec![1 << 30, 1 << 30].into();
    let error = dense(&info).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Limit, "{error}");
}
