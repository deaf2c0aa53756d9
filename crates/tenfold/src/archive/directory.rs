//! A directory that is opened as one archive: which of its files belong together, and which are passed over.
//!
//! Model directories hold more than one model's tensors: the same weights in two formats, the state of an optimizer,
//! configurations. One *set* of files is opened, the first in this order:
//!
//! 1. by format: safetensors, GGUF, every other format in the order of the table, then NumPy, PyTorch, Keras, HDF5,
//!    ONNX, Flax, Paddle, TensorFlow Lite and TensorFlow's checkpoints;
//! 2. of one format, files with an index before files without one; then variants, which are the same weights in another
//!    type (`model.fp16.safetensors`); and last `consolidated.*`, which is how some publish them under other names.
//!
//! A set whose index names missing files makes way for one that is complete. Everything else that holds tensors is
//! passed over, and listed in [`Archive::passed_over`].

use std::path::Path;

use super::beside::{WEIGHTS, has_ending, is_training_state};
use super::merge::{self, Conflicts};
use super::{Archive, OpenOptions, complete};
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::format::{Entry, ShardName};
use crate::io::Siblings;
use crate::model::SourceId;
use crate::prelude::*;

/// Formats that come before the others, and those that come after them.
const FIRST: [&str; 2] = ["safetensors", "gguf"];
const LAST: [&str; 10] = [
    "npy",
    "npz",
    "pytorch",
    "keras",
    "hdf5",
    "onnx",
    "flax",
    "paddle",
    "tflite",
    "tf_checkpoint",
];

/// What diffusers and transformers put between the name of a file and its extension where the same weights are there in
/// several types.
const VARIED: [&str; 2] = ["safetensors", "pytorch"];
const VARIANTS: [&str; 8] = [
    "bf16", "ema", "fp16", "fp32", "fp8", "int8", "non_ema", "non-ema",
];

/// A file of a directory that was not opened, although it holds tensors or might.
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
    /// It is not of the format that its name suggests, or that format is not read.
    Unreadable,
}

/// Files that are opened together.
struct Set {
    rank: (usize, Kind),
    names: Vec<String>,
}

/// Files that lie together, on this machine or elsewhere.
pub(super) struct Directory<'d> {
    files: &'d dyn Siblings,
    /// In order, without those that are hidden.
    names: Vec<String>,
    /// All of them.
    all: Vec<String>,
    /// Where they are, on this machine.
    path: Option<&'d Path>,
}

impl<'d> Directory<'d> {
    pub(super) fn new(files: &'d dyn Siblings) -> Result<Self> {
        let Some(mut names) = files.names()? else {
            let message = "this directory cannot be listed";
            return Err(Error::unsupported("file.directory", message).hinting(Hint::NameFile));
        };
        names.sort();
        let all = names.clone();
        names.retain(|name| !name.starts_with('.'));
        Ok(Self {
            files,
            names,
            all,
            path: None,
        })
    }

    /// One on this machine.
    pub(super) fn at(self, path: &'d Path) -> Self {
        let path = Some(path);
        Self { path, ..self }
    }

    /// Whether it is one on this machine.
    pub(super) fn is_here(&self) -> bool {
        self.path.is_some()
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// With those that are hidden.
    pub(super) fn all_names(&self) -> &[String] {
        &self.all
    }

    pub(super) fn files(&self) -> &'d dyn Siblings {
        self.files
    }

    /// For messages.
    fn shown(&self) -> String {
        if let Some(path) = self.path {
            return path.display().to_string();
        }
        "the directory".to_owned()
    }

    /// An archive that knows the file it was opened by.
    fn opened(&self, archive: Archive, name: &str) -> Archive {
        if let Some(path) = self.path {
            return archive.opened_by(&path.join(name));
        }
        archive
    }

