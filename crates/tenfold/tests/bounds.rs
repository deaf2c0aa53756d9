//! Files that claim more than they hold: refused, or read in memory that is in proportion to what they are.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

#[path = "bounds/cc4s.rs"]
mod cc4s;
mod support;

use std::sync::Arc;

use support::amplifiers::{self, measure};
use support::memory::{Counting, on_this_thread};
use support::{InMemory, Kind, cases, file_name, handled, options_for, profiles, write_to_memory};
use tenfold::format::{Compression, Entry, Profile};
use tenfold::io::Limits;
use tenfold::model::DType;
use tenfold::{Archive, ArchiveBuilder, Bytes, ErrorKind, Hint, OpenOptions, Result};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What opening may take beside a multiple of the file: a sixteenth of what is promised, because files are small here.
const ROOM: usize = 1 << 20;
/// Times the file: names, shapes and places are larger in memory than in a file.
const TIMES: usize = 16;

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

/// What is nested ten thousand times: the format that it is for, the rule that it breaks, the file.
fn deep() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let depth = 10_000;
    let lists = "[".repeat(depth) + &"]".repeat(depth);
    let objects = "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
    let cbor = [vec![0x81; depth], vec![0x00]].concat();
    let maps = [b"\xa1\x61a".repeat(depth), vec![0x00]].concat();
    let tags = [vec![0xc1; depth], vec![0x00]].concat();
    let mut all = Vec::new();
    for json in [&lists, &objects] {
        let header = format!("{{\"a\":{{\"x\":{json}}}}}");
        all.push((
            "safetensors",
            "safetensors.depth",
            amplifiers::json::safetensors(&header),
        ));
        let index = format!("{{\"metadata\":{{\"x\":{json}}},\"weight_map\":{{}}}}");
        all.push(("safetensors", "safetensors.depth", index.into_bytes()));
        for (usr, others) in [
            (format!("{{\"a\":{json}}}"), String::new()),
            ("{}".to_owned(), format!(",\"x\":{json}")),
        ] {
            let file = amplifiers::json::mag_manifest(&usr, "{}", &others);
            all.push(("mag", "mag.depth", file));
        }
    }
    for cbor in [cbor, maps, tags] {
        let x = amplifiers::cbor::map(&[("x", cbor.clone())]);
        let root = [b"\xa2\x67tensors\xa0".as_slice(), &x[1..]].concat();
        all.push((
            "burnpack",
            "burnpack.depth",
            amplifiers::cbor::burnpack(&root),
        ));
        let entry = [&[0x81][..], &x].concat();
        all.push((
            "ztensor",
            "ztensor.cbor-depth",
            amplifiers::cbor::ztensor_01(&entry),
        ));
        let entries = [
            amplifiers::cbor::entry("objects", vec![0xa0]),
            amplifiers::cbor::entry("attributes", x),
        ];
        all.push((
            "ztensor",
            "ztensor.cbor-depth",
            amplifiers::cbor::ztensor_1(&entries),
        ));
        // This one has no tags.
        if cbor[0] != 0xc1 {
            all.push((
                "ztensor",
                "ztensor.cbor-depth",
                amplifiers::cbor::ztensor_2(&entries),
            ));
        }
    }
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
    all.push(("gguf", "gguf.depth", gguf));
    // A tuple is a type with a shape, a list is one of fields: what is inside of them does not matter.
    for (open, rule) in [
        ("(", "npy.subarray"),
        ("[", "npy.structured"),
        ("{'a':", "npy.header"),
    ] {
        // Longer headers are not read at all.
        let header = format!("{{'descr': {}", open.repeat(9_900 / open.len()));
        all.push(("npy", rule, amplifiers::numpy::npy(&header)));
    }
    let yaml = format!("version: 100\ntype: Tensor\nmetaData: {lists}\n");
    all.push(("cc4s", "cc4s.yaml", yaml.into_bytes()));
    // MessagePack has lists where a Shape is, and nothing is inside of them.
    let msgpack = [
        b"\xce\0\0\0\0\xce\0\0\0\x01\xce\0\0\0\0".to_vec(),
        vec![0x91; depth],
        vec![0xc0],
    ]
    .concat();
    all.push(("primitiv", "primitiv.type", msgpack));
    // ONNX: groups of protobuf. Graphs in graphs are not looked into unless they are asked for.
    let groups = [[0x9b, 0x06].repeat(depth), [0x9c, 0x06].repeat(depth)].concat();
    all.push(("onnx", "onnx.tag", amplifiers::onnx::onnx_model(&groups)));
    all
}

