//! The parts of a tensor.

use core::fmt;
use core::ops::{Deref, DerefMut};

use crate::model::Part;
use crate::prelude::*;

/// The parts of a tensor: a slice. A single one, which is what nearly every tensor has, needs no memory of its own.
#[derive(Clone)]
pub struct PartList(List);

#[derive(Clone)]
enum List {
    One(Part),
    Several(Vec<Part>),
}

impl PartList {
    /// No parts.
    pub const fn new() -> Self {
        Self(List::Several(Vec::new()))
    }

    /// All parts.
    pub fn as_slice(&self) -> &[Part] {
        self
    }

    /// Adds a part at the end.
    pub fn push(&mut self, part: Part) {
        match core::mem::take(self).0 {
            List::One(first) => self.0 = List::Several(vec![first, part]),
            List::Several(parts) if parts.is_empty() => self.0 = List::One(part),
            List::Several(mut parts) => {
                push_tight(&mut parts, part);
                self.0 = List::Several(parts);
            }
        }
    }
}

impl Default for PartList {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for PartList {
    type Target = [Part];

    fn deref(&self) -> &[Part] {
        match &self.0 {
            List::One(part) => core::slice::from_ref(part),
            List::Several(parts) => parts,
        }
    }
}

impl DerefMut for PartList {
    fn deref_mut(&mut self) -> &mut [Part] {
        match &mut self.0 {
            List::One(part) => core::slice::from_mut(part),
            List::Several(parts) => parts,
        }
    }
}

impl fmt::Debug for PartList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

impl From<Part> for PartList {
    fn from(part: Part) -> Self {
        Self(List::One(part))
    }
}

impl From<Vec<Part>> for PartList {
    fn from(parts: Vec<Part>) -> Self {
        match <[Part; 1]>::try_from(parts) {
            Ok([part]) => part.into(),
            Err(parts) => Self(List::Several(parts)),
        }
    }
}

impl FromIterator<Part> for PartList {
    fn from_iter<I: IntoIterator<Item = Part>>(parts: I) -> Self {
        let mut list = Self::new();
        parts.into_iter().for_each(|part| list.push(part));
        list
    }
}

impl IntoIterator for PartList {
    type Item = Part;
    type IntoIter = core::iter::Chain<core::option::IntoIter<Part>, alloc::vec::IntoIter<Part>>;

    fn into_iter(self) -> Self::IntoIter {
        let (first, others) = match self.0 {
            List::One(part) => (Some(part), Vec::new()),
            List::Several(parts) => (None, parts),
        };
        first.into_iter().chain(others)
    }
}

impl<'a> IntoIterator for &'a PartList {
    type Item = &'a Part;
    type IntoIter = core::slice::Iter<'a, Part>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut PartList {
    type Item = &'a mut Part;
    type IntoIter = core::slice::IterMut<'a, Part>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DType, Payload, Role};

    #[test]
    fn any_number_of_parts_is_kept_in_order() {
        for count in 0..5 {
            let parts = (0..count).map(|n| Part::new(Role::Values, DType::U8, Payload::main(n..9)));
            let places = |list: &PartList| -> Vec<_> {
                let ranges = list.iter().map(|part| part.payload.stored());
                ranges
                    .map(|stored| stored.map_or(9, |(_, range)| range.start))
                    .collect()
            };
            let expected: Vec<u64> = (0..count).collect();
            let pushed: PartList = parts.clone().collect();
            assert_eq!(places(&pushed), expected);
            assert_eq!(places(&parts.collect::<Vec<_>>().into()), expected);
            assert_eq!(places(&pushed.into_iter().collect()), expected);
        }
    }
}
