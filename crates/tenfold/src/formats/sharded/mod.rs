//! A model in several files, opened through its index: both are held against each other. safetensors and PyTorch share it.

mod index;
mod write;

use crate::error::lists::quoted;
use crate::error::{Error, Result};
use crate::format::{Context, Head, ShardName, diagnose};
use crate::formats::indexed;
use crate::io::Source;
use crate::model::{Manifest, Metadata, Region, SealedRange, SourceId, TensorInfo, Value};
use crate::prelude::*;
use crate::wire::json;

use index::{Index, TotalSize};
pub(super) use index::{is_index, is_text};
pub(super) use write::plan;

/// How many bytes of headers are fetched at once, so that files far away are not waited for one after the other.
const DESCRIBED_TOGETHER: u64 = 64 << 20;

/// A kind of files that an index can name.
pub(super) struct Family {
    /// What they are called.
    pub(super) name: &'static str,
    /// With its dot.
    pub(super) extension: &'static str,
    /// The version of an index.
    pub(super) version: &'static str,
    pub(super) json: &'static json::Rules,
    pub(super) rules: Rules,
    /// By its first bytes, how many of them describe a file; `None` where others do.
    pub(super) described_by: fn(&[u8]) -> Option<u64>,
    /// Describes one of the files.
    pub(super) describe: fn(&mut Context<'_>, SourceId, &dyn Source) -> Result<Shard>,
}

/// Rules of what readers tolerate.
pub(super) struct Rules {
    pub(super) shard_metadata: &'static str,
    pub(super) not_in_index: &'static str,
    pub(super) total_size: &'static str,
    pub(super) left_over: &'static str,
    pub(super) count: &'static str,
}

/// One file, described.
#[derive(Default)]
pub(super) struct Shard {
    pub(super) metadata: Metadata,
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) regions: Vec<Region>,
    pub(super) sealed: Vec<SealedRange>,
}

