//! The Hugging Face Hub: `hf://org/model[@revision]/path`, `hf://datasets/org/name/path`.

use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use http::HeaderValue;
use http::header::LINK;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use super::failure::Failure;
use super::settings::{Settings, is_true, variable};
use super::transport::Transport;
use super::url::RemoteUrl;
use super::web::WebFile;
use crate::error::{Error, Result};
use crate::io::Tree;
use crate::prelude::*;

/// What stands in a path as it is.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'/');
const PART: &AsciiSet = &PATH.add(b'/');
/// Pages of a listing; each has a thousand names.
const PAGES: usize = Tree::MOST / 1000;

/// A repository, and a place in it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct HubPath {
    kind: Kind,
    /// `org/name`, or a name alone, as old ones have.
    repository: String,
    revision: String,
    /// Of a file, or of a directory with a separator at its end; empty for the repository itself.
    pub(super) path: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Dataset,
    Model,
    Space,
}

impl Kind {
    /// In addresses, and in the names of the cache.
    fn word(self) -> &'static str {
        match self {
            Kind::Dataset => "datasets",
            Kind::Model => "models",
            Kind::Space => "spaces",
        }
    }
}

impl HubPath {
    pub(super) fn parse(url: &RemoteUrl) -> Result<Self> {
        let refuse = || {
            let message = format!(
                "{url} is not hf://ORG/MODEL[@REVISION]/PATH or hf://datasets/ORG/NAME/PATH"
            );
            Err(Error::argument(message))
        };
        let (kind, rest) = match url.path.split_once('/') {
            Some(("datasets", rest)) => (Kind::Dataset, rest),
            Some(("spaces", rest)) => (Kind::Space, rest),
            Some(("models", rest)) => (Kind::Model, rest),
            _ => (Kind::Model, url.path.as_str()),
        };
        let mut parts = rest.splitn(3, '/');
        let (Some(organization), Some(name)) = (parts.next(), parts.next()) else {
            return refuse();
        };
        let mut path = parts.next().unwrap_or_default();
        let (name, revision) = match name.split_once('@') {
            None => (name, "main".to_owned()),
            // Those of pull requests and conversions have separators in them.
            Some((name, "refs")) => {
                let mut parts = path.splitn(3, '/');
                let (Some(one), Some(two)) = (parts.next(), parts.next()) else {
                    return refuse();
                };
                path = parts.next().unwrap_or_default();
                (name, format!("refs/{one}/{two}"))
            }
            Some((name, revision)) => (
                name,
                percent_encoding::percent_decode_str(revision)
                    .decode_utf8_lossy()
                    .into_owned(),
            ),
        };
        let is_name = |part: &str| {
            !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', ':', '%', '?', '#'])
        };
        let directories = path.strip_suffix('/').unwrap_or(path);
        let is_path = path.is_empty() || directories.split('/').all(is_step);
        // As git has it: no name of a revision has a colon in it.
        let is_revision = !revision.contains(':') && revision.split('/').all(is_step);
        if !is_name(organization) || !is_name(name) || !is_path || !is_revision {
            return refuse();
        }
        Ok(Self {
            kind,
            repository: format!("{organization}/{name}"),
            revision,
            path: path.to_owned(),
        })
    }

    /// Whether it is the repository or a directory of it.
    pub(super) fn is_prefix(&self) -> bool {
        self.path.is_empty() || self.path.ends_with('/')
    }

    /// The same at the commit that the Hub answered with.
    pub(super) fn at(&self, commit: Option<&str>) -> Self {
        let is_commit =
            |text: &&str| text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
        Self {
            revision: commit
                .filter(is_commit)
                .unwrap_or(&self.revision)
                .to_owned(),
            ..self.clone()
        }
    }

    /// What lies beside it.
    pub(super) fn beside(&self, name: &str) -> Self {
        let path = match self.path.rsplit_once('/') {
            Some((directory, _)) => format!("{directory}/{name}"),
            None => name.to_owned(),
        };
        Self {
            path,
            ..self.clone()
        }
    }

    /// Where the Hub has its bytes.
    pub(super) fn file(&self, settings: &Settings, transport: &Transport) -> Result<WebFile> {
        let kind = match self.kind {
            Kind::Model => String::new(),
            kind => format!("{}/", kind.word()),
        };
        let (revision, path) = (
            utf8_percent_encode(&self.revision, PART),
            utf8_percent_encode(&self.path, PATH),
        );
        let place = format!("{kind}{}/resolve/{revision}/{path}", self.repository);
        web(&place, settings, transport)
    }

