//! Outputs appear whole or not at all, and leave nothing behind.

#![cfg(unix)]
// These tests play the other programs that write to the same directory.
#![allow(clippy::disallowed_methods)]
// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::sync::Arc;

use support::random::common_dtype;
use support::{file_name, options_for, profiles};
use tempfile::TempDir;
use tenfold::format::{Compression, Registry};
use tenfold::io::{AtomicOutput, Output, Sink, Source};
use tenfold::model::DType;
use tenfold::ops::{Conversion, ConvertOptions};
use tenfold::{ArchiveBuilder, Bytes, Control, ErrorKind, Work};

/// The names in a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn put(out: &mut AtomicOutput, name: &str, bytes: &[u8]) {
    out.create(name, None).unwrap().write(bytes).unwrap();
}

fn commit(mut out: AtomicOutput) -> tenfold::Result<()> {
    out.commit()
}

#[test]
fn nothing_is_visible_before_the_commit_and_the_whole_file_after_it() {
    let dir = TempDir::new().unwrap();
    let target = dir.path().join("a.zt");
    for sync in [true, false] {
        let mut out = AtomicOutput::file(&target).unwrap().sync(sync).force(!sync);
        assert_eq!(out.main_name(), "a.zt");
        {
            let mut sink = out.create("a.zt", Some(9)).unwrap();
            sink.write(b"abc").unwrap();
            sink.write(b"defghi").unwrap();
        }
        if sync {
            assert!(!target.exists());
        }
        let written = out.written("a.zt").unwrap().unwrap();
        assert_eq!(written.read(0..9).unwrap(), b"abcdefghi".as_slice());
        assert!(out.written("b.zt").unwrap().is_none());
        commit(out).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"abcdefghi");
        assert_eq!(names(dir.path()), ["a.zt"]);
    }
}

#[test]
fn an_output_that_is_dropped_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let mut out = AtomicOutput::file(dir.path().join("a.zt")).unwrap();
    put(&mut out, "a.zt", b"abc");
    put(&mut out, "a-1.zt", b"def");
    drop(out);
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn an_existing_file_is_refused_and_stays_as_it_is() {
    let dir = TempDir::new().unwrap();
    let target = dir.path().join("a.zt");
    fs::write(&target, "old").unwrap();
    let mut out = AtomicOutput::file(&target).unwrap();
    let error = out.create("a.zt", None).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    assert_eq!(error.rule(), "file.exists");
    drop(out);
    assert_eq!(fs::read(&target).unwrap(), b"old");
    assert_eq!(names(dir.path()), ["a.zt"]);
}

#[test]
fn a_file_that_appears_while_the_output_is_written_is_not_replaced() {
    let dir = TempDir::new().unwrap();
    let target = dir.path().join("a.zt");
    let mut out = AtomicOutput::file(&target).unwrap();
    put(&mut out, "a.zt", b"new");
    fs::write(&target, "theirs").unwrap();
    let error = commit(out).unwrap_err();
    assert_eq!(error.rule(), "file.exists", "{error}");
    assert_eq!(fs::read(&target).unwrap(), b"theirs");
    assert_eq!(names(dir.path()), ["a.zt"]);
}

#[test]
fn force_replaces_the_whole_file_and_keeps_its_permissions() {
    let dir = TempDir::new().unwrap();
    let target = dir.path().join("a.zt");
    fs::write(&target, "a longer old content").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::File::open(&target).unwrap();
    let mut out = AtomicOutput::file(&target).unwrap().force(true);
    put(&mut out, "a.zt", b"new");
    assert_eq!(fs::read(&target).unwrap(), b"a longer old content");
    commit(out).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o640);
    // Whoever had the old file open, or mapped, still has it whole.
    assert_eq!(before.metadata().unwrap().len(), 20);
    assert_eq!(names(dir.path()), ["a.zt"]);
}

