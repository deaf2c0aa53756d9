//! How the writing was asked to be done, in the words of the library: formats, checksums, compression, types.

use globset::GlobSet;
use tenfold::Archive;
use tenfold::format::{Checksums, Compression, Effect, Entry};
use tenfold::model::{BlockSpec, DType, DigestKind, TensorInfo};
use tenfold::ops::{self, ConvertOptions};

use super::{Request, is_directory};
use crate::args::{Allow, Checksum, Types, Writing};
use crate::commands::globs;
use crate::failure::{Failure, Result};

impl Request<'_> {
    /// How the writing was asked to be done.
    pub(crate) fn options(&self, target: &Entry) -> Result<ConvertOptions> {
        let writing = self.writing;
        let compression = compression(writing)?;
        let checksums = match writing.checksum {
            Checksum::Keep => Checksums::Keep,
            Checksum::None => Checksums::None,
            Checksum::Crc32c => Checksums::With(DigestKind::Crc32c),
            Checksum::Sha256 => Checksums::With(DigestKind::Sha256),
            Checksum::Xxh3 => Checksums::With(DigestKind::Xxh3),
        };
        let allow = match writing.allow {
            None => Effect::Rearranged,
            Some(Allow::Changed) => Effect::Changed,
            Some(Allow::Dropped) => Effect::Dropped,
        };
        Ok(ConvertOptions::new()
            .version(writing.version.as_deref())
            .options(self.opening.reading.writing_options(target.spec))
            .compression(compression)
            .checksums(checksums)
            .allow(allow)
            .verify(!self.opening.no_verify)
            .check(self.is_checked())
            .shards(self.shards)
            .file_per_tensor(is_directory(self.output) && self.shards.is_none() && !self.whole)
            .timestamp(timestamp()?)
            .work(self.work()))
    }

    /// The tensors with the types that are asked for.
    ///
    /// A rule with a pattern counts more than one without: matrices are quantized and all else is cast, or all of them but
    /// those that a pattern casts. Two patterns for one tensor contradict each other.
    pub(crate) fn retype(&self, types: &Types, archive: Archive) -> Result<Archive> {
        let about = |error| self.about(&error);
        let archive = if types.dequantize {
            ops::dequantize(&archive).map_err(about)?
        } else {
            archive
        };
        let casts = self.rules("--cast", &types.cast, &archive, |_, _| true)?;
        let blocks = self.rules("--quantize", &types.quantize, &archive, fits)?;
        let archive = ops::cast(&archive, |info| {
            let (dtype, by_name) = casts.find(info)?;
            let is_quantized = blocks
                .find(info)
                .is_some_and(|(_, named)| named || !by_name);
            (by_name || !is_quantized).then_some(dtype)
        })
        .map_err(about)?;
        ops::quantize(&archive, |info| {
            let (spec, by_name) = blocks.find(info)?;
            let is_cast = casts.find(info).is_some_and(|(_, named)| named);
            (by_name || !is_cast).then_some(spec)
        })
        .map_err(about)
    }

    fn rules<T: Copy>(
        &self,
        option: &str,
        given: &[(T, Option<String>)],
        archive: &Archive,
        fits: fn(&TensorInfo, T) -> bool,
    ) -> Result<Rules<T>> {
        let mut rules = Vec::new();
        for (what, pattern) in given.iter().rev() {
            self.check_pattern(option, pattern.as_ref(), archive)?;
            rules.push((*what, globs(pattern.as_slice())?));
        }
        Ok(Rules { rules, fits })
    }
}

/// The last of the `--zstd` rules that matches, else raw or as it is.
fn compression(
    writing: &Writing,
) -> Result<impl Fn(&TensorInfo) -> Compression + Send + Sync + use<>> {
    let otherwise = if writing.raw {
        Compression::Raw
    } else {
        Compression::Keep
    };
    let mut rules: Vec<(i32, Option<GlobSet>)> = Vec::new();
    for (level, pattern) in writing.zstd.iter().rev() {
        rules.push((*level, globs(pattern.as_slice())?));
    }
    Ok(move |info: &TensorInfo| {
        let matches =
            |set: &Option<GlobSet>| set.as_ref().is_none_or(|set| set.is_match(&info.name));
        let rule = rules.iter().find(|(_, set)| matches(set));
        rule.map_or(otherwise, |(level, _)| Compression::Zstd(*level))
    })
}

/// The time for formats that record one: that of the build that asks for reproducible output, else none.
pub(crate) fn timestamp() -> Result<u64> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().map_err(|_| {
            Failure::Message(format!(
                "SOURCE_DATE_EPOCH is {text:?}; expected seconds since 1970"
            ))
        }),
        Err(_) => Ok(0),
    }
}

/// Which tensors become what, the rule that was given last first.
struct Rules<T> {
    rules: Vec<(T, Option<GlobSet>)>,
    /// What a rule without a pattern is about.
    fits: fn(&TensorInfo, T) -> bool,
}

impl<T: Copy> Rules<T> {
    /// What a tensor becomes, and whether that was said of its name.
    fn find(&self, info: &TensorInfo) -> Option<(T, bool)> {
        let rule = self.rules.iter().find(|(what, set)| match set {
            Some(set) => set.is_match(&info.name),
            None => (self.fits)(info, *what),
        });
        rule.map(|(what, set)| (*what, set.is_some()))
    }
}

/// Whether a tensor is a matrix of floats whose rows are whole blocks.
fn fits(info: &TensorInfo, spec: &BlockSpec) -> bool {
    let floats = [DType::F16, DType::BF16, DType::F32, DType::F64];
    let whole = |row: &u64| row.is_multiple_of(spec.elements.into());
    floats.contains(&info.dtype) && info.shape.len() > 1 && info.shape.last().is_some_and(whole)
}
