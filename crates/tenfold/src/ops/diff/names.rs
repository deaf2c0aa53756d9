//! Which tensor of one archive is which of the other.

use super::{Change, ChangeKind, DiffOptions, Pair, Side};
use crate::archive::{Archive, Tensor};
use crate::prelude::*;

/// The tensors of two archives, side by side.
pub(super) struct Matched<'t> {
    pub(super) pairs: Vec<Pair<'t>>,
    removed: Vec<Tensor<'t>>,
    added: Vec<Tensor<'t>>,
}

/// Matches tensors by name. The only tensors of two archives are a pair if one has its name from the file, and so are
/// tensors of two files under different names, if their own names begin with those and go on alike.
pub(super) fn pair<'t>(a: &'t Archive, b: &'t Archive) -> Matched<'t> {
    let mut matched = Matched {
        pairs: Vec::new(),
        removed: Vec::new(),
        added: Vec::new(),
    };
    let tensors = |archive: &'t Archive| archive.manifest().tensors.as_slice();
    if let ([left], [right]) = (tensors(a), tensors(b))
        && (left.unnamed || right.unnamed)
    {
        matched.pairs.extend(a.tensors().zip(b.tensors()));
        return matched;
    }
    for tensor in a.tensors() {
        match b.get(tensor.name()) {
            Some(other) => matched.pairs.push((tensor, other)),
            None => matched.removed.push(tensor),
        }
    }
    let added = b.tensors().filter(|tensor| a.get(tensor.name()).is_none());
    matched.added.extend(added);
    if matched.pairs.is_empty() {
        matched.pair_by_own_names();
    }
    matched
}

/// What follows the name of the file in the names of tensors, all of one file; `None` where the file says their names.
fn own_names<'t>(tensors: &[Tensor<'t>]) -> Option<Vec<&'t str>> {
    let names = tensors.iter().map(|tensor| tensor.info().name_from_file());
    let names: Vec<_> = names.collect::<Option<_>>()?;
    let (file, _) = names.first()?;
    // Of several files, their names are what tells the tensors apart.
    let one_file = names.iter().all(|(other, _)| other == file);
    one_file.then(|| names.iter().map(|(_, own)| *own).collect())
}

