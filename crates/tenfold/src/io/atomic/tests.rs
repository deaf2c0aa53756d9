//! What cannot be seen from outside: the way of systems without files that have no name, and what is open.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used
)] // a test may panic

use std::io::Write;

use super::temporary::{SUFFIX, open_named, temporary_name};
use super::*;
use crate::io::fault::Faults;

/// A directory of its own, gone in the end.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(temporary_name(name));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// An output that wrote a file under a temporary name.
    fn output(&self, name: &str, content: &str) -> AtomicOutput {
        let mut out = AtomicOutput::file(self.0.join(name)).unwrap();
        let (mut file, path) = open_named(&self.0, name, false).unwrap();
        file.write_all(content.as_bytes()).unwrap();
        out.pending.push(Pending {
            name: name.to_owned(),
            file: Some(file),
            temporary: Some(path),
            old: None,
        });
        out
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_temporary_name_is_exchanged_for_the_real_one() {
    let scratch = Scratch::new("exchange");
    let mut out = scratch.output("a.zt", "new");
    assert_eq!(scratch.names().len(), 1);
    assert!(scratch.names()[0].ends_with(SUFFIX));
    out.commit().unwrap();
    assert_eq!(scratch.names(), ["a.zt"]);
}

#[test]
fn a_temporary_file_is_removed_when_nothing_comes_of_it() {
    let scratch = Scratch::new("drop");
    drop(scratch.output("a.zt", "new"));
    assert_eq!(scratch.names(), [""; 0]);

    fs::write(scratch.0.join("a.zt"), "theirs").unwrap();
    let mut out = scratch.output("a.zt", "new");
    assert_eq!(out.commit().unwrap_err().rule(), "file.exists");
    assert_eq!(scratch.names(), ["a.zt"]);
    assert_eq!(fs::read(scratch.0.join("a.zt")).unwrap(), b"theirs");
}

#[test]
fn force_replaces_in_one_step() {
    let scratch = Scratch::new("force");
    fs::write(scratch.0.join("a.zt"), "old").unwrap();
    let mut out = scratch.output("a.zt", "new").force(true);
    out.commit().unwrap();
    assert_eq!(scratch.names(), ["a.zt"]);
    assert_eq!(fs::read(scratch.0.join("a.zt")).unwrap(), b"new");
}

/// What systems lack: nothing, files without a name, hard links too.
const SYSTEMS: [&[&str]; 3] = [&[], &["unnamed"], &["unnamed", "link"]];

/// 255 bytes are what file systems take.
#[test]
fn a_file_may_have_a_name_as_long_as_the_system_takes() {
    for lacks in SYSTEMS {
        let _faults = Faults::after(usize::MAX, lacks);
        for (len, letter) in (95..=255).flat_map(|len| [(len, "x"), (len, "é")]) {
            let name = format!(
                "{}{}",
                "y".repeat(len % letter.len()),
                letter.repeat(len / letter.len())
            );
            let scratch = Scratch::new("long");
            for force in [false, true] {
                let mut out = AtomicOutput::file(scratch.0.join(&name)).unwrap();
                out = out.force(force).sync(false);
                // With another one, so that what is there is kept under a temporary name.
                fill(&mut out, &["a.zt".into(), name.clone()]);
                out.commit().unwrap();
                assert_eq!(scratch.names(), ["a.zt", name.as_str()], "{len} {lacks:?}");
            }
            fs::remove_file(scratch.0.join(&name)).unwrap();
            let mut out = AtomicOutput::directory(scratch.0.join(&name)).unwrap();
            fill(&mut out, &["t.npy".into()]);
            out.sync(false).commit().unwrap();
            assert_eq!(scratch.names(), ["a.zt", name.as_str()], "{len} {lacks:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn what_was_left_of_a_long_name_is_removed() {
    let scratch = Scratch::new("left");
    let name = "x".repeat(255);
    let other = format!("{}y", "x".repeat(254));
    for name in [&name, &other] {
        fs::write(scratch.0.join(temporary_name(name)), "").unwrap();
    }
    fill(
        &mut AtomicOutput::file(scratch.0.join(&name)).unwrap(),
        &[name],
    );
    assert_eq!(scratch.names().len(), 1, "that of another target stays");
}

/// A process that opens a file while it is written has it open afterwards too.
#[cfg(unix)]
#[test]
fn what_replaces_a_file_is_nobody_elses_until_it_has_its_permissions() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    for lacks in SYSTEMS {
        let _faults = Faults::after(usize::MAX, lacks);
        for mode in [0o600, 0o640, 0o666, 0o400] {
            let scratch = Scratch::new("narrow");
            let target = scratch.0.join("a.zt");
            fs::write(&target, "old").unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
            let mut out = AtomicOutput::file(&target).unwrap().force(true);
            fill(&mut out, &["a.zt".into()]);
            let file = out.pending[0].file.as_ref().unwrap();
            assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o600, "{lacks:?}");
            out.commit().unwrap();
            assert_eq!(fs::metadata(&target).unwrap().mode() & 0o7777, mode);

            // The same for a directory that takes the place of an empty one.
            let target = scratch.0.join("all");
            fs::create_dir(&target).unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(mode | 0o700)).unwrap();
            let mut out = AtomicOutput::directory(&target).unwrap();
            let staging = fs::metadata(&out.directory).unwrap();
            assert_eq!(staging.mode() & 0o7777, 0o700);
            out.commit().unwrap();
            assert_eq!(fs::metadata(&target).unwrap().mode() & 0o7777, mode | 0o700);
        }
    }
}

/// Of two outputs of the same files one fails, whatever name it was asked for by and however many files it has.
#[cfg(unix)]
#[test]
fn several_files_are_written_by_one_output_at_a_time() {
    let scratch = Scratch::new("claim");
    let output = |name: &str| {
        let out = AtomicOutput::file(scratch.0.join(name)).unwrap();
        out.force(true).sync(false)
    };
    let set = ["m-1.zt".to_owned(), "m-2.zt".into(), "m.index".into()];
    let mut first = output("m.zt");
    fill(&mut first, &set[..1]);
    for begun in ["m-1.zt", "m-9.zt"] {
        let error = output("m.zt").create(begun, None).map(drop).unwrap_err();
        assert_eq!(error.rule(), "file.busy");
        assert!(
            error.message().contains("another process is writing"),
            "{error}"
        );
    }
    // By the name of the index it is only known in the end that they are the same.
    let mut second = output("m.index");
    fill(&mut second, &set);
    fill(&mut first, &set[1..]);
    let error = first.commit().unwrap_err();
    assert_eq!(error.rule(), "file.busy");
    second.commit().unwrap();
    assert_eq!(scratch.names(), set);
    // Others in the same directory, and the next ones, are not concerned.
    let (mut third, mut fourth) = (output("m.zt"), output("n.zt"));
    fill(&mut third, &set);
    fill(&mut fourth, &["n-1.zt".into(), "n.zt".into()]);
    drop(third);
    fourth.commit().unwrap();
    assert_eq!(scratch.names().len(), 5);
}

/// Each success of a thread is a whole set of its own, also when others try at the same time.
#[cfg(unix)]
#[test]
fn threads_that_write_the_same_files_leave_those_of_one() {
    let scratch = Scratch::new("threads");
    let names = ["m-1.zt", "m-2.zt", "m-3.zt", "m.zt"];
    let done = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (scratch, done) = (&scratch, &done);
            scope.spawn(move || {
                for round in 0..50 {
                    let content = format!("{thread} {round}");
                    let mut out = AtomicOutput::file(scratch.0.join("m.zt")).unwrap();
                    out = out.force(true).sync(false);
                    let begun = names.iter().try_for_each(|name| {
                        let mut sink = out.create(name, None)?;
                        sink.write(content.as_bytes())
                    });
                    match begun.and_then(|()| out.commit()) {
                        Ok(()) => _ = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
                        Err(error) => assert_eq!(error.rule(), "file.busy", "{error}"),
                    }
                }
            });
        }
    });
    assert!(done.into_inner() > 0);
    assert_eq!(scratch.names(), names);
    let contents = names.map(|name| fs::read(scratch.0.join(name)).unwrap());
    assert!(contents.iter().all(|content| *content == contents[0]));
}

