//! Conversions that are refused, and what could be done instead.

use super::Conversion;
use super::prepare::{adapt_to, arrange, severity};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Effect, Loss};
use crate::model::{DType, Layout, TensorInfo};
use crate::prelude::*;

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
            let apart = match self.adapted.tensors.len() as u64 > self.profile.can.max_tensors {
                true if !self.options.file_per_tensor => format!(
                    "; OUT/ --to {} writes a directory with a file for each",
                    self.format.spec().id
                ),
                _ => String::new(),
            };
            format!("{target} cannot hold this: {worst}{cast}{apart}{hint}")
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
                && !matches!(tensor.layout, Layout::Opaque { .. })
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
}
