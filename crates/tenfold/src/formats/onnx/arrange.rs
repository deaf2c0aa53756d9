//! What becomes of a graph, and of metadata that a model has no field for.

use super::capability;
use super::rewrite::{self, Rewritten};
use crate::error::Result;
use crate::format::{Arranged, Effect, Fit, Loss, Lost, PlanOptions};
use crate::model::{Manifest, Map, Metadata, Value};
use crate::prelude::*;

/// Keeps the model where it can be written again, and says what is lost where it cannot.
pub(super) fn arrange(what: &Manifest, options: &PlanOptions) -> Result<Arranged> {
    let mut manifest = what.clone();
    let mut losses = Vec::new();
    match rewrite::rewrite(what, options)? {
        Some(Rewritten { losses: found, .. }) => losses.extend(found),
        None => {
            for kept in rewrite::models(what).filter(|kept| !kept.is_frame) {
                let what = Lost::Kept {
                    format: kept.format,
                    name: kept.name.clone(),
                };
                let why = "it is kept with all of its own tensors, and with no others";
                losses.push(Loss::new(None, what, why, Effect::Dropped));
            }
            manifest.kept.retain(|kept| kept.format != super::SPEC.id);
        }
    }
    move_texts(&mut manifest.metadata, &mut losses);
    Ok(Arranged::new(manifest, losses))
}

/// Texts under keys that a model has no field for go into its `metadata_props`.
fn move_texts(metadata: &mut Metadata, losses: &mut Vec<Loss>) {
    let has_place = |key: &str, value: &Value| capability::file_value(key, value) != Fit::No;
    let texts: Vec<(String, Value)> = (metadata.entries())
        .filter(|(key, value, is_fact)| {
            !is_fact && value.as_str().is_some() && !has_place(key, value)
        })
        .map(|(key, value, _)| (key.to_owned(), value.clone()))
        .collect();
    if texts.is_empty() {
        return;
    }
    let mut props: Vec<(String, Value)> = match metadata.get(PROPS) {
        Some(Value::Map(map)) => map
            .iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
        // A text under this key is one of those that move.
        _ => Vec::new(),
    };
    for (key, value) in texts {
        metadata.remove(&key);
        let why = format!("held as an entry of {PROPS}");
        losses.push(Loss::new(
            None,
            Lost::Metadata(key.clone()),
            why,
            Effect::Rearranged,
        ));
        match props.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => props.push((key, value)),
        }
    }
    metadata.set(PROPS, Value::Map(props.into_iter().collect::<Map>()));
}

const PROPS: &str = "metadata_props";
