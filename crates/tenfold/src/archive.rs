//! What users hold: a described file with its bytes.

use core::hash::BuildHasher;
#[cfg(feature = "std")]
use std::path::Path;

use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::error::{Error, Result};
use crate::format::{Context, Finding, Form, Registry, Spec, Want};
use crate::io::{Limits, Siblings, Source};
use crate::model::{DType, Manifest, Metadata, Payload, Slice, SourceId, TensorInfo, Value};
use crate::prelude::*;
use crate::sliced::Sliced;
use crate::transform::{Data, Random, View};
use crate::typed::{Element, Typed};

/// How files are opened.
///
/// ```no_run
/// use tenfold::OpenOptions;
/// let archive = OpenOptions::new().mmap(false).strict(true).open("model.zt")?;
/// # Ok::<(), tenfold::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct OpenOptions {
    registry: Registry,
    format: Option<String>,
    limits: Limits,
    no_mmap: bool,
    strict: bool,
    no_checksums: bool,
    salvage: bool,
    assumed_dtype: Option<DType>,
}

impl OpenOptions {
    /// The defaults: the format is detected, files are mapped, deviations are tolerated, checksums of headers are checked.
    pub fn new() -> Self {
        Self::default()
    }

    /// The formats to choose from.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// The format, by its id, instead of detecting it.
    #[must_use]
    pub fn format(mut self, id: Option<&str>) -> Self {
        self.format = id.map(ToOwned::to_owned);
        self
    }

    /// How much a file may ask for.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether files are mapped, so that tensors are read without a copy. A file that is longer than memory can be, 2 GiB
    /// on machines of 32 bits, is never mapped.
    ///
    /// A process that truncates a mapped file makes its readers fail with a signal. Without mapping, that is an error.
    #[must_use]
    pub fn mmap(mut self, mmap: bool) -> Self {
        self.no_mmap = !mmap;
        self
    }

    /// Whether deviations that real readers tolerate are errors.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Whether a header whose checksum does not match is refused.
    #[must_use]
    pub fn checksums(mut self, checksums: bool) -> Self {
        self.no_checksums = !checksums;
        self
    }

