//! Conversion: what would be lost first, then the writing, then a look at what was written.

use crate::archive::{Archive, OpenOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    Checksums, Compression, Effect, Entry, ExecuteOptions, Format, Loss, PlanOptions, Profile,
    Registry, Spec, adapt, execute,
};
use crate::io::{Output, Source};
use crate::model::{Manifest, TensorInfo};
use crate::ops::survey;
use crate::prelude::*;

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
    /// Whether the content of what was written is compared before it is made visible.
    pub check: bool,
    /// Compression, tensor by tensor.
    pub compression: Arc<dyn Fn(&TensorInfo) -> Compression + Send + Sync>,
    /// Checksums of tensors.
    pub checksums: Checksums,
    /// Seconds since 1970, for formats that record a time.
    pub timestamp: u64,
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
            check: false,
            compression: Arc::new(|_| Compression::Keep),
            checksums: Checksums::Keep,
            timestamp: 0,
            execute: ExecuteOptions::default(),
            registry: Registry::standard(),
        }
    }
}

/// A conversion that is ready to be carried out: what it will write, and what would be lost.
#[non_exhaustive]
pub struct Conversion {
    /// The version that will be written.
    pub profile: &'static Profile,
    /// Why it is not the format's first choice, if it is not.
    pub because: Option<String>,
    /// What will not be carried over as it is, the worst first.
    pub losses: Vec<Loss>,
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
}

/// Finds out what writing `from` in another format means. Reads no tensor data and writes nothing.
pub fn prepare(from: &Archive, to: &Entry, options: &ConvertOptions) -> Result<Conversion> {
    let format = to.codec()?;
    let spec = format.spec();
    for (key, _) in &options.options {
        if !spec.options.iter().any(|option| option.key == key) {
            let known: Vec<_> = spec.options.iter().map(|option| option.key).collect();
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            return Err(Error::argument(format!(
                "{} has no option {key:?}; its options are: {known}",
                spec.name
            )));
        }
    }
    let candidates: Vec<&'static Profile> = match &options.version {
        Some(version) => vec![spec.profile(version).ok_or_else(|| {
            let known: Vec<_> = spec.writes.iter().map(|profile| profile.version).collect();
            Error::argument(format!(
                "{} has no version {version:?} to write; there are: {}",
                spec.name,
                known.join(", ")
            ))
        })?],
        None => spec.writes.iter().collect(),
    };
    let mut best: Option<(&Profile, Manifest, Vec<Loss>)> = None;
    for profile in candidates {
        let (adapted, mut losses) = adapt(from.manifest(), &profile.can);
        check_requests(profile, spec.name, options, &adapted, &mut losses);
        if best
            .as_ref()
            .is_none_or(|(_, _, least)| severity(&losses) < severity(least))
        {
            best = Some((profile, adapted, losses));
        }
        if best
            .as_ref()
            .is_some_and(|(_, _, losses)| severity(losses).0.is_none())
        {
            break;
        }
    }
    let Some((profile, adapted, mut losses)) = best else {
        return Err(Error::unsupported(
            "read-only",
            format!("{} is read, not written", spec.name),
        ));
    };
    let because = spec
        .writes
        .first()
        .filter(|first| options.version.is_none() && first.version != profile.version)
        .map(|first| {
            let (_, mut lost) = adapt(from.manifest(), &first.can);
            check_requests(first, spec.name, options, &adapted, &mut lost);
            let worst = lost.iter().max_by_key(|loss| loss.effect);
            format!(
                "{} cannot hold everything ({})",
                first.version,
                worst.map(ToString::to_string).unwrap_or_default()
            )
        });
    losses.sort_by_key(|loss| core::cmp::Reverse(loss.effect));
    Ok(Conversion {
        profile,
        because,
        losses,
        from: from.clone(),
        adapted,
        format,
        options: options.clone(),
    })
}

/// How bad losses are: the worst beyond a rearrangement, and how many are beyond it.
fn severity(losses: &[Loss]) -> (Option<Effect>, usize) {
    let real = losses
        .iter()
        .filter(|loss| loss.effect > Effect::Rearranged);
    (real.clone().map(|loss| loss.effect).max(), real.count())
}

