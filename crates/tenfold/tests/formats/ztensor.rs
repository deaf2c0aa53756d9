//! What is special to zTensor `.zt`, beside what every format is tested for.

// Inputs of the tests, not outputs.
#![allow(clippy::disallowed_methods)]
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenfold::format::{Checksums, Compression, Effect, Registry, Severity};
use tenfold::io::MemoryOutput;
use tenfold::model::{
    DType, DigestKind, Endian, Layout, Over, PairIndex, Pairs, Part, Payload, Role, TensorInfo,
    Value,
};
use tenfold::ops::{self, ConvertOptions, VerifyOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes, ErrorKind, OpenOptions, Result};

const VERSIONS: [&str; 3] = ["0.1", "1.2", "2"];

fn fixture(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/ztensor/valid");
    root.join(name).with_extension("zt")
}

/// The public conformance corpus of zTensor, which is no part of this project, where it lies beside it.
fn corpus(kind: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/ztensor");
    root.join(kind)
}

fn open(name: &str) -> Archive {
    Archive::open(fixture(name)).unwrap()
}

fn options(version: &str, own: &[(&str, &str)]) -> ConvertOptions {
    ConvertOptions::default()
        .version(Some(version))
        .options(own.iter().copied())
        .allow(Effect::Dropped)
        .check(true)
}

fn write(archive: &Archive, options: &ConvertOptions) -> Result<Vec<u8>> {
    let registry = Registry::standard();
    let conversion = ops::Conversion::prepare(archive, registry.get("ztensor")?, options)?;
    let mut output = MemoryOutput::new();
    conversion.write_to("out.zt", &mut output)?;
    Ok(output.into_files().remove("out.zt").unwrap())
}

fn rewrite(archive: &Archive, options: &ConvertOptions) -> Archive {
    Archive::from_bytes(write(archive, options).unwrap()).unwrap()
}

fn content(archive: &Archive) -> [u8; 32] {
    crate::support::digest(archive, 1).content.unwrap()
}

fn stored(archive: &Archive, name: &str) -> std::ops::Range<u64> {
    archive.tensor(name).unwrap().info().parts[0]
        .payload
        .stored()
        .unwrap()
        .1
}

fn one(name: &str, dtype: DType, shape: &[u64], bytes: &'static [u8]) -> Archive {
    let mut builder = ArchiveBuilder::new();
    builder
        .push(name, dtype, shape, Bytes::from_static(bytes))
        .unwrap();
    builder.finish()
}

fn sound(archive: &Archive) {
    let findings = crate::support::verify(archive, 1);
    assert!(
        findings
            .iter()
            .all(|finding| finding.severity < Severity::Warning),
        "{findings:?}"
    );
}

#[test]
fn an_entry_of_0_1_is_written_as_the_packages_write_it() {
    let archive = one("a", DType::F32, &[2, 2], &[0; 16]);
    let file = write(&archive, &options("0.1", &[])).unwrap();
    let mut expected = b"ZTEN0001".to_vec();
    expected.resize(64 + 16, 0);
    // An array of one map with eight entries, in the order of the released packages.
    let index = b"\x81\xa8\x64name\x61a\x66offset\x18\x40\x64size\x10\x65dtype\x67float32\x66layout\x65dense\
        \x65shape\x82\x02\x02\x68encoding\x63raw\x6fdata_endianness\x66little";
    expected.extend_from_slice(index);
    expected.extend_from_slice(&(index.len() as u64).to_le_bytes());
    assert_eq!(file, expected);
}

#[test]
fn the_smallest_files_are_as_small_as_they_can_be() {
    let nothing = ArchiveBuilder::new().finish();
    for (version, len) in [("0.1", 17), ("1.2", 48), ("2", 4096 + 10 + 40)] {
        assert_eq!(
            write(&nothing, &options(version, &[])).unwrap().len(),
            len,
            "{version}"
        );
    }
    assert_eq!(
        write(&nothing, &options("2", &[])).unwrap(),
        fs::read(fixture("v2_empty")).unwrap()
    );
}

#[test]
fn canonical_files_are_those_of_the_library() {
    let canonical = options("2", &[("canonical", "true")]);
    let expected = fs::read(fixture("v2_canonical")).unwrap();
    assert_eq!(write(&open("v2_canonical"), &canonical).unwrap(), expected);
    // Whatever form the tensors come in.
    for (version, own) in [
        ("0.1", &[("endian", "big")][..]),
        ("1.2", &[][..]),
        ("2", &[("align", "8192")][..]),
    ] {
        let mut other = options(version, own).checksums(Checksums::None);
        if version != "0.1" {
            other = other.compression(|_| Compression::Zstd(1));
        }
        let archive = rewrite(&open("v2_canonical"), &other);
        // 0.1 has no metadata for the file.
        let with_metadata = version != "0.1";
        assert_eq!(
            write(&archive, &canonical).unwrap() == expected,
            with_metadata,
            "{version}"
        );
        let tensors = |bytes: Vec<u8>| content(&Archive::from_bytes(bytes).unwrap());
        assert_eq!(
            tensors(write(&archive, &canonical).unwrap()),
            tensors(expected.clone())
        );
    }
    if let Ok(bytes) = fs::read(corpus("valid").join("canonical-basic.zt")) {
        let archive = Archive::from_bytes(bytes.clone()).unwrap();
        assert_eq!(write(&archive, &canonical).unwrap(), bytes);
    }
}

