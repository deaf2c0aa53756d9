//! Conversions that many machines carry out.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::data::{Item, Output, Plan, Receipt, WholeFile, hasher};
use super::records::{Failed, hex, kind_named};
use super::state::{Site, State, create_above};
use super::{Check, JoinOptions};
use crate::archive::{Archive, OpenOptions};
use crate::digest::unhex;
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::execute::spread::{self, Places, Window};
use crate::execute::{Execution, execute};
use crate::format::{self, FilePlan, Segment};
use crate::io::{AtomicOutput, FileSource, Output as _, Source};
use crate::model::{Checksum, Over};
use crate::ops::convert::LaidOut;
use crate::ops::{self, Conflicts, Conversion};
use crate::prelude::*;
use crate::transform::Tally;

/// The bytes of the output while they are written.
const DATA: &str = "data";
/// Whole files until they have their names.
const FILES: &str = "files";
/// Bytes that are hashed or sent at once.
const PIECE: u64 = 1 << 20;

/// A conversion, the same on every machine.
pub(super) struct Prepared {
    pub(super) conversion: Conversion,
    pub(super) name: String,
}

/// Prepares the writing of what was opened.
pub(super) fn prepare(
    plan: &Plan,
    output: &str,
    archives: &[Archive],
    site: &Site,
) -> Result<Prepared> {
    let options = &plan.options;
    let registry = site.known();
    let archive = match archives {
        [only] => only.clone(),
        several => ops::merge(several, Conflicts::FirstMetadata)?.archive,
    };
    let target = options.target(&registry, output)?;
    let archive = options.retype(options.select(archive)?)?;
    let wanted = options
        .converting(site.work.shared())?
        .registry(registry.clone());
    let conversion = Conversion::prepare(&archive, target, &wanted)?;
    let name = if output.ends_with(['/', std::path::MAIN_SEPARATOR]) {
        let extension = target.spec.extensions.first().unwrap_or(&"bin");
        format!("{}.{extension}", options.stem.as_deref().unwrap_or("model"))
    } else {
        main_name(output, site)?
    };
    Ok(Prepared { conversion, name })
}

fn main_name(output: &str, site: &Site) -> Result<String> {
    #[cfg(feature = "remote")]
    if let Some(url) = site.url(output)? {
        return url
            .file_name()
            .ok_or_else(|| Error::argument(format!("{url} names no file")));
    }
    let _ = site;
    Ok(AtomicOutput::file(output)?.main_name().to_owned())
}

/// Opens the inputs of a plan as what they were, and prepares their conversion.
fn reopen(plan: &Plan, output: &Output, site: &Site) -> Result<(Prepared, Vec<Archive>)> {
    let opening = plan.options.opening(false)?;
    let inputs = plan.inputs.iter();
    let archives = inputs.map(|input| site.open_pinned(input, &opening));
    let archives = archives.collect::<Result<Vec<_>>>()?;
    let prepared = prepare(plan, &output.url, &archives, site)?;
    Ok((prepared, archives))
}

/// SHA-256 of the layouts of all files.
pub(super) fn layout(laid_out: &LaidOut) -> Result<String> {
    let mut hash = hasher()?;
    for file in &laid_out.plan.files {
        hash.update(&spread::layout_hash(file, &laid_out.archive)?);
    }
    Ok(hex(&hash.finish()))
}

fn same_layout(laid_out: &LaidOut, output: &Output) -> Result<()> {
    if output.layout.as_deref() == Some(layout(laid_out)?.as_str()) {
        return Ok(());
    }
    let message = "the files would be laid out in another way than when the plan was made: the options, the version or the build of tenfold, or what it reads, are others; plan again";
    Err(Error::new(ErrorKind::Mismatch, "plan.layout", message))
}

/// The only file of a plan, and where everything in it will be.
pub(super) fn only_file(laid_out: &LaidOut) -> Result<Option<Places>> {
    match laid_out.plan.files.as_slice() {
        [file] => spread::places(file, &laid_out.archive),
        _ => Ok(None),
    }
}

