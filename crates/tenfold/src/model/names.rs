//! Names that must be unique.

use crate::prelude::*;

/// The first name that is there before, and its place.
pub(crate) fn repeated<'n>(names: impl IntoIterator<Item = &'n str>) -> Option<(usize, &'n str)> {
    let names = names.into_iter();
    let mut seen = LookupMap::with_capacity(names.size_hint().0);
    let mut names = names.enumerate();
    names.find(|(_, name)| seen.insert(*name, ()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_there_before_is_found_wherever_it_is() {
        assert_eq!(repeated(["b", "a", "c", "a", "c"]), Some((3, "a")));
        assert_eq!(repeated(["a", "b", "aa", ""]), None);
        assert_eq!(repeated([]), None);
    }
}
