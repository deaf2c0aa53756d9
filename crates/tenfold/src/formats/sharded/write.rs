//! Laying out several files and their index, or one.

use super::{Family, index};
use crate::error::{Error, Hint, Result};
use crate::format::{FilePlan, Plan, PlanOptions, Segment, ShardName};
use crate::model::Manifest;
use crate::prelude::*;

/// The files as the options say: `file` makes one of some tensors, the first of all with `true`.
pub(in crate::formats) fn plan(
    family: &Family,
    what: &Manifest,
    options: &PlanOptions,
    file: &dyn Fn(Vec<usize>, String, bool) -> Result<FilePlan>,
) -> Result<Plan> {
    let (name, extension) = (&options.file_name, family.extension);
    let index_stem = family.stem(name);
    let Some(shards) = options.shards.clone() else {
        if index_stem.is_some() {
            let message =
                format!("{name:?} is the name of an index; a single file ends in {extension}");
            return Err(Error::argument(message).hinting(Hint::Shard));
        }
        let all = (0..what.tensors.len()).collect();
        return Ok(Plan {
            files: vec![file(all, name.clone(), true)?],
        });
    };
    // As others have it: what fits into one file needs no index, unless that is what was asked for.
    let names = options.shard_names.clone();
    let names = names.filter(|names| fit(names, shards.len(), extension));
    if let ([_] | [], None, None) = (shards.as_slice(), index_stem, &names) {
        let all = shards.into_iter().flatten().collect();
        return Ok(Plan {
            files: vec![file(all, name.clone(), true)?],
        });
    }
    let stem = index_stem.unwrap_or_else(|| match name.rsplit_once('.') {
        Some((stem, end)) if !stem.is_empty() && !end.is_empty() => stem,
        _ => name,
    });
    let count = shards.len();
    let numbered = |number: usize| ShardName {
        stem,
        number: number as u64,
        count: count as u64,
        extension,
    };
    let numbered = |number| numbered(number).to_string();
    let names = names.unwrap_or_else(|| (1..=count).map(numbered).collect());
    sharded(family, what, shards, names, stem, file)
}

/// Whether files can have these names, one for each of `count` shards.
fn fit(names: &[String], count: usize, extension: &str) -> bool {
    let is_file = |name: &String| name.ends_with(extension);
    count > 0 && names.len() == count && names.iter().all(is_file)
}

fn sharded(
    family: &Family,
    what: &Manifest,
    shards: Vec<Vec<usize>>,
    names: Vec<String>,
    stem: &str,
    file: &dyn Fn(Vec<usize>, String, bool) -> Result<FilePlan>,
) -> Result<Plan> {
    let mut total = 0u64;
    let mut weight_map = Vec::new();
    for (places, name) in shards.iter().zip(&names) {
        for tensor in places.iter().filter_map(|&place| what.tensors.get(place)) {
            let len = tensor.dense_len();
            let sum = len.and_then(|len| total.checked_add(len));
            total = sum.ok_or_else(|| {
                let message = "the files would be larger than 64 bits can count";
                Error::unsupported("overflow", message).in_tensor(&tensor.name)
            })?;
            weight_map.push((tensor.name.as_str(), name.as_str()));
        }
    }
    let text = index::encode(total, weight_map);
    let mut files = vec![FilePlan::new(
        family.index_name(stem),
        vec![Segment::Bytes(text.into_bytes())],
    )];
    for (number, (places, name)) in shards.into_iter().zip(names).enumerate() {
        files.push(file(places, name, number == 0)?);
    }
    Ok(Plan { files })
}
