//! `tenfold inspect`: what is in a file.

mod below;
mod sharing;
mod summary;
mod tree;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use tenfold::Archive;
use tenfold::documents::{Inspection, ShownValue};
use tenfold::model::{Endian, Layout, Metadata, Scheme, TensorInfo};
use tenfold::ops::{self, QuantizedGroups, group_names, natural_order};

use crate::args::{InspectArgs, Sort};
use crate::commands::{Names, Session, for_each_file, json_for_each_file, refuse_nothing};
use crate::failure::{Exit, Failure, Result};
use crate::hints;
use crate::json;
use crate::output::{DIM, Out, Screen, Table, Verbatim, count, show_name, size};

pub(crate) fn run(args: &InspectArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let below;
    let inputs = if args.recursive {
        below = below::models(&args.inputs)?;
        &below
    } else {
        &args.inputs
    };
    let names = Names::new(&args.filter)?;
    let open = |path: &Path| {
        let opened = session.open(path, &args.opening);
        let archive = opened.map_err(|error| Failure::about(path, &error))?;
        refuse_nothing(inputs, &args.filter, &archive)?;
        Ok::<_, Failure>(archive)
    };

    if args.inputs.json {
        return json_for_each_file(inputs, out, |path, out| {
            let archive = open(path)?;
            let metadata = load(&archive, path, args.full)?;
            let tensors = choose(&archive, &names, args.sort);
            let file = path.to_string_lossy();
            let quantized = quantized(&archive);
            let document = Inspection::new(
                &file,
                &archive,
                &metadata,
                &tensors,
                args.full,
                hints::words,
            );
            let document = match &quantized {
                Some(quantized) => document.quantized(quantized),
                None => document,
            };
            let document = if args.summary || args.recursive {
                document.without_tensors()
            } else {
                document
            };
            json::write(out, &document)?;
            Ok(Exit::Done)
        });
    }
    let mut first = true;
    for_each_file(inputs, out, |path, out| {
        let archive = open(path)?;
        if args.recursive {
            let tensors = choose(&archive, &names, None);
            summary::write_line(&archive, path, &tensors, args.bytes, out)?;
            return Ok(Exit::Done);
        }
        let metadata = load(&archive, path, args.full)?;
        if !std::mem::replace(&mut first, false) {
            writeln!(out)?;
        }
        // What is quantized together is one tensor to people.
        let quantized = quantized(&archive);
        let archive = quantized.map_or(archive.clone(), |quantized| quantized.archive);
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

/// What is quantized together. What is wrong with it is said by whoever needs the numbers.
fn quantized(archive: &Archive) -> Option<QuantizedGroups> {
    ops::quantized(archive).ok()
}

/// The metadata of the file. Long lists are loaded only to show all of them.
fn load<'a>(archive: &'a Archive, path: &Path, full: bool) -> Result<Cow<'a, Metadata>> {
    if full {
        archive
            .load_metadata()
            .map_err(|error| Failure::about(path, &error))
    } else {
        Ok(Cow::Borrowed(archive.metadata()))
    }
}

/// The tensors that are wanted, in the order that is wanted.
fn choose<'a>(archive: &'a Archive, names: &Names, sort: Option<Sort>) -> Vec<&'a TensorInfo> {
    let all = archive.manifest().tensors.iter();
    let mut chosen: Vec<_> = all.filter(|info| names.contains(&info.name)).collect();
    match sort {
        None => {}
        Some(Sort::Name) => chosen.sort_by(|a, b| a.name.cmp(&b.name)),
        Some(Sort::Size) => chosen.sort_by_key(|info| Reverse(data_len(info))),
        Some(Sort::Dtype) => chosen.sort_by_cached_key(|info| info.dtype.to_string()),
        Some(Sort::Natural) => chosen.sort_by(|a, b| natural_order(&a.name, &b.name)),
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

fn write_text(
    archive: &Archive,
    metadata: &Metadata,
    path: &Path,
    tensors: &[&TensorInfo],
    args: &InspectArgs,
    out: &mut Out<'_>,
) -> io::Result<()> {
    summary::write(archive, path, tensors, args.bytes, out)?;
    if args.summary {
        return Ok(());
    }
    if !metadata.is_empty() {
        writeln!(out, "{}", out.paint(DIM, "metadata"))?;
        write_metadata(archive, metadata, args.full, out)?;
    }
    if tensors.is_empty() {
        return Ok(());
    }
    if args.tree {
        return tree::write(tensors, args.bytes, out);
    }
    // Whoever reads it on a screen sees all of it at once, if that can be.
    let is_long = |screen: Screen| tensors.len() + metadata.len() + HEAD_LINES > screen.lines;
    let notes = notes(tensors);
    let groups = if !args.all && !args.full && out.screen.is_some_and(is_long) {
        group(tensors, &notes)
    } else {
        let each = tensors.iter().enumerate();
        each.map(|(place, info)| (show_name(&info.name), vec![place]))
            .collect()
    };
    let mut table = Table::new(&[
        "name", ">count", "dtype", "shape", ">size", "encoding", "layout", "note",
    ]);
    for (name, members) in &groups {
        let place = members.first().copied().unwrap_or_default();
        let (Some(first), Some(note)) = (tensors.get(place), notes.get(place)) else {
            continue;
        };
        let bytes = members.iter().filter_map(|&place| tensors.get(place));
        let bytes = bytes
            .map(|info| data_len(info))
            .fold(0, u64::saturating_add);
        let count = match members.len() {
            1 => String::new(),
            n => format!("×{n}"),
        };
        table.row(&[
            name,
            &count,
            &dtype(first),
            &shape(&first.shape),
            &amount(bytes, args.bytes),
            &encoding(first),
            &layout(first),
            note,
        ]);
    }
    table.write(out, |out, row| match tensors.get(row) {
        Some(info) if args.full => {
            write_parts(info, args.bytes, out)?;
            write_metadata(archive, &info.metadata, true, out)
        }
        _ => Ok(()),
    })?;
    if groups.len() < tensors.len() {
        let all = count(tensors.len(), "tensor");
        let line = format!("repeated layers are grouped; --all lists each of {all}");
        writeln!(out, "{}", out.paint(DIM, line))?;
    }
    Ok(())
}

/// The lines of the summary, the titles, and the prompt of the shell.
const HEAD_LINES: usize = 5;

/// Tensors that differ in numbers of their names only: as one name, and which they are.
fn group(tensors: &[&TensorInfo], notes: &[String]) -> Vec<(String, Vec<usize>)> {
    let named = tensors.iter().zip(notes).map(|(info, note)| {
        let alike = (info.dtype, &info.shape, encoding(info), layout(info), note);
        (info.name.as_str(), alike)
    });
    let groups = group_names(named).into_iter();
    groups
        .map(|group| (show_name(&group.pattern), group.members))
        .collect()
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

/// The type of the elements; parts that are quantized together have several.
pub(super) fn dtype(info: &TensorInfo) -> String {
    match scheme(info) {
        Some(_) => "quantized".to_owned(),
        None => info.dtype.to_string(),
    }
}

/// What a quantized tensor that is several in the file is taken for.
fn scheme(info: &TensorInfo) -> Option<&Scheme> {
    info.decoder.as_ref()?.scheme()
}

/// The parts of a quantized tensor that are tensors of the file.
fn write_parts(info: &TensorInfo, exact: bool, out: &mut Out<'_>) -> io::Result<()> {
    if scheme(info).is_none() {
        return Ok(());
    }
    for part in &info.parts {
        let size = amount(part.payload.len(), exact);
        writeln!(
            out,
            "  {}: {}, {size}",
            Verbatim(part.role.name()),
            part.dtype
        )?;
    }
    Ok(())
}

/// How the bytes are stored, where that is not plainly.
fn encoding(info: &TensorInfo) -> String {
    let mut found: Vec<&str> = Vec::new();
    for part in &info.parts {
        let codec = part.encoding();
        if codec != "raw" && !found.contains(&codec) {
            found.push(codec);
        }
    }
    if info.parts.iter().any(|part| part.endian == Endian::Big) {
        found.push("big-endian");
    }
    found.join(" ")
}

/// The layout, where it is not row-major.
fn layout(info: &TensorInfo) -> String {
    if let Some(scheme) = scheme(info) {
        return format!("{}, {}", scheme.name, scheme.parameters);
    }
    match (&info.layout, info.layout.nnz()) {
        (Layout::RowMajor, _) => String::new(),
        (layout, Some(nnz)) => format!("{}, {nnz} entries", layout.name()),
        (layout, None) => Verbatim(layout.name()).to_string(),
    }
}

fn notes(tensors: &[&TensorInfo]) -> Vec<String> {
    let shared = sharing::shared_with(tensors);
    (tensors.iter().zip(shared))
        .map(|(info, shared)| note(info, shared.and_then(|place| tensors.get(place))))
        .collect()
}

/// What must be known of a tensor before it is used.
fn note(info: &TensorInfo, shared: Option<&&TensorInfo>) -> String {
    match (&info.defect, shared) {
        (Some(defect), _) => format!("unreadable: {}", hints::message(defect)),
        (None, Some(first)) => format!("shares data with {}", show_name(&first.name)),
        (None, None) if !info.is_numbers() => "not numbers".to_owned(),
        (None, None) => String::new(),
    }
}

fn write_metadata(
    archive: &Archive,
    metadata: &Metadata,
    full: bool,
    out: &mut Out<'_>,
) -> io::Result<()> {
    for (key, value) in metadata.iter() {
        write!(out, "  {} = ", Verbatim(key))?;
        if full {
            json::write_line(out, &ShownValue::new(value, full))?;
            writeln!(out)?;
        } else {
            writeln!(out, "{}", json::one_line(archive, value))?;
        }
    }
    Ok(())
}