#[test]
fn canonical_files_store_equal_bytes_once() {
    let mut builder = ArchiveBuilder::new();
    let zeros = Bytes::from_static(&[0; 8]);
    for (name, dtype, shape) in [
        ("f", DType::F32, 2),
        ("mask", DType::BOOL, 8),
        ("z", DType::U8, 8),
    ] {
        builder.push(name, dtype, &[shape], zeros.clone()).unwrap();
    }
    builder
        .push("empty", DType::F32, &[0], Bytes::new())
        .unwrap();
    builder.push("e", DType::U8, &[3, 0], Bytes::new()).unwrap();
    let archive = rewrite(&builder.finish(), &options("2", &[("canonical", "true")]));
    sound(&archive);
    let at = |name| stored(&archive, name);
    assert_eq!(at("f"), 65536..65544);
    assert_eq!((at("mask"), at("z")), (at("f"), at("f")));
    assert_eq!(at("e"), at("empty"));
    // The same from big-endian data, where the stored bytes differ by type.
    let ones: &[u8] = &[0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f];
    let mut builder = ArchiveBuilder::new();
    for (name, dtype, shape) in [
        ("a", DType::F32, 2),
        ("b", DType::F32, 2),
        ("c", DType::U8, 8),
    ] {
        builder
            .push(name, dtype, &[shape], Bytes::from_static(ones))
            .unwrap();
    }
    let little = builder.finish();
    let big = rewrite(&little, &options("0.1", &[("endian", "big")]));
    assert_eq!(big.get("a").unwrap().info().parts[0].endian, Endian::Big);
    let canonical = options("2", &[("canonical", "true")]);
    assert_eq!(
        write(&big, &canonical).unwrap(),
        write(&little, &canonical).unwrap()
    );
}

