//! `tenfold convert`: the same tensors in another file.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use globset::GlobSet;
use tenfold::format::{Checksums, Compression, Control, Effect, Entry, Loss, Registry};
use tenfold::io::{AtomicOutput, Limits};
use tenfold::model::{DigestKind, SourceId, TensorInfo};
use tenfold::ops::{Conversion, ConvertOptions, Report, Sparse, prepare};
use tenfold::{Archive, Error, OpenOptions};

use crate::args::{Allow, Checksum, ConvertArgs};
use crate::commands::{Names, globs};
use crate::failure::{Exit, Failure, Result};
use crate::json::Json;
use crate::output::{Clean, Out, count, say, show_path, size};
use crate::progress::Progress;

/// More losses are counted, not listed.
const LISTED: usize = 10;

pub(crate) fn run(args: &ConvertArgs, out: &mut Out<'_>) -> Result<Exit> {
    let started = Instant::now();
    let registry = Registry::standard();
    let target = target(args, &registry)?;
    check_output(args)?;
    let about_input = |error: Error| Failure::about(&args.input, &error);
    let mut limits = Limits::default();
    if let Some(bytes) = args.max_dense {
        limits = limits.with_dense_bytes(bytes);
    }
    let opening = OpenOptions::new().mmap(false).format(args.from.as_deref());
    let archive = (opening.limits(limits).open(&args.input)).map_err(about_input)?;
    refuse_input_as_output(args, &archive)?;
    let archive = select(args, archive)?;
    let tensors = archive.manifest().tensors.len();
    let options = options(args)?;
    let conversion = prepare(&archive, target, &options).map_err(about_input)?;
    announce(args, target, &conversion)?;
    let summary = Summary::new(args, target, tensors, &conversion);
    let report = match args.dry_run {
        true => None,
        false => Some(write(args, conversion, &options.execute.control)?),
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

/// A path that ends like a directory gets a file for every tensor.
fn is_directory(path: &Path) -> bool {
    path.to_string_lossy().ends_with(std::path::is_separator)
}

/// Says so before any work is done; the output itself looks again before it takes the name.
fn check_output(args: &ConvertArgs) -> Result<()> {
    let output = &args.output;
    let shown = output.display();
    refuse_same(&args.input, output)?;
    let parent = output
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let problem = match (output.symlink_metadata(), parent) {
        (Ok(_), _) if is_directory(output) => {
            format!("{shown} exists already, and directories are never replaced")
        }
        (Ok(_), _) if output.is_dir() => format!(
            "{shown} is a directory; name a file in it, or a directory that does not exist yet with a / at the end"
        ),
        (Ok(_), _) if !args.force => format!("{shown} exists already; pass --force to replace it"),
        (_, Some(parent)) if !parent.is_dir() => {
            format!("there is no directory {}", parent.display())
        }
        _ => return Ok(()),
    };
    Err(Failure::Message(problem))
}

/// An archive may consist of several files: none of them may be the output.
fn refuse_input_as_output(args: &ConvertArgs, archive: &Archive) -> Result<()> {
    let directory = match args.input.is_dir() {
        true => args.input.as_path(),
        false => args.input.parent().unwrap_or(Path::new("")),
    };
    for name in (0u32..).map_while(|id| archive.source_name(SourceId(id))) {
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
    options.sparse = match (args.sparse, args.keep_sparse) {
        (true, _) => Sparse::All,
        (_, true) => Sparse::Keep,
        _ => Sparse::AsIs,
    };
    options.file_per_tensor = is_directory(&args.output);
    options.execute.threads = args.threads.map_or(0, usize::from);
    options.timestamp = timestamp()?;
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

/// Says before anything is written which version it will be and what would be lost, and refuses what is not allowed.
fn announce(args: &ConvertArgs, target: &Entry, conversion: &Conversion) -> Result<()> {
    let refusal = conversion.refuse_losses();
    if let (Some(because), false) = (&conversion.because, args.quiet) {
        let version = conversion.profile.version;
        say(format_args!(
            "{} is chosen: {because}",
            named(target, version)
        ));
    }
    let losses = &conversion.losses;
    // A refusal names the worst loss itself.
    let listed = !args.quiet && (refusal.is_ok() || losses.len() > 1);
    for loss in losses.iter().take(LISTED).filter(|_| listed) {
        say(loss);
    }
    if losses.len() > LISTED && listed {
        say(format_args!("and {} more", losses.len() - LISTED));
    }
    refusal.map_err(|error| Failure::about(&args.input, &error))
}

fn write(args: &ConvertArgs, conversion: Conversion, control: &Arc<Control>) -> Result<Report> {
    let output = match is_directory(&args.output) {
        true => AtomicOutput::directory(&args.output)?,
        false => AtomicOutput::file(&args.output)?.force(args.force),
    }
    .sync(!args.no_sync);
    let name = output.main_name().to_owned();
    cancel_on_signal(control.clone())?;
    let bar = (!args.no_progress && !args.quiet).then(|| Progress::watch(control.clone()));
    let result = conversion.write(&name, Box::new(output));
    drop(bar);
    result.map_err(|error| Failure::about(&args.input, &error))
}

fn named(target: &Entry, version: &str) -> String {
    format!("{} {version}", target.spec.name)
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
        tensors: usize,
        conversion: &Conversion,
    ) -> Self {
        Self {
            args,
            target,
            version: conversion.profile.version,
            read_by: conversion.profile.read_by,
            because: conversion.because.clone(),
            losses: conversion.losses.clone(),
            tensors,
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
                report.notes.iter().for_each(say);
                let checked = if self.args.check {
                    "; the digests of all tensors agree"
                } else {
                    ""
                };
                say(format_args!(
                    "{output}: {what}, {tensors}, {} in {:.2} s{checked}",
                    size(bytes(report)),
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
            json.number("bytes", report.map(bytes))?;
            json.key("seconds")?
                .plain(format_args!("{:.3}", took.as_secs_f64()))
        })?;
        writeln!(out)
    }
}

/// Bytes of all files that were written.
fn bytes(report: &Report) -> u64 {
    report.files.iter().map(|(_, len)| len).sum()
}

fn write_loss(loss: &Loss, json: &mut Json<'_>) -> io::Result<()> {
    json.object(|json| {
        json.text("tensor", loss.tensor.as_deref())?;
        json.text("what", Some(&loss.what))?;
        json.text("why", Some(&loss.why))?;
        json.text("effect", Some(&loss.effect.to_string()))
    })
}
