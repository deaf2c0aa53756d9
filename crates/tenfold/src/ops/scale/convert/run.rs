//! What items of a conversion do.

use std::fs::{self, File};

use super::{
    DATA, FILES, Part, cannot_be_cut, has_data, hash_source, no_output, only_file, prepare, reopen,
    same_layout, tree_name,
};
use crate::error::{Error, Result};
use crate::execute::spread::Window;
use crate::execute::{Execution, execute};
use crate::format::{self, Segment};
use crate::io::{AtomicOutput, FileSource, Output as _, Source};
use crate::ops::scale::data::{Input, Item, Output, Plan, Receipt, WholeFile};
use crate::ops::scale::records::Failed;
use crate::ops::scale::report::is_trouble;
use crate::ops::scale::state::{Site, State, changed, create_above, is_unchanged};
use crate::ops::scale::{RECEIPTS, inputs_of};
use crate::prelude::*;
use crate::transform::Tally;

/// Does an item.
pub(in crate::ops::scale) fn run(
    plan: &Plan,
    item: &Item,
    state: &State,
    site: &Site,
) -> Result<Receipt> {
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
    let data = open_data(state, places.len)?;
    let mut receipt = part.write(&data, &window)?;
    // The disk is waited for anyway.
    let (synced, crc32c) = std::thread::scope(|scope| {
        let synced = scope.spawn(|| data.sync_all());
        let crc32c = part.sum(&data, &window);
        (synced.join(), crc32c)
    });
    let synced = synced.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    synced.map_err(|cause| Error::io("cannot sync the output", cause))?;
    receipt.crc32c = crc32c?;
    // What was read meanwhile must be what was to be read.
    for (input, archive) in plan.inputs.iter().zip(&archives) {
        site.check(input, archive)?;
    }
    receipt.bytes = window.range.end - window.range.start;
    Ok(receipt)
}

/// The file that all machines write to: as long as it will be, whoever comes first.
fn open_data(state: &State, len: u64) -> Result<File> {
    let path = state.directory().join(DATA);
    create_above(&path)?;
    let fail = |cause| Error::io(format_args!("cannot open {}", path.display()), cause);
    let mut options = fs::OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let file = options.open(&path).map_err(fail)?;
    if file.metadata().map_err(fail)?.len() < len {
        file.set_len(len).map_err(fail)?;
        // What items wrote before is gone, if any did. One that was quicker than this is done once more.
        state.remove(RECEIPTS)?;
    }
    Ok(file)
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
        let written = whole_file(&name, state, |out| write(out).map(|_| ()))?;
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
    name: &str,
    state: &State,
    write: impl FnOnce(&mut dyn crate::io::Output) -> Result<()>,
) -> Result<WholeFile> {
    let path = state.directory().join(FILES).join(name);
    create_above(&path)?;
    let mut out = AtomicOutput::file(&path)?.force(true);
    write(&mut out)?;
    out.commit()?;
    let source = FileSource::open(&path)?;
    Ok(WholeFile {
        name: name.to_owned(),
        len: source.len(),
        crc32c: Some(hash_source(&source, &(0..source.len()), &[])?),
        ..WholeFile::default()
    })
}

fn run_inputs(
    plan: &Plan,
    output: &Output,
    [from, to]: [usize; 2],
    list: Option<&str>,
    state: &State,
    site: &Site,
) -> Result<Receipt> {
    let mut receipt = Receipt::default();
    for (place, input) in inputs_of(plan, [from, to], list, state)? {
        let error = match run_input(plan, output, &input, state, site) {
            Ok(Some(written)) => {
                receipt.bytes += written.len;
                receipt.files.push(WholeFile { place, ..written });
                continue;
            }
            Ok(None) => changed(&input),
            Err(error) if is_trouble(&error, plan.input_count() == 1) => return Err(error),
            Err(error) => error,
        };
        // One that is bad does not stop the others.
        receipt.files.push(WholeFile {
            place,
            name: input.name().to_owned(),
            error: Some(Failed::new(&error, site)),
            ..WholeFile::default()
        });
    }
    Ok(receipt)
}

/// Converts an input into a file of its own; nothing where it is another one than when the plan was made.
fn run_input(
    plan: &Plan,
    output: &Output,
    input: &Input,
    state: &State,
    site: &Site,
) -> Result<Option<WholeFile>> {
    let opening = plan.options.opening(false)?;
    let Some(archive) = site.open_unchanged(input, &opening)? else {
        return Ok(None);
    };
    let file = tree_name(plan, output, input, site)?;
    let plain = file.rsplit('/').next().unwrap_or(&file).to_owned();
    let conversion = prepare(plan, &plain, std::slice::from_ref(&archive), site)?.conversion;
    let write =
        |out: &mut dyn crate::io::Output| conversion.write_for_others(&plain, out).map(|_| ());
    let written = whole_file(&file, state, write)?;
    Ok(is_unchanged(input, &archive).then_some(written))
}
