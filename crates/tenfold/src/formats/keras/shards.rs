//! Weights in several files, opened through the index that names them.

use super::codec::{MOST_DEPTH, RULES, add};
use crate::error::{Error, Result};
use crate::format::Context;
use crate::formats::indexed;
use crate::model::{Manifest, SourceId, TensorInfo};
use crate::prelude::*;
use crate::wire::hdf5::{self, Content};
use crate::wire::json::Json;

/// What the names of indexes end in.
const INDEX: &str = ".weights.json";

/// Whether this is how an index is called.
pub(super) fn is_index_name(name: &str) -> bool {
    name.len() > INDEX.len() && name.ends_with(INDEX)
}

/// Whether a text begins like an index: the files that it names are those of Keras.
pub(super) fn is_index_text(head: &[u8]) -> bool {
    let has = |wanted: &[u8]| head.windows(wanted.len()).any(|found| found == wanted);
    head.trim_ascii_start().starts_with(b"{") && has(b"\"weight_map\"") && has(b".weights.h5\"")
}

/// Describes the files that an index names, in the order of the tensors' names.
pub(super) fn describe(cx: &mut Context<'_>) -> Result<Manifest> {
    let index = Index::read(cx)?;
    let mut manifest = Manifest::new("shards");
    manifest.region(0..cx.source().len(), "index");
    let names: Vec<&str> = index.files.iter().map(|(name, _)| name.as_str()).collect();
    cx.expect_siblings(&names);
    let mut found = vec![false; index.groups.len()];
    for (number, (name, at)) in index.files.iter().enumerate() {
        let (id, content) = open(cx, name, *at)?;
        for (place, (group, files, _)) in index.groups.iter().enumerate() {
            if files.contains(&number)
                && has_group(&content, group)
                && let Some(found) = found.get_mut(place)
            {
                *found = true;
            }
        }
        warn_unnamed(cx, &index, number, id, &content)?;
        add(cx, &mut manifest, content).map_err(|error| error.in_file(id, name))?;
    }
    if let Some(((group, _, at), _)) = index.groups.iter().zip(&found).find(|(_, found)| !**found) {
        let message = format!("the index names group {group:?}, which none of its files has");
        return Err(Error::malformed("keras.group-missing", message).at(*at..*at + 1));
    }
    let order = |name: &str| name.split('/').map(ToOwned::to_owned).collect::<Vec<_>>();
    manifest
        .tensors
        .sort_by_cached_key(|tensor| order(&tensor.name));
    let mut neighbours = manifest.tensors.iter().zip(manifest.tensors.iter().skip(1));
    if let Some((tensor, _)) = neighbours.find(|(a, b)| a.name == b.name) {
        let message = "two of the files have it";
        return Err(Error::malformed("keras.duplicate", message).in_tensor(&tensor.name));
    }
    Ok(manifest)
}

/// Tells of tensors that are in a file, which is one of the index, and in no group that the index names for it.
fn warn_unnamed(
    cx: &mut Context<'_>,
    index: &Index,
    number: usize,
    id: SourceId,
    content: &Content,
) -> Result<()> {
    let groups = index.groups.iter();
    let groups = groups.filter(|(_, files, _)| files.contains(&number));
    let named: LookupMap<&str, ()> = groups
        .map(|(group, _, _)| (group.strip_prefix('/').unwrap_or(group), ()))
        .collect();
    let is_named = |tensor: &&TensorInfo| {
        let name = tensor.name.as_str();
        let ends = name.match_indices('/').map(|(end, _)| end);
        let mut paths = [0].into_iter().chain(ends).chain([name.len()]);
        paths.any(|end| name.get(..end).is_some_and(|path| named.contains_key(path)))
    };
    let mut unnamed = content.tensors.iter().filter(|tensor| !is_named(tensor));
    let Some(first) = unnamed.next() else {
        return Ok(());
    };
    let more = match unnamed.count() {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    let message = format!(
        "tensors are in groups that the index does not name for their file: {:?}{more}",
        first.name
    );
    cx.warn_in(id, "keras.not-in-index", 0..0, message)
}

/// Whether a file has a group, with variables or without.
fn has_group(content: &Content, path: &str) -> bool {
    let path = path.strip_prefix('/').unwrap_or(path);
    let is_inside = |name: &str| {
        let rest = name.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    content.tensors.iter().any(|tensor| is_inside(&tensor.name))
        || content.groups.iter().any(|(group, _)| is_inside(group))
}

/// Opens a file and describes it.
fn open(cx: &mut Context<'_>, name: &str, at: u64) -> Result<(SourceId, Content)> {
    let (id, source) = indexed::open(cx, name, at)?;
    let content = hdf5::read(&*source, id, 0..source.len(), cx.limits());
    Ok((id, content.map_err(|error| error.in_file(id, name))?))
}

/// An index, as it is on disk.
struct Index {
    /// The names of the files, each once, and where that is said.
    files: Vec<(String, u64)>,
    /// Groups, which of the files they are in, and where that is said.
    groups: Vec<(String, Vec<usize>, u64)>,
}

impl Index {
    fn read(cx: &Context<'_>) -> Result<Self> {
        let (source, limit) = (cx.source(), cx.limits().header_bytes);
        let len = source.len();
        if len > limit {
            let message = format!("the index has {len} bytes, the limit is {limit}");
            return Err(Error::limit("keras.limit", message).raised_by("header_bytes", len));
        }
        Self::parse(&source.read(0..len)?)
    }

    fn parse(text: &[u8]) -> Result<Self> {
        let mut json = Json::new(text, 0, MOST_DEPTH, &RULES)?;
        let mut index = None;
        json.object("the index")?;
        while let Some(key) = json.key()? {
            if key == "weight_map" {
                if index.is_some() {
                    return Err(twice("weight_map", json.key_at()));
                }
                index = Some(Self::parse_map(&mut json)?);
            } else {
                json.skip()?;
            }
        }
        json.end()?;
        index.ok_or_else(|| {
            let message = "JSON text without a weight_map: no index of Keras weights";
            Error::malformed("keras.index", message).at(0..1)
        })
    }

    fn parse_map(json: &mut Json<'_>) -> Result<Self> {
        let mut index = Self {
            files: Vec::new(),
            groups: Vec::new(),
        };
        let mut known: LookupMap<String, usize> = LookupMap::new();
        let mut groups: LookupMap<String, ()> = LookupMap::new();
        json.object("weight_map")?;
        while let Some(group) = json.key()? {
            let at = json.key_at();
            if groups.insert(group.to_string(), ()).is_some() {
                return Err(twice(&group, at));
            }
            let mut files = Vec::new();
            json.list("the files of a group")?;
            while json.item()? {
                let name = json.string("the file of a group")?;
                let place = match known.get(&*name) {
                    Some(place) => *place,
                    None => {
                        indexed::check_name(&name, at)?;
                        if index.files.len() == indexed::MAX_FILES {
                            let message =
                                format!("the index names more than {} files", indexed::MAX_FILES);
                            return Err(Error::limit("keras.limit", message).at(at..at + 1));
                        }
                        index.files.push((name.to_string(), at));
                        known.insert(name.into_owned(), index.files.len() - 1);
                        index.files.len() - 1
                    }
                };
                push_tight(&mut files, place);
            }
            push_tight(&mut index.groups, (group.into_owned(), files, at));
        }
        Ok(index)
    }
}

fn twice(what: &str, at: u64) -> Error {
    let message = format!("the index has {what:?} twice");
    Error::malformed("keras.duplicate", message).at(at..at + 1)
}
