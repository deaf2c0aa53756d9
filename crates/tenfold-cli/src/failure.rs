//! Why a command stops, and what it leaves behind as an exit code.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use tenfold::{Error, ErrorKind};

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
}

impl Failure {
    /// A failure that says which file it is about.
    pub(crate) fn about(path: &Path, error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Canceled => Failure::Canceled,
            _ => Failure::Message(explain(path, error)),
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
            _ => Failure::Message(error.message().to_owned()),
        }
    }
}

/// An error as a line, with the file that it is about.
pub(crate) fn explain(path: &Path, error: &Error) -> String {
    match error.kind() {
        // The user's own mistakes and the system's failures break no rule, and say themselves what they are about.
        ErrorKind::Argument | ErrorKind::Io | ErrorKind::NotFound if error.tensor().is_none() => {
            error.message().to_owned()
        }
        ErrorKind::Lossy => format!("{}: {}", path.display(), error.message()),
        _ => format!("{}: {error}", path.display()),
    }
}

/// What a command leaves behind; of several files the worst counts.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Exit {
    /// Done, nothing to tell.
    Done = 0,
    /// Findings, or tensors that cannot be read.
    Findings = 1,
    /// An error, or wrong usage.
    Trouble = 2,
    /// Interrupted: 128 and the number of the signal, as shells have it.
    Canceled = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
