//! What is special to Magnetron `.mag`, beside what every format is tested for.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use tenfold::format::{Effect, Registry, Severity};
use tenfold::io::MemoryOutput;
use tenfold::model::{DType, Value};
use tenfold::ops::{self, ConvertOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes, ErrorKind, OpenOptions, Result};

const VERSIONS: [&str; 5] = [
    "spec-1",
    "archive-1",
    "snapshot-0.1.0",
    "snapshot-0.2.0",
    "snapshot-0.3.0",
];

fn fixtures(kind: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/mag")
        .join(kind)
}

fn valid(name: &str) -> Vec<u8> {
    fs::read(fixtures("valid").join(name).with_extension("mag")).unwrap()
}

fn all_valid() -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(fixtures("valid"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "mag"))
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

fn open(bytes: &[u8]) -> Result<Archive> {
    Archive::from_bytes(bytes.to_vec())
}

fn refused(bytes: &[u8]) -> String {
    match open(bytes) {
        Ok(_) => panic!("should be refused"),
        Err(error) => error.rule().to_owned(),
    }
}

fn options(version: &str) -> ConvertOptions {
    ConvertOptions::default().version(Some(version)).check(true)
}

fn write(archive: &Archive, options: &ConvertOptions) -> Result<Vec<u8>> {
    let registry = Registry::standard();
    let conversion = ops::Conversion::prepare(archive, registry.get("mag")?, options)?;
    conversion.refuse_losses()?;
    let mut output = MemoryOutput::new();
    conversion.write_to("out.mag", &mut output)?;
    Ok(output.into_files().remove("out.mag").unwrap())
}

fn content(archive: &Archive) -> [u8; 32] {
    crate::support::digest(archive, 1).content.unwrap()
}

fn one_tensor(name: &str, dtype: DType, shape: &[u64]) -> ArchiveBuilder {
    let len = shape.iter().product::<u64>() * dtype.width().unwrap() as u64;
    let data: Vec<u8> = (0..len).map(|byte| (byte % 2) as u8).collect();
    let mut builder = ArchiveBuilder::new();
    builder.push(name, dtype, shape, Bytes::from(data)).unwrap();
    builder
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes
        .windows(what.len())
        .position(|window| window == what)
        .unwrap()
}

#[test]
fn every_file_comes_back_from_every_layout_that_holds_it() {
    for (name, bytes) in all_valid() {
        let archive = open(&bytes).unwrap();
        let mut held = 0;
        for version in VERSIONS {
            let Ok(written) = write(&archive, &options(version)) else {
                continue;
            };
            held += 1;
            let back = open(&written).unwrap();
            assert_eq!(content(&back), content(&archive), "{name} as {version}");
            assert_eq!(
                format!("{:?}", back.metadata()),
                format!("{:?}", archive.metadata()),
                "{name} as {version}"
            );
            let names = |archive: &Archive| -> Vec<String> {
                archive
                    .tensors()
                    .map(|tensor| tensor.name().to_owned())
                    .collect()
            };
            assert_eq!(names(&back), names(&archive), "{name} as {version}");
            if archive.tensors().len() > 0 {
                assert_eq!(back.version(), version, "{name}");
            }
            assert_eq!(
                write(&archive, &options(version)).unwrap(),
                written,
                "{name} as {version}"
            );
        }
        if name == "snap030_own_rank_65" {
            assert_eq!(held, 0, "17 dimensions and more are read, not written");
            continue;
        }
        // Its own layout, and snapshot-0.3.0, which holds everything but 17 dimensions.
        assert!(held >= 1, "{name} fits no layout");
        if archive.version() != "1" && !name.contains("zero_dim_real_reader_refuses") {
            let own = write(&archive, &options(archive.version())).unwrap();
            assert_eq!(open(&own).unwrap().version(), archive.version(), "{name}");
        }
        write(&archive, &options("snapshot-0.3.0")).unwrap();
    }
}