/// Refuses a file whose parts cannot be written by themselves.
pub(super) fn cannot_be_cut() -> Error {
    let message = "where the bytes of one compressed or text file will be is not known beforehand, so one machine has to write it; shards are files of their own";
    Error::new(ErrorKind::Unsupported, "plan.serial", message).hinting(Hint::Shard)
}

/// Whether a file has data of tensors; others are made by whoever joins.
pub(super) fn has_data(file: &FilePlan) -> bool {
    file.segments.iter().any(|segment| {
        matches!(
            segment,
            Segment::Tensor { .. } | Segment::Chunks { .. } | Segment::Text { .. } | Segment::Copy { .. }
        )
    })
}

/// The bytes of tensors that go into a file, for sharing work.
pub(super) fn weight(file: &FilePlan, archive: &Archive) -> u64 {
    let tensors = &archive.manifest().tensors;
    let lens = file.segments.iter().filter_map(|segment| match segment {
        Segment::Tensor { index, .. }
        | Segment::Chunks { index, .. }
        | Segment::Text { index, .. } => tensors.get(*index)?.dense_len(),
        Segment::Copy { range, .. } => Some(range.end.saturating_sub(range.start)),
        _ => None,
    });
    lens.fold(0, u64::saturating_add)
}

/// Does an item.
pub(super) fn run(plan: &Plan, item: &Item, state: &State, site: &Site) -> Result<Receipt> {
    let output = plan.output.as_ref().ok_or_else(no_output)?;
    match item {
        Item::Bytes { range } => {
            let window = Window {
                range: range[0]..range[1],
                is_last: output.len == Some(range[1]),
            };
            run_range(plan, output, window, state, site)
        }
        Item::Files { files } => run_files(plan, output, *files, state, site),
        Item::Inputs { inputs, list } => {
            run_inputs(plan, output, *inputs, list.as_deref(), state, site)
        }
        Item::Tensors { .. } => Err(Error::argument("no item of a conversion is like this")),
    }
}

pub(super) fn no_output() -> Error {
    Error::argument("the plan has no output")
}

fn run_range(
    plan: &Plan,
    output: &Output,
    window: Window,
    state: &State,
    site: &Site,
) -> Result<Receipt> {
    let (prepared, archives) = reopen(plan, output, site)?;
    let laid_out = prepared.conversion.laid_out(&prepared.name)?;
    same_layout(&laid_out, output)?;
    let places = only_file(&laid_out)?.ok_or_else(cannot_be_cut)?;
    let [file] = laid_out.plan.files.as_slice() else {
        return Err(cannot_be_cut());
    };
    let own: Vec<_> = places.tensors(file, &window).collect();
    prepared.conversion.compare_sources(&own)?;
    let part = Part {
        file,
        places: &places,
        archive: &laid_out.archive,
        site,
    };
    let mut receipt = match (&output.upload, state.directory()) {
        #[cfg(feature = "remote")]
        (Some(_), _) => part.send(output, &window)?,
        (None, Some(directory)) => {
            let data = open_data(directory, places.len)?;
            let receipt = part.write(&data, &window)?;
            let synced = data.sync_all();
            synced.map_err(|cause| Error::io("cannot sync the output", cause))?;
            receipt
        }
        _ => return Err(Error::argument("the plan has no upload")),
    };
    // What was read meanwhile must be what was to be read.
    for (input, archive) in plan.inputs.iter().zip(&archives) {
        site.check(input, archive)?;
    }
    receipt.bytes = window.range.end - window.range.start;
    Ok(receipt)
}

/// The file that all machines write to: as long as it will be, whoever comes first.
fn open_data(directory: &Path, len: u64) -> Result<File> {
    let path = directory.join(DATA);
    create_above(&path)?;
    let fail = |cause| Error::io(format_args!("cannot open {}", path.display()), cause);
    let mut options = fs::OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let file = options.open(&path).map_err(fail)?;
    if file.metadata().map_err(fail)?.len() < len {
        file.set_len(len).map_err(fail)?;
    }
    Ok(file)
}