    /// An archive that knows that it was opened by the directory.
    pub(super) fn opened_whole(&self, archive: Archive) -> Archive {
        if let Some(path) = self.path {
            return archive.opened_by(path);
        }
        archive
    }
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Kind {
    /// Each index by itself.
    Index,
    Plain,
    /// Each of [`VARIANTS`] by itself.
    Variant(&'static str),
    Consolidated,
}

impl OpenOptions {
    pub(super) fn open_directory(&self, directory: &Directory<'_>) -> Result<Archive> {
        let mut sets = self.sets(&directory.names);
        sets.sort_by_key(|set| set.rank);
        let mut incomplete: Vec<String> = Vec::new();
        let mut failed = None;
        for set in &sets {
            match self.open_set(directory, set) {
                Ok(Some(archive)) => {
                    return Ok(self.noting(archive, directory, &incomplete));
                }
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::NotFound && self.has_index(set) => {
                    incomplete.extend(set.names.iter().cloned());
                    failed.get_or_insert(error);
                }
                Err(error) => return Err(failed.unwrap_or(error)),
            }
        }
        if failed.is_none()
            && let Some(archive) = self.open_tree(directory)?
        {
            return Ok(archive);
        }
        Err(failed.unwrap_or_else(|| self.nothing_in(directory)))
    }

    /// The sets of files whose names say that they are of a known format.
    fn sets(&self, names: &[String]) -> Vec<Set> {
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
            let is_named = |shard: ShardName<'_>| {
                let mut stems = stems.iter();
                stems.any(|(id, stem)| *id == entry.spec.id && *stem == shard.stem)
            };
            if !is_index && ShardName::parse(name).is_some_and(is_named) {
                continue;
            }
            let kind = if name.starts_with("consolidated") {
                Kind::Consolidated
            } else if let Some(variant) = variant(entry, name) {
                Kind::Variant(variant)
            } else if is_index {
                Kind::Index
            } else {
                Kind::Plain
            };
            let place = entries
                .iter()
                .position(|other| other.spec.id == entry.spec.id);
            let rank = (rank(entry, place.unwrap_or(0), entries.len()), kind);
            let name = name.clone();
            match sets.iter_mut().find(|set| set.rank == rank) {
                None => sets.push(Set {
                    rank,
                    names: vec![name],
                }),
                Some(set) => set.names.push(name),
            }
        }
        sets
    }

    /// What there is among the names of files that lie together, for whoever wants all of it and not one set: each is
    /// opened by its first file, behind which come those that belong to it. Of parts that no index names, none opens the
    /// others.
    #[cfg(feature = "scale")]
    pub(crate) fn models_among(&self, names: &[String]) -> Vec<Vec<String>> {
        let visible = names.iter().filter(|name| !name.starts_with('.'));
        let visible: Vec<String> = visible.cloned().collect();
        let id = |name: &str| self.registry.by_extension(name).map(|entry| entry.spec.id);
        let mut shards: LookupMap<(String, Option<&str>), Vec<String>> = LookupMap::default();
        for name in &visible {
            if let Some(shard) = ShardName::parse(name) {
                let of = (shard.stem.to_owned(), id(name));
                shards.entry(of).or_default().push(name.clone());
            }
        }
        let mut models: Vec<Vec<String>> = Vec::new();
        for name in self.sets(&visible).into_iter().flat_map(|set| set.names) {
            let shard = ShardName::parse(&name).map(|shard| shard.stem.to_owned());
            let stem = match shard {
                _ if self.is_index(&name) => Some(index_stem(&name)),
                stem => stem,
            };
            // Several belong together by their index, or by their numbers: then the first of them stands for all.
            let together = stem.and_then(|stem| shards.remove(&(stem, id(&name))));
            match together {
                Some(mut others) => {
                    others.retain(|other| *other != name);
                    models.push([vec![name], others].concat());
                }
                None if ShardName::parse(&name).is_some() => {}
                None => models.push(vec![name]),
            }
        }
        models.sort();
        models
    }

    /// Opens the files of a set as one; nothing where none of them is what its name says.
    fn open_set(&self, directory: &Directory<'_>, set: &Set) -> Result<Option<Archive>> {
        let indexes: Vec<_> = (set.names.iter())
            .filter(|name| self.is_index(name))
            .collect();
        let names = match *indexes.as_slice() {
            [] => set.names.as_slice(),
            [index] => core::slice::from_ref(index),
            [first, second, ..] => {
                let shown = directory.shown();
                let message = format!("{shown} holds several indexes ({first} and {second})");
                return Err(Error::argument(message).hinting(Hint::NameFile));
            }
        };
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let opened = directory.files.open_all(&all);
        let mut archives: Vec<Archive> = Vec::new();
        for (name, source) in all.into_iter().zip(opened) {
            // Any of the parts of a model opens all of them.
            if archives.iter().any(|archive| archive.has_part(Some(name))) {
                continue;
            }
            let files = Some(directory.files);
            match source.and_then(|source| self.describe(source, Some(name), files)) {
                // A name alone makes no tensor file where others use it too: text files are often something else.
                Err(error) if error.kind() == ErrorKind::Unrecognized && self.is_doubtful(name) => {
                }
                // What names a file already.
                Err(error) if error.is_plain() || is_in_part(&error) => return Err(error),
                Err(error) => return Err(error.in_file(SourceId::MAIN, name)),
                Ok(archive) => archives.push(directory.opened(archive, name)),
            }
        }
        if archives.is_empty() {
            return Ok(None);
        }
        // An index looks after its files.
        if !indexes.is_empty() {
            return Ok(archives.pop());
        }
        let joined = self.join(directory, &archives);
        joined.map(Some).map_err(|error| match error.kind() {
            ErrorKind::Argument if set.rank.1 == Kind::Consolidated => slices(set),
            _ => error,
        })
    }

