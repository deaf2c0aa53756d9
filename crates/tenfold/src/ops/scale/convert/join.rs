//! How what items wrote gets its names.

use std::fs;
use std::path::Path;

use super::run::open_data;
use super::{
    DATA, FILES, cannot_be_cut, has_data, hash_range, hash_source, no_output, only_file, reopen,
    same_layout,
};
use crate::archive::OpenOptions;
use crate::digest::unhex;
use crate::error::{Error, ErrorKind, Hint, Result};
use crate::execute::{Execution, execute, spread};
use crate::format;
use crate::io::{AtomicOutput, FileSource, Output as _, Source};
use crate::model::{Checksum, Over};
use crate::ops::convert::LaidOut;
use crate::ops::scale::data::{Item, Output, Plan, Receipt, WholeFile};
use crate::ops::scale::records::{damaged, kind_named};
use crate::ops::scale::state::{Site, State, create_above};
use crate::ops::scale::{Check, JoinOptions};
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
        Some(Item::Inputs { .. }) => join_inputs(output, receipts, state, options),
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
    let directory = state.directory();
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
            if receipt.crc32c.as_deref() != Some(&found) {
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

pub(super) fn damaged_item(item: usize) -> Error {
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
    let files: Vec<_> = receipts.iter().flat_map(|receipt| &receipt.files).collect();
    if options.check == Check::Read {
        check_files(&files, receipts, state)?;
    }
    let tally = Tally::default();
    let execution = Execution::new(&site.work, &tally);
    let rest = laid_out
        .plan
        .files
        .into_iter()
        .filter(|file| !has_data(file));
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
    let directory = state.directory().join(FILES);
    let mut out = if output.is_directory() {
        AtomicOutput::directory(&output.url)?
    } else {
        AtomicOutput::file(&output.url)?.force(options.force)
    };
    for file in &files {
        out.adopt(&file.name, &directory.join(&file.name))?;
    }
    finish(&mut out)?;
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

fn check_files(files: &[&WholeFile], receipts: &[Receipt], state: &State) -> Result<()> {
    let directory = state.directory();
    for file in files.iter().filter(|file| file.error.is_none()) {
        let source = FileSource::open(directory.join(FILES).join(&file.name))?;
        let found = hash_source(&source, &(0..source.len()), &[])?;
        if file.crc32c.as_deref() != Some(&found) {
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
) -> Result<(u64, Vec<(String, Error)>)> {
    let all = receipts.iter().flat_map(|receipt| &receipt.files);
    let (good, bad): (Vec<_>, Vec<_>) = all.partition(|file| file.error.is_none());
    let bad = bad.into_iter();
    let bad = bad.filter_map(|file| Some((file.name.clone(), file.error.as_ref()?.error())));
    let bad = bad.collect();
    let bytes = good.iter().map(|file| file.len).sum();
    let directory = state.directory().join(FILES);
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
