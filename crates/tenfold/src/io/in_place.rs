//! Edits of a file in its own place, with a journal beside it until they are done.
//!
//! The journal, `.NAME.tenfold-undo`, holds the bytes that are about to be overwritten, those that will be there, and the
//! length of the file. It is complete, and on the disk, before the first byte of the file changes, and it is removed when
//! the last one has. So whoever finds a journal knows what happened:
//!
//! - It is not complete: nothing was changed.
//! - The file holds what it was to hold: everything was changed, and the journal was about to be removed.
//! - The file holds some of both: the edit was interrupted. Readers see the file as it was ([`before`]), and the next
//!   edit puts it back first.
//! - The file holds something else: it was replaced since, and the journal is about another one.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::digest::Hasher;
use crate::error::{Error, Result};
use crate::io::atomic::{hold, sync_directory};
use crate::io::patched::{Patch, Patched};
use crate::io::{FileSource, Reader, Source, fault, read_exactly, write_all_at};
use crate::model::DigestKind;
use crate::prelude::*;

const MAGIC: &[u8; 16] = b"tenfold undo 1\r\n";
const SUFFIX: &str = ".tenfold-undo";
/// Bytes that edits may add to a file, at most.
const LONGEST_ADDED: u64 = 256 << 20;
const RULE: &str = "file.journal";

/// What an edit changes.
struct Journal {
    /// The length of the file before.
    len: u64,
    /// What was there, and what will be, at the same places.
    before: Vec<Patch>,
    after: Vec<Patch>,
}

/// What a file holds, beside a complete journal.
#[derive(Debug, Eq, PartialEq)]
enum State {
    /// What it held before, or some of that: the edit was interrupted.
    Interrupted,
    /// What it was to hold.
    Done,
    /// Something else: the journal is of another file.
    Other,
}

/// A file that is being edited in its own place, and that nobody else edits meanwhile.
pub(crate) struct InPlace {
    file: File,
    path: PathBuf,
    journal: File,
    journal_path: PathBuf,
    sync: bool,
    /// The journal is needed: the file may hold some of both.
    torn: bool,
}

