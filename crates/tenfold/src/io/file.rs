//! Positioned reads of a local file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::tree::DEEPEST;
use crate::io::{Siblings, Source, Stamp, Tree, as_size, check_range, fault, in_place, too_long};
use crate::prelude::*;

/// A local file, read at any place. A file that becomes shorter meanwhile is an error, never a signal.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    len: u64,
    path: PathBuf,
}

impl FileSource {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let fail = |cause| Error::io(format_args!("cannot open {}", path.display()), cause);
        // Looked at before it is opened: opening a pipe waits until somebody writes to it.
        let metadata = fs::metadata(path).map_err(fail)?;
        if metadata.is_dir() {
            return Err(fail(std::io::ErrorKind::IsADirectory.into()));
        }
        if !metadata.is_file() {
            return Err(Error::argument(format!(
                "{} is not a regular file",
                path.display()
            )));
        }
        let file = File::open(path).map_err(fail)?;
        let len = file.metadata().map_err(fail)?.len();
        Ok(Self {
            file,
            len,
            path: path.to_owned(),
        })
    }

    /// A file that is already open; `path` is for messages.
    pub fn from_file(file: File, path: PathBuf) -> Result<Self> {
        let metadata = file
            .metadata()
            .map_err(|cause| Error::io(format_args!("cannot read {}", path.display()), cause))?;
        Ok(Self {
            file,
            len: metadata.len(),
            path,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        check_range(self.len, &range)?;
        let mut buffer = Aligned::zeros(range.end - range.start)?;
        self.read_into(range.start, buffer.as_mut())?;
        Ok(Bytes::from_owner(buffer))
    }

    fn read_into(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        let range = at..at.saturating_add(buffer.len() as u64);
        check_range(self.len, &range)?;
        let read = fault::point("read").and_then(|()| read_exact_at(&self.file, buffer, at));
        read.map_err(|cause| {
            if cause.kind() == std::io::ErrorKind::UnexpectedEof {
                let message = format!("{} shrank while it was being read", self.path.display());
                return Error::mismatch("changed", message).at(range).because(cause);
            }
            Error::io(format_args!("cannot read {}", self.path.display()), cause)
        })
    }

    fn stamp(&self) -> Option<Stamp> {
        let found = self.file.metadata().ok()?;
        Some(Stamp::of_file(&found))
    }

    fn as_file(&self) -> Option<&File> {
        Some(&self.file)
    }
}

/// Memory that begins where any number may, so that what is read into it can be used as numbers without a copy.
struct Aligned {
    words: Vec<u128>,
    len: usize,
}

impl Aligned {
    fn zeros(len: u64) -> Result<Self> {
        let words = as_size(len.div_ceil(16))?;
        let mut aligned = Self {
            words: Vec::new(),
            len: as_size(len)?,
        };
        let reserved = aligned.words.try_reserve_exact(words);
        reserved.map_err(|cause| too_long(len).because(cause))?;
        aligned.words.resize(words, 0);
        Ok(aligned)
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        let bytes: &[u8] = bytemuck::cast_slice(&self.words);
        bytes.get(..self.len).unwrap_or_default()
    }
}

impl AsMut<[u8]> for Aligned {
    fn as_mut(&mut self) -> &mut [u8] {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.words);
        bytes.get_mut(..self.len).unwrap_or_default()
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> std::io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !buffer.is_empty() {
        match file.seek_read(buffer, at) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                buffer = &mut buffer[n..];
                at += n as u64;
            }
            Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

/// A system without files, such as a browser: nothing could have been opened.
#[cfg(not(any(unix, windows)))]
fn read_exact_at(_: &File, _: &mut [u8], _: u64) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Writes all of `bytes` at a place of a file.
#[cfg(unix)]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    fault::point("write")?;
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

/// Writes all of `bytes` at a place of a file.
#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    fault::point("write")?;
    write_all_by(bytes, at, |bytes, at| {
        std::os::windows::fs::FileExt::seek_write(file, bytes, at)
    })
}

#[cfg(not(any(unix, windows)))]
pub(crate) fn write_all_at(_: &File, _: &[u8], _: u64) -> std::io::Result<()> {
    fault::point("write")?;
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Writes until nothing is left, with a function that may write less than it is given.
#[cfg(any(windows, test))]
fn write_all_by(
    mut bytes: &[u8],
    mut at: u64,
    mut write: impl FnMut(&[u8], u64) -> std::io::Result<usize>,
) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match write(bytes, at) {
            // To try again would go on for ever.
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = bytes.get(n..).unwrap_or_default();
                at += n as u64;
            }
            Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

/// The files of a directory, by plain names only.
#[derive(Clone, Debug)]
pub struct DirectorySiblings {
    directory: PathBuf,
    access: Access,
}

/// How files are read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Access {
    /// By positioned reads.
    #[default]
    Read,
    /// Through a mapping, where their length is one that memory can have: with 32 bits, up to 2 GiB.
    #[cfg(feature = "mmap")]
    Map(crate::io::Unchanged),
}

impl DirectorySiblings {
    /// The files beside `path`.
    pub fn of(path: impl AsRef<Path>) -> Self {
        Self::with(path.as_ref(), Access::Read)
    }

    pub(crate) fn with(path: &Path, access: Access) -> Self {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Self { directory, access }
    }

    /// The files in a directory.
    pub(crate) fn inside(directory: &Path, access: Access) -> Self {
        Self {
            directory: directory.to_owned(),
            access,
        }
    }
}

impl Siblings for DirectorySiblings {
    fn names(&self) -> Result<Option<Vec<String>>> {
        let fail = |cause| {
            Error::io(
                format_args!("cannot list {}", self.directory.display()),
                cause,
            )
        };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.directory).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let is_file = match entry.file_type() {
                Ok(kind) if kind.is_symlink() => entry.path().is_file(),
                kind => kind.is_ok_and(|kind| kind.is_file()),
            };
            // A name that is not Unicode cannot be meant by a file that names its siblings in UTF-8.
            if is_file && let Ok(name) = entry.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(Some(names))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Source>> {
        check_plain(name)?;
        open_source(&self.directory.join(name), self.access)
    }

    fn open_below(&self, path: &[&str]) -> Result<Arc<dyn Source>> {
        let mut full = self.directory.clone();
        for name in path {
            check_plain(name)?;
            full.push(name);
        }
        let real = |path: &Path| {
            let fail = |cause| Error::io(format_args!("cannot open {}", path.display()), cause);
            fs::canonicalize(path).map_err(fail)
        };
        // What the links lead to is opened, not the links, which could be changed meanwhile.
        let (root, full) = (real(&self.directory)?, real(&full)?);
        if !full.starts_with(&root) {
            let message = format!(
                "{:?} is a link that leads out of the directory",
                path.join("/")
            );
            return Err(Error::malformed("sibling", message));
        }
        open_source(&full, self.access)
    }

    fn len_below(&self, path: &[&str]) -> Result<u64> {
        let mut full = self.directory.clone();
        for name in path {
            check_plain(name)?;
            full.push(name);
        }
        let fail = |cause| Error::io(format_args!("cannot look at {}", full.display()), cause);
        let found = fs::symlink_metadata(&full).map_err(fail)?;
        if found.is_file() {
            return Ok(found.len());
        }
        // Opening a link says where it may not lead.
        Ok(self.open_below(path)?.len())
    }

    fn tree(&self) -> Result<Option<Tree>> {
        let mut tree = Tree::new(Arc::new(self.clone()));
        let mut open = vec![(self.directory.clone(), String::new())];
        while let Some((directory, prefix)) = open.pop() {
            let fail =
                |cause| Error::io(format_args!("cannot list {}", directory.display()), cause);
            for entry in fs::read_dir(&directory).map_err(fail)? {
                let entry = entry.map_err(fail)?;
                // A name that is not Unicode is none that a key could have.
                let Ok(name) = entry.file_name().into_string() else {
                    continue;
                };
                let kind = entry.file_type().map_err(fail)?;
                let key = format!("{prefix}{name}");
                if kind.is_dir() {
                    if key.split('/').count() < DEEPEST {
                        open.push((entry.path(), key + "/"));
                    } else {
                        // Says that it is too deep.
                        tree.push(&(key + "/"), None)?;
                    }
                } else if kind.is_file() || kind.is_symlink() && entry.path().is_file() {
                    tree.push(&key, None)?;
                } else if kind.is_symlink() {
                    tree.push_link(key);
                }
            }
        }
        Ok(Some(tree.sorted()))
    }

    fn directory_name(&self) -> Option<String> {
        let named = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        // The last of `.` and `..` is not a name.
        named(&self.directory).or_else(|| named(&fs::canonicalize(&self.directory).ok()?))
    }

    fn shared(&self) -> Option<Arc<dyn Siblings>> {
        // What is looked at later may have changed: it is read, never mapped.
        Some(Arc::new(Self::inside(&self.directory, Access::Read)))
    }
}

/// Refuses what is not the name of one file or directory.
pub(crate) fn check_plain(name: &str) -> Result<()> {
    let mut components = Path::new(name).components();
    let plain = matches!(components.next(), Some(std::path::Component::Normal(_)))
        && components.next().is_none()
        && !name.contains(['/', '\\', '\0']);
    if plain {
        return Ok(());
    }
    let message = format!("{name:?} is not the plain name of a file beside it");
    Err(Error::malformed("sibling", message))
}

/// Opens a file.
pub(crate) fn open_source(path: &Path, access: Access) -> Result<Arc<dyn Source>> {
    let file = match in_place::before(path, FileSource::open(path)?)? {
        in_place::Opened::AsIs(file) => file,
        in_place::Opened::Before(source) => return Ok(Arc::new(source)),
    };
    match access {
        #[cfg(feature = "mmap")]
        Access::Map(unchanged) if crate::io::as_size(file.len()).is_ok() => {
            Ok(Arc::new(crate::io::map_unchanged(file, unchanged)?))
        }
        _ => Ok(Arc::new(file)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn what_is_written_in_pieces_is_written_whole() {
        let mut file = vec![0; 8];
        let mut calls = 0;
        write_all_by(b"abcdef", 2, |bytes, at| {
            calls += 1;
            if calls == 2 {
                return Err(ErrorKind::Interrupted.into());
            }
            let n = bytes.len().min(4);
            let at = usize::try_from(at).unwrap();
            file[at..at + n].copy_from_slice(&bytes[..n]);
            Ok(n)
        })
        .unwrap();
        assert_eq!((file.as_slice(), calls), (&b"\0\0abcdef"[..], 3));
    }

    #[test]
    fn a_system_that_writes_nothing_is_an_error_and_not_asked_for_ever() {
        let mut calls = 0;
        let mut fail_with = |answer: fn() -> std::io::Result<usize>| {
            let failed = write_all_by(b"abc", 0, |_, _| {
                calls += 1;
                assert!(calls < 10, "asked again and again");
                answer()
            });
            failed.unwrap_err().kind()
        };
        assert_eq!(fail_with(|| Ok(0)), ErrorKind::WriteZero);
        let full = || Err(Error::from(ErrorKind::StorageFull));
        assert_eq!(fail_with(full), ErrorKind::StorageFull);
        assert_eq!(calls, 2);
    }
}