#[test]
fn canonical_files_have_their_rules() {
    let refused = |archive: &Archive, change: fn(ConvertOptions) -> ConvertOptions| {
        let options = change(options("2", &[("canonical", "true")]));
        let error = write(archive, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
        error.to_string()
    };
    let plain = one("é", DType::U8, &[1], &[1]);
    assert!(write(&plain, &options("2", &[("canonical", "true")])).is_ok());
    let decomposed = one("e\u{301}", DType::U8, &[1], &[1]);
    assert!(refused(&decomposed, |options| options).contains("normalization"));
    refused(&plain, |options| {
        options.compression(|_| Compression::Zstd(3))
    });
    refused(&plain, |options| {
        options.checksums(Checksums::With(DigestKind::Sha256))
    });
    refused(&plain, |options| options.checksums(Checksums::None));
    refused(&plain, |options| options.option("align", "4096"));
    refused(&plain, |options| options.version(Some("1.2")));
}

#[test]
fn objects_of_2_stand_in_the_order_of_their_encoded_names() {
    let mut builder = ArchiveBuilder::new();
    for name in ["aa", "é", "b", "ab", "Z"] {
        builder
            .push(name, DType::U8, &[1], Bytes::from_static(&[1]))
            .unwrap();
    }
    let archive = builder.finish();
    let names = |version| {
        let written = rewrite(&archive, &options(version, &[]));
        written
            .tensors()
            .map(|tensor| tensor.name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("2"), ["Z", "b", "aa", "ab", "é"]);
    assert_eq!(names("1.2"), ["Z", "aa", "ab", "b", "é"]);
    assert_eq!(names("0.1"), ["aa", "é", "b", "ab", "Z"]);
}

#[test]
fn tied_tensors_stay_tied() {
    for version in VERSIONS {
        for own in [&[][..], &[("endian", "big")][..]] {
            if version != "0.1" && !own.is_empty() {
                continue;
            }
            let archive = rewrite(&open("v01_hand_aliased"), &options(version, own));
            assert_eq!(
                stored(&archive, "x"),
                stored(&archive, "alias"),
                "{version}"
            );
            assert_ne!(stored(&archive, "x"), stored(&archive, "z"), "{version}");
        }
        let compressed = options(version, &[]).compression(|_| Compression::Zstd(3));
        let archive = rewrite(&open("v01_hand_aliased"), &compressed);
        assert_eq!(
            stored(&archive, "x"),
            stored(&archive, "alias"),
            "{version}"
        );
        assert_eq!(content(&archive), content(&open("v01_hand_aliased")));
    }
}

fn codec(archive: &Archive, name: &str) -> &'static str {
    match archive.get(name).unwrap().info().parts[0].payload {
        Payload::Encoded { codec, .. } => codec.name(),
        _ => "raw",
    }
}

#[test]
fn compression_is_kept_taken_off_and_put_on() {
    let raw = |archive: &Archive| {
        archive
            .tensors()
            .all(|tensor| matches!(tensor.info().parts[0].payload, Payload::Raw { .. }))
    };
    let before = open("v01_dtypes_zstd");
    for version in VERSIONS {
        let kept = rewrite(&before, &options(version, &[]));
        let expected = if version == "2" {
            "zstd-seekable"
        } else {
            "zstd"
        };
        assert_eq!(
            codec(&kept, kept.tensors().next().unwrap().name()),
            expected,
            "{version}"
        );
        sound(&kept);
        let off = options(version, &[]).compression(|_| Compression::Raw);
        assert!(raw(&rewrite(&kept, &off)), "{version}");
        assert_eq!(content(&kept), content(&before));
    }
    // What need not change is taken over as it is.
    let kept = rewrite(&before, &options("0.1", &[]));
    for tensor in before
        .tensors()
        .filter(|tensor| tensor.info().dtype != DType::BOOL)
    {
        let again = kept.get(tensor.name()).unwrap();
        assert_eq!(
            again.stored().unwrap(),
            tensor.stored().unwrap(),
            "{}",
            tensor.name()
        );
    }
    // One tensor of several.
    let some = options("2", &[]).compression(|info| match info.name.as_str() {
        "y" => Compression::Zstd(19),
        _ => Compression::Keep,
    });
    let archive = rewrite(&open("v01_hand_aliased"), &some);
    assert_eq!(
        (codec(&archive, "y"), codec(&archive, "x")),
        ("zstd-seekable", "raw")
    );
}

#[test]
fn checksums_are_carried_where_the_bytes_stay_the_same() {
    let sum =
        |archive: &Archive, name: &str| archive.get(name).unwrap().info().parts[0].checksum.clone();
    let before = open("v01_hand_sha256");
    for version in VERSIONS {
        let after = rewrite(&before, &options(version, &[]));
        let kept = sum(&after, "raw").unwrap();
        assert_eq!(kept.value, sum(&before, "raw").unwrap().value, "{version}");
        // Its bytes are written in another order: the hash of those is in the fixture's JSON.
        let little = "0d6c4debfae24307fa7fd7c7e720592c3cab33100d6b615b9adbaa9672fa3c6d";
        let sum_of = |name: &str| crate::support::hex(&sum(&after, name).unwrap().value);
        assert_eq!(sum_of("big"), little, "{version}");
        if version == "2" {
            // Compressed again, and the old checksum was of the compressed bytes.
            let decoded = "64f2498e739639c4734504429a22bfcfc60d1533e92b76c808b1d3cd479dcd4d";
            assert_eq!(sum_of("zstd"), decoded);
        }
        sound(&after);
    }
    let before = open("v01_crc32c");
    for version in VERSIONS {
        let after = rewrite(&before, &options(version, &[]));
        for tensor in after.tensors() {
            let found = tensor.info().parts[0].checksum.as_ref();
            let expected = sum(&before, tensor.name()).map(|_| match version {
                "2" => DigestKind::Xxh3,
                _ => DigestKind::Crc32c,
            });
            assert_eq!(found.map(|sum| sum.kind), expected, "{version}");
        }
        if version != "2" {
            let bytes = before.get("big").unwrap().canonical().unwrap();
            let little = crc32c::crc32c(&bytes).to_be_bytes();
            assert_eq!(sum(&after, "big").unwrap().value, little.as_slice());
        }
        sound(&after);
    }
    // Of the decoded bytes, which compression does not change.
    let compressed = options("2", &[]).compression(|_| Compression::Zstd(3));
    let archive = rewrite(&open("v2_storage_types"), &compressed);
    assert!(
        archive
            .tensors()
            .all(|tensor| sum(&archive, tensor.name()).is_some())
    );
    sound(&archive);

    for (version, kind, over) in [
        ("0.1", DigestKind::Crc32c, Over::Stored),
        ("1.2", DigestKind::Sha256, Over::Stored),
        ("2", DigestKind::Xxh3, Over::Decoded),
        ("2", DigestKind::Sha256, Over::Decoded),
    ] {
        let asked = options(version, &[]).checksums(Checksums::With(kind));
        let archive = rewrite(&open("v01_dtypes_zstd"), &asked);
        for tensor in archive.tensors() {
            let sum = tensor.info().parts[0].checksum.as_ref().unwrap();
            assert_eq!((sum.kind, sum.over), (kind, over));
        }
        sound(&archive);
    }
    let crc = options("2", &[]).checksums(Checksums::With(DigestKind::Crc32c));
    assert!(write(&before, &crc).is_err());
}

#[test]
fn bool_is_written_as_0_and_1() {
    for version in VERSIONS {
        let archive = rewrite(&open("v01_bool_nonzero"), &options(version, &[]));
        sound(&archive);
        assert_eq!(
            content(&archive),
            content(&open("v01_bool_nonzero")),
            "{version}"
        );
    }
}

#[test]
fn sparse_tensors_stay_sparse_where_they_can() {
    for name in [
        "v10_sparse",
        "v11_sparse",
        "v12_sparse",
        "v12_py_sparse_signed_indices",
        "v2_sparse",
    ] {
        let before = open(name);
        for version in VERSIONS {
            let after = rewrite(&before, &options(version, &[]));
            assert_eq!(content(&after), content(&before), "{name} {version}");
            for tensor in after.tensors().filter(|_| version != "0.1") {
                let info = tensor.info();
                assert_eq!(
                    info.layout,
                    before.get(&info.name).unwrap().info().layout,
                    "{name}"
                );
                let indices = info.parts.iter().filter(|part| part.role != Role::Values);
                for part in indices.filter(|_| !info.layout.is_dense()) {
                    assert!(matches!(part.dtype, DType::U32 | DType::U64), "{name}");
                }
            }
        }
    }
    let pairs = open("v01_layout_sparsecoo");
    assert_eq!(
        pairs.get("sp").unwrap().info().layout,
        Pairs::new(2, PairIndex::Axes).into()
    );
    let dense = rewrite(&pairs, &options("0.1", &[]));
    assert_eq!(dense.get("sp").unwrap().info().layout, Layout::RowMajor);
    assert_eq!(content(&dense), content(&pairs));
}

#[test]
fn damaged_entries_are_not_listed_again() {
    let with_sums = options("1.2", &[]).checksums(Checksums::With(DigestKind::Sha256));
    let mut bytes = write(&open("v12_py_sparse_signed_indices"), &with_sums).unwrap();
    let archive = Archive::from_bytes(bytes.clone()).unwrap();
    let name = archive.tensors().next().unwrap().name().to_owned();
    let values = archive
        .get(&name)
        .unwrap()
        .info()
        .part(&Role::Values)
        .unwrap()
        .clone();
    let (_, range) = values.payload.stored().unwrap();
    bytes[usize::try_from(range.start).unwrap()] ^= 1;
    let damaged = Archive::from_bytes(bytes)
        .unwrap()
        .select(|tensor| tensor.name == name);
    let registry = Registry::standard();
    for sparse in [ops::Sparse::AsIs, ops::Sparse::Keep, ops::Sparse::All] {
        let options = ConvertOptions::default().sparse(sparse);
        let conversion =
            ops::Conversion::prepare(&damaged, registry.get("tens").unwrap(), &options).unwrap();
        let error = conversion
            .write_to("x.tens", &mut MemoryOutput::new())
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.tensor()),
            (ErrorKind::Mismatch, Some(name.as_str())),
            "{sparse:?}"
        );
    }
}

