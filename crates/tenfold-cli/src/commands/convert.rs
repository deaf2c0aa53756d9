//! `tenfold convert`: the same tensors in another file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use globset::GlobSet;
use tenfold::format::{Checksums, Compression, Control, Effect, Entry, Loss, Registry, Severity};
use tenfold::io::AtomicOutput;
use tenfold::model::{BlockSpec, DType, DigestKind, SourceId, TensorInfo};
use tenfold::ops::{self, Conversion, ConvertOptions, Report, Sparse, prepare};
use tenfold::{Archive, Error, OpenOptions};

use crate::args::{Allow, Checksum, ConvertArgs};
use crate::commands::{Names, globs, limits};
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
    let (archive, files) = open_all(args)?;
    let archive = select(args, archive)?;
    let archive = match args.dequantize {
        true => ops::dequantize(&archive).map_err(|error| about(args, &error))?,
        false => archive,
    };
    let archive = cast(args, &archive)?;
    let archive = quantize(args, &archive)?;
    let options = options(args)?;
    let conversion = prepare(&archive, target, &options).map_err(|error| about(args, &error))?;
    announce(args, target, &conversion)?;
    let shards = check_shards(args, target, &conversion, &files)?;
    let summary = Summary::new(args, target, shards, &conversion);
    let report = match args.dry_run {
        true => None,
        false => Some(write(args, target, conversion, &options.execute.control)?),
    };
    if !args.quiet {
        summary.say(report.as_ref(), started.elapsed());
    }
    if args.json {
        summary.write_json(report.as_ref(), started.elapsed(), out)?;
    }
    Ok(Exit::Done)
}

/// A failure that says which input it is about.
fn about(args: &ConvertArgs, error: &Error) -> Failure {
    Failure::about(&title(args), error)
}

/// What was given, as one name.
fn title(args: &ConvertArgs) -> PathBuf {
    match args.inputs.as_slice() {
        [only] => only.clone(),
        [first, rest @ ..] => format!("{} and {} more", first.display(), rest.len()).into(),
        [] => PathBuf::new(),
    }
}

/// The inputs as one archive, and the paths of the files that it consists of.
fn open_all(args: &ConvertArgs) -> Result<(Archive, Vec<PathBuf>)> {
    let mut archives = Vec::new();
    let mut files = Vec::new();
    for input in &args.inputs {
        let archive = open_input(args, input).map_err(|error| Failure::about(input, &error))?;
        let directory = match input.is_dir() {
            true => input.as_path(),
            false => input.parent().unwrap_or(Path::new("")),
        };
        let names = (0u32..).map_while(|id| archive.source_name(SourceId(id)));
        files.extend(names.map(|name| directory.join(name)));
        archives.push(archive);
    }
    // An archive may consist of several files: none of them may be the output.
    for file in &files {
        refuse_same(file, &args.output)?;
    }
    Ok((ops::join(&archives, true)?, files))
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
    for input in &args.inputs {
        refuse_same(input, output)?;
    }
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
        // The files that are written have other names.
        (Ok(_), _) if args.shard_size.is_some() => return Ok(()),
        (Ok(_), _) if !args.force => format!("{shown} exists already; pass --force to replace it"),
        (_, Some(parent)) if !parent.is_dir() => {
            format!("there is no directory {}", parent.display())
        }
        _ => return Ok(()),
    };
    Err(Failure::Message(problem))
}

/// The shards that will be written and their index, which comes first. None of them may exist or be an input.
fn check_shards(
    args: &ConvertArgs,
    target: &Entry,
    conversion: &Conversion,
    inputs: &[PathBuf],
) -> Result<Vec<PathBuf>> {
    if args.shard_size.is_none() {
        return Ok(Vec::new());
    }
    let directory = match is_directory(&args.output) {
        true => args.output.as_path(),
        false => args.output.parent().unwrap_or(Path::new("")),
    };
    let names = conversion.file_names(&shard_name(args, target))?;
    let paths: Vec<_> = names.iter().map(|name| directory.join(name)).collect();
    for path in &paths {
        for input in inputs {
            refuse_same(input, path)?;
        }
        if !args.force && path.symlink_metadata().is_ok() {
            let shown = path.display();
            let problem = format!("{shown} exists already; pass --force to replace it");
            return Err(Failure::Message(problem));
        }
    }
    Ok(paths)
}

