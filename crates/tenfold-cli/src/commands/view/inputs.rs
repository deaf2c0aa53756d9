//! What is shown: files, models, and the files of a directory that is no model.

use std::fs;
use std::path::{Path, PathBuf};

use tenfold::format::Registry;
use tenfold::{Archive, ErrorKind, OpenOptions};
use tenfold_view::View;

use crate::args::ViewArgs;
use crate::commands::Session;
use crate::failure::{Failure, Result};
use crate::hints;
use crate::output::{say, show_path};

/// Files of a directory that are listed at most.
const MOST_FILES: usize = 1000;

/// Adds what was named. What is not there is an error; what is damaged is said, and shown with what is wrong.
pub(super) fn add(view: &View, args: &ViewArgs, session: &Session<'_>) -> Result<()> {
    let options = session.options(&args.opening);
    let mut firsts = Vec::new();
    for path in &args.files {
        match session.open_silently(path, &args.opening) {
            Ok(archive) => {
                let archive = Session::selected(archive, &args.numbers, |_| true)
                    .map_err(|error| Failure::about(path, &error))?;
                firsts.push(add_open(view, path, archive, &options));
            }
            Err(error) if is_absent(error.kind()) => return Err(Failure::about(path, &error)),
            Err(error) => {
                let files = files_in(path);
                if files.is_empty() {
                    say(format_args!("{}: {}", show_path(path), hints::line(&error)));
                    let name = path.to_string_lossy();
                    firsts.push(view.add(&name, move || Err(error.clone())));
                }
                let added = files.into_iter().map(|file| {
                    let options = options.clone();
                    let name = file.to_string_lossy().into_owned();
                    view.add(&name, move || options.open(&file))
                });
                firsts.extend(added.collect::<Vec<_>>().first());
            }
        }
    }
    if let [left, right] = *firsts {
        view.compare(left, right);
    }
    Ok(())
}

/// The archive, and the files beside it in a directory that are not part of it. Gives the number of the archive.
fn add_open(view: &View, path: &Path, archive: Archive, options: &OpenOptions) -> usize {
    let others: Vec<PathBuf> = (archive.passed_over().iter())
        .map(|file| path.join(&file.name))
        .collect();
    let first = view.add(&path.to_string_lossy(), move || Ok(archive.clone()));
    for other in others
        .into_iter()
        .filter(|other| other.is_file())
        .take(MOST_FILES)
    {
        let options = options.clone();
        let name = other.to_string_lossy().into_owned();
        view.add(&name, move || options.open(&other));
    }
    first
}

fn is_absent(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Argument | ErrorKind::Io | ErrorKind::NotFound
    )
}

/// The files in a directory whose names are those of tensor files, in the order of their names. Links that lead out of it
/// are left out.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let (Ok(entries), Ok(whole)) = (fs::read_dir(directory), fs::canonicalize(directory)) else {
        return Vec::new();
    };
    let registry = Registry::standard();
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<_> = paths
        .filter(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            let is_known = name.is_some_and(|name| registry.by_extension(&name).is_some());
            let inside = fs::canonicalize(path).is_ok_and(|path| path.starts_with(&whole));
            is_known && inside && path.is_file()
        })
        .collect();
    files.sort();
    files.truncate(MOST_FILES);
    files
}