    pub(crate) fn is_index(&self, name: &str) -> bool {
        (self.registry.by_extension(name)).is_some_and(|entry| entry.is_index(name))
    }

    fn has_index(&self, set: &Set) -> bool {
        set.names.iter().any(|name| self.is_index(name))
    }

    fn join(&self, directory: &Directory<'_>, archives: &[Archive]) -> Result<Archive> {
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
                        let message = format!("{}: {}", directory.shown(), error.message());
                        Error::argument(message).hinting(Hint::NameFile)
                    }
                    _ => error,
                });
                merged?.archive
            }
        };
        let mut findings = joined.findings().iter();
        match findings.find(|finding| complete::is_missing(finding)) {
            Some(missing) if self.how.strict => {
                Err(Error::malformed(complete::MISSING, missing.message.clone()))
            }
            _ => Ok(directory.opened_whole(joined)),
        }
    }

    /// The archive with a list of what else there is.
    fn noting(
        &self,
        archive: Archive,
        directory: &Directory<'_>,
        incomplete: &[String],
    ) -> Archive {
        let mut passed_over = Vec::new();
        for name in &directory.names {
            let is_read = (archive.sources()).any(|(source, _)| source == Some(name.as_str()));
            if is_read {
                continue;
            }
            let is_incomplete = || {
                let shard = ShardName::parse(name).map(|shard| shard.stem);
                let mut indexes = incomplete.iter();
                indexes.any(|index| index == name || Some(&*index_stem(index)) == shard)
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
            } else if self.is_recognized(directory.files, name) {
                PassedOverFor::AnotherSet
            } else if self.is_doubtful(name) && !has_ending(name, &WEIGHTS) {
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
    fn nothing_in(&self, directory: &Directory<'_>) -> Error {
        const SHOWN: usize = 5;
        let mut message = "there are no tensor files in this directory".to_owned();
        if let Some(directory) = directory.path {
            let below = self.models_below(directory);
            let shown: Vec<_> = (below.iter().take(SHOWN))
                .map(|path| path.display().to_string())
                .collect();
            if !shown.is_empty() {
                let more = match below.len().saturating_sub(SHOWN) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                message += &format!("; there are some in {}{more}", shown.join(", "));
            }
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

/// Which of [`VARIANTS`] a file is by its name: `model.fp16.safetensors`, `model.fp16-00001-of-00002.safetensors` and
/// `model.safetensors.index.fp16.json`.
fn variant(entry: &Entry, name: &str) -> Option<&'static str> {
    if !VARIED.contains(&entry.spec.id) {
        return None;
    }
    let (stem, _) = name.rsplit_once('.')?;
    let stem = ShardName::parse(name).map_or(stem, |shard| shard.stem);
    let (_, word) = stem.rsplit_once('.')?;
    VARIANTS.into_iter().find(|variant| *variant == word)
}

/// That files hold slices of the same tensors, as Meta publishes models for several devices.
fn slices(set: &Set) -> Error {
    let message = format!(
        "each of {} holds a slice of the same tensors, for one device of several; no file says along which dimension, so tenfold does not join them",
        set.names.join(", "),
    );
    let error = Error::unsupported("file.slices", message);
    error.hinting(Hint::NameFile)
}

/// What the names of the files begin with that an index of this name is about.
pub(crate) fn index_stem(name: &str) -> String {
    // The first of several parts may stand for all of them.
    if let Some(shard) = ShardName::parse(name) {
        return shard.stem.to_owned();
    }
    let (files, end) = name.rsplit_once(".index.").unwrap_or((name, ""));
    let stem = files.rsplit_once('.').map_or(files, |(stem, _)| stem);
    match end.strip_suffix(".json") {
        Some(variant) => format!("{stem}.{variant}"),
        None => stem.to_owned(),
    }
}

/// Whether it is about a file that another one names.
fn is_in_part(error: &Error) -> bool {
    let range = error.range();
    range.is_some_and(|(source, _)| source != SourceId::MAIN)
}
