//! Output that appears whole or not at all.
//!
//! Every file is written under no name (Linux, `O_TMPFILE`) or under a temporary one beside its target, synced, and then
//! given its name in one step. A process that is killed leaves nothing behind in the first case; in the second, a later
//! run to the same target removes what nobody holds a lock on.

mod publish;
mod temporary;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::io::{FileSource, Output, Sink, Source, fault};
use crate::prelude::*;

use publish::{publish, sync_directory};
use temporary::{hold, open_temporary, remove_abandoned, temporary_name};

/// Files that appear at their targets together, when they are complete.
#[derive(Debug)]
pub struct AtomicOutput {
    directory: PathBuf,
    /// The file that comes last, because it names the others; its name is in `directory`.
    main: String,
    /// The name that `directory` gets at the end, which nothing has yet but an empty directory.
    new_directory: Option<PathBuf>,
    /// Held on the directory before it has its name: says to a later run that it is not abandoned.
    _lock: Option<File>,
    force: bool,
    sync: bool,
    pending: Vec<Pending>,
    committed: bool,
}

#[derive(Debug)]
struct Pending {
    name: String,
    file: File,
    /// Where it is for now; `None` when it has no name yet.
    temporary: Option<PathBuf>,
}

impl AtomicOutput {
    /// One file at `path`; further files of the same output go beside it.
    ///
    /// A symbolic link is followed: the file that it points to is the target. One that points to nothing is a file that
    /// exists already.
    pub fn file(path: impl AsRef<Path>) -> Result<Self> {
        let given = path.as_ref();
        if given.is_dir() {
            return Err(Error::argument(format!(
                "{} is a directory",
                given.display()
            )));
        }
        Self::at(given)
    }

    fn at(given: &Path) -> Result<Self> {
        let path = match fs::canonicalize(given) {
            Ok(real) => real,
            Err(_) => given.to_owned(),
        };
        let main = match path.file_name().map(|name| name.to_str()) {
            Some(Some(name)) => name.to_owned(),
            Some(None) => {
                return Err(Error::argument(format!(
                    "{} is not a Unicode name",
                    path.display()
                )));
            }
            None => {
                return Err(Error::argument(format!(
                    "{} names no file",
                    given.display()
                )));
            }
        };
        let directory = parent(&path);
        Ok(Self {
            directory,
            main,
            new_directory: None,
            _lock: None,
            force: false,
            sync: true,
            pending: Vec::new(),
            committed: false,
        })
    }

    /// Any number of files in a directory that does not exist yet, or that is empty.
    pub fn directory(path: impl AsRef<Path>) -> Result<Self> {
        let target = path.as_ref();
        let existing = target.symlink_metadata().ok();
        if existing.is_some() && !is_empty_directory(target) {
            return Err(already_exists(target));
        }
        let mut output = Self::at(target)?;
        let target = match &existing {
            Some(_) => output.directory.join(&output.main),
            None => target.to_owned(),
        };
        remove_abandoned(&output.directory, &output.main);
        let staging = output.directory.join(temporary_name(&output.main));
        let created = fault::point("create").and_then(|()| fs::create_dir(&staging));
        created.map_err(|cause| {
            Error::io(format_args!("cannot create {}", staging.display()), cause)
        })?;
        if let Some(existing) = existing {
            // Where the system has none of these, nothing is different.
            let _ = fs::set_permissions(&staging, existing.permissions());
        }
        output._lock = File::open(&staging).ok().inspect(|lock| {
            hold(lock);
        });
        output.new_directory = Some(target);
        output.directory = staging;
        output.main.clear();
        Ok(output)
    }

    /// Replaces files that exist already. Directories are never replaced.
    #[must_use]
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Whether the data is on the disk before it gets its name. On unless told otherwise.
    #[must_use]
    pub fn sync(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }

    /// The name that a single file of this output has.
    pub fn main_name(&self) -> &str {
        &self.main
    }

    fn target(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn check_free(&self, target: &Path) -> Result<()> {
        match target.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => Err(Error::argument(format!(
                "{} is a directory and is not replaced",
                target.display()
            ))),
            // To rename over a device or a pipe would remove it from the system.
            Ok(metadata) if !metadata.is_file() && !metadata.is_symlink() => {
                Err(Error::argument(format!(
                    "{} is a device or a pipe, not a file, and is not replaced",
                    target.display()
                )))
            }
            Ok(_) if !self.force => Err(already_exists(target)),
            _ => Ok(()),
        }
    }
}

