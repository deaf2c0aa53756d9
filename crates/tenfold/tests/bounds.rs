//! Files that claim more than they hold: refused, or read in memory that is in proportion to what they are.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod support;

use std::sync::Arc;

use support::memory::{Counting, on_this_thread};
use support::{InMemory, Kind, cases, file_name, handled, options_for, profiles, write_to_memory};
use tenfold::format::Compression;
use tenfold::io::Limits;
use tenfold::model::DType;
use tenfold::{Archive, ArchiveBuilder, Bytes, ErrorKind, OpenOptions, ops};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What opening may take beside a multiple of the file.
const ROOM: usize = 1 << 20;
/// Times the file: names, shapes and places are larger in memory than in a file.
const TIMES: usize = 40;

/// Opens as every format, within bounds. The result of the format that it is.
fn open_all(bytes: &Bytes, what: &str) {
    for entry in handled() {
        let options = OpenOptions::new().format(Some(entry.spec.id));
        let name = file_name(&entry);
        let (_, used) =
            on_this_thread(|| options.read(Arc::new(bytes.clone()), Some(&name)).is_ok());
        let bound = ROOM + TIMES * bytes.len();
        let id = entry.spec.id;
        assert!(
            used.peak <= bound,
            "{id}: {what}: {} of {bound} bytes",
            used.peak
        );
    }
}

#[test]
fn numbers_that_are_too_large_cost_nothing_wherever_they_stand() {
    let numbers: [(&str, Vec<u8>); 6] = [
        ("2^32 - 1", u32::MAX.to_le_bytes().to_vec()),
        ("2^31", (1u32 << 31).to_be_bytes().to_vec()),
        ("2^63", (1u64 << 63).to_le_bytes().to_vec()),
        ("2^63, big-endian", (1u64 << 63).to_be_bytes().to_vec()),
        ("2^64 - 1", u64::MAX.to_le_bytes().to_vec()),
        ("2^40", (1u64 << 40).to_le_bytes().to_vec()),
    ];
    let step = if cfg!(debug_assertions) { 61 } else { 3 };
    let mut tried = 0;
    for case in cases(Kind::Valid) {
        let Some(file) = case.file().filter(|file| file.bytes.len() <= 4096) else {
            continue;
        };
        let bound = ROOM + TIMES * file.bytes.len();
        for (at, (what, number)) in (0..file.bytes.len())
            .step_by(step)
            .flat_map(|at| numbers.iter().map(move |n| (at, n)))
        {
            let mut bytes = file.bytes.to_vec();
            let end = bytes.len().min(at + number.len());
            bytes[at..end].copy_from_slice(&number[..end - at]);
            let mut changed = file.clone();
            changed.bytes = Bytes::from(bytes);
            let (_, used) = on_this_thread(|| changed.open().is_ok());
            tried += 1;
            let title = case.title();
            assert!(
                used.peak <= bound,
                "{title}: {what} at {at}: {} of {bound}",
                used.peak
            );
        }
    }
    println!("{tried} files with too large numbers");
    assert!(tried > 1000);
}

#[test]
fn ten_thousand_levels_are_refused_without_a_tree_of_them() {
    let depth = 10_000;
    let json = "[".repeat(depth) + &"]".repeat(depth);
    let mut safetensors = (json.len() as u64).to_le_bytes().to_vec();
    safetensors.extend_from_slice(json.as_bytes());
    let mut object = "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
    while !object.len().is_multiple_of(8) {
        object.push(' ');
    }
    let mut metadata = (object.len() as u64).to_le_bytes().to_vec();
    metadata.extend_from_slice(object.as_bytes());
    let cbor = [vec![0x81; depth], vec![0x00]].concat();
    let mut burnpack = b"NRUB\x01\x00".to_vec();
    burnpack.extend_from_slice(&u32::try_from(cbor.len()).unwrap().to_le_bytes());
    burnpack.extend_from_slice(&cbor);
    // zTensor ends with its index and the length of that.
    let mut ztensor = b"ZTEN0001".to_vec();
    ztensor.extend_from_slice(&cbor);
    ztensor.extend_from_slice(&(cbor.len() as u64).to_le_bytes());
    let mut ztensor_1 = b"ZTEN1000".to_vec();
    ztensor_1.extend_from_slice(&cbor);
    ztensor_1.extend_from_slice(&(cbor.len() as u64).to_le_bytes());
    ztensor_1.extend_from_slice(b"ZTEN1000");
    // GGUF: a list of lists of lists.
    let mut gguf = b"GGUF\x03\0\0\0".to_vec();
    gguf.extend_from_slice(&[0; 8]);
    gguf.extend_from_slice(&1u64.to_le_bytes());
    gguf.extend_from_slice(&1u64.to_le_bytes());
    gguf.push(b'k');
    gguf.extend_from_slice(&9u32.to_le_bytes());
    for _ in 0..depth {
        gguf.extend_from_slice(&9u32.to_le_bytes());
        gguf.extend_from_slice(&1u64.to_le_bytes());
    }
    let yaml = "a: ".to_owned() + &json;
    let all: [(&str, Vec<u8>); 8] = [
        ("safetensors", safetensors),
        ("safetensors metadata", metadata),
        ("burnpack", burnpack),
        ("ztensor 0.1", ztensor),
        ("ztensor 1", ztensor_1),
        ("gguf", gguf),
        ("yaml", yaml.into_bytes()),
        ("msgpack", [vec![0x91; depth], vec![0xc0]].concat()),
    ];
    for (what, bytes) in all {
        open_all(&Bytes::from(bytes), what);
    }
}

