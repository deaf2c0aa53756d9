//! Files that are written before they have their name.

use alloc::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::io::fault;
use crate::prelude::*;

pub(super) fn temporary_name(name: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    numbered(
        name,
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed),
    )
}

fn numbered(name: &str, process: u32, count: u32) -> String {
    format!(".{}.{process}-{count}{SUFFIX}", shortened(name))
}

pub(super) const SUFFIX: &str = ".tenfold-partial";

/// Bytes of a name in a temporary one, which with two numbers of ten digits has at most 143: what the system with the shortest
/// names takes (eCryptfs; others take 255).
const LONGEST: usize = 104;

/// A name that leaves room for what a temporary one has around it. Of a long one it is the beginning, and a sum of all of it.
fn shortened(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST {
        return Cow::Borrowed(name);
    }
    // FNV-1a: two names with the same sum are told apart by nothing but the locks on their files, which is enough.
    let sum = name.bytes().fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let end = (0..=LONGEST - 17)
        .rev()
        .find(|&end| name.is_char_boundary(end));
    let start = name.get(..end.unwrap_or(0)).unwrap_or_default();
    Cow::Owned(format!("{start}~{sum:016x}"))
}

/// Opens a file for what will be `directory/name`: without a name where the system can, else beside the target.
/// What replaces something is for its owner alone (`private`) until it has the permissions of that.
pub(super) fn open_temporary(
    directory: &Path,
    name: &str,
    private: bool,
) -> Result<(File, Option<PathBuf>)> {
    #[cfg(target_os = "linux")]
    if let Some(file) = open_unnamed(directory, private) {
        return Ok((file, None));
    }
    let (file, path) = open_named(directory, name, private)?;
    Ok((file, Some(path)))
}

/// A file under a temporary name beside its target.
pub(super) fn open_named(directory: &Path, name: &str, private: bool) -> Result<(File, PathBuf)> {
    let create = |path: &Path| {
        let mut options = fs::OpenOptions::new();
        #[cfg(unix)]
        if private {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = private;
        options.read(true).write(true).create_new(true).open(path)
    };
    create_held(directory, name, create, hold)
}

/// A directory under a temporary name beside its target, and what holds it where directories can be held.
pub(super) fn create_staging(
    directory: &Path,
    name: &str,
    private: bool,
) -> Result<(Option<File>, PathBuf)> {
    let create = |path: &Path| {
        #[cfg_attr(not(unix), allow(unused_mut))]
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        if private {
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        }
        #[cfg(not(unix))]
        let _ = private;
        builder.create(path)?;
        Ok(File::open(path).ok())
    };
    create_held(directory, name, create, |lock| {
        lock.as_ref().is_none_or(hold)
    })
}

/// Creates something under a temporary name, until it is there and held.
fn create_held<T>(
    directory: &Path,
    name: &str,
    create: impl Fn(&Path) -> io::Result<T>,
    hold: impl Fn(&T) -> bool,
) -> Result<(T, PathBuf)> {
    loop {
        let path = directory.join(temporary_name(name));
        match fault::point("create").and_then(|()| create(&path)) {
            // A run that cleaned up in the moment before it was held removes it, or has removed it.
            Ok(created) => {
                if hold(&created) && path.symlink_metadata().is_ok() {
                    return Ok((created, path));
                }
            }
            // A process with the same number, in another container.
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
            Err(cause) => {
                let what = format_args!("cannot create {}", path.display());
                return Err(Error::io(what, cause));
            }
        }
    }
}

/// Says to a later run, until this process ends, that a file or directory is not abandoned. False if another run has it.
pub(in crate::io) fn hold(file: &File) -> bool {
    #[cfg(unix)]
    {
        use rustix::fs::{FlockOperation, flock};
        let held = flock(file, FlockOperation::NonBlockingLockExclusive);
        held != Err(rustix::io::Errno::WOULDBLOCK)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        true
    }
}

/// Says the same of a file that is not ours alone. Others may hold it too.
pub(super) fn hold_with_others(file: &File) {
    #[cfg(unix)]
    {
        use rustix::fs::{FlockOperation, flock};
        let _ = flock(file, FlockOperation::NonBlockingLockShared);
    }
    #[cfg(not(unix))]
    let _ = file;
}

/// The right to write the files of one output, as long as it lives.
///
/// It is a lock on a file whose name is a temporary one of the output, of a process that there is not: if the process is
/// killed, the lock is gone, and the file is removed like anything that is abandoned.
#[derive(Debug)]
pub(super) struct Claim {
    /// The output's name.
    name: String,
    #[cfg(unix)]
    path: PathBuf,
    #[cfg(unix)]
    _lock: File,
}

impl Claim {
    #[cfg(unix)]
    pub(super) fn take(directory: &Path, name: String) -> Result<Self> {
        use rustix::fs::{Mode, OFlags};
        use std::os::unix::fs::MetadataExt;
        let path = directory.join(numbered(&name, 0, 0));
        // Whatever else has the name is neither followed nor waited for.
        let flags = OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let identity = |found: fs::Metadata| (found.dev(), found.ino());
        loop {
            let opened = fault::point("create").and_then(|()| {
                let lock = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o666))?;
                Ok(File::from(lock))
            });
            let lock = opened.map_err(|cause| {
                let what = format_args!("cannot create {}", path.display());
                Error::io(what, cause)
            })?;
            if !hold(&lock) {
                let message = format!(
                    "another process is writing {} and the files that belong to it; try again when it is done",
                    directory.join(&name).display()
                );
                return Err(Error::new(crate::error::ErrorKind::Io, "busy", message));
            }
            // One that was done, or cleaned up, in the moment before it was held has removed it.
            let (held, there) = (lock.metadata(), path.symlink_metadata());
            if let (Ok(held), Ok(there)) = (held, there)
                && identity(held) == identity(there)
            {
                return Ok(Self {
                    name,
                    path,
                    _lock: lock,
                });
            }
        }
    }

    /// There is no lock here that ends with its process.
    #[cfg(not(unix))]
    pub(super) fn take(_: &Path, name: String) -> Result<Self> {
        Ok(Self { name })
    }

    pub(super) fn is_of(&self, name: &str) -> bool {
        self.name == name
    }
}

