//! The index of a model in several files.

use alloc::borrow::Cow;

use super::Family;
use crate::error::{Error, Result};
use crate::formats::indexed::{MAX_FILES, check_name};
use crate::io::{Limits, Source};
use crate::model::{Metadata, Packer, Value};
use crate::prelude::*;
use crate::wire::json::{Json, encode_str};

/// What all indexes end in.
const END: &str = ".json";
/// How the names of indexes that are written end, after the extension of the files.
const SUFFIX: &str = ".index.json";
/// Bytes of an index, at most, and its levels.
const MAX_LEN: u64 = 100_000_000;
const MAX_DEPTH: usize = 128;
/// Bytes that tell text from a file of tensors.
pub(super) const HEAD: u64 = 8;

impl Family {
    /// Whether this is how an index is called.
    pub(in crate::formats) fn is_index_name(&self, name: &str) -> bool {
        self.stem(name).is_some()
    }

    /// The name of an index without its end: the names of its shards begin with it. A variant may stand before the end, as in
    /// `model.safetensors.index.fp16.json`.
    pub(in crate::formats) fn stem<'n>(&self, name: &'n str) -> Option<&'n str> {
        if let Some(stem) = name.strip_suffix(&self.index_name("")) {
            return Some(stem);
        }
        let (stem, rest) = name.split_once(&format!("{}.index.", self.extension))?;
        let variant = rest.strip_suffix(END)?;
        (!variant.contains('.')).then_some(stem)
    }

    /// The name of an index to be written.
    pub(super) fn index_name(&self, stem: &str) -> String {
        format!("{stem}{}{SUFFIX}", self.extension)
    }
}

/// Whether a file is JSON text rather than one of tensors, whose first bytes have a 0 or no `{`.
pub(in crate::formats) fn is_text(source: &dyn Source) -> Result<bool> {
    let head = source.read(0..source.len().min(HEAD))?;
    let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
    Ok(!head.contains(&0) && first.is_none_or(|byte| *byte == b'{') && !head.is_empty())
}

/// Whether a file is an index: JSON text with a `weight_map`, which usually comes soon.
pub(in crate::formats) fn is_index(source: &dyn Source) -> Result<bool> {
    const PIECE: u64 = 64 << 10;
    const KEY: &[u8] = b"\"weight_map\"";
    if !is_text(source)? {
        return Ok(false);
    }
    let end = source.len().min(MAX_LEN);
    let mut at = 0;
    while at < end {
        // Pieces overlap, so that a key on the border is in one of them.
        let piece = source.read(at..(at + PIECE + KEY.len() as u64).min(end))?;
        if piece.windows(KEY.len()).any(|window| window == KEY) {
            return Ok(true);
        }
        at += PIECE;
    }
    Ok(false)
}

/// An index, as it is on disk.
pub(super) struct Index {
    /// Without `total_size`.
    pub(super) metadata: Metadata,
    pub(super) total_size: Option<TotalSize>,
    /// The tensors in the order of the index: name, which of the shards, and where that is said.
    pub(super) weight_map: Vec<(String, usize, u64)>,
    /// The names of the shards, each once, and where the first of its tensors is.
    pub(super) shards: Vec<(String, u64)>,
}

/// The bytes of all tensors.
pub(super) struct TotalSize {
    pub(super) value: Value,
    pub(super) at: u64,
}

/// Counts that the index repeats: they follow from the tensors, and are not metadata to carry over.
const DERIVED: [&str; 2] = ["total_size", "total_parameters"];

impl Index {
    pub(super) fn read(family: &Family, source: &dyn Source, limits: &Limits) -> Result<Self> {
        let len = source.len();
        let limit = limits.header_bytes.min(MAX_LEN);
        if len > limit {
            let message = format!("the index has {len} bytes, the limit is {limit}");
            let error = Error::limit("limit", message).at(0..len);
            return Err(if limit < MAX_LEN {
                error.raised_by("header_bytes", len)
            } else {
                error
            });
        }
        Self::parse(family, &source.read(0..len)?)
    }

    pub(super) fn parse(family: &Family, text: &[u8]) -> Result<Self> {
        let mut json = Json::new(text, 0, MAX_DEPTH, family.json)?;
        let mut index = Self {
            metadata: Metadata::new(),
            total_size: None,
            weight_map: Vec::new(),
            shards: Vec::new(),
        };
        let mut known: LookupMap<Cow<'_, str>, ()> = LookupMap::default();
        json.object("the index")?;
        while let Some(key) = json.key()? {
            let at = json.key_at();
            if known.insert(key.clone(), ()).is_some() {
                return Err(twice(format!("the index has {key:?} twice"), at));
            }
            match &*key {
                "metadata" => index.parse_metadata(&mut json)?,
                "weight_map" => index.parse_weight_map(&mut json)?,
                _ => json.skip()?,
            }
        }
        json.end()?;
        if known.contains_key("weight_map") {
            Ok(index)
        } else {
            let message = format!(
                "JSON text without a weight_map: not an index of {} files",
                family.name
            );
            Err(Error::malformed("index", message).at(0..1))
        }
    }

