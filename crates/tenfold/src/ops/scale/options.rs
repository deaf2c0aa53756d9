//! How the work of a plan is done, as plain data: what the options of the command say.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex::{RegexSet, RegexSetBuilder};
use serde::{Deserialize, Serialize};

use crate::archive::{Archive, OpenOptions};
use crate::error::{Error, Result};
use crate::format::{Checksums, Compression, Effect, Entry, Registry};
use crate::io::Limits;
use crate::model::{DType, DigestKind, TensorInfo};
use crate::ops::{self, ConvertOptions, DiffOptions, Shards, Sparse, Tolerance};
use crate::prelude::*;
use crate::threads::Work;

/// A rule for all tensors, or for those whose names match a pattern, with `*` and `?`.
pub type Rule<T> = (T, Option<String>);

/// How the work of a plan is done, as a plan says it: texts that any machine reads. What is not set is as it is where nothing is
/// said; texts that mean nothing are refused when a plan is made.
///
/// ```
/// use tenfold::ops::scale::Options;
/// let options = Options {
///     to: Some("gguf".into()),
///     cast: vec![("f16".into(), Some("*.weight".into()))],
///     ..Options::default()
/// };
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The id of the format that inputs have, instead of detecting it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The type that bytes without one are taken for: [`OpenOptions::assume_dtype`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assume: Option<String>,
    /// Objects of unknown classes are read as records: [`OpenOptions::opaque`].
    #[serde(skip_serializing_if = "is_default")]
    pub opaque: bool,
    /// Options of formats for reading: [`OpenOptions::options`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reading: Vec<(String, String)>,
    /// Checksums are not compared: [`OpenOptions::checksums`].
    #[serde(skip_serializing_if = "is_default")]
    pub no_verify: bool,
    /// Limits by their names: [`Limits::named`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<(String, u64)>,
    /// Patterns of the names of tensors that are wanted, with `*` and `?`; without any, all are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Patterns of those that are not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Regular expressions of those that are wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regex: Vec<String>,
    /// The id of the format that is written, where the name of the output does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Its version: [`ConvertOptions::version`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Options of the format that is written: [`ConvertOptions::options`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writing: Vec<(String, String)>,
    /// Levels of Zstandard; of several rules that fit, the last one counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zstd: Vec<Rule<i32>>,
    /// What no rule compresses is not compressed; else it stays as it is.
    #[serde(skip_serializing_if = "is_default")]
    pub raw: bool,
    /// Checksums that are written: `keep`, `none`, or a kind such as `crc32c`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Losses that are allowed: `changed` or `dropped`; [`ConvertOptions::allow`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<String>,
    /// Types that numbers are cast to; of several rules that fit, the last one counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cast: Vec<Rule<String>>,
    /// Quantized tensors are written as the numbers that they stand for.
    #[serde(skip_serializing_if = "is_default")]
    pub dequantize: bool,
    /// What is whole of a damaged file is read: [`OpenOptions::salvage`].
    #[serde(skip_serializing_if = "is_default")]
    pub salvage: bool,
    /// Sparse tensors stay sparse.
    #[serde(skip_serializing_if = "is_default")]
    pub keep_sparse: bool,
    /// All tensors become sparse.
    #[serde(skip_serializing_if = "is_default")]
    pub sparse: bool,
    /// How many bytes a sparse tensor may have when it is dense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_dense: Option<u64>,
    /// About how many bytes a file gets of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard_size: Option<u64>,
    /// Tensors stay distributed over files as they are.
    #[serde(skip_serializing_if = "is_default")]
    pub keep_files: bool,
    /// Every tensor gets a file of its own.
    #[serde(skip_serializing_if = "is_default")]
    pub file_per_tensor: bool,
    /// The name that those of files in a directory are made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stem: Option<String>,
    /// Files that hold no tensors come along from a directory into one.
    #[serde(skip_serializing_if = "is_default")]
    pub along: bool,
    /// The time that is written into formats that have one, in seconds since 1970.
    #[serde(skip_serializing_if = "is_default")]
    pub timestamp: u64,
    /// Numbers are looked at too when files are verified.
    #[serde(skip_serializing_if = "is_default")]
    pub content: bool,
    /// Warnings are findings.
    #[serde(skip_serializing_if = "is_default")]
    pub strict: bool,
    /// Relative tolerance of a comparison: [`Tolerance`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtol: Option<f64>,
    /// Absolute tolerance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub atol: Option<f64>,
    /// Tolerance in units in the last place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ulp: Option<u64>,
    /// Types may differ where values do not.
    #[serde(skip_serializing_if = "is_default")]
    pub ignore_dtype: bool,
    /// Metadata is not compared.
    #[serde(skip_serializing_if = "is_default")]
    pub ignore_metadata: bool,
    /// Values are not compared.
    #[serde(skip_serializing_if = "is_default")]
    pub names_only: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Options {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// How inputs are opened. To verify is to look at checksums.
    pub(super) fn opening(&self, compares: bool) -> Result<OpenOptions> {
        let assume = self.assume.as_deref().map(DType::parse).transpose()?;
        let mut limits = Limits::default();
        for (name, value) in &self.limits {
            limits = limits
                .named(name, *value)
                .ok_or_else(|| Error::argument(format!("there is no limit {name:?}")))?;
        }
        if let Some(bytes) = self.max_dense {
            limits = limits.dense_bytes(bytes);
        }
        let options = OpenOptions::new()
            .limits(limits)
            .format(self.from.as_deref())
            .assume_dtype(assume)
            .opaque(self.opaque)
            .options(self.reading.clone())
            .salvage(self.salvage);
        Ok(if compares {
            options
        } else {
            options.checksums(!self.no_verify)
        })
    }

    /// The tensors that are wanted; that there are none is an error.
    pub(super) fn select(&self, archive: Archive) -> Result<Archive> {
        let archive = if self.salvage {
            archive.select(|info| info.defect.is_none())
        } else {
            archive
        };
        let include = globs(&self.include)?;
        let exclude = globs(&self.exclude)?;
        let regex = regexes(&self.regex)?;
        if include.is_none() && exclude.is_none() && regex.is_none() {
            return Ok(archive);
        }
        let selected = archive.select(|info| {
            let globbed = include.as_ref().map(|set| set.is_match(&info.name));
            let matched = regex.as_ref().map(|set| set.is_match(&info.name));
            let is_included = match (globbed, matched) {
                (None, None) => true,
                (globbed, matched) => globbed.unwrap_or(false) || matched.unwrap_or(false),
            };
            is_included && !exclude.as_ref().is_some_and(|set| set.is_match(&info.name))
        });
        if selected.tensors().len() == 0 && archive.tensors().len() > 0 {
            return Err(Error::argument("the filters leave none of the tensors"));
        }
        Ok(selected)
    }

    /// The tensors with the types that are asked for: a rule with a pattern counts more than one without, of several the last.
    pub(super) fn retype(&self, archive: Archive) -> Result<Archive> {
        let archive = if self.dequantize {
            ops::dequantize(&archive)?
        } else {
            archive
        };
        let casts = rules(&self.cast, |name| DType::parse(name))?;
        ops::cast(&archive, |info| casts.find(info))
    }

    /// The format that is written.
    pub(super) fn target<'r>(&self, registry: &'r Registry, output: &str) -> Result<&'r Entry> {
        match &self.to {
            Some(id) => registry.get(id),
            None => registry.by_extension(output).ok_or_else(|| {
                Error::argument(format!(
                    "{output}: its extension names no format; `to` picks one"
                ))
            }),
        }
    }

    /// How files are written.
    pub(super) fn converting(&self, work: Work) -> Result<ConvertOptions> {
        let kind = |name: &str| match name {
            "keep" => Ok(Checksums::Keep),
            "none" => Ok(Checksums::None),
            "crc32c" => Ok(Checksums::With(DigestKind::Crc32c)),
            "sha256" => Ok(Checksums::With(DigestKind::Sha256)),
            "xxh3" => Ok(Checksums::With(DigestKind::Xxh3)),
            _ => Err(Error::argument(format!("there are no checksums {name:?}"))),
        };
        let allow = match self.allow.as_deref() {
            None => Effect::Rearranged,
            Some("changed") => Effect::Changed,
            Some("dropped") => Effect::Dropped,
            Some(other) => {
                return Err(Error::argument(format!("{other:?} is no loss to allow")));
            }
        };
        let shards = match (self.shard_size, self.keep_files) {
            (Some(size), _) => Some(Shards::Size(size)),
            (None, true) => Some(Shards::Keep),
            (None, false) => None,
        };
        Ok(ConvertOptions::new()
            .version(self.version.as_deref())
            .options(self.writing.clone())
            .compression(self.compression()?)
            .checksums(kind(self.checksum.as_deref().unwrap_or("keep"))?)
            .allow(allow)
            // Every item compares those of its own tensors.
            .verify(!self.no_verify)
            .shards(shards)
            .file_per_tensor(self.file_per_tensor)
            .sparse(match (self.sparse, self.keep_sparse) {
                (true, _) => Sparse::All,
                (_, true) => Sparse::Keep,
                _ => Sparse::AsIs,
            })
            .timestamp(self.timestamp)
            .work(work))
    }

    fn compression(&self) -> Result<impl Fn(&TensorInfo) -> Compression + Send + Sync + use<>> {
        let otherwise = if self.raw {
            Compression::Raw
        } else {
            Compression::Keep
        };
        let rules = rules(&self.zstd, |level| Ok(*level))?;
        Ok(move |info: &TensorInfo| rules.find(info).map_or(otherwise, Compression::Zstd))
    }

    /// How archives are compared.
    pub(super) fn comparing(&self, work: Work) -> DiffOptions {
        let is_any = self.rtol.is_some() || self.atol.is_some() || self.ulp.is_some();
        let tolerance = is_any.then(|| {
            Tolerance::new(
                self.rtol.unwrap_or(0.0),
                self.atol.unwrap_or(0.0),
                self.ulp.unwrap_or(0),
            )
        });
        DiffOptions::new()
            .tolerance(tolerance)
            .ignore_dtype(self.ignore_dtype)
            .ignore_metadata(self.ignore_metadata)
            .names_only(self.names_only)
            .work(work)
    }
}

