//! Every golden file of the formats whose headers are at the front, cut off behind its header: before, within and behind
//! its tensors.
//!
//! With `salvage`, the tensors that are there to their last byte have the bytes that they have in the whole file, the
//! others are listed with a defect, and the file is still not sound. Without it, the file is refused, and the message says
//! what can be done.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;

use support::{Case, InMemory, Kind, cases, errors};
use tenfold::format::Severity;
use tenfold::model::SourceId;
use tenfold::{Archive, ErrorKind, Hint, OpenOptions, Tensor};

/// Tensors around whose data a file is cut; of files with more, some.
const TENSORS: usize = 40;

#[test]
fn safetensors_are_salvaged() {
    check_format("safetensors", 100);
}

#[test]
fn gguf_is_salvaged() {
    check_format("gguf", 100);
}

#[test]
fn mag_is_salvaged() {
    check_format("mag", 100);
}

#[test]
fn burnpack_is_salvaged() {
    check_format("burnpack", 100);
}

#[test]
fn npz_is_salvaged() {
    check_format("npz", 100);
}

/// Archives of torch, whose headers do not say how long members are, and streams of before.
#[test]
fn pytorch_is_salvaged() {
    check_format("pytorch", 100);
}

#[test]
fn netcdf_is_salvaged() {
    check_format("netcdf", 20);
}

/// A file can be cut off and broken otherwise.
#[test]
fn the_hint_is_given_only_where_it_helps() {
    let (mut without, mut unverified) = (0, 0);
    for case in cases(Kind::Reject) {
        let Some(file) = case.file() else {
            continue;
        };
        let Err(error) = file.open() else {
            continue;
        };
        let salvaged = file.open_with(&OpenOptions::new().salvage(true));
        if error.hints().contains(&Hint::Salvage) {
            assert!(salvaged.is_ok(), "{}: {error}", case.title());
        } else if case.name == "spec_cut_and_duplicate_key" {
            let message = salvaged.map(|_| ()).expect_err("the key appears twice");
            assert_eq!(message.rule(), "mag.duplicate");
            assert!(!error.message().contains("complete"), "{error}");
            without += 1;
        }
        let skips = error.hints().contains(&Hint::SkipChecksums);
        if error.kind() == ErrorKind::Mismatch {
            let opened = file.open_with(&OpenOptions::new().checksums(false));
            assert_eq!(opened.is_ok(), skips, "{}: {error}", case.title());
            unverified += usize::from(skips);
        } else {
            assert!(!skips, "{}: {error}", case.title());
        }
    }
    assert_eq!(without, 1);
    assert!(unverified > 0, "no checksum alone is wrong");
}

/// Members whose headers do not say how long they are: what is behind the first of them cannot be found.
const STREAMED: &[&str] = &["data_descriptor", "stored_with_descriptor"];

/// Archives that begin with their data: what is lost with their end says what it is.
const DATA_FIRST: &[&str] = &["torchscript"];

fn check_format(format: &str, at_least: usize) {
    let mut cuts = 0;
    let cases = cases(Kind::Valid);
    let of_format = |case: &&Case| case.format == format && !DATA_FIRST.contains(&&*case.name);
    for case in cases.iter().filter(of_format) {
        let Some(file) = case.file().filter(|file| !file.name.ends_with(".json")) else {
            continue;
        };
        let whole = file.open().unwrap();
        for cut in places(&whole, file.bytes.len()) {
            let mut short = file.clone();
            short.bytes = file.bytes.slice(..cut);
            let about = format!("{} cut to {cut} bytes", case.title());
            let whole = &whole;
            Cut {
                case,
                whole,
                short,
                about,
            }
            .check();
            cuts += 1;
        }
    }
    assert!(cuts >= at_least, "only {cuts} files were cut");
}

/// Before, within and behind the data of tensors.
fn places(whole: &Archive, len: usize) -> BTreeSet<usize> {
    let mut ranges: Vec<_> = whole
        .tensors()
        .filter_map(|tensor| place(&tensor))
        .collect();
    ranges.sort_by_key(|range| range.start);
    let step = ranges.len().div_ceil(TENSORS).max(1);
    let last = ranges.last().cloned();
    let some = ranges.into_iter().step_by(step).chain(last);
    some.flat_map(|Range { start, end }| [start, start + 1, start.midpoint(end), end - 1, end])
        .map(|at| usize::try_from(at).unwrap())
        .filter(|&at| at < len)
        .collect()
}

