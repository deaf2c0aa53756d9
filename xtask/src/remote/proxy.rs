//! A proxy in front of a server: it adds a delay, limits what each connection carries, cuts connections, and counts.

use crate::Result;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// What a proxy does to those who pass through it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    /// Added to every round trip.
    pub(crate) delay: Duration,
    /// Bytes of answers a second and connection; 0 is as many as there are.
    pub(crate) rate: u64,
    /// Bytes of requests a second and connection; 0 is as many as there are.
    pub(crate) upload_rate: u64,
    /// Every connection ends after so many bytes of answers; 0 is never.
    pub(crate) cut: u64,
    /// Answers stop after so many bytes and the connection stays open; 0 is never.
    pub(crate) stall: u64,
}

/// A proxy on a free port; it ends with the process.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    received: AtomicU64,
}

impl Proxy {
    pub(crate) fn start(to: u16, link: Link) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let proxy = Self {
            port: listener.local_addr()?.port(),
            counts: Arc::default(),
        };
        let counts = proxy.counts.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let counts = counts.clone();
                // Whoever is cut off sees it; nobody else is told.
                thread::spawn(move || drop(connect(client, to, link, &counts)));
            }
        });
        Ok(proxy)
    }

    /// The requests since [they were taken](Self::take).
    pub(crate) fn requests(&self) -> u64 {
        self.counts.requests.load(Relaxed)
    }

    /// The requests and the bytes of answers since the last time.
    pub(crate) fn take(&self) -> (u64, u64) {
        (
            self.counts.requests.swap(0, Relaxed),
            self.counts.received.swap(0, Relaxed),
        )
    }
}

fn connect(client: TcpStream, to: u16, link: Link, counts: &Arc<Counts>) -> std::io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", to))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (asking, answering) = (client.try_clone()?, server.try_clone()?);
    let ours = counts.clone();
    thread::spawn(move || drop(ask(asking, answering, link, &ours)));
    answer(server, client, link, counts)
}

/// When a connection is free again after what it has carried.
struct Pace {
    rate: u64,
    free: Instant,
}

impl Pace {
    fn new(rate: u64) -> Self {
        Self {
            rate,
            free: Instant::now(),
        }
    }

    fn wait(&mut self, bytes: usize) {
        if let Some(micros) = (1_000_000 * bytes as u64).checked_div(self.rate) {
            let now = Instant::now();
            thread::sleep(self.free.saturating_duration_since(now));
            self.free = self.free.max(now) + Duration::from_micros(micros);
        }
    }
}

/// What goes to the server: requests are counted by their first words, and come later.
fn ask(mut from: TcpStream, mut to: TcpStream, link: Link, counts: &Counts) -> std::io::Result<()> {
    const METHODS: [&[u8]; 5] = [b"GET ", b"HEAD ", b"PUT ", b"POST ", b"DELETE "];
    let mut buffer = vec![0; 64 << 10];
    let mut pace = Pace::new(link.upload_rate);
    loop {
        let n = from.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..n).filter(|bytes| !bytes.is_empty()) else {
            return to.shutdown(Shutdown::Write);
        };
        if METHODS.iter().any(|method| bytes.starts_with(method)) {
            counts.requests.fetch_add(1, Relaxed);
            thread::sleep(link.delay);
        }
        pace.wait(n);
        to.write_all(bytes)?;
    }
}

/// What comes back.
fn answer(
    mut from: TcpStream,
    mut to: TcpStream,
    link: Link,
    counts: &Counts,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let mut sent = 0u64;
    let mut pace = Pace::new(link.rate);
    loop {
        let n = from.read(&mut buffer)?;
        let Some(bytes) = buffer.get(..n).filter(|bytes| !bytes.is_empty()) else {
            return to.shutdown(Shutdown::Write);
        };
        pace.wait(n);
        to.write_all(bytes)?;
        sent += n as u64;
        counts.received.fetch_add(n as u64, Relaxed);
        if link.cut > 0 && sent >= link.cut {
            to.shutdown(Shutdown::Both)?;
            return from.shutdown(Shutdown::Both);
        }
        if link.stall > 0 && sent >= link.stall {
            thread::sleep(Duration::from_secs(3600));
        }
    }
}
