//! Models in several safetensors files: the index and the files are held against each other, both ways.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tenfold::format::{Registry, Severity};
use tenfold::io::{self, AtomicOutput, MemoryOutput};
use tenfold::model::{DType, SourceId, Value};
use tenfold::ops::{self, Conflicts, Conversion, ConvertOptions, Shards};
use tenfold::{Archive, ArchiveBuilder, Bytes, Error, ErrorKind, OpenOptions, Result};

const INDEX: &str = "model.safetensors.index.json";

fn fixture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/safetensors/valid/sharded_3")
}

/// A copy of the golden model that can be changed.
fn copy() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture()).unwrap() {
        let path = entry.unwrap().path();
        let to = directory.path().join(path.file_name().unwrap());
        fs::copy(&path, to).unwrap();
    }
    directory
}

fn change(directory: &Path, file: &str, from: &str, to: &str) {
    let path = directory.join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

fn refusal(directory: &Path) -> Error {
    let Err(error) = Archive::open(directory.join(INDEX)) else {
        panic!("it is taken");
    };
    error
}

fn warnings(archive: &Archive) -> Vec<(String, String)> {
    let findings = archive.findings().iter();
    findings
        .filter(|finding| finding.severity == Severity::Warning)
        .map(|finding| (finding.rule.clone(), finding.message.clone()))
        .collect()
}

/// One file with a tensor of one byte for every name.
fn file_of(names: &[&str], metadata: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = ArchiveBuilder::new();
    for name in names {
        let data = Bytes::from_static(b"x");
        builder.push(*name, DType::U8, &[1], data).unwrap();
    }
    for (key, value) in metadata {
        builder.metadata().push(*key, Value::Str((*value).into()));
    }
    let mut files = write(&builder.finish(), "one.safetensors", None).unwrap();
    files.remove("one.safetensors").unwrap()
}

fn write(
    archive: &Archive,
    name: &str,
    shard_size: Option<u64>,
) -> Result<BTreeMap<String, Vec<u8>>> {
    let registry = Registry::standard();
    let options = ConvertOptions::default()
        .shards(shard_size.map(Shards::Size))
        .check(true);
    let conversion =
        ops::Conversion::prepare(archive, registry.get("safetensors").unwrap(), &options)?;
    let expected = conversion.file_names(name)?;
    let mut out = MemoryOutput::new();
    let report = conversion.write_to(name, &mut out)?;
    let reported: Vec<_> = report.files.into_iter().map(|(name, _)| name).collect();
    assert_eq!(reported, expected);
    Ok(out.into_files())
}

fn content(archive: &Archive) -> [u8; 32] {
    crate::support::digest(archive, 1).content.unwrap()
}

#[test]
fn an_index_is_one_archive() {
    let archive = Archive::open(fixture().join(INDEX)).unwrap();
    assert_eq!(archive.version(), "sharded index");
    assert_eq!(archive.tensors().len(), 9);
    assert_eq!(archive.metadata().len(), 1);
    assert_eq!(
        archive.source_name(SourceId(3)),
        Some("model-00003-of-00003.safetensors")
    );
    assert!(warnings(&archive).is_empty());
}

#[test]
fn a_directory_is_opened_through_its_index() {
    let directory = copy();
    let by_index = Archive::open(directory.path().join(INDEX)).unwrap();
    // Files that the index does not name are none of its model, though they are tensor files.
    let stray = file_of(&["lm_head.weight"], &[]);
    fs::write(directory.path().join("consolidated.safetensors"), stray).unwrap();
    let by_directory = Archive::open(directory.path()).unwrap();
    assert_eq!(by_directory.version(), "sharded index");
    assert_eq!(content(&by_directory), content(&by_index));
    fs::copy(
        directory.path().join(INDEX),
        directory.path().join("other.safetensors.index.json"),
    )
    .unwrap();
    let Err(error) = Archive::open(directory.path()) else {
        panic!("two indexes are taken");
    };
    assert_eq!(error.kind(), ErrorKind::Argument);
}

#[test]
fn a_directory_without_an_index_and_a_list_of_files_are_one_archive() {
    let directory = copy();
    let whole = content(&Archive::open(directory.path().join(INDEX)).unwrap());
    fs::remove_file(directory.path().join(INDEX)).unwrap();
    let joined = Archive::open(directory.path()).unwrap();
    assert_eq!(content(&joined), whole);
    assert_eq!(joined.metadata().len(), 1);
    let shard = |n| {
        let name = format!("model-0000{n}-of-00003.safetensors");
        Archive::open(directory.path().join(name)).unwrap()
    };
    let list = ops::merge(&[shard(3), shard(1), shard(2)], Conflicts::Refuse)
        .unwrap()
        .archive;
    assert_eq!(content(&list), whole);
    assert!(ops::merge(&[shard(3), shard(1), shard(3)], Conflicts::Refuse).is_err());
}

#[test]
fn a_missing_shard_is_refused_by_name() {
    let directory = copy();
    let shard = "model-00002-of-00003.safetensors";
    fs::remove_file(directory.path().join(shard)).unwrap();
    let error = refusal(directory.path());
    assert_eq!(error.rule(), "safetensors.shard-missing");
    assert!(error.message().contains(shard));
}

#[test]
fn a_tensor_that_is_not_where_the_index_says_is_refused() {
    let directory = copy();
    change(
        directory.path(),
        INDEX,
        "model.layers.3.b\": \"model-00002",
        "model.layers.3.b\": \"model-00001",
    );
    let error = refusal(directory.path());
    assert_eq!(error.rule(), "safetensors.weight-map");
    assert_eq!(error.tensor(), Some("model.layers.3.b"));
    assert!(error.message().contains("it is in model-00002"), "{error}");
}

#[test]
fn a_tensor_that_the_index_does_not_name_is_reported_and_listed() {
    let directory = copy();
    let line = "\"model.layers.3.b\": \"model-00002-of-00003.safetensors\",";
    change(directory.path(), INDEX, line, "");
    let archive = Archive::open(directory.path().join(INDEX)).unwrap();
    assert_eq!(archive.tensors().len(), 9);
    let [(rule, message)] = warnings(&archive).try_into().unwrap();
    assert_eq!(rule, "safetensors.not-in-index");
    assert!(message.contains("model.layers.3.b"), "{message}");
}

#[test]
fn a_tensor_in_two_shards_is_refused() {
    for name in ["lm_head.weight", "of neither"] {
        let directory = copy();
        let shard = directory.path().join("model-00004-of-00003.safetensors");
        fs::write(shard, file_of(&[name, "new"], &[("format", "pt")])).unwrap();
        let twin = directory.path().join("model-00005-of-00003.safetensors");
        fs::write(twin, file_of(&[name, "newer"], &[("format", "pt")])).unwrap();
        change(
            directory.path(),
            INDEX,
            "\"lm_head.weight\"",
            "\"new\": \"model-00004-of-00003.safetensors\", \"newer\": \"model-00005-of-00003.safetensors\", \"lm_head.weight\"",
        );
        let error = refusal(directory.path());
        assert_eq!(error.rule(), "safetensors.duplicate");
        assert_eq!(error.tensor(), Some(name));
    }
}

#[test]
fn a_wrong_total_and_a_left_over_shard_are_reported() {
    let directory = copy();
    change(directory.path(), INDEX, "6528", "6529");
    let stray = file_of(&["old"], &[]);
    let name = "model-00001-of-00004.safetensors";
    fs::write(directory.path().join(name), stray).unwrap();
    let archive = Archive::open(directory.path().join(INDEX)).unwrap();
    let rules: Vec<_> = warnings(&archive)
        .into_iter()
        .map(|(rule, _)| rule)
        .collect();
    assert_eq!(
        rules,
        ["safetensors.total-size", "safetensors.shard-left-over"]
    );
    change(directory.path(), INDEX, "6529", "6.528e3");
    fs::remove_file(directory.path().join(name)).unwrap();
    let archive = Archive::open(directory.path().join(INDEX)).unwrap();
    assert!(warnings(&archive).is_empty());
}

#[test]
fn fewer_shards_than_their_names_count_are_reported() {
    let directory = copy();
    let lost = "\"lm_head.weight\": \"model-00003-of-00003.safetensors\"";
    let text = fs::read_to_string(directory.path().join(INDEX)).unwrap();
    let text = text
        .replace(lost, "")
        .replace("safetensors\",\n    \n", "safetensors\"\n");
    fs::write(directory.path().join(INDEX), text).unwrap();
    fs::remove_file(directory.path().join("model-00003-of-00003.safetensors")).unwrap();
    let archive = Archive::open(directory.path().join(INDEX)).unwrap();
    let rules: Vec<_> = warnings(&archive)
        .into_iter()
        .map(|(rule, _)| rule)
        .collect();
    assert_eq!(rules, ["safetensors.total-size", "safetensors.shard-count"]);
}

#[test]
fn an_index_that_names_itself_or_something_else_is_refused() {
    for (target, rule) in [
        (INDEX, "safetensors.shard-name"),
        ("config.json", "safetensors.header"),
        ("model.bin", "safetensors.header"),
    ] {
        let directory = copy();
        fs::write(
            directory.path().join("config.json"),
            "{\"a\": \"long enough\"}",
        )
        .unwrap();
        fs::write(
            directory.path().join("model.bin"),
            b"PK\x03\x04zip archive of pickles",
        )
        .unwrap();
        change(
            directory.path(),
            INDEX,
            "\"model-00001-of-00003.safetensors\"",
            &format!("\"{target}\""),
        );
        let error = refusal(directory.path());
        assert_eq!(error.rule(), rule, "{error}");
    }
}

#[test]
fn a_damaged_shard_says_which_file_and_where() {
    let directory = copy();
    let name = "model-00002-of-00003.safetensors";
    let shard = directory.path().join(name);
    let mut bytes = fs::read(&shard).unwrap();
    bytes.pop();
    fs::write(shard, bytes).unwrap();
    let error = refusal(directory.path());
    assert_eq!(error.rule(), "safetensors.truncated");
    assert!(error.message().starts_with(name), "{error}");
    assert_eq!(error.range().unwrap().0, SourceId(2));
}

#[test]
fn metadata_of_all_files_is_kept_and_disagreement_reported() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("m-1"), file_of(&["a"], &[("k", "1"), ("one", "x")])).unwrap();
    fs::write(at("m-2"), file_of(&["b"], &[("k", "2"), ("two", "y")])).unwrap();
    let text = r#"{"metadata": {"total_size": 2, "total_parameters": 2, "own": [1], "k": "3"},
        "weight_map": {"b": "m-2", "a": "m-1"}, "other": null}"#;
    fs::write(at(INDEX), text).unwrap();
    let archive = Archive::open(at(INDEX)).unwrap();
    let keys: Vec<_> = archive.metadata().iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["k", "one", "two", "own"]);
    assert_eq!(archive.metadata().get("k").unwrap().as_str(), Some("1"));
    let names: Vec<_> = archive.tensors().map(|tensor| tensor.name()).collect();
    assert_eq!(names, ["a", "b"]);
    let [(rule, _)] = warnings(&archive).try_into().unwrap();
    assert_eq!(rule, "safetensors.shard-metadata");
}

