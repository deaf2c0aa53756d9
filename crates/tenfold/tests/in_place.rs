//! Edits of a file in its own place: every golden file whose format has them, renamed and described anew.

// A test may panic; the files that it writes are its own.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tenfold::format::Registry;
use tenfold::model::Value;
use tenfold::ops::{self, Conversion, ConvertOptions, Edit};
use tenfold::{Archive, Bytes};

const FORMATS: [&str; 3] = ["safetensors", "gguf", "ztensor"];

/// The golden files of a format that are one file and can be written again as they are.
fn files(format: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let entries = fs::read_dir(folder.join(format).join("valid")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file() && path.extension().is_some_and(|end| end != "json"));
    files.sort();
    files
}

fn data(archive: &Archive) -> Vec<Option<Bytes>> {
    let stored = archive.tensors().map(|tensor| tensor.canonical().ok());
    stored.collect()
}

/// Prepares an edit in the version that the file has.
fn prepare(archive: &Archive) -> tenfold::Result<Conversion> {
    let registry = Registry::standard();
    let target = registry.get(archive.format().unwrap().id)?;
    let version = archive.version();
    target
        .spec
        .profile(version)
        .ok_or_else(|| tenfold::Error::argument("not written"))?;
    let options = ConvertOptions::new().version(Some(version)).verify(false);
    Conversion::prepare(archive, target, &options)
}

#[test]
fn golden_files_get_other_names_where_they_are() {
    let mut edited = Vec::new();
    for format in FORMATS {
        let mut count = 0;
        for file in files(format) {
            let dir = TempDir::new().unwrap();
            let path = dir.path().join(file.file_name().unwrap());
            fs::copy(&file, &path).unwrap();
            fs::set_permissions(&path, permissions()).unwrap();
            let Ok(before) = Archive::open(&path) else {
                continue;
            };
            let bytes = fs::read(&path).unwrap();
            // As long as they were.
            let turned = |name: &str| Some(name.chars().rev().collect::<String>());
            let Ok(renamed) = ops::rename(&before, turned) else {
                continue;
            };
            let wanted: Vec<_> = renamed.tensors().map(|t| t.name().to_owned()).collect();
            let done = prepare(&renamed).and_then(|conversion| conversion.edit_in_place(false));
            if let Err(error) = done {
                // What cannot be, changes nothing.
                assert_eq!(fs::read(&path).unwrap(), bytes, "{error}");
                continue;
            }
            let after = Archive::open(&path).unwrap();
            assert_eq!(after.tensors().len(), wanted.len(), "{}", path.display());
            for (name, old) in wanted.iter().zip(data(&before)) {
                let new = after.tensor(name).unwrap();
                assert_eq!(new.canonical().ok(), old, "{name} of {}", path.display());
            }
            assert!(fs::read(&path).unwrap().len() >= bytes.len());
            let names = fs::read_dir(dir.path()).unwrap().count();
            assert_eq!(names, 1);
            count += 1;
        }
        edited.push((format, count));
    }
    assert!(edited.iter().all(|(_, count)| *count > 10), "{edited:?}");
}

#[test]
fn what_is_said_of_a_file_changes_while_there_is_room() {
    for (format, version, reserve) in [
        ("safetensors", "-", "300"),
        ("gguf", "3", "300"),
        ("ztensor", "1.2", "300"),
        ("ztensor", "2", "300"),
    ] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("model");
        let registry = Registry::standard();
        let target = registry.get(format).unwrap();
        let mut builder = Archive::builder();
        builder.tensor("a", [3], [1f32, 2.0, 3.0]).unwrap();
        builder.tensor("b", [2], [4f32, 5.0]).unwrap();
        let options = ConvertOptions::new()
            .version(Some(version))
            .option("reserve", reserve);
        let conversion = Conversion::prepare(&builder.finish(), target, &options).unwrap();
        conversion.write_file(&path).unwrap();
        let len = path.metadata().unwrap().len();
        // Longer and shorter, also by less than an entry of its own takes.
        for text in [100, 0, 101, 90, 60, 30, 29, 28, 1, 200, 2, 199].map(|n| "x".repeat(n)) {
            let archive = Archive::open(&path).unwrap();
            let edits = [Edit::Set("note".into(), Value::Str(text.clone()))];
            let edited = ops::edit_metadata(&archive, None, &edits).unwrap();
            prepare(&edited).unwrap().edit_in_place(false).unwrap();
            let archive = Archive::open(&path).unwrap();
            assert_eq!(archive.metadata().get("note"), Some(&Value::Str(text)));
            assert!(archive.metadata().get("tenfold.padding").is_none());
            let values = archive
                .tensor("b")
                .unwrap()
                .typed::<f32>()
                .unwrap()
                .to_vec();
            assert_eq!(values, [4.0, 5.0]);
            assert_eq!(path.metadata().unwrap().len(), len, "{format} {version}");
        }
        let edits = [Edit::Set("note".into(), Value::Str("x".repeat(5000)))];
        let archive = Archive::open(&path).unwrap();
        let before = fs::read(&path).unwrap();
        let edited = ops::edit_metadata(&archive, None, &edits).unwrap();
        match prepare(&edited).unwrap().edit_in_place(false) {
            // The index of zTensor is at the end, and has room behind it.
            Ok(done) => assert!(format == "ztensor" && done.len > len),
            Err(error) => {
                assert!(error.rule().ends_with(".no-room"), "{error}");
                assert!(!error.hints().is_empty());
                assert_eq!(fs::read(&path).unwrap(), before);
            }
        }
    }
}

#[test]
fn of_two_edits_at_once_none_is_lost() {
    for (format, version) in [("safetensors", "-"), ("gguf", "3"), ("ztensor", "2")] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("model");
        let registry = Registry::standard();
        let target = registry.get(format).unwrap();
        let mut builder = Archive::builder();
        builder.tensor("a", [3], [1f32, 2.0, 3.0]).unwrap();
        let options = ConvertOptions::new()
            .version(Some(version))
            .option("reserve", "300");
        let conversion = Conversion::prepare(&builder.finish(), target, &options).unwrap();
        conversion.write_file(&path).unwrap();
        let both = Archive::open(&path).unwrap();
        let set = |key: &str| [Edit::Set(key.into(), Value::Str("x".into()))];
        let first = ops::edit_metadata(&both, None, &set("first")).unwrap();
        let second = ops::edit_metadata(&both, None, &set("second")).unwrap();
        let third = ops::rename(&both, |_| Some("b".into())).unwrap();
        let conversions = [&first, &second, &third].map(|edited| prepare(edited).unwrap());
        let mut done = conversions
            .into_iter()
            .map(|edit| edit.edit_in_place(false));
        done.next().unwrap().unwrap();
        for late in done {
            assert!(late.unwrap_err().rule().ends_with(".changed"), "{format}");
        }
        let after = Archive::open(&path).unwrap();
        assert!(after.metadata().get("first").is_some() && after.get("a").is_some());
        let again = ops::edit_metadata(&after, None, &set("second")).unwrap();
        prepare(&again).unwrap().edit_in_place(false).unwrap();
        let after = Archive::open(&path).unwrap();
        assert!(after.metadata().get("first").is_some());
        assert!(after.metadata().get("second").is_some());
    }
}

#[cfg(unix)]
fn permissions() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o600)
}

#[cfg(not(unix))]
fn permissions() -> fs::Permissions {
    fs::metadata(".").unwrap().permissions()
}
