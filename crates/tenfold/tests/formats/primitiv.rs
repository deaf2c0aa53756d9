//! What is special to primitiv files, beside what every format is tested for.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value as Json;
use tenfold::format::{Effect, Registry, Severity};
use tenfold::io::{Limits, MemoryOutput};
use tenfold::model::{DType, Layout, Value};
use tenfold::ops::{self, ConvertOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes, ErrorKind, Hint, OpenOptions, Result};

fn fixtures(kind: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../../fixtures/primitiv").join(kind)
}

fn valid(name: &str) -> PathBuf {
    fixtures("valid").join(name).with_extension("primitiv")
}

/// Every valid file: its stem, its path, what is known of it.
fn all_valid() -> Vec<(String, PathBuf, Json)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(fixtures("valid")).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "primitiv")
        {
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let known = fs::read_to_string(path.with_extension("json")).unwrap();
            files.push((stem, path, serde_json::from_str(&known).unwrap()));
        }
    }
    files.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(files.len() > 50);
    files
}

fn options(own: &[(&str, &str)]) -> ConvertOptions {
    ConvertOptions::new()
        .options(own.iter().copied())
        .check(true)
}

fn write_as(archive: &Archive, to: &str, name: &str, options: &ConvertOptions) -> Result<Vec<u8>> {
    let registry = Registry::standard();
    let conversion = ops::Conversion::prepare(archive, registry.get(to)?, options)?;
    let mut output = MemoryOutput::new();
    conversion.write_to(name, &mut output)?;
    Ok(output.into_files().remove(name).unwrap())
}

fn write(archive: &Archive, own: &[(&str, &str)]) -> Result<Vec<u8>> {
    write_as(archive, "primitiv", "out.primitiv", &options(own))
}

fn open(bytes: Vec<u8>, name: &str) -> Result<Archive> {
    OpenOptions::new().read(Arc::new(Bytes::from(bytes)), Some(name))
}

fn rewrite(archive: &Archive, own: &[(&str, &str)]) -> Archive {
    open(write(archive, own).unwrap(), "out.primitiv").unwrap()
}

fn refusal(archive: &Archive, own: &[(&str, &str)]) -> String {
    let error = write(archive, own).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lossy, "{error}");
    error.message().to_owned()
}

fn names(archive: &Archive) -> Vec<&str> {
    archive.tensors().map(|tensor| tensor.name()).collect()
}

fn numbers(values: &[f32]) -> Bytes {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect::<Vec<_>>()
        .into()
}

/// An archive of tensors that count up from 1.
fn archive(tensors: &[(&str, &[u64])]) -> Archive {
    let mut builder = ArchiveBuilder::new();
    for (name, shape) in tensors {
        let count: u16 = shape.iter().product::<u64>().try_into().unwrap();
        let values: Vec<_> = (1..=count).map(f32::from).collect();
        builder
            .push(*name, DType::F32, shape, numbers(&values))
            .unwrap();
    }
    builder.finish()
}

fn data_type(archive: &Archive) -> &str {
    archive
        .metadata()
        .get("data_type")
        .unwrap()
        .as_str()
        .unwrap()
}

/// Whether the real writer has no choice of order in what it wrote here.
fn has_one_order(known: &Json) -> bool {
    let by_real_writer = known["written_by"]
        .as_str()
        .unwrap()
        .starts_with("primitiv ");
    let mut stats = BTreeMap::new();
    for tensor in known["tensors"].as_array().unwrap() {
        if tensor["metadata"]["role"] == "stat" {
            *stats
                .entry(tensor["metadata"]["key"].to_string())
                .or_insert(0) += 1;
        }
    }
    let configs = ["uint_configs", "float_configs"].map(|key| known["metadata"][key].as_object());
    by_real_writer
        && stats.values().all(|&count| count < 2)
        && configs.into_iter().flatten().all(|map| map.len() < 2)
}

#[test]
fn files_of_the_real_writer_are_written_again_byte_by_byte() {
    let mut compared = 0;
    for (stem, path, known) in all_valid() {
        let name = format!("{stem}.primitiv");
        let original = Archive::open(&path).unwrap();
        let written = write_as(&original, "primitiv", &name, &options(&[])).unwrap();
        if has_one_order(&known) {
            assert_eq!(written, fs::read(&path).unwrap(), "{stem}");
            compared += 1;
        }
        // Whatever the order was, it is settled now.
        let again = open(written.clone(), &name).unwrap();
        assert_eq!(
            write_as(&again, "primitiv", &name, &options(&[])).unwrap(),
            written,
            "{stem}"
        );
        assert_eq!(data_type(&again), data_type(&original), "{stem}");
    }
    assert!(compared > 25, "{compared}");
}

