//! What is special to NumPy's formats: arrays in place, deflate, checksums, types that need a word from the user.

// A test may panic.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenfold::format::{Effect, Registry, Severity};
use tenfold::io::{AtomicOutput, MemoryOutput};
use tenfold::model::{DType, DigestKind, Payload};
use tenfold::ops::{Conversion, ConvertOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes, ErrorKind, Hint, OpenOptions, Result};

fn fixture(name: &str) -> PathBuf {
    let folder = name.rsplit_once('.').unwrap().1;
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(folder)
        .join(
            if name.starts_with("v1_descr_void_1")
                || name.starts_with("void_2")
                || name.starts_with("crc_")
            {
                "reject"
            } else {
                "valid"
            },
        )
        .join(name)
}

fn options(pairs: &[(&str, &str)]) -> ConvertOptions {
    ConvertOptions::default()
        .options(pairs.iter().copied())
        .allow(Effect::Dropped)
}

fn write(
    from: &Archive,
    format: &str,
    options: &ConvertOptions,
) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut out = MemoryOutput::new();
    let name = format!("written.{format}");
    Conversion::prepare(from, Registry::standard().get(format)?, options)?
        .write_to(&name, &mut out)?;
    Ok(out.into_files())
}

fn open(bytes: &[u8]) -> Archive {
    Archive::from_bytes(bytes.to_vec()).unwrap()
}

/// Tensors of which one is larger than a piece of work, and one cannot be compressed.
fn sample() -> Archive {
    let mut builder = ArchiveBuilder::new();
    let large: Vec<u8> = (0..5u32 << 18)
        .flat_map(|n| (n / 7).to_le_bytes())
        .collect();
    builder
        .push("large", DType::U32, &[5, 1 << 18], Bytes::from(large))
        .unwrap();
    let mut state = 1u64;
    let noise: Vec<u8> = (0..100_000)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state.to_be_bytes()[0]
        })
        .collect();
    builder
        .push("noise/größe", DType::U8, &[100_000], Bytes::from(noise))
        .unwrap();
    builder
        .push("empty", DType::F32, &[3, 0], Bytes::new())
        .unwrap();
    builder
        .push(
            "scalar",
            DType::F64,
            &[],
            Bytes::from_static(&[1, 2, 3, 4, 5, 6, 7, 8]),
        )
        .unwrap();
    builder.finish()
}

fn same_content(a: &Archive, b: &Archive) {
    assert_eq!(a.tensors().len(), b.tensors().len());
    for tensor in a.tensors() {
        let other = b.tensor(tensor.name()).unwrap();
        assert_eq!(tensor.info().shape, other.info().shape);
        assert_eq!(
            tensor.canonical().unwrap(),
            other.canonical().unwrap(),
            "{}",
            tensor.name()
        );
    }
}

#[test]
fn stored_arrays_are_read_in_place() {
    for name in ["medium.npy", "stored.npz"] {
        let whole = Bytes::from(fs::read(fixture(name)).unwrap());
        let archive = OpenOptions::new()
            .read(Arc::new(whole.clone()), Some(name))
            .unwrap();
        assert!(archive.tensors().len() > 0);
        for tensor in archive
            .tensors()
            .filter(|tensor| tensor.info().elements() > Some(0))
        {
            let Payload::Raw { range, .. } = &tensor.info().parts[0].payload else {
                panic!("{name}: {} is not raw", tensor.name());
            };
            let at = usize::try_from(range.start).unwrap();
            assert_eq!(
                tensor.stored().unwrap().as_ptr(),
                whole[at..].as_ptr(),
                "{name}"
            );
        }
    }
}

