//! What the test loops share: the fixtures with what is known of them, files in memory, random archives.
//!
//! Every loop goes over the table of formats. A new format gets all of them with its folder in `fixtures/`.

// Every test binary uses a part of it, and none of them is a library.
#![allow(dead_code, unreachable_pub)]

#[cfg(feature = "serde")]
pub mod amplifiers;
pub mod counting;
pub mod memory;
pub mod random;
pub mod values;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value as Json;
use tenfold::format::{Effect, Entry, Finding, Profile, Registry, Severity};
use tenfold::io::{DirectorySiblings, MemoryOutput, Siblings, Source, Tree};
use tenfold::ops::{Conversion, ConvertOptions, DigestOptions, Digests, VerifyOptions};
use tenfold::{Archive, Bytes, Control, Error, ErrorKind, OpenOptions, Result, Work};

/// The formats that are built in.
pub fn handled() -> Vec<Entry> {
    let registry = Registry::standard();
    let handled: Vec<_> = (registry.entries().iter())
        .filter(|entry| entry.codec.is_some())
        .copied()
        .collect();
    assert!(!handled.is_empty(), "no format is built in");
    handled
}

/// Every version that is written, with its format.
pub fn profiles() -> Vec<(Entry, &'static Profile)> {
    let all = |entry: Entry| {
        entry
            .spec
            .writes
            .iter()
            .map(move |profile| (entry, profile))
    };
    handled().into_iter().flat_map(all).collect()
}

/// The first choice of every format that is written: for tests of what all versions share.
pub fn first_choices() -> Vec<(Entry, &'static Profile)> {
    let first = |entry: Entry| Some((entry, entry.spec.writes.first()?));
    handled().into_iter().filter_map(first).collect()
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    Valid,
    Reject,
}

/// A golden file and what is known of it.
#[derive(Clone)]
pub struct Case {
    /// The format whose folder it is in.
    pub format: &'static str,
    pub kind: Kind,
    /// The JSON's name without its extension.
    pub name: String,
    /// The file, or the directory, that is opened.
    pub path: PathBuf,
    pub expected: Json,
}

impl Case {
    /// `mag/valid/empty`: how a test about it is called.
    pub fn title(&self) -> String {
        let kind = match self.kind {
            Kind::Valid => "valid",
            Kind::Reject => "reject",
        };
        format!("{}/{kind}/{}", self.format, self.name)
    }

