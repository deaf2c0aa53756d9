//! As much of HTTP/1.1 as a page needs: requests without a body, and answers with a length.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Bytes of a request, at most.
const MOST_BYTES: usize = 16 << 10;
const MOST_HEADERS: usize = 64;
/// How long a request may take to arrive once its first byte is here.
const ARRIVAL: Duration = Duration::from_secs(15);
/// How long a connection waits for its next request, and for its answer to be taken.
const IDLE: Duration = Duration::from_secs(30);

/// What is asked.
pub(super) struct Request {
    pub(super) is_head: bool,
    /// Path and query, as they came.
    pub(super) target: String,
    headers: Vec<(String, String)>,
    pub(super) keeps_alive: bool,
}

/// The status of an answer that refuses, and why.
#[derive(Debug)]
pub(super) struct Refused(pub(super) u16, pub(super) &'static str);

impl Request {
    /// All values of a header, which is named in small letters.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let headers = self.headers.iter();
        headers
            .filter(move |(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Refused> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let len = match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(Refused(431, "too many headers")),
            Err(_) => return Err(Refused(400, "this is no request")),
        };
        let mut found = Vec::new();
        for header in parsed.headers.iter() {
            let value = std::str::from_utf8(header.value)
                .map_err(|_| Refused(400, "a header is not text"))?;
            found.push((header.name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let request = Self {
            is_head: parsed.method == Some("HEAD"),
            target: parsed.path.unwrap_or_default().to_owned(),
            keeps_alive: parsed.version == Some(1),
            headers: found,
        };
        if !matches!(parsed.method, Some("GET" | "HEAD")) {
            return Err(Refused(405, "only GET and HEAD are answered"));
        }
        let has_body = request.all("content-length").any(|len| len != "0")
            || request.all("transfer-encoding").next().is_some();
        if has_body {
            return Err(Refused(400, "requests have no body here"));
        }
        let closes = request
            .all("connection")
            .any(|value| value.eq_ignore_ascii_case("close"));
        let keeps_alive = request.keeps_alive && !closes;
        Ok(Some((
            Self {
                keeps_alive,
                ..request
            },
            len,
        )))
    }
}

/// A connection, and what came of the next request.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(IDLE))?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    /// The next request; `None` when there is none any more. What is refused ends the connection.
    pub(super) fn next(&mut self) -> io::Result<Option<Result<Request, Refused>>> {
        let mut until = Instant::now()
            + if self.buffer.is_empty() {
                IDLE
            } else {
                ARRIVAL
            };
        loop {
            match Request::parse(&self.buffer) {
                Ok(Some((request, len))) => {
                    self.buffer.drain(..len);
                    return Ok(Some(Ok(request)));
                }
                Ok(None) if self.buffer.len() >= MOST_BYTES => {
                    return Ok(Some(Err(Refused(431, "the request is too long"))));
                }
                Ok(None) => {}
                Err(refused) => return Ok(Some(Err(refused))),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let refused = Refused(408, "the request took too long");
                return Ok((!self.buffer.is_empty()).then_some(Err(refused)));
            }
            self.stream.set_read_timeout(Some(left))?;
            let mut bytes = [0; 4096];
            let room = bytes.len().min(MOST_BYTES - self.buffer.len());
            match self.stream.read(bytes.get_mut(..room).unwrap_or_default()) {
                Ok(0) => return Ok(None),
                Ok(count) => {
                    if self.buffer.is_empty() {
                        until = Instant::now() + ARRIVAL;
                    }
                    self.buffer
                        .extend_from_slice(bytes.get(..count).unwrap_or_default());
                }
                Err(cause) if is_timeout(&cause) => {}
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
    }

    /// Writes the head of an answer: what comes behind it has `len` bytes.
    pub(super) fn head(&mut self, head: &Head<'_>, len: u64, keeps_alive: bool) -> io::Result<()> {
        let mut text = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {len}\r\nCache-Control: {}\r\n",
            head.status,
            reason(head.status),
            head.content_type,
            if head.is_kept { "no-cache" } else { "no-store" },
        );
        text.push_str(EVERY_ANSWER);
        if head.status == 405 {
            text.push_str("Allow: GET, HEAD\r\n");
        }
        if let Some(name) = head.file_name {
            text.push_str(&format!(
                "Content-Disposition: attachment; filename=\"{name}\"\r\n"
            ));
        }
        text.push_str(if keeps_alive {
            "\r\n"
        } else {
            "Connection: close\r\n\r\n"
        });
        self.stream.write_all(text.as_bytes())
    }

    pub(super) fn body(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Ends the connection so that what was written arrives, also where somebody still sends.
    pub(super) fn finish(mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let _ = self
            .stream
            .set_read_timeout(Some(Duration::from_millis(200)));
        let mut rest = [0; 4096];
        // As much as one who is refused may have sent.
        for _ in 0..16 {
            if !matches!(self.stream.read(&mut rest), Ok(1..)) {
                break;
            }
        }
    }
}

/// What an answer begins with.
pub(super) struct Head<'a> {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    /// Whether browsers may keep it, and ask whether it is still the same.
    pub(super) is_kept: bool,
    /// Under which name it is saved.
    pub(super) file_name: Option<&'a str>,
}

/// Scripts, styles and questions of this page alone; text is never taken for markup.
const EVERY_ANSWER: &str = "\
Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; \
img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
trusted-types tenfold\r\n\
X-Content-Type-Options: nosniff\r\n\
Referrer-Policy: no-referrer\r\n\
Cross-Origin-Resource-Policy: same-origin\r\n\
Cross-Origin-Opener-Policy: same-origin\r\n";

fn is_timeout(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<(Request, usize)>, Refused> {
        Request::parse(text.as_bytes())
    }

    #[test]
    fn a_request_is_taken_apart() {
        let text = "GET /api/hello?x=1 HTTP/1.1\r\nHost: a\r\nhost:  b \r\n\r\nrest";
        let (request, len) = parse(text).unwrap().unwrap();
        assert_eq!(
            (request.target.as_str(), request.is_head),
            ("/api/hello?x=1", false)
        );
        assert_eq!(request.all("host").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(text.get(len..), Some("rest"));
        assert!(request.keeps_alive);
        assert!(parse("GET / HTTP/1.1\r\nHost: a\r\n").unwrap().is_none());
    }

    #[test]
    fn bodies_and_other_methods_are_refused() {
        let status = |text: &str| parse(text).err().map(|refused| refused.0);
        assert_eq!(status("OPTIONS / HTTP/1.1\r\n\r\n"), Some(405));
        assert_eq!(status("POST / HTTP/1.1\r\n\r\n"), Some(405));
        assert_eq!(
            status("GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\n"),
            Some(400)
        );
        assert_eq!(
            status("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Some(400)
        );
        assert_eq!(status("GET / HTTP/1.1\r\na\r\n\r\n"), Some(400));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65));
        assert_eq!(status(&many), Some(431));
        let (request, _) = parse("GET / HTTP/1.0\r\n\r\n").unwrap().unwrap();
        assert!(!request.keeps_alive);
    }
}
