//! What cannot be seen from outside: the way of systems without files that have no name, and what is open.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used
)] // a test may panic

use std::io::Write;

use super::temporary::{SUFFIX, open_named, temporary_name};
use super::*;

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
        let (mut file, path) = open_named(&self.0, name).unwrap();
        file.write_all(content.as_bytes()).unwrap();
        out.pending.push(Pending {
            name: name.to_owned(),
            file: Some(file),
            temporary: Some(path),
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
    let out = scratch.output("a.zt", "new");
    assert_eq!(scratch.names().len(), 1);
    assert!(scratch.names()[0].ends_with(SUFFIX));
    Box::new(out).commit().unwrap();
    assert_eq!(scratch.names(), ["a.zt"]);
}

#[test]
fn a_temporary_file_is_removed_when_nothing_comes_of_it() {
    let scratch = Scratch::new("drop");
    drop(scratch.output("a.zt", "new"));
    assert_eq!(scratch.names(), [""; 0]);

    fs::write(scratch.0.join("a.zt"), "theirs").unwrap();
    let out = scratch.output("a.zt", "new");
    assert_eq!(Box::new(out).commit().unwrap_err().rule(), "file.exists");
    assert_eq!(scratch.names(), ["a.zt"]);
    assert_eq!(fs::read(scratch.0.join("a.zt")).unwrap(), b"theirs");
}

#[test]
fn force_replaces_in_one_step() {
    let scratch = Scratch::new("force");
    fs::write(scratch.0.join("a.zt"), "old").unwrap();
    let out = scratch.output("a.zt", "new").force(true);
    Box::new(out).commit().unwrap();
    assert_eq!(scratch.names(), ["a.zt"]);
    assert_eq!(fs::read(scratch.0.join("a.zt")).unwrap(), b"new");
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
    Box::new(out).commit().unwrap();
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
