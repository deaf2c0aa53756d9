//! What a conversion will write and lose, before anything is written.

use super::layout::alone;
use super::{Conversion, ConvertOptions};
use crate::archive::Archive;
use crate::archive::complete;
use crate::error::{Error, Hint, Result};
use crate::execute::Execution;
use crate::format::{
    Belongs, Checksums, Compression, Effect, Entry, Finding, Format, Loss, Lost, PlanOptions,
    Profile, Severity, Spec, adapt,
};
use crate::model::{Kept, Layout, Manifest, Scheme, TensorInfo, Value};
use crate::ops::cast::cast_losses;
use crate::ops::sparse;
use crate::prelude::*;
use crate::transform::Tally;

impl Conversion {
    /// Finds out what writing `from` in another format means. Writes nothing, and reads tensor data only where
    /// [`ConvertOptions::sparse`] wants it listed.
    ///
    /// ```
    /// use tenfold::format::Registry;
    /// use tenfold::{Archive, Bytes, io::MemoryOutput, model::DType, ops::Conversion};
    /// let mut builder = Archive::builder();
    /// builder.push("x", DType::U8, &[3], Bytes::from_static(b"abc"))?;
    /// let registry = Registry::standard();
    /// let conversion = Conversion::prepare(&builder.finish(), registry.get("npy")?, &Default::default())?;
    /// assert!(conversion.losses.is_empty());
    /// let mut output = MemoryOutput::new();
    /// let report = conversion.write_to("x.npy", &mut output)?;
    /// assert_eq!(report.files, [("x.npy".to_owned(), 128 + 3)]);
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn prepare(from: &Archive, to: &Entry, options: &ConvertOptions) -> Result<Self> {
        let format = to.codec()?;
        let spec = format.spec();
        check_options(spec, options)?;
        check_keys(from.manifest())?;
        let candidates = candidates(spec, options)?;
        let from = from.loaded()?.with_threads(options.work.threads);
        let (from, arranged) = arrange(&from, format, options)?;
        let casts = cast_losses(from.manifest());
        let tally = Tally::default();
        let execution = Execution::new(&options.work, &tally);
        let source = from.clone();
        let (from, candidates) =
            sparse::list_entries(&from, candidates, spec, options.sparse, &execution)?;
        let Some((profile, adapted)) = least_lossy(&from, spec, candidates, options) else {
            return Err(Error::unsupported(
                "read-only",
                format!("{} is read, not written", spec.name),
            ));
        };
        let Adapted {
            manifest: adapted,
            mut losses,
            left_behind,
        } = adapted;
        losses.extend(arranged);
        losses.extend(complete::losses(&source));
        if !format.keeps_shared() {
            losses.extend(copies(source.manifest()));
        }
        losses.sort_by_key(|loss| core::cmp::Reverse(loss.effect));
        let mut plan_options = PlanOptions::new(profile.version, "");
        plan_options.options.clone_from(&options.options);
        let mut remarks: Vec<_> = remark(&left_behind).into_iter().collect();
        remarks.extend(format.remarks(&adapted, &plan_options));
        remarks.extend(taken(source.manifest()));
        Ok(Self {
            remarks,
            profile,
            because: why_not_first(&from, spec, profile, &losses, options),
            losses,
            casts,
            counted: tally.counts(),
            source,
            from,
            adapted,
            format,
            options: options.shared(),
            #[cfg(feature = "std")]
            companions: Vec::new(),
        })
    }
}

