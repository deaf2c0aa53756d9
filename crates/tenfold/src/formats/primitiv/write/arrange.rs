//! The tensors as a file of some kind has them, and what that takes away.

use super::super::values::{self, DataType, MAX_DEPTH};
use super::super::{batch, names};
use super::contents::{Contents, Parameter};
use super::{configs_of, data_type, shape_of};
use crate::error::Result;
use crate::format::{Arranged, Effect, Loss, Lost, PlanOptions};
use crate::model::{Manifest, TensorInfo, Value};
use crate::prelude::*;

/// The tensors in the order of the file, without what the options leave out, and what stands in the way of writing them.
pub(in crate::formats::primitiv) fn arrange(
    what: &Manifest,
    options: &PlanOptions,
) -> Result<Arranged> {
    let mut manifest = what.clone();
    if drops_stats(options)? {
        manifest.tensors.retain(|tensor| !is_statistic(tensor));
    }
    let data_type = data_type(&manifest, options)?;
    let Contents {
        parameters,
        mut losses,
    } = Contents::of(&manifest, data_type);
    losses.extend(check_metadata(&mut manifest, data_type)?);
    let mut tensors: Vec<_> = core::mem::take(&mut manifest.tensors)
        .into_iter()
        .map(Some)
        .collect();
    let mut arranged = Vec::new();
    for parameter in &parameters {
        let first = arranged.len();
        for (is_value, index) in parameter.tensors() {
            let Some(mut tensor) = tensors.get_mut(index).and_then(Option::take) else {
                continue;
            };
            let batched = !is_value || data_type == DataType::Tensor;
            losses.extend(check_batch(&mut tensor, batched));
            losses.extend(shorten(&mut tensor));
            arranged.push(tensor);
        }
        if parameter.key.is_none() {
            name_anew(arranged.get_mut(first..).unwrap_or_default(), parameter);
        }
    }
    // What has no place is in the list of losses, and stays here so that the other checks see it too.
    arranged.extend(tensors.into_iter().flatten());
    manifest.tensors = arranged.into();
    Ok(Arranged { manifest, losses })
}

fn drops_stats(options: &PlanOptions) -> Result<bool> {
    match options.option("stats") {
        None | Some("keep") => Ok(false),
        Some("drop") => Ok(true),
        Some(_) => Err(options.wrong("stats", "expected keep or drop")),
    }
}

fn is_statistic(tensor: &TensorInfo) -> bool {
    match tensor.metadata.get("role").and_then(Value::as_str) {
        Some("stat") => true,
        Some("value") => false,
        _ => names::Address::parse(&tensor.name).is_ok_and(|address| address.stat.is_some()),
    }
}

/// Takes away the metadata of other kinds of files, which this one has no place for.
fn check_metadata(manifest: &mut Manifest, data_type: DataType) -> Result<Vec<Loss>> {
    let held: &[&str] = match data_type {
        DataType::Shape => shape_of(&manifest.metadata).map(|_| ["dims", "batch"].as_slice())?,
        DataType::Optimizer => {
            configs_of(&manifest.metadata).map(|_| ["uint_configs", "float_configs"].as_slice())?
        }
        DataType::Tensor | DataType::Parameter | DataType::Model => &[],
    };
    let mut losses = Vec::new();
    manifest.metadata = manifest.metadata.filter_map(|key, value| {
        let of_a_kind = matches!(key, "dims" | "batch" | "uint_configs" | "float_configs");
        if of_a_kind && !held.contains(&key) {
            let why = format!("a file of kind {} has no place for it", data_type.name());
            losses.push(dropped(None, key, why));
            return None;
        }
        Some(value.clone())
    });
    Ok(losses)
}

/// Takes a batch away that is none, or that has no place.
fn check_batch(tensor: &mut TensorInfo, batched: bool) -> Option<Loss> {
    let said = tensor.metadata.get("batch").and_then(values::positive)?;
    if batched && (said == 1 || batch(tensor).is_some()) {
        return None;
    }
    let why = if batched {
        format!("the last dimension is not {said}")
    } else {
        "the value of a parameter has no batch; the dimension stays".to_owned()
    };
    tensor.metadata = tensor
        .metadata
        .filter_map(|key, value| (key != "batch").then(|| value.clone()));
    (said != 1).then(|| dropped(Some(&tensor.name), "batch", why))
}

/// Drops dimensions of 1 at the end as long as there are too many: the original does so with all of them.
fn shorten(tensor: &mut TensorInfo) -> Option<Loss> {
    let before = tensor.shape.clone();
    let batch = batch(tensor).map(u64::from);
    let mut shape = before.to_vec();
    shape.truncate(before.len() - usize::from(batch.is_some()));
    while shape.len() > MAX_DEPTH && shape.last() == Some(&1) {
        shape.pop();
    }
    shape.extend(batch);
    tensor.shape = shape.into();
    (tensor.shape != before).then(|| {
        let why = format!("written as {:?}", tensor.shape);
        let name = Some(tensor.name.clone());
        Loss::new(name, Lost::Shape(before), why, Effect::Rearranged)
    })
}

/// Names that come from the file need not be such as a Model could have: they are not written.
fn name_anew(tensors: &mut [TensorInfo], parameter: &Parameter) {
    let Some((value, stats)) = tensors.split_first_mut() else {
        return;
    };
    if names::Address::parse(&value.name).is_err() {
        value.name = names::join(&[&value.name]);
        for (tensor, (stat, _)) in stats.iter_mut().zip(&parameter.stats) {
            tensor.name = names::statistic(&value.name, stat);
        }
    }
}

fn dropped(tensor: Option<&str>, key: &str, why: String) -> Loss {
    let what = Lost::Metadata(key.to_owned());
    Loss::new(tensor.map(ToOwned::to_owned), what, why, Effect::Dropped)
}