#[test]
fn unsorted_rows_are_not_written_to_2_which_forbids_them() {
    let number =
        |values: &[u64]| -> Bytes { values.iter().flat_map(|n| n.to_le_bytes()).collect() };
    let part = |role, dtype, bytes| Part::new(role, dtype, Payload::Inline(bytes));
    let mut info = TensorInfo::new("m", DType::U8, vec![1, 3], Layout::Csr { nnz: 2 });
    info.parts = vec![
        part(Role::Values, DType::U8, Bytes::from_static(&[5, 6])),
        part(Role::Indices, DType::U64, number(&[2, 0])),
        part(Role::Indptr, DType::U64, number(&[0, 2])),
    ]
    .into();
    let mut builder = ArchiveBuilder::new();
    builder.push_info(info).unwrap();
    let archive = builder.finish();
    let tensor = rewrite(&archive, &options("1.2", &[]));
    assert_eq!(
        tensor.get("m").unwrap().canonical().unwrap(),
        [6, 0, 5].as_slice()
    );
    let error = write(&tensor, &options("2", &[])).unwrap_err();
    assert_eq!(
        (error.kind(), error.rule()),
        (ErrorKind::Unsupported, "ztensor.sparse")
    );
}

#[test]
fn opaque_layouts_and_blocks_are_passed_on() {
    for (name, version) in [
        ("v12_quantized", "2"),
        ("v12_quantized", "1.2"),
        ("v2_quant_group", "1.2"),
        ("v2_mx", "2"),
    ] {
        let before = open(name);
        let after = rewrite(&before, &options(version, &[]));
        for tensor in before.tensors() {
            let (old, new) = (tensor.info(), after.get(tensor.name()).unwrap().info());
            assert_eq!((&old.layout, old.dtype), (&new.layout, new.dtype), "{name}");
            for (key, value) in old.metadata.iter() {
                assert_eq!(
                    new.metadata.get(key).map(|found| format!("{found:?}")),
                    Some(format!("{value:?}")),
                    "{key}"
                );
            }
            for (n, part) in old.parts.iter().enumerate() {
                let place = new
                    .parts
                    .iter()
                    .position(|found| found.role == part.role)
                    .unwrap();
                assert_eq!(new.parts[place].dtype, part.dtype);
                let again = after.get(tensor.name()).unwrap().part(place).unwrap();
                assert_eq!(again, tensor.part(n).unwrap(), "{name}");
            }
        }
    }
    let block = open("v2_mx");
    assert_eq!(
        block.get("q8").unwrap().info().dtype,
        DType::from_name("gguf:Q8_0").unwrap()
    );
    let opaque = write(&open("v12_quantized"), &options("0.1", &[])).unwrap_err();
    assert_eq!(opaque.kind(), ErrorKind::Lossy);
}

