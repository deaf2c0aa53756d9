//! `--dequantize`, `--cast` and `--quantize`: other types for tensors.

use globset::GlobSet;
use tenfold::Archive;
use tenfold::model::{BlockSpec, DType, TensorInfo};
use tenfold::ops;

use super::Request;
use crate::args::Types;
use crate::commands::globs;
use crate::failure::Result;

impl Request<'_> {
    /// The tensors with the types that are asked for.
    ///
    /// A rule with a pattern counts more than one without: matrices are quantized and all else is cast, or all of them but
    /// those that a pattern casts. Two patterns for one tensor contradict each other.
    pub(crate) fn retype(&self, types: &Types, archive: Archive) -> Result<Archive> {
        let about = |error| self.about(&error);
        let archive = match types.dequantize {
            true => ops::dequantize(&archive).map_err(about)?,
            false => archive,
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
