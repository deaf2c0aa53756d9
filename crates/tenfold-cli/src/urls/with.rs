//! A build with the network.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tenfold::io::{Output, Remote, RemoteOutput, RemoteUrl, Source, Traffic};
use tenfold::ops::scale::Site;
use tenfold::{Archive, Companion, Control, OpenOptions, Result};

use super::Addresses;
use crate::args::Cli;
use crate::output::{count, say, show_path, size};

/// What is opened and written behind URLs.
#[derive(Clone)]
pub(crate) struct Urls {
    addresses: Addresses,
    remote: Remote,
    control: Arc<Control>,
    is_verbose: bool,
}

impl Urls {
    pub(crate) fn new(cli: &Cli, addresses: Addresses) -> Self {
        let control = Arc::new(Control::new());
        let remote = Remote::new()
            .anonymous(cli.network.anonymous)
            .allow_http(cli.network.allow_http)
            .hub_cache(!cli.network.no_cache)
            .stopped_by(control.clone());
        remote.traffic().keep(cli.network.verbose);
        Self {
            addresses,
            remote,
            control,
            is_verbose: cli.network.verbose,
        }
    }

    /// Whether a URL names several files and no single one.
    pub(crate) fn is_prefix(path: &Path) -> bool {
        let url = path.to_str().map(RemoteUrl::parse);
        url.is_some_and(|url| url.is_ok_and(|url| url.is_prefix()))
    }

    /// Prints requests, if that was asked for, until it is dropped.
    pub(crate) fn log(&self) -> Option<Log> {
        self.is_verbose
            .then(|| Log::start(self.remote.traffic().clone()))
    }

    /// What stops the command while it waits for a server.
    pub(crate) fn control(&self) -> Arc<Control> {
        self.control.clone()
    }

    fn url(&self, path: &Path) -> Result<Option<RemoteUrl>> {
        let text = path.to_str().filter(|text| RemoteUrl::looks_like(text));
        match text {
            Some(_) if !super::is_url(path) => {
                say(format_args!(
                    "{}: a file of this name is read, and no URL",
                    show_path(path)
                ));
                Ok(None)
            }
            Some(text) => RemoteUrl::parse(self.addresses.given(text)).map(Some),
            None => Ok(None),
        }
    }

    /// Opens what is behind a URL, if it is one.
    pub(crate) fn open(&self, path: &Path, options: &OpenOptions) -> Result<Option<Archive>> {
        let Some(url) = self.url(path)? else {
            return Ok(None);
        };
        if let Some(cached) = self.remote.in_hub_cache(&url) {
            say(format_args!(
                "{url}: read from the Hub's cache, {}",
                show_path(&cached)
            ));
        }
        let options = options.clone().remote(&self.remote);
        options.open_remote(&url).map(Some)
    }

    /// What belongs to the model under a URL and holds no tensors, if it is one.
    pub(crate) fn companions(&self, path: &Path) -> Result<Option<Vec<Companion>>> {
        let Some(url) = self.url(path)? else {
            return Ok(None);
        };
        let options = OpenOptions::new().remote(&self.remote);
        options.remote_companions(&url).map(Some)
    }

    /// The bytes behind a URL, if it is one.
    pub(crate) fn source(&self, path: &Path) -> Result<Option<Arc<dyn Source>>> {
        let url = self.url(path)?;
        url.map(|url| self.remote.source(&url)).transpose()
    }

    /// What writes to a URL, if it is one.
    pub(crate) fn output(&self, path: &Path, force: bool) -> Result<Option<Box<dyn Output>>> {
        let Some(url) = self.url(path)? else {
            return Ok(None);
        };
        let output = RemoteOutput::new(&self.remote, &url)?.force(force);
        Ok(Some(Box::new(output)))
    }

    /// How work for many machines reaches what it is about.
    pub(crate) fn site(&self, site: Site) -> Site {
        site.remote(&self.remote)
    }

    /// An address with what may be secret in it.
    pub(crate) fn given(&self, path: &Path) -> String {
        let shown = path.to_string_lossy();
        self.addresses.given(&shown).to_owned()
    }

    /// Says early what cannot be written to at all.
    pub(crate) fn refuse_output(&self, path: &Path) -> Result<()> {
        let url = self.url(path)?;
        url.map_or(Ok(()), |url| RemoteOutput::refuse(&url))
    }

    /// What has gone over the network, for a progress bar.
    pub(crate) fn traffic_in_words(&self) -> Option<String> {
        let traffic = self.remote.traffic();
        let words = match (traffic.received(), traffic.sent()) {
            (0, 0) => return None,
            (received, 0) => format!("; {} received", size(received)),
            (0, sent) => format!("; {} sent", size(sent)),
            (received, sent) => format!("; {} received, {} sent", size(received), size(sent)),
        };
        Some(words)
    }
}

/// Prints requests while they end, and how many there were.
pub(crate) struct Log {
    over: Arc<AtomicBool>,
    printer: Option<JoinHandle<()>>,
    traffic: Arc<Traffic>,
}

impl Log {
    fn start(traffic: Arc<Traffic>) -> Self {
        const INTERVAL: Duration = Duration::from_millis(100);
        let over = Arc::new(AtomicBool::new(false));
        let (seen, shown) = (over.clone(), traffic.clone());
        let printer = thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                thread::park_timeout(INTERVAL);
                shown.take().iter().for_each(say);
            }
        });
        Self {
            over,
            printer: Some(printer),
            traffic,
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(printer) = self.printer.take() {
            printer.thread().unpark();
            // Only lines of a log are lost if printing them failed.
            let _ = printer.join();
        }
        let traffic = &self.traffic;
        traffic.take().iter().for_each(say);
        let requests = count(
            usize::try_from(traffic.requests()).unwrap_or(usize::MAX),
            "request",
        );
        let (received, sent) = (size(traffic.received()), size(traffic.sent()));
        say(format_args!("{requests}, {received} received, {sent} sent"));
    }
}