#[test]
fn ten_thousand_levels_are_refused_without_a_tree_of_them() {
    let mut wrong = Vec::new();
    for (id, rule, bytes) in deep() {
        let entry = handled().into_iter().find(|entry| entry.spec.id == id);
        let name = file_name(&entry.unwrap());
        let bytes = Bytes::from(bytes);
        let options = OpenOptions::new().format(Some(id)).checksums(false);
        let read = || options.read(Arc::new(bytes.clone()), Some(&name)).map(drop);
        let (opened, used) = on_this_thread(read);
        match opened {
            Ok(()) => wrong.push(format!("{id}: it is opened")),
            Err(error) if error.rule() != rule => wrong.push(format!("{id}: {error}, not {rule}")),
            Err(_) => {}
        }
        // In a few times the file: no tree, and no message that repeats it.
        if used.peak > 16 * bytes.len() {
            wrong.push(format!(
                "{id}: {} bytes to refuse {}",
                used.peak,
                bytes.len()
            ));
        }
        open_all(&bytes, rule);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is compressed so well that a kilobyte becomes a mebibyte: a file, and the bytes of its tensor.
fn bomb(id: &str, deflate: bool, mebibytes: usize) -> (InMemory, usize) {
    let of_format =
        |(entry, profile): &(Entry, &Profile)| entry.spec.id == id && (deflate || profile.can.zstd);
    let (entry, profile) = profiles().into_iter().find(of_format).unwrap();
    let len = mebibytes << 20;
    let mut builder = ArchiveBuilder::new();
    let data = Bytes::from(vec![0; len]);
    builder
        .push("zeros", DType::U8, &[len as u64], data)
        .unwrap();
    let mut options = options_for(profile);
    if deflate {
        options = options.option("deflate", "9")
    } else {
        options = options.compression(|_| Compression::Zstd(19))
    }
    let files = write_to_memory(&builder.finish(), &entry, &options).unwrap();
    (InMemory::written(files, &file_name(&entry)), len)
}

#[test]
fn a_bomb_is_verified_in_pieces_and_refused_in_memory() {
    for (id, deflate) in [("ztensor", false), ("npz", true)] {
        let (file, len) = bomb(id, deflate, 256);
        assert!(file.bytes.len() < 1 << 20, "{id}: it is no bomb");
        let limits = Limits::default().tensor_memory(8 << 20);
        let options = OpenOptions::new().limits(limits);
        let (archive, used) = on_this_thread(|| file.open_with(&options).unwrap());
        assert!(used.peak < ROOM, "{id}: opening takes {}", used.peak);
        let (findings, used) = on_this_thread(|| support::verify(&archive, 1));
        assert!(support::errors(&findings).is_empty(), "{findings:?}");
        let peak = used.peak;
        assert!(peak < 64 << 20, "{id}: verifying {len} bytes takes {peak}");
        let (read, used) = on_this_thread(|| archive.tensor("zeros").unwrap().canonical());
        let error = read.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(used.peak < ROOM, "{id}: refusing takes {}", used.peak);
        let raise = Hint::RaiseLimit {
            name: "tensor_memory",
            needed: Some(len as u64),
        };
        assert_eq!(error.hints(), [raise], "{id}: {error}");
    }
}

/// A member whose header says that it is small, and whose stream goes on: refused without unpacking the rest.
#[test]
fn a_bomb_that_lies_about_its_size_is_refused_early() {
    let mut found = 0;
    for case in cases(Kind::Reject) {
        let bombs = ["deflate_bomb_4tb", "inflates_past_shape", "size_lies"];
        if case.format != "npz" || !bombs.contains(&case.name.as_str()) {
            continue;
        }
        found += 1;
        let file = case.file().unwrap();
        let (_, used) = on_this_thread(|| {
            let archive = file.open()?;
            let findings = support::verify(&archive, 1);
            assert!(!support::errors(&findings).is_empty(), "{}", case.title());
            let all = archive.tensors().map(|tensor| tensor.canonical().map(drop));
            assert!(
                all.collect::<Vec<_>>().iter().any(Result::is_err),
                "{}",
                case.title()
            );
            Ok::<_, tenfold::Error>(())
        });
        assert!(used.peak < ROOM, "{}: {}", case.title(), used.peak);
    }
    assert_eq!(found, 3);
}

/// Where a format stores equal data once, a thousand tensors share it, and each is read as it is.
fn shared() {
    let data = Bytes::from(vec![7; 65536]);
    let mut builder = ArchiveBuilder::new();
    for n in 0..1000 {
        let name = format!("t{n}");
        builder
            .push(name, DType::U8, &[65536], data.clone())
            .unwrap();
    }
    let archive = builder.finish();
    let mut sharing = 0;
    for (entry, profile) in profiles() {
        if (entry.spec.id, profile.version) != ("ztensor", "2") {
            continue;
        }
        let options = options_for(profile).option("canonical", "true");
        let files = write_to_memory(&archive, &entry, &options).unwrap();
        let file = InMemory::written(files, &file_name(&entry));
        assert!(file.bytes.len() < 1 << 20, "equal data is not shared");
        let (written, used) = on_this_thread(|| file.open().unwrap());
        assert!(used.peak < ROOM + TIMES * file.bytes.len(), "{}", used.peak);
        let all_read = written
            .tensors()
            .all(|tensor| tensor.stored().unwrap() == data);
        assert!(all_read && written.tensors().len() == 1000);
        sharing += 1;
    }
    assert_eq!(sharing, 1);
}

/// A safetensors file with this header and `data` bytes after it.
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
    shared();

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

/// A GGUF file with this many tensors of nothing, which take little more than their names.
fn empty_tensors(count: u64) -> Bytes {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend_from_slice(&count.to_le_bytes());
    bytes.extend_from_slice(&0u64.to_le_bytes());
    for n in 0..count {
        let name = format!("{n:x}");
        bytes.extend_from_slice(&(name.len() as u64).to_le_bytes());
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&1u32.to_le_bytes());
        bytes.extend_from_slice(&[0; 8 + 4 + 8]);
    }
    bytes.into()
}

fn open_empty_tensors(count: u64) {
    let bytes = empty_tensors(count);
    let (archive, used) = on_this_thread(|| Archive::from_bytes(bytes.clone()).unwrap());
    assert_eq!(archive.tensors().len() as u64, count);
    let (len, peak) = (bytes.len(), used.peak);
    println!("{count} empty tensors in {len} bytes take {peak}");
    assert!(peak <= ROOM + TIMES * len, "{peak} for {len} bytes");
    // Who wants less says so.
    let limits = Limits::default().header_bytes(len as u64 / 2);
    let (error, used) = on_this_thread(|| {
        let options = OpenOptions::new().limits(limits);
        options.read(Arc::new(bytes.clone()), None).map(drop)
    });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Limit);
    assert!(used.peak <= peak, "{} to refuse it", used.peak);
}

