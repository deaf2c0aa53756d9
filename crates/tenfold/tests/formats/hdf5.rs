//! What is special to HDF5 and Keras: what is reported and not listed, chunks, groups, layers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde_json::Value as Json;
use tenfold::format::{Effect, Form, Registry, Severity};
use tenfold::io::{Limits, MemoryOutput, Source};
use tenfold::model::{Cuts, DType, Filter, Layout, Payload, Slice, Value};
use tenfold::ops::{Conversion, ConvertOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes, Error, ErrorKind, Hint, OpenOptions, Result};

use crate::support::amplifiers::hdf5::{HDF5_U8, hdf5_file, hdf5_link, hdf5_object};
use crate::support::values::is_expected;
use crate::support::{Case, Kind, cases};

fn valid(format: &str) -> Vec<Case> {
    let mut cases = cases(Kind::Valid);
    cases.retain(|case| case.format == format);
    assert!(cases.len() > 10);
    cases
}

fn fixture(format: &str, name: &str) -> PathBuf {
    let mut cases = valid(format).into_iter();
    let case = cases.find(|case| case.name == name);
    case.expect("a fixture").path
}

/// What an archive notes under a rule: `"path": why`.
fn notes<'a>(archive: &'a Archive, rule: &str) -> Vec<&'a str> {
    let notes = archive.findings().iter();
    let notes = notes.filter(|note| note.rule == rule && note.severity == Severity::Note);
    notes.map(|note| note.message.as_str()).collect()
}

#[test]
fn what_is_no_tensor_is_reported_by_its_path() {
    for case in valid("hdf5") {
        let archive = case.open().unwrap();
        let mut noted: Vec<String> = notes(&archive, "hdf5.skipped")
            .into_iter()
            .chain(notes(&archive, "hdf5.external"))
            .map(|note| note.split("\": ").next().unwrap_or_default().to_owned())
            .collect();
        noted.sort();
        let expected = case.list("not_tensors").iter();
        let expected: Vec<_> = expected
            .map(|object| format!("{:?}", object["path"].as_str().unwrap()))
            .map(|path| path.trim_end_matches('"').to_owned())
            .collect();
        assert_eq!(noted, expected, "{}", case.name);
    }
}