    /// A text of the JSON.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.expected.get(key)?.as_str()
    }

    /// A list of the JSON; empty where there is none.
    pub fn list(&self, key: &str) -> &[Json] {
        let list = self.expected.get(key).and_then(Json::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    /// Opens and lists; not all of its data is there or known.
    pub fn is_structural(&self) -> bool {
        self.expected.get("structural").is_some_and(is_set)
    }

    /// The file in memory; `None` where it is a directory.
    pub fn file(&self) -> Option<InMemory> {
        self.path.is_file().then(|| InMemory::load(&self.path))
    }

    pub fn open(&self) -> Result<Archive> {
        OpenOptions::new().open(&self.path)
    }
}

/// Whether something of the JSON says yes: anything but null and false.
pub fn is_set(json: &Json) -> bool {
    !matches!(json, Json::Null | Json::Bool(false))
}

/// Every golden file of every format that is built in, in the order of the table and of their names.
///
/// Panics when a format has none, so that a loop can never silently do nothing.
pub fn cases(kind: Kind) -> Vec<Case> {
    handled()
        .into_iter()
        .flat_map(|entry| cases_of(entry.spec.id, kind))
        .collect()
}

fn cases_of(format: &'static str, kind: Kind) -> Vec<Case> {
    let folder = match kind {
        Kind::Valid => "valid",
        Kind::Reject => "reject",
    };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(format)
        .join(folder);
    let entries = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{} is built in: {}: {error}", format, directory.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let is_json = |path: &&PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    };
    let mut described: Vec<_> = paths.iter().filter(is_json).collect();
    if cfg!(miri) {
        // An interpreter would be busy with reading JSON for an hour.
        described.sort_by_key(|path| fs::metadata(path).unwrap().len());
        described.truncate(6);
    }
    let cases: Vec<_> = described
        .into_iter()
        .filter_map(|path| load_case(format, kind, path, &paths))
        .collect();
    assert!(!cases.is_empty(), "{} has no case", directory.display());
    cases
}

/// `None` for JSON that is a file of its own, such as an index of shards.
fn load_case(format: &'static str, kind: Kind, json: &Path, all: &[PathBuf]) -> Option<Case> {
    let text = fs::read_to_string(json).unwrap();
    let expected: Json =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", json.display()));
    let key = match kind {
        Kind::Valid => "tensors",
        Kind::Reject => "why",
    };
    expected.get(key)?;
    let named = ["open", "file"]
        .iter()
        .find_map(|key| expected.get(key)?.as_str())
        .map(|name| json.with_file_name(name))
        .filter(|path| path.exists());
    let stem = json.file_stem().unwrap().to_str().unwrap().to_owned();
    let beside = || {
        let mut own = all.iter().filter(|path| {
            path.file_stem().is_some_and(|found| found == stem.as_str()) && *path != json
        });
        own.next().cloned()
    };
    let path = named
        .or_else(beside)
        .unwrap_or_else(|| panic!("{}: there is no file beside it", json.display()));
    Some(Case {
        format,
        kind,
        name: stem,
        path,
        expected,
    })
}

/// A file in memory, with the files beside it.
#[derive(Clone)]
pub struct InMemory {
    pub name: String,
    pub bytes: Bytes,
    pub beside: Arc<Beside>,
}

impl InMemory {
    pub fn load(path: &Path) -> Self {
        Self {
            name: path.file_name().unwrap().to_str().unwrap().to_owned(),
            bytes: fs::read(path).unwrap().into(),
            beside: Arc::new(Beside::Directory {
                path: path.parent().unwrap().to_owned(),
                read: Mutex::default(),
            }),
        }
    }

    /// Files that were written to memory; the main one is the first of the plan, which has the name that was asked for.
    pub fn written(files: BTreeMap<String, Vec<u8>>, name: &str) -> Self {
        let files: BTreeMap<_, _> = files
            .into_iter()
            .map(|(name, bytes)| (name, Bytes::from(bytes)))
            .collect();
        Self {
            name: name.to_owned(),
            bytes: files[name].clone(),
            beside: Arc::new(Beside::Files(files)),
        }
    }

    pub fn open(&self) -> Result<Archive> {
        self.open_with(&OpenOptions::new())
    }

    pub fn open_with(&self, options: &OpenOptions) -> Result<Archive> {
        self.open_as(Arc::new(self.bytes.clone()), options)
    }

    /// Opens something else in its place.
    pub fn open_as(&self, source: Arc<dyn Source>, options: &OpenOptions) -> Result<Archive> {
        options.read_beside(source, Some(&self.name), &*self.beside)
    }
}

/// The files beside a file in memory.
pub enum Beside {
    /// Read when they are asked for, once.
    Directory {
        path: PathBuf,
        read: Mutex<BTreeMap<String, Bytes>>,
    },
    Files(BTreeMap<String, Bytes>),
}

impl Siblings for Beside {
    fn names(&self) -> Result<Option<Vec<String>>> {
        Ok(Some(match self {
            Beside::Directory { path, .. } => fs::read_dir(path)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect(),
            Beside::Files(files) => files.keys().cloned().collect(),
        }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Source>> {
        let missing = || Error::new(ErrorKind::NotFound, "sibling", format!("no {name:?}"));
        let bytes = match self {
            Beside::Directory { path, read } => {
                let mut read = read.lock().unwrap();
                if !read.contains_key(name) {
                    let is_plain = |name: &str| !matches!(name, "" | "." | "..");
                    if name.contains(['\\', '\0']) || !name.split('/').all(is_plain) {
                        return Err(missing());
                    }
                    let bytes = fs::read(path.join(name)).map_err(|_| missing())?;
                    read.insert(name.to_owned(), bytes.into());
                }
                read[name].clone()
            }
            Beside::Files(files) => files.get(name).ok_or_else(missing)?.clone(),
        };
        Ok(Arc::new(bytes))
    }

    fn open_below(&self, path: &[&str]) -> Result<Arc<dyn Source>> {
        self.open(&path.join("/"))
    }

    fn shared(&self) -> Option<Arc<dyn Siblings>> {
        Some(Arc::new(match self {
            Beside::Directory { path, .. } => Beside::Directory {
                path: path.clone(),
                read: Mutex::default(),
            },
            Beside::Files(files) => Beside::Files(files.clone()),
        }))
    }

    fn tree(&self) -> Result<Option<Tree>> {
        match self {
            Beside::Directory { path, .. } => DirectorySiblings::of(path.join("any")).tree(),
            Beside::Files(files) => {
                let mut tree = Tree::new(Arc::new(Beside::Files(files.clone())));
                for (key, bytes) in files {
                    tree.push(key, Some(bytes.len() as u64))?;
                }
                Ok(Some(tree.sorted()))
            }
        }
    }

    fn directory_name(&self) -> Option<String> {
        match self {
            Beside::Directory { path, .. } => Some(path.file_name()?.to_str()?.to_owned()),
            Beside::Files(_) => None,
        }
    }
}

/// How a version is written on one thread, losing whatever metadata has to be lost.
pub fn options_for(profile: &Profile) -> ConvertOptions {
    ConvertOptions::new()
        .version(Some(profile.version))
        .allow(Effect::Dropped)
        .work(Work::new().threads(1))
}

/// Whether tensors that fit by themselves do not fit together, such as one named like a prefix of another.
pub fn is_impossible(archive: &Archive, entry: &Entry, options: &ConvertOptions) -> bool {
    let conversion = Conversion::prepare(archive, entry, options).unwrap();
    let mut losses = conversion.losses.iter();
    losses.any(|loss| loss.effect == Effect::Impossible)
}

/// Writes an archive to memory, on one thread.
pub fn write_to_memory(
    from: &Archive,
    entry: &Entry,
    options: &ConvertOptions,
) -> Result<BTreeMap<String, Vec<u8>>> {
    write_on(1, from, entry, options)
}

/// Writes an archive to memory, and does as much work as it said.
pub fn write_on(
    threads: usize,
    from: &Archive,
    entry: &Entry,
    options: &ConvertOptions,
) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut out = MemoryOutput::new();
    let control = Arc::new(Control::new());
    let work = Work::new().threads(threads).control(control.clone());
    let options = options.clone().work(work);
    Conversion::prepare(from, entry, &options)?.write_to(&file_name(entry), &mut out)?;
    assert_eq!(
        control.done(),
        control.total(),
        "of the work that was expected"
    );
    Ok(out.into_files())
}

/// A name that a file of this format may have.
pub fn file_name(entry: &Entry) -> String {
    let name = format!("written.{}", entry.spec.extensions[0]);
    // What would be a directory is one file here, an archive.
    if entry.codec.is_some_and(|codec| codec.writes_tree(&name)) {
        name + ".zip"
    } else {
        name
    }
}

/// The findings that say that a file is not sound.
pub fn errors(findings: &[Finding]) -> Vec<&Finding> {
    findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .collect()
}

/// Everything that is worth telling of an archive.
pub fn verify(archive: &Archive, threads: usize) -> Vec<Finding> {
    let options = VerifyOptions::new().work(Work::new().threads(threads));
    tenfold::ops::verify(archive, &options).unwrap().findings
}

pub fn digest(archive: &Archive, threads: usize) -> Digests {
    let options = DigestOptions::new().work(Work::new().threads(threads));
    tenfold::ops::digest(archive, &options).unwrap()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