#[test]
fn files_survive_the_way_through_ztensor_2() {
    for (stem, path, _) in all_valid() {
        let name = format!("{stem}.primitiv");
        let original = Archive::open(&path).unwrap();
        let to_zt = options(&[]).version(Some("2"));
        let between = match write_as(&original, "ztensor", "between.zt", &to_zt) {
            Ok(bytes) => Archive::from_bytes(bytes).unwrap(),
            // It takes no empty names, and none of more than 1024 bytes.
            Err(error) => {
                assert!(error.message().contains("name: it "), "{stem}: {error}");
                continue;
            }
        };
        let direct = write_as(&original, "primitiv", &name, &options(&[])).unwrap();
        let back = write_as(&between, "primitiv", &name, &options(&[])).unwrap();
        assert_eq!(back, direct, "{stem}");
    }
}

#[test]
fn leaving_out_what_the_name_says_too_is_no_loss() {
    let original = Archive::open(valid("model_nested_stats")).unwrap();
    let conversion = ops::Conversion::prepare(
        &original,
        Registry::standard().get("mag").unwrap(),
        &options(&[]),
    )
    .unwrap();
    let about_tensors = conversion
        .losses
        .iter()
        .filter(|loss| loss.tensor.is_some());
    assert!(
        about_tensors
            .clone()
            .all(|loss| loss.effect == Effect::Rearranged),
        "{:?}",
        conversion.losses
    );
    let magnetron = write_as(&original, "mag", "m.mag", &options(&[])).unwrap();
    let back = write(&Archive::from_bytes(magnetron).unwrap(), &[]).unwrap();
    assert_eq!(back, write(&original, &[]).unwrap());
}