#[cfg(unix)]
#[test]
fn a_temporary_file_that_is_held_is_not_taken_for_abandoned() {
    let scratch = Scratch::new("held");
    let out = scratch.output("a.zt", "new");
    Leftovers::list(&scratch.0).remove_abandoned("a.zt");
    assert_eq!(scratch.names().len(), 1);
    // One that nobody holds is.
    let path = out.pending[0].temporary.clone().unwrap();
    fs::write(path.with_file_name(".a.zt.1-0.tenfold-partial"), "").unwrap();
    Leftovers::list(&scratch.0).remove_abandoned("a.zt");
    assert_eq!(scratch.names().len(), 1);
}

#[cfg(unix)]
#[test]
fn what_was_left_of_a_name_that_begins_the_same_is_not_removed() {
    let scratch = Scratch::new("other");
    let left = ".a.zt.1-0.tenfold-partial";
    fs::write(scratch.0.join(left), "").unwrap();
    for other in ["a", "a.z", "zt", ""] {
        Leftovers::list(&scratch.0).remove_abandoned(other);
        assert_eq!(scratch.names(), [left], "{other:?}");
    }
    Leftovers::list(&scratch.0).remove_abandoned("a.zt");
    assert_eq!(scratch.names(), [""; 0]);
}

/// Writes files with their names in them.
fn fill(out: &mut AtomicOutput, names: &[String]) {
    for name in names {
        let mut sink = out.create(name, Some(name.len() as u64)).unwrap();
        sink.write(name.as_bytes()).unwrap();
    }
}

