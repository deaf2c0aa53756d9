//! The formats that are known, and which of them a file is.

use core::fmt;

use crate::error::{Error, ErrorKind, Hint, Result};
use crate::format::{Belongs, Confidence, Format, Head, Spec, diagnose};
use crate::io::Source;
use crate::model::Value;
use crate::prelude::*;

/// A format that is known: always by its facts, and by its codec where that is built in.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Entry {
    /// Its facts.
    pub spec: &'static Spec,
    /// What reads and writes it; `None` when it is not part of this build.
    pub codec: Option<&'static dyn Format>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("id", &self.spec.id)
            .field("built_in", &self.codec.is_some())
            .finish()
    }
}

impl Entry {
    /// How sure it is that a file is its own.
    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        match self.codec {
            Some(codec) => codec.detect(head),
            None => self.spec.match_magic(head),
        }
    }

    /// Whether files with this name are an index of this format's files.
    pub fn is_index(&self, name: &str) -> bool {
        self.codec.is_some_and(|codec| codec.is_index(name))
    }

    /// The codec, or an error that says how to get it.
    pub fn codec(&self) -> Result<&'static dyn Format> {
        self.codec.ok_or_else(|| {
            let Spec { id, name, .. } = self.spec;
            let message = format!("this is a {name} file, and this build does not read it");
            let error = Error::unsupported("not-built-in", message);
            error.hinting(Hint::EnableFeature(id)).in_format(id)
        })
    }
}

fn has_extension(spec: &Spec, extension: &str) -> bool {
    let extension = extension.strip_prefix('.').unwrap_or(extension);
    let mut known = spec.extensions.iter();
    known.any(|known| known.eq_ignore_ascii_case(extension))
}

/// Those that are most sure of a file.
struct Best<'e> {
    confidence: Confidence,
    found: Vec<&'e Entry>,
}

impl Default for Best<'_> {
    fn default() -> Self {
        Self {
            confidence: Confidence::No,
            found: Vec::new(),
        }
    }
}

impl<'e> Best<'e> {
    fn add(&mut self, entry: &'e Entry, confidence: Confidence) {
        if confidence > self.confidence {
            self.confidence = confidence;
            self.found.clear();
        }
        if confidence == self.confidence && confidence > Confidence::No {
            self.found.push(entry);
        }
    }
}

/// The formats to choose from: a value, never a global.
#[derive(Clone, Debug)]
pub struct Registry {
    entries: Vec<Entry>,
}

impl Registry {
    /// These formats.
    pub fn new(entries: &[Entry]) -> Self {
        Self {
            entries: entries.to_vec(),
        }
    }

    /// Adds a format of your own.
    #[must_use]
    pub fn with(mut self, format: &'static dyn Format) -> Self {
        self.entries.push(Entry {
            spec: format.spec(),
            codec: Some(format),
        });
        self
    }

    /// The formats, in the order of the table.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What an entry of metadata belongs to, and to which format, if one of these takes it for its own.
    pub fn owner(&self, key: &str, value: &Value) -> (Belongs, Option<&'static str>) {
        let codecs = self.entries.iter().filter_map(|entry| entry.codec);
        let owners = codecs.map(|codec| (codec.owner(key, value), codec.spec().id));
        match owners.max_by_key(|(belongs, _)| *belongs) {
            Some((Belongs::ToContent, _)) | None => (Belongs::ToContent, None),
            Some((belongs, id)) => (belongs, Some(id)),
        }
    }

    /// The format with this id, or the only one whose files have this extension.
    pub fn get(&self, id: &str) -> Result<&Entry> {
        let by_id = self.entries.iter().find(|entry| entry.spec.id == id);
        let has_extension = |entry: &&Entry| has_extension(entry.spec, id);
        let mut by_extension = self.entries.iter().filter(has_extension);
        match (by_id, by_extension.next(), by_extension.next()) {
            (Some(entry), ..) | (None, Some(entry), None) => Ok(entry),
            _ => {
                let known: Vec<_> = self.entries.iter().map(|entry| entry.spec.id).collect();
                Err(Error::argument(format!(
                    "there is no format {id:?}; the formats are {}",
                    known.join(", ")
                )))
            }
        }
    }

    /// The format that files with this name usually have.
    pub fn by_extension(&self, name: &str) -> Option<&Entry> {
        if let Some(entry) = self.entries.iter().find(|entry| entry.is_index(name)) {
            return Some(entry);
        }
        let (stem, extension) = name.rsplit_once('.')?;
        let mut entries = self.entries.iter();
        if let Some(entry) = entries.find(|entry| has_extension(entry.spec, extension)) {
            return Some(entry);
        }
        // What is a directory otherwise may be an archive: `x.zarr.zip`.
        let (_, inner) = stem.rsplit_once('.')?;
        let is_tree = |entry: &&Entry| entry.codec.is_some_and(|codec| codec.writes_tree(stem));
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| has_extension(entry.spec, inner))?;
        Some(entry).filter(|entry| extension.eq_ignore_ascii_case("zip") && is_tree(entry))
    }

    /// The format that a file is, by its content. An equal confidence of two is settled by the file's name.
    pub fn detect(&self, source: &dyn Source, name: Option<&str>) -> Result<&Entry> {
        self.recognize(&Head::new(source, name)?)
    }

    /// The format of a file whose first bytes were read.
    pub(crate) fn recognize(&self, head: &Head<'_>) -> Result<&Entry> {
        let name = head.name();
        let by_name = name.and_then(|name| self.by_extension(name));
        let mut best = Best::default();
        // Who has to look elsewhere is asked only where nobody knows it by the first bytes.
        let mut undecided = Vec::new();
        for entry in &self.entries {
            match head.by_first_bytes(|head| entry.detect(head)) {
                Some(confidence) => best.add(entry, confidence?),
                None => undecided.push(entry),
            }
        }
        // The one that the name tells first: it seldom lies.
        let is_other = |entry: &&Entry| by_name.is_none_or(|by| by.spec.id != entry.spec.id);
        undecided.sort_by_key(is_other);
        for entry in undecided {
            if best.confidence >= Confidence::Likely {
                break;
            }
            best.add(entry, entry.detect(head)?);
        }
        match *best.found.as_slice() {
            [] => Err(diagnose::unrecognized(head, name, self)),
            [entry] => Ok(entry),
            ref several => {
                let settled = several
                    .iter()
                    .find(|entry| by_name.is_some_and(|by| by.spec.id == entry.spec.id));
                settled.copied().ok_or_else(|| {
                    let names: Vec<_> = several.iter().map(|entry| entry.spec.id).collect();
                    let message = format!("could be any of {}", names.join(", "));
                    Error::new(ErrorKind::Unrecognized, "file.ambiguous", message)
                        .hinting(Hint::ChooseFormat(names))
                })
            }
        }
    }
}