#[cfg(unix)]
impl Drop for Claim {
    fn drop(&mut self) {
        // Still held: who takes the name from now on takes a new file.
        let _ = fault::point("remove").and_then(|()| fs::remove_file(&self.path));
    }
}

/// A file without a name; `None` where the file system has none, or could not give it a name later.
#[cfg(target_os = "linux")]
fn open_unnamed(directory: &Path, private: bool) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    if !Path::new("/proc/self/fd").is_dir() {
        return None;
    }
    fault::point("unnamed").ok()?;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = if private { 0o600 } else { 0o666 };
    rustix::fs::open(directory, flags, Mode::from_raw_mode(mode))
        .ok()
        .map(File::from)
}

/// What runs that may have ended left in a directory: listed once, for all files of an output.
#[derive(Debug)]
pub(super) struct Leftovers(Vec<PathBuf>);

impl Leftovers {
    pub(super) fn list(directory: &Path) -> Self {
        // Without locks it is not known what is abandoned.
        if !cfg!(unix) {
            return Self(Vec::new());
        }
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let is_temporary = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            name.to_str().is_some_and(|name| name.ends_with(SUFFIX))
        };
        Self((entries.filter(is_temporary).map(|entry| entry.path())).collect())
    }

    /// Removes temporary files and directories of earlier runs to the same target that no process holds.
    pub(super) fn remove_abandoned(&self, name: &str) {
        for path in &self.0 {
            let found = path.file_name().and_then(|found| found.to_str());
            if found.is_some_and(|found| is_temporary_of(found, name)) {
                remove_if_abandoned(path);
            }
        }
    }
}

/// Whether a temporary name was made for a file called `name`.
fn is_temporary_of(found: &str, name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (found.strip_prefix('.'))
        .and_then(|rest| rest.strip_prefix(&*shortened(name)))
        .and_then(|rest| rest.strip_prefix('.'))
        .and_then(|rest| rest.strip_suffix(SUFFIX))
        .and_then(|numbers| numbers.split_once('-'))
        .is_some_and(|(process, count)| number(process) && number(count))
}

fn remove_if_abandoned(path: &Path) {
    #[cfg(unix)]
    {
        use rustix::fs::{FlockOperation, flock};
        let Ok(kind) = path.symlink_metadata().map(|found| found.file_type()) else {
            return;
        };
        // Anything else is not ours: a link leads elsewhere, and opening a pipe waits for somebody to write.
        if !kind.is_file() && !kind.is_dir() {
            return;
        }
        let Ok(file) = File::open(path) else {
            return;
        };
        // Where the system has no locks, nothing is known to be abandoned.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = if kind.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}
