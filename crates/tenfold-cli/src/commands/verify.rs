//! `tenfold verify`: is a file sound?

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tenfold::documents::{FindingDocument, Verification};
use tenfold::format::{Finding, Registry, Severity};
use tenfold::model::{Quoted, SourceId};
use tenfold::ops::{self, DigestOptions, Verified, VerifyOptions};
use tenfold::{Archive, Error, ErrorKind, Hint, Work};

use crate::args::VerifyArgs;
use crate::commands::against::Lists;
use crate::commands::{Session, directory_of, for_each_file, format_name, json_for_each_file};
use crate::failure::{Exit, Failure, Result};
use crate::hints;
use crate::json;
use crate::losses;
use crate::output::{BOLD, Clean, GREEN, Out, RED, Verbatim, YELLOW, count, show_path, size};
use crate::urls::is_model_directory;

/// More notes are counted in the closing line, not shown.
const NOTES: usize = 8;

pub(crate) fn run(args: &VerifyArgs, session: &Session<'_>, out: &mut Out<'_>) -> Result<Exit> {
    let read = |path: &Path| Lists::read(path, session);
    let lists = args.against.as_deref().map(read).transpose()?;
    let missing = missing_files(&args.inputs.files);
    let check = |path: &Path| Checked::new(path, args, session, lists.as_ref(), &missing);
    if args.inputs.json && !args.quiet {
        return json_for_each_file(&args.inputs, out, |path, out| {
            let checked = check(path)?;
            checked.write_json(path, args.strict, out)?;
            Ok(checked.exit(args.strict))
        });
    }
    for_each_file(&args.inputs, out, |path, out| {
        let checked = check(path)?;
        if !args.quiet {
            checked.write_text(path, args.strict, out)?;
        }
        Ok(checked.exit(args.strict))
    })
}

/// What is said of a file that could be opened.
pub(crate) struct Opened {
    pub(crate) format_name: String,
    pub(crate) version: String,
    pub(crate) tensors: usize,
    pub(crate) bytes: u64,
    /// The names of its files.
    pub(crate) sources: Vec<Option<String>>,
}

impl Opened {
    fn new(archive: &Archive) -> Self {
        let sources = archive.sources();
        Self {
            format_name: format_name(archive),
            version: archive.version().to_owned(),
            tensors: archive.manifest().tensors.len(),
            bytes: archive.stored_bytes(),
            sources: sources
                .map(|(name, _)| name.map(ToOwned::to_owned))
                .collect(),
        }
    }

    fn source_name(&self, source: SourceId) -> Option<&str> {
        self.sources.get(source.index())?.as_deref()
    }
}

/// A file and what was found in it.
pub(crate) struct Checked {
    /// What could be opened.
    opened: Option<Opened>,
    format: Option<&'static str>,
    /// It may well be sound, but not for this build to say.
    unsupported: bool,
    findings: Vec<Finding>,
    /// How much was checked.
    checked: String,
    /// There was nothing to compare the data with.
    has_no_checksums: bool,
}

impl Checked {
    /// `missing` says which files should be beside some that were given.
    fn new(
        path: &Path,
        args: &VerifyArgs,
        session: &Session<'_>,
        lists: Option<&Lists>,
        missing: &[(PathBuf, Finding)],
    ) -> Result<Self> {
        let expected = lists.map(|lists| lists.of(path)).transpose()?;
        match session.open_verified(path, &args.reading) {
            Ok(archive) => {
                let about = |error: Error| Failure::about(path, &error);
                let work = Work::new().threads(args.threads.count());
                let options = VerifyOptions::new().work(work.clone());
                let verified = ops::verify(&archive, &options).map_err(about)?;
                let numbers = if args.content {
                    Some(ops::check_numbers(&archive, &options).map_err(about)?)
                } else {
                    None
                };
                let format = archive.format().map(|spec| spec.id);
                let mut found = Self::of(
                    path,
                    (format, Opened::new(&archive)),
                    verified,
                    numbers,
                    missing,
                );
                found.has_no_checksums &= lists.is_none();
                if let (Some(lists), Some(expected)) = (lists, expected) {
                    let options = DigestOptions::new().work(work);
                    let mut digests = ops::digest(&archive, &options).map_err(about)?;
                    for (name, _) in &mut digests.tensors {
                        *name = lists.listed(name);
                    }
                    let different = ops::compare_digests(&archive, &digests, expected);
                    if different.is_empty() {
                        found
                            .findings
                            .push(matching(&archive, expected.tensors.len()));
                    }
                    found.findings.extend(different);
                }
                Ok(found)
            }
            Err(error) => Self::failed(path, &error),
        }
    }