/// Where the bytes of a tensor are in the file that is cut off; `None` where it has none there.
fn place(tensor: &Tensor<'_>) -> Option<Range<u64>> {
    let parts = tensor.info().parts.iter();
    let mut stored = parts.filter_map(|part| part.payload.stored());
    let (source, range) = stored.next()?;
    assert!(stored.next().is_none(), "{:?}", tensor.name());
    (source == SourceId::MAIN && !range.is_empty()).then_some(range)
}

/// A golden file that is cut off.
struct Cut<'c> {
    case: &'c Case,
    whole: &'c Archive,
    short: InMemory,
    about: String,
}

impl Cut<'_> {
    fn check(&self) {
        let Self {
            case,
            whole,
            short,
            about,
        } = self;
        let lost = whole.tensors().any(|tensor| !self.has(&tensor));
        let something = whole.tensors().any(|tensor| {
            let stored = tensor.info().parts.first();
            let stored = stored.and_then(|part| part.payload.stored());
            self.has(&tensor) && stored.is_some_and(|(source, _)| source == SourceId::MAIN)
        });
        if !lost || is_taken_for_packed(short) {
            return;
        }
        let error = short.open().map(|_| ()).expect_err(about);
        let rules = ["truncated", "bounds", "end"];
        let rule = error.rule();
        assert!(rules.iter().any(|known| rule.ends_with(known)), "{error}");
        let salvaged = short.open_with(&OpenOptions::new().salvage(true));
        if let (true, Err(other)) = (self.is_unclear(), &salvaged) {
            assert_eq!(other.rule(), rule, "{about}");
            return;
        }
        let streamed = STREAMED.contains(&&*case.name);
        if something && !streamed {
            assert_eq!(error.hints(), [Hint::Salvage], "{about}: {error}");
        }
        match salvaged {
            Ok(salvaged) => self.check_salvaged(&salvaged, streamed),
            Err(error) => assert!(streamed, "{about}: {error}"),
        }
    }

    /// Whether a tensor is there to its last byte.
    fn has(&self, tensor: &Tensor<'_>) -> bool {
        let len = self.short.bytes.len() as u64;
        // In a zip archive, what has no bytes has a header still.
        let at = (self.case.format == "npz")
            .then(|| tensor.info().parts.first()?.payload.stored())
            .flatten()
            .map(|(_, range)| range);
        at.or(place(tensor)).is_none_or(|range| range.end <= len)
    }

    /// Whether zeros behind the header of a Burnpack could be padding or data: it says nowhere where data begins, and its
    /// length is lost. Where all tensors begin at multiples of 256, it is padding.
    fn is_unclear(&self) -> bool {
        let header = self.whole.manifest().regions[0].range.end;
        let ranges = self.whole.tensors().filter_map(|tensor| place(&tensor));
        let starts: Vec<_> = ranges.map(|range| range.start).collect();
        let first = starts.iter().min().unwrap();
        let is_even = starts
            .iter()
            .all(|start| (start - first).is_multiple_of(256));
        let header = usize::try_from(header).unwrap();
        let behind = header.next_multiple_of(256).min(self.short.bytes.len());
        self.case.format == "burnpack"
            && !is_even
            && !header.is_multiple_of(256)
            && self.short.bytes[header..behind]
                .iter()
                .all(|&byte| byte == 0)
    }
}

/// Burnpack does not say where data begins, only its length does: a file that lost as much as the padding in front of its
/// data has is one of Burn 0.19, if its tensors allow that.
fn is_taken_for_packed(short: &InMemory) -> bool {
    short.open().is_ok_and(|archive| {
        let mut findings = archive.findings().iter();
        findings.any(|finding| finding.message.contains("as Burn 0.19 writes it"))
    })
}

impl Cut<'_> {
    fn check_salvaged(&self, salvaged: &Archive, streamed: bool) {
        let about = &self.about;
        let warnings = salvaged.findings().iter().filter(|finding| {
            finding.severity == Severity::Warning && finding.rule.ends_with("salvaged")
        });
        assert_eq!(warnings.count(), 1, "{about}");
        let found: BTreeMap<_, _> = (salvaged.tensors())
            .map(|tensor| (tensor.name().to_owned(), tensor))
            .collect();
        for tensor in self.whole.tensors() {
            let name = tensor.name();
            match (found.get(name), self.has(&tensor)) {
                (Some(left), true) => assert_same(left, &tensor, about),
                (Some(left), false) => {
                    let defect = left.info().defect.as_ref();
                    let defect = defect.unwrap_or_else(|| panic!("{about}: {name:?} is whole"));
                    assert!(defect.message().contains("cut off"), "{about}: {defect}");
                    assert!(left.canonical().is_err(), "{about}: {name:?}");
                    assert!(left.stored().is_err(), "{about}: {name:?}");
                }
                // Only the directory at the end, which is lost, knows what is behind the cut.
                (None, has) => {
                    let unknown = self.case.format == "npz" && (!has || streamed);
                    assert!(unknown, "{about}: {name:?} is not listed");
                }
            }
        }
        assert!(found.len() <= self.whole.tensors().len(), "{about}");
        let lists_lost = found.values().any(|tensor| tensor.info().defect.is_some());
        let is_sound = errors(&support::verify(salvaged, 1)).is_empty();
        assert!(!(lists_lost && is_sound), "{about}: verifies");
    }
}

