//! What is special to GGUF: dequantization to the last bit, typed metadata, parts, quantization.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::support::{InMemory, Kind, cases, hex, write_to_memory};
use tenfold::format::{Effect, Finding, Lost, Registry, Severity};
use tenfold::io::MemoryOutput;
use tenfold::model::{BlockSpec, DType, DigestKind, Payload, SourceId, Value, ValueKind};
use tenfold::ops::{self, Conversion, ConvertOptions, Shards};
use tenfold::{Archive, ArchiveBuilder, Bytes, OpenOptions};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/gguf")
        .join(name)
}

fn sha256(bytes: &[u8]) -> String {
    let mut hasher = tenfold::digest::Hasher::new(DigestKind::Sha256).unwrap();
    hasher.update(bytes);
    hex(&hasher.finish())
}

fn rewrite(archive: &Archive, options: &ConvertOptions) -> BTreeMap<String, Vec<u8>> {
    let registry = Registry::standard();
    write_to_memory(archive, registry.get("gguf").unwrap(), options).unwrap()
}

fn reopen(files: BTreeMap<String, Vec<u8>>) -> Archive {
    let name = files.keys().next().unwrap().clone();
    InMemory::written(files, &name).open().unwrap()
}

#[test]
fn every_quantized_fixture_is_dequantized_to_the_last_bit() {
    let mut types = std::collections::BTreeSet::new();
    for case in cases(Kind::Valid) {
        if case.format != "gguf" {
            continue;
        }
        let archive = case.open().unwrap();
        let numbers = ops::dequantize(&archive).unwrap();
        let floats = ops::cast(&numbers, |info| {
            matches!(info.dtype, DType::F16 | DType::BF16).then_some(DType::F32)
        })
        .unwrap();
        for (tensor, expected) in floats.tensors().zip(case.list("tensors")) {
            let Some(sum) = expected["dequantized_sha256_f32"].as_str() else {
                continue;
            };
            let bytes = tensor.canonical().unwrap();
            assert_eq!(sha256(&bytes), sum, "{} {}", case.title(), tensor.name());
            types.insert(expected["dtype"].as_str().unwrap().to_owned());
        }
    }
    // All but those that are internal to ggml.
    let internal = ["Q8_1", "Q8_K"];
    let blocks = BlockSpec::all()
        .iter()
        .filter(|spec| !internal.contains(&spec.name));
    let missing: Vec<_> = blocks
        .map(|spec| format!("gguf:{}", spec.name))
        .filter(|name| !types.contains(name))
        .collect();
    assert!(missing.is_empty(), "no fixture of {missing:?}");
}

#[test]
fn dequantized_tensors_can_be_cast_on_top() {
    let archive = Archive::open(fixture("valid/quant_k.gguf")).unwrap();
    let numbers = ops::dequantize(&archive).unwrap();
    let halves = ops::cast(&numbers, |_| Some(DType::F16)).unwrap();
    for (full, half) in numbers.tensors().zip(halves.tensors()) {
        let full = full.typed::<f32>().unwrap().to_vec();
        let half = half.canonical().unwrap();
        assert_eq!(half.len(), 2 * full.len());
    }
}

#[test]
fn long_arrays_are_counted_not_loaded_and_carried() {
    let archive = Archive::open(fixture("valid/tokenizer_like.gguf")).unwrap();
    let long = |archive: &Archive| {
        let metadata = archive.metadata().clone();
        let elsewhere = metadata.iter().filter_map(|(key, value)| match value {
            Value::Elsewhere(list) => Some((key.to_owned(), list.kind, list.count)),
            _ => None,
        });
        elsewhere.collect::<Vec<_>>()
    };
    let before = long(&archive);
    assert!(before.iter().any(|(_, kind, _)| *kind == ValueKind::Str));
    assert!(before.iter().all(|(_, _, count)| *count > 64));
    let written = reopen(rewrite(&archive, &ConvertOptions::default()));
    assert_eq!(long(&written), before);
    let (before, after) = (
        archive.load_metadata().unwrap(),
        written.load_metadata().unwrap(),
    );
    for (key, value) in before.iter() {
        assert_eq!(after.get(key), Some(value), "{key}");
        assert!(!matches!(value, Value::Elsewhere(_)));
    }
}

