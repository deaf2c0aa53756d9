//! Several files that are one model.

use super::codec::{File, describe_file};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Context, Head, ShardName, diagnose};
use crate::model::{Manifest, Metadata, SourceId, Value};
use crate::prelude::*;

pub(super) const NUMBER: &str = "split.no";
pub(super) const COUNT: &str = "split.count";
pub(super) const TENSORS: &str = "split.tensors.count";

const EXTENSION: &str = ".gguf";

/// The parts of `STEM-00001-of-00003.gguf`, counted from 1.
pub(super) fn parse(name: &str) -> Option<ShardName<'_>> {
    ShardName::parse(name).filter(|name| name.extension == EXTENSION)
}

/// The name of a part, counted from 1.
pub(super) fn name(stem: &str, number: u64, count: u64) -> String {
    let name = ShardName {
        stem,
        number,
        count,
        extension: EXTENSION,
    };
    name.to_string()
}

/// A name without its extension, and without the numbers of a part.
pub(super) fn stem(name: &str) -> &str {
    match parse(name) {
        Some(part) => part.stem,
        None => name.strip_suffix(EXTENSION).unwrap_or(name),
    }
}

/// What a file says about the parts.
#[derive(Clone, Copy, Eq, PartialEq)]
struct Split {
    number: u64,
    count: u64,
    tensors: Option<i64>,
}

impl Split {
    /// `None` where the file is whole.
    fn of(metadata: &Metadata) -> Option<Self> {
        let number = |key| metadata.get(key).and_then(Value::as_u64);
        Some(Self {
            number: number(NUMBER)?,
            count: number(COUNT).filter(|&count| count > 1)?,
            tensors: metadata.get(TENSORS).and_then(Value::as_i64),
        })
    }
}

/// Parts that are asked for at once: a file may claim any number of them.
const AT_ONCE: u64 = 64;

/// Describes a file, and the others where it is a part.
pub(super) fn describe(cx: &mut Context<'_>) -> Result<Manifest> {
    let main = describe_file(cx, SourceId::MAIN, cx.source())?;
    let Some(split) = Split::of(&main.metadata) else {
        return Ok(manifest(vec![main]));
    };
    let Split { number, count, .. } = split;
    let (Some(file_name), false) = (cx.name(), !cx.has_siblings()) else {
        let message = format!(
            "part {} of {count}, opened without the others",
            number.saturating_add(1)
        );
        cx.warn("gguf.split", 0..4, message)?;
        return Ok(manifest(vec![main]));
    };
    let own = parse(file_name)
        .filter(|name| Some(name.number) == number.checked_add(1) && name.count == count);
    let Some(own) = own else {
        let message = format!(
            "{COUNT} is {count} and {NUMBER} is {number}, which does not match the file's name {file_name:?}; \
            expected {}",
            name("NAME", number.saturating_add(1), count)
        );
        return Err(Error::malformed("gguf.split-name", message));
    };
    let mut main = Some(main);
    let mut files = Vec::new();
    for part in 1..=count {
        if part % AT_ONCE == 1 {
            let next = part..=count.min(part.saturating_add(AT_ONCE - 1));
            let next: Vec<_> = next.map(|part| name(own.stem, part, count)).collect();
            cx.expect_siblings(&next.iter().map(String::as_str).collect::<Vec<_>>());
        }
        match main.take_if(|_| part == own.number) {
            Some(file) => files.push(file),
            None => files.push(open_part(cx, &name(own.stem, part, count), part, split)?),
        }
    }
    check(&files, split)?;
    Ok(manifest(files))
}

fn open_part(cx: &mut Context<'_>, name: &str, part: u64, split: Split) -> Result<File> {
    let id = cx.sibling(name).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => {
            let message = format!("{COUNT} is {}, but {name:?} is missing", split.count);
            Error::new(ErrorKind::NotFound, "gguf.split-missing", message).because(cause)
        }
        _ => cause,
    })?;
    let source = cx
        .open(id)
        .ok_or_else(|| Error::argument(format!("{name:?} was not opened")))?;
    let head = Head::new(&*source, Some(name))?;
    let file = describe_file(cx, id, &head).map_err(|error| {
        let what = diagnose::instead(&head);
        let error = what.map_or(error, |what| {
            Error::malformed("gguf.magic", what.message()).at(0..4)
        });
        error.in_file(id, name)
    })?;
    let found = Split::of(&file.metadata);
    let expected = Split {
        number: part - 1,
        ..split
    };
    if found == Some(expected) {
        return Ok(file);
    }
    let what = match found {
        Some(found) => format!(
            "it is part {} of {} with {} tensors",
            found.number.saturating_add(1),
            found.count,
            show(found.tensors)
        ),
        None => "it says nothing about parts".to_owned(),
    };
    let message = format!(
        "{what}; part {part} of {} with {} tensors was expected",
        split.count,
        show(split.tensors)
    );
    Err(Error::malformed("gguf.split-number", message).in_file(id, name))
}

fn show(count: Option<i64>) -> String {
    count.map_or("an unknown number of".to_owned(), |count| count.to_string())
}

/// That no tensor is missing or there twice.
fn check(files: &[File], split: Split) -> Result<()> {
    let tensors = || files.iter().flat_map(|file| &file.tensors);
    let found = tensors().count();
    if let Some(expected) = split.tensors
        && i64::try_from(found).ok() != Some(expected)
    {
        let message = format!("{TENSORS} is {expected}, all parts together have {found}");
        return Err(Error::malformed("gguf.split-tensors", message));
    }
    let mut seen = LookupMap::with_capacity(found);
    for tensor in tensors() {
        if seen.insert(tensor.name.as_str(), ()).is_some() {
            let message = "two parts have a tensor of this name";
            return Err(Error::malformed("gguf.duplicate", message).in_tensor(&tensor.name));
        }
    }
    Ok(())
}

/// All parts as one; the first has the metadata of all.
fn manifest(files: Vec<File>) -> Manifest {
    let mut manifest = Manifest::default();
    for (place, file) in files.into_iter().enumerate() {
        if place == 0 {
            manifest.version = file.version.to_string();
            manifest.metadata = with_facts(&file.metadata);
        }
        manifest.regions.extend(file.regions);
        if manifest.tensors.is_empty() {
            manifest.tensors = file.tensors.into()
        } else {
            manifest.tensors.extend(file.tensors)
        }
    }
    manifest
}

/// The metadata, where what it says about parts is about the files alone.
fn with_facts(metadata: &Metadata) -> Metadata {
    let mut all = Metadata::new();
    for (key, value) in metadata.iter() {
        if is_key(key) {
            all.push_fact(key, value.clone())
        } else {
            all.push(key, value.clone())
        }
    }
    all
}

fn is_key(key: &str) -> bool {
    matches!(key, NUMBER | COUNT | TENSORS)
}

/// The description without what it says about parts, which is about its files and not about the model; `None` where it
/// says nothing.
pub(super) fn without_keys(what: &Manifest) -> Option<Manifest> {
    what.metadata.iter().find(|(key, _)| is_key(key))?;
    let mut manifest = what.clone();
    manifest.metadata = what
        .metadata
        .filter_map(|key, value| (!is_key(key)).then(|| value.clone()));
    Some(manifest)
}
