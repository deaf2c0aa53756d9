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
            _ => Failure::Message(explain(Some(path), error)),
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
            _ => Failure::Message(explain(None, &error)),
        }
    }
}

/// An error as a line, with the file in front unless the message names it already.
pub(crate) fn explain(path: Option<&Path>, error: &Error) -> String {
    // A rule says something about a file. The user's own mistakes and the system's failures have none.
    let text = match (error.kind(), error.tensor()) {
        (ErrorKind::Argument | ErrorKind::Io | ErrorKind::Lossy | ErrorKind::NotFound, None) => {
            error.message().to_owned()
        }
        _ => error.to_string(),
    };
    match path.map(Path::to_string_lossy) {
        Some(path) if !text.contains(&*path) => format!("{path}: {text}"),
        _ => text,
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
