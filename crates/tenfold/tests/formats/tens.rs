//! What is special to TENS, beside what every format is tested for.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tenfold::format::{Effect, Lost, Registry, Severity};
use tenfold::io::{Limits, MemoryOutput, Source};
use tenfold::model::{DType, Layout, Operation, Symmetry, TensorInfo, Value};
use tenfold::ops::{self, ConvertOptions, Sparse};
use tenfold::{Archive, ArchiveBuilder, Bytes, ErrorKind, Hint, OpenOptions, Result};

fn fixture(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tens/valid");
    fs::read(folder.join(name).with_extension("tens")).unwrap()
}

fn all_valid() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tens/valid");
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "tens")
        })
        .map(|path| {
            (
                path.file_stem().unwrap().to_str().unwrap().to_owned(),
                fs::read(&path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

fn open(bytes: &[u8]) -> Archive {
    Archive::from_bytes(bytes.to_vec()).unwrap()
}

/// A file that is not in memory, so that it is read like one.
struct Elsewhere(Vec<u8>);

impl Source for Elsewhere {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, range: std::ops::Range<u64>) -> Result<Bytes> {
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        Ok(Bytes::copy_from_slice(&self.0[range]))
    }
}

fn elsewhere(bytes: &[u8]) -> Archive {
    OpenOptions::new()
        .read(Arc::new(Elsewhere(bytes.to_vec())), None)
        .unwrap()
}

fn options(keys: &[(&str, &str)]) -> ConvertOptions {
    ConvertOptions::new()
        .allow(Effect::Dropped)
        .options(keys.iter().copied())
}

fn convert(from: &Archive, to: &str, options: &ConvertOptions) -> Result<Vec<u8>> {
    let registry = Registry::standard();
    let mut out = MemoryOutput::new();
    ops::Conversion::prepare(from, registry.get(to)?, options)?.write_to("value.out", &mut out)?;
    Ok(out.into_files().remove("value.out").unwrap())
}

fn canonical(archive: &Archive) -> Bytes {
    archive.tensors().next().unwrap().canonical().unwrap()
}

fn info(archive: &Archive) -> &TensorInfo {
    &archive.manifest().tensors[0]
}

/// A matrix in no file yet, row-major.
fn matrix(dtype: DType, n: u64, element: impl Fn(u64, u64) -> Vec<u8>) -> Archive {
    let all: Vec<u8> = (0..n * n).flat_map(|k| element(k / n, k % n)).collect();
    let mut builder = ArchiveBuilder::new();
    builder
        .push("value", dtype, &[n, n], Bytes::from(all))
        .unwrap();
    builder.finish()
}

fn complex(re: f32, im: f32) -> Vec<u8> {
    [re.to_le_bytes(), im.to_le_bytes()].concat()
}

#[allow(clippy::cast_precision_loss)]
fn number(n: u64) -> f32 {
    n as f32
}

/// Every index of a shape, the last running fastest.
fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    for &dim in shape {
        all = (all.iter())
            .flat_map(|index: &Vec<u64>| (0..dim).map(move |i| [index.as_slice(), &[i]].concat()))
            .collect();
    }
    all
}

#[test]
fn single_elements_of_every_storage_are_those_of_the_dense_tensor() {
    for (name, bytes) in all_valid() {
        for archive in [open(&bytes), elsewhere(&bytes)] {
            let tensor = archive.tensors().next().unwrap();
            let dense = tensor.canonical().unwrap();
            let width = tensor.info().dtype.width().unwrap();
            for (index, expected) in indices(&tensor.info().shape)
                .iter()
                .zip(dense.chunks(width))
            {
                assert_eq!(tensor.element(index).unwrap(), expected, "{name} {index:?}");
            }
            let outside = tensor.info().shape.to_vec();
            let error = tensor
                .element(&[outside.as_slice(), &[1]].concat())
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Argument);
            if !outside.is_empty() {
                assert!(tensor.element(&outside).is_err());
            }
        }
    }
}

#[test]
fn a_file_that_is_written_again_keeps_its_storage_symmetries_and_names() {
    for (name, bytes) in all_valid() {
        let before = open(&bytes);
        if before.version() == "0.9" {
            continue;
        }
        let after = open(&convert(&before, "tens", &ConvertOptions::default()).unwrap());
        let (old, new) = (info(&before), info(&after));
        let is = |layout: &Layout| core::mem::discriminant(layout);
        assert_eq!(is(&old.layout), is(&new.layout), "{name}");
        for key in [
            "index_names",
            "symmetries",
            "sparse_dimensions",
            "unknown_chunks",
            "storage",
        ] {
            assert_eq!(old.metadata.get(key), new.metadata.get(key), "{name} {key}");
        }
        assert_eq!(canonical(&before), canonical(&after), "{name}");
    }
}

#[test]
fn unknown_chunks_go_into_the_new_file_byte_by_byte() {
    for name in [
        "unknown_chunk",
        "unknown_chunks_several",
        "ix_unknown_chunk",
    ] {
        let bytes = fixture(name);
        for archive in [open(&bytes), elsewhere(&bytes)] {
            let again = convert(&archive, "tens", &ConvertOptions::default()).unwrap();
            assert_eq!(again, bytes, "{name}");
        }
        let mut strict = options(&[]).allow(Effect::Changed);
        let registry = Registry::standard();
        let archive = open(&bytes);
        let refused =
            ops::Conversion::prepare(&archive, registry.get("mag").unwrap(), &strict).unwrap();
        assert!(
            refused
                .losses
                .iter()
                .any(|loss| matches!(loss.what, Lost::Kept { format: "tens", .. })),
            "{name}: {:?}",
            refused.losses
        );
        strict = strict.version(Some("0.9"));
        let refused =
            ops::Conversion::prepare(&archive, registry.get("tens").unwrap(), &strict).unwrap();
        assert!(
            refused
                .losses
                .iter()
                .any(|loss| loss.effect >= Effect::Dropped),
            "{name}"
        );
    }
}

#[test]
fn symmetries_are_found_and_packed() {
    let symmetric = matrix(DType::U16, 5, |i, j| {
        (i * j + i + j).to_le_bytes()[..2].to_vec()
    });
    let antisymmetric = matrix(DType::I32, 5, |i, j| {
        (i.cast_signed() * 7 - j.cast_signed() * 7).to_le_bytes()[..4].to_vec()
    });
    let hermitian = matrix(DType::C64, 5, |i, j| {
        complex(
            number(i + j),
            number(i) - number(j)
                + if i == j {
                    0.0
                } else {
                    0.5 * (number(i) - number(j))
                },
        )
    });
    let antihermitian = matrix(DType::C64, 5, |i, j| {
        complex(number(i) - number(j), number(i + j + 1))
    });
    for (archive, operation, stored) in [
        (&symmetric, Operation::Same, 15 * 2),
        (&antisymmetric, Operation::Negate, 10 * 4),
        (&hermitian, Operation::Conjugate, 15 * 8),
        (&antihermitian, Operation::NegateConjugate, 15 * 8),
    ] {
        let named = format!("{operation}:ba");
        for pack in ["auto", &named] {
            let file = convert(archive, "tens", &options(&[("pack", pack)])).unwrap();
            let packed = open(&file);
            let expected = Symmetry::new(operation, [1, 0]);
            assert_eq!(
                info(&packed).layout,
                Layout::Packed(Box::new(expected)),
                "{pack}"
            );
            assert_eq!(info(&packed).parts[0].payload.len(), stored, "{pack}");
            assert_eq!(canonical(&packed), canonical(archive), "{pack}");
            assert!(
                crate::support::verify(&packed, 1)
                    .iter()
                    .all(|finding| finding.severity == Severity::Note)
            );
        }
    }
    let none = matrix(DType::U8, 3, |i, j| vec![(3 * i + j).to_le_bytes()[0]]);
    let dense = open(&convert(&none, "tens", &options(&[("pack", "auto")])).unwrap());
    assert_eq!(info(&dense).layout, Layout::ColumnMajor);
    let error = convert(&none, "tens", &options(&[("pack", "x:ba")])).unwrap_err();
    assert_eq!(error.rule(), "file.symmetry");
    assert!(
        error.message().contains("[1, 0]") || error.message().contains("[0, 1]"),
        "{error}"
    );
    for wrong in ["-x:ba", "y:ba", "x:ab", "x:bc", "ba"] {
        let error = convert(&none, "tens", &options(&[("pack", wrong)])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{wrong}: {error}");
    }
}

#[test]
fn zeros_of_the_other_sign_do_not_hinder_packing_and_are_told() {
    let archive = matrix(DType::F32, 3, |i, j| {
        let value = if i + j == 1 {
            0.0
        } else {
            number(i) - number(j)
        };
        value.to_le_bytes().to_vec()
    });
    let registry = Registry::standard();
    let mut out = MemoryOutput::new();
    let conversion = ops::Conversion::prepare(
        &archive,
        registry.get("tens").unwrap(),
        &options(&[("pack", "auto")]),
    );
    let report = conversion.unwrap().write_to("a.tens", &mut out).unwrap();
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    assert!(
        report.notes[0].contains("1 of its zeros"),
        "{:?}",
        report.notes
    );
}

#[test]
fn every_pair_of_dimensions_packs_from_both_orders_and_from_files() {
    let shape = [3u64, 4, 3, 2, 3];
    for (p, q) in [(0, 2), (0, 4), (2, 4)] {
        for operation in [Operation::Same, Operation::Negate] {
            // Made symmetric: the value of an index is that of its indices in order, the sign that of the exchange.
            let all: Vec<u8> = (indices(&shape).into_iter())
                .flat_map(|mut index| {
                    let negative = index[p] > index[q] && operation == Operation::Negate;
                    let diagonal = index[p] == index[q] && operation == Operation::Negate;
                    if index[p] > index[q] {
                        index.swap(p, q);
                    }
                    let value = index.iter().fold(1i64, |sum, &i| sum * 5 + i.cast_signed());
                    let value = if diagonal {
                        0
                    } else if negative {
                        -value
                    } else {
                        value
                    };
                    value.to_le_bytes()
                })
                .collect();
            let mut builder = ArchiveBuilder::new();
            builder
                .push("value", DType::I64, &shape, Bytes::from(all.clone()))
                .unwrap();
            let rows = builder.finish();
            let columns = convert(&rows, "tens", &options(&[])).unwrap();
            let mut names = *b"abcde";
            names.swap(p, q);
            let pack = format!("{operation}:{}", core::str::from_utf8(&names).unwrap());
            let first = convert(&rows, "tens", &options(&[("pack", &pack)])).unwrap();
            let second =
                convert(&elsewhere(&columns), "tens", &options(&[("pack", &pack)])).unwrap();
            assert_eq!(first, second, "{pack}");
            for packed in [open(&first), elsewhere(&first)] {
                assert!(matches!(info(&packed).layout, Layout::Packed(_)));
                assert_eq!(canonical(&packed), all.as_slice(), "{pack}");
                // Column-major, as 0.9 would have it, and big-endian.
                let mut form = tenfold::format::Form::canonical(DType::I64);
                form.order = tenfold::model::Order::ColumnMajor;
                let mut stream = Vec::new();
                let tensor = packed.tensors().next().unwrap();
                tensor
                    .stream(&form, &mut |piece| {
                        stream.extend_from_slice(piece);
                        Ok(())
                    })
                    .unwrap();
                assert_eq!(stream, columns[columns.len() - stream.len()..], "{pack}");
            }
        }
    }
}

#[test]
fn large_packed_matrices_are_expanded_in_pieces() {
    let n = 1500;
    let value = |i: u64, j: u64| (i.min(j) * 31 + i.max(j) * 17 + 1).to_le_bytes();
    let archive = matrix(DType::U64, n, |i, j| value(i, j).to_vec());
    let packed = convert(&archive, "tens", &options(&[("pack", "auto")])).unwrap();
    assert_eq!(packed.len() as u64, 48 + 24 + 16 + n * (n + 1) / 2 * 8);
    for packed in [open(&packed), elsewhere(&packed)] {
        assert_eq!(canonical(&packed), canonical(&archive));
        let element = packed
            .tensors()
            .next()
            .unwrap()
            .element(&[700, 33])
            .unwrap();
        assert_eq!(element, value(33, 700).as_slice());
    }
}

#[test]
fn integers_can_be_written_big_endian() {
    for name in [
        "dense_sint_4_le",
        "ix_SINT4_be",
        "packed_antisymmetric_SINT2_be",
        "dense_ieee_8",
    ] {
        let before = open(&fixture(name));
        let after = open(&convert(&before, "tens", &options(&[("endian", "big")])).unwrap());
        let word = after.manifest().tensors[0]
            .metadata
            .get("number_type")
            .unwrap()
            .as_str();
        let expected = if name == "dense_ieee_8" {
            "IEEE"
        } else {
            "SINT"
        };
        assert_eq!(word, Some(expected), "{name}");
        assert_eq!(canonical(&before), canonical(&after), "{name}");
    }
}

#[test]
fn lists_of_entries_are_written_without_zeros_and_kept_in_other_formats() {
    let sparse = options(&[]).sparse(Sparse::All);
    let keep = options(&[]).sparse(Sparse::Keep);
    let dense = matrix(DType::F32, 6, |i, j| {
        let value = if (i + 2 * j) % 5 == 0 {
            number(i) - 2.0
        } else {
            0.0
        };
        value.to_le_bytes().to_vec()
    });
    let count = canonical(&dense)
        .chunks(4)
        .filter(|bytes| *bytes != [0; 4])
        .count() as u64;
    let table = open(&convert(&dense, "tens", &sparse).unwrap());
    assert!(matches!(info(&table).layout, Layout::Pairs(ref pairs) if pairs.nnz == count));
    assert_eq!(canonical(&table), canonical(&dense));

    let coordinates = open(&convert(&table, "ztensor", &keep).unwrap());
    assert_eq!(info(&coordinates).layout, Layout::Coo { nnz: count });
    assert_eq!(canonical(&coordinates), canonical(&dense));
    let straight = open(&convert(&dense, "ztensor", &sparse).unwrap());
    assert_eq!(info(&straight).layout, Layout::Coo { nnz: count });
    let back = open(&convert(&coordinates, "tens", &keep).unwrap());
    assert!(matches!(info(&back).layout, Layout::Pairs(ref pairs) if pairs.nnz == count));
    assert_eq!(canonical(&back), canonical(&dense));
    let filled = open(&convert(&table, "ztensor", &options(&[])).unwrap());
    assert!(info(&filled).layout.is_dense());
    let error = convert(&dense, "mag", &sparse).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    // Nothing to keep, nothing to have: dense tensors stay.
    assert!(
        info(&open(&convert(&dense, "mag", &keep).unwrap()))
            .layout
            .is_dense()
    );

    for name in [
        "ix_packed_eightfold",
        "ix_packed_cyclic",
        "ix_packed_two_antisymmetries",
        "ix_packed_hermitian",
    ] {
        let packed = open(&fixture(name));
        let coordinates = open(&convert(&packed, "ztensor", &keep).unwrap());
        assert!(
            matches!(info(&coordinates).layout, Layout::Coo { .. }),
            "{name}"
        );
        assert_eq!(canonical(&coordinates), canonical(&packed), "{name}");
    }
    let unsorted = open(&fixture("ix_unsorted"));
    let sorted = convert(&unsorted, "tens", &options(&[])).unwrap();
    let part = &open(&sorted).manifest().tensors[0].parts[0]
        .payload
        .stored()
        .unwrap()
        .1;
    let records = &sorted[usize::try_from(part.start).unwrap()..];
    let record = 8 + info(&unsorted).dtype.width().unwrap();
    let places: Vec<u64> = (records.chunks_exact(record))
        .map(|record| u64::from_le_bytes(record[..8].try_into().unwrap()))
        .collect();
    assert!(places.len() > 2 && places.is_sorted(), "{places:?}");
}

/// A table of one entry with as many dimensions of a length, and symmetries that exchange neighbours.
fn crowd(dims: u8, length: u32, index: u64, symmetries: bool) -> Vec<u8> {
    let mut file = b"TENS\0\0\x01\0uint\x01\0\0\0\x01\0\0\0".to_vec();
    file.extend(u32::from(dims).to_le_bytes());
    file.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    let names: Vec<u8> = (0..dims).map(|k| b'!' + k).collect();
    for name in &names {
        file.extend(length.to_le_bytes());
        file.extend([*name, 0, 0, 0]);
    }
    for k in 1..usize::from(if symmetries { dims } else { 0 }) {
        let mut map = names.clone();
        map.swap(k - 1, k);
        let total = (19 + u64::from(dims)).next_multiple_of(8);
        let start = file.len();
        file.extend(b"SYMMETRY");
        file.extend(total.to_le_bytes());
        file.extend([1, 1, b'x']);
        file.extend(&map);
        file.resize(start + usize::try_from(total).unwrap(), 0);
    }
    file.extend(1u64.to_le_bytes());
    file.extend(index.to_le_bytes());
    file.push(7);
    file
}

#[test]
fn a_few_bytes_that_describe_a_giant_are_listed_and_not_expanded() {
    let giant = open(&crowd(62, 2, 0x1555_5555, false));
    assert_eq!(info(&giant).dense_len(), Some(1 << 62));
    assert!(
        crate::support::verify(&giant, 1)
            .iter()
            .all(|finding| finding.severity == Severity::Note)
    );
    let error = convert(&giant, "ztensor", &options(&[])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lossy);
    let raise = Hint::RaiseLimit {
        name: "dense_bytes",
        needed: Some(1 << 62),
    };
    assert_eq!(error.hints().get(..2), Some(&[raise, Hint::KeepSparse][..]));
    let keep = options(&[]).sparse(Sparse::Keep);
    let coordinates = open(&convert(&giant, "ztensor", &keep).unwrap());
    assert_eq!(info(&coordinates).layout, Layout::Coo { nnz: 1 });
    let again = convert(&giant, "tens", &options(&[])).unwrap();
    assert_eq!(info(&open(&again)).layout, info(&giant).layout);

    // An entry that stands for 10^17 others: listed, looked up, and not completed.
    let crowded = open(&crowd(62, 2, 0x1555_5555, true));
    let findings = crate::support::verify(&crowded, 1);
    assert!(
        findings
            .iter()
            .all(|finding| finding.severity < Severity::Error),
        "{findings:?}"
    );
    assert!(
        findings
            .iter()
            .any(|finding| finding.rule == "tens.symmetry"),
        "{findings:?}"
    );
    let small = OpenOptions::new().limits(Limits::default().tensor_memory(1 << 20));
    let crowded = small
        .read(Arc::new(Bytes::from(crowd(20, 2, 0x3ff, true))), None)
        .unwrap();
    let error = crowded.tensors().next().unwrap().canonical().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[test]
fn the_dense_limit_can_be_raised_and_lowered() {
    let bytes = fixture("ix_f64");
    let small = OpenOptions::new().limits(Limits::default().dense_bytes(8));
    let archive = small.read(Arc::new(Bytes::from(bytes)), None).unwrap();
    let error = archive.tensors().next().unwrap().canonical().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(
        convert(&archive, "ztensor", &options(&[]))
            .unwrap_err()
            .kind(),
        ErrorKind::Lossy
    );
}

#[test]
fn a_length_of_0_makes_all_others_harmless() {
    let mut file = b"TENS\0\0\x01\0IEEE\x08\0\0\0\x01\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    for (length, name) in [(u32::MAX, b'a'), (u32::MAX, b'b'), (0, b'c')] {
        file.extend(length.to_le_bytes());
        file.extend([name, 0, 0, 0]);
    }
    file.extend(b"DENSDATA\x10\0\0\0\0\0\0\0");
    let archive = open(&file);
    assert_eq!(canonical(&archive).len(), 0);
    assert!(
        crate::support::verify(&archive, 1)
            .iter()
            .all(|finding| finding.severity == Severity::Note)
    );
    assert_eq!(
        convert(&archive, "tens", &ConvertOptions::default()).unwrap(),
        file
    );
}

#[test]
fn claims_that_the_elements_do_not_keep_are_warnings() {
    let warned = |name: &str| {
        let findings = crate::support::verify(&open(&fixture(name)), 1);
        let warnings = findings
            .iter()
            .filter(|finding| finding.severity == Severity::Warning);
        warnings
            .map(|finding| finding.rule.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(warned("symmetry_unpacked_not_fulfilled"), ["tens.symmetry"]);
    assert_eq!(warned("symmetry_unpacked_symmetric"), Vec::<String>::new());
    assert_eq!(warned("symmetry_two_unpacked"), Vec::<String>::new());
    assert_eq!(
        warned("symmetry_unpacked_antisymmetric"),
        Vec::<String>::new()
    );
    assert!(warned("reserved_bits_ignored").contains(&"tens.reserved".to_owned()));
    assert_eq!(warned("v09_cc4s_structs_complex"), Vec::<String>::new());

    // A Hermitian diagonal with an imaginary part.
    let mut bytes = fixture("packed_hermitian_c128");
    let data = info(&open(&bytes)).parts[0]
        .payload
        .stored()
        .unwrap()
        .1
        .start;
    let at = usize::try_from(data).unwrap() + 8;
    bytes[at..at + 8].copy_from_slice(&1.5f64.to_le_bytes());
    let findings = crate::support::verify(&open(&bytes), 1);
    assert!(
        findings
            .iter()
            .any(|finding| finding.rule == "tens.symmetry"),
        "{findings:?}"
    );
    assert!(
        findings
            .iter()
            .all(|finding| finding.severity < Severity::Error)
    );
}

#[test]
fn what_a_file_of_cc4s_can_hold_goes_into_version_0_9() {
    let old = options(&[]).version(Some("0.9"));
    let mut before = fixture("v09_complex_f64");
    for dimension in before[32..56].chunks_mut(8) {
        // What cc4s left there from its memory.
        dimension[5] = 0;
    }
    assert_eq!(convert(&open(&before), "tens", &old).unwrap(), before);
    let upgraded = open(&convert(&open(&before), "tens", &options(&[])).unwrap());
    assert_eq!(upgraded.version(), "1.0");
    for name in ["dense_ieee_4", "dense_quaternion_f64", "dense_sint_8_le"] {
        let error = convert(&open(&fixture(name)), "tens", &old).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lossy, "{name}");
    }
    let expanded = open(&convert(&open(&fixture("packed_hermitian_c128")), "tens", &old).unwrap());
    assert_eq!(
        canonical(&expanded),
        canonical(&open(&fixture("packed_hermitian_c128")))
    );
}

#[test]
fn names_and_symmetries_survive_a_way_through_ztensor() {
    for name in [
        "names_custom",
        "names_nul_and_high_byte",
        "symmetry_two_unpacked",
        "packed_hermitian_c128",
    ] {
        let before = open(&fixture(name));
        let middle = open(&convert(&before, "ztensor", &options(&[])).unwrap());
        let after = open(&convert(&middle, "tens", &ConvertOptions::default()).unwrap());
        let (old, new) = (&info(&before).metadata, &info(&after).metadata);
        assert_eq!(old.get("index_names"), new.get("index_names"), "{name}");
        let maps = |value: Option<&Value>| match value {
            Some(Value::List(items)) => items.len(),
            _ => 0,
        };
        assert_eq!(
            maps(old.get("symmetries")),
            maps(new.get("symmetries")),
            "{name}"
        );
    }
}

#[test]
fn what_a_verification_warns_of_is_named() {
    let warnings = |name: &str| -> Vec<_> {
        let findings = crate::support::verify(&open(&fixture(name)), 1);
        assert!(
            findings
                .iter()
                .all(|finding| finding.severity < Severity::Error)
        );
        let warnings = findings.into_iter();
        warnings
            .filter(|finding| finding.severity == Severity::Warning)
            .map(|finding| (finding.rule, finding.message))
            .collect()
    };
    let padding = warnings("padding_not_zero");
    let [(rule, message)] = padding.as_slice() else {
        panic!("{padding:?}");
    };
    assert_eq!(rule, "tens.padding");
    assert_eq!(message, "padding that should be 0 is ffffff");
    for (name, at) in [
        ("packed_antisymmetric_least_integer", "element 1 "),
        ("ix_packed_least_integer", "entry 1 "),
        ("symmetry_unpacked_least_integer", "the element at [2, 0] "),
    ] {
        let mut found = warnings(name);
        let (rule, message) = found.pop().unwrap();
        assert_eq!(rule, "tens.symmetry", "{name}");
        assert!(message.contains("lowest integer"), "{name}: {message}");
        assert!(message.starts_with(at), "{name}: {message}");
        let padded = found.iter().any(|(rule, _)| rule == "tens.padding");
        let claims = name == "symmetry_unpacked_least_integer";
        assert_eq!((found.len(), padded), (claims.into(), claims), "{found:?}");
    }
    for name in [
        "padding_3",
        "packed_antisymmetric_SINT2_be",
        "ix_f32_padded_end",
    ] {
        assert_eq!(warnings(name), [], "{name}");
    }
}
