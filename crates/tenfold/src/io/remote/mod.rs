//! Files behind URLs: S3, Google Cloud Storage, Azure, web servers, the Hugging Face Hub.
//!
//! Nothing here is asynchronous to its users: one thread, made at the first URL, does what the network needs, and whoever
//! reads waits for it.

mod clients;
mod cloud;
mod failure;
mod hub;
mod object;
#[cfg(feature = "scale")]
mod objects;
mod output;
mod profile;
mod retry;
mod runtime;
mod settings;
mod siblings;
mod source;
mod traffic;
mod transport;
mod upload;
mod url;
mod web;

use std::path::PathBuf;
use std::sync::Mutex;

use object_store::path::Path;

pub use output::RemoteOutput;
use siblings::Listed;
pub use siblings::RemoteSiblings;
pub use source::RemoteSource;
pub use traffic::{RequestMade, Traffic};
pub use url::{Location, RemoteUrl};

use crate::error::{Error, ErrorKind, Result};
use crate::io::{Access, Cached, Siblings, Source, Tree, open_source};
use crate::prelude::*;
use crate::threads::Control;
use cloud::Cloud;
use failure::{Credentials, Failure};
use hub::HubPath;
use object::{Object, Place};
use settings::Settings;
use transport::Transport;
use url::Scheme;

/// How files behind URLs are reached: with which credentials, and what is allowed. Clones share their connections and
/// count together.
///
/// Credentials and servers are those of the environment, as the tools have them that people use already:
/// `AWS_ACCESS_KEY_ID` and the like or a profile of `~/.aws`, `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_ACCOUNT_KEY`,
/// `HF_TOKEN`. Without any, public files are read.
///
/// ```no_run
/// use tenfold::OpenOptions;
/// use tenfold::io::Remote;
/// let remote = Remote::new().anonymous(true);
/// let archive = OpenOptions::new().remote(&remote).open_url("s3://bucket/model.safetensors")?;
/// println!("{} requests", remote.traffic().requests());
/// # Ok::<(), tenfold::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Remote {
    settings: Settings,
    traffic: Arc<Traffic>,
    clouds: Arc<Mutex<LookupMap<String, Arc<Cloud>>>>,
}

impl Remote {
    /// With what the environment says.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether requests go without credentials, whatever the environment has.
    #[must_use]
    pub fn anonymous(self, anonymous: bool) -> Self {
        self.with(|settings| settings.anonymous = anonymous)
    }

    /// Whether servers of other machines may be asked over plain `http://`. Tokens are never sent so.
    #[must_use]
    pub fn allow_http(self, allow: bool) -> Self {
        self.with(|settings| settings.allow_http = allow)
    }

    /// Whether what this machine's cache of the Hub has is read there, as by default.
    #[must_use]
    pub fn hub_cache(self, cache: bool) -> Self {
        self.with(|settings| settings.no_cache = !cache)
    }