/// Compression and checksums that were asked for and that the version does not have.
fn check_requests(
    profile: &Profile,
    format: &str,
    options: &ConvertOptions,
    what: &Manifest,
    losses: &mut Vec<Loss>,
) {
    let mut refuse = |what: String| {
        let why = format!("{format} {} has no place for it", profile.version);
        losses.push(Loss {
            tensor: None,
            what,
            why,
            effect: Effect::Impossible,
        });
    };
    let compressed = |tensor| matches!((options.compression)(tensor), Compression::Zstd(_));
    if !profile.can.zstd && what.tensors.iter().any(compressed) {
        refuse("compression with zstd".into());
    }
    if let Checksums::With(kind) = options.checksums
        && !profile.can.checksums.contains(&kind)
    {
        refuse(format!("a {kind} checksum"));
    }
}

impl Conversion {
    /// Refuses what is worse than what was allowed, and says how it could be done.
    pub fn refuse_losses(&self) -> Result<()> {
        let refused: Vec<_> = self
            .losses
            .iter()
            .filter(|loss| loss.effect > self.options.allow.min(Effect::Dropped))
            .collect();
        let Some(worst) = refused.first() else {
            return Ok(());
        };
        let target = format!("{} {}", self.format.spec().name, self.profile.version);
        let message = if worst.effect == Effect::Impossible {
            let alternatives = self.alternatives();
            let hint = match alternatives.is_empty() {
                true => String::new(),
                false => format!("; it can be held by {}", alternatives.join(", ")),
            };
            format!("{target} cannot hold this: {worst}{hint}")
        } else {
            let count = refused.len();
            let entries = if count == 1 { "entry" } else { "entries" };
            let verb = if worst.effect == Effect::Dropped {
                "drop"
            } else {
                "change"
            };
            format!(
                "refusing to {verb} {count} metadata {entries} ({worst}); pass --allow {} to accept",
                worst.effect
            )
        };
        Err(Error::new(ErrorKind::Lossy, "loss", message))
    }

    /// Other versions and formats that could hold everything.
    fn alternatives(&self) -> Vec<String> {
        let mut found = Vec::new();
        for entry in self
            .options
            .registry
            .entries()
            .iter()
            .filter(|entry| entry.codec.is_some())
        {
            for profile in entry.spec.writes {
                let (adapted, mut losses) = adapt(self.from.manifest(), &profile.can);
                check_requests(
                    profile,
                    entry.spec.name,
                    &self.options,
                    &adapted,
                    &mut losses,
                );
                if severity(&losses).0 < Some(Effect::Impossible) {
                    let Spec { id, name, .. } = entry.spec;
                    let version = profile.version;
                    found.push(format!("{name} {version} (--to {id} --version {version})"));
                    break;
                }
            }
        }
        found
    }

    /// Writes the files, looks at them again, and makes them visible.
    pub fn write(self, file_name: &str, mut out: Box<dyn Output + '_>) -> Result<Report> {
        self.refuse_losses()?;
        let report = self.write_uncommitted(file_name, &mut *out)?;
        // Whoever stopped the work while it was compared does not want its output either.
        self.options.execute.control.advance(0)?;
        out.commit()?;
        Ok(report)
    }

    fn write_uncommitted(&self, file_name: &str, out: &mut dyn Output) -> Result<Report> {
        let options = &self.options;
        let mut plan_options = PlanOptions::new(self.profile.version, file_name);
        plan_options.options.clone_from(&options.options);
        plan_options.compression = options.compression.clone();
        plan_options.checksums = options.checksums;
        plan_options.timestamp = options.timestamp;
        let wanted = self.format.survey(&plan_options)?;
        let from = survey(&self.from, wanted, options.execute.threads)?;
        // The survey changes where parts are and what they hash to: what is planned must say the same.
        let surveyed = match wanted == crate::format::Survey::default() {
            true => None,
            false => Some(adapt(from.manifest(), &self.profile.can).0),
        };
        let adapted = surveyed.as_ref().unwrap_or(&self.adapted);
        let plan = self
            .format
            .plan(adapted, &plan_options)
            .map_err(|error| error.in_format(self.format.spec().id))?;
        let names: Vec<_> = plan.files.iter().map(|file| file.name.clone()).collect();
        execute(plan, &from, out, &options.execute)?;
        let mut report = Report {
            files: Vec::new(),
            tensors: adapted.tensors.len(),
        };
        for name in &names {
            let len = out.written(name)?.map_or(0, |source| source.len());
            report.files.push((name.clone(), len));
        }
        if let Some(main) = names.first()
            && let Some(source) = out.written(main)?
        {
            self.compare(source, main, out, &names)?;
        }
        Ok(report)
    }

