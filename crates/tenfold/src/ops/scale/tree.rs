//! Trees of models: the files at and below a directory or under a prefix, and what of them is opened together.

use alloc::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::data::PinnedPart;
use super::state::Site;
use crate::archive::{OpenOptions, is_training_state};
use crate::error::{Error, Result};
use crate::io::{Siblings, Source, Stamp, Tree};
use crate::prelude::*;

/// How deep directories are looked into.
const DEEPEST: usize = 16;
/// What is in the names of what plans leave.
pub(super) const STATE: &str = ".tenfold-";
/// What a directory has that is one model whatever lies below it.
const CONFIG: &str = "config.json";

/// What a tree has and a plan leaves out.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Why.
    pub why: LeftOutFor,
    /// How much of it there is.
    pub count: usize,
    /// The first of it.
    pub first: String,
}

/// Why something of a tree is left out of a plan. Hidden directories are left out without a word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LeftOutFor {
    /// It is a link to a directory, which may lead in circles.
    DirectoryLink,
    /// It is a link to nothing.
    NoTarget,
    /// Its name is not Unicode, so a plan cannot say it.
    NotUnicode,
    /// It lies in more than 16 directories.
    TooDeep,
    /// It is the state of an optimizer or the like.
    TrainingState,
    /// The system does not let it be looked at.
    Unreadable,
}

/// What was left out so far, of each kind the first.
#[derive(Default)]
pub(super) struct LeftOuts(Vec<LeftOut>);

impl LeftOuts {
    fn add(&mut self, why: LeftOutFor, name: impl Into<String>) {
        let first = name.into();
        let more = vec![LeftOut {
            why,
            count: 1,
            first,
        }];
        Self(more).add_to(&mut self.0);
    }

    pub(super) fn add_to(self, all: &mut Vec<LeftOut>) {
        for own in self.0 {
            match all.iter_mut().find(|known| known.why == own.why) {
                Some(known) => known.count += own.count,
                None => all.push(own),
            }
        }
    }
}

/// A file of a tree.
struct Listed {
    /// Below the tree, with slashes.
    name: String,
    stamp: Stamp,
}

/// Every file of a tree or under a prefix, the hidden ones too.
#[derive(Default)]
pub(super) struct Listing {
    /// In the order of their names.
    files: Vec<Listed>,
    pub(super) left_out: LeftOuts,
}

/// What is opened as one.
pub(super) enum Model {
    /// A file, and those that belong to it.
    File {
        directory: String,
        names: Vec<String>,
        /// It names others, and which these are is not known by their names.
        is_index_alone: bool,
    },
    /// A directory, with a slash at its end: one of a configuration, or of parts without an index.
    Directory(String),
    /// A directory that is of a format as a whole.
    Whole(String),
}

impl Model {
    /// The directory that it is in, or that it is, below the tree.
    pub(super) fn directory(&self) -> &str {
        match self {
            Self::File { directory, .. } | Self::Directory(directory) | Self::Whole(directory) => {
                directory
            }
        }
    }

    /// What is opened, below the tree.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File {
                directory, names, ..
            } => format!("{directory}{}", names.first().map_or("", String::as_str)),
            Self::Directory(directory) | Self::Whole(directory) => directory.clone(),
        }
    }

    /// Whether names alone say which files it has.
    pub(super) fn says_its_files(&self) -> bool {
        match self {
            Self::File { is_index_alone, .. } => !is_index_alone,
            Self::Directory(_) => true,
            Self::Whole(_) => false,
        }
    }
}

