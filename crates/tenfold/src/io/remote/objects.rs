//! What lies under a prefix.

use futures_util::{StreamExt, TryStreamExt};
use object_store::ObjectStore;

use super::retry::retried;
use super::runtime::wait;
use super::url::RemoteUrl;
use super::{Failure, Remote};
use crate::error::Result;
use crate::io::{Stamp, Tree};
use crate::prelude::*;

impl Remote {
    /// The objects under a prefix, at any depth, by the rest of their names, in order.
    pub(crate) fn list(&self, prefix: &RemoteUrl) -> Result<Vec<(String, Stamp)>> {
        let prefix = prefix.as_prefix();
        let before = prefix.path.clone();
        let cloud = self.cloud(&prefix)?;
        let access = cloud.access.clone();
        let key = prefix.key()?;
        let found = wait(self.control(), async move {
            let listed = retried(|| async {
                let key = Some(&key).filter(|key| !key.as_ref().is_empty());
                let objects = cloud.objects.list(key).take(Tree::MOST + 1);
                let objects: Vec<_> = objects.try_collect().await?;
                Ok(objects)
            })
            .await?;
            if listed.len() > Tree::MOST {
                let message = format!("there are more than {} files", Tree::MOST);
                return Err(Failure::Store(message));
            }
            let named = listed.into_iter().filter_map(|found| {
                let name = found.location.as_ref().strip_prefix(&before)?.to_owned();
                let modified = Some(found.last_modified.to_rfc3339());
                Some((name, Stamp::of_object(found.size, found.e_tag, modified)))
            });
            let mut named: Vec<_> = named.collect();
            named.sort_by(|(a, _), (b, _)| a.cmp(b));
            Ok(named)
        })?;
        found.map_err(|failure: Failure| failure.about(&prefix, &access))
    }
}
