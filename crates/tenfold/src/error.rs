//! One error type for the whole library: who must act, which rule was broken, where, and why.

mod hint;
pub(crate) mod lists;

use alloc::borrow::Cow;
use core::error::Error as StdError;
use core::fmt;

pub use hint::Hint;

use crate::model::{Quoted, SourceId};
use crate::prelude::*;

/// The result of everything in this library that can fail.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// What went wrong, at which byte, in which tensor, under which rule. One word wide; cloning shares.
///
/// ```text
/// mag: tensor "decoder.3.weight": data ends at byte 81920, the file has 65536 (at byte 412) [mag.bounds]
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    /// As it was given, without the format in front where the core raised it.
    topic: &'static str,
    rule: Cow<'static, str>,
    message: String,
    hints: Vec<Hint>,
    format: Option<&'static str>,
    tensor: Option<String>,
    at: Option<(SourceId, Range<u64>)>,
    cause: Option<Arc<dyn StdError + Send + Sync>>,
    whole: Option<String>,
}

/// Who must act on an [`Error`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller asked for something that makes no sense.
    Argument,
    /// The work was stopped on request.
    Canceled,
    /// The environment failed: a disk, a path, a permission.
    Io,
    /// A limit of [`Limits`](crate::io::Limits) was reached.
    Limit,
    /// Writing would lose something that was not allowed to be lost.
    Lossy,
    /// The file breaks a rule of its format.
    Malformed,
    /// The file's parts contradict each other: a checksum, a digest, a changed length.
    Mismatch,
    /// Something that was named does not exist.
    NotFound,
    /// The content is not of any known format.
    Unrecognized,
    /// The content is legal, but this library or this build cannot handle it.
    Unsupported,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Argument,
        Self::Canceled,
        Self::Io,
        Self::Limit,
        Self::Lossy,
        Self::Malformed,
        Self::Mismatch,
        Self::NotFound,
        Self::Unrecognized,
        Self::Unsupported,
    ];

    /// The kind in a word, for programs: `"malformed"`, `"not-found"`.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Argument => "argument",
            ErrorKind::Canceled => "canceled",
            ErrorKind::Io => "io",
            ErrorKind::Limit => "limit",
            ErrorKind::Lossy => "lossy",
            ErrorKind::Malformed => "malformed",
            ErrorKind::Mismatch => "mismatch",
            ErrorKind::NotFound => "not-found",
            ErrorKind::Unrecognized => "unrecognized",
            ErrorKind::Unsupported => "unsupported",
        }
    }

    /// The kind of this name.
    #[cfg(feature = "scale")]
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Errors that another process had.
#[cfg(feature = "scale")]
impl Error {
    /// With its rule as it was.
    pub(crate) fn recorded(kind: ErrorKind, rule: String, message: String) -> Self {
        let mut error = Self::new(kind, "", message);
        error.inner().rule = Cow::Owned(rule);
        error
    }

    /// Of a format, which its rule says already.
    pub(crate) fn told_in_format(mut self, id: &'static str) -> Self {
        self.inner().format = Some(id);
        self
    }
}

