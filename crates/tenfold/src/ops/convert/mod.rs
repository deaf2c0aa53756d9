//! Conversion: what would be lost first, then the writing, then a look at what was written.

mod layout;
mod prepare;
mod refuse;

pub use prepare::prepare;

use core::fmt;

use crate::archive::Archive;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    Checksums, Compression, Effect, ExecuteOptions, Format, Loss, Plan, PlanOptions, Profile,
    Registry, execute,
};
use crate::io::Output;
use crate::model::{Manifest, TensorInfo};
use crate::ops::CastCounts;
use crate::ops::readback::{Opened, Readback};
use crate::ops::shards::Shards;
use crate::ops::sparse::Sparse;
use crate::ops::survey;
use crate::ops::verify::compare_checksums;
use crate::prelude::*;

use prepare::adapt_to;

/// How archives are converted.
#[derive(Clone)]
#[non_exhaustive]
pub struct ConvertOptions {
    /// The version to write; without one, the first that holds everything, else the one that loses the least.
    pub version: Option<String>,
    /// The format's own options.
    pub options: Vec<(String, String)>,
    /// The worst that may happen to metadata.
    pub allow: Effect,
    /// Whether the checksums of the source are compared first, those of tensors and of ranges that hold some: damaged data
    /// is not passed on.
    pub verify: bool,
    /// Whether the content of what was written is compared before it is made visible.
    pub check: bool,
    /// Compression, tensor by tensor.
    pub compression: Arc<dyn Fn(&TensorInfo) -> Compression + Send + Sync>,
    /// Checksums of tensors.
    pub checksums: Checksums,
    /// What becomes of sparse tensors, and of those that could be.
    pub sparse: Sparse,
    /// Seconds since 1970, for formats that record a time.
    pub timestamp: u64,
    /// A file for every tensor, named after it, instead of one file.
    pub file_per_tensor: bool,
    /// Several files instead of one: shards with an index where the format has such, else numbered files that are whole
    /// by themselves.
    pub shards: Option<Shards>,
    /// Threads, and a handle to watch and to stop the work.
    pub execute: ExecuteOptions,
    /// The formats that messages may suggest.
    pub registry: Registry,
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
            execute: ExecuteOptions::default(),
            registry: Registry::standard(),
        }
    }
}

/// A conversion that is ready to be carried out: what it will write, and what would be lost.
#[must_use = "nothing is written before one of its `write` methods is called"]
#[non_exhaustive]
pub struct Conversion {
    /// The version that will be written.
    pub profile: &'static Profile,
    /// Why it is not the format's first choice, if it is not.
    pub because: Option<String>,
    /// What will not be carried over as it is, the worst first.
    pub losses: Vec<Loss>,
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
    /// How many tensors will be written.
    pub fn tensors(&self) -> usize {
        self.adapted.tensors.len()
    }

    /// Writes a file at `path`, and what belongs to it beside it. It appears whole or not at all, and replaces nothing.
    #[cfg(feature = "std")]
    pub fn write_file(self, path: impl AsRef<std::path::Path>) -> Result<Report> {
        let mut out = crate::io::AtomicOutput::file(path)?;
        let name = out.main_name().to_owned();
        self.write_to(&name, &mut out)
    }

    /// Writes a new directory at `path`, with a file that is called `name` in it, or several whose names are made from
    /// that one. It appears whole or not at all; one that is there is taken if it is empty.
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
        let report = self.write_uncommitted(name, out)?;
        // Whoever stopped the work while it was compared does not want its output either.
        self.options.execute.control.advance(0)?;
        out.commit()?;
        Ok(report)
    }

    fn write_uncommitted(&self, file_name: &str, out: &mut dyn Output) -> Result<Report> {
        let options = &self.options;
        if options.verify {
            compare_checksums(&self.source, &options.execute).map_err(|error| {
                match error.kind() {
                    ErrorKind::Mismatch if error.tensor().is_none() => {
                        error.adding("; write it as it is with --no-verify")
                    }
                    ErrorKind::Mismatch => error.adding(
                        "; leave the tensor out with --exclude, or write it as it is with --no-verify",
                    ),
                    _ => error,
                }
            })?;
        }
        let plan_options = self.plan_options(file_name);
        let wanted = self.format.survey(&plan_options)?;
        let counting = ExecuteOptions {
            tally: Arc::default(),
            ..options.execute.clone()
        };
        let surveyed = survey(&self.from, &wanted, &counting)?;
        let (from, notes) = (surveyed.archive, surveyed.notes);
        // The survey changes what parts are, and what they are said to hash to: what is planned must say the same.
        let surveyed = match wanted.is_nothing() {
            true => None,
            false => Some(adapt_to(&from, self.format.spec(), self.profile, options).0),
        };
        let adapted = surveyed.as_ref().unwrap_or(&self.adapted);
        let (plan, outputs) = self.plan(adapted, plan_options)?;
        let readback = Readback {
            format: self.format,
            registry: &options.registry,
            expected: &self.adapted.tensors,
            original: &self.from,
            digests: options.check,
            execute: &options.execute,
        };
        options.execute.control.expect(readback.work());
        execute(plan, &from, out, &counting)?;
        let compared = readback.compare(out, &outputs)?;
        let mut casts = self.counted;
        casts += counting.tally.counts();
        Ok(Report {
            files: compared.files,
            tensors: adapted.tensors.len(),
            content: compared.content,
            notes,
            casts,
        })
    }

    /// The names of the files that would be written, the one that is opened first. Costs as much as laying them out.
    pub fn file_names(&self, file_name: &str) -> Result<Vec<String>> {
        let (plan, _) = self.plan(&self.adapted, self.plan_options(file_name))?;
        Ok(plan.files.into_iter().map(|file| file.name).collect())
    }

    fn plan_options(&self, file_name: &str) -> PlanOptions {
        let mut plan_options = PlanOptions::new(self.profile.version, file_name);
        plan_options.options.clone_from(&self.options.options);
        plan_options.compression = self.options.compression.clone();
        plan_options.checksums = self.options.checksums;
        plan_options.timestamp = self.options.timestamp;
        plan_options
    }

    fn plan(&self, adapted: &Manifest, options: PlanOptions) -> Result<(Plan, Vec<Opened>)> {
        layout::plan(self.format, adapted, &self.from, &self.options, options)
            .map_err(|error| error.in_format(self.format.spec().id))
    }
}
