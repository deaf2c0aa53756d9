//! What is special to distributed checkpoints: whichever file is opened, what is read when, parts of them, broken objects.

// Inputs of the tests, not outputs.
#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tenfold::io::{DirectorySiblings, Siblings, Source};
use tenfold::model::{Layout, Value};
use tenfold::{Archive, Bytes, ErrorKind, OpenOptions, Result};

use crate::support;

fn fixture(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/dcp");
    fixtures.join(name)
}

fn digests(archive: &Archive) -> Vec<(String, String)> {
    let digests = support::digest(archive, 1).tensors.into_iter();
    let mut digests: Vec<_> = digests
        .map(|(name, sha256)| (name, support::hex(&sha256.unwrap())))
        .collect();
    digests.sort();
    digests
}

#[test]
fn whichever_file_is_opened_the_checkpoint_is_read() {
    let open = |name: &str| {
        let archive = OpenOptions::new()
            .open(fixture("valid").join(name))
            .unwrap();
        (digests(&archive), archive.metadata().clone())
    };
    let whole = open("three_ranks/.metadata");
    assert_eq!(open("three_ranks"), whole);
    assert_eq!(open("three_ranks/__2_0.distcp"), whole);
    assert_eq!(whole.1.get("epoch"), Some(&Value::I64(4)));
}

/// Counts the bytes that are read of files with items.
struct Counting(DirectorySiblings, Arc<AtomicU64>);

struct Counted(Arc<dyn Source>, Arc<AtomicU64>);

impl Source for Counted {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read(&self, range: std::ops::Range<u64>) -> Result<Bytes> {
        self.1.fetch_add(range.end - range.start, Relaxed);
        self.0.read(range)
    }
}

impl Siblings for Counting {
    fn names(&self) -> Result<Option<Vec<String>>> {
        self.0.names()
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(Counted(self.0.open(name)?, self.1.clone())))
    }
}

#[test]
fn items_of_tensors_are_read_when_the_tensors_are() {
    let path = fixture("valid/mesh_2x2/.metadata");
    let read = Arc::new(AtomicU64::new(0));
    let files = Counting(DirectorySiblings::of(&path), read.clone());
    let main: Arc<dyn Source> = Arc::new(Bytes::from(std::fs::read(&path).unwrap()));
    let archive = OpenOptions::new()
        .read_beside(main, Some(".metadata"), &files)
        .unwrap();
    assert_eq!(read.load(Relaxed), 0);
    let tensor = archive.tensor("w").unwrap();
    assert_eq!(tensor.info().layout, Layout::Chunked);
    tensor.canonical().unwrap();
    assert!(read.load(Relaxed) > 0);
}

#[test]
fn a_part_is_listed_by_the_keys_that_lead_to_it() {
    let open = |name: &str, root: &str| {
        let path = fixture("valid").join(name);
        OpenOptions::new().option("root", root).open(path)
    };
    let names = |archive: &Archive| -> Vec<String> {
        let names = archive.tensors().map(|tensor| tensor.name().to_owned());
        names.collect()
    };
    let model = open("fsdp2_adamw", "model").unwrap();
    assert_eq!(names(&model), ["0.weight", "0.bias", "2.weight", "2.bias"]);
    assert!(model.metadata().is_empty());
    let nested = open("nested_and_objects", "nested.a").unwrap();
    assert_eq!(names(&nested), ["b.c"]);
    // The dots are in the key.
    let error = open("nested_and_objects", "name").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
}

#[test]
fn an_object_that_cannot_be_read_spoils_no_tensor() {
    let archive = OpenOptions::new()
        .open(fixture("reject/evil_bytes_item"))
        .unwrap();
    assert!(archive.tensors().len() > 0);
    for tensor in archive.tensors() {
        tensor.canonical().unwrap();
    }
    let findings = support::verify(&archive, 1);
    let errors = support::errors(&findings);
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].rule, "dcp.pickle-global");
    assert!(errors[0].message.contains("posix.system"));
    let strict = OpenOptions::new().strict(true);
    assert!(strict.open(fixture("reject/evil_bytes_item")).is_err());
}

#[test]
fn a_checkpoint_without_collectives_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("__0_0.distcp");
    std::fs::write(&data, b"PK\x03\x04").unwrap();
    let metadata = directory.path().join("__0.metadata");
    std::fs::copy(fixture("valid/basic/.metadata"), &metadata).unwrap();
    for path in [&data, &metadata] {
        let error = OpenOptions::new().open(path).unwrap_err();
        assert_eq!(error.rule(), "dcp.rank-metadata");
        assert!(error.to_string().contains("__0.metadata"), "{error}");
    }
}

#[test]
fn views_keep_their_strides_until_they_are_written() {
    let archive = OpenOptions::new().open(fixture("valid/views")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("m.safetensors");
    archive.save(&target).unwrap();
    let written = OpenOptions::new().open(&target).unwrap();
    assert_eq!(digests(&written), digests(&archive));
}

#[test]
fn items_that_share_bytes_are_reported() {
    let overlaps = |name: &str| -> Vec<String> {
        let archive = Archive::open(fixture(name)).unwrap();
        let findings = archive.findings().iter();
        let overlaps = findings.filter(|finding| finding.rule == "dcp.overlap");
        overlaps.map(|finding| finding.message.clone()).collect()
    };
    assert_eq!(overlaps("valid/three_ranks").len(), 0);
    let found = overlaps("reject/item_points_to_other");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("model.w"), "{found:?}");
}

#[test]
fn what_megatron_has_instead_of_metadata_is_read() {
    let short = |text: &str| [&[0x8c, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    // As protocol 4 has it: a class, its object without arguments, and a dict of attributes, each of which is an empty one.
    let mut body = short("megatron.core.dist_checkpointing.strategies.torch");
    body.push(b'\x94');
    body.extend(short("MCoreMetadata"));
    body.extend(b"\x94\x93\x94)\x81\x94}\x94(");
    for attribute in [
        "state_dict_metadata",
        "planner_data",
        "storage_data",
        "mcore_data",
    ] {
        body.extend(short(attribute));
        body.push(b'}');
    }
    body.extend(b"ub.");
    let len = u64::try_from(body.len()).unwrap();
    let file = [b"\x80\x04\x95", &len.to_le_bytes()[..], &body].concat();
    let archive = Archive::from_bytes(file).unwrap();
    assert_eq!(archive.format().unwrap().id, "dcp");
    assert_eq!((archive.version(), archive.tensors().len()), ("none", 0));
}