#[test]
fn why_something_is_no_tensor_is_said() {
    let archive = Archive::open(fixture("hdf5", "links")).unwrap();
    let skipped = notes(&archive, "hdf5.skipped");
    assert!(
        skipped.contains(&r#""soft": soft link to /real/w"#),
        "{skipped:?}"
    );
    let external = notes(&archive, "hdf5.external");
    assert_eq!(
        external,
        [r#""ext": external link, which is never followed"#]
    );
    let archive = Archive::open(fixture("hdf5", "mixed_content")).unwrap();
    let skipped = notes(&archive, "hdf5.skipped");
    for (path, why) in [
        ("array_t", "not numeric: array"),
        ("comp", "not numeric: compound"),
        ("fixed", "not numeric: string"),
        ("named_type", "committed datatype"),
        ("opaque", "not numeric: opaque"),
        ("ref", "not numeric: reference"),
        ("str", "not numeric: string"),
        ("vlen", "not numeric: variable length"),
    ] {
        assert!(
            skipped.contains(&&*format!("{path:?}: {why}")),
            "{path}: {skipped:?}"
        );
    }
    assert_eq!(notes(&archive, "hdf5.named").len(), 1);
}

#[test]
fn other_names_of_a_dataset_are_reported() {
    for case in valid("hdf5") {
        let archive = case.open().unwrap();
        let aliases = notes(&archive, "hdf5.alias");
        for tensor in case.list("tensors") {
            let name = tensor["name"].as_str().unwrap();
            for alias in tensor["aliases"].as_array().into_iter().flatten() {
                let alias = alias.as_str().unwrap();
                let expected = format!("{alias:?}: another name of {name:?}");
                assert!(aliases.contains(&&*expected), "{}: {aliases:?}", case.name);
            }
        }
    }
}

#[test]
fn attributes_of_groups_are_maps_under_their_paths() {
    let mut groups = 0;
    for case in valid("hdf5") {
        let archive = case.open().unwrap();
        let Some(expected) = case
            .expected
            .get("group_attributes")
            .and_then(Json::as_object)
        else {
            continue;
        };
        for (path, attributes) in expected {
            let found = archive.metadata().get(&format!("/{path}")).unwrap();
            assert!(
                is_expected(found, attributes),
                "{}: {path}: {found:?}",
                case.name
            );
            groups += 1;
        }
    }
    assert!(groups > 5, "{groups}");
}

#[test]
fn layouts_and_byte_orders_are_those_of_the_file() {
    for case in valid("hdf5") {
        let archive = case.open().unwrap();
        for (tensor, expected) in archive.tensors().zip(case.list("tensors")) {
            let info = tensor.info();
            let part = &info.parts[0];
            assert_eq!(
                part.endian == tenfold::model::Endian::Big,
                expected.get("byte_order").is_some(),
                "{} {}",
                case.name,
                info.name
            );
            let Some(chunks) = expected.get("chunks").and_then(Json::as_array) else {
                continue;
            };
            assert_eq!(info.layout, Layout::Chunked, "{} {}", case.name, info.name);
            let Payload::Chunks(found) = &part.payload else {
                panic!("{} {}: no chunks", case.name, info.name);
            };
            let sides = chunks.iter().map(|side| side.as_u64().unwrap());
            let grid: Vec<_> = sides.map(tenfold::model::Cuts::Every).collect();
            assert_eq!(found.grid, grid, "{} {}", case.name, info.name);
            let filters = expected.get("filters").and_then(Json::as_array);
            assert_eq!(found.filters.len(), filters.map_or(0, Vec::len));
        }
    }
}

/// Counts what is read.
struct Counting(Bytes, AtomicU64);

impl Source for Counting {
    fn len(&self) -> u64 {
        Source::len(&self.0)
    }

    fn read(&self, range: std::ops::Range<u64>) -> Result<Bytes> {
        self.1.fetch_add(range.end - range.start, Relaxed);
        Source::read(&self.0, range)
    }
}

#[test]
fn a_slice_reads_its_chunks_and_no_others() {
    let bytes = Bytes::from(std::fs::read(fixture("hdf5", "chunk_indexes")).unwrap());
    let source = Arc::new(Counting(bytes, AtomicU64::new(0)));
    let archive = OpenOptions::new().read(source.clone(), None).unwrap();
    let mut chunked = 0;
    for tensor in archive.tensors() {
        let Payload::Chunks(chunks) = &tensor.info().parts[0].payload else {
            continue;
        };
        let count: u64 = chunks.counts().iter().product();
        let read = |work: &dyn Fn()| {
            source.1.store(0, Relaxed);
            work();
            source.1.load(Relaxed)
        };
        let whole = read(&|| drop(tensor.canonical().unwrap()));
        let first = vec![Slice::Index(0); tensor.info().shape.len()];
        let one = read(&|| drop(tensor.slice(&first).unwrap().to_bytes().unwrap()));
        if count > 8 {
            assert!(one < whole / 4, "{}: {one} of {whole}", tensor.name());
            chunked += 1;
        }
    }
    assert!(chunked > 2, "{chunked}");
}

fn write(from: &Archive, options: &[(&str, &str)]) -> Result<BTreeMap<String, Vec<u8>>> {
    let options = ConvertOptions::default()
        .options(options.iter().copied())
        .allow(Effect::Dropped);
    let mut out = MemoryOutput::new();
    Conversion::prepare(from, Registry::standard().get("hdf5")?, &options)?
        .write_to("written.h5", &mut out)?;
    Ok(out.into_files())
}

fn written(from: &Archive, options: &[(&str, &str)]) -> Archive {
    let files = write(from, options).unwrap();
    Archive::from_bytes(files["written.h5"].clone()).unwrap()
}

#[test]
fn attributes_and_groups_are_written_and_read_again() {
    let mut builder = ArchiveBuilder::new();
    let data = Bytes::from_static(&[1, 2, 3, 4]);
    let tensor = builder
        .push("a/b/c", DType::U8, &[4], data.clone())
        .unwrap();
    tensor.meta("unit", "m").meta("scale", 0.5f32);
    builder
        .push("a/b", DType::BOOL, &[0, 3], Bytes::new())
        .unwrap_or_else(|error| panic!("{error}"));
    let archive = builder.finish();
    // "a/b" cannot be a dataset and a group.
    let error = write(&archive, &[]).unwrap_err();
    assert!(error.to_string().contains("a/b"), "{error}");

    let mut builder = ArchiveBuilder::new();
    let tensor = builder.push("a/b/c", DType::U8, &[4], data).unwrap();
    tensor.meta("unit", "m").meta("scale", 0.5f32);
    builder
        .push("a/empty", DType::C64, &[0, 3], Bytes::new())
        .unwrap();
    builder
        .meta("title", "grüße")
        .meta("list", vec![1u16, 2, 3])
        .meta("names", vec!["a", "bcd"]);
    builder.meta(
        "grid",
        Value::from(vec![
            Value::from(vec![1.5f64, 2.5]),
            Value::from(vec![3.5f64, 4.5]),
        ]),
    );
    let mut group = tenfold::model::Metadata::new();
    group.push("k", Value::Bool(true));
    builder.meta("/a/b", Value::from(group));
    let archive = builder.finish();
    let again = written(&archive, &[]);
    assert_eq!(again.version(), "superblock 2");
    assert_eq!(again.metadata(), archive.metadata());
    let names: Vec<_> = again
        .tensors()
        .map(|tensor| tensor.name().to_owned())
        .collect();
    assert_eq!(names, ["a/b/c", "a/empty"]);
    let (before, after) = (
        archive.tensor("a/b/c").unwrap(),
        again.tensor("a/b/c").unwrap(),
    );
    assert_eq!(after.info().metadata, before.info().metadata);
    assert_eq!(after.canonical().unwrap(), before.canonical().unwrap());
    assert_eq!(again.tensor("a/empty").unwrap().info().shape, [0, 3]);
}

#[test]
fn data_is_aligned() {
    let mut builder = ArchiveBuilder::new();
    for n in 0..5u8 {
        let bytes = Bytes::from(vec![n; usize::from(n) + 1]);
        builder
            .push(&format!("t{n}"), DType::U8, &[u64::from(n) + 1], bytes)
            .unwrap();
    }
    let again = written(&builder.finish(), &[]);
    for tensor in again.tensors() {
        let (_, range) = tensor.info().parts[0].payload.stored().unwrap();
        assert_eq!(range.start % 64, 0, "{}", tensor.name());
    }
}

#[test]
fn tensors_are_written_in_chunks() {
    let shape = [30u64, 7, 5];
    let bytes: Vec<u8> = (0..30 * 7 * 5u32)
        .flat_map(|n| (n / 3).to_le_bytes())
        .collect();
    let mut builder = ArchiveBuilder::new();
    builder
        .push("x", DType::U32, &shape, Bytes::from(bytes.clone()))
        .unwrap();
    builder
        .push("scalar", DType::U8, &[], Bytes::from_static(&[9]))
        .unwrap();
    builder
        .push("empty", DType::U8, &[3, 0], Bytes::new())
        .unwrap();
    let archive = builder.finish();
    let options: [&[(&str, &str)]; 4] = [
        &[("chunk", "auto")],
        &[("chunk", "1x2x3")],
        &[("chunk", "4x3x100"), ("deflate", "9"), ("shuffle", "true")],
        &[("deflate", "1")],
    ];
    for options in options {
        let again = written(&archive, options);
        let tensor = again.tensor("x").unwrap();
        assert_eq!(tensor.info().layout, Layout::Chunked);
        let Payload::Chunks(chunks) = &tensor.info().parts[0].payload else {
            panic!("no chunks");
        };
        assert_eq!(
            chunks.filters.len(),
            options.iter().filter(|(key, _)| *key != "chunk").count()
        );
        assert_eq!(tensor.canonical().unwrap(), bytes, "{options:?}");
        assert_eq!(
            again.tensor("scalar").unwrap().canonical().unwrap()[..],
            [9]
        );
        assert_eq!(again.tensor("empty").unwrap().info().shape, [3, 0]);
        assert_eq!(
            write(&archive, options).unwrap(),
            write(&archive, options).unwrap()
        );
    }
    for wrong in [
        ("chunk", "0x1"),
        ("chunk", "a"),
        ("deflate", "10"),
        ("shuffle", "maybe"),
    ] {
        assert!(write(&archive, &[wrong]).is_err(), "{wrong:?}");
    }
}

/// The chunks of a tensor: their sides, and the numbers of their filters.
fn chunking(archive: &Archive, name: &str) -> Option<(Vec<u64>, Vec<u16>)> {
    let tensor = archive.tensor(name).unwrap();
    let Payload::Chunks(chunks) = &tensor.info().parts[0].payload else {
        return None;
    };
    let sides = chunks.grid.iter().map(|cuts| match cuts {
        Cuts::Every(side) => *side,
        other => panic!("HDF5 cuts evenly, not {other:?}"),
    });
    let filters = chunks.filters.iter().map(|filter| match filter {
        Filter::Deflate { .. } => 1,
        Filter::Shuffle { .. } => 2,
        Filter::Fletcher32 => 3,
        _ => 32000,
    });
    Some((sides.collect(), filters.collect()))
}

#[test]
fn a_file_that_is_written_again_keeps_its_chunks_and_filters() {
    for name in ["layouts_earliest", "layouts_latest", "chunk_indexes"] {
        let archive = Archive::open(fixture("hdf5", name)).unwrap();
        let again = written(&archive, &[]);
        let whole = written(&archive, &[("chunk", "none")]);
        for tensor in archive.tensors() {
            let shape = tensor.info().shape.to_vec();
            let expected = chunking(&archive, tensor.name()).map(|(sides, mut filters)| {
                // LZF, which only h5py has, becomes deflate; a chunk is not larger than the tensor.
                filters
                    .iter_mut()
                    .filter(|id| **id == 32000)
                    .for_each(|id| *id = 1);
                let sides = sides.iter().zip(&shape).map(|(side, dim)| *side.min(dim));
                (sides.collect(), filters)
            });
            let found = again.tensor(tensor.name()).unwrap();
            assert_eq!(
                chunking(&again, tensor.name()),
                expected,
                "{name} {}",
                tensor.name()
            );
            assert_eq!(chunking(&whole, tensor.name()), None);
            assert_eq!(found.canonical().unwrap(), tensor.canonical().unwrap());
        }
    }
    let archive = Archive::open(fixture("hdf5", "layouts_latest")).unwrap();
    assert!(write(&archive, &[("chunk", "none"), ("deflate", "1")]).is_err());
}

/// A file of one dataset of bytes, of which none is stored.
fn never_written(elements: u64) -> Bytes {
    let mut dataspace = vec![2, 1, 0, 1];
    dataspace.extend_from_slice(&elements.to_le_bytes());
    let mut layout = vec![3, 1];
    layout.extend_from_slice(&u64::MAX.to_le_bytes());
    layout.extend_from_slice(&elements.to_le_bytes());
    let dataset = hdf5_object(&[(1, dataspace), (3, HDF5_U8.to_vec()), (8, layout)]);
    let root = |at| hdf5_object(&[hdf5_link("x", at)]);
    let at = 96 + root(0).len() as u64;
    hdf5_file(&[root(at), dataset]).into()
}

#[test]
fn fill_values_make_a_gibibyte_or_as_much_as_is_allowed() {
    let open = |elements, limits: Limits| {
        let options = OpenOptions::new().limits(limits);
        options.read(Arc::new(never_written(elements)), Some("x.h5"))
    };
    const GIB: u64 = 1 << 30;
    let usual = Limits::default();
    for (elements, limits, is_read) in [
        (GIB, usual, true),
        (GIB + 1, usual, false),
        (GIB + 1, usual.dense_bytes(GIB + 1), true),
        (1 << 20, usual.dense_bytes(999), false),
        (1 << 40, usual, false),
        (1 << 40, usual.dense_bytes(1 << 40), true),
    ] {
        let archive = open(elements, limits).unwrap();
        let tensor = archive.tensor("x").unwrap();
        // The first bytes are enough to know.
        let form = Form::canonical(DType::U8);
        let stopped = tensor.stream(&form, &mut |_| Err(Error::canceled()));
        let error = stopped.unwrap_err();
        if is_read {
            assert_eq!(
                error.kind(),
                ErrorKind::Canceled,
                "{elements} bytes: {error}"
            );
        } else {
            assert_eq!(error.rule(), "hdf5.dense", "{elements} bytes: {error}");
            let raise = Hint::RaiseLimit {
                name: "dense_bytes",
                needed: Some(elements),
            };
            assert!(error.hints().contains(&raise), "{:?}", error.hints());
        }
        // A few of them are always there.
        let few = tensor.slice(&[Slice::Index(5)]).unwrap();
        assert_eq!(few.to_bytes().unwrap(), [0].as_slice());
    }
}

#[test]
fn names_that_are_no_paths_are_refused_before_anything_is_written() {
    for name in ["/a", "a//b", "a/", ".", "a/./b", "a\0"] {
        let mut builder = ArchiveBuilder::new();
        builder
            .push(name, DType::U8, &[1], Bytes::from_static(&[1]))
            .unwrap();
        assert!(write(&builder.finish(), &[]).is_err(), "{name:?}");
    }
}

#[cfg(feature = "keras")]
mod keras {
    use super::*;

    #[test]
    fn variables_say_which_layer_they_are_of() {
        let archive = Archive::open(fixture("keras", "dense")).unwrap();
        let layer = |name: &str| {
            let tensor = archive.tensor(name).unwrap();
            assert!(tensor.info().metadata.is_fact("layer"));
            tensor
                .info()
                .metadata
                .get("layer")
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(layer("layers/dense/vars/0"), "first");
        assert_eq!(layer("layers/dense_1/vars/1"), "second");
    }

    #[test]
    fn stored_weights_are_read_in_place() {
        let archive = Archive::open(fixture("keras", "dense")).unwrap();
        for tensor in archive.tensors() {
            let (source, range) = tensor.info().parts[0].payload.stored().unwrap();
            assert_eq!(source, tenfold::model::SourceId::MAIN);
            assert!(range.end <= archive.len_bytes());
        }
    }

    #[test]
    fn what_only_keras_understands_is_named_before_it_is_lost() {
        let archive = Archive::open(fixture("keras", "extra_member")).unwrap();
        let kept = archive.manifest().kept.iter();
        let kept: Vec<_> = kept.map(|kept| kept.name.as_str()).collect();
        assert!(kept.contains(&"config.json") && kept.len() > 1, "{kept:?}");
    }

    #[test]
    fn a_deflated_bomb_is_not_unpacked() {
        // The size that the directory says is looked at before anything is unpacked.
        let mut bytes = std::fs::read(fixture("keras", "dense_deflated")).unwrap();
        let name = b"model.weights.h5";
        let places: Vec<usize> = (0..bytes.len() - name.len())
            .filter(|&at| bytes[at..].starts_with(name))
            .collect();
        // Of the local header and of the directory, the size stands 8 and 22 bytes before the name.
        for (at, before) in places.into_iter().zip([8, 22]) {
            bytes[at - before..at - before + 4].copy_from_slice(&(200u32 << 20).to_le_bytes());
        }
        let error = Archive::from_bytes(bytes).unwrap_err();
        assert_eq!(error.rule(), "keras.member-size", "{error}");
    }
}

#[test]
fn attributes_of_the_root_are_written_as_they_were_those_without_a_value_included() {
    for name in ["attributes.h5", "attributes_latest.h5"] {
        let archive = Archive::open(fixture("hdf5", name.trim_end_matches(".h5"))).unwrap();
        let again = written(&archive, &[]);
        let wanted = archive.metadata();
        assert!(wanted.get("empty").is_some());
        assert_eq!(again.metadata().len(), wanted.len());
        for (key, value) in wanted.iter() {
            assert_eq!(again.metadata().get(key).as_ref(), Some(&value), "{key}");
        }
    }
}

/// Keras writes its whole model as one attribute, and the names of its layers as a list.
#[test]
fn texts_that_are_too_long_for_a_header_are_attributes_all_the_same() {
    let config = "{\"layers\": []}".repeat(10_000);
    let name = |n: u32| match n {
        7 => String::new(),
        n => format!("layer_{n:060}"),
    };
    let names: Vec<String> = (0..3000).map(name).collect();
    let mut builder = ArchiveBuilder::new();
    builder
        .meta("model_config", config.as_str())
        .meta(
            "layer_names",
            names.iter().map(String::as_str).collect::<Vec<_>>(),
        )
        .meta("short", "text");
    let tensor = builder.push("a/b", DType::U8, &[1], Bytes::from_static(&[1]));
    tensor.unwrap().meta("long", config.as_str());
    let again = written(&builder.finish(), &[]);
    let tensor = again.tensor("a/b").unwrap();
    assert_eq!(
        tensor.info().metadata.get("long"),
        Some(&Value::from(config.as_str()))
    );
    let metadata = again.metadata();
    assert_eq!(
        metadata.get("model_config"),
        Some(&Value::from(config.as_str()))
    );
    assert_eq!(metadata.get("short"), Some(&Value::from("text")));
    let Some(Value::List(found)) = metadata.get("layer_names") else {
        panic!("no list of names");
    };
    let found = found.iter().map(|name| name.as_str().unwrap().to_owned());
    assert_eq!(found.collect::<Vec<_>>(), names);
}
