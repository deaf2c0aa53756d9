//! What describing a file may use, and what it may report.

use alloc::borrow::Cow;
use core::fmt;

use super::{Head, options, stem};
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::io::{Limits, Siblings, Source, Tree};
use crate::model::{DType, SourceId};
use crate::prelude::*;

/// Something worth telling about a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What kind of thing it is, as for an error: a broken rule, facts that contradict each other, a missing file.
    /// Means nothing for a note.
    pub kind: ErrorKind,
    /// The rule it is about, `format.topic`.
    pub rule: String,
    /// The tensor it is about.
    pub tensor: Option<String>,
    /// The file and the bytes in it.
    pub at: Option<(SourceId, Range<u64>)>,
    /// What was found and what was expected.
    pub message: String,
    /// What would help; any one of them is enough.
    pub hints: Vec<Hint>,
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Severity {
    /// Nothing is wrong: what was checked, and how.
    Note,
    /// A deviation that readers tolerate.
    Warning,
    /// The file, or a tensor of it, is not sound.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

impl Finding {
    /// Something about a file as a whole.
    pub fn new(severity: Severity, rule: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity,
            kind: ErrorKind::Unsupported,
            rule: rule.to_owned(),
            tensor: None,
            at: None,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// Adds something that would help.
    #[must_use]
    pub fn hinting(mut self, hint: Hint) -> Self {
        self.hints.push(hint);
        self
    }
}

impl From<&Error> for Finding {
    fn from(error: &Error) -> Self {
        Self {
            severity: Severity::Error,
            kind: error.kind(),
            rule: error.rule().to_owned(),
            tensor: error.tensor().map(ToOwned::to_owned),
            at: error.range(),
            message: error.message().to_owned(),
            hints: error.hints().to_vec(),
        }
    }
}

/// A file that was opened, and its name without the directory.
type NamedSource = (Option<String>, Arc<dyn Source>);

/// How a file is to be described, besides how much it may ask for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DescribeOptions {
    /// Whether deviations that real readers tolerate are errors.
    pub strict: bool,
    /// Whether checksums must match.
    pub checksums: bool,
    /// Whether what is whole in a damaged file is wanted.
    pub salvage: bool,
    /// Whether objects of unknown classes are read as records of what they hold.
    pub opaque: bool,
    /// The type to assume where the file has bytes without one.
    pub assumed_dtype: Option<DType>,
    /// The format's own options, checked against its [table](crate::format::Format::reading_options).
    pub options: Vec<(String, String)>,
}

impl Default for DescribeOptions {
    fn default() -> Self {
        Self {
            strict: false,
            checksums: true,
            salvage: false,
            opaque: false,
            assumed_dtype: None,
            options: Vec::new(),
        }
    }
}

/// What describing a file may use, and nothing else: its bytes, its name, the files beside it, limits.
#[derive(Debug)]
pub struct Context<'a> {
    sources: Vec<NamedSource>,
    main: &'a dyn Source,
    name: Option<&'a str>,
    siblings: Option<&'a dyn Siblings>,
    /// The files that it was asked to list.
    tree: Option<Arc<Tree>>,
    limits: &'a Limits,
    how: &'a DescribeOptions,
    findings: Vec<Finding>,
    /// Findings that were too many to be kept.
    unlisted: u64,
}

/// Findings that are kept: a file may give reason for one with every other byte.
const MAX_FINDINGS: usize = 4096;

impl<'a> Context<'a> {
    /// A context for one file.
    pub fn new(
        main: &'a Arc<dyn Source>,
        name: Option<&'a str>,
        limits: &'a Limits,
        how: &'a DescribeOptions,
    ) -> Self {
        Self {
            sources: vec![(name.map(ToOwned::to_owned), main.clone())],
            main: &**main,
            name,
            siblings: None,
            tree: None,
            limits,
            how,
            findings: Vec::new(),
            unlisted: 0,
        }
    }

    /// Lets it read the file through what is known of it already.
    #[must_use]
    pub fn reading(mut self, head: &'a Head<'a>) -> Self {
        self.main = head;
        self
    }

    /// Lets it see the files beside the one that is opened.
    #[must_use]
    pub fn with_siblings(mut self, siblings: Option<&'a dyn Siblings>) -> Self {
        self.siblings = siblings;
        self
    }