/// Whether files can be given to others here.
fn is_root(dir: &TempDir) -> bool {
    let probe = dir.path().join("probe");
    fs::write(&probe, "").unwrap();
    let is_root = chown(&probe, Some(12345), Some(54321)).is_ok();
    fs::remove_file(probe).unwrap();
    if !is_root {
        eprintln!("SKIPPED: files cannot be given to others here (needs root)");
    }
    is_root
}

fn replace(target: &Path) {
    let mut out = AtomicOutput::file(target).unwrap().force(true);
    let name = out.main_name().to_owned();
    put(&mut out, &name, b"new");
    commit(out).unwrap();
    assert_eq!(fs::read(target).unwrap(), b"new");
}

#[test]
fn who_replaces_a_file_of_somebody_else_leaves_it_to_them_without_special_bits() {
    let dir = TempDir::new().unwrap();
    if !is_root(&dir) {
        return;
    }
    let target = dir.path().join("a.zt");
    for (owner, group, mode) in [
        (12345, 54321, 0o4755),
        (12345, 54321, 0o2770),
        (12345, 54321, 0o600),
        (12345, 0, 0o7777),
        (0, 54321, 0o1640),
        (0, 0, 0o6711),
    ] {
        fs::write(&target, "old").unwrap();
        chown(&target, Some(owner), Some(group)).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
        replace(&target);
        let found = fs::metadata(&target).unwrap();
        let access = (found.uid(), found.gid(), found.mode() & 0o7777);
        assert_eq!(access, (owner, group, mode & 0o777), "{mode:o}");
        fs::remove_file(&target).unwrap();
    }
    // An empty directory that makes way.
    let target = dir.path().join("all");
    fs::create_dir(&target).unwrap();
    chown(&target, Some(12345), Some(54321)).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o3750)).unwrap();
    let mut out = AtomicOutput::directory(&target).unwrap();
    put(&mut out, "t.zt", b"new");
    commit(out).unwrap();
    let found = fs::metadata(&target).unwrap();
    let access = (found.uid(), found.gid(), found.mode() & 0o7777);
    assert_eq!(access, (12345, 54321, 0o750));
}

/// In the mode of a file with an access control list, the bits of the group are what anybody in the list has at most.
#[cfg(target_os = "linux")]
#[test]
fn an_access_control_list_is_kept_and_one_of_the_directory_is_not_added() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    const ACCESS: &str = "system.posix_acl_access";
    // Owner rw, user 12345 rw, group nothing, mask rw, others nothing: tag, permissions, id.
    let entries = [
        (1u16, 6u16, u32::MAX),
        (2, 6, 12345),
        (4, 0, u32::MAX),
        (16, 6, u32::MAX),
        (32, 0, u32::MAX),
    ];
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let dir = TempDir::new().unwrap();
    let (with, without) = (dir.path().join("with.zt"), dir.path().join("without.zt"));
    fs::write(&with, "old").unwrap();
    fs::write(&without, "old").unwrap();
    fs::set_permissions(&without, fs::Permissions::from_mode(0o640)).unwrap();
    let none = XattrFlags::empty();
    if setxattr(&with, ACCESS, &list, none).is_err() {
        eprintln!("SKIPPED: the file system has no access control lists");
        return;
    }
    setxattr(dir.path(), "system.posix_acl_default", &list, none).unwrap();
    replace(&with);
    replace(&without);
    let mut found = vec![0; 256];
    let len = getxattr(&with, ACCESS, &mut found[..]).unwrap();
    assert_eq!(found[..len], list);
    assert_eq!(fs::metadata(&with).unwrap().mode() & 0o7777, 0o660);
    assert!(getxattr(&without, ACCESS, &mut found[..]).is_err());
    assert_eq!(fs::metadata(&without).unwrap().mode() & 0o7777, 0o640);
}

