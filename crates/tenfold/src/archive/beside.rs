//! What lies in directories beside the tensors that are opened, and in those below them.

use std::path::{Path, PathBuf};

use super::OpenOptions;
use super::directory::Directory;
use crate::error::{Error, Result};
use crate::format::ShardName;
use crate::io::{DirectorySiblings, FileSource, Siblings, Source};
use crate::prelude::*;

/// What the names of files begin with in which PyTorch's trainers keep their own state.
const TRAINING: [&str; 8] = [
    "optimizer",
    "optim",
    "scheduler",
    "scaler",
    "rng_state",
    "random_states",
    "training_args",
    "trainer_state",
];

/// The endings of such files.
const PICKLED: [&str; 5] = ["bin", "ckpt", "pkl", "pt", "pth"];

/// Endings of files that hold weights, whether a format here claims them or not.
pub(super) const WEIGHTS: [&str; 11] = [
    "bin",
    "ckpt",
    "msgpack",
    "onnx",
    "onnx_data",
    "ot",
    "pb",
    "pkl",
    "pt",
    "pth",
    "tflite",
];

/// A file without tensors that belongs to a model, such as its configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Companion {
    /// Where it is: a path, or an address.
    pub path: PathBuf,
    /// Its name in the directory.
    pub name: String,
    /// How many bytes it has.
    pub len: u64,
    /// One far away is open since its length is known.
    source: Option<Arc<dyn Source>>,
}

impl Companion {
    /// Opens it, to read its bytes.
    pub fn open(&self) -> Result<Arc<dyn Source>> {
        match &self.source {
            Some(source) => Ok(source.clone()),
            None => Ok(Arc::new(FileSource::open(&self.path)?)),
        }
    }
}

impl OpenOptions {
    /// The files of a directory that hold no tensors but belong to the model beside them: configurations, a tokenizer,
    /// a licence. Sorted by name, without hidden files, directories and indexes.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path();
    /// # std::fs::write(path.join("config.json"), "{}")?;
    /// # std::fs::write(path.join("optimizer.pt"), "...")?;
    /// let companions = tenfold::OpenOptions::new().companions(path)?;
    /// let names: Vec<_> = companions.iter().map(|companion| companion.name.as_str()).collect();
    /// assert_eq!(names, ["config.json"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn companions(&self, directory: impl AsRef<Path>) -> Result<Vec<Companion>> {
        let directory = directory.as_ref();
        let files = DirectorySiblings::inside(directory, self.access);
        let mut companions = Vec::new();
        for name in self.names_of_companions(&files)? {
            let path = directory.join(&name);
            let fail = |cause| Error::io(format_args!("cannot open {}", path.display()), cause);
            let len = std::fs::metadata(&path).map_err(fail)?.len();
            let source = None;
            companions.push(Companion {
                path,
                name,
                len,
                source,
            });
        }
        Ok(companions)
    }

    /// The same for the files under the prefix of a URL. All of them are opened at once.
    ///
    /// ```no_run
    /// use tenfold::{OpenOptions, io::RemoteUrl};
    /// let companions = OpenOptions::new().remote_companions(&RemoteUrl::parse("hf://org/model")?)?;
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    #[cfg(feature = "remote")]
    pub fn remote_companions(&self, url: &crate::io::RemoteUrl) -> Result<Vec<Companion>> {
        let files = self.remote.beside(url);
        let names = self.names_of_companions(&files)?;
        let asked: Vec<&str> = names.iter().map(String::as_str).collect();
        let opened = files.open_all(&asked);
        let companions = names.into_iter().zip(opened).map(|(name, source)| {
            let source = source?;
            Ok(Companion {
                path: url.beside(&name).to_string().into(),
                name,
                len: source.len(),
                source: Some(source),
            })
        });
        companions.collect()
    }

    fn names_of_companions(&self, files: &dyn Siblings) -> Result<Vec<String>> {
        let directory = Directory::new(files)?;
        let names = directory.names().iter().filter(|name| {
            let is_known = self.registry.by_extension(name).is_some();
            let is_recognized = || self.is_recognized(files, name);
            let is_tensors = is_known && (!self.is_doubtful(name) || is_recognized());
            // An index says which file a tensor is in, and there will be other files.
            let is_weights = has_ending(name, &WEIGHTS) || is_bundle_data(name);
            !is_tensors && !is_weights && !name.ends_with(".index.json")
        });
        Ok(names.cloned().collect())
    }

    /// The directories at or below this one that hold files named like tensor files, sorted by path. Follows no links
    /// and opens nothing.
    ///
    /// ```no_run
    /// for checkpoint in tenfold::OpenOptions::new().models_below("runs") {
    ///     println!("{}", checkpoint.display());
    /// }
    /// ```
    pub fn models_below(&self, directory: impl AsRef<Path>) -> Vec<PathBuf> {
        const DEEPEST: usize = 16;
        let mut found = Vec::new();
        let mut open = vec![(directory.as_ref().to_owned(), 0)];
        while let Some((directory, depth)) = open.pop() {
            // What cannot be listed holds nothing that could be opened.
            let Ok(entries) = std::fs::read_dir(&directory) else {
                continue;
            };
            let mut is_model = false;
            for entry in entries.flatten() {
                let path = entry.path();
                let Some(name) = file_name(&path).filter(|name| !name.starts_with('.')) else {
                    continue;
                };
                let kind = entry.file_type();
                if kind.as_ref().is_ok_and(std::fs::FileType::is_dir) {
                    if depth < DEEPEST {
                        open.push((path, depth + 1));
                    }
                } else if self.registry.by_extension(name).is_some() && !is_training_state(name) {
                    is_model |= !self.is_doubtful(name) || {
                        let files = DirectorySiblings::inside(&directory, self.access);
                        self.is_recognized(&files, name)
                    };
                }
            }
            if is_model {
                found.push(directory);
            }
        }
        found.sort();
        found
    }

    /// Whether the content of a file is that of a known format.
    pub(super) fn is_recognized(&self, files: &dyn Siblings, name: &str) -> bool {
        let source = files.open(name);
        source.is_ok_and(|source| self.registry.detect(&*source, Some(name)).is_ok())
    }

    /// Whether files with this name may well be something else: the format has no magic, or shares the ending with others.
    pub(super) fn is_doubtful(&self, name: &str) -> bool {
        let entry = self.registry.by_extension(name);
        entry.is_some_and(|entry| entry.spec.magic.is_empty()) || has_ending(name, &PICKLED)
    }
}

/// Whether it is a file of data beside an index of TensorFlow: `model.ckpt.data-00000-of-00001`.
fn is_bundle_data(name: &str) -> bool {
    ShardName::in_stem(name).is_some_and(|shard| shard.stem.ends_with(".data"))
}

pub(crate) fn is_training_state(name: &str) -> bool {
    let is_state = TRAINING.iter().any(|known| name.starts_with(known));
    has_ending(name, &PICKLED) && (is_state || name.contains("optim_states"))
}

pub(super) fn has_ending(name: &str, endings: &[&str]) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| {
        endings
            .iter()
            .any(|known| known.eq_ignore_ascii_case(ending))
    })
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}
