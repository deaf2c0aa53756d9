//! Lists in messages: the first of many, so that a message stays a line.

use crate::model::Quoted;
use crate::prelude::*;

/// What is listed; more is counted, or left out.
const SHOWN: usize = 3;

/// Names in quotes: `"a", "b", "c", …`.
pub(crate) fn quoted<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut names = names.into_iter();
    let shown = (names.by_ref().take(SHOWN)).map(|name| Quoted(name).to_string());
    let mut shown: Vec<_> = shown.collect();
    shown.extend(names.next().map(|_| "…".to_owned()));
    shown.join(", ")
}

/// Sentences: `this; that; and 2 more`.
pub(crate) fn first_of(sentences: impl ExactSizeIterator<Item = String>) -> String {
    let more = sentences.len().saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("and {more} more"));
    let shown: Vec<_> = sentences.take(SHOWN).chain(more).collect();
    shown.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_more_than_a_few_is_not_listed() {
        assert_eq!(quoted([]), "");
        assert_eq!(quoted(["a", "b", "c"]), "\"a\", \"b\", \"c\"");
        assert_eq!(quoted(["a", "b", "c", "d"]), "\"a\", \"b\", \"c\", …");
        let words = |n: usize| first_of((0..n).map(|n| n.to_string()));
        assert_eq!(
            (words(3), words(5)),
            ("0; 1; 2".into(), "0; 1; 2; and 2 more".into())
        );
    }
}