    /// What lies in the directory that it lies in, or is; with `deep` in those below, too.
    pub(super) async fn list(
        &self,
        settings: &Settings,
        transport: &Transport,
        deep: bool,
    ) -> Result<Vec<Listed>, Failure> {
        let directory = self
            .path
            .rsplit_once('/')
            .map_or("", |(directory, _)| directory);
        let (revision, directory) = (
            utf8_percent_encode(&self.revision, PART),
            utf8_percent_encode(directory, PATH),
        );
        let place = format!(
            "api/{}/{}/tree/{revision}/{directory}",
            self.kind.word(),
            self.repository
        );
        let store = |error: Error| Failure::Store(error.message().to_owned());
        let mut page = web(place.trim_end_matches('/'), settings, transport).map_err(store)?;
        if deep {
            page.url.set_query(Some("recursive=true"));
        }
        let mut listed = Vec::new();
        for _ in 0..PAGES {
            let (bytes, headers) = super::retry::retried(|| page.page()).await?;
            let host = page.url.host_str().unwrap_or_default().to_owned();
            listed.extend(entries_in(&bytes).ok_or_else(|| Failure::Odd {
                host,
                what: "a listing that is none".to_owned(),
            })?);
            let link = headers.get(LINK).and_then(|link| link.to_str().ok());
            let next = link
                .and_then(next_page)
                .and_then(|next| page.url.join(next).ok());
            match next.filter(|next| next.origin() == page.url.origin()) {
                Some(next) => page = WebFile::new(transport.clone(), next, page.token.clone()),
                None => return Ok(listed),
            }
        }
        Err(Failure::Store(format!(
            "{} has more than {} files",
            self.repository,
            Tree::MOST
        )))
    }

    /// Where this machine's cache of the Hub has it already.
    pub(super) fn cached(&self) -> Option<PathBuf> {
        self.cached_in(&cache()?)
    }

    fn cached_in(&self, cache: &Path) -> Option<PathBuf> {
        if !is_below(&self.revision) || !is_below(&self.path) {
            return None;
        }
        let repository = self.repository.replace('/', "--");
        let repository = cache.join(format!("{}--{repository}", self.kind.word()));
        let named = repository.join("refs").join(&self.revision);
        let commit = std::fs::read_to_string(named).unwrap_or_else(|_| self.revision.clone());
        let commit = commit.trim();
        let is_plain = !commit.is_empty() && commit.bytes().all(|b| b.is_ascii_alphanumeric());
        let found = repository.join("snapshots").join(commit).join(&self.path);
        (is_plain && found.exists()).then_some(found)
    }
}

/// Whether it is the name of one file or directory, wherever it is used.
fn is_step(step: &str) -> bool {
    !matches!(step, "" | "." | "..") && !step.contains(['\\', '\0'])
}

/// Whether a path of the Hub stays below the directory that it is joined to, as this system reads paths.
fn is_below(path: &str) -> bool {
    let mut steps = Path::new(path).components();
    !path.contains(':') && steps.all(|step| matches!(step, Component::Normal(_)))
}

/// A place of the Hub, with the token of whoever asks.
fn web(place: &str, settings: &Settings, transport: &Transport) -> Result<WebFile> {
    let option = settings
        .option(&["endpoint", "endpoint_url"])
        .map(ToOwned::to_owned);
    let endpoint = option.or_else(|| variable("HF_ENDPOINT"));
    let endpoint = endpoint.unwrap_or_else(|| "https://huggingface.co".to_owned());
    let url = format!("{}/{place}", endpoint.trim_end_matches('/'));
    let url = Url::parse(&url)
        .map_err(|cause| Error::argument(format!("HF_ENDPOINT is no URL: {cause}")))?;
    let token = token(settings).map(|token| HeaderValue::try_from(format!("Bearer {token}")));
    let token = token.transpose().map_err(|cause| {
        Error::argument("the token for the Hub is none that could be sent").because(cause)
    })?;
    let token = token.map(|mut token| {
        token.set_sensitive(true);
        token
    });
    Ok(WebFile::new(transport.clone(), url, token))
}

fn token(settings: &Settings) -> Option<String> {
    if settings.is_anonymous() {
        return None;
    }
    if let Some(token) = settings.option(&["token", "hf_token"]) {
        return Some(token.to_owned());
    }
    let file = || {
        let path = match variable("HF_TOKEN_PATH") {
            Some(path) => PathBuf::from(path),
            None => home()?.join("token"),
        };
        std::fs::read_to_string(path).ok()
    };
    let token = variable("HF_TOKEN")
        .or_else(|| variable("HUGGING_FACE_HUB_TOKEN"))
        .or_else(file);
    token
        .map(|token| token.trim().to_owned())
        .filter(|token| !token.is_empty())
}

/// Whether nothing may be asked of the Hub.
pub(super) fn is_offline() -> bool {
    variable("HF_HUB_OFFLINE").is_some_and(|value| is_true(&value))
}

fn home() -> Option<PathBuf> {
    if let Some(home) = variable("HF_HOME") {
        return Some(PathBuf::from(home));
    }
    let caches = match variable("XDG_CACHE_HOME") {
        Some(caches) => PathBuf::from(caches),
        None => std::env::home_dir()?.join(".cache"),
    };
    Some(caches.join("huggingface"))
}

fn cache() -> Option<PathBuf> {
    let given = variable("HF_HUB_CACHE").or_else(|| variable("HUGGINGFACE_HUB_CACHE"));
    given
        .map(PathBuf::from)
        .or_else(|| Some(home()?.join("hub")))
}

