//! What is special to TensorFlow's checkpoints: whichever file is opened, slices, text, names, snappy, and writing two files.

// Inputs of the tests, not outputs.
#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};

use tenfold::format::Registry;
use tenfold::model::{DType, Layout, Value};
use tenfold::ops::{Conversion, ConvertOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes, ErrorKind, OpenOptions, Result};

use crate::support::{self, InMemory, Kind};

fn fixture(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tf_checkpoint");
    fixtures.join(name)
}

fn digests(archive: &Archive) -> Vec<(String, String)> {
    let digests = support::digest(archive, 1).tensors.into_iter();
    digests
        .map(|(name, sha256)| (name, support::hex(&sha256.unwrap())))
        .collect()
}

fn write(archive: &Archive, name: &str) -> Result<std::collections::BTreeMap<String, Vec<u8>>> {
    let registry = Registry::standard();
    let entry = registry.get("tf_checkpoint")?;
    let mut output = tenfold::io::MemoryOutput::new();
    Conversion::prepare(archive, entry, &ConvertOptions::new())?.write_to(name, &mut output)?;
    Ok(output.into_files())
}

#[test]
fn every_bundle_makes_a_round_trip_with_its_text() {
    let mut count = 0;
    for case in support::cases(Kind::Valid) {
        if case.format != "tf_checkpoint" {
            continue;
        }
        let archive = case.open().unwrap();
        let files = write(&archive, "m.index").unwrap();
        let names: Vec<_> = files.keys().map(String::as_str).collect();
        assert_eq!(names, ["m.data-00000-of-00001", "m.index"]);
        let again = InMemory::written(files, "m.index").open().unwrap();
        assert_eq!(digests(&again), digests(&archive), "{}", case.name);
        assert_eq!(again.metadata(), archive.metadata(), "{}", case.name);
        let errors = support::verify(&again, 1);
        assert!(support::errors(&errors).is_empty(), "{errors:?}");
        let kept = |archive: &Archive| archive.manifest().kept.len();
        assert_eq!(kept(&again), kept(&archive), "{}", case.name);
        count += 1;
    }
    assert_eq!(count, 17);
}

#[test]
fn the_graph_of_objects_is_neither_tensor_nor_text() {
    for name in [
        "tf2_object/ckpt.index",
        "saved_model/variables/variables.index",
    ] {
        let archive = OpenOptions::new()
            .open(fixture("valid").join(name))
            .unwrap();
        let graph = "_CHECKPOINTABLE_OBJECT_GRAPH";
        assert!(archive.tensor(graph).is_err());
        assert_eq!(archive.metadata().get(graph), None);
        let kept = &archive.manifest().kept;
        assert_eq!((kept.len(), kept[0].name.as_str()), (1, graph));
    }
}

#[test]
fn whichever_file_is_opened_the_bundle_is_read() {
    let open = |name: &str| {
        digests(
            &OpenOptions::new()
                .open(fixture("valid").join(name))
                .unwrap(),
        )
    };
    let index = open("three_shards/model.index");
    assert_eq!(open("three_shards"), index);
    assert_eq!(open("three_shards/model.data-00001-of-00003"), index);
    let keras = open("tf2_keras_adam/ckpt-1.index");
    assert_eq!(open("tf2_keras_adam/checkpoint"), keras);
    assert_eq!(open("tf2_keras_adam"), keras);
    assert_eq!(open("three_shards/model"), index);
    assert_eq!(open("prefix_dots/v1.2-best"), open("prefix_dots"));
    assert_eq!(
        open("prefix_dots/v1.2-best.data-00000-of-00001"),
        open("prefix_dots/v1.2-best.index")
    );
}

#[test]
fn a_saved_model_is_opened_through_its_variables() {
    let directory = tempfile::tempdir().unwrap();
    let variables = directory.path().join("variables");
    std::fs::create_dir(&variables).unwrap();
    std::fs::write(directory.path().join("saved_model.pb"), b"\x08\x01").unwrap();
    for name in ["variables.index", "variables.data-00000-of-00001"] {
        let from = fixture("valid/saved_model/variables").join(name);
        std::fs::copy(from, variables.join(name)).unwrap();
    }
    let archive = OpenOptions::new().open(directory.path()).unwrap();
    let alone = OpenOptions::new()
        .open(variables.join("variables.index"))
        .unwrap();
    assert_eq!(digests(&archive), digests(&alone));
    std::fs::remove_file(variables.join("variables.data-00000-of-00001")).unwrap();
    let error = OpenOptions::new().open(directory.path()).unwrap_err();
    assert_eq!(error.rule(), "tf_checkpoint.data-missing");
}