/// Says what tensors that become numbers were taken for, where the file itself does not say what they are.
fn taken(what: &Manifest) -> Vec<Finding> {
    let mut schemes: Vec<(&Scheme, u64)> = Vec::new();
    for tensor in &what.tensors {
        let decoder = tensor
            .decoder
            .as_ref()
            .filter(|_| tensor.layout == Layout::Decoded);
        let Some(scheme) = decoder.and_then(|decoder| decoder.scheme()) else {
            continue;
        };
        match schemes.iter_mut().find(|(known, _)| *known == scheme) {
            Some((_, count)) => *count += 1,
            None => schemes.push((scheme, 1)),
        }
    }
    let say = |(scheme, count): (&Scheme, u64)| {
        let tensors = if count == 1 {
            "tensor was"
        } else {
            "tensors were"
        };
        let Scheme { name, parameters } = scheme;
        let message = format!("{count} {tensors} taken for {name} ({parameters})");
        Finding::new(Severity::Note, "quantized.taken", message)
    };
    schemes.into_iter().map(say).collect()
}

/// Refuses metadata with a key twice: a format that has it as a map would write a file that nobody reads.
fn check_keys(what: &Manifest) -> Result<()> {
    let of_tensors = what.tensors.iter();
    let all = of_tensors.map(|tensor| (Some(&*tensor.name), &tensor.metadata));
    for (tensor, metadata) in all.chain([(None, &what.metadata)]) {
        let mut keys: Vec<_> = metadata.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        let mut neighbours = keys.iter().zip(keys.iter().skip(1));
        if let Some((key, _)) = neighbours.find(|(a, b)| a == b) {
            let error = Error::argument(format!("metadata has the key {key:?} twice"));
            return Err(match tensor {
                Some(name) => error.in_tensor(name),
                None => error,
            });
        }
    }
    Ok(())
}

/// Refuses options that the format does not have.
fn check_options(spec: &Spec, options: &ConvertOptions) -> Result<()> {
    let is_known = |key: &str| spec.options.iter().any(|option| option.key == key);
    let Some((key, _)) = options.options.iter().find(|(key, _)| !is_known(key)) else {
        return Ok(());
    };
    let known: Vec<_> = spec.options.iter().map(|option| option.key).collect();
    let known = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    };
    Err(Error::argument(format!(
        "{} has no option {key:?}; its options are: {known}",
        spec.name
    )))
}

