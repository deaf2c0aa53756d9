//! `tenfold convert`: the same tensors in another file.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use globset::GlobSet;
use indicatif::{ProgressBar, ProgressStyle};
use tenfold::format::{Checksums, Compression, Effect, Entry, Loss, Registry};
use tenfold::io::AtomicOutput;
use tenfold::model::{DigestKind, SourceId, TensorInfo};
use tenfold::ops::convert::{Conversion, ConvertOptions, Report, prepare};
use tenfold::{Archive, Error};

use crate::args::{Allow, Checksum, ConvertArgs};
use crate::commands::{Names, globs, open};
use crate::failure::{Exit, Failure, Result};
use crate::json::Json;
use crate::output::{Clean, Out, count, say, show_path, size};

/// More losses are counted, not listed.
const LISTED: usize = 10;
/// Work that is over sooner needs no progress bar.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &ConvertArgs, out: &mut Out<'_>) -> Result<Exit> {
    let started = Instant::now();
    let registry = Registry::standard();
    let target = target(args, &registry)?;
    refuse_existing(args)?;
    let about_input = |error: Error| Failure::about(&args.input, &error);
    let archive = open(&args.input, args.from.as_deref()).map_err(about_input)?;
    refuse_input_as_output(args, &archive)?;
    let archive = select(args, archive)?;
    let conversion = prepare(&archive, target, &options(args)?).map_err(about_input)?;
    if !args.quiet {
        announce(args, target, &conversion);
    }
    refuse_losses(args, target, &conversion)?;
    let summary = Summary::new(args, target, &archive, &conversion);
    let report = if args.dry_run {
        None
    } else {
        let output = AtomicOutput::file(&args.output)?
            .force(args.force)
            .sync(!args.no_sync);
        Some(
            conversion
                .write(Box::new(output))
                .map_err(|error| Failure::about(&args.output, &error))?,
        )
    };
    if !args.quiet {
        summary.say(report.as_ref(), started.elapsed());
    }
    if args.json {
        summary.write_json(report.as_ref(), started.elapsed(), out)?;
    }
    Ok(Exit::Done)
}

/// The format to write.
fn target<'r>(args: &ConvertArgs, registry: &'r Registry) -> Result<&'r Entry> {
    let entry = match &args.to {
        Some(id) => registry.get(id)?,
        None => {
            let name = args.output.to_string_lossy();
            registry.by_extension(&name).ok_or_else(|| {
                let written = registry.entries().iter().filter(|entry| is_written(entry));
                let ids: Vec<_> = written.map(|entry| entry.spec.id).collect();
                Failure::Message(format!(
                    "{name}: its extension names no format; say which with --to: {}",
                    ids.join(", ")
                ))
            })?
        }
    };
    if !is_written(entry) {
        return Err(Failure::Message(format!(
            "{} files are not written by this version",
            entry.spec.name
        )));
    }
    Ok(entry)
}

fn is_written(entry: &Entry) -> bool {
    entry.codec.is_some() && !entry.spec.writes.is_empty()
}

/// Says so before any work is done; the output itself looks again before it takes the name.
fn refuse_existing(args: &ConvertArgs) -> Result<()> {
    refuse_same(&args.input, &args.output)?;
    match args.output.symlink_metadata() {
        Ok(_) if args.output.is_dir() => Err(Failure::Message(format!(
            "{} is a directory; name a file in it",
            args.output.display()
        ))),
        Ok(_) if !args.force => Err(Failure::Message(format!(
            "{} exists already; pass --force to replace it",
            args.output.display()
        ))),
        _ => Ok(()),
    }
}

/// An archive may consist of several files: none of them may be the output.
fn refuse_input_as_output(args: &ConvertArgs, archive: &Archive) -> Result<()> {
    let directory = args.input.parent().unwrap_or(Path::new(""));
    let siblings = (1u32..).map(|id| archive.source_name(SourceId(id)));
    for name in siblings.map_while(|name| name) {
        refuse_same(&directory.join(name), &args.output)?;
    }
    Ok(())
}

