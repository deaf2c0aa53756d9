//! Conversion: what would be lost first, then the writing, then a look at what was written.

#[cfg(feature = "std")]
mod companions;
#[cfg(feature = "std")]
mod configuration;
#[cfg(feature = "std")]
mod in_place;
mod layout;
mod planned;
mod prepare;
mod refuse;

#[cfg(feature = "std")]
pub use in_place::EditedInPlace;
pub use planned::{PlannedContent, PlannedFile, PlannedSegment};

use alloc::borrow::Cow;
use core::fmt;

use crate::archive::Archive;
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::execute::{Execution, execute};
use crate::format::options::pairs;
use crate::format::{
    Checksums, Compression, Effect, Finding, Format, Loss, Plan, PlanOptions, Profile, Registry,
};
use crate::io::Output;
use crate::model::CastCounts;
use crate::model::{Manifest, TensorInfo};
use crate::ops::shards::Shards;
use crate::ops::shared::readback::{Opened, Readback};
use crate::ops::shared::survey::{Surveyed, survey};
use crate::ops::sparse::Sparse;
use crate::ops::verify::compare_checksums_watched;
use crate::prelude::*;
use crate::threads::Work;
use crate::transform::Tally;

use prepare::adapt_to;

/// How archives are converted.
#[derive(Clone)]
pub struct ConvertOptions {
    version: Option<String>,
    options: Vec<(String, String)>,
    allow: Effect,
    verify: bool,
    check: bool,
    compression: Arc<dyn Fn(&TensorInfo) -> Compression + Send + Sync>,
    checksums: Checksums,
    sparse: Sparse,
    timestamp: u64,
    file_per_tensor: bool,
    shards: Option<Shards>,
    registry: Registry,
    work: Work,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            version: None,
            options: Vec::new(),
            allow: Effect::Rearranged,
            verify: true,
            check: false,
            compression: Arc::new(|_| Compression::Keep),
            checksums: Checksums::Keep,
            sparse: Sparse::AsIs,
            timestamp: 0,
            file_per_tensor: false,
            shards: None,
            registry: Registry::standard(),
            work: Work::default(),
        }
    }
}

impl ConvertOptions {
    /// Everything as it is, in one file of the version that holds it, and nothing lost.
    pub fn new() -> Self {
        Self::default()
    }

    /// The version to write; without one, the first that holds everything, else the one that loses the least.
    #[must_use]
    pub fn version(mut self, version: Option<&str>) -> Self {
        self.version = version.map(ToOwned::to_owned);
        self
    }

    /// Adds one of the format's own options.
    #[must_use]
    pub fn option(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.options([(key, value)])
    }

