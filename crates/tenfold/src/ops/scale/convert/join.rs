//! How what items wrote gets its names.

use std::fs;
use std::path::{Path, PathBuf};

use super::{
    DATA, FILES, cannot_be_cut, has_data, hash_range, hash_source, no_output, only_file, reopen,
    same_layout, tree_name,
};
use crate::archive::OpenOptions;
use crate::digest::unhex;
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::execute::{Execution, execute, spread};
use crate::format;
use crate::io::{AtomicOutput, FileSource, Output as _, Source};
use crate::model::{Checksum, Over};
use crate::ops::scale::data::{Input, Item, Output, Plan, Receipt, WholeFile};
use crate::ops::scale::records::{damaged, kind_named};
use crate::ops::scale::state::{Site, State, create_above};
use crate::ops::scale::{Check, JoinOptions, inputs_of};
use crate::prelude::*;
use crate::transform::Tally;

/// Puts together what the items wrote, and makes it visible. Gives how many bytes there are, and inputs that are bad.
pub(in crate::ops::scale) fn join(
    plan: &Plan,
    receipts: &[Receipt],
    state: &State,
    options: &JoinOptions,
    site: &Site,
) -> Result<(u64, Vec<(String, Error)>)> {
    let output = plan.output.as_ref().ok_or_else(no_output)?;
    match plan.items.first() {
        Some(Item::Inputs { .. }) => join_inputs(plan, output, receipts, state, options, site),
        Some(Item::Files { .. }) => join_files(plan, output, receipts, state, options, site)
            .map(|bytes| (bytes, Vec::new())),
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
            let (value, kind) = value.ok_or_else(|| damaged("a checksum in a receipt is none"))?;
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
    let mut laid_out = prepared.conversion.laid_out(&prepared.name)?;
    same_layout(&laid_out, output)?;
    let places = only_file(&laid_out)?.ok_or_else(cannot_be_cut)?;
    let file = laid_out.plan.files.pop().ok_or_else(cannot_be_cut)?;
    let sums = digests(receipts)?;
    let asked = |place: usize| sums.get(&place).cloned();
    let late = places.late(&file);
    let (made, end) = spread::finish(file, &places, &laid_out.archive, asked)?;
    let path = state.directory().join(DATA);
    let Some(data) = open_written(&path)? else {
        // It may have its name already; only what comes after was interrupted.
        let is_own = match fs::File::open(&output.url) {
            Ok(found) if length(&found)? == end => {
                first_damaged(plan, receipts, &found, &late)?.is_none()
            }
            _ => false,
        };
        return if is_own { Ok(end) } else { Err(gone()) };
    };
    if !options.force && Path::new(&output.url).symlink_metadata().is_ok() {
        return Err(exists(output));
    }
    let len = length(&data)?;
    if len < places.len {
        return Err(damaged_item(item_at(plan, len)));
    }
    if options.check == Check::Read
        && let Some(item) = first_damaged(plan, receipts, &data, &late)?
    {
        return Err(damaged_item(item));
    }
    let fail = |cause| Error::io(format_args!("cannot write {}", path.display()), cause);
    for (at, bytes) in made {
        crate::io::write_all_at(&data, &bytes, at).map_err(fail)?;
    }
    data.set_len(end).map_err(fail)?;
    let mut out = AtomicOutput::file(&output.url)?.force(options.force);
    let name = out.main_name().to_owned();
    out.adopt(&name, &path)?;
    prepared
        .conversion
        .compare_written(&out, &laid_out.opened)?;
    out.commit()?;
    Ok(end)
}

/// What items wrote, if it is there. It is never made here: what is missing would be zeros.
fn open_written(path: &Path) -> Result<Option<fs::File>> {
    match fs::OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => {
            let what = format!("cannot open {}", path.display());
            Err(Error::io(what, cause))
        }
    }
}

fn length(file: &fs::File) -> Result<u64> {
    let found = file.metadata();
    Ok(found
        .map_err(|cause| Error::io("cannot read the output", cause))?
        .len())
}

/// The first item whose bytes are not those that its receipt says.
fn first_damaged(
    plan: &Plan,
    receipts: &[Receipt],
    data: &fs::File,
    late: &[Range<u64>],
) -> Result<Option<usize>> {
    for (item, receipt) in plan.items.iter().zip(receipts) {
        let Item::Bytes { range: [from, to] } = item else {
            continue;
        };
        let found = hash_range(data, &(*from..*to), late)?;
        if receipt.crc32c.as_deref() != Some(&found) {
            return Ok(Some(receipt.item));
        }
    }
    Ok(None)
}

/// The item that writes a byte of the output.
fn item_at(plan: &Plan, at: u64) -> usize {
    let is_own = |item: &Item| matches!(item, Item::Bytes { range } if range[1] > at);
    plan.items.iter().position(is_own).unwrap_or(0)
}

fn exists(output: &Output) -> Error {
    let message = format!("{} already exists", output.name());
    Error::new(ErrorKind::Argument, "plan.exists", message).hinting(Hint::Replace)
}

