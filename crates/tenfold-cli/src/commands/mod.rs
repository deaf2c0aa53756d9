//! One file for each command, and what they share.

pub(crate) mod against;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod digest;
pub(crate) mod extract;
pub(crate) mod formats;
pub(crate) mod generate;
pub(crate) mod inspect;
pub(crate) mod merge;
pub(crate) mod meta;
mod open;
pub(crate) mod rename;
pub(crate) mod scale;
pub(crate) mod scan;
pub(crate) mod show;
pub(crate) mod split;
pub(crate) mod stats;
pub(crate) mod verify;
#[cfg(feature = "view")]
pub(crate) mod view;
pub(crate) mod write;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex::{Regex, RegexSet};
use tenfold::io::{AtomicOutput, Output, Sink};
use tenfold::model::{Metadata, Quoted};
use tenfold::ops::scale::FileReport;
use tenfold::{Archive, Error, Tensor};

use crate::args::{Filter, Inputs};
use crate::failure::{Exit, Failure, Result};
use crate::near::did_you_mean;
use crate::output::{Out, count, say, show_path};
use crate::urls::is_model_directory;

pub(crate) use open::{Session, is_stream, say_passed_over, say_warnings};

/// The tensor of this name, or an error with those that could have been meant.
pub(crate) fn tensor_named<'a>(
    archive: &'a Archive,
    path: &Path,
    name: &str,
) -> Result<Tensor<'a>> {
    archive.get(name).ok_or_else(|| {
        let file = show_path(path);
        let names = archive.manifest().tensors.iter();
        let hint = did_you_mean(names.map(|info| info.name.as_str()), name)
            .unwrap_or_else(|| format!("`tenfold inspect {file}` lists them"));
        Failure::not_found(
            path,
            format!("{file}: there is no tensor {}; {hint}", Quoted(name)),
        )
    })
}

/// Says that there is no such key, with those that could have been meant.
pub(crate) fn no_metadata(path: &Path, metadata: &Metadata, key: &str) -> String {
    let hint = did_you_mean(metadata.iter().map(|(key, _)| key), key);
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    let file = show_path(path);
    format!("{file}: there is no metadata {}{hint}", Quoted(key))
}

/// The format's name and version, for people.
pub(crate) fn format_name(archive: &Archive) -> String {
    match archive.format() {
        Some(spec) => spec.with_version(archive.version()),
        None => "several formats".into(),
    }
}

/// The directory or the prefix itself, or that of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    if is_model_directory(path) {
        path
    } else {
        path.parent().unwrap_or(Path::new(""))
    }
}

/// Runs `one` for every file. One that fails is reported, and the others are still done.
pub(crate) fn for_each_file(
    inputs: &Inputs,
    out: &mut Out<'_>,
    mut one: impl FnMut(&Path, &mut Out<'_>) -> Result<Exit>,
) -> Result<Exit> {
    let mut worst = Exit::Done;
    for path in &inputs.files {
        let exit = match one(path, out) {
            Ok(exit) => exit,
            Err(failure) => {
                let mut problem = failure.into_problem()?;
                if let Some(archive) = named_in(&inputs.files, path) {
                    let (file, name) = (show_path(archive), show_path(path));
                    problem.message = format!(
                        "there is no file {name}; it is a tensor of {file}: `tenfold show {file} {name}` shows it"
                    );
                }
                // What was printed before belongs before the message.
                out.flush()?;
                say(problem.message);
                Exit::Trouble
            }
        };
        worst = worst.max(exit);
    }
    Ok(worst)
}

/// The file, given before a path that does not exist, that holds a tensor of that name.
fn named_in<'f>(files: &'f [PathBuf], path: &Path) -> Option<&'f Path> {
    let first = files
        .first()
        .filter(|first| *first != path && !path.exists())?;
    let archive = Archive::open(first).ok()?;
    archive.get(path.to_str()?).map(|_| first.as_path())
}

