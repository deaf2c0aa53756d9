//! What can go wrong with a request, as types: what is tried again, what is final, and what each means to people.

use core::fmt;
use std::error::Error as StdError;

use super::url::{RemoteUrl, Scheme};
use crate::error::{Error, ErrorKind, Hint};
use crate::prelude::*;

/// Why a request brought nothing. Never holds a server's page, and nothing that is secret.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// It is another object than the one that was opened.
    Changed,
    /// No connection came about.
    Connect { host: String, cause: String },
    /// The answer ended before its last byte.
    Cut { host: String },
    /// The bytes are compressed on the way: their places are not those of the file.
    Encoded { host: String, encoding: String },
    /// A secret, or anything at all, would go over a connection that everybody can read.
    Insecure { host: String, is_secret: bool },
    /// An answer that does not fit the request.
    Odd { host: String, what: String },
    /// A redirect that is not followed.
    Redirect { host: String, why: &'static str },
    /// Anything but success.
    Status(Status),
    /// What the store's own library says: settings that contradict each other, credentials that cannot be read.
    Store(String),
    /// Nothing came for too long.
    Timeout { host: String },
    /// The server could not show that it is the one that was asked for.
    Tls { host: String, cause: String },
    /// All of a file came where a part was asked for, and that is too much.
    Whole { host: String, len: Option<u64> },
}

/// With which credentials a request went.
#[derive(Clone, Debug, Default)]
pub(super) struct Credentials {
    /// With none.
    pub(super) is_anonymous: bool,
    /// What would help to have some.
    pub(super) advice: Option<String>,
}

/// What stores call credentials that were good once.
const EXPIRED: [&str; 3] = ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"];

#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    pub(super) host: String,
    pub(super) number: u16,
    /// One word of the store's own, such as `AccessDenied`.
    pub(super) code: Option<String>,
    /// Where the bucket is instead.
    pub(super) region: Option<String>,
    /// The length of the file, where the answer to a range outside of it says so.
    pub(super) total: Option<u64>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Changed => f.write_str("it has changed since it was opened"),
            Failure::Connect { host, cause } => write!(f, "cannot connect to {host}: {cause}"),
            Failure::Cut { host } => {
                write!(f, "{host} closed the connection in the middle of an answer")
            }
            Failure::Encoded { host, encoding } => write!(
                f,
                "{host} sends it compressed ({encoding}), so that its parts cannot be asked for"
            ),
            Failure::Insecure {
                host,
                is_secret: true,
            } => write!(
                f,
                "credentials are not sent to {host} over plain http, where everybody on the way can read them"
            ),
            Failure::Insecure { host, .. } => write!(
                f,
                "{host} is asked over plain http, where everybody on the way can read and change what is sent; use https"
            ),
            Failure::Odd { host, what } => write!(f, "{host} answered with {what}"),
            Failure::Redirect { host, why } => {
                write!(f, "a redirect to {host} is not followed: {why}")
            }
            Failure::Status(status) => status.fmt(f),
            Failure::Store(what) => f.write_str(what),
            Failure::Timeout { host } => write!(f, "{host} did not answer in time"),
            Failure::Tls { host, cause } => {
                write!(f, "{host} cannot be trusted to be what it says: {cause}")
            }
            Failure::Whole { host, len } => {
                write!(f, "{host} has no ranges: it answers with the whole file")?;
                match len {
                    Some(len) => write!(f, " of {len} bytes"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} answered {}", self.host, self.number)?;
        match &self.code {
            Some(code) => write!(f, " ({code})"),
            None => Ok(()),
        }
    }
}

impl StdError for Failure {}

impl Failure {
    /// Whether the same request may well succeed a little later.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Failure::Connect { .. } | Failure::Cut { .. } | Failure::Timeout { .. } => true,
            Failure::Status(status) => {
                matches!(status.number, 408 | 425 | 429 | 500..=599) || status.is_conflict()
            }
            _ => false,
        }
    }

    /// Whether it says that something is there already, or that what it would be made of is there no more.
    pub(super) fn is_about_what_is_there(&self) -> bool {
        matches!(self.number(), Some(304 | 404 | 409 | 412)) && !self.is_transient()
    }

    /// Whether it says that something is there that was not to be there.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self.number(), Some(304 | 409 | 412)) && !self.is_transient()
    }

    pub(super) fn number(&self) -> Option<u16> {
        match self {
            Failure::Status(status) => Some(status.number),
            _ => None,
        }
    }

    /// The error that people see.
    pub(super) fn about(self, url: &RemoteUrl, access: &Credentials) -> Error {
        let found = format!("{url}: {self}");
        let new = |kind, rule, more: &str| Error::new(kind, rule, format!("{found}{more}"));
        let error = match &self {
            // As of any file: whoever reads it says which.
            Failure::Changed => {
                let message = format!("{self}; open it again to read what is there now");
                Error::new(ErrorKind::Mismatch, "changed", message)
            }
            Failure::Encoded { .. } | Failure::Whole { .. } => {
                new(ErrorKind::Io, "ranges", "; download it first")
            }
            Failure::Insecure { is_secret, .. } => {
                let error = new(ErrorKind::Argument, "insecure", "");
                if *is_secret {
                    error
                } else {
                    error.hinting(Hint::AllowHttp)
                }
            }
            Failure::Redirect { .. } => new(ErrorKind::Io, "redirect", ""),
            Failure::Status(status) => return status.about(url, access, &found),
            Failure::Store(_) => new(ErrorKind::Argument, "access", ""),
            Failure::Tls { .. } => new(ErrorKind::Io, "tls", ""),
            Failure::Connect { .. }
            | Failure::Cut { .. }
            | Failure::Odd { .. }
            | Failure::Timeout { .. } => new(ErrorKind::Io, "network", ""),
        };
        error.because(self)
    }
}

