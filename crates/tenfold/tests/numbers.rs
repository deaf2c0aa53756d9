//! `stats` and `diff`: the same for any number of threads and for any way of storing, for every fixture.

// A test may panic.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod support;

use support::{InMemory, Kind, cases, file_name, options_for, profiles, write_to_memory};
use tenfold::format::Compression;
use tenfold::model::{DType, Layout, Part, Payload, Role, TensorInfo};
use tenfold::ops::{self, ChangeKind, DiffOptions, StatsOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes};

/// Several chunks of numbers, with some that are not finite.
fn noise(change: bool) -> Archive {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        u32::try_from(state >> 40).unwrap()
    };
    let mut builder = ArchiveBuilder::new();
    for (name, count) in [("small", 100), ("large", 700_001), ("larger", 1_000_000)] {
        let mut values: Vec<f32> = (0..count)
            .map(|_| (next() % 4096) as f32 / 16.0 - 100.0)
            .collect();
        values[7] = f32::NAN;
        if change {
            *values.last_mut().unwrap() += 0.5;
            values[count / 2] += 0.25;
        }
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        builder
            .push(name, DType::F32, &[count as u64], Bytes::from(bytes))
            .unwrap();
    }
    builder.finish()
}

fn figures(archive: &Archive, threads: usize) -> (Vec<ops::Stats>, ops::Stats) {
    let options = StatsOptions::default()
        .work(tenfold::Work::new().threads(threads))
        .bins(Some(9));
    let found = ops::stats(archive, &options).unwrap();
    let tensors = found.tensors.into_iter().map(|(_, stats)| stats.unwrap());
    (tensors.collect(), found.total)
}

#[test]
fn figures_are_the_same_on_any_number_of_threads() {
    let archive = noise(false);
    let wanted = figures(&archive, 1);
    for threads in [2, 3, 8] {
        assert_eq!(figures(&archive, threads), wanted, "{threads}");
    }
}

#[test]
fn figures_are_the_same_however_the_numbers_are_stored() {
    let archive = noise(false);
    let wanted = figures(&archive, 2);
    let mut compressed = 0;
    for (entry, profile) in profiles() {
        for zstd in [false, true] {
            if !(profile.can.dtype)(DType::F32) || zstd && !profile.can.zstd {
                continue;
            }
            let mut options = options_for(profile);
            if zstd {
                compressed += 1;
                options = options.compression(|_| Compression::Zstd(1));
            }
            let Ok(written) = write_to_memory(&archive, &entry, &options) else {
                continue;
            };
            let opened = InMemory::written(written, &file_name(&entry))
                .open()
                .unwrap();
            if opened.tensors().len() != wanted.0.len() {
                continue;
            }
            let what = format!("{} {} {zstd}", entry.spec.id, profile.version);
            let found = figures(&opened, 3);
            for (tensor, found) in opened.tensors().zip(&found.0) {
                let place = archive.tensors().position(|of| of.name() == tensor.name());
                assert_eq!(*found, wanted.0[place.unwrap()], "{what}");
            }
            // MATLAB has no vectors, only matrices of one row.
            if opened.tensors().any(|tensor| tensor.info().shape.len() > 1) {
                assert_eq!(entry.spec.id, "mat", "{what}");
                continue;
            }
            let ignoring = DiffOptions::default().ignore_metadata(true);
            let diff = ops::diff(&archive, &opened, &ignoring).unwrap();
            assert!(diff.is_equal(), "{what}: {:?}", diff.changes);
        }
    }
    assert!(compressed > 0);
}

#[test]
fn differences_are_the_same_on_any_number_of_threads() {
    let (a, b) = (noise(false), noise(true));
    let found = |threads| {
        let options = DiffOptions::default().work(tenfold::Work::new().threads(threads));
        let diff = ops::diff(&a, &b, &options).unwrap();
        let values = |change: ops::Change| match change.kind {
            ChangeKind::Changed(Some(values)) => values,
            other => panic!("{other:?}"),
        };
        diff.changes.into_iter().map(values).collect::<Vec<_>>()
    };
    let wanted = found(1);
    assert_eq!(wanted.len(), 3);
    for values in &wanted {
        assert_eq!((values.different, values.max_abs), (2, Some(0.5)));
    }
    assert_eq!(wanted[1].first.as_ref().unwrap().index, [350_000]);
    for threads in [2, 5] {
        assert_eq!(found(threads), wanted);
    }
}

