//! Chunks in memory, held against the dense tensor that they were cut from.

#[cfg(any(feature = "dcp", feature = "tf_checkpoint"))]
mod tiles;

use super::*;
use crate::Archive;
use crate::model::{Cuts, DType, Filter, Layout, Located, Part, ReadFile, Role, Slice};

/// Chunks by their numbers.
#[derive(Debug)]
struct Listed(Vec<(Vec<u64>, Located)>);

impl crate::model::Locate for Listed {
    fn locate(&self, _: &ReadFile<'_>, chunk: &[u64]) -> Result<Option<Located>> {
        let found = self.0.iter().find(|(number, _)| number == chunk);
        Ok(found.map(|(_, located)| located.clone()))
    }
}

/// The elements of a tensor: every second byte of a counter.
fn dense(shape: &[u64]) -> Vec<u8> {
    let count: u64 = shape.iter().product();
    (0..count)
        .flat_map(|n| u16::try_from(n * 7 % 65521).unwrap().to_le_bytes())
        .collect()
}

/// All numbers of chunks of a grid.
fn numbers(counts: &[u64]) -> Vec<Vec<u64>> {
    counts.iter().fold(vec![Vec::new()], |all, &count| {
        let longer = |before: &Vec<u64>| {
            let before = before.clone();
            (0..count).map(move |n| [before.as_slice(), &[n]].concat())
        };
        all.iter().flat_map(longer).collect()
    })
}

/// Cuts a tensor into chunks; `None` where one is to be missing.
fn cut(
    shape: &[u64],
    grid: &[Cuts],
    padded: bool,
    is_missing: fn(&[u64]) -> bool,
) -> (Chunks, Vec<u8>) {
    let mut expected = dense(shape);
    let mut chunks = Chunks::new(shape, 2);
    chunks.grid = grid.to_vec();
    chunks.padded = padded;
    chunks.fill = Bytes::from_static(&[0xfe, 0xca]);
    chunks.filters = vec![Filter::Shuffle { width: 2 }];
    let mut listed = Vec::new();
    for number in numbers(&chunks.counts()) {
        let sides: Vec<Range<u64>> = (number.iter().zip(shape).zip(grid))
            .map(|((&n, &dim), cuts)| {
                let mut side = match cuts {
                    Cuts::Every(side) => n * side..(n + 1) * side,
                    Cuts::At(places) => {
                        let n = usize::try_from(n).unwrap();
                        let start = if n == 0 { 0 } else { places[n - 1] };
                        start..places.get(n).copied().unwrap_or(dim)
                    }
                };
                if !padded {
                    side.end = side.end.min(dim);
                }
                side
            })
            .collect();
        let lens: Vec<u64> = sides.iter().map(|side| side.end - side.start).collect();
        let mut bytes = Vec::new();
        for within in numbers(&lens) {
            let index: Vec<u64> = within
                .iter()
                .zip(&sides)
                .map(|(n, side)| n + side.start)
                .collect();
            let place = index.iter().zip(shape).try_fold(0, |place, (index, dim)| {
                (index < dim).then_some(place * dim + index)
            });
            match place.map(|place| usize::try_from(place).unwrap() * 2) {
                Some(place) if is_missing(&number) => {
                    expected[place..place + 2].copy_from_slice(&chunks.fill);
                }
                Some(place) => bytes.extend_from_slice(&expected[place..place + 2]),
                None => bytes.extend([0x55, 0x55]),
            }
        }
        if is_missing(&number) {
            continue;
        }
        // Every third is stored without the filter.
        let mut located = Located::new(Payload::Inline(Bytes::new()));
        if number.iter().sum::<u64>() % 3 == 0 {
            located.skipped = 1;
        } else {
            bytes = (0..2)
                .flat_map(|n| bytes.iter().skip(n).step_by(2))
                .copied()
                .collect();
        }
        located.payload = Payload::Inline(bytes.into());
        listed.push((number, located));
    }
    chunks.index = Some(Arc::new(Listed(listed)));
    (chunks, expected)
}

fn archive(chunks: Chunks) -> Archive {
    let mut info = TensorInfo::new("t", DType::U16, chunks.shape.clone(), Layout::Chunked);
    info.parts = Part::new(Role::Values, DType::U16, Payload::Chunks(Arc::new(chunks))).into();
    let mut builder = crate::ArchiveBuilder::new();
    builder.push_info(info).unwrap();
    builder.finish()
}