#[test]
fn metadata_of_every_kind_survives() {
    for (name, versions) in [
        ("v01_custom_fields", &["0.1", "1.2"][..]),
        ("v01_hand_custom_odd", &["0.1", "1.2"]),
        ("v12_attributes", &["1.2", "2"]),
        ("v2_attributes", &["1.2", "2"]),
    ] {
        let before = open(name);
        for version in versions {
            let lossless = options(version, &[]).allow(Effect::Rearranged);
            let after = rewrite(&before, &lossless);
            for (key, value) in before.metadata().iter() {
                assert_eq!(after.metadata().get(key), Some(value), "{name} {version}");
            }
            for tensor in before.tensors() {
                for (key, value) in tensor.info().metadata.iter() {
                    let found = after
                        .get(tensor.name())
                        .unwrap()
                        .info()
                        .metadata
                        .get(key)
                        .unwrap();
                    // Shorter floating-point numbers hold the same value.
                    let same = found == value
                        || found.as_f64().is_some() && found.as_f64() == value.as_f64();
                    let nested = matches!(value, Value::List(_) | Value::Map(_));
                    assert!(
                        same || nested,
                        "{name} {version} {key}: {found:?} {value:?}"
                    );
                }
            }
        }
    }
    // What a generation has no place for is said before it is dropped.
    let losses = |name: &str, version: &str| {
        let registry = Registry::standard();
        let conversion = ops::Conversion::prepare(
            &open(name),
            registry.get("ztensor").unwrap(),
            &options(version, &[]),
        );
        conversion
            .unwrap()
            .losses
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert!(
        losses("v12_attributes", "0.1")
            .iter()
            .all(|loss| loss.starts_with("dropped"))
    );
    let odd = losses("v01_hand_custom_odd", "2");
    assert!(
        odd.iter()
            .any(|loss| loss.contains("\"bignum\"") && loss.starts_with("changed")),
        "{odd:?}"
    );
    assert!(
        odd.iter()
            .any(|loss| loss.contains("\"date\"") && loss.starts_with("dropped")),
        "{odd:?}"
    );
    assert!(
        losses("v01_custom_fields", "2")
            .iter()
            .any(|loss| loss.contains("\"\"")),
        "an empty key"
    );
}

#[test]
fn reserved_names_are_no_custom_fields_of_0_1() {
    let mut builder = ArchiveBuilder::new();
    let payload = Payload::Inline(Bytes::from_static(&[7]));
    let mut info = TensorInfo::dense("a", DType::U8, vec![1], payload);
    info.metadata.push("offset", Value::U8(1));
    info.metadata.push("mine", Value::U8(2));
    builder.push_info(info).unwrap();
    let archive = rewrite(&builder.finish(), &options("0.1", &[]));
    let metadata = &archive.get("a").unwrap().info().metadata;
    assert_eq!(
        (metadata.len(), metadata.get("mine")),
        (1, Some(&Value::U64(2)))
    );
}

#[test]
fn shards_are_found_beside_their_file_and_missed_one_by_one() {
    let whole = open("v2_shards");
    assert_eq!(
        whole.source_name(tenfold::model::SourceId(1)),
        Some("v2_shards-00001-of-00002.zt")
    );
    sound(&whole);
    // Written again, it is one file.
    assert_eq!(
        content(&rewrite(&whole, &options("2", &[]))),
        content(&whole)
    );

    let directory = tempfile::tempdir().unwrap();
    let put = |from: &str, to: &str| fs::copy(fixture(from), directory.path().join(to)).unwrap();
    put("v2_shards", "m.zt");
    put("v2_shards-00001-of-00002", "m-00001-of-00002.zt");
    let partly = Archive::open(directory.path().join("m.zt")).unwrap();
    assert!(partly.get("head").unwrap().canonical().is_ok());
    assert!(partly.get("layer.0").unwrap().canonical().is_ok());
    let missing = partly.get("layer.1").unwrap();
    assert_eq!(
        (missing.info().dtype, missing.info().shape.as_slice()),
        (DType::I16, &[2, 2][..])
    );
    assert_eq!(missing.canonical().unwrap_err().rule(), "ztensor.shard");

    // Found by its digest only: as long as it should be, and framed as it should be.
    let mut bytes = fs::read(fixture("v2_shards-00002-of-00002")).unwrap();
    bytes[4096 - 1] ^= 1;
    fs::write(directory.path().join("m-00002-of-00002.zt"), bytes).unwrap();
    let damaged = Archive::open(directory.path().join("m.zt")).unwrap();
    let findings = crate::support::verify(&damaged, 1);
    let errors: Vec<_> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].rule, "ztensor.checksum");

    // No tensor's own checksum covers what is damaged: it is not passed on all the same, unless that is wanted, or the
    // shard is not.
    let refused = write(&damaged, &options("2", &[])).unwrap_err();
    assert_eq!(refused.rule(), "ztensor.checksum");
    assert!(
        refused
            .message()
            .starts_with("shard \"00002-of-00002\": sha256: stored"),
        "{refused}"
    );
    let unverified = options("2", &[]).verify(false);
    assert!(write(&damaged, &unverified).is_ok());
    let others = damaged.select(|tensor| tensor.name != "layer.1" && tensor.name != "tied");
    assert!(write(&others, &options("2", &[])).is_ok());

    // Without a directory there are no shards, and still a list.
    let alone = Archive::from_bytes(fs::read(fixture("v2_shards")).unwrap()).unwrap();
    assert_eq!(alone.tensors().len(), 4);
    assert!(alone.get("layer.0").unwrap().canonical().is_err());
}