#[test]
fn what_is_written_has_no_warning() {
    for (name, bytes) in all_valid() {
        let archive = open(&bytes).unwrap();
        for version in VERSIONS {
            let Ok(written) = write(&archive, &options(version)) else {
                continue;
            };
            let findings = crate::support::verify(&open(&written).unwrap(), 1);
            let bad: Vec<_> = findings
                .iter()
                .filter(|finding| finding.severity > Severity::Note)
                .collect();
            assert!(bad.is_empty(), "{name} as {version}: {bad:?}");
        }
    }
}

#[test]
fn real_files_have_no_warning_but_the_known_ones() {
    for (name, bytes) in all_valid() {
        let findings = crate::support::verify(&open(&bytes).unwrap(), 1);
        let rules: Vec<_> = findings
            .iter()
            .filter(|finding| finding.severity > Severity::Note)
            .map(|finding| finding.rule.as_str())
            .collect();
        let expected: &[&str] = match name.as_str() {
            _ if name.starts_with("spec_crc_") => &["mag.checksum"],
            "snap020_zero_dim_real_reader_refuses" => &["mag.zero-elements"],
            // Bytes behind the data that hold something.
            "snap030_own_indented_manifest_and_trailing_bytes" => &["mag.unclaimed"],
            "archive_crafted_to_look_like_spec" => &["mag.unclaimed"],
            _ => &[],
        };
        assert_eq!(rules, expected, "{name}: {findings:?}");
    }
}

/// Tensors in the order of the pool, which a real writer's descriptors do not have unless there is only one.
#[test]
fn files_of_real_writers_are_written_again_byte_for_byte() {
    for name in [
        "snap010_rank_16",
        "snap010_transposed_source",
        "snap010_empty",
        "snap020_empty",
    ] {
        let bytes = valid(name);
        let archive = open(&bytes).unwrap();
        let options = options(archive.version())
            .timestamp(u64::from_le_bytes(bytes[8..16].try_into().unwrap()));
        assert_eq!(write(&archive, &options).unwrap(), bytes, "{name}");
    }
    for (name, bytes) in all_valid() {
        let real = name.starts_with("snap030_") && !name.contains("_own_");
        if !real {
            continue;
        }
        // The time has microseconds there, and the release is that of the writer.
        let ours = write(&open(&bytes).unwrap(), &options("snapshot-0.3.0")).unwrap();
        let manifest = |bytes: &[u8]| {
            let end = 44
                + usize::try_from(u64::from_le_bytes(bytes[20..28].try_into().unwrap())).unwrap();
            let text = String::from_utf8(bytes[44..end].to_vec()).unwrap();
            text[text.find("\"snapshot_ver\"").unwrap()..].to_owned()
        };
        assert_eq!(manifest(&ours), manifest(&bytes), "{name}");
        let blob = |bytes: &[u8]| {
            let at =
                usize::try_from(u64::from_le_bytes(bytes[28..36].try_into().unwrap())).unwrap();
            bytes[at..].to_vec()
        };
        assert!(blob(&ours) == blob(&bytes), "{name}");
    }
    for name in [
        "spec_all_dtypes",
        "spec_many",
        "spec_zero_dims",
        "spec_scalar",
        "spec_metadata_untyped",
    ] {
        let bytes = valid(name);
        assert!(
            write(&open(&bytes).unwrap(), &options("spec-1")).unwrap() == bytes,
            "{name}"
        );
    }
}