#[test]
fn a_new_file_has_the_permissions_that_files_get_here() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("plain"), "").unwrap();
    let mut out = AtomicOutput::file(dir.path().join("a.zt")).unwrap();
    put(&mut out, "a.zt", b"new");
    commit(out).unwrap();
    let mode = |name: &str| fs::metadata(dir.path().join(name)).unwrap().mode();
    assert_eq!(mode("a.zt"), mode("plain"));
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    let real = dir.path().join("real/model.zt");
    fs::write(&real, "old").unwrap();
    let link = dir.path().join("link.zt");
    symlink("real/model.zt", &link).unwrap();

    let mut out = AtomicOutput::file(&link).unwrap();
    let name = out.main_name().to_owned();
    assert!(out.create(&name, None).is_err(), "without force");
    let mut out = out.force(true);
    put(&mut out, &name, b"new");
    commit(out).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read(&real).unwrap(), b"new");
    assert_eq!(names(dir.path()), ["link.zt", "real"]);
    assert_eq!(names(&dir.path().join("real")), ["model.zt"]);
}

/// That of its path, or of what a link there leads to.
#[test]
fn a_conversion_takes_only_the_name_that_its_output_was_made_for() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("real")).unwrap();
    fs::write(at("real/old.npy"), "old").unwrap();
    symlink("real/old.npy", at("link.npy")).unwrap();
    let mut builder = ArchiveBuilder::new();
    builder
        .push("t", DType::U8, &[3], Bytes::from_static(b"abc"))
        .unwrap();
    let archive = builder.finish();
    let registry = Registry::standard();
    let convert = |target: &str, name: &str| {
        let to = registry.get("npy").unwrap();
        let conversion = Conversion::prepare(&archive, to, &ConvertOptions::default()).unwrap();
        let mut out = AtomicOutput::file(at(target)).unwrap().force(true);
        let report = conversion.write_to(name, &mut out)?;
        Ok::<_, tenfold::Error>(report.files[0].0.clone())
    };
    for (target, name) in [("link.npy", "link.npy"), ("new.npy", "nwe.npy")] {
        let error = convert(target, name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    }
    assert_eq!(names(dir.path()), ["link.npy", "real"]);
    assert_eq!(convert("link.npy", "old.npy").unwrap(), "old.npy");
    let to = registry.get("npy").unwrap();
    let conversion = Conversion::prepare(&archive, to, &ConvertOptions::default()).unwrap();
    let report = conversion.write_file(at("new.npy")).unwrap();
    assert_eq!(report.files[0].0, "new.npy");
    assert_eq!(names(dir.path()), ["link.npy", "new.npy", "real"]);
    assert_eq!(names(&at("real")), ["old.npy"]);
    assert_eq!(
        fs::read(at("link.npy")).unwrap(),
        fs::read(at("new.npy")).unwrap()
    );
}

#[test]
fn an_output_says_where_its_files_will_be() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("real")).unwrap();
    fs::write(at("real/m.zt"), "old").unwrap();
    symlink("real/m.zt", at("link.zt")).unwrap();
    let real = fs::canonicalize(at("real")).unwrap();
    let out = AtomicOutput::file(at("link.zt")).unwrap();
    assert_eq!(out.path_of("m-1.zt"), real.join("m-1.zt"));
    let out = AtomicOutput::file("m.zt").unwrap();
    assert_eq!(out.path_of("m-1.zt"), Path::new("m-1.zt"));
    let out = AtomicOutput::directory(at("all")).unwrap();
    assert_eq!(out.path_of("t.zt"), at("all/t.zt"));
    assert_eq!(out.name(), None);
}

#[test]
fn a_link_to_nothing_is_refused() {
    let dir = TempDir::new().unwrap();
    let link = dir.path().join("link.zt");
    symlink("nowhere", &link).unwrap();
    let mut out = AtomicOutput::file(&link).unwrap();
    assert!(out.create("link.zt", None).is_err());
    drop(out);
    assert_eq!(names(dir.path()), ["link.zt"]);
}