#[test]
fn stored_arrays_begin_at_multiples_of_64() {
    for (format, from) in [
        ("npz", sample()),
        ("npy", sample().select(|tensor| tensor.name == "large")),
    ] {
        let files = write(&from, format, &options(&[])).unwrap();
        let archive = open(&files[&format!("written.{format}")]);
        for tensor in archive.tensors() {
            let (_, range) = tensor.info().parts[0].payload.stored().unwrap();
            assert_eq!(range.start % 64, 0, "{format} {}", tensor.name());
        }
    }
}

#[test]
fn a_file_and_a_stream_get_the_same_bytes() {
    let from = sample();
    let directory = tempfile::tempdir().unwrap();
    for (n, options) in [options(&[]), options(&[("deflate", "1")])]
        .into_iter()
        .enumerate()
    {
        let streamed = write(&from, "npz", &options).unwrap();
        for threads in [1, 3] {
            let options = options.clone().work(tenfold::Work::new().threads(threads));
            let path = directory.path().join(format!("{n}-{threads}.npz"));
            let format = *Registry::standard().get("npz").unwrap();
            let mut out = AtomicOutput::file(&path).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            Conversion::prepare(&from, &format, &options)
                .unwrap()
                .write_to(&name, &mut out)
                .unwrap();
            assert!(
                fs::read(&path).unwrap() == streamed["written.npz"],
                "{n} with {threads} threads"
            );
        }
    }
}

#[test]
fn deflated_arrays_come_back_and_stay_deflated() {
    let from = sample();
    let deflated = |archive: &Archive| {
        let encoded = |tensor: &tenfold::Tensor<'_>| {
            matches!(tensor.info().parts[0].payload, Payload::Encoded { .. })
        };
        archive.tensors().filter(encoded).count()
    };
    let stored = write(&from, "npz", &options(&[])).unwrap();
    assert_eq!(deflated(&open(&stored["written.npz"])), 0);
    let small = write(&from, "npz", &options(&[("deflate", "6")])).unwrap();
    assert!(small["written.npz"].len() * 2 < stored["written.npz"].len());
    let archive = open(&small["written.npz"]);
    // What is empty is not made smaller.
    assert_eq!(deflated(&archive), 3);
    same_content(&from, &archive);
    let errors = crate::support::verify(&archive, 1)
        .into_iter()
        .filter(|finding| finding.severity != Severity::Note);
    assert_eq!(errors.count(), 0);

    let again = open(&write(&archive, "npz", &options(&[])).unwrap()["written.npz"]);
    assert_eq!(deflated(&again), 3);
    let raw = open(&write(&archive, "npz", &options(&[("deflate", "0")])).unwrap()["written.npz"]);
    assert_eq!(deflated(&raw), 0);
    same_content(&raw, &again);
}