    /// Whether a damaged file shows the tensors that are whole, with a warning, instead of an error. Formats whose data
    /// follows a header for each tensor honour it.
    #[must_use]
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        self
    }

    /// What elements are taken to be where a file has bytes without a type, as NumPy's have of types that it does not know.
    #[must_use]
    pub fn assume_dtype(mut self, dtype: Option<DType>) -> Self {
        self.assumed_dtype = dtype;
        self
    }

    /// Opens a file, or all files of a directory as one archive. Reads headers and indexes, and no tensor data.
    #[cfg(feature = "std")]
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Archive> {
        let path = path.as_ref();
        if path.is_dir() {
            return self.open_directory(path);
        }
        let source = crate::io::open_source(path, !self.no_mmap)?;
        let siblings = crate::io::DirectorySiblings::of(path, !self.no_mmap);
        let name = path.file_name().map(|name| name.to_string_lossy());
        self.describe(source, name.as_deref(), Some(&siblings))
    }

    /// The files of a directory whose names say that they are of a known format, in the order of their names. Where one
    /// of them is an index, it says which files belong together, and it alone is opened.
    #[cfg(feature = "std")]
    fn open_directory(&self, directory: &Path) -> Result<Archive> {
        let fail = |cause| Error::io(format_args!("cannot list {}", directory.display()), cause);
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            let known = |name: &str| self.registry.by_extension(name).is_some();
            let name = path.file_name().and_then(|name| name.to_str());
            if path.is_file() && name.is_some_and(|name| !name.starts_with('.') && known(name)) {
                paths.push(path);
            }
        }
        paths.sort();
        let is_index = |path: &std::path::PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            let mut entries = self.registry.entries().iter();
            name.is_some_and(|name| entries.any(|entry| entry.is_index(name)))
        };
        let indexes: Vec<_> = paths.iter().filter(|path| is_index(path)).collect();
        match *indexes.as_slice() {
            [] => {}
            [index] => return self.open(index),
            [first, second, ..] => {
                return Err(Error::argument(format!(
                    "{} holds several indexes ({} and {}); open one of them",
                    directory.display(),
                    first.display(),
                    second.display()
                )));
            }
        }
        if paths.is_empty() {
            let message = format!("{} holds no file of a known format", directory.display());
            return Err(Error::new(
                crate::ErrorKind::Unrecognized,
                "file.directory",
                message,
            ));
        }
        let mut archives: Vec<Archive> = Vec::new();
        for path in &paths {
            // Any of the parts of a model opens all of them.
            let name = path.file_name().and_then(|name| name.to_str());
            if archives.iter().any(|archive| archive.has_part(name)) {
                continue;
            }
            match self.open(path) {
                // A name alone makes no tensor file where the format has no magic: text files are often something else.
                Err(error)
                    if error.kind() == crate::ErrorKind::Unrecognized && !self.has_magic(path) => {}
                opened => archives.push(opened?),
            }
        }
        crate::ops::join(&archives, true)
    }

    /// Whether files with this name always begin with a magic.
    #[cfg(feature = "std")]
    fn has_magic(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        let entry = name.and_then(|name| self.registry.by_extension(name));
        entry.is_none_or(|entry| !entry.spec.magic.is_empty())
    }

    /// Describes a source. `name` is the file's name, where there is one.
    pub fn read(&self, source: Arc<dyn Source>, name: Option<&str>) -> Result<Archive> {
        self.describe(source, name, None)
    }

    /// Describes a source that has other files beside it.
    pub fn read_beside(
        &self,
        source: Arc<dyn Source>,
        name: Option<&str>,
        siblings: &dyn Siblings,
    ) -> Result<Archive> {
        self.describe(source, name, Some(siblings))
    }

    fn describe(
        &self,
        source: Arc<dyn Source>,
        name: Option<&str>,
        siblings: Option<&dyn Siblings>,
    ) -> Result<Archive> {
        let entry = match &self.format {
            Some(id) => self.registry.get(id)?,
            None => self.registry.detect(&*source, name)?,
        };
        let codec = entry.codec()?;
        let mut cx = Context::new(&source, name, &self.limits)
            .with_siblings(siblings)
            .strict(self.strict)
            .checksums(!self.no_checksums)
            .salvage(self.salvage)
            .assume_dtype(self.assumed_dtype);
        let manifest = codec
            .describe(&mut cx)
            .map_err(|error| error.in_format(entry.spec.id))?;
        let (files, findings) = cx.finish();
        let (names, sources) = files.into_iter().unzip();
        Ok(Archive::assemble(
            Some(entry.spec),
            manifest,
            sources,
            names,
            findings,
            self.limits,
        ))
    }
}

/// A described file with its bytes. Cheap to clone, usable from many threads, without a lifetime.
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
pub struct Archive(Arc<Inner>);

struct Inner {
    spec: Option<&'static Spec>,
    manifest: Manifest,
    sources: Vec<Arc<dyn Source>>,
    names: Vec<Option<String>>,
    findings: Vec<Finding>,
    limits: Limits,
    by_name: NameIndex,
}

/// Finds tensors by name without a second copy of the names.
struct NameIndex {
    hasher: DefaultHashBuilder,
    places: HashTable<usize>,
}

impl NameIndex {
    fn new(tensors: &[TensorInfo]) -> Self {
        let hasher = DefaultHashBuilder::default();
        let hash =
            |place: &usize| hasher.hash_one(tensors.get(*place).map(|tensor| tensor.name.as_str()));
        let mut places = HashTable::with_capacity(tensors.len());
        for place in 0..tensors.len() {
            places.insert_unique(hash(&place), place, hash);
        }
        Self { hasher, places }
    }

    fn find<'t>(&self, tensors: &'t [TensorInfo], name: &str) -> Option<&'t TensorInfo> {
        let is_it = |place: &usize| {
            tensors
                .get(*place)
                .is_some_and(|tensor| tensor.name == name)
        };
        tensors.get(*self.places.find(self.hasher.hash_one(Some(name)), is_it)?)
    }
}

impl Archive {
    /// Opens a file with the default [`OpenOptions`].
    #[cfg(feature = "std")]
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Describes a file that is in memory.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self> {
        OpenOptions::new().read(Arc::new(bytes.into()), None)
    }

    /// Tensors that are in no file yet, to be written to one.
    ///
    /// ```
    /// use tenfold::{ArchiveBuilder, Bytes, model::DType};
    /// let mut builder = ArchiveBuilder::new();
    /// builder.push("bias", DType::U8, &[3], Bytes::from_static(&[1, 2, 3]))?;
    /// assert_eq!(builder.finish().get("bias").unwrap().canonical()?, [1, 2, 3].as_slice());
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn builder() -> ArchiveBuilder {
        ArchiveBuilder::new()
    }