#[test]
fn an_index_is_recognized_behind_long_metadata() {
    let directory = copy();
    for long in [65_500, 65_536, 200_000] {
        let note = format!("\"note\": \"{}\", \"total_size\"", "x".repeat(long));
        let text = fs::read_to_string(fixture().join(INDEX)).unwrap();
        let text = text.replacen("\"total_size\"", &note, 1);
        fs::write(directory.path().join(INDEX), text).unwrap();
        let archive = Archive::open(directory.path().join(INDEX)).unwrap();
        assert_eq!(archive.metadata().len(), 2);
    }
}

#[test]
fn without_a_directory_the_index_says_what_it_needs() {
    let text = fs::read(fixture().join(INDEX)).unwrap();
    let error = Archive::from_bytes(text).err().unwrap();
    assert_eq!(error.format(), Some("safetensors"));
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn shards_have_the_usual_names_and_at_most_the_size() {
    let whole = Archive::open(fixture().join(INDEX)).unwrap();
    let files = write(&whole, "out.safetensors", Some(3200)).unwrap();
    let names: Vec<_> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "out-00001-of-00003.safetensors",
            "out-00002-of-00003.safetensors",
            "out-00003-of-00003.safetensors",
            "out.safetensors.index.json",
        ]
    );
    for (name, bytes) in &files {
        if name.ends_with(".json") {
            let index: serde_json::Value = serde_json::from_slice(bytes).unwrap();
            assert_eq!(index["metadata"]["total_size"], 6528);
            assert_eq!(index["weight_map"].as_object().unwrap().len(), 9);
        } else {
            let theirs = safetensors::SafeTensors::deserialize(bytes).unwrap();
            let size: usize = theirs.iter().map(|(_, tensor)| tensor.data().len()).sum();
            assert!(size <= 3200, "{name}: {size}");
            let archive = Archive::from_bytes(bytes.clone()).unwrap();
            assert_eq!(
                archive.metadata().get("format").unwrap().as_str(),
                Some("pt")
            );
        }
    }
    assert_eq!(files, write(&whole, "out.safetensors", Some(3200)).unwrap());
}