#[test]
fn a_directory_appears_whole() {
    let dir = TempDir::new().unwrap();
    let target = dir.path().join("out");
    let mut out = AtomicOutput::directory(&target).unwrap();
    put(&mut out, "a.tens", b"abc");
    put(&mut out, "b.tens", b"def");
    assert!(!target.exists());
    commit(out).unwrap();
    assert_eq!(names(dir.path()), ["out"]);
    assert_eq!(names(&target), ["a.tens", "b.tens"]);
    assert_eq!(fs::read(target.join("b.tens")).unwrap(), b"def");

    let error = AtomicOutput::directory(&target).unwrap_err();
    assert_eq!(error.rule(), "file.exists");
}

/// A process may have 1024 files open, and a model more tensors.
#[cfg(target_os = "linux")]
#[test]
fn a_directory_of_many_files_has_few_of_them_open() {
    let dir = TempDir::new().unwrap();
    let mut out = AtomicOutput::directory(dir.path().join("out")).unwrap();
    out = out.sync(false);
    for n in 0..1500 {
        put(&mut out, &format!("{n}.tens"), b"abc");
    }
    let here = fs::canonicalize(dir.path()).unwrap();
    let handles = fs::read_dir("/proc/self/fd").unwrap();
    let open = handles
        .filter_map(|handle| fs::read_link(handle.unwrap().path()).ok())
        .filter(|path| path.starts_with(&here))
        .count();
    assert!(open < 100, "{open} are open");
    commit(out).unwrap();
    assert_eq!(names(&dir.path().join("out")).len(), 1500);
}

#[test]
fn a_directory_that_appears_meanwhile_is_not_replaced() {
    let dir = TempDir::new().unwrap();
    let target = dir.path().join("out");
    for content in [None, Some("theirs")] {
        let mut out = AtomicOutput::directory(&target).unwrap();
        put(&mut out, "a.tens", b"abc");
        fs::create_dir(&target).unwrap();
        if let Some(content) = content {
            fs::write(target.join("b.tens"), content).unwrap();
        }
        let error = commit(out).unwrap_err();
        assert_eq!(error.rule(), "file.exists", "{error}");
        assert_eq!(names(dir.path()), ["out"]);
        assert_eq!(names(&target).len(), usize::from(content.is_some()));
        fs::remove_dir_all(&target).unwrap();
    }
}

#[test]
fn a_directory_that_is_dropped_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let mut out = AtomicOutput::directory(dir.path().join("out")).unwrap();
    put(&mut out, "a.tens", b"abc");
    drop(out);
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn of_several_files_the_one_that_names_the_others_comes_last() {
    let dir = TempDir::new().unwrap();
    let mut out = AtomicOutput::file(dir.path().join("m.zt")).unwrap();
    put(&mut out, "m.zt", b"main");
    put(&mut out, "m-1.zt", b"one");
    put(&mut out, "m-2.zt", b"two");
    // Nothing but what says to others that they are being written.
    assert_eq!(names(dir.path()), [".m.zt.0-0.tenfold-partial"]);
    commit(out).unwrap();
    assert_eq!(names(dir.path()), ["m-1.zt", "m-2.zt", "m.zt"]);

    // Where one of them cannot be named, the main one is not there.
    let dir = TempDir::new().unwrap();
    let mut out = AtomicOutput::file(dir.path().join("m.zt")).unwrap();
    put(&mut out, "m.zt", b"main");
    put(&mut out, "m-1.zt", b"one");
    fs::write(dir.path().join("m-1.zt"), "theirs").unwrap();
    commit(out).unwrap_err();
    assert_eq!(names(dir.path()), ["m-1.zt"]);
    assert_eq!(fs::read(dir.path().join("m-1.zt")).unwrap(), b"theirs");
}

#[test]
fn a_commit_that_fails_takes_back_what_it_named() {
    let dir = TempDir::new().unwrap();
    let mut out = AtomicOutput::file(dir.path().join("m.zt")).unwrap();
    put(&mut out, "m.zt", b"main");
    put(&mut out, "m-1.zt", b"one");
    put(&mut out, "m-2.zt", b"two");
    fs::write(dir.path().join("m-2.zt"), "theirs").unwrap();
    commit(out).unwrap_err();
    assert_eq!(names(dir.path()), ["m-2.zt"]);
}