/// Prints one JSON document for one file, an array for several. `one` fails before it writes anything.
pub(crate) fn json_for_each_file(
    inputs: &Inputs,
    out: &mut Out<'_>,
    mut one: impl FnMut(&Path, &mut Out<'_>) -> Result<Exit>,
) -> Result<Exit> {
    let mut worst = Exit::Done;
    if let [path] = inputs.files.as_slice() {
        worst = one(path, out)?;
        writeln!(out)?;
        return Ok(worst);
    }
    let mut begin = "[";
    for path in &inputs.files {
        writeln!(out, "{}", std::mem::replace(&mut begin, ","))?;
        worst = worst.max(match one(path, out) {
            Ok(exit) => exit,
            Err(failure) => {
                let mut problem = failure.into_problem()?;
                problem.file.get_or_insert_with(|| path.clone());
                problem.write_json(out)?;
                say(problem.message);
                Exit::Trouble
            }
        });
    }
    writeln!(out, "]")?;
    Ok(worst)
}

/// Prints what many machines found, file by file; one that could not be read is said.
pub(crate) fn text_reports<T>(
    reports: &[FileReport<T>],
    out: &mut Out<'_>,
    mut one: impl FnMut(&Path, &T, &mut Out<'_>) -> Result<Exit>,
) -> Result<Exit> {
    let mut reports = reports.iter();
    let files: Vec<PathBuf> = reports
        .clone()
        .map(|report| (&report.name).into())
        .collect();
    let inputs = Inputs { files, json: false };
    for_each_file(&inputs, out, |path, out| {
        match reports.next().map(|report| &report.found) {
            Some(Ok(found)) => one(path, found, out),
            Some(Err(error)) => Err(Failure::about(path, error)),
            None => Ok(Exit::Done),
        }
    })
}

/// The same as JSON: one document for one file, an array for several.
pub(crate) fn json_reports<T>(
    reports: &[FileReport<T>],
    out: &mut Out<'_>,
    mut one: impl FnMut(&Path, &T, &mut Out<'_>) -> Result<Exit>,
) -> Result<Exit> {
    let mut reports = reports.iter();
    let files: Vec<PathBuf> = reports
        .clone()
        .map(|report| (&report.name).into())
        .collect();
    let inputs = Inputs { files, json: true };
    json_for_each_file(&inputs, out, |path, out| {
        match reports.next().map(|report| &report.found) {
            Some(Ok(found)) => one(path, found, out),
            Some(Err(error)) => Err(Failure::about(path, error)),
            None => Ok(Exit::Done),
        }
    })
}

/// Writes a file that appears whole or not at all.
pub(crate) fn write_file(
    path: &Path,
    force: bool,
    session: &Session<'_>,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    /// A file of an output.
    struct File<'a>(Box<dyn Sink + 'a>);

    impl Write for File<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut output: Box<dyn Output> = match session.urls.output(path, force)? {
        Some(output) => output,
        None => Box::new(AtomicOutput::file(path)?.force(force)),
    };
    let name = output.name().unwrap_or_default().to_owned();
    {
        let mut file = BufWriter::with_capacity(1 << 16, File(output.create(&name, None)?));
        let written = write(&mut file).and_then(|()| {
            let file = file.into_inner();
            file.map_err(|failed| Failure::Output(failed.into_error()))
        });
        match written {
            Ok(File(sink)) => sink.finish()?,
            Err(Failure::Output(cause)) => {
                let message = format!("cannot write {}: {cause}", show_path(path));
                return Err(Failure::Message(message));
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(output.commit()?)
}

/// Which names `--include`, `--regex` and `--exclude` leave.
pub(crate) struct Names {
    include: Option<GlobSet>,
    exclude: Option<GlobSet>,
    regex: Option<RegexSet>,
}

impl Names {
    pub(crate) fn new(filter: &Filter) -> Result<Self> {
        Ok(Self {
            include: globs(&filter.include)?,
            exclude: globs(&filter.exclude)?,
            regex: regexes(&filter.regex)?,
        })
    }

    pub(crate) fn is_all(&self) -> bool {
        self.include.is_none() && self.exclude.is_none() && self.regex.is_none()
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        let globbed = self.include.as_ref().map(|set| set.is_match(name));
        let matched = self.regex.as_ref().map(|set| set.is_match(name));
        let included = match (globbed, matched) {
            (None, None) => true,
            (globbed, matched) => globbed.unwrap_or(false) || matched.unwrap_or(false),
        };
        included && !self.exclude.as_ref().is_some_and(|set| set.is_match(name))
    }
}

/// That of `all` tensors none is left, and whose name could have been meant by what was to be included.
pub(crate) fn nothing_left<'n>(
    filter: &Filter,
    path: &Path,
    names: impl Iterator<Item = &'n str> + Clone,
    all: usize,
) -> Failure {
    let (path, all) = (path.display(), count(all, "tensor"));
    let mut plain =
        (filter.include.iter()).filter(|pattern| !pattern.contains(['*', '?', '[', '{']));
    let hint = plain.find_map(|name| {
        with_wildcards(names.clone(), name).or_else(|| did_you_mean(names.clone(), name))
    });
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    let options = match (filter.include.is_empty(), filter.exclude.is_empty()) {
        (_, true) if filter.regex.is_empty() => "--include matches",
        (true, true) => "--regex matches",
        (true, false) if filter.regex.is_empty() => "--exclude leaves",
        _ => "the filters leave",
    };
    Failure::Message(format!("{path}: {options} none of {all}{hint}"))
}

/// What a pattern without wildcards would match with some: whoever writes `embed` often means all names with it.
pub(crate) fn with_wildcards<'n>(
    names: impl Iterator<Item = &'n str>,
    pattern: &str,
) -> Option<String> {
    let is_plain = !pattern.is_empty() && !pattern.contains(['*', '?', '[', '{']);
    let found = names.filter(|name| name.contains(pattern)).count();
    (is_plain && found > 0).then(|| {
        let found = count(found, "tensor");
        format!("'*{pattern}*' matches {found}")
    })
}

/// Refuses to show nothing of the only file that was given, where something was asked for by its name. Of several files,
/// some may have nothing of it.
pub(crate) fn refuse_nothing(inputs: &Inputs, filter: &Filter, archive: &Archive) -> Result<()> {
    let [path] = inputs.files.as_slice() else {
        return Ok(());
    };
    if filter.include.is_empty() && filter.regex.is_empty() {
        return Ok(());
    }
    let names = Names::new(filter)?;
    let all = archive.manifest().tensors.iter().map(|info| &*info.name);
    if all.clone().any(|name| names.contains(name)) || all.len() == 0 {
        Ok(())
    } else {
        Err(nothing_left(filter, path, all.clone(), all.len()))
    }
}

/// A set of patterns, or nothing when there are none.
pub(crate) fn globs(patterns: &[String]) -> Result<Option<GlobSet>> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        // The same on every system: names of tensors are not paths.
        let glob = GlobBuilder::new(pattern)
            .literal_separator(false)
            .backslash_escape(true)
            .build();
        set.add(glob.map_err(|cause| Error::argument(format!("{pattern:?}: {}", cause.kind())))?);
    }
    let set = set
        .build()
        .map_err(|cause| Error::argument(format!("too many patterns: {cause}")))?;
    Ok(Some(set))
}

/// A set of regular expressions, or nothing when there are none.
fn regexes(patterns: &[String]) -> Result<Option<RegexSet>> {
    if patterns.is_empty() {
        return Ok(None);
    }
    for pattern in patterns {
        regex(pattern).map_err(|why| Failure::Message(format!("--regex {why}")))?;
    }
    match RegexSet::new(patterns) {
        Ok(set) => Ok(Some(set)),
        Err(cause) => Err(Failure::Message(format!("--regex: {cause}"))),
    }
}

/// A regular expression, or in one line what is wrong with it.
pub(crate) fn regex(pattern: &str) -> std::result::Result<Regex, String> {
    Regex::new(pattern).map_err(|cause| {
        // The last line says it; those before show the pattern with a mark below.
        let cause = cause.to_string();
        let why = cause.lines().last().unwrap_or_default();
        format!("{pattern:?}: {}", why.trim_start_matches("error: "))
    })
}
