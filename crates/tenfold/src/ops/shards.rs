//! Which tensors go into which of several files.

use alloc::collections::{BTreeMap, BTreeSet};
use core::cmp::Ordering;

use crate::archive::Archive;
use crate::archive::complete::missing_files;
use crate::error::{Error, Result};
use crate::format::ShardName;
use crate::model::{SourceId, TensorInfo};
use crate::prelude::*;

/// How tensors are distributed over several files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Shards {
    /// A file for every layer, and one for the tensors that belong to none. The layer of `model.layers.12.mlp.weight` is
    /// `model.layers.12`: the name up to the first part between dots or slashes that is a number. Layers come in the order
    /// of their names, numbers by their value.
    Layers,
    /// As many files as this, in the order of the tensors, with about the same number of bytes each.
    Parts(usize),
    /// Files with at most this many bytes of tensors, except where a tensor alone has more, in the order of the tensors.
    Size(u64),
    /// As they are distributed over the files that they are read from, under the names that these have.
    Keep,
}

/// The layer that a tensor belongs to: its name up to the first part between dots or slashes that is a number.
fn layer(name: &str) -> Option<&str> {
    let mut from = 0;
    for part in name.split(['.', '/']) {
        let end = from + part.len();
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            return name.get(..end);
        }
        from = end + 1;
    }
    None
}

/// Which tensors, by their places, go into which file. No file is empty.
pub(super) fn group(tensors: &[TensorInfo], by: &Shards) -> Result<Vec<Vec<usize>>> {
    match *by {
        Shards::Keep => Ok(by_source(tensors).into_values().collect()),
        Shards::Layers => Ok(by_layer(tensors)),
        Shards::Parts(parts) => in_parts(&sizes(tensors)?, parts),
        Shards::Size(size) => Ok(in_order(&sizes(tensors)?, size, 0)),
    }
}

/// The names of the files that tensors are read from, in the order of the groups by their sources. There are none to be
/// kept where one is not known, and where they count files of which some have no tensors any more: those are numbered
/// anew.
pub(super) fn source_names(from: &Archive) -> Option<Vec<String>> {
    let sources = by_source(&from.manifest().tensors).into_keys();
    let names = sources.map(|source| from.source_name(source).map(ToOwned::to_owned));
    let names: Vec<_> = names.collect::<Option<_>>()?;
    let all = (0..from.source_count()).filter_map(|id| from.source_name(SourceId(id)));
    let is_whole = missing_files(names.iter().map(String::as_str)) == missing_files(all);
    // Files of several directories can have the same name.
    let distinct: BTreeSet<_> = names.iter().collect();
    let is_distinct = distinct.len() == names.len();
    drop(distinct);
    (is_whole && is_distinct).then_some(names)
}

/// The tensors of each file. One that is in no file goes with the one before it.
fn by_source(tensors: &[TensorInfo]) -> BTreeMap<SourceId, Vec<usize>> {
    let mut files: BTreeMap<SourceId, Vec<usize>> = BTreeMap::new();
    let mut last = SourceId::MAIN;
    for (place, tensor) in tensors.iter().enumerate() {
        let stored = tensor.parts.iter().find_map(|part| part.payload.stored());
        last = stored.map_or(last, |(source, _)| source);
        files.entry(last).or_default().push(place);
    }
    files
}

/// The name of one of several files, counted from 1.
pub(super) fn numbered(name: &str, number: usize, count: usize) -> String {
    let at = name.rfind('.').filter(|&at| at > 0).unwrap_or(name.len());
    let (stem, extension) = name.split_at(at);
    let name = ShardName {
        stem,
        number: number as u64,
        count: count as u64,
        extension,
    };
    name.to_string()
}

/// The bytes that tensors take: dense ones decoded, others as the sum of their parts.
fn sizes(tensors: &[TensorInfo]) -> Result<Vec<u64>> {
    let size = |tensor: &TensorInfo| {
        if tensor.layout.is_dense() {
            tensor.dense_len()
        } else {
            (tensor.parts.iter()).try_fold(0u64, |sum, part| sum.checked_add(part.payload.len()))
        }
    };
    let sizes = tensors.iter().map(|tensor| {
        size(tensor).ok_or_else(|| {
            let message = "its size is unknown or does not fit 64 bits";
            Error::unsupported("overflow", message).in_tensor(&tensor.name)
        })
    });
    sizes.collect()
}

/// A new file whenever the next tensor would make it too large, or `parts` could not be reached otherwise.
fn in_order(sizes: &[u64], size: u64, parts: usize) -> Vec<Vec<usize>> {
    let mut files: Vec<Vec<usize>> = Vec::new();
    let mut used = 0;
    for (place, &len) in sizes.iter().enumerate() {
        let must = sizes.len() - place <= parts.saturating_sub(files.len());
        match files.last_mut() {
            Some(file) if len <= size.saturating_sub(used) && !must => {
                file.push(place);
                used += len;
            }
            _ => {
                files.push(vec![place]);
                used = len;
            }
        }
    }
    files
}

/// The smallest size that so many files can have is looked for by halving.
fn in_parts(sizes: &[u64], parts: usize) -> Result<Vec<Vec<usize>>> {
    if parts == 0 || parts > sizes.len() {
        let tensors = sizes.len();
        let message = format!("{parts} parts of {tensors} tensors: every part needs a tensor");
        return Err(Error::argument(message));
    }
    let mut least = sizes.iter().copied().max().unwrap_or(0);
    let mut enough = sizes.iter().fold(0u64, |sum, &len| sum.saturating_add(len));
    while least < enough {
        let middle = least + (enough - least) / 2;
        if in_order(sizes, middle, 0).len() <= parts {
            enough = middle
        } else {
            least = middle + 1
        }
    }
    Ok(in_order(sizes, enough, parts))
}