/// What parts of a file are made from.
struct Part<'p> {
    file: &'p FilePlan,
    places: &'p Places,
    archive: &'p Archive,
    site: &'p Site,
}

impl Part<'_> {
    /// Writes a window to its place in a file.
    fn write(&self, to: &File, window: &Window) -> Result<Receipt> {
        let tally = Tally::default();
        let execution = Execution::new(&self.site.work, &tally);
        let Range { start, end } = window.range;
        self.site.work.control.expect(end - start);
        let name = &self.file.name;
        let (file, places, archive) = (self.file, self.places, self.archive);
        let hashed =
            spread::write_window(file, places, archive, window, (to, name), &execution)?;
        let late = places.late(file);
        let written = hashed.into_iter();
        Ok(Receipt {
            sha256: Some(hash_range(to, &window.range, &late)?),
            written: written
                .map(|(place, sum)| (place, sum.kind.name().to_owned(), hex(&sum.value)))
                .collect(),
            ..Receipt::default()
        })
    }
}

/// SHA-256 of a range of a file, in which what is known only in the end counts as zeros.
fn hash_range(file: &File, range: &Range<u64>, late: &[Range<u64>]) -> Result<String> {
    let source = FileSource::from_file(
        file.try_clone()
            .map_err(|cause| Error::io("cannot read the output", cause))?,
        PathBuf::from(DATA),
    )?;
    hash_source(&source, range, late)
}

fn hash_source(source: &dyn Source, range: &Range<u64>, late: &[Range<u64>]) -> Result<String> {
    let mut hash = hasher()?;
    let mut late = late.iter().filter(|late| late.end > range.start).peekable();
    let mut at = range.start;
    let mut buffer = Vec::new();
    while at < range.end {
        let end = range.end.min(at + PIECE);
        let len = crate::transform::as_size(end - at)?;
        buffer.resize(len, 0);
        source.read_into(at, &mut buffer)?;
        while let Some(zeros) = late.peek().filter(|zeros| zeros.start < end) {
            let from = crate::transform::as_size(zeros.start.max(at) - at)?;
            let to = crate::transform::as_size(zeros.end.min(end).max(at) - at)?;
            buffer.get_mut(from..to).unwrap_or_default().fill(0);
            if zeros.end > end {
                break;
            }
            late.next();
        }
        hash.update(&buffer);
        at = end;
    }
    Ok(hex(&hash.finish()))
}

fn run_files(
    plan: &Plan,
    output: &Output,
    [from, to]: [usize; 2],
    state: &State,
    site: &Site,
) -> Result<Receipt> {
    let (prepared, archives) = reopen(plan, output, site)?;
    let laid_out = prepared.conversion.laid_out(&prepared.name)?;
    same_layout(&laid_out, output)?;
    let archive = &laid_out.archive;
    let mut receipt = Receipt::default();
    let files = laid_out.plan.files.into_iter().enumerate();
    for (place, file) in files.take(to).skip(from).filter(|(_, file)| has_data(file)) {
        let mut own: Vec<_> = (file.segments.iter())
            .filter_map(|segment| match segment {
                Segment::Tensor { index, .. }
                | Segment::Chunks { index, .. }
                | Segment::Text { index, .. } => Some(*index),
                _ => None,
            })
            .collect();
        own.dedup();
        prepared.conversion.compare_sources(&own)?;
        let name = file.name.clone();
        let single = format::Plan::single(name.clone(), file.segments);
        let tally = Tally::default();
        let execution = Execution::new(&site.work, &tally);
        let write = |out: &mut dyn crate::io::Output| execute(single, archive, out, &execution);
        let written = whole_file(output, &name, state, site, |out| write(out).map(|_| ()))?;
        receipt.bytes += written.len;
        receipt.files.push(WholeFile { place, ..written });
    }
    for (input, archive) in plan.inputs.iter().zip(&archives) {
        site.check(input, archive)?;
    }
    Ok(receipt)
}

