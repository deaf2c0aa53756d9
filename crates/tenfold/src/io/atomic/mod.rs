//! Output that appears whole or not at all.
//!
//! Every file is written without a name (Linux, `O_TMPFILE`) or under a temporary one beside its target, synced, and
//! then given its name in one step. A process that is killed leaves nothing behind in the first case; in the second, a
//! later run to the same target removes what nobody holds a lock on.
//!
//! A new directory is made under a temporary name with all of its files, and then given its own. Of several files that
//! replace others, the old ones are kept until the last of them has its name, and nobody else writes the same ones meanwhile.

mod access;
mod publish;
mod replace;
mod sink;
mod temporary;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Hint, Result};
use crate::io::{
    Access, DirectorySiblings, FileSource, Output, Siblings, Sink, Source, fault, in_place,
};
use crate::prelude::*;

pub(super) use publish::sync_directory;
use publish::{publish, rename_new, rename_over_empty};
use replace::Replacement;
use sink::{FileSink, preallocate};
pub(super) use temporary::hold;
use temporary::{Claim, Leftovers, create_staging, open_temporary};

/// A file of its owner alone that nobody will give a name: without one already, or with the one that it has to lose.
pub(crate) fn scratch_file(directory: &Path) -> Result<(File, Option<PathBuf>)> {
    open_temporary(directory, "stream", true)
}

/// How many files of a new directory stay open, so that the system can write them while the next ones are made. Few in
/// the unit tests, which have few files.
const OPEN: usize = if cfg!(test) { 2 } else { 64 };

/// Files that appear at their targets together, when they are complete.
///
/// Those beside other files are open until then, one handle for each; of those in a new directory only some are.
#[derive(Debug)]
pub struct AtomicOutput {
    /// The file or directory that will be there, without links.
    path: PathBuf,
    directory: PathBuf,
    /// The file that comes last, because it names the others; its name is in `directory`.
    main: String,
    /// `directory` does not exist yet under its own name, which is `path`.
    is_new_directory: bool,
    /// An empty directory has that name, and makes way.
    takes_empty: bool,
    /// Directories that were made in a new one.
    inner: Vec<PathBuf>,
    /// Held on the directory before it has its name: says to a later run that it is not abandoned.
    lock: Option<File>,
    /// Of several files: says to others that these are being written.
    claims: Vec<Claim>,
    force: bool,
    sync: bool,
    pending: Vec<Pending>,
    /// Where a file is in `pending`, by its name.
    places: LookupMap<String, usize>,
    /// What earlier runs left beside the target, once it was looked for.
    left: Option<Leftovers>,
    committed: bool,
    /// Some files were written elsewhere, and stay there where nothing comes of this.
    adopted: bool,
    /// Nothing more is written: it was committed, or could not be.
    ended: bool,
}

#[derive(Debug)]
struct Pending {
    name: String,
    /// `None` when it was closed already: in a new directory it can be opened again.
    file: Option<File>,
    /// Where it is for now; `None` when it has no name yet, or has its own in a new directory.
    temporary: Option<PathBuf>,
    /// What it was begun to replace.
    old: Option<fs::Metadata>,
}

impl AtomicOutput {
    /// One file at `path`; further files of the same output go beside it.
    ///
    /// A symbolic link is followed: the file that it points to is the target. One that points to nothing is a file that
    /// already exists.
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
            Ok(real) if given.is_symlink() => real,
            _ => given.to_owned(),
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
            path,
            directory,
            main,
            is_new_directory: false,
            takes_empty: false,
            inner: Vec::new(),
            lock: None,
            claims: Vec::new(),
            force: false,
            sync: true,
            pending: Vec::new(),
            places: LookupMap::default(),
            left: None,
            committed: false,
            adopted: false,
            ended: false,
        })
    }

    /// Any number of files in a directory that does not exist yet, or that is empty.
    pub fn directory(path: impl AsRef<Path>) -> Result<Self> {
        let target = path.as_ref();
        let existing = target.symlink_metadata().ok();
        if existing.is_some() && !is_empty_directory(target) {
            return Err(already_exists(target));
        }
        // Without a separator at its end, a link is seen as one.
        let mut output = Self::at(target.components().as_path())?;
        Leftovers::list(&output.directory).remove_abandoned(&output.main);
        output.takes_empty = existing.is_some();
        let (lock, staging) = create_staging(&output.directory, &output.main, output.takes_empty)?;
        output.lock = lock;
        output.is_new_directory = true;
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

    /// Whether the data is on the disk before it gets its name. On by default.
    #[must_use]
    pub fn sync(mut self, sync: bool) -> Self {
        self.sync = sync;
        self
    }

    /// The name that a single file of this output has: that of the path, or of what a link there points to. Empty for a
    /// directory.
    pub fn main_name(&self) -> &str {
        &self.main
    }

    /// Where a file of this output will be.
    pub fn path_of(&self, name: &str) -> PathBuf {
        if self.is_new_directory {
            self.path.join(name)
        } else {
            self.path.with_file_name(name)
        }
    }

    /// Where a file is, or will be, before a new directory has its name.
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
            Ok(_) if !self.force => Err(already_exists(target).hinting(Hint::Replace)),
            _ => Ok(()),
        }
    }
}

