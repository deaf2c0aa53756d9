//! Which tensor of one archive is which of the other.

use super::{Change, ChangeKind, Pair, Side};
use crate::archive::{Archive, Tensor};
#[cfg(feature = "digest")]
use crate::error::Result;
#[cfg(feature = "digest")]
use crate::model::Shape;
#[cfg(feature = "digest")]
use crate::ops::digest::{Hashing, hashed_len, within_limit};
use crate::prelude::*;
#[cfg(feature = "digest")]
use crate::threads::{Control, Pace, Steps};

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
        && (left.is_unnamed() || right.is_unnamed())
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

    /// The same, and tensors as renamed that became one of those that were added.
    pub(super) fn changes(&self, renames: &[Option<usize>]) -> Vec<Change> {
        let mut taken = vec![false; self.added.len()];
        let mut changes = Vec::new();
        let renames = renames.iter().copied().chain(core::iter::repeat(None));
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
}

/// What one of several has to look at.
#[cfg(feature = "scale")]
pub(super) struct Own {
    /// Of the pairs.
    pub(super) pairs: Vec<bool>,
    /// Of the tensors that may have been renamed.
    pub(super) alike: Vec<bool>,
}

/// What tensors of the same content have in common beside it.
#[cfg(feature = "digest")]
fn key(tensor: &Tensor<'_>) -> (super::Kind, Shape) {
    (super::kind(tensor.info()), tensor.info().shape.clone())
}

/// Tensors with the same content are renamed. Without digests nothing is known to be.
#[cfg(feature = "digest")]
impl<'t> Matched<'t> {
    /// The tensors that may have been renamed: only what has a counterpart of the same kind is read.
    fn alike(&self) -> [Vec<&Tensor<'t>>; 2] {
        let mut kinds: LookupMap<_, u8> = LookupMap::default();
        for (tensors, bit) in [(&self.removed, 1), (&self.added, 2)] {
            for tensor in tensors {
                *kinds.entry(key(tensor)).or_default() |= bit;
            }
        }
        [&self.removed, &self.added].map(|tensors| {
            let tensors = tensors.iter();
            let alike = tensors.filter(|tensor| kinds.get(&key(tensor)) == Some(&3));
            alike.collect()
        })
    }

    /// Bytes that are looked at for every tensor of the first archive, and for those that only the second has.
    #[cfg(feature = "scale")]
    pub(super) fn lens(&self, a: &Archive) -> Vec<u64> {
        let all = a.tensors().map(|tensor| hashed_len(tensor.info()));
        let added = self.added.iter().map(|tensor| hashed_len(tensor.info()));
        all.chain(added).collect()
    }

    /// What of all that is to be looked at belongs to some of these places.
    #[cfg(feature = "scale")]
    pub(super) fn own(&self, a: &Archive, part: &Range<usize>) -> Own {
        let place = |tensor: &Tensor<'_>| a.index_of(tensor.name()).unwrap_or(0);
        let pairs = self.pairs.iter();
        let [removed, added] = self.alike();
        let removed = removed.iter().map(|tensor| place(tensor));
        let behind = a.tensors().len();
        let places = self.added.iter().enumerate();
        let places: LookupMap<&str, usize> = places
            .map(|(place, tensor)| (tensor.name(), behind + place))
            .collect();
        let added = added.iter();
        let added = added.map(|tensor| places.get(tensor.name()).copied().unwrap_or(behind));
        Own {
            pairs: pairs
                .map(|(tensor, _)| part.contains(&place(tensor)))
                .collect(),
            alike: removed
                .chain(added)
                .map(|place| part.contains(&place))
                .collect(),
        }
    }

    /// How many tensors may have been renamed.
    #[cfg(feature = "scale")]
    pub(super) fn alike_len(&self) -> usize {
        let [removed, added] = self.alike();
        removed.len() + added.len()
    }

    /// The digests of some tensors that may have been renamed, by their places.
    #[cfg(feature = "scale")]
    pub(super) fn digest_some(
        &self,
        (a, b): (&'t Archive, &'t Archive),
        control: &Control,
        wanted: &[bool],
        threads: usize,
    ) -> Result<Vec<(usize, Result<[u8; 32]>)>> {
        let [removed, added] = self.alike();
        let items = [(a, removed), (b, added)].map(|(archive, tensors)| {
            let tensors: Vec<_> = tensors.into_iter().copied().collect();
            within_limit(archive, &tensors)
        });
        let items = items.into_iter().flatten().enumerate().zip(wanted);
        let (places, items): (Vec<_>, Vec<_>) = items
            .filter(|(_, wanted)| **wanted)
            .map(|(item, _)| item)
            .unzip();
        let sums = crate::threads::in_pieces(&Hashing { control }, items, threads)?;
        Ok(places.into_iter().zip(sums).collect())
    }

    /// Bytes that are hashed to find them.
    pub(super) fn digested_len(&self) -> u64 {
        let alike = self.alike();
        let lengths = alike.iter().flatten();
        let lengths = lengths.map(|tensor| hashed_len(tensor.info()));
        lengths.fold(0, u64::saturating_add)
    }