    fn assemble(
        spec: Option<&'static Spec>,
        manifest: Manifest,
        sources: Vec<Arc<dyn Source>>,
        names: Vec<Option<String>>,
        findings: Vec<Finding>,
        limits: Limits,
    ) -> Self {
        let by_name = NameIndex::new(&manifest.tensors);
        Self(Arc::new(Inner {
            spec,
            manifest,
            sources,
            names,
            findings,
            limits,
            by_name,
        }))
    }

    /// The format, unless the tensors are in no file yet.
    pub fn format(&self) -> Option<&'static Spec> {
        self.0.spec
    }

    /// Which of the format's versions.
    pub fn version(&self) -> &str {
        &self.0.manifest.version
    }

    /// Bytes of the file that was opened.
    pub fn len_bytes(&self) -> u64 {
        self.0.sources.first().map_or(0, |source| source.len())
    }

    /// The whole description.
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// What the file says about itself.
    pub fn metadata(&self) -> &Metadata {
        &self.0.manifest.metadata
    }

    /// What the file says about itself, with the long lists that were not loaded when it was opened.
    pub fn load_metadata(&self) -> Result<Metadata> {
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
            .map_err(|error| match self.0.spec {
                Some(spec) => error.in_format(spec.id),
                None => error,
            })
    }

    /// The archive with its long lists loaded.
    pub(crate) fn loaded(&self) -> Result<Self> {
        let is_elsewhere = |(_, value): (&str, &Value)| matches!(value, Value::Elsewhere(_));
        if !self.metadata().iter().any(is_elsewhere) {
            return Ok(self.clone());
        }
        let mut manifest = self.0.manifest.clone();
        manifest.metadata = self.load_metadata()?;
        Ok(self.with_manifest(manifest))
    }

    /// The tensors in file order.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Tensor<'_>> {
        self.0.manifest.tensors.iter().map(|info| Tensor {
            archive: self,
            info,
        })
    }

    /// The tensor with this name, if there is one.
    pub fn get(&self, name: &str) -> Option<Tensor<'_>> {
        let info = self.0.by_name.find(&self.0.manifest.tensors, name)?;
        Some(Tensor {
            archive: self,
            info,
        })
    }

    /// The tensor with this name; an error that names it if there is none.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>> {
        self.get(name).ok_or_else(|| {
            Error::new(
                crate::ErrorKind::NotFound,
                "tensor",
                format!("there is no tensor {name:?}"),
            )
        })
    }

    /// What was noticed while the file was described.
    pub fn findings(&self) -> &[Finding] {
        &self.0.findings
    }

    /// One of the files that the archive consists of.
    pub fn source(&self, id: SourceId) -> Option<&Arc<dyn Source>> {
        self.0.sources.get(id.index())
    }

    /// The name of one of the files, without its directory.
    pub fn source_name(&self, id: SourceId) -> Option<&str> {
        self.0.names.get(id.index())?.as_deref()
    }

    /// The limits that it was opened with.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The tensors for which `keep` is true, with the same metadata.
    #[must_use]
    pub fn select(&self, keep: impl Fn(&TensorInfo) -> bool) -> Self {
        let mut manifest = self.0.manifest.clone();
        manifest.tensors.retain(keep);
        self.with_manifest(manifest)
    }

    /// The same files under another description of them.
    pub(crate) fn with_manifest(&self, manifest: Manifest) -> Self {
        let Inner {
            spec,
            sources,
            names,
            findings,
            limits,
            ..
        } = &*self.0;
        Self::assemble(
            *spec,
            manifest,
            sources.clone(),
            names.clone(),
            findings.clone(),
            *limits,
        )
    }

    /// Whether it consists of several files, and one of them has this name.
    #[cfg(feature = "std")]
    fn has_part(&self, name: Option<&str>) -> bool {
        let mut names = self.0.names.iter();
        self.0.names.len() > 1 && name.is_some() && names.any(|known| known.as_deref() == name)
    }

    /// How many files it consists of.
    pub(crate) fn source_count(&self) -> u32 {
        u32::try_from(self.0.sources.len()).unwrap_or(u32::MAX)
    }

    /// The files of several archives under one description of them.
    pub(crate) fn joined(archives: &[Self], manifest: Manifest) -> Self {
        let inner = || archives.iter().map(|archive| &*archive.0);
        let mut specs = inner().map(|inner| inner.spec);
        let first = specs.next().flatten();
        let same = specs.all(|spec| spec.map(|spec| spec.id) == first.map(|spec| spec.id));
        let sources = inner()
            .flat_map(|inner| inner.sources.iter().cloned())
            .collect();
        let names = inner()
            .flat_map(|inner| inner.names.iter().cloned())
            .collect();
        let findings = inner()
            .flat_map(|inner| inner.findings.iter().cloned())
            .collect();
        let limits = inner().next().map(|inner| inner.limits).unwrap_or_default();
        Self::assemble(
            first.filter(|_| same),
            manifest,
            sources,
            names,
            findings,
            limits,
        )
    }

    pub(crate) fn data(&self) -> Data<'_> {
        Data {
            sources: &self.0.sources,
            limits: &self.0.limits,
            tally: None,
        }
    }
}