    fn parse_metadata(&mut self, json: &mut Json<'_>) -> Result<()> {
        let again = |key: &str, at| Err(twice(format!("metadata has {key:?} twice"), at));
        let mut metadata = Packer::map();
        let mut places = Vec::new();
        let mut derived = [false; DERIVED.len()];
        json.object("metadata")?;
        while let Some(key) = json.key()? {
            let at = json.key_at();
            if let Some(place) = DERIVED.iter().position(|known| *known == key) {
                let value = json.value(&mut |key, at| again(key, at))?;
                if derived.get(place) == Some(&true) {
                    return again(&key, at);
                }
                if let Some(seen) = derived.get_mut(place) {
                    *seen = true;
                }
                if key == "total_size" {
                    self.total_size = Some(TotalSize { value, at });
                }
                continue;
            }
            places.push(at);
            metadata.key(&key);
            json.pack(&mut metadata, &mut |key, at| again(key, at))?;
        }
        metadata.last_wins(&mut |key, place| {
            again(key, places.get(place).copied().unwrap_or_default())
        })?;
        self.metadata = Metadata::from(&metadata.into_map());
        Ok(())
    }

    fn parse_weight_map(&mut self, json: &mut Json<'_>) -> Result<()> {
        let mut shards: LookupMap<Cow<'_, str>, usize> = LookupMap::new();
        json.object("weight_map")?;
        while let Some(name) = json.key()? {
            let at = json.key_at();
            let shard = json.string("the file of a tensor")?;
            let place = match shards.get(&shard) {
                Some(place) => *place,
                None => {
                    check_name(&shard, at)?;
                    if self.shards.len() == MAX_FILES {
                        let message = format!("the index names more than {MAX_FILES} files");
                        return Err(Error::limit("limit", message).at(at..at + 1));
                    }
                    self.shards.push((shard.to_string(), at));
                    shards.insert(shard, self.shards.len() - 1);
                    self.shards.len() - 1
                }
            };
            push_tight(&mut self.weight_map, (name.into_owned(), place, at));
        }
        self.unique_names()
    }

    fn unique_names(&self) -> Result<()> {
        match crate::model::repeated(self.weight_map.iter().map(|(name, ..)| name.as_str())) {
            Some((place, name)) => {
                let at = self.weight_map.get(place).map_or(0, |(.., at)| *at);
                Err(twice("weight_map has this name twice", at).in_tensor(name))
            }
            None => Ok(()),
        }
    }
}

fn twice(message: impl Into<String>, at: u64) -> Error {
    Error::malformed("duplicate", message).at(at..at + 1)
}

/// An index of tensors in files, sorted by their names, as others write it.
pub(super) fn encode(total_size: u64, mut weight_map: Vec<(&str, &str)>) -> String {
    weight_map.sort_unstable();
    let mut text = format!(
        "{{\n  \"metadata\": {{\n    \"total_size\": {total_size}\n  }},\n  \"weight_map\": {{"
    );
    for (index, (name, shard)) in weight_map.into_iter().enumerate() {
        text.push_str(if index > 0 { ",\n    " } else { "\n    " });
        encode_str(name, &mut text);
        text.push_str(": ");
        encode_str(shard, &mut text);
    }
    text.push_str("\n  }\n}\n");
    text
}

#[cfg(all(test, feature = "safetensors"))]
mod tests {
    use super::*;
    use crate::formats::safetensors::FAMILY;

    #[test]
    fn indexes_are_known_by_their_names() {
        assert_eq!(FAMILY.stem("model.safetensors.index.json"), Some("model"));
        assert_eq!(FAMILY.stem("a.b.safetensors.index.fp16.json"), Some("a.b"));
        for other in [
            "model.safetensors",
            "pytorch_model.bin.index.json",
            "model.safetensors.index.json.bak",
            "index.json",
        ] {
            assert_eq!(FAMILY.stem(other), None, "{other}");
        }
    }

    #[test]
    fn an_index_reads_back() {
        let text = encode(12, vec![("b\n", "m-2"), ("a", "m-1"), ("c", "m-1")]);
        let index = Index::parse(&FAMILY, text.as_bytes()).unwrap();
        let names: Vec<_> = index
            .weight_map
            .iter()
            .map(|row| (&*row.0, row.1))
            .collect();
        assert_eq!(names, [("a", 0), ("b\n", 1), ("c", 0)]);
        assert_eq!(index.shards[1].0, "m-2");
        assert_eq!(index.total_size.unwrap().value, Value::I64(12));
        assert!(index.metadata.is_empty());
    }

    #[test]
    fn names_outside_of_the_directory_are_refused() {
        for name in ["", ".", "..", "../m", "/m", "a/b", "a\\\\b", "c:m"] {
            let text = format!("{{\"weight_map\": {{\"t\": \"{name}\"}}}}");
            let error = Index::parse(&FAMILY, text.as_bytes()).err().unwrap();
            assert_eq!(error.rule(), "file.shard-name", "{name}");
        }
    }

    #[test]
    fn what_is_there_twice_is_refused() {
        for text in [
            r#"{"weight_map": {}, "weight_map": {}}"#,
            r#"{"weight_map": {"a": "x", "a": "x"}}"#,
            r#"{"weight_map": {"a": "x", "\u0061": "x"}}"#,
            r#"{"metadata": {"k": 1, "k": 1}, "weight_map": {}}"#,
            r#"{"metadata": {"k": {"l": 1, "l": 1}}, "weight_map": {}}"#,
        ] {
            let error = Index::parse(&FAMILY, text.as_bytes()).err().unwrap();
            assert_eq!(error.rule(), "file.duplicate", "{text}");
        }
    }
}
