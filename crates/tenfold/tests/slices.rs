//! Slices give the elements that the whole tensor has there, in every format, layout and encoding, and read little more
//! than these.

// A test may panic.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use support::random::Rng;
use support::{InMemory, Kind, cases, file_name, write_to_memory};
use tenfold::format::{Compression, Registry};
use tenfold::io::Source;
use tenfold::model::{DType, Lanes, Layout, Part, Payload, Role, Scalar, Slice, TensorInfo};
use tenfold::ops::{self, ConvertOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes, OpenOptions, Result, Tensor};

/// Tensors of the fixtures with more bytes are left out: they would be expanded to compare with.
const MOST: u64 = 1 << 20;

#[test]
fn slices_of_every_fixture_are_those_of_the_whole_tensor() {
    let mut compared = 0;
    for case in cases(Kind::Valid) {
        // Read from the file, not mapped: the other way to all of it is what the whole tensor is made by.
        let archive = OpenOptions::new().open(&case.path).unwrap();
        let readable = archive.select(|tensor| tensor.defect.is_none());
        for tensor in readable.tensors() {
            if tensor.info().dense_len().is_some_and(|len| len > MOST) {
                continue;
            }
            let one = readable.select(|other| other.name == tensor.name());
            // What has numbers of its own is read as those, whatever they stand for.
            let numbers = match tensor.info().dtype {
                DType::Number(..) => Ok(one),
                _ => ops::dequantize(&one),
            };
            let Ok(numbers) = numbers else {
                continue;
            };
            let Ok(whole) = numbers.tensor(tensor.name()).unwrap().canonical() else {
                continue;
            };
            let mut rng = Rng::named(&case.title());
            for _ in 0..6 {
                check(&tensor, &whole, &mut rng, &case.title());
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn elements_below_a_byte_are_taken_out_of_the_middle_of_bytes() {
    let mut rng = Rng::new(7);
    for scalar in Scalar::all().filter(|scalar| scalar.bits() < 8) {
        for lanes in [Lanes::Real, Lanes::Complex, Lanes::Quaternion] {
            for layout in [Layout::RowMajor, Layout::ColumnMajor] {
                let dtype = DType::Number(scalar, lanes);
                let shape = vec![5, 7, 3];
                let len = dtype.bytes_for(105).unwrap();
                let mut bytes = rng.bytes(usize::try_from(len).unwrap());
                // The bits behind the last element.
                let used = 105 * scalar.bits() * lanes.count() % 8;
                if used > 0 {
                    *bytes.last_mut().unwrap() &= (1 << used) - 1;
                }
                let whole = rearranged(dtype, &shape, &layout, &bytes);
                let payload = Payload::Inline(bytes.into());
                let mut info = TensorInfo::dense("t", dtype, shape, payload);
                info.layout = layout;
                let mut builder = ArchiveBuilder::new();
                builder.push_info(info).unwrap();
                let archive = builder.finish();
                for _ in 0..20 {
                    let tensor = archive.tensor("t").unwrap();
                    check(&tensor, &whole, &mut rng, &dtype.to_string());
                }
            }
        }
    }
}

#[test]
fn compressed_tensors_are_sliced_with_and_without_a_table_of_frames() {
    let registry = Registry::standard();
    let mut rng = Rng::new(11);
    let shape = [64, 33, 17];
    let bytes: Vec<u8> = (0..64 * 33 * 17 * 4u32)
        .map(|n| (n / 7).to_le_bytes()[0])
        .collect();
    let mut builder = ArchiveBuilder::new();
    builder
        .push("t", DType::F32, &shape, Bytes::from(bytes.clone()))
        .unwrap();
    let archive = builder.finish();
    for (version, codec) in [("1.2", "zstd"), ("2", "zstd-seekable")] {
        let options = ConvertOptions::default()
            .version(Some(version))
            .compression(|_| Compression::Zstd(3));
        let entry = registry.get("ztensor").unwrap();
        let files = write_to_memory(&archive, entry, &options).unwrap();
        let written = InMemory::written(files, &file_name(entry)).open().unwrap();
        let tensor = written.tensor("t").unwrap();
        match &tensor.info().parts[0].payload {
            Payload::Encoded { codec: found, .. } => assert_eq!(found.name(), codec),
            _ => panic!("not compressed"),
        }
        for _ in 0..40 {
            check(&tensor, &bytes, &mut rng, codec);
        }
    }
}

#[test]
fn wrong_slices_name_the_tensor_and_what_is_wrong() {
    let mut builder = ArchiveBuilder::new();
    builder
        .push("t", DType::U8, &[2], Bytes::from_static(&[1, 2]))
        .unwrap();
    let archive = builder.finish();
    let error = |text: &str| {
        let slices = Slice::parse(text).unwrap();
        let error = archive.tensor("t").unwrap().slice(&slices).err().unwrap();
        error.to_string()
    };
    assert!(error("2").contains("tensor \"t\": index 2 is outside dimension 0"));
    assert!(error("0, 0").contains("2 slices, the tensor has 1 dimensions"));
}

/// A random slice of a tensor is what the same places of the whole tensor are.
fn check(tensor: &Tensor<'_>, whole: &[u8], rng: &mut Rng, title: &str) {
    let shape = &tensor.info().shape;
    let (slices, wanted, kept) = random(rng, shape);
    let sliced = tensor.slice(&slices).unwrap();
    let shown: Vec<String> = slices.iter().map(Slice::to_string).collect();
    let context = || format!("{title} {} {shape:?} [{}]", tensor.name(), shown.join(", "));
    let counts = wanted.iter().zip(&kept).filter(|(_, kept)| **kept);
    let counts: Vec<u64> = counts.map(|(indices, _)| indices.len() as u64).collect();
    assert_eq!(sliced.shape(), counts, "{}", context());
    let expected = taken(sliced.dtype(), shape, whole, &wanted);
    let found = sliced.to_bytes();
    let found = found.unwrap_or_else(|error| panic!("{}: {error}", context()));
    assert!(found == expected, "{}", context());
}

/// Random slices, the indices that they leave along each dimension, and whether the dimension stays.
fn random(rng: &mut Rng, shape: &[u64]) -> (Vec<Slice>, Vec<Vec<u64>>, Vec<bool>) {
    let (mut slices, mut wanted, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for &dim in shape {
        let len = i64::try_from(dim).unwrap();
        let near = |rng: &mut Rng| i64::try_from(rng.next() % (2 * dim + 4)).unwrap() - len - 2;
        let slice = match rng.below(4) {
            0 if dim > 0 => {
                let index = i64::try_from(rng.next() % dim).unwrap();
                wanted.push(vec![u64::try_from(index).unwrap()]);
                kept.push(false);
                let negative = rng.one_in(2);
                slices.push(Slice::Index(if negative { index - len } else { index }));
                continue;
            }
            1 => Slice::FULL,
            _ => {
                let step = *rng.pick(&[1, 1, 2, 3, -1, -2, 5]);
                let start = rng.one_in(2).then(|| near(rng));
                let stop = rng.one_in(2).then(|| near(rng));
                Slice::Range { start, stop, step }
            }
        };
        wanted.push(python_range(&slice, len));
        kept.push(true);
        slices.push(slice);
    }
    // What stands for whole dimensions at the end may be left out, or be an ellipsis.
    while slices.last() == Some(&Slice::FULL) && rng.one_in(2) {
        slices.pop();
    }
    if slices.len() < shape.len() && rng.one_in(2) {
        slices.push(Slice::All);
    }
    (slices, wanted, kept)
}

/// As CPython's `slice.indices` and `range` have it.
fn python_range(slice: &Slice, len: i64) -> Vec<u64> {
    let &Slice::Range { start, stop, step } = slice else {
        panic!("not a range");
    };
    let adjust = |given: Option<i64>, default: i64| match given {
        None => default,
        Some(index) => {
            let index = if index < 0 { index + len } else { index };
            match (index, step > 0) {
                (index, true) if index < 0 => 0,
                (index, false) if index < 0 => -1,
                (index, true) if index >= len => len,
                (index, false) if index >= len => len - 1,
                (index, _) => index,
            }
        }
    };
    let forwards = step > 0;
    let start = adjust(start, if forwards { 0 } else { len - 1 });
    let stop = adjust(stop, if forwards { len } else { -1 });
    let mut indices = Vec::new();
    let mut at = start;
    while if forwards { at < stop } else { at > stop } {
        indices.push(u64::try_from(at).unwrap());
        at += step;
    }
    indices
}

/// The elements at all combinations of indices, bit by bit.
fn taken(dtype: DType, shape: &[u64], whole: &[u8], wanted: &[Vec<u64>]) -> Vec<u8> {
    let bits = bits(dtype);
    let count: usize = wanted.iter().map(Vec::len).product();
    let mut out = vec![0; (count * bits).div_ceil(8)];
    for n in 0..count {
        let (mut rest, mut place, mut stride) = (n, 0, 1);
        for (indices, &dim) in wanted.iter().zip(shape).rev() {
            place += usize::try_from(indices[rest % indices.len()]).unwrap() * stride;
            rest /= indices.len();
            stride *= usize::try_from(dim).unwrap();
        }
        copy_bits(whole, place * bits, &mut out, n * bits, bits);
    }
    out
}

/// Elements stored in a layout, row-major.
fn rearranged(dtype: DType, shape: &[u64], layout: &Layout, stored: &[u8]) -> Vec<u8> {
    if *layout == Layout::RowMajor {
        return stored.to_vec();
    }
    let mut out = vec![0; stored.len()];
    let bits = bits(dtype);
    let count: u64 = shape.iter().product();
    for n in 0..count {
        let (mut rest, mut place) = (n, 0);
        for &dim in shape {
            place = place * dim + rest % dim;
            rest /= dim;
        }
        let (from, to) = (usize::try_from(n).unwrap(), usize::try_from(place).unwrap());
        copy_bits(stored, from * bits, &mut out, to * bits, bits);
    }
    out
}

fn bits(dtype: DType) -> usize {
    let DType::Number(scalar, lanes) = dtype else {
        panic!("{dtype} has no elements");
    };
    (scalar.bits() * lanes.count()) as usize
}

fn copy_bits(from: &[u8], at: usize, to: &mut [u8], place: usize, bits: usize) {
    if [at, place, bits].iter().all(|n| n.is_multiple_of(8)) {
        to[place / 8..(place + bits) / 8].copy_from_slice(&from[at / 8..(at + bits) / 8]);
        return;
    }
    for bit in 0..bits {
        let value = from[(at + bit) / 8] >> ((at + bit) % 8) & 1;
        to[(place + bit) / 8] |= value << ((place + bit) % 8);
    }
}

/// Bytes that are made when they are read, and counted: a head, then numbers of 8 bytes that say their own place.
#[derive(Clone)]
struct Giant(Arc<GiantInner>);

struct GiantInner {
    head: Vec<u8>,
    len: u64,
    bytes: AtomicU64,
    reads: AtomicU64,
}

impl Giant {
    fn new(head: Vec<u8>, len: u64) -> Self {
        Self(Arc::new(GiantInner {
            head,
            len,
            bytes: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        }))
    }

    /// Bytes and reads since the last time.
    fn take(&self) -> (u64, u64) {
        (self.0.bytes.swap(0, Relaxed), self.0.reads.swap(0, Relaxed))
    }
}

impl Source for Giant {
    fn len(&self) -> u64 {
        self.0.head.len() as u64 + self.0.len
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        assert!(range.end <= self.len());
        self.0.bytes.fetch_add(range.end - range.start, Relaxed);
        self.0.reads.fetch_add(1, Relaxed);
        let head = self.0.head.len() as u64;
        let byte = |at: u64| match at.checked_sub(head) {
            None => self.0.head[usize::try_from(at).unwrap()],
            Some(at) => (at / 8).to_le_bytes()[usize::try_from(at % 8).unwrap()],
        };
        Ok(range.map(byte).collect())
    }
}

/// What a slice holds.
fn numbers(archive: &Archive, text: &str) -> Vec<u64> {
    let tensor = archive.tensors().next().unwrap();
    let bytes = tensor
        .slice(&Slice::parse(text).unwrap())
        .unwrap()
        .to_bytes()
        .unwrap();
    bytes
        .as_chunks()
        .0
        .iter()
        .map(|number| u64::from_le_bytes(*number))
        .collect()
}

#[test]
fn a_row_of_40_gb_is_one_small_read() {
    let side = 70_000u64;
    let giant = Giant::new(Vec::new(), side * side * 8);
    let mut builder = ArchiveBuilder::new();
    builder
        .push("t", DType::U64, &[side, side], giant.clone())
        .unwrap();
    let archive = builder.finish();

    let row = numbers(&archive, "12345");
    assert!(row.into_iter().eq(12_345 * side..12_346 * side));
    assert_eq!(giant.take(), (side * 8, 1));
    assert_eq!(numbers(&archive, "-1, -1"), [side * side - 1]);
    assert_eq!(giant.take(), (8, 1));
    assert_eq!(
        numbers(&archive, "5, 7:1:-2"),
        [7, 5, 3].map(|column| 5 * side + column)
    );
    assert_eq!(giant.take(), (40, 1));
    // A column is a read for every element, and no more bytes than these.
    let column = numbers(&archive, "::1000, 3");
    assert!(
        column
            .into_iter()
            .eq((0..70).map(|row| row * 1000 * side + 3))
    );
    assert_eq!(giant.take(), (70 * 8, 70));
    // What is shown of all of it: 6 by 6 elements, the last of a row and the first of the next in one read.
    let whole = archive.tensors().next().unwrap().slice(&[]).unwrap();
    assert_eq!(whole.clone().edges(3).shape(), [6, 6]);
    whole.edges(3).to_bytes().unwrap();
    assert_eq!(giant.take(), (36 * 8, 8));
}

/// A TENS file of unsigned numbers of 8 bytes without data: version 0.9, or 1.0 with chunks before the data.
fn tens(shape: &[u32], version: u32, chunks: &[u8]) -> Vec<u8> {
    let mut head = b"TENS".to_vec();
    head.extend(version.to_le_bytes());
    head.extend(b"IEEE");
    let order = u32::try_from(shape.len()).unwrap();
    for number in [8, 1, order, 0, 0] {
        head.extend(number.to_le_bytes());
    }
    for (name, length) in (b'a'..).zip(shape) {
        head.extend(length.to_le_bytes());
        head.extend([name, 0, 0, 0]);
    }
    head.extend(chunks);
    head
}

#[test]
fn a_column_of_column_major_data_is_one_small_read() {
    let side = 70_000u64;
    let giant = Giant::new(tens(&[70_000, 70_000], 0x9000, &[]), side * side * 8);
    let archive = OpenOptions::new()
        .read(Arc::new(giant.clone()), None)
        .unwrap();
    giant.take();
    let column = numbers(&archive, ":, 4");
    assert!(column.into_iter().eq(4 * side..5 * side));
    assert_eq!(giant.take(), (side * 8, 1));
    // Four rows: neighbours in every column, so a read of 32 bytes for each.
    let rows = numbers(&archive, "8:12");
    let expected = (8..12).flat_map(|row| (0..side).map(move |column| column * side + row));
    assert!(rows.into_iter().eq(expected));
    assert_eq!(giant.take(), (side * 32, side));
}

#[test]
fn a_row_of_packed_data_reads_its_elements() {
    let side = 60_000u64;
    let stored = side * (side + 1) / 2;
    let mut chunks = b"SYMMETRY".to_vec();
    chunks.extend(24u64.to_le_bytes());
    chunks.extend([1, 1, b'x', b'b', b'a', 0, 0, 0]);
    chunks.extend(b"DENSDATA");
    chunks.extend((16 + stored * 8).to_le_bytes());
    let giant = Giant::new(tens(&[60_000, 60_000], 0x1_0000, &chunks), stored * 8);
    let archive = OpenOptions::new()
        .read(Arc::new(giant.clone()), None)
        .unwrap();
    giant.take();
    let place = |row: u64, column: u64| {
        let (low, high) = (row.min(column), row.max(column));
        high * (high + 1) / 2 + low
    };
    // Up to the diagonal one run; behind it an element in every further column.
    let row = numbers(&archive, "59000");
    assert!(
        row.into_iter()
            .eq((0..side).map(|column| place(59_000, column)))
    );
    assert_eq!(giant.take(), (side * 8, 1000));
    let corner = numbers(&archive, "-2:, -2:");
    let last = side - 1;
    let expected = [
        (last - 1, last - 1),
        (last - 1, last),
        (last, last - 1),
        (last, last),
    ];
    assert_eq!(corner, expected.map(|(row, column)| place(row, column)));
    assert_eq!(giant.take(), (8 + 16, 2));
}

/// A file in memory that is read like one on a disk, and counted.
struct Counted(Bytes, Arc<AtomicU64>);

impl Source for Counted {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.1.fetch_add(range.end - range.start, Relaxed);
        Source::read(&self.0, range)
    }
}

fn counted(archive: &Archive, version: &str, compressed: bool) -> (Archive, Arc<AtomicU64>) {
    let registry = Registry::standard();
    let mut options = ConvertOptions::default()
        .version(Some(version))
        .sparse(ops::Sparse::Keep);
    if compressed {
        options = options.compression(|_| Compression::Zstd(1));
    }
    let entry = registry.get("ztensor").unwrap();
    let mut files = write_to_memory(archive, entry, &options).unwrap();
    let bytes = Bytes::from(files.remove(&file_name(entry)).unwrap());
    let count = Arc::new(AtomicU64::new(0));
    let source = Arc::new(Counted(bytes, count.clone()));
    let opened = OpenOptions::new().read(source, Some("t.zt")).unwrap();
    count.store(0, Relaxed);
    (opened, count)
}

#[test]
fn a_row_of_a_sparse_matrix_by_rows_reads_that_row() {
    // 1000 rows of 50 entries each, in every twentieth column.
    let (rows, each) = (1000u64, 50u64);
    let le = |numbers: &mut dyn Iterator<Item = u64>| -> Bytes {
        numbers.flat_map(u64::to_le_bytes).collect()
    };
    let part = |role, bytes| Part::new(role, DType::U64, Payload::Inline(bytes));
    let nnz = rows * each;
    let mut info = TensorInfo::new("m", DType::U64, vec![rows, 1000], Layout::Csr { nnz });
    info.parts = vec![
        part(Role::Values, le(&mut (1..=nnz))),
        part(Role::Indices, le(&mut (0..nnz).map(|n| n % each * 20))),
        part(Role::Indptr, le(&mut (0..=rows).map(|row| row * each))),
    ]
    .into();
    let mut builder = ArchiveBuilder::new();
    builder.push_info(info).unwrap();
    let (archive, count) = counted(&builder.finish(), "1.2", false);
    let row = numbers(&archive, "700");
    let expected = (0..1000).map(|column| match column % 20 {
        0 => 700 * each + column / 20 + 1,
        _ => 0,
    });
    assert!(row.into_iter().eq(expected));
    // Where the row begins and ends, where the first begins and the last ends, columns, values.
    assert_eq!(count.load(Relaxed), 2 * 8 + 2 * 8 + each * 8 + each * 8);
}

#[test]
fn only_the_wanted_values_of_coordinates_are_read() {
    let nnz = 20_000u64;
    let le = |numbers: &mut dyn Iterator<Item = u64>| -> Bytes {
        numbers.flat_map(u64::to_le_bytes).collect()
    };
    let part = |role, bytes| Part::new(role, DType::U64, Payload::Inline(bytes));
    // One entry in every row, the rows from the last to the first.
    let mut info = TensorInfo::new("m", DType::U64, vec![nnz, nnz], Layout::Coo { nnz });
    let coords = (0..nnz).rev().chain((0..nnz).map(|n| n * 7 % nnz));
    info.parts = vec![
        part(Role::Values, le(&mut (1..=nnz))),
        part(Role::Coords, le(&mut coords.into_iter())),
    ]
    .into();
    let mut builder = ArchiveBuilder::new();
    builder.push_info(info).unwrap();
    let (archive, count) = counted(&builder.finish(), "1.2", false);
    let row = numbers(&archive, "100");
    let entry = nnz - 1 - 100;
    let expected = (0..nnz).map(|column| {
        if column == entry * 7 % nnz {
            entry + 1
        } else {
            0
        }
    });
    assert!(row.into_iter().eq(expected));
    assert_eq!(count.load(Relaxed), 2 * nnz * 8 + 8);
}

#[test]
fn only_the_frames_that_hold_a_row_are_decoded() {
    let mut rng = Rng::new(3);
    let bytes = Bytes::from(rng.bytes(16 << 20));
    let mut builder = ArchiveBuilder::new();
    builder
        .push("t", DType::U64, &[1 << 11, 1 << 10], bytes.clone())
        .unwrap();
    let (archive, count) = counted(&builder.finish(), "2", true);
    let row = numbers(&archive, "1000");
    let first = &bytes[1000 << 13..][..8];
    assert_eq!(row[0].to_le_bytes(), first);
    // Random bytes do not become less; a frame and the table of frames are a part of them.
    let read = count.load(Relaxed);
    assert!(read < 6 << 20, "{read} bytes were read");
}
