//! Conversions that are refused, and what could be done instead.

use super::Conversion;
use super::prepare::{adapt_to, arrange, severity};
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::format::{Effect, Loss, Lost};
use crate::model::{DType, Layout, TensorInfo};
use crate::prelude::*;

impl Conversion {
    /// Refuses what is worse than what was allowed; the [hints](Error::hints) say how it could be done.
    pub fn refuse_losses(&self) -> Result<()> {
        let refused: Vec<_> = self
            .losses
            .iter()
            .filter(|loss| loss.effect > self.options.allow.min(Effect::Dropped))
            .collect();
        let Some(worst) = refused.first() else {
            return Ok(());
        };
        if worst.effect == Effect::Impossible {
            let target = self.format.spec().with_version(self.profile.version);
            let message = format!("{target} cannot hold this: {}", worst.in_words());
            let error = Error::new(ErrorKind::Lossy, "loss", message);
            let hints = worst.hints.iter().cloned().chain(self.remedies(worst));
            return Err(hints.fold(error, Error::hinting));
        }
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
        let message = format!("refusing to {verb} {count} {what} ({worst})");
        let error = Error::new(ErrorKind::Lossy, "loss", message);
        Err(error.hinting(Hint::Allow(worst.effect)))
    }

    /// What could be written instead of something that cannot be held.
    fn remedies(&self, loss: &Loss) -> Vec<Hint> {
        let mut remedies = Vec::new();
        let named = |tensor: &&TensorInfo| Some(&tensor.name) == loss.tensor.as_ref();
        if let Some(tensor) = self.adapted.tensors.iter().find(named) {
            remedies.extend(self.another_form(tensor, &loss.what));
        }
        if matches!(loss.what, Lost::Tensors(_)) && !self.options.file_per_tensor {
            remedies.push(Hint::FilePerTensor(self.format.spec().id));
        }
        remedies.extend(self.alternatives());
        remedies
    }

    /// Numbers of another type, where it is the type that does not fit.
    fn another_form(&self, tensor: &TensorInfo, what: &Lost) -> Option<Hint> {
        let is_number = matches!(tensor.dtype, DType::Number(..));
        let is_opaque = matches!(tensor.layout, Layout::Opaque { .. });
        let is_quantized = is_opaque || matches!(tensor.dtype, DType::Block(_));
        match (what, &tensor.decoder) {
            (Lost::DType(_), _) if is_number && !is_opaque => Some(Hint::Cast(None)),
            (Lost::DType(_) | Lost::Layout(_) | Lost::Shape(_), Some(decoder))
                if is_quantized && (self.profile.can.dtype)(decoder.dtype()) =>
            {
                Some(Hint::Dequantize)
            }
            _ => None,
        }
    }

    /// Other versions and formats that could hold everything.
    fn alternatives(&self) -> Vec<Hint> {
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
                let losses = adapt_to(&from, entry.spec, profile, &options).losses;
                if severity(&losses).max(severity(&arranged)).0 < Some(Effect::Impossible) {
                    found.push(Hint::WriteAs {
                        format: entry.spec.id,
                        version: profile.version,
                    });
                    break;
                }
            }
        }
        found
    }
}