    /// A file that could be opened.
    pub(crate) fn of(
        path: &Path,
        (format, opened): (Option<&'static str>, Opened),
        verified: Verified,
        numbers: Option<Verified>,
        missing: &[(PathBuf, Finding)],
    ) -> Self {
        let note = verified.note_in(format);
        let checked = note.message.clone();
        let has_no_checksums =
            verified.checked.checksums.is_empty() && verified.checked.without_checksum > 0;
        let mut findings = verified.findings;
        findings.push(note);
        let missing = missing.iter().filter(|(file, _)| file == path);
        findings.extend(missing.map(|(_, finding)| finding.clone()));
        if let Some(numbers) = numbers {
            let note = numbers.note_in(format);
            findings.extend(numbers.findings);
            findings.push(note);
        }
        Self {
            format,
            findings,
            opened: Some(opened),
            unsupported: false,
            checked,
            has_no_checksums,
        }
    }

    /// A file that could not be opened: that is a finding, unless it says nothing of the file.
    pub(crate) fn failed(path: &Path, error: &Error) -> Result<Self> {
        if is_trouble(path, error) {
            return Err(Failure::about(path, error));
        }
        let mut finding = Finding::from(error);
        // To verify is to look at checksums.
        finding.hints.retain(|hint| *hint != Hint::SkipChecksums);
        Ok(Self {
            opened: None,
            unsupported: error.kind() == ErrorKind::Unsupported,
            format: error.format(),
            findings: vec![finding],
            checked: String::new(),
            has_no_checksums: false,
        })
    }

    fn with(&self, severity: Severity) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(move |finding| finding.severity == severity)
    }

    /// What was checked, each once, and how often: several files say the same.
    fn distinct_notes(&self) -> Vec<(&str, usize)> {
        let mut notes: Vec<(&str, usize)> = Vec::new();
        for note in self.with(Severity::Note) {
            match notes.iter_mut().find(|(known, _)| *known == note.message) {
                Some((_, times)) => *times += 1,
                None => notes.push((&note.message, 1)),
            }
        }
        notes
    }

    pub(crate) fn exit(&self, strict: bool) -> Exit {
        let worst = if strict {
            Severity::Warning
        } else {
            Severity::Error
        };
        if self
            .findings
            .iter()
            .any(|finding| finding.severity >= worst)
        {
            Exit::Findings
        } else {
            Exit::Done
        }
    }

    /// Whether nothing is wrong, and the data was compared with nothing.
    fn is_unchecked(&self, strict: bool) -> bool {
        self.has_no_checksums && self.exit(strict) == Exit::Done
    }

    /// The file that a finding is about.
    fn file<'a>(&self, finding: &Finding, path: &'a Path) -> Cow<'a, str> {
        let source = match (&self.opened, &finding.at) {
            (Some(opened), Some((source, _)))
                if *source != SourceId::MAIN || is_model_directory(path) =>
            {
                opened.source_name(*source)
            }
            _ => None,
        };
        match source {
            Some(name) => {
                let file = directory_of(path).join(name);
                Cow::Owned(file.to_string_lossy().into_owned())
            }
            None => path.to_string_lossy(),
        }
    }

    pub(crate) fn write_json(
        &self,
        path: &Path,
        strict: bool,
        out: &mut Out<'_>,
    ) -> io::Result<()> {
        let (file, findings) = (path.to_string_lossy(), self.findings.iter());
        let document = Verification::new(
            &file,
            self.format,
            self.opened.as_ref().map(|opened| opened.version.as_str()),
            self.exit(strict) == Exit::Done,
            findings.map(|finding| {
                FindingDocument::new(finding, self.file(finding, path), hints::words)
            }),
        );
        json::write(out, &document)
    }

    pub(crate) fn write_text(
        &self,
        path: &Path,
        strict: bool,
        out: &mut Out<'_>,
    ) -> io::Result<()> {
        for severity in [Severity::Error, Severity::Warning] {
            let style = if severity == Severity::Error {
                RED
            } else {
                YELLOW
            };
            let reason = |finding: &&Finding| {
                let file = self.file(finding, path).into_owned();
                (file, finding.rule.clone(), hints::finding(finding))
            };
            for findings in losses::alike(self.with(severity), reason) {
                let Some(finding) = findings.first() else {
                    continue;
                };
                let (file, rule, message) = reason(finding);
                write!(out, "{}: {}: ", Clean(&file), out.paint(style, severity))?;
                let names: Vec<_> = findings
                    .iter()
                    .filter_map(|one| one.tensor.as_deref())
                    .collect();
                match names.as_slice() {
                    [] => write!(out, "{}", Clean(&message))?,
                    [name] => write!(
                        out,
                        "tensor {}: {}",
                        Clean(&Quoted(name).to_string()),
                        Clean(&message)
                    )?,
                    several => {
                        let (n, some) = (several.len(), losses::some(several));
                        write!(out, "{n} tensors: {} ({})", Clean(&message), Clean(&some))?;
                    }
                }
                match (findings.len(), &finding.at) {
                    (1, Some((_, range))) => {
                        write!(out, " (bytes {}..{})", range.start, range.end)?
                    }
                    (n, _) if n > 1 && names.is_empty() => write!(out, " ({n} times)")?,
                    _ => {}
                }
                writeln!(out, " [{rule}]")?;
            }
        }
        self.write_closing(path, strict, out)
    }

    /// The line that says how it ended and what was checked.
    fn write_closing(&self, path: &Path, strict: bool, out: &mut Out<'_>) -> io::Result<()> {
        let verdict = match (self.exit(strict), &self.opened) {
            _ if self.is_unchecked(strict) => out.paint(GREEN, "structure is sound"),
            (Exit::Done, _) => out.paint(GREEN, "sound"),
            (_, None) if self.format.is_none() => out.paint(RED, "not recognized"),
            (_, None) if self.unsupported => out.paint(RED, "not read by this build"),
            _ => out.paint(RED, "not sound"),
        };
        write!(out, "{}: {verdict}", out.paint(BOLD, show_path(path)))?;
        for (severity, what) in [(Severity::Error, "error"), (Severity::Warning, "warning")] {
            match self.with(severity).count() {
                0 => {}
                n => write!(out, ", {}", count(n, what))?,
            }
        }
        if let Some(opened) = &self.opened {
            if self.is_unchecked(strict) {
                let within = if self.format.is_some_and(can_have_checksums) {
                    "file"
                } else {
                    "format"
                };
                write!(
                    out,
                    "; this {within} has no checksums of tensors: content was not compared (`digest`, `--against`)"
                )?;
            }
            let tensors = count(opened.tensors, "tensor");
            let bytes = size(opened.bytes);
            write!(
                out,
                "; {}, {tensors}, {bytes}",
                Verbatim(&opened.format_name)
            )?;
        }
        let mut notes = self.distinct_notes();
        if self.is_unchecked(strict) {
            // That nothing had a checksum is said already.
            notes.retain(|(note, _)| *note != self.checked);
        }
        for (message, times) in notes.iter().take(NOTES) {
            write!(out, "; {}", Clean(message))?;
            if *times > 1 {
                write!(out, " ({times} times)")?;
            }
        }
        if notes.len() > NOTES {
            let more = notes.len() - NOTES;
            write!(out, "; and {more} more notes (--json lists them)")?;
        }
        writeln!(out)
    }
}

