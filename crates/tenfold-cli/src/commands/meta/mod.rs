//! `tenfold meta`: what files say about themselves, shown and changed.

mod edit;

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use tenfold::Archive;
use tenfold::io::{AtomicOutput, Output};
use tenfold::model::{Metadata, Value};
use tenfold::ops;

use crate::args::{MetaArgs, MetaCommand, MetaExport, MetaGet, Opening};
use crate::commands::{no_metadata, open, tensor_named};
use crate::failure::{Exit, Failure, Result};
use crate::json::{Json, short_value};
use crate::output::{Out, Table, Verbatim, say};

pub(crate) fn run(args: &MetaArgs, out: &mut Out<'_>) -> Result<Exit> {
    match &args.command {
        MetaCommand::Get(args) => get(args, out),
        MetaCommand::Set(args) => edit::set(args, out),
        MetaCommand::Unset(args) => edit::unset(args, out),
        MetaCommand::Import(args) => edit::import(args, out),
        MetaCommand::Export(args) => export(args, out),
    }
}

fn read(path: &Path, opening: &Opening) -> Result<Archive> {
    open(path, opening).map_err(|error| Failure::about(path, &error))
}

/// The metadata of the file or of a tensor, with all lists loaded.
fn load<'a>(archive: &'a Archive, path: &Path, tensor: Option<&str>) -> Result<Cow<'a, Metadata>> {
    let Some(name) = tensor else {
        let loaded = archive.load_metadata();
        return loaded.map_err(|error| Failure::about(path, &error));
    };
    tensor_named(archive, path, name)?;
    let mut tensors = archive.manifest().tensors.iter();
    let metadata = tensors.find(|info| info.name == name);
    Ok(metadata.map_or_else(Cow::default, |info| Cow::Borrowed(&info.metadata)))
}

fn get(args: &MetaGet, out: &mut Out<'_>) -> Result<Exit> {
    let archive = read(&args.file, &args.opening)?;
    let metadata = load(&archive, &args.file, args.tensor.as_deref())?;
    let mut exit = Exit::Done;
    let mut found = Metadata::new();
    for key in &args.keys {
        match metadata.get(key) {
            Some(value) => found.push(key, value.clone()),
            None => {
                say(no_metadata(&args.file, &metadata, key));
                exit = Exit::Findings;
            }
        }
    }
    let shown = if args.keys.is_empty() {
        &*metadata
    } else {
        &found
    };
    match args.keys.as_slice() {
        _ if args.json => write_json(args, &archive, shown, out)?,
        [_] => shown
            .iter()
            .try_for_each(|(_, value)| write_one(value, args.raw, out))?,
        _ if args.raw => {
            let message = "--raw shows one value: name its key";
            return Err(Failure::Message(message.into()));
        }
        _ => write_table(shown, out)?,
    }
    Ok(exit)
}

/// A value by itself: text without quotes (and with `--raw` without escapes), everything else as JSON.
fn write_one(value: &Value, raw: bool, out: &mut Out<'_>) -> std::io::Result<()> {
    match value {
        Value::Str(text) if raw => return out.write_all(text.as_bytes()),
        Value::Bytes(bytes) if raw => return out.write_all(bytes),
        Value::Str(text) => write!(out, "{}", Verbatim(text))?,
        value => Json::new(out).value(value, true)?,
    }
    if raw { Ok(()) } else { writeln!(out) }
}

fn write_table(metadata: &Metadata, out: &mut Out<'_>) -> std::io::Result<()> {
    if metadata.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["key", "type", "value"]);
    for (key, value) in metadata.iter() {
        table.row(&[
            &Verbatim(key).to_string(),
            &ops::value_type(value),
            &short_value(value),
        ]);
    }
    table.write(out, |_, _| Ok(()))
}

fn write_json(
    args: &MetaGet,
    archive: &Archive,
    metadata: &Metadata,
    out: &mut Out<'_>,
) -> std::io::Result<()> {
    Json::new(out).object(|json| {
        json.text("schema", Some("tenfold.meta/1"))?;
        json.text("file", Some(&args.file.to_string_lossy()))?;
        json.text("format", archive.format().map(|spec| spec.id))?;
        json.text("version", Some(archive.version()))?;
        json.text("tensor", args.tensor.as_deref())?;
        json.key("metadata")?.metadata(metadata, true)?;
        json.key("types")?.object(|json| {
            metadata
                .iter()
                .try_for_each(|(key, value)| json.text(key, Some(&ops::value_type(value))))
        })
    })?;
    writeln!(out)
}

fn export(args: &MetaExport, out: &mut Out<'_>) -> Result<Exit> {
    let archive = read(&args.file, &args.opening)?;
    let metadata = load(&archive, &args.file, args.tensor.as_deref())?;
    let Some(path) = &args.output else {
        ops::write_metadata_json(&metadata, &mut |piece| -> Result<()> {
            Ok(out.write_all(piece.as_bytes())?)
        })?;
        return Ok(Exit::Done);
    };
    if same_file::is_same_file(&args.file, path).unwrap_or(false) {
        let message = format!("{} is the input; write to another name", path.display());
        return Err(Failure::Message(message));
    }
    let mut output = AtomicOutput::file(path)?.force(args.force);
    let name = output.main_name().to_owned();
    let mut file = output.create(&name, None)?;
    ops::write_metadata_json(&metadata, &mut |piece| file.write(piece.as_bytes()))?;
    drop(file);
    output.commit()?;
    Ok(Exit::Done)
}
