//! `tenfold inspect`: what is in a file.

use std::cmp::{Ordering, Reverse};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use tenfold::Archive;
use tenfold::model::{Endian, Layout, Metadata, Part, Payload, SourceId, TensorInfo};

use crate::args::{InspectArgs, Sort};
use crate::commands::{
    Names, for_each_file, format_name, json_for_each_file, len_bytes, open, refuse_nothing,
};
use crate::failure::{Exit, Failure, Result};
use crate::json::{Beginning, Json};
use crate::output::{BOLD, Clean, DIM, Out, Table, count, show_name, show_path, size};

pub(crate) fn run(args: &InspectArgs, out: &mut Out<'_>) -> Result<Exit> {
    let names = Names::new(&args.filter)?;
    let open = |path: &Path| {
        let opened = open(path, &args.inputs.reading).and_then(|archive| {
            // Long lists are loaded only to show all of them.
            let metadata = match args.full {
                true => archive.load_metadata()?,
                false => archive.metadata().clone(),
            };
            Ok((archive, metadata))
        });
        let (archive, metadata) = opened.map_err(|error| Failure::about(path, &error))?;
        refuse_nothing(&args.inputs, &args.filter, &archive)?;
        Ok::<_, Failure>((archive, metadata))
    };
    if args.inputs.json {
        return json_for_each_file(&args.inputs, out, |path, json| {
            let (archive, metadata) = open(path)?;
            write_json(
                &archive,
                &metadata,
                path,
                &choose(&archive, &names, args.sort),
                args.full,
                json,
            )?;
            Ok(Exit::Done)
        });
    }
    let mut first = true;
    for_each_file(&args.inputs, out, |path, out| {
        let (archive, metadata) = open(path)?;
        if !std::mem::replace(&mut first, false) {
            writeln!(out)?;
        }
        write_text(
            &archive,
            &metadata,
            path,
            &choose(&archive, &names, args.sort),
            args,
            out,
        )?;
        Ok(Exit::Done)
    })
}

/// The tensors that are wanted, in the order that is wanted.
fn choose<'a>(archive: &'a Archive, names: &Names, sort: Option<Sort>) -> Vec<&'a TensorInfo> {
    let all = archive.manifest().tensors.iter();
    let mut chosen: Vec<_> = all.filter(|info| names.contains(&info.name)).collect();
    match sort {
        None => {}
        Some(Sort::Name) => chosen.sort_by(|a, b| a.name.cmp(&b.name)),
        Some(Sort::Size) => chosen.sort_by_key(|info| Reverse(data_len(info))),
        Some(Sort::Natural) => chosen.sort_by(|a, b| natural(&a.name, &b.name)),
    }
    chosen
}

/// Bytes of a tensor: dense where that is defined, else those of its parts.
fn data_len(info: &TensorInfo) -> u64 {
    info.dense_len().unwrap_or_else(|| {
        let parts = info.parts.iter().map(|part| part.payload.len());
        parts.fold(0, u64::saturating_add)
    })
}

/// Compares names with the numbers in them by their value.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (digits_left, digits_right) = (digits(left), digits(right));
        if digits_left.is_empty() || digits_right.is_empty() {
            match (left.chars().next(), right.chars().next()) {
                (Some(x), Some(y)) if x == y => {}
                // A tie, such as 1 and 01, is settled by the bytes.
                (None, None) => return a.cmp(b),
                (x, y) => return x.cmp(&y),
            }
            left = rest(left);
            right = rest(right);
            continue;
        }
        let (x, y) = (
            digits_left.trim_start_matches('0'),
            digits_right.trim_start_matches('0'),
        );
        match x.len().cmp(&y.len()).then_with(|| x.cmp(y)) {
            Ordering::Equal => {}
            order => return order,
        }
        left = left.get(digits_left.len()..).unwrap_or_default();
        right = right.get(digits_right.len()..).unwrap_or_default();
    }
}