    /// Adds several of the format's own options.
    #[must_use]
    pub fn options<K, V>(mut self, options: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<String>,
    {
        self.options.extend(pairs(options));
        self
    }

    /// The worst that may happen to metadata.
    #[must_use]
    pub fn allow(mut self, effect: Effect) -> Self {
        self.allow = effect;
        self
    }

    /// Whether the checksums of the source are compared first, those of tensors and of ranges that hold some: damaged data
    /// is not passed on.
    #[must_use]
    pub fn verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Whether the content of what was written is compared before it is made visible.
    #[must_use]
    pub fn check(mut self, check: bool) -> Self {
        self.check = check;
        self
    }

    /// Compression, tensor by tensor.
    #[must_use]
    pub fn compression(
        mut self,
        choose: impl Fn(&TensorInfo) -> Compression + Send + Sync + 'static,
    ) -> Self {
        self.compression = Arc::new(choose);
        self
    }

    /// Checksums of tensors.
    #[must_use]
    pub fn checksums(mut self, checksums: Checksums) -> Self {
        self.checksums = checksums;
        self
    }

    /// What becomes of sparse tensors, and of those that could be.
    #[must_use]
    pub fn sparse(mut self, sparse: Sparse) -> Self {
        self.sparse = sparse;
        self
    }

    /// Seconds since 1970, for formats that record a time.
    #[must_use]
    pub fn timestamp(mut self, seconds: u64) -> Self {
        self.timestamp = seconds;
        self
    }

    /// Whether there is a file for every tensor, named after it, instead of one file.
    #[must_use]
    pub fn file_per_tensor(mut self, file_per_tensor: bool) -> Self {
        self.file_per_tensor = file_per_tensor;
        self
    }

    /// Several files instead of one: shards with an index where the format has such, else numbered files that are whole
    /// by themselves.
    #[must_use]
    pub fn shards(mut self, shards: Option<Shards>) -> Self {
        self.shards = shards;
        self
    }

    /// The formats that messages may suggest.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Threads, and a control.
    #[must_use]
    pub fn work(mut self, work: Work) -> Self {
        self.work = work;
        self
    }

    /// The same, under the same control.
    fn shared(&self) -> Self {
        let work = self.work.shared();
        self.clone().work(work)
    }
}

/// A conversion that is ready to be carried out: what it will write, and what would be lost.
#[must_use = "nothing is written until one of its `write` methods is called"]
#[non_exhaustive]
pub struct Conversion {
    /// The version that will be written.
    pub profile: &'static Profile,
    /// Why it is not the format's first choice, if it is not.
    pub because: Option<String>,
    /// What will not be carried over as it is, the worst first.
    pub losses: Vec<Loss>,
    /// What is worth knowing beforehand: metadata that stays behind with its container, programs that will not read the
    /// file.
    pub remarks: Vec<Finding>,
    /// What casts and quantization change about values. That was asked for and is not refused.
    pub casts: Vec<Loss>,
    /// What was cast already, where entries had to be listed.
    counted: CastCounts,
    /// What is read, before entries were listed.
    source: Archive,
    from: Archive,
    adapted: Manifest,
    format: &'static dyn Format,
    options: ConvertOptions,
    /// What is written beside the tensors, as it is.
    #[cfg(feature = "std")]
    companions: Vec<crate::archive::Companion>,
}

/// What will be written, of which archive, and how it is looked at then.
#[cfg(feature = "scale")]
pub(in crate::ops) struct LaidOut {
    pub(in crate::ops) archive: Archive,
    pub(in crate::ops) plan: Plan,
    pub(in crate::ops) opened: Vec<Opened>,
}

/// What a conversion did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The files that were written, with their lengths.
    pub files: Vec<(String, u64)>,
    /// Tensors that were written.
    pub tensors: usize,
    /// The digest of the content, where it was compared: that of what was read is that of what was written.
    pub content: Option<[u8; 32]>,
    /// What was noticed on the way, for people.
    pub notes: Vec<String>,
    /// The numbers that were cast, and those that did not fit.
    pub casts: CastCounts,
}

impl fmt::Debug for ConvertOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConvertOptions")
            .field("version", &self.version)
            .field("options", &self.options)
            .field("allow", &self.allow)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversion")
            .field("version", &self.profile.version)
            .field("tensors", &self.tensors())
            .field("losses", &self.losses)
            .finish_non_exhaustive()
    }
}

impl Conversion {
    /// The tensors that will be written, as they were given.
    pub fn source(&self) -> &Archive {
        &self.source
    }

    /// How many tensors will be written.
    pub fn tensors(&self) -> usize {
        self.adapted.tensors.len()
    }

    /// Writes these files too, under the names that they have: those that belong to a model and hold no tensors
    /// ([`OpenOptions::companions`](crate::OpenOptions::companions)). They stay as they are; only `config.json` gets the type
    /// that the tensors are cast to, where it names one.
    #[cfg(feature = "std")]
    pub fn bringing(mut self, companions: Vec<crate::archive::Companion>) -> Self {
        self.companions = companions;
        self
    }

    /// Writes a file at `path`, and what belongs to it beside it. It appears whole or not at all, and replaces nothing.
    ///
    /// ```no_run
    /// use tenfold::{Archive, format::Registry, ops::{Conversion, ConvertOptions}};
    /// let archive = Archive::open("model.gguf")?;
    /// let options = ConvertOptions::new().check(true); // compares what was written before it appears
    /// let registry = Registry::standard();
    /// let report = Conversion::prepare(&archive, registry.get("ztensor")?, &options)?.write_file("model.zt")?;
    /// println!("{} tensors in {:?}", report.tensors, report.files);
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_file(self, path: impl AsRef<std::path::Path>) -> Result<Report> {
        let mut out = crate::io::AtomicOutput::file(path)?;
        let name = out.main_name().to_owned();
        self.write_to(&name, &mut out)
    }

    /// Writes a new directory at `path`, with a file named `name` in it, or several whose names are made from that. It
    /// appears whole or not at all; an existing directory is used if it is empty.
    ///
    /// ```no_run
    /// use tenfold::{Archive, format::Registry, ops::{Conversion, ConvertOptions}};
    /// let options = ConvertOptions::new().file_per_tensor(true);
    /// let registry = Registry::standard();
    /// let archive = Archive::open("model.safetensors")?;
    /// Conversion::prepare(&archive, registry.get("npy")?, &options)?.write_directory("arrays", "model.npy")?;
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_directory(self, path: impl AsRef<std::path::Path>, name: &str) -> Result<Report> {
        let mut out = crate::io::AtomicOutput::directory(path)?;
        self.write_to(name, &mut out)
    }

