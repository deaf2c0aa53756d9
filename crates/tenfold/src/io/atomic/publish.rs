//! The step in which a file gets its name.

use std::fs;
use std::io;
use std::path::Path;

use super::{Pending, already_exists};
use crate::error::{Error, Hint, Result};
use crate::io::fault;

/// Gives a complete file its name, in one step.
pub(super) fn publish(pending: &Pending, target: &Path, force: bool) -> Result<()> {
    let fail = |cause: io::Error| match cause.kind() {
        io::ErrorKind::AlreadyExists => already_exists(target).hinting(Hint::Replace),
        _ => Error::io(format_args!("cannot name {}", target.display()), cause),
    };
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
            use super::temporary::{hold, temporary_name};
            let link = |to: &Path| {
                use rustix::fd::AsRawFd;
                let file = pending.file.as_ref();
                let file = file.ok_or_else(|| fail(io::ErrorKind::Unsupported.into()))?;
                let unnamed = alloc::format!("/proc/self/fd/{}", file.as_raw_fd());
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
            pending.file.as_ref().map(hold);
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

pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fault::point("rename")?;
    fs::rename(from, to)
}

/// Renames to a name that nothing has.
pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    fault::point("rename")?;
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
    fs::rename(from, to)
}

/// Renames a directory to the name of one that is empty. One that is not empty any more is never replaced.
pub(super) fn rename_over_empty(from: &Path, to: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        // What is not empty is not removed; what was removed is as good as new.
        fs::remove_dir(to)?;
        return rename_new(from, to);
    }
    rename(from, to)
}

/// Whether a hard link failed because there are none.
pub(super) fn has_no_links(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
    )
}

pub(in crate::io) fn sync_directory(directory: &Path, step: &'static str) -> Result<()> {
    #[cfg(unix)]
    {
        let fail = |cause| Error::io(format_args!("cannot sync {}", directory.display()), cause);
        let synced = fault::point(step)
            .and_then(|()| fs::File::open(directory))
            .and_then(|directory| directory.sync_all());
        synced.map_err(fail)?;
    }
    #[cfg(not(unix))]
    let _ = (directory, step);
    Ok(())
}
