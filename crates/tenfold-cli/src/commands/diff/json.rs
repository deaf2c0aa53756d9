//! Differences for programs.

use std::io;

use tenfold::ops::{Change, ChangeKind, Diff, Difference, MetadataChange, Parts, Side};

use crate::args::DiffArgs;
use crate::json::Json;

pub(super) fn write_json(args: &DiffArgs, diff: &Diff, json: &mut Json<'_>) -> io::Result<()> {
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
            ChangeKind::Unreadable { error, .. } => json.text("error", Some(&error.to_string())),
            _ => Ok(()),
        }
    })
}

fn json_side(side: &Side, json: &mut Json<'_>) -> io::Result<()> {
    json.object(|json| {
        json.text("name", Some(&side.name))?;
        json.text("dtype", Some(&side.dtype.to_string()))?;
        json_numbers("shape", &side.shape, json)?;
        match &side.parts {
            Some(parts) => json_parts(parts, json),
            None => Ok(()),
        }
    })
}

fn json_parts(parts: &Parts, json: &mut Json<'_>) -> io::Result<()> {
    json.text("scheme", Some(&parts.scheme))?;
    if !parts.parameters.is_empty() {
        json.text("parameters", Some(&parts.parameters))?;
    }
    json.key("parts")?.array(|json| {
        let mut parts = parts.parts.iter();
        parts.try_for_each(|(role, dtype)| {
            json.entry()?.object(|json| {
                json.text("role", Some(role))?;
                json.text("dtype", Some(&dtype.to_string()))
            })
        })
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