fn by_layer(tensors: &[TensorInfo]) -> Vec<Vec<usize>> {
    let mut files: Vec<(Option<&str>, Vec<usize>)> = Vec::new();
    let mut known: LookupMap<Option<&str>, usize> = LookupMap::default();
    for (place, tensor) in tensors.iter().enumerate() {
        let layer = layer(&tensor.name);
        let file = *known.entry(layer).or_insert_with(|| {
            files.push((layer, Vec::new()));
            files.len() - 1
        });
        if let Some((_, places)) = files.get_mut(file) {
            places.push(place);
        }
    }
    files.sort_by(|(a, _), (b, _)| natural_order(a.unwrap_or_default(), b.unwrap_or_default()));
    files.into_iter().map(|(_, places)| places).collect()
}

/// The order of names with the numbers in them by their value: layer 2 before layer 10. Ties, such as 1 and 01, are settled
/// by the bytes.
///
/// ```
/// let mut names = ["l.10", "l.9", "l", "l.x"];
/// names.sort_by(|a, b| tenfold::ops::natural_order(a, b));
/// assert_eq!(names, ["l", "l.9", "l.10", "l.x"]);
/// ```
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let digits = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let (mut left, mut right) = (a, b);
    loop {
        let ((x, behind_x), (y, behind_y)) =
            (left.split_at(digits(left)), right.split_at(digits(right)));
        let order = if x.is_empty() || y.is_empty() {
            let (mut left_chars, mut right_chars) = (left.chars(), right.chars());
            let (x, y) = (left_chars.next(), right_chars.next());
            if x.is_none() && y.is_none() {
                return a.cmp(b);
            }
            (left, right) = (left_chars.as_str(), right_chars.as_str());
            x.cmp(&y)
        } else {
            // Of numbers without zeros in front, the longer one is the larger.
            let (x, y) = (x.trim_start_matches('0'), y.trim_start_matches('0'));
            (left, right) = (behind_x, behind_y);
            x.len().cmp(&y.len()).then(x.cmp(y))
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DType, Payload};

    fn tensors(named: &[(&str, u64)]) -> Vec<TensorInfo> {
        let tensor = |&(name, len): &(&str, u64)| {
            TensorInfo::dense(name, DType::U8, vec![len], Payload::Derived { len })
        };
        named.iter().map(tensor).collect()
    }

    fn of_sizes(sizes: &[u64]) -> Vec<TensorInfo> {
        let named: Vec<_> = sizes.iter().map(|&len| ("t", len)).collect();
        tensors(&named)
    }

    #[test]
    fn parts_are_as_many_as_asked_for_and_about_equal() {
        let parts = |sizes: &[u64], n| group(&of_sizes(sizes), &Shards::Parts(n)).unwrap();
        assert_eq!(parts(&[1, 1, 1, 1], 2), [vec![0, 1], vec![2, 3]]);
        assert_eq!(parts(&[9, 1, 1, 1], 2), [vec![0], vec![1, 2, 3]]);
        // One large tensor alone would leave two files for three parts.
        assert_eq!(parts(&[1, 1, 100], 3), [vec![0], vec![1], vec![2]]);
        assert_eq!(parts(&[0, 0, 0, 7], 3).len(), 3);
        assert_eq!(parts(&[5], 1), [vec![0]]);
        for n in 1..=7 {
            assert_eq!(parts(&[3, 1, 4, 1, 5, 9, 2], n).len(), n);
        }
        assert!(group(&of_sizes(&[1, 1]), &Shards::Parts(3)).is_err());
    }

    #[test]
    fn files_are_not_larger_than_asked_for_unless_a_tensor_is() {
        let sized = |sizes: &[u64], n| group(&of_sizes(sizes), &Shards::Size(n)).unwrap();
        assert_eq!(sized(&[3, 3, 3], 6), [vec![0, 1], vec![2]]);
        assert_eq!(sized(&[9, 1, 1], 2), [vec![0], vec![1, 2]]);
        assert!(sized(&[], 2).is_empty());
    }

    #[test]
    fn layers_come_in_the_order_of_their_numbers() {
        let names = ["h.10.w", "h.2.w", "head", "h.10.b", "h.2.exp.11.w", "x/3/w"];
        let named: Vec<_> = names.iter().map(|&name| (name, 1)).collect();
        let files = group(&tensors(&named), &Shards::Layers).unwrap();
        assert_eq!(files, [vec![2], vec![1, 4], vec![0, 3], vec![5]]);
    }

    #[test]
    fn numbers_in_names_have_values() {
        let mut names = [
            "l.10.w", "l.9.w", "l.10.b", "l.1", "m", "l.01", "l", "l.x", "l.2.w", "l1", "l.9",
        ];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(
            names,
            [
                "l", "l.01", "l.1", "l.2.w", "l.9", "l.9.w", "l.10.b", "l.10.w", "l.x", "l1", "m"
            ]
        );
    }

    #[test]
    fn numbers_of_any_length_have_an_order() {
        let huge = format!("a{}", "9".repeat(100));
        assert_eq!(natural_order("a1", &huge), Ordering::Less);
        assert_eq!(natural_order(&huge, &huge), Ordering::Equal);
        assert_eq!(natural_order("a0", "a00"), Ordering::Less);
    }

    #[test]
    fn numbered_files_keep_their_extension() {
        assert_eq!(numbered("model.zt", 2, 30), "model-00002-of-00030.zt");
        assert_eq!(numbered("model", 1, 2), "model-00001-of-00002");
    }
}
