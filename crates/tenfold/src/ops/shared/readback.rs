//! A look at what was written, before it is made visible.

use crate::archive::{Archive, OpenOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Format, Registry};
use crate::io::{Siblings, Source, Tree};
use crate::model::TensorInfo;
#[cfg(feature = "digest")]
use crate::ops::digest::{digest_watched, hashed_len};
use crate::prelude::*;
use crate::threads::Work;

/// Files that are opened as one, and the places of the expected tensors that they must show.
pub(in crate::ops) struct Opened {
    /// Their names, first that of the one that leads to the others.
    pub(in crate::ops) files: Vec<String>,
    pub(in crate::ops) places: Vec<usize>,
}

/// What was written is what should have been.
pub(in crate::ops) struct Compared {
    /// The digest of the content, where that was compared.
    pub(in crate::ops) content: Option<[u8; 32]>,
}

/// Reads a file that was written, by its name; `None` where it cannot be read.
pub(in crate::ops) type ReadWritten<'r> = dyn Fn(&str) -> Result<Option<Arc<dyn Source>>> + 'r;

/// What was to be written, and how closely it is compared.
pub(in crate::ops) struct Readback<'r> {
    pub(in crate::ops) format: &'static dyn Format,
    pub(in crate::ops) registry: &'r Registry,
    pub(in crate::ops) expected: &'r [TensorInfo],
    pub(in crate::ops) original: &'r Archive,
    /// Whether contents are compared too, not only names, types, shapes and lengths.
    pub(in crate::ops) digests: bool,
    pub(in crate::ops) work: &'r Work,
}

impl Readback<'_> {
    /// The bytes that will be hashed: those that were to be written, and those that were.
    pub(in crate::ops) fn len(&self) -> u64 {
        #[cfg(feature = "digest")]
        if self.digests {
            let hashed = self.expected.iter().map(hashed_len);
            return hashed.fold(0, u64::saturating_add).saturating_mul(2);
        }
        0
    }

    /// Opens what was written, which `read` gives by the names of files, and compares it with what should have been. Only
    /// what belongs together is open at once: there may be more files than a process may open. Those of a tree are opened by
    /// `tree`, where there is one. `None` where nothing can be read.
    pub(in crate::ops) fn compare(
        &self,
        read: &ReadWritten<'_>,
        tree: Option<Arc<dyn Siblings>>,
        opened: &[Opened],
    ) -> Result<Option<Compared>> {
        #[cfg(feature = "digest")]
        let mut before = None;
        for Opened {
            files: names,
            places,
        } in opened
        {
            let of_tree = (tree.as_deref()).filter(|_| names.iter().any(|name| name.contains('/')));
            let archive = if let Some(tree) = of_tree {
                self.open(tree, names)?
            } else if let Some(written) = WrittenFiles::open(read, names)? {
                self.open(&written, names)?
            } else {
                // A stream cannot be read back.
                return Ok(None);
            };
            let expected: Vec<_> = places
                .iter()
                .filter_map(|&place| self.expected.get(place))
                .collect();
            self.compare_tensors(&archive, &expected)?;
            #[cfg(feature = "digest")]
            if self.digests {
                let digests = match before.take() {
                    Some(digests) => digests,
                    None => self.digest_original()?,
                };
                self.compare_digests(&archive, &expected, &digests.by_name)?;
                before = Some(digests);
            }
        }
        #[cfg(feature = "digest")]
        if self.digests {
            let content = match before {
                Some(digests) => digests.content,
                None => self.digest_original()?.content,
            };
            return Ok(Some(Compared { content }));
        }
        Ok(Some(Compared { content: None }))
    }

    fn open(&self, written: &dyn Siblings, names: &[String]) -> Result<Archive> {
        let id = self.format.spec().id;
        let registry = match self.registry.get(id) {
            Ok(_) => self.registry.clone(),
            Err(_) => self.registry.clone().with(self.format),
        };
        let main = names.first().map(String::as_str).unwrap_or_default();
        OpenOptions::new()
            .registry(registry)
            .format(Some(id))
            .limits(*self.original.limits())
            .read_beside(written.open(main)?, Some(main), written)
    }

    fn compare_tensors(&self, written: &Archive, expected: &[&TensorInfo]) -> Result<()> {
        let found = written.manifest().tensors.len();
        if found != expected.len() {
            return Err(failed(format!(
                "{found} tensors instead of {}",
                expected.len()
            )));
        }
        for (place, wanted) in expected.iter().enumerate() {
            let found = counterpart(written, place, wanted)
                .ok_or_else(|| failed(format!("tensor {:?} is missing", wanted.name)))?;
            if let Some(defect) = &found.defect {
                return Err(failed(format!("tensor {:?}: {defect}", wanted.name)));
            }
            let same_type = found.dtype == wanted.dtype && found.shape == wanted.shape;
            let same_parts = found.parts.len() == wanted.parts.len()
                && found
                    .parts
                    .iter()
                    .all(|part| wanted.part(&part.role).is_some());
            if !same_type || !same_parts || found.dense_len() != wanted.dense_len() {
                return Err(failed(format!(
                    "tensor {:?} is {} {:?} instead of {} {:?}",
                    wanted.name, found.dtype, found.shape, wanted.dtype, wanted.shape
                )));
            }
        }
        Ok(())
    }

    /// The digests of the tensors that were to be written, as they were before.
    #[cfg(feature = "digest")]
    fn digest_original(&self) -> Result<Original> {
        let mut names: LookupMap<&str, ()> = LookupMap::default();
        names.extend((self.expected.iter()).map(|tensor| (tensor.name.as_str(), ())));
        let original = self
            .original
            .select(|tensor| names.contains_key(tensor.name.as_str()));
        let digests = digest_watched(&original, self.work)?;
        Ok(Original {
            content: digests.content,
            by_name: digests.tensors.into_iter().collect(),
        })
    }

    #[cfg(feature = "digest")]
    fn compare_digests(
        &self,
        written: &Archive,
        expected: &[&TensorInfo],
        before: &Sums,
    ) -> Result<()> {
        let after: Sums = digest_watched(written, self.work)?
            .tensors
            .into_iter()
            .collect();
        for (place, wanted) in expected.iter().enumerate() {
            let name = &wanted.name;
            let found =
                counterpart(written, place, wanted).and_then(|found| after.get(&found.name));
            match (found, before.get(name)) {
                (Some(Ok(found)), Some(Ok(sum))) if found == sum => {}
                (Some(Err(error)), _) | (_, Some(Err(error))) => return Err(error.clone()),
                _ => return Err(failed(format!("the content of tensor {name:?} differs"))),
            }
        }
        Ok(())
    }
}

