//! What is special to Zarr: stores that are directories, shards, groups, copies of metadata.

// Inputs of the tests, not outputs.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tenfold::format::{Effect, Registry};
use tenfold::io::MemoryOutput;
use tenfold::model::{DType, Layout, Slice, Value};
use tenfold::ops::{Conversion, ConvertOptions};
use tenfold::{Archive, Error, ErrorKind, OpenOptions};

use crate::support::{Case, Kind, cases, digest, verify};

fn valid() -> Vec<Case> {
    let mut cases = cases(Kind::Valid);
    cases.retain(|case| case.format == "zarr");
    assert!(cases.len() >= 28);
    cases
}

fn fixture(name: &str) -> Case {
    let mut cases = valid().into_iter();
    cases.find(|case| case.name == name).expect("a fixture")
}

fn conversion(archive: &Archive, version: &str, options: &[(&str, &str)]) -> Conversion {
    let registry = Registry::standard();
    let entry = registry.get("zarr").unwrap();
    let options = ConvertOptions::new()
        .version(Some(version))
        .options(options.iter().copied())
        .allow(Effect::Dropped);
    Conversion::prepare(archive, entry, &options).unwrap()
}

fn written(archive: &Archive, version: &str, name: &str) -> BTreeMap<String, Vec<u8>> {
    let mut out = MemoryOutput::new();
    conversion(archive, version, &[])
        .write_to(name, &mut out)
        .unwrap();
    out.into_files()
}

