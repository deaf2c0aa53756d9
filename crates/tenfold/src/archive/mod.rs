//! What users hold: a described file with its bytes.

#[cfg(feature = "ndarray")]
mod array;
#[cfg(feature = "std")]
mod beside;
mod builder;
pub(crate) mod complete;
#[cfg(feature = "std")]
mod directory;
mod many;
#[cfg(feature = "mmap")]
mod mapped;
pub(crate) mod merge;
mod names;
mod open;
mod sliced;
mod tensor;
mod values;

use alloc::borrow::Cow;
use core::fmt;
#[cfg(feature = "std")]
use std::path::{Path, PathBuf};

use bytes::Bytes;

#[cfg(feature = "std")]
pub use beside::Companion;
#[cfg(feature = "scale")]
pub(crate) use beside::is_training_state;
pub use builder::{ArchiveBuilder, Pushed};
#[cfg(feature = "scale")]
pub(crate) use directory::index_stem;
#[cfg(feature = "std")]
pub use directory::{PassedOver, PassedOverFor};
pub use many::Reading;
pub use open::OpenOptions;
pub use sliced::{Component, Sliced};
pub use tensor::{InPlace, Tensor};
pub use values::Values;

use crate::error::{Error, Result};
use crate::format::{Finding, Spec};
use crate::io::{Limits, Source, Tree};
use crate::model::{
    Elsewhere, List, Manifest, Metadata, Payload, Quoted, SourceId, TensorInfo, Value,
};
use crate::prelude::*;
use crate::threads::Control;
use crate::transform::{Data, Parked};

use names::NameIndex;

/// An open tensor file: what it holds, and access to its data. Cheap to clone, usable from many threads, without a
/// lifetime.
///
/// ```no_run
/// let archive = tenfold::Archive::open("model.mag")?;
/// for tensor in archive.tensors() {
///     println!("{} {} {:?}", tensor.name(), tensor.info().dtype, tensor.info().shape);
/// }
/// let weight = archive.tensor("layer.0.weight")?.typed::<f32>()?;
/// println!("{}", weight.iter().sum::<f32>());
/// # Ok::<(), tenfold::Error>(())
/// ```
#[derive(Clone)]
pub struct Archive {
    inner: Arc<Inner>,
    /// How many threads work on one large tensor; 0 is one for every core.
    threads: usize,
    /// Who may stop an operation while it reads.
    control: Option<Arc<Control>>,
}

struct Inner {
    spec: Option<&'static Spec>,
    manifest: Manifest,
    sources: Vec<Arc<dyn Source>>,
    /// How many reads at once they answer sooner than one after the other, if any of them does.
    waiting: Option<usize>,
    names: Vec<Option<String>>,
    /// All files of archives that are directories, of which only some are open.
    trees: Vec<Arc<Tree>>,
    findings: Vec<Finding>,
    limits: Limits,
    /// Decoders in the middle of its compressed streams.
    parked: Parked,
    /// The files that others were opened by, of an archive that was joined from them.
    counted: Vec<String>,
    /// What it was opened by.
    #[cfg(feature = "std")]
    path: Option<PathBuf>,
    /// What the file said when it was opened, where something else is said of it now.
    #[cfg(feature = "std")]
    as_read: Option<Arc<Inner>>,
    /// What else is in the directory that it was opened by.
    #[cfg(feature = "std")]
    passed_over: Vec<PassedOver>,
    /// The files that lie beside it, to be looked at when they are needed.
    #[cfg(feature = "std")]
    beside: Option<Arc<dyn crate::io::Siblings>>,
    by_name: NameIndex,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive")
            .field("format", &self.inner.spec.map(|spec| spec.id))
            .field("version", &self.version())
            .field("tensors", &self.inner.manifest.tensors.len())
            .finish_non_exhaustive()
    }
}

impl Archive {
    /// Opens a file with the default [`OpenOptions`].
    #[cfg(feature = "std")]
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Opens the file at a URL with the default [`OpenOptions`]; see [`OpenOptions::open_url`].
    #[cfg(feature = "remote")]
    pub fn open_url(url: &str) -> Result<Self> {
        OpenOptions::new().open_url(url)
    }

