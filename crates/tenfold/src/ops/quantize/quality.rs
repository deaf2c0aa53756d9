//! How far quantized numbers are from those before.

use super::Choice;
use crate::archive::Archive;
use crate::error::Result;
use crate::model::DType;
use crate::ops::diff::{ChangeKind, DiffOptions, Difference, diff};
use crate::ops::stats::{StatsOptions, stats};
use crate::prelude::*;
use crate::threads::Work;
use crate::transform::square_root;

/// How far quantized numbers are from those before.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Quality {
    /// Of all tensors together, the length of the difference relative to that of the numbers before.
    pub relative_l2: Option<f64>,
    /// Of all tensors together, the cosine of the angle between both.
    pub cosine: Option<f64>,
    /// Each quantized tensor, the worst first.
    pub tensors: Vec<TensorQuality>,
}

/// How far the numbers of one tensor are from those before.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TensorQuality {
    /// Its name.
    pub name: String,
    /// The type that it has now.
    pub dtype: DType,
    /// The length of the difference relative to that of the numbers before; none where they are all 0 and were not kept.
    pub relative_l2: Option<f64>,
    /// The cosine of the angle between both, where none of them is all zeros.
    pub cosine: Option<f64>,
    /// The largest absolute error.
    pub max_abs: Option<f64>,
}

/// Compares what was quantized with what it was before: what [`diff`] says of the same tensors.
///
/// ```
/// use tenfold::{Archive, model::BlockSpec, ops};
/// let mut builder = Archive::builder();
/// builder.tensor("w", [2, 32], [1f32; 64])?;
/// let before = builder.finish();
/// let options = ops::QuantizeOptions::new().every_matrix(BlockSpec::from_name("Q8_0"));
/// let after = ops::quantize(&before, &options)?;
/// let quality = ops::quality(&before, &after.archive, &after.choices, &Default::default())?;
/// assert!(quality.relative_l2.unwrap() < 0.001);
/// assert_eq!(quality.tensors[0].name, "w");
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn quality(
    before: &Archive,
    after: &Archive,
    choices: &[Choice],
    work: &Work,
) -> Result<Quality> {
    let mut names: Vec<&str> = (choices.iter())
        .filter(|choice| !choice.is_left())
        .map(|choice| &*choice.name)
        .collect();
    names.sort_unstable();
    let of = |archive: &Archive| archive.select(|info| names.binary_search(&&*info.name).is_ok());
    let (before, after) = (of(before), of(after));
    let options = DiffOptions::new()
        .ignore_dtype(true)
        .ignore_metadata(true)
        .work(work.clone());
    let mut found: LookupMap<String, Difference> = LookupMap::default();
    for change in diff(&before, &after, &options)?.changes {
        match change.kind {
            ChangeKind::Changed(Some(difference)) => {
                found.insert(change.name, difference);
            }
            ChangeKind::Unreadable { error, .. } => return Err(error),
            _ => {}
        }
    }
    // The lengths of those that are the same in every bit, which nothing measured.
    let same = before.select(|info| !found.contains_key(&*info.name));
    let same = stats(&same, &StatsOptions::new().work(work.clone()))?.tensors;
    let mut squares = 0.0;
    for (_, stats) in same {
        squares += stats?.sum_of_squares();
    }
    Ok(put_together(&after, &found, squares))
}

/// Differences by name, and the sum of the squares of all numbers that did not change.
fn put_together(after: &Archive, found: &LookupMap<String, Difference>, same: f64) -> Quality {
    let mut sums = [0.0, same, same, same];
    let changed = (after.tensors()).filter_map(|tensor| found.get(tensor.name()));
    for difference in changed {
        for (sum, part) in sums.iter_mut().zip(difference.sums) {
            *sum += part;
        }
    }
    let mut tensors: Vec<_> = after
        .tensors()
        .map(|tensor| {
            let found = found.get(tensor.name());
            TensorQuality {
                name: tensor.name().to_owned(),
                dtype: tensor.info().dtype,
                // What is the same in every bit is no difference.
                relative_l2: found.map_or(Some(0.0), |found| found.relative_l2),
                cosine: found.map_or(Some(1.0), |found| found.cosine),
                max_abs: found.map_or(Some(0.0), |found| found.max_abs),
            }
        })
        .collect();
    let badness = |tensor: &TensorQuality| tensor.relative_l2.unwrap_or(f64::INFINITY);
    tensors.sort_by(|a, b| badness(b).total_cmp(&badness(a)));
    let [squares, before, now, product] = sums;
    let known = |value: f64| Some(value).filter(|value| value.is_finite());
    Quality {
        relative_l2: match squares {
            0.0 => Some(0.0),
            squares => known(square_root(squares) / square_root(before)),
        },
        cosine: known(product / (square_root(before) * square_root(now)))
            .map(|c| c.clamp(-1.0, 1.0)),
        tensors,
    }
}