#[test]
fn every_type_of_metadata_survives_a_rewrite_as_it_is() {
    for name in ["valid/kv_no_nested.gguf", "valid/kv_big_endian.gguf"] {
        let archive = Archive::open(fixture(name)).unwrap();
        let registry = Registry::standard();
        let options = ConvertOptions::default().allow(Effect::Changed);
        let conversion =
            Conversion::prepare(&archive, registry.get("gguf").unwrap(), &options).unwrap();
        let changed = conversion
            .losses
            .iter()
            .filter(|loss| loss.effect > Effect::Rearranged);
        let changed: Vec<_> = changed.map(|loss| loss.what.clone()).collect();
        let written = reopen(rewrite(&archive, &options));
        for (key, value) in archive.load_metadata().unwrap().iter() {
            if changed.contains(&Lost::Metadata(key.to_owned())) {
                assert!(matches!(value, Value::List(_)), "{key}: {value:?}");
                continue;
            }
            assert_eq!(written.metadata().get(key), Some(value), "{key}");
        }
        // Empty arrays keep the type of the entries that they do not have.
        let empty = |archive: &Archive| {
            let metadata = archive.metadata().clone();
            let kinds = metadata.iter().filter_map(|(key, value)| match value {
                Value::Empty(kind) => Some((key.to_owned(), *kind)),
                _ => None,
            });
            kinds.collect::<Vec<_>>()
        };
        assert_eq!(empty(&written), empty(&archive));
    }
}

#[test]
fn arrays_of_arrays_are_read_and_become_text_only_when_allowed() {
    let archive = Archive::open(fixture("valid/all_kv_types.gguf")).unwrap();
    let registry = Registry::standard();
    let entry = registry.get("gguf").unwrap();
    let conversion = Conversion::prepare(&archive, entry, &ConvertOptions::default()).unwrap();
    assert!(conversion.refuse_losses().is_err());
    let options = ConvertOptions::default().allow(Effect::Changed);
    let written = reopen(rewrite(&archive, &options));
    assert_eq!(written.metadata().len(), archive.metadata().len());
    let strict = OpenOptions::new()
        .strict(true)
        .open(fixture("valid/all_kv_types.gguf"));
    assert_eq!(strict.map(drop).unwrap_err().rule(), "gguf.nested");
}

#[test]
fn a_model_in_parts_is_opened_by_any_of_them_and_by_its_directory() {
    let first = Archive::open(fixture("valid/split_3/model-00001-of-00003.gguf")).unwrap();
    let names: Vec<_> = first
        .tensors()
        .map(|tensor| tensor.name().to_owned())
        .collect();
    for path in ["valid/split_3/model-00002-of-00003.gguf", "valid/split_3"] {
        let archive = Archive::open(fixture(path)).unwrap();
        let found: Vec<_> = archive
            .tensors()
            .map(|tensor| tensor.name().to_owned())
            .collect();
        assert_eq!(found, names, "{path}");
        assert_eq!(archive.metadata(), first.metadata(), "{path}");
        let digest = |archive: &Archive| crate::support::digest(archive, 1).content;
        assert_eq!(digest(&archive), digest(&first), "{path}");
    }
}

#[test]
fn a_part_without_the_others_is_shown_with_a_warning() {
    let bytes = std::fs::read(fixture("valid/split_3/model-00002-of-00003.gguf")).unwrap();
    let archive = Archive::from_bytes(bytes).unwrap();
    assert_eq!(archive.tensors().len(), 2);
    let warned = |rule: &str| {
        archive
            .findings()
            .iter()
            .any(|finding| finding.rule == rule)
    };
    assert!(warned("gguf.split"));
}

