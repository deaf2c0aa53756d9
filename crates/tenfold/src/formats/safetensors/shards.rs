//! A model in several files, opened through its index: both are held against each other.

use super::codec::{File, describe_file};
use super::index::{self, Index, TotalSize};
use super::{INDEX, raw};
use crate::error::lists::quoted;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Context, ShardName, diagnose};
use crate::model::{Manifest, Metadata, Region, SourceId, TensorInfo, Value};
use crate::prelude::*;

/// Describes the shards that an index names, in the order of their names.
pub(super) fn describe(cx: &mut Context<'_>) -> Result<Manifest> {
    let index = Index::read(cx.source(), cx.limits())?;
    let mut manifest = Manifest::new(INDEX);
    manifest.region(0..cx.source().len(), "index");
    let mut found = Found::new(&index);
    let mut metadata = Merged::default();
    let mut order: Vec<&(String, u64)> = index.shards.iter().collect();
    order.sort();
    let names: Vec<&str> = order.iter().map(|(name, _)| name.as_str()).collect();
    cx.expect_siblings(&names);
    for (name, at) in order {
        let (id, file) = open(cx, name, *at)?;
        manifest.regions.push(Region {
            source: id,
            range: 0..file.data,
            label: "header",
        });
        if let Some((key, count)) = metadata.add(&file.metadata) {
            let message = format!(
                "{name} disagrees with the files before it about metadata {key:?}{}",
                and_more(count)
            );
            cx.warn_in(id, "safetensors.shard-metadata", 0..file.data, message)?;
        }
        let unnamed = found.add(name, &file.tensors)?;
        warn_unnamed(cx, id, name, &unnamed)?;
        manifest.tensors.extend(file.tensors);
    }
    found.check()?;
    check_total(cx, index.total_size.as_ref(), &manifest.tensors)?;
    check_left_over(cx, &index)?;
    // What the files say of themselves goes before what the index says of all.
    metadata.add(&index.metadata);
    manifest.metadata = metadata.all;
    Ok(manifest)
}

/// The metadata of all files; of a key, the first value counts.
#[derive(Default)]
struct Merged {
    all: Metadata,
    known: LookupMap<String, Value>,
}

impl Merged {
    /// Adds what is new; gives the first key with another value than before, and how many there are.
    fn add(&mut self, metadata: &Metadata) -> Option<(String, usize)> {
        let mut other = None;
        for (key, value) in metadata.iter() {
            match self.known.get(key) {
                Some(known) if known == value => {}
                Some(_) => other.get_or_insert_with(|| (key.to_owned(), 0)).1 += 1,
                None => {
                    self.known.insert(key.to_owned(), value.clone());
                    self.all.push(key, value.clone());
                }
            }
        }
        other
    }
}

fn and_more(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        _ => format!(" and {} more", count - 1),
    }
}

/// Opens a shard and describes it.
fn open(cx: &mut Context<'_>, name: &str, at: u64) -> Result<(SourceId, File)> {
    let id = cx.sibling(name).map_err(|cause| match cause.kind() {
        ErrorKind::NotFound => {
            let message = format!("the index names {name:?}, which is missing");
            Error::new(ErrorKind::NotFound, "safetensors.shard-missing", message)
                .at(at..at + 1)
                .because(cause)
        }
        _ => cause,
    })?;
    let source = cx.open(id).filter(|_| id != SourceId::MAIN);
    let source = source.ok_or_else(|| {
        let message = "the index names itself as a file of tensors";
        Error::malformed("safetensors.shard-name", message).at(at..at + 1)
    })?;
    if index::is_text(&*source)? {
        let message = "JSON text, not a safetensors file";
        let error = Error::malformed("safetensors.header", message).at(0..source.len().min(8));
        return Err(error.in_file(id, name));
    }
    match describe_file(cx, id, &*source) {
        Ok(file) => Ok((id, file)),
        Err(error) => {
            // Often a pointer of Git or a server's answer, of which the first bytes are no length.
            let what = diagnose::instead(&*source);
            let error = what.map_or(error, |what| {
                Error::malformed("safetensors.header", what.message()).at(0..raw::PREFIX)
            });
            Err(error.in_file(id, name))
        }
    }
}

/// Where tensors should be, and where they are.
struct Found<'i> {
    index: &'i Index,
    /// The tensors that the index names, and the file that has them.
    named: LookupMap<&'i str, Option<&'i str>>,
    /// Those that it does not name.
    unnamed: LookupMap<String, &'i str>,
}

impl<'i> Found<'i> {
    fn new(index: &'i Index) -> Self {
        let names = index.weight_map.iter();
        Self {
            index,
            named: names.map(|(name, ..)| (name.as_str(), None)).collect(),
            unnamed: LookupMap::new(),
        }
    }

