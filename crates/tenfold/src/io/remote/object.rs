//! One file behind a URL: how parts of it are asked for, and how it is known to be still the same.

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};

use super::cloud::Cloud;
use super::failure::{Credentials, Failure};
use super::retry::Tries;
use super::url::RemoteUrl;
use super::web::WebFile;
use crate::prelude::*;

/// Room that is made for an answer before it comes.
const MOST_RESERVED: usize = 8 << 20;

/// A file behind a URL.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) url: RemoteUrl,
    pub(super) place: Place,
}

#[derive(Debug)]
pub(super) enum Place {
    Cloud { cloud: Arc<Cloud>, key: Path },
    Web(Box<WebFile>),
}

/// By what a file is known to be the one that was opened.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Identity {
    pub(super) len: u64,
    pub(super) etag: Option<String>,
    pub(super) modified: Option<String>,
}

impl Identity {
    /// What a server can be told to compare: weak tags are for pages, not for bytes.
    pub(super) fn strong(&self) -> Option<&str> {
        self.etag.as_deref().filter(|tag| !tag.starts_with("W/"))
    }

    /// Whether an answer is about the same bytes. Some servers send no tag, and some do not compare what they are told to.
    fn is_same(&self, other: &Self) -> bool {
        self.len == other.len
            && match (&self.etag, &other.etag) {
                (Some(ours), Some(theirs)) => ours == theirs,
                (None, None) => self.modified == other.modified,
                _ => false,
            }
    }
}

/// What a server sends.
pub(super) struct Answer {
    pub(super) identity: Identity,
    /// Where the first of the bytes belongs.
    pub(super) at: u64,
    pub(super) bytes: BoxStream<'static, Result<Bytes, Failure>>,
}

impl Object {
    /// Asks for a range once.
    async fn ask(&self, range: Range<u64>, identity: Option<&Identity>) -> Result<Answer, Failure> {
        match &self.place {
            Place::Web(file) => file.ask(range, identity).await,
            Place::Cloud { cloud, key } => {
                let options = GetOptions {
                    range: Some(GetRange::Bounded(range)),
                    if_match: identity.and_then(Identity::strong).map(ToOwned::to_owned),
                    ..GetOptions::default()
                };
                let answer = cloud.objects.get_opts(key, options).await?;
                let identity = Identity {
                    len: answer.meta.size,
                    etag: answer.meta.e_tag.clone(),
                    modified: Some(answer.meta.last_modified.to_rfc3339()),
                };
                let at = answer.range.start;
                let bytes = answer
                    .into_stream()
                    .map(|piece| piece.map_err(Failure::from));
                Ok(Answer {
                    identity,
                    at,
                    bytes: bytes.boxed(),
                })
            }
        }
    }

    /// The bytes of a range, as far as the file has them, and what file it is. What breaks off is taken up where it did.
    pub(super) async fn fetch(
        &self,
        range: Range<u64>,
        identity: Option<&Identity>,
    ) -> Result<(Bytes, Identity), Failure> {
        let mut known = identity.cloned();
        let mut bytes = BytesMut::new();
        let mut tries = Tries::new();
        loop {
            let at = range.start + bytes.len() as u64;
            let end = known
                .as_ref()
                .map_or(range.end, |known| range.end.min(known.len));
            if let Some(known) = known.as_ref().filter(|_| at >= end) {
                return Ok((bytes.freeze(), known.clone()));
            }
            let before = bytes.len();
            let taken = async {
                let answer = self.ask(at..end, known.as_ref()).await?;
                if known
                    .as_ref()
                    .is_some_and(|known| !known.is_same(&answer.identity))
                {
                    return Err(Failure::Changed);
                }
                if answer.at != at {
                    return Err(Failure::Odd {
                        host: self.url.authority.clone(),
                        what: format!(
                            "the bytes from {} on, and was asked for those from {at} on",
                            answer.at
                        ),
                    });
                }
                let end = end.min(answer.identity.len);
                known = Some(answer.identity);
                take(answer.bytes, end.saturating_sub(at), &mut bytes).await
            };
            if let Err(failure) = taken.await {
                if bytes.len() > before {
                    tries = Tries::new();
                }
                tries.again(failure).await?;
            }
        }
    }

    /// What file it is, without any of its bytes.
    pub(super) async fn head(&self) -> Result<Identity, Failure> {
        match &self.place {
            Place::Web(file) => file.head().await,
            Place::Cloud { cloud, key } => {
                let meta = cloud.objects.head(key).await?;
                Ok(Identity {
                    len: meta.size,
                    etag: meta.e_tag,
                    modified: Some(meta.last_modified.to_rfc3339()),
                })
            }
        }
    }

    pub(super) fn access(&self) -> Credentials {
        match &self.place {
            Place::Cloud { cloud, .. } => cloud.access.clone(),
            Place::Web(file) => Credentials {
                is_anonymous: file.token.is_none(),
                advice: None,
            },
        }
    }
}

/// Takes up to `len` bytes from an answer; that fewer come is a failure.
async fn take(
    mut pieces: BoxStream<'static, Result<Bytes, Failure>>,
    len: u64,
    bytes: &mut BytesMut,
) -> Result<(), Failure> {
    let mut left = usize::try_from(len).unwrap_or(usize::MAX);
    // Grown step by step, it would have up to twice the room. No request asks for more than a piece.
    bytes.reserve(left.min(MOST_RESERVED));
    while left > 0 {
        let Some(piece) = pieces.next().await else {
            return Err(Failure::Cut {
                host: "the server".to_owned(),
            });
        };
        let mut piece = piece?;
        piece.truncate(left);
        left -= piece.len();
        bytes.extend_from_slice(&piece);
    }
    Ok(())
}
