//! `tenfold diff`: what is different between two files.

use std::io::{self, Write};
use std::path::Path;

use tenfold::model::Value;
use tenfold::ops::{
    self, Change, ChangeKind, Diff, DiffOptions, Difference, MetadataChange, Number, Side,
    Tolerance,
};
use tenfold::{Archive, ErrorKind};

use crate::args::DiffArgs;
use crate::commands::inspect::shape;
use crate::commands::{Names, open_as};
use crate::failure::{Exit, Failure, Result};
use crate::json::Json;
use crate::output::{BOLD, Clean, DIM, GREEN, Out, RED, YELLOW, count, number, say, show_path};
use crate::progress::Progress;

/// More changes are shown by the pattern of their names.
const MANY: usize = 24;
/// Longer values of metadata are cut.
const LONG_VALUE: usize = 100;

pub(crate) fn run(args: &DiffArgs, out: &mut Out<'_>) -> Result<Exit> {
    let names = Names::new(&args.filter)?;
    let open = |path: &Path| {
        let archive = open_as(path, args.from.as_deref(), args.assume);
        let archive = archive.map_err(|error| Failure::about(path, &error))?;
        Ok::<_, Failure>(match names.is_all() {
            true => archive,
            false => archive.select(|info| names.contains(&info.name)),
        })
    };
    let (a, b) = (open(&args.a)?, open(&args.b)?);
    let diff = compare(&a, &b, args)?;
    for change in &diff.changes {
        if let ChangeKind::Unreadable(error) = &change.kind {
            // Which of both it is, the error knows by its format and its bytes.
            let (a, b) = (args.a.display(), args.b.display());
            say(format_args!("{a} or {b}: {error}"));
        }
    }
    if args.json && !args.quiet {
        write_json(args, &diff, &mut Json::new(out))?;
        writeln!(out)?;
    } else if !args.quiet {
        write_text(args, &diff, out)?;
    }
    Ok(exit(&diff))
}

fn compare(a: &Archive, b: &Archive, args: &DiffArgs) -> Result<Diff> {
    let mut options = DiffOptions::default();
    options.tolerance = match (args.rtol, args.atol, args.ulp) {
        (None, None, None) => None,
        (rtol, atol, ulp) => Some(Tolerance {
            rtol: rtol.unwrap_or(0.0),
            atol: atol.unwrap_or(0.0),
            ulp: ulp.unwrap_or(0),
        }),
    };
    options.ignore_dtype = args.ignore_dtype;
    options.ignore_metadata = args.ignore_metadata;
    options.names_only = args.names_only;
    options.threads = args.threads.map_or(0, usize::from);
    let bar = (!args.no_progress && !args.quiet).then(|| Progress::watch(options.control.clone()));
    let diff = ops::diff(a, b, &options);
    drop(bar);
    diff.map_err(|error| match error.kind() {
        ErrorKind::Canceled => Failure::Canceled,
        _ => Failure::about(&args.a, &error),
    })
}

fn exit(diff: &Diff) -> Exit {
    let unreadable = |change: &Change| matches!(change.kind, ChangeKind::Unreadable(_));
    if diff.changes.iter().any(unreadable) {
        Exit::Trouble
    } else if diff.is_equal() {
        Exit::Done
    } else {
        Exit::Findings
    }
}