    /// Opens a file that is in memory.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        OpenOptions::new().read(Arc::new(bytes.into()), None)
    }

    /// Collects tensors that are not in a file yet, to be written to one.
    ///
    /// ```
    /// let mut b = tenfold::Archive::builder();
    /// b.tensor("bias", [3], [1f32, 2.0, 3.0])?;
    /// b.meta("epoch", 3);
    /// assert_eq!(&b.finish().tensor("bias")?.typed::<f32>()?[..], [1.0, 2.0, 3.0]);
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn builder() -> ArchiveBuilder {
        ArchiveBuilder::new()
    }

    pub(crate) fn assemble(
        spec: Option<&'static Spec>,
        manifest: Manifest,
        sources: Vec<Arc<dyn Source>>,
        names: Vec<Option<String>>,
        findings: Vec<Finding>,
        limits: Limits,
    ) -> Self {
        let by_name = NameIndex::new(&manifest.tensors);
        let waiting = sources.iter().filter_map(|source| source.concurrency());
        let inner = Inner {
            spec,
            manifest,
            waiting: waiting.max(),
            sources,
            names,
            trees: Vec::new(),
            findings,
            limits,
            parked: Parked::default(),
            counted: Vec::new(),
            #[cfg(feature = "std")]
            path: None,
            #[cfg(feature = "std")]
            as_read: None,
            #[cfg(feature = "std")]
            passed_over: Vec::new(),
            #[cfg(feature = "std")]
            beside: None,
            by_name,
        };
        Self {
            inner: Arc::new(inner),
            threads: 0,
            control: None,
        }
    }

    /// The format; `None` if the tensors are not in a file yet.
    pub fn format(&self) -> Option<&'static Spec> {
        self.inner.spec
    }

    /// The version of the format.
    pub fn version(&self) -> &str {
        &self.inner.manifest.version
    }

    /// The length of the file that was opened, in bytes; 0 if the tensors are not in a file yet.
    pub fn len_bytes(&self) -> u64 {
        let main = self
            .inner
            .sources
            .first()
            .filter(|_| self.inner.spec.is_some());
        main.map_or(0, |source| source.len())
    }

    /// The whole description.
    pub fn manifest(&self) -> &Manifest {
        &self.inner.manifest
    }

    /// What the files said when they were opened.
    #[cfg(feature = "std")]
    pub(crate) fn manifest_as_read(&self) -> &Manifest {
        let before = self.inner.as_read.as_ref().unwrap_or(&self.inner);
        &before.manifest
    }

    /// The file's metadata.
    pub fn metadata(&self) -> &Metadata {
        &self.inner.manifest.metadata
    }

    /// The file's metadata, with the long lists that were not loaded when it was opened.
    pub fn load_metadata(&self) -> Result<Cow<'_, Metadata>> {
        let is_elsewhere = |(_, value): (&str, &Value)| matches!(value, Value::Elsewhere(_));
        if !self.metadata().iter().any(is_elsewhere) {
            return Ok(Cow::Borrowed(self.metadata()));
        }
        let load = |value: &Value| match value {
            Value::Elsewhere(list) => {
                let payload = Payload::Raw {
                    source: list.source,
                    range: list.range.clone(),
                };
                let len = list.range.end.saturating_sub(list.range.start);
                let bytes = self.data().input(&payload)?.read(0, len)?;
                Ok(Value::List(list.loader.load(list, &bytes)?))
            }
            value => Ok(value.clone()),
        };
        self.metadata()
            .try_map(load)
            .map(Cow::Owned)
            .map_err(|error| match self.inner.spec {
                Some(spec) => error.in_format(spec.id),
                None => error,
            })
    }

    /// The first entries of a long list, as many as a few KiB of it hold.
    pub fn load_first(&self, list: &Elsewhere, entries: usize) -> Result<List> {
        const ENOUGH: u64 = 4096;
        let payload = Payload::Raw {
            source: list.source,
            range: list.range.clone(),
        };
        let len = list.range.end.saturating_sub(list.range.start);
        let bytes = self.data().input(&payload)?.read(0, len.min(ENOUGH))?;
        let mut first = list.clone();
        first.count = list.count.min(entries as u64);
        list.loader.load(&first, &bytes)
    }

    /// The archive with its long lists loaded.
    pub(crate) fn loaded(&self) -> Result<Self> {
        let Cow::Owned(metadata) = self.load_metadata()? else {
            return Ok(self.clone());
        };
        let mut manifest = self.inner.manifest.clone();
        manifest.metadata = metadata;
        Ok(self.with_manifest(manifest))
    }

    /// The tensors in file order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> {
        self.inner.manifest.tensors.iter().map(|info| Tensor {
            archive: self,
            info,
        })
    }

    /// The tensor at a place in file order, if there is one.
    pub fn tensor_at(&self, place: usize) -> Option<Tensor<'_>> {
        let info = self.inner.manifest.tensors.get(place)?;
        Some(Tensor {
            archive: self,
            info,
        })
    }

    /// The place of the tensor with this name, if there is one.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.inner.by_name.find(&self.inner.manifest.tensors, name)
    }

    /// The tensor with this name, if there is one.
    pub fn get(&self, name: &str) -> Option<Tensor<'_>> {
        self.tensor_at(self.index_of(name)?)
    }

    /// The tensor with this name; an error that names it if there is none.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>> {
        self.get(name).ok_or_else(|| {
            Error::new(
                crate::ErrorKind::NotFound,
                "tensor",
                format!("there is no tensor {}", Quoted(name)),
            )
        })
    }

    /// What was noticed when the file was opened.
    pub fn findings(&self) -> &[Finding] {
        &self.inner.findings
    }

    /// One of the files that the archive consists of.
    pub fn source(&self, id: SourceId) -> Option<&Arc<dyn Source>> {
        self.inner.sources.get(id.index())
    }

    /// The name of one of the files, without its directory.
    pub fn source_name(&self, id: SourceId) -> Option<&str> {
        self.inner.names.get(id.index())?.as_deref()
    }

    /// The files that it consists of, with their names where these are known. The one that was opened comes first.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = (Option<&str>, &Arc<dyn Source>)> {
        let names = self.inner.names.iter().map(Option::as_deref);
        names.zip(&self.inner.sources)
    }

    /// The path that it was opened from, if there is one.
    #[cfg(feature = "std")]
    pub fn path(&self) -> Option<&Path> {
        self.inner.path.as_deref()
    }

    /// The limits that it was opened with.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// How many threads are worth their while where answers of its files come late.
    pub(crate) fn waiting(&self) -> Option<usize> {
        self.inner.waiting
    }

    /// How many threads do what is done with it; 0 is one for every core.
    pub(crate) fn threads_for(&self, asked: usize) -> usize {
        match asked {
            0 => self.waiting().unwrap_or(0),
            asked => asked,
        }
    }

    /// The same, with at most so many threads that make one large tensor in memory: operations have options for that.
    pub(crate) fn with_threads(&self, threads: usize) -> Self {
        Self {
            threads,
            ..self.clone()
        }
    }

    /// The same archive, for work that can be stopped: once the control is canceled, reading its tensors fails with an
    /// error of kind [`Canceled`](crate::ErrorKind::Canceled).
    #[must_use]
    pub fn watched(&self, control: &Arc<Control>) -> Self {
        Self {
            control: Some(control.clone()),
            ..self.clone()
        }
    }

    /// The same for users, who read it when the operation is over.
    pub(crate) fn unwatched(self) -> Self {
        Self {
            control: None,
            ..self
        }
    }

    /// The tensors for which `keep` is true, with the same metadata.
    #[must_use]
    pub fn select(&self, keep: impl Fn(&TensorInfo) -> bool) -> Self {
        let tensors = &self.inner.manifest.tensors;
        let kept: Vec<_> = tensors.iter().filter(|tensor| keep(tensor)).collect();
        if kept.len() == tensors.len() {
            return self.clone();
        }
        let mut manifest = self.inner.manifest.clone();
        manifest.tensors = kept.into_iter().cloned().collect();
        self.with_manifest(manifest)
    }

    /// The same with some tensors described in another way: those for which `change` gives a description.
    pub(crate) fn try_change(
        &self,
        change: impl Fn(&TensorInfo) -> Result<Option<TensorInfo>>,
    ) -> Result<Self> {
        let mut changes = Vec::new();
        for (place, tensor) in self.inner.manifest.tensors.iter().enumerate() {
            changes.extend(change(tensor)?.map(|changed| (place, changed)));
        }
        if changes.is_empty() {
            return Ok(self.clone());
        }
        let mut manifest = self.inner.manifest.clone();
        let tensors = &mut *manifest.tensors;
        for (place, changed) in changes {
            if let Some(tensor) = tensors.get_mut(place) {
                *tensor = changed;
            }
        }
        Ok(self.with_manifest(manifest))
    }

    /// The same files under another description of them.
    pub(crate) fn with_manifest(&self, manifest: Manifest) -> Self {
        let Inner {
            spec,
            sources,
            names,
            findings,
            limits,
            counted,
            ..
        } = &*self.inner;
        let (sources, names) = (sources.clone(), names.clone());
        let changed = Self::assemble(*spec, manifest, sources, names, findings.clone(), *limits)
            .changed(|inner| {
                inner.counted.clone_from(counted);
                inner.trees.clone_from(&self.inner.trees);
                #[cfg(feature = "std")]
                {
                    inner.path.clone_from(&self.inner.path);
                    // Only single files are edited where they are.
                    if self.inner.path.is_some() && self.inner.sources.len() == 1 {
                        let before = self.inner.as_read.as_ref().unwrap_or(&self.inner);
                        inner.as_read = Some(before.clone());
                    }
                    inner.passed_over.clone_from(&self.inner.passed_over);
                    inner.beside.clone_from(&self.inner.beside);
                }
            });
        Self {
            inner: changed.inner,
            ..self.clone()
        }
    }

    /// One that nobody else holds yet, with something else about it.
    fn changed(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            change(inner);
        }
        self
    }

    /// The same, opened by this path.
    #[cfg(feature = "std")]
    fn opened_by(self, path: &Path) -> Self {
        self.changed(|inner| inner.path = Some(path.to_owned()))
    }

    /// The same, with all files of the directory that it is.
    fn consisting_of(self, tree: Option<Arc<Tree>>) -> Self {
        match tree {
            Some(tree) => self.changed(|inner| inner.trees.push(tree)),
            None => self,
        }
    }

    /// The same, with the files beside it.
    #[cfg(feature = "std")]
    fn lying_beside(self, siblings: Option<&dyn crate::io::Siblings>) -> Self {
        match siblings.and_then(crate::io::Siblings::shared) {
            Some(beside) => self.changed(|inner| inner.beside = Some(beside)),
            None => self,
        }
    }

    /// Files that lie beside it, as far as they are there; an error where the first cannot be read.
    #[cfg(feature = "std")]
    pub(crate) fn files_beside(
        &self,
        names: &[&'static str],
        longest: u64,
    ) -> Result<Vec<(&'static str, Bytes)>> {
        let Some(beside) = &self.inner.beside else {
            return Ok(Vec::new());
        };
        let mut files = Vec::new();
        for (place, (name, opened)) in names.iter().zip(beside.open_all(names)).enumerate() {
            let read = opened.and_then(|source| {
                if source.len() > longest {
                    let message =
                        format!("{name} has {} bytes, the limit is {longest}", source.len());
                    return Err(Error::limit("file.config", message));
                }
                source.read(0..source.len())
            });
            match read {
                Ok(bytes) => files.push((*name, bytes)),
                Err(error) if error.kind() == crate::ErrorKind::NotFound || place > 0 => {}
                Err(error) => return Err(error.adding(&format!("in {name}"))),
            }
        }
        Ok(files)
    }

    /// The files of the opened directory that hold tensors, or might, but were not opened.
    #[cfg(feature = "std")]
    pub fn passed_over(&self) -> &[PassedOver] {
        &self.inner.passed_over
    }

    /// The same, with what else is in the directory.
    #[cfg(feature = "std")]
    fn passing_over(self, passed_over: Vec<PassedOver>) -> Self {
        if passed_over.is_empty() {
            return self;
        }
        self.changed(|inner| inner.passed_over = passed_over)
    }

    /// What it was opened by, for messages.
    pub(crate) fn opened(&self) -> Option<String> {
        #[cfg(feature = "std")]
        return self.path().map(|path| path.display().to_string());
        #[cfg(not(feature = "std"))]
        None
    }

    /// The same with more that was noticed.
    #[cfg(feature = "std")]
    fn adding_findings(&self, findings: Vec<Finding>) -> Self {
        let changed = self.with_manifest(self.inner.manifest.clone());
        changed.changed(|inner| {
            inner.findings.extend(findings);
            inner.as_read.clone_from(&self.inner.as_read);
        })
    }

    /// The names of its files that count themselves and that nobody else looks after.
    pub(crate) fn counted(&self) -> Vec<&str> {
        if self.inner.counted.is_empty() {
            complete::own(&self.inner.names)
        } else {
            self.inner.counted.iter().map(String::as_str).collect()
        }
    }

    /// Whether it consists of several files, and one of them has this name.
    #[cfg(feature = "std")]
    fn has_part(&self, name: Option<&str>) -> bool {
        let mut names = self.inner.names.iter();
        self.inner.names.len() > 1 && name.is_some() && names.any(|known| known.as_deref() == name)
    }

    /// The length of all its files together, in bytes. Those of a directory that were only listed are looked at now.
    pub fn stored_bytes(&self) -> u64 {
        let trees = self.inner.trees.iter().map(|tree| tree.bytes());
        let opened = self.unlisted().map(|source| source.len());
        trees.chain(opened).fold(0, u64::saturating_add)
    }

    /// How many files it consists of: those that are [open](Self::sources), and those of a directory that are opened when
    /// they are needed.
    pub fn file_count(&self) -> usize {
        let trees = self.inner.trees.iter().map(|tree| tree.len());
        trees.sum::<usize>() + self.unlisted().count()
    }

    /// The open files that are in no directory which was listed.
    fn unlisted(&self) -> impl Iterator<Item = &Arc<dyn Source>> {
        let is_listed = |name: &str| {
            let mut trees = self.inner.trees.iter();
            trees.any(|tree| tree.has(name))
        };
        self.sources()
            .filter(move |(name, _)| !name.is_some_and(is_listed))
            .map(|(_, source)| source)
    }

    /// How many files it has open.
    pub(crate) fn source_count(&self) -> u32 {
        u32::try_from(self.inner.sources.len()).unwrap_or(u32::MAX)
    }

    /// The files of several archives under one description of them.
    pub(crate) fn joined(archives: &[Self], manifest: Manifest) -> Self {
        let inner = || archives.iter().map(|archive| &*archive.inner);
        let mut specs = inner().map(|inner| inner.spec);
        let first = specs.next().flatten();
        let same = specs.all(|spec| spec.map(|spec| spec.id) == first.map(|spec| spec.id));
        let sources = inner()
            .flat_map(|inner| inner.sources.iter().cloned())
            .collect();
        let names = inner()
            .flat_map(|inner| inner.names.iter().cloned())
            .collect();
        let mut findings = Vec::new();
        let mut before = 0;
        for archive in archives {
            // What is missing of one of them may be among the others.
            let kept = archive.findings().iter();
            let kept = kept.filter(|finding| !complete::is_missing(finding));
            findings.extend(kept.cloned().map(|mut finding| {
                if let Some((source, _)) = &mut finding.at {
                    source.0 += before;
                }
                finding
            }));
            before += archive.source_count();
        }
        findings.extend(complete::findings(archives));
        let counted = archives.iter().flat_map(Self::counted);
        let counted = counted.map(ToOwned::to_owned).collect();
        let limits = inner().next().map(|inner| inner.limits).unwrap_or_default();
        Self::assemble(
            first.filter(|_| same),
            manifest,
            sources,
            names,
            findings,
            limits,
        )
        .changed(|inner| {
            inner.counted = counted;
            let trees = archives.iter().flat_map(|archive| &archive.inner.trees);
            inner.trees = trees.cloned().collect();
            #[cfg(feature = "std")]
            if let Some(first) = archives.first() {
                inner.beside.clone_from(&first.inner.beside);
            }
        })
        .with_threads(archives.first().map_or(0, |archive| archive.threads))
    }

    pub(crate) fn data(&self) -> Data<'_> {
        Data {
            control: self.control.as_deref(),
            parked: Some(&self.inner.parked),
            threads: self.threads_for(self.threads),
            ..Data::new(&self.inner.sources, &self.inner.limits)
        }
    }
}
