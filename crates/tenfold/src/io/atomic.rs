//! Output that appears whole or not at all.
//!
//! Every file is written under no name (Linux, `O_TMPFILE`) or under a temporary one beside its target, synced, and then
//! given its name in one step. A process that is killed leaves nothing behind in the first case; in the second, a later
//! run to the same target removes what nobody holds a lock on.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::io::{FileSource, Output, Sink, Source, fault};
use crate::prelude::*;

/// Files that appear at their targets together, when they are complete.
#[derive(Debug)]
pub struct AtomicOutput {
    directory: PathBuf,
    /// The file that comes last, because it names the others; its name is in `directory`.
    main: String,
    /// A directory that does not exist yet, to be renamed to `directory`'s final name.
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
    /// A symbolic link is followed: the file that it points to is the target.
    pub fn file(path: impl AsRef<Path>) -> Result<Self> {
        let given = path.as_ref();
        if given.is_dir() {
            return Err(Error::argument(format!(
                "{} is a directory",
                given.display()
            )));
        }
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

    /// Any number of files in a directory that does not exist yet.
    pub fn directory(path: impl AsRef<Path>) -> Result<Self> {
        let target = path.as_ref();
        if target.symlink_metadata().is_ok() {
            return Err(already_exists(target));
        }
        let mut output = Self::file(target)?;
        remove_abandoned(&output.directory, &output.main);
        let staging = output.directory.join(temporary_name(&output.main));
        let created = fault::point("create").and_then(|()| fs::create_dir(&staging));
        created.map_err(|cause| {
            Error::io(format_args!("cannot create {}", staging.display()), cause)
        })?;
        output._lock = File::open(&staging).ok().inspect(hold);
        output.new_directory = Some(target.to_owned());
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
            let named = fault::point("rename").and_then(|()| fs::rename(&self.directory, target));
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
            sync_directory(&changed)?;
        }
        Ok(())
    }
}

