//! Random archives that fit what a version can hold: written to memory and to a file, on one thread and on several, they
//! are the same bytes, and they read back as they were.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use support::random::{self, Rng};
use support::values::compare;
use support::{
    InMemory, errors, file_name, first_choices, is_impossible, options_for, profiles, write_on,
    write_to_memory,
};
use tempfile::TempDir;
use tenfold::format::{Compression, Entry};
use tenfold::io::AtomicOutput;
use tenfold::model::{DType, Endian, Layout, Payload, TensorInfo};
use tenfold::ops::{Conversion, ConvertOptions};
use tenfold::{Archive, ArchiveBuilder, Control, OpenOptions, Work};

/// Archives for each version.
const ROUNDS: u64 = if cfg!(debug_assertions) { 25 } else { 300 };

#[test]
fn random_archives_read_back_as_they_were() {
    let (mut tensors, mut refused) = (0, 0);
    for (entry, profile) in profiles() {
        for round in 0..ROUNDS {
            let mut rng = Rng::new(round);
            let archive = random::archive(&mut rng, &profile.can);
            let options = random::options(&mut rng, profile);
            let what = format!("{} {} round {round}", entry.spec.id, profile.version);
            // Tensors that fit by themselves need not fit together, such as one named like a prefix of another.
            if is_impossible(&archive, &entry, &options) {
                refused += 1;
                continue;
            }
            tensors += archive.tensors().len();
            round_trip(&archive, &entry, &options).unwrap_or_else(|why| panic!("{what}: {why}"));
        }
    }
    let floor = profiles().len() as u64 * ROUNDS / 2;
    assert!(tensors as u64 > floor, "only {tensors} tensors");
    assert!(refused < floor, "{refused} archives were refused");
}

#[test]
fn large_tensors_are_the_same_bytes_on_every_way_to_a_file() {
    for (entry, profile) in first_choices() {
        let dtype = random::common_dtype(&profile.can);
        let width = dtype.width().unwrap();
        let mut rng = Rng::new(7);
        let mut tensors = Vec::new();
        let plain = (Layout::RowMajor, Endian::Little);
        let rows_big = (Layout::RowMajor, Endian::Big);
        let columns = (Layout::ColumnMajor, Endian::Little);
        let columns_big = (Layout::ColumnMajor, Endian::Big);
        // Around what is gathered and what is a piece, with rows that divide neither.
        let all = [
            ([3, 5], plain.clone()),
            ([217, 301], plain.clone()),
            ([217, 301], rows_big.clone()),
            ([217, 301], columns.clone()),
            ([2, 40_001], columns_big.clone()),
            ([1531, 701], plain),
            ([1531, 701], rows_big),
            ([1531, 701], columns),
            ([701, 1531], columns_big),
            ([5, 3], (Layout::ColumnMajor, Endian::Little)),
        ];
        for (n, ([rows, columns], (layout, endian))) in all.into_iter().enumerate() {
            let payload = Payload::Inline(rng.bytes(rows * columns * width).into());
            let shape = vec![rows as u64, columns as u64];
            let mut info = TensorInfo::dense(format!("t{n}"), dtype, shape, payload);
            info.layout = layout;
            info.parts[0].endian = endian;
            tensors.push(info);
        }
        tensors.truncate(usize::try_from(profile.can.max_tensors).unwrap_or(usize::MAX));
        if tensors.is_empty() {
            continue; // a version with none of these types
        }
        let mut builder = ArchiveBuilder::new();
        for info in tensors {
            builder.push_info(info).unwrap();
        }
        let archive = builder.finish();
        let mut ways = vec![options_for(profile)];
        if profile.can.zstd {
            let zstd = options_for(profile).compression(|_| Compression::Zstd(1));
            ways.push(zstd);
        }
        for options in ways {
            round_trip(&archive, &entry, &options)
                .unwrap_or_else(|why| panic!("{} {}: {why}", entry.spec.id, profile.version));
        }
    }
}