/// Writes a whole file to where it waits for its name.
fn whole_file(
    output: &Output,
    name: &str,
    state: &State,
    site: &Site,
    write: impl FnOnce(&mut dyn crate::io::Output) -> Result<()>,
) -> Result<WholeFile> {
    #[cfg(feature = "remote")]
    if let Some(url) = site.url(&output.url)? {
        let url = url.beside(name);
        let mut out = crate::io::RemoteOutput::new(&site.remote, &url)?
            .force(true)
            .for_others();
        write(&mut out)?;
        let len = out.sent_len();
        let upload = out.hand_over().into_iter().next();
        return Ok(WholeFile {
            name: name.to_owned(),
            len,
            upload: upload.map(|(_, sent)| super::data::Upload::of(sent)),
            ..WholeFile::default()
        });
    }
    let _ = (output, site);
    let directory = state.directory().ok_or_else(|| {
        Error::argument("files of a file system need a state in that file system")
    })?;
    let path = directory.join(FILES).join(name);
    create_above(&path)?;
    let mut out = AtomicOutput::file(&path)?.force(true);
    write(&mut out)?;
    out.commit()?;
    let source = FileSource::open(&path)?;
    Ok(WholeFile {
        name: name.to_owned(),
        len: source.len(),
        sha256: Some(hash_source(&source, &(0..source.len()), &[])?),
        ..WholeFile::default()
    })
}

/// The name that a file of a tree gets in the output.
pub(super) fn new_name(below: &str, extension: &str) -> String {
    let (directory, name) = match below.rfind('/') {
        Some(at) => below.split_at(at + 1),
        None => ("", below),
    };
    let name = name.strip_suffix(".index.json").unwrap_or(name);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    format!("{directory}{stem}.{extension}")
}

fn run_inputs(
    plan: &Plan,
    output: &Output,
    [from, to]: [usize; 2],
    list: Option<&str>,
    state: &State,
    site: &Site,
) -> Result<Receipt> {
    let opening = plan.options.opening(false)?;
    let mut receipt = Receipt::default();
    for (place, input) in super::inputs_of(plan, [from, to], list, state)? {
        let name = input.name().to_owned();
        let convert = || {
            let archive = site.open_pinned(&input, &opening)?;
            let target = plan.options.target(&site.known(), &output.url)?.spec;
            let extension = target.extensions.first().unwrap_or(&"bin");
            let below = below(output, &input);
            let file = new_name(&below, extension);
            let plain = file.rsplit('/').next().unwrap_or(&file).to_owned();
            let prepared = prepare(plan, &plain, std::slice::from_ref(&archive), site)?;
            let conversion = prepared.conversion;
            let write = |out: &mut dyn crate::io::Output| {
                conversion.write_for_others(&plain, out).map(|_| ())
            };
            let written = whole_file(output, &file, state, site, write)?;
            site.check(&input, &archive)?;
            Ok::<_, Error>(written)
        };
        match convert() {
            Ok(written) => {
                receipt.bytes += written.len;
                receipt.files.push(WholeFile { place, ..written });
            }
            Err(error) if error.kind() == ErrorKind::Canceled || is_trouble(&error) => {
                return Err(error);
            }
            // One that is bad does not stop the others.
            Err(error) => receipt.files.push(WholeFile {
                place,
                name,
                error: Some(Failed::new(&error, site)),
                ..WholeFile::default()
            }),
        }
    }
    Ok(receipt)
}

/// Whether an error says nothing of an input: it may be gone when the item is done again.
pub(super) fn is_trouble(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io) || error.rule().starts_with("plan.")
}

/// The name of an input below the tree that it was found in.
pub(super) fn below(output: &Output, input: &super::data::Input) -> String {
    let root = output.root.as_deref().unwrap_or_default();
    let below = input.url.strip_prefix(root).unwrap_or(&input.url);
    below
        .trim_start_matches(['/', std::path::MAIN_SEPARATOR])
        .replace(std::path::MAIN_SEPARATOR, "/")
}

