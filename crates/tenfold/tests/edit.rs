//! What renaming, editing metadata, splitting and merging leave as it was, for every golden file.

// A test may panic.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;

use support::{Case, InMemory, Kind, cases, file_name, options_for, values::are_kept};
use tenfold::format::{Effect, Entry, Profile, Registry};
use tenfold::io::MemoryOutput;
use tenfold::model::{Codec, DType, Layout, Metadata, Part, Payload, Value};
use tenfold::ops::{self, Conflicts, Conversion, ConvertOptions, Edit, Shards};
use tenfold::{Archive, Bytes, ErrorKind};

/// A golden file whose own version is written and holds all of it.
struct Rewritable {
    title: String,
    archive: Archive,
    entry: Entry,
    profile: &'static Profile,
}

fn rewritable() -> Vec<Rewritable> {
    let all: Vec<_> = cases(Kind::Valid).iter().filter_map(open).collect();
    assert!(all.len() > 50, "only {} files", all.len());
    all
}

fn open(case: &Case) -> Option<Rewritable> {
    if case.is_structural() {
        return None;
    }
    let archive = case.open().unwrap();
    let archive = archive.select(|tensor| tensor.defect.is_none());
    let spec = archive.format()?;
    let entry = *Registry::standard().get(spec.id).unwrap();
    let profile = spec.profile(archive.version())?;
    let conversion = Conversion::prepare(&archive, &entry, &options_for(profile)).ok()?;
    let held = conversion
        .losses
        .iter()
        .all(|loss| loss.effect == Effect::Rearranged);
    held.then(|| Rewritable {
        title: case.title(),
        archive,
        entry,
        profile,
    })
}

impl Rewritable {
    fn write(&self, archive: &Archive, options: &ConvertOptions) -> BTreeMap<String, Vec<u8>> {
        support::write_to_memory(archive, &self.entry, options)
            .unwrap_or_else(|error| panic!("{}: {error}", self.title))
    }

    fn rewrite(&self, archive: &Archive) -> Archive {
        let files = self.write(archive, &options_for(self.profile));
        InMemory::written(files, &file_name(&self.entry))
            .open()
            .unwrap()
    }
}

/// The bytes of a part as they are in the file.
fn stored(archive: &Archive, part: &Part) -> Option<Bytes> {
    let (source, range) = part.payload.stored()?;
    Some(archive.source(source).unwrap().read(range).unwrap())
}

/// Whether a part goes into a new file of the same version as it is: numbers are written little-endian, true and false
/// as 1 and 0, indices in the width that the version has, and nothing is not compressed.
fn stays(before: &Part, after: &Part) -> bool {
    before.endian == after.endian
        && before.dtype == after.dtype
        && before.dtype != DType::BOOL
        && !before.payload.is_empty()
        // Deflated together with a header that says more than the bytes.
        && !matches!(
            before.payload,
            Payload::Encoded { codec: Codec::Deflate { .. } | Codec::Zlib { .. }, .. }
        )
}