/// Compresses very well: a kilobyte for each mebibyte.
fn bomb(mebibytes: usize) -> Option<(InMemory, usize)> {
    let zstd = |profile: &tenfold::format::Profile| profile.can.zstd;
    let (entry, profile) = profiles().into_iter().find(|(_, profile)| zstd(profile))?;
    let len = mebibytes << 20;
    let mut builder = ArchiveBuilder::new();
    let data = Bytes::from(vec![0; len]);
    builder
        .push("zeros", DType::U8, &[len as u64], data)
        .unwrap();
    let mut options = options_for(profile);
    options.compression = Arc::new(|_| Compression::Zstd(19));
    let files = write_to_memory(&builder.finish(), &entry, &options).unwrap();
    Some((InMemory::written(files, &file_name(&entry)), len))
}

#[test]
fn a_bomb_is_verified_in_pieces_and_refused_in_memory() {
    let Some((file, len)) = bomb(256) else {
        panic!("no format is compressed");
    };
    assert!(file.bytes.len() < 1 << 20, "it is no bomb");
    let limits = Limits::default().with_tensor_memory(8 << 20);
    let options = OpenOptions::new().limits(limits);
    let (archive, used) = on_this_thread(|| file.open_with(&options).unwrap());
    assert!(used.peak < ROOM, "opening takes {}", used.peak);
    let (findings, used) = on_this_thread(|| ops::verify(&archive, 1));
    assert!(support::errors(&findings).is_empty(), "{findings:?}");
    assert!(
        used.peak < 64 << 20,
        "verifying {len} bytes takes {}",
        used.peak
    );
    let (read, used) = on_this_thread(|| archive.tensor("zeros").unwrap().canonical());
    let error = read.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(used.peak < ROOM, "refusing takes {}", used.peak);
    assert!(
        error.message().contains("--limit tensor_memory=N"),
        "{error}"
    );
}

/// A safetensors file with this header and `data` bytes behind it.
fn safetensors(header: &str, data: usize) -> Bytes {
    let mut header = header.to_owned();
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes.into()
}

fn entries(count: usize, name: impl Fn(usize) -> String, rest: &str) -> String {
    let entries: Vec<_> = (0..count)
        .map(|n| format!("\"{}\":{rest}", name(n)))
        .collect();
    format!("{{{}}}", entries.join(","))
}

#[test]
fn many_tensors_on_one_range_and_empty_and_long_names_are_in_proportion() {
    let dense = "{\"dtype\":\"U8\",\"shape\":[65536],\"data_offsets\":[0,65536]}";
    let header = entries(1000, |n| format!("t{n}"), dense);
    open_all(
        &safetensors(&header, 65536),
        "a thousand tensors on one range",
    );

    let empty = "{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
    let count = if cfg!(debug_assertions) {
        20_000
    } else {
        200_000
    };
    let header = entries(count, |n| format!("{n}"), empty);
    let bytes = safetensors(&header, 0);
    open_all(&bytes, "empty tensors");
    let archive = Archive::from_bytes(bytes).unwrap();
    assert_eq!(archive.tensors().len(), count);

    let header = entries(100, |n| format!("{n:04}").repeat(65_536 / 4), empty);
    let bytes = safetensors(&header, 0);
    open_all(&bytes, "names of 64 KiB");
    assert_eq!(Archive::from_bytes(bytes).unwrap().tensors().len(), 100);
}

#[test]
fn every_limit_refuses_by_its_name_and_says_how_to_raise_it() {
    let header = entries(
        100,
        |n| format!("t{n}"),
        "{\"dtype\":\"U8\",\"shape\":[1,1,1,1],\"data_offsets\":[0,1]}",
    );
    let file = safetensors(&header, 1);
    for (name, value) in [("header_bytes", 100), ("rank", 3)] {
        let limits = Limits::default().with(name, value).unwrap();
        let error = OpenOptions::new()
            .limits(limits)
            .read(Arc::new(file.clone()), None)
            .map(drop)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        let hint = format!("--limit {name}=N raises it");
        assert!(error.message().contains(&hint), "{error}");
    }
    assert!(Limits::default().with("nothing", 1).is_err());
}

#[test]
fn an_archive_that_many_threads_read_gives_each_the_same_bytes() {
    for case in cases(Kind::Valid).into_iter().step_by(7) {
        let Ok(archive) = case.open() else { continue };
        let read = || {
            let tensors = archive.tensors();
            let bytes = tensors.map(|tensor| tensor.canonical().map_err(|error| error.to_string()));
            bytes.collect::<Vec<_>>()
        };
        let alone = read();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(read)).collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), alone, "{}", case.title());
            }
        });
    }
}
