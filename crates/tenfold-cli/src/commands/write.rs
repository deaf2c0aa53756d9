//! What every writing command does: check the output, open the inputs, say what would be lost, write, look at it
//! again, and say what was done.

mod output;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use globset::GlobSet;
use tenfold::format::{Checksums, Compression, Control, Effect, Entry, Registry, Severity};
use tenfold::io::AtomicOutput;
use tenfold::model::{DType, DigestKind, SourceId, TensorInfo};
use tenfold::ops::{Conversion, ConvertOptions, Report, Shards, prepare};
use tenfold::{Archive, Error, OpenOptions};

use crate::args::{Allow, Checksum, Filter, Writing};
use crate::commands::{Names, globs, limits};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Clean, Out, count, say, show_path};
use crate::progress::Progress;

pub(crate) use output::is_directory;
pub(crate) use summary::Extra;

/// More losses are counted, not listed.
pub(crate) const LISTED: usize = 10;

/// A file, or several, to be written: what was asked for.
pub(crate) struct Request<'a> {
    /// The command, for the JSON that says what was done.
    pub(crate) command: &'static str,
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) from: Option<&'a str>,
    pub(crate) output: &'a Path,
    pub(crate) writing: &'a Writing,
    /// Whether contents are compared.
    pub(crate) check: bool,
    pub(crate) shards: Option<Shards>,
    /// The name that those of shards in a directory are made from.
    pub(crate) name: Option<String>,
    /// The output may be the input, which is then replaced.
    pub(crate) in_place: bool,
    /// The output holds what the inputs hold: its digest is theirs.
    pub(crate) keeps_content: bool,
    pub(crate) started: Instant,
}

impl<'a> Request<'a> {
    pub(crate) fn new(
        command: &'static str,
        inputs: &'a [PathBuf],
        output: &'a Path,
        writing: &'a Writing,
    ) -> Self {
        Self {
            command,
            inputs,
            from: None,
            output,
            writing,
            check: false,
            shards: None,
            name: None,
            in_place: false,
            keeps_content: false,
            started: Instant::now(),
        }
    }

    /// A failure that says which input it is about.
    pub(crate) fn about(&self, error: &Error) -> Failure {
        Failure::about(&self.title(), error)
    }

    /// What was given, as one name.
    pub(crate) fn title(&self) -> PathBuf {
        match self.inputs {
            [only] => only.clone(),
            [first, rest @ ..] => format!("{} and {} more", first.display(), rest.len()).into(),
            [] => PathBuf::new(),
        }
    }

    /// Opens the inputs. None of the files that they consist of may be the output.
    pub(crate) fn open(&self, opening: &Opening) -> Result<Inputs> {
        let mut inputs = Inputs::default();
        for input in self.inputs {
            // Any of the parts of a model opens all of them.
            if inputs.parts.iter().any(|part| output::is_same(part, input)) {
                continue;
            }
            let archive = opening.open(self, input);
            let archive = archive.map_err(|error| Failure::about(input, &error))?;
            let directory = match input.is_dir() {
                true => input.as_path(),
                false => input.parent().unwrap_or(Path::new("")),
            };
            let names = (0u32..).map_while(|id| archive.source_name(SourceId(id)));
            let files: Vec<_> = names.map(|name| directory.join(name)).collect();
            if files.len() > 1 {
                inputs.parts.extend(files.iter().cloned());
            }
            inputs.files.extend(files);
            inputs.archives.push(archive);
        }
        for file in &inputs.files {
            self.refuse_input(file, self.output)?;
        }
        if inputs
            .parts
            .iter()
            .any(|part| output::is_same(part, self.output))
        {
            let message = "one of several files of a model, and only a single file is replaced";
            let shown = self.output.display();
            return Err(Failure::Message(format!(
                "{shown} is {message}; write to another name"
            )));
        }
        Ok(inputs)
    }

    /// The tensors that are wanted; that there are none is an error.
    pub(crate) fn select(&self, filter: &Filter, archive: Archive) -> Result<Archive> {
        let selected = self.narrow(filter, &archive)?;
        let (all, left) = (archive.tensors().len(), selected.tensors().len());
        match left == 0 && all > 0 {
            true => Err(self.nothing_left(all)),
            false => Ok(selected),
        }
    }

    /// The tensors that are wanted.
    pub(crate) fn narrow(&self, filter: &Filter, archive: &Archive) -> Result<Archive> {
        let names = Names::new(filter)?;
        match names.is_all() {
            true => Ok(archive.clone()),
            false => Ok(archive.select(|info| names.contains(&info.name))),
        }
    }

