//! What every writing command does: check the output, open the inputs, say what would be lost, write, look at it
//! again, and say what was done.

mod along;
mod in_place;
mod inputs;
mod options;
mod output;
mod quantize;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tenfold::documents::{QualityDocument, Written};
use tenfold::format::{Effect, Entry, Loss, Lost, Profile};
use tenfold::io::{AtomicOutput, StreamOutput};
use tenfold::model::Quoted;
use tenfold::ops::{Conversion, ConvertOptions, Report, Shards};
use tenfold::{Archive, Error};
use tenfold::{Control, Work};

use crate::args::{Filter, Opening, Writing};
use crate::commands::{Names, Session, globs, is_stream, nothing_left, with_wildcards};
use crate::failure::{Exit, Failure, Result};
use crate::hints;
use crate::losses;
use crate::output::{Clean, Out, count, say, say_first};
use crate::progress::Progress;

pub(crate) use inputs::Inputs;
pub(crate) use options::timestamp;
pub(crate) use output::{as_directory, is_directory, is_empty, target};
use quantize::{QuantizedTensors, Retyped};
use summary::Summary;

/// What is read, and where the result goes.
pub(crate) struct Places<'a> {
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) opening: &'a Opening,
    pub(crate) output: &'a Path,
}

/// A file, or several, to be written: what was asked for.
pub(crate) struct Request<'a> {
    /// The command, for the JSON that says what was done.
    pub(crate) command: &'static str,
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) opening: &'a Opening,
    pub(crate) output: &'a Path,
    pub(crate) writing: &'a Writing,
    pub(crate) session: &'a Session<'a>,
    /// Whether contents are compared.
    pub(crate) check: bool,
    pub(crate) shards: Option<Shards>,
    /// The largest size of a sparse tensor that is written with its zeros.
    pub(crate) max_dense: Option<u64>,
    /// Damaged inputs show what is whole.
    pub(crate) salvage: bool,
    /// The name that those of shards in a directory are made from.
    pub(crate) name: Option<String>,
    /// A directory gets one file with all tensors.
    pub(crate) whole: bool,
    /// What is not a tensor file comes along, from a directory into one.
    pub(crate) brings_along: bool,
    /// The output may be the input, which is then replaced.
    pub(crate) may_replace: bool,
    /// The input itself is changed, and there is no output.
    pub(crate) in_place: bool,
    /// The output holds what the inputs hold: its digest is theirs.
    pub(crate) keeps_content: bool,
    /// The output was not named by -o, and may be meant as an input.
    pub(crate) is_last: bool,
    pub(crate) started: Instant,
    /// What shows progress and stops the work.
    pub(crate) control: Arc<Control>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(
        command: &'static str,
        places: Places<'a>,
        writing: &'a Writing,
        session: &'a Session<'a>,
    ) -> Self {
        let Places {
            inputs,
            opening,
            output,
        } = places;
        Self {
            command,
            inputs,
            opening,
            output,
            writing,
            session,
            check: false,
            shards: None,
            max_dense: None,
            salvage: false,
            name: None,
            whole: false,
            brings_along: false,
            may_replace: false,
            in_place: false,
            keeps_content: false,
            is_last: false,
            started: Instant::now(),
            // What waits for a server is stopped by it too.
            control: session.urls.control(),
        }
    }

    /// As many threads as were asked for, and what shows progress and stops the work.
    fn work(&self) -> Work {
        let threads = self.writing.threads.count();
        Work::new().threads(threads).control(self.control.clone())
    }

    /// Into a directory, a model stays distributed over its files as it is; that of a directory becomes one file where the
    /// format is another.
    pub(crate) fn keeping_files(self, inputs: &Inputs, target: &Entry) -> Self {
        if !is_directory(self.output) || self.shards.is_some() {
            return self;
        }
        let formats = inputs.archives.iter().map(Archive::format);
        let mut ids = formats.map(|format| format.map(|spec| spec.id));
        let is_same = ids.all(|id| id == Some(target.spec.id));
        let holds_several = |profile: &Profile| profile.can.max_tensors > 1;
        match inputs.shard_stem() {
            Some(stem) if is_same => Self {
                shards: Some(Shards::Keep),
                name: Some(stem),
                ..self
            },
            stem if inputs.is_model() && target.spec.writes.iter().any(holds_several) => Self {
                whole: true,
                name: stem.or_else(|| inputs.file_stem()),
                ..self
            },
            _ => self,
        }
    }

    /// Whether the files stay distributed as they are.
    pub(crate) fn keeps_files(&self) -> bool {
        matches!(self.shards, Some(Shards::Keep))
    }

    /// Whether contents are compared: what went into a stream cannot be.
    fn is_checked(&self) -> bool {
        self.check && !is_stream(self.output)
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

    /// The tensors that are wanted; that there are none is an error.
    pub(crate) fn select(&self, filter: &Filter, archive: Archive) -> Result<Archive> {
        let selected = self.narrow(filter, &archive)?;
        let (all, left) = (archive.tensors().len(), selected.tensors().len());
        if left == 0 && all > 0 {
            let names = archive.manifest().tensors.iter().map(|info| &*info.name);
            return Err(self.nothing_left(filter, names, all));
        }
        for (_, pattern) in &self.writing.zstd {
            self.check_pattern("--zstd", pattern.as_ref(), &selected)?;
        }
        Ok(selected)
    }

    /// Where damaged inputs show what is whole: that, and what is left out, which is said.
    pub(crate) fn salvaged(&self, archive: Archive) -> Result<(Archive, Vec<Loss>)> {
        if !self.salvage {
            return Ok((archive, Vec::new()));
        }
        let infos = archive.manifest().tensors.iter();
        let left_out: Vec<_> = infos
            .filter_map(|info| {
                let defect = info.defect.as_ref()?;
                let (name, why) = (info.name.clone(), defect.message());
                let mut loss = Loss::new(Some(name), Lost::Data, why, Effect::Dropped);
                loss.hints = defect.hints().to_vec();
                Some(loss)
            })
            .collect();
        let all = archive.tensors().len();
        if left_out.len() == all && all > 0 {
            let (input, all) = (self.title(), count(all, "tensor"));
            let input = input.display();
            let message = format!("{input}: nothing can be salvaged: none of {all} is intact");
            return Err(Failure::Message(message));
        }
        if !self.writing.quiet {
            say_first(left_out.iter().map(|loss| {
                let tensor = loss.tensor.as_deref().unwrap_or_default();
                let (tensor, why) = (Quoted(tensor), hints::why(loss));
                format!("left out: tensor {tensor}: {}", Clean(&why))
            }));
        }
        Ok((archive.select(|info| info.defect.is_none()), left_out))
    }

    /// Refuses a pattern that no tensor's name matches: what was asked for would not be done.
    pub(crate) fn check_pattern(
        &self,
        option: &str,
        pattern: Option<&String>,
        archive: &Archive,
    ) -> Result<()> {
        let Some(pattern) = pattern else {
            return Ok(());
        };
        let set = globs(std::slice::from_ref(pattern))?;
        let matches = |name: &str| set.as_ref().is_some_and(|set| set.is_match(name));
        if archive.tensors().any(|tensor| matches(tensor.name())) {
            Ok(())
        } else {
            let all = count(archive.tensors().len(), "tensor");
            let names = archive.manifest().tensors.iter().map(|info| &*info.name);
            let hint = with_wildcards(names, pattern);
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            let message = format!("{option}: {pattern:?} matches none of {all}{hint}");
            Err(Failure::Message(message))
        }
    }

    /// The tensors that are wanted.
    pub(crate) fn narrow(&self, filter: &Filter, archive: &Archive) -> Result<Archive> {
        let names = Names::new(filter)?;
        if names.is_all() {
            Ok(archive.clone())
        } else {
            Ok(archive.select(|info| names.contains(&info.name)))
        }
    }

    /// That no tensor is left, and whose name could have been meant by what was to be included.
    pub(crate) fn nothing_left<'n>(
        &self,
        filter: &Filter,
        names: impl Iterator<Item = &'n str> + Clone,
        all: usize,
    ) -> Failure {
        nothing_left(filter, &self.title(), names, all)
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
            Conversion::prepare(archive, target, options).map_err(|error| self.about(&error))
        };
        let same = archive.format().map(|spec| spec.id) == Some(target.spec.id)
            && target.spec.profile(archive.version()).is_some();
        if self.writing.version.is_some() || !same {
            return prepare(options);
        }
        let as_before = (options.clone())
            .version(Some(archive.version()))
            .work(self.work());
        let conversion = prepare(&as_before)?;
        let lost = |conversion: &Conversion| {
            let effects = conversion.losses.iter().map(|loss| loss.effect);
            effects.max().filter(|&effect| effect > Effect::Rearranged)
        };
        if lost(&conversion).is_none() {
            return Ok(conversion);
        }
        let other = prepare(options)?;
        if lost(&other) < lost(&conversion) {
            Ok(other)
        } else {
            Ok(conversion)
        }
    }

    /// Writes what was prepared, unless that would lose something or is only to be tried, and says what was done.
    pub(crate) fn finish(
        &self,
        target: &Entry,
        conversion: Conversion,
        inputs: &Inputs,
        extra: Written<'_>,
        out: &mut Out<'_>,
    ) -> Result<Exit> {
        self.finish_retyped(target, conversion, inputs, extra, None, out)
    }

    /// The same where tensors may have other types than they had.
    pub(crate) fn finish_retyped(
        &self,
        target: &Entry,
        conversion: Conversion,
        inputs: &Inputs,
        extra: Written<'_>,
        retyped: Option<&Retyped>,
        out: &mut Out<'_>,
    ) -> Result<Exit> {
        self.announce(target, &conversion)?;
        let quantized = retyped.and_then(|retyped| retyped.quantized.as_ref());
        if let (Some(quantized), false) = (quantized, self.writing.quiet) {
            for remark in &quantized.remarks {
                say(format_args!(
                    "{}: {}",
                    remark.severity,
                    hints::finding(remark)
                ));
            }
            say(quantized.summary(conversion.source()));
        }
        let is_listed = self.writing.dry_run && !self.writing.json && !self.writing.quiet;
        if let Some(retyped) = retyped.filter(|_| is_listed) {
            retyped.list(out)?;
        }
        if self.in_place {
            return self.edit_in_place(target, conversion, extra, out);
        }
        let files = self.check_files(target, &conversion, &inputs.files)?;
        let written = files.first().cloned();
        let along = self.along()?;
        let summary = Summary::new(self, target, files, &conversion).bringing(&along);
        let conversion = conversion.bringing(along);
        let report = if self.writing.dry_run {
            None
        } else {
            Some(self.write(target, conversion)?)
        };
        if !self.writing.quiet {
            summary.say(report.as_ref());
        }
        let wanted = quantized.filter(|quantized| quantized.report && report.is_some());
        let written = written.unwrap_or_else(|| self.output.to_owned());
        let quality = wanted
            .map(|quantized| quantized.quality(self, &written))
            .transpose()?;
        if let (Some(quality), false) = (&quality, self.writing.json || self.writing.quiet) {
            quantize::write_quality(quality, out)?;
        }
        let extra = Written {
            dequantized: retyped.and_then(Retyped::groups),
            quantized: quantized.map(QuantizedTensors::documents),
            quality: quality.as_ref().map(QualityDocument::new),
            ..extra
        };
        if self.writing.json {
            summary.write_json(report.as_ref(), extra, out)?;
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
                "{} is written: {because}",
                target.spec.with_version(version)
            ));
        }
        if !quiet {
            conversion.casts.iter().for_each(say);
        }
        let losses = &conversion.losses;
        // A refusal names the worst loss itself.
        let listed = !quiet && (refusal.is_ok() || losses.len() > 1);
        if listed {
            say_first(losses::lines(losses).into_iter());
        }
        if !quiet && refusal.is_ok() {
            for remark in &conversion.remarks {
                say(format_args!(
                    "{}: {}",
                    remark.severity,
                    hints::finding(remark)
                ));
            }
        }
        refusal.map_err(|error| self.about(&error).with_losses(losses))
    }

    fn write(&self, target: &Entry, conversion: Conversion) -> Result<Report> {
        // First, so that whatever is there when the signal comes is removed.
        let watched = self.session.interrupts.watch(self.control.clone());
        watched.map_err(|cause| Failure::Message(format!("cannot watch for Ctrl-C: {cause}")))?;
        if is_stream(self.output) {
            let mut output = StreamOutput::new(std::io::stdout());
            let written = conversion.write_to(&self.name_in_directory(target), &mut output);
            return written.map_err(|error| self.about(&error));
        }
        let shown = !self.writing.no_progress && !self.writing.quiet;
        let watch = || Progress::watch(self.control.clone(), &self.session.urls);
        if let Some(mut output) = self.session.urls.output(self.output, self.writing.force)? {
            let name = match output.name() {
                Some(name) => name.to_owned(),
                None => self.name_in_directory(target),
            };
            let bar = shown.then(watch);
            let result = conversion.write_to(&name, &mut *output);
            drop(bar);
            return result.map_err(|error| self.about(&error));
        }
        let output = if is_directory(self.output) {
            AtomicOutput::directory(self.output)?
        } else {
            AtomicOutput::file(self.output)?.force(self.writing.force)
        };
        let mut output = output.sync(!self.writing.no_sync);
        let name = match output.main_name() {
            "" => self.name_in_directory(target),
            name => name.to_owned(),
        };
        let bar = shown.then(watch);
        let result = conversion.write_to(&name, &mut output);
        drop(bar);
        result.map_err(|error| self.about(&error))
    }
}
