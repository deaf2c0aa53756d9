//! Losses for people: those with the same reason on one line.

use std::collections::HashMap;

use tenfold::format::{Effect, Loss, Lost};

use crate::hints;

/// Names that a line shows; more are counted.
const NAMES: usize = 3;

/// A line for every reason, in the order of the first of each.
pub(crate) fn lines(losses: &[Loss]) -> Vec<String> {
    let mut groups: Vec<Vec<&Loss>> = Vec::new();
    let mut known: HashMap<Reason<'_>, usize> = HashMap::new();
    for loss in losses {
        let place = *known.entry(Reason::of(loss)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(members) => members.push(loss),
            None => groups.push(vec![loss]),
        }
    }
    groups.iter().map(|members| line(members)).collect()
}

/// What losses of one line have in common.
#[derive(Eq, Hash, PartialEq)]
struct Reason<'a> {
    effect: Effect,
    /// What of every tensor; the keys of a file's own metadata differ.
    what: Option<&'a Lost>,
    why: &'a str,
}

impl<'a> Reason<'a> {
    fn of(loss: &'a Loss) -> Self {
        let is_file_metadata = loss.tensor.is_none() && loss.is_metadata();
        Self {
            effect: loss.effect,
            what: (!is_file_metadata).then_some(&loss.what),
            why: &loss.why,
        }
    }
}

fn line(members: &[&Loss]) -> String {
    let Some(first) = members.first() else {
        return String::new();
    };
    if members.len() == 1 {
        return hints::loss(first);
    }
    let n = members.len();
    let (what, names): (String, Vec<_>) = match &first.tensor {
        Some(_) => {
            let names = members.iter().filter_map(|loss| loss.tensor.as_deref());
            (format!("{n} tensors: {}", first.what), names.collect())
        }
        None => {
            let keys = members.iter().filter_map(|loss| match &loss.what {
                Lost::Metadata(key) => Some(key.as_str()),
                _ => None,
            });
            (format!("{n} metadata entries"), keys.collect())
        }
    };
    let effect = first.effect;
    format!("{effect}: {what}: {} ({})", hints::why(first), some(&names))
}

/// `"a", "b", "c" and 5 more`
pub(crate) fn some(names: &[&str]) -> String {
    let shown: Vec<_> = (names.iter().take(NAMES))
        .map(|name| format!("{name:?}"))
        .collect();
    match names.len().saturating_sub(NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_the_same_reason_is_one_line() {
        let loss = |tensor: Option<&str>, what, why, effect| {
            Loss::new(tensor.map(ToOwned::to_owned), what, why, effect)
        };
        let layout = || Lost::Layout("column-major".into());
        let key = |key: &str| Lost::Metadata(key.into());
        let losses = [
            loss(None, key("k1"), "there is no place for it", Effect::Dropped),
            loss(Some("a"), layout(), "written row-major", Effect::Rearranged),
            loss(Some("b"), layout(), "written row-major", Effect::Rearranged),
            loss(None, key("k2"), "there is no place for it", Effect::Dropped),
            loss(
                Some("c"),
                key("k"),
                "there is no place for it",
                Effect::Dropped,
            ),
        ];
        assert_eq!(
            lines(&losses),
            [
                "dropped: 2 metadata entries: there is no place for it (\"k1\", \"k2\")",
                "rearranged: 2 tensors: layout column-major: written row-major (\"a\", \"b\")",
                "dropped: tensor \"c\": metadata \"k\": there is no place for it",
            ]
        );
        assert_eq!(
            some(&["a", "b", "c", "d", "e"]),
            "\"a\", \"b\", \"c\" and 2 more"
        );
    }
}
