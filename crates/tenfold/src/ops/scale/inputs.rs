//! What is read: models, trees of files, prefixes in stores, and by what each is known to be unchanged.

use std::path::Path;

use super::data::{Input, PinnedPart};
use super::options::Options;
use super::report::is_trouble;
use super::state::{Site, stamps};
use super::tree::{LeftOut, Listing, Model};
use crate::archive::Archive;
use crate::error::{Error, ErrorKind, Result};
use crate::format::ShardName;
use crate::io::Stamp;
use crate::prelude::*;

/// Something that is read, as far as it was opened already.
pub(super) struct Given {
    pub(super) input: Input,
    pub(super) archive: Option<Archive>,
    /// Its name below the tree that it was found in.
    pub(super) below: Option<String>,
}

/// All that is read, and what was left out of the trees that it was found in.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) given: Vec<Given>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Refuses what has a secret in it: a plan is mailed around and lies on shared disks.
pub(super) fn refuse_secrets(url: &str) -> Result<()> {
    /// What a query may say.
    const HARMLESS: [&str; 5] = ["download", "generation", "ref", "revision", "versionid"];
    let Some((scheme, rest)) = url.split_once("://") else {
        return Ok(());
    };
    let refuse = |what: &str| {
        let shown = url.split(['?', '@']).next().unwrap_or_default();
        let shown = if what.contains("user") { scheme } else { shown };
        let message = format!(
            "{shown}: {what} does not go into a plan, which others can read; every machine takes its credentials from its own environment"
        );
        Err(Error::new(ErrorKind::Argument, "plan.secret", message))
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    // Of Azure, what is before the sign is a container.
    if authority.contains('@') && !scheme.starts_with("abfs") {
        return refuse("a user name or a password");
    }
    if !scheme.starts_with("http") {
        return Ok(());
    }
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let mut keys = query.split('&').filter(|pair| !pair.is_empty());
    let is_harmless = |pair: &str| {
        let key = pair.split('=').next().unwrap_or_default();
        HARMLESS.contains(&key.to_ascii_lowercase().as_str())
    };
    if keys.all(is_harmless) {
        Ok(())
    } else {
        refuse("a signature or a token")
    }
}

fn is_url(given: &str) -> bool {
    given.contains("://") && Path::new(given).symlink_metadata().is_err()
}

/// Refuses to write to a store: many machines write to one file, which stores do not have.
pub(super) fn refuse_store(given: &str) -> Result<()> {
    if !is_url(given) {
        return Ok(());
    }
    let message = format!(
        "{given}: what items write and their receipts are kept in a file system that all machines see, not in a store; write there, and copy the result"
    );
    Err(Error::new(ErrorKind::Unsupported, "plan.store", message))
}

/// Where something is on every machine: paths are made absolute.
pub(super) fn everywhere(given: &str) -> Result<String> {
    if is_url(given) {
        return Ok(given.to_owned());
    }
    let path = std::path::absolute(given)
        .map_err(|cause| Error::io(format_args!("cannot find {given}"), cause))?;
    let text = path.into_os_string().into_string();
    text.map_err(|path| {
        Error::argument(format!("{} is not a Unicode name", path.to_string_lossy()))
    })
}

fn input(given: &str) -> Result<Input> {
    refuse_secrets(given)?;
    let url = everywhere(given)?;
    Ok(Input {
        name: Some(given.to_owned()).filter(|name| *name != url),
        url,
        stamp: None,
        parts: Vec::new(),
    })
}

/// Opens something as one model, and notes what it consists of.
pub(super) fn open_model(
    given: &str,
    options: &Options,
    compares: bool,
    site: &Site,
) -> Result<Given> {
    let mut input = input(given)?;
    let archive = site.open(&input.url, &options.opening(compares)?)?;
    pin(&mut input, &archive);
    Ok(Given {
        input,
        archive: Some(archive),
        below: None,
    })
}

fn pin(input: &mut Input, archive: &Archive) {
    let mut stamps = stamps(archive);
    let is_file = stamps.len() == 1 && !Path::new(&input.url).is_dir() && !input.url.ends_with('/');
    if is_file {
        input.stamp = stamps.pop().map(|(_, stamp)| stamp);
        return;
    }
    let parts = stamps.into_iter();
    input.parts = parts
        .map(|(name, stamp)| PinnedPart { name, stamp })
        .collect();
}

/// What is meant by paths and URLs: a file or a model is what it is, a tree or a prefix is every model in it.
pub(super) fn collect(
    given: &[String],
    options: &Options,
    compares: bool,
    site: &Site,
) -> Result<Collected> {
    let asking = options.opening(compares)?.registry(site.known());
    let open = |name: &str| open_model(name, options, compares, site);
    let mut all = Collected::default();
    for name in given {
        refuse_secrets(name)?;
        let Some(listing) = Listing::of(name, &asking, site)? else {
            all.given.push(one_file(name, options, compares, site)?);
            continue;
        };
        let models = listing.models(&asking);
        let found = match models.as_slice() {
            [] => match open(name) {
                Ok(given) => vec![given],
                Err(error) if error.kind() == ErrorKind::Canceled => return Err(error),
                Err(_) => {
                    let message = format!("{name}: no tensor files in it or below it");
                    return Err(Error::new(ErrorKind::NotFound, "io", message));
                }
            },
            // It is a model itself, or has no other.
            [only] if only.directory().is_empty() => match open(name) {
                Ok(given) => vec![given],
                Err(error) if given.len() == 1 || is_trouble(&error, false) => return Err(error),
                // Among others, one that cannot be opened is a finding of its item.
                Err(_) => vec![Given {
                    input: Input {
                        parts: listing.parts(only),
                        ..input(name)?
                    },
                    archive: None,
                    below: None,
                }],
            },
            _ => {
                let found = models.iter();
                let found = found.map(|model| found_in(name, &listing, model, open));
                without_parts(found.collect::<Result<_>>()?)
            }
        };
        all.given.extend(found);
        listing.left_out.add_to(&mut all.left_out);
    }
    Ok(all)
}

/// Leaves out what belongs to another, as files do that an index names in its own way.
fn without_parts(mut found: Vec<Given>) -> Vec<Given> {
    let parts = found.iter().flat_map(|Given { input, .. }| {
        let others = input.urls().filter(|url| *url != input.url);
        others.map(|url| (url, ()))
    });
    let parts: LookupMap<String, ()> = parts.collect();
    found.retain(|given| !parts.contains_key(&given.input.url));
    found
}

/// A model of a tree: by what was listed, where that says which files it has.
fn found_in(
    tree: &str,
    listing: &Listing,
    model: &Model,
    open: impl Fn(&str) -> Result<Given>,
) -> Result<Given> {
    let separator = if tree.ends_with(['/', std::path::MAIN_SEPARATOR]) {
        ""
    } else {
        "/"
    };
    let below = model.name();
    let url = format!("{tree}{separator}{below}");
    let mut input = input(&url)?;
    let parts = listing.parts(model);
    if !model.says_its_files() {
        match open(&url) {
            // Opened again by whoever looks at it.
            Ok(given) => input = given.input,
            Err(error) if is_trouble(&error, false) => return Err(error),
            // One that cannot be opened is a finding of its item.
            Err(_) => input.parts = parts,
        }
    } else if let (Model::File { .. }, [only]) = (model, parts.as_slice()) {
        input.stamp = Some(only.stamp.clone());
    } else {
        input.parts = parts;
    }
    Ok(Given {
        input,
        archive: None,
        below: Some(below),
    })
}

/// A file that is named: its stamp is enough, unless it turns out that it is cut.
fn one_file(name: &str, options: &Options, compares: bool, site: &Site) -> Result<Given> {
    let mut input = input(name)?;
    let path = Path::new(&input.url);
    let is_index = site
        .known()
        .entries()
        .iter()
        .any(|entry| entry.is_index(name.rsplit('/').next().unwrap_or(name)));
    let file = ShardName::parse(name.rsplit('/').next().unwrap_or(name));
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() && !is_index && file.is_none() => {
            input.stamp = Some(Stamp::of_file(&metadata));
            Ok(Given {
                input,
                archive: None,
                below: None,
            })
        }
        // One that cannot be opened is a finding of its item, as long as it is there.
        Ok(metadata) if metadata.is_file() => match open_model(name, options, compares, site) {
            Ok(given) => Ok(given),
            Err(_) => {
                input.stamp = Some(Stamp::of_file(&metadata));
                Ok(Given {
                    input,
                    archive: None,
                    below: None,
                })
            }
        },
        _ => open_model(name, options, compares, site),
    }
}
