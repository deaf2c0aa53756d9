//! Files of plain web servers, and of the Hub, which is one with redirects.

use std::sync::Mutex;

use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName,
    HeaderValue, IF_MATCH, LAST_MODIFIED, LOCATION, RANGE,
};
use http::{Method, StatusCode};
use object_store::client::{HttpRequest, HttpRequestBody, HttpResponse};
use url::Url;

use super::clients::{Reach, is_loopback, is_public, literal};
use super::failure::Failure;
use super::object::{Answer, Identity};
use super::runtime::network;
use super::transport::{Transport, cause_of, word};
use crate::prelude::*;

const REDIRECTS: usize = 5;
/// A server without ranges may send this much: it is kept.
pub(super) const WHOLE: u64 = 64 << 20;

/// A file of a web server.
pub(super) struct WebFile {
    pub(super) transport: Transport,
    pub(super) url: Url,
    /// For the first host alone.
    pub(super) token: Option<HeaderValue>,
    /// Where the last request was led to: until that fails, the next go there at once.
    led_to: Mutex<Option<Url>>,
    /// The revision that the Hub says it is.
    pub(super) commit: Mutex<Option<String>>,
    /// All of it, from a server without ranges.
    whole: Mutex<Option<Bytes>>,
}

impl core::fmt::Debug for WebFile {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // A query may be secret, and so is a token.
        write!(f, "WebFile({})", self.url.path())
    }
}

impl WebFile {
    pub(super) fn new(transport: Transport, url: Url, token: Option<HeaderValue>) -> Self {
        Self {
            transport,
            url,
            token,
            led_to: Mutex::default(),
            commit: Mutex::default(),
            whole: Mutex::default(),
        }
    }

    pub(super) async fn ask(
        &self,
        range: Range<u64>,
        identity: Option<&Identity>,
    ) -> Result<Answer, Failure> {
        if let (Some(whole), Some(identity)) = (kept(&self.whole), identity) {
            return Ok(answer_of(whole, identity.clone(), range));
        }
        let last = range.end.saturating_sub(1);
        let headers = |identity: Option<&Identity>| {
            let mut headers = HeaderMap::new();
            let range = HeaderValue::try_from(format!("bytes={}-{last}", range.start));
            headers.extend(range.ok().map(|range| (RANGE, range)));
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            let tag = identity
                .and_then(Identity::strong)
                .map(HeaderValue::try_from);
            headers.extend(tag.and_then(Result::ok).map(|tag| (IF_MATCH, tag)));
            headers
        };
        let answer = self.follow(Method::GET, headers(identity)).await?;
        let host = answer.url.host_str().unwrap_or_default().to_owned();
        match answer.response.status() {
            StatusCode::PARTIAL_CONTENT => partial(answer.response, host),
            _ => self.take_whole(answer.response, host, range).await,
        }
    }

    pub(super) async fn head(&self) -> Result<Identity, Failure> {
        let answer = self.follow(Method::HEAD, HeaderMap::new()).await?;
        let headers = answer.response.headers();
        let len = length(headers).ok_or_else(|| Failure::Odd {
            host: answer.url.host_str().unwrap_or_default().to_owned(),
            what: "no length".to_owned(),
        })?;
        Ok(identity_of(headers, len))
    }

    /// All of an answer to whoever asked where the page of an interface is: small by nature.
    pub(super) async fn page(&self) -> Result<(Bytes, HeaderMap), Failure> {
        let answer = self.follow(Method::GET, HeaderMap::new()).await?;
        let host = answer.url.host_str().unwrap_or_default().to_owned();
        let headers = answer.response.headers().clone();
        Ok((collect(answer.response, &host, None).await?, headers))
    }

    /// A server that sends all of a file where a part was asked for.
    async fn take_whole(
        &self,
        response: HttpResponse,
        host: String,
        range: Range<u64>,
    ) -> Result<Answer, Failure> {
        let len = length(response.headers());
        if len.is_some_and(|len| len > WHOLE) {
            return Err(Failure::Whole { host, len });
        }
        let headers = response.headers().clone();
        let whole = collect(response, &host, len).await?;
        let identity = identity_of(&headers, whole.len() as u64);
        if let Ok(mut kept) = self.whole.lock() {
            *kept = Some(whole.clone());
        }
        Ok(answer_of(whole, identity, range))
    }

    /// Sends a request, to where the last one was led if there was one, and follows where it leads.
    async fn follow(&self, method: Method, headers: HeaderMap) -> Result<Followed, Failure> {
        if let Some(url) = kept(&self.led_to) {
            match self.walk(url, false, &method, &headers).await {
                // The signature has expired.
                Err(failure) if matches!(failure.number(), Some(400 | 401 | 403)) => {}
                other => return other,
            }
        }
        let answer = self.walk(self.url.clone(), true, &method, &headers).await?;
        if answer.url != self.url
            && let Ok(mut led_to) = self.led_to.lock()
        {
            *led_to = Some(answer.url.clone());
        }
        Ok(answer)
    }