/// Collects tensors that are in no file yet.
#[derive(Default)]
pub struct ArchiveBuilder {
    manifest: Manifest,
    sources: Vec<Arc<dyn Source>>,
    known: LookupMap<String, ()>,
}

impl ArchiveBuilder {
    /// No tensors yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a dense row-major little-endian tensor. Its bytes are read when they are needed.
    pub fn push(
        &mut self,
        name: impl Into<String>,
        dtype: DType,
        shape: &[u64],
        data: impl Source + 'static,
    ) -> Result<()> {
        let source = SourceId(u32::try_from(self.sources.len()).unwrap_or(u32::MAX));
        let payload = Payload::Raw {
            source,
            range: 0..data.len(),
        };
        let tensor = TensorInfo::dense(name, dtype, shape.to_vec(), payload);
        if tensor.dense_len() != Some(data.len()) {
            let message = format!("{} bytes for {dtype} of shape {shape:?}", data.len());
            return Err(Error::argument(message).in_tensor(&tensor.name));
        }
        self.push_info(tensor)?;
        self.sources.push(Arc::new(data));
        Ok(())
    }

    /// Adds a tensor in any layout; its parts are in memory ([`Payload::Inline`]).
    pub fn push_info(&mut self, tensor: TensorInfo) -> Result<()> {
        if self.known.insert(tensor.name.clone(), ()).is_some() {
            return Err(Error::argument(format!(
                "there are two tensors {:?}",
                tensor.name
            )));
        }
        self.manifest.tensors.push(tensor);
        Ok(())
    }

    /// What the file will say about itself.
    pub fn metadata(&mut self) -> &mut Metadata {
        &mut self.manifest.metadata
    }

    /// The archive.
    pub fn finish(self) -> Archive {
        let names = self.sources.iter().map(|_| None).collect();
        Archive::assemble(
            None,
            self.manifest,
            self.sources,
            names,
            Vec::new(),
            Limits::default(),
        )
    }
}

/// Single elements of a tensor, see [`Tensor::elements`].
pub struct Elements<'a> {
    tensor: Tensor<'a>,
    random: Random<'a>,
}

impl Elements<'_> {
    /// The element at some indices, little-endian.
    pub fn get(&self, index: &[u64]) -> Result<Bytes> {
        (self.random.get(index)).map_err(|error| self.tensor.blame(error))
    }
}

/// A tensor of an archive.
#[derive(Clone, Copy)]
pub struct Tensor<'a> {
    archive: &'a Archive,
    info: &'a TensorInfo,
}