#[test]
fn parts_are_written_and_joined_again() {
    let archive = Archive::open(fixture("valid/many_tensors.gguf")).unwrap();
    let options = ConvertOptions::default().shards(Some(Shards::Size(200)));
    let registry = Registry::standard();
    let mut out = MemoryOutput::new();
    let conversion =
        Conversion::prepare(&archive, registry.get("gguf").unwrap(), &options).unwrap();
    conversion.write_to("big.gguf", &mut out).unwrap();
    let files = out.into_files();
    let count = files.len();
    assert!(count > 2, "{count}");
    assert!(files.contains_key(&format!("big-00001-of-{count:05}.gguf")));
    let parts = reopen(files);
    assert_eq!(
        crate::support::digest(&parts, 1).content,
        crate::support::digest(&archive, 1).content
    );
    assert_eq!(
        parts.metadata().get("split.count"),
        Some(&Value::U16(u16::try_from(count).unwrap()))
    );
    let total = i32::try_from(archive.tensors().len()).unwrap();
    assert_eq!(
        parts.metadata().get("split.tensors.count"),
        Some(&Value::I32(total))
    );
    assert!(parts.source(SourceId(1)).is_some());
    // Written as one file again, nothing speaks of parts.
    let one = reopen(rewrite(&parts, &ConvertOptions::default()));
    assert_eq!(one.metadata().get("split.count"), None);
    assert_eq!(
        crate::support::digest(&one, 1).content,
        crate::support::digest(&archive, 1).content
    );
}

#[test]
fn what_readers_need_is_written() {
    let mut builder = ArchiveBuilder::new();
    builder
        .push("w", DType::F32, &[2, 32], numbers(64))
        .unwrap();
    let archive = to_blocks(&builder.finish(), "Q8_0").unwrap();
    let options = ConvertOptions::default().options([("align", "64"), ("architecture", "llama")]);
    let written = reopen(rewrite(&archive, &options));
    let metadata: Vec<_> = written.metadata().iter().collect();
    assert_eq!(
        metadata[0],
        ("general.architecture", &Value::Str("llama".into()))
    );
    let get = |key| written.metadata().get(key);
    assert_eq!(get("general.alignment"), Some(&Value::U32(64)));
    assert_eq!(get("general.quantization_version"), Some(&Value::U32(2)));
    let (_, range) = written.manifest().tensors[0].parts[0]
        .payload
        .stored()
        .unwrap();
    assert_eq!(range.start % 64, 0);
    assert_eq!(written.len_bytes() % 64, 0);
}

/// 0.0, 0.25, -0.5, 0.75 and so on.
fn numbers(count: u16) -> Bytes {
    let number = |n: u16| f32::from(n) * if n.is_multiple_of(2) { -0.25 } else { 0.25 };
    let bytes: Vec<u8> = (0..count).flat_map(|n| number(n).to_le_bytes()).collect();
    bytes.into()
}

/// Every tensor as blocks of a type.
fn to_blocks(archive: &Archive, kind: &str) -> tenfold::Result<Archive> {
    let spec = BlockSpec::from_name(kind);
    let options = ops::QuantizeOptions::new().rule(move |_| spec);
    Ok(ops::quantize(archive, &options)?.archive)
}

#[test]
fn what_quantizing_loses_is_counted() {
    let mut numbers = vec![1f32; 4 * 32];
    // The scale of the second block is too large for f16, that of the third too small; a zero is lost nowhere.
    numbers[32] = 1e10;
    numbers[64..96].fill(1e-10);
    numbers[64] = 0.0;
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let mut builder = ArchiveBuilder::new();
    builder
        .push("x", DType::F32, &[4, 32], Bytes::from(bytes))
        .unwrap();
    let archive = builder.finish();
    for kind in ["Q8_0", "Q4_0"] {
        let blocks = to_blocks(&archive, kind);
        let registry = Registry::standard();
        let options = ConvertOptions::default();
        let conversion =
            Conversion::prepare(&blocks.unwrap(), registry.get("gguf").unwrap(), &options).unwrap();
        let written = conversion.write_to("x.gguf", &mut MemoryOutput::new());
        let casts = written.unwrap().casts;
        assert_eq!((casts.numbers, casts.nans), (128, 0), "{kind}");
        assert_eq!((casts.overflows, casts.underflows), (32, 31), "{kind}");
    }
}