#[test]
fn options_are_checked() {
    let archive = one("a", DType::F32, &[1], &[0; 4]);
    for (version, key, value) in [
        ("0.1", "align", "0"),
        ("0.1", "align", "96"),
        ("2", "align", "64"),
        ("2", "align", "1099511627776"),
        ("2", "align", "many"),
        ("0.1", "canonical", "true"),
        ("2", "canonical", "perhaps"),
        ("1.2", "endian", "big"),
        ("0.1", "endian", "middle"),
    ] {
        let error = write(&archive, &options(version, &[(key, value)])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{version} {key}={value}");
    }
    for (version, align) in [("0.1", 192), ("1.2", 65536), ("2", 16384)] {
        let archive = rewrite(
            &archive,
            &options(version, &[("align", &align.to_string())]),
        );
        assert_eq!(stored(&archive, "a").start, align);
    }
}

#[test]
fn an_unknown_checksum_is_noted_and_not_verified() {
    let archive = open("v01_hand_crc_spelling");
    let notes: Vec<_> = archive
        .findings()
        .iter()
        .filter(|finding| finding.rule == "ztensor.checksum")
        .collect();
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].severity, Severity::Note);
    assert!(notes[0].message.contains("md5"));
}

fn rejected(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/ztensor/reject");
    root.join(name).with_extension("zt")
}

fn losses(archive: &Archive, options: &ConvertOptions) -> Vec<(Effect, String)> {
    let registry = Registry::standard();
    let conversion =
        ops::Conversion::prepare(archive, registry.get("ztensor").unwrap(), options).unwrap();
    let losses = conversion.losses.iter();
    losses
        .map(|loss| (loss.effect, loss.what.to_string()))
        .collect()
}

fn rules(archive: &Archive) -> Vec<String> {
    let warnings = archive
        .findings()
        .iter()
        .filter(|finding| finding.severity == Severity::Warning);
    warnings.map(|finding| finding.rule.clone()).collect()
}

#[test]
fn a_layout_that_no_program_wrote_is_a_custom_field_and_stays_one() {
    let archive = open("v01_hand_custom_layout");
    assert_eq!(rules(&archive), ["ztensor.layout"; 6]);
    let lossless = options("0.1", &[]).allow(Effect::Rearranged);
    assert_eq!(losses(&archive, &lossless), []);
    let again = rewrite(&archive, &lossless);
    let layout = |archive: &Archive, name: &str| {
        archive
            .get(name)
            .unwrap()
            .info()
            .metadata
            .get("layout")
            .cloned()
    };
    for tensor in archive.tensors() {
        let name = tensor.name();
        assert_eq!(layout(&again, name), layout(&archive, name), "{name}");
    }
    assert_eq!(layout(&again, "nchw"), Some(Value::Str("NCHW".into())));
    assert_eq!(layout(&again, "null"), Some(Value::Null));
    assert_eq!(layout(&again, "dense"), None);
    // A layout that programs know would mean something else: it is no custom field.
    let payload = Payload::Inline(Bytes::from_static(&[7]));
    let mut info = TensorInfo::dense("a", DType::U8, vec![1], payload);
    info.metadata.push("layout", Value::Str("sparsecoo".into()));
    let mut builder = ArchiveBuilder::new();
    builder.push_info(info).unwrap();
    let known = builder.finish();
    assert_eq!(
        losses(&known, &options("0.1", &[])),
        [(Effect::Dropped, "metadata \"layout\"".to_owned())]
    );
    sound(&rewrite(&known, &options("0.1", &[])));
    // Data that is not dense is not handed out as if it were.
    let unknown = open("v01_hand_unknown_layout");
    let error = unknown.get("odd").unwrap().canonical().unwrap_err();
    assert_eq!(error.rule(), "ztensor.layout");
    assert!(error.message().contains("20 bytes"), "{error}");
}