#[test]
fn levels_that_do_not_exist_are_refused() {
    for level in ["10", "-1", "fast", ""] {
        let error = write(&sample(), "npz", &options(&[("deflate", level)])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{level}: {error}");
    }
}

#[test]
fn a_wrong_checksum_names_the_tensor() {
    let archive = OpenOptions::new()
        .open(fixture("crc_mismatch.npz"))
        .unwrap();
    let findings = crate::support::verify(&archive, 1);
    let error = findings
        .iter()
        .find(|finding| finding.severity == Severity::Error)
        .unwrap();
    assert_eq!(
        (error.rule.as_str(), error.tensor.as_deref()),
        ("npz.checksum", Some("a"))
    );
    let kinds = archive
        .tensors()
        .map(|tensor| tensor.info().parts[0].checksum.clone().unwrap().kind);
    assert!(kinds.into_iter().all(|kind| kind == DigestKind::Crc32));
}

/// Every byte of a member is covered, the array's header too; of a deflated one, all but bits that mean nothing.
#[test]
fn a_changed_byte_anywhere_in_a_member_is_noticed() {
    const DATA: &[u8] = &[7; 40];
    for level in ["0", "6"] {
        let mut builder = ArchiveBuilder::new();
        builder
            .push("a", DType::U8, &[40], Bytes::from_static(DATA))
            .unwrap();
        let mut files = write(&builder.finish(), "npz", &options(&[("deflate", level)])).unwrap();
        let whole = files.remove("written.npz").unwrap();
        let directory = whole
            .windows(4)
            .rposition(|bytes| bytes == b"PK\x01\x02")
            .unwrap();
        let head = whole
            .windows(6)
            .position(|bytes| bytes == b"\x93NUMPY")
            .unwrap();
        let mut unnoticed = 0;
        for place in head..directory {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x20;
            let Ok(archive) = Archive::from_bytes(damaged) else {
                continue;
            };
            let findings = crate::support::verify(&archive, 1);
            let is_error = |finding: &tenfold::format::Finding| finding.severity == Severity::Error;
            if !findings.iter().any(is_error) {
                let content = archive.tensor("a").unwrap().canonical().unwrap();
                assert_eq!(
                    content,
                    DATA,
                    "byte {place} of {} at level {level}",
                    whole.len()
                );
                unnoticed += 1;
            }
        }
        // Bits between a block's end and the next byte.
        let most = if level == "0" { 0 } else { 3 };
        assert!(unnoticed <= most, "{unnoticed} at level {level}");
    }
}

#[test]
fn bytes_without_a_type_are_what_the_user_says() {
    for (name, dtype, guess) in [
        ("v1_descr_void_1.npy", DType::F8_E4M3, "8-bit floats"),
        ("void_2.npy", DType::BF16, "bfloat16"),
    ] {
        let error = OpenOptions::new().open(fixture(name)).err().unwrap();
        assert_eq!(
            (error.rule(), error.kind()),
            ("npy.void", ErrorKind::Unsupported)
        );
        assert!(error.message().contains(guess), "{error}");
        assert_eq!(error.hints(), [Hint::Assume(Some(dtype))]);
        let archive = OpenOptions::new()
            .assume_dtype(Some(dtype))
            .open(fixture(name))
            .unwrap();
        assert_eq!(archive.tensors().next().unwrap().info().dtype, dtype);
        assert!(
            OpenOptions::new()
                .assume_dtype(Some(DType::F64))
                .open(fixture(name))
                .is_err()
        );
    }
}

#[test]
fn arrays_behind_the_first_are_reported() {
    let archive = OpenOptions::new()
        .open(fixture("appended_arrays.npy"))
        .unwrap();
    assert_eq!(archive.tensors().len(), 1);
    let finding = &archive.findings()[0];
    assert_eq!(
        (finding.severity, finding.rule.as_str()),
        (Severity::Warning, "npy.trailing")
    );
    assert!(
        finding
            .message
            .contains("2 more arrays, f64 [2, 3], bool []"),
        "{}",
        finding.message
    );
    assert!(
        OpenOptions::new()
            .strict(true)
            .open(fixture("appended_arrays.npy"))
            .is_err()
    );
}

#[test]
fn names_that_numpy_would_confuse_must_be_allowed() {
    let mut builder = ArchiveBuilder::new();
    builder
        .push("x", DType::U8, &[1], Bytes::from_static(&[1]))
        .unwrap();
    builder
        .push("x.npy", DType::U8, &[1], Bytes::from_static(&[2]))
        .unwrap();
    let archive = builder.finish();
    let error = write(&archive, "npz", &ConvertOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lossy);
    assert!(error.message().contains("\"x.npy\""), "{error}");
    let files = write(&archive, "npz", &options(&[])).unwrap();
    let again = open(&files["written.npz"]);
    assert_eq!(again.tensor("x.npy").unwrap().canonical().unwrap(), [2][..]);
}

/// Members that are no arrays have no place in any file; a directory is no member that could be missed.
#[test]
fn members_that_are_left_out_are_a_loss() {
    for (name, lost) in [
        (
            "other_member.npz",
            vec!["notes.txt", "__MACOSX/._a.npy.txt"],
        ),
        ("member_without_extension.npz", vec!["notes", "short"]),
        ("no_member_with_extension.npz", vec![]),
    ] {
        let archive = Archive::open(fixture(name)).unwrap();
        for format in ["npz", "safetensors"] {
            let entry = *Registry::standard().get(format).unwrap();
            let conversion =
                Conversion::prepare(&archive, &entry, &ConvertOptions::default()).unwrap();
            let dropped = conversion.losses.iter();
            let dropped: Vec<_> = dropped
                .filter(|loss| loss.effect == Effect::Dropped)
                .map(|loss| loss.what.to_string())
                .collect();
            let expected: Vec<_> = lost.iter().map(|name| format!("npz {name:?}")).collect();
            assert_eq!(dropped, expected, "{name}");
            assert_eq!(
                conversion.refuse_losses().is_ok(),
                lost.is_empty(),
                "{name}"
            );
            let names = |archive: &Archive| {
                let mut names: Vec<_> = archive
                    .tensors()
                    .map(|tensor| tensor.name().to_owned())
                    .collect();
                names.sort();
                names
            };
            let files = write(&archive, format, &options(&[])).unwrap();
            assert_eq!(
                names(&open(&files[&format!("written.{format}")])),
                names(&archive)
            );
        }
    }
}

/// An archive that was cut off: what begins like an array is one there too.
#[test]
fn an_array_without_the_extension_is_salvaged() {
    let whole = fs::read(fixture("member_without_extension.npz")).unwrap();
    // Within the local header of the member behind the first two: both are whole.
    let second = whole
        .windows(5)
        .position(|bytes| bytes == b"b.npy")
        .unwrap();
    let third = whole
        .windows(2)
        .skip(second)
        .position(|bytes| bytes == b"d/")
        .unwrap()
        + second;
    let cut = Bytes::from(whole[..third].to_vec());
    let mut options = OpenOptions::new();
    let error = options.read(Arc::new(cut.clone()), None).unwrap_err();
    assert!(
        error
            .message()
            .contains("2 arrays are complete: \"a\", \"b\""),
        "{error}"
    );
    options = options.salvage(true);
    let archive = options.read(Arc::new(cut), None).unwrap();
    let names: Vec<_> = archive.tensors().map(|tensor| tensor.name()).collect();
    assert_eq!(names, ["a", "b"]);
    let a = archive.tensor("a").unwrap().canonical().unwrap();
    assert_eq!(a, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0][..]);
}