#[test]
fn operations_that_would_be_passed_over_are_refused() {
    let q8 = |archive: &Archive| to_blocks(archive, "Q8_0");
    let rule = |refused: tenfold::Result<Archive>| refused.map(drop).unwrap_err().rule().to_owned();
    let mut builder = ArchiveBuilder::new();
    builder
        .push("x", DType::F32, &[32], Bytes::from(vec![0; 128]))
        .unwrap();
    let blocks = q8(&builder.finish()).unwrap();
    assert_eq!(rule(ops::dequantize(&blocks)), "file.dequantize");
    assert_eq!(rule(to_blocks(&blocks, "Q4_0")), "file.quantize");

    let stored = Archive::open(fixture("valid/quant_legacy.gguf")).unwrap();
    let numbers = ops::dequantize(&stored).unwrap();
    let halves = ops::cast(&numbers, |_| Some(DType::F16)).unwrap();
    assert_eq!(rule(q8(&halves)), "file.quantize");
    let again = ops::dequantize(&halves).unwrap();
    assert!(
        again
            .tensors()
            .all(|tensor| tensor.info().dtype == DType::F16)
    );
}

#[test]
fn quantizing_what_was_dequantized_gives_the_same_blocks() {
    let mut seen = 0;
    for name in ["quant_legacy", "quant_3d"] {
        let archive = Archive::open(fixture(&format!("valid/{name}.gguf"))).unwrap();
        for wanted in ["Q8_0", "Q4_0"] {
            let spec = BlockSpec::from_name(wanted).unwrap();
            let blocks = archive.select(|info| info.dtype == DType::Block(spec));
            let numbers = ops::dequantize(&blocks).unwrap();
            let again = to_blocks(&numbers, spec.name).unwrap();
            for (before, after) in blocks.tensors().zip(again.tensors()) {
                let (before, after) = (before.canonical().unwrap(), after.canonical().unwrap());
                let size = spec.bytes as usize;
                for (before, after) in before.chunks(size).zip(after.chunks(size)) {
                    // Scales that are too small for a half are 0, and the codes beside them are lost. The sign of such a
                    // scale is another one afterwards, as it is with gguf-py.
                    if !matches!(before[..2], [0, 0 | 0x80]) {
                        assert_eq!(before, after, "{wanted}");
                    }
                }
                seen += 1;
            }
        }
    }
    assert!(seen >= 2, "{seen}");
}

#[test]
fn halves_are_rounded_away_from_zero_and_codes_are_clamped() {
    // The largest is 127, so that the scale is 1.
    let mut values = [0.0f32; 32];
    values[..5].copy_from_slice(&[127.0, 0.5, -0.5, 1.5, -2.5]);
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let mut builder = ArchiveBuilder::new();
    builder
        .push("v", DType::F32, &[32], Bytes::from(bytes))
        .unwrap();
    let archive = builder.finish();
    let q8 = to_blocks(&archive, "Q8_0").unwrap();
    let blocks = q8.tensor("v").unwrap().canonical().unwrap();
    assert_eq!(blocks[..7], [0x00, 0x3c, 127, 1, 0xff, 2, 0xfd]);
    // The largest becomes -8 times the scale, and what would be 16 becomes 15.
    let q4 = to_blocks(&archive, "Q4_0").unwrap();
    let blocks = q4.tensor("v").unwrap().canonical().unwrap();
    assert_eq!(blocks[2] & 15, 0);
    assert_eq!(blocks[3] & 15, 8);
    let error = to_blocks(&archive, "Q8_1").map(drop);
    assert_eq!(error.unwrap_err().rule(), "file.quantize");
}

#[test]
fn rows_that_are_no_whole_blocks_fall_back_and_it_is_said() {
    let mut builder = ArchiveBuilder::new();
    for (name, row) in [("none", 33), ("small", 32)] {
        builder
            .push(
                name,
                DType::F32,
                &[2, row],
                numbers(u16::try_from(2 * row).unwrap()),
            )
            .unwrap();
    }
    let spec = BlockSpec::from_name("Q6_K");
    let options = ops::QuantizeOptions::new().every_matrix(spec);
    let quantized = ops::quantize(&builder.finish(), &options).unwrap();
    let types: Vec<_> = (quantized.choices.iter())
        .map(|choice| (choice.to.to_string(), choice.instead_of))
        .collect();
    let expected = ["f16", "gguf:Q8_0"].map(|to| (to.to_owned(), spec));
    assert_eq!(types, expected);
    let said: Vec<_> = (quantized.remarks.iter())
        .map(|remark| &*remark.message)
        .collect();
    assert!(
        said[0].contains("none") && said[1].contains("small"),
        "{said:?}"
    );
}