fn assert_same(left: &Tensor<'_>, tensor: &Tensor<'_>, about: &str) {
    let name = tensor.name();
    assert_eq!(left.info().shape, tensor.info().shape, "{about}: {name:?}");
    assert_eq!(left.info().dtype, tensor.info().dtype, "{about}: {name:?}");
    match tensor.canonical() {
        Ok(bytes) => assert!(left.canonical().unwrap() == bytes, "{about}: {name:?}"),
        Err(_) => assert!(left.canonical().is_err(), "{about}: {name:?}"),
    }
    if let Ok(bytes) = tensor.part(0) {
        assert!(left.part(0).unwrap() == bytes, "{about}: {name:?}");
    }
}

#[test]
fn a_shard_that_is_cut_off_loses_only_its_own_tensors() {
    for (model, main) in [
        (
            "safetensors/valid/sharded_3",
            "model.safetensors.index.json",
        ),
        ("gguf/valid/split_3", "model-00001-of-00003.gguf"),
    ] {
        let files = load(model);
        let whole = InMemory::written(files.clone(), main).open().unwrap();
        let mut shards = 0;
        for id in (0..).map(SourceId) {
            let Some(shard) = whole.source_name(id) else {
                break;
            };
            if shard.ends_with(".json") {
                continue;
            }
            shards += 1;
            let of_it: Vec<_> = (whole.tensors())
                .filter_map(|tensor| {
                    let (source, range) = tensor.info().parts[0].payload.stored()?;
                    (source == id).then(|| (range.end, tensor.name().to_owned()))
                })
                .collect();
            let (end, last) = of_it.iter().max().unwrap();
            let mut short = files.clone();
            let len = usize::try_from(*end).unwrap() - 1;
            short.get_mut(shard).unwrap().truncate(len);
            check_shard(&InMemory::written(short, main), &whole, shard, last);
        }
        assert_eq!(shards, 3, "{model}");
    }
}

/// The files of a model.
fn load(model: &str) -> BTreeMap<String, Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(model);
    let files = fs::read_dir(directory).unwrap().map(Result::unwrap);
    files
        .map(|file| {
            let name = file.file_name().into_string().unwrap();
            (name, fs::read(file.path()).unwrap())
        })
        .collect()
}

fn check_shard(short: &InMemory, whole: &Archive, shard: &str, lost: &str) {
    let error = short.open().map(|_| ()).expect_err(shard);
    assert!(
        error.hints() == [Hint::Salvage] || is_only(whole, shard),
        "{error}"
    );
    let salvaged = short.open_with(&OpenOptions::new().salvage(true)).unwrap();
    let findings = salvaged.findings().iter();
    let messages: Vec<_> = findings
        .filter(|finding| finding.rule.ends_with("salvaged"))
        .map(|finding| finding.message.clone())
        .collect();
    assert_eq!(messages.len(), 1, "{shard}");
    if shard != short.name {
        assert!(messages[0].starts_with(shard), "{messages:?}");
    }
    for (tensor, left) in whole.tensors().zip(salvaged.tensors()) {
        assert_eq!(tensor.name(), left.name());
        assert_eq!(
            left.info().defect.is_some(),
            tensor.name() == lost,
            "{shard}"
        );
        if tensor.name() != lost {
            assert!(left.canonical().unwrap() == tensor.canonical().unwrap());
        }
    }
}

/// Whether a file has a single tensor, so that none of it is whole when that is not.
fn is_only(whole: &Archive, shard: &str) -> bool {
    let of_it = whole.tensors().filter(|tensor| {
        let stored = tensor.info().parts[0].payload.stored();
        stored.is_some_and(|(source, _)| whole.source_name(source) == Some(shard))
    });
    of_it.count() == 1
}