    /// Writes the files to an output, looks at them again, and makes them visible. A file that is written alone is called
    /// `name`, and the names of several are made from it; an output that was made for one name
    /// ([`Output::name`]) takes no other.
    pub fn write_to(self, name: &str, out: &mut dyn Output) -> Result<Report> {
        self.refuse_losses()?;
        if let Some(made_for) = out.name().filter(|made_for| *made_for != name) {
            let message = format!("the output was made for {made_for:?}, not for {name:?}");
            return Err(Error::argument(message));
        }
        if self.format.writes_tree(name) {
            out.begin_tree()?;
        }
        let (mut report, unread) = self.write_uncommitted(name, out)?;
        #[cfg(feature = "std")]
        report.notes.extend(self.bring(out)?);
        // Whoever stopped the work while it was compared does not want its output either.
        self.options.work.control.check()?;
        out.commit()?;
        if self.options.check && !unread.is_empty() {
            let committed = |name: &str| out.committed(name);
            match self.readback().compare(&committed, None, &unread) {
                Ok(compared) => report.content = compared.and_then(|compared| compared.content),
                Err(error) => {
                    out.take_back();
                    return Err(error);
                }
            }
        }
        Ok(report)
    }

    /// What was written, compared with what was to be.
    fn readback(&self) -> Readback<'_> {
        Readback {
            format: self.format,
            registry: &self.options.registry,
            expected: &self.adapted.tensors,
            original: &self.from,
            digests: self.options.check,
            work: &self.options.work,
        }
    }

    /// Gives the files too that could not be read back.
    fn write_uncommitted(
        &self,
        file_name: &str,
        out: &mut dyn Output,
    ) -> Result<(Report, Vec<Opened>)> {
        let options = &self.options;
        if options.verify {
            compare_checksums_watched(&self.source, &options.work).map_err(|error| {
                match (error.kind(), error.tensor()) {
                    (ErrorKind::Mismatch, Some(_)) => {
                        error.hinting(Hint::Exclude).hinting(Hint::SkipChecksums)
                    }
                    (ErrorKind::Mismatch, None) => error.hinting(Hint::SkipChecksums),
                    _ => error,
                }
            })?;
        }
        let plan_options = self.plan_options(file_name);
        let tally = Tally::default();
        let execution = Execution::new(&options.work, &tally);
        let (surveyed, adapted) = self.survey(&plan_options, &execution)?;
        let (from, notes) = (surveyed.archive, surveyed.notes);
        let (plan, outputs) = self.lay_out(&adapted, plan_options)?;
        let readback = self.readback();
        options.work.control.expect(readback.len());
        let names: Vec<_> = plan.files.iter().map(|file| file.name.clone()).collect();
        let lengths = execute(plan, &from, out, &execution)?;
        let compared = readback.compare(&|name| out.written(name), out.written_tree(), &outputs)?;
        let mut casts = self.counted;
        casts += tally.counts();
        let unread = match &compared {
            Some(_) => Vec::new(),
            None => outputs,
        };
        let report = Report {
            files: names.into_iter().zip(lengths).collect(),
            tensors: adapted.tensors.len(),
            content: compared.and_then(|compared| compared.content),
            notes,
            casts,
        };
        Ok((report, unread))
    }

    /// What will be written where, beginning with the file to open. Writes nothing; reads tensor data where the layout
    /// depends on it, as in formats that store equal data once.
    ///
    /// ```
    /// use tenfold::format::Registry;
    /// use tenfold::{Archive, Bytes, model::DType};
    /// use tenfold::ops::{Conversion, PlannedContent};
    /// let mut builder = Archive::builder();
    /// builder.push("x", DType::U8, &[3], Bytes::from_static(b"abc"))?;
    /// let registry = Registry::standard();
    /// let conversion = Conversion::prepare(&builder.finish(), registry.get("npy")?, &Default::default())?;
    /// let files = conversion.plan("x.npy")?;
    /// assert_eq!((files[0].name.as_str(), files[0].len), ("x.npy", Some(131)));
    /// let data = files[0].segments.last().unwrap();
    /// assert_eq!(data.range, Some(128..131));
    /// assert_eq!(data.content, PlannedContent::Tensor { name: "x".into(), part: 0 });
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn plan(&self, file_name: &str) -> Result<Vec<PlannedFile>> {
        let options = self.plan_options(file_name);
        let uncounted = Tally::default();
        let execution = Execution::new(&self.options.work, &uncounted);
        let (surveyed, adapted) = self.survey(&options, &execution)?;
        let (plan, _) = self.lay_out(&adapted, options)?;
        let files = plan.files.iter();
        files
            .map(|file| PlannedFile::new(file, &surveyed.archive))
            .collect()
    }

    /// The names of the files that would be written, beginning with the one to open. Costs as much as laying them out.
    pub fn file_names(&self, file_name: &str) -> Result<Vec<String>> {
        let (plan, _) = self.lay_out(&self.adapted, self.plan_options(file_name))?;
        Ok(plan.files.into_iter().map(|file| file.name).collect())
    }

    /// All that is needed to write it, by whoever.
    #[cfg(feature = "scale")]
    pub(in crate::ops) fn laid_out(&self, file_name: &str) -> Result<LaidOut> {
        self.refuse_losses()?;
        let options = self.plan_options(file_name);
        let uncounted = Tally::default();
        let execution = Execution::new(&self.options.work, &uncounted);
        let (surveyed, adapted) = self.survey(&options, &execution)?;
        let (plan, opened) = self.lay_out(&adapted, options)?;
        Ok(LaidOut {
            archive: surveyed.archive,
            plan,
            opened,
        })
    }

    /// Compares the checksums of the source that some of the tensors have.
    #[cfg(feature = "scale")]
    pub(in crate::ops) fn compare_sources(&self, wanted: &[usize]) -> Result<()> {
        if !self.options.verify || wanted.is_empty() {
            return Ok(());
        }
        let mut manifest = self.source.manifest().clone();
        let tensors = wanted.iter();
        let tensors = tensors.filter_map(|&place| self.source.manifest().tensors.get(place));
        manifest.tensors = tensors.cloned().collect();
        compare_checksums_watched(&self.source.with_manifest(manifest), &self.options.work)
    }

    /// Looks at what others wrote, before it is made visible.
    #[cfg(feature = "scale")]
    pub(in crate::ops) fn compare_written(
        &self,
        out: &dyn Output,
        opened: &[Opened],
    ) -> Result<()> {
        let readback = Readback {
            digests: false,
            ..self.readback()
        };
        let read = |name: &str| out.written(name);
        readback
            .compare(&read, out.written_tree(), opened)
            .map(|_| ())
    }

    /// Writes the files to an output whose files others make visible.
    #[cfg(feature = "scale")]
    pub(in crate::ops) fn write_for_others(
        self,
        name: &str,
        out: &mut dyn Output,
    ) -> Result<Report> {
        self.refuse_losses()?;
        self.write_uncommitted(name, out).map(|(report, _)| report)
    }

    /// Writes what comes along, too.
    #[cfg(feature = "scale")]
    pub(in crate::ops) fn bring_along(
        self,
        companions: Vec<crate::archive::Companion>,
        out: &mut dyn Output,
    ) -> Result<Vec<String>> {
        self.bringing(companions).bring(out)
    }

    fn plan_options(&self, file_name: &str) -> PlanOptions {
        let mut plan_options = PlanOptions::new(self.profile.version, file_name);
        plan_options.options.clone_from(&self.options.options);
        plan_options.compression = self.options.compression.clone();
        plan_options.checksums = self.options.checksums;
        plan_options.timestamp = self.options.timestamp;
        let sources = self.from.sources().map(|(_, source)| source.clone());
        plan_options.sources = sources.collect();
        plan_options
    }

    /// What must be known of the content first, and what survives then: the survey changes what parts are, and what they
    /// are said to hash to, and what is planned must say the same.
    fn survey(
        &self,
        options: &PlanOptions,
        execution: &Execution<'_>,
    ) -> Result<(Surveyed, Cow<'_, Manifest>)> {
        let wanted = self.format.survey(options)?;
        let surveyed = survey(&self.from, &wanted, execution)?;
        let adapted = if wanted.is_nothing() {
            Cow::Borrowed(&self.adapted)
        } else {
            let (spec, from) = (self.format.spec(), &surveyed.archive);
            Cow::Owned(adapt_to(from, spec, self.profile, &self.options).manifest)
        };
        Ok((surveyed, adapted))
    }

    fn lay_out(&self, adapted: &Manifest, options: PlanOptions) -> Result<(Plan, Vec<Opened>)> {
        layout::plan(self.format, adapted, &self.from, &self.options, options)
            .map_err(|error| error.in_format(self.format.spec().id))
    }
}