#[test]
fn checksums_in_any_unambiguous_spelling_are_verified_and_null_is_none() {
    let archive = open("v01_hand_checksum_forms");
    assert_eq!(rules(&archive), ["ztensor.schema"; 2]);
    let verified = ops::verify(&archive, &VerifyOptions::new()).unwrap();
    assert_eq!(
        verified.checked.checksums,
        [(DigestKind::Crc32c, 3), (DigestKind::Sha256, 1)]
    );
    let mut bytes = fs::read(fixture("v01_hand_checksum_forms")).unwrap();
    bytes[64] ^= 1;
    let damaged = Archive::from_bytes(bytes).unwrap();
    let findings = crate::support::verify(&damaged, 1);
    let mut errors = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    assert_eq!(errors.next().unwrap().tensor.as_deref(), Some("bare"));
}

#[test]
fn a_malformed_checksum_keeps_nobody_from_reading_who_does_not_verify() {
    for (name, tensor) in [
        ("v01_crc_malformed", "alpha"),
        ("v01_checksum_kind", "alpha"),
        ("v2_digest_without_digits", ""),
    ] {
        let path = rejected(name);
        let checked = Archive::open(&path);
        assert!(
            checked.map_or(true, |archive| crate::support::digest(&archive, 1)
                .content
                .is_none()),
            "{name}"
        );
        let archive = OpenOptions::new().checksums(false).open(&path).unwrap();
        assert!(
            rules(&archive)
                .iter()
                .all(|rule| rule == "ztensor.checksum")
        );
        assert!(
            crate::support::digest(&archive, 1).content.is_some(),
            "{name}"
        );
        if !tensor.is_empty() {
            archive.get(tensor).unwrap().canonical().unwrap();
        }
        let unverified = options("0.1", &[]).verify(false).allow(Effect::Rearranged);
        if archive.version() == "0.1" {
            assert_eq!(content(&rewrite(&archive, &unverified)), content(&archive));
        }
    }
    // It is listed all the same, and whoever verifies must allow that it is dropped.
    let path = rejected("v01_crc_malformed");
    let archive = OpenOptions::new().checksums(false).open(path).unwrap();
    let what = "checksum \"crc32c:0xNOTHEX\"".to_owned();
    let mut unverified = options("0.1", &[]);
    assert_eq!(
        losses(&archive, &unverified),
        [(Effect::Dropped, what.clone())]
    );
    unverified = unverified.verify(false);
    assert_eq!(losses(&archive, &unverified), [(Effect::Rearranged, what)]);
}

#[test]
fn a_checksum_that_is_not_carried_over_is_a_loss() {
    let archive = open("v01_hand_crc_spelling");
    let md5 = "checksum \"md5:00112233445566778899aabbccddeeff\"".to_owned();
    for version in VERSIONS {
        let losses = losses(&archive, &options(version, &[]));
        assert_eq!(losses, [(Effect::Dropped, md5.clone())], "{version}");
    }
    let mut default = options("0.1", &[]).allow(Effect::Rearranged);
    assert_eq!(
        write(&archive, &default).unwrap_err().kind(),
        ErrorKind::Lossy
    );
    // Whoever asks for none loses none.
    default = default.checksums(Checksums::None);
    assert!(write(&archive, &default).is_ok());
    let verified = ops::verify(&archive, &ops::VerifyOptions::new()).unwrap();
    assert_eq!(verified.checked.unknown_checksums, 1);
}