#[test]
fn a_commit_that_fails_puts_back_what_it_replaced() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("elsewhere")).unwrap();
    fs::write(at("elsewhere/one"), "old one").unwrap();
    symlink("elsewhere/one", at("m-1.zt")).unwrap();
    fs::write(at("m-2.zt"), "old two").unwrap();
    fs::write(at("m.zt"), "old main").unwrap();
    let mut out = AtomicOutput::file(at("m.zt")).unwrap().force(true);
    for name in ["m.zt", "m-1.zt", "m-2.zt", "m-3.zt"] {
        put(&mut out, name, b"new");
    }
    // In the way of the last but one, and there before any of them is named.
    fs::create_dir(at("m-3.zt")).unwrap();
    let error = commit(out).unwrap_err();
    assert!(error.message().contains("is a directory"), "{error}");
    assert_eq!(
        fs::read_link(at("m-1.zt")).unwrap(),
        Path::new("elsewhere/one")
    );
    assert_eq!(fs::read(at("m-1.zt")).unwrap(), b"old one");
    assert_eq!(fs::read(at("m-2.zt")).unwrap(), b"old two");
    assert_eq!(fs::read(at("m.zt")).unwrap(), b"old main");
    let all = ["elsewhere", "m-1.zt", "m-2.zt", "m-3.zt", "m.zt"];
    assert_eq!(names(dir.path()), all);
}

#[test]
fn several_files_replace_others_and_leave_nothing_of_them() {
    let dir = TempDir::new().unwrap();
    let all = ["m-1.zt", "m-2.zt", "m.zt"];
    for name in all {
        fs::write(dir.path().join(name), "old").unwrap();
    }
    let mut out = AtomicOutput::file(dir.path().join("m.zt")).unwrap();
    out = out.force(true);
    all.iter().for_each(|name| put(&mut out, name, b"new"));
    commit(out).unwrap();
    assert_eq!(names(dir.path()), all);
    for name in all {
        assert_eq!(fs::read(dir.path().join(name)).unwrap(), b"new");
    }
}

#[test]
fn names_that_lead_out_of_the_directory_are_refused() {
    let dir = TempDir::new().unwrap();
    let mut out = AtomicOutput::file(dir.path().join("m.zt")).unwrap();
    for name in ["../x", "a/b", "/x", "..", ".", "", "a\\b"] {
        assert!(out.create(name, None).is_err(), "{name:?}");
    }
}

#[test]
fn a_directory_is_never_replaced_by_a_file() {
    let dir = TempDir::new().unwrap();
    let target = dir.path().join("m.zt");
    fs::create_dir(&target).unwrap();
    assert!(AtomicOutput::file(&target).is_err());
    fs::remove_dir(&target).unwrap();
    let mut out = AtomicOutput::file(&target).unwrap().force(true);
    put(&mut out, "m.zt", b"main");
    fs::create_dir(&target).unwrap();
    commit(out).unwrap_err();
    assert!(target.is_dir());
    assert_eq!(names(dir.path()), ["m.zt"]);
}

#[test]
fn what_a_dead_process_left_is_removed_and_what_a_living_one_holds_is_not() {
    let dir = TempDir::new().unwrap();
    let stale = dir.path().join(".m.zt.4294967294-0.tenfold-partial");
    let held = dir.path().join(".m.zt.4294967294-1.tenfold-partial");
    let other = dir.path().join(".n.zt.4294967294-0.tenfold-partial");
    for path in [&stale, &held, &other] {
        fs::write(path, "partial").unwrap();
    }
    let holder = fs::File::open(&held).unwrap();
    holder.lock().unwrap();
    let mut out = AtomicOutput::file(dir.path().join("m.zt")).unwrap();
    put(&mut out, "m.zt", b"main");
    commit(out).unwrap();
    assert!(!stale.exists());
    assert!(held.exists());
    assert!(other.exists(), "of another target");
}

