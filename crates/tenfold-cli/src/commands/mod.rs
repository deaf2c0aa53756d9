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
pub(crate) mod rename;
pub(crate) mod show;
pub(crate) mod split;
pub(crate) mod stats;
pub(crate) mod verify;
pub(crate) mod write;

use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex::{Regex, RegexSet};
use tenfold::format::Severity;
use tenfold::io::Limits;
use tenfold::model::{Metadata, SourceId};
use tenfold::{Archive, Error, ErrorKind, OpenOptions, Tensor};

use crate::args::{Filter, Inputs, Opening, Reading};
use crate::failure::{Exit, Failure, Result};
use crate::json::Json;
use crate::near::did_you_mean;
use crate::output::{Out, count, say, show_path};

/// What `--limit` says. Set once before a command runs, because it is about every file that any of them opens.
static LIMITS: OnceLock<Limits> = OnceLock::new();

pub(crate) fn set_limits(given: &[(String, u64)]) -> Result<()> {
    let mut limits = Limits::default();
    for (name, value) in given {
        limits = limits.with(name, *value)?;
    }
    // There is one command in a process.
    let _ = LIMITS.set(limits);
    Ok(())
}

/// How much a file may ask for.
pub(crate) fn limits() -> Limits {
    LIMITS.get().copied().unwrap_or_default()
}

/// Opens a file as its options say. Without verification, what is wrong with it is said.
pub(crate) fn open(path: &Path, opening: &Opening) -> tenfold::Result<Archive> {
    let archive = open_silently(path, opening)?;
    if opening.no_verify {
        say_warnings(path, &archive);
    }
    Ok(archive)
}

/// Opens a file as its options say.
pub(crate) fn open_silently(path: &Path, opening: &Opening) -> tenfold::Result<Archive> {
    open_with(path, &options(opening).limits(limits()))
}

/// Opens a file whose checksums count.
pub(crate) fn open_verified(path: &Path, reading: &Reading) -> tenfold::Result<Archive> {
    refuse_no_file(path)?;
    refuse_pattern(path)?;
    reading_options(reading).limits(limits()).open(path)
}

/// Opens a file. The error of one whose checksum alone is wrong says how to open it.
pub(crate) fn open_with(path: &Path, options: &OpenOptions) -> tenfold::Result<Archive> {
    refuse_no_file(path)?;
    refuse_pattern(path)?;
    options.open(path).map_err(|error| {
        let unverified = || options.clone().checksums(false).open(path);
        if error.kind() == ErrorKind::Mismatch && unverified().is_ok() {
            error.adding("; --no-verify opens it as it is")
        } else {
            error
        }
    })
}

/// Says what was noticed when a file was opened.
pub(crate) fn say_warnings(path: &Path, archive: &Archive) {
    let path = show_path(path);
    for finding in archive.findings() {
        if finding.severity > Severity::Note {
            say(format_args!("{path}: warning: {}", finding.message));
        }
    }
}

/// Says of `-` that streams are neither read nor written (a file of that name is `./-`), and of addresses and patterns
/// that they are no files.
pub(crate) fn refuse_no_file(path: &Path) -> tenfold::Result<()> {
    if path == Path::new("-") {
        return Err(Error::argument(
            "standard input and output (-) are not supported: name a file; ./- is a file named -",
        ));
    }
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let shown = path.to_string_lossy();
    let is_scheme =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric());
    if shown
        .split_once("://")
        .is_some_and(|(scheme, _)| is_scheme(scheme))
    {
        let message = format!(
            "{shown} is an address, and only files are read and written: download it first"
        );
        return Err(Error::argument(message));
    }
    Ok(())
}

/// Says of a pattern that it is none of ours, where no file is called so.
pub(crate) fn refuse_pattern(path: &Path) -> tenfold::Result<()> {
    let shown = path.to_string_lossy();
    if !shown.contains(['*', '?', '[']) || path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let message = format!(
        "there is no file {shown}: a pattern is replaced by the shell, where files match it and it is not in quotes"
    );
    Err(Error::new(ErrorKind::NotFound, "io", message))
}

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
        Failure::not_found(path, format!("{file}: there is no tensor {name:?}; {hint}"))
    })
}

/// Says that there is no such key, with those that could have been meant.
pub(crate) fn no_metadata(path: &Path, metadata: &Metadata, key: &str) -> String {
    let hint = did_you_mean(metadata.iter().map(|(key, _)| key), key);
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    let file = show_path(path);
    format!("{file}: there is no metadata {key:?}{hint}")
}

/// How a file is opened.
pub(crate) fn options(opening: &Opening) -> OpenOptions {
    reading_options(&opening.reading).checksums(!opening.no_verify)
}

/// Positioned reads: a file that shrinks meanwhile is an error, never a signal.
fn reading_options(reading: &Reading) -> OpenOptions {
    OpenOptions::new()
        .format(reading.from.as_deref())
        .assume_dtype(reading.assume)
}

/// The format's name and version, for people.
pub(crate) fn format_name(archive: &Archive) -> String {
    match archive.format() {
        Some(spec) => spec.with_version(archive.version()),
        None => "several formats".into(),
    }
}

/// The directory itself, or that of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.is_dir() {
        true => path,
        false => path.parent().unwrap_or(Path::new("")),
    }
}

/// Bytes of all files that it consists of.
pub(crate) fn len_bytes(archive: &Archive) -> u64 {
    let files = (0u32..).map_while(|id| archive.source(SourceId(id)));
    files
        .map(|source| source.len())
        .fold(0, u64::saturating_add)
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
                let problem = failure.into_problem()?;
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

/// Prints one JSON document for one file, an array for several. `one` fails before it writes anything.
pub(crate) fn json_for_each_file(
    inputs: &Inputs,
    out: &mut Out<'_>,
    mut one: impl FnMut(&Path, &mut Json<'_>) -> Result<Exit>,
) -> Result<Exit> {
    let mut json = Json::new(out);
    let mut worst = Exit::Done;
    if let [path] = inputs.files.as_slice() {
        worst = one(path, &mut json)?;
    } else {
        let mut stop = Ok(());
        json.array(|json| {
            for path in &inputs.files {
                match one(path, json.line()?) {
                    Ok(exit) => worst = worst.max(exit),
                    Err(Failure::Output(cause)) => return Err(cause),
                    Err(failure) => match failure.into_problem() {
                        Ok(mut problem) => {
                            problem.file.get_or_insert_with(|| path.clone());
                            problem.write_json(json)?;
                            say(problem.message);
                            worst = Exit::Trouble;
                        }
                        Err(failure) => {
                            stop = Err(failure);
                            break;
                        }
                    },
                }
            }
            Ok(())
        })?;
        stop?;
    }
    writeln!(out)?;
    Ok(worst)
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
    let hint = plain.find_map(|name| did_you_mean(names.clone(), name));
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    Failure::Message(format!(
        "{path}: --include and --exclude leave none of {all}{hint}"
    ))
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
    match all.clone().any(|name| names.contains(name)) || all.len() == 0 {
        true => Ok(()),
        false => Err(nothing_left(filter, path, all.clone(), all.len())),
    }
}

/// A set of patterns, or nothing when there are none.
pub(crate) fn globs(patterns: &[String]) -> Result<Option<GlobSet>> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        // The same on every system: names of tensors are no paths.
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