impl InPlace {
    /// Takes a file to edit it. What an earlier edit left is put right first.
    pub(crate) fn begin(path: &Path, sync: bool) -> Result<Self> {
        refuse(path)?;
        let fail = |what: &str, path: &Path, cause| {
            Error::io(format_args!("cannot {what} {}", path.display()), cause)
        };
        let file = fs::OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|cause| fail("open for writing", path, cause))?;
        let journal_path = journal_of(path);
        let journal = take(&journal_path).map_err(|cause| match cause.kind() {
            std::io::ErrorKind::WouldBlock => {
                Error::argument(format!("another process is editing {}", path.display()))
            }
            _ => fail("create", &journal_path, cause),
        })?;
        let mut this = Self {
            file,
            path: path.to_owned(),
            journal,
            journal_path,
            sync,
            torn: false,
        };
        this.recover()?;
        Ok(this)
    }

    /// The file as it is.
    pub(crate) fn source(&self) -> Result<Arc<dyn Source>> {
        let file = self.file.try_clone();
        let file = file.map_err(|cause| self.failed("open", cause))?;
        Ok(Arc::new(FileSource::from_file(file, self.path.clone())?))
    }

    /// Writes the patches, all of them or, after whatever happens, none. The file never gets shorter.
    pub(crate) fn write(mut self, patches: Vec<Patch>) -> Result<()> {
        let source = self.source()?;
        let len = source.len();
        let mut before = Vec::new();
        for patch in &patches {
            let there = patch.at.min(len)..patch.end().min(len);
            let bytes = read_exactly(&*source, there.clone())?;
            before.push(Patch::new(there.start, bytes.to_vec()));
        }
        let journal = Journal {
            len,
            before,
            after: patches,
        };
        let written = self.write_journal(&journal).and_then(|()| {
            self.torn = true;
            self.apply("edit", &journal.after)
        });
        match written {
            Ok(()) => {
                self.torn = false;
                Ok(())
            }
            // As it was, as far as that can be done; the journal stays where it cannot.
            Err(error) => {
                if self.torn && self.undo(&journal).is_ok() {
                    self.torn = false;
                }
                Err(error)
            }
        }
    }

    fn recover(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        let read = self.journal.seek(SeekFrom::Start(0));
        let read = read.and_then(|_| self.journal.read_to_end(&mut bytes));
        read.map_err(|cause| self.failed("read the journal of", cause))?;
        let Some(journal) = Journal::parse(bytes.into()) else {
            return Ok(());
        };
        if journal.state(&*self.source()?)? == State::Interrupted {
            self.torn = true;
            self.undo(&journal)?;
            self.torn = false;
        }
        Ok(())
    }

    /// Puts back what was there.
    fn undo(&self, journal: &Journal) -> Result<()> {
        // What was added is not part of the file as it was.
        let cut = fault::point("undo").and_then(|()| {
            if self.file.metadata()?.len() > journal.len {
                self.file.set_len(journal.len)
            } else {
                Ok(())
            }
        });
        cut.map_err(|cause| self.failed("restore", cause))?;
        self.apply("undo-write", &journal.before)
    }

    fn apply(&self, point: &'static str, patches: &[Patch]) -> Result<()> {
        let write = || {
            for patch in patches {
                fault::point(point)?;
                write_all_at(&self.file, &patch.bytes, patch.at)?;
            }
            fault::point(point)?;
            if self.sync {
                self.file.sync_all()
            } else {
                Ok(())
            }
        };
        write().map_err(|cause| self.failed("write", cause))
    }

    fn write_journal(&mut self, journal: &Journal) -> Result<()> {
        let bytes = journal.encode();
        let sync = self.sync;
        let file = &mut self.journal;
        let mut write = || {
            fault::point("journal")?;
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&bytes)?;
            fault::point("journal-sync")?;
            if sync { file.sync_all() } else { Ok(()) }
        };
        let written = write();
        written.map_err(|cause| self.failed("write the journal of", cause))?;
        // The journal must be found after a power failure, too.
        self.sync_directory()
    }

    fn sync_directory(&self) -> Result<()> {
        if !self.sync {
            return Ok(());
        }
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        sync_directory(directory, "sync-directory")
    }

    fn failed(&self, what: &str, cause: std::io::Error) -> Error {
        Error::io(format_args!("cannot {what} {}", self.path.display()), cause)
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        if !self.torn {
            // While it is locked: nobody else has begun to use it.
            let _ = fs::remove_file(&self.journal_path);
            let _ = self.sync_directory();
        }
    }
}

/// Opens a journal, or makes it, and locks it.
fn take(path: &Path) -> std::io::Result<File> {
    loop {
        fault::point("journal-create")?;
        let mut options = fs::OpenOptions::new();
        let journal = (options.read(true).write(true).create(true).truncate(false)).open(path)?;
        if !hold(&journal) {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        // Whoever held it before may have removed it in between.
        if is_at(&journal, path) {
            return Ok(journal);
        }
    }
}

/// Whether a path still leads to a file that was opened by it.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let which = |found: fs::Metadata| (found.dev(), found.ino());
    let (opened, there) = (file.metadata().map(which), path.metadata().map(which));
    opened.is_ok_and(|opened| there.is_ok_and(|there| opened == there))
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Files whose bytes somebody else relies on, or that may not be written.
fn refuse(path: &Path) -> Result<()> {
    let shown = path.display();
    let found = path.symlink_metadata();
    let found = found.map_err(|cause| Error::io(format_args!("cannot open {shown}"), cause))?;
    let why = if found.is_symlink() {
        "it is a link, and other links may lead to the same file"
    } else if !found.is_file() {
        "it is not a file"
    } else if found.permissions().readonly() {
        "it is read-only"
    } else if links(&found) > 1 {
        "it has several names (hard links) and would change under all of them"
    } else {
        return Ok(());
    };
    let message = format!("cannot edit {shown} in place: {why}");
    Err(Error::argument(message))
}

#[cfg(unix)]
fn links(found: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(found)
}

/// Where the system does not say, there is one.
#[cfg(not(unix))]
fn links(_: &fs::Metadata) -> u64 {
    1
}

/// The journal of a file, beside it.
fn journal_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{SUFFIX}"))
}

