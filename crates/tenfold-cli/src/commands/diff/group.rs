//! Many changes of one kind, as one.

use std::io::{self, Write};

use tenfold::ops::{Change, ChangeKind, Difference, group_names, name_pattern};

use super::text::{is_same_numbers, kind_of, letter, mark, near_one, renamed, write_change};
use crate::output::{BOLD, Out, Verbatim, count, number};

/// Changes of one kind in tensors whose names differ in numbers only.
pub(super) struct Group<'d> {
    pattern: String,
    changes: Vec<&'d Change>,
}

pub(super) fn groups(changes: &[Change]) -> Vec<Group<'_>> {
    let named = changes.iter().map(|change| {
        let kind = format!(
            "{}{}{}",
            letter(&change.kind),
            kind_of(change),
            is_same(change)
        );
        (change.name.as_str(), (kind, renamed(change, name_pattern)))
    });
    let groups = group_names(named).into_iter();
    groups
        .map(|group| Group {
            pattern: format!("{}{}", group.pattern, group.kind.1),
            changes: (group.members.iter())
                .filter_map(|&member| changes.get(member))
                .collect(),
        })
        .collect()
}

/// Whether only the type is another.
fn is_same(change: &Change) -> bool {
    match &change.kind {
        ChangeKind::Changed(Some(values)) => is_same_numbers(values) && values.common.is_none(),
        _ => false,
    }
}

impl Group<'_> {
    pub(super) fn write(&self, out: &mut Out<'_>) -> io::Result<()> {
        let [first, _, ..] = self.changes.as_slice() else {
            return self
                .changes
                .iter()
                .try_for_each(|change| write_change(change, out));
        };
        let tensors = count(self.changes.len(), "tensor");
        write!(
            out,
            "{} {}  {}",
            mark(&first.kind, out),
            Verbatim(&self.pattern),
            kind_of(first)
        )?;
        writeln!(out, ", {}{}", out.paint(BOLD, tensors), self.worst())
    }

    /// The largest errors of the group, and where the largest is.
    fn worst(&self) -> String {
        let values: Vec<(&str, &Difference)> = (self.changes.iter())
            .filter_map(|change| match &change.kind {
                ChangeKind::Changed(Some(values)) => Some((change.name.as_str(), values)),
                _ => None,
            })
            .collect();
        if let [first, ..] = self.changes.as_slice()
            && is_same(first)
        {
            return ": the same numbers, other type".to_owned();
        }
        let largest = |of: fn(&Difference) -> Option<f64>| {
            let all = values.iter().filter_map(|(_, values)| of(values));
            all.max_by(f64::total_cmp)
        };
        let mut text = String::new();
        let places = values.iter().map(|(name, values)| (values.max_abs, name));
        let worst = places.max_by(|(a, _), (b, _)| a.unwrap_or(-1.0).total_cmp(&b.unwrap_or(-1.0)));
        if let Some((Some(max_abs), name)) = worst {
            text += &format!(": max abs {} in {}", number(max_abs), Verbatim(name));
        }
        if let Some(max_rel) = largest(|values| values.max_rel) {
            text += &format!(", max rel {}", number(max_rel));
        }
        if let Some(relative) = largest(|values| values.relative_l2) {
            text += &format!(", rel L2 up to {}", number(relative));
        }
        if let Some(cosine) = largest(|values| values.cosine.map(|cosine| -cosine)) {
            text += &format!(", cosine from {}", near_one(-cosine));
        }
        text
    }
}