fn refuse_same(input: &Path, output: &Path) -> Result<()> {
    // What does not exist or cannot be opened is nothing that could be lost; opening it says more.
    if same_file::is_same_file(input, output).unwrap_or(false) {
        return Err(Failure::Message(format!(
            "{} is the same file as the input {}; write to another name",
            output.display(),
            input.display()
        )));
    }
    Ok(())
}

fn select(args: &ConvertArgs, archive: Archive) -> Result<Archive> {
    let names = Names::new(&args.filter)?;
    if names.is_all() {
        return Ok(archive);
    }
    let selected = archive.select(|info| names.contains(&info.name));
    if selected.manifest().tensors.is_empty() {
        let all = archive.manifest().tensors.len();
        let input = args.input.display();
        return Err(Failure::Message(format!(
            "{input}: --include and --exclude leave none of {}",
            count(all, "tensor")
        )));
    }
    Ok(selected)
}

fn options(args: &ConvertArgs) -> Result<ConvertOptions> {
    let mut options = ConvertOptions::default();
    let name = args.output.file_name().unwrap_or_default();
    options.file_name = name.to_string_lossy().into_owned();
    options.version.clone_from(&args.version);
    options.options.clone_from(&args.options);
    options.compression = compression(args)?;
    options.checksums = match args.checksum {
        Checksum::Keep => Checksums::Keep,
        Checksum::None => Checksums::None,
        Checksum::Crc32c => Checksums::With(DigestKind::Crc32c),
        Checksum::Sha256 => Checksums::With(DigestKind::Sha256),
        Checksum::Xxh3 => Checksums::With(DigestKind::Xxh3),
    };
    options.allow = match args.allow {
        None => Effect::Rearranged,
        Some(Allow::Changed) => Effect::Changed,
        Some(Allow::Dropped) => Effect::Dropped,
    };
    options.check = args.check;
    options.threads = args.threads.map_or(0, usize::from);
    options.timestamp = timestamp()?;
    options.cancel = cancel_on_signal()?;
    options.progress = progress(args);
    Ok(options)
}

type Choose = Arc<dyn Fn(&TensorInfo) -> Compression + Send + Sync>;

/// The last of the `--zstd` rules that matches, else raw or as it is.
fn compression(args: &ConvertArgs) -> Result<Choose> {
    let otherwise = if args.raw {
        Compression::Raw
    } else {
        Compression::Keep
    };
    let mut rules: Vec<(i32, Option<GlobSet>)> = Vec::new();
    for (level, pattern) in args.zstd.iter().rev() {
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

/// A flag that Ctrl-C and its like set: the work ends between two pieces, and its output is gone.
fn cancel_on_signal() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let seen = flag.clone();
    ctrlc::set_handler(move || seen.store(true, Ordering::Relaxed))
        .map_err(|cause| Failure::Message(format!("cannot watch for Ctrl-C: {cause}")))?;
    Ok(flag)
}

type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// A bar for work that takes a while, where somebody can see it.
fn progress(args: &ConvertArgs) -> Option<Progress> {
    if args.no_progress || args.quiet || !io::stderr().is_terminal() {
        return None;
    }
    let started = Instant::now();
    let bar: OnceLock<ProgressBar> = OnceLock::new();
    Some(Arc::new(move |done, total| {
        if started.elapsed() < PATIENCE {
            return;
        }
        let bar = bar.get_or_init(|| {
            let style = "{percent:>3}% [{bar:30}] {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
            let bar = ProgressBar::new(total);
            bar.set_style(ProgressStyle::with_template(style).unwrap_or(ProgressStyle::default_bar()));
            bar
        });
        bar.set_position(done);
        if done >= total {
            bar.finish_and_clear();
        }
    }))
}

/// Says before anything is written which version it will be, and what would be lost.
fn announce(args: &ConvertArgs, target: &Entry, conversion: &Conversion) {
    if let Some(because) = &conversion.because {
        let version = conversion.profile.version;
        say(format_args!(
            "{} is chosen: {because}",
            named(target, version)
        ));
    }
    let mut losses: Vec<&Loss> = conversion.losses.iter().collect();
    losses.sort_by_key(|loss| std::cmp::Reverse(loss.effect));
    for loss in losses.iter().take(LISTED) {
        say(format_args!("{}: {loss}", args.input.display()));
    }
    if losses.len() > LISTED {
        say(format_args!(
            "{}: and {} more",
            args.input.display(),
            losses.len() - LISTED
        ));
    }
}

fn named(target: &Entry, version: &str) -> String {
    format!("{} {version}", target.spec.name)
}

fn refuse_losses(_args: &ConvertArgs, _target: &Entry, conversion: &Conversion) -> Result<()> {
    Ok(conversion.refuse_losses()?)
}

/// What was or would be done.
struct Summary<'a> {
    args: &'a ConvertArgs,
    target: &'a Entry,
    version: &'static str,
    read_by: &'static str,
    because: Option<String>,
    losses: Vec<Loss>,
    tensors: usize,
}

