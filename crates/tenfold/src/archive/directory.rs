//! A directory that is opened as one archive: which of its files belong together, and which are passed over.
//!
//! Model directories hold more than one model's tensors: the same weights in two formats, the state of an optimizer,
//! configurations. One *set* of files is opened, the first in this order:
//!
//! 1. by format: safetensors, GGUF, every other format in the order of the table, then PyTorch, Keras, HDF5,
//!    ONNX, Flax, Paddle and TensorFlow Lite;
//! 2. of one format, files with an index before files without one, and `consolidated.*`, which is how some publish the
//!    same weights under other names, last.
//!
//! A set whose index names files that are not there makes way for one that is complete. Everything else that holds
//! tensors is passed over, and listed in [`Archive::passed_over`].

use std::path::{Path, PathBuf};

use super::beside::{WEIGHTS, file_name, has_ending, is_training_state, names};
use super::merge::{self, Conflicts};
use super::{Archive, OpenOptions, complete};
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::format::{Entry, ShardName};
use crate::model::SourceId;
use crate::prelude::*;

/// Formats that come before the others, and those that come after them.
const FIRST: [&str; 2] = ["safetensors", "gguf"];
const LAST: [&str; 7] = [
    "pytorch", "keras", "hdf5", "onnx", "flax", "paddle", "tflite",
];

/// A file of a directory that was not opened although it holds tensors, or could.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PassedOver {
    /// Its name in the directory.
    pub name: String,
    /// Why it was not opened.
    pub why: PassedOverFor,
}

/// Why a file was passed over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PassedOverFor {
    /// It belongs to another set of weights than the one that was opened.
    AnotherSet,
    /// It belongs to a set whose index names a file that is not there.
    Incomplete,
    /// It is the state of an optimizer or the like.
    TrainingState,
    /// It is not of the format that its name says, or that format is not read.
    Unreadable,
}

/// Files that are opened together.
struct Set {
    rank: (usize, Kind),
    files: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Kind {
    /// Each index by itself.
    Index,
    Plain,
    Consolidated,
}

impl OpenOptions {
    pub(super) fn open_directory(&self, directory: &Path) -> Result<Archive> {
        let names = names(directory)?;
        let mut sets = self.sets(directory, &names);
        sets.sort_by_key(|set| set.rank);
        let mut incomplete: Vec<PathBuf> = Vec::new();
        let mut failed = None;
        for set in &sets {
            match self.open_set(directory, set) {
                Ok(Some(archive)) => {
                    return Ok(self.noting(archive, directory, &names, &incomplete));
                }
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::NotFound && set.rank.1 == Kind::Index => {
                    incomplete.extend(set.files.iter().cloned());
                    failed.get_or_insert(error);
                }
                Err(error) => return Err(failed.unwrap_or(error)),
            }
        }
        Err(failed.unwrap_or_else(|| self.nothing_in(directory)))
    }

    /// The sets of files whose names say that they are of a known format.
    fn sets(&self, directory: &Path, names: &[String]) -> Vec<Set> {
        let mut sets: Vec<Set> = Vec::new();
        let entries = self.registry.entries();
        let wanted = self.format_id().and_then(|id| self.registry.get(id).ok());
        let known: Vec<(&String, &Entry)> = (names.iter())
            .filter(|name| !is_training_state(name))
            .filter_map(|name| Some((name, self.registry.by_extension(name)?)))
            .collect();
        let is_wanted = |entry: &Entry| wanted.is_none_or(|wanted| wanted.spec.id == entry.spec.id);
        let stems: Vec<_> = (known.iter())
            .filter(|(name, entry)| entry.is_index(name))
            .map(|(name, entry)| (entry.spec.id, index_stem(name)))
            .collect();
        let any_wanted = known.iter().any(|(_, entry)| is_wanted(entry));
        for (name, entry) in known {
            if any_wanted && !is_wanted(entry) {
                continue;
            }
            let is_index = entry.is_index(name);
            // They are opened by their index, or not at all.
            let shard = ShardName::parse(name).map(|shard| (entry.spec.id, shard.stem));
            if !is_index && shard.is_some_and(|shard| stems.contains(&shard)) {
                continue;
            }
            let kind = match (name.starts_with("consolidated"), is_index) {
                (true, _) => Kind::Consolidated,
                (false, true) => Kind::Index,
                (false, false) => Kind::Plain,
            };
            let place = entries
                .iter()
                .position(|other| other.spec.id == entry.spec.id);
            let rank = (rank(entry, place.unwrap_or(0), entries.len()), kind);
            let path = directory.join(name);
            match sets.iter_mut().find(|set| set.rank == rank) {
                None => sets.push(Set {
                    rank,
                    files: vec![path],
                }),
                Some(set) => set.files.push(path),
            }
        }
        sets
    }

