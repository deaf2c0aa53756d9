//! Files behind URLs: what is opened and written there, what of an address is shown, and what went over the network.

#[cfg(feature = "remote")]
mod with;
#[cfg(not(feature = "remote"))]
mod without;

use std::ffi::OsString;
use std::path::Path;

use crate::failure::{Failure, Result};
#[cfg(feature = "remote")]
pub(crate) use with::Urls;
#[cfg(not(feature = "remote"))]
pub(crate) use without::Urls;

/// Whether a path is a URL: it has a scheme, and no file is called so.
pub(crate) fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(looks_like_url) && path.symlink_metadata().is_err()
}

/// Whether a text has a word and `://` in front, as [`tenfold::io::RemoteUrl::looks_like`] says where there is a network.
fn looks_like_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(word, _)| {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
        word.starts_with(|c: char| c.is_ascii_alphabetic()) && word.bytes().all(is_plain)
    })
}

/// Whether it is a directory, or a prefix, that is opened as one model.
pub(crate) fn is_model_directory(path: &Path) -> bool {
    if is_url(path) {
        Urls::is_prefix(path)
    } else {
        path.is_dir()
    }
}

/// Refuses a URL where only files of this machine are read.
pub(crate) fn refuse_url(path: &Path, what: &str) -> Result<()> {
    if !is_url(path) {
        return Ok(());
    }
    let shown = path.display();
    Err(Failure::Message(format!(
        "{shown}: {what} this machine and no URLs"
    )))
}

/// Addresses as they are shown, and as they were given.
#[derive(Clone, Default)]
pub(crate) struct Addresses(Vec<(String, String)>);

/// Takes what may be secret out of addresses on the command line: everything that prints, in whatever place, prints what is
/// left.
pub(crate) fn hide_secrets(args: Vec<OsString>) -> (Vec<OsString>, Addresses) {
    let mut addresses = Addresses::default();
    let args =
        args.into_iter().map(
            |arg| match arg.to_str().and_then(|text| addresses.hide(text)) {
                Some(shown) => shown.into(),
                None => arg,
            },
        );
    let args = args.collect();
    (args, addresses)
}

impl Addresses {
    /// The same text with an address that has nothing to hide.
    fn hide(&mut self, text: &str) -> Option<String> {
        let (option, text) = after_option(text);
        if Path::new(text).symlink_metadata().is_ok() {
            return None;
        }
        let plain = without_secrets(text)?;
        let mut shown = plain.clone();
        let mut n = 1;
        // Two that differ only in what is hidden are still two.
        while self
            .0
            .iter()
            .any(|(known, given)| *known == shown && given != text)
        {
            n += 1;
            shown = format!("{plain}#{n}");
        }
        self.0.push((shown.clone(), text.to_owned()));
        Some(format!("{option}{shown}"))
    }

    /// An address as it was given.
    pub(crate) fn given<'a>(&'a self, shown: &'a str) -> &'a str {
        let known = self.0.iter().find(|(known, _)| known == shown);
        known.map_or(shown, |(_, given)| given)
    }
}

/// An option and what is behind it in the same argument: `--output=URL`, `-oURL`.
fn after_option(text: &str) -> (&str, &str) {
    let at = match text.as_bytes() {
        [b'-', b'-', ..] => text.find('=').map(|at| at + 1),
        [b'-', _, _, ..] => Some(2).filter(|at| text.is_char_boundary(*at)),
        _ => None,
    };
    text.split_at(at.unwrap_or(0))
}

/// A URL without what may be secret in it: the user and the password, and of the web what follows its path. `None` where there is
/// nothing of that kind.
fn without_secrets(text: &str) -> Option<String> {
    let (word, rest) = text.split_once("://").filter(|_| looks_like_url(text))?;
    let is_web = ["http", "https"]
        .iter()
        .any(|web| word.eq_ignore_ascii_case(web));
    let end = if is_web { rest.find(['?', '#']) } else { None };
    let (rest, query) = rest.split_at(end.unwrap_or(rest.len()));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match authority.rsplit_once('@') {
        // Containers of Azure have one too, and nothing secret in front of it.
        Some((user, host)) if is_web || user.contains(':') => host,
        _ => authority,
    };
    (host != authority || !query.is_empty()).then(|| format!("{word}://{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_taken_out_and_found_again() {
        let args = [
            "tenfold",
            "diff",
            "https://h/x.npy?sig=1",
            "https://h/x.npy?sig=2",
            "--output=https://h/y?z",
            "-oHTTPS://me:secret@h/x",
        ];
        let (shown, addresses) = hide_secrets(args.map(OsString::from).to_vec());
        let expected = [
            "tenfold",
            "diff",
            "https://h/x.npy",
            "https://h/x.npy#2",
            "--output=https://h/y",
            "-oHTTPS://h/x",
        ];
        assert_eq!(shown, expected.map(OsString::from));
        assert_eq!(
            addresses.given("https://h/x.npy#2"),
            "https://h/x.npy?sig=2"
        );
        assert_eq!(addresses.given("s3://b/k?x"), "s3://b/k?x");
    }

    #[test]
    fn what_is_no_secret_is_shown_as_it_is() {
        for (text, shown) in [
            ("https://token@h", Some("https://h")),
            ("http://a:b@c@h/x#y", Some("http://h/x")),
            ("s3://key:secret@bucket/x", Some("s3://bucket/x")),
            ("s3://bucket/a?b", None),
            ("abfss://container@account.dfs.core.windows.net/x", None),
            ("hf://org/model@v1/x?y", None),
            ("https://h/a@b.npy", None),
            ("a?b", None),
        ] {
            assert_eq!(without_secrets(text).as_deref(), shown, "{text}");
        }
    }
}