impl<'a> Summary<'a> {
    fn new(
        args: &'a ConvertArgs,
        target: &'a Entry,
        archive: &Archive,
        conversion: &Conversion,
    ) -> Self {
        Self {
            args,
            target,
            version: conversion.profile.version,
            read_by: conversion.profile.read_by,
            because: conversion.because.clone(),
            losses: conversion.losses.clone(),
            tensors: archive.manifest().tensors.len(),
        }
    }

    fn say(&self, report: Option<&Report>, took: Duration) {
        let output = show_path(&self.args.output);
        let what = named(self.target, self.version);
        let tensors = count(self.tensors, "tensor");
        match report {
            None => say(format_args!(
                "{output} would be {what}, {tensors}; nothing was written"
            )),
            Some(report) => {
                let checked = if self.args.check {
                    "; the digests of all tensors agree"
                } else {
                    ""
                };
                say(format_args!(
                    "{output}: {what}, {tensors}, {} in {:.2} s{checked}",
                    size(report.bytes),
                    took.as_secs_f64()
                ));
            }
        }
        if !self.read_by.is_empty() {
            say(format_args!("{what} is read by {}", Clean(self.read_by)));
        }
    }

    fn write_json(
        &self,
        report: Option<&Report>,
        took: Duration,
        out: &mut Out<'_>,
    ) -> io::Result<()> {
        Json::new(out).object(|json| {
            json.text("schema", Some("tenfold.convert/1"))?;
            json.text("input", Some(&self.args.input.to_string_lossy()))?;
            json.text("output", Some(&self.args.output.to_string_lossy()))?;
            json.text("format", Some(self.target.spec.id))?;
            json.text("version", Some(self.version))?;
            json.text("because", self.because.as_deref())?;
            json.text("read_by", Some(self.read_by))?;
            json.key("losses")?.array(|json| {
                self.losses
                    .iter()
                    .try_for_each(|loss| write_loss(loss, json.line()?))
            })?;
            json.key("dry_run")?.plain(self.args.dry_run)?;
            json.key("checked")?
                .plain(self.args.check && report.is_some())?;
            json.number("tensors", Some(self.tensors as u64))?;
            json.number("bytes", report.map(|report| report.bytes))?;
            json.key("seconds")?
                .plain(format_args!("{:.3}", took.as_secs_f64()))
        })?;
        writeln!(out)
    }
}

fn write_loss(loss: &Loss, json: &mut Json<'_>) -> io::Result<()> {
    json.object(|json| {
        json.text("tensor", loss.tensor.as_deref())?;
        json.text("what", Some(&loss.what))?;
        json.text("why", Some(&loss.why))?;
        json.text("effect", Some(&loss.effect.to_string()))
    })
}