#[test]
fn every_fixture_equals_itself_and_has_figures() {
    let mut tensors = 0;
    for case in cases(Kind::Valid) {
        let Ok(archive) = case.open() else { continue };
        let diff = ops::diff(&archive, &archive, &DiffOptions::default()).unwrap();
        for change in &diff.changes {
            // Only what cannot be read is not known to be equal.
            assert!(
                matches!(change.kind, ChangeKind::Unreadable { .. }),
                "{}: {change:?}",
                case.title()
            );
        }
        assert!(
            diff.metadata.is_empty(),
            "{}: {:?}",
            case.title(),
            diff.metadata
        );
        let found = ops::stats(&archive, &StatsOptions::default()).unwrap();
        for (tensor, (name, stats)) in archive.tensors().zip(&found.tensors) {
            let Ok(stats) = stats else { continue };
            tensors += 1;
            let counted = stats.finite + stats.nans + stats.infinities();
            assert_eq!(counted, stats.numbers, "{}: {name}", case.title());
            assert_eq!(
                Some(stats.elements),
                tensor.info().elements(),
                "{}: {name}",
                case.title()
            );
        }
    }
    assert!(tensors > 100);
}

/// A sparse tensor of one dimension.
fn sparse(name: &str, dtype: DType, elements: u64, entries: &[(u64, Vec<u8>)]) -> TensorInfo {
    let nnz = entries.len() as u64;
    let values = entries.iter().flat_map(|(_, value)| value.clone());
    let coords = entries.iter().flat_map(|(place, _)| place.to_le_bytes());
    let mut info = TensorInfo::new(name, dtype, vec![elements], Layout::Coo { nnz });
    info.parts = vec![
        Part::new(Role::Values, dtype, Payload::Inline(values.collect())),
        Part::new(Role::Coords, DType::U64, Payload::Inline(coords.collect())),
    ]
    .into();
    info
}

/// Entries far apart and close together, in the first block and in the last, and some that are 0 or not finite.
#[test]
fn zeros_of_a_sparse_tensor_are_counted_as_if_they_were_stored() {
    let (block, chunk) = (4096, 32 * 4096);
    let places = [
        0,
        1,
        7,
        block,
        5 * block - 1,
        chunk + 3,
        9 * chunk - 1,
        40 * chunk + 100,
    ];
    let floats = [
        0.1f32,
        -0.0,
        f32::NAN,
        1e-40,
        -3.5,
        f32::INFINITY,
        0.3,
        7.25,
    ];
    let (mut stored, mut listed) = (ArchiveBuilder::new(), ArchiveBuilder::new());
    for (name, elements) in [
        ("many", 40 * chunk + 101),
        ("whole", 10 * chunk),
        ("few", 9),
        ("one chunk", chunk),
        ("zeros", 17 * chunk + 5),
    ] {
        for dtype in [DType::F32, DType::F64, DType::U8, DType::I64, DType::C64] {
            let value = |float: f32| match dtype {
                DType::F32 => float.to_le_bytes().to_vec(),
                DType::F64 => f64::from(float).to_le_bytes().to_vec(),
                DType::U8 => vec![float.to_le_bytes()[2]],
                DType::I64 => i64::from(float.to_bits()).to_le_bytes().to_vec(),
                _ => [float, -float]
                    .iter()
                    .flat_map(|f| f.to_le_bytes())
                    .collect(),
            };
            let pairs = places.iter().zip(floats);
            let entries: Vec<_> = (pairs.map(|(&place, float)| (place, value(float))))
                .filter(|(place, _)| *place < elements && name != "zeros")
                .collect();
            let name = format!("{name} {dtype}");
            let info = sparse(&name, dtype, elements, &entries);
            let width = dtype.width().unwrap();
            let mut bytes = vec![0; usize::try_from(elements).unwrap() * width];
            for (place, value) in &entries {
                let at = usize::try_from(*place).unwrap() * width;
                bytes[at..at + width].copy_from_slice(value);
            }
            listed.push_info(info).unwrap();
            stored
                .push(name, dtype, &[elements], Bytes::from(bytes))
                .unwrap();
        }
    }
    let expected = figures(&stored.finish(), 2);
    let listed = listed.finish();
    for threads in [1, 3] {
        assert_eq!(figures(&listed, threads), expected, "{threads} threads");
    }
}

/// 256 GiB of zeros, which would take minutes.
#[test]
fn a_sparse_bomb_is_counted_without_being_expanded() {
    let elements = 16 << 30;
    let mut builder = ArchiveBuilder::new();
    for n in 0..16 {
        let entries = [(n << 29, vec![2])];
        let info = sparse(&n.to_string(), DType::U8, elements, &entries);
        builder.push_info(info).unwrap();
    }
    let (found, total) = figures(&builder.finish(), 2);
    for stats in found {
        assert_eq!((stats.numbers, stats.zeros), (elements, elements - 1));
        assert_eq!(stats.mean, Some(2.0 / elements as f64));
        assert_eq!(stats.max, Some(ops::Number::Signed(2)));
        let counts = stats.histogram.unwrap().counts;
        assert_eq!((counts[0], counts[8]), (elements - 1, 1));
    }
    assert_eq!(
        (total.elements, total.zeros),
        (16 * elements, 16 * (elements - 1))
    );
}
