//! Several files in the place of others: until the last of them has its name, what was there is kept.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::publish::{has_no_links, rename};
use super::temporary::{hold_with_others, temporary_name};
use crate::error::{Error, Result};
use crate::io::fault;
use crate::prelude::*;

/// The names that several files take one after the other, and what had them before.
#[derive(Debug, Default)]
pub(super) struct Replacement(Vec<Step>);

#[derive(Debug)]
struct Step {
    target: PathBuf,
    before: Before,
    /// The new file has the name.
    is_named: bool,
}

/// What is found under a name.
#[derive(Debug)]
enum Before {
    /// A file, which has this other name too.
    Kept {
        other: PathBuf,
        _lock: Option<File>,
    },
    /// A symbolic link to this.
    #[cfg(unix)]
    Link(PathBuf),
    /// A file that has got this other name instead, or will have before its own is needed: where there are no hard links.
    Moved {
        other: PathBuf,
        is_moved: bool,
    },
    Nothing,
}

impl Replacement {
    /// Looks at what is there, and keeps it. Without the last: its name is the last that is given, and when that fails
    /// nothing has happened to it.
    pub(super) fn prepare(&mut self, targets: &[PathBuf]) -> Result<()> {
        let others = targets.split_last().map_or(targets, |(_, others)| others);
        for target in others {
            self.0.push(Step {
                target: target.clone(),
                before: Before::keep(target)?,
                is_named: false,
            });
        }
        Ok(())
    }

    /// Gives the name in place `at` of those that were prepared to a new file, by `publish`.
    pub(super) fn replace(
        &mut self,
        at: usize,
        publish: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Some(step) = self.0.get_mut(at) else {
            return publish();
        };
        step.move_away()?;
        publish()?;
        step.is_named = true;
        Ok(())
    }

    /// Puts back what was there, and says in the error where that failed.
    pub(super) fn undo(&mut self, mut error: Error) -> Error {
        for step in self.0.drain(..).rev() {
            if step.undo().is_err() {
                let (target, now) = (step.target.display(), step.left());
                error = error.adding(&format!("; {target} could not be put back: {now}"));
            }
        }
        error
    }

    /// Removes what was kept. What cannot be removed, a later run removes.
    pub(super) fn finish(&mut self) {
        for step in self.0.drain(..) {
            if let Before::Kept { other, .. } | Before::Moved { other, .. } = step.before {
                let _ = fault::point("remove").and_then(|()| fs::remove_file(other));
            }
        }
    }
}

impl Step {
    fn move_away(&mut self) -> Result<()> {
        if let Before::Moved { other, is_moved } = &mut self.before {
            rename(&self.target, other).map_err(|cause| cannot_keep(&self.target, cause))?;
            *is_moved = true;
        }
        Ok(())
    }

    fn undo(&self) -> io::Result<()> {
        match &self.before {
            Before::Kept { other, .. } if self.is_named => put_back(other, &self.target),
            // It still has its own name.
            Before::Kept { other, .. } => fs::remove_file(other),
            Before::Moved { other, is_moved } if *is_moved => put_back(other, &self.target),
            #[cfg(unix)]
            Before::Link(to) if self.is_named => {
                fault::point("restore")?;
                fs::remove_file(&self.target)?;
                std::os::unix::fs::symlink(to, &self.target)
            }
            Before::Nothing if self.is_named => {
                fault::point("restore").and_then(|()| fs::remove_file(&self.target))
            }
            _ => Ok(()),
        }
    }

    /// Where what was there is, when it could not be put back.
    fn left(&self) -> String {
        match &self.before {
            Before::Kept { other, .. } | Before::Moved { other, .. } => {
                format!("what it was is in {}", other.display())
            }
            #[cfg(unix)]
            Before::Link(to) => format!("it was a link to {}", to.display()),
            Before::Nothing => "it is a new file".to_owned(),
        }
    }
}

impl Before {
    /// What is found under a name, with another name that it keeps.
    fn keep(target: &Path) -> Result<Self> {
        let Ok(found) = target.symlink_metadata() else {
            return Ok(Self::Nothing);
        };
        #[cfg(unix)]
        if found.is_symlink() {
            let to = fs::read_link(target).map_err(|cause| cannot_keep(target, cause))?;
            return Ok(Self::Link(to));
        }
        // Before it has the other name, by which a run that cleans up would take it for abandoned.
        let lock = if found.is_file() {
            File::open(target).ok().inspect(hold_with_others)
        } else {
            None
        };
        loop {
            let other = other_name(target);
            // On some systems a hard link to a symbolic one is one to what that points to.
            let linked = if found.is_file() {
                fault::point("link").and_then(|()| fs::hard_link(target, &other))
            } else {
                Err(io::ErrorKind::Unsupported.into())
            };
            match linked {
                Ok(()) => return Ok(Self::Kept { other, _lock: lock }),
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) if has_no_links(&cause) => {
                    let is_moved = false;
                    return Ok(Self::Moved { other, is_moved });
                }
                Err(cause) => return Err(cannot_keep(target, cause)),
            }
        }
    }
}

/// A temporary name beside a target, like that of a file that is written.
fn other_name(target: &Path) -> PathBuf {
    let name = target.file_name().and_then(|name| name.to_str());
    target.with_file_name(temporary_name(name.unwrap_or_default()))
}

fn put_back(other: &Path, target: &Path) -> io::Result<()> {
    fault::point("restore").and_then(|()| fs::rename(other, target))
}

fn cannot_keep(target: &Path, cause: io::Error) -> Error {
    let what = format_args!("cannot keep {} until it is replaced", target.display());
    Error::io(what, cause)
}