    /// Opens what was written and compares it with what should have been.
    fn compare(
        &self,
        source: Arc<dyn Source>,
        name: &str,
        out: &dyn Output,
        names: &[String],
    ) -> Result<()> {
        let siblings = WrittenFiles::new(out, names)?;
        let spec = self.format.spec();
        let registry = self.options.registry.clone();
        let registry = if registry.get(spec.id).is_ok() {
            registry
        } else {
            registry.with(self.format)
        };
        let written = OpenOptions::new()
            .registry(registry)
            .format(Some(spec.id))
            .limits(*self.from.limits())
            .read_beside(source, Some(name), &siblings)?;
        let failed = |message: String| {
            Error::mismatch(
                "readback",
                format!("what was written does not read back: {message}"),
            )
        };
        let (expected, got) = (&self.adapted.tensors, &written.manifest().tensors);
        if expected.len() != got.len() {
            return Err(failed(format!(
                "{} tensors instead of {}",
                got.len(),
                expected.len()
            )));
        }
        for tensor in expected {
            // An only tensor may have been named by its file.
            let found = match (expected.as_slice(), got.as_slice()) {
                ([_], [only]) if only.unnamed => Some(only),
                _ => written.get(&tensor.name).map(|found| found.info()),
            };
            let found =
                found.ok_or_else(|| failed(format!("tensor {:?} is missing", tensor.name)))?;
            if let Some(defect) = &found.defect {
                return Err(failed(format!("tensor {:?}: {defect}", tensor.name)));
            }
            let same_type = found.dtype == tensor.dtype && found.shape == tensor.shape;
            let same_parts = found.parts.len() == tensor.parts.len()
                && found
                    .parts
                    .iter()
                    .all(|part| tensor.part(&part.role).is_some());
            if !same_type || !same_parts || found.dense_len() != tensor.dense_len() {
                return Err(failed(format!(
                    "tensor {:?} is {} {:?} instead of {} {:?}",
                    tensor.name, found.dtype, found.shape, tensor.dtype, tensor.shape
                )));
            }
        }
        #[cfg(feature = "digest")]
        if self.options.check {
            self.compare_digests(&written, failed)?;
        }
        Ok(())
    }

    #[cfg(feature = "digest")]
    fn compare_digests(&self, written: &Archive, failed: impl Fn(String) -> Error) -> Result<()> {
        let threads = self.options.execute.threads;
        let (before, after) = (
            crate::ops::digest(&self.from, threads),
            crate::ops::digest(written, threads),
        );
        let after: LookupMap<_, _> = after.tensors.into_iter().collect();
        for (name, sum) in &before.tensors {
            let sum = sum.clone()?;
            let found = match after.len() {
                1 => after.values().next(),
                _ => after.get(name),
            };
            match found {
                Some(Ok(found)) if *found == sum => {}
                Some(Err(error)) => return Err(error.clone()),
                _ => return Err(failed(format!("the content of tensor {name:?} differs"))),
            }
        }
        Ok(())
    }
}

/// The files of an output that is not visible yet, as siblings of each other.
struct WrittenFiles(Vec<(String, Arc<dyn Source>)>);

impl WrittenFiles {
    fn new(out: &dyn Output, names: &[String]) -> Result<Self> {
        let mut files = Vec::new();
        for name in names {
            files.extend(out.written(name)?.map(|source| (name.clone(), source)));
        }
        Ok(Self(files))
    }
}

impl crate::io::Siblings for WrittenFiles {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.0.iter().map(|(name, _)| name.clone()).collect())
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
}