/// Puts together what the items wrote, and makes it visible. Gives how many bytes there are, and inputs that are bad.
pub(super) fn join(
    plan: &Plan,
    receipts: &[Receipt],
    state: &State,
    options: &JoinOptions,
    site: &Site,
) -> Result<(u64, Vec<(String, Error)>)> {
    let output = plan.output.as_ref().ok_or_else(no_output)?;
    match plan.items.first() {
        Some(Item::Inputs { .. }) => join_inputs(output, receipts, state, options, site),
        Some(Item::Files { .. }) => {
            join_files(plan, output, receipts, state, options, site).map(|bytes| (bytes, Vec::new()))
        }
        _ => join_ranges(plan, output, receipts, state, options, site)
            .map(|bytes| (bytes, Vec::new())),
    }
}

/// What tensors hash to, by the places of their segments.
fn digests(receipts: &[Receipt]) -> Result<LookupMap<usize, Checksum>> {
    let written = receipts.iter().flat_map(|receipt| &receipt.written);
    written
        .map(|(place, kind, digits)| {
            let value = unhex(digits).zip(kind_named(kind));
            let (value, kind) =
                value.ok_or_else(|| super::records::damaged("a checksum in a receipt is none"))?;
            let sum = Checksum {
                kind,
                over: Over::Stored,
                value: value.into(),
            };
            Ok((*place, sum))
        })
        .collect()
}

fn join_ranges(
    plan: &Plan,
    output: &Output,
    receipts: &[Receipt],
    state: &State,
    options: &JoinOptions,
    site: &Site,
) -> Result<u64> {
    let (prepared, _) = reopen(plan, output, site)?;
    let LaidOut {
        archive,
        plan: mut planned,
        opened,
    } = prepared.conversion.laid_out(&prepared.name)?;
    let laid_out = LaidOut {
        archive: archive.clone(),
        plan: core::mem::take(&mut planned),
        opened: Vec::new(),
    };
    same_layout(&laid_out, output)?;
    let places = only_file(&laid_out)?.ok_or_else(cannot_be_cut)?;
    let file = laid_out.plan.files.into_iter().next();
    let file = file.ok_or_else(cannot_be_cut)?;
    let sums = digests(receipts)?;
    let asked = |place: usize| sums.get(&place).cloned();
    #[cfg(feature = "remote")]
    if let Some(upload) = &output.upload {
        return join_object(plan, output, upload, receipts, (file, &places, &archive), &asked, options, site);
    }
    let directory = state.directory();
    let directory = directory.ok_or_else(|| Error::argument("the plan has no upload"))?;
    let path = directory.join(DATA);
    let late = places.late(&file);
    if !path.exists() && Path::new(&output.url).exists() && !receipts.is_empty() {
        // It has its name already; only what comes after was interrupted.
        let (_, end) = spread::finish(file, &places, &archive, asked)?;
        let found = fs::metadata(&output.url);
        if found.is_ok_and(|found| found.len() == end) {
            return Ok(end);
        }
        return Err(exists(output));
    }
    if !options.force && Path::new(&output.url).symlink_metadata().is_ok() {
        return Err(exists(output));
    }
    let data = open_data(directory, places.len)?;
    if options.check == Check::Read {
        for (item, receipt) in plan.items.iter().zip(receipts) {
            let Item::Bytes { range: [from, to] } = item else {
                continue;
            };
            let found = hash_range(&data, &(*from..*to), &late)?;
            if receipt.sha256.as_deref() != Some(&found) {
                return Err(damaged_item(receipt.item));
            }
        }
    }
    let (made, end) = spread::finish(file, &places, &archive, asked)?;
    let fail = |cause| Error::io(format_args!("cannot write {}", path.display()), cause);
    for (at, bytes) in made {
        crate::io::write_all_at(&data, &bytes, at).map_err(fail)?;
    }
    data.set_len(end).map_err(fail)?;
    let mut out = AtomicOutput::file(&output.url)?.force(options.force);
    let name = out.main_name().to_owned();
    out.adopt(&name, &path)?;
    prepared.conversion.compare_written(&out, &opened)?;
    out.commit()?;
    Ok(end)
}

fn exists(output: &Output) -> Error {
    let message = format!("{} already exists", output.name());
    Error::new(ErrorKind::Argument, "plan.exists", message).hinting(Hint::Replace)
}