/// A file or a directory in a listing.
#[derive(Debug)]
pub(super) struct Listed {
    /// From the repository's root on.
    pub(super) path: String,
    pub(super) len: Option<u64>,
    pub(super) is_directory: bool,
}

impl Listed {
    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// The files and directories of a listing.
fn entries_in(page: &Bytes) -> Option<Vec<Listed>> {
    let listing: serde_json::Value = serde_json::from_slice(page).ok()?;
    let entries = listing.as_array()?.iter().filter_map(|entry| {
        let is_directory = match entry.get("type")?.as_str()? {
            "file" => false,
            "directory" => true,
            _ => return None,
        };
        Some(Listed {
            path: entry.get("path")?.as_str()?.to_owned(),
            len: entry.get("size").and_then(serde_json::Value::as_u64),
            is_directory,
        })
    });
    Some(entries.collect())
}

/// `<https://…>; rel="next"`
fn next_page(link: &str) -> Option<&str> {
    let next = link.split(',').find(|part| part.contains("rel=\"next\""))?;
    next.split_once('<')?.1.split('>').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<HubPath> {
        HubPath::parse(&RemoteUrl::parse(text)?)
    }

    #[test]
    fn a_place_has_a_repository_a_revision_and_a_path() {
        let place = parse("hf://org/model@v1.0/a/b.gguf").unwrap();
        assert_eq!(
            (place.repository.as_str(), place.revision.as_str()),
            ("org/model", "v1.0")
        );
        assert_eq!(place.path, "a/b.gguf");
        let place = parse("hf://datasets/org/name/x.npy").unwrap();
        assert_eq!(
            (place.kind, place.revision.as_str()),
            (Kind::Dataset, "main")
        );
        let place = parse("hf://org/model@refs/pr/3/x.npy").unwrap();
        assert_eq!(
            (place.revision.as_str(), place.path.as_str()),
            ("refs/pr/3", "x.npy")
        );
        assert!(parse("hf://org/model").unwrap().is_prefix());
        for text in [
            "hf://model",
            "hf://org/model/../x",
            "hf://org/model@../x",
            "hf://../x/y",
            "hf://org/model//etc/x.npy",
            "hf://org/model/a//b.npy",
            "hf://org/model/..\\x.npy",
            "hf://org/model@%2Fetc/x.npy",
            "hf://org/model@a%2F..%2Fb/x.npy",
            "hf://org/model@C:%5Cx/x.npy",
            "hf://org/model@a%00b/x.npy",
            "hf://org/model@/x.npy",
            "hf://org/C:/x.npy",
            "hf://org/%2e%2e/x.npy",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("hf://org/model/a/").unwrap().is_prefix());
        assert_eq!(parse("hf://org/model/run:1.npy").unwrap().path, "run:1.npy");
    }

    #[test]
    #[allow(clippy::disallowed_methods)] // it makes the files that are read
    fn the_cache_is_read_and_nothing_outside_of_it() {
        let cache = tempfile::tempdir().unwrap();
        let repository = cache.path().join("models--org--model");
        let snapshot = repository.join("snapshots/c0ffee");
        std::fs::create_dir_all(&snapshot).unwrap();
        std::fs::create_dir_all(repository.join("refs")).unwrap();
        std::fs::write(repository.join("refs/main"), "c0ffee").unwrap();
        std::fs::write(snapshot.join("x.npy"), "here").unwrap();
        let outside = cache.path().join("secret.npy");
        std::fs::write(&outside, "elsewhere").unwrap();
        let place = parse("hf://org/model/x.npy").unwrap();
        assert_eq!(place.cached_in(cache.path()), Some(snapshot.join("x.npy")));
        // What parsing refuses already is not found here either.
        let outside = outside.to_str().unwrap();
        for (revision, path) in [
            ("main", outside),
            ("main", "../../../secret.npy"),
            ("main", "C:x.npy"),
            (outside, "x.npy"),
            ("../refs/main", "x.npy"),
        ] {
            let place = HubPath {
                revision: revision.to_owned(),
                path: path.to_owned(),
                ..place.clone()
            };
            assert_eq!(place.cached_in(cache.path()), None, "{revision} {path}");
        }
    }

    #[test]
    fn a_listing_tells_files_from_directories() {
        let page = Bytes::from_static(
            br#"[{"type":"directory","path":"d"},{"type":"file","path":"d/x.gguf","size":1}]"#,
        );
        let entries = entries_in(&page).unwrap();
        let shown: Vec<_> = (entries.iter())
            .map(|entry| (entry.name(), entry.len, entry.is_directory))
            .collect();
        assert_eq!(shown, [("d", None, true), ("x.gguf", Some(1), false)]);
        assert!(entries_in(&Bytes::from_static(b"<html>")).is_none());
        let link = r#"<https://h/api?cursor=2>; rel="next""#;
        assert_eq!(next_page(link), Some("https://h/api?cursor=2"));
    }
}
