//! Every golden file to every version of every format, and back: the same content, the same bytes every time.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod support;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libtest_mimic::{Arguments, Failed, Trial};
use support::{
    Case, InMemory, Kind, cases, errors, file_name, options_for, profiles, write_to_memory,
};
use tenfold::format::{Checksums, Compression, Effect, Entry, Profile, Registry};
use tenfold::model::DigestKind;
use tenfold::ops::{self, Conversion, ConvertOptions};
use tenfold::{Archive, ErrorKind};

/// Files that were written and compared: those of a plain conversion, and those of all.
static PAIRS: AtomicUsize = AtomicUsize::new(0);
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cases = cases(Kind::Valid);
    let count = cases.len();
    let trials = cases
        .into_iter()
        .enumerate()
        .map(|(n, case)| Trial::test(case.title(), move || check(n, &case).map_err(Failed::from)));
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let (pairs, written) = (PAIRS.load(Relaxed), WRITTEN.load(Relaxed));
    println!("{pairs} pairs, {written} files written");
    let whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    // Most files go into two versions at least; far less would mean that the loop does nothing.
    if whole && pairs < 2 * count {
        eprintln!("only {pairs} pairs for {count} files");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// Whether a file is written in every way that a version has: a debug build does that for every third pair.
fn is_every_way(file: usize, version: usize) -> bool {
    !cfg!(debug_assertions) || (file + version).is_multiple_of(3)
}

fn check(n: usize, case: &Case) -> Result<(), String> {
    if case.is_structural() {
        return Ok(());
    }
    let opened = case.open().map_err(|error| error.to_string())?;
    let archive = opened.select(|tensor| tensor.defect.is_none());
    let mut possible = 0;
    for (k, (entry, profile)) in profiles().into_iter().enumerate() {
        let target = format!("{} {}", entry.spec.id, profile.version);
        possible += usize::from(
            to_and_back(&archive, &entry, profile, is_every_way(n, k))
                .map_err(|error| format!("to {target}: {error}"))?,
        );
    }
    let may_refuse = case.text("rewrite") == Some("may refuse");
    if possible > 0 || may_refuse {
        Ok(())
    } else {
        Err("no version of any format can hold it".to_owned())
    }
}

/// Writes the archive as it comes, or in every way that a version has; false where it cannot be held.
fn to_and_back(
    archive: &Archive,
    entry: &Entry,
    profile: &'static Profile,
    every_way: bool,
) -> Result<bool, String> {
    let plain = options_for(profile);
    let conversion =
        Conversion::prepare(archive, entry, &plain).map_err(|error| error.to_string())?;
    let impossible = (conversion.losses.iter()).any(|loss| loss.effect == Effect::Impossible);
    if impossible {
        let refusal = conversion.refuse_losses().err();
        return match refusal.map(|error| error.kind()) {
            Some(ErrorKind::Lossy) => Ok(false),
            other => Err(format!("what is impossible must be refused: {other:?}")),
        };
    }
    conversion
        .refuse_losses()
        .map_err(|error| error.to_string())?;
    let ways = if every_way { usize::MAX } else { 1 };
    for (what, options, sums) in variants(&plain, profile).into_iter().take(ways) {
        let written = write_and_compare(archive, entry, profile, &options, sums)
            .map_err(|error| format!("{what}: {error}"))?;
        if what == "plain" {
            PAIRS.fetch_add(1, Relaxed);
            back(archive, &written).map_err(|error| format!("and back: {error}"))?;
        }
    }
    Ok(true)
}

/// The ways to write a version, with the checksums that all parts must then have: as it comes first, raw, compressed, with every
/// kind of checksum.
fn variants(
    plain: &ConvertOptions,
    profile: &Profile,
) -> Vec<(String, ConvertOptions, Option<DigestKind>)> {
    let raw = (plain.clone())
        .compression(|_| Compression::Raw)
        .checksums(Checksums::None);
    let mut variants = vec![
        ("plain".to_owned(), plain.clone(), None),
        ("raw".to_owned(), raw.clone(), None),
    ];
    let zstd = plain.clone().compression(|_| Compression::Zstd(3));
    if profile.can.zstd {
        variants.push(("zstd".to_owned(), zstd.clone(), None));
    }
    for &kind in profile.can.checksums {
        for (what, options) in [("plain", plain), ("raw", &raw), ("zstd", &zstd)] {
            if what != "zstd" || profile.can.zstd {
                let with = options.clone().checksums(Checksums::With(kind));
                variants.push((format!("{what}, {kind}"), with, Some(kind)));
            }
        }
    }
    variants
}

/// Writes twice, reads back, verifies; gives what was written.
fn write_and_compare(
    archive: &Archive,
    entry: &Entry,
    profile: &Profile,
    options: &ConvertOptions,
    sums: Option<DigestKind>,
) -> Result<Archive, String> {
    let files = write_to_memory(archive, entry, options).map_err(|error| error.to_string())?;
    let again = write_to_memory(archive, entry, options).map_err(|error| error.to_string())?;
    if files != again {
        return Err("written twice, it has other bytes".to_owned());
    }
    WRITTEN.fetch_add(1, Relaxed);
    let written = InMemory::written(files, &file_name(entry))
        .open()
        .map_err(|error| format!("does not open: {error}"))?;
    // Versions that only writers tell apart read as the one that they share, and so may a file without tensors.
    let version = profile.version;
    let told_apart = entry.spec.reads.contains(&version) && written.tensors().len() > 0;
    if told_apart && written.version() != version {
        return Err(format!("it became version {}", written.version()));
    }
    same_content(archive, &written)?;
    let findings = support::verify(&written, 1);
    match errors(&findings).as_slice() {
        [] => {}
        errors => return Err(format!("does not verify: {errors:?}")),
    }
    if let Some(kind) = sums {
        let parts = || {
            written
                .manifest()
                .tensors
                .iter()
                .flat_map(|tensor| &tensor.parts)
        };
        let has = |part: &tenfold::model::Part| {
            part.checksum.as_ref().is_some_and(|sum| sum.kind == kind)
        };
        if !parts().all(has) {
            return Err(format!("not every part has a {kind} checksum"));
        }
    }
    Ok(written)
}

/// From what was written to the version that the original had, where that is written at all.
fn back(original: &Archive, written: &Archive) -> Result<(), String> {
    let Some(spec) = original.format() else {
        return Ok(());
    };
    let registry = Registry::standard();
    let entry = registry.get(spec.id).map_err(|error| error.to_string())?;
    let Some(profile) = spec.profile(original.version()) else {
        return Ok(());
    };
    let options = options_for(profile);
    let conversion =
        Conversion::prepare(written, entry, &options).map_err(|error| error.to_string())?;
    if (conversion.losses.iter()).any(|loss| loss.effect == Effect::Impossible) {
        // Only what was impossible at once may be impossible now.
        let first =
            Conversion::prepare(original, entry, &options).map_err(|error| error.to_string())?;
        let was = (first.losses.iter()).any(|loss| loss.effect == Effect::Impossible);
        return if was {
            Ok(())
        } else {
            Err(format!(
                "it cannot be held any more: {:?}",
                conversion.losses
            ))
        };
    }
    write_and_compare(written, entry, profile, &options, None).map(drop)
}

/// The same names, types, shapes and bytes, in any order.
fn same_content(before: &Archive, after: &Archive) -> Result<(), String> {
    // Names that come from the file are others in another file.
    let unnamed = after.tensors().all(|tensor| tensor.info().is_unnamed());
    // Where there are only matrices, a line is one of a single row: said as a loss, and seen by the digest of all.
    let has_rows = before.tensors().any(|tensor| {
        let shape = &tensor.info().shape;
        let row = [1, shape.first().copied().unwrap_or(1)];
        let found = after.get(tensor.name());
        shape.len() < 2 && found.is_some_and(|found| found.info().shape[..] == row)
    });
    let (before, after) = (support::digest(before, 1), support::digest(after, 1));
    if before.content.is_some() && before.content == after.content {
        return Ok(());
    }
    if unnamed {
        let sums = |digests: ops::Digests| {
            let sums = digests.tensors.into_iter().map(|(_, sum)| sum.ok());
            let mut sums: Vec<_> = sums.collect();
            sums.sort();
            sums
        };
        return if sums(before) == sums(after) {
            Ok(())
        } else {
            Err("the content of the unnamed tensors differs".to_owned())
        };
    }
    for (name, digest) in &before.tensors {
        let found = after.tensors.iter().find(|(found, _)| found == name);
        match (digest, found) {
            (Ok(a), Some((_, Ok(b)))) if a == b => {}
            other => return Err(format!("the content of {name:?} differs: {other:?}")),
        }
    }
    if has_rows {
        return Ok(());
    }
    Err("the content differs".to_owned())
}