    /// The value of one of the format's own options; the last one given counts.
    pub fn option(&self, key: &str) -> Option<&'a str> {
        options::find(&self.how.options, key)
    }

    /// An option of the format that is on or off.
    pub fn flag(&self, key: &str) -> Result<bool> {
        options::flag(&self.how.options, key)
    }

    /// The type to assume where the file has bytes without one.
    pub fn assumed_dtype(&self) -> Option<DType> {
        self.how.assumed_dtype
    }

    /// The file that is opened.
    pub fn source(&self) -> &'a dyn Source {
        self.main
    }

    /// The file's name without its directory, if it has one.
    pub fn name(&self) -> Option<&'a str> {
        self.name
    }

    /// The name of a tensor that has none of its own: the file's name without its extension, and with `%` and two
    /// hexadecimal digits read as the byte that they stand for, as they are written where a file system cannot have the
    /// name itself.
    pub fn tensor_name(&self) -> Cow<'a, str> {
        stem::decode(self.stem())
    }

    /// The file's name without its extension, which the names of files beside it may begin with.
    pub fn stem(&self) -> &'a str {
        match self
            .name
            .map(|name| name.rsplit_once('.').map_or(name, |(stem, _)| stem))
        {
            Some(stem) if !stem.is_empty() => stem,
            _ => "value",
        }
    }

    /// How much the file may ask for.
    pub fn limits(&self) -> &'a Limits {
        self.limits
    }

    /// Whether checksums count. Where they do not, [`mismatch`](Self::mismatch) is a warning, and one that cannot be
    /// understood keeps nothing from being read.
    pub fn checks_checksums(&self) -> bool {
        self.how.checksums
    }

    /// Whether a format that can should give the tensors before a damage, with a warning, instead of its error.
    pub fn salvages(&self) -> bool {
        self.how.salvage
    }

    /// Whether objects of classes that are not known are records of what they hold, instead of a reason to refuse the file.
    pub fn is_opaque(&self) -> bool {
        self.how.opaque
    }

    /// Whether there may be files beside it.
    pub fn has_siblings(&self) -> bool {
        self.siblings.is_some()
    }

    /// The names of the files beside it; none where there is no directory, or one that cannot be listed.
    pub fn siblings(&self) -> Result<Vec<String>> {
        let names = self.siblings.map(Siblings::names).transpose()?;
        Ok(names.flatten().unwrap_or_default())
    }

    /// Opens files beside it that will be asked for by [`sibling`](Self::sibling), all at once where that is faster. One
    /// that cannot be opened fails when it is asked for.
    pub fn expect_siblings(&mut self, names: &[&str]) {
        let Some(siblings) = self.siblings else {
            return;
        };
        let is_new = |name: &&&str| {
            let mut known = self.sources.iter();
            !known.any(|(known, _)| known.as_deref() == Some(**name))
        };
        let names: Vec<&str> = names.iter().filter(is_new).copied().collect();
        let opened = siblings.open_all(&names);
        for (name, source) in names.into_iter().zip(opened) {
            if let Ok(source) = source {
                self.sources.push((Some(name.to_owned()), source));
            }
        }
    }

    /// Opens a file beside it, once. Never reaches out of the directory.
    pub fn sibling(&mut self, name: &str) -> Result<SourceId> {
        if let Some(index) = self
            .sources
            .iter()
            .position(|(known, _)| known.as_deref() == Some(name))
        {
            return Ok(source_id(index));
        }
        let source = self.beside(name)?.open(name)?;
        Ok(self.opened(name, source))
    }

    /// Opens a file in a directory below, by the plain names on the way to it, or one beside it. Links do not lead out of
    /// the directory of the file that was opened. The same file is opened each time it is asked for.
    pub fn below(&mut self, path: &[&str]) -> Result<SourceId> {
        let name = path.join("/");
        let source = self.beside(&name)?.open_below(path)?;
        Ok(self.opened(&name, source))
    }

    /// The files beside it and in the directories below, listed now, of which the archive consists; `None` where they
    /// cannot be listed.
    pub fn tree(&mut self) -> Result<Option<Arc<Tree>>> {
        let tree = self.siblings.map(Siblings::tree).transpose()?;
        self.tree = tree.flatten().map(Arc::new);
        Ok(self.tree.clone())
    }

    /// What the directory is called that it lies in, where that is known.
    pub fn directory_name(&self) -> Option<String> {
        self.siblings.and_then(Siblings::directory_name)
    }

    fn beside(&self, name: &str) -> Result<&'a dyn Siblings> {
        self.siblings.ok_or_else(|| {
            Error::unsupported(
                "sibling",
                format!("{name:?} is beside this file, which was opened without its directory"),
            )
        })
    }

    fn opened(&mut self, name: &str, source: Arc<dyn Source>) -> SourceId {
        self.sources.push((Some(name.to_owned()), source));
        source_id(self.sources.len() - 1)
    }

    /// Adds a file that is inside another one and was unpacked into memory.
    pub fn add(&mut self, name: &str, source: Arc<dyn Source>) -> SourceId {
        self.sources.push((Some(name.to_owned()), source));
        source_id(self.sources.len() - 1)
    }

    /// The name of a file that was opened before, if it has one.
    pub fn name_of(&self, id: SourceId) -> Option<&str> {
        let (name, _) = self.sources.get(id.index())?;
        name.as_deref()
    }

    /// A file that was opened before, to be parsed itself.
    pub fn open(&self, id: SourceId) -> Option<Arc<dyn Source>> {
        self.sources
            .get(id.index())
            .map(|(_, source)| source.clone())
    }

    /// Reports a deviation that real readers tolerate. An error when strict.
    pub fn warn(
        &mut self,
        rule: &'static str,
        at: Range<u64>,
        message: impl Into<String>,
    ) -> Result<()> {
        self.warn_in(SourceId::MAIN, rule, at, message)
    }

    /// The same about one of several files.
    pub fn warn_in(
        &mut self,
        source: SourceId,
        rule: &'static str,
        at: Range<u64>,
        message: impl Into<String>,
    ) -> Result<()> {
        let error = Error::malformed(rule, message).at_source(source, at);
        if self.how.strict {
            return Err(error);
        }
        self.find(Severity::Warning, &error);
        Ok(())
    }

    /// Reports a checksum that does not match: an error, or a warning for those who do not verify.
    pub fn mismatch(
        &mut self,
        rule: &'static str,
        at: Range<u64>,
        message: impl Into<String>,
    ) -> Result<()> {
        self.mismatch_in(SourceId::MAIN, rule, at, message)
    }

    /// The same about one of several files.
    pub fn mismatch_in(
        &mut self,
        source: SourceId,
        rule: &'static str,
        at: Range<u64>,
        message: impl Into<String>,
    ) -> Result<()> {
        if self.how.checksums {
            Err(Error::mismatch(rule, message).at_source(source, at))
        } else {
            self.warn_in(source, rule, at, message)
        }
    }

    /// Reports something that is wrong and spoils nothing else: those who verify get it as an error. An error at once when
    /// strict.
    pub fn fault(&mut self, error: Error) -> Result<()> {
        if self.how.strict {
            return Err(error);
        }
        self.find(Severity::Error, &error);
        Ok(())
    }

    /// Says what was checked, for those who ask for a verification.
    pub fn note(&mut self, rule: &'static str, at: Range<u64>, message: impl Into<String>) {
        self.note_in(SourceId::MAIN, rule, at, message);
    }

    /// The same about one of several files.
    pub fn note_in(
        &mut self,
        source: SourceId,
        rule: &'static str,
        at: Range<u64>,
        message: impl Into<String>,
    ) {
        let error = Error::malformed(rule, message).at_source(source, at);
        self.find(Severity::Note, &error);
    }

    fn find(&mut self, severity: Severity, error: &Error) {
        if self.findings.len() >= MAX_FINDINGS {
            self.unlisted += 1;
            return;
        }
        self.findings.push(Finding {
            severity,
            ..Finding::from(error)
        });
    }

    /// What was opened, what was listed, and what was reported.
    pub(crate) fn finish(mut self) -> (Vec<NamedSource>, Option<Arc<Tree>>, Vec<Finding>) {
        if self.unlisted > 0 {
            let message = format!("{} more findings are not listed", self.unlisted);
            self.findings.push(Finding {
                severity: Severity::Warning,
                ..Finding::from(&Error::malformed("findings", message))
            });
        }
        (self.sources, self.tree, self.findings)
    }
}

fn source_id(index: usize) -> SourceId {
    // There are never more files than a directory lists.
    SourceId(u32::try_from(index).unwrap_or(u32::MAX))
}