/// Which tensors become what, the rule that was given last first.
struct Rules<T>(Vec<(T, Option<GlobSet>)>);

impl<T: Copy> Rules<T> {
    /// What a tensor becomes.
    fn find(&self, info: &TensorInfo) -> Option<T> {
        let mut rules = self.0.iter();
        let rule = rules.find(|(_, set)| set.as_ref().is_none_or(|set| set.is_match(&info.name)));
        rule.map(|(what, _)| *what)
    }
}

fn rules<N, T: Copy>(given: &[Rule<N>], named: impl Fn(&N) -> Result<T>) -> Result<Rules<T>> {
    let rules = given.iter().rev();
    let rules = rules.map(|(what, pattern)| Ok((named(what)?, globs(pattern.as_slice())?)));
    Ok(Rules(rules.collect::<Result<_>>()?))
}

/// A set of patterns of names, or nothing where there are none.
fn globs(patterns: &[String]) -> Result<Option<GlobSet>> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        // The same on every system: names of tensors are no paths.
        let glob = GlobBuilder::new(pattern)
            .literal_separator(false)
            .backslash_escape(true)
            .build();
        set.add(glob.map_err(|cause| Error::argument(format!("{pattern:?}: {}", cause.kind())))?);
    }
    let set = set.build();
    let set = set.map_err(|cause| Error::argument(format!("too many patterns: {cause}")))?;
    Ok(Some(set))
}

fn regexes(patterns: &[String]) -> Result<Option<RegexSet>> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let set = RegexSetBuilder::new(patterns).build();
    let set = set.map_err(|cause| Error::argument(format!("regular expressions: {cause}")))?;
    Ok(Some(set))
}