#[test]
fn a_rewritten_file_has_the_stored_bytes_of_every_tensor() {
    let mut compared = 0;
    let mut wrong = String::new();
    for case in rewritable() {
        let before = &case.archive;
        let after = case.rewrite(&ops::edit_metadata(before, None, &[]).unwrap());
        let mut fail = |what: String| wrong += &format!("{}: {what}\n", case.title);
        if before.tensors().len() != after.tensors().len() {
            fail(format!("{} tensors", after.tensors().len()));
        }
        if let Err(why) = are_kept(&carried(before), &after.load_metadata().unwrap()) {
            fail(why);
        }
        if before.manifest().kept.len() != after.manifest().kept.len() {
            fail("something that was kept is gone".into());
        }
        for tensor in before.tensors() {
            let only = before.tensors().len() == 1;
            let found = if only {
                after.tensors().next()
            } else {
                after.get(tensor.name())
            };
            // Several tensors that are called by the file have other names now.
            let Some(found) = found else {
                assert!(
                    tensor.info().is_unnamed(),
                    "{} {:?}",
                    case.title,
                    tensor.name()
                );
                continue;
            };
            let (a, b) = (tensor.info(), found.info());
            let mut metadata = a.metadata.clone();
            a.derived()
                .iter()
                .for_each(|key| drop(metadata.remove(key)));
            // Where a storage is in a file of PyTorch is said anew.
            let facts = a.metadata.entries().filter(|(.., is_fact)| *is_fact);
            for (key, ..) in facts.filter(|_| case.title.starts_with("pytorch/")) {
                metadata.remove(key);
            }
            if let Err(why) = are_kept(&metadata, &b.metadata) {
                fail(format!("{:?}: {why}", a.name));
            }
            // Entries of such a list are sorted, and what lies between two records is others'.
            let is_other = matches!(a.layout, Layout::Pairs { .. } | Layout::Records { .. });
            if a.layout != b.layout || is_other {
                continue;
            }
            for (a, b) in a.parts.iter().zip(&b.parts).filter(|(a, b)| stays(a, b)) {
                let (bytes, same) = (stored(before, a), stored(&after, b));
                // It may have got one.
                let is_summed = a.checksum.is_none() || a.checksum == b.checksum;
                if bytes.is_some() && (bytes != same || !is_summed) {
                    fail(format!("{:?}: {a:?} became {b:?}", tensor.name()));
                }
                compared += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(compared > 300, "only {compared} parts");
}

/// The metadata without what is about the file alone.
fn carried(archive: &Archive) -> Metadata {
    let metadata = archive.load_metadata().unwrap();
    let keys = metadata.iter().filter(|(key, _)| !metadata.is_fact(key));
    keys.map(|(key, value)| (key.to_owned(), value.clone()))
        .collect()
}

#[test]
fn renaming_there_and_back_changes_nothing() {
    let mut renamed = 0;
    for case in rewritable() {
        if case
            .archive
            .tensors()
            .any(|tensor| tensor.info().is_unnamed())
        {
            continue;
        }
        let before = support::digest(&case.archive, 1).content;
        let there = ops::rename(&case.archive, |name| Some(format!("x{name}"))).unwrap();
        let options = options_for(case.profile).check(true);
        let conversion = Conversion::prepare(&there, &case.entry, &options).unwrap();
        if conversion.refuse_losses().is_err() {
            continue; // a name that is too long now
        }
        let written = case.rewrite(&there);
        assert!(
            written
                .tensors()
                .all(|tensor| tensor.name().starts_with('x'))
        );
        let back = ops::rename(&written, |name| name.strip_prefix('x').map(str::to_owned));
        let after = support::digest(&case.rewrite(&back.unwrap()), 1).content;
        assert_eq!(after, before, "{}", case.title);
        renamed += 1;
    }
    assert!(renamed > 50, "only {renamed} files");
}

#[test]
fn what_was_split_is_whole_again_when_it_is_merged() {
    let mut split = 0;
    for case in rewritable() {
        let unnamed = case
            .archive
            .tensors()
            .any(|tensor| tensor.info().is_unnamed());
        if unnamed || case.archive.tensors().len() < 3 {
            continue;
        }
        let before = support::digest(&case.archive, 1).content.unwrap();
        for by in [Shards::Parts(3), Shards::Size(100), Shards::Layers] {
            let options = options_for(case.profile).shards(Some(by)).check(true);
            let mut out = MemoryOutput::new();
            let conversion = Conversion::prepare(&case.archive, &case.entry, &options).unwrap();
            let report = match conversion.write_to(&file_name(&case.entry), &mut out) {
                Ok(report) => report,
                // Statistics do not go without their parameter.
                Err(error) if case.entry.spec.id == "primitiv" => {
                    assert!(error.message().contains("is a statistic of"), "{error}");
                    continue;
                }
                Err(error) => panic!("{} {by:?}: {error}", case.title),
            };
            assert_eq!(report.content, Some(before), "{} {by:?}", case.title);
            let files: BTreeMap<_, _> = out.into_files();
            let main = &report.files[0].0;
            let archives: Vec<_> = if files.len() > 1 && case.entry.codec().unwrap().writes_shards()
            {
                vec![InMemory::written(files.clone(), main).open().unwrap()]
            } else {
                let open = |name: &String| InMemory::written(files.clone(), name).open();
                // Data in a file of its own is none by itself.
                let end = format!(".{}", case.entry.spec.extensions[0]);
                let whole = files
                    .keys()
                    .filter(|name| name.ends_with(&end) || name.ends_with(".zip"));
                whole.map(|name| open(name).unwrap()).collect()
            };
            let merged = ops::merge(&archives, Conflicts::Refuse).unwrap();
            assert!(merged.conflicts.is_empty());
            let after = support::digest(&merged.archive, 1).content;
            assert_eq!(after, Some(before), "{} {by:?}", case.title);
            // What frames the tensors of one file does not frame those of several.
            let kept = |archive: &Archive| {
                let kept = archive.manifest().kept.iter();
                kept.filter(|kept| !kept.is_frame).count()
            };
            assert_eq!(kept(&merged.archive), kept(&case.archive));
            split += 1;
        }
    }
    assert!(split > 60, "only {split} files");
}

fn two(metadata: [Value; 2]) -> Vec<Archive> {
    let archive = |(number, value): (u8, Value)| {
        let mut builder = Archive::builder();
        builder
            .push("shared", DType::U8, &[1], Bytes::from(vec![number]))
            .unwrap();
        builder
            .push(
                format!("own{number}"),
                DType::U8,
                &[1],
                Bytes::from(vec![9]),
            )
            .unwrap();
        builder.metadata().push("k", value);
        builder.finish()
    };
    (1..).zip(metadata).map(archive).collect()
}

#[test]
fn what_two_archives_have_is_refused_or_chosen() {
    let archives = two([Value::U8(1), Value::U8(2)]);
    let refused = ops::merge(&archives, Conflicts::Refuse).err().unwrap();
    assert!(refused.message().contains("\"shared\""), "{refused}");
    for (prefer, number) in [(Conflicts::First, 1u8), (Conflicts::Last, 2)] {
        let merged = ops::merge(&archives, prefer).unwrap();
        assert_eq!(merged.archive.tensors().len(), 3);
        let shared = merged.archive.tensor("shared").unwrap();
        assert_eq!(shared.canonical().unwrap(), [number].as_slice());
        assert_eq!(merged.archive.metadata().get("k"), Some(&Value::U8(number)));
        let found: Vec<_> = merged
            .conflicts
            .iter()
            .map(|c| (c.name.as_str(), c.is_tensor))
            .collect();
        assert_eq!(found, [("shared", true), ("k", false)]);
        let kept = usize::from(number) - 1;
        assert!(
            merged
                .conflicts
                .iter()
                .all(|c| c.kept == kept && c.left_out == 1 - kept)
        );
    }
}

#[test]
fn numbers_that_are_not_equal_to_themselves_are_no_conflict() {
    let archives = two([Value::F32(f32::NAN), Value::F32(f32::NAN)]);
    let merged = ops::merge(&archives, Conflicts::First).unwrap();
    assert!(merged.conflicts.iter().all(|conflict| conflict.is_tensor));
}

#[test]
fn facts_cannot_be_edited_and_missing_keys_cannot_be_removed() {
    let archive = two([Value::Null, Value::Null]).remove(0);
    let missing = ops::edit_metadata(&archive, None, &[Edit::Unset("nothing".into())]);
    assert_eq!(missing.err().unwrap().kind(), ErrorKind::NotFound);
    let edits = [
        Edit::Set("k".into(), Value::U8(7)),
        Edit::Set("l".into(), Value::Null),
    ];
    let edited = ops::edit_metadata(&archive, Some("shared"), &edits).unwrap();
    let metadata = &edited.tensor("shared").unwrap().info().metadata;
    assert_eq!(metadata.get("k"), Some(&Value::U8(7)));
    assert_eq!(edited.metadata().get("k"), Some(&Value::Null));
    assert!(ops::edit_metadata(&archive, Some("nothing"), &edits).is_err());
}

#[test]
fn names_that_collide_are_named() {
    let archive = two([Value::Null, Value::Null]).remove(0);
    let error = ops::rename(&archive, |_| Some("same".into()))
        .err()
        .unwrap();
    assert_eq!(
        error.message(),
        "\"shared\" and \"own1\" would both become \"same\""
    );
    // Names may be exchanged.
    let swapped = ops::rename(&archive, |name| {
        Some(if name == "shared" { "own1" } else { "shared" }.into())
    });
    assert_eq!(
        swapped
            .unwrap()
            .tensor("own1")
            .unwrap()
            .canonical()
            .unwrap(),
        [1].as_slice()
    );
}

#[test]
fn a_hundred_thousand_keys_are_joined_at_once() {
    let archive = |_| {
        let mut builder = Archive::builder();
        for key in 0..100_000 {
            builder
                .metadata()
                .push(format!("key{key}"), Value::U32(key));
        }
        builder.finish()
    };
    let archives: Vec<_> = (0..3).map(archive).collect();
    // Quadratic work would take minutes.
    assert_eq!(
        ops::merge(&archives, Conflicts::Refuse)
            .unwrap()
            .archive
            .metadata()
            .len(),
        100_000
    );
}