impl Error {
    /// An error of `kind` under `rule`.
    ///
    /// A rule with a dot (`"mag.crc"`) is complete; one without (`"checksum"`) belongs to the core, and
    /// [`rule`](Self::rule) puts the format's id in front of it.
    pub fn new(kind: ErrorKind, rule: &'static str, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind,
            topic: rule,
            rule: complete(rule, "file"),
            message: message.into(),
            hints: Vec::new(),
            format: None,
            tensor: None,
            at: None,
            cause: None,
            whole: None,
        }))
    }

    /// The caller's mistake.
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Argument, "argument", message)
    }

    /// A broken rule of a format.
    pub fn malformed(rule: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, rule, message)
    }

    /// Two facts of a file that contradict each other.
    pub fn mismatch(rule: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Mismatch, rule, message)
    }

    /// Legal, but not handled here.
    pub fn unsupported(rule: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, rule, message)
    }

    /// A limit was reached. Where it is one of [`Limits`](crate::io::Limits), [`raised_by`](Self::raised_by) says which.
    pub fn limit(rule: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, rule, message)
    }

    /// Says which limit was reached, by its name as a field of [`Limits`](crate::io::Limits), and what is needed at least,
    /// where that is known.
    #[must_use]
    pub fn raised_by(self, limit: &'static str, needed: impl Into<Option<u64>>) -> Self {
        self.hinting(Hint::RaiseLimit {
            name: limit,
            needed: needed.into(),
        })
    }

    /// Work that was stopped on request.
    pub fn canceled() -> Self {
        Self::new(ErrorKind::Canceled, "canceled", "stopped on request")
    }

    /// A failure of the operating system while doing `what`.
    #[cfg(feature = "std")]
    pub fn io(what: impl fmt::Display, cause: std::io::Error) -> Self {
        let kind = match cause.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        let message = match cause.kind() {
            std::io::ErrorKind::StorageFull => format!("{what}: no space left on the device"),
            _ => format!("{what}: {cause}"),
        };
        Self::new(kind, "io", message).because(cause)
    }

    /// Adds the byte range of the main file that the error is about.
    #[must_use]
    pub fn at(self, range: Range<u64>) -> Self {
        self.at_source(SourceId::MAIN, range)
    }

    /// Adds the byte range of one of several files that the error is about.
    #[must_use]
    pub fn at_source(mut self, source: SourceId, range: Range<u64>) -> Self {
        self.inner().at = Some((source, range));
        self
    }

    /// Adds which of several files the error is about: its name goes in front of the message.
    #[must_use]
    pub fn in_file(mut self, source: SourceId, name: &str) -> Self {
        let inner = self.inner();
        inner.message = format!("{name}: {}", inner.message);
        self.in_source(source)
    }

    /// The same without a place, where that is none that anybody could look at.
    pub(crate) fn nowhere(mut self) -> Self {
        self.inner().at = None;
        self
    }

    /// Says in which of several files the place is that the error names.
    pub(crate) fn in_source(mut self, source: SourceId) -> Self {
        if let Some((place, _)) = &mut self.inner().at {
            *place = source;
        }
        self
    }

    /// Adds the tensor that the error is about, unless it already names one.
    #[must_use]
    pub fn in_tensor(mut self, name: &str) -> Self {
        self.inner().tensor.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Adds the format that the error is about, unless it already names one.
    #[must_use]
    pub fn in_format(mut self, id: &'static str) -> Self {
        let inner = self.inner();
        if inner.format.is_none() {
            inner.format = Some(id);
            inner.rule = complete(inner.topic, id);
        }
        self
    }

    /// Adds to the message.
    #[must_use]
    pub fn adding(mut self, more: &str) -> Self {
        self.inner().message.push_str(more);
        self
    }

    /// Adds a hint: something that would help. Of several, any one is enough.
    #[must_use]
    pub fn hinting(mut self, hint: Hint) -> Self {
        self.inner().hints.push(hint);
        self
    }

    /// Says what is intact in a damaged file, such as `; 2 of 3 tensors are complete`. It is added to the message where
    /// [`OpenOptions::salvage`](crate::OpenOptions::salvage) opens that file.
    #[must_use]
    pub fn leaving(mut self, whole: String) -> Self {
        self.inner().whole = Some(whole);
        self
    }

    /// Keeps the error that led to this one.
    #[must_use]
    pub fn because(mut self, cause: impl StdError + Send + Sync + 'static) -> Self {
        self.inner().cause = Some(Arc::new(cause));
        self
    }

    /// Who must act.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether it is not about a rule: mistakes and wishes of the user, and failures of the system, need none.
    pub fn is_plain(&self) -> bool {
        match self.kind() {
            ErrorKind::Canceled | ErrorKind::Io => true,
            ErrorKind::Argument | ErrorKind::NotFound => self.tensor().is_none(),
            _ => false,
        }
    }

    /// The rule that was broken, as `format.topic`: stable, and documented on the format's page.
    pub fn rule(&self) -> &str {
        &self.0.rule
    }

    /// What was found and what was expected, without place and rule.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What would help, the best first; any one of them is enough. The message does not say it: whoever shows the error
    /// says it in words of their own.
    pub fn hints(&self) -> &[Hint] {
        &self.0.hints
    }

    /// The format that the error is about.
    pub fn format(&self) -> Option<&'static str> {
        self.0.format
    }

    /// The tensor that the error is about.
    pub fn tensor(&self) -> Option<&str> {
        self.0.tensor.as_deref()
    }

    /// The file and the bytes in it that the error is about.
    pub fn range(&self) -> Option<(SourceId, Range<u64>)> {
        self.0.at.clone()
    }

    /// What is whole of the damaged file.
    pub(crate) fn whole(&self) -> Option<&str> {
        self.0.whole.as_deref()
    }

    fn inner(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.0)
    }
}

/// A rule of the core with the format in front; others are complete.
fn complete(rule: &'static str, format: &str) -> Cow<'static, str> {
    if rule.contains('.') {
        Cow::Borrowed(rule)
    } else {
        Cow::Owned(format!("{format}.{rule}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            format,
            tensor,
            at,
            message,
            ..
        } = &*self.0;
        if let Some(format) = format {
            write!(f, "{format}: ")?;
        }
        if let Some(tensor) = tensor {
            write!(f, "tensor {}: ", Quoted(tensor))?;
        }
        f.write_str(message)?;
        match at {
            Some((SourceId::MAIN, range)) => write!(f, " (at byte {})", range.start)?,
            Some((SourceId(n), range)) => write!(f, " (at byte {} of file {n})", range.start)?,
            None => {}
        }
        write!(f, " [{}]", self.rule())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_format_tensor_place_and_rule() {
        let error = Error::malformed("mag.bounds", "data ends at byte 9, the file has 8")
            .at(4..8)
            .in_tensor("w")
            .in_format("mag");
        assert_eq!(
            error.to_string(),
            "mag: tensor \"w\": data ends at byte 9, the file has 8 (at byte 4) [mag.bounds]"
        );
    }

    #[test]
    fn a_rule_of_the_core_takes_the_format_in_front() {
        let error = Error::mismatch("checksum", "stored 1, computed 2");
        assert_eq!(error.rule(), "file.checksum");
        assert_eq!(error.in_format("mag").rule(), "mag.checksum");
    }

    #[test]
    fn hints_are_no_part_of_the_message() {
        let error = Error::limit("rank", "9 dimensions, the limit is 8").raised_by("rank", 9);
        assert_eq!(
            error.to_string(),
            "9 dimensions, the limit is 8 [file.rank]"
        );
        let raise = Hint::RaiseLimit {
            name: "rank",
            needed: Some(9),
        };
        assert_eq!(error.hinting(Hint::Exclude).hints(), [raise, Hint::Exclude]);
    }

    #[test]
    fn an_error_is_one_word_wide() {
        assert_eq!(size_of::<Result<(), Error>>(), size_of::<usize>());
    }

    #[test]
    fn the_innermost_tensor_is_kept() {
        let error = Error::argument("no").in_tensor("inner").in_tensor("outer");
        assert_eq!(error.tensor(), Some("inner"));
    }
}