    /// Notes the tensors of a file; gives the names that the index does not have.
    fn add(&mut self, file: &'i str, tensors: &[TensorInfo]) -> Result<Vec<String>> {
        let mut unnamed = Vec::new();
        for tensor in tensors {
            let before = match self.named.get_mut(tensor.name.as_str()) {
                Some(found) => found.replace(file),
                None => {
                    unnamed.push(tensor.name.clone());
                    self.unnamed.insert(tensor.name.clone(), file)
                }
            };
            if let Some(other) = before {
                let message = format!("it is in {other} and in {file}");
                let error = Error::malformed("safetensors.duplicate", message);
                return Err(error.in_tensor(&tensor.name));
            }
        }
        Ok(unnamed)
    }

    /// Refuses tensors that are not where the index says.
    fn check(&self) -> Result<()> {
        for (name, shard, at) in &self.index.weight_map {
            let found = self.named.get(name.as_str()).copied().flatten();
            let said = self.index.shards.get(*shard).map(|(name, _)| name.as_str());
            if found == said {
                continue;
            }
            let said = said.unwrap_or_default();
            let message = match found {
                Some(other) => format!("the index says that it is in {said}, it is in {other}"),
                None => format!("the index says that it is in {said}, no file has it"),
            };
            let error = Error::malformed("safetensors.weight-map", message);
            return Err(error.at(*at..*at + 1).in_tensor(name));
        }
        Ok(())
    }
}

fn warn_unnamed(cx: &mut Context<'_>, id: SourceId, file: &str, unnamed: &[String]) -> Result<()> {
    if unnamed.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{file} has {} that the index does not name: {}",
        match unnamed.len() {
            1 => "a tensor".to_owned(),
            n => format!("{n} tensors"),
        },
        quoted(unnamed.iter().map(String::as_str))
    );
    cx.warn_in(id, "safetensors.not-in-index", 0..raw::PREFIX, message)
}

/// The bytes of all tensors are informative: readers do not look at them.
fn check_total(
    cx: &mut Context<'_>,
    said: Option<&TotalSize>,
    tensors: &[TensorInfo],
) -> Result<()> {
    let Some(TotalSize { value, at }) = said else {
        return Ok(());
    };
    let parts = tensors.iter().flat_map(|tensor| &tensor.parts);
    let total = parts.fold(0u64, |sum, part| sum.saturating_add(part.payload.len()));
    // Some programs write it as a float.
    #[allow(clippy::cast_precision_loss)] // then it is compared as one
    let same = value.as_u64() == Some(total) || value.as_f64() == Some(total as f64);
    if same {
        let message = format!("total_size is that of the tensors, {total} bytes");
        cx.note("safetensors.total-size", *at..*at + 1, message);
        return Ok(());
    }
    let found = match value.as_u64() {
        Some(found) => format!("{found}"),
        None => value.in_words(),
    };
    let message = format!("total_size is {found}, the tensors have {total} bytes");
    cx.warn("safetensors.total-size", *at..*at + 1, message)
}

/// Files that look like shards of this model and that the index does not name, and shards that the names count and
/// that do not exist.
fn check_left_over(cx: &mut Context<'_>, index: &Index) -> Result<()> {
    let stem = cx.name().and_then(index::stem).unwrap_or_default();
    let named: LookupMap<&str, ()> = index
        .shards
        .iter()
        .map(|(name, _)| (name.as_str(), ()))
        .collect();
    let mut left_over: Vec<String> = cx
        .siblings()?
        .into_iter()
        .filter(|name| shard_name(name, stem).is_some() && !named.contains_key(name.as_str()))
        .collect();
    left_over.sort();
    for name in left_over {
        let message =
            format!("{name} looks like a part of this model, but the index does not name it");
        cx.warn("safetensors.shard-left-over", 0..1, message)?;
    }
    let counted = index.shards.iter();
    let counted = counted.filter_map(|(name, at)| Some((shard_name(name, stem)?.count, *at)));
    let known = index.shards.len() as u64;
    if let Some((count, at)) = counted.max()
        && count != known
    {
        let message =
            format!("the names of the files say that there are {count}, the index names {known}");
        cx.warn("safetensors.shard-count", at..at + 1, message)?;
    }
    Ok(())
}

/// The parts of `STEM-00001-of-00003.safetensors`.
fn shard_name<'n>(name: &'n str, stem: &str) -> Option<ShardName<'n>> {
    ShardName::parse(name).filter(|name| name.stem == stem && name.extension == ".safetensors")
}
