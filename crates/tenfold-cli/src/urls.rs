//! Files behind URLs: what is opened and written there, what of an address is shown, and what went over the network.

#[cfg(feature = "remote")]
mod with;
#[cfg(not(feature = "remote"))]
mod without;

use std::path::Path;

#[cfg(feature = "remote")]
pub(crate) use with::{Addresses, Urls, hide_secrets};
#[cfg(not(feature = "remote"))]
pub(crate) use without::{Addresses, Urls, hide_secrets};

/// Whether a path is a URL: it has a scheme, and no file is called so.
pub(crate) fn is_url(path: &Path) -> bool {
    let scheme = path.to_str().and_then(|text| text.split_once("://"));
    let is_scheme = scheme.is_some_and(|(word, _)| {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
        word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.bytes().all(is_plain)
    });
    is_scheme && path.symlink_metadata().is_err()
}

/// Whether it is a directory, or a prefix, that is opened as one model.
pub(crate) fn is_model_directory(path: &Path) -> bool {
    if is_url(path) {
        with_feature::is_prefix(path)
    } else {
        path.is_dir()
    }
}

mod with_feature {
    use std::path::Path;

    #[cfg(feature = "remote")]
    pub(super) fn is_prefix(path: &Path) -> bool {
        let url = path.to_str().map(tenfold::io::RemoteUrl::parse);
        url.is_some_and(|url| url.is_ok_and(|url| url.is_prefix()))
    }

    #[cfg(not(feature = "remote"))]
    pub(super) fn is_prefix(_: &Path) -> bool {
        false
    }
}
