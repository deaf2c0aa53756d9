//! Conversions that many machines carry out.

mod join;
mod run;

use std::fs::File;
use std::path::PathBuf;

pub(super) use join::join;
pub(super) use run::run;

use super::data::{Input, Output, Plan, Receipt, hasher};
use super::records::hex;
use super::state::Site;
use crate::archive::{Archive, index_stem};
use crate::digest::Hasher;
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::execute::Execution;
use crate::execute::spread::{self, Places, Window};
use crate::format::{Entry, FilePlan, Registry, Segment};
use crate::io::{AtomicOutput, FileSource, Source};
use crate::model::DigestKind;
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
    let archive = if options.dequantize {
        // Patterns are about the names that the numbers have.
        ops::quantized(&archive)?.archive
    } else {
        archive
    };
    let target = options.target(&registry, output)?;
    refuse_tree(target, output)?;
    let archive = options.retype(options.select(archive)?)?;
    let wanted = options
        .converting(site.work.shared())?
        .registry(registry.clone());
    let conversion = Conversion::prepare(&archive, target, &wanted)?;
    let name = if output.ends_with(['/', std::path::MAIN_SEPARATOR]) {
        let extension = target.spec.extensions.first().unwrap_or(&"bin");
        format!("{}.{extension}", options.stem.as_deref().unwrap_or("model"))
    } else {
        AtomicOutput::file(output)?.main_name().to_owned()
    };
    Ok(Prepared { conversion, name })
}

/// Refuses a format that writes a directory: its files get their names one by one, and not all at once.
pub(super) fn refuse_tree(target: &Entry, output: &str) -> Result<()> {
    if !target.codec()?.writes_tree(output) {
        return Ok(());
    }
    let name = target.spec.name;
    let message = format!(
        "{name} writes a directory of many files, which one machine has to write: convert without a plan, or plan another format"
    );
    Err(Error::new(ErrorKind::Unsupported, "plan.tree", message))
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
            Segment::Tensor { .. }
                | Segment::Chunks { .. }
                | Segment::Text { .. }
                | Segment::Copy { .. }
        )
    })
}

/// Refuses an index that is made from what was written into other files: only whoever wrote all of them knows that.
pub(super) fn refuse_index_of_checksums(files: &[FilePlan]) -> Result<()> {
    let is_made_later =
        |segment: &Segment| matches!(segment, Segment::Computed(_) | Segment::Late { .. });
    let mut indexes = files.iter().filter(|file| !has_data(file));
    if !indexes.any(|file| file.segments.iter().any(is_made_later)) {
        return Ok(());
    }
    let message = "the index of this format holds checksums of the other files, so one machine has to write them: convert without a plan, or plan another format";
    Err(Error::new(ErrorKind::Unsupported, "plan.serial", message))
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

pub(super) fn no_output() -> Error {
    Error::argument("the plan has no output")
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
        let hashed = spread::write_window(file, places, archive, window, (to, name), &execution)?;
        let written = hashed.into_iter();
        Ok(Receipt {
            written: written
                .map(|(place, sum)| (place, sum.kind.name().to_owned(), hex(&sum.value)))
                .collect(),
            ..Receipt::default()
        })
    }

    /// What is in a window now.
    fn sum(&self, of: &File, window: &Window) -> Result<Option<String>> {
        let late = self.places.late(self.file);
        hash_range(of, &window.range, &late).map(Some)
    }
}

/// CRC-32C of a range of a file, in which what is known only in the end counts as zeros.
fn hash_range(file: &File, range: &Range<u64>, late: &[Range<u64>]) -> Result<String> {
    let source = FileSource::from_file(
        file.try_clone()
            .map_err(|cause| Error::io("cannot read the output", cause))?,
        PathBuf::from(DATA),
    )?;
    hash_source(&source, range, late)
}

fn hash_source(source: &dyn Source, range: &Range<u64>, late: &[Range<u64>]) -> Result<String> {
    let mut hash = Hasher::new(DigestKind::Crc32c)
        .ok_or_else(|| Error::unsupported("checksum", "CRC-32C is not built in"))?;
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

/// The name that a file of a tree gets in the output.
pub(super) fn new_name(below: &str, extension: &str, registry: &Registry) -> String {
    // A directory that is a file for people, as `model.zarr/` is, or one that a model lies in.
    let below = match below.strip_suffix('/') {
        Some(directory) if registry.by_extension(directory).is_some() => directory,
        Some(_) => &format!("{below}model."),
        None if below.is_empty() => "model.",
        None => below,
    };
    let (directory, name) = match below.rfind('/') {
        Some(at) => below.split_at(at + 1),
        None => ("", below),
    };
    let entry = registry.by_extension(name);
    let stem = if entry.is_some_and(|entry| entry.is_index(name)) {
        index_stem(name)
    } else {
        let (stem, _) = name.rsplit_once('.').unwrap_or((name, ""));
        stem.to_owned()
    };
    format!("{directory}{stem}.{extension}")
}

/// The name that an input of a tree gets in the output.
fn tree_name(plan: &Plan, output: &Output, input: &Input, site: &Site) -> Result<String> {
    let registry = site.known();
    let target = plan.options.target(&registry, &output.url)?.spec;
    let extension = target.extensions.first().unwrap_or(&"bin");
    Ok(new_name(&below(output, input), extension, &registry))
}

/// The name of an input below the tree that it was found in.
pub(super) fn below(output: &Output, input: &Input) -> String {
    let root = output.root.as_deref().unwrap_or_default();
    let below = input.url.strip_prefix(root).unwrap_or(&input.url);
    below
        .trim_start_matches(['/', std::path::MAIN_SEPARATOR])
        .replace(std::path::MAIN_SEPARATOR, "/")
}
