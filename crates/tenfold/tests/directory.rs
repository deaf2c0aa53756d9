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
use std::sync::Arc;

use support::random::{self, Rng};
use support::{Beside, first_choices, options_for, write_to_memory};
use tempfile::TempDir;
use tenfold::format::{Effect, Entry, Registry, Severity};
use tenfold::io::{AtomicOutput, Output, Siblings, Source};
use tenfold::ops::{Conflicts, Conversion, ConvertOptions, Shards, merge};
use tenfold::{Archive, Bytes, Hint, OpenOptions, PassedOverFor, Result};

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
        let codec = entry.codec.unwrap();
        // Nor are trees of files written in parts.
        let is_one = codec.writes_shards() || codec.writes_tree("m");
        if profile.can.max_tensors < 3 || is_one {
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

/// A file of one tensor, in the format of its name.
fn save(path: &std::path::Path, tensor: &str) {
    tenfold::save(path, [(tensor, vec![1f32, 2.0])]).unwrap();
}

#[test]
fn of_several_sets_the_first_in_the_order_is_opened_and_the_others_are_named() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    // From the last of the order to the first: each is preferred to those that are there already.
    let mut known: Vec<&str> = Vec::new();
    for name in [
        "model.npz",
        "model.zt",
        "model.gguf",
        "consolidated.safetensors",
        "model.safetensors",
    ] {
        save(&at(name), name);
        let opened = Archive::open(dir.path()).unwrap();
        let tensors: Vec<_> = opened
            .tensors()
            .map(|tensor| tensor.name().to_owned())
            .collect();
        assert_eq!(tensors, [name]);
        let mut passed: Vec<_> = (opened.passed_over().iter())
            .map(|file| (file.name.as_str(), file.why))
            .collect();
        passed.sort_by_key(|(name, _)| known.iter().position(|known| known == name));
        let others = known.iter().map(|&name| (name, PassedOverFor::AnotherSet));
        assert_eq!(passed, others.collect::<Vec<_>>());
        known.push(name);
    }
    let only = OpenOptions::new()
        .format(Some("gguf"))
        .open(dir.path())
        .unwrap();
    assert!(only.get("model.gguf").is_some());
}

#[test]
fn what_trainers_leave_behind_is_passed_over_whatever_it_holds() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    save(&at("model.safetensors"), "x");
    let weights = fs::read(at("model.safetensors")).unwrap();
    for name in [
        "optimizer.pt",
        "scheduler.pt",
        "rng_state_0.pth",
        "training_args.bin",
    ] {
        fs::write(at(name), &weights).unwrap();
    }
    fs::write(at("tf_model.h5"), "not HDF5").unwrap();
    for name in [
        "config.json",
        "tokenizer.model",
        "recipe.yaml",
        "LICENSE",
        ".hidden",
    ] {
        fs::write(at(name), "text").unwrap();
    }
    fs::write(at("old.safetensors.index.json.bak"), "{}").unwrap();
    let opened = Archive::open(dir.path()).unwrap();
    assert_eq!(opened.tensors().len(), 1);
    let of = |why: PassedOverFor| {
        let passed = opened
            .passed_over()
            .iter()
            .filter(move |file| file.why == why);
        passed.count()
    };
    assert_eq!(
        (
            of(PassedOverFor::TrainingState),
            of(PassedOverFor::Unreadable)
        ),
        (4, 1)
    );
    let companions = OpenOptions::new().companions(dir.path()).unwrap();
    let names: Vec<_> = companions.iter().map(|file| file.name.as_str()).collect();
    let expected = [
        "LICENSE",
        "config.json",
        "old.safetensors.index.json.bak",
        "recipe.yaml",
        "tokenizer.model",
    ];
    assert_eq!(names, expected);
}

#[test]
fn errors_about_a_directory_name_the_file() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    save(&at("a.safetensors"), "x");
    save(&at("b.safetensors"), "x");
    let error = Archive::open(dir.path()).unwrap_err();
    for part in [
        &dir.path().display().to_string(),
        "a.safetensors",
        "b.safetensors",
    ] {
        assert!(error.message().contains(part), "{error}");
    }
    assert_eq!(error.hints(), [Hint::NameFile]);
    let whole = fs::read(at("b.safetensors")).unwrap();
    fs::write(at("b.safetensors"), &whole[..whole.len() - 1]).unwrap();
    let error = Archive::open(dir.path()).unwrap_err();
    assert!(error.message().starts_with("b.safetensors: "), "{error}");
    fs::create_dir(at("below")).unwrap();
    save(&at("below/model.zt"), "x");
    fs::remove_file(at("a.safetensors")).unwrap();
    fs::remove_file(at("b.safetensors")).unwrap();
    let error = Archive::open(dir.path()).unwrap_err();
    assert!(error.message().ends_with("below"), "{error}");
    assert_eq!(OpenOptions::new().models_below(dir.path()), [at("below")]);
}

#[test]
fn companions_are_written_beside_the_tensors() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("in")).unwrap();
    save(&at("in/model.safetensors"), "x");
    let text = "a line\n".repeat(300_000);
    fs::write(at("in/tokenizer.json"), &text).unwrap();
    let registry = Registry::standard();
    let target = registry.get("safetensors").unwrap();
    let archive = Archive::open(at("in")).unwrap();
    let companions = OpenOptions::new().companions(at("in")).unwrap();
    let conversion = Conversion::prepare(&archive, target, &ConvertOptions::new()).unwrap();
    let conversion = conversion.bringing(companions);
    conversion
        .write_directory(at("out"), "model.safetensors")
        .unwrap();
    assert_eq!(fs::read_to_string(at("out/tokenizer.json")).unwrap(), text);
    assert_eq!(fs::read_dir(at("out")).unwrap().count(), 2);
}

/// Files that nobody can list.
struct Unlisted;

impl Siblings for Unlisted {
    fn names(&self) -> Result<Option<Vec<String>>> {
        Ok(None)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Source>> {
        panic!("{name} was opened")
    }
}

#[test]
fn a_directory_on_no_file_system_opens_like_one() {
    let entry = *Registry::standard().get("safetensors").unwrap();
    let mut builder = Archive::builder();
    for name in ["a", "b", "c"] {
        builder.tensor(name, [2], [1u8, 2]).unwrap();
    }
    let options = options_for(&entry.spec.writes[0]).shards(Some(Shards::Parts(2)));
    let mut files = write_to_memory(&builder.finish(), &entry, &options).unwrap();
    files.insert("config.json".to_owned(), b"{}".to_vec());
    files.insert("optimizer.pt".to_owned(), b"state".to_vec());
    files.insert(".hidden.safetensors".to_owned(), b"hidden".to_vec());
    let scratch = TempDir::new().unwrap();
    for (name, bytes) in &files {
        fs::write(scratch.path().join(name), bytes).unwrap();
    }
    let files = files.into_iter();
    let files = Beside::Files(files.map(|(name, bytes)| (name, bytes.into())).collect());
    let open = OpenOptions::new();
    let (there, here) = (open.read_directory(&files), open.open(scratch.path()));
    let (there, here) = (there.unwrap(), here.unwrap());
    let names = |archive: &Archive| -> Vec<_> {
        let tensors = archive.tensors();
        tensors.map(|tensor| tensor.name().to_owned()).collect()
    };
    assert_eq!(names(&there), ["a", "b", "c"]);
    assert_eq!(names(&there), names(&here));
    assert_eq!(there.passed_over(), here.passed_over());
    assert_eq!(there.passed_over().len(), 1);

    let error = open.read_directory(&Unlisted).unwrap_err();
    assert_eq!(error.rule(), "file.directory");
}