/// That nothing is left of what items wrote.
fn gone() -> Error {
    let message =
        "what the items wrote is gone, although their receipts are there: do all of them again";
    let error = Error::new(ErrorKind::NotFound, "plan.damaged-item", message);
    error.hinting(Hint::RunAgain(None))
}

fn damaged_item(item: usize) -> Error {
    let message =
        format!("what item {item} wrote is not what its receipt says: it was damaged since");
    let error = Error::new(ErrorKind::Mismatch, "plan.damaged-item", message);
    error.hinting(Hint::RunAgain(Some(item)))
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
    let directory = state.directory().join(FILES);
    // What files are called says the plan: a receipt may say anything.
    let (written, rest): (Vec<_>, Vec<_>) =
        (laid_out.plan.files.into_iter().enumerate()).partition(|(_, file)| has_data(file));
    let records = receipts
        .iter()
        .flat_map(|receipt| receipt.files.iter().map(|file| (receipt.item, file)));
    let mut records: LookupMap<usize, _> = records
        .map(|(item, file)| (file.place, (item, file)))
        .collect();
    let mut waiting = Vec::new();
    for (place, file) in &written {
        let (item, record) = records
            .remove(place)
            .ok_or_else(|| damaged("a file is missing in a receipt"))?;
        let path = directory.join(&file.name);
        if !is_whole(&path, record, options.check)? {
            return Err(damaged_item(item));
        }
        waiting.push((&file.name, path));
    }
    let mut out = if output.is_directory() {
        AtomicOutput::directory(&output.url)?
    } else {
        AtomicOutput::file(&output.url)?.force(options.force)
    };
    for (name, path) in waiting {
        out.adopt(name, &path)?;
    }
    let tally = Tally::default();
    let execution = Execution::new(&site.work, &tally);
    // What names the others comes last.
    for (_, file) in rest {
        let single = format::Plan::single(file.name, file.segments);
        let lens = execute(single, &laid_out.archive, &mut out, &execution)?;
        bytes += lens.into_iter().sum::<u64>();
    }
    prepared
        .conversion
        .compare_written(&out, &laid_out.opened)?;
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

/// Whether a file is there as its item left it: as long, and with a check that reads it, the same.
fn is_whole(path: &Path, record: &WholeFile, check: Check) -> Result<bool> {
    let Ok(found) = fs::metadata(path) else {
        return Ok(false);
    };
    if found.len() != record.len || check == Check::Structure {
        return Ok(found.len() == record.len);
    }
    let source = FileSource::open(path)?;
    let sum = hash_source(&source, &(0..source.len()), &[])?;
    Ok(record.crc32c.as_deref() == Some(&sum))
}

/// A file of a tree that is to get its name.
struct Waiting {
    /// Where it is, if it has not got its name before.
    from: Option<PathBuf>,
    to: PathBuf,
}

fn join_inputs(
    plan: &Plan,
    output: &Output,
    receipts: &[Receipt],
    state: &State,
    options: &JoinOptions,
    site: &Site,
) -> Result<(u64, Vec<(String, Error)>)> {
    let directory = state.directory().join(FILES);
    let mut all = Vec::new();
    let mut bad = Vec::new();
    let mut bytes = 0;
    for (item, receipt) in plan.items.iter().zip(receipts) {
        let Item::Inputs { inputs, list } = item else {
            continue;
        };
        let inputs = inputs_of(plan, *inputs, list.as_deref(), state)?;
        let is_about = |((place, _), file): (&(usize, Input), &WholeFile)| *place == file.place;
        if inputs.len() != receipt.files.len() || !inputs.iter().zip(&receipt.files).all(is_about) {
            return Err(damaged("a receipt is about other inputs than its item"));
        }
        for ((_, input), record) in inputs.iter().zip(&receipt.files) {
            if let Some(failed) = &record.error {
                bad.push((input.name().to_owned(), failed.error()));
                continue;
            }
            // What it is called says the plan: a receipt may say anything.
            let name = tree_name(plan, output, input, site)?;
            let (from, to) = (directory.join(&name), Path::new(&output.url).join(&name));
            let is_waiting = from.symlink_metadata().is_ok();
            // One that has its name already was joined by what was interrupted.
            let (path, check) = if is_waiting {
                (&from, options.check)
            } else {
                (&to, Check::Read)
            };
            if !is_whole(path, record, check)? {
                return Err(damaged_item(receipt.item));
            }
            // What is in the way is said before anything has its name.
            if is_waiting && !options.force && to.symlink_metadata().is_ok() {
                let message = format!("{} already exists", to.display());
                let error = Error::new(ErrorKind::Argument, "plan.exists", message);
                return Err(error.hinting(Hint::Replace));
            }
            let from = is_waiting.then_some(from);
            all.push(Waiting { from, to });
            bytes += record.len;
        }
    }
    for Waiting { from, to } in all {
        let Some(from) = from else { continue };
        create_above(&to)?;
        let mut out = AtomicOutput::file(&to)?.force(options.force);
        let name = out.main_name().to_owned();
        out.adopt(&name, &from)?;
        out.commit()?;
    }
    Ok((bytes, bad))
}
