//! Paths and URLs: which is which, and how a URL is shown without what is secret in it.

use core::fmt;
use std::path::{Path, PathBuf};

use super::hub::HubPath;
use crate::error::{Error, Result};
use crate::prelude::*;

/// A file or a directory, on this machine or behind a URL.
///
/// ```
/// use tenfold::io::Location;
/// let location = Location::of("https://host/model.gguf?signature=secret")?;
/// assert_eq!(location.to_string(), "https://host/model.gguf");
/// assert!(matches!(Location::of("models/model.gguf")?, Location::Path(_)));
/// # Ok::<(), tenfold::Error>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Location {
    /// A path of this machine.
    Path(PathBuf),
    /// What a server has.
    Url(RemoteUrl),
}

impl Location {
    /// What is meant: a text with `scheme://` is a URL, unless there is a file of that name.
    pub fn of(given: impl AsRef<Path>) -> Result<Self> {
        let path = given.as_ref();
        match path.to_str().filter(|text| RemoteUrl::looks_like(text)) {
            Some(text) if path.symlink_metadata().is_err() => {
                RemoteUrl::parse(text).map(Location::Url)
            }
            _ => Ok(Location::Path(path.to_owned())),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Path(path) => path.display().fmt(f),
            Location::Url(url) => url.fmt(f),
        }
    }
}

/// What answers for a URL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Scheme {
    Azure,
    Gcs,
    Http,
    Https,
    Hub,
    S3,
}

/// Which words before `://` mean what.
const SCHEMES: [(&str, Scheme); 10] = [
    ("s3", Scheme::S3),
    ("s3a", Scheme::S3),
    ("gs", Scheme::Gcs),
    ("gcs", Scheme::Gcs),
    ("az", Scheme::Azure),
    ("abfs", Scheme::Azure),
    ("abfss", Scheme::Azure),
    ("https", Scheme::Https),
    ("http", Scheme::Http),
    ("hf", Scheme::Hub),
];

/// The address of a file, or of several under one prefix: `s3://`, `gs://`, `az://`, `abfss://`, `https://`, `http://`, `hf://`.
///
/// Its texts, for people and for debugging, have neither its query nor anything else that could be secret.
#[derive(Clone, Eq, PartialEq)]
pub struct RemoteUrl {
    pub(super) scheme: Scheme,
    word: &'static str,
    /// The bucket, the container, the host; of the Hub, nothing.
    pub(super) authority: String,
    /// Without the separator in front of it. As it is given: only those of HTTP have escapes.
    pub(super) path: String,
    query: Option<String>,
}

