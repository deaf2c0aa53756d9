//! A directory that is opened as one archive.

use std::path::{Path, PathBuf};

use super::merge::{self, Conflicts};
use super::{Archive, OpenOptions, complete};
use crate::error::{Error, ErrorKind, Result};
use crate::format::Entry;
use crate::prelude::*;

impl OpenOptions {
    /// The files of a directory whose names say that they are of a known format, in the order of their names. Where one
    /// of them is an index, it says which files belong together, and it alone is opened.
    pub(super) fn open_directory(&self, directory: &Path) -> Result<Archive> {
        let paths = self.files_of(directory)?;
        let is_index = |path: &&PathBuf| {
            let mut entries = self.registry.entries().iter();
            file_name(path).is_some_and(|name| entries.any(|entry| entry.is_index(name)))
        };
        let indexes: Vec<_> = paths.iter().filter(is_index).collect();
        match *indexes.as_slice() {
            [] => self.open_all(directory, &paths),
            [index] => self.open(index),
            [first, second, ..] => Err(Error::argument(format!(
                "{} holds several indexes ({} and {}); open one of them",
                directory.display(),
                first.display(),
                second.display()
            ))),
        }
    }

    /// The files whose names have an ending that a format uses, in order.
    fn files_of(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let fail = |cause| Error::io(format_args!("cannot list {}", directory.display()), cause);
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            let is_hidden = file_name(&path).is_none_or(|name| name.starts_with('.'));
            if path.is_file() && !is_hidden && self.entry_by_name(&path).is_some() {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    fn open_all(&self, directory: &Path, paths: &[PathBuf]) -> Result<Archive> {
        let mut archives: Vec<Archive> = Vec::new();
        for path in paths {
            // Any of the parts of a model opens all of them.
            let name = file_name(path);
            if archives.iter().any(|archive| archive.has_part(name)) {
                continue;
            }
            match self.open(path) {
                // A name alone makes no tensor file where the format has no magic: text files are often something else.
                Err(error) if error.kind() == ErrorKind::Unrecognized && !self.has_magic(path) => {}
                opened => archives.push(opened?),
            }
        }
        if archives.is_empty() {
            let message = format!("{} holds no file of a known format", directory.display());
            let kind = ErrorKind::Unrecognized;
            return Err(Error::new(kind, "file.directory", message));
        }
        // What is joined is looked after; one file may be one of several, too.
        let joined = match archives.as_slice() {
            [only] => {
                let missing = complete::findings(&archives);
                only.adding_findings(missing)
            }
            _ => merge::merge(&archives, Conflicts::FirstMetadata)?.archive,
        };
        let mut findings = joined.findings().iter();
        match findings.find(|finding| complete::is_missing(finding)) {
            Some(missing) if self.strict => {
                Err(Error::malformed(complete::MISSING, missing.message.clone()))
            }
            _ => Ok(joined.opened_by(directory)),
        }
    }

    /// Whether files with this name always begin with a magic.
    fn has_magic(&self, path: &Path) -> bool {
        let entry = self.entry_by_name(path);
        entry.is_none_or(|entry| !entry.spec.magic.is_empty())
    }

    fn entry_by_name(&self, path: &Path) -> Option<&Entry> {
        self.registry.by_extension(file_name(path)?)
    }
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}
