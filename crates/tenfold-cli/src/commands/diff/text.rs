//! Differences for people.

use std::io::{self, Write};

use tenfold::ops::{Change, ChangeKind, Diff, Difference, MetadataChange, Number, Parts, Side};

use super::Shown;
use super::group::groups;
use crate::commands::inspect::shape;
use crate::json::short_value;
use crate::output::{
    BOLD, DIM, GREEN, Out, RED, Verbatim, YELLOW, count, number, show_name, show_path,
};

/// More changes are shown by the pattern of their names.
const MANY: usize = 24;

pub(super) fn write_text(shown: &Shown<'_>, diff: &Diff, out: &mut Out<'_>) -> io::Result<()> {
    if diff.changes.len() > MANY && !shown.full {
        for group in groups(&diff.changes) {
            group.write(out)?;
        }
    } else {
        for change in &diff.changes {
            write_change(change, out)?;
        }
    }
    for change in &diff.metadata {
        write_metadata(change, out)?;
    }
    write_closing(shown, diff, out)
}

pub(super) fn write_change(change: &Change, out: &mut Out<'_>) -> io::Result<()> {
    let name = show_name(&change.name);
    write!(
        out,
        "{} {name}{}",
        mark(&change.kind, out),
        renamed(change, |n| n.to_owned())
    )?;
    writeln!(out, "  {}{}", kind_of(change), outcome(change))
}

/// A letter for what happened, in its colour.
pub(super) fn mark(kind: &ChangeKind, out: &Out<'_>) -> String {
    let (style, mark) = match kind {
        ChangeKind::Added => (GREEN, "+"),
        ChangeKind::Removed => (RED, "-"),
        ChangeKind::Renamed => (YELLOW, ">"),
        ChangeKind::Changed(_) => (YELLOW, "~"),
        _ => (RED, "?"),
    };
    out.paint(style, mark).to_string()
}

pub(super) fn letter(kind: &ChangeKind) -> char {
    match kind {
        ChangeKind::Added => '+',
        ChangeKind::Removed => '-',
        ChangeKind::Renamed => '>',
        ChangeKind::Changed(_) => '~',
        _ => '?',
    }
}

/// The new name, where there is one.
pub(super) fn renamed(change: &Change, show: impl Fn(&str) -> String) -> String {
    match (&change.kind, &change.b) {
        (ChangeKind::Renamed, Some(b)) => format!(" -> {}", show_name(&show(&b.name))),
        _ => String::new(),
    }
}

/// Type and shape, from which to which.
pub(super) fn kind_of(change: &Change) -> String {
    let text = |side: &Side| format!("{} {}", side.dtype, shape(&side.shape));
    match (&change.a, &change.b) {
        (Some(a), Some(b)) if a.dtype != b.dtype && a.shape == b.shape => {
            format!("{} -> {} {}", a.dtype, b.dtype, shape(&a.shape))
        }
        (Some(a), Some(b)) if a.dtype == b.dtype && a.shape != b.shape => {
            format!("{} {} -> {}", a.dtype, shape(&a.shape), shape(&b.shape))
        }
        (Some(a), Some(b)) if a.dtype != b.dtype => format!("{} -> {}", text(a), text(b)),
        (Some(a), Some(b)) if a.parts != b.parts => {
            let parts = |side: &Side| side.parts.as_ref().map(show_parts).unwrap_or_default();
            format!("{}, {} -> {}", text(a), parts(a), parts(b))
        }
        (Some(side), _) | (None, Some(side)) => text(side),
        (None, None) => String::new(),
    }
}

/// `ragged (lengths u32, payload f32)`
fn show_parts(parts: &Parts) -> String {
    let of_each: Vec<_> = (parts.parts.iter())
        .map(|(role, dtype)| format!("{} {dtype}", Verbatim(role)))
        .collect();
    let scheme = [&parts.scheme, &parts.parameters].map(|text| Verbatim(text).to_string());
    format!("{} ({})", scheme.join(" ").trim_end(), of_each.join(", "))
}

fn outcome(change: &Change) -> String {
    match &change.kind {
        ChangeKind::Changed(Some(values)) => format!(": {}", figures(values)),
        ChangeKind::Changed(None)
            if change.a.as_ref().map(|a| (&a.shape, a.dtype, &a.parts))
                == change.b.as_ref().map(|b| (&b.shape, b.dtype, &b.parts)) =>
        {
            ": other bytes".into()
        }
        ChangeKind::Unreadable { .. } => ": cannot be read".into(),
        _ => String::new(),
    }
}

/// Whether no number differs at all.
pub(super) fn is_same_numbers(values: &Difference) -> bool {
    values.different == 0 && values.max_abs.is_none_or(|apart| apart == 0.0)
}