impl<'a> Tensor<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        &self.info.name
    }

    /// What it is and where it is.
    pub fn info(&self) -> &'a TensorInfo {
        self.info
    }

    /// The bytes of its first part as they are in the file. Shares memory with a mapped file, and outlives the archive.
    pub fn stored(&self) -> Result<Bytes> {
        let part = self.info.readable()?.parts.first();
        let part =
            part.ok_or_else(|| Error::argument("a tensor without parts").in_tensor(self.name()))?;
        let input = self.archive.data().input(&part.payload)?;
        input
            .read(0, input.len())
            .map_err(|error| self.blame(error))
    }

    /// The bytes of one part after decompression, as they are otherwise. Shares memory where nothing is compressed.
    pub fn part(&self, part: usize) -> Result<Bytes> {
        let info = self.info.readable()?;
        let part = info.parts.get(part).ok_or_else(|| {
            Error::argument(format!("there is no part {part}")).in_tensor(self.name())
        })?;
        let view =
            View::decoded(self.archive.data(), &part.payload).map_err(|error| self.blame(error))?;
        self.collect(&view)
    }

    /// Gives the bytes of one part after decompression piece by piece, in bounded memory.
    #[cfg(feature = "digest")]
    pub(crate) fn stream_part(
        &self,
        part: usize,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let info = self.info.readable()?;
        let part = info.parts.get(part).ok_or_else(|| {
            Error::argument(format!("there is no part {part}")).in_tensor(self.name())
        })?;
        let view =
            View::decoded(self.archive.data(), &part.payload).map_err(|error| self.blame(error))?;
        self.pieces(&view, put)
    }

    /// Dense, row-major, little-endian: what digests and comparisons are made of.
    ///
    /// Shares memory where the tensor is stored like that; otherwise it is made in memory, within
    /// [`Limits::tensor_memory`].
    pub fn canonical(&self) -> Result<Bytes> {
        self.collect(&self.view(&Form::canonical(self.info.dtype))?)
    }

    /// Gives the tensor piece by piece in a form, in bounded memory.
    pub fn stream(&self, form: &Form, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.pieces(&self.view(form)?, put)
    }

    fn pieces(&self, view: &View<'_>, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut pieces = view.pieces().map_err(|error| self.blame(error))?;
        let mut piece = Vec::new();
        while pieces.next(&mut piece).map_err(|error| self.blame(error))? {
            put(&piece)?;
        }
        Ok(())
    }

    /// One element by its indices, little-endian, without expanding a packed or sparse tensor.
    ///
    /// For many of them see [`elements`](Self::elements).
    pub fn element(&self, index: &[u64]) -> Result<Bytes> {
        self.elements()?.get(index)
    }

    /// Reads single elements in any order.
    ///
    /// Dense and packed elements are read at their places. Entries of a sparse tensor are looked at once, and then found
    /// by halving where they are stored in order; otherwise they are held in memory.
    pub fn elements(&self) -> Result<Elements<'a>> {
        let info = self.info.readable()?;
        let random = Random::new(self.archive.data(), info).map_err(|error| self.blame(error))?;
        Ok(Elements {
            tensor: *self,
            random,
        })
    }

    /// Some of the elements, by indices and ranges as NumPy has them. Nothing is read yet.
    ///
    /// A quantized tensor is sliced as the numbers that it stands for.
    ///
    /// ```
    /// use tenfold::{ArchiveBuilder, Bytes, model::{DType, Slice}};
    /// let mut builder = ArchiveBuilder::new();
    /// builder.push("m", DType::U8, &[2, 3], Bytes::from_static(&[1, 2, 3, 4, 5, 6]))?;
    /// let archive = builder.finish();
    /// let last_column = archive.tensor("m")?.slice(&Slice::parse("::-1, -1")?)?;
    /// assert_eq!(last_column.shape(), [2]);
    /// assert_eq!(last_column.to_bytes()?, [6, 3].as_slice());
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn slice(&self, slices: &[Slice]) -> Result<Sliced<'a>> {
        Sliced::new(*self, slices)
    }

    pub(crate) fn archive(&self) -> &'a Archive {
        self.archive
    }

    /// The elements as numbers of a Rust type, which must be the tensor's own. Shares memory where the bytes are stored
    /// as this machine wants them.
    pub fn typed<T: Element>(&self) -> Result<Typed<T>> {
        if self.info.dtype != T::DTYPE {
            let message = format!(
                "elements are {}, {} were asked for",
                self.info.dtype,
                T::DTYPE
            );
            return Err(Error::argument(message).in_tensor(self.name()));
        }
        Typed::from_little_endian(self.canonical()?).map_err(|error| self.blame(error))
    }

    fn view(&self, form: &Form) -> Result<View<'a>> {
        View::new(
            self.archive.data(),
            self.info,
            0,
            &Want::Dense(form.clone()),
        )
        .map_err(|error| self.blame(error))
    }

    fn collect(&self, view: &View<'_>) -> Result<Bytes> {
        let whole = match view.direct() {
            Some(input) if input.is_memory() => input.read(0, input.len()),
            _ => view.collect_shared(self.archive.0.limits.tensor_memory),
        };
        whole.map_err(|error| self.blame(error))
    }

    /// Says in which tensor of which format an error happened.
    pub(crate) fn blame(&self, error: Error) -> Error {
        let error = error.in_tensor(self.name());
        match self.archive.format() {
            Some(spec) => error.in_format(spec.id),
            None => error,
        }
    }
}