    pub(crate) fn nothing_left(&self, all: usize) -> Failure {
        let (input, all) = (self.title(), count(all, "tensor"));
        let input = input.display();
        Failure::Message(format!(
            "{input}: --include and --exclude leave none of {all}"
        ))
    }

    /// How the writing was asked to be done.
    pub(crate) fn options(&self) -> Result<ConvertOptions> {
        let writing = self.writing;
        let mut options = ConvertOptions::default();
        options.version.clone_from(&writing.version);
        options.options.clone_from(&writing.options);
        options.compression = compression(writing)?;
        options.checksums = match writing.checksum {
            Checksum::Keep => Checksums::Keep,
            Checksum::None => Checksums::None,
            Checksum::Crc32c => Checksums::With(DigestKind::Crc32c),
            Checksum::Sha256 => Checksums::With(DigestKind::Sha256),
            Checksum::Xxh3 => Checksums::With(DigestKind::Xxh3),
        };
        options.allow = match writing.allow {
            None => Effect::Rearranged,
            Some(Allow::Changed) => Effect::Changed,
            Some(Allow::Dropped) => Effect::Dropped,
        };
        options.check = self.check;
        options.shards = self.shards;
        options.file_per_tensor = is_directory(self.output) && self.shards.is_none();
        options.execute.threads = writing.threads.map_or(0, usize::from);
        options.timestamp = timestamp()?;
        Ok(options)
    }

    /// Prepares a rewriting of the same tensors: in the version that the input has, if it is written and holds
    /// everything.
    pub(crate) fn prepare_rewrite(
        &self,
        archive: &Archive,
        target: &Entry,
        options: &ConvertOptions,
    ) -> Result<Conversion> {
        let prepare = |options: &ConvertOptions| {
            prepare(archive, target, options).map_err(|error| self.about(&error))
        };
        let same = archive.format().map(|spec| spec.id) == Some(target.spec.id)
            && target.spec.profile(archive.version()).is_some();
        if options.version.is_some() || !same {
            return prepare(options);
        }
        let mut as_before = options.clone();
        as_before.version = Some(archive.version().to_owned());
        let conversion = prepare(&as_before)?;
        let lost = |conversion: &Conversion| {
            let effects = conversion.losses.iter().map(|loss| loss.effect);
            effects.max().filter(|&effect| effect > Effect::Rearranged)
        };
        if lost(&conversion).is_none() {
            return Ok(conversion);
        }
        let other = prepare(options)?;
        match lost(&other) < lost(&conversion) {
            true => Ok(other),
            false => Ok(conversion),
        }
    }

    /// Writes what was prepared, unless that would lose something or is only to be tried, and says what was done.
    pub(crate) fn finish(
        &self,
        target: &Entry,
        conversion: Conversion,
        inputs: &Inputs,
        options: &ConvertOptions,
        extra: &Extra<'_>,
        out: &mut Out<'_>,
    ) -> Result<Exit> {
        self.announce(target, &conversion)?;
        let files = self.check_files(target, &conversion, &inputs.files)?;
        let summary = self.summary(target, files, &conversion, extra);
        let report = match self.writing.dry_run {
            true => None,
            false => Some(self.write(target, conversion, &options.execute.control)?),
        };
        if !self.writing.quiet {
            summary.say(report.as_ref());
        }
        if self.writing.json {
            summary.write_json(report.as_ref(), out)?;
        }
        Ok(Exit::Done)
    }

    /// Says before anything is written which version it will be and what would be lost, and refuses what is not allowed.
    fn announce(&self, target: &Entry, conversion: &Conversion) -> Result<()> {
        let quiet = self.writing.quiet;
        let refusal = conversion.refuse_losses();
        if let (Some(because), false) = (&conversion.because, quiet) {
            let version = conversion.profile.version;
            say(format_args!(
                "{} is chosen: {because}",
                target.spec.with_version(version)
            ));
        }
        if !quiet {
            conversion.casts.iter().for_each(say);
        }
        let losses = &conversion.losses;
        // A refusal names the worst loss itself.
        let listed = !quiet && (refusal.is_ok() || losses.len() > 1);
        for loss in losses.iter().take(LISTED).filter(|_| listed) {
            say(loss);
        }
        if losses.len() > LISTED && listed {
            say(format_args!("and {} more", losses.len() - LISTED));
        }
        refusal.map_err(|error| self.about(&error))
    }