#[test]
fn fields_that_are_not_known_are_a_loss_when_the_file_is_written_again() {
    let mut in_1 = b"ZTEN1000".to_vec();
    in_1.resize(64, 0);
    in_1.push(7);
    let manifest =
        b"\xa3\x67version\x651.2.0\x67objects\xa1\x61w\xa4\x65shape\x81\x01\x66format\x65dense\
        \x6acomponents\xa1\x64data\xa4\x65dtype\x62u8\x66offset\x18\x40\x66length\x01\x64note\x01\
        \x65owner\x62me\x64tool\xa0";
    in_1.extend(manifest);
    in_1.extend((manifest.len() as u64).to_le_bytes());
    in_1.extend(b"ZTEN1000");

    let mut in_2 = b"\x89ZT2\r\n\x1a\n".to_vec();
    in_2.resize(4096, 0);
    in_2.push(7);
    in_2.resize(8192, 0);
    let manifest = b"\xa3\x01\x00\x64tool\x00\x67objects\xa1\x61w\xa4\x65owner\x62me\x65parts\xa1\x64data\xa3\
        \x64blob\x82\x19\x10\x00\x01\x64note\x01\x65dtype\x62u8\x65shape\x81\x01\x66layout\x65dense";
    in_2.extend(manifest);
    for field in [8192, manifest.len() as u64, 1] {
        in_2.extend(field.to_le_bytes());
    }
    in_2.extend(b"\x02\0\0\0\0\0\0\0\x89ZT2\r\n\x1a\n");

    for (bytes, version, lost) in [
        (in_1, "1.2", "note and 2 more fields"),
        (in_2, "2", "a key that is not text and 3 more fields"),
    ] {
        // The hash of the manifest is none.
        let unchecked = OpenOptions::new().checksums(false);
        let archive = unchecked.read(Arc::new(Bytes::from(bytes)), None).unwrap();
        let lost = (Effect::Dropped, format!("ztensor {lost:?}"));
        assert_eq!(losses(&archive, &options(version, &[])), [lost]);
        let default = options(version, &[]).allow(Effect::Rearranged);
        let error = write(&archive, &default).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lossy);
        assert_eq!(
            rewrite(&archive, &options(version, &[])).manifest().kept,
            []
        );
    }
}

#[test]
fn what_is_said_of_data_that_cannot_be_read_is_listed() {
    let archive = open("v01_hand_unknown_encoding");
    let part = &archive.get("odd").unwrap().info().parts[0];
    let unknown = part.unknown.as_ref().unwrap();
    assert_eq!(unknown.encoding.as_deref(), Some("lz4"));
    assert_eq!(unknown.checksum, None);
}

#[test]
fn a_manifest_that_does_not_match_its_hash_is_read_with_a_warning_on_request() {
    let mut bytes = fs::read(fixture("v2_cli_convert")).unwrap();
    // The hash is in the middle of the last 40 bytes.
    let at = bytes.len() - 24;
    bytes[at] ^= 1;
    let read = |verify: bool| {
        let options = OpenOptions::new().checksums(verify);
        options.read(Arc::new(Bytes::from(bytes.clone())), None)
    };
    let error = read(true).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    assert_eq!(error.rule(), "ztensor.manifest-hash");
    let archive = read(false).unwrap();
    let findings = archive.findings().iter();
    let found = |rule: &str| findings.clone().find(|finding| finding.rule == rule);
    let warning = found("ztensor.manifest-hash").unwrap();
    assert_eq!(warning.severity, Severity::Warning);
    assert_eq!(content(&archive), content(&open("v2_cli_convert")));
}

#[test]
fn an_unknown_logical_type_of_1_2_is_shown_as_it_is_stored_and_refused_when_strict() {
    let archive = open("v12_logical_types");
    assert_eq!(archive.get("odd").unwrap().info().dtype, DType::U8);
    let strict = OpenOptions::new()
        .strict(true)
        .open(fixture("v12_logical_types"))
        .unwrap();
    assert_eq!(
        strict.get("odd").unwrap().canonical().unwrap_err().rule(),
        "ztensor.dtype"
    );
}

#[test]
fn a_file_of_2_without_its_first_bytes_is_still_named() {
    let mut bytes = fs::read(fixture("v2_canonical")).unwrap();
    bytes[..8].fill(0);
    assert_eq!(
        Archive::from_bytes(bytes).err().unwrap().rule(),
        "ztensor.magic"
    );
}

#[test]
fn the_public_corpus_is_read_where_it_is_there() {
    for (kind, accept) in [("valid", true), ("reject", false)] {
        let Ok(files) = fs::read_dir(corpus(kind)) else {
            return;
        };
        for path in files.map(|file| file.unwrap().path()) {
            if path.extension().is_none_or(|extension| extension != "zt") {
                continue;
            }
            let opened = Archive::open(&path);
            if accept {
                opened.unwrap();
                continue;
            }
            let refused = opened.is_err()
                || crate::support::verify(&opened.unwrap(), 1)
                    .iter()
                    .any(|finding| finding.severity == Severity::Error);
            assert!(refused, "{}", path.display());
        }
    }
}

#[test]
fn the_content_counts_what_parts_are_as_docs_digest_says() {
    // From the JSON of the fixture, by xtask/interop/digest.py.
    let expected = "1b1faa340461c43f843fd7971b4e2b31635e479daac357e8a7ec2828376c6d6f";
    assert_eq!(crate::support::hex(&content(&open("v2_mx"))), expected);
}
