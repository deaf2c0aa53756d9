//! Why a command stops, and what it leaves behind as an exit code.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tenfold::format::Loss;
use tenfold::{Error, ErrorKind};

use crate::json::Json;

/// The result of a command.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a command stops.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Stopped by Ctrl-C or a signal like it.
    Canceled,
    /// Said to the user as it is.
    Message(String),
    /// Standard output cannot be written.
    Output(io::Error),
    /// Said to the user, with more that a program can use.
    Problem(Box<Problem>),
}

impl Failure {
    /// A failure that says which file it is about.
    pub(crate) fn about(path: &Path, error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Canceled => Failure::Canceled,
            _ => Failure::Problem(Box::new(Problem {
                file: Some(path.to_owned()),
                ..Problem::new(explain(path, error), error.clone())
            })),
        }
    }

    /// Something of this file that is not there.
    pub(crate) fn not_found(path: &Path, message: String) -> Self {
        let error = Error::new(ErrorKind::NotFound, "name", message.as_str());
        Failure::Problem(Box::new(Problem {
            file: Some(path.to_owned()),
            ..Problem::new(message, error)
        }))
    }

    /// The same with what would be lost, where it was refused for that.
    pub(crate) fn with_losses(mut self, losses: &[Loss]) -> Self {
        if let Failure::Problem(problem) = &mut self {
            problem.losses = losses.to_vec();
        }
        self
    }

    /// What is wrong, where that is something to tell; else the failure itself.
    pub(crate) fn into_problem(self) -> Result<Problem> {
        match self {
            Failure::Message(message) => Ok(message.into()),
            Failure::Problem(problem) => Ok(*problem),
            other => Err(other),
        }
    }
}

/// Only standard output is written with plain `io` results: everything else goes through the library.
impl From<io::Error> for Failure {
    fn from(cause: io::Error) -> Self {
        Failure::Output(cause)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Canceled => Failure::Canceled,
            _ => Failure::Problem(Box::new(Problem::new(error.message().to_owned(), error))),
        }
    }
}

/// What is wrong, for people and for programs.
#[derive(Debug, Default)]
pub(crate) struct Problem {
    pub(crate) message: String,
    /// The file that was being read.
    pub(crate) file: Option<PathBuf>,
    /// What the library says.
    error: Option<Error>,
    /// What would be lost, where it was refused for that.
    losses: Vec<Loss>,
}

impl Problem {
    fn new(message: String, error: Error) -> Self {
        Self {
            message,
            error: Some(error),
            ..Self::default()
        }
    }

    /// Wrong usage.
    pub(crate) fn usage(message: String) -> Self {
        let error = Error::argument(message.as_str());
        Self::new(message, error)
    }

    /// Work that was stopped by a signal.
    pub(crate) fn canceled() -> Self {
        let message = "stopped; nothing was written".to_owned();
        Self::new(message, Error::canceled())
    }

    /// The document that `--json` prints in the place of a result.
    pub(crate) fn write_json(&self, json: &mut Json<'_>) -> io::Result<()> {
        let error = self.error.as_ref();
        json.object(|json| {
            json.text("schema", Some("tenfold.error/1"))?;
            let file = self.file.as_ref().map(|path| path.to_string_lossy());
            json.text("file", file.as_deref())?;
            json.text("error", Some(&self.message))?;
            json.text("kind", error.map(|error| kind(error.kind())))?;
            let breaks_a_rule = error.filter(|error| !is_plain(error));
            json.text("rule", breaks_a_rule.map(Error::rule).as_deref())?;
            json.text("tensor", error.and_then(Error::tensor))?;
            json.range(
                "range",
                error.and_then(Error::range).map(|(_, range)| range),
            )?;
            match self.losses.is_empty() {
                true => Ok(()),
                false => json.losses("losses", &self.losses),
            }
        })
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self {
            message,
            ..Self::default()
        }
    }
}

/// An error as a line, with the file that it is about.
pub(crate) fn explain(path: &Path, error: &Error) -> String {
    match error.kind() {
        _ if is_plain(error) => error.message().to_owned(),
        ErrorKind::Lossy => format!("{}: {}", path.display(), error.message()),
        _ => format!("{}: {error}", path.display()),
    }
}

/// The user's own mistakes and wishes and the system's failures break no rule, and say themselves what they are about.
fn is_plain(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Canceled | ErrorKind::Io => true,
        ErrorKind::Argument | ErrorKind::NotFound => error.tensor().is_none(),
        _ => false,
    }
}

/// Who must act, in a word.
fn kind(kind: ErrorKind) -> &'static str {
    match kind {
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
        _ => "other",
    }
}

/// What a command leaves behind; of several files the worst counts.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Exit {
    /// Done, nothing to tell.
    Done,
    /// Findings, or tensors that cannot be read.
    Findings,
    /// An error, or wrong usage.
    Trouble,
    /// Stopped by the signal of this number.
    Signal(u8),
}

impl Exit {
    /// The number that is left: for a signal 128 and its own, as shells have it.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Findings => 1,
            Exit::Trouble => 2,
            Exit::Signal(number) => number.saturating_add(128),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}
