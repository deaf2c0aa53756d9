//! What went over the network.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use std::sync::Mutex;

use crate::prelude::*;

/// How many requests are kept until somebody takes them.
const KEPT: usize = 10_000;

/// Counts what goes over the network, for whoever watches.
#[derive(Debug, Default)]
pub struct Traffic {
    requests: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    keeps: AtomicBool,
    kept: Mutex<Vec<RequestMade>>,
}

/// A request that was made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestMade {
    /// `GET` and the like.
    pub method: String,
    /// The host it went to, with its port where that is not the usual one.
    pub host: String,
    /// The path, without a query.
    pub path: String,
    /// The bytes that were asked for, as the request has them.
    pub range: Option<String>,
    /// What the server answered; `None` where nothing came.
    pub status: Option<u16>,
    /// How many bytes of an answer came.
    pub received: u64,
    /// How many bytes were sent with it.
    pub sent: u64,
    /// Until the last byte of the answer.
    pub took: Duration,
    /// Whether a part of a file came without a tag (`ETag`) that changes with its bytes: then its length and its date are
    /// compared with those of the other parts, which notices less.
    pub is_untagged: bool,
}

impl fmt::Display for RequestMade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.method, self.host, self.path)?;
        if let Some(range) = &self.range {
            write!(f, " {range}")?;
        }
        match self.status {
            Some(status) => write!(f, ": {status}")?,
            None => f.write_str(": no answer")?,
        }
        if self.sent > 0 {
            write!(f, ", {} bytes sent", self.sent)?;
        }
        write!(f, ", {} bytes, {} ms", self.received, self.took.as_millis())?;
        if self.is_untagged {
            f.write_str("; no tag, length and date are compared")?;
        }
        Ok(())
    }
}

impl Traffic {
    /// How many requests were made.
    pub fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// How many bytes of answers came.
    pub fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// How many bytes were sent to be stored.
    pub fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// Whether requests are kept until they are [taken](Self::take). Off by default.
    pub fn keep(&self, keep: bool) {
        self.keeps.store(keep, Relaxed);
    }

    /// The requests since the last time, those that ended first at the front.
    pub fn take(&self) -> Vec<RequestMade> {
        match self.kept.lock() {
            Ok(mut kept) => core::mem::take(&mut *kept),
            Err(_) => Vec::new(),
        }
    }

    pub(super) fn begin(&self, sent: u64) {
        self.requests.fetch_add(1, Relaxed);
        self.sent.fetch_add(sent, Relaxed);
    }

    pub(super) fn receive(&self, bytes: u64) {
        self.received.fetch_add(bytes, Relaxed);
    }

    pub(super) fn end(&self, request: RequestMade) {
        if self.keeps.load(Relaxed)
            && let Ok(mut kept) = self.kept.lock()
            && kept.len() < KEPT
        {
            kept.push(request);
        }
    }
}