impl Output for AtomicOutput {
    fn create(&mut self, name: &str, len: Option<u64>) -> Result<Box<dyn Sink + '_>> {
        if Path::new(name).components().count() != 1
            || name.contains(['/', '\\'])
            || name == ".."
            || name == "."
        {
            return Err(Error::argument(format!(
                "{name:?} is not the plain name of a file"
            )));
        }
        let target = self.target(name);
        self.check_free(&target)?;
        let (file, temporary) = open_temporary(&self.directory, name)?;
        // Pushed before anything can fail: what is pending is removed when nothing comes of it.
        self.pending.push(Pending {
            name: name.to_owned(),
            file,
            temporary,
        });
        let pending = self
            .pending
            .last_mut()
            .ok_or_else(|| Error::argument("no file was begun"))?;
        if let Some(len) = len {
            preallocate(&pending.file, len).map_err(|cause| {
                Error::io(
                    format_args!("cannot reserve {len} bytes for {}", target.display()),
                    cause,
                )
            })?;
        }
        Ok(Box::new(FileSink {
            file: &mut pending.file,
            target,
        }))
    }

    fn written(&self, name: &str) -> Result<Option<Arc<dyn Source>>> {
        let Some(pending) = self.pending.iter().find(|pending| pending.name == name) else {
            return Ok(None);
        };
        let target = self.target(name);
        let file = pending.file.try_clone().map_err(|cause| {
            Error::io(format_args!("cannot reopen {}", target.display()), cause)
        })?;
        Ok(Some(Arc::new(FileSource::from_file(file, target)?)))
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        if self.sync {
            for pending in &self.pending {
                let target = self.target(&pending.name);
                let synced = fault::point("sync").and_then(|()| pending.file.sync_all());
                synced.map_err(|cause| {
                    Error::io(format_args!("cannot sync {}", target.display()), cause)
                })?;
            }
        }
        // The file that names the others comes last, so that whoever sees it sees them too.
        let main = self.main.clone();
        self.pending.sort_by_key(|pending| pending.name == main);
        let mut named = Vec::new();
        for pending in &self.pending {
            let target = self.target(&pending.name);
            let is_new = target.symlink_metadata().is_err();
            let done = self.check_free(&target);
            // In a directory that nobody sees yet there is nothing to keep.
            let replace = self.force || self.new_directory.is_some();
            if let Err(error) = done.and_then(|()| publish(pending, &target, replace)) {
                for new in &named {
                    let _ = fs::remove_file(new);
                }
                return Err(error);
            }
            named.extend(is_new.then_some(target));
        }
        if let Some(target) = &self.new_directory {
            // What is in the directory must last before its name does.
            if self.sync {
                sync_directory(&self.directory, "sync-staging")?;
            }
            let named =
                fault::point("rename").and_then(|()| name_directory(&self.directory, target));
            named.map_err(|cause| {
                Error::io(format_args!("cannot name {}", target.display()), cause)
            })?;
        }
        self.committed = true;
        if self.sync {
            let changed = match &self.new_directory {
                Some(target) => parent(target),
                None => self.directory.clone(),
            };
            sync_directory(&changed, "sync-directory")?;
        }
        Ok(())
    }
}

impl Drop for AtomicOutput {
    fn drop(&mut self) {
        if self.committed {
            return;
        }
        // Each is closed by then: a process that has all the files open that it may could not look into a directory.
        for pending in self.pending.drain(..) {
            if let Some(temporary) = pending.temporary {
                let _ = fs::remove_file(temporary);
            }
        }
        if self.new_directory.is_some() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

struct FileSink<'a> {
    file: &'a mut File,
    target: PathBuf,
}

impl Sink for FileSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = fault::point("write").and_then(|()| self.file.write_all(bytes));
        written.map_err(|cause| {
            Error::io(
                format_args!("cannot write {}", self.target.display()),
                cause,
            )
        })
    }

    fn as_file(&self) -> Option<&File> {
        Some(self.file)
    }
}

/// The directory that a path is in; a plain name is in the current one.
fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Whether it is a directory, and no link to one, that holds nothing.
fn is_empty_directory(path: &Path) -> bool {
    let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    is_directory && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Gives a directory its name. One that is empty makes way: on Unix in the same step, elsewhere just before.
fn name_directory(from: &Path, to: &Path) -> io::Result<()> {
    if cfg!(not(unix)) && is_empty_directory(to) {
        fs::remove_dir(to)?;
    }
    fs::rename(from, to)
}

fn already_exists(target: &Path) -> Error {
    Error::new(
        ErrorKind::Argument,
        "exists",
        format!(
            "{} exists already; pass --force to replace it",
            target.display()
        ),
    )
}

/// Reserves space, so that a full disk is reported before anything is written; does nothing where the system cannot.
fn preallocate(file: &File, len: u64) -> io::Result<()> {
    fault::point("reserve")?;
    #[cfg(target_os = "linux")]
    if len > 0 {
        use rustix::io::Errno;
        match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, len) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) | Ok(()) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    file.set_len(len)
}

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;