    /// Adds an option of the store, such as `region`, `endpoint`, `access_key_id`, `account_name`, `token`: it counts more
    /// than the environment.
    #[must_use]
    pub fn option(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|settings| settings.options.push((key.into(), value.into())))
    }

    /// What stops waiting for a server.
    #[must_use]
    pub fn stopped_by(mut self, control: Arc<Control>) -> Self {
        self.settings.control = Some(control);
        self
    }

    /// What has gone over the network.
    pub fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Where this machine's cache of the Hub has a file, if it is read there.
    pub fn in_hub_cache(&self, url: &RemoteUrl) -> Option<PathBuf> {
        if url.scheme != Scheme::Hub || (self.settings.no_cache && !hub::is_offline()) {
            return None;
        }
        let place = HubPath::parse(url).ok()?;
        place
            .cached()
            .filter(|path| path.is_file() || hub::is_offline())
    }

    /// Other settings are other connections.
    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self.clouds = Arc::default();
        self
    }

    fn control(&self) -> Option<&Control> {
        self.settings.control.as_deref()
    }

    fn transport(&self) -> Transport {
        Transport {
            traffic: self.traffic.clone(),
            allow_http: self.settings.allow_http,
        }
    }

    /// The bucket of a URL.
    fn cloud(&self, url: &RemoteUrl) -> Result<Arc<Cloud>> {
        let name = format!("{:?} {}", url.scheme, url.authority);
        if let Some(cloud) = self
            .clouds
            .lock()
            .ok()
            .and_then(|clouds| clouds.get(&name).cloned())
        {
            return Ok(cloud);
        }
        let (asked, settings, transport) = (url.clone(), self.settings.clone(), self.transport());
        let made = runtime::wait(self.control(), async move {
            Cloud::of(&asked, &settings, &transport).await
        })?;
        let made = Arc::new(made.map_err(|failure| failure.about(url, &Credentials::default()))?);
        if let Ok(mut clouds) = self.clouds.lock() {
            clouds.insert(name, made.clone());
        }
        Ok(made)
    }

    /// What is behind a URL: a file, or the files under a prefix.
    pub(crate) fn open(&self, url: &RemoteUrl) -> Result<Opened> {
        if url.is_prefix() && !url.is_web() {
            return Ok(Opened::Prefix(self.siblings(url, None)));
        }
        let begun = self.begin(url, None)?;
        let commit = begun.object();
        match self.finish(begun) {
            Ok(source) => {
                let commit = commit.and_then(|object| object.commit());
                let siblings = self.siblings(url, commit);
                Ok(Opened::File { source, siblings })
            }
            // A name without a separator at its end may be a prefix all the same.
            Err(error) if error.kind() == ErrorKind::NotFound && !url.is_web() => {
                let siblings = self.siblings(&url.as_prefix(), None);
                match siblings.is_there() {
                    Ok(true) => Ok(Opened::Prefix(siblings)),
                    _ => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// The files under the prefix of a URL.
    pub(crate) fn beside(&self, url: &RemoteUrl) -> RemoteSiblings {
        self.siblings(&url.as_prefix(), None)
    }

    fn siblings(&self, url: &RemoteUrl, commit: Option<String>) -> RemoteSiblings {
        let url = if url.is_prefix() {
            url.as_prefix()
        } else {
            url.clone()
        };
        RemoteSiblings::of(self, url, commit)
    }

    /// The bytes behind a URL, whatever they are.
    ///
    /// ```no_run
    /// use tenfold::io::{Remote, RemoteUrl, Source};
    /// let url = RemoteUrl::parse("https://host/file.bin")?;
    /// let first = Remote::new().source(&url)?.read(0..16)?;
    /// # Ok::<(), tenfold::Error>(())
    /// ```
    pub fn source(&self, url: &RemoteUrl) -> Result<Arc<dyn Source>> {
        self.open_file(url, None)
    }

    /// A file behind a URL.
    fn open_file(&self, url: &RemoteUrl, commit: Option<&str>) -> Result<Arc<dyn Source>> {
        self.finish(self.begin(url, commit)?)
    }

    /// Everything about a file but the first request.
    fn begin(&self, url: &RemoteUrl, commit: Option<&str>) -> Result<Begun> {
        let place = match url.scheme {
            Scheme::Hub => {
                let place = HubPath::parse(url)?.at(commit);
                let is_offline = hub::is_offline();
                if !self.settings.no_cache || is_offline {
                    if let Some(path) = place.cached().filter(|path| path.is_file()) {
                        return open_source(&path, Access::default()).map(Begun::Near);
                    }
                    if is_offline {
                        let message =
                            format!("{url} is not in the Hub's cache, and HF_HUB_OFFLINE is set");
                        return Err(Error::new(ErrorKind::NotFound, "io", message));
                    }
                }
                Place::Web(Box::new(place.file(&self.settings, &self.transport())?))
            }
            Scheme::Http | Scheme::Https => Place::Web(Box::new(web::WebFile::new(
                self.transport(),
                url.to_web()?,
                None,
            ))),
            Scheme::Azure | Scheme::Gcs | Scheme::S3 => Place::Cloud {
                cloud: self.cloud(url)?,
                key: url.key()?,
            },
        };
        let url = url.clone();
        Ok(Begun::Far(Arc::new(Object { url, place })))
    }

    fn finish(&self, begun: Begun) -> Result<Arc<dyn Source>> {
        match begun {
            Begun::Near(source) => Ok(source),
            Begun::Far(object) => Ok(self.kept(RemoteSource::open(self, object)?)),
        }
    }

    /// The same, with what the first request brought.
    fn end(&self, begun: Begun, first: Option<source::First>) -> Result<Arc<dyn Source>> {
        match (begun, first) {
            (Begun::Far(object), Some(first)) => {
                Ok(self.kept(RemoteSource::with(self, object, first)?))
            }
            (begun, _) => self.finish(begun),
        }
    }

    /// What is read of it in small steps comes in larger ones.
    fn kept(&self, source: RemoteSource) -> Arc<dyn Source> {
        let head = source.head();
        let cached = Cached::new(source);
        cached.remember(0, head);
        Arc::new(cached)
    }

    /// What lies in a directory of the Hub.
    fn list_hub(&self, url: &RemoteUrl, commit: Option<&str>) -> Result<Listed> {
        if hub::is_offline() {
            let Some(here) = self.hub_here(url, commit)? else {
                return Ok(Listed::default());
            };
            return Ok(Listed {
                names: here.names()?.unwrap_or_default(),
                has_directories: true,
            });
        }
        let entries = self.ask_hub(url, commit, false)?;
        let has_directories = entries.iter().any(|entry| entry.is_directory);
        let files = entries.into_iter().filter(|entry| !entry.is_directory);
        Ok(Listed {
            names: files.map(|entry| entry.name().to_owned()).collect(),
            has_directories,
        })
    }

    /// Everything at and below a directory of the Hub: keys and lengths.
    fn list_hub_tree(
        &self,
        url: &RemoteUrl,
        commit: Option<&str>,
    ) -> Result<Vec<(String, Option<u64>)>> {
        if hub::is_offline() {
            let here = self.hub_here(url, commit)?;
            let tree = here.map(|here| here.tree()).transpose()?.flatten();
            let keys = tree.iter().flat_map(Tree::keys);
            return Ok(keys.map(|key| (key.to_owned(), None)).collect());
        }
        let place = HubPath::parse(url)?.beside("").path;
        let entries = self.ask_hub(url, commit, true)?;
        let files = entries.into_iter().filter(|entry| !entry.is_directory);
        let below = files.filter_map(|entry| {
            let key = entry.path.strip_prefix(&place)?.to_owned();
            Some((key, entry.len))
        });
        Ok(below.collect())
    }

    /// The directory in this machine's cache of the Hub.
    fn hub_here(
        &self,
        url: &RemoteUrl,
        commit: Option<&str>,
    ) -> Result<Option<crate::io::DirectorySiblings>> {
        let directory = HubPath::parse(url)?.at(commit).beside("").cached();
        Ok(directory.map(|directory| crate::io::DirectorySiblings::of(&directory.join("any"))))
    }

    fn ask_hub(
        &self,
        url: &RemoteUrl,
        commit: Option<&str>,
        deep: bool,
    ) -> Result<Vec<hub::Listed>> {
        let place = HubPath::parse(url)?.at(commit);
        let (settings, transport) = (self.settings.clone(), self.transport());
        let listed = runtime::wait(self.control(), async move {
            place.list(&settings, &transport, deep).await
        })?;
        listed.map_err(|failure| failure.about(url, &Credentials::default()))
    }
}

/// What is behind a URL.
#[derive(Debug)]
pub(crate) enum Opened {
    /// A file, and what lies beside it.
    File {
        source: Arc<dyn Source>,
        siblings: RemoteSiblings,
    },
    /// Files under one prefix.
    Prefix(RemoteSiblings),
}

/// A file of which nothing was asked yet.
enum Begun {
    Far(Arc<Object>),
    /// It is on this machine already.
    Near(Arc<dyn Source>),
}

impl Begun {
    fn object(&self) -> Option<Arc<Object>> {
        match self {
            Begun::Far(object) => Some(object.clone()),
            Begun::Near(_) => None,
        }
    }
}

impl Object {
    /// The revision that the Hub answered with.
    fn commit(&self) -> Option<String> {
        match &self.place {
            Place::Web(file) => file.commit.lock().ok().and_then(|commit| commit.clone()),
            Place::Cloud { .. } => None,
        }
    }
}

impl RemoteUrl {
    /// Its name in a bucket.
    fn key(&self) -> Result<Path> {
        let path = self.path.trim_end_matches('/');
        Path::parse(path)
            .map_err(|cause| Error::argument(format!("{self} is no name of an object: {cause}")))
    }
}
