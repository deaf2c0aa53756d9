use super::*;
use crate::archive::{Archive, ArchiveBuilder};
use crate::model::{
    Chunks, Cuts, DType, Layout, Locate, Located, Manifest, Part, Payload, ReadFile, Role,
    SourceId, TensorInfo,
};
use bytes::Bytes;
use core::sync::atomic::{AtomicU64, Ordering};

fn matrix(rows: u64, columns: u64) -> Archive {
    let mut builder = ArchiveBuilder::new();
    let numbers: Vec<f32> = (0..rows * columns).map(|n| n as f32).collect();
    builder.tensor("w", [rows, columns], numbers).unwrap();
    builder.finish()
}

/// The mean of the numbers for which `is_in` is true.
fn mean(rows: u64, columns: u64, is_in: impl Fn(u64, u64) -> bool) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for row in 0..rows {
        for column in 0..columns {
            if is_in(row, column) {
                sum += (row * columns + column) as f64;
                count += 1.0;
            }
        }
    }
    sum / count
}

#[test]
fn cells_have_the_means_of_their_numbers() {
    let archive = matrix(7, 10);
    for (high, wide) in [(1, 1), (2, 3), (7, 10), (3, 10), (900, 900)] {
        let options = PictureOptions::new().cells(high, wide);
        let picture = picture(&archive, 0, &options).unwrap();
        let (high, wide) = (u64::from(high).min(7), u64::from(wide).min(10));
        assert_eq!(picture.cells.len() as u64, high * wide);
        for (n, cell) in picture.cells.iter().enumerate() {
            let (row, column) = (n as u64 / wide, n as u64 % wide);
            let wanted = mean(7, 10, |r, c| r * high / 7 == row && c * wide / 10 == column);
            assert!((cell.mean().unwrap() - wanted).abs() < 1e-9);
        }
        assert!(picture.is_exact());
        assert_eq!((picture.total().numbers(), picture.zeros), (70, 1));
    }
}

#[test]
fn axes_parts_and_swapped_axes_show_the_same_numbers() {
    let archive = matrix(6, 8);
    let options = PictureOptions::new()
        .part(Some(1..5), Some(2..8))
        .cells(2, 3);
    let one = picture(&archive, 0, &options).unwrap();
    assert_eq!(one.cells[0].min, 10.0);
    assert_eq!(one.cells[5].max, 39.0);
    let options = PictureOptions::new()
        .axes(Some((1, 0)))
        .part(Some(2..8), Some(1..5))
        .cells(3, 2);
    let other = picture(&archive, 0, &options).unwrap();
    for row in 0..2 {
        for column in 0..3 {
            assert_eq!(one.cells[row * 3 + column], other.cells[column * 2 + row]);
        }
    }
    let options = PictureOptions::new().axes(Some((1, 1)));
    assert!(picture(&archive, 0, &options).is_err());
    let options = PictureOptions::new().part(Some(0..7), None);
    assert!(picture(&archive, 0, &options).is_err());
}

#[test]
fn a_vector_is_folded_and_a_scalar_is_a_cell() {
    let mut builder = ArchiveBuilder::new();
    let numbers: Vec<f64> = (0..10).map(f64::from).collect();
    builder.tensor("v", [10], numbers).unwrap();
    builder.tensor("s", [], [5i32]).unwrap();
    builder.tensor("e", [0, 3], Vec::<f32>::new()).unwrap();
    let archive = builder.finish();
    let folded = picture(&archive, 0, &PictureOptions::new().fold(Some(4))).unwrap();
    assert_eq!(folded.size, (3, 4));
    let shown: Vec<_> = folded.cells.iter().map(Cell::mean).collect();
    let wanted = (0..12).map(|n| (n < 10).then_some(f64::from(n)));
    assert_eq!(shown, wanted.collect::<Vec<_>>());
    let options = PictureOptions::new().fold(Some(4)).part(None, Some(1..3));
    let part = picture(&archive, 0, &options).unwrap();
    let shown: Vec<_> = part.cells.iter().map(Cell::mean).collect();
    assert_eq!(
        shown,
        [Some(1.0), Some(2.0), Some(5.0), Some(6.0), Some(9.0), None]
    );
    let line = picture(&archive, 0, &PictureOptions::new()).unwrap();
    assert_eq!(line.size, (1, 10));
    let scalar = picture(&archive, 1, &PictureOptions::new()).unwrap();
    assert_eq!((scalar.size, scalar.cells[0].max), ((1, 1), 5.0));
    let empty = picture(&archive, 2, &PictureOptions::new()).unwrap();
    assert!(empty.cells.is_empty() && empty.is_exact());
}

/// A matrix of which every row, or every column, is one number, of a hundred and some MiB.
struct Lines {
    line: u64,
    count: u64,
}