/// The name that those of shards are made from.
fn shard_name(args: &ConvertArgs, target: &Entry) -> String {
    match args.output.file_name() {
        Some(name) if !is_directory(&args.output) => name.to_string_lossy().into_owned(),
        _ => format!("model.{}", target.spec.extensions.first().unwrap_or(&"bin")),
    }
}

fn refuse_same(input: &Path, output: &Path) -> Result<()> {
    // Comparing opens both, and opening a pipe waits for somebody to write. What does not exist or cannot be opened is
    // nothing that could be lost; opening it says more.
    let are_files = [input, output].iter().all(|path| path.is_file());
    if are_files && same_file::is_same_file(input, output).unwrap_or(false) {
        return Err(Failure::Message(format!(
            "{} is the same file as the input {}; write to another name",
            output.display(),
            input.display()
        )));
    }
    Ok(())
}

/// The file, or what is whole of it: then the reason why that is not everything is said.
fn open_input(args: &ConvertArgs, input: &Path) -> tenfold::Result<Archive> {
    let mut limits = limits();
    if let Some(bytes) = args.max_dense {
        limits = limits.with_dense_bytes(bytes);
    }
    let opening = OpenOptions::new()
        .mmap(false)
        .format(args.from.as_deref())
        .assume_dtype(args.assume);
    let archive = opening.limits(limits).salvage(args.salvage).open(input)?;
    if !args.salvage {
        return Ok(archive);
    }
    for finding in archive.findings() {
        if finding.severity > Severity::Note && !args.quiet {
            let input = show_path(input);
            say(format_args!("{input}: {}", Clean(&finding.message)));
        }
    }
    Ok(archive)
}

/// The last of the `--cast` rules that matches a tensor says which type it gets.
fn cast(args: &ConvertArgs, archive: &Archive) -> Result<Archive> {
    let mut rules: Vec<(DType, Option<GlobSet>)> = Vec::new();
    for (dtype, pattern) in args.cast.iter().rev() {
        rules.push((*dtype, globs(pattern.as_slice())?));
    }
    let to = |info: &TensorInfo| {
        let matches = |set: &Option<GlobSet>| match set {
            Some(set) => set.is_match(&info.name),
            None => true,
        };
        let rule = rules.iter().find(|(_, set)| matches(set));
        rule.map(|(dtype, _)| *dtype)
    };
    let cast = ops::cast(archive, to).map_err(|error| about(args, &error))?;
    if !args.quiet {
        say_roundings(archive, &cast);
    }
    Ok(cast)
}