fn figures(values: &Difference) -> String {
    match &values.common {
        Some(common) => format!("in the common {}: {}", shape(common), of_numbers(values)),
        None if is_same_numbers(values) => "the same numbers, other type".into(),
        None => of_numbers(values),
    }
}

fn of_numbers(values: &Difference) -> String {
    if is_same_numbers(values) {
        return "the same numbers".into();
    }
    if values.different == 0 {
        let apart = number(values.max_abs.unwrap_or(0.0));
        return format!("equal within the tolerance, max abs {apart}");
    }
    let verb = if values.different == 1 {
        "differs"
    } else {
        "differ"
    };
    let mut text = format!(
        "{} of {} {verb}",
        values.different,
        count_numbers(values.numbers)
    );
    let special: Vec<String> = [
        (values.signs_of_zero, "only in the sign of 0"),
        (values.nan_bits, "only in the bits of NaN"),
        (values.not_finite, "by NaN or infinity"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, what)| format!("{n} {what}"))
    .collect();
    if !special.is_empty() {
        text += &format!(" ({})", special.join(", "));
    }
    for (what, figure) in [
        ("max abs", values.max_abs),
        ("max rel", values.max_rel),
        ("rel L2", values.relative_l2),
    ] {
        if let Some(figure) = figure {
            text += &format!(", {what} {}", number(figure));
        }
    }
    if let Some(cosine) = values.cosine {
        text += &format!(", cosine {}", near_one(cosine));
    }
    if let Some(first) = &values.first {
        let (a, b) = side_by_side(first.a, first.b);
        text += &format!(", first at {}: {a} -> {b}", shape(&first.index));
    }
    text
}

/// A cosine with nine decimals: its distance from 1 is what matters.
pub(super) fn near_one(cosine: f64) -> String {
    let text = format!("{cosine:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Two numbers with as many digits as it takes to tell them apart.
fn side_by_side(a: Number, b: Number) -> (String, String) {
    let short = |value: Number| match value {
        Number::Float(value) => number(value),
        integer => integer.to_string(),
    };
    match (short(a), short(b)) {
        (a_text, b_text) if a_text != b_text => (a_text, b_text),
        _ => (a.to_string(), b.to_string()),
    }
}

fn count_numbers(n: u64) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX), "number")
}

fn write_metadata(change: &MetadataChange, out: &mut Out<'_>) -> io::Result<()> {
    let (style, mark) = match (&change.a, &change.b) {
        (None, _) => (GREEN, "+"),
        (_, None) => (RED, "-"),
        _ => (YELLOW, "~"),
    };
    write!(
        out,
        "{} {}",
        out.paint(style, mark),
        out.paint(DIM, "metadata")
    )?;
    if let Some(tensor) = &change.tensor {
        write!(out, " of {}", Verbatim(tensor))?;
    }
    write!(out, " {} = ", Verbatim(&change.key))?;
    match (&change.a, &change.b) {
        (Some(a), Some(b)) => writeln!(out, "{} -> {}", short_value(a), short_value(b)),
        (Some(value), None) | (None, Some(value)) => writeln!(out, "{}", short_value(value)),
        (None, None) => writeln!(out),
    }
}

fn write_closing(shown: &Shown<'_>, diff: &Diff, out: &mut Out<'_>) -> io::Result<()> {
    let (a, b) = (show_path(shown.a), show_path(shown.b));
    let (a, b) = (out.paint(BOLD, a), out.paint(BOLD, b));
    let equal = count(diff.equal, "tensor");
    if diff.is_equal() {
        let verdict = out.paint(GREEN, "equal");
        let what = if shown.names_only { "names of " } else { "" };
        return writeln!(out, "{a} and {b} are {verdict}: {what}{equal}");
    }
    let unreadable = diff
        .changes
        .iter()
        .filter(|change| letter(&change.kind) == '?');
    let only_unreadable = unreadable.count() == diff.changes.len() && diff.metadata.is_empty();
    if only_unreadable {
        write!(
            out,
            "{a} and {b} {}: ",
            out.paint(RED, "cannot be compared")
        )?
    } else {
        write!(out, "{a} and {b} are {}: ", out.paint(RED, "different"))?
    }
    for (letter_of, what) in [
        ('+', "added"),
        ('-', "removed"),
        ('>', "renamed"),
        ('~', "changed"),
        ('?', "unreadable"),
    ] {
        let changes = diff.changes.iter();
        match changes
            .filter(|change| letter(&change.kind) == letter_of)
            .count()
        {
            0 => {}
            n => write!(out, "{n} {what}, ")?,
        }
    }
    write!(out, "{equal} equal")?;
    match diff.metadata.len() {
        0 => writeln!(out),
        n => writeln!(out, ", {} of metadata different", count(n, "key")),
    }
}
