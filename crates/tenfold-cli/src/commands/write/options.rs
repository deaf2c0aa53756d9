//! How the writing was asked to be done, in the words of the library: formats, checksums, compression, types.

use std::collections::HashSet;
use std::sync::Arc;

use globset::GlobSet;
use tenfold::format::{Checksums, Compression, Effect, Entry, Finding, Severity};
use tenfold::model::{DigestKind, TensorInfo};
use tenfold::ops::{self, Conversion, ConvertOptions, QuantizedGroup};
use tenfold::{Archive, Hint};

use super::quantize::{QuantizedTensors, Retyped};
use super::{Request, is_directory};
use crate::args::{Allow, Checksum, Types, Writing};
use crate::commands::globs;
use crate::failure::{Failure, Result};
use crate::losses;
use crate::output::{Clean, count, say};

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

    /// The tensors, with those that are quantized together as one where they are to become numbers, and which these are:
    /// patterns are about the names that the numbers have.
    pub(crate) fn grouped(
        &self,
        types: &Types,
        archive: Archive,
    ) -> Result<(Archive, Vec<QuantizedGroup>)> {
        if !types.dequantize {
            return Ok((archive, Vec::new()));
        }
        let quantized = ops::quantized(&archive).map_err(|error| self.about(&error))?;
        if !quantized.left_out.is_empty() && !self.writing.quiet {
            let names: Vec<_> = quantized.left_out.iter().map(String::as_str).collect();
            let names = losses::some(&names);
            say(format_args!(
                "left out with the quantization: {}",
                Clean(&names)
            ));
        }
        Ok((quantized.archive, quantized.groups))
    }

    /// That quantized tensors stay in parts, where they go into another format.
    pub(crate) fn remark_parts(&self, archive: &Archive, conversion: &mut Conversion) {
        // What cannot be read of them shows elsewhere.
        let Ok(quantized) = ops::quantized(archive) else {
            return;
        };
        let groups = quantized.groups.iter();
        let schemes = groups.map(|group| group.scheme.name.as_str());
        let mut schemes: Vec<_> = schemes.collect();
        schemes.dedup();
        if schemes.is_empty() {
            return;
        }
        let all = quantized.groups.len();
        let stay = if all == 1 { "stays" } else { "stay" };
        let count = count(all, "quantized tensor");
        let message = format!("{count} ({}) {stay} in parts", losses::some(&schemes));
        let remark = Finding::new(Severity::Note, "quantized.parts", message);
        conversion.remarks.push(remark.hinting(Hint::Dequantize));
    }

    /// The tensors with the types that are asked for.
    ///
    /// A rule with a pattern counts more than one without: matrices are quantized and all else is cast, or all of them but
    /// those that a pattern casts. Two patterns for one tensor contradict each other.
    pub(crate) fn retype(
        &self,
        types: &Types,
        archive: Archive,
        mut groups: Vec<QuantizedGroup>,
    ) -> Result<Retyped> {
        let about = |error| self.about(&error);
        groups.retain(|group| archive.index_of(&group.name).is_some());
        let dequantized = types.dequantize.then_some(groups);
        let archive = if types.dequantize {
            ops::dequantize(&archive).map_err(about)?
        } else {
            archive
        };
        let casts = Arc::new(self.rules("--cast", &types.cast, &archive)?);
        let Some(quantizing) = self.quantizing(types, &archive, casts.clone())? else {
            let cast = |info: &TensorInfo| casts.find(info).map(|(dtype, _)| dtype);
            let archive = ops::cast(&archive, cast).map_err(about)?;
            return Ok(Retyped {
                archive,
                quantized: None,
                dequantized,
            });
        };
        // What will be quantized is not cast, unless that was said of its name.
        let plan = ops::quantize(&archive, &quantizing.options).map_err(about)?;
        quantizing.check(&plan)?;
        let left: HashSet<&str> = (plan.choices.iter())
            .filter(|choice| choice.is_left())
            .map(|choice| &*choice.name)
            .collect();
        let before = ops::cast(&archive, |info| {
            let (dtype, by_name) = casts.find(info)?;
            (by_name || left.contains(&*info.name)).then_some(dtype)
        })
        .map_err(about)?;
        let quantized = ops::quantize(&before, &quantizing.options).map_err(about)?;
        Ok(Retyped {
            archive: quantized.archive,
            quantized: Some(QuantizedTensors {
                before,
                choices: quantized.choices,
                remarks: quantized.remarks,
                report: types.report,
            }),
            dequantized,
        })
    }

    pub(super) fn rules<T: Copy>(
        &self,
        option: &str,
        given: &[(T, Option<String>)],
        archive: &Archive,
    ) -> Result<Rules<T>> {
        let mut rules = Vec::new();
        for (what, pattern) in given.iter().rev() {
            self.check_pattern(option, pattern.as_ref(), archive)?;
            rules.push((*what, globs(pattern.as_slice())?));
        }
        Ok(Rules { rules })
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
pub(super) struct Rules<T> {
    rules: Vec<(T, Option<GlobSet>)>,
}

impl<T: Copy> Rules<T> {
    /// What a tensor becomes, and whether that was said of its name.
    pub(super) fn find(&self, info: &TensorInfo) -> Option<(T, bool)> {
        let matches =
            |set: &Option<GlobSet>| set.as_ref().is_none_or(|set| set.is_match(&info.name));
        let rule = self.rules.iter().find(|(_, set)| matches(set));
        rule.map(|(what, set)| (*what, set.is_some()))
    }
}
