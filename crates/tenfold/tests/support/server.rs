//! A small web server for tests, on a free port of this machine: ranges and tags, redirects, faults on demand, and as much of
//! an object store's interface as uploads and lists need. It knows every request that was made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use tenfold::digest::{Hasher, Hex};
use tenfold::model::DigestKind;

/// A server; it ends with the process.
#[derive(Clone)]
pub struct Server {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

/// What a server has, and how it behaves.
#[derive(Default)]
pub struct State {
    /// Paths without the separator in front, and what is there.
    pub files: BTreeMap<String, Vec<u8>>,
    /// How often a file was changed: its tag.
    versions: BTreeMap<String, u32>,
    /// What happens to requests whose path begins so, and that hold the words behind a blank in it, in their range or in their
    /// method (and not those behind a `!`), how many times.
    faults: Vec<(String, usize, Fault)>,
    /// What is sent in parts, by its number.
    uploads: BTreeMap<u32, Uploading>,
    next_upload: u32,
    /// Every request, in the order in which they came.
    pub log: Vec<Seen>,
    /// Only requests that are signed with this key.
    pub key: Option<String>,
}

#[derive(Default)]
struct Uploading {
    path: String,
    parts: BTreeMap<u32, Vec<u8>>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    /// With its query.
    pub target: String,
    pub headers: BTreeMap<String, String>,
}

impl Seen {
    /// Where the range begins that it asks for.
    pub fn first_byte(&self) -> Option<usize> {
        let range = self.headers.get("range")?.strip_prefix("bytes=")?;
        range.split_once('-')?.0.parse().ok()
    }
}

/// What goes wrong.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Two writers met: try again.
    Conflict,
    /// The connection ends after so many bytes of a body.
    Cut(usize),
    /// What is sent arrives with another byte.
    Damaged,
    /// What was asked for is done, and the connection ends before an answer.
    DoneAndCut,
    /// What was asked for is done, and the answer comes so much later.
    DoneAndLate(Duration),
    /// The body is said to be compressed.
    Encoded,
    /// The credentials were good once.
    Expired,
    /// `If-Match` is not looked at.
    IgnoresConditions,
    /// A success, and in its page that there was none.
    LateFailure,
    /// All of the file, whatever was asked for.
    NoRanges,
    /// No `ETag`.
    NoTag,
    /// To another address.
    Redirect(String),
    /// What arrived is kept with another byte.
    Rots,
    /// No answer for this long.
    Stall(Duration),
    /// No answer for ten minutes to requests for bytes from here on; others are answered.
    StallFrom(usize),
    /// An answer with this status, and a page that nobody shall see.
    Status(u16),
    /// A tag that says little.
    WeakTag,
}