    async fn walk(
        &self,
        first: Url,
        with_token: bool,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Followed, Failure> {
        let is_home = |url: &Url| url.origin() == self.url.origin();
        let mut url = first;
        for _ in 0..=REDIRECTS {
            let mut request = HttpRequest::new(HttpRequestBody::empty());
            *request.method_mut() = method.clone();
            *request.uri_mut() = url.as_str().parse().map_err(|_| Failure::Odd {
                host: url.host_str().unwrap_or_default().to_owned(),
                what: "an address that is none".to_owned(),
            })?;
            *request.headers_mut() = headers.clone();
            if let Some(token) = self.token.as_ref().filter(|_| with_token && is_home(&url)) {
                request.headers_mut().insert(AUTHORIZATION, token.clone());
            }
            let reach = if is_home(&url) || self.is_private_home() {
                Reach::Any
            } else {
                Reach::Public
            };
            let response = self.transport.send(request, reach).await?;
            self.note_commit(response.headers());
            if !response.status().is_redirection() {
                return Ok(Followed { url, response });
            }
            url = self.next(&url, response.headers())?;
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        Err(Failure::Redirect {
            host,
            why: "there were too many",
        })
    }

    /// Where a redirect leads, if that is followed.
    fn next(&self, from: &Url, headers: &HeaderMap) -> Result<Url, Failure> {
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let to = location.and_then(|location| from.join(location).ok());
        let Some(mut to) = to else {
            let host = from.host_str().unwrap_or_default().to_owned();
            return Err(Failure::Odd {
                host,
                what: "a redirect to nowhere".to_owned(),
            });
        };
        // Whoever puts a password there wants it to be sent.
        let _ = (to.set_username(""), to.set_password(None));
        let host = to.host_str().unwrap_or_default().to_owned();
        let refuse = |why| {
            Err(Failure::Redirect {
                host: host.clone(),
                why,
            })
        };
        match to.scheme() {
            "https" => {}
            "http" if from.scheme() == "http" => {}
            "http" => return refuse("it leads from https to http"),
            _ => return refuse("it leads away from the web"),
        }
        let is_private =
            is_loopback(&host) || literal(&host).is_some_and(|address| !is_public(address));
        if is_private && to.origin() != self.url.origin() && !self.is_private_home() {
            return refuse("it leads from a public server into a private network");
        }
        Ok(to)
    }

    /// Whether the server that was asked first is inside of a private network itself.
    fn is_private_home(&self) -> bool {
        let host = self.url.host_str().unwrap_or_default();
        match literal(host) {
            Some(address) => !is_public(address),
            None if is_loopback(host) => true,
            None => network().is_ok_and(|network| network.clients.is_private(host)),
        }
    }

    fn note_commit(&self, headers: &HeaderMap) {
        let commit = word(headers, &HeaderName::from_static("x-repo-commit"));
        if let (Some(commit), Ok(mut known)) = (commit, self.commit.lock()) {
            known.get_or_insert(commit);
        }
    }
}

struct Followed {
    url: Url,
    response: HttpResponse,
}

/// A copy of what is kept.
fn kept<T: Clone>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().ok().and_then(|kept| kept.clone())
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn identity_of(headers: &HeaderMap, len: u64) -> Identity {
    Identity {
        len,
        etag: word(headers, &ETAG),
        modified: word(headers, &LAST_MODIFIED),
    }
}

/// The answer to a range.
fn partial(response: HttpResponse, host: String) -> Result<Answer, Failure> {
    let range = word(response.headers(), &CONTENT_RANGE);
    let Some((at, len)) = range.as_deref().and_then(content_range) else {
        let what = "a part of the file and without its place".to_owned();
        return Err(Failure::Odd { host, what });
    };
    let identity = identity_of(response.headers(), len);
    let bytes = pieces(response, host);
    Ok(Answer {
        identity,
        at,
        bytes,
    })
}

/// Where a part begins, and how long all of it is: `bytes 0-99/1000`.
fn content_range(text: &str) -> Option<(u64, u64)> {
    let (range, len) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (at, _) = range.split_once('-')?;
    Some((at.trim().parse().ok()?, len.trim().parse().ok()?))
}

fn pieces(
    response: HttpResponse,
    host: String,
) -> futures_util::stream::BoxStream<'static, Result<Bytes, Failure>> {
    let pieces = response.into_body().bytes_stream();
    pieces
        .map(move |piece| piece.map_err(|error| cause_of(&error, &host)))
        .boxed()
}

/// All bytes of an answer, of which there are not too many.
async fn collect(response: HttpResponse, host: &str, len: Option<u64>) -> Result<Bytes, Failure> {
    let mut pieces = pieces(response, host.to_owned());
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.next().await {
        bytes.extend_from_slice(&piece?);
        if bytes.len() as u64 > WHOLE {
            return Err(Failure::Whole {
                host: host.to_owned(),
                len: None,
            });
        }
    }
    if len.is_some_and(|len| len != bytes.len() as u64) {
        return Err(Failure::Cut {
            host: host.to_owned(),
        });
    }
    Ok(bytes.into())
}

/// A part of what is in memory.
fn answer_of(whole: Bytes, identity: Identity, range: Range<u64>) -> Answer {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(whole.len());
    let part = whole.slice(place(range.start)..place(range.end));
    Answer {
        identity,
        at: range.start,
        bytes: futures_util::stream::iter([Ok(part)]).boxed(),
    }
}
