//! Files that are written before they have their name.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::io::fault;
use crate::prelude::*;

pub(super) fn temporary_name(name: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!(
        ".{name}.{}-{}{SUFFIX}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

pub(super) const SUFFIX: &str = ".tenfold-partial";

/// Opens a file for what will be `directory/name`: without a name where the system can, else beside the target.
pub(super) fn open_temporary(directory: &Path, name: &str) -> Result<(File, Option<PathBuf>)> {
    remove_abandoned(directory, name);
    #[cfg(target_os = "linux")]
    if let Some(file) = open_unnamed(directory) {
        return Ok((file, None));
    }
    let (file, path) = open_named(directory, name)?;
    Ok((file, Some(path)))
}

/// A file under a temporary name beside its target.
pub(super) fn open_named(directory: &Path, name: &str) -> Result<(File, PathBuf)> {
    let path = directory.join(temporary_name(name));
    let opened = fault::point("create").and_then(|()| {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create_new(true).open(&path)
    });
    let file = opened
        .map_err(|cause| Error::io(format_args!("cannot create {}", path.display()), cause))?;
    // A run that cleaned up in the moment before it was held removes it, or has removed it.
    match hold(&file) && path.symlink_metadata().is_ok() {
        true => Ok((file, path)),
        false => open_named(directory, name),
    }
}

/// Says to a later run, until this process ends, that a file or directory is not abandoned. False if another run has it.
pub(super) fn hold(file: &File) -> bool {
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
pub(super) fn remove_abandoned(directory: &Path, name: &str) {
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