/// Whether files of this format can say what their data hashes to.
fn can_have_checksums(format: &str) -> bool {
    let registry = Registry::standard();
    let profiles = registry
        .get(format)
        .map_or(&[][..], |entry| entry.spec.writes);
    profiles
        .iter()
        .any(|profile| !profile.can.checksums.is_empty())
}

/// That the content is what a list says.
fn matching(archive: &Archive, tensors: usize) -> Finding {
    let what = match tensors {
        1 => "1 tensor matches the list".to_owned(),
        n => format!("{n} tensors match the list"),
    };
    let format = archive.format().map(|spec| spec.id);
    let error = format
        .into_iter()
        .fold(Error::malformed("digest", what), Error::in_format);
    let mut note = Finding::from(&error);
    note.severity = Severity::Note;
    note
}

/// What is missing of models of which several files are given: said of the first of them. What is not given and lies beside
/// them is not missing.
pub(crate) fn missing_files(given: &[PathBuf]) -> Vec<(PathBuf, Finding)> {
    let mut found = Vec::new();
    let mut directories: Vec<&Path> = given.iter().map(|path| directory_of(path)).collect();
    directories.sort_unstable();
    directories.dedup();
    for directory in directories {
        let files: Vec<_> = (given.iter())
            .filter(|path| path.is_file() && directory_of(path) == directory)
            .collect();
        let Some(beside) = names_in(directory).filter(|_| files.len() > 1) else {
            continue;
        };
        for set in ops::missing_files(beside.iter().map(String::as_str)) {
            let is_part = |path: &&&PathBuf| {
                let name = path.file_name().unwrap_or_default();
                set.contains(&name.to_string_lossy())
            };
            let mut parts = files.iter().filter(is_part);
            if let (Some(first), Some(_)) = (parts.next(), parts.next()) {
                found.push((first.to_path_buf(), set.finding()));
            }
        }
    }
    found
}

/// The names of what is in a directory; nothing where it cannot be listed.
fn names_in(directory: &Path) -> Option<Vec<String>> {
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let entries = std::fs::read_dir(directory).ok()?;
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    Some(entries.flatten().map(name).collect())
}

/// Whether an error says nothing about the content: wrong usage, or a path that cannot be read.
fn is_trouble(path: &Path, error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Argument | ErrorKind::Canceled | ErrorKind::Io => true,
        // A file that the opened one names and that is not there is a finding.
        ErrorKind::NotFound => !path.exists(),
        _ => false,
    }
}
