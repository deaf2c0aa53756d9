//! Whole objects, and parts of one that several processes send: what a state that many share is made of.

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::multipart::PartId;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use super::retry::retried;
use super::runtime::wait;
use super::upload::{Sent, create_parts};
use super::url::RemoteUrl;
use super::{Cloud, Failure, Remote, RemoteOutput};
use crate::error::{Error, Result};
use crate::io::Stamp;
use crate::prelude::*;

impl Remote {
    /// Work in the bucket of a URL.
    fn in_bucket<T, F>(
        &self,
        url: &RemoteUrl,
        work: impl FnOnce(Arc<Cloud>, object_store::path::Path) -> F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let cloud = self.cloud(url)?;
        let is_anonymous = cloud.is_anonymous;
        let done = wait(self.control(), work(cloud, url.key()?))?;
        done.map_err(|failure| failure.about(url, is_anonymous))
    }

    /// Writes a small object, over one that is there.
    pub(crate) fn put(&self, url: &RemoteUrl, bytes: Vec<u8>) -> Result<()> {
        RemoteOutput::refuse(url)?;
        let bytes = Bytes::from(bytes);
        self.in_bucket(url, |cloud, key| async move {
            retried(|| async {
                let payload = PutPayload::from_bytes(bytes.clone());
                let options = PutOptions::from(PutMode::Overwrite);
                cloud.objects.put_opts(&key, payload, options).await?;
                Ok(())
            })
            .await
        })
    }

    /// Removes an object; that there is none is no error.
    pub(crate) fn delete(&self, url: &RemoteUrl) -> Result<()> {
        self.in_bucket(url, |cloud, key| async move {
            let deleted = retried(|| async { Ok(cloud.objects.delete(&key).await?) }).await;
            match deleted {
                Err(failure) if failure.number() == Some(404) => Ok(()),
                other => other,
            }
        })
    }

    /// The objects under a prefix, at any depth, by the rest of their names, in order.
    pub(crate) fn list(&self, prefix: &RemoteUrl) -> Result<Vec<(String, Stamp)>> {
        let prefix = prefix.as_prefix();
        let before = prefix.path.clone();
        self.in_bucket(&prefix, move |cloud, key| async move {
            let listed = retried(|| async {
                let key = Some(&key).filter(|key| !key.as_ref().is_empty());
                let objects: Vec<_> = cloud.objects.list(key).try_collect().await?;
                Ok(objects)
            })
            .await?;
            let named = listed.into_iter().filter_map(|found| {
                let name = found.location.as_ref().strip_prefix(&before)?.to_owned();
                let modified = Some(found.last_modified.to_rfc3339());
                Some((name, Stamp::of_object(found.size, found.e_tag, modified)))
            });
            let mut named: Vec<_> = named.collect();
            named.sort_by(|(a, _), (b, _)| a.cmp(b));
            Ok(named)
        })
    }

    /// Begins to send an object in parts, which any process may do that knows what this gives.
    pub(crate) fn begin_parts(&self, url: &RemoteUrl) -> Result<Sent> {
        RemoteOutput::refuse(url)?;
        self.in_bucket(url, |cloud, key| async move {
            let (at, id) = create_parts(&cloud, &key, false).await?;
            Ok(Sent {
                at: at.to_string(),
                id,
                parts: Vec::new(),
            })
        })
    }

    /// Sends a part, and gives what it is known by.
    pub(crate) fn send_part(
        &self,
        url: &RemoteUrl,
        to: &Sent,
        number: usize,
        bytes: Bytes,
    ) -> Result<String> {
        let (at, id) = (parsed(&to.at)?, to.id.clone());
        self.in_bucket(url, |cloud, _| async move {
            retried(|| async {
                let payload = PutPayload::from_bytes(bytes.clone());
                let part: PartId = cloud.parts.put_part(&at, &id, number, payload).await?;
                Ok(part.content_id)
            })
            .await
        })
    }

    /// Removes what was sent of an object that has no name yet.
    pub(crate) fn abort_parts(&self, url: &RemoteUrl, sent: &Sent) -> Result<()> {
        let (at, id) = (parsed(&sent.at)?, sent.id.clone());
        self.in_bucket(url, |cloud, _| async move {
            let aborted =
                retried(|| async { Ok(cloud.parts.abort_multipart(&at, &id).await?) }).await;
            match aborted {
                Err(failure) if failure.number() == Some(404) => Ok(()),
                other => other,
            }
        })
    }
}

pub(super) fn parsed(key: &str) -> Result<object_store::path::Path> {
    object_store::path::Path::parse(key)
        .map_err(|cause| Error::argument(format!("{key} is no name of an object: {cause}")))
}
