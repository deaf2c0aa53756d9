//! The files of a bundle: which is which by their names, and opening those with data.

use super::SPEC;
use super::entry::BundleEntry;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Context, ShardName};
use crate::io::Source;
use crate::model::SourceId;
use crate::prelude::*;

/// What the name of an index ends with.
pub(super) const INDEX: &str = ".index";
/// What stands between the prefix and the numbers in the name of a file of data.
const DATA: &str = ".data";

/// The prefix, where this is the name of a file of data.
pub(super) fn prefix_of_data(name: &str) -> Option<&str> {
    ShardName::in_stem(name)?.stem.strip_suffix(DATA)
}

/// The name of a file of data.
pub(super) fn data_name(prefix: &str, shard: u64, shards: u64) -> String {
    let stem = format!("{prefix}{DATA}");
    let name = ShardName {
        stem: &stem,
        number: shard,
        count: shards,
        extension: "",
    };
    name.to_string()
}

/// An index, and what the names of its files begin with.
pub(super) struct Bundle {
    pub(super) id: SourceId,
    pub(super) index: Arc<dyn Source>,
    pub(super) prefix: String,
}

impl Bundle {
    /// The index that is opened, or that of the file that is opened.
    pub(super) fn find(cx: &mut Context<'_>) -> Result<Self> {
        let name = cx.name().unwrap_or_default();
        if let Some(prefix) = prefix_of_data(name) {
            return Self::beside(cx, prefix, "this is a file of its data");
        }
        if let Some(prefix) = latest(cx)? {
            return Self::beside(cx, &prefix, "it is the latest that is named here");
        }
        let index = cx.open(SourceId::MAIN);
        Ok(Self {
            id: SourceId::MAIN,
            index: index.ok_or_else(|| Error::argument("a file that is not open"))?,
            prefix: name.strip_suffix(INDEX).unwrap_or(name).to_owned(),
        })
    }

    fn beside(cx: &mut Context<'_>, prefix: &str, why: &str) -> Result<Self> {
        let name = format!("{prefix}{INDEX}");
        let id = open(cx, &name).map_err(|error| match error.kind() {
            ErrorKind::NotFound => missing(format!(
                "{name:?}, the index of the checkpoint, is not there; {why}"
            )),
            _ => error,
        })?;
        let index = cx.open(id);
        Ok(Self {
            id,
            index: index.ok_or_else(|| Error::argument("a file that is not open"))?,
            prefix: prefix.to_owned(),
        })
    }

    /// The bytes of the index, through what is known of them where it is the file that is opened.
    pub(super) fn source<'s>(&'s self, cx: &Context<'s>) -> &'s dyn Source {
        if self.id == SourceId::MAIN {
            cx.source()
        } else {
            &*self.index
        }
    }
}

/// The key in front of the latest prefix in a file `checkpoint`.
const LATEST: &[u8] = b"model_checkpoint_path:";

/// Whether this is a file that names the latest of several checkpoints.
pub(super) fn names_latest(first: &[u8]) -> bool {
    first.starts_with(LATEST)
}

/// The prefix that such a file names.
fn latest(cx: &Context<'_>) -> Result<Option<String>> {
    const MOST: u64 = 64 << 10;
    let source = cx.source();
    if source.len() < LATEST.len() as u64 || source.read(0..LATEST.len() as u64)? != LATEST {
        return Ok(None);
    }
    let text = source.read(0..source.len().min(MOST))?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next().unwrap_or_default();
    let path = line.split('"').nth(1).unwrap_or_default();
    // It may be a path of another machine; what it names lies beside this file.
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    if name.is_empty() {
        let message = "the latest checkpoint is not named in quotes behind model_checkpoint_path";
        let error = Error::malformed("tf_checkpoint.latest", message);
        return Err(error.at(0..line.len() as u64));
    }
    Ok(Some(name.to_owned()))
}

/// Opens a file beside the one that is opened, or in the directory below in which that is.
fn open(cx: &mut Context<'_>, name: &str) -> Result<SourceId> {
    match name.split('/').collect::<Vec<_>>().as_slice() {
        [_] => cx.sibling(name),
        path => cx.below(path),
    }
}

fn missing(message: String) -> Error {
    Error::new(ErrorKind::NotFound, "tf_checkpoint.data-missing", message)
}

/// The files of data that are opened.
pub(super) struct Shards {
    prefix: String,
    count: u64,
    open: LookupMap<u64, Shard>,
}

/// A file of data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shard {
    pub(super) id: SourceId,
    len: u64,
}

impl Shards {
    /// Opens those that are needed, all at once where that is faster.
    pub(super) fn open(
        cx: &mut Context<'_>,
        prefix: String,
        count: u64,
        needed: &[u64],
    ) -> Result<Self> {
        let mut shards = Self {
            prefix,
            count,
            open: LookupMap::default(),
        };
        let names: Vec<String> = needed.iter().map(|shard| shards.name(*shard)).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        cx.expect_siblings(&all);
        for (shard, name) in needed.iter().zip(&names) {
            let id = open(cx, name).map_err(|error| match error.kind() {
                ErrorKind::NotFound => missing(format!(
                    "{name:?}, which has data of this checkpoint, is not there"
                )),
                _ => error.in_format(SPEC.id),
            })?;
            let len = cx.open(id).map_or(0, |source| source.len());
            shards.open.insert(*shard, Shard { id, len });
        }
        Ok(shards)
    }

    fn name(&self, shard: u64) -> String {
        data_name(&self.prefix, shard, self.count)
    }

    /// Each of those that are open, with its length.
    pub(super) fn all(&self) -> Vec<(SourceId, u64)> {
        let mut all: Vec<_> = self
            .open
            .values()
            .map(|shard| (shard.id, shard.len))
            .collect();
        all.sort_unstable();
        all
    }

    /// Bytes of a file of data, which may lie behind its end.
    pub(super) fn place(&self, entry: &BundleEntry) -> Result<(Shard, Range<u64>)> {
        let Some(found) = self.open.get(&entry.shard) else {
            let message = format!("it is in file {} of {}", entry.shard, self.count);
            return Err(Error::malformed("tf_checkpoint.shards", message));
        };
        // Both are numbers with a sign.
        Ok((
            *found,
            entry.offset..entry.offset.saturating_add(entry.size),
        ))
    }

    /// Bytes of a file of data, which has them.
    pub(super) fn range(&self, entry: &BundleEntry) -> Result<(Shard, Range<u64>)> {
        let (shard, range) = self.place(entry)?;
        if range.end <= shard.len {
            return Ok((shard, range));
        }
        let message = format!(
            "it has {} bytes from byte {} on in {:?}, which has {}: that is cut off or damaged",
            entry.size,
            entry.offset,
            self.name(entry.shard),
            shard.len
        );
        let error = Error::malformed("tf_checkpoint.bounds", message);
        Err(error.at_source(shard.id, range.start.min(shard.len)..shard.len))
    }
}