impl Listing {
    /// Lists a directory or a prefix; `None` where it is neither.
    pub(super) fn of(given: &str, asking: &OpenOptions, site: &Site) -> Result<Option<Self>> {
        #[cfg(feature = "remote")]
        if let Some(url) = site.url(given)? {
            if !url.is_prefix() || url.is_web() {
                return Ok(None);
            }
            let mut listing = Self::default();
            for (name, stamp) in site.remote.list(&url)? {
                let (directory, _) = split(&name);
                if directory.split('/').all(is_looked_into) {
                    listing.add(Listed { name, stamp });
                }
            }
            return Ok(Some(listing));
        }
        let _ = site;
        if !Path::new(given).is_dir() {
            return Ok(None);
        }
        let mut listing = Self::default();
        let mut open = vec![(String::new(), 0)];
        while let Some((below, depth)) = open.pop() {
            let directories = match listing.add_directory(Path::new(given), &below, asking) {
                Ok(directories) => directories,
                // Of one that cannot be listed at all, nothing is known.
                Err(error) if below.is_empty() => return Err(error),
                Err(_) => {
                    listing.left_out.add(LeftOutFor::Unreadable, below);
                    continue;
                }
            };
            for name in directories {
                if depth < DEEPEST {
                    open.push((name, depth + 1));
                } else {
                    listing.left_out.add(LeftOutFor::TooDeep, name);
                }
            }
        }
        listing.files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(listing))
    }

    fn add(&mut self, file: Listed) {
        if is_training_state(split(&file.name).1) {
            self.left_out.add(LeftOutFor::TrainingState, &file.name);
        } else if !file.name.contains(STATE) {
            self.files.push(file);
        }
    }

    /// Adds the files of a directory, and gives the directories in it that may have models.
    fn add_directory(
        &mut self,
        tree: &Path,
        below: &str,
        asking: &OpenOptions,
    ) -> Result<Vec<String>> {
        let path = tree.join(below);
        let fail = |cause| Error::io(format_args!("cannot list {}", path.display()), cause);
        let mut names = Vec::new();
        let mut directories = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let shown = format!("{below}{}", name.to_string_lossy());
                self.left_out.add(LeftOutFor::NotUnicode, shown);
                continue;
            };
            let key = format!("{below}{name}");
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            match std::fs::metadata(entry.path()) {
                Err(_) if name.starts_with('.') => {}
                Err(_) if is_link => self.left_out.add(LeftOutFor::NoTarget, key),
                Err(_) => self.left_out.add(LeftOutFor::Unreadable, key),
                Ok(found) if found.is_dir() && !is_looked_into(name) => {}
                Ok(found) if found.is_dir() && is_link => {
                    self.left_out.add(LeftOutFor::DirectoryLink, key);
                }
                Ok(found) if found.is_dir() => directories.push(format!("{key}/")),
                Ok(found) if found.is_file() => {
                    names.push(name.to_owned());
                    let stamp = Stamp::of_file(&found);
                    self.add(Listed { name: key, stamp });
                }
                // Pipes and the like.
                Ok(_) => {}
            }
        }
        // What lies below are its chunks, and there may be millions.
        if asking.is_whole(&names) {
            directories.clear();
        }
        directories.sort();
        Ok(directories)
    }

    /// What there is to open, in the order of the names: for every directory, what opening it would say of it.
    pub(super) fn models(&self, asking: &OpenOptions) -> Vec<Model> {
        let mut directories: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for file in &self.files {
            let (directory, name) = split(&file.name);
            directories.entry(directory).or_default().push(name.into());
        }
        let mut models = Vec::new();
        // A directory that is opened as it is, with all that lies below.
        let mut inside: Option<&str> = None;
        for directory in self.all_directories() {
            if inside.is_some_and(|inside| directory.starts_with(inside)) {
                continue;
            }
            let names = directories.get(directory).map_or(&[][..], Vec::as_slice);
            let groups = asking.models_among(names);
            if asking.is_whole(names)
                || groups.is_empty() && self.is_whole_by_what_is_below(directory, asking)
            {
                models.push(Model::Whole(directory.to_owned()));
                inside = Some(directory);
            } else if !groups.is_empty() && names.iter().any(|name| name == CONFIG) {
                models.push(Model::Directory(directory.to_owned()));
                inside = Some(directory);
            } else {
                add_groups(directory, groups, asking, &mut models);
            }
        }
        models.sort_by_key(Model::name);
        models
    }

    /// The directories that files are in, and those on the way to them.
    fn all_directories(&self) -> BTreeSet<&str> {
        let mut all = BTreeSet::from([""]);
        for file in &self.files {
            let (mut directory, _) = split(&file.name);
            while all.insert(directory) {
                directory = split(directory.trim_end_matches('/')).0;
            }
        }
        all
    }

    fn below<'l>(&'l self, directory: &str) -> impl Iterator<Item = (&'l str, &'l Listed)> {
        let from = self
            .files
            .partition_point(|file| file.name.as_str() < directory);
        let files = self.files.iter().skip(from);
        files.map_while(move |file| Some((file.name.strip_prefix(directory)?, file)))
    }

    fn is_whole_by_what_is_below(&self, directory: &str, asking: &OpenOptions) -> bool {
        let mut tree = Tree::new(Arc::new(Unopened));
        let mut below = self.below(directory);
        // More than a tree may have is of no format.
        below.all(|(key, file)| tree.push(key, Some(file.stamp.len)).is_ok())
            && asking.is_whole_by_tree(&tree.sorted())
    }

    /// The files of a model, and what they are.
    pub(super) fn parts(&self, model: &Model) -> Vec<PinnedPart> {
        let directory = model.directory();
        let is_own = |name: &str| match model {
            Model::File { names, .. } => names.iter().any(|own| own == name),
            Model::Directory(_) | Model::Whole(_) => true,
        };
        let beside = self
            .below(directory)
            .filter(|(name, _)| !name.contains('/') && is_own(name));
        beside
            .map(|(name, file)| PinnedPart {
                name: Some(name.to_owned()),
                stamp: file.stamp.clone(),
            })
            .collect()
    }
}

/// Adds the models of a directory that are opened by their files.
fn add_groups(
    directory: &str,
    groups: Vec<Vec<String>>,
    asking: &OpenOptions,
    models: &mut Vec<Model>,
) {
    let is_only = groups.len() == 1;
    let file = |names: Vec<String>, is_index_alone| Model::File {
        directory: directory.to_owned(),
        names,
        is_index_alone,
    };
    for names in groups {
        let is_index = names.first().is_some_and(|first| asking.is_index(first));
        if is_index || names.len() == 1 {
            let is_alone = is_index && names.len() == 1;
            models.push(file(names, is_alone));
        } else if is_only {
            models.push(Model::Directory(directory.to_owned()));
        } else {
            let parts = names.into_iter();
            models.extend(parts.map(|name| file(vec![name], false)));
        }
    }
}

/// Whether a directory may have models: not one that is hidden, and no state of a plan.
fn is_looked_into(name: &str) -> bool {
    !name.starts_with('.') && !name.contains(STATE)
}

/// A key as its directory, with a slash at its end, and the name in it.
fn split(key: &str) -> (&str, &str) {
    let at = key.rfind('/').map_or(0, |at| at + 1);
    key.split_at(at)
}

/// Files that are known by their names alone.
struct Unopened;

impl Siblings for Unopened {
    fn names(&self) -> Result<Option<Vec<String>>> {
        Ok(None)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Source>> {
        let message = format!("{name:?} was listed, and is not opened here");
        Err(Error::unsupported("sibling", message))
    }
}
