//! Where work is done, and where receipts are kept: a directory that all machines see.

use std::fs;
use std::io::ErrorKind::NotFound;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::data::{Input, Plan};
use crate::archive::{Archive, OpenOptions};
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::format::Registry;
use crate::io::{AtomicOutput, Output as _, Sink, Source, Stamp};
#[cfg(feature = "remote")]
use crate::io::{Remote, RemoteUrl};
use crate::prelude::*;
use crate::threads::Work;

/// Bytes that are written at once.
const BUFFER: usize = 1 << 20;

/// What this process has: how it reaches files, how many threads it has, who watches it.
#[derive(Debug, Default)]
pub struct Site {
    pub(super) work: Work,
    pub(super) registry: Option<Registry>,
    pub(super) words: Option<fn(&[Hint]) -> String>,
    #[cfg(feature = "remote")]
    pub(super) remote: Remote,
}

impl Site {
    /// One thread for every core, and what the environment says of stores.
    pub fn new() -> Self {
        Self::default()
    }

    /// Threads, and a control.
    #[must_use]
    pub fn work(mut self, work: Work) -> Self {
        self.work = work;
        self
    }

    /// The formats that are known.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// How hints are said in what is reported: they are not kept as data.
    #[must_use]
    pub fn words(mut self, words: fn(&[Hint]) -> String) -> Self {
        self.words = Some(words);
        self
    }

    /// How URLs are reached.
    #[cfg(feature = "remote")]
    #[must_use]
    pub fn remote(mut self, remote: &Remote) -> Self {
        self.remote = remote.clone();
        self
    }

    pub(super) fn known(&self) -> Registry {
        self.registry.clone().unwrap_or_else(Registry::standard)
    }

    /// Opens a path or a URL.
    pub(super) fn open(&self, url: &str, options: &OpenOptions) -> Result<Archive> {
        let options = options.clone().registry(self.known());
        #[cfg(feature = "remote")]
        if let Some(parsed) = self.url(url)? {
            return options.remote(&self.remote).open_remote(&parsed);
        }
        options.open(url)
    }

