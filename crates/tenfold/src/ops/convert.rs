//! Conversion: what would be lost first, then the writing, then a look at what was written.

mod layout;

use crate::archive::Archive;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    Checksums, Compression, Effect, Entry, ExecuteOptions, Format, Loss, Plan, PlanOptions,
    Profile, Registry, Spec, adapt, execute,
};
use crate::io::Output;
use crate::model::{DType, Manifest, TensorInfo};
use crate::ops::CastCounts;
use crate::ops::cast::cast_losses;
use crate::ops::readback::{Opened, Readback};
use crate::ops::shards::Shards;
use crate::ops::sparse::{self, Sparse};
use crate::ops::survey;
use crate::prelude::*;

use layout::alone;

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

/// Finds out what writing `from` in another format means. Writes nothing, and reads tensor data only where
/// [`ConvertOptions::sparse`] wants it listed.
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
    let (from, candidates) = sparse::list_entries(
        &from.loaded()?,
        candidates,
        spec,
        options.sparse,
        &options.execute,
    )?;
    let (from, arranged) = arrange(&from, format, options)?;
    let mut best: Option<(&Profile, Manifest, Vec<Loss>)> = None;
    for profile in candidates {
        let (adapted, losses) = adapt_to(&from, spec, profile, options);
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
            let (_, lost) = adapt_to(&from, spec, first, options);
            let worst = lost.iter().max_by_key(|loss| loss.effect);
            format!(
                "{} cannot hold everything ({})",
                first.version,
                worst.map(ToString::to_string).unwrap_or_default()
            )
        });
    losses.extend(arranged);
    losses.sort_by_key(|loss| core::cmp::Reverse(loss.effect));
    Ok(Conversion {
        profile,
        because,
        losses,
        casts: cast_losses(from.manifest()),
        from,
        adapted,
        format,
        options: options.clone(),
    })
}

/// The tensors as the format will have them, and what that loses. Files for every tensor are arranged one by one.
fn arrange(
    from: &Archive,
    format: &dyn Format,
    options: &ConvertOptions,
) -> Result<(Archive, Vec<Loss>)> {
    let mut plan_options = PlanOptions::new("", "");
    plan_options.options.clone_from(&options.options);
    if !options.file_per_tensor {
        return Ok(match format.arrange(from.manifest(), &plan_options)? {
            Some(arranged) => (from.with_manifest(arranged.manifest), arranged.losses),
            None => (from.clone(), Vec::new()),
        });
    }
    let mut all = from.manifest().clone();
    let mut losses = Vec::new();
    for tensor in core::mem::take(&mut all.tensors) {
        let alone = alone(from.manifest(), tensor);
        match format.arrange(&alone, &plan_options)? {
            Some(arranged) => {
                all.tensors.extend(arranged.manifest.tensors);
                losses.extend(arranged.losses);
            }
            None => all.tensors.extend(alone.tensors),
        }
    }
    Ok((from.with_manifest(all), losses))
}

