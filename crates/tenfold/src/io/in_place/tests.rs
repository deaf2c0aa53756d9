// A test may panic; the files that it writes are its own.
#![allow(clippy::disallowed_methods)]

use tempfile::TempDir;

use super::*;
use crate::io::fault::Faults;
use crate::io::{Access, open_source};

const OLD: &[u8] = b"header, old....data data data data, index";

/// A file, and an edit that changes its begin and makes its end longer.
struct Case {
    dir: TempDir,
    path: PathBuf,
    patches: Vec<Patch>,
    new: Vec<u8>,
}

impl Case {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, OLD).unwrap();
        let patches = vec![
            Patch::new(8, b"NEW".to_vec()),
            Patch::new(36, b"another index".to_vec()),
        ];
        let mut new = OLD.to_vec();
        new[8..11].copy_from_slice(b"NEW");
        new.truncate(36);
        new.extend(b"another index");
        Self {
            dir,
            path,
            patches,
            new,
        }
    }

    fn journal(&self) -> Journal {
        let before = self.patches.iter().map(|patch| {
            let at = usize::try_from(patch.at).unwrap();
            let end = OLD.len().min(at + patch.bytes.len());
            Patch::new(patch.at, OLD[at..end].to_vec())
        });
        Journal {
            len: OLD.len() as u64,
            before: before.collect(),
            after: self.patches.clone(),
        }
    }

    /// What readers of this library see.
    fn seen(&self) -> Vec<u8> {
        let source = open_source(&self.path, Access::default()).unwrap();
        source.read(0..source.len()).unwrap().to_vec()
    }

    fn names(&self) -> usize {
        fs::read_dir(self.dir.path()).unwrap().count()
    }

    fn edit(&self) -> Result<()> {
        InPlace::begin(&self.path, true)?.write(self.patches.clone())
    }
}

#[test]
fn an_edit_is_done_and_leaves_nothing_behind() {
    let case = Case::new();
    case.edit().unwrap();
    assert_eq!(fs::read(&case.path).unwrap(), case.new);
    assert_eq!(case.names(), 1);
}

/// Killed while the patches are written: in their order or not, at any byte.
#[test]
fn an_interrupted_edit_is_read_as_it_was_and_put_back() {
    let mut torn = 0;
    for in_order in [true, false] {
        let all: usize = Case::new().patches.iter().map(|p| p.bytes.len()).sum();
        for written in 0..=all {
            let case = Case::new();
            fs::write(journal_of(&case.path), case.journal().encode()).unwrap();
            let mut patches = case.patches.clone();
            if !in_order {
                patches.reverse();
            }
            let mut left = written;
            let mut file = OLD.to_vec();
            for patch in &patches {
                let len = left.min(patch.bytes.len());
                let at = usize::try_from(patch.at).unwrap();
                file.resize(file.len().max(at + len), 0);
                file[at..at + len].copy_from_slice(&patch.bytes[..len]);
                left -= len;
            }
            fs::write(&case.path, &file).unwrap();
            let expected = if written == all { &case.new[..] } else { OLD };
            torn += usize::from(file != expected);
            assert_eq!(case.seen(), expected, "{written} bytes");
            // The next edit begins with it.
            drop(InPlace::begin(&case.path, false).unwrap());
            assert_eq!(fs::read(&case.path).unwrap(), expected, "{written} bytes");
            assert_eq!(case.names(), 1);
        }
    }
    assert!(torn > 20);
}

#[test]
fn a_journal_that_is_not_complete_changes_nothing() {
    let journal = Case::new().journal().encode();
    for len in 0..journal.len() {
        let case = Case::new();
        fs::write(journal_of(&case.path), &journal[..len]).unwrap();
        assert_eq!(case.seen(), OLD);
        case.edit().unwrap();
        assert_eq!(fs::read(&case.path).unwrap(), case.new);
        assert_eq!(case.names(), 1);
    }
}

#[test]
fn a_journal_of_another_file_is_ignored() {
    for other in [
        &b"something else"[..],
        b"header, NEX....data data data data, index",
    ] {
        let case = Case::new();
        fs::write(journal_of(&case.path), case.journal().encode()).unwrap();
        fs::write(&case.path, other).unwrap();
        assert_eq!(case.seen(), other);
        drop(InPlace::begin(&case.path, true).unwrap());
        assert_eq!(fs::read(&case.path).unwrap(), other);
        assert_eq!(case.names(), 1);
    }
}

/// Whatever operation fails: the file is what it was or what it was to be, if not by itself then with its journal.
#[test]
fn an_operation_that_fails_leaves_the_old_or_the_new() {
    let mut failed = Vec::new();
    for left in 0.. {
        let case = Case::new();
        let faults = Faults::after(left, &[]);
        let edited = case.edit();
        let point = faults.failed();
        drop(faults);
        let Some(point) = point else {
            edited.unwrap();
            break;
        };
        let seen = case.seen();
        assert!(seen == OLD || seen == case.new, "{point}");
        if edited.is_ok() {
            assert_eq!(seen, case.new, "{point}");
        }
        drop(InPlace::begin(&case.path, true).unwrap());
        assert_eq!(fs::read(&case.path).unwrap(), seen, "{point}");
        failed.push(point);
    }
    for point in [
        "journal-create",
        "journal",
        "journal-sync",
        "edit",
        "sync-directory",
    ] {
        assert!(failed.contains(&point), "{failed:?}");
    }
}

#[test]
fn one_edits_at_a_time() {
    let case = Case::new();
    let first = InPlace::begin(&case.path, false).unwrap();
    let error = InPlace::begin(&case.path, false).err().unwrap();
    assert!(error.message().starts_with("another process is editing"));
    drop(first);
    case.edit().unwrap();
}

#[cfg(unix)]
#[test]
fn files_that_others_rely_on_are_refused() {
    let case = Case::new();
    let at = |name: &str| case.dir.path().join(name);
    let refused = |path: &Path| {
        let error = InPlace::begin(path, false).err().unwrap();
        error.message().to_owned()
    };
    std::os::unix::fs::symlink(&case.path, at("link")).unwrap();
    assert!(refused(&at("link")).contains("is a link"));
    fs::hard_link(&case.path, at("second")).unwrap();
    assert!(refused(&case.path).contains("hard links"));
    fs::remove_file(at("second")).unwrap();
    let mut permissions = case.path.metadata().unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&case.path, permissions).unwrap();
    assert!(refused(&case.path).contains("read-only"));
    assert!(refused(case.dir.path()).contains("is not a file"));
    assert_eq!(fs::read(&case.path).unwrap(), OLD);
}