#[test]
fn the_matching_reading_of_the_checksum_is_named() {
    let readings = [
        ("spec_all_dtypes", Severity::Note, "CRC-32C of bytes 12"),
        (
            "spec_crc_crc32_after_field",
            Severity::Warning,
            "CRC-32 of bytes 12",
        ),
        (
            "spec_crc_crc32_with_zeroed_field",
            Severity::Warning,
            "CRC-32 of header and records with the field as 0",
        ),
        (
            "spec_crc_crc32c_with_zeroed_field",
            Severity::Warning,
            "CRC-32C of header and records with the field as 0",
        ),
        (
            "spec_crc_crc32_without_field",
            Severity::Warning,
            "CRC-32 of header and records without the field",
        ),
        (
            "spec_crc_crc32c_without_field",
            Severity::Warning,
            "CRC-32C of header and records without the field",
        ),
    ];
    for (name, severity, text) in readings {
        let archive = open(&valid(name)).unwrap();
        let finding = archive
            .findings()
            .iter()
            .find(|finding| finding.rule == "mag.checksum")
            .unwrap();
        assert_eq!(finding.severity, severity, "{name}");
        assert!(
            finding.message.contains(&format!("right: {text}")),
            "{name}: {}",
            finding.message
        );
        let strict = OpenOptions::new()
            .strict(true)
            .read(Arc::new(Bytes::from(valid(name))), None);
        assert_eq!(strict.is_ok(), severity == Severity::Note, "{name}");
    }
}

#[test]
fn the_reading_of_the_checksum_that_is_written_can_be_chosen() {
    let with = |word: &str, version: &str| options(version).option("checksum", word);
    // Each of these was made with one of them.
    for (word, name) in [
        ("crc32c-behind", "spec_all_dtypes"),
        ("crc32c-zeroed", "spec_crc_crc32c_with_zeroed_field"),
        ("crc32c-without", "spec_crc_crc32c_without_field"),
        ("crc32-behind", "spec_crc_crc32_after_field"),
        ("crc32-zeroed", "spec_crc_crc32_with_zeroed_field"),
        ("crc32-without", "spec_crc_crc32_without_field"),
    ] {
        let bytes = valid(name);
        let archive = open(&bytes).unwrap();
        assert!(
            write(&archive, &with(word, "spec-1")).unwrap() == bytes,
            "{name}"
        );
    }
    let archive = one_tensor("a", DType::F32, &[2]).finish();
    let usual = write(&archive, &options("spec-1")).unwrap();
    assert!(write(&archive, &with("crc32c-behind", "spec-1")).unwrap() == usual);
    for (word, version) in [
        ("crc32", "spec-1"),
        ("crc32-zeroed", "archive-1"),
        ("crc32c-behind", "snapshot-0.3.0"),
    ] {
        let error = write(&archive, &with(word, version)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    }
}

#[test]
fn a_key_that_is_too_long_is_refused_with_the_limit() {
    let bytes = fs::read(fixtures("reject").join("spec_key_too_long.mag")).unwrap();
    for bytes in [&bytes[..], &bytes[..1000]] {
        let error = open(bytes).err().unwrap();
        assert!(error.message().contains("at most 65535 bytes"), "{error}");
    }
    let long = one_tensor(&"k".repeat(65536), DType::F32, &[2]).finish();
    let error = write(&long, &options("spec-1")).err().unwrap();
    assert!(error.message().contains("at most 65535 bytes"), "{error}");
}

#[test]
fn a_wrong_checksum_is_a_warning_for_those_who_ask_for_it() {
    for name in [
        "spec_bad_checksum",
        "archive_bad_checksum",
        "snap010_bad_checksum",
        "snap020_bad_checksum",
    ] {
        let bytes =
            Bytes::from(fs::read(fixtures("reject").join(name).with_extension("mag")).unwrap());
        let error = open(&bytes).err().unwrap();
        assert_eq!(
            (error.kind(), error.rule()),
            (ErrorKind::Mismatch, "mag.checksum"),
            "{name}"
        );
        let archive = OpenOptions::new()
            .checksums(false)
            .read(Arc::new(bytes), None)
            .unwrap();
        assert!(
            archive
                .findings()
                .iter()
                .any(|f| f.severity == Severity::Warning && f.rule == "mag.checksum"),
            "{name}"
        );
    }
}

#[test]
fn the_layouts_of_version_1_are_told_apart() {
    for len in [
        1, 2, 255, 256, 257, 258, 259, 511, 512, 513, 768, 1024, 1280, 1536, 1792, 65535,
    ] {
        for dtype in [DType::F32, DType::F16, DType::BOOL, DType::I32] {
            for rank in 1..=5 {
                let archive = one_tensor(&"k".repeat(len), dtype, &vec![1; rank]).finish();
                for version in ["spec-1", "archive-1"] {
                    let written = write(&archive, &options(version)).unwrap();
                    assert_eq!(
                        open(&written).unwrap().version(),
                        version,
                        "{len} {dtype} {rank}"
                    );
                }
            }
        }
    }
}

#[test]
fn without_tensors_the_label_is_1_unless_only_one_layout_can_be_it() {
    assert_eq!(open(&valid("spec_empty")).unwrap().version(), "1");
    let mut builder = ArchiveBuilder::new();
    builder.metadata().push("lr", Value::F64(0.5));
    let doubles = builder.finish();
    assert_eq!(
        write(&doubles, &options("spec-1")).unwrap(),
        write(&doubles, &options("archive-1")).unwrap()
    );
    assert_eq!(
        open(&write(&doubles, &options("spec-1")).unwrap())
            .unwrap()
            .version(),
        "1"
    );
    let mut builder = ArchiveBuilder::new();
    builder.metadata().push("epoch", Value::I64(3));
    let whole = builder.finish();
    assert_eq!(
        open(&write(&whole, &options("spec-1")).unwrap())
            .unwrap()
            .version(),
        "spec-1"
    );
    assert_eq!(
        open(&write(&whole, &options("archive-1")).unwrap())
            .unwrap()
            .version(),
        "1"
    );
}

#[test]
fn every_flipped_bit_of_header_and_records_is_refused() {
    for name in [
        "spec_all_dtypes",
        "spec_key_lengths_256_to_259",
        "archive_all_dtypes",
        "archive_key_257_bytes",
    ] {
        let bytes = valid(name);
        let archive = open(&bytes).unwrap();
        let records = archive
            .manifest()
            .regions
            .iter()
            .find(|region| region.label == "tensor records");
        let end = usize::try_from(records.unwrap().range.end).unwrap();
        for at in 0..end {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                assert!(open(&flipped).is_err(), "{name}: bit {bit} of byte {at}");
            }
        }
    }
}