#[test]
fn a_directory_that_a_dead_process_left_is_removed() {
    let dir = TempDir::new().unwrap();
    let stale = dir.path().join(".out.4294967294-0.tenfold-partial");
    fs::create_dir(&stale).unwrap();
    fs::write(stale.join("a.tens"), "partial").unwrap();
    let first = AtomicOutput::directory(dir.path().join("out")).unwrap();
    assert!(!stale.exists());
    // One that is being written is not abandoned.
    let second = AtomicOutput::directory(dir.path().join("out")).unwrap();
    assert_eq!(names(dir.path()).len(), 2);
    drop((first, second));
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn work_that_was_stopped_leaves_nothing() {
    for (entry, profile) in profiles() {
        let dtype = common_dtype(&profile.can);
        let mut builder = ArchiveBuilder::new();
        let data = Bytes::from(vec![1; 3_000_000 * dtype.width().unwrap()]);
        builder.push("t", dtype, &[3_000_000], data).unwrap();
        let archive = builder.finish();
        let dir = TempDir::new().unwrap();
        let path = dir.path().join(file_name(&entry));

        // Stopped before it began, on one thread and on several.
        for threads in [1, 3] {
            let control = Arc::new(Control::new());
            control.cancel();
            let work = Work::new().threads(threads).control(control);
            let options = options_for(profile).work(work);
            let mut out = AtomicOutput::file(&path).unwrap();
            let conversion = Conversion::prepare(&archive, &entry, &options).unwrap();
            let error = conversion
                .write_to(&file_name(&entry), &mut out)
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Canceled, "{error}");
            drop(out);
            assert_eq!(names(dir.path()), [""; 0]);
        }

        // Stopped in the middle: whether in time or not, there is a whole file or none.
        let control = Arc::new(Control::new());
        let work = Work::new().threads(2).control(control.clone());
        let options = options_for(profile).work(work);
        let conversion = Conversion::prepare(&archive, &entry, &options).unwrap();
        let mut out = AtomicOutput::file(&path).unwrap().sync(false);
        let stopper = std::thread::spawn(move || {
            while control.done() == 0 {
                std::thread::yield_now();
            }
            control.cancel();
        });
        let written = conversion.write_to(&file_name(&entry), &mut out);
        drop(out);
        stopper.join().unwrap();
        match written {
            Ok(report) => {
                let mut files: Vec<_> = report.files.into_iter().map(|(name, _)| name).collect();
                files.sort();
                assert_eq!(names(dir.path()), files);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Canceled, "{error}");
                assert_eq!(names(dir.path()), [""; 0]);
            }
        }
    }
}

/// What is counted is counted in what it was measured in: bytes before compression, and before they are spelled out.
#[test]
fn progress_ends_where_it_was_expected_to() {
    for (entry, profile) in profiles() {
        let dtype = common_dtype(&profile.can);
        let mut builder = ArchiveBuilder::new();
        let len = 200_000 * dtype.width().unwrap();
        builder
            .push("t", dtype, &[200_000], Bytes::from(vec![1; len]))
            .unwrap();
        let archive = builder.finish();
        let ways = [
            ("raw", true),
            ("zstd", profile.can.zstd),
            ("text", entry.spec.id == "cc4s"),
        ];
        for (way, _) in ways.into_iter().filter(|(_, is_there)| *is_there) {
            for check in [false, true] {
                let control = Arc::new(Control::new());
                let work = Work::new().threads(1).control(control.clone());
                let mut options = options_for(profile).check(check).work(work);
                match way {
                    "zstd" if cfg!(feature = "zstd-write") => {
                        options = options.compression(|_| Compression::Zstd(1));
                    }
                    "text" => options = options.option("text", "true"),
                    _ => {}
                }
                let dir = TempDir::new().unwrap();
                let out = AtomicOutput::file(dir.path().join(file_name(&entry))).unwrap();
                let conversion = Conversion::prepare(&archive, &entry, &options).unwrap();
                conversion
                    .write_to(&file_name(&entry), &mut out.sync(false))
                    .unwrap();
                let (id, done, total) = (entry.spec.id, control.done(), control.total());
                let passes = if check { 3 } else { 1 };
                assert!(total >= passes * len as u64, "{id} {way}: {total}");
                assert_eq!(done, total, "{id} {way}");
            }
        }
    }
}