#[test]
fn types_that_numpy_has_no_name_for_are_reported_or_refused() {
    let of = |dtype: DType| {
        let len = 2 * dtype.width().unwrap();
        let mut builder = ArchiveBuilder::new();
        builder
            .push("a", dtype, &[2], Bytes::from(vec![0; len]))
            .unwrap();
        builder.finish()
    };
    let careful = ConvertOptions::default();
    for format in ["npy", "npz"] {
        let entry = *Registry::standard().get(format).unwrap();
        for (dtype, told) in [(DType::BF16, "<V2"), (DType::F8_E5M2, "does not load")] {
            let conversion = Conversion::prepare(&of(dtype), &entry, &careful).unwrap();
            assert_eq!(conversion.losses.len(), 1);
            assert!(
                conversion.losses[0].why.contains(told),
                "{}",
                conversion.losses[0]
            );
            let files = write(&of(dtype), format, &careful).unwrap();
            let back = open(&files[&format!("written.{format}")]);
            assert_eq!(back.tensors().next().unwrap().info().dtype, dtype);
        }
        assert!(
            Conversion::prepare(&of(DType::F32), &entry, &careful)
                .unwrap()
                .losses
                .is_empty()
        );
        let error = write(&of(DType::F8_E4M3), format, &careful).unwrap_err();
        assert!(error.message().contains("f8_e4m3"), "{error}");
        assert!(error.hints().contains(&Hint::Cast(None)), "{error}");
    }
}