    /// Opens the files of a set as one; nothing where none of them is what its name says.
    fn open_set(&self, directory: &Path, set: &Set) -> Result<Option<Archive>> {
        let is_index = |path: &&PathBuf| {
            let name = file_name(path).unwrap_or_default();
            (self.registry.by_extension(name)).is_some_and(|entry| entry.is_index(name))
        };
        let indexes: Vec<_> = set.files.iter().filter(is_index).collect();
        let files = match *indexes.as_slice() {
            [] => set.files.as_slice(),
            [index] => core::slice::from_ref(index),
            [first, second, ..] => {
                let error = Error::argument(format!(
                    "{} holds several indexes ({} and {})",
                    directory.display(),
                    file_name(first).unwrap_or_default(),
                    file_name(second).unwrap_or_default(),
                ));
                return Err(error.hinting(Hint::NameFile));
            }
        };
        let mut archives: Vec<Archive> = Vec::new();
        for path in files {
            // Any of the parts of a model opens all of them.
            let name = file_name(path);
            if archives.iter().any(|archive| archive.has_part(name)) {
                continue;
            }
            match self.open(path) {
                // A name alone makes no tensor file where others use it too: text files are often something else.
                Err(error) if error.kind() == ErrorKind::Unrecognized && self.is_doubtful(path) => {
                }
                // What names a file already.
                Err(error) if error.is_plain() || is_in_part(&error) => return Err(error),
                Err(error) => {
                    return Err(error.in_file(SourceId::MAIN, name.unwrap_or_default()));
                }
                Ok(archive) => archives.push(archive),
            }
        }
        if archives.is_empty() {
            return Ok(None);
        }
        // An index looks after its files.
        if !indexes.is_empty() {
            return Ok(archives.pop());
        }
        self.join(directory, &archives).map(Some)
    }

    fn join(&self, directory: &Path, archives: &[Archive]) -> Result<Archive> {
        // What is joined is looked after; one file may be one of several, too.
        let joined = match archives {
            [only] => {
                let missing = complete::findings(archives);
                only.adding_findings(missing)
            }
            _ => {
                let merged = merge::merge(archives, Conflicts::FirstMetadata);
                let merged = merged.map_err(|error| match error.kind() {
                    ErrorKind::Argument => {
                        let message = format!("{}: {}", directory.display(), error.message());
                        Error::argument(message).hinting(Hint::NameFile)
                    }
                    _ => error,
                });
                merged?.archive
            }
        };
        let mut findings = joined.findings().iter();
        match findings.find(|finding| complete::is_missing(finding)) {
            Some(missing) if self.strict => {
                Err(Error::malformed(complete::MISSING, missing.message.clone()))
            }
            _ => Ok(joined.opened_by(directory)),
        }
    }

    /// The archive with a list of what else there is.
    fn noting(
        &self,
        archive: Archive,
        directory: &Path,
        names: &[String],
        incomplete: &[PathBuf],
    ) -> Archive {
        let mut passed_over = Vec::new();
        for name in names {
            let is_read = (archive.sources()).any(|(source, _)| source == Some(name.as_str()));
            if is_read {
                continue;
            }
            let path = directory.join(name);
            let is_incomplete = || {
                let shard = ShardName::parse(name).map(|shard| shard.stem);
                incomplete.iter().any(|index| {
                    let stem = file_name(index).map(index_stem);
                    *index == path || (stem.is_some() && stem == shard)
                })
            };
            let why = if is_training_state(name) {
                PassedOverFor::TrainingState
            } else if self.registry.by_extension(name).is_none() {
                // Not a format's, and yet weights.
                if !has_ending(name, &WEIGHTS) {
                    continue;
                }
                PassedOverFor::Unreadable
            } else if is_incomplete() {
                PassedOverFor::Incomplete
            } else if self.is_recognized(&path) {
                PassedOverFor::AnotherSet
            } else if self.is_doubtful(&path) && !has_ending(name, &WEIGHTS) {
                continue;
            } else {
                PassedOverFor::Unreadable
            };
            let name = name.clone();
            passed_over.push(PassedOver { name, why });
        }
        archive.passing_over(passed_over)
    }

    /// That there is nothing to be opened, and where something is.
    fn nothing_in(&self, directory: &Path) -> Error {
        const SHOWN: usize = 5;
        let mut message = "no file of a known format is in this directory".to_owned();
        let below = self.models_below(directory);
        let shown: Vec<_> = (below.iter().take(SHOWN))
            .map(|path| path.display().to_string())
            .collect();
        if !shown.is_empty() {
            let more = match below.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            message += &format!("; some are in {}{more}", shown.join(", "));
        }
        Error::new(ErrorKind::Unrecognized, "file.directory", message)
    }
}

/// Where a format comes among others: the place of its entry counts where nothing else does.
fn rank(entry: &Entry, place: usize, count: usize) -> usize {
    let at = |ids: &[&str]| ids.iter().position(|id| *id == entry.spec.id);
    let rank = match (at(&FIRST), at(&LAST)) {
        (Some(first), _) => first,
        (_, Some(last)) => FIRST.len() + count + last,
        _ => FIRST.len() + place,
    };
    // What cannot be read is only opened to say so.
    let unread = FIRST.len() + count + LAST.len();
    if entry.codec.is_some() {
        rank
    } else {
        rank + unread
    }
}

/// What the names of the files begin with that an index of this name is about.
fn index_stem(name: &str) -> &str {
    // The first of several parts may stand for all of them.
    if let Some(shard) = ShardName::parse(name) {
        return shard.stem;
    }
    let name = name.strip_suffix(".index.json").unwrap_or(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Whether it is about a file that another one names.
fn is_in_part(error: &Error) -> bool {
    let range = error.range();
    range.is_some_and(|(source, _)| source != SourceId::MAIN)
}
