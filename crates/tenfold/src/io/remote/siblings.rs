//! What lies beside a file behind a URL.

use std::sync::OnceLock;

use futures_util::{StreamExt, TryStreamExt};

use super::runtime::wait;
use super::url::{RemoteUrl, Scheme};
use super::{Credentials, Failure, Remote};
use crate::error::{Error, Result};
use crate::io::{Siblings, Source, Tree, check_plain};
use crate::prelude::*;

/// How many files are opened at once.
const AT_ONCE: usize = 32;
/// Files that are listed: one more than a tree holds, so that it says that there are too many.
const MOST: usize = Tree::MOST + 1;

/// The files under the prefix of a URL, with the credentials that it was opened with. Plain web servers have no lists of
/// theirs.
#[derive(Clone, Debug)]
pub struct RemoteSiblings {
    remote: Remote,
    /// One of them, or the prefix.
    url: RemoteUrl,
    /// The revision of the first file, where the Hub named it: the others are of the same.
    commit: Option<String>,
    names: OnceLock<Listed>,
}

/// What a listing of one directory says.
#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    pub(super) names: Vec<String>,
    pub(super) has_directories: bool,
}

impl RemoteSiblings {
    pub(super) fn of(remote: &Remote, url: RemoteUrl, commit: Option<String>) -> Self {
        Self {
            remote: remote.clone(),
            url,
            commit,
            names: OnceLock::new(),
        }
    }

    /// Lists them, once.
    fn listed(&self) -> Result<&Listed> {
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let listed = if self.url.scheme == Scheme::Hub {
            self.remote.list_hub(&self.url, self.commit.as_deref())?
        } else {
            self.list_cloud()?
        };
        Ok(self.names.get_or_init(|| listed))
    }

    /// Whether there is anything under the prefix.
    pub(super) fn is_there(&self) -> Result<bool> {
        let listed = self.listed()?;
        Ok(!listed.names.is_empty() || listed.has_directories)
    }

    fn list_cloud(&self) -> Result<Listed> {
        let cloud = self.remote.cloud(&self.url)?;
        let prefix = self.url.beside("");
        let key = prefix.key()?;
        let access = cloud.access.clone();
        let listed = wait(self.remote.control(), async move {
            super::retry::retried(|| async {
                let listed = cloud.objects.list_with_delimiter(Some(&key)).await?;
                Ok::<_, Failure>(listed)
            })
            .await
        })?;
        let listed = listed.map_err(|failure| failure.about(&prefix, &access))?;
        let names = listed
            .objects
            .iter()
            .filter_map(|object| object.location.filename());
        Ok(Listed {
            names: names.map(ToOwned::to_owned).collect(),
            has_directories: !listed.common_prefixes.is_empty(),
        })
    }

    /// Lists everything under the prefix: the keys from there on, and the lengths.
    fn list_cloud_tree(&self, tree: &mut Tree) -> Result<()> {
        let cloud = self.remote.cloud(&self.url)?;
        let prefix = self.url.beside("");
        let key = prefix.key()?;
        let access = cloud.access.clone();
        let at = key.clone();
        let listed = wait(self.remote.control(), async move {
            super::retry::retried(|| async {
                let objects = cloud.objects.list(Some(&at)).take(MOST);
                let objects: Vec<_> = objects.try_collect().await?;
                Ok::<_, Failure>(objects)
            })
            .await
        })?;
        let listed = listed.map_err(|failure| failure.about(&prefix, &access))?;
        for object in &listed {
            let full = object.location.as_ref();
            let below = full.strip_prefix(key.as_ref());
            let below = below.map(|below| below.trim_start_matches('/'));
            // A key of the prefix itself marks a directory.
            if let Some(below) = below.filter(|below| !below.is_empty()) {
                tree.push(below, Some(object.size))?;
            }
        }
        Ok(())
    }