fn write_text(args: &DiffArgs, diff: &Diff, out: &mut Out<'_>) -> io::Result<()> {
    if diff.changes.len() > MANY && !args.full {
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
    write_closing(args, diff, out)
}

/// A letter for what happened, in its colour.
fn mark(kind: &ChangeKind, out: &Out<'_>) -> String {
    let (style, mark) = match kind {
        ChangeKind::Added => (GREEN, "+"),
        ChangeKind::Removed => (RED, "-"),
        ChangeKind::Renamed => (YELLOW, ">"),
        ChangeKind::Changed(_) => (YELLOW, "~"),
        _ => (RED, "?"),
    };
    out.paint(style, mark).to_string()
}

fn write_change(change: &Change, out: &mut Out<'_>) -> io::Result<()> {
    let name = Clean(&change.name);
    write!(
        out,
        "{} {name}{}",
        mark(&change.kind, out),
        renamed(change, |n| n.to_owned())
    )?;
    writeln!(out, "  {}{}", kind_of(change), outcome(change))
}

/// The new name, where there is one.
fn renamed(change: &Change, show: impl Fn(&str) -> String) -> String {
    match (&change.kind, &change.b) {
        (ChangeKind::Renamed, Some(b)) => format!(" -> {}", Clean(&show(&b.name))),
        _ => String::new(),
    }
}

/// Type and shape, from which to which.
fn kind_of(change: &Change) -> String {
    let text = |side: &Side| format!("{} {}", side.dtype, shape(&side.shape));
    match (&change.a, &change.b) {
        (Some(a), Some(b)) if a.dtype != b.dtype && a.shape == b.shape => {
            format!("{} -> {} {}", a.dtype, b.dtype, shape(&a.shape))
        }
        (Some(a), Some(b)) if a.dtype == b.dtype && a.shape != b.shape => {
            format!("{} {} -> {}", a.dtype, shape(&a.shape), shape(&b.shape))
        }
        (Some(a), Some(b)) if a.dtype != b.dtype => format!("{} -> {}", text(a), text(b)),
        (Some(side), _) | (None, Some(side)) => text(side),
        (None, None) => String::new(),
    }
}

fn outcome(change: &Change) -> String {
    match &change.kind {
        ChangeKind::Changed(Some(values)) => format!(": {}", figures(values)),
        ChangeKind::Changed(None)
            if change.a.as_ref().map(|a| (&a.shape, a.dtype))
                == change.b.as_ref().map(|b| (&b.shape, b.dtype)) =>
        {
            ": other bytes".into()
        }
        ChangeKind::Unreadable(_) => ": cannot be read".into(),
        _ => String::new(),
    }
}

fn figures(values: &Difference) -> String {
    if values.different == 0 {
        return "the same numbers".into();
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
fn near_one(cosine: f64) -> String {
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

/// Changes of one kind in tensors whose names differ in numbers only.
struct Group<'d> {
    key: (String, String),
    changes: Vec<&'d Change>,
}

fn groups(changes: &[Change]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for change in changes {
        let pattern = format!("{}{}", pattern(&change.name), renamed(change, pattern));
        let key = (
            pattern,
            format!("{}{}", letter(&change.kind), kind_of(change)),
        );
        let place = *places.entry(key.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.changes.push(change),
            None => groups.push(Group {
                key,
                changes: vec![change],
            }),
        }
    }
    groups
}

fn letter(kind: &ChangeKind) -> char {
    match kind {
        ChangeKind::Added => '+',
        ChangeKind::Removed => '-',
        ChangeKind::Renamed => '>',
        ChangeKind::Changed(_) => '~',
        _ => '?',
    }
}

/// A name with its numbers replaced by `*`.
fn pattern(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        match c.is_ascii_digit() {
            true if text.ends_with('*') => {}
            true => text.push('*'),
            false => text.push(c),
        }
    }
    text
}

impl Group<'_> {
    fn write(&self, out: &mut Out<'_>) -> io::Result<()> {
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
            Clean(&self.key.0),
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
        let largest = |of: fn(&Difference) -> Option<f64>| {
            let all = values.iter().filter_map(|(_, values)| of(values));
            all.max_by(f64::total_cmp)
        };
        let mut text = String::new();
        let places = values.iter().map(|(name, values)| (values.max_abs, name));
        let worst = places.max_by(|(a, _), (b, _)| a.unwrap_or(-1.0).total_cmp(&b.unwrap_or(-1.0)));
        if let Some((Some(max_abs), name)) = worst {
            text += &format!(": max abs {} in {}", number(max_abs), Clean(name));
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
        write!(out, " of {}", Clean(tensor))?;
    }
    write!(out, " {} = ", Clean(&change.key))?;
    match (&change.a, &change.b) {
        (Some(a), Some(b)) => writeln!(out, "{} -> {}", value(a)?, value(b)?),
        (Some(value_of), None) | (None, Some(value_of)) => writeln!(out, "{}", value(value_of)?),
        (None, None) => writeln!(out),
    }
}

/// A value of metadata, not too long.
fn value(value: &Value) -> io::Result<String> {
    let mut text = Vec::new();
    Json::new(&mut text).value(value, false)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(match text.char_indices().nth(LONG_VALUE) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text,
    })
}

fn write_closing(args: &DiffArgs, diff: &Diff, out: &mut Out<'_>) -> io::Result<()> {
    let (a, b) = (show_path(&args.a), show_path(&args.b));
    let (a, b) = (out.paint(BOLD, a), out.paint(BOLD, b));
    let equal = count(diff.equal, "tensor");
    if diff.is_equal() {
        let verdict = out.paint(GREEN, "equal");
        let what = if args.names_only { "names of " } else { "" };
        return writeln!(out, "{a} and {b} are {verdict}: {what}{equal}");
    }
    let unreadable = diff
        .changes
        .iter()
        .filter(|change| letter(&change.kind) == '?');
    let only_unreadable = unreadable.count() == diff.changes.len() && diff.metadata.is_empty();
    match only_unreadable {
        true => write!(
            out,
            "{a} and {b} {}: ",
            out.paint(RED, "cannot be compared")
        )?,
        false => write!(out, "{a} and {b} are {}: ", out.paint(RED, "different"))?,
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

fn write_json(args: &DiffArgs, diff: &Diff, json: &mut Json<'_>) -> io::Result<()> {
    json.object(|json| {
        json.text("schema", Some("tenfold.diff/1"))?;
        json.text("a", Some(&args.a.to_string_lossy()))?;
        json.text("b", Some(&args.b.to_string_lossy()))?;
        json.key("equal")?.plain(diff.is_equal())?;
        json.number("equal_tensors", Some(diff.equal as u64))?;
        json.key("changes")?.array(|json| {
            let mut changes = diff.changes.iter();
            changes.try_for_each(|change| json_change(change, json.line()?))
        })?;
        json.key("metadata")?.array(|json| {
            let mut changes = diff.metadata.iter();
            changes.try_for_each(|change| json_metadata(change, json.line()?))
        })
    })
}

fn json_change(change: &Change, json: &mut Json<'_>) -> io::Result<()> {
    json.object(|json| {
        let kind = match &change.kind {
            ChangeKind::Added => "added",
            ChangeKind::Removed => "removed",
            ChangeKind::Renamed => "renamed",
            ChangeKind::Changed(_) => "changed",
            _ => "unreadable",
        };
        json.text("change", Some(kind))?;
        json.text("name", Some(&change.name))?;
        for (key, side) in [("a", &change.a), ("b", &change.b)] {
            match side {
                Some(side) => json_side(side, json.key(key)?)?,
                None => json.key(key)?.null()?,
            }
        }
        match &change.kind {
            ChangeKind::Changed(Some(values)) => json_values(values, json.key("values")?),
            ChangeKind::Unreadable(error) => json.text("error", Some(&error.to_string())),
            _ => Ok(()),
        }
    })
}

fn json_side(side: &Side, json: &mut Json<'_>) -> io::Result<()> {
    json.object(|json| {
        json.text("name", Some(&side.name))?;
        json.text("dtype", Some(&side.dtype.to_string()))?;
        json_numbers("shape", &side.shape, json)
    })
}

fn json_numbers(key: &str, numbers: &[u64], json: &mut Json<'_>) -> io::Result<()> {
    json.key(key)?.array(|json| {
        let mut numbers = numbers.iter();
        numbers.try_for_each(|number| json.entry()?.plain(number))
    })
}

fn json_values(values: &Difference, json: &mut Json<'_>) -> io::Result<()> {
    json.object(|json| {
        json.number("numbers", Some(values.numbers))?;
        json.number("different", Some(values.different))?;
        json.number("signs_of_zero", Some(values.signs_of_zero))?;
        json.number("nan_bits", Some(values.nan_bits))?;
        json.number("not_finite", Some(values.not_finite))?;
        for (key, figure) in [
            ("max_abs", values.max_abs),
            ("max_rel", values.max_rel),
            ("relative_l2", values.relative_l2),
            ("cosine", values.cosine),
        ] {
            match figure {
                Some(figure) => json.key(key)?.float(figure)?,
                None => json.key(key)?.null()?,
            }
        }
        let Some(first) = &values.first else {
            return json.key("first")?.null();
        };
        json.key("first")?.object(|json| {
            json_numbers("index", &first.index, json)?;
            json.key("a")?.exact(first.a)?;
            json.key("b")?.exact(first.b)
        })
    })
}

fn json_metadata(change: &MetadataChange, json: &mut Json<'_>) -> io::Result<()> {
    json.object(|json| {
        json.text("tensor", change.tensor.as_deref())?;
        json.text("key", Some(&change.key))?;
        for (key, value) in [("a", &change.a), ("b", &change.b)] {
            if let Some(value) = value {
                json.key(key)?.value(value, false)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_in_names_become_stars() {
        assert_eq!(super::pattern("h.10.mlp.w2"), "h.*.mlp.w*");
        assert_eq!(super::pattern("größe"), "größe");
    }
}