impl Status {
    /// Whether two writers met, which says nothing yet about which of them is first.
    fn is_conflict(&self) -> bool {
        const CODES: [&str; 2] = ["ConditionalRequestConflict", "OperationAborted"];
        self.number == 409
            && self
                .code
                .as_deref()
                .is_some_and(|code| CODES.contains(&code))
    }

    fn about(&self, url: &RemoteUrl, access: &Credentials, found: &str) -> Error {
        let new = |kind, rule, more: &str| {
            let error = Error::new(kind, rule, format!("{found}{more}"));
            error.because(Failure::Status(self.clone()))
        };
        if let Some(region) = &self.region {
            let more = format!("; the bucket is in the region {region}: set AWS_REGION={region}");
            return new(ErrorKind::Argument, "region", &more);
        }
        match self.number {
            404 | 410 => new(ErrorKind::NotFound, "io", "; there is nothing of this name"),
            401 | 403 => {
                let more = match &access.advice {
                    Some(advice) => format!("; no credentials were sent: {advice}"),
                    None => remedy(url.scheme, access.is_anonymous).to_owned(),
                };
                let error = new(ErrorKind::Io, "access", &more);
                if access.is_anonymous || url.is_web() || url.scheme == Scheme::Hub {
                    error
                } else {
                    error.hinting(Hint::Anonymous)
                }
            }
            412 => Failure::Changed.about(url, access),
            300..=399 if url.scheme == Scheme::S3 => {
                let more = "; the bucket is in another region: set AWS_REGION";
                new(ErrorKind::Argument, "region", more)
            }
            _ if self.is_conflict() => {
                let more = ", again and again: somebody else writes it at the same time";
                new(ErrorKind::Io, "network", more)
            }
            400 if self
                .code
                .as_deref()
                .is_some_and(|code| EXPIRED.contains(&code)) =>
            {
                let more =
                    "; the credentials have expired, or their session token is missing or wrong";
                new(ErrorKind::Io, "access", more)
            }
            429 | 500..=599 => new(ErrorKind::Io, "network", ", again and again; try later"),
            _ => new(ErrorKind::Io, "network", ""),
        }
    }
}

/// What helps against a refusal.
fn remedy(scheme: Scheme, is_anonymous: bool) -> &'static str {
    match (scheme, is_anonymous) {
        (Scheme::S3, true) => {
            "; no credentials were sent: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; where listing is forbidden, a name that does not exist looks the same"
        }
        (Scheme::S3, false) => {
            "; the credentials do not allow it, or, where listing is forbidden, there is nothing of this name"
        }
        (Scheme::Gcs, true) => "; no credentials were sent: set GOOGLE_APPLICATION_CREDENTIALS",
        (Scheme::Azure, true) => {
            "; no credentials were sent: set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN"
        }
        (Scheme::Gcs | Scheme::Azure, false) => "; the credentials do not allow it",
        (Scheme::Hub, true) => {
            "; a private or gated repository needs a token: set HF_TOKEN, and accept its terms on its page"
        }
        (Scheme::Hub, false) => {
            "; the token does not allow it: accept the repository's terms on its page, or use another token"
        }
        (Scheme::Http | Scheme::Https, _) => "; a signed URL may have expired",
    }
}

impl From<object_store::Error> for Failure {
    fn from(error: object_store::Error) -> Self {
        let mut cause: Option<&(dyn StdError + 'static)> = Some(&error);
        while let Some(inner) = cause {
            if let Some(failure) = inner.downcast_ref::<Failure>() {
                return failure.clone();
            }
            cause = inner.source();
        }
        // Bodies of answers never come this far.
        Failure::Store(error.to_string())
    }
}