impl Matched<'_> {
    /// Pairs what has no counterpart by what follows the names of the files.
    fn pair_by_own_names(&mut self) {
        let (Some(a), Some(b)) = (own_names(&self.removed), own_names(&self.added)) else {
            return;
        };
        let places: LookupMap<&str, usize> = b.into_iter().zip(0..).collect();
        let mut taken = vec![false; self.added.len()];
        for (tensor, own) in core::mem::take(&mut self.removed).into_iter().zip(a) {
            let place = places.get(own).copied();
            let other = place.and_then(|at| Some((self.added.get(at)?, taken.get_mut(at)?)));
            match other {
                Some((other, taken)) => {
                    *taken = true;
                    self.pairs.push((tensor, *other));
                }
                None => self.removed.push(tensor),
            }
        }
        let mut taken = taken.into_iter();
        self.added.retain(|_| taken.next() != Some(true));
    }

    /// What is only in one of them, by name.
    pub(super) fn without_data(&self) -> Vec<Change> {
        let removed = self.removed.iter().map(|tensor| removed(tensor));
        removed
            .chain(self.added.iter().map(|tensor| added(tensor)))
            .collect()
    }

    /// The same, and tensors with the same content as renamed.
    pub(super) fn found(&self, a: &Archive, b: &Archive, options: &DiffOptions) -> Vec<Change> {
        let renames = self.renames(a, b, options);
        let mut taken = vec![false; self.added.len()];
        let mut changes = Vec::new();
        for (tensor, rename) in self.removed.iter().zip(renames) {
            let to = rename.and_then(|index| Some((self.added.get(index)?, taken.get_mut(index)?)));
            changes.push(match to {
                Some((to, taken)) => {
                    *taken = true;
                    Change {
                        b: Some(Side::new(to.info())),
                        kind: ChangeKind::Renamed,
                        ..removed(tensor)
                    }
                }
                None => removed(tensor),
            });
        }
        let left = self.added.iter().zip(taken).filter(|(_, taken)| !taken);
        changes.extend(left.map(|(tensor, _)| added(tensor)));
        changes
    }

    /// For every removed tensor the added one with the same type, shape and content, if there is one: among several, that
    /// whose name is most alike.
    #[cfg(feature = "digest")]
    fn renames(&self, a: &Archive, b: &Archive, options: &DiffOptions) -> Vec<Option<usize>> {
        let key = |tensor: &Tensor<'_>| (super::kind(tensor.info()), tensor.info().shape.clone());
        let mut kinds: LookupMap<_, u8> = LookupMap::default();
        for (tensors, bit) in [(&self.removed, 1), (&self.added, 2)] {
            for tensor in tensors {
                *kinds.entry(key(tensor)).or_default() |= bit;
            }
        }
        // Only what has a counterpart of the same kind is read.
        let digests = |archive: &Archive, tensors: &[Tensor<'_>]| {
            let wanted: Vec<_> = tensors
                .iter()
                .map(|tensor| kinds.get(&key(tensor)) == Some(&3))
                .collect();
            let names: LookupMap<&str, ()> = (tensors.iter().zip(&wanted))
                .filter(|(_, wanted)| **wanted)
                .map(|(tensor, _)| (tensor.name(), ()))
                .collect();
            let chosen = archive.select(|info| names.contains_key(info.name.as_str()));
            for tensor in chosen.tensors() {
                let len = tensor.info().dense_len();
                options.control.expect(len.unwrap_or(0));
            }
            let watched = crate::format::ExecuteOptions {
                threads: options.threads,
                control: options.control.clone(),
                ..Default::default()
            };
            let mut found = crate::ops::digest::digest_watched(&chosen, &watched)
                .tensors
                .into_iter();
            let mut next = || found.next().and_then(|(_, digest)| digest.ok());
            wanted
                .into_iter()
                .map(|wanted| if wanted { next() } else { None })
                .collect::<Vec<_>>()
        };
        let removed = digests(a, &self.removed);
        let mut candidates: LookupMap<_, Vec<usize>> = LookupMap::default();
        for (index, (tensor, digest)) in self.added.iter().zip(digests(b, &self.added)).enumerate()
        {
            if let Some(digest) = digest {
                candidates
                    .entry((key(tensor), digest))
                    .or_default()
                    .push(index);
            }
        }
        let mut renames = Vec::new();
        for (tensor, digest) in self.removed.iter().zip(removed) {
            let found = digest.and_then(|digest| candidates.get_mut(&(key(tensor), digest)));
            renames.push(found.and_then(|found| self.most_alike(tensor.name(), found)));
        }
        renames
    }

    /// Without digests nothing is known to be renamed.
    #[cfg(not(feature = "digest"))]
    fn renames(&self, _: &Archive, _: &Archive, _: &DiffOptions) -> Vec<Option<usize>> {
        vec![None; self.removed.len()]
    }

    /// Takes the candidate whose name begins and ends most like this one.
    #[cfg(feature = "digest")]
    fn most_alike(&self, name: &str, candidates: &mut Vec<usize>) -> Option<usize> {
        /// Of more tensors with the same content, any is as good.
        const LOOKED_AT: usize = 256;
        let alike = |index: usize| {
            let other = self.added.get(index).map_or("", |tensor| tensor.name());
            let same = |(a, b): &(u8, u8)| a == b;
            let end = (name.bytes().rev().zip(other.bytes().rev()))
                .take_while(same)
                .count();
            let start = name.bytes().zip(other.bytes()).take_while(same).count();
            end + start
        };
        let mut best = 0;
        let looked_at = candidates.iter().take(LOOKED_AT).enumerate();
        let mut most = None;
        for (place, &index) in looked_at {
            if most.is_none_or(|most| alike(index) > most) {
                (best, most) = (place, Some(alike(index)));
            }
        }
        most.map(|_| candidates.remove(best))
    }
}

fn removed(tensor: &Tensor<'_>) -> Change {
    Change {
        name: tensor.name().to_owned(),
        a: Some(Side::new(tensor.info())),
        b: None,
        kind: ChangeKind::Removed,
    }
}

fn added(tensor: &Tensor<'_>) -> Change {
    Change {
        name: tensor.name().to_owned(),
        a: None,
        b: Some(Side::new(tensor.info())),
        kind: ChangeKind::Added,
    }
}

/// Brings changes into the order of the first archive, what is added last.
pub(super) fn sort(a: &Archive, changes: &mut [Change]) {
    let names = a.manifest().tensors.iter().enumerate();
    let places: LookupMap<&str, usize> = names
        .map(|(place, info)| (info.name.as_str(), place))
        .collect();
    changes.sort_by_key(|change| match &change.a {
        Some(side) => places
            .get(side.name.as_str())
            .copied()
            .unwrap_or(usize::MAX),
        None => usize::MAX,
    });
}