/// The versions to choose from.
fn candidates(spec: &'static Spec, options: &ConvertOptions) -> Result<Vec<&'static Profile>> {
    let Some(version) = &options.version else {
        return Ok(spec.writes.iter().collect());
    };
    let profile = spec.profile(version).ok_or_else(|| {
        let known: Vec<_> = spec.writes.iter().map(|profile| profile.version).collect();
        Error::argument(format!(
            "{} has no version {version:?} to write; there are: {}",
            spec.name,
            known.join(", ")
        ))
    })?;
    Ok(vec![profile])
}

/// The first version that loses nothing, else the one that loses the least.
fn least_lossy(
    from: &Archive,
    spec: &Spec,
    candidates: Vec<&'static Profile>,
    options: &ConvertOptions,
) -> Option<(&'static Profile, Adapted)> {
    let mut best: Option<(&'static Profile, Adapted)> = None;
    for profile in candidates {
        let adapted = adapt_to(from, spec, profile, options);
        let now = adapted.severity();
        if (best.as_ref()).is_none_or(|(_, least)| now < least.severity()) {
            best = Some((profile, adapted));
        }
        if now == (None, 0, 0) {
            break;
        }
    }
    best
}

/// Why a version was chosen that is not the format's first choice.
fn why_not_first(
    from: &Archive,
    spec: &Spec,
    profile: &Profile,
    losses: &[Loss],
    options: &ConvertOptions,
) -> Option<String> {
    let first = spec.writes.first()?;
    if options.version.is_some() || first.version == profile.version {
        return None;
    }
    let Adapted {
        losses: mut lost,
        left_behind,
        ..
    } = adapt_to(from, spec, first, options);
    lost.extend(left_behind);
    // What is lost in both is not a reason.
    let mut in_both: LookupMap<_, ()> = LookupMap::default();
    in_both.extend(losses.iter().map(|loss| ((&loss.tensor, &loss.what), ())));
    let reasons = (lost.iter()).filter(|loss| !in_both.contains_key(&(&loss.tensor, &loss.what)));
    let worst = reasons.max_by_key(|loss| loss.effect);
    Some(format!(
        "{} cannot hold everything ({})",
        first.version,
        worst.map(Loss::in_words).unwrap_or_default()
    ))
}

/// The tensors as the format will have them, and what that loses. Files for every tensor are arranged one by one.
pub(super) fn arrange(
    from: &Archive,
    format: &dyn Format,
    options: &ConvertOptions,
) -> Result<(Archive, Vec<Loss>)> {
    let mut plan_options = PlanOptions::new("", "");
    plan_options.options.clone_from(&options.options);
    plan_options.sources = from.sources().map(|(_, source)| source.clone()).collect();
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

/// What survives in a version of a format.
pub(super) struct Adapted {
    pub(super) manifest: Manifest,
    pub(super) losses: Vec<Loss>,
    /// Metadata about the container that is left: no loss, and yet better kept.
    left_behind: Vec<Loss>,
}

/// How bad losses are, and how much is left behind beside them.
type Severities = (Option<Effect>, usize, usize);

impl Adapted {
    fn severity(&self) -> Severities {
        let (worst, count) = severity(&self.losses);
        (worst, count, self.left_behind.len())
    }
}

/// What survives in a version of a format; one file for every tensor holds any number of them.
pub(super) fn adapt_to(
    from: &Archive,
    spec: &Spec,
    profile: &Profile,
    options: &ConvertOptions,
) -> Adapted {
    let mut can = profile.can;
    if options.file_per_tensor {
        can.max_tensors = u64::MAX;
    }
    let (mut adapted, mut losses) = adapt(from.manifest(), &can);
    let left_behind = leave_behind(from.manifest(), spec, options, &mut adapted, &mut losses);
    adapted.kept.retain(|kept| kept.format == spec.id);
    let is_lost = |kept: &&Kept| !kept.is_frame && (!can.kept || kept.format != spec.id);
    let lost = from.manifest().kept.iter().filter(is_lost);
    losses.extend(lost.map(|kept| {
        let what = Lost::Kept {
            format: kept.format,
            name: kept.name.clone(),
        };
        let why = if kept.format == spec.id {
            "no place in the target"
        } else {
            "only its own format can hold it"
        };
        Loss::new(None, what, why, Effect::Dropped)
    }));
    losses.extend(unknown_checksums(from.manifest(), options));
    check_requests(spec, profile, options, &adapted, &mut losses);
    sparse::check_expansion(from, &adapted, &mut losses);
    Adapted {
        manifest: adapted,
        losses,
        left_behind,
    }
}

/// Takes what is about the container that is left out of the losses, and what no other format should get out of the
/// metadata. Gives what is not carried over, and had no place.
fn leave_behind(
    what: &Manifest,
    spec: &Spec,
    options: &ConvertOptions,
    adapted: &mut Manifest,
    losses: &mut Vec<Loss>,
) -> Vec<Loss> {
    let registry = &options.registry;
    for (key, value) in what.metadata.iter() {
        let (belongs, id) = registry.owner(key, value);
        if belongs == Belongs::ToFormat && id != Some(spec.id) {
            adapted.metadata.remove(key);
        }
    }
    let mut left = Vec::new();
    let mut tensors: Option<LookupMap<&str, &TensorInfo>> = None;
    losses.retain(|loss| {
        let Lost::Metadata(key) = &loss.what else {
            return true;
        };
        let metadata = match &loss.tensor {
            None => Some(&what.metadata),
            Some(name) => {
                let tensors = tensors.get_or_insert_with(|| {
                    let all = what.tensors.iter();
                    all.map(|tensor| (tensor.name.as_str(), tensor)).collect()
                });
                tensors.get(name.as_str()).map(|tensor| &tensor.metadata)
            }
        };
        let value = metadata.and_then(|metadata| metadata.get(key));
        let is_content = |value: &Value| registry.owner(key, value).0 == Belongs::ToContent;
        if value.is_none_or(is_content) {
            return true;
        }
        if loss.effect == Effect::Dropped {
            left.push(loss.clone());
        }
        false
    });
    left
}

/// Says what is not carried over because it is about the container.
fn remark(left: &[Loss]) -> Option<Finding> {
    let mut keys: Vec<&str> = Vec::new();
    for loss in left {
        match &loss.what {
            Lost::Metadata(key) if !keys.contains(&key.as_str()) => keys.push(key),
            _ => {}
        }
    }
    if keys.is_empty() {
        return None;
    }
    let message = format!(
        "metadata that describes the container is left out: {}",
        keys.join(", ")
    );
    Some(Finding::new(Severity::Note, "file.container", message))
}

/// Checksums that nobody here can compute, and that cannot be known to be right in another file. Whoever does not want
/// checksums compared is told and not kept from writing.
fn unknown_checksums(what: &Manifest, options: &ConvertOptions) -> Vec<Loss> {
    let effect = if options.verify {
        Effect::Dropped
    } else {
        Effect::Rearranged
    };
    let readable = what.tensors.iter().filter(|info| info.defect.is_none());
    let wanted = readable.filter(|_| options.checksums != Checksums::None);
    let texts = wanted.flat_map(|info| {
        let parts = info.parts.iter();
        parts.filter_map(move |part| Some((info, part.unknown.as_ref()?.checksum.as_ref()?)))
    });
    let losses = texts.map(|(info, text)| {
        let why = "tenfold cannot verify it, and leaves it out";
        let what = Lost::Checksum(text.clone());
        Loss::new(Some(info.name.clone()), what, why, effect)
    });
    losses.collect()
}

/// Tensors that have the same data and will have a copy each.
fn copies(what: &Manifest) -> Vec<Loss> {
    let mut known: LookupMap<_, &str> = LookupMap::default();
    let mut losses = Vec::new();
    for tensor in &what.tensors {
        let [part] = tensor.parts.as_slice() else {
            continue;
        };
        let Some((source, range)) = part.payload.stored().filter(|(_, range)| !range.is_empty())
        else {
            continue;
        };
        let place = (source, range, part.payload.within());
        match known.get(&place) {
            Some(first) => losses.push(Loss::new(
                Some(tensor.name.clone()),
                Lost::Sharing((*first).to_owned()),
                "written as a copy",
                Effect::Rearranged,
            )),
            None => {
                known.insert(place, &tensor.name);
            }
        }
    }
    losses
}

/// How bad losses are: the worst beyond a rearrangement, and how many are beyond it.
pub(super) fn severity(losses: &[Loss]) -> (Option<Effect>, usize) {
    let real = losses
        .iter()
        .filter(|loss| loss.effect > Effect::Rearranged);
    (real.clone().map(|loss| loss.effect).max(), real.count())
}

/// Compression and checksums that were asked for and that the version does not have.
fn check_requests(
    spec: &Spec,
    profile: &Profile,
    options: &ConvertOptions,
    what: &Manifest,
    losses: &mut Vec<Loss>,
) {
    let mut refuse = |what: Lost, hint: Option<Hint>| {
        let why = "no place in the target";
        let mut loss = Loss::new(None, what, why, Effect::Impossible);
        loss.hints.extend(hint);
        losses.push(loss);
    };
    let compressed = |tensor| matches!((options.compression)(tensor), Compression::Zstd(_));
    if !profile.can.zstd && what.tensors.iter().any(compressed) {
        let deflates = spec.options.iter().any(|option| option.key == "deflate");
        let deflate = Hint::FormatOption {
            key: "deflate",
            value: "9",
            does: "compresses with deflate",
        };
        refuse(Lost::Compression, deflates.then_some(deflate));
    }
    if let Checksums::With(kind) = options.checksums
        && !profile.can.checksums.contains(&kind)
    {
        refuse(Lost::Checksums(kind), None);
    }
}