#[test]
fn a_tensor_is_the_same_however_it_is_cut() {
    type Case<'c> = (&'c [u64], Vec<Cuts>, bool);
    let cases: [Case<'_>; 7] = [
        (&[10], vec![Cuts::Every(3)], true),
        (&[10], vec![Cuts::At(vec![1, 2, 7])], false),
        (&[5, 7], vec![Cuts::Every(2), Cuts::Every(3)], true),
        (&[5, 7], vec![Cuts::Every(2), Cuts::Every(3)], false),
        (
            &[4, 5, 6],
            vec![Cuts::Every(1), Cuts::Every(2), Cuts::Every(4)],
            true,
        ),
        (
            &[3, 4, 5],
            vec![Cuts::At(vec![2]), Cuts::Every(9), Cuts::At(vec![1, 3])],
            false,
        ),
        (
            &[2, 3, 1, 4],
            vec![
                Cuts::Every(2),
                Cuts::Every(2),
                Cuts::Every(1),
                Cuts::Every(3),
            ],
            true,
        ),
    ];
    for (shape, grid, padded) in cases {
        for is_missing in [(|_| false) as fn(&[u64]) -> bool, |number| number[0] == 1] {
            let (chunks, expected) = cut(shape, &grid, padded, is_missing);
            let archive = archive(chunks);
            let tensor = archive.tensor("t").unwrap();
            assert_eq!(tensor.canonical().unwrap(), expected, "{shape:?} {grid:?}");
            let range = |start, stop, step| vec![Slice::Range { start, stop, step }; shape.len()];
            let (second, reversed) = (range(None, None, 2), range(None, None, -1));
            let inner = range(Some(1), Some(3), 1);
            let mut plain = crate::ArchiveBuilder::new();
            plain
                .push("t", DType::U16, shape, Bytes::from(expected))
                .unwrap();
            let plain = plain.finish();
            for slices in [second, reversed, inner] {
                let of = |archive: &Archive| {
                    let tensor = archive.tensor("t").unwrap();
                    tensor.slice(&slices).unwrap().to_bytes().unwrap()
                };
                assert_eq!(of(&archive), of(&plain), "{shape:?} {grid:?} {slices:?}");
            }
        }
    }
}

#[test]
fn both_orders_are_read() {
    let grid = [Cuts::Every(2), Cuts::Every(3), Cuts::Every(2)];
    let (chunks, expected) = cut(&[5, 7, 3], &grid, true, |number| number == [1, 1, 0]);
    let mut columns = Vec::new();
    for k in 0..3 {
        for j in 0..7 {
            for i in 0..5 {
                let at = ((i * 7 + j) * 3 + k) * 2;
                columns.extend_from_slice(&expected[at..at + 2]);
            }
        }
    }
    let archive = archive(chunks);
    let form = crate::model::Form {
        dtype: DType::U16,
        order: Order::ColumnMajor,
        endian: Endian::Little,
    };
    let info = archive.tensor("t").unwrap().info().clone();
    let view = crate::transform::View::dense(archive.data(), &info, &form).unwrap();
    assert_eq!(view.collect(u64::MAX).unwrap(), columns);
}

#[test]
fn a_chunk_of_another_length_is_refused() {
    let (mut chunks, _) = cut(&[4], &[Cuts::Every(2)], true, |_| false);
    let mut located = Located::new(Payload::Inline(Bytes::from_static(&[1, 2, 3])));
    for skipped in [0, 1] {
        located.skipped = skipped;
        chunks.index = Some(Arc::new(Listed(vec![(vec![0], located.clone())])));
        let archive = archive(chunks.clone());
        let error = archive.tensor("t").unwrap().canonical().unwrap_err();
        assert_eq!(error.rule(), "file.chunk-size");
    }
}

#[test]
fn what_is_not_stored_at_all_is_the_fill_value() {
    let mut chunks = Chunks::new([3, 2], 2);
    chunks.fill = Bytes::from_static(&[1, 2]);
    let archive = archive(chunks);
    assert_eq!(
        archive.tensor("t").unwrap().canonical().unwrap(),
        [1, 2].repeat(6)
    );
}

#[test]
fn more_chunks_than_a_file_can_have_are_refused() {
    let (mut chunks, _) = cut(&[4], &[Cuts::Every(1)], true, |_| false);
    chunks.shape = [1 << 28].into();
    let archive = archive(chunks);
    let error = archive.tensor("t").unwrap().canonical().unwrap_err();
    assert_eq!(error.rule(), "file.chunks");
}
