//! Names that must not be there twice.

use crate::prelude::*;

/// A name that is there twice, the first of them in the order of the names.
pub(crate) fn repeated<'n>(names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_unstable();
    let mut neighbours = names.iter().zip(names.iter().skip(1));
    neighbours.find(|(a, b)| a == b).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_there_twice_is_found_wherever_it_is() {
        assert_eq!(repeated(["b", "a", "c", "a", "c"]), Some("a"));
        assert_eq!(repeated(["a", "b", "aa", ""]), None);
        assert_eq!(repeated([]), None);
    }
}