#[test]
fn what_ggml_would_refuse_is_a_warning() {
    for (name, rule) in [
        ("rank_5_6", "gguf.rank-over-4"),
        ("name_200_bytes", "gguf.long-name"),
        ("all_kv_types", "gguf.nested"),
        ("bytes_after_data", "gguf.trailing"),
    ] {
        let archive = Archive::open(fixture(&format!("valid/{name}.gguf"))).unwrap();
        let findings = crate::support::verify(&archive, 1);
        let found = findings.iter().find(|finding| finding.rule == rule);
        assert_eq!(found.unwrap().severity, Severity::Warning, "{name}");
    }
}

#[test]
fn a_type_that_no_program_writes_big_endian_loses_only_itself() {
    // Q5_0 in place of Q8_0, whose blocks are larger: the rest of the data belongs to nothing then.
    let mut bytes = std::fs::read(fixture("valid/quant_big_endian.gguf")).unwrap();
    let q8_0 = BlockSpec::from_name("Q8_0").map(DType::Block);
    let archive = Archive::from_bytes(bytes.clone()).unwrap();
    let tensors = &archive.manifest().tensors;
    let info = tensors
        .iter()
        .find(|info| Some(info.dtype) == q8_0)
        .unwrap();
    let name = bytes
        .windows(info.name.len())
        .position(|window| window == info.name.as_bytes())
        .unwrap();
    // Behind the name: the number of dimensions, the dimensions, and the type, all big-endian.
    let kind = name + info.name.len() + 4 + 8 * info.shape.len();
    assert_eq!(bytes[kind..kind + 4], [0, 0, 0, 8]);
    bytes[kind + 3] = 6;
    let archive = Archive::from_bytes(bytes).unwrap();
    let unreadable = archive
        .tensors()
        .filter(|tensor| tensor.info().defect.is_some());
    let rules: Vec<_> = unreadable
        .map(|tensor| tensor.canonical().unwrap_err().rule().to_owned())
        .collect();
    assert_eq!(rules, ["gguf.big-endian"]);
    assert!(archive.tensors().any(|tensor| tensor.canonical().is_ok()));
}

/// The bytes of a tensor in its file, from the beginning of the data of the first one.
fn stored(archive: &Archive, name: &str) -> std::ops::Range<u64> {
    let range = |name: &str| match &archive.tensor(name).unwrap().info().parts[0].payload {
        Payload::Raw { range, .. } => range.clone(),
        other => panic!("{other:?}"),
    };
    let begin = range("before").start;
    let found = range(name);
    found.start - begin..found.end - begin
}

#[test]
fn a_tensor_of_an_unknown_type_has_the_bytes_up_to_the_next_one() {
    for (file, name, bytes) in [
        ("tensor_type_unknown_beside_others.gguf", "new", 32..96),
        ("tensor_type_removed_last.gguf", "old", 32..64),
    ] {
        let archive = Archive::open(fixture("reject").join(file)).unwrap();
        assert_eq!(stored(&archive, name), bytes, "{file}");
        let tensor = archive.tensor(name).unwrap();
        assert_eq!(tensor.info().dtype, DType::UNKNOWN, "{file}");
        assert_eq!(tensor.canonical().unwrap_err().rule(), "gguf.type");
        // Nothing else is wrong: what it is made of is claimed, and no gap is seen behind it.
        let findings = crate::support::verify(&archive, 1);
        let serious = |finding: &&Finding| finding.severity != Severity::Note;
        let rules: Vec<_> = findings.iter().filter(serious).map(|f| &f.rule).collect();
        assert_eq!(rules, ["gguf.type"], "{file}");
    }
}
