//! The way of systems without files that have no name; the other one is tested from outside.

#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used
)] // a test may panic

use super::temporary::{SUFFIX, open_named};
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
            file,
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
    remove_abandoned(&scratch.0, "a.zt");
    assert_eq!(scratch.names().len(), 1);
    // One that nobody holds is.
    let path = out.pending[0].temporary.clone().unwrap();
    fs::write(path.with_file_name(".a.zt.1-0.tenfold-partial"), "").unwrap();
    remove_abandoned(&scratch.0, "a.zt");
    assert_eq!(scratch.names().len(), 1);
}
