//! One request and its answer: what every store's requests pass through.
//!
//! Here they are counted, kept from going where they must not go, and what a server says of a failure is reduced to what
//! is known: its status, and a word.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::error::Error as StdError;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap,
    HeaderName, RANGE,
};
use http::{Method, StatusCode};
use http_body::{Body, Frame, SizeHint};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};

use super::clients::{Reach, is_loopback, is_metadata};
use super::failure::{Failure, Status};
use super::runtime::network;
use super::traffic::{RequestMade, Traffic};
use super::upload::UNDER_WAY;
use crate::prelude::*;

/// How long a machine's own cloud may take to give it credentials.
const METADATA: Duration = Duration::from_secs(1);
/// How much of a page about a failure is looked at for a word.
const PAGE: usize = 8 << 10;
/// How long a server may take for what was sent to it; putting the parts of a large file together takes minutes.
const WORK: Duration = Duration::from_secs(300);
/// What a link carries at least, in bytes a second, for all that is under way together.
const SLOWEST: u64 = 64 << 10;

/// What all requests of one [`Remote`](super::Remote) have in common.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    pub(super) traffic: Arc<Traffic>,
    pub(super) allow_http: bool,
}

/// Where the requests of stores go.
#[derive(Clone, Debug)]
pub(super) struct Connector(pub(super) Transport);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let host = host_of(request.uri());
        let is_post = *request.method() == Method::POST;
        let is_range = is_range(&request);
        let answered = async {
            self.refuse_signature(&request, &host)?;
            let answer = self.send(request, Reach::Any).await?;
            // A signed request cannot go elsewhere: its signature is for one host.
            if answer.status().is_redirection() {
                let status = Status {
                    host: host.clone(),
                    number: answer.status().as_u16(),
                    region: word(
                        answer.headers(),
                        &HeaderName::from_static("x-amz-bucket-region"),
                    ),
                    ..Status::default()
                };
                return Err(Failure::Status(status));
            }
            if is_range && answer.status() == StatusCode::OK {
                let len = word(answer.headers(), &CONTENT_LENGTH);
                let len = len.and_then(|len| len.parse().ok());
                return Err(Failure::Whole { host, len });
            }
            if is_post {
                return without_late_failure(answer, &host).await;
            }
            Ok(answer)
        };
        let answered = answered.await;
        // Whether it is tried again is decided elsewhere, for all stores alike.
        answered.map_err(|failure| HttpError::new(HttpErrorKind::Unknown, failure))
    }
}

impl Transport {
    /// Sends a request; the answer is a success or a redirect.
    pub(super) async fn send(
        &self,
        request: HttpRequest,
        reach: Reach,
    ) -> Result<HttpResponse, Failure> {
        let host = host_of(request.uri());
        let name = request.uri().host().unwrap_or_default().to_owned();
        self.refuse_insecure(&request, &name, &host)?;
        let is_near = is_loopback(&name) || is_metadata(&name);
        let reach = if is_near && reach == Reach::Any {
            Reach::Near
        } else {
            reach
        };
        let is_range = is_range(&request);
        let sends = matches!(*request.method(), Method::POST | Method::PUT);
        let limit = match sends {
            _ if is_metadata(&name) => Some(METADATA),
            true => Some(patience(request.body().content_length() as u64)),
            // Its client looks how long nothing comes.
            false => None,
        };
        let mut made = self.begin(&request, &host);
        let sent = async {
            let network = network().map_err(|error| Failure::Store(error.to_string()))?;
            let client = network.clients.get(reach, sends);
            let client = client.map_err(|cause| Failure::Store(cause.to_string()))?;
            let sent = client.call(request).await;
            sent.map_err(|cause| classify(&cause, &host))
        };
        let answer = match limit {
            Some(limit) => {
                let late = |_| Failure::Timeout { host: host.clone() };
                let answer = tokio::time::timeout(limit, sent).await;
                answer.map_err(late).and_then(|answer| answer)
            }
            None => sent.await,
        };
        let answer = answer.inspect_err(|_| made.note(None))?;
        let (parts, body) = answer.into_parts();
        let number = parts.status.as_u16();
        made.note(Some(number));
        if let Some(made) = &mut made.made {
            let tag = word(&parts.headers, &ETAG);
            let is_part = parts.status == StatusCode::PARTIAL_CONTENT;
            made.is_untagged = is_part && tag.is_none_or(|tag| tag.starts_with("W/"));
        }
        let body = Counted {
            body,
            made,
            host: host.clone(),
        };
        if parts.status.is_client_error() || parts.status.is_server_error() {
            return Err(Failure::Status(self.status(&parts, body, host).await));
        }
        if is_range && let Some(encoding) = encoding(&parts.headers) {
            return Err(Failure::Encoded { host, encoding });
        }
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }

