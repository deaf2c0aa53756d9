//! What is read: models, trees of files, prefixes in stores, and by what each is known to be unchanged.

use std::path::Path;

use super::data::{Input, PinnedPart};
use super::options::Options;
use super::state::{Site, stamps};
use crate::archive::Archive;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Registry, ShardName};
use crate::io::Stamp;
use crate::prelude::*;

/// How deep directories are looked into.
const DEEPEST: usize = 16;

/// Something that is read, as far as it was opened already.
pub(super) struct Given {
    pub(super) input: Input,
    pub(super) archive: Option<Archive>,
    /// Its name below the tree that it was found in.
    pub(super) below: Option<String>,
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
) -> Result<Vec<Given>> {
    let mut all = Vec::new();
    for name in given {
        refuse_secrets(name)?;
        let Some(files) = files_below(name, site)? else {
            all.push(one_file(name, options, compares, site)?);
            continue;
        };
        let registry = site.known();
        let models = models(&files, &registry);
        let is_one = models.len() == 1 || files.iter().any(|file| file.name == "config.json");
        if is_one && models.iter().all(|model| !files_name(model).contains('/')) {
            all.push(open_model(name, options, compares, site)?);
            continue;
        }
        if models.is_empty() {
            // What one format reads as a whole has no tensor files of its own.
            if let Ok(given) = open_model(name, options, compares, site) {
                all.push(given);
                continue;
            }
            let message = format!("{name}: no tensor files in it or below it");
            return Err(Error::new(ErrorKind::NotFound, "io", message));
        }
        for model in models {
            all.push(found(name, &model)?);
        }
    }
    Ok(all)
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

/// A file of a tree.
struct Listed {
    /// Below the tree, with slashes.
    name: String,
    stamp: Stamp,
}

/// Every file of a tree or under a prefix; `None` where it is neither.
fn files_below(given: &str, site: &Site) -> Result<Option<Vec<Listed>>> {
    #[cfg(feature = "remote")]
    if let Some(url) = site.url(given)? {
        if !url.is_prefix() || url.is_web() {
            return Ok(None);
        }
        let listed = site.remote.list(&url)?.into_iter();
        let files = listed.map(|(name, stamp)| Listed { name, stamp });
        let is_hidden = |name: &str| name.split('/').any(|part| part.starts_with('.'));
        return Ok(Some(files.filter(|file| !is_hidden(&file.name)).collect()));
    }
    let _ = site;
    if !Path::new(given).is_dir() {
        return Ok(None);
    }
    let mut files = Vec::new();
    let mut open = vec![(Path::new(given).to_owned(), String::new(), 0)];
    while let Some((directory, below, depth)) = open.pop() {
        let entries = std::fs::read_dir(&directory).map_err(|cause| {
            Error::io(format_args!("cannot list {}", directory.display()), cause)
        })?;
        for entry in entries.flatten() {
            let Some(name) = entry.file_name().to_str().map(ToOwned::to_owned) else {
                continue;
            };
            if name.starts_with('.') || name.contains(".tenfold-") {
                continue;
            }
            let name = format!("{below}{name}");
            // Links to files are files; those to directories may lead in circles.
            let Ok(metadata) = std::fs::metadata(entry.path()) else {
                continue;
            };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if depth < DEEPEST {
                    open.push((entry.path(), format!("{name}/"), depth + 1));
                }
            } else if metadata.is_file() {
                let stamp = Stamp::of_file(&metadata);
                files.push(Listed { name, stamp });
            }
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Some(files))
}

/// The models among files: each by the file that is opened, first, and those that belong to it.
fn models<'f>(files: &'f [Listed], registry: &Registry) -> Vec<Vec<&'f Listed>> {
    let is_index = |name: &str| registry.entries().iter().any(|entry| entry.is_index(name));
    // What the files of a model begin with: its directory and its stem.
    let mut sets: LookupMap<String, usize> = LookupMap::default();
    let mut models: Vec<Vec<&Listed>> = Vec::new();
    for file in files {
        let (directory, name) = split(&file.name);
        if is_index(name) {
            let stem = name.strip_suffix(".index.json").unwrap_or(name);
            let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
            sets.insert(format!("{directory}{stem}"), models.len());
            models.push(vec![file]);
        }
    }
    for file in files {
        let (directory, name) = split(&file.name);
        if is_index(name) || registry.by_extension(name).is_none() {
            continue;
        }
        let shard = ShardName::parse(name);
        let set = shard.map(|shard| format!("{directory}{}", shard.stem));
        match set.and_then(|set| sets.get(&set).copied()) {
            Some(place) => models.extend_at(place, file),
            None => models.push(vec![file]),
        }
    }
    models.sort_by(|a, b| files_name(a).cmp(files_name(b)));
    models
}

trait ExtendAt<'f> {
    fn extend_at(&mut self, place: usize, file: &'f Listed);
}

impl<'f> ExtendAt<'f> for Vec<Vec<&'f Listed>> {
    fn extend_at(&mut self, place: usize, file: &'f Listed) {
        if let Some(files) = self.get_mut(place) {
            files.push(file);
        }
    }
}

fn files_name<'f>(model: &[&'f Listed]) -> &'f str {
    model.first().map_or("", |file| &file.name)
}

fn split(name: &str) -> (&str, &str) {
    let at = name.rfind('/').map_or(0, |at| at + 1);
    name.split_at(at)
}

/// A model of a tree, by what was listed.
fn found(tree: &str, model: &[&Listed]) -> Result<Given> {
    let name = files_name(model);
    let separator = if tree.ends_with(['/', std::path::MAIN_SEPARATOR]) {
        ""
    } else {
        "/"
    };
    let mut input = input(&format!("{tree}{separator}{name}"))?;
    match model {
        [only] => input.stamp = Some(only.stamp.clone()),
        several => {
            let parts = several.iter();
            let parts = parts.map(|file| PinnedPart {
                name: Some(split(&file.name).1.to_owned()),
                stamp: file.stamp.clone(),
            });
            input.parts = parts.collect();
        }
    }
    Ok(Given {
        input,
        archive: None,
        below: Some(name.to_owned()),
    })
}
