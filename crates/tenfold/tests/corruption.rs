//! Every changed bit of what a checksum protects is reported, and the tensor is named whose it is. Where a file has no
//! checksum, a list of digests that was made before reports the same.
//!
//! Every bit of files up to 4 KiB, a sample in larger ones; in a debug build a sample of both.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod support;

use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libtest_mimic::{Arguments, Failed, Trial};
use support::random::Rng;
use support::{Case, InMemory, Kind, cases};
use tenfold::format::{Finding, Severity};
use tenfold::model::{Layout, Over, SourceId};
use tenfold::ops::{self, Expected};
use tenfold::{Archive, Bytes};

/// Files up to this length are tried at every bit where `--include-ignored` is given.
const EXHAUSTIVE: usize = 4 << 10;

/// How many bits of each protected range are tried.
#[derive(Clone, Copy)]
struct Effort {
    every_bit: bool,
    samples: usize,
}

static BY_CHECKSUM: AtomicUsize = AtomicUsize::new(0);
static BY_LIST: AtomicUsize = AtomicUsize::new(0);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let every_bit = arguments.include_ignored;
    let samples = if every_bit { 1000 } else { 12 };
    let effort = Effort { every_bit, samples };
    let trials = cases(Kind::Valid).into_iter().map(|case| {
        Trial::test(case.title(), move || {
            check(&case, effort).map_err(Failed::from)
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let (checksum, list) = (BY_CHECKSUM.load(Relaxed), BY_LIST.load(Relaxed));
    println!(
        "{checksum} changed bits under checksums, {list} under lists of digests: all reported"
    );
    let whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list;
    if whole && (checksum < 1000 || list < 1000) {
        eprintln!("there are too few");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// Bytes that are protected, and the tensor whose data they are.
struct Protected {
    range: Range<u64>,
    tensor: Option<String>,
}

fn check(case: &Case, effort: Effort) -> Result<(), String> {
    let Some(file) = case.file() else {
        return Ok(());
    };
    let archive = file.open().map_err(|error| error.to_string())?;
    let before = reported(&support::verify(&archive, 1)).len();
    let listed = list(&archive);
    let (summed, bare) = protected(case, &archive);
    for place in &summed {
        each_bit(effort, case, &file, place, &BY_CHECKSUM, &|opened| {
            let findings = support::verify(opened, 1);
            Some((findings.clone(), reported(&findings).len() > before))
        })?;
    }
    for place in &bare {
        each_bit(effort, case, &file, place, &BY_LIST, &|opened| {
            // The same elements can be listed in several ways: a zero anywhere, any place of an orbit. Lists of digests
            // are about elements.
            if is_sparse(&archive, place) && same_elements(&archive, opened) {
                return None;
            }
            // A view does not have all elements of its storage.
            if is_view_without_it(&archive, opened, place) {
                return None;
            }
            // What is no value of its type, such as a bool of 3, reads as one, and is a finding by itself.
            let mut findings = support::verify(opened, 1);
            let digests = support::digest(opened, 1);
            findings.extend(ops::compare_digests(opened, &digests, &listed));
            Some((findings.clone(), reported(&findings).len() > before))
        })?;
    }
    Ok(())
}

fn is_sparse(archive: &Archive, place: &Protected) -> bool {
    let tensor = place.tensor.as_ref().and_then(|name| archive.get(name));
    tensor.is_some_and(|tensor| {
        let layout = &tensor.info().layout;
        matches!(
            layout,
            Layout::Coo { .. } | Layout::Csr { .. } | Layout::Pairs { .. }
        )
    })
}

/// Whether a tensor is some elements of a storage, and what changed is none of them.
fn is_view_without_it(one: &Archive, other: &Archive, place: &Protected) -> bool {
    let elements = |archive: &Archive| {
        let tensor = archive.get(place.tensor.as_ref()?)?;
        let is_view = matches!(
            tensor.info().layout,
            Layout::Strided(_) | Layout::Records { .. }
        );
        tensor.canonical().ok().filter(|_| is_view)
    };
    elements(one).is_some_and(|before| elements(other) == Some(before))
}

fn same_elements(one: &Archive, other: &Archive) -> bool {
    let elements = |archive: &Archive| -> Option<Vec<Bytes>> {
        archive
            .tensors()
            .map(|tensor| tensor.canonical().ok())
            .collect()
    };
    let before = elements(one);
    before.is_some() && before == elements(other)
}

/// What would be noticed by whoever looks at the result.
fn reported(findings: &[Finding]) -> Vec<&Finding> {
    let worse = |finding: &&Finding| finding.severity >= Severity::Warning;
    findings.iter().filter(worse).collect()
}

fn list(archive: &Archive) -> Expected {
    Expected::of(&support::digest(archive, 1))
}

/// What checksums of the file protect, and the data that has none.
fn protected(case: &Case, archive: &Archive) -> (Vec<Protected>, Vec<Protected>) {
    let manifest = archive.manifest();
    let (mut summed, mut bare) = (Vec::new(), Vec::new());
    let mut tensors: Vec<_> = manifest.tensors.iter().collect();
    // A tensor that is reported as it is, such as one with a bool of 3, cannot be reported more than that.
    let known = support::verify(archive, 1);
    let is_known = |name: &str| {
        let tensors = reported(&known)
            .into_iter()
            .map(|finding| finding.tensor.as_deref());
        tensors.flatten().any(|tensor| tensor == name)
    };
    tensors.retain(|tensor| tensor.defect.is_none() && !is_known(&tensor.name));
    for tensor in tensors {
        for part in &tensor.parts {
            let Some((SourceId::MAIN, range)) = part.payload.stored() else {
                continue;
            };
            let place = Protected {
                range,
                tensor: Some(tensor.name.clone()),
            };
            // Of compressed data there may be bits that mean nothing.
            let is_raw = part.payload.len() == place.range.end - place.range.start;
            match &part.checksum {
                Some(sum) if sum.over == Over::Stored || is_raw => summed.push(place),
                None if is_raw => bare.push(place),
                _ => {}
            }
        }
    }
    for sealed in &manifest.sealed {
        if sealed.source == SourceId::MAIN {
            let range = sealed.range.clone();
            summed.push(Protected {
                range,
                tensor: None,
            });
        }
    }
    summed.extend(magnetron_header(case, archive));
    (summed, bare)
}

/// Magnetron's checksum is one of the headers: with the checksum itself, to the end of the records.
fn magnetron_header(case: &Case, archive: &Archive) -> Option<Protected> {
    let sum = |finding: &&Finding| finding.rule == "mag.checksum";
    let (_, sum) = archive.findings().iter().find(sum)?.at.clone()?;
    if case.format != "mag" {
        return None;
    }
    let regions = archive.manifest().regions.iter();
    let records = regions.filter(|region| region.label != "padding");
    let end = records.map(|region| region.range.end).max()?;
    Some(Protected {
        range: sum.start..end,
        tensor: None,
    })
}

/// Findings, and whether they are more than before; `None` where nothing that counts has changed.
type Seen = Option<(Vec<Finding>, bool)>;

/// Changes bits, one at a time, and asks whether that is reported.
fn each_bit(
    effort: Effort,
    case: &Case,
    file: &InMemory,
    place: &Protected,
    count: &AtomicUsize,
    look: &dyn Fn(&Archive) -> Seen,
) -> Result<(), String> {
    let (from, to) = (place.range.start * 8, place.range.end * 8);
    let all = usize::try_from(to - from).unwrap();
    let exhaustive = file.bytes.len() <= EXHAUSTIVE && (effort.every_bit || all <= effort.samples);
    let mut rng = Rng::named(&case.title());
    let bits: Vec<usize> = if exhaustive || all == 0 {
        (0..all).collect()
    } else {
        (0..effort.samples).map(|_| rng.below(all)).collect()
    };
    for bit in bits {
        let bit = usize::try_from(from).unwrap() + bit;
        let mut bytes = file.bytes.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut damaged = file.clone();
        damaged.bytes = Bytes::from(bytes);
        count.fetch_add(1, Relaxed);
        // A file that is refused is reported too.
        let Ok(opened) = damaged.open() else {
            continue;
        };
        let Some((findings, noticed)) = look(&opened) else {
            continue;
        };
        let what = format!("bit {} of byte {}", bit % 8, bit / 8);
        if !noticed {
            return Err(format!("{what} is not reported"));
        }
        if let Some(tensor) = &place.tensor {
            let named = |finding: &&Finding| finding.tensor.as_ref() == Some(tensor);
            if !reported(&findings).iter().any(named) {
                return Err(format!("{what}: {tensor:?} is not named: {findings:?}"));
            }
        }
    }
    Ok(())
}