#[test]
fn data_without_its_index_says_which_file_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("m.data-00000-of-00001");
    std::fs::write(&data, [0; 64]).unwrap();
    let error = OpenOptions::new().open(&data).unwrap_err();
    assert_eq!(error.rule(), "tf_checkpoint.data-missing");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("\"m.index\""), "{error}");
}

#[test]
fn slices_are_put_together_and_their_checksums_are_compared() {
    let path = fixture("valid/slices_2d/model.index");
    let archive = OpenOptions::new().open(&path).unwrap();
    let tensor = archive.tensor("m").unwrap();
    assert_eq!(tensor.info().layout, Layout::Chunked);
    assert_eq!(archive.manifest().sealed.len(), 3);
    let directory = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let from = entry.unwrap().path();
        let mut bytes = std::fs::read(&from).unwrap();
        if from.to_str().unwrap().contains("data-00001") {
            *bytes.last_mut().unwrap() ^= 1;
        }
        std::fs::write(directory.path().join(from.file_name().unwrap()), bytes).unwrap();
    }
    let damaged = OpenOptions::new().open(directory.path()).unwrap();
    let findings = support::verify(&damaged, 1);
    let rules: Vec<_> = support::errors(&findings)
        .iter()
        .map(|found| found.rule.clone())
        .collect();
    assert_eq!(rules, ["tf_checkpoint.checksum"]);
    let error = tenfold::ops::compare_checksums(&damaged, &Default::default()).unwrap_err();
    assert_eq!(error.rule(), "tf_checkpoint.checksum");
}

#[test]
fn variables_are_called_by_keys_paths_or_the_names_that_they_were_made_with() {
    let names = |value: &str| -> Vec<String> {
        let path = fixture("valid/tf2_keras_adam/ckpt-1.index");
        let archive = OpenOptions::new()
            .option("names", value)
            .open(path)
            .unwrap();
        let names = archive.tensors().map(|tensor| tensor.name().to_owned());
        names.collect()
    };
    let (keys, paths, variables) = (names("key"), names("path"), names("variable"));
    assert!(
        keys.iter()
            .all(|name| name.ends_with("/.ATTRIBUTES/VARIABLE_VALUE"))
    );
    for (key, path) in keys.iter().zip(&paths) {
        assert_eq!(
            key.strip_suffix("/.ATTRIBUTES/VARIABLE_VALUE").unwrap(),
            path
        );
    }
    assert_ne!(paths, variables);
    let path = fixture("valid/basic/model.ckpt.index");
    let error = OpenOptions::new()
        .option("names", "other")
        .open(path)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
}

#[test]
fn elements_of_four_bits_have_a_byte_each_of_which_the_high_half_is_zero() {
    let archive = OpenOptions::new()
        .open(fixture("valid/dtypes_4bit/model.ckpt.index"))
        .unwrap();
    let mut files = write(&archive, "m.index").unwrap();
    let data = files.get_mut("m.data-00000-of-00001").unwrap();
    // 1, -2, 3, -8, 7, 0.
    assert_eq!(data[..6], [1, 14, 3, 8, 7, 0]);
    data[1] = 0xfe;
    let changed = InMemory::written(files, "m.index").open().unwrap();
    let error = changed.tensor("i").unwrap().canonical().unwrap_err();
    assert_eq!(error.rule(), "tf_checkpoint.narrow");
}

#[test]
fn text_is_written_in_lists_of_any_depth() {
    let mut builder = Archive::builder();
    builder.tensor("w", [2], [1.0f32, 2.0]).unwrap();
    let text = |text: &str| Value::Str(text.to_owned());
    let row = |a: &str, b: &str| Value::List([text(a), text(b)].into_iter().collect());
    let metadata = builder.metadata();
    metadata.push("title", text("x"));
    metadata.push("bytes", Value::Bytes(Bytes::from_static(&[0xff, 0])));
    metadata.push(
        "table",
        Value::List([row("a", ""), row("bb", "c")].into_iter().collect()),
    );
    metadata.push("number", Value::I64(5));
    let archive = builder.finish();
    let registry = Registry::standard();
    let options = ConvertOptions::new().allow(tenfold::format::Effect::Dropped);
    let conversion =
        Conversion::prepare(&archive, registry.get("tf_checkpoint").unwrap(), &options);
    let conversion = conversion.unwrap();
    assert_eq!(conversion.losses.len(), 1);
    let mut output = tenfold::io::MemoryOutput::new();
    conversion.write_to("m.index", &mut output).unwrap();
    let again = InMemory::written(output.into_files(), "m.index")
        .open()
        .unwrap();
    for key in ["title", "bytes", "table"] {
        assert_eq!(
            again.metadata().get(key),
            archive.metadata().get(key),
            "{key}"
        );
    }
    assert_eq!(again.metadata().get("number"), None);
}