#[test]
fn what_fits_into_one_file_needs_no_index() {
    let whole = Archive::open(fixture().join(INDEX)).unwrap();
    let names = |name: &str, size| -> Vec<String> {
        write(&whole, name, size).unwrap().into_keys().collect()
    };
    assert_eq!(names("out.safetensors", Some(6528)), ["out.safetensors"]);
    assert_eq!(
        names("out.safetensors.index.json", Some(6528)),
        [
            "out-00001-of-00001.safetensors",
            "out.safetensors.index.json"
        ]
    );
    assert!(write(&whole, "out.safetensors.index.json", None).is_err());
    // A tensor is never divided.
    assert_eq!(names("out.safetensors", Some(1)).len(), 10);
    let nothing = ArchiveBuilder::new().finish();
    let files = write(&nothing, "out.safetensors", Some(1)).unwrap();
    assert_eq!(files.len(), 1);
}

#[test]
fn files_appear_together_and_the_index_last() {
    let directory = tempfile::tempdir().unwrap();
    let whole = Archive::open(fixture().join(INDEX)).unwrap();
    let registry = Registry::standard();
    let entry = registry.get("safetensors").unwrap();
    let convert = |force| {
        let options = ConvertOptions::default().shards(Some(Shards::Size(3200)));
        let output = AtomicOutput::file(directory.path().join("out.safetensors"));
        let mut output = output.unwrap().sync(false).force(force);
        let conversion = ops::Conversion::prepare(&whole, entry, &options).unwrap();
        conversion.write_to("out.safetensors", &mut output)
    };
    convert(false).unwrap();
    let back = OpenOptions::new().open(directory.path()).unwrap();
    assert_eq!(content(&back), content(&whole));
    assert!(warnings(&back).is_empty());
    // Nothing is replaced unless that is wanted, and then all of it.
    fs::remove_file(directory.path().join("out-00001-of-00003.safetensors")).unwrap();
    assert!(convert(false).is_err());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 3);
    convert(true).unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4);
}

