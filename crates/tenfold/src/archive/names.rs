//! The index of names.

use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::model::TensorInfo;

/// Finds tensors by name without a second copy of the names.
pub(super) struct NameIndex {
    hasher: DefaultHashBuilder,
    places: HashTable<u32>,
}

impl NameIndex {
    pub(super) fn new(tensors: &[TensorInfo]) -> Self {
        let hasher = DefaultHashBuilder::default();
        let hash = |tensor: &TensorInfo| hasher.hash_one(tensor.name.as_str());
        let hash_at = |&place: &u32| tensors.get(place as usize).map_or(0, hash);
        let mut places = HashTable::with_capacity(tensors.len());
        for (place, tensor) in (0..=u32::MAX).zip(tensors) {
            places.insert_unique(hash(tensor), place, hash_at);
        }
        Self { hasher, places }
    }

    /// The place of a name.
    pub(super) fn find(&self, tensors: &[TensorInfo], name: &str) -> Option<usize> {
        let is_it = |place: &u32| {
            let tensor = tensors.get(*place as usize);
            tensor.is_some_and(|tensor| tensor.name == name)
        };
        let found = self.places.find(self.hasher.hash_one(name), is_it);
        // Beyond what is indexed there are none, in any memory of today.
        let mut others = tensors.iter().enumerate().skip(u32::MAX as usize);
        found.map(|&place| place as usize).or_else(|| {
            let (place, _) = others.find(|(_, tensor)| tensor.name == name)?;
            Some(place)
        })
    }
}