/// A directory with these files.
fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for (key, text) in files {
        let path = directory.path().join(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

fn refused(path: &Path) -> Error {
    Archive::open(path).map(|_| ()).unwrap_err()
}

const ARRAY: &str = r#"{"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|u1", "compressor": null,
    "fill_value": 7, "filters": null, "order": "C"}"#;

#[test]
fn every_golden_store_comes_back_from_directories_and_archives_of_both_versions() {
    for case in valid() {
        let archive = case.open().unwrap();
        let before = digest(&archive, 1).content;
        for version in ["v3", "v2"] {
            let scratch = TempDir::new().unwrap();
            for name in ["again.zarr", "again.zarr.zip"] {
                let path = scratch.path().join(name);
                conversion(&archive, version, &[])
                    .write_file(&path)
                    .unwrap();
                assert_eq!(path.is_dir(), name == "again.zarr");
                let again = Archive::open(&path).unwrap();
                let title = format!("{} as {version} in {name}", case.name);
                assert_eq!(again.version(), version, "{title}");
                assert_eq!(digest(&again, 1).content, before, "{title}");
                let (a, b) = (
                    archive.load_metadata().unwrap(),
                    again.load_metadata().unwrap(),
                );
                assert_eq!(a, b, "{title}");
                for tensor in archive.tensors() {
                    let other = again.get(tensor.name()).unwrap();
                    assert_eq!(tensor.info().metadata, other.info().metadata, "{title}");
                }
            }
        }
    }
}

#[test]
fn attributes_are_those_of_the_nodes_that_they_are_of() {
    let group = r#"{"zarr_format": 2}"#;
    let store = directory(&[
        (".zgroup", group),
        (".zattrs", r#"{"title": "all", "none": NaN}"#),
        ("a/.zgroup", group),
        ("a/.zattrs", r#"{"unit": "m"}"#),
        ("a/x/.zarray", ARRAY),
        ("a/x/.zattrs", r#"{"_ARRAY_DIMENSIONS": ["t"]}"#),
        ("a/x/1", "\u{1}\u{2}"),
    ]);
    let archive = Archive::open(store.path()).unwrap();
    let metadata = archive.load_metadata().unwrap();
    assert_eq!(metadata.get("title").and_then(Value::as_str), Some("all"));
    let Some(Value::Map(group)) = metadata.get("/a") else {
        panic!("{metadata:?}");
    };
    assert_eq!(group.get("unit"), Some(Value::Str("m".to_owned())));
    let tensor = archive.tensor("a/x").unwrap();
    assert!(tensor.info().metadata.get("_ARRAY_DIMENSIONS").is_some());
    assert_eq!(tensor.canonical().unwrap()[..], [7, 7, 1, 2]);
    let files = written(&archive, "v3", "x.zarr");
    let node = |key: &str| String::from_utf8(files[key].clone()).unwrap();
    assert!(node("a/zarr.json").contains(r#""attributes":{"unit":"m"}"#));
    assert!(files.contains_key("a/x/c/0") && node("zarr.json").contains("NaN"));
}

#[test]
fn names_of_dimensions_are_metadata_and_are_written_where_they_belong() {
    let archive = fixture("v3_shapes").open().unwrap();
    let names = |archive: &Archive| {
        let tensor = archive.get("dims").unwrap();
        tensor.info().metadata.get("dimension_names").cloned()
    };
    assert!(names(&archive).is_some());
    let files = written(&archive, "v3", "x.zarr");
    let node = String::from_utf8(files["dims/zarr.json"].clone()).unwrap();
    assert!(
        node.contains(r#""attributes":{},"dimension_names":["#),
        "{node}"
    );
}

#[test]
fn shards_have_all_chunks_of_a_tensor_and_an_index_of_them() {
    let numbers: Vec<u16> = (0..1000).collect();
    let mut builder = Archive::builder();
    builder.tensor("a/x", [100, 10], numbers).unwrap();
    builder.tensor("y", [0u64; 0], [1.5f64]).unwrap();
    let archive = builder.finish();
    let options = [("shard", "true"), ("chunk", "300")];
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("x.zarr");
    conversion(&archive, "v3", &options)
        .write_file(&path)
        .unwrap();
    let shard = fs::read(path.join("a/x/c/0/0")).unwrap();
    // Seven chunks of fifteen rows, the last of them padded; 16 bytes for each and a checksum.
    assert_eq!(shard.len(), 7 * 300 + 7 * 16 + 4);
    let again = Archive::open(&path).unwrap();
    assert_eq!(digest(&again, 1).content, digest(&archive, 1).content);
    let tensor = again.tensor("a/x").unwrap();
    assert_eq!(tensor.info().layout, Layout::Chunked);
    let row: Vec<u16> = tensor
        .slice(&Slice::parse("99").unwrap())
        .unwrap()
        .to()
        .unwrap()
        .to_vec();
    assert_eq!(row, (990..1000).collect::<Vec<u16>>());
    // What was cut is cut the same way without shards, too.
    let path = scratch.path().join("y.zarr");
    conversion(&archive, "v2", &[("chunk", "300")])
        .write_file(&path)
        .unwrap();
    assert_eq!(fs::read_dir(path.join("a/x")).unwrap().count(), 7 + 1);
    let again = Archive::open(&path).unwrap();
    assert_eq!(digest(&again, 1).content, digest(&archive, 1).content);
}

#[test]
fn a_store_appears_whole_or_not_at_all_and_replaces_nothing() {
    let archive = fixture("v3_group").open().unwrap();
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("x.zarr");
    conversion(&archive, "v3", &[]).write_file(&path).unwrap();
    let error = conversion(&archive, "v3", &[])
        .write_file(&path)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    assert!(Archive::open(&path).is_ok());
    let damaged = directory(&[("x/.zarray", ARRAY), ("x/0", "1"), ("x/1", "12")]);
    let damaged = Archive::open(damaged.path()).unwrap();
    let failed = conversion(&damaged, "v3", &[]).write_file(scratch.path().join("y.zarr"));
    assert!(failed.is_err());
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
}

#[test]
fn an_array_inside_of_another_is_refused_before_anything_is_written() {
    let mut builder = Archive::builder();
    builder.tensor("a", [1], [1u8]).unwrap();
    builder.tensor("a/b", [1], [1u8]).unwrap();
    let archive = builder.finish();
    let error = conversion(&archive, "v3", &[]).refuse_losses().unwrap_err();
    assert!(error.message().contains("\"a\" is an array"), "{error}");
}

#[test]
fn what_is_wrong_with_one_array_costs_that_array() {
    let broken = ARRAY.replace("null,\n", "{\"id\": \"mystery\"},\n");
    assert_ne!(broken, ARRAY);
    let store = directory(&[
        (".zgroup", r#"{"zarr_format": 2}"#),
        ("bad/.zarray", &broken),
        ("cut/.zarray", &ARRAY[..30]),
        ("good/.zarray", ARRAY),
        ("short/.zarray", ARRAY),
        ("short/0", "1"),
    ]);
    let archive = Archive::open(store.path()).unwrap();
    let defect = |name: &str| archive.get(name).unwrap().info().defect.clone();
    let bad = defect("bad").unwrap();
    assert_eq!(bad.rule(), "zarr.codec");
    assert!(bad.message().contains("mystery"));
    assert_eq!(defect("cut").unwrap().rule(), "zarr.json");
    assert_eq!(
        archive.tensor("good").unwrap().canonical().unwrap()[..],
        [7; 4]
    );
    let error = archive.tensor("short").unwrap().canonical().unwrap_err();
    assert_eq!(error.rule(), "zarr.chunk-size");
    assert!(
        error.message().contains("short/0") || error.message().contains("[0]"),
        "{error}"
    );
}

#[test]
fn copies_of_metadata_that_differ_do_not_count() {
    let copy = ARRAY.replace("[4]", "[8]");
    let copies =
        format!(r#"{{"zarr_consolidated_format": 1, "metadata": {{"x/.zarray": {copy}}}}}"#);
    let store = directory(&[
        (".zgroup", r#"{"zarr_format": 2}"#),
        (".zmetadata", &copies),
        ("x/.zarray", ARRAY),
    ]);
    let archive = Archive::open(store.path()).unwrap();
    assert_eq!(archive.tensor("x").unwrap().dims().unwrap(), [4]);
    let findings = verify(&archive, 1);
    assert!(
        findings
            .iter()
            .any(|found| found.rule == "zarr.consolidated")
    );
    let strict = OpenOptions::new().strict(true).open(store.path());
    assert_eq!(strict.map(|_| ()).unwrap_err().rule(), "zarr.consolidated");
}

#[test]
fn databases_of_orbax_are_refused_by_name() {
    for key in ["manifest.ocdbt", "default/manifest.ocdbt"] {
        let store = directory(&[("_CHECKPOINT_METADATA", "{}"), (key, "...")]);
        let error = refused(store.path());
        assert_eq!(error.rule(), "zarr.ocdbt");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("OCDBT"));
    }
}

#[test]
fn elements_of_less_than_a_byte_are_packed() {
    let array = |dtype: &str| {
        ARRAY
            .replace("|u1", dtype)
            .replace("\"fill_value\": 7", "\"fill_value\": -2")
    };
    let store = directory(&[("x/.zarray", &array("int4")), ("x/0", "\u{1}\u{e}")]);
    let archive = Archive::open(store.path()).unwrap();
    let tensor = archive.tensor("x").unwrap();
    assert_eq!(tensor.info().dtype, DType::parse("i4").unwrap());
    assert_eq!(tensor.canonical().unwrap()[..], [0xe1, 0xee]);
}

#[cfg(unix)]
#[test]
fn chunks_behind_a_link_are_no_fill_value() {
    let elsewhere = directory(&[("0", "12"), ("1", "34")]);
    let array = ARRAY.replace("\"order\"", "\"dimension_separator\": \"/\", \"order\"");
    let array = array.replace("[4]", "[1, 4]").replace("[2]", "[1, 2]");
    let store = directory(&[("x/.zarray", &array)]);
    std::os::unix::fs::symlink(elsewhere.path(), store.path().join("x/0")).unwrap();
    let archive = Archive::open(store.path()).unwrap();
    let error = archive.tensor("x").unwrap().canonical().unwrap_err();
    assert!(error.message().contains("link"), "{error}");
}

#[test]
fn a_slice_reads_its_own_chunks_and_no_others() {
    let store = directory(&[("x/.zarray", ARRAY), ("x/0", "bad"), ("x/1", "12")]);
    let archive = Archive::open(store.path()).unwrap();
    let tensor = archive.tensor("x").unwrap();
    let last: Vec<u8> = tensor
        .slice(&Slice::parse("2:").unwrap())
        .unwrap()
        .to()
        .unwrap()
        .to_vec();
    assert_eq!(last, b"12");
    assert!(
        tensor
            .slice(&Slice::parse("0").unwrap())
            .unwrap()
            .to::<u8>()
            .is_err()
    );
}

#[test]
fn shards_in_shards_and_dimensions_in_another_order_are_found() {
    // A shard of two by two chunks in each of two, whose index comes first; everything is transposed before that.
    let codec = |name: &str, configuration: &str| {
        format!(r#"{{"name": "{name}", "configuration": {configuration}}}"#)
    };
    let bytes = codec("bytes", r#"{"endian": "little"}"#);
    let inner = codec(
        "sharding_indexed",
        &format!(
            r#"{{"chunk_shape": [1, 1], "codecs": [{bytes}], "index_codecs": [{bytes}], "index_location": "start"}}"#
        ),
    );
    let outer = codec(
        "sharding_indexed",
        &format!(r#"{{"chunk_shape": [2, 1], "codecs": [{inner}], "index_codecs": [{bytes}]}}"#),
    );
    let transpose = codec("transpose", r#"{"order": [1, 0]}"#);
    let node = format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [2, 2], "data_type": "uint8", "fill_value": 9,
            "chunk_grid": {}, "chunk_key_encoding": "default", "codecs": [{transpose}, {outer}]}}"#,
        codec("regular", r#"{"chunk_shape": [2, 2]}"#)
    );
    let index = |entries: &[(u64, u64)]| -> Vec<u8> {
        let numbers = entries.iter().flat_map(|(offset, len)| [*offset, *len]);
        numbers.flat_map(u64::to_le_bytes).collect()
    };
    const NONE: (u64, u64) = (u64::MAX, u64::MAX);
    // A shard for each row, in which the chunks are the columns.
    let first = [index(&[(32, 1), (33, 1)]), vec![1, 2]].concat();
    let second = [index(&[NONE, (32, 1)]), vec![4]].concat();
    let (a, b) = (first.len() as u64, second.len() as u64);
    let shard = [first, second, index(&[(0, a), (a, b)])].concat();
    let store = directory(&[("x/zarr.json", &node)]);
    fs::create_dir_all(store.path().join("x/c/0")).unwrap();
    fs::write(store.path().join("x/c/0/0"), shard).unwrap();
    let archive = Archive::open(store.path()).unwrap();
    let found = archive.tensor("x").unwrap().canonical().unwrap();
    assert_eq!(found[..], [1, 2, 9, 4]);
}

#[test]
fn an_archive_is_as_large_as_all_files_of_its_directory() {
    let store = directory(&[("a/.zarray", ARRAY), ("a/0", "xy"), ("a/1", "zw")]);
    let archive = Archive::open(store.path()).unwrap();
    assert_eq!(archive.stored_bytes(), ARRAY.len() as u64 + 4);
    assert_eq!(archive.file_count(), 3);
    let some = archive.select(|_| false);
    assert_eq!(some.stored_bytes(), archive.stored_bytes());
}

#[test]
fn of_millions_of_chunks_only_those_that_are_there_are_looked_for() {
    let line = r#"{"zarr_format": 2, "shape": [5000000], "chunks": [1], "dtype": "|u1", "compressor": null,
        "fill_value": 7, "filters": null, "order": "C"}"#;
    let plane = r#"{"zarr_format": 2, "shape": [3000, 2000], "chunks": [1, 2], "dtype": "|u1", "compressor": null,
        "fill_value": 0, "filters": null, "order": "F"}"#;
    let store = directory(&[
        (".zgroup", r#"{"zarr_format": 2}"#),
        ("line/.zarray", line),
        ("line/4", "a"),
        ("line/4999999", "b"),
        ("line/5000000", "behind the end"),
        ("line/no number", "x"),
        ("plane/.zarray", plane),
        ("plane/2.3", "cd"),
        ("plane/2999.999", "ef"),
    ]);
    let archive = Archive::open(store.path()).unwrap();
    let mut expected = vec![7u8; 5_000_000];
    (expected[4], expected[4_999_999]) = (b'a', b'b');
    let read = archive.tensor("line").unwrap().canonical().unwrap();
    assert!(read == expected, "the line differs");
    let mut expected = vec![0u8; 6_000_000];
    (expected[2 * 2000 + 6], expected[2 * 2000 + 7]) = (b'c', b'd');
    (expected[5_999_998], expected[5_999_999]) = (b'e', b'f');
    let plane = archive.tensor("plane").unwrap();
    assert!(plane.canonical().unwrap() == expected, "the plane differs");
    // Every second row, backwards, and some columns.
    let rows = Slice::parse("::-2,5:9").unwrap();
    let slice = plane.slice(&rows).unwrap().to_bytes().unwrap();
    let rows = (1..3000usize).rev().step_by(2);
    let part: Vec<u8> = rows
        .flat_map(|row| expected[row * 2000 + 5..row * 2000 + 9].to_vec())
        .collect();
    assert!(slice[..] == part[..], "the slice differs");
    let rows = Slice::parse("2:3,6:8").unwrap();
    assert_eq!(plane.slice(&rows).unwrap().to_bytes().unwrap()[..], *b"cd");
}