#[test]
fn a_cut_off_file_says_what_is_complete() {
    for name in [
        "spec_many",
        "archive_many",
        "snap010_many",
        "snap020_many",
        "snap030_unicode_names",
    ] {
        let bytes = valid(name);
        let archive = open(&bytes).unwrap();
        let mut extents: Vec<_> = archive
            .tensors()
            .map(|tensor| tensor.info().parts[0].payload.stored().unwrap().1)
            .collect();
        extents.sort_by_key(|range| range.start);
        let cut = usize::try_from(extents[extents.len() / 2].end - 1).unwrap();
        let expected = extents.last().unwrap().end;
        let complete = extents
            .iter()
            .filter(|range| range.end <= cut as u64)
            .count();
        let error = open(&bytes[..cut]).err().unwrap();
        assert_eq!(error.rule(), "mag.truncated", "{name}");
        let text = format!(
            "truncated: the file has {cut} bytes, its tensors need {expected}; {complete} of {} tensors are complete: \"",
            extents.len()
        );
        assert!(
            error.message().starts_with(&text),
            "{name}: {error}\n{text}"
        );
    }
}

#[test]
fn big_endian_data_of_a_snapshot_is_read() {
    let bytes = valid("snap030_all_dtypes");
    let archive = open(&bytes).unwrap();
    let mut big = bytes.clone();
    put(&mut big, 8, &[1]);
    for tensor in archive.tensors() {
        let range = tensor.info().parts[0].payload.stored().unwrap().1;
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        for number in big[range].chunks_mut(tensor.info().dtype.swap_width()) {
            number.reverse();
        }
    }
    let swapped = open(&big).unwrap();
    assert_eq!(content(&swapped), content(&archive));
    assert!(
        write(&swapped, &options("snapshot-0.3.0")).unwrap()
            == write(&archive, &options("snapshot-0.3.0")).unwrap()
    );
}

