//! Why a command stops, and what it leaves behind as an exit code.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tenfold::documents::ErrorDocument;
use tenfold::format::Loss;
use tenfold::{Error, ErrorKind};

use crate::hints;
use crate::json;

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
            _ => Failure::Problem(Box::new(Problem::new(hints::message(&error), error))),
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

    /// Writes the document that `--json` prints in the place of a result.
    pub(crate) fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let file = self.file.as_ref().map(|path| path.to_string_lossy());
        let error = self.error.as_ref();
        let document = ErrorDocument::new(
            file.as_deref(),
            &self.message,
            error,
            &self.losses,
            hints::words,
        );
        json::write(out, &document)
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self::usage(message)
    }
}

/// An error as a line, with the file that it is about and what would help.
pub(crate) fn explain(path: &Path, error: &Error) -> String {
    match error.kind() {
        _ if error.is_plain() => hints::message(error),
        ErrorKind::Lossy => format!("{}: {}", path.display(), hints::message(error)),
        _ => format!("{}: {}", path.display(), hints::line(error)),
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
