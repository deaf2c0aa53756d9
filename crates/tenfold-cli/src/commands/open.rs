//! How files are opened.

use std::path::Path;

use tenfold::format::Severity;
use tenfold::io::Limits;
use tenfold::{Archive, Error, ErrorKind, OpenOptions};

use crate::Interrupts;
use crate::args::{Opening, Reading};
use crate::failure::Result;
use crate::hints;
use crate::output::{say, show_path};

/// What counts for everything that one run of the command does.
pub(crate) struct Session<'a> {
    /// How much a file may ask for, by `--limit`.
    pub(crate) limits: Limits,
    pub(crate) interrupts: &'a dyn Interrupts,
}

/// The limits with another one of this name.
fn limited(limits: Limits, name: &str, value: u64) -> Result<Limits> {
    let size = usize::try_from(value).unwrap_or(usize::MAX);
    Ok(match name {
        "header_bytes" => limits.header_bytes(value),
        "rank" => limits.rank(size),
        "depth" => limits.depth(size),
        "tensor_memory" => limits.tensor_memory(value),
        "dense_bytes" => limits.dense_bytes(value),
        _ => {
            let known = "header_bytes, rank, depth, tensor_memory, dense_bytes";
            let message = format!("there is no limit {name:?}; there are {known}");
            return Err(Error::argument(message).into());
        }
    })
}

impl<'a> Session<'a> {
    pub(crate) fn new(given: &[(String, u64)], interrupts: &'a dyn Interrupts) -> Result<Self> {
        let mut limits = Limits::default();
        for (name, value) in given {
            limits = limited(limits, name, *value)?;
        }
        Ok(Self { limits, interrupts })
    }

    /// Opens a file as its options say. Without verification, what is wrong with it is said.
    pub(crate) fn open(&self, path: &Path, opening: &Opening) -> tenfold::Result<Archive> {
        let archive = self.open_silently(path, opening)?;
        if opening.no_verify {
            say_warnings(path, &archive);
        }
        Ok(archive)
    }

    /// Opens a file as its options say.
    pub(crate) fn open_silently(&self, path: &Path, opening: &Opening) -> tenfold::Result<Archive> {
        open_with(path, &self.options(opening))
    }

    /// Opens a file whose checksums count.
    pub(crate) fn open_verified(&self, path: &Path, reading: &Reading) -> tenfold::Result<Archive> {
        open_with(path, &self.reading(reading))
    }

    /// How a file is opened.
    pub(crate) fn options(&self, opening: &Opening) -> OpenOptions {
        self.reading(&opening.reading).checksums(!opening.no_verify)
    }

    /// Positioned reads: a file that shrinks meanwhile is an error, never a signal.
    fn reading(&self, reading: &Reading) -> OpenOptions {
        OpenOptions::new()
            .limits(self.limits)
            .format(reading.from.as_deref())
            .assume_dtype(reading.assume)
            .opaque(reading.opaque)
    }
}

/// Opens a file.
pub(crate) fn open_with(path: &Path, options: &OpenOptions) -> tenfold::Result<Archive> {
    refuse_no_file(path)?;
    refuse_pattern(path)?;
    options.open(path)
}

/// Says what was noticed when a file was opened.
pub(crate) fn say_warnings(path: &Path, archive: &Archive) {
    let path = show_path(path);
    for finding in archive.findings() {
        if finding.severity > Severity::Note {
            say(format_args!("{path}: warning: {}", hints::finding(finding)));
        }
    }
}

/// Says of `-` that streams are neither read nor written (a file of that name is `./-`), and of addresses and patterns
/// that they are no files.
pub(crate) fn refuse_no_file(path: &Path) -> tenfold::Result<()> {
    if path == Path::new("-") {
        return Err(Error::argument(
            "standard input and output (-) are not supported: name a file; ./- is a file named -",
        ));
    }
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let shown = path.to_string_lossy();
    let is_scheme =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric());
    if shown
        .split_once("://")
        .is_some_and(|(scheme, _)| is_scheme(scheme))
    {
        let message = format!(
            "{shown} is an address, and only files are read and written: download it first"
        );
        return Err(Error::argument(message));
    }
    Ok(())
}

/// Says of a pattern that it is none of ours, where no file is called so.
fn refuse_pattern(path: &Path) -> tenfold::Result<()> {
    let shown = path.to_string_lossy();
    if !shown.contains(['*', '?', '[']) || path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let message = format!(
        "there is no file {shown}: a pattern is replaced by the shell, where files match it and it is not in quotes"
    );
    Err(Error::new(ErrorKind::NotFound, "io", message))
}