/// What stands in the pages about failures.
pub const PAGE: &str = "PAGE-OF-THE-SERVER";

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Self {
            port,
            state: Arc::default(),
        };
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = serving.clone();
                thread::spawn(move || server.serve(stream));
            }
        });
        server
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Puts a file there, or another one in its place.
    pub fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.state().put(path, bytes.into());
    }

    /// From now on, for so many requests whose path begins like this.
    pub fn fault(&self, path: &str, times: usize, fault: Fault) {
        self.state().faults.push((path.to_owned(), times, fault));
    }

    /// The requests since the last time.
    pub fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state().log)
    }

    /// How many uploads were begun and neither ended nor aborted.
    pub fn unfinished(&self) -> usize {
        self.state().uploads.len()
    }

    fn serve(&self, mut stream: TcpStream) {
        let Ok(reading) = stream.try_clone() else {
            return;
        };
        let mut reader = BufReader::new(reading);
        while let Some((seen, body)) = read_request(&mut reader) {
            let fault = self.state().take_fault(&seen);
            self.state().log.push(seen.clone());
            let stalls = match fault {
                Some(Fault::Stall(long)) => Some(long),
                Some(Fault::StallFrom(at)) if seen.first_byte() >= Some(at) => {
                    Some(Duration::from_secs(600))
                }
                _ => None,
            };
            if let Some(long) = stalls {
                thread::sleep(long);
                return;
            }
            let answer = self.state().answer(&seen, body, fault.as_ref());
            match fault {
                Some(Fault::DoneAndCut) => return,
                Some(Fault::DoneAndLate(long)) => thread::sleep(long),
                _ => {}
            }
            if answer
                .send(&mut stream, seen.method == "HEAD", fault.as_ref())
                .is_none()
            {
                return;
            }
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<(Seen, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let body = if headers
        .get("transfer-encoding")
        .is_some_and(|value| value == "chunked")
    {
        read_chunks(reader)?
    } else {
        let len = headers
            .get("content-length")
            .map_or(0, |len| len.parse().unwrap());
        let mut body = vec![0; len];
        reader.read_exact(&mut body).ok()?;
        body
    };
    Some((
        Seen {
            method,
            target,
            headers,
        },
        body,
    ))
}

fn read_chunks(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let len = usize::from_str_radix(line.trim(), 16).ok()?;
        let at = body.len();
        body.resize(at + len, 0);
        reader.read_exact(&mut body[at..]).ok()?;
        reader.read_exact(&mut [0; 2]).ok()?;
        if len == 0 {
            return Some(body);
        }
    }
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn new(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    fn page(status: u16, code: &str) -> Self {
        let body = format!("<Error><Code>{code}</Code><Message>{PAGE}</Message></Error>");
        Self::new(status)
            .with("content-type", "application/xml")
            .body(body)
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    fn send(self, stream: &mut TcpStream, is_head: bool, fault: Option<&Fault>) -> Option<()> {
        let mut head = format!("HTTP/1.1 {} x\r\n", self.status);
        if !self
            .headers
            .iter()
            .any(|(name, _)| *name == "content-length")
        {
            write!(head, "content-length: {}\r\n", self.body.len()).unwrap();
        }
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).ok()?;
        if is_head {
            return Some(());
        }
        match fault {
            Some(Fault::Cut(after)) if *after < self.body.len() => {
                stream.write_all(&self.body[..*after]).ok()?;
                None
            }
            _ => stream.write_all(&self.body).ok(),
        }
    }
}

impl State {
    /// Nothing goes wrong any more.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    fn put(&mut self, path: &str, bytes: Vec<u8>) {
        *self.versions.entry(path.to_owned()).or_default() += 1;
        self.files.insert(path.to_owned(), bytes);
    }

    fn take_fault(&mut self, seen: &Seen) -> Option<Fault> {
        let range = seen.headers.get("range").map_or("", String::as_str);
        let target = decoded(seen.target.trim_start_matches('/'));
        let path = format!("{target} {range} {}", seen.method);
        let is_meant = |pattern: &str| {
            let mut words = pattern.split(' ');
            path.starts_with(words.next().unwrap_or_default())
                && words.all(|word| match word.strip_prefix('!') {
                    Some(word) => !path.contains(word),
                    None => path.contains(word),
                })
        };
        let mut faults = self.faults.iter_mut();
        let fault = faults.find(|(pattern, times, _)| *times > 0 && is_meant(pattern))?;
        fault.1 -= 1;
        Some(fault.2.clone())
    }

    fn answer(&mut self, seen: &Seen, body: Vec<u8>, fault: Option<&Fault>) -> Answer {
        match fault {
            Some(Fault::Status(status)) => return Answer::page(*status, "Trouble"),
            Some(Fault::Conflict) => return Answer::page(409, "ConditionalRequestConflict"),
            Some(Fault::Expired) => return Answer::page(400, "ExpiredToken"),
            Some(Fault::LateFailure) => return Answer::page(200, "InternalError"),
            Some(Fault::Redirect(to)) => {
                return Answer::new(302)
                    .with("location", to)
                    .with("x-repo-commit", "c".repeat(40));
            }
            _ => {}
        }
        if let Some(key) = &self.key {
            let authorization = seen.headers.get("authorization").map_or("", String::as_str);
            if !authorization.contains(&format!("Credential={key}/")) {
                let code = if authorization.is_empty() {
                    "AccessDenied"
                } else {
                    "InvalidAccessKeyId"
                };
                return Answer::page(403, code);
            }
        }
        let (path, query) = seen.target.split_once('?').unwrap_or((&seen.target, ""));
        let path = decoded(path.trim_start_matches('/'));
        let query: BTreeMap<_, _> = query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(key, value)| (key.to_owned(), decoded(value)))
            .collect();
        match seen.method.as_str() {
            "GET" if query.contains_key("list-type") => self.list(&path, &query),
            "GET" | "HEAD" => self.get(&path, seen, fault),
            "PUT" => {
                let arrived = match fault {
                    Some(Fault::Damaged) => damaged(body),
                    _ => body,
                };
                if !is_as_signed(seen, &arrived) {
                    return Answer::page(400, "XAmzContentSHA256Mismatch");
                }
                let kept = match fault {
                    Some(Fault::Rots) => damaged(arrived),
                    _ => arrived,
                };
                self.store(&path, &query, seen, kept)
            }
            "POST" if query.contains_key("uploads") => {
                self.next_upload += 1;
                let id = self.next_upload;
                self.uploads.insert(
                    id,
                    Uploading {
                        path: path.clone(),
                        ..Uploading::default()
                    },
                );
                let xml = format!(
                    "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>{path}</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
                );
                Answer::new(200).body(xml)
            }
            "POST" if query.contains_key("delete") => self.delete(&path, &body),
            "POST" => self.complete(&query, seen),
            "DELETE" => {
                match query.get("uploadId") {
                    Some(id) if self.uploads.remove(&id.parse().unwrap()).is_none() => {
                        return Answer::page(404, "NoSuchUpload");
                    }
                    Some(_) => {}
                    None => drop(self.files.remove(&path)),
                }
                Answer::new(204)
            }
            _ => Answer::page(405, "MethodNotAllowed"),
        }
    }

    fn tag(&self, path: &str) -> String {
        format!(
            "\"{}-{}\"",
            path.len(),
            self.versions.get(path).copied().unwrap_or_default()
        )
    }

    fn get(&self, path: &str, seen: &Seen, fault: Option<&Fault>) -> Answer {
        let Some(bytes) = self.files.get(path) else {
            return Answer::page(404, "NoSuchKey");
        };
        let tag = self.tag(path);
        let wanted = seen.headers.get("if-match");
        if wanted.is_some_and(|wanted| *wanted != tag)
            && !matches!(fault, Some(Fault::IgnoresConditions))
        {
            return Answer::page(412, "PreconditionFailed");
        }
        let range = seen.headers.get("range").and_then(|range| {
            let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
            Some(start.parse().ok()?..end.parse::<usize>().ok()? + 1)
        });
        let mut answer = match range {
            Some(range) if !matches!(fault, Some(Fault::NoRanges)) => {
                if range.start >= bytes.len() {
                    return Answer::page(416, "InvalidRange")
                        .with("content-range", format!("bytes */{}", bytes.len()));
                }
                let end = range.end.min(bytes.len());
                let place = format!("bytes {}-{}/{}", range.start, end - 1, bytes.len());
                Answer::new(206)
                    .with("content-range", place)
                    .body(&bytes[range.start..end])
            }
            _ if seen.method == "HEAD" => {
                Answer::new(200).with("content-length", bytes.len().to_string())
            }
            _ => Answer::new(200).body(bytes.as_slice()),
        };
        answer = answer.with("last-modified", "Wed, 18 Nov 2026 12:00:00 GMT");
        match fault {
            Some(Fault::NoTag) => answer,
            Some(Fault::WeakTag) => answer.with("etag", format!("W/{tag}")),
            Some(Fault::Encoded) => answer.with("etag", tag).with("content-encoding", "gzip"),
            _ => answer.with("etag", tag),
        }
    }

    /// Whether a condition forbids it to write: S3's, and that of Google.
    fn is_taken(&self, path: &str, seen: &Seen) -> bool {
        let is_condition = seen
            .headers
            .get("if-none-match")
            .is_some_and(|value| value == "*")
            || seen
                .headers
                .get("x-goog-if-generation-match")
                .is_some_and(|value| value == "0");
        is_condition && self.files.contains_key(path)
    }

    fn store(
        &mut self,
        path: &str,
        query: &BTreeMap<String, String>,
        seen: &Seen,
        body: Vec<u8>,
    ) -> Answer {
        if let (Some(id), Some(part)) = (query.get("uploadId"), query.get("partNumber")) {
            let part = part.parse().unwrap();
            return match self.uploads.get_mut(&id.parse().unwrap()) {
                Some(upload) => {
                    upload.parts.insert(part, body);
                    Answer::new(200).with("etag", format!("\"part-{part}\""))
                }
                None => Answer::page(404, "NoSuchUpload"),
            };
        }
        if self.is_taken(path, seen) {
            return Answer::page(412, "PreconditionFailed");
        }
        let copied = seen
            .headers
            .get("x-goog-copy-source")
            .map(|from| decoded(from.trim_start_matches('/')));
        let bytes = match copied {
            Some(from) => self.files[&from].clone(),
            None => body,
        };
        self.put(path, bytes);
        let tag = self.tag(path);
        Answer::new(200)
            .with("etag", tag)
            .with("x-goog-generation", "1")
            .body("<CopyObjectResult><ETag>x</ETag></CopyObjectResult>")
    }

    fn complete(&mut self, query: &BTreeMap<String, String>, seen: &Seen) -> Answer {
        let id = query.get("uploadId").map_or(0, |id| id.parse().unwrap());
        let Some(upload) = self.uploads.get(&id) else {
            return Answer::page(404, "NoSuchUpload");
        };
        let path = upload.path.clone();
        if self.is_taken(&path, seen) {
            return Answer::page(412, "PreconditionFailed");
        }
        let upload = self.uploads.remove(&id).unwrap();
        self.put(&path, upload.parts.into_values().flatten().collect());
        let tag = self.tag(&path);
        let xml = format!(
            "<CompleteMultipartUploadResult><Location>x</Location><Bucket>b</Bucket><Key>{path}</Key><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
        );
        Answer::new(200).with("x-goog-generation", "1").body(xml)
    }

    /// As S3 deletes several files at once.
    fn delete(&mut self, bucket: &str, body: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(body).into_owned();
        let mut xml = "<DeleteResult>".to_owned();
        for rest in text.split("<Key>").skip(1) {
            let key = rest.split("</Key>").next().unwrap_or_default();
            self.files
                .remove(&format!("{}/{key}", bucket.trim_end_matches('/')));
            write!(xml, "<Deleted><Key>{key}</Key></Deleted>").unwrap();
        }
        xml.push_str("</DeleteResult>");
        Answer::new(200)
            .with("content-type", "application/xml")
            .body(xml)
    }

    /// As S3 and Google list what is in a bucket; with a delimiter, what is in directories below is named by those alone.
    fn list(&self, bucket: &str, query: &BTreeMap<String, String>) -> Answer {
        let bucket = bucket.trim_end_matches('/');
        let prefix = query.get("prefix").map_or("", String::as_str);
        let mut xml = format!(
            "<ListBucketResult><Name>{bucket}</Name><Prefix>{prefix}</Prefix><IsTruncated>false</IsTruncated>"
        );
        let mut directories = BTreeSet::new();
        for (path, bytes) in &self.files {
            let key = path
                .strip_prefix(bucket)
                .and_then(|rest| rest.strip_prefix('/'));
            let Some(key) = key.filter(|key| key.starts_with(prefix)) else {
                continue;
            };
            if query.contains_key("delimiter")
                && let Some((directory, _)) = key[prefix.len()..].split_once('/')
            {
                directories.insert(format!("{prefix}{directory}/"));
                continue;
            }
            let (len, tag) = (bytes.len(), self.tag(path));
            write!(
                xml,
                "<Contents><Key>{key}</Key><LastModified>2026-11-18T12:00:00.000Z</LastModified><ETag>{tag}</ETag><Size>{len}</Size></Contents>"
            )
            .unwrap();
        }
        for directory in directories {
            write!(
                xml,
                "<CommonPrefixes><Prefix>{directory}</Prefix></CommonPrefixes>"
            )
            .unwrap();
        }
        xml.push_str("</ListBucketResult>");
        Answer::new(200)
            .with("content-type", "application/xml")
            .body(xml)
    }
}

fn damaged(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    bytes
}

/// Whether a body is the one whose SHA-256 was signed, if one was.
fn is_as_signed(seen: &Seen, body: &[u8]) -> bool {
    let signed = seen.headers.get("x-amz-content-sha256");
    let signed = signed.filter(|value| value.len() == 64);
    signed.is_none_or(|signed| {
        let mut hasher = Hasher::new(DigestKind::Sha256).unwrap();
        hasher.update(body);
        Hex(&hasher.finish()).to_string() == *signed
    })
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}