impl Drop for AtomicOutput {
    fn drop(&mut self) {
        if self.committed {
            return;
        }
        for pending in &self.pending {
            if let Some(temporary) = &pending.temporary {
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

fn temporary_name(name: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!(
        ".{name}.{}-{}{SUFFIX}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

const SUFFIX: &str = ".tenfold-partial";

/// Opens a file for what will be `directory/name`: without a name where the system can, else beside the target.
fn open_temporary(directory: &Path, name: &str) -> Result<(File, Option<PathBuf>)> {
    remove_abandoned(directory, name);
    #[cfg(target_os = "linux")]
    if let Some(file) = open_unnamed(directory) {
        return Ok((file, None));
    }
    let (file, path) = open_named(directory, name)?;
    Ok((file, Some(path)))
}

/// A file under a temporary name beside its target.
fn open_named(directory: &Path, name: &str) -> Result<(File, PathBuf)> {
    let path = directory.join(temporary_name(name));
    let opened = fault::point("create").and_then(|()| {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create_new(true).open(&path)
    });
    let file = opened
        .map_err(|cause| Error::io(format_args!("cannot create {}", path.display()), cause))?;
    hold(&file);
    // A run that cleaned up in the moment before it was held has removed it.
    match path.symlink_metadata() {
        Ok(_) => Ok((file, path)),
        Err(_) => open_named(directory, name),
    }
}

/// Says to a later run, until this process ends, that a file or directory is not abandoned.
fn hold(file: &File) {
    #[cfg(unix)]
    let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    #[cfg(not(unix))]
    let _ = file;
}

/// A file without a name; `None` where the file system has none, or could not give it a name later.
#[cfg(target_os = "linux")]
fn open_unnamed(directory: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    if !Path::new("/proc/self/fd").is_dir() {
        return None;
    }
    fault::point("unnamed").ok()?;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, Mode::from_raw_mode(0o666))
        .ok()
        .map(File::from)
}

/// Removes temporary files and directories of earlier runs to the same target that no process holds.
fn remove_abandoned(directory: &Path, name: &str) {
    #[cfg(unix)]
    {
        let prefix = format!(".{name}.");
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let found = entry.file_name();
            let Some(found) = found.to_str() else {
                continue;
            };
            if !(found.starts_with(&prefix) && found.ends_with(SUFFIX)) {
                continue;
            }
            // Anything else is not ours: a link leads elsewhere, and opening a pipe waits for somebody to write.
            let ours = |kind: fs::FileType| kind.is_file() || kind.is_dir();
            if !entry.file_type().is_ok_and(ours) {
                continue;
            }
            let Ok(file) = File::open(entry.path()) else {
                continue;
            };
            if rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
                .is_ok()
            {
                let _ = match entry.file_type() {
                    Ok(kind) if kind.is_dir() => fs::remove_dir_all(entry.path()),
                    _ => fs::remove_file(entry.path()),
                };
            }
        }
    }
    #[cfg(not(unix))]
    let _ = (directory, name);
}

/// Gives a complete file its name, in one step.
fn publish(pending: &Pending, target: &Path, force: bool) -> Result<()> {
    let fail = |cause: io::Error| match cause.kind() {
        io::ErrorKind::AlreadyExists => already_exists(target),
        _ => Error::io(format_args!("cannot name {}", target.display()), cause),
    };
    if let Ok(old) = fs::metadata(target) {
        let _ = pending.file.set_permissions(old.permissions());
    }
    match &pending.temporary {
        // A hard link fails where a name exists; a rename would replace what appeared meanwhile.
        Some(temporary) if !force => {
            let linked = fault::point("link").and_then(|()| fs::hard_link(temporary, target));
            match linked {
                Ok(()) => {
                    // The file is complete under its name. What is left under the other one, a later run removes.
                    let _ = fault::point("remove").and_then(|()| fs::remove_file(temporary));
                    Ok(())
                }
                // A file system without hard links, such as FAT.
                Err(cause) if has_no_links(&cause) => rename_new(temporary, target).map_err(fail),
                Err(cause) => Err(fail(cause)),
            }
        }
        Some(temporary) => rename(temporary, target).map_err(fail),
        #[cfg(target_os = "linux")]
        None => {
            let link = |to: &Path| {
                use rustix::fd::AsRawFd;
                let unnamed = format!("/proc/self/fd/{}", pending.file.as_raw_fd());
                fault::point("link").map_err(fail)?;
                let cwd = rustix::fs::CWD;
                rustix::fs::linkat(cwd, unnamed, cwd, to, rustix::fs::AtFlags::SYMLINK_FOLLOW)
                    .map_err(|errno| fail(errno.into()))
            };
            if !force || target.symlink_metadata().is_err() {
                return link(target);
            }
            // Linking never replaces: take a temporary name for the moment before the rename.
            let name = target
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let temporary = target.with_file_name(temporary_name(name));
            // Another run to the same target would take it for abandoned in this moment.
            hold(&pending.file);
            link(&temporary)?;
            rename(&temporary, target).map_err(|cause| {
                let _ = fs::remove_file(&temporary);
                fail(cause)
            })
        }
        #[cfg(not(target_os = "linux"))]
        None => Err(fail(io::ErrorKind::Unsupported.into())),
    }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fault::point("rename")?;
    fs::rename(from, to)
}

/// Renames to a name that nothing has.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            Err(Errno::INVAL | Errno::NOSYS) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    // Nothing had it a moment ago, and more cannot be known here.
    rename(from, to)
}

/// Whether a hard link failed because there are none.
fn has_no_links(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
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

fn sync_directory(directory: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        let fail = |cause| Error::io(format_args!("cannot sync {}", directory.display()), cause);
        let synced = fault::point("sync-directory")
            .and_then(|()| File::open(directory))
            .and_then(|directory| directory.sync_all());
        synced.map_err(fail)?;
    }
    #[cfg(not(unix))]
    let _ = directory;
    Ok(())
}

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;