impl AtomicOutput {
    /// Opens a file for what will be `target`.
    fn open(&mut self, name: &str, target: &Path) -> Result<Pending> {
        let mut pending = Pending {
            name: name.to_owned(),
            file: None,
            temporary: None,
            old: None,
        };
        if self.is_new_directory {
            self.close_oldest()?;
            self.make_parent(name, target)?;
            pending.file = Some(create_new(target)?);
            return Ok(pending);
        }
        self.check_free(target)?;
        if name != self.main || !self.pending.is_empty() {
            self.claim(self.main.clone())?;
        }
        let left = (self.left).get_or_insert_with(|| Leftovers::list(&self.directory));
        left.remove_abandoned(name);
        pending.old = fs::metadata(target).ok();
        let (file, temporary) = open_temporary(&self.directory, name, pending.old.is_some())?;
        pending.file = Some(file);
        pending.temporary = temporary;
        Ok(pending)
    }

    /// Makes the directories that a file of a new one lies in.
    fn make_parent(&mut self, name: &str, target: &Path) -> Result<()> {
        let Some(parent) = target.parent().filter(|_| name.contains('/')) else {
            return Ok(());
        };
        if self.inner.iter().rev().any(|known| known == parent) {
            return Ok(());
        }
        let mut missing: Vec<&Path> = parent.ancestors().collect();
        missing.retain(|path| path.starts_with(&self.directory) && **path != self.directory);
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => self.inner.push(path.to_owned()),
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => {
                    let place = path.display();
                    return Err(Error::io(format_args!("cannot create {place}"), cause));
                }
            }
        }
        Ok(())
    }

    /// Makes sure that nobody else writes the files that `name` stands for until this output is done: of two that name
    /// theirs in turn, each could say that it succeeded, and what is there would be some of both.
    fn claim(&mut self, name: String) -> Result<()> {
        if !self.claims.iter().any(|claim| claim.is_of(&name)) {
            let claim = Claim::take(&self.directory, name)?;
            self.claims.push(claim);
        }
        Ok(())
    }

    /// Makes room for one more file in a new directory. Where they are not synced together, it is synced through the handle
    /// that wrote it, because one that is opened later may not be told of a failure.
    fn close_oldest(&mut self) -> Result<()> {
        let oldest = self.pending.len().checked_sub(OPEN);
        if let Some(oldest) = oldest.and_then(|oldest| self.pending.get(oldest))
            && !self.syncs_together()
        {
            self.sync_file(oldest)?;
        }
        if let Some(oldest) = oldest.and_then(|oldest| self.pending.get_mut(oldest)) {
            oldest.file = None;
        }
        Ok(())
    }

    /// Whether the files of a new directory are synced with the whole file system: for thousands of small ones that takes a
    /// fraction of the time. The handle of the directory is older than they are, and so is told of their failures (since Linux 5.8).
    fn syncs_together(&self) -> bool {
        cfg!(target_os = "linux") && self.lock.is_some()
    }

    fn sync_files(&self) -> Result<()> {
        #[cfg(target_os = "linux")]
        if let Some(directory) = self.lock.as_ref().filter(|_| self.pending.len() > OPEN) {
            let sync = || Ok(rustix::fs::syncfs(directory)?);
            let synced = if self.sync {
                fault::point("sync").and_then(|()| sync())
            } else {
                Ok(())
            };
            let place = self.path.display();
            return synced.map_err(|cause| Error::io(format_args!("cannot sync {place}"), cause));
        }
        (self.pending.iter()).try_for_each(|pending| self.sync_file(pending))
    }

    fn sync_file(&self, pending: &Pending) -> Result<()> {
        let Some(file) = pending.file.as_ref().filter(|_| self.sync) else {
            return Ok(());
        };
        let synced = fault::point("sync").and_then(|()| file.sync_all());
        synced.map_err(|cause| {
            let target = self.target(&pending.name);
            Error::io(format_args!("cannot sync {}", target.display()), cause)
        })
    }

    /// Gives the files their names, all of them or none.
    fn name_files(&mut self) -> Result<()> {
        // The file that names the others comes last, so that whoever sees it sees them too.
        let main = self.main.clone();
        self.pending.sort_by_key(|pending| pending.name == main);
        // The same files may be asked for by two names: that of the index, and that which the shards' are made from.
        if let [_, .., last] = self.pending.as_slice() {
            self.claim(last.name.clone())?;
        }
        let targets = self
            .pending
            .iter()
            .map(|pending| self.target(&pending.name));
        let targets: Vec<_> = targets.collect();
        // What can be known to fail is known before the first of them has its name.
        targets
            .iter()
            .try_for_each(|target| self.check_free(target))?;
        for (pending, target) in self.pending.iter().zip(&targets) {
            let now = fs::metadata(target).ok();
            if let (Some(file), Some(old)) = (&pending.file, now.as_ref().or(pending.old.as_ref()))
            {
                access::keep(file, target, old);
            }
        }
        let mut replacement = Replacement::default();
        let named = replacement.prepare(&targets).and_then(|()| {
            let mut files = self.pending.iter().zip(&targets).enumerate();
            files.try_for_each(|(at, (pending, target))| {
                self.check_free(target)?;
                replacement.replace(at, || publish(pending, target, self.force))
            })
        });
        named.map_err(|error| replacement.undo(error))?;
        self.committed = true;
        targets.iter().for_each(|target| in_place::forget(target));
        let synced = self.sync_name(&self.directory);
        replacement.finish();
        synced
    }

    /// Gives a directory with all of its files its name.
    fn name_directory(&mut self) -> Result<()> {
        let target = &self.path;
        // Not every system renames a directory in which files are open.
        (self.pending.iter_mut()).for_each(|pending| pending.file = None);
        if let (true, Ok(old), Ok(new)) = (
            self.takes_empty,
            target.symlink_metadata(),
            File::open(&self.directory),
        ) {
            access::keep(&new, target, &old);
        }
        // What is in the directory must last before its name does.
        if self.sync {
            for inner in &self.inner {
                sync_directory(inner, "sync-staging")?;
            }
            sync_directory(&self.directory, "sync-staging")?;
        }
        let named = if self.takes_empty {
            rename_over_empty(&self.directory, target)
        } else {
            rename_new(&self.directory, target)
        };
        named.map_err(|cause| match cause.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
                already_exists(target)
            }
            _ => Error::io(format_args!("cannot name {}", target.display()), cause),
        })?;
        self.committed = true;
        self.sync_name(&parent(&self.path))
    }

    /// Makes the names last that were given in a directory.
    fn sync_name(&self, directory: &Path) -> Result<()> {
        if !self.sync {
            return Ok(());
        }
        sync_directory(directory, "sync-directory").map_err(|error| {
            let what = match self.pending.len() {
                n @ 2.. if !self.is_new_directory => {
                    format!("all {n} files are whole and in their places")
                }
                _ => format!("{} is whole and in its place", self.path.display()),
            };
            error.adding(&format!(
                "; {what}, but a power failure may still undo that"
            ))
        })
    }
}