fn damaged_item(item: usize) -> Error {
    let message = format!(
        "what item {item} wrote is not what its receipt says: it was damaged since; `tenfold run PLAN --item {item} --again` writes it again"
    );
    Error::new(ErrorKind::Mismatch, "plan.damaged-item", message)
}

fn join_files(
    plan: &Plan,
    output: &Output,
    receipts: &[Receipt],
    state: &State,
    options: &JoinOptions,
    site: &Site,
) -> Result<u64> {
    let (prepared, _) = reopen(plan, output, site)?;
    let laid_out = prepared.conversion.laid_out(&prepared.name)?;
    same_layout(&laid_out, output)?;
    let mut bytes: u64 = receipts.iter().map(|receipt| receipt.bytes).sum();
    let files: Vec<_> = receipts.iter().flat_map(|receipt| &receipt.files).collect();
    if options.check == Check::Read {
        check_files(&files, receipts, state)?;
    }
    let tally = Tally::default();
    let execution = Execution::new(&site.work, &tally);
    let rest = laid_out.plan.files.into_iter().filter(|file| !has_data(file));
    let rest: Vec<_> = rest.collect();
    let finish = |out: &mut dyn crate::io::Output| {
        // What names the others comes last.
        for file in rest {
            let single = format::Plan::single(file.name, file.segments);
            let lens = execute(single, &laid_out.archive, out, &execution)?;
            bytes += lens.into_iter().sum::<u64>();
        }
        Ok::<_, Error>(())
    };
    #[cfg(feature = "remote")]
    if let Some(url) = site.url(&output.url)? {
        let mut out = crate::io::RemoteOutput::new(&site.remote, &url)?.force(options.force);
        for file in &files {
            let upload = file.upload.as_ref().ok_or_else(|| Error::argument("no upload"))?;
            out.adopt(&file.name, upload.sent())?;
        }
        finish(&mut out)?;
        out.commit()?;
        return Ok(bytes);
    }
    let directory = state.directory().ok_or_else(no_output)?.join(FILES);
    let mut out = if output.is_directory() {
        AtomicOutput::directory(&output.url)?
    } else {
        AtomicOutput::file(&output.url)?.force(options.force)
    };
    for file in &files {
        out.adopt(&file.name, &directory.join(&file.name))?;
    }
    finish(&mut out)?;
    prepared.conversion.compare_written(&out, &laid_out.opened)?;
    if let (true, [input]) = (plan.options.along, plan.inputs.as_slice()) {
        let along = OpenOptions::new().companions(&input.url)?;
        let small = along.into_iter().filter(|file| file.len <= ALONG);
        prepared.conversion.bring_along(small.collect(), &mut out)?;
    }
    out.commit()?;
    Ok(bytes)
}

/// The largest file that comes along, as for one process.
const ALONG: u64 = 64 << 20;

fn check_files(files: &[&WholeFile], receipts: &[Receipt], state: &State) -> Result<()> {
    let Some(directory) = state.directory() else {
        return Ok(());
    };
    for file in files.iter().filter(|file| file.error.is_none()) {
        let source = FileSource::open(directory.join(FILES).join(&file.name))?;
        let found = hash_source(&source, &(0..source.len()), &[])?;
        if file.sha256.as_deref() != Some(&found) {
            let mut of = receipts.iter();
            let of = of.find(|receipt| receipt.files.iter().any(|own| own.name == file.name));
            return Err(damaged_item(of.map_or(0, |receipt| receipt.item)));
        }
    }
    Ok(())
}

