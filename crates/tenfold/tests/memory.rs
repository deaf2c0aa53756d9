//! Promises about memory: opening costs in proportion to the tensors, converting the same whatever the size, and
//! reading what is mapped costs nothing.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod support;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use support::memory::{Counting, on_all_threads, on_this_thread};
use support::random::{Rng, common_dtype};
use support::{
    InMemory, Kind, cases, file_name, first_choices, options_for, profiles, write_to_memory,
};
use tempfile::TempDir;
use tenfold::format::{Compression, Entry, Profile};
use tenfold::io::{AtomicOutput, Output, Sink, Source};
use tenfold::model::{BlockSpec, DType, Endian, Layout, Part, Payload, Role, SourceId, TensorInfo};
use tenfold::ops::{self, Conversion, ConvertOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes, OpenOptions, Result};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The counters are those of the whole process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Bytes that are made when they are read.
struct Made(u64);

impl Source for Made {
    fn len(&self) -> u64 {
        self.0
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap()];
        self.read_into(range.start, &mut bytes)?;
        Ok(bytes.into())
    }

    fn read_into(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        // Runs of a length that divides nothing, so that whatever is misplaced shows.
        const RUN: u64 = 251;
        let mut done = 0;
        while done < buffer.len() {
            let place = at + done as u64;
            let run = usize::try_from(RUN - place % RUN).unwrap();
            let end = buffer.len().min(done + run);
            buffer[done..end].fill((place / RUN * 37).to_le_bytes()[0]);
            done = end;
        }
        Ok(())
    }
}

/// A stream that keeps nothing.
struct Nowhere;