/// Files that were written elsewhere.
#[cfg(feature = "scale")]
impl AtomicOutput {
    /// Takes a file that is complete in the same file system, to be called `name`. It stays where it is until it has its
    /// name, and also when nothing comes of this output.
    pub(crate) fn adopt(&mut self, name: &str, from: &Path) -> Result<()> {
        check_plain(name)?;
        if self.ended || self.places.contains_key(name) {
            return Err(Error::argument(format!("{name:?} has been begun already")));
        }
        let target = self.target(name);
        let fail = |cause| Error::io(format_args!("cannot open {}", from.display()), cause);
        let open = || fs::OpenOptions::new().read(true).write(true).open(from);
        let mut pending = Pending {
            name: name.to_owned(),
            file: None,
            temporary: None,
            old: None,
        };
        if self.is_new_directory {
            self.close_oldest()?;
            // What is interrupted begins again: the file keeps its other name until then.
            fs::hard_link(from, &target)
                .or_else(|_| fs::rename(from, &target))
                .map_err(fail)?;
            pending.file = Some(fs::File::open(&target).map_err(fail)?);
        } else {
            self.check_free(&target)?;
            if name != self.main || !self.pending.is_empty() {
                self.claim(self.main.clone())?;
            }
            pending.old = fs::metadata(&target).ok();
            pending.file = Some(open().map_err(fail)?);
            pending.temporary = Some(from.to_owned());
        }
        self.adopted = true;
        self.places.insert(name.to_owned(), self.pending.len());
        self.pending.push(pending);
        Ok(())
    }
}