fn join_inputs(
    output: &Output,
    receipts: &[Receipt],
    state: &State,
    options: &JoinOptions,
    site: &Site,
) -> Result<(u64, Vec<(String, Error)>)> {
    let all = receipts.iter().flat_map(|receipt| &receipt.files);
    let (good, bad): (Vec<_>, Vec<_>) = all.partition(|file| file.error.is_none());
    let bad = bad.into_iter();
    let bad = bad.filter_map(|file| Some((file.name.clone(), file.error.as_ref()?.error())));
    let bad = bad.collect();
    let bytes = good.iter().map(|file| file.len).sum();
    #[cfg(feature = "remote")]
    if let Some(url) = site.url(&output.url)? {
        for file in good {
            let at = url.beside(&file.name);
            let upload = file.upload.as_ref().ok_or_else(|| Error::argument("no upload"))?;
            let mut out = crate::io::RemoteOutput::new(&site.remote, &at)?.force(options.force);
            let name = out.main_name().to_owned();
            match out.adopt(&name, upload.sent()).and_then(|()| out.commit()) {
                // It was joined before somebody stopped this.
                Err(error) if error.rule() == "file.exists" && site.has_len(&at, file.len)? => {}
                done => done?,
            }
        }
        return Ok((bytes, bad));
    }
    let _ = site;
    let directory = state.directory().ok_or_else(no_output)?.join(FILES);
    if options.check == Check::Read {
        check_files(&good, receipts, state)?;
    }
    let root = Path::new(&output.url);
    let is_done = |file: &WholeFile| !directory.join(&file.name).exists();
    // What is in the way is said before anything has its name.
    for file in &good {
        let target = root.join(&file.name);
        if !options.force && target.symlink_metadata().is_ok() && !is_done(file) {
            let message = format!("{} already exists", target.display());
            let error = Error::new(ErrorKind::Argument, "plan.exists", message);
            return Err(error.hinting(Hint::Replace));
        }
    }
    for file in good.into_iter().filter(|file| !is_done(file)) {
        let target = root.join(&file.name);
        create_above(&target)?;
        let mut out = AtomicOutput::file(&target)?.force(options.force);
        let name = out.main_name().to_owned();
        out.adopt(&name, &directory.join(&file.name))?;
        out.commit()?;
    }
    Ok((bytes, bad))
}

#[cfg(feature = "remote")]
mod object {
    //! One object, sent in parts by many machines.

    use super::*;
    use crate::io::{Remote, RemoteOutput, RemoteUrl, Sent};
    use crate::ops::scale::data::Upload;
    use crate::threads;

    /// How many parts are under way at once.
    const AT_ONCE: usize = 8;

    /// Which bytes have to be known before a part can be sent.
    fn waits(part: &Range<u64>, late: &[Range<u64>], places: &Places) -> bool {
        let is_late = |late: &Range<u64>| late.start < part.end && late.end > part.start;
        let is_end = part.end >= places.len && !places.is_whole;
        is_end || late.iter().any(is_late)
    }