impl Sink for Nowhere {
    fn write(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

impl Output for Nowhere {
    fn create(&mut self, _: &str, _: Option<u64>) -> Result<Box<dyn Sink + '_>> {
        Ok(Box::new(Nowhere))
    }

    fn written(&self, _: &str) -> Result<Option<Arc<dyn Source>>> {
        Ok(None)
    }

    fn commit(&mut self) -> Result<()> {
        Ok(())
    }
}

/// How a tensor of some size is stored before it is converted.
#[derive(Clone, Copy, Debug)]
enum Stored {
    Raw,
    BigEndian,
    ColumnMajor,
    /// With rows that are longer than a piece.
    LongRows,
    Sparse,
}

/// One tensor of `len` bytes.
fn made(dtype: DType, len: u64, stored: Stored) -> Archive {
    let width = dtype.width().unwrap() as u64;
    // Rows that divide no power of two.
    let (rows, columns) = match stored {
        Stored::LongRows => (3, len / width / 3),
        _ => (len / width / 3072, 3072),
    };
    let len = rows * columns * width;
    let shape = vec![rows, columns];
    let mut builder = ArchiveBuilder::new();
    builder
        .push("holder", DType::U8, &[len], Made(len))
        .unwrap();
    let payload = Payload::Raw {
        source: SourceId::MAIN,
        range: 0..len,
    };
    let mut info = TensorInfo::dense("t", dtype, shape.clone(), payload);
    match stored {
        Stored::Raw => {}
        Stored::BigEndian => info.parts[0].endian = Endian::Big,
        Stored::ColumnMajor | Stored::LongRows => info.layout = Layout::ColumnMajor,
        Stored::Sparse => {
            // As many entries whatever the size.
            let nnz = 1000;
            let at = |dim: u64| (0..nnz).map(move |n| n * dim / nnz);
            let coords: Vec<u8> = (at(rows).chain(at(columns)))
                .flat_map(u64::to_le_bytes)
                .collect();
            let values = Bytes::from(vec![1; usize::try_from(nnz * width).unwrap()]);
            info = TensorInfo::new("t", dtype, shape, Layout::Coo { nnz });
            info.parts = vec![
                Part::new(Role::Values, dtype, Payload::Inline(values)),
                Part::new(Role::Coords, DType::U64, Payload::Inline(coords.into())),
            ]
            .into();
        }
    }
    builder.push_info(info).unwrap();
    builder.finish().select(|tensor| tensor.name != "holder")
}

/// On two threads, so that the bound is the same on every machine.
fn two_threads(profile: &Profile) -> ConvertOptions {
    options_for(profile).work(tenfold::Work::new().threads(2))
}

fn to_file(from: &Archive, entry: &Entry, options: &ConvertOptions, dir: &TempDir) -> Archive {
    let path = dir.path().join(file_name(entry));
    let mut out = AtomicOutput::file(&path).unwrap().sync(false).force(true);
    Conversion::prepare(from, entry, options)
        .unwrap()
        .write_to(&file_name(entry), &mut out)
        .unwrap();
    OpenOptions::new().open(&path).unwrap()
}

const SMALL: u64 = 8 << 20;
/// More than what one worker takes of a tensor at once.
const LARGE: u64 = 72 << 20;
/// What a conversion may hold on two threads.
const BOUND: usize = 40 << 20;

#[test]
fn converting_holds_pieces_whatever_the_size() {
    let _alone = alone();
    let all = [
        Stored::Raw,
        Stored::BigEndian,
        Stored::ColumnMajor,
        Stored::LongRows,
        Stored::Sparse,
    ];
    for (n, (entry, profile)) in first_choices().into_iter().enumerate() {
        let dtype = common_dtype(&profile.can);
        // All formats are written by the same code: a debug build tries everything with the first of them only.
        let some = if cfg!(debug_assertions) && n > 0 {
            1
        } else {
            all.len()
        };
        for stored in all.into_iter().take(some) {
            let what = format!("{stored:?} to {} {}", entry.spec.id, profile.version);
            let options = two_threads(profile);
            let peak = |len: u64| {
                let dir = TempDir::new().unwrap();
                let from = made(dtype, len, stored);
                let (written, file) = on_all_threads(|| to_file(&from, &entry, &options, &dir));
                if len == LARGE {
                    let same =
                        support::digest(&from, 2).content == support::digest(&written, 2).content;
                    assert!(same, "{what}: the content differs");
                }
                let (_, stream) = on_all_threads(|| {
                    let conversion = Conversion::prepare(&from, &entry, &options).unwrap();
                    conversion.write_to("stream", &mut Nowhere).unwrap()
                });
                file.max(stream)
            };
            assert_bounded(&what, peak(SMALL), peak(LARGE));
        }
    }
}

#[test]
fn figures_and_comparisons_hold_pieces_whatever_the_size() {
    let _alone = alone();
    for stored in [
        Stored::Raw,
        Stored::BigEndian,
        Stored::ColumnMajor,
        Stored::LongRows,
        Stored::Sparse,
    ] {
        let of_stats = ops::StatsOptions::default().work(tenfold::Work::new().threads(2));
        let of_diff = ops::DiffOptions::default().work(tenfold::Work::new().threads(2));
        let peaks = |len: u64| {
            let archive = made(DType::F32, len, stored);
            let (found, stats) = on_all_threads(|| ops::stats(&archive, &of_stats).unwrap());
            assert_eq!(
                found.total.numbers,
                archive
                    .tensors()
                    .map(|t| t.info().elements().unwrap())
                    .sum::<u64>()
            );
            // Once as they are, once through the numbers of another type.
            let cast = ops::cast(&archive, |tensor| {
                tensor.layout.is_dense().then_some(DType::F64)
            });
            let (cast, mut of_numbers) = (cast.unwrap(), of_diff.clone());
            of_numbers = of_numbers.ignore_dtype(true);
            let (same, bytes) = on_all_threads(|| ops::diff(&archive, &archive, &of_diff).unwrap());
            let (close, numbers) =
                on_all_threads(|| ops::diff(&archive, &cast, &of_numbers).unwrap());
            assert!(same.is_equal() && close.is_equal(), "{stored:?}");
            stats.max(bytes).max(numbers)
        };
        assert_bounded(
            &format!("figures of {stored:?}"),
            peaks(SMALL),
            peaks(LARGE),
        );
    }
}

#[test]
fn compressing_and_decompressing_hold_pieces_whatever_the_size() {
    let _alone = alone();
    for (entry, profile) in profiles().into_iter().filter(|(_, to)| to.can.zstd) {
        let dtype = common_dtype(&profile.can);
        let mut zstd = two_threads(profile);
        zstd = zstd.compression(|_| Compression::Zstd(1));
        let mut raw = two_threads(profile);
        raw = raw.compression(|_| Compression::Raw);
        let peaks = |len: u64| {
            let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
            let from = made(dtype, len, Stored::Raw);
            let (packed, pack) = on_all_threads(|| to_file(&from, &entry, &zstd, &dir));
            let (unpacked, unpack) = on_all_threads(|| to_file(&packed, &entry, &raw, &other));
            let same = support::digest(&from, 2).content == support::digest(&unpacked, 2).content;
            assert!(same, "the content differs");
            (pack, unpack)
        };
        let what = format!("{} {}", entry.spec.id, profile.version);
        let (small, large) = (peaks(SMALL), peaks(LARGE));
        assert_bounded(&format!("compressing to {what}"), small.0, large.0);
        assert_bounded(&format!("decompressing from {what}"), small.1, large.1);
    }
}

fn assert_bounded(what: &str, small: usize, large: usize) {
    println!("{what}: {small} bytes for 8 MiB, {large} for 72 MiB");
    assert!(large <= BOUND, "{what}: {large} bytes at once");
    // 8 MiB are two pieces of 4 MiB; of more, a few more are under way at once.
    assert!(
        large <= small + (16 << 20),
        "{what}: {small} bytes for 8 MiB, {large} for 72 MiB"
    );
}

#[test]
fn digesting_and_verifying_hold_pieces_whatever_the_size() {
    let _alone = alone();
    for stored in [Stored::Raw, Stored::BigEndian, Stored::LongRows] {
        let from = made(DType::F32, LARGE, stored);
        let (_, peak) = on_all_threads(|| {
            support::digest(&from, 2);
            support::verify(&from, 2);
        });
        assert!(peak <= 24 << 20, "{stored:?}: {peak} bytes at once");
    }
}

#[test]
fn opening_costs_in_proportion_to_the_tensors() {
    let _alone = alone();
    for (entry, profile) in profiles() {
        let what = format!("{} {}", entry.spec.id, profile.version);
        let mut costs = Vec::new();
        for count in [1_000, 10_000] {
            if profile.can.max_tensors < count {
                continue;
            }
            let dtype = common_dtype(&profile.can);
            let width = dtype.width().unwrap();
            let mut builder = ArchiveBuilder::new();
            for n in 0..count {
                let name = format!("model.layers.{n}.mlp.weight");
                let data = Bytes::from(vec![1; 2 * width]);
                builder.push(name, dtype, &[2, 1], data).unwrap();
            }
            let files = write_to_memory(&builder.finish(), &entry, &options_for(profile)).unwrap();
            let file = InMemory::written(files, &file_name(&entry));
            let (archive, used) = on_this_thread(|| file.open().unwrap());
            assert_eq!(archive.tensors().len() as u64, count, "{what}");
            let each = |n: usize| n / usize::try_from(count).unwrap();
            println!(
                "{what}: {count} tensors: each {} allocations, {} bytes kept, {} at once",
                each(used.allocations),
                each(used.kept),
                each(used.peak)
            );
            // Most need one to four allocations for each; a format that keeps the levels of a name apart, more.
            // YAML costs strings for every word of it, and an array of Zarr has a document of its own.
            let (allocations, peak) = match entry.spec.id {
                "cc4s" | "zarr" => (96, 6144),
                _ => (32, 3072),
            };
            assert!(each(used.allocations) <= allocations, "{what}: {used:?}");
            assert!(each(used.kept) <= 2048, "{what}: {used:?}");
            assert!(each(used.peak) <= peak, "{what}: {used:?}");
            costs.push(used.allocations as u64 / count);
        }
        assert!(
            costs.windows(2).all(|pair| pair[1] <= pair[0] + 1),
            "{what}: {costs:?} allocations for each"
        );
    }
}

/// A file of many tensors of rank 2, with names as models have them.
fn many(entry: &Entry, options: &ConvertOptions, dtype: DType, count: u64) -> InMemory {
    let columns = 64;
    let len = dtype.bytes_for(columns).unwrap();
    let data: Arc<dyn Source> = Arc::new(Bytes::from(vec![0; usize::try_from(len).unwrap()]));
    let mut builder = ArchiveBuilder::new();
    builder.push("holder", DType::U8, &[len], data).unwrap();
    let mut names = 0;
    for n in 0..count {
        let name = format!("model.layers.{}.experts.{}.up_proj.weight", n / 8, n % 8);
        names += name.len() as u64;
        let info = TensorInfo::dense(name, dtype, [1, columns], Payload::main(0..len));
        builder.push_info(info).unwrap();
    }
    assert_eq!(names / count, 42);
    let archive = builder.finish().select(|tensor| tensor.name != "holder");
    let files = write_to_memory(&archive, entry, options).unwrap();
    InMemory::written(files, &file_name(entry))
}

/// Opening asks for a few pieces of memory at most for each, of which its name alone stays.
#[test]
fn an_opened_archive_holds_at_most_300_bytes_for_a_tensor() {
    const COUNT: u64 = 100_000;
    let _alone = alone();
    let wanted = ["safetensors", "gguf", "ztensor", "mag", "burnpack"];
    let mut wrong = Vec::new();
    for (entry, profile) in profiles() {
        if !wanted.contains(&entry.spec.id) || profile.can.max_tensors < COUNT {
            continue;
        }
        let blocks = BlockSpec::from_name("Q4_0").map(DType::Block);
        let blocks = blocks.filter(|_| entry.spec.id == "gguf");
        for dtype in [common_dtype(&profile.can)].into_iter().chain(blocks) {
            let file = many(&entry, &options_for(profile), dtype, COUNT);
            let (archive, used) = on_this_thread(|| file.open().unwrap());
            assert_eq!(archive.tensors().len() as u64, COUNT);
            let each = |n: usize| n as u64 / COUNT;
            let what = format!(
                "{} {} {dtype}: each {} bytes, {} at once, {}.{} allocations",
                entry.spec.id,
                profile.version,
                each(used.kept),
                each(used.peak),
                each(used.allocations),
                each(used.allocations * 10) % 10,
            );
            println!("{what}");
            if each(used.kept) > 300 || each(used.peak) > 600 || each(used.allocations) > 4 {
                wrong.push(what);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where bytes are in memory.
fn place(bytes: &[u8]) -> Range<usize> {
    let start = bytes.as_ptr() as usize;
    start..start + bytes.len()
}

#[test]
fn stored_bytes_are_those_of_the_source_and_outlive_the_archive() {
    let _alone = alone();
    let mut shared = 0;
    for case in cases(Kind::Valid) {
        let Some(file) = case.file() else { continue };
        let archive = file.open().unwrap();
        let whole = place(&file.bytes);
        for info in &archive.manifest().tensors {
            let part = info.parts.first().filter(|_| info.defect.is_none());
            let Some((SourceId::MAIN, range)) = part.and_then(|part| part.payload.stored()) else {
                continue;
            };
            let tensor = archive.tensor(&info.name).unwrap();
            let (stored, used) = on_this_thread(|| tensor.stored().unwrap());
            let what = format!("{}: {:?}", case.title(), info.name);
            assert!(used.total < 1024, "{what}: {used:?}");
            if range.is_empty() {
                continue;
            }
            let at = whole.start + usize::try_from(range.start).unwrap();
            assert_eq!(place(&stored), at..at + stored.len(), "{what}");
            shared += 1;
        }
    }
    assert!(shared > 50, "only {shared} tensors");
}

#[cfg(feature = "mmap")]
#[test]
fn a_mapped_file_is_shared_and_stays_mapped_as_long_as_it_is_used() {
    let _alone = alone();
    for (entry, profile) in profiles() {
        // Numbers that begin with their highest byte are turned, which takes a copy.
        if profile.can.big_endian {
            continue;
        }
        let dtype = common_dtype(&profile.can);
        let width = dtype.width().unwrap();
        let mut data = Rng::new(1).bytes(100_000 * width);
        data.iter_mut().for_each(|byte| *byte &= 1);
        let mut builder = ArchiveBuilder::new();
        let bytes = Bytes::from(data);
        builder.push("t", dtype, &[100_000], bytes.clone()).unwrap();
        let dir = TempDir::new().unwrap();
        let path = dir.path().join(file_name(&entry));
        let mut out = AtomicOutput::file(&path).unwrap().sync(false);
        Conversion::prepare(&builder.finish(), &entry, &options_for(profile))
            .unwrap()
            .write_to(&file_name(&entry), &mut out)
            .unwrap();

        #[allow(unsafe_code)]
        // SAFETY: nobody else knows of the file, which is removed and not changed.
        let archive = unsafe { Archive::map(&path) }.unwrap();
        let tensor = archive.tensors().next().unwrap();
        // Beside the file that was opened, where the format keeps its data there.
        let (file, _) = tensor.info().parts[0].payload.stored().unwrap();
        let source = archive.source(file).unwrap();
        let whole = place(&source.read(0..source.len()).unwrap());
        let ((stored, canonical), used) =
            on_this_thread(|| (tensor.stored().unwrap(), tensor.canonical().unwrap()));
        assert!(used.total < 2048, "{used:?}");
        for found in [place(&stored), place(&canonical)] {
            assert!(
                whole.start <= found.start && found.end <= whole.end,
                "{} {}: a copy",
                entry.spec.id,
                profile.version
            );
        }
        drop(archive);
        std::fs::remove_file(&path).unwrap();
        assert!(canonical == bytes);
        assert!(stored == bytes);
    }
}