    fn place(&self, path: &[&str]) -> Result<RemoteUrl> {
        let mut url = self.url.clone();
        for (n, name) in path.iter().enumerate() {
            check_plain(name)?;
            let is_escaped = name.to_ascii_lowercase();
            if ["%2f", "%5c", "%2e%2e", "://"]
                .iter()
                .any(|escape| is_escaped.contains(escape))
            {
                let message = format!("{name:?} is not the plain name of a file beside it");
                return Err(Error::malformed("sibling", message));
            }
            url = if n == 0 {
                url.beside(name)
            } else {
                url.as_prefix().beside(name)
            };
        }
        Ok(url)
    }
}

impl Siblings for RemoteSiblings {
    fn names(&self) -> Result<Option<Vec<String>>> {
        if self.url.is_web() {
            return Ok(None);
        }
        Ok(Some(self.listed()?.names.clone()))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Source>> {
        self.open_below(&[name])
    }

    fn open_below(&self, path: &[&str]) -> Result<Arc<dyn Source>> {
        self.remote
            .open_file(&self.place(path)?, self.commit.as_deref())
    }

    fn open_all(&self, names: &[&str]) -> Vec<Result<Arc<dyn Source>>> {
        self.open_at_once(names.iter().map(|name| self.place(&[name])))
    }

    fn tree(&self) -> Result<Option<Tree>> {
        if self.url.is_web() {
            return Ok(Some(Tree::unlisted(Arc::new(self.clone()))));
        }
        let mut tree = Tree::new(Arc::new(self.clone()));
        if self.url.scheme == Scheme::Hub {
            let listed = self
                .remote
                .list_hub_tree(&self.url, self.commit.as_deref())?;
            for (key, len) in listed {
                tree.push(&key, len)?;
            }
        } else {
            self.list_cloud_tree(&mut tree)?;
        }
        Ok(Some(tree.sorted()))
    }

    fn open_keys(&self, keys: &[&str]) -> Vec<Result<Arc<dyn Source>>> {
        let place = |key: &&str| self.place(&key.split('/').collect::<Vec<_>>());
        self.open_at_once(keys.iter().map(place))
    }

    fn directory_name(&self) -> Option<String> {
        let directory = self.url.beside("");
        let path = directory.path.trim_end_matches('/');
        let name = path.rsplit('/').next().filter(|name| !name.is_empty());
        name.map(ToOwned::to_owned)
    }

    fn shared(&self) -> Option<Arc<dyn Siblings>> {
        Some(Arc::new(Self::of(
            &self.remote,
            self.url.clone(),
            self.commit.clone(),
        )))
    }
}

impl RemoteSiblings {
    /// Opens files whose places are known, with requests that are under way together.
    fn open_at_once(
        &self,
        places: impl Iterator<Item = Result<RemoteUrl>>,
    ) -> Vec<Result<Arc<dyn Source>>> {
        let objects = places.map(|place| self.remote.begin(&place?, self.commit.as_deref()));
        let mut begun: Vec<_> = objects.collect();
        let asked: Vec<_> = begun
            .iter()
            .map(|begun| begun.as_ref().ok().and_then(super::Begun::object))
            .collect();
        let fetched = wait(self.remote.control(), async move {
            let requests = asked.into_iter().map(|object| async move {
                Ok::<_, Failure>(match object {
                    Some(object) => Some(super::source::first(&object).await),
                    None => None,
                })
            });
            let fetched = futures_util::stream::iter(requests).buffered(AT_ONCE);
            fetched.try_collect::<Vec<_>>().await
        });
        let fetched = match fetched {
            Ok(Ok(fetched)) => fetched,
            Ok(Err(failure)) => {
                return (begun.iter())
                    .map(|_| Err(failure.clone().about(&self.url, &Credentials::default())))
                    .collect();
            }
            Err(error) => return begun.iter().map(|_| Err(error.clone())).collect(),
        };
        let opened = begun.drain(..).zip(fetched);
        opened
            .map(|(begun, first)| self.remote.end(begun?, first))
            .collect()
    }
}