    /// Plain HTTP is for this machine, for a cloud's own addresses, and for who asked for it; and never for what is secret.
    fn refuse_insecure(
        &self,
        request: &HttpRequest,
        name: &str,
        host: &str,
    ) -> Result<(), Failure> {
        if request.uri().scheme_str() == Some("https") || is_loopback(name) || is_metadata(name) {
            return Ok(());
        }
        let authorization = request.headers().get(AUTHORIZATION);
        let is_secret = authorization.is_some_and(|value| value.as_bytes().starts_with(b"Bearer "));
        if is_secret || !self.allow_http {
            return Err(Failure::Insecure {
                host: host.to_owned(),
                is_secret,
            });
        }
        Ok(())
    }

    /// A signature that Azure takes from anybody is a secret as a token is. Web addresses with one are given by whoever wants
    /// them to be asked.
    fn refuse_signature(&self, request: &HttpRequest, host: &str) -> Result<(), Failure> {
        let (uri, name) = (request.uri(), request.uri().host().unwrap_or_default());
        let mut pairs = uri.query().unwrap_or_default().split('&');
        if pairs.all(|pair| !pair.starts_with("sig="))
            || uri.scheme_str() == Some("https")
            || is_loopback(name)
        {
            return Ok(());
        }
        Err(Failure::Insecure {
            host: host.to_owned(),
            is_secret: true,
        })
    }

    fn begin(&self, request: &HttpRequest, host: &str) -> Made {
        let sent = request.body().content_length() as u64;
        self.traffic.begin(sent);
        let headers = request.headers();
        let range = headers.get(RANGE).or_else(|| headers.get("x-ms-range"));
        Made {
            traffic: self.traffic.clone(),
            begun: Instant::now(),
            made: Some(RequestMade {
                method: request.method().to_string(),
                host: host.to_owned(),
                path: request.uri().path().to_owned(),
                range: range
                    .and_then(|range| range.to_str().ok())
                    .map(ToOwned::to_owned),
                status: None,
                received: 0,
                sent,
                took: Duration::ZERO,
                is_untagged: false,
            }),
        }
    }

    /// What is known of a failure: never the page itself.
    async fn status(&self, parts: &http::response::Parts, body: Counted, host: String) -> Status {
        let headers = &parts.headers;
        let is_xml = word(headers, &CONTENT_TYPE).is_some_and(|kind| kind.contains("xml"));
        let page = if is_xml {
            begin_of(body).await
        } else {
            String::new()
        };
        let region = word(headers, &HeaderName::from_static("x-amz-bucket-region"));
        let code = within(&page, "Code");
        // The right region comes with each answer, also where it is not what is wrong.
        let is_elsewhere = parts.status.is_redirection()
            || code.as_deref() == Some("AuthorizationHeaderMalformed");
        let total = headers
            .get(CONTENT_RANGE)
            .and_then(|range| range.to_str().ok());
        Status {
            host,
            number: parts.status.as_u16(),
            region: region
                .or_else(|| within(&page, "Region"))
                .filter(|_| is_elsewhere),
            code,
            total: total.and_then(|range| range.rsplit('/').next()?.parse().ok()),
        }
    }
}

/// S3 begins to answer before it has put a file together, with a success: that it failed after all stands in the page.
async fn without_late_failure(answer: HttpResponse, host: &str) -> Result<HttpResponse, Failure> {
    let (parts, body) = answer.into_parts();
    let page = tokio::time::timeout(WORK, body.bytes()).await;
    let late = |_| Failure::Timeout {
        host: host.to_owned(),
    };
    let page = page
        .map_err(late)?
        .map_err(|error| cause_of(&error, host))?;
    let text = String::from_utf8_lossy(&page);
    let begin = text.trim_start();
    let root = match begin.strip_prefix("<?") {
        Some(declared) => declared.split_once("?>").map_or("", |(_, rest)| rest),
        None => begin,
    };
    if root.trim_start().starts_with("<Error>") {
        return Err(Failure::Status(Status {
            host: host.to_owned(),
            number: StatusCode::INTERNAL_SERVER_ERROR.as_u16(),
            code: within(&text, "Code"),
            ..Status::default()
        }));
    }
    Ok(HttpResponse::from_parts(parts, page.into()))
}

/// How long a request may take that sends so many bytes, beside others.
fn patience(len: u64) -> Duration {
    WORK + Duration::from_secs(len.saturating_mul(UNDER_WAY) / SLOWEST)
}

fn is_range(request: &HttpRequest) -> bool {
    request.headers().contains_key(RANGE) || request.headers().contains_key("x-ms-range")
}