#[test]
fn the_other_file_is_named_after_the_index_whatever_that_is_called() {
    let mut builder = Archive::builder();
    builder.tensor("w", [1], [1u8]).unwrap();
    let archive = builder.finish();
    let files = write(&archive, "model.ckpt").unwrap();
    assert!(files.contains_key("model.ckpt.data-00000-of-00001"));
    let options = OpenOptions::new().format(Some("tf_checkpoint"));
    let again = InMemory::written(files, "model.ckpt")
        .open_with(&options)
        .unwrap();
    assert_eq!(digests(&again), digests(&archive));
}

/// The form in which checksums are stored.
fn masked(bytes: &[u8]) -> [u8; 4] {
    let crc = crc32c::crc32c(bytes);
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

#[test]
fn blocks_may_be_compressed_with_snappy() {
    let path = fixture("valid/minimal/m.index");
    let index = std::fs::read(&path).unwrap();
    // The first block lies in front of its compression, its checksum and the empty block of 8 bytes.
    let footer = &index[index.len() - 48..];
    let (low, high) = (usize::from(footer[0]), usize::from(footer[1]));
    let block = if low < 0x80 {
        low
    } else {
        low - 0x80 + (high << 7)
    };
    let data = &index[..block - 5];
    assert!(data.len() < 256);
    // One stretch of bytes.
    let mut packed = Vec::new();
    let mut len = data.len();
    while len >= 0x80 {
        packed.push(u8::try_from(len & 0x7f).unwrap() | 0x80);
        len >>= 7;
    }
    packed.push(u8::try_from(len).unwrap());
    packed.extend([60 << 2, u8::try_from(data.len() - 1).unwrap()]);
    packed.extend_from_slice(data);
    let size = packed.len();
    packed.push(1);
    packed.extend(masked(&packed));
    let mut put = |content: &[u8]| {
        let at = packed.len();
        packed.extend_from_slice(content);
        packed.push(0);
        packed.extend(masked(&packed[at..]));
        at
    };
    let empty = put(&[0, 0, 0, 0, 1, 0, 0, 0]);
    // The key is behind all others; the block begins at 0.
    let low = u8::try_from(size & 0x7f).unwrap() | 0x80;
    let handle = [0, low, u8::try_from(size >> 7).unwrap()];
    let entry = [&[0, 1, 3, b'z'][..], &handle, &[0, 0, 0, 0, 1, 0, 0, 0]].concat();
    let blocks = put(&entry);
    let mut footer = Vec::new();
    for (at, len) in [(empty, 8), (blocks, entry.len())] {
        footer.extend([
            u8::try_from(at & 0x7f).unwrap() | 0x80,
            u8::try_from(at >> 7).unwrap(),
        ]);
        footer.push(u8::try_from(len).unwrap());
    }
    footer.resize(40, 0);
    footer.extend([0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb]);
    packed.extend(footer);
    let mut file = InMemory::load(&path);
    let expected = digests(&file.open().unwrap());
    file.bytes = packed.into();
    assert_eq!(digests(&file.open().unwrap()), expected);
}

#[test]
fn an_index_of_many_variables_whose_names_share_their_beginnings_is_read() {
    const COUNT: u32 = 60_000;
    let mut builder = ArchiveBuilder::new();
    for n in 0..COUNT {
        let name = format!("layers/{}/weight.{n}", n / 10);
        let data = Bytes::copy_from_slice(&n.to_le_bytes());
        builder.push(name, DType::U32, &[1], data).unwrap();
    }
    let files = write(&builder.finish(), "m.index").unwrap();
    let len = files["m.index"].len();
    assert!(len < 40 * COUNT as usize, "{len}");
    let archive = InMemory::written(files, "m.index").open().unwrap();
    assert_eq!(archive.tensors().len(), COUNT as usize);
    let last = archive.tensor("layers/5999/weight.59999").unwrap();
    assert_eq!(last.canonical().unwrap()[..], 59_999u32.to_le_bytes());
}