#[test]
fn the_first_index_runs_fastest_and_the_batch_last() {
    let written = write(&archive(&[("w", &[2, 3])]), &[("kind", "parameter")]).unwrap();
    // The example of the fact sheet: 1 to 6 row by row.
    let mut expected = b"\xce\0\0\0\0\xce\0\0\0\x01\xce\0\0\x02\0\x92\xce\0\0\0\x02\xce\0\0\0\x03\xce\0\0\0\x01\xc4\x18".to_vec();
    expected.extend_from_slice(&numbers(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    expected.extend_from_slice(b"\xce\0\0\0\0");
    assert_eq!(written, expected);

    let batched = Archive::open(valid("tensor_batched")).unwrap();
    let tensor = batched.tensor("tensor_batched").unwrap();
    assert_eq!(tensor.info().shape, [2, 3, 4]);
    assert_eq!(tensor.info().layout, Layout::ColumnMajor);
    assert_eq!(tensor.info().metadata.get("batch"), Some(&Value::U32(4)));
    assert_eq!(
        write(&batched, &[]).unwrap(),
        fs::read(valid("tensor_batched")).unwrap()
    );
}

#[test]
fn settings_of_an_optimizer_are_typed_metadata() {
    let optimizer = Archive::open(valid("optimizer_adam")).unwrap();
    let map = |key: &str| match optimizer.metadata().get(key) {
        Some(Value::Map(map)) => map.clone(),
        other => panic!("{key}: {other:?}"),
    };
    assert_eq!(
        map("uint_configs").get("Optimizer.epoch"),
        Some(Value::U32(u32::MAX))
    );
    assert_eq!(
        map("float_configs").get("Adam.beta1"),
        Some(Value::F32(0.8))
    );
    let again = rewrite(&optimizer, &[]);
    let float_configs = match again.metadata().get("float_configs") {
        Some(Value::Map(map)) => map
            .iter()
            .map(|(key, _)| key.to_owned())
            .collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert!(float_configs.is_sorted(), "{float_configs:?}");
}

#[test]
fn a_set_of_tensors_becomes_a_model_sorted_by_the_parts_of_its_keys() {
    let set = archive(&[
        ("layer2.w", &[2]),
        ("layer10.w", &[2]),
        ("a\\.b", &[1]),
        ("a.b", &[1]),
        ("layer10", &[0; 0]),
    ]);
    let message = refusal(&set, &[]);
    assert!(
        message.contains("\"layer10.w\"") && message.contains("\"layer10\" is a parameter"),
        "{message}"
    );
    let set = set.select(|tensor| tensor.name != "layer10");
    let model = rewrite(&set, &[]);
    assert_eq!(data_type(&model), "Model");
    assert_eq!(names(&model), ["a.b", "a\\.b", "layer10.w", "layer2.w"]);
    let key = model
        .tensor("layer10.w")
        .unwrap()
        .info()
        .metadata
        .get("key")
        .cloned();
    assert_eq!(
        key,
        Some(Value::List(
            vec![Value::Str("layer10".into()), Value::Str("w".into())].into()
        ))
    );
}

#[test]
fn names_that_would_not_read_back_are_refused() {
    assert!(refusal(&archive(&[("a\\b", &[1])]), &[]).contains("backslash"));
    let message = refusal(&archive(&[("a@b", &[1])]), &[]);
    assert!(
        message.contains("a statistic of \"a\", which is missing"),
        "{message}"
    );
    // A file of one parameter has no names at all.
    for name in ["a\\b", "a@b", "a\\"] {
        let stat = format!("{name}@Adam.m1");
        let parameter = rewrite(
            &archive(&[(name, &[1]), (&stat, &[2])]),
            &[("kind", "parameter")],
        );
        assert_eq!(names(&parameter), ["out", "out@Adam.m1"], "{name}");
    }
}

#[test]
fn statistics_are_kept_dropped_and_taken_out() {
    let model = Archive::open(valid("model_nested_stats")).unwrap();
    assert_eq!(names(&rewrite(&model, &[])).len(), 6);
    let without = rewrite(&model, &[("stats", "drop")]);
    assert_eq!(names(&without), ["enc.w", "out", "plain"]);
    let encoder = model.select(|tensor| tensor.name.starts_with("enc."));
    assert_eq!(
        write(&encoder, &[("stats", "drop")]).unwrap(),
        fs::read(valid("model_nested_stats_dropped")).unwrap()
    );
    let statistic = model.select(|tensor| tensor.name == "out@MomentumSGD.m");
    let error = write(&statistic, &[]).map(drop).unwrap_err();
    let drop_stats = |hint: &Hint| {
        matches!(
            hint,
            Hint::FormatOption {
                key: "stats",
                value: "drop",
                ..
            }
        )
    };
    assert!(error.hints().iter().any(drop_stats), "{error}");
    let tensor = rewrite(&statistic, &[("kind", "tensor")]);
    assert_eq!(
        (data_type(&tensor), names(&tensor)),
        ("Tensor", vec!["out"])
    );

    let error = write(&model, &[("stats", "some")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
}

#[test]
fn one_parameter_of_a_model_goes_into_a_file_and_back() {
    let model = Archive::open(valid("model_nested_stats")).unwrap();
    let one = model.select(|tensor| tensor.name.starts_with("enc.w"));
    let parameter = rewrite(&one, &[("kind", "parameter")]);
    assert_eq!(data_type(&parameter), "Parameter");
    assert_eq!(names(&parameter), ["out", "out@Adam.m1", "out@Adam.m2"]);
    let back = rewrite(&parameter, &[("kind", "model")]);
    assert_eq!(data_type(&back), "Model");
    for (before, after) in [("enc.w", "out"), ("enc.w@Adam.m2", "out@Adam.m2")] {
        let before = model.tensor(before).unwrap().canonical().unwrap();
        assert_eq!(back.tensor(after).unwrap().canonical().unwrap(), before);
    }
    let message = refusal(&model, &[("kind", "parameter")]);
    assert!(
        message.contains("a file of kind Parameter holds one value"),
        "{message}"
    );
}

#[test]
fn kinds_that_do_not_fit_are_refused_or_not_chosen() {
    let tensors = archive(&[("a", &[2]), ("b", &[2])]);
    for kind in ["tensor", "parameter"] {
        assert!(
            refusal(&tensors, &[("kind", kind)]).contains("holds one"),
            "{kind}"
        );
    }
    for kind in ["shape", "optimizer", "nonsense"] {
        let error = write(&tensors, &[("kind", kind)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
    }
    let mut builder = ArchiveBuilder::new();
    builder
        .metadata()
        .push("data_type", Value::Str("Parameter".into()));
    for name in ["a", "b"] {
        builder
            .push(name, DType::F32, &[1], numbers(&[1.0]))
            .unwrap();
    }
    assert_eq!(data_type(&rewrite(&builder.finish(), &[])), "Model");
    assert_eq!(names(&rewrite(&archive(&[]), &[])), [""; 0]);
}

#[test]
fn shapes_and_optimizers_come_from_metadata_of_any_width() {
    let mut builder = ArchiveBuilder::new();
    let dims = vec![Value::I64(2), Value::U64(5)];
    builder.metadata().push("dims", Value::List(dims.into()));
    builder.metadata().push("batch", Value::U8(6));
    let shape = builder.finish();
    let expected = fs::read(valid("shape_batched")).unwrap();
    assert_eq!(write(&shape, &[]).unwrap(), expected);
    assert_eq!(write(&shape, &[("kind", "shape")]).unwrap(), expected);

    let mut builder = ArchiveBuilder::new();
    let map = |value| Value::Map([("x".to_owned(), value)].into_iter().collect());
    builder.metadata().push("uint_configs", map(Value::U64(3)));
    builder
        .metadata()
        .push("float_configs", map(Value::F64(0.5)));
    let optimizer = rewrite(&builder.finish(), &[]);
    assert_eq!(data_type(&optimizer), "Optimizer");
    assert_eq!(
        optimizer.metadata().get("float_configs"),
        Some(&map(Value::F32(0.5)))
    );
}

#[test]
fn metadata_without_a_place_is_a_loss_that_is_told() {
    let mut builder = ArchiveBuilder::new();
    builder
        .push("a", DType::F32, &[1], numbers(&[1.0]))
        .unwrap();
    builder.metadata().push("epoch", Value::U32(3));
    builder.metadata().push("batch", Value::U32(32));
    let archive = builder.finish();
    let conversion = ops::Conversion::prepare(
        &archive,
        Registry::standard().get("primitiv").unwrap(),
        &options(&[]),
    )
    .unwrap();
    let dropped = conversion
        .losses
        .iter()
        .filter(|loss| loss.effect == Effect::Dropped);
    let mut dropped: Vec<_> = dropped.map(|loss| loss.what.to_string()).collect();
    dropped.sort();
    assert_eq!(dropped, ["metadata \"batch\"", "metadata \"epoch\""]);
    assert!(conversion.refuse_losses().is_err());
}

#[test]
fn a_batch_that_a_value_cannot_have_becomes_a_dimension() {
    let tensor = Archive::open(valid("tensor_batched")).unwrap();
    assert!(refusal(&tensor, &[("kind", "parameter")]).contains("metadata"));
    let options = options(&[("kind", "parameter")]).allow(Effect::Dropped);
    let bytes = write_as(&tensor, "primitiv", "p.primitiv", &options).unwrap();
    let parameter = open(bytes, "p.primitiv").unwrap();
    let info = parameter.tensor("p").unwrap().info();
    assert_eq!(
        (info.shape.as_slice(), info.metadata.get("batch")),
        ([2, 3, 4].as_slice(), None)
    );
}

#[test]
fn only_dimensions_of_1_are_dropped_from_more_than_8() {
    let long = archive(&[("w", &[2, 1, 3, 1, 1, 1, 1, 1, 1, 1])]);
    assert_eq!(
        rewrite(&long, &[]).tensor("w").unwrap().info().shape,
        [2, 1, 3, 1, 1, 1, 1, 1]
    );
    let eight = archive(&[("w", &[2, 1, 1, 1, 1, 1, 1, 1])]);
    assert_eq!(
        rewrite(&eight, &[]).tensor("w").unwrap().info().shape,
        [2, 1, 1, 1, 1, 1, 1, 1]
    );
    let nine = archive(&[("w", &[1, 1, 1, 1, 1, 1, 1, 1, 2])]);
    assert!(refusal(&nine, &[]).contains("at most 8 dimensions"));
    assert!(refusal(&archive(&[("w", &[0, 2])]), &[]).contains("dimensions of 0"));
}

#[test]
fn other_types_are_refused_unless_cast() {
    let mut builder = ArchiveBuilder::new();
    builder
        .push("a", DType::U8, &[2, 2], Bytes::from_static(&[1, 2, 3, 4]))
        .unwrap();
    let archive = builder.finish();
    let error = write(&archive, &[]).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lossy, "{error}");
    assert!(error.message().contains("dtype u8"), "{error}");
    assert_eq!(error.hints().first(), Some(&Hint::Cast(None)), "{error}");
    let model = rewrite(&ops::cast(&archive, |_| Some(DType::F32)).unwrap(), &[]);
    assert_eq!(
        model.tensor("a").unwrap().typed::<f32>().unwrap().to_vec(),
        [1.0, 2.0, 3.0, 4.0]
    );
}

/// Where the parameters of `model_nested_stats` end.
fn ends(model: &Archive) -> Vec<u64> {
    let headers = |tensor: &str| {
        let regions = &model.manifest().regions;
        let data = model.tensor(tensor).unwrap().info().parts[0]
            .payload
            .stored()
            .unwrap()
            .1;
        (
            data.end,
            regions
                .iter()
                .find(|region| region.range.start == data.end)
                .unwrap()
                .range
                .end,
        )
    };
    // Behind the data of a parameter without statistics, their number; else nothing.
    vec![
        headers("enc.w@Adam.m1").0,
        headers("out@MomentumSGD.m").0,
        headers("plain").0 + 5,
    ]
}

#[test]
fn of_a_truncated_model_the_whole_parameters_are_named_and_salvaged() {
    let bytes = fs::read(valid("model_nested_stats")).unwrap();
    let model = open(bytes.clone(), "m.primitiv").unwrap();
    let ends = ends(&model);
    assert_eq!(*ends.last().unwrap(), bytes.len() as u64);
    let parameters = ["enc.w", "out", "plain"];
    for len in 20..bytes.len() {
        let cut = bytes[..len].to_vec();
        let whole = ends.iter().filter(|&&end| end <= len as u64).count();
        let error = open(cut.clone(), "m.primitiv").map(drop).unwrap_err();
        assert_eq!(error.rule(), "primitiv.truncated", "{len}");
        assert!(
            error
                .message()
                .contains(&format!("{whole} of 3 parameters")),
            "{len}: {error}"
        );
        for (index, name) in parameters.iter().enumerate() {
            assert_eq!(
                error.message().contains(&format!("{name:?}")),
                index < whole,
                "{len}: {error}"
            );
        }
        let salvaged = OpenOptions::new()
            .salvage(true)
            .read(Arc::new(Bytes::from(cut)), None);
        if whole == 0 {
            assert!(salvaged.is_err());
            continue;
        }
        let salvaged = salvaged.unwrap();
        let warnings = salvaged
            .findings()
            .iter()
            .filter(|finding| finding.severity == Severity::Warning);
        assert_eq!(
            warnings
                .map(|finding| finding.rule.as_str())
                .collect::<Vec<_>>(),
            ["primitiv.salvaged"]
        );
        let again = rewrite(&salvaged, &[]);
        let values: Vec<_> = names(&again)
            .into_iter()
            .filter(|name| !name.contains('@'))
            .collect();
        assert_eq!(values, parameters[..whole], "{len}");
        for tensor in again.tensors() {
            let before = model.tensor(tensor.name()).unwrap().canonical().unwrap();
            assert_eq!(tensor.canonical().unwrap(), before);
        }
    }
}

#[test]
fn bytes_behind_the_object_can_be_left_behind() {
    let mut bytes = fs::read(valid("model_flat")).unwrap();
    let whole = open(bytes.clone(), "m.primitiv").unwrap();
    bytes.extend_from_slice(b"more");
    assert_eq!(
        open(bytes.clone(), "m.primitiv")
            .map(drop)
            .unwrap_err()
            .rule(),
        "primitiv.trailing"
    );
    let salvaged = OpenOptions::new()
        .salvage(true)
        .read(Arc::new(Bytes::from(bytes)), None)
        .unwrap();
    assert_eq!(names(&salvaged), names(&whole));
}

#[test]
fn a_key_inside_of_another_is_read_with_a_warning() {
    let mut bytes = b"\xce\0\0\0\0\xce\0\0\0\x01\xce\0\0\x03\0\xce\0\0\0\x03".to_vec();
    let value = b"\x90\xce\0\0\0\x01\xc4\x04\0\0\x80\x3f\xce\0\0\0\0";
    for key in [b"\x92\xa1a\xa1b".as_slice(), b"\x91\xa2a!", b"\x91\xa1a"] {
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
    }
    let model = open(bytes.clone(), "m.primitiv").unwrap();
    assert_eq!(names(&model), ["a.b", "a!", "a"]);
    let rules: Vec<_> = model
        .findings()
        .iter()
        .map(|finding| finding.rule.as_str())
        .collect();
    assert_eq!(rules, ["primitiv.prefix"]);
    let strict = OpenOptions::new()
        .strict(true)
        .read(Arc::new(Bytes::from(bytes)), None);
    assert_eq!(strict.map(drop).unwrap_err().rule(), "primitiv.prefix");
    assert!(refusal(&model, &[]).contains("\"a.b\""));
}

#[test]
fn limits_hold_for_names_and_keys() {
    let open = |bytes: Vec<u8>, limits: Limits| {
        let result = OpenOptions::new()
            .limits(limits)
            .read(Arc::new(Bytes::from(bytes)), None);
        result.map(drop).unwrap_err().rule().to_owned()
    };
    let long = fs::read(valid("model_long_name")).unwrap();
    let small = Limits::default().header_bytes(64);
    assert_eq!(open(long, small), "primitiv.limit");
    let mut deep = b"\xce\0\0\0\0\xce\0\0\0\x01\xce\0\0\x03\0\xce\0\0\0\x01\xdc\xff\xff".to_vec();
    deep.resize(deep.len() + 65535, 0xa0);
    assert_eq!(open(deep, Limits::default()), "primitiv.limit");
}

#[test]
fn files_that_the_real_reader_refuses_are_recognized_and_told_why() {
    for (name, words) in [
        ("version_as_fixint", "expected a uint 32"),
        ("wrapped_in_array", "nothing around them"),
        ("version_1_1", "version 1.1, only 0.1 exists"),
        ("truncated_one_byte", "truncated"),
    ] {
        let path = fixtures("reject").join(name).with_extension("primitiv");
        let error = Archive::open(path).map(drop).unwrap_err();
        assert_eq!(error.format(), Some("primitiv"), "{name}");
        assert!(error.message().contains(words), "{error}");
    }
}

#[test]
fn every_rule_that_files_are_refused_under_is_on_the_page() {
    let page = include_str!("../../../../docs/formats/primitiv.md");
    for entry in fs::read_dir(fixtures("reject")).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "primitiv")
        {
            let error = Archive::open(&path).map(drop).unwrap_err();
            let rule = error.rule();
            if rule.starts_with("primitiv.") {
                assert!(page.contains(&format!("| `{rule}` |")), "{rule}");
            }
        }
    }
}

#[test]
fn a_batch_is_a_note() {
    for (name, of) in [
        ("tensor_batched", "batch 4 of tensor \"tensor_batched\""),
        ("shape_batched", "batch 6 of the shape"),
        ("tensor_matrix", ""),
    ] {
        let archive = Archive::open(valid(name)).unwrap();
        let notes: Vec<_> = crate::support::verify(&archive, 1)
            .into_iter()
            .filter(|finding| finding.rule == "primitiv.batch")
            .map(|finding| (finding.severity, finding.message))
            .collect();
        let expected = format!("{of}; the specification requires 1");
        let expected = (!of.is_empty()).then_some((Severity::Note, expected));
        assert_eq!(notes, Vec::from_iter(expected), "{name}");
    }
}

#[test]
fn a_copy_of_a_parameter_under_another_name_is_equal() {
    let path = valid("hand_param");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("another.primitiv");
    fs::copy(&path, &copy).unwrap();
    let (a, b) = (Archive::open(&path).unwrap(), Archive::open(&copy).unwrap());
    assert!(a.tensors().len() > 1);
    let found = ops::diff(&a, &b, &ops::DiffOptions::default()).unwrap();
    assert!(found.is_equal(), "{found:?}");
    assert_eq!(found.equal, a.tensors().len());
    // The content counts names.
    let content = |archive: &Archive| crate::support::digest(archive, 1).content.unwrap();
    assert_ne!(content(&a), content(&b));
}