/// How a body is compressed. What some programs upload keeps the word for the way that it was sent in, which is no compression.
fn encoding(headers: &HeaderMap) -> Option<String> {
    let encodings = word(headers, &CONTENT_ENCODING)?;
    let mut encodings = encodings.split(',').map(str::trim);
    let is_one = |word: &&str| !["", "aws-chunked", "identity"].contains(word);
    encodings.find(is_one).map(ToOwned::to_owned)
}

/// The begin of a page, as far as it comes in a second.
async fn begin_of(body: Counted) -> String {
    let mut page = Vec::new();
    let mut pieces = HttpResponseBody::new(body).bytes_stream();
    let reading = async {
        while let Some(Ok(piece)) = pieces.next().await {
            page.extend(piece.iter().take(PAGE - page.len()));
            if page.len() >= PAGE {
                break;
            }
        }
    };
    // What has come by then is enough.
    let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
    String::from_utf8_lossy(&page).into_owned()
}

/// What stands between two tags, if it is a plain word.
fn within(page: &str, tag: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("<{tag}>"))?;
    let (text, _) = rest.split_once('<')?;
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    (is_plain && !text.is_empty() && text.len() <= 64).then(|| text.to_owned())
}

/// A header's value, where it is short and plain.
pub(super) fn word(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    let is_plain = value.len() <= 256 && value.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    is_plain.then(|| value.to_owned())
}

/// The host of a request, with its port where there is one.
pub(super) fn host_of(uri: &http::Uri) -> String {
    match (uri.host(), uri.port_u16()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => "a server without a name".to_owned(),
    }
}

/// What an error of the client means.
fn classify(error: &HttpError, host: &str) -> Failure {
    let host = host.to_owned();
    let mut innermost = String::new();
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(tls) = as_tls(inner) {
            return Failure::Tls {
                host,
                cause: tls.to_string(),
            };
        }
        innermost = inner.to_string();
        cause = inner.source();
    }
    match error.kind() {
        HttpErrorKind::Timeout => Failure::Timeout { host },
        HttpErrorKind::Connect => Failure::Connect {
            host,
            cause: innermost,
        },
        HttpErrorKind::Decode | HttpErrorKind::Interrupted | HttpErrorKind::Request => {
            Failure::Cut { host }
        }
        _ => Failure::Connect {
            host,
            cause: innermost,
        },
    }
}

/// Our failure inside of an error of a body that passed through here.
pub(super) fn cause_of(error: &HttpError, host: &str) -> Failure {
    let failure = error.source().and_then(|cause| cause.downcast_ref());
    failure.cloned().unwrap_or_else(|| Failure::Cut {
        host: host.to_owned(),
    })
}

/// The error of TLS that this one is, or wraps: one of the system's passes over what it wraps when it is asked for its cause.
fn as_tls<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e rustls::Error> {
    let mut error = error;
    while let Some(inner) = error
        .downcast_ref::<std::io::Error>()
        .and_then(std::io::Error::get_ref)
    {
        error = inner;
    }
    error.downcast_ref()
}

/// A request that is under way: noted when it ends, however that is.
#[derive(Debug)]
struct Made {
    traffic: Arc<Traffic>,
    begun: Instant,
    made: Option<RequestMade>,
}

impl Made {
    fn note(&mut self, status: Option<u16>) {
        if let Some(made) = &mut self.made {
            made.status = status;
        }
    }

    fn receive(&mut self, bytes: usize) {
        self.traffic.receive(bytes as u64);
        if let Some(made) = &mut self.made {
            made.received += bytes as u64;
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(mut made) = self.made.take() {
            made.took = self.begun.elapsed();
            self.traffic.end(made);
        }
    }
}

/// A body whose bytes are counted, and whose errors are ours.
#[derive(Debug)]
struct Counted {
    body: HttpResponseBody,
    made: Made,
    host: String,
}

impl Body for Counted {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(bytes) = frame.data_ref() {
                    let len = bytes.len();
                    self.made.receive(len);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                let failure = match classify(&error, &self.host) {
                    // There was a connection.
                    Failure::Connect { host, .. } => Failure::Cut { host },
                    other => other,
                };
                Poll::Ready(Some(Err(HttpError::new(HttpErrorKind::Unknown, failure))))
            }
            other => other,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_is_told_from_how_it_was_sent() {
        let of = |text| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_ENCODING, http::HeaderValue::from_static(text));
            encoding(&headers)
        };
        assert_eq!(of("aws-chunked"), None);
        assert_eq!(of("identity"), None);
        assert_eq!(of("aws-chunked, gzip").as_deref(), Some("gzip"));
    }

    #[test]
    fn a_slow_link_has_time_for_all_that_is_under_way() {
        assert_eq!(patience(0), WORK);
        let part = 8 << 20;
        let together = UNDER_WAY * part / SLOWEST;
        assert!(patience(part) >= Duration::from_secs(together));
    }
}