#[test]
fn files_of_a_new_directory_are_closed_and_read_back() {
    let scratch = Scratch::new("closed");
    let mut out = AtomicOutput::directory(scratch.0.join("all")).unwrap();
    let names: Vec<_> = (0..5 * OPEN).map(|n| format!("t{n}.npy")).collect();
    fill(&mut out, &names);
    let open = out.pending.iter().filter(|pending| pending.file.is_some());
    assert_eq!(open.count(), OPEN);
    for name in &names {
        let written = out.written(name).unwrap().unwrap();
        assert_eq!(written.read(0..written.len()).unwrap(), name.as_bytes());
    }
    let error = out.create("t0.npy", None).map(drop).unwrap_err();
    assert!(error.message().contains("begun already"), "{error}");
    out.commit().unwrap();
    for name in &names {
        let path = scratch.0.join("all").join(name);
        assert_eq!(fs::read(path).unwrap(), name.as_bytes());
    }
}

/// One look into the directory for all files of an output: there may be a hundred thousand of them.
#[cfg(unix)]
#[test]
fn what_was_left_is_looked_for_once() {
    let scratch = Scratch::new("once");
    let left = |name: &str| {
        let path = scratch.0.join(format!(".{name}.1-0.tenfold-partial"));
        fs::write(&path, "").unwrap();
        path
    };
    let mut out = AtomicOutput::file(scratch.0.join("a.zt")).unwrap();
    let before = [left("a.zt"), left("b.zt")];
    fill(&mut out, &["a.zt".into()]);
    let after = left("b.zt.more");
    fill(&mut out, &["b.zt".into(), "b.zt.more".into()]);
    assert!(before.iter().all(|path| !path.exists()));
    assert!(after.exists());
    drop(out);
    fill(
        &mut AtomicOutput::file(scratch.0.join("b.zt.more")).unwrap(),
        &["b.zt.more".into()],
    );
    assert!(!after.exists());
}

/// A run that cleans up may see a directory before it is held.
#[cfg(unix)]
#[test]
fn a_directory_that_is_removed_before_it_is_held_is_made_again() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let scratch = Scratch::new("race");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    Leftovers::list(&scratch.0).remove_abandoned("all");
                }
            });
        }
        let failed = (0..2000).find_map(|_| {
            let mut out = AtomicOutput::directory(scratch.0.join("all")).unwrap();
            out.create("t.npy", None).map(drop).err()
        });
        done.store(true, Ordering::Relaxed);
        assert!(failed.is_none(), "{failed:?}");
    });
}
