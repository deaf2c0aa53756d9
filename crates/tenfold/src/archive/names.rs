//! The index of names.

use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::model::TensorInfo;

/// Finds tensors by name without a second copy of the names.
pub(super) struct NameIndex {
    hasher: DefaultHashBuilder,
    places: HashTable<usize>,
}

impl NameIndex {
    pub(super) fn new(tensors: &[TensorInfo]) -> Self {
        let hasher = DefaultHashBuilder::default();
        let hash =
            |place: &usize| hasher.hash_one(tensors.get(*place).map(|tensor| tensor.name.as_str()));
        let mut places = HashTable::with_capacity(tensors.len());
        for place in 0..tensors.len() {
            places.insert_unique(hash(&place), place, hash);
        }
        Self { hasher, places }
    }

    pub(super) fn find<'t>(&self, tensors: &'t [TensorInfo], name: &str) -> Option<&'t TensorInfo> {
        let is_it = |place: &usize| {
            tensors
                .get(*place)
                .is_some_and(|tensor| tensor.name == name)
        };
        tensors.get(*self.places.find(self.hasher.hash_one(Some(name)), is_it)?)
    }
}
