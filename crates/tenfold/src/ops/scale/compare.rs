//! What items of a comparison find, as it is kept.

use serde::{Deserialize, Serialize};

use super::Site;
use super::records::{Failed, damaged, hex, sum};
use crate::error::{Error, Result};
use crate::ops::diff::{DiffPart, Verdict};
use crate::ops::stats::NumberRecord;
use crate::ops::{Difference, First, Which};
use crate::prelude::*;

/// What is known of a pair, or of a tensor that may have been renamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PairRecord {
    /// The same.
    Equal(usize),
    /// Nothing is known of the values.
    Other(usize),
    Changed(usize, Option<Box<DifferenceRecord>>),
    /// In the first or the second.
    Unreadable(usize, bool, Failed),
    /// What a tensor hashes to.
    Digest(usize, String),
    Unhashed(usize, Failed),
}

/// A difference with every bit of its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct DifferenceRecord {
    counts: [u64; 5],
    common: Option<Vec<u64>>,
    first: Option<(Vec<u64>, NumberRecord, NumberRecord)>,
    figures: [Option<u64>; 4],
    sums: [u64; 4],
}

impl PairRecord {
    pub(super) fn all(part: DiffPart, site: &Site) -> Vec<Self> {
        let verdicts = part.verdicts.into_iter();
        let verdicts = verdicts.map(|(place, verdict)| match verdict {
            Some(Verdict::Equal) => Self::Equal(place),
            Some(Verdict::Changed(found)) => {
                let found = found.map(|found| Box::new(DifferenceRecord::new(found)));
                Self::Changed(place, found)
            }
            Some(Verdict::Unreadable(which, error)) => {
                Self::Unreadable(place, which == Which::First, Failed::new(&error, site))
            }
            None => Self::Other(place),
        });
        let digests = part.digests.into_iter();
        let digests = digests.map(|(place, digest)| match digest {
            Ok(digest) => Self::Digest(place, hex(&digest)),
            Err(error) => Self::Unhashed(place, Failed::new(&error, site)),
        });
        verdicts.chain(digests).collect()
    }

    pub(super) fn part<'r>(records: impl Iterator<Item = &'r Self>) -> Result<DiffPart> {
        let mut part = DiffPart {
            verdicts: Vec::new(),
            digests: Vec::new(),
        };
        for record in records {
            match record {
                Self::Equal(place) => part.verdicts.push((*place, Some(Verdict::Equal))),
                Self::Other(place) => part.verdicts.push((*place, None)),
                Self::Changed(place, found) => {
                    let found = found.as_ref().map(|found| found.difference());
                    let verdict = Verdict::Changed(found.transpose()?);
                    part.verdicts.push((*place, Some(verdict)));
                }
                Self::Unreadable(place, is_first, failed) => {
                    let which = if *is_first {
                        Which::First
                    } else {
                        Which::Second
                    };
                    let verdict = Verdict::Unreadable(which, failed.error());
                    part.verdicts.push((*place, Some(verdict)));
                }
                Self::Digest(place, digits) => part.digests.push((*place, Ok(sum(digits)?))),
                Self::Unhashed(place, failed) => part.digests.push((*place, Err(failed.error()))),
            }
        }
        Ok(part)
    }
}

impl DifferenceRecord {
    fn new(found: Difference) -> Self {
        let Difference {
            numbers,
            different,
            signs_of_zero,
            nan_bits,
            not_finite,
            common,
            first,
            max_abs,
            max_rel,
            relative_l2,
            cosine,
            sums,
        } = found;
        Self {
            counts: [numbers, different, signs_of_zero, nan_bits, not_finite],
            common,
            first: first.map(|first| (first.index, first.a.into(), first.b.into())),
            figures: [max_abs, max_rel, relative_l2, cosine].map(|figure| figure.map(f64::to_bits)),
            sums: sums.map(f64::to_bits),
        }
    }

    fn difference(&self) -> Result<Difference> {
        let [numbers, different, signs_of_zero, nan_bits, not_finite] = self.counts;
        let [max_abs, max_rel, relative_l2, cosine] =
            self.figures.map(|figure| figure.map(f64::from_bits));
        let first = self.first.as_ref().map(|(index, a, b)| {
            Ok::<_, Error>(First {
                index: index.clone(),
                a: a.number()
                    .ok_or_else(|| damaged("a number in a receipt is none"))?,
                b: b.number()
                    .ok_or_else(|| damaged("a number in a receipt is none"))?,
            })
        });
        Ok(Difference {
            numbers,
            different,
            signs_of_zero,
            nan_bits,
            not_finite,
            common: self.common.clone(),
            first: first.transpose()?,
            max_abs,
            max_rel,
            relative_l2,
            cosine,
            sums: self.sums.map(f64::from_bits),
        })
    }
}
