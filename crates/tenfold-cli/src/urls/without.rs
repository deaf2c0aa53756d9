//! A build without the network says so.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use tenfold::io::{Output, Source};
use tenfold::ops::scale::Site;
use tenfold::{Archive, Companion, Control, Error, OpenOptions, Result};

use super::Addresses;
use crate::args::Cli;

/// Refuses all of them.
#[derive(Clone)]
pub(crate) struct Urls {
    addresses: Addresses,
}

impl Urls {
    pub(crate) fn new(_: &Cli, addresses: Addresses) -> Self {
        Self { addresses }
    }

    pub(crate) fn is_prefix(_: &Path) -> bool {
        false
    }

    pub(crate) fn log(&self) -> Option<Infallible> {
        None
    }

    pub(crate) fn control(&self) -> Arc<Control> {
        Arc::default()
    }

    pub(crate) fn open(&self, path: &Path, _: &OpenOptions) -> Result<Option<Archive>> {
        refuse(path).map(|()| None)
    }

    pub(crate) fn companions(&self, path: &Path) -> Result<Option<Vec<Companion>>> {
        refuse(path).map(|()| None)
    }

    pub(crate) fn source(&self, path: &Path) -> Result<Option<Arc<dyn Source>>> {
        refuse(path).map(|()| None)
    }

    pub(crate) fn output(&self, path: &Path, _: bool) -> Result<Option<Box<dyn Output>>> {
        refuse(path).map(|()| None)
    }

    pub(crate) fn site(&self, site: Site) -> Site {
        site
    }

    pub(crate) fn given(&self, path: &Path) -> String {
        self.addresses.given(&path.to_string_lossy()).to_owned()
    }

    pub(crate) fn refuse_output(&self, path: &Path) -> Result<()> {
        refuse(path)
    }

    pub(crate) fn traffic_in_words(&self) -> Option<String> {
        None
    }
}

fn refuse(path: &Path) -> Result<()> {
    if !super::is_url(path) {
        return Ok(());
    }
    let message = format!(
        "{} is a URL, and this build reads only files; download it first",
        path.display()
    );
    Err(Error::argument(message))
}