#[test]
fn tensors_that_become_equal_when_they_are_read_are_not_mixed_up() {
    let inline = |bytes: &'static [u8]| Payload::Inline(bytes.into());
    for (entry, profile) in profiles() {
        // A line is written as a matrix of one row there.
        if entry.spec.id == "mat" {
            continue;
        }
        let mut tensors = Vec::new();
        let mut push = |dtype: DType, shape: &[u64], endian: Endian, bytes: &'static [u8]| {
            let name = format!("t{}", tensors.len());
            let mut info = TensorInfo::dense(name, dtype, shape.to_vec(), inline(bytes));
            info.parts[0].endian = endian;
            tensors.push(info);
        };
        // The same numbers in both byte orders, and the same stored bytes with different numbers.
        push(
            DType::F32,
            &[2],
            Endian::Big,
            &[0x3f, 0x80, 0, 0, 0x40, 0, 0, 0],
        );
        push(
            DType::F32,
            &[2],
            Endian::Little,
            &[0, 0, 0x80, 0x3f, 0, 0, 0, 0x40],
        );
        push(
            DType::F32,
            &[2],
            Endian::Little,
            &[0x3f, 0x80, 0, 0, 0x40, 0, 0, 0],
        );
        // True is 1 when it is read, whatever it was; the same byte as a number is not.
        push(DType::BOOL, &[2], Endian::Little, &[2, 0]);
        push(DType::U8, &[2], Endian::Little, &[1, 0]);
        push(DType::U8, &[2], Endian::Little, &[2, 0]);
        push(DType::BOOL, &[2], Endian::Little, &[1, 0]);
        tensors.retain(|info| (profile.can.dtype)(info.dtype));
        tensors.truncate(usize::try_from(profile.can.max_tensors).unwrap_or(usize::MAX));
        if tensors.is_empty() {
            continue; // a version with none of these types
        }
        let mut builder = ArchiveBuilder::new();
        for info in tensors {
            builder.push_info(info).unwrap();
        }
        let archive = builder.finish();
        round_trip(&archive, &entry, &options_for(profile))
            .unwrap_or_else(|why| panic!("{} {}: {why}", entry.spec.id, profile.version));
    }
}

fn round_trip(archive: &Archive, entry: &Entry, options: &ConvertOptions) -> Result<(), String> {
    let text = |error: tenfold::Error| error.to_string();
    let files = write_to_memory(archive, entry, options).map_err(text)?;
    for threads in [1, 4] {
        if write_on(threads, archive, entry, options).map_err(text)? != files {
            return Err(format!("{threads} threads write other bytes to memory"));
        }
        if write_to_disk(threads, archive, entry, options)? != files {
            return Err(format!("{threads} threads write other bytes to a file"));
        }
    }
    let written = InMemory::written(files, &file_name(entry))
        .open()
        .map_err(text)?;
    compare(archive, &written)?;
    let findings = support::verify(&written, 1);
    match errors(&findings).as_slice() {
        [] => Ok(()),
        errors => Err(format!("does not verify: {errors:?}")),
    }
}

/// The files that a conversion to a directory makes, after a look at them as a user has it.
fn write_to_disk(
    threads: usize,
    archive: &Archive,
    entry: &Entry,
    options: &ConvertOptions,
) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let text = |error: tenfold::Error| error.to_string();
    let dir = TempDir::new().unwrap();
    let path = dir.path().join(file_name(entry));
    let mut out = AtomicOutput::file(&path).map_err(text)?.sync(false);
    let control = Arc::new(Control::new());
    let work = Work::new().threads(threads).control(control.clone());
    let options = options.clone().work(work);
    let conversion = Conversion::prepare(archive, entry, &options).map_err(text)?;
    conversion
        .write_to(&file_name(entry), &mut out)
        .map_err(text)?;
    assert_eq!(
        control.done(),
        control.total(),
        "of the work that was expected"
    );
    compare(archive, &OpenOptions::new().open(&path).map_err(text)?)?;
    #[allow(unsafe_code)]
    // SAFETY: nobody else knows of the file.
    let mapped = unsafe { OpenOptions::new().map(&path) };
    compare(archive, &mapped.map_err(text)?)?;
    let files = fs::read_dir(dir.path()).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read(&path).unwrap())
    });
    Ok(files.collect())
}