impl RemoteUrl {
    /// Whether a text is a URL and not a path: it has a word and `://` in front.
    pub fn looks_like(text: &str) -> bool {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|word| {
            let rest = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
            word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.bytes().all(rest)
        })
    }

    /// Reads a URL.
    pub fn parse(text: &str) -> Result<Self> {
        let (word, rest) = text.split_once("://").unwrap_or_default();
        let known = |(known, _): &&(&str, Scheme)| known.eq_ignore_ascii_case(word);
        let Some(&(word, scheme)) = SCHEMES.iter().find(known) else {
            let known: Vec<_> = SCHEMES.iter().map(|(word, _)| *word).collect();
            let (word, known) = (word.escape_debug(), known.join(", "));
            let message = format!(
                "URLs with {word}:// are not read; these are: {known}; or download it first"
            );
            return Err(Error::argument(message));
        };
        let is_web = matches!(scheme, Scheme::Http | Scheme::Https);
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) if is_web => (rest, Some(query.to_owned())),
            _ => (rest, None),
        };
        // A place in a page is nothing that a server is told.
        let rest = if is_web {
            rest.split('#').next().unwrap_or_default()
        } else {
            rest
        };
        let (authority, path) = match scheme {
            Scheme::Hub => ("", rest),
            _ => rest.split_once('/').unwrap_or((rest, "")),
        };
        let url = Self {
            scheme,
            word,
            authority: authority.to_owned(),
            path: path.to_owned(),
            query,
        };
        if is_web && authority.contains('@') {
            let message = "a URL with a user name or a password in it is not used: both would end up in histories and logs";
            return Err(Error::argument(message));
        }
        if (authority.is_empty() && scheme != Scheme::Hub) || rest.chars().any(char::is_control) {
            let message = format!("{word}:// is followed by no name of a server or a bucket");
            return Err(Error::argument(message));
        }
        Ok(url)
    }

    /// The name of the file, where it has one.
    pub fn file_name(&self) -> Option<String> {
        let name = self.path.rsplit('/').next()?;
        let name = if self.is_web() {
            percent_encoding::percent_decode_str(name)
                .decode_utf8_lossy()
                .into_owned()
        } else {
            name.to_owned()
        };
        Some(name).filter(|name| !name.is_empty())
    }

    /// Whether it names a prefix and not a file: it ends with a separator, or is a bucket or a repository.
    pub fn is_prefix(&self) -> bool {
        let is_repository = || HubPath::parse(self).is_ok_and(|place| place.is_prefix());
        self.path.is_empty()
            || self.path.ends_with('/')
            || (self.scheme == Scheme::Hub && is_repository())
    }

    /// What lies beside it under this name; with `""`, the prefix itself.
    #[must_use]
    pub fn beside(&self, name: &str) -> Self {
        let directory = match self.path.rsplit_once('/') {
            Some((directory, _)) => format!("{directory}/"),
            None => String::new(),
        };
        let name = if self.is_web() {
            percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC)
                .to_string()
        } else {
            name.to_owned()
        };
        Self {
            path: directory + &name,
            ..self.clone()
        }
    }

    /// The same as a prefix.
    #[must_use]
    pub fn as_prefix(&self) -> Self {
        let mut prefix = self.clone();
        if !prefix.path.is_empty() && !prefix.path.ends_with('/') {
            prefix.path.push('/');
        }
        prefix
    }

    pub(crate) fn is_web(&self) -> bool {
        matches!(self.scheme, Scheme::Http | Scheme::Https)
    }

    /// All of it, as it goes to a server.
    pub(super) fn to_web(&self) -> Result<url::Url> {
        let query = match &self.query {
            Some(query) => format!("?{query}"),
            None => String::new(),
        };
        let text = format!("{}://{}/{}{query}", self.word, self.authority, self.path);
        url::Url::parse(&text)
            .map_err(|cause| Error::argument(format!("{self} is no URL: {cause}")))
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.scheme == Scheme::Hub { "" } else { "/" };
        write!(
            f,
            "{}://{}{separator}{}",
            self.word, self.authority, self.path
        )
    }
}

impl fmt::Debug for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_paths_are_told_apart() {
        for text in ["s3://b/k", "https://h/x", "ftp://h/x", "a+b://c"] {
            assert!(RemoteUrl::looks_like(text), "{text}");
        }
        for text in [
            "model.gguf",
            "a/b://c",
            "://x",
            "C:/x",
            "1a://x",
            "./s3://b/k",
        ] {
            assert!(!RemoteUrl::looks_like(text), "{text}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let url = RemoteUrl::parse("https://host/a/b.npy?X-Amz-Signature=abc#part").unwrap();
        assert_eq!(url.to_string(), "https://host/a/b.npy");
        assert_eq!(format!("{url:?}"), "https://host/a/b.npy");
        assert_eq!(url.to_web().unwrap().query(), Some("X-Amz-Signature=abc"));
        let error = RemoteUrl::parse("https://me:secret@host/x").unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn keys_are_taken_as_they_are() {
        let url = RemoteUrl::parse("s3://bucket/a b/c?d#e.safetensors").unwrap();
        assert_eq!(url.path, "a b/c?d#e.safetensors");
        assert_eq!(url.file_name().as_deref(), Some("c?d#e.safetensors"));
        assert_eq!(url.beside("x y").to_string(), "s3://bucket/a b/x y");
    }

    #[test]
    fn names_beside_a_web_page_stay_names() {
        let url = RemoteUrl::parse("https://host/m/index.json?token=1").unwrap();
        let other = url.beside("a?b#c").to_web().unwrap();
        assert_eq!(other.path(), "/m/a%3Fb%23c");
        assert_eq!(other.query(), Some("token=1"));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["ftp://host/x", "s3://", "https:///x", "s3://b/a\nb"] {
            assert!(RemoteUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn prefixes_end_with_a_separator() {
        for (text, is_prefix) in [("s3://b", true), ("s3://b/a/", true), ("s3://b/a", false)] {
            assert_eq!(
                RemoteUrl::parse(text).unwrap().is_prefix(),
                is_prefix,
                "{text}"
            );
        }
    }
}