/// The last of the `--quantize` rules that matches a tensor says which blocks it gets. A rule without a pattern is about
/// the tensors that it can be about: matrices of floats whose rows are whole blocks.
fn quantize(args: &ConvertArgs, archive: &Archive) -> Result<Archive> {
    let mut rules: Vec<(&'static BlockSpec, Option<GlobSet>)> = Vec::new();
    for (spec, pattern) in args.quantize.iter().rev() {
        rules.push((spec, globs(pattern.as_slice())?));
    }
    if rules.is_empty() {
        return Ok(archive.clone());
    }
    let fits = |info: &TensorInfo, spec: &BlockSpec| {
        let floats = [DType::F16, DType::BF16, DType::F32, DType::F64];
        let whole = |row: &u64| row.is_multiple_of(spec.elements.into());
        floats.contains(&info.dtype) && info.shape.len() > 1 && info.shape.last().is_some_and(whole)
    };
    let to = |info: &TensorInfo| {
        let rule = rules.iter().find(|(spec, set)| match set {
            Some(set) => set.is_match(&info.name),
            None => fits(info, spec),
        });
        rule.map(|(spec, _)| *spec)
    };
    let quantized = ops::quantize(archive, to).map_err(|error| about(args, &error))?;
    if !args.quiet {
        let changed = archive
            .tensors()
            .filter(|tensor| to(tensor.info()).is_some());
        let (n, all) = (changed.count(), archive.tensors().len());
        say(format_args!(
            "quantized, which does not hold every value: {n} of {}",
            count(all, "tensor")
        ));
    }
    Ok(quantized)
}

/// Says between which types values may change.
fn say_roundings(before: &Archive, after: &Archive) {
    let mut pairs: Vec<(DType, DType, usize)> = Vec::new();
    for (before, after) in before.tensors().zip(after.tensors()) {
        let (from, to) = (before.info().dtype, after.info().dtype);
        match pairs.iter_mut().find(|pair| (pair.0, pair.1) == (from, to)) {
            Some(pair) => pair.2 += 1,
            None => pairs.push((from, to, 1)),
        }
    }
    for (from, to, n) in pairs {
        if !ops::is_exact(from, to) {
            let tensors = count(n, "tensor");
            say(format_args!(
                "cast from {from} to {to}, which does not hold every value: {tensors}"
            ));
        }
    }
}

fn select(args: &ConvertArgs, archive: Archive) -> Result<Archive> {
    let names = Names::new(&args.filter)?;
    if names.is_all() {
        return Ok(archive);
    }
    let selected = archive.select(|info| names.contains(&info.name));
    if selected.manifest().tensors.is_empty() {
        let all = archive.manifest().tensors.len();
        let input = title(args);
        let input = input.display();
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
    options.shard_size = args.shard_size;
    options.file_per_tensor = is_directory(&args.output) && args.shard_size.is_none();
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
            target.spec.with_version(version)
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
    refusal.map_err(|error| about(args, &error))
}

fn write(
    args: &ConvertArgs,
    target: &Entry,
    conversion: Conversion,
    control: &Arc<Control>,
) -> Result<Report> {
    // First, so that whatever is there when the signal comes is removed.
    cancel_on_signal(control.clone())?;
    let output = match is_directory(&args.output) {
        true => AtomicOutput::directory(&args.output)?,
        false => AtomicOutput::file(&args.output)?.force(args.force),
    }
    .sync(!args.no_sync);
    let name = match args.shard_size {
        Some(_) => shard_name(args, target),
        None => output.main_name().to_owned(),
    };
    let bar = (!args.no_progress && !args.quiet).then(|| Progress::watch(control.clone()));
    let result = conversion.write(&name, Box::new(output));
    drop(bar);
    result.map_err(|error| about(args, &error))
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
    /// The index and what it names; empty for one file.
    shards: Vec<PathBuf>,
}

impl<'a> Summary<'a> {
    fn new(
        args: &'a ConvertArgs,
        target: &'a Entry,
        shards: Vec<PathBuf>,
        conversion: &Conversion,
    ) -> Self {
        Self {
            args,
            target,
            version: conversion.profile.version,
            read_by: conversion.profile.read_by,
            because: conversion.because.clone(),
            losses: conversion.losses.clone(),
            tensors: conversion.tensors(),
            shards,
        }
    }

    /// What is written, for people.
    fn output(&self) -> String {
        match self.shards.as_slice() {
            [index, shards @ ..] if !shards.is_empty() => {
                format!("{} and {}", show_path(index), count(shards.len(), "shard"))
            }
            _ => show_path(&self.args.output).to_string(),
        }
    }

    fn say(&self, report: Option<&Report>, took: Duration) {
        let output = self.output();
        let what = self.target.spec.with_version(self.version);
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
            match self.args.inputs.as_slice() {
                [only] => json.text("input", Some(&only.to_string_lossy()))?,
                several => {
                    json.texts("inputs", several.iter().map(|path| path.to_string_lossy()))?
                }
            }
            json.text("output", Some(&self.args.output.to_string_lossy()))?;
            if !self.shards.is_empty() {
                let shards = self.shards.iter();
                json.texts("files", shards.map(|path| path.to_string_lossy()))?;
            }
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