    fn write(
        &self,
        target: &Entry,
        conversion: Conversion,
        control: &Arc<Control>,
    ) -> Result<Report> {
        // First, so that whatever is there when the signal comes is removed.
        cancel_on_signal(control.clone())?;
        let output = match is_directory(self.output) {
            true => AtomicOutput::directory(self.output)?,
            false => AtomicOutput::file(self.output)?.force(self.writing.force),
        }
        .sync(!self.writing.no_sync);
        let name = match self.shards {
            Some(_) => self.file_name(target),
            None => output.main_name().to_owned(),
        };
        let shown = !self.writing.no_progress && !self.writing.quiet;
        let bar = shown.then(|| Progress::watch(control.clone()));
        let result = conversion.write(&name, Box::new(output));
        drop(bar);
        result.map_err(|error| self.about(&error))
    }
}

/// What was opened.
#[derive(Default)]
pub(crate) struct Inputs {
    pub(crate) archives: Vec<Archive>,
    /// The files that the archives consist of.
    pub(crate) files: Vec<PathBuf>,
    /// Those of archives that consist of several.
    parts: Vec<PathBuf>,
}

impl Inputs {
    /// All of them as one archive; where they disagree about metadata, the first counts.
    pub(crate) fn joined(&self) -> Result<Archive> {
        Ok(tenfold::ops::join(&self.archives, true)?)
    }
}

/// How inputs are opened.
#[derive(Default)]
pub(crate) struct Opening {
    /// The largest size of a sparse tensor that is written with its zeros.
    pub(crate) max_dense: Option<u64>,
    /// Damaged files show what is whole.
    pub(crate) salvage: bool,
    /// The type of elements that have none.
    pub(crate) assume: Option<DType>,
}

impl Opening {
    /// The file, or what is whole of it: then the reason why that is not everything is said.
    fn open(&self, request: &Request<'_>, input: &Path) -> tenfold::Result<Archive> {
        let mut limits = limits();
        if let Some(bytes) = self.max_dense {
            limits = limits.with_dense_bytes(bytes);
        }
        let opening = OpenOptions::new()
            .mmap(false)
            .format(request.from)
            .assume_dtype(self.assume);
        let archive = opening.limits(limits).salvage(self.salvage).open(input)?;
        if !self.salvage {
            return Ok(archive);
        }
        for finding in archive.findings() {
            if finding.severity > Severity::Note && !request.writing.quiet {
                let input = show_path(input);
                say(format_args!("{input}: {}", Clean(&finding.message)));
            }
        }
        Ok(archive)
    }
}

/// The format to write: what was asked for, else that of the output's name, else that of the input.
pub(crate) fn target<'r>(
    request: &Request<'_>,
    input: Option<&Archive>,
    registry: &'r Registry,
) -> Result<&'r Entry> {
    output::target(request, input.and_then(Archive::format), registry)
}

type Choose = Arc<dyn Fn(&TensorInfo) -> Compression + Send + Sync>;

/// The last of the `--zstd` rules that matches, else raw or as it is.
fn compression(writing: &Writing) -> Result<Choose> {
    let otherwise = if writing.raw {
        Compression::Raw
    } else {
        Compression::Keep
    };
    let mut rules: Vec<(i32, Option<GlobSet>)> = Vec::new();
    for (level, pattern) in writing.zstd.iter().rev() {
        rules.push((*level, globs(pattern.as_slice())?));
    }
    Ok(Arc::new(move |info| {
        let matches =
            |set: &Option<GlobSet>| set.as_ref().is_none_or(|set| set.is_match(&info.name));
        let rule = rules.iter().find(|(_, set)| matches(set));
        rule.map_or(otherwise, |(level, _)| Compression::Zstd(*level))
    }))
}

/// The time for formats that record one: that of the build that asks for reproducible output, else none.
fn timestamp() -> Result<u64> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text.parse().map_err(|_| {
            Failure::Message(format!(
                "SOURCE_DATE_EPOCH is {text:?}, seconds since 1970 are expected"
            ))
        }),
        Err(_) => Ok(0),
    }
}

/// Lets Ctrl-C and its like stop the work: it ends between two pieces, and its output is gone.
fn cancel_on_signal(control: Arc<Control>) -> Result<()> {
    let asked = AtomicBool::new(false);
    ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            // Asked twice: what is done between pieces, such as waiting for the disk, takes too long.
            std::process::exit(Exit::Canceled as i32);
        }
        control.cancel();
    })
    .map_err(|cause| Failure::Message(format!("cannot watch for Ctrl-C: {cause}")))
}