/// What survives in a version of a format; one file for every tensor holds any number of them.
fn adapt_to(
    from: &Archive,
    spec: &Spec,
    profile: &Profile,
    options: &ConvertOptions,
) -> (Manifest, Vec<Loss>) {
    let mut can = profile.can;
    if options.file_per_tensor {
        can.max_tensors = u64::MAX;
    }
    let (mut adapted, mut losses) = adapt(from.manifest(), &can);
    adapted.kept.retain(|kept| kept.format == spec.id);
    for kept in &from.manifest().kept {
        if !adapted.kept.contains(kept) {
            losses.push(Loss {
                tensor: None,
                what: format!("{} {:?}", kept.format, kept.name),
                why: "what is not understood is kept in the same format only".into(),
                effect: Effect::Dropped,
            });
        }
    }
    check_requests(profile, options, &adapted, &mut losses);
    sparse::check_expansion(from, &adapted, &mut losses);
    (adapted, losses)
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
    options: &ConvertOptions,
    what: &Manifest,
    losses: &mut Vec<Loss>,
) {
    let mut refuse = |what: String| {
        let why = match profile.version {
            "-" => "there is no place for it".to_owned(),
            version => format!("version {version} has no place for it"),
        };
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
    /// How many tensors will be written.
    pub fn tensors(&self) -> usize {
        self.adapted.tensors.len()
    }

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
        let target = self.format.spec().with_version(self.profile.version);
        let message = if worst.effect == Effect::Impossible {
            let alternatives = self.alternatives();
            let cast = match self.is_cast_enough(worst) {
                true => "; convert --cast writes another type",
                false => "",
            };
            let hint = match alternatives.is_empty() {
                true => String::new(),
                false => format!("; it can be held by {}", alternatives.join(", ")),
            };
            format!("{target} cannot hold this: {worst}{cast}{hint}")
        } else {
            let count = refused.len();
            let what = match (count, refused.iter().all(|loss| loss.is_metadata())) {
                (1, true) => "metadata entry",
                (_, true) => "metadata entries",
                (1, false) => "thing",
                (_, false) => "things",
            };
            let verb = if worst.effect == Effect::Dropped {
                "drop"
            } else {
                "change"
            };
            format!(
                "refusing to {verb} {count} {what} ({worst}); pass --allow {} to accept",
                worst.effect
            )
        };
        Err(Error::new(ErrorKind::Lossy, "loss", message))
    }

    /// Whether it is the type of a tensor's numbers that does not fit, which could be another one.
    fn is_cast_enough(&self, loss: &Loss) -> bool {
        let named = |tensor: &&TensorInfo| Some(&tensor.name) == loss.tensor.as_ref();
        let tensor = self.adapted.tensors.iter().find(named);
        tensor.is_some_and(|tensor| {
            matches!(tensor.dtype, DType::Number(..))
                && tensor.layout.is_dense()
                && loss.what == format!("dtype {}", tensor.dtype)
        })
    }

    /// Other versions and formats that could hold everything.
    fn alternatives(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut options = self.options.clone();
        options.options.clear();
        for entry in self.options.registry.entries() {
            let Some(arranged) = entry
                .codec
                .map(|format| arrange(&self.from, format, &options))
            else {
                continue;
            };
            let Ok((from, arranged)) = arranged else {
                continue;
            };
            for profile in entry.spec.writes {
                let (_, losses) = adapt_to(&from, entry.spec, profile, &options);
                if severity(&losses).max(severity(&arranged)).0 < Some(Effect::Impossible) {
                    let (id, version) = (entry.spec.id, profile.version);
                    let name = entry.spec.with_version(version);
                    found.push(match version {
                        "-" => format!("{name} (--to {id})"),
                        _ => format!("{name} (--to {id} --version {version})"),
                    });
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
        let plan_options = self.plan_options(file_name);
        let wanted = self.format.survey(&plan_options)?;
        let surveyed = survey(&self.from, &wanted, &options.execute)?;
        let (from, notes) = (surveyed.archive, surveyed.notes);
        // The survey changes what parts are, and what they are said to hash to: what is planned must say the same.
        let surveyed = match wanted.is_nothing() {
            true => None,
            false => Some(adapt_to(&from, self.format.spec(), self.profile, options).0),
        };
        let adapted = surveyed.as_ref().unwrap_or(&self.adapted);
        let (plan, outputs) = self.plan(adapted, plan_options)?;
        let names: Vec<_> = plan.files.iter().map(|file| file.name.clone()).collect();
        let counting = ExecuteOptions {
            tally: Arc::default(),
            ..options.execute.clone()
        };
        execute(plan, &from, out, &counting)?;
        let readback = Readback {
            format: self.format,
            registry: &options.registry,
            expected: &self.adapted.tensors,
            original: &self.from,
            digests: options.check,
            execute: &options.execute,
        };
        let compared = readback.compare(out, &names, &outputs)?;
        Ok(Report {
            files: compared.files,
            tensors: adapted.tensors.len(),
            content: compared.content,
            notes,
            casts: counting.tally.counts(),
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
        layout::plan(self.format, adapted, &self.options, options)
            .map_err(|error| error.in_format(self.format.spec().id))
    }
}