#[test]
fn formats_without_an_index_get_numbered_files() {
    let whole = Archive::open(fixture().join(INDEX)).unwrap();
    let count = whole.tensors().len();
    let registry = Registry::standard();
    let mut options = ConvertOptions::default();
    // Less than any tensor has: each gets a file.
    options = options.shards(Some(Shards::Size(1)));
    let without_index = registry.entries().iter().filter(|entry| {
        let shards = |codec: &&dyn tenfold::format::Format| !codec.writes_shards();
        entry.codec.as_ref().is_some_and(shards) && !entry.spec.writes.is_empty()
    });
    let mut tried = 0;
    for entry in without_index {
        let conversion = ops::Conversion::prepare(&whole, entry, &options).unwrap();
        if conversion.refuse_losses().is_err() {
            continue;
        }
        let mut names = conversion.file_names("out.x").unwrap();
        // What says what is in a plain dump is beside it.
        names.retain(|name| !name.ends_with(".x.json"));
        let numbered: Vec<_> = (1..=count)
            .map(|n| format!("out-{n:05}-of-{count:05}.x"))
            .collect();
        assert_eq!(names, numbered, "{}", entry.spec.id);
        tried += 1;
    }
    assert!(tried > 0);
}

/// A directory whose files can be opened by their names and not be listed, as on a plain web server.
struct Unlisted(io::DirectorySiblings, AtomicUsize);

impl io::Siblings for Unlisted {
    fn names(&self) -> Result<Option<Vec<String>>> {
        Ok(None)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn io::Source>> {
        self.0.open(name)
    }

    fn open_all(&self, names: &[&str]) -> Vec<Result<Arc<dyn io::Source>>> {
        self.1.fetch_add(1, Relaxed);
        self.0.open_all(names)
    }
}

#[test]
fn shards_that_cannot_be_listed_are_opened_at_once() {
    let index = fixture().join(INDEX);
    let beside = Unlisted(io::DirectorySiblings::of(&index), AtomicUsize::new(0));
    let source = Arc::new(io::FileSource::open(&index).unwrap());
    let archive = OpenOptions::new().read_beside(source, Some(INDEX), &beside);
    let archive = archive.unwrap();
    assert_eq!(content(&archive), content(&Archive::open(index).unwrap()));
    assert_eq!(beside.1.load(Relaxed), 1);
}

/// Takes bytes, and says only at the end that they were lost.
struct Late;

impl io::Sink for Late {
    fn write(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Err(Error::argument("the last bytes were not sent"))
    }
}

impl io::Output for Late {
    fn create(&mut self, _: &str, _: Option<u64>) -> Result<Box<dyn io::Sink + '_>> {
        Ok(Box::new(Late))
    }

    fn written(&self, _: &str) -> Result<Option<Arc<dyn io::Source>>> {
        Ok(None)
    }

    fn commit(&mut self) -> Result<()> {
        panic!("what was not written whole is committed")
    }
}

#[test]
fn what_goes_wrong_behind_the_last_byte_is_an_error() {
    let archive = Archive::open(fixture().join(INDEX)).unwrap();
    let registry = Registry::standard();
    let target = registry.get("safetensors").unwrap();
    let conversion = Conversion::prepare(&archive, target, &ConvertOptions::default()).unwrap();
    let error = conversion
        .write_to("one.safetensors", &mut Late)
        .unwrap_err();
    assert!(error.message().contains("not sent"), "{error}");
}
