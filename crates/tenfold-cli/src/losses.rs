//! Losses and errors for people: those with the same reason on one line.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;

use tenfold::Error;
use tenfold::format::{Effect, Loss, Lost};
use tenfold::model::Quoted;

use crate::failure::explain;
use crate::hints;
use crate::output::show_path;

/// Names that a line shows; more are counted.
const NAMES: usize = 3;

/// A line for every reason, in the order of the first of each.
pub(crate) fn lines(losses: &[Loss]) -> Vec<String> {
    let groups = alike(losses, Reason::of);
    groups.iter().map(|members| line(members)).collect()
}

/// Errors of the tensors of a file, a line for every reason.
pub(crate) fn errors<'e>(path: &Path, errors: impl Iterator<Item = &'e Error>) -> Vec<String> {
    let reason = |error: &&'e Error| (error.rule(), error.message());
    let groups = alike(errors, reason);
    let lines = groups.iter().map(|members| match members.as_slice() {
        [first, _, ..] => {
            let names: Vec<_> = members.iter().filter_map(|error| error.tensor()).collect();
            let (file, n, message) = (show_path(path), members.len(), hints::message(first));
            format!(
                "{file}: {n} tensors: {message} ({}) [{}]",
                some(&names),
                first.rule()
            )
        }
        one => one.iter().map(|error| explain(path, error)).collect(),
    });
    lines.collect()
}

/// What has the same reason, together, in the order of the first of each.
pub(crate) fn alike<T, R: Eq + Hash>(
    items: impl IntoIterator<Item = T>,
    reason: impl Fn(&T) -> R,
) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    let mut known: HashMap<R, usize> = HashMap::new();
    for item in items {
        let place = *known.entry(reason(&item)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(members) => members.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
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
    fn of(loss: &&'a Loss) -> Self {
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
        .map(|name| Quoted(name).to_string())
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
            loss(None, key("k1"), "no place in the target", Effect::Dropped),
            loss(Some("a"), layout(), "written row-major", Effect::Rearranged),
            loss(Some("b"), layout(), "written row-major", Effect::Rearranged),
            loss(None, key("k2"), "no place in the target", Effect::Dropped),
            loss(
                Some("c"),
                key("k"),
                "no place in the target",
                Effect::Dropped,
            ),
        ];
        assert_eq!(
            lines(&losses),
            [
                "dropped: 2 metadata entries: no place in the target (\"k1\", \"k2\")",
                "rearranged: 2 tensors: layout column-major: written row-major (\"a\", \"b\")",
                "dropped: tensor \"c\": metadata \"k\": no place in the target",
            ]
        );
        assert_eq!(
            some(&["a", "b", "c", "d", "e"]),
            "\"a\", \"b\", \"c\" and 2 more"
        );
    }
}