/// The digits that a text begins with.
fn digits(text: &str) -> &str {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Everything but the first character.
fn rest(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.as_str()
}

fn write_text(
    archive: &Archive,
    metadata: &Metadata,
    path: &Path,
    tensors: &[&TensorInfo],
    args: &InspectArgs,
    out: &mut Out<'_>,
) -> io::Result<()> {
    write_head(archive, path, tensors, args.bytes, out)?;
    if !metadata.is_empty() {
        writeln!(out, "{}", out.paint(DIM, "metadata"))?;
        write_metadata(metadata, args.full, out)?;
    }
    if tensors.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[
        "name", "dtype", "shape", ">size", "encoding", "layout", "note",
    ]);
    for info in tensors {
        table.row(&[
            &show_name(&info.name),
            &info.dtype.to_string(),
            &shape(&info.shape),
            &amount(data_len(info), args.bytes),
            &encoding(info),
            &layout(info),
            &note(info),
        ]);
    }
    table.write(out, |out, row| match tensors.get(row) {
        Some(info) if args.full => write_metadata(&info.metadata, true, out),
        _ => Ok(()),
    })
}

/// The line that says what the file is: format, size, number of tensors, totals.
fn write_head(
    archive: &Archive,
    path: &Path,
    tensors: &[&TensorInfo],
    exact: bool,
    out: &mut Out<'_>,
) -> io::Result<()> {
    let all = archive.manifest().tensors.len();
    let shown = if tensors.len() == all {
        count(all, "tensor")
    } else {
        format!("{} of {}", tensors.len(), count(all, "tensor"))
    };
    let amount = |bytes: u64| match exact {
        true => format!("{bytes} bytes"),
        false => size(bytes),
    };
    let total = tensors
        .iter()
        .map(|info| data_len(info))
        .fold(0, u64::saturating_add);
    let elements = tensors
        .iter()
        .filter_map(|info| info.elements())
        .fold(0, u64::saturating_add);
    write!(
        out,
        "{}: {}, {}, {shown}, {elements} elements, {} of data",
        out.paint(BOLD, show_path(path)),
        Clean(&format_name(archive)),
        amount(len_bytes(archive)),
        amount(total),
    )?;
    match tensors.iter().filter(|info| info.defect.is_some()).count() {
        0 => writeln!(out),
        n => writeln!(out, ", {n} unreadable"),
    }
}

fn amount(bytes: u64, exact: bool) -> String {
    if exact {
        bytes.to_string()
    } else {
        size(bytes)
    }
}

pub(crate) fn shape(dims: &[u64]) -> String {
    let mut text = String::from("[");
    for (index, dim) in dims.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{dim}");
    }
    text.push(']');
    text
}

/// How the bytes are stored, where that is not plainly.
fn encoding(info: &TensorInfo) -> String {
    let mut found: Vec<&str> = Vec::new();
    for part in &info.parts {
        let codec = codec(part);
        if codec != "raw" && !found.contains(&codec) {
            found.push(codec);
        }
    }
    if info.parts.iter().any(|part| part.endian == Endian::Big) {
        found.push("big-endian");
    }
    found.join(" ")
}

fn codec(part: &Part) -> &'static str {
    match &part.payload {
        Payload::Raw { .. } => "raw",
        Payload::Encoded { codec, .. } => codec.name(),
        _ => "inline",
    }
}

/// The layout, where it is not row-major.
fn layout(info: &TensorInfo) -> String {
    match &info.layout {
        Layout::RowMajor => String::new(),
        layout @ (Layout::Coo { nnz } | Layout::Csr { nnz } | Layout::Pairs { nnz, .. }) => {
            format!("{}, {nnz} entries", layout.name())
        }
        layout => layout.name().to_owned(),
    }
}

fn note(info: &TensorInfo) -> String {
    match &info.defect {
        Some(defect) => format!("unreadable: {}", defect.message()),
        None => String::new(),
    }
}

