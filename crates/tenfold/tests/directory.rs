//! A directory with a file for every tensor: whatever the tensors are called, they come back under their names.

// A test may panic; the files that it writes are its own.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod support;

use std::collections::BTreeMap;
use std::fs;

use support::random::{self, Rng};
use support::{first_choices, options_for};
use tempfile::TempDir;
use tenfold::format::{Effect, Entry, Severity};
use tenfold::io::{AtomicOutput, Output};
use tenfold::ops::{Conflicts, Conversion, ConvertOptions, Shards, merge};
use tenfold::{Archive, Bytes, OpenOptions};

#[test]
fn an_empty_directory_is_taken_and_a_full_one_is_not() {
    let scratch = TempDir::new().unwrap();
    let path = scratch.path().join("out");
    fs::create_dir(&path).unwrap();
    let write = || {
        let mut output = AtomicOutput::directory(&path)?.sync(false);
        output.create("a.bin", None)?.write(b"new")?;
        Ok::<_, tenfold::Error>(Box::new(output))
    };
    let beside = || fs::read_dir(scratch.path()).unwrap().count();

    // Somebody else was first: what is there stays, and nothing else does.
    let mut late = write().unwrap();
    fs::write(path.join("mine"), "old").unwrap();
    late.commit().unwrap_err();
    assert_eq!(fs::read(path.join("mine")).unwrap(), b"old");
    assert_eq!(beside(), 1);
    assert!(write().is_err());

    fs::remove_file(path.join("mine")).unwrap();
    drop(write().unwrap());
    assert_eq!((beside(), fs::read_dir(&path).unwrap().count()), (1, 0));
    write().unwrap().commit().unwrap();
    assert_eq!(fs::read(path.join("a.bin")).unwrap(), b"new");
    assert_eq!(beside(), 1);
}

const ROUNDS: u64 = if cfg!(debug_assertions) { 12 } else { 200 };

/// What names are made of: what some system takes for something else, what looks like an escape or a count, and letters.
const PIECES: [&str; 24] = [
    "/",
    "\\",
    "%",
    "%2F",
    "%2f",
    "%25",
    "%C3",
    ":",
    ".",
    "\0",
    "\n",
    "\u{7f}",
    "con",
    "lpt1",
    "-00001-of-00003",
    "-00002-of-00003",
    "a",
    "b",
    "ä",
    "権",
    "\u{1f9ea}",
    "'",
    " ",
    "\u{202e}",
];

#[test]
fn any_names_come_back_as_they_were() {
    let mut tensors = 0;
    for (entry, profile) in first_choices() {
        let dtype = random::common_dtype(&profile.can);
        for round in 0..ROUNDS {
            let mut rng = Rng::new(round);
            let mut builder = Archive::builder();
            let mut expected = BTreeMap::new();
            for name in names(&mut rng) {
                if (profile.can.name)(&name).is_err() {
                    continue;
                }
                let data = Bytes::from(rng.bytes(3 * dtype.width().unwrap()));
                builder.push(&name, dtype, &[3], data.clone()).unwrap();
                expected.insert(name, data);
            }
            tensors += expected.len();
            if !expected.is_empty() {
                let found = round_trip(&builder.finish(), &entry, options_for(profile));
                assert_eq!(found, expected, "{} round {round}", entry.spec.id);
            }
        }
    }
    assert!(tensors as u64 > ROUNDS * 20, "only {tensors} tensors");
}

#[test]
fn a_file_that_the_names_of_others_count_is_missed() {
    let mut formats = 0;
    for (entry, profile) in first_choices() {
        // Those with an index, or with parts that know of each other, look after them.
        if profile.can.max_tensors < 3 || entry.codec.unwrap().writes_shards() {
            continue;
        }
        formats += 1;
        let dtype = random::common_dtype(&profile.can);
        let mut builder = Archive::builder();
        for name in ["t0", "t1", "t2"] {
            let data = Bytes::from(vec![1; 3 * dtype.width().unwrap()]);
            builder.push(name, dtype, &[3], data).unwrap();
        }
        let options = options_for(profile).shards(Some(Shards::Parts(3)));
        let scratch = TempDir::new().unwrap();
        let (one, other) = (scratch.path().join("one"), scratch.path().join("other"));
        let mut output = AtomicOutput::directory(&one).unwrap().sync(false);
        let conversion = Conversion::prepare(&builder.finish(), &entry, &options).unwrap();
        let name = format!("m.{}", entry.spec.extensions[0]);
        conversion.write_to(&name, &mut output).unwrap();
        let open = |path| OpenOptions::new().open(path).unwrap();
        assert_eq!(missing(&open(&one)), [""; 0], "{}", entry.spec.id);

        fs::create_dir(&other).unwrap();
        for file in fs::read_dir(&one).unwrap() {
            let name = file.unwrap().file_name();
            if name.to_str().unwrap().starts_with("m-00002-of-00003") {
                fs::rename(one.join(&name), other.join(&name)).unwrap();
            }
        }
        let [message] = missing(&open(&one)).try_into().unwrap();
        assert!(
            message.starts_with(&name.replace("m.", "m-00002-of-00003.")),
            "{message}"
        );
        let error = OpenOptions::new().strict(true).open(&one).unwrap_err();
        assert_eq!(error.rule(), "file.shard-missing");
        // One of three, alone in its directory, and all of them in two.
        assert_eq!(missing(&open(&other)).len(), 1);
        let both = merge(&[open(&one), open(&other)], Conflicts::FirstMetadata)
            .unwrap()
            .archive;
        assert_eq!(missing(&both), [""; 0], "{}", entry.spec.id);
        let mut options = options_for(profile).allow(Effect::Changed);
        let conversion = Conversion::prepare(&open(&one), &entry, &options).unwrap();
        let error = conversion.refuse_losses().unwrap_err();
        assert!(error.message().contains(&message), "{error}");
        options = options.allow(Effect::Dropped);
        let conversion = Conversion::prepare(&open(&one), &entry, &options).unwrap();
        conversion.refuse_losses().unwrap();
    }
    assert!(formats > 2, "only {formats} formats");
}

fn missing(archive: &Archive) -> Vec<String> {
    let findings = archive.findings().iter();
    let missing = findings.filter(|finding| finding.rule == "file.shard-missing");
    missing.map(|finding| finding.message.clone()).collect()
}

/// Names, all different also for a file system that does not tell `A` from `a`.
fn names(rng: &mut Rng) -> Vec<String> {
    let mut names = vec!["a/b".to_owned(), "a%2Fb".to_owned(), "a%252Fb".to_owned()];
    for _ in 0..rng.below(12) {
        let pieces = (0..rng.below(5)).map(|_| *rng.pick(&PIECES));
        names.push(pieces.collect());
    }
    names.sort_by_key(|name| name.to_lowercase());
    names.dedup_by_key(|name| name.to_lowercase());
    names
}

fn round_trip(
    archive: &Archive,
    entry: &Entry,
    mut options: ConvertOptions,
) -> BTreeMap<String, Bytes> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("out");
    options = options.file_per_tensor(true);
    let mut output = AtomicOutput::directory(&path).unwrap().sync(false);
    let conversion = Conversion::prepare(archive, entry, &options).unwrap();
    conversion.write_to("", &mut output).unwrap();
    let opened = OpenOptions::new().open(&path).unwrap();
    let mut findings = opened.findings().iter();
    assert!(findings.all(|finding| finding.severity == Severity::Note));
    let tensors = opened.tensors();
    tensors
        .map(|tensor| (tensor.name().to_owned(), tensor.canonical().unwrap()))
        .collect()
}