/// SHA-256 of tensors by their names.
#[cfg(feature = "digest")]
type Sums = LookupMap<String, Result<[u8; 32]>>;

/// What was to be written, hashed.
#[cfg(feature = "digest")]
struct Original {
    content: Option<[u8; 32]>,
    by_name: Sums,
}

/// The tensor that was written for one that was wanted. Those that are named by their file are known by their place.
fn counterpart<'a>(
    written: &'a Archive,
    place: usize,
    wanted: &TensorInfo,
) -> Option<&'a TensorInfo> {
    match written.manifest().tensors.get(place) {
        Some(found) if found.is_unnamed() => Some(found),
        _ => written.get(&wanted.name).map(|found| found.info()),
    }
}

fn failed(message: String) -> Error {
    Error::mismatch(
        "readback",
        format!("the output does not read back: {message}"),
    )
}

/// The files of an output that is not visible yet, as siblings of each other.
#[derive(Clone)]
struct WrittenFiles(Vec<(String, Arc<dyn Source>)>);

impl WrittenFiles {
    /// Opens files; `None` where they cannot be read back.
    fn open(read: &ReadWritten<'_>, names: &[String]) -> Result<Option<Self>> {
        let mut files = Vec::new();
        for name in names {
            let Some(source) = read(name)? else {
                return Ok(None);
            };
            files.push((name.clone(), source));
        }
        Ok(Some(Self(files)))
    }
}

impl Siblings for WrittenFiles {
    fn names(&self) -> Result<Option<Vec<String>>> {
        let names = self.0.iter().map(|(name, _)| name.clone());
        Ok(Some(names.collect()))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Source>> {
        let found = self.0.iter().find(|(known, _)| known == name);
        let found = found.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                "sibling",
                format!("there is no {name:?}"),
            )
        })?;
        Ok(found.1.clone())
    }

    fn open_below(&self, path: &[&str]) -> Result<Arc<dyn Source>> {
        self.open(&path.join("/"))
    }

    fn tree(&self) -> Result<Option<Tree>> {
        let mut tree = Tree::new(Arc::new(self.clone()));
        for (name, source) in &self.0 {
            tree.push(name, Some(source.len()))?;
        }
        Ok(Some(tree.sorted()))
    }
}
