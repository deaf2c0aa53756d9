//! What the pickles in a file would import, if somebody loaded them.
//!
//! Python's pickles are programs: loading one runs whatever it names. Here they are followed as data, with the machine that
//! reads PyTorch's files; nothing is imported, nothing is called, and what is found gets a verdict.

mod find;
mod follow;
mod packed;
mod tar;
mod verdict;
mod watched;

pub use verdict::Verdict;

use crate::error::{Error, Result};
use crate::io::{Limits, Source};
use crate::prelude::*;
use crate::threads::Work;

/// What was found in the pickles of a file.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Scan {
    /// The pickles, in the order of the file.
    pub pickles: Vec<ScannedPickle>,
    /// What could hide pickles and was not looked into, by the name of the member, and why.
    pub unread: Vec<(String, Error)>,
}

impl Scan {
    /// The worst of what was found: what could not be followed to its end is not known to be harmless.
    pub fn verdict(&self) -> Verdict {
        let pickles = self.pickles.iter().map(ScannedPickle::verdict);
        let unread = self.unread.iter().map(|_| Verdict::Unknown);
        pickles.chain(unread).max().unwrap_or(Verdict::Harmless)
    }
}

/// A pickle, and everything that it would import.
#[derive(Debug)]
#[non_exhaustive]
pub struct ScannedPickle {
    /// The member of the archive that it is in, or an empty text.
    pub member: String,
    /// Where it begins in its file or member.
    pub at: u64,
    /// What it would import, each once, in the order in which it would.
    pub imports: Vec<ScannedImport>,
    /// Why it could not be followed to its end: a damage, or a way to hide the rest. What lies behind that was searched for
    /// the names of classes and functions.
    pub fault: Option<Error>,
}

impl ScannedPickle {
    /// The worst of its imports.
    pub fn verdict(&self) -> Verdict {
        let imports = self.imports.iter().map(|import| import.verdict);
        let fault = self.fault.iter().map(|_| Verdict::Unknown);
        imports.chain(fault).max().unwrap_or(Verdict::Harmless)
    }
}

/// A class or function that a pickle would import.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScannedImport {
    /// The module.
    pub module: String,
    /// The name in it, which can have dots.
    pub name: String,
    /// What it is.
    pub verdict: Verdict,
    /// What it could do, where that is known: `runs commands`.
    pub could: Option<&'static str>,
    /// The opcode that imports it first.
    pub opcode: &'static str,
    /// The byte of that opcode in the pickle.
    pub at: u64,
    /// How often it is imported.
    pub times: u64,
}

/// How files are looked into.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    limits: Limits,
    work: Work,
}

impl ScanOptions {
    /// With the limits that every real file passes.
    pub fn new() -> Self {
        Self::default()
    }

    /// How much a file may ask for.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// A control, which counts the bytes that are read: mostly fewer than the file has. It is done on one thread.
    #[must_use]
    pub fn work(mut self, work: Work) -> Self {
        self.work = work;
        self
    }
}

/// Looks for pickles in a file of any kind: in zip and tar archives, gzip, PyTorch's streams, `.npy` arrays of objects,
/// joblib's files and plain pickles; `name` is the file's name. A file is looked at in every way in which somebody may load
/// it, and what begins like something that cannot be looked into is [told](Scan::unread).
///
/// ```
/// use tenfold::{Bytes, ops::{ScanOptions, Verdict, scan}};
/// let file = Bytes::from_static(b"cposix\nsystem\n(X\x04\0\0\0truetR.");
/// let found = scan(&file, Some("evil.pkl"), &ScanOptions::new())?;
/// assert_eq!(found.verdict(), Verdict::Dangerous);
/// assert_eq!(found.pickles[0].imports[0].name, "system");
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn scan(source: &dyn Source, name: Option<&str>, options: &ScanOptions) -> Result<Scan> {
    let control = &*options.work.control;
    let source = watched::Watched::new(source, control);
    let mut scan = Scan::default();
    let mut finder = find::Finder {
        scan: &mut scan,
        limits: &options.limits,
    };
    finder.file(&source, find::Place::file(name.unwrap_or_default()))?;
    // What could not be read because of it was noted as unread.
    control.check()?;
    Ok(scan)
}