fn write_metadata(metadata: &Metadata, full: bool, out: &mut Out<'_>) -> io::Result<()> {
    for (key, value) in metadata.iter() {
        write!(out, "  {} = ", Clean(key))?;
        if full {
            Json::new(out).value(value, full)?;
            writeln!(out)?;
            continue;
        }
        let mut text = Beginning::default();
        Json::new(&mut text).value(value, full)?;
        match (text.shown(), text.more) {
            (shown, 0) => writeln!(out, "{shown}")?,
            (shown, rest) => {
                writeln!(out, "{shown}… ({rest} more characters; --full shows all)")?;
            }
        }
    }
    Ok(())
}

fn write_json(
    archive: &Archive,
    metadata: &Metadata,
    path: &Path,
    tensors: &[&TensorInfo],
    full: bool,
    json: &mut Json<'_>,
) -> io::Result<()> {
    json.object(|json| {
        json.text("schema", Some("tenfold.inspect/1"))?;
        json.text("file", Some(&path.to_string_lossy()))?;
        json.text("format", archive.format().map(|spec| spec.id))?;
        json.text("version", Some(archive.version()))?;
        json.number("bytes", Some(len_bytes(archive)))?;
        json.key("metadata")?.metadata(metadata, full)?;
        json.key("tensors")?.array(|json| {
            tensors
                .iter()
                .try_for_each(|info| write_tensor(archive, info, full, json.line()?))
        })
    })
}

fn write_tensor(
    archive: &Archive,
    info: &TensorInfo,
    full: bool,
    json: &mut Json<'_>,
) -> io::Result<()> {
    json.object(|json| {
        json.text("name", Some(&info.name))?;
        json.text("dtype", Some(&info.dtype.to_string()))?;
        json.key("shape")?.array(|json| {
            info.shape
                .iter()
                .try_for_each(|dim| json.entry()?.plain(dim))
        })?;
        json.text("layout", Some(info.layout.name()))?;
        json.number("elements", info.elements())?;
        json.number("bytes", info.dense_len())?;
        json.key("stored")?.array(|json| {
            info.parts
                .iter()
                .try_for_each(|part| write_part(archive, part, json.entry()?))
        })?;
        json.key("metadata")?.metadata(&info.metadata, full)?;
        if let Some(defect) = &info.defect {
            json.key("readable")?.plain(false)?;
            json.text("why", Some(defect.message()))?;
        }
        Ok(())
    })
}

fn write_part(archive: &Archive, part: &Part, json: &mut Json<'_>) -> io::Result<()> {
    let place = part.payload.stored();
    json.object(|json| {
        json.text("role", Some(part.role.name()))?;
        json.number("offset", place.as_ref().map(|(_, range)| range.start))?;
        let stored = place
            .as_ref()
            .map(|(_, range)| range.end.saturating_sub(range.start));
        json.number("bytes", Some(stored.unwrap_or_else(|| part.payload.len())))?;
        json.text("encoding", Some(codec(part)))?;
        json.text("endian", Some(&part.endian.to_string()))?;
        if let Some(checksum) = &part.checksum {
            json.text("checksum", Some(checksum.kind.name()))?;
        }
        match place {
            Some((source, _)) if source != SourceId::MAIN => {
                json.text("file", archive.source_name(source))
            }
            _ => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn natural_order_takes_numbers_by_their_value() {
        let mut names = [
            "l.10.w", "l.9.w", "l.10.b", "l.1", "m", "l.01", "l", "l.x", "l.2.w",
        ];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            [
                "l", "l.01", "l.1", "l.2.w", "l.9.w", "l.10.b", "l.10.w", "l.x", "m"
            ]
        );
    }

    #[test]
    fn natural_order_is_total_for_numbers_of_any_length() {
        let huge = format!("a{}", "9".repeat(100));
        assert_eq!(natural("a1", &huge), Ordering::Less);
        assert_eq!(natural(&huge, &huge), Ordering::Equal);
        assert_eq!(natural("a0", "a00"), Ordering::Less);
    }
}