    /// A URL, if it is one.
    #[cfg(feature = "remote")]
    pub(super) fn url(&self, text: &str) -> Result<Option<RemoteUrl>> {
        if RemoteUrl::looks_like(text) && Path::new(text).symlink_metadata().is_err() {
            RemoteUrl::parse(text).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Opens an input, and refuses it if it is not what it was when the plan was made.
    pub(super) fn open_pinned(&self, input: &Input, options: &OpenOptions) -> Result<Archive> {
        let opened = self.open_unchanged(input, options)?;
        opened.ok_or_else(|| changed(input))
    }

    /// The same; nothing where it is another one.
    pub(super) fn open_unchanged(
        &self,
        input: &Input,
        options: &OpenOptions,
    ) -> Result<Option<Archive>> {
        match self.open(&input.url, options) {
            Ok(archive) => Ok(is_unchanged(input, &archive).then_some(archive)),
            Err(_) if is_replaced(input) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Refuses an input that changed since the plan was made.
    pub(super) fn check(&self, input: &Input, archive: &Archive) -> Result<()> {
        if is_unchanged(input, archive) {
            return Ok(());
        }
        Err(changed(input))
    }

    /// The state of a plan.
    pub(super) fn state(&self, plan: &Plan) -> Result<State> {
        super::inputs::refuse_store(&plan.state)?;
        Ok(State(plan.state.clone().into()))
    }
}

/// That an input is another one than when the plan was made.
pub(super) fn changed(input: &Input) -> Error {
    let message = format!(
        "{} is not what it was when the plan was made; plan again",
        input.name()
    );
    Error::new(ErrorKind::Mismatch, "plan.changed", message)
}

/// Whether what was opened is what it was when the plan was made.
pub(super) fn is_unchanged(input: &Input, archive: &Archive) -> bool {
    let pinned = if input.parts.is_empty() {
        let stamp = input.stamp.iter().cloned();
        stamp.map(|stamp| (None, stamp)).collect()
    } else {
        let parts = input.parts.iter();
        parts
            .map(|part| (part.name.clone(), part.stamp.clone()))
            .collect::<Vec<_>>()
    };
    let is_same_as = |stamp: &Stamp, source: &Arc<dyn Source>| {
        source.len() == stamp.len && source.stamp().is_none_or(|now| now == *stamp)
    };
    let mut now = archive.sources();
    match pinned.as_slice() {
        // One that was listed and not opened is known by its first file.
        [(None, stamp)] => now.next().is_some_and(|(_, now)| is_same_as(stamp, now)),
        all => now.all(|(name, source)| {
            let mut known = all.iter().filter(|(known, _)| known.as_deref() == name);
            known.any(|(_, stamp)| is_same_as(stamp, source))
        }),
    }
}

/// Whether a file of an input is another one than when the plan was made, as far as that shows without opening it.
fn is_replaced(input: &Input) -> bool {
    let is_other = |path: &str, stamp: &Stamp| {
        fs::metadata(path).is_ok_and(|found| Stamp::of_file(&found) != *stamp)
    };
    let mut own = input.stamp.iter().map(|stamp| (input.url.clone(), stamp));
    let mut parts = input.parts.iter().zip(input.urls());
    own.any(|(url, stamp)| is_other(&url, stamp))
        || parts.any(|(part, url)| part.name.is_some() && is_other(&url, &part.stamp))
}

/// What an archive consists of, each with what it is known by.
pub(super) fn stamps(archive: &Archive) -> Vec<(Option<String>, Stamp)> {
    let sources = archive.sources();
    sources
        .map(|(name, source)| {
            let stamp = source.stamp().unwrap_or(Stamp {
                len: source.len(),
                ..Stamp::default()
            });
            (name.map(ToOwned::to_owned), stamp)
        })
        .collect()
}

/// Where receipts are kept: a directory that all machines see.
pub(super) struct State(PathBuf);

impl State {
    pub(super) fn directory(&self) -> &Path {
        &self.0
    }

    /// Keeps a small file, which is there whole or not at all.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put_with(name, |sink| sink.write(bytes))
    }

    /// The same of something as JSON, which is never a text in memory.
    pub(super) fn put_json(&self, name: &str, what: &impl Serialize) -> Result<()> {
        self.put_with(name, |sink| {
            let mut writer = BufWriter::with_capacity(BUFFER, Writing(sink));
            let fail = |cause| Error::io(format_args!("cannot write {name}"), cause);
            serde_json::to_writer(&mut writer, what).map_err(|cause| fail(cause.into()))?;
            writer.flush().map_err(fail)
        })
    }

    fn put_with(&self, name: &str, write: impl FnOnce(&mut dyn Sink) -> Result<()>) -> Result<()> {
        let path = self.0.join(name);
        create_above(&path)?;
        let mut output = AtomicOutput::file(&path)?.force(true);
        let plain = output.main_name().to_owned();
        let mut sink = output.create(&plain, None)?;
        write(&mut *sink)?;
        sink.finish()?;
        output.commit()
    }

    pub(super) fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.0.join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(cause) if cause.kind() == NotFound => Ok(None),
            Err(cause) => Err(Error::io(
                format_args!("cannot read {}", path.display()),
                cause,
            )),
        }
    }

    /// The names of what is kept in one of its directories.
    pub(super) fn names(&self, below: &str) -> Result<Vec<String>> {
        let entries = match fs::read_dir(self.0.join(below)) {
            Ok(entries) => entries,
            Err(cause) if cause.kind() == NotFound => return Ok(Vec::new()),
            Err(cause) => {
                let what = format!("cannot list {}", self.0.display());
                return Err(Error::io(what, cause));
            }
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let names = names.filter_map(|name| name.into_string().ok());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        Ok(names)
    }

    /// Removes what is kept in one of its directories.
    pub(super) fn remove(&self, below: &str) -> Result<()> {
        for name in self.names(below)? {
            let path = self.0.join(below).join(name);
            if let Err(cause) = fs::remove_file(&path)
                && cause.kind() != NotFound
            {
                let what = format!("cannot remove {}", path.display());
                return Err(Error::io(what, cause));
            }
        }
        Ok(())
    }

    /// Removes everything but what has this name, or all of it.
    pub(super) fn clear(&self, but: Option<&str>) -> Result<()> {
        let Some(but) = but else {
            return match fs::remove_dir_all(&self.0) {
                Err(cause) if cause.kind() != NotFound => {
                    let what = format!("cannot remove {}", self.0.display());
                    Err(Error::io(what, cause))
                }
                _ => Ok(()),
            };
        };
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            if entry.file_name() == but {
                continue;
            }
            // What is left is only not tidy.
            let path = entry.path();
            let _ = if path.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
        }
        Ok(())
    }
}

/// What is written by others goes where ours goes.
struct Writing<'s>(&'s mut dyn Sink);

impl Write for Writing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes).map_err(std::io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Makes the directory that a file will be in.
pub(super) fn create_above(path: &Path) -> Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)
        .map_err(|cause| Error::io(format_args!("cannot create {}", directory.display()), cause))
}
