//! `tenfold meta`: what files say about themselves, shown and changed.

mod edit;

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use serde::{Serialize, Serializer};
use tenfold::Archive;
use tenfold::documents::{ShownMetadata, ShownValue};
use tenfold::model::{Metadata, Value};

use crate::args::{MetaArgs, MetaCommand, MetaExport, MetaGet, Opening};
use crate::commands::{Session, no_metadata, tensor_named, write_file};
use crate::failure::{Exit, Failure, Result};
use crate::json::{self, short_value};
use crate::metadata::{value_type, write_metadata};
use crate::output::{Out, Table, Verbatim, say};

pub(crate) fn run(args: &MetaArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    match &args.command {
        MetaCommand::Get(args) => get(args, session, out),
        MetaCommand::Set(args) => edit::set(args, session, out),
        MetaCommand::Unset(args) => edit::unset(args, session, out),
        MetaCommand::Import(args) => edit::import(args, session, out),
        MetaCommand::Export(args) => export(args, session, out),
    }
}

fn read(path: &Path, opening: &Opening, session: &Session<'_>) -> Result<Archive> {
    session
        .open(path, opening)
        .map_err(|error| Failure::about(path, &error))
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

fn get(args: &MetaGet, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let archive = read(&args.file, &args.opening, session)?;
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
        value => json::write_line(out, &ShownValue::new(value, true))?,
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
            &value_type(value),
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
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        file: &'a str,
        format: Option<&'static str>,
        version: Option<&'a str>,
        tensor: Option<&'a str>,
        metadata: ShownMetadata<'a>,
        #[serde(serialize_with = "types")]
        types: &'a Metadata,
    }
    let document = Document {
        schema: "tenfold.meta/1",
        file: &args.file.to_string_lossy(),
        format: archive.format().map(|spec| spec.id),
        version: Some(archive.version()).filter(|version| *version != "-"),
        tensor: args.tensor.as_deref(),
        metadata: ShownMetadata::new(metadata, true),
        types: metadata,
    };
    json::write(out, &document)?;
    writeln!(out)
}

fn types<S: Serializer>(metadata: &Metadata, serializer: S) -> Result<S::Ok, S::Error> {
    let entries = metadata.iter();
    serializer.collect_map(entries.map(|(key, value)| (key, value_type(value))))
}

fn export(args: &MetaExport, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let archive = read(&args.file, &args.opening, session)?;
    let metadata = load(&archive, &args.file, args.tensor.as_deref())?;
    let Some(path) = args.output.as_ref().or(args.document.as_ref()) else {
        write_metadata(&metadata, out)?;
        return Ok(Exit::Done);
    };
    if same_file::is_same_file(&args.file, path).unwrap_or(false) {
        let message = format!("{} is the input; write to another name", path.display());
        return Err(Failure::Message(message));
    }
    write_file(path, args.force, session, |file| {
        Ok(write_metadata(&metadata, file)?)
    })?;
    Ok(Exit::Done)
}