impl crate::io::Source for Lines {
    fn len(&self) -> u64 {
        self.line * self.count * 4
    }

    fn read(&self, range: Range<u64>) -> crate::Result<Bytes> {
        let numbers = (range.start / 4..range.end.div_ceil(4)).map(|n| (n / self.line) as f32);
        let bytes: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
        let from = (range.start % 4) as usize;
        let len = usize::try_from(range.end - range.start).unwrap();
        Ok(Bytes::from(bytes).slice(from..from + len))
    }
}

fn large(layout: Layout, shape: [u64; 2]) -> Archive {
    let line = match layout {
        Layout::ColumnMajor => shape[0],
        _ => shape[1],
    };
    let count = shape[0] * shape[1] / line;
    let source = Lines { line, count };
    let range = 0..crate::io::Source::len(&source);
    let mut builder = ArchiveBuilder::new();
    builder
        .push("x", DType::U8, [1], Bytes::from_static(&[0]))
        .unwrap();
    let archive = builder.finish();
    let payload = Payload::Raw {
        source: SourceId(0),
        range,
    };
    let mut info = TensorInfo::dense("w", DType::F32, shape.to_vec(), payload);
    info.layout = layout;
    let mut manifest = archive.manifest().clone();
    manifest.tensors = vec![info].into_iter().collect();
    read_from(source, manifest)
}

fn read_from(source: Lines, manifest: Manifest) -> Archive {
    let sources: Vec<Arc<dyn crate::io::Source>> = vec![Arc::new(source)];
    let limits = crate::io::Limits::default();
    Archive::assemble(None, manifest, sources, vec![None], Vec::new(), limits)
}

#[test]
fn a_large_tensor_is_sampled_along_what_lies_together() {
    for (layout, shape) in [
        (Layout::RowMajor, [5000, 4096]),
        (Layout::ColumnMajor, [4096, 5000]),
    ] {
        let is_by_columns = layout == Layout::ColumnMajor;
        let archive = large(layout, shape);
        let options = PictureOptions::new().cells(50, 50);
        let sampled = picture(&archive, 0, &options).unwrap();
        assert_eq!(
            (sampled.lines, sampled.is_by_columns),
            ((50, 5000), is_by_columns)
        );
        assert!(!sampled.is_exact());
        for row in 0..50 {
            for column in 0..50 {
                // Every hundredth line is read, the middle one of its cell.
                let line = if is_by_columns { column } else { row };
                let cell = &sampled.cells[row * 50 + column];
                assert_eq!(
                    (cell.min, cell.max),
                    ((line * 100 + 50) as f64, (line * 100 + 50) as f64)
                );
            }
        }
        // A few bytes are a few lines, scattered.
        let mut steps = PictureSteps::new(&archive, 0, &options.threads(1)).unwrap();
        let progress = steps.step(1).unwrap();
        assert!(!progress.is_finished);
        assert_eq!((progress.done, progress.total), (4096 * 4, 50 * 4096 * 4));
        assert_eq!(steps.picture().lines.0, 1);
    }
}

#[test]
fn what_lies_apart_is_sampled_both_ways() {
    let mut builder = ArchiveBuilder::new();
    builder
        .push("x", DType::U8, [1], Bytes::from_static(&[0]))
        .unwrap();
    let source = Lines {
        line: 16,
        count: 2000 * 2000,
    };
    let payload = Payload::Raw {
        source: SourceId(0),
        range: 0..crate::io::Source::len(&source),
    };
    let info = TensorInfo::dense("w", DType::F32, vec![2000, 2000, 16], payload);
    let mut manifest = builder.finish().manifest().clone();
    manifest.tensors = vec![info].into_iter().collect();
    let archive = read_from(source, manifest);
    let options = PictureOptions::new()
        .axes(Some((0, 1)))
        .at([0, 0, 3])
        .cells(100, 100);
    let sampled = picture(&archive, 0, &options).unwrap();
    assert_eq!((sampled.lines, sampled.stride), ((100, 2000), 20));
    assert_eq!(sampled.total().numbers(), 100 * 100);
    // Row 10 of the first cell, column 0.
    assert_eq!(sampled.cells[0].mean(), Some(20_000.0));
}

