//! One object, sent in parts by many machines.

use std::fs::{self, File};
use std::path::PathBuf;

use super::join::damaged_item;
use super::{DATA, Part, hash_source, no_output};
use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::execute::spread::{self, Places, Window};
use crate::format::FilePlan;
use crate::io::{FileSource, Output as _, Remote, RemoteOutput, RemoteUrl, Sent, Source};
use crate::model::Checksum;
use crate::ops::scale::data::{Item, Output, Plan, Receipt, Upload};
use crate::ops::scale::records::damaged;
use crate::ops::scale::state::Site;
use crate::ops::scale::{Check, JoinOptions};
use crate::prelude::*;
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
        receipt.crc32c = self.sum(&scratch, window)?;
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
    let mut ids: Vec<Option<String>> = receipts
        .iter()
        .flat_map(|receipt| receipt.parts.clone())
        .collect();
    if ids.len() != known.len() {
        return Err(damaged("receipts do not have all parts"));
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
    let parts = ids.ok_or_else(|| damaged("a part is missing"))?;
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
        if receipt.crc32c.as_deref() != Some(&found) {
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
