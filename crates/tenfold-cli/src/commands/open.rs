//! How files are opened.

use std::path::Path;
#[cfg(unix)]
use std::sync::Arc;

use tenfold::format::Severity;
#[cfg(unix)]
use tenfold::io::FileSource;
use tenfold::io::Limits;
use tenfold::model::TensorInfo;
use tenfold::ops;
use tenfold::{Archive, Error, ErrorKind, OpenOptions, PassedOverFor};

use crate::Interrupts;
use crate::args::{AsNumbers, Opening, Reading};
use crate::failure::{Failure, Result};
use crate::hints;
use crate::output::{Clean, say, show_path};
use crate::urls::Urls;

/// What counts for everything that one run of the command does.
pub(crate) struct Session<'a> {
    /// How much a file may ask for, by `--limit`.
    pub(crate) limits: Limits,
    pub(crate) interrupts: &'a dyn Interrupts,
    /// What is at URLs.
    pub(crate) urls: Urls,
}

/// The limits with another one of this name.
fn limited(limits: Limits, name: &str, value: u64) -> Result<Limits> {
    let limits = limits.named(name, value).ok_or_else(|| {
        let known = "header_bytes, rank, depth, tensor_memory, dense_bytes, spool_bytes";
        Error::argument(format!(
            "there is no limit {name:?}; the limits are {known}"
        ))
    });
    Ok(limits?)
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        given: &[(String, u64)],
        urls: Urls,
        interrupts: &'a dyn Interrupts,
    ) -> Result<Self> {
        let mut limits = Limits::default();
        for (name, value) in given {
            limits = limited(limits, name, *value)?;
        }
        Ok(Self {
            limits,
            interrupts,
            urls,
        })
    }

    /// Opens a file as its options say. Without verification, what is wrong with it is said.
    pub(crate) fn open(&self, path: &Path, opening: &Opening) -> tenfold::Result<Archive> {
        let archive = self.open_silently(path, opening)?;
        say_passed_over(path, &archive);
        if opening.no_verify {
            say_warnings(path, &archive);
        }
        Ok(archive)
    }

    /// Opens a file as its options say.
    pub(crate) fn open_silently(&self, path: &Path, opening: &Opening) -> tenfold::Result<Archive> {
        self.open_with(path, &self.options(opening))
    }

    /// Opens a file without any option.
    pub(crate) fn open_plainly(&self, path: &Path) -> tenfold::Result<Archive> {
        self.open_with(path, &OpenOptions::new().limits(self.limits))
    }

    /// The tensors for which `keep` is true, and quantized ones as numbers where that was asked for. What is quantized
    /// together is one tensor before any is left out.
    pub(crate) fn selected(
        archive: Archive,
        numbers: &AsNumbers,
        keep: impl Fn(&TensorInfo) -> bool,
    ) -> tenfold::Result<Archive> {
        if numbers.dequantize {
            ops::dequantize(&ops::quantized(&archive)?.archive.select(keep))
        } else {
            Ok(archive.select(keep))
        }
    }

    /// Opens a file whose checksums count.
    pub(crate) fn open_verified(&self, path: &Path, reading: &Reading) -> tenfold::Result<Archive> {
        let archive = self.open_with(path, &self.reading(reading))?;
        say_passed_over(path, &archive);
        Ok(archive)
    }

    /// How a file is opened.
    pub(crate) fn options(&self, opening: &Opening) -> OpenOptions {
        self.reading(&opening.reading).checksums(!opening.no_verify)
    }

    /// How a file is opened to be written to another one, whose format may be meant by an option too.
    pub(crate) fn input_options(&self, opening: &Opening) -> OpenOptions {
        self.plain(&opening.reading)
            .options(opening.reading.reading_options())
            .checksums(!opening.no_verify)
    }

    /// Positioned reads: a file that shrinks meanwhile is an error, never a signal.
    fn reading(&self, reading: &Reading) -> OpenOptions {
        self.plain(reading).options(reading.options.clone())
    }

    /// Opens what a path or a URL stands for.
    pub(crate) fn open_with(&self, path: &Path, options: &OpenOptions) -> tenfold::Result<Archive> {
        if is_stream(path) {
            return open_stdin(options);
        }
        if let Some(archive) = self.urls.open(path, options)? {
            return Ok(archive);
        }
        refuse_pattern(path)?;
        options.open(path)
    }

    /// All of a small file, on this machine or behind a URL.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let read = || match self.urls.source(path)? {
            Some(source) => Ok(source.read(0..source.len())?.into()),
            None => std::fs::read(path).map_err(|cause| {
                let what = format_args!("cannot read {}", show_path(path));
                Error::io(what, cause)
            }),
        };
        read().map_err(|error| Failure::about(path, &error))
    }

    fn plain(&self, reading: &Reading) -> OpenOptions {
        OpenOptions::new()
            .limits(self.limits)
            .format(reading.from.as_deref())
            .assume_dtype(reading.assume)
            .opaque(reading.opaque)
    }
}

/// Whether it is standard input or output; a file of that name is `./-`.
pub(crate) fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads standard input: at any place where it is a file, else after all of it was kept.
fn open_stdin(options: &OpenOptions) -> tenfold::Result<Archive> {
    #[cfg(unix)]
    {
        use std::io::Seek;
        use std::os::fd::AsFd;
        if let Ok(handle) = std::io::stdin().as_fd().try_clone_to_owned() {
            let mut file = std::fs::File::from(handle);
            let is_file = file.metadata().is_ok_and(|found| found.is_file());
            // Somebody may have read the beginning of it already.
            if is_file && file.stream_position().is_ok_and(|at| at == 0) {
                let source = FileSource::from_file(file, "standard input".into())?;
                return options.read(Arc::new(source), None);
            }
        }
    }
    options.read_stream(&mut std::io::stdin().lock())
}

/// Says which files of a directory are not read although they hold tensors, or could.
pub(crate) fn say_passed_over(path: &Path, archive: &Archive) {
    const SHOWN: usize = 3;
    let reasons = [
        (PassedOverFor::AnotherSet, "other weights"),
        (PassedOverFor::Incomplete, "some of its files are missing"),
        (PassedOverFor::TrainingState, "training state"),
        (PassedOverFor::Unreadable, "not readable"),
    ];
    let mut words = Vec::new();
    for (why, reason) in reasons {
        let passed = archive.passed_over().iter();
        let names: Vec<_> = passed
            .filter(|file| file.why == why)
            .map(|file| file.name.as_str())
            .collect();
        let more = match names.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if !names.is_empty() {
            let shown: Vec<_> = names.into_iter().take(SHOWN).collect();
            words.push(format!("{}{more} ({reason})", shown.join(", ")));
        }
    }
    if !words.is_empty() {
        let read = match archive.sources().next() {
            Some((Some(name), _)) => format!("reading {name}, "),
            _ => String::new(),
        };
        let (path, words) = (show_path(path), words.join(", "));
        say(format_args!("{path}: {read}ignoring {}", Clean(&words)));
    }
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

/// Says of a pattern that it is not one of ours, where no file is called so.
fn refuse_pattern(path: &Path) -> tenfold::Result<()> {
    let shown = path.to_string_lossy();
    if !shown.contains(['*', '?', '[']) || path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let message = format!(
        "there is no file {shown}; the shell expands a pattern only if it is not quoted and some file matches"
    );
    Err(Error::new(ErrorKind::NotFound, "io", message))
}