/// The file as it was before an edit that was interrupted; the file itself where there was none.
pub(super) fn before(path: &Path, file: FileSource) -> Result<Opened> {
    // Edited through a link, the journal is beside the file.
    let target;
    let path = if path.is_symlink() {
        target = path.canonicalize();
        target.as_deref().unwrap_or(path)
    } else {
        path
    };
    // What it holds is in the file too, or was to be: headers, once or twice.
    let longest = file.len().saturating_mul(2).saturating_add(LONGEST_ADDED);
    let journal = journal_of(path);
    let is_journal = |found: fs::Metadata| found.is_file() && found.len() <= longest;
    if !journal.metadata().is_ok_and(is_journal) {
        return Ok(Opened::AsIs(file));
    }
    let Ok(bytes) = fs::read(&journal) else {
        return Ok(Opened::AsIs(file));
    };
    let Some(journal) = Journal::parse(bytes.into()) else {
        return Ok(Opened::AsIs(file));
    };
    if journal.state(&file)? == State::Interrupted {
        let Journal { len, before, .. } = journal;
        let source = Patched::new(Arc::new(file), before, len);
        return Ok(Opened::Before(source));
    }
    Ok(Opened::AsIs(file))
}

/// A file that may have been edited.
pub(super) enum Opened {
    AsIs(FileSource),
    Before(Patched),
}

/// Removes what an interrupted edit left beside a file that was replaced since.
pub(super) fn forget(path: &Path) {
    let journal = journal_of(path);
    if let Ok(file) = File::open(&journal)
        && hold(&file)
    {
        // It is about another file now, which is seen by its content too.
        let _ = fs::remove_file(&journal);
    }
}

impl Journal {
    /// The magic, the length of the file, the number of patches; each with its place, what was there and what will be,
    /// after their lengths; a CRC-32C of all that.
    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(self.len.to_le_bytes());
        out.extend((self.after.len() as u64).to_le_bytes());
        for (before, after) in self.before.iter().zip(&self.after) {
            out.extend(after.at.to_le_bytes());
            for bytes in [&before.bytes, &after.bytes] {
                out.extend((bytes.len() as u64).to_le_bytes());
                out.extend_from_slice(bytes);
            }
        }
        let sum = crc(&out);
        out.extend(sum);
        out
    }

    /// A journal that is complete.
    fn parse(bytes: Bytes) -> Option<Self> {
        let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        if crc(body) != *sum || !body.starts_with(MAGIC) {
            return None;
        }
        Self::parse_body(&bytes.slice(..body.len())).ok()
    }

    fn parse_body(body: &Bytes) -> Result<Self> {
        let mut r = Reader::new(body, RULE);
        r.skip(MAGIC.len() as u64, "magic")?;
        let len = r.u64("length")?;
        let count = r.u64("patches")?;
        let mut journal = Self {
            len,
            before: Vec::new(),
            after: Vec::new(),
        };
        for _ in 0..r.count(count, 24, "patches")? {
            let at = r.u64("place")?;
            for patches in [&mut journal.before, &mut journal.after] {
                let len = r.u64("length")?;
                let bytes = r.take(len, "bytes")?.to_vec();
                patches.push(Patch::new(at, bytes));
            }
        }
        Ok(journal)
    }

    /// What the file holds at the places of the patches. What was being written may have been torn anywhere.
    fn state(&self, file: &dyn Source) -> Result<State> {
        let longest = self.after.iter().map(Patch::end).fold(self.len, u64::max);
        if file.len() < self.len || file.len() > longest {
            return Ok(State::Other);
        }
        let mut done = file.len() == longest;
        for (before, after) in self.before.iter().zip(&self.after) {
            let there = after.at.min(file.len())..after.end().min(file.len());
            let found = file.read(there)?;
            done &= found == after.bytes;
            let known = found.iter().enumerate().all(|(place, byte)| {
                // Behind the old end, what was not written yet is 0.
                let old = before.bytes.get(place).unwrap_or(&0);
                byte == old || after.bytes.get(place) == Some(byte)
            });
            if !known {
                return Ok(State::Other);
            }
        }
        Ok(if done {
            State::Done
        } else {
            State::Interrupted
        })
    }
}

fn crc(bytes: &[u8]) -> [u8; 4] {
    let mut sum = [0; 4];
    if let Some(mut hasher) = Hasher::new(DigestKind::Crc32c) {
        hasher.update(bytes);
        for (to, from) in sum.iter_mut().zip(hasher.finish().iter()) {
            *to = *from;
        }
    }
    sum
}

#[cfg(test)]
mod tests;