/// Describes the shards that an index names, in the order of their names.
pub(super) fn describe(cx: &mut Context<'_>, family: &Family) -> Result<Manifest> {
    let index = Index::read(family, cx.source(), cx.limits())?;
    let mut manifest = Manifest::new(family.version);
    manifest.region(0..cx.source().len(), "index");
    let mut found = Found::new(&index);
    let mut metadata = Merged::default();
    let mut order: Vec<&(String, u64)> = index.shards.iter().collect();
    order.sort();
    let names: Vec<&str> = order.iter().map(|(name, _)| name.as_str()).collect();
    cx.expect_siblings(&names);
    let mut opened = Vec::new();
    for (name, at) in &order {
        opened.push(indexed::open(cx, name, *at)?);
    }
    let sources: Vec<_> = opened.iter().map(|(_, source)| source.clone()).collect();
    let most = DESCRIBED_TOGETHER / sources.len().max(1) as u64;
    let firsts = Head::first_of_all(&sources, family.described_by, most)?;
    for (((name, _), (id, source)), first) in order.into_iter().zip(opened).zip(firsts) {
        let head = Head::of(&*source, Some(name), first);
        let file = describe_shard(cx, family, id, &head)?;
        if let Some((key, count)) = metadata.add(&file.metadata) {
            let message = format!(
                "{name} disagrees with the files before it about metadata {key:?}{}",
                and_more(count)
            );
            let header = header(&file.regions);
            cx.warn_in(id, family.rules.shard_metadata, header, message)?;
        }
        let unnamed = found.add(name, &file.tensors)?;
        warn_unnamed(cx, family, (id, header(&file.regions)), name, &unnamed)?;
        manifest.tensors.extend(file.tensors);
        manifest.regions.extend(file.regions);
        manifest.sealed.extend(file.sealed);
    }
    found.check()?;
    check_total(cx, family, index.total_size.as_ref(), &manifest.tensors)?;
    check_left_over(cx, family, &index)?;
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

fn describe_shard(
    cx: &mut Context<'_>,
    family: &Family,
    id: SourceId,
    head: &Head<'_>,
) -> Result<Shard> {
    let name = head.name().unwrap_or_default();
    if index::is_text(head)? {
        let message = format!("JSON text, not a {} file", family.name);
        let error = Error::malformed("header", message).at(0..head.len().min(8));
        return Err(error.in_file(id, name));
    }
    match (family.describe)(cx, id, head) {
        Ok(file) => Ok(file),
        Err(error) => {
            // Often a pointer of Git or a server's answer, of which the first bytes are not a length.
            let what = diagnose::instead(head);
            let error = what.map_or(error, |what| {
                Error::malformed("header", what.message()).at(0..index::HEAD)
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
                let error = Error::malformed("duplicate", message);
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
                Some(other) => format!("the index says that it is in {said}, but it is in {other}"),
                None => format!("the index says that it is in {said}, but no file has it"),
            };
            let error = Error::malformed("weight-map", message);
            return Err(error.at(*at..*at + 1).in_tensor(name));
        }
        Ok(())
    }
}

/// Where a file says what it holds: its first region.
fn header(regions: &[Region]) -> Range<u64> {
    let first = regions.iter().min_by_key(|region| region.range.start);
    first.map_or(0..index::HEAD, |region| region.range.clone())
}

fn warn_unnamed(
    cx: &mut Context<'_>,
    family: &Family,
    (id, header): (SourceId, Range<u64>),
    file: &str,
    unnamed: &[String],
) -> Result<()> {
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
    cx.warn_in(id, family.rules.not_in_index, header, message)
}

/// The bytes of all tensors are informative: readers do not look at them.
fn check_total(
    cx: &mut Context<'_>,
    family: &Family,
    said: Option<&TotalSize>,
    tensors: &[TensorInfo],
) -> Result<()> {
    let Some(TotalSize { value, at }) = said else {
        return Ok(());
    };
    let lens = tensors.iter().map(|tensor| tensor.dense_len().unwrap_or(0));
    let total = lens.fold(0u64, u64::saturating_add);
    // Some programs write it as a float.
    #[allow(clippy::cast_precision_loss)] // then it is compared as one
    let same = value.as_u64() == Some(total) || value.as_f64() == Some(total as f64);
    if same {
        let message = format!("total_size matches the tensors, {total} bytes");
        cx.note(family.rules.total_size, *at..*at + 1, message);
        return Ok(());
    }
    let found = match value.as_u64() {
        Some(found) => format!("{found}"),
        None => value.in_words(),
    };
    let message = format!("total_size is {found}, but the tensors have {total} bytes");
    cx.warn(family.rules.total_size, *at..*at + 1, message)
}

/// Files that look like shards of this model and that the index does not name, and shards that the names count and
/// that do not exist.
fn check_left_over(cx: &mut Context<'_>, family: &Family, index: &Index) -> Result<()> {
    let stem = cx
        .name()
        .and_then(|name| family.stem(name))
        .unwrap_or_default();
    let named: LookupMap<&str, ()> = index
        .shards
        .iter()
        .map(|(name, _)| (name.as_str(), ()))
        .collect();
    let mut left_over: Vec<String> = cx
        .siblings()?
        .into_iter()
        .filter(|name| {
            shard_name(family, name, stem).is_some() && !named.contains_key(name.as_str())
        })
        .collect();
    left_over.sort();
    for name in left_over {
        let message =
            format!("{name} looks like a part of this model, but the index does not name it");
        cx.warn(family.rules.left_over, 0..1, message)?;
    }
    let counted = index.shards.iter();
    let counted =
        counted.filter_map(|(name, at)| Some((shard_name(family, name, stem)?.count, *at)));
    let known = index.shards.len() as u64;
    if let Some((count, at)) = counted.max()
        && count != known
    {
        let message = format!(
            "the names of the files say that there are {count}, but the index names {known}"
        );
        cx.warn(family.rules.count, at..at + 1, message)?;
    }
    Ok(())
}

/// The parts of `STEM-00001-of-00003.safetensors`.
fn shard_name<'n>(family: &Family, name: &'n str, stem: &str) -> Option<ShardName<'n>> {
    ShardName::parse(name).filter(|name| name.stem == stem && name.extension == family.extension)
}
