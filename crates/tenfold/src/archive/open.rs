//! How a file is opened.

#[cfg(feature = "std")]
use std::path::Path;

use super::Archive;
#[cfg(feature = "std")]
use super::directory::Directory;
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::format::options::pairs;
use crate::format::{Context, DescribeOptions, Format, Head, Registry};
use crate::io::{Limits, Siblings, Source};
use crate::model::{DType, Manifest};
use crate::prelude::*;

/// How files are opened.
///
/// ```no_run
/// use tenfold::OpenOptions;
/// let archive = OpenOptions::new().strict(true).open("model.zt")?;
/// # Ok::<(), tenfold::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    pub(super) registry: Registry,
    format: Option<String>,
    limits: Limits,
    #[cfg(feature = "std")]
    pub(super) access: crate::io::Access,
    #[cfg(feature = "remote")]
    pub(super) remote: crate::io::Remote,
    pub(super) how: DescribeOptions,
    threads: usize,
}

impl OpenOptions {
    /// The defaults: the format is detected, deviations are tolerated, checksums of headers are checked.
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

    /// Whether deviations that real readers tolerate are errors.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.how.strict = strict;
        self
    }

    /// Whether checksums are verified. Without it, a header that does not match its checksum is read as it is, with a
    /// warning, and so is everything whose checksum cannot be understood. Those of tensor data are not compared when a
    /// file is opened; [`ConvertOptions::verify`](crate::ops::ConvertOptions::verify) is about them.
    #[must_use]
    pub fn checksums(mut self, checksums: bool) -> Self {
        self.how.checksums = checksums;
        self
    }

    /// Whether a truncated or damaged file opens with the tensors that are intact, and a warning, instead of an error.
    /// Those that are known but not intact have a [`defect`](crate::model::TensorInfo::defect).
    ///
    /// This opens safetensors, GGUF, mag, Burnpack and npz files that were cut off after their header, and damaged
    /// primitiv files. Where data can only be found through the end of a file, it changes nothing.
    #[must_use]
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.how.salvage = salvage;
        self
    }

    /// Whether objects of unknown classes, in files that hold any (PyTorch's pickles), are read as records of what they
    /// hold, such as the tensors of a whole saved module. Nothing is imported or run either way; without this, such a
    /// file is refused, with the name of the class.
    #[must_use]
    pub fn opaque(mut self, opaque: bool) -> Self {
        self.how.opaque = opaque;
        self
    }

    /// The type to assume where a file has bytes without one, as NumPy's files do for types that NumPy does not know.
    #[must_use]
    pub fn assume_dtype(mut self, dtype: Option<DType>) -> Self {
        self.how.assumed_dtype = dtype;
        self
    }

    /// Adds an option that only the file's format understands, see
    /// [`reading_options`](crate::format::Format::reading_options). A file of a format without it is not opened.
    #[must_use]
    pub fn option(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.options([(key, value)])
    }

    /// Adds several options that only the file's format understands.
    #[must_use]
    pub fn options<K, V>(mut self, options: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<String>,
    {
        self.how.options.extend(pairs(options));
        self
    }

    /// How many threads share the work on one large tensor, as in [`canonical`](crate::Tensor::canonical); 0, the
    /// default, means one per core. Operations go by their [`Work`](crate::Work) instead.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// The format that was chosen, if one was.
    #[cfg(feature = "std")]
    pub(super) fn format_id(&self) -> Option<&str> {
        self.format.as_deref()
    }

    /// Opens a file, or the files of a directory that belong together as one archive. Of several sets of them, one is
    /// chosen: safetensors before GGUF, other formats in the order of the table, PyTorch, Keras, HDF5 and ONNX last;
    /// files with an index before those without; `consolidated.*` last. The others are [passed
    /// over](Archive::passed_over). Reads headers and indexes; tensor data is read when it is asked for. See
    /// [`map`](Self::map) for reading without a copy.
    #[cfg(feature = "std")]
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Archive> {
        let path = path.as_ref();
        if path.is_dir() {
            let files = crate::io::DirectorySiblings::inside(path, self.access);
            return self.open_files(&Directory::new(&files)?.at(path));
        }
        let source = match crate::io::open_source(path, self.access) {
            Err(error) if error.kind() == ErrorKind::NotFound => match self.by_prefix(path) {
                Some(path) => return self.open(path),
                None => return Err(error),
            },
            opened => opened?,
        };
        let siblings = crate::io::DirectorySiblings::with(path, self.access);
        let name = path.file_name().map(|name| name.to_string_lossy());
        let archive = self.describe(source, name.as_deref(), Some(&siblings))?;
        Ok(archive.opened_by(path))
    }

    /// The file that a path stands for if it is not a file itself.
    #[cfg(feature = "std")]
    fn by_prefix(&self, path: &Path) -> Option<std::path::PathBuf> {
        let name = path.file_name()?.to_str()?;
        let codecs = self
            .registry
            .entries()
            .iter()
            .filter_map(|entry| entry.codec);
        let mut files =
            codecs.filter_map(|codec| Some(path.with_file_name(codec.file_of_prefix(name)?)));
        files.find(|path| path.is_file())
    }

    /// How files at URLs are reached. Archives that are opened with a copy of these options share its connections.
    #[cfg(feature = "remote")]
    #[must_use]
    pub fn remote(mut self, remote: &crate::io::Remote) -> Self {
        self.remote = remote.clone();
        self
    }

    /// Opens the file at a URL, or the files under a prefix that belong together, as [`open`](Self::open) opens a file
    /// or a directory: `s3://`, `gs://`, `az://`, `abfss://`, `https://`, `http://`, `hf://org/model[@revision]/path`.
    ///
    /// Nothing is downloaded: headers come by a few requests, tensors by requests for their bytes when they are read. If the
    /// file changes meanwhile, that is an error with the rule `changed`.
    ///
    /// ```no_run
    /// let archive = tenfold::OpenOptions::new().open_url("hf://org/model/model.safetensors")?;
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    #[cfg(feature = "remote")]
    pub fn open_url(&self, url: &str) -> Result<Archive> {
        self.open_remote(&crate::io::RemoteUrl::parse(url)?)
    }

    /// The same for a URL that is already parsed.
    #[cfg(feature = "remote")]
    pub fn open_remote(&self, url: &crate::io::RemoteUrl) -> Result<Archive> {
        match self.remote.open(url)? {
            crate::io::Opened::File { source, siblings } => {
                self.describe(source, url.file_name().as_deref(), Some(&siblings))
            }
            crate::io::Opened::Prefix(siblings) => self.read_directory(&siblings),
        }
    }

    /// Opens the files of a directory that belong together, as [`open`](Self::open) does, where the directory is not on
    /// a local file system: what lies under one prefix of an object store, for example. It must be one that can be
    /// [listed](Siblings::names).
    ///
    /// ```
    /// use tenfold::io::DirectorySiblings;
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("model.npy");
    /// # let file = b"\x93NUMPY\x01\0\x36\0{'descr': '<f4', 'fortran_order': False, 'shape': ()}\n\0\0\0\0";
    /// # std::fs::write(&path, file)?;
    /// let files = DirectorySiblings::of(&path);
    /// let archive = tenfold::OpenOptions::new().read_directory(&files)?;
    /// assert_eq!(archive.tensors().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn read_directory(&self, files: &dyn Siblings) -> Result<Archive> {
        self.open_files(&Directory::new(files)?)
    }

    #[cfg(feature = "std")]
    fn open_files(&self, directory: &Directory<'_>) -> Result<Archive> {
        match self.open_as_a_whole(directory)? {
            Some(archive) => Ok(archive),
            None => self.open_directory(directory),
        }
    }

    /// Opens a directory that is of a format as a whole.
    #[cfg(feature = "std")]
    fn open_as_a_whole(&self, directory: &Directory<'_>) -> Result<Option<Archive>> {
        let names = directory.all_names();
        self.open_by_file(directory, |codec| codec.directory_file(names))
    }

    /// Opens a directory that is of a format by what lies in the directories below.
    #[cfg(feature = "std")]
    pub(super) fn open_tree(&self, directory: &Directory<'_>) -> Result<Option<Archive>> {
        match directory.files().tree() {
            Ok(Some(tree)) => self.open_by_file(directory, |codec| codec.tree_file(&tree)),
            // Nothing said yet that this is of any format, and something below it may be nobody's business.
            Err(error) if !directory.is_here() => Err(error),
            _ => Ok(None),
        }
    }

    #[cfg(feature = "std")]
    fn open_by_file<'f>(
        &self,
        directory: &Directory<'_>,
        file: impl Fn(&'static dyn Format) -> Option<&'f str>,
    ) -> Result<Option<Archive>> {
        let Some((id, file)) = self.file_of(file) else {
            return Ok(None);
        };
        let options = self.clone().format(Some(id));
        let files = directory.files();
        let source = files.open_below(&file.split('/').collect::<Vec<_>>())?;
        let archive = options.describe(source, Some(file), Some(files))?;
        Ok(Some(directory.opened_whole(archive)))
    }

    /// The format of which a directory is, by the file that it is opened through.
    #[cfg(feature = "std")]
    fn file_of<'f>(
        &self,
        file: impl Fn(&'static dyn Format) -> Option<&'f str>,
    ) -> Option<(&'static str, &'f str)> {
        let wanted = |entry: &&crate::format::Entry| {
            self.format.as_ref().is_none_or(|id| *id == entry.spec.id)
        };
        let mut entries = self.registry.entries().iter().filter(wanted);
        entries.find_map(|entry| Some((entry.spec.id, file(entry.codec?)?)))
    }

    /// Whether a directory is of a format as a whole, by the names of its files, the hidden ones too.
    #[cfg(feature = "scale")]
    pub(crate) fn is_whole(&self, names: &[String]) -> bool {
        self.file_of(|codec| codec.directory_file(names)).is_some()
    }

    /// Whether it is of one by what lies in the directories below.
    #[cfg(feature = "scale")]
    pub(crate) fn is_whole_by_tree(&self, tree: &crate::io::Tree) -> bool {
        self.file_of(|codec| codec.tree_file(tree)).is_some()
    }

    /// Opens what a stream delivers. All of it is kept first, up to [`Limits::spool_bytes`]: in memory if it is little,
    /// else in a temporary file, which goes away with the archive.
    ///
    /// ```no_run
    /// let archive = tenfold::OpenOptions::new().read_stream(&mut std::io::stdin())?;
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn read_stream(&self, stream: &mut dyn std::io::Read) -> Result<Archive> {
        let source = crate::io::spool(stream, self.limits.spool_bytes)?;
        self.describe(source, None, None)
    }

    /// Opens a source. `name` is the file's name, if it has one.
    pub fn read(&self, source: Arc<dyn Source>, name: Option<&str>) -> Result<Archive> {
        self.describe(source, name, None)
    }

    /// Opens a source that has other files beside it.
    pub fn read_beside(
        &self,
        source: Arc<dyn Source>,
        name: Option<&str>,
        siblings: &dyn Siblings,
    ) -> Result<Archive> {
        self.describe(source, name, Some(siblings))
    }

    pub(super) fn describe(
        &self,
        source: Arc<dyn Source>,
        name: Option<&str>,
        siblings: Option<&dyn Siblings>,
    ) -> Result<Archive> {
        let head = Head::new(&*source, name)?;
        let entry = match &self.format {
            Some(id) => self.registry.get(id)?,
            None => self.registry.recognize(&head)?,
        };
        let codec = entry.codec()?;
        check_options(codec, &self.how.options)?;
        let describe = |how: &DescribeOptions| {
            let mut cx = Context::new(&source, name, &self.limits, how)
                .reading(&head)
                .with_siblings(siblings);
            let mut manifest = codec.describe(&mut cx)?;
            manifest.tensors.shrink_to_fit();
            Ok((within_rank(manifest, self.limits.rank)?, cx.finish()))
        };
        let described = describe(&self.how).map_err(|error: Error| {
            // What else is wrong with a damaged file shows only when it is read on.
            let can = |change: fn(&mut DescribeOptions)| {
                let mut how = self.how.clone();
                change(&mut how);
                describe(&how).is_ok()
            };
            let salvage = |how: &mut DescribeOptions| (how.strict, how.salvage) = (false, true);
            let error = match (error.whole(), error.kind()) {
                (Some(whole), _) if can(salvage) => {
                    let whole = whole.to_owned();
                    error.adding(&whole).hinting(Hint::Salvage)
                }
                (_, ErrorKind::Mismatch)
                    if self.how.checksums && can(|how| how.checksums = false) =>
                {
                    error.hinting(Hint::SkipChecksums)
                }
                _ => error,
            };
            error.in_format(entry.spec.id)
        });
        let (manifest, (files, tree, findings)) = described?;
        let (names, sources) = files.into_iter().unzip();
        let archive = Archive::assemble(
            Some(entry.spec),
            manifest,
            sources,
            names,
            findings,
            self.limits,
        );
        let archive = archive.consisting_of(tree);
        #[cfg(feature = "std")]
        let archive = archive.lying_beside(siblings);
        Ok(archive.with_threads(self.threads))
    }
}

/// Refuses options that the format does not have for reading.
fn check_options(codec: &dyn Format, options: &[(String, String)]) -> Result<()> {
    let known = codec.reading_options();
    let is_known = |key: &str| known.iter().any(|option| option.key == key);
    let Some((key, _)) = options.iter().find(|(key, _)| !is_known(key)) else {
        return Ok(());
    };
    let known: Vec<_> = known.iter().map(|option| option.key).collect();
    let known = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    };
    let name = codec.spec().name;
    let message = format!("{name} has no option {key:?} for reading; there are: {known}");
    Err(Error::argument(message))
}

/// Formats have limits of their own on dimensions; this is the one of whoever opens the file.
fn within_rank(manifest: Manifest, limit: usize) -> Result<Manifest> {
    let mut tensors = manifest.tensors.iter();
    match tensors.find(|tensor| tensor.shape.len() > limit) {
        None => Ok(manifest),
        Some(tensor) => {
            let rank = tensor.shape.len();
            let message = format!("{rank} dimensions, the limit is {limit}");
            let error = Error::limit("rank", message).raised_by("rank", rank as u64);
            Err(error.in_tensor(&tensor.name))
        }
    }
}
