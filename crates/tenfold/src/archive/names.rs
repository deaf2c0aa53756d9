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
        let hash = |tensor: &TensorInfo| hasher.hash_one(tensor.name.as_str());
        let mut places = HashTable::with_capacity(tensors.len());
        for (place, tensor) in tensors.iter().enumerate() {
            places.insert_unique(hash(tensor), place, |&other| {
                tensors.get(other).map_or(0, hash)
            });
        }
        Self { hasher, places }
    }

    pub(super) fn find<'t>(&self, tensors: &'t [TensorInfo], name: &str) -> Option<&'t TensorInfo> {
        let is_it = |place: &usize| {
            tensors
                .get(*place)
                .is_some_and(|tensor| tensor.name == name)
        };
        tensors.get(*self.places.find(self.hasher.hash_one(name), is_it)?)
    }
}