#[test]
fn many_empty_tensors_are_in_proportion() {
    open_empty_tensors(100_000);
}

/// Takes some GiB: `cargo test -p tenfold --all-features --test bounds -- --ignored`.
#[test]
#[ignore = "takes some GiB"]
fn ten_million_empty_tensors_are_in_proportion() {
    open_empty_tensors(10_000_000);
}

/// Every amplifier at one length, within 16 times what was read and `room`; what exceeds that, or does not open though it
/// should, is listed.
fn amplify(len: usize, room: usize) {
    let mut wrong = Vec::new();
    let mut most = Vec::new();
    for amplifier in amplifiers::all() {
        let bytes = amplifier.make(len);
        let begin = std::time::Instant::now();
        let (peak, read, done) = measure(&bytes, amplifier.name);
        let took = begin.elapsed();
        let bound = 16 * read + room.max(amplifier.room);
        let what = &amplifier.what;
        println!(
            "{what}: {peak} bytes and {took:.1?} for {read} of {}",
            bytes.len()
        );
        most.push((peak * 10 / bytes.len(), what.clone()));
        if peak > bound {
            wrong.push(format!("{what}: {peak} of {bound} bytes"));
        }
        if let (Err(error), true) = (done, amplifier.opens) {
            let error: String = error.to_string().chars().take(200).collect();
            wrong.push(format!("{what}: {error}"));
        }
    }
    most.sort();
    for (tenths, what) in most.iter().rev().take(20) {
        println!("{}.{} times {len} bytes: {what}", tenths / 10, tenths % 10);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// With less room than is allowed, so that files can be small: an optimizer is not at work here.
#[test]
fn lists_of_everything_are_in_proportion() {
    amplify(256 << 10, 2 << 20);
}

/// As many as are allowed are not what a file is refused for; one more is, and the rule says so.
#[test]
fn counts_that_no_real_file_has_are_refused_by_their_rule() {
    type Make = fn(usize) -> Vec<u8>;
    let fields: Make = |count| {
        let fields: String = (0..count).map(|n| format!(",\"{n}\":0")).collect();
        amplifiers::json::mag_manifest("{}", "{}", &fields)
    };
    let files: Make = |count| {
        let files: Vec<_> = (0..count).map(|n| format!("\"{n}\":\"{n}\"")).collect();
        format!("{{\"weight_map\":{{{}}}}}", files.join(",")).into_bytes()
    };
    for (name, rule, most, make) in [
        ("a.mag", "mag.limit", 1 << 16, fields),
        (
            "a.safetensors.index.json",
            "safetensors.limit",
            1 << 14,
            files,
        ),
        (
            "a.zt",
            "ztensor.limit",
            4096,
            amplifiers::cbor::ztensor_components,
        ),
        (
            "b.zt",
            "ztensor.limit",
            4096,
            amplifiers::cbor::ztensor_parts,
        ),
        // Only because they are small.
        ("a.bin", "primitiv.limit", 12_000, |count| {
            let count = if count > 12_000 { 40_000 } else { count };
            amplifiers::primitiv::primitiv_parameters(count, 0)
        }),
    ] {
        let open = |count| measure(&make(count).into(), name).2;
        let refused = open(most + 1).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Limit, "{refused}");
        assert_eq!(refused.rule(), rule, "{refused}");
        if let Err(error) = open(most) {
            assert_ne!(error.kind(), ErrorKind::Limit, "{error}");
        }
    }
    // As small as the parameters of real models are.
    let sound = amplifiers::primitiv::primitiv_parameters(40_000, 16);
    measure(&sound.into(), "a.bin").2.unwrap();
}

/// Takes some GiB: `cargo test --release -p tenfold --all-features --test bounds -- --ignored large_lists`.
#[test]
#[ignore = "takes some GiB and minutes"]
fn large_lists_of_everything_are_in_proportion() {
    for mebibytes in [1, 4, 16, 64] {
        amplify(mebibytes << 20, 16 << 20);
    }
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