#[test]
fn a_full_disk_is_reported_as_such_and_leaves_nothing() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("SKIPPED: a small disk cannot be mounted here (needs root)");
        return;
    };
    let target = disk.path().join("m.zt");
    // Known beforehand: refused before anything is written.
    let mut out = AtomicOutput::file(&target).unwrap();
    let error = out.create("m.zt", Some(64 << 20)).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("no space left"), "{error}");
    drop(out);
    assert_eq!(names(disk.path()), [""; 0]);

    // Found out while writing.
    let mut out = AtomicOutput::file(&target).unwrap();
    let error = {
        let mut sink = out.create("m.zt", None).unwrap();
        let megabyte = vec![7; 1 << 20];
        (0..64)
            .find_map(|_| sink.write(&megabyte).err())
            .expect("the disk is not full")
    };
    assert!(error.message().contains("no space left"), "{error}");
    drop(out);
    assert_eq!(names(disk.path()), [""; 0]);
}

/// A file system of one mebibyte in memory.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let dir = TempDir::new().unwrap();
        let status = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(dir.path())
            .stderr(std::process::Stdio::null())
            .status();
        status
            .is_ok_and(|status| status.success())
            .then(|| Self(dir))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg(self.0.path())
            .status();
    }
}

/// A stream that sends its last bytes when it is finished, and fails then.
struct Sending {
    sent: u64,
    fails: bool,
}

struct SendingSink<'s>(&'s mut Sending);

impl Sink for SendingSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> tenfold::Result<()> {
        self.0.sent += bytes.len() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> tenfold::Result<()> {
        if self.0.fails {
            let cause = std::io::ErrorKind::ConnectionReset.into();
            return Err(tenfold::Error::io("cannot send the last part", cause));
        }
        Ok(())
    }
}

impl Output for Sending {
    fn create(&mut self, _: &str, _: Option<u64>) -> tenfold::Result<Box<dyn Sink + '_>> {
        Ok(Box::new(SendingSink(self)))
    }

    fn written(&self, _: &str) -> tenfold::Result<Option<Arc<dyn Source>>> {
        Ok(None)
    }

    fn commit(&mut self) -> tenfold::Result<()> {
        assert!(!self.fails, "what was not sent is not committed");
        Ok(())
    }
}

#[test]
fn what_goes_wrong_behind_the_last_byte_is_an_error_and_lengths_need_no_reading_back() {
    for (entry, profile) in profiles() {
        let dtype = common_dtype(&profile.can);
        let mut builder = ArchiveBuilder::new();
        let data = Bytes::from(vec![1; 12 * dtype.width().unwrap()]);
        builder.push("t", dtype, &[12], data).unwrap();
        let archive = builder.finish();
        let write = |fails| {
            let mut out = Sending { sent: 0, fails };
            let conversion = Conversion::prepare(&archive, &entry, &options_for(profile)).unwrap();
            let report = conversion.write_to(&file_name(&entry), &mut out);
            (report, out.sent)
        };
        let (report, sent) = write(false);
        let files = report.unwrap().files;
        let lengths: u64 = files.iter().map(|(_, len)| len).sum();
        assert!(
            lengths == sent && files.iter().all(|(_, len)| *len > 0),
            "{files:?}, {sent} sent"
        );
        let (report, _) = write(true);
        let error = report.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{}: {error}", entry.spec.id);
    }
}