/// Puts a manifest of the same length in the place of another.
fn with_manifest(from: &str, to: &str) -> Vec<u8> {
    let mut bytes = valid("snap030_own_unknown_fields");
    assert!(to.len() <= from.len(), "{to}");
    let at = find(&bytes, from.as_bytes());
    put(
        &mut bytes,
        at,
        format!("{to}{}", " ".repeat(from.len() - to.len())).as_bytes(),
    );
    bytes
}

#[test]
fn what_a_manifest_must_say_is_looked_at() {
    let spare = r#","extra":[1,{"a":null}]"#;
    let repeated = with_manifest(spare, r#","tensor_map":{}"#);
    assert_eq!(refused(&repeated), "mag.duplicate");
    assert_eq!(
        refused(&with_manifest(r#""nbytes":24"#, r#""nbytes":-4"#)),
        "mag.length"
    );
    assert_eq!(
        refused(&with_manifest(r#""nbytes":24"#, r#""nbyte5":24"#)),
        "mag.manifest"
    );
    assert_eq!(
        refused(&with_manifest(r#""nbytes":24"#, r#""nbytes":"""#)),
        "mag.manifest"
    );
    assert_eq!(
        refused(&with_manifest(r#""nbytes":24"#, r#""nbytes":2."#)),
        "mag.manifest"
    );
    assert_eq!(
        refused(&with_manifest(r#""offset":0,"#, r#""offset":-"#)),
        "mag.manifest"
    );
    assert_eq!(
        refused(&with_manifest(r#""offset":4096"#, r#""offset":-96"#)),
        "mag.bounds"
    );
    assert_eq!(
        refused(&with_manifest(
            r#""usr_metadata":{}"#,
            r#""usr_metadata":[]"#
        )),
        "mag.manifest"
    );
    assert_eq!(
        refused(&with_manifest(r#""b":{"#, r#""a":{"#)),
        "mag.duplicate"
    );
    assert_eq!(
        refused(&with_manifest(r#""renamed32""#, r#""\ud800""#)),
        "mag.utf8"
    );
    assert_eq!(
        refused(&with_manifest(
            r#"{"manifest_ver":1"#,
            "\u{feff}{\"manifest_v\""
        )),
        "mag.manifest"
    );
    // Looked at by nobody.
    open(&with_manifest(
        r#""manifest_ver":1"#,
        r#""manifest_ver":{}"#.replace("{}", "9").as_str(),
    ))
    .unwrap();
    open(&with_manifest(r#""renamed32""#, "null")).unwrap();
}

#[test]
fn fields_that_are_not_known_are_kept_or_named_as_lost() {
    let archive = open(&valid("snap030_own_unknown_fields")).unwrap();
    let written = write(&archive, &options("snapshot-0.3.0")).unwrap();
    find(&written, br#""nbytes":24,"quant":"none"}"#);
    find(&written, br#","extra":[1,{"a":null}]}"#);
    assert_eq!(content(&open(&written).unwrap()), content(&archive));

    let renamed = ops::rename(&archive, |name| Some(format!("new.{name}"))).unwrap();
    let written = write(&renamed, &options("snapshot-0.3.0")).unwrap();
    let again = open(&written).unwrap();
    let fields = again
        .tensor("new.a")
        .unwrap()
        .info()
        .metadata
        .get("mag.fields");
    let expected = [("quant".to_owned(), Value::Str("none".into()))];
    assert_eq!(fields, Some(&Value::Map(expected.into_iter().collect())));

    let registry = Registry::standard();
    let older = options("snapshot-0.2.0");
    let conversion =
        ops::Conversion::prepare(&archive, registry.get("mag").unwrap(), &older).unwrap();
    let lost: Vec<_> = conversion
        .losses
        .iter()
        .map(|loss| loss.what.to_string())
        .collect();
    assert_eq!(lost, ["metadata \"mag.fields\"", "mag \"extra\""]);
}

#[test]
fn of_a_repeated_key_in_the_metadata_the_last_counts_with_a_warning() {
    let from = r#""usr_metadata":{},"tensor_map""#;
    let spare = r#""snapshot_ver":"0.3.0","usr_metadata":{}"#;
    assert!(from.len() < spare.len());
    let to = r#""snapshot_ver":0,"usr_metadata":{"a":1,"a":2}"#;
    let mut bytes = valid("snap030_own_unknown_fields");
    let at = find(&bytes, spare.as_bytes());
    let end = 44 + usize::try_from(u64::from_le_bytes(bytes[20..28].try_into().unwrap())).unwrap();
    let grown = to.len() - spare.len();
    let tail = bytes[at + spare.len()..end].to_vec();
    put(&mut bytes, at, to.as_bytes());
    put(&mut bytes, at + to.len(), &tail);
    put(&mut bytes, 20, &((end - 44 + grown) as u64).to_le_bytes());
    let archive = open(&bytes).unwrap();
    assert_eq!(archive.metadata().get("a"), Some(&Value::I64(2)));
    assert_eq!(archive.metadata().len(), 1);
    assert_eq!(archive.findings()[0].rule, "mag.duplicate");
    assert_eq!(archive.findings()[0].severity, Severity::Warning);
}

#[test]
fn metadata_is_held_exactly_or_not_at_all() {
    let mut builder = one_tensor("w", DType::F32, &[2]);
    builder.metadata().push("flag", Value::Bool(true));
    builder.metadata().push("small", Value::U8(7));
    builder.metadata().push("float", Value::F32(0.1));
    let archive = builder.finish();
    for version in ["spec-1", "archive-1"] {
        assert_eq!(
            write(&archive, &options(version)).err().unwrap().kind(),
            ErrorKind::Lossy
        );
        let changed = options(version).allow(Effect::Changed);
        let back = open(&write(&archive, &changed).unwrap()).unwrap();
        assert_eq!(back.metadata().get("flag"), Some(&Value::I64(1)));
        assert_eq!(back.metadata().get("small"), Some(&Value::I64(7)));
        assert_eq!(
            back.metadata().get("float"),
            Some(&Value::F64(0.1f32.into()))
        );
    }
    let back = open(&write(&archive, &options("snapshot-0.3.0")).unwrap()).unwrap();
    assert_eq!(back.metadata().get("flag"), Some(&Value::Bool(true)));
    assert_eq!(
        back.metadata().get("float"),
        Some(&Value::F64(0.1f32.into()))
    );
    // Without a version that is asked for, the one that holds everything is taken.
    let registry = Registry::standard();
    let conversion = ops::Conversion::prepare(
        &archive,
        registry.get("mag").unwrap(),
        &ConvertOptions::default(),
    )
    .unwrap();
    assert_eq!(conversion.profile.version, "snapshot-0.3.0");
}

#[test]
fn shapes_that_a_layout_cannot_hold_are_refused() {
    let fits = |version: &str, shape: &[u64]| {
        write(
            &one_tensor("w", DType::F32, shape).finish(),
            &options(version),
        )
        .is_ok()
    };
    assert!(fits("spec-1", &[]) && fits("spec-1", &[64, 3, 1, 1]) && fits("spec-1", &[2, 0, 5]));
    assert!(
        !fits("spec-1", &[3, 0, 0])
            && !fits("spec-1", &[2, 2, 2, 2, 2, 1])
            && !fits("spec-1", &[1; 7])
    );
    assert!(!fits("archive-1", &[]) && !fits("archive-1", &[0]) && fits("archive-1", &[1; 6]));
    for version in ["snapshot-0.1.0", "snapshot-0.2.0"] {
        assert!(
            fits(version, &[])
                && fits(version, &[1; 16])
                && !fits(version, &[1; 17])
                && !fits(version, &[0])
        );
    }
    assert!(fits("snapshot-0.3.0", &[3, 0, 0]) && !fits("snapshot-0.3.0", &[1; 17]));
}

#[test]
fn a_tensor_without_elements_at_the_end_of_a_snapshot_is_read() {
    let mut bytes = valid("snap020_zero_dim_real_reader_refuses");
    // Exchanges the descriptors of "none" and "some", as a writer with another hash order would have them.
    let none = bytes[68..68 + 40].to_vec();
    let some = bytes[108..108 + 32].to_vec();
    put(&mut bytes, 68, &some);
    put(&mut bytes, 100, &none);
    for offset in [5u64, 16] {
        put(&mut bytes, 100 + 16, &offset.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[20..140]);
        put(&mut bytes, 16, &crc.to_le_bytes());
        let archive = open(&bytes).unwrap();
        let names: Vec<_> = archive
            .tensors()
            .map(|tensor| tensor.name().to_owned())
            .collect();
        assert_eq!(names, ["some", "none"]);
        assert_eq!(archive.get("none").unwrap().canonical().unwrap().len(), 0);
        assert_eq!(
            archive
                .findings()
                .iter()
                .filter(|f| f.rule == "mag.zero-elements")
                .count(),
            1
        );
    }
    put(&mut bytes, 100 + 16, &32u64.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[20..140]);
    put(&mut bytes, 16, &crc.to_le_bytes());
    assert_eq!(refused(&bytes), "mag.bounds");
}

#[test]
fn snapshots_refuse_what_their_header_must_not_have() {
    let patched = |name: &str, at: usize, field: &[u8]| {
        let mut bytes = valid(name);
        put(&mut bytes, at, field);
        let end = find(&bytes, b"BUF!");
        let crc = crc32c::crc32c(&bytes[20..end]);
        put(&mut bytes, 16, &crc.to_le_bytes());
        bytes
    };
    for name in ["snap010_transposed_source", "snap020_from_0_1_7"] {
        let descriptor = find(&valid(name), b"DSC!") + 4;
        assert_eq!(refused(&patched(name, 24, &[1])), "mag.metadata");
        assert_eq!(refused(&patched(name, descriptor, &[64])), "mag.rank");
        assert_eq!(
            refused(&patched(name, descriptor + 2, &[1])),
            "mag.reserved"
        );
        let last_of_a_name = find(&valid(name), b"MDT!") - 1;
        assert_eq!(refused(&patched(name, last_of_a_name, b"\0")), "mag.name");
        // Ignored by every reader.
        open(&patched(name, 20, &[7])).unwrap();
        open(&patched(name, 8, &[7; 8])).unwrap();
    }
}

#[test]
fn version_1_refuses_what_only_the_other_layout_has() {
    let reseal = |mut bytes: Vec<u8>| {
        let crc = crc32c::crc32c(&bytes[12..244]);
        put(&mut bytes, 8, &crc.to_le_bytes());
        bytes
    };
    // archive_all_dtypes: metadata "lr" at 24, "epoch" at 42, records from 63 to 244.
    let bytes = valid("archive_all_dtypes");
    assert!(open(&reseal(bytes.clone())).is_ok());
    let mut untyped = bytes.clone();
    put(&mut untyped, 42, &[0]);
    assert_eq!(refused(&reseal(untyped)), "mag.tag");
    let mut aux = bytes.clone();
    put(&mut aux, 20, &[1]);
    assert_eq!(refused(&reseal(aux)), "mag.reserved");
    let mut huge = bytes.clone();
    put(&mut huge, 83, &i64::MAX.to_le_bytes());
    assert_eq!(refused(&reseal(huge)), "mag.length");
    let mut reserved = bytes;
    put(&mut reserved, 65, &[1]);
    assert_eq!(refused(&reseal(reserved)), "mag.reserved");
}

#[test]
fn every_rule_that_files_are_refused_under_is_on_the_page() {
    let page = include_str!("../../../../docs/formats/mag.md");
    for entry in fs::read_dir(fixtures("reject")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "mag") {
            let rule = match Archive::open(&path) {
                Ok(_) => panic!("{} should be refused", path.display()),
                Err(error) => error.rule().to_owned(),
            };
            if rule.starts_with("mag.") {
                assert!(page.contains(&format!("| `{rule}` |")), "{rule}");
            }
        }
    }
}
