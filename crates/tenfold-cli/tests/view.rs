//! Attacks on the server of `tenfold view`, byte by byte.

#![cfg(feature = "view")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Server {
    child: Child,
    port: u16,
    code: String,
}

impl Server {
    fn start(more: &[&str]) -> Self {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/safetensors/valid/ranks.safetensors"
        );
        let mut child = Command::new(env!("CARGO_BIN_EXE_tenfold"))
            .args(["view", "--no-open", file])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let (address, code) = line.trim().split_once("/#code=").unwrap();
        let port = address
            .strip_prefix("http://127.0.0.1:")
            .unwrap()
            .parse()
            .unwrap();
        Self {
            child,
            port,
            code: code.to_owned(),
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    /// What is answered to bytes; all of it.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // The server may have seen enough before all is sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The status and the body of a request with these headers.
    fn ask(&self, target: &str, headers: &[&str]) -> (u16, String) {
        let headers: String = headers
            .iter()
            .map(|header| format!("{header}\r\n"))
            .collect();
        let answer = self
            .raw(format!("GET {target} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        (status.unwrap_or(0), body.to_owned())
    }

    /// As the page asks.
    fn token(&self) -> String {
        let (status, body) = self.ask(
            "/api/token",
            &[HOST, &format!("Authorization: Code {}", self.code)],
        );
        assert_eq!(status, 200, "{body}");
        let (_, behind) = body.split_once("\"token\":\"").unwrap();
        format!(
            "Authorization: Bearer {}",
            behind.split('"').next().unwrap()
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const HOST: &str = "Host: 127.0.0.1";

#[test]
fn the_page_comes_with_its_rules_and_nothing_else_does() {
    let server = Server::start(&[]);
    let answer = server.raw(b"GET / HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    for rule in [
        "Content-Security-Policy: default-src 'none'; script-src 'self';",
        "require-trusted-types-for 'script'",
        "frame-ancestors 'none'",
        "X-Content-Type-Options: nosniff",
        "Referrer-Policy: no-referrer",
        "Cross-Origin-Resource-Policy: same-origin",
        "Cross-Origin-Opener-Policy: same-origin",
    ] {
        assert!(answer.contains(rule), "{rule}");
    }
    assert!(!answer.contains("Access-Control") && !answer.contains("Set-Cookie"));
    for target in [
        "/../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "//etc/passwd",
        "/page.js/..",
        "/src/main.ts",
        "/.",
        "*",
        "http://127.0.0.1/",
    ] {
        assert_eq!(server.ask(target, &[HOST]).0, 404, "{target}");
    }
    let head = server.raw(b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"));
}

#[test]
fn other_hosts_and_origins_get_no_answer() {
    let server = Server::start(&["--allow-host", "hub.example"]);
    let token = server.token();
    let status = |headers: &[&str]| {
        let headers = [headers, &[&token]].concat();
        server.ask("/api/hello", &headers).0
    };
    assert_eq!(status(&[HOST]), 200);
    assert_eq!(status(&["Host: [::1]:7"]), 200);
    assert_eq!(status(&["Host: hub.example"]), 200);
    // Names that somebody else makes point here.
    for host in [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:80",
        "127.0.0.2",
        "0.0.0.0",
        "",
        "localhost:80@evil.example",
    ] {
        assert_eq!(status(&[&format!("Host: {host}")]), 421, "{host}");
    }
    assert_eq!(status(&[]), 421);
    assert_eq!(status(&[HOST, HOST]), 421);
    assert_eq!(status(&[HOST, "Host: evil.example"]), 421);
    for site in ["cross-site", "same-site", "nonsense"] {
        assert_eq!(
            status(&[HOST, &format!("Sec-Fetch-Site: {site}")]),
            403,
            "{site}"
        );
    }
    assert_eq!(
        status(&[
            HOST,
            "Sec-Fetch-Site: same-origin",
            "Origin: http://127.0.0.1"
        ]),
        200
    );
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "http://localhost",
    ] {
        assert_eq!(
            status(&[HOST, &format!("Origin: {origin}")]),
            403,
            "{origin}"
        );
    }
    // The page itself too: nobody frames or fetches it from elsewhere.
    assert_eq!(
        server.ask("/", &[HOST, "Sec-Fetch-Site: cross-site"]).0,
        403
    );
}

#[test]
fn only_the_one_who_has_the_code_gets_the_token_and_only_once() {
    let server = Server::start(&[]);
    for target in [
        "/api/hello",
        "/api/summary?a=0",
        "/api/npy?a=0&t=0",
        "/api/nonsense",
    ] {
        assert_eq!(server.ask(target, &[HOST]).0, 401, "{target}");
        assert_eq!(server.ask(target, &[HOST, "Authorization: Bearer "]).0, 401);
        assert_eq!(
            server
                .ask(
                    target,
                    &[HOST, &format!("Authorization: Bearer {}", server.code)]
                )
                .0,
            401
        );
    }
    assert_eq!(server.ask("/api/token", &[HOST]).0, 401);
    let wrong = "Authorization: Code 00000000000000000000000000000000";
    assert_eq!(server.ask("/api/token", &[HOST, wrong]).0, 401);
    let right = format!("Authorization: Code {}", server.code);
    assert_eq!(
        server.ask("/api/token", &["Host: evil.example", &right]).0,
        421
    );
    let token = server.token();
    let (status, body) = server.ask("/api/token", &[HOST, &right]);
    assert_eq!(status, 403);
    assert!(body.contains("opened already"), "{body}");
    let (status, body) = server.ask("/api/summary?a=0", &[HOST, &token]);
    assert_eq!(status, 200);
    assert!(body.contains("\"format\":\"safetensors\""), "{body}");
    assert_eq!(server.ask("/api/summary?a=9", &[HOST, &token]).0, 404);
    assert_eq!(server.ask("/api/summary?a=../..", &[HOST, &token]).0, 422);
    // Twice the same header is none.
    assert_eq!(server.ask("/api/hello", &[HOST, &token, &token]).0, 401);
}

#[test]
fn what_is_no_request_is_refused_and_the_server_lives() {
    let server = Server::start(&[]);
    let status = |bytes: &[u8]| {
        let answer = server.raw(bytes);
        answer
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse::<u16>().ok())
    };
    for method in [
        "OPTIONS", "POST", "PUT", "DELETE", "CONNECT", "TRACE", "PATCH",
    ] {
        let request = format!("{method} / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        let answer = server.raw(request.as_bytes());
        assert!(
            answer.starts_with("HTTP/1.1 405 ") && answer.contains("Allow: GET, HEAD"),
            "{method}"
        );
    }
    assert_eq!(
        status(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\nhello"),
        Some(400)
    );
    assert_eq!(
        status(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        Some(400)
    );
    assert_eq!(
        status(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        Some(400)
    );
    assert_eq!(
        status(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: \x00\r\n\r\n"),
        Some(400)
    );
    let long = format!(
        "GET /{} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "a".repeat(20000)
    );
    assert_eq!(status(long.as_bytes()), Some(431));
    let many = format!(
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n{}\r\n",
        "a: b\r\n".repeat(100)
    );
    assert_eq!(status(many.as_bytes()), Some(431));
    // Two requests at once are answered one after the other.
    let two = server.raw(b"GET /icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\nGET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(
        two.contains("HTTP/1.1 200 ") && two.contains("HTTP/1.1 404 "),
        "{two}"
    );
    assert_eq!(server.ask("/", &[HOST]).0, 200);
}

#[test]
fn those_who_say_nothing_leave_room_for_others() {
    let server = Server::start(&[]);
    // Slow ones: they hold a place, and no more than there are.
    let slow: Vec<TcpStream> = (0..40).map(|_| server.connect()).collect();
    for mut stream in &slow {
        let _ = stream.write_all(b"GET / HT");
    }
    std::thread::sleep(Duration::from_millis(300));
    let full = server.raw(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    assert!(full.starts_with("HTTP/1.1 503 "), "{full}");
    drop(slow);
    let mut status = 0;
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(50));
        status = server.ask("/", &[HOST]).0;
        if status == 200 {
            break;
        }
    }
    assert_eq!(status, 200);
}

#[test]
fn it_ends_when_nobody_asks_any_more() {
    let mut server = Server::start(&["--timeout", "1"]);
    assert_eq!(server.ask("/", &[HOST]).0, 200);
    let ended = server.child.wait().unwrap();
    assert!(ended.success());
}