    /// Goes on with hashing tensors that may have been renamed; gives the digests when there are all of them.
    pub(super) fn digest(
        &self,
        (a, b): (&'t Archive, &'t Archive),
        control: &Control,
        steps: &mut Steps<Result<[u8; 32]>>,
        pace: &Pace<'_>,
    ) -> Result<Option<Vec<Result<[u8; 32]>>>> {
        let [removed, added] = self.alike();
        let items = [(a, removed), (b, added)].map(|(archive, tensors)| {
            let tensors: Vec<_> = tensors.into_iter().copied().collect();
            within_limit(archive, &tensors)
        });
        let items = items.into_iter().flatten();
        steps.go_on(&Hashing { control }, items, pace)
    }

    /// For every removed tensor the place of the added one with the same type, shape and content, if there is one: among
    /// several, that whose name is most alike.
    pub(super) fn renames(&self, digests: &[Result<[u8; 32]>]) -> Vec<Option<usize>> {
        let [removed, added] = self.alike();
        let mut digests = digests.iter();
        let mut by_name = |tensors: Vec<&Tensor<'t>>| -> LookupMap<&str, &[u8; 32]> {
            let digests = tensors.into_iter().zip(&mut digests);
            let known =
                digests.filter_map(|(tensor, digest)| Some((tensor, digest.as_ref().ok()?)));
            known
                .map(|(tensor, digest)| (tensor.name(), digest))
                .collect()
        };
        let (removed, added) = (by_name(removed), by_name(added));
        let mut found: LookupMap<_, Candidates> = LookupMap::default();
        for (index, tensor) in self.added.iter().enumerate() {
            if let Some(digest) = added.get(tensor.name()) {
                let same = found.entry((key(tensor), *digest)).or_default();
                same.all.push(index);
            }
        }
        let mut renames = Vec::new();
        for tensor in &self.removed {
            let digest = removed.get(tensor.name());
            let same = digest.and_then(|digest| found.get_mut(&(key(tensor), *digest)));
            let name = |index: usize| self.added.get(index).map_or("", |tensor| tensor.name());
            let alike = |index: usize| likeness(tensor.name(), name(index));
            renames.push(same.and_then(|same| same.take_best(alike)));
        }
        renames
    }
}

/// How many bytes two names have in common at their beginning and at their end.
#[cfg(feature = "digest")]
fn likeness(a: &str, b: &str) -> usize {
    let same = |(a, b): &(u8, u8)| a == b;
    let start = a.bytes().zip(b.bytes()).take_while(same).count();
    let end = (a.bytes().rev().zip(b.bytes().rev()))
        .take_while(same)
        .count();
    start + end
}

/// Tensors of the same content, in the order of their file.
#[cfg(feature = "digest")]
#[derive(Default)]
struct Candidates {
    all: Vec<usize>,
    /// The first of them that are not taken.
    looked_at: Vec<usize>,
    /// How many of them were ever among those.
    seen: usize,
}

#[cfg(feature = "digest")]
impl Candidates {
    /// Takes the most alike of the first ones. Only so many are looked at that all of them together take time in
    /// proportion to their number: of very many tensors with the same content, any is as good.
    fn take_best(&mut self, alike: impl Fn(usize) -> usize) -> Option<usize> {
        let most = if self.all.len() > 4096 { 16 } else { 256 };
        let unseen = self.all.get(self.seen..).unwrap_or_default();
        let more = unseen.iter().take(most - self.looked_at.len().min(most));
        self.seen += more.len();
        self.looked_at.extend(more);
        // The first of those that are equally alike.
        let places = self.looked_at.iter().enumerate().rev();
        let (best, _) = places.max_by_key(|(_, index)| alike(**index))?;
        Some(self.looked_at.remove(best))
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

#[cfg(test)]
#[cfg(feature = "digest")]
mod tests {
    use core::cell::Cell;

    use super::*;

    #[test]
    fn the_first_of_the_most_alike_names_is_taken() {
        let names = ["x.bias", "a.1.bias", "a.2.bias", "a.1.bias"];
        let mut same = Candidates {
            all: (0..names.len()).collect(),
            ..Candidates::default()
        };
        let mut take = |name: &str| same.take_best(|index| likeness(name, names[index]));
        let taken: Vec<_> = ["b.1.bias", "b.1.bias", "b.1.bias", "b.1.bias", "b.1.bias"]
            .map(&mut take)
            .into();
        assert_eq!(taken, [Some(1), Some(3), Some(0), Some(2), None]);
    }

    /// Every pair of 200 000 would be 40 thousand million.
    #[test]
    fn many_tensors_of_the_same_content_are_compared_with_a_few() {
        let count = 200_000;
        let compared = Cell::new(0usize);
        let mut same = Candidates {
            all: (0..count).collect(),
            ..Candidates::default()
        };
        for wanted in 0..count {
            let best = same.take_best(|index| {
                compared.set(compared.get() + 1);
                usize::from(index == wanted)
            });
            assert_eq!(best, Some(wanted));
        }
        assert!(compared.get() <= 16 * count, "{}", compared.get());
        assert_eq!(same.take_best(|_| 0), None);
    }
}