#[test]
fn of_long_lines_a_stretch_of_each_cell_is_read() {
    // Four lines of 16 MiB, in which a number is that of its thousand.
    let (rows, columns) = (4u64, 4 << 20);
    let manifest = large(Layout::RowMajor, [rows, columns]).manifest().clone();
    let count = rows * columns / 1000 + 1;
    let archive = read_from(Lines { line: 1000, count }, manifest);
    let options = PictureOptions::new().cells(4, 64).threads(1);
    let mut steps = PictureSteps::new(&archive, 0, &options).unwrap();
    let about = steps.bytes();
    assert!(about <= 32 << 20, "{about} bytes");
    let first = steps.step(1).unwrap();
    assert!(first.done <= 1 << 20, "{} bytes at once", first.done);
    let sampled = steps.finish().unwrap();
    assert!(!sampled.is_exact());
    assert_eq!(sampled.lines, (0, rows));
    let numbers = sampled.total().numbers();
    assert_eq!(numbers * 4, about);
    for (n, cell) in sampled.cells.iter().enumerate() {
        let (row, column) = (n as u64 / 64, n as u64 % 64);
        let begin = row * columns + column * (columns / 64);
        let (from, to) = (begin / 1000, (begin + columns / 64).div_ceil(1000));
        assert!(cell.numbers() > 0 && cell.min >= from as f64 && cell.max <= to as f64);
        assert!(
            cell.min > from as f64,
            "the middle of cell {n}, not its beginning"
        );
    }
    // Asked for, all of it is read, but never a line at once.
    let mut steps = PictureSteps::new(&archive, 0, &options.all(true)).unwrap();
    assert_eq!(steps.bytes(), rows * columns * 4);
    assert_eq!(steps.step(1).unwrap().done, 1 << 20);
    let whole = steps.finish().unwrap();
    assert!(whole.is_exact());
    assert_eq!(whole.total().numbers(), rows * columns);
}

/// Chunks that are all the same bytes, and how often one was looked for.
#[derive(Debug)]
struct Counted {
    bytes: Bytes,
    found: Arc<AtomicU64>,
}

impl Locate for Counted {
    fn locate(&self, _: &ReadFile<'_>, _: &[u64]) -> crate::Result<Option<Located>> {
        self.found.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Located::new(Payload::Inline(self.bytes.clone()))))
    }
}

#[test]
fn of_many_chunks_some_are_read_here_and_there() {
    // 64 chunks of 1 MiB, each of which begins with the number 7.
    let side = 512u64;
    let mut numbers = vec![1f32; 512 * 512];
    numbers[0] = 7.0;
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let found = Arc::new(AtomicU64::new(0));
    let mut chunks = Chunks::new([8 * side, 8 * side], 4);
    chunks.grid = vec![Cuts::Every(side), Cuts::Every(side)];
    chunks.index = Some(Arc::new(Counted {
        bytes: bytes.into(),
        found: found.clone(),
    }));
    let mut info = TensorInfo::new("t", DType::F32, chunks.shape.clone(), Layout::Chunked);
    info.parts = Part::new(Role::Values, DType::F32, Payload::Chunks(Arc::new(chunks))).into();
    let mut builder = ArchiveBuilder::new();
    builder.push_info(info).unwrap();
    let archive = builder.finish();

    let options = PictureOptions::new().cells(64, 64).threads(1);
    let mut steps = PictureSteps::new(&archive, 0, &options).unwrap();
    assert_eq!(steps.bytes(), 32 << 20);
    assert_eq!(steps.step(1).unwrap().done, 1 << 20);
    assert_eq!(found.load(Ordering::Relaxed), 1);
    let sampled = steps.finish().unwrap();
    assert_eq!(found.load(Ordering::Relaxed), 32);
    assert!(!sampled.is_exact());
    // A chunk is eight rows and columns of cells, and what was not read says so.
    let is_read = |row: usize, column: usize| sampled.cells[row * 64 + column].numbers() > 0;
    for row in 0..8 {
        let read = (0..8).filter(|column| is_read(row * 8, column * 8)).count();
        assert_eq!(read, 4, "of the {row}th row of chunks");
    }
    for cell in sampled.cells.iter().filter(|cell| cell.numbers() > 0) {
        assert_eq!((cell.numbers(), cell.min), (64 * 64, 1.0));
    }

    let whole = picture(&archive, 0, &options.clone().all(true)).unwrap();
    assert!(whole.is_exact());
    assert_eq!(found.load(Ordering::Relaxed), 32 + 64, "each of them once");
    assert_eq!(whole.cells[0].max, 7.0);
    // One chunk is read whole, whatever its size, and so is a part of several that are small.
    let part = options.part(Some(500..520), Some(500..520));
    let part = picture(&archive, 0, &part).unwrap();
    assert!(part.is_exact());
    assert_eq!(part.total().max, 7.0);
}

#[test]
fn threads_and_steps_change_nothing() {
    let archive = matrix(300, 1000);
    let options = PictureOptions::new().cells(37, 41);
    let alone = picture(&archive, 0, &options.clone().threads(1)).unwrap();
    let mut steps = PictureSteps::new(&archive, 0, &options.threads(3)).unwrap();
    while !steps.step(1).unwrap().is_finished {}
    for (cell, other) in alone.cells.iter().zip(&steps.picture().cells) {
        assert_eq!(cell, other);
    }
}