    fn parts(range: &Range<u64>, size: u64) -> Vec<(usize, Range<u64>)> {
        let mut parts = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at.saturating_add(size));
            parts.push((usize::try_from(at / size).unwrap_or(usize::MAX), at..end));
            at = end;
        }
        parts
    }

    impl Part<'_> {
        /// Writes a window to a file of this machine that has no name, and sends its parts.
        pub(super) fn send(&self, output: &Output, window: &Window) -> Result<Receipt> {
            let (Some(upload), Some(size)) = (&output.upload, output.part) else {
                return Err(no_output());
            };
            let (scratch, path) = crate::io::scratch_file(&std::env::temp_dir())?;
            let receipt = self.write(&scratch, window);
            let _ = path.map(fs::remove_file);
            let mut receipt = receipt?;
            let late = self.places.late(self.file);
            let url = self.site.url(&output.url)?.ok_or_else(no_output)?;
            let sent = upload.sent();
            let send = |(number, part): (usize, Range<u64>), (): &mut ()| {
                if waits(&part, &late, self.places) {
                    return Ok(None);
                }
                let bytes = read(&scratch, &part)?;
                let remote = &self.site.remote;
                remote.send_part(&url, &sent, number, bytes).map(Some)
            };
            receipt.parts = threads::map(AT_ONCE, parts(&window.range, size), send)?;
            Ok(receipt)
        }
    }

    fn read(scratch: &File, part: &Range<u64>) -> Result<bytes::Bytes> {
        let file = scratch.try_clone();
        let file = file.map_err(|cause| Error::io("cannot read what was written", cause))?;
        FileSource::from_file(file, PathBuf::from(DATA))?.read(part.clone())
    }

    /// Makes the parts that nobody else could, and gives the object its name.
    #[allow(clippy::too_many_arguments)] // all that a file consists of
    pub(super) fn join(
        plan: &Plan,
        output: &Output,
        upload: &Upload,
        receipts: &[Receipt],
        (file, places, archive): (FilePlan, &Places, &Archive),
        asked: &dyn Fn(usize) -> Option<Checksum>,
        options: &JoinOptions,
        site: &Site,
    ) -> Result<u64> {
        let size = output.part.ok_or_else(no_output)?;
        let url = site.url(&output.url)?.ok_or_else(no_output)?;
        let late = places.late(&file);
        let known = parts(&(0..places.len), size);
        let mut ids: Vec<Option<String>> =
            receipts.iter().flat_map(|receipt| receipt.parts.clone()).collect();
        if ids.len() != known.len() {
            return Err(super::super::records::damaged("receipts do not have all parts"));
        }
        let missing: Vec<_> = known
            .into_iter()
            .filter(|(_, part)| waits(part, &late, places))
            .collect();
        let (scratch, path) = crate::io::scratch_file(&std::env::temp_dir())?;
        let _ = path.map(fs::remove_file);
        let part = Part {
            file: &file,
            places,
            archive,
            site,
        };
        for (_, range) in &missing {
            let window = Window {
                range: range.clone(),
                is_last: false,
            };
            part.write(&scratch, &window)?;
        }
        let (made, end) = spread::finish(file, places, archive, asked)?;
        let fail = |cause| Error::io("cannot write a part", cause);
        for (at, bytes) in made {
            crate::io::write_all_at(&scratch, &bytes, at).map_err(fail)?;
        }
        scratch.set_len(end).map_err(fail)?;
        let sent = upload.sent();
        let begin = match missing.last() {
            Some((_, last)) if last.end >= places.len && !places.is_whole => last.start,
            _ => places.len.next_multiple_of(size).min(end),
        };
        let before = missing.into_iter().filter(|(_, part)| part.start < begin);
        let tail = if places.is_whole && begin >= end {
            Vec::new()
        } else {
            parts(&(begin..end), size)
        };
        for (number, part) in before.chain(tail) {
            let bytes = read(&scratch, &part)?;
            let id = site.remote.send_part(&url, &sent, number, bytes)?;
            if number >= ids.len() {
                ids.resize(number + 1, None);
            }
            if let Some(known) = ids.get_mut(number) {
                *known = Some(id);
            }
        }
        let ids = ids.into_iter().collect::<Option<Vec<_>>>();
        let parts = ids.ok_or_else(|| super::super::records::damaged("a part is missing"))?;
        let mut out = RemoteOutput::new(&site.remote, &url)?.force(options.force);
        let name = out.main_name().to_owned();
        out.adopt(&name, Sent { parts, ..sent })?;
        out.commit()?;
        if options.check == Check::Read {
            check(plan, receipts, &url, &late, &site.remote)?;
        }
        Ok(end)
    }

    /// Reads the object back.
    fn check(
        plan: &Plan,
        receipts: &[Receipt],
        url: &RemoteUrl,
        late: &[Range<u64>],
        remote: &Remote,
    ) -> Result<()> {
        let source = remote.source(url)?;
        for (item, receipt) in plan.items.iter().zip(receipts) {
            let Item::Bytes { range: [from, to] } = item else {
                continue;
            };
            let found = hash_source(&source, &(*from..*to), late)?;
            if receipt.sha256.as_deref() != Some(&found) {
                return Err(damaged_item(receipt.item));
            }
        }
        Ok(())
    }

    impl Site {
        pub(super) fn has_len(&self, url: &RemoteUrl, len: u64) -> Result<bool> {
            Ok(self.remote.source(url)?.len() == len)
        }
    }
}

#[cfg(feature = "remote")]
use object::join as join_object;
