//! Names that differ in numbers only, as those of layers do.

use core::hash::Hash;

use crate::prelude::*;

/// Things of one kind whose names differ in numbers only.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct NameGroup<K> {
    /// All names as one: `layers.{0..31}.mlp.w2`. A number that is the same in all of them stays; one that is not becomes a
    /// range or a short list, or `*` where the group lacks some names that these would stand for.
    pub pattern: String,
    /// What else they have in common.
    pub kind: K,
    /// Their places among those that were given, in ascending order.
    pub members: Vec<usize>,
}

/// A name with its numbers replaced by `*`.
///
/// ```
/// assert_eq!(tenfold::ops::name_pattern("h.10.mlp.w2"), "h.*.mlp.w*");
/// ```
pub fn name_pattern(name: &str) -> String {
    let mut text = String::new();
    for (piece, is_number) in pieces(name) {
        text.push_str(if is_number { "*" } else { piece });
    }
    text
}

/// Groups names that differ in numbers only and are of one kind, such as a type and a shape. Groups come in the order of
/// their first members.
///
/// ```
/// use tenfold::ops::group_names;
/// let names = [("h.0.w", "f32"), ("h.0.b", "f32"), ("h.1.w", "f32"), ("h.2.w", "f16")];
/// let groups = group_names(names);
/// assert_eq!((groups[0].pattern.as_str(), &groups[0].members[..]), ("h.{0..1}.w", &[0, 2][..]));
/// assert_eq!(groups.len(), 3);
/// ```
pub fn group_names<'n, K: Clone + Eq + Hash>(
    names: impl IntoIterator<Item = (&'n str, K)>,
) -> Vec<NameGroup<K>> {
    let mut groups: Vec<NameGroup<K>> = Vec::new();
    let mut named: Vec<Vec<&str>> = Vec::new();
    let mut places: LookupMap<(String, K), usize> = LookupMap::default();
    for (member, (name, kind)) in names.into_iter().enumerate() {
        let key = (name_pattern(name), kind);
        let place = *places.entry(key.clone()).or_insert(groups.len());
        match (groups.get_mut(place), named.get_mut(place)) {
            (Some(group), Some(names)) => {
                group.members.push(member);
                names.push(name);
            }
            _ => {
                groups.push(NameGroup {
                    pattern: key.0,
                    kind: key.1,
                    members: vec![member],
                });
                named.push(vec![name]);
            }
        }
    }
    for (group, names) in groups.iter_mut().zip(&named) {
        if let Some(pattern) = pattern_of(names) {
            group.pattern = pattern;
        }
    }
    groups
}

/// A name as its numbers and what is between them, and which is which.
fn pieces(name: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut rest = name;
    core::iter::from_fn(move || {
        let is_number = rest.starts_with(|c: char| c.is_ascii_digit());
        let end = rest.find(|c: char| c.is_ascii_digit() != is_number);
        let (piece, tail) = rest.split_at(end.unwrap_or(rest.len()));
        rest = tail;
        (!piece.is_empty()).then_some((piece, is_number))
    })
}

/// What stands for all of these names and for no other; `None` where numbers are not numbers of one kind, or some are
/// missing.
fn pattern_of(names: &[&str]) -> Option<String> {
    let first: Vec<_> = pieces(names.first()?).collect();
    let mut text = String::new();
    let mut stands_for = 1usize;
    for (place, (piece, is_number)) in first.iter().enumerate() {
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let (other, is_other_number) = pieces(name).nth(place)?;
            if is_other_number != *is_number {
                return None;
            }
            found.push(other);
        }
        if found.iter().all(|other| other == piece) {
            text.push_str(piece);
            continue;
        }
        let (range, count) = range_of(&found)?;
        stands_for = stands_for.checked_mul(count)?;
        text += &range;
    }
    (stands_for == names.len()).then_some(text)
}

/// Some numbers as `{0..31}` or `{1,4,7}`, and how many they are.
fn range_of(digits: &[&str]) -> Option<(String, usize)> {
    const LISTED: usize = 4;
    let mut numbers = Vec::with_capacity(digits.len());
    for text in digits {
        let number: u64 = text.parse().ok()?;
        // A zero before it would be lost.
        if text.len() > 1 && text.starts_with('0') {
            return None;
        }
        numbers.push(number);
    }
    numbers.sort_unstable();
    numbers.dedup();
    let (from, to) = (*numbers.first()?, *numbers.last()?);
    let text = if to - from == numbers.len() as u64 - 1 {
        format!("{{{from}..{to}}}")
    } else if numbers.len() <= LISTED {
        let listed: Vec<_> = numbers.iter().map(ToString::to_string).collect();
        format!("{{{}}}", listed.join(","))
    } else {
        return None;
    };
    Some((text, numbers.len()))
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn numbers_in_names_become_stars() {
        assert_eq!(super::name_pattern("h.10.mlp.w2"), "h.*.mlp.w*");
        assert_eq!(super::name_pattern("größe"), "größe");
        // A star of the name itself is not one of ours.
        assert_eq!(super::name_pattern("*1"), "**");
    }
    #[test]
    fn a_pattern_stands_for_its_names_and_no_other() {
        let pattern = |names: &[&str]| {
            let groups = super::group_names(names.iter().map(|name| (*name, ())));
            groups
                .into_iter()
                .map(|group| group.pattern)
                .collect::<Vec<_>>()
        };
        assert_eq!(pattern(&["h.10.w2"]), ["h.10.w2"]);
        assert_eq!(pattern(&["h.9.w2", "h.10.w2", "h.11.w2"]), ["h.{9..11}.w2"]);
        assert_eq!(pattern(&["h.1.w", "h.7.w", "h.4.w"]), ["h.{1,4,7}.w"]);
        let experts = ["l0.e0", "l0.e1", "l0.e2", "l1.e0", "l1.e1", "l1.e2"];
        assert_eq!(pattern(&experts), ["l{0..1}.e{0..2}"]);
        assert_eq!(pattern(&experts[..5]), ["l*.e*"]);
        assert_eq!(pattern(&["b.00", "b.01"]), ["b.*"]);
        assert_eq!(pattern(&["1.99999999999999999999", "1.2"]), ["*.*"]);
        assert_eq!(pattern(&["*1", "12*"]), ["**"]);
        assert_eq!(pattern(&["0", "2", "4", "6", "8"]), ["*"]);
    }
}