impl Output for AtomicOutput {
    fn name(&self) -> Option<&str> {
        Some(self.main.as_str()).filter(|name| !name.is_empty())
    }

    fn begin_tree(&mut self) -> Result<()> {
        if !self.is_new_directory {
            *self = Self::directory(&self.path)?.sync(self.sync);
        }
        Ok(())
    }

    fn written_tree(&self) -> Option<Arc<dyn Siblings>> {
        let inside = || DirectorySiblings::inside(&self.directory, Access::Read);
        self.is_new_directory
            .then(|| Arc::new(inside()) as Arc<dyn Siblings>)
    }

    fn create(&mut self, name: &str, len: Option<u64>) -> Result<Box<dyn Sink + '_>> {
        if self.is_new_directory {
            name.split('/').try_for_each(check_plain)?;
        } else {
            check_plain(name)?;
        }
        if self.ended {
            return Err(Error::argument("the output was committed already"));
        }
        if self.places.contains_key(name) {
            return Err(Error::argument(format!("{name:?} has been begun already")));
        }
        let target = self.target(name);
        let pending = self.open(name, &target)?;
        // Pushed before anything can fail: what is pending is removed when nothing comes of it.
        self.places.insert(name.to_owned(), self.pending.len());
        self.pending.push(pending);
        let file = (self.pending.last_mut())
            .and_then(|pending| pending.file.as_mut())
            .ok_or_else(|| Error::argument("no file was begun"))?;
        if let Some(len) = len {
            preallocate(file, len).map_err(|cause| {
                Error::io(
                    format_args!("cannot reserve {len} bytes for {}", target.display()),
                    cause,
                )
            })?;
        }
        Ok(Box::new(FileSink { file, target }))
    }

    fn written(&self, name: &str) -> Result<Option<Arc<dyn Source>>> {
        let place = self.places.get(name);
        let Some(pending) = place.and_then(|&place| self.pending.get(place)) else {
            return Ok(None);
        };
        let target = self.target(name);
        let file = match &pending.file {
            Some(file) => file.try_clone(),
            None => File::open(&target),
        };
        let file = file.map_err(|cause| {
            Error::io(format_args!("cannot reopen {}", target.display()), cause)
        })?;
        Ok(Some(Arc::new(FileSource::from_file(file, target)?)))
    }

    fn commit(&mut self) -> Result<()> {
        if self.ended {
            return Err(Error::argument("the output was committed already"));
        }
        let named = self.sync_files().and_then(|()| {
            if self.is_new_directory {
                self.name_directory()
            } else {
                self.name_files()
            }
        });
        self.end();
        named
    }
}

impl Drop for AtomicOutput {
    fn drop(&mut self) {
        self.end();
    }
}

impl AtomicOutput {
    /// Lets others have the names, and removes what did not get one.
    fn end(&mut self) {
        if core::mem::replace(&mut self.ended, true) {
            return;
        }
        self.remove_unnamed();
        self.pending.clear();
        self.claims.clear();
        self.lock = None;
    }

    fn remove_unnamed(&mut self) {
        if self.committed {
            return;
        }
        // Each is closed by then: a process that has all the files open that it may could not look into a directory.
        for pending in self.pending.drain(..) {
            let is_own =
                |path: &PathBuf| !self.adopted || path.parent() == Some(self.directory.as_path());
            if let Some(temporary) = pending.temporary.filter(is_own) {
                let _ = fs::remove_file(temporary);
            }
        }
        if self.is_new_directory {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

fn check_plain(name: &str) -> Result<()> {
    let is_plain = Path::new(name).components().count() == 1
        && !name.contains(['/', '\\'])
        && name != ".."
        && name != ".";
    if is_plain {
        Ok(())
    } else {
        Err(Error::argument(format!(
            "{name:?} is not the plain name of a file"
        )))
    }
}

/// A file of a new directory: nobody looks for it before the directory has its name.
fn create_new(path: &Path) -> Result<File> {
    let opened = fault::point("create").and_then(|()| {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create_new(true).open(path)
    });
    opened.map_err(|cause| Error::io(format_args!("cannot create {}", path.display()), cause))
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

fn already_exists(target: &Path) -> Error {
    let target = target.strip_prefix(".").unwrap_or(target);
    let message = format!("{} already exists", target.display());
    Error::new(ErrorKind::Argument, "exists", message)
}

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;
