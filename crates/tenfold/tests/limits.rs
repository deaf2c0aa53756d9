//! What a file may ask for can be set, and a refusal says by which limit it is and how to raise it.

// A test may panic and print.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod support;

use std::collections::BTreeSet;

use support::{InMemory, Kind, cases, file_name, handled, options_for, profiles, write_to_memory};
use tenfold::io::Limits;
use tenfold::model::{DType, Layout, Part, Payload, Role, TensorInfo};
use tenfold::{ArchiveBuilder, Error, ErrorKind, Hint, OpenOptions};

/// Whether it is refused for a limit; then by its name, and with what is needed where that is known.
fn is_limit(error: &Error, limit: &str, title: &str) -> bool {
    if error.kind() != ErrorKind::Limit {
        return false;
    }
    let is_raised = |hint: &Hint| matches!(hint, Hint::RaiseLimit { name, .. } if *name == limit);
    assert!(error.hints().iter().any(is_raised), "{title}: {error}");
    true
}

/// What is needed at least, where it is said.
fn needed(error: &Error) -> Option<u64> {
    error.hints().iter().find_map(|hint| match hint {
        Hint::RaiseLimit { needed, .. } => *needed,
        _ => None,
    })
}

fn with(name: &str, value: u64) -> OpenOptions {
    let limits = Limits::default();
    let size = usize::try_from(value).unwrap();
    OpenOptions::new().limits(match name {
        "header_bytes" => limits.header_bytes(value),
        "rank" => limits.rank(size),
        "depth" => limits.depth(size),
        "tensor_memory" => limits.tensor_memory(value),
        "dense_bytes" => limits.dense_bytes(value),
        _ => panic!("there is no limit {name}"),
    })
}

/// The formats of which some file is refused.
fn refused(name: &str, value: u64) -> BTreeSet<&'static str> {
    let options = with(name, value);
    let mut formats = BTreeSet::new();
    for case in cases(Kind::Valid) {
        let title = case.title();
        let errors: Vec<Error> = match options.open(&case.path) {
            Err(error) => vec![error],
            Ok(archive) => (archive.tensors())
                .filter_map(|tensor| tensor.info().defect.clone())
                .collect(),
        };
        if errors.iter().any(|error| is_limit(error, name, &title)) {
            formats.insert(case.format);
        }
    }
    formats
}

fn all() -> BTreeSet<&'static str> {
    handled().iter().map(|entry| entry.spec.id).collect()
}

#[test]
fn no_format_gives_a_tensor_of_more_dimensions_than_the_limit() {
    for limit in [0, 1, 2] {
        let options = with("rank", limit);
        for case in cases(Kind::Valid) {
            let Ok(archive) = options.open(&case.path) else {
                continue;
            };
            let rank = archive.tensors().map(|tensor| tensor.info().shape.len());
            assert!(rank.max().unwrap_or(0) as u64 <= limit, "{}", case.title());
        }
    }
    assert_eq!(refused("rank", 0), all());
}

#[test]
fn a_limit_that_is_raised_as_a_refusal_says_is_not_in_the_way_again() {
    let mut raised = BTreeSet::new();
    for (name, value) in [("rank", 0), ("header_bytes", 1), ("depth", 0)] {
        for case in cases(Kind::Valid) {
            let mut limit = value;
            // There may be more than one of a kind in a file, and each asks for more.
            while let Err(error) = with(name, limit).open(&case.path) {
                let Some(needed) = needed(&error) else { break };
                assert!(needed > limit, "{}: {error}", case.title());
                limit = needed;
                raised.insert(name);
            }
        }
    }
    assert_eq!(raised, BTreeSet::from(["depth", "header_bytes", "rank"]));
}

#[test]
fn headers_are_limited_in_every_format_whose_headers_can_grow() {
    // An array's header has 10 000 bytes at most; that of TENS grows with dimensions, which have a limit of their own.
    let mut expected = all();
    expected.retain(|format| !["npy", "tens"].contains(format));
    assert_eq!(refused("header_bytes", 1), expected);
}

#[test]
fn nesting_is_limited_where_formats_nest() {
    assert!(refused("depth", 1).len() >= 3, "{:?}", refused("depth", 1));
}

#[test]
fn sparse_and_compressed_tensors_are_limited_when_they_are_read() {
    for (name, least) in [("tensor_memory", 3), ("dense_bytes", 2)] {
        let options = with(name, 1);
        let mut formats = BTreeSet::new();
        for case in cases(Kind::Valid) {
            let Ok(archive) = options.open(&case.path) else {
                continue;
            };
            for tensor in archive.tensors() {
                let read = tensor.canonical();
                if read.is_err_and(|error| is_limit(&error, name, &case.title())) {
                    formats.insert(case.format);
                }
            }
        }
        assert!(formats.len() >= least, "{name}: {formats:?}");
    }
}

/// A file with tensors of one entry each, that are as many bytes densely.
fn sparse_file(lengths: &[u64]) -> Option<InMemory> {
    let mut builder = ArchiveBuilder::new();
    for (n, &len) in lengths.iter().enumerate() {
        let layout = Layout::Coo { nnz: 1 };
        let mut info = TensorInfo::new(format!("t{n}"), DType::U8, vec![len], layout);
        let part = |role, dtype, bytes: &'static [u8]| {
            Part::new(role, dtype, Payload::Inline(bytes.into()))
        };
        info.parts = vec![
            part(Role::Values, DType::U8, &[7]),
            part(Role::Coords, DType::U64, &[0; 8]),
        ]
        .into();
        builder.push_info(info).unwrap();
    }
    let mut sparse = profiles().into_iter();
    let (entry, profile) =
        sparse.find(|(_, profile)| (profile.can.layout)(&Layout::Coo { nnz: 1 }))?;
    let files = write_to_memory(&builder.finish(), &entry, &options_for(profile)).unwrap();
    Some(InMemory::written(files, &file_name(&entry)))
}

/// Each of them may be expanded, but not all of them.
#[test]
fn the_sparse_tensors_of_a_file_are_digested_up_to_a_limit_for_all_of_them() {
    let Some(file) = sparse_file(&[600, 500, 400, 2000, 1]) else {
        return;
    };
    let archive = file.open_with(&with("dense_bytes", 1000)).unwrap();
    for threads in [1, 3] {
        let digests = support::digest(&archive, threads);
        assert_eq!(digests.content, None);
        let refused: Vec<_> = (digests.tensors.iter())
            .filter(|(name, sum)| {
                let error = sum.as_ref().err();
                error.is_some_and(|error| is_limit(error, "dense_bytes", name))
            })
            .map(|(name, _)| name.as_str())
            .collect();
        // What still fits behind those that do not is digested.
        assert_eq!(refused, ["t1", "t3", "t4"]);
    }
    let digests = support::digest(&file.open_with(&with("dense_bytes", 3501)).unwrap(), 0);
    assert!(digests.content.is_some());
}
