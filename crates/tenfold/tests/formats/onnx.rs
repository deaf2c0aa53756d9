//! What is special to ONNX: constants and sparse initializers, models that are written again, names in graphs, data in other
//! files.

// Files that are made to be read.
#![allow(clippy::disallowed_methods)]
// A test may panic.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::amplifiers::onnx::{field, onnx_model};
use crate::support::values::is_expected;
use crate::support::{Case, InMemory, Kind, cases, errors, hex, verify, write_to_memory};
use tenfold::format::{Effect, Lost, Registry, Severity};
use tenfold::model::{DType, Layout, Payload, Value};
use tenfold::ops::{self, Conversion, ConvertOptions, Edit};
use tenfold::{Archive, Bytes, ErrorKind, Hint, OpenOptions, Result};

fn of(kind: Kind) -> Vec<Case> {
    let all = cases(kind).into_iter();
    all.filter(|case| case.format == "onnx").collect()
}

fn case(name: &str) -> Case {
    let all = of(Kind::Valid).into_iter().chain(of(Kind::Reject));
    all.into_iter().find(|case| case.name == name).unwrap()
}

fn write(from: &Archive, options: &ConvertOptions) -> Result<BTreeMap<String, Vec<u8>>> {
    write_to_memory(from, Registry::standard().get("onnx").unwrap(), options)
}

fn reopen(files: BTreeMap<String, Vec<u8>>) -> Archive {
    InMemory::written(files, "written.onnx").open().unwrap()
}

/// A model of these fields of its graph.
fn model(graph: &[Vec<u8>]) -> Bytes {
    onnx_model(&field(7, &graph.concat())).into()
}

/// An initializer of two bytes.
fn tensor(name: &str) -> Vec<u8> {
    let rest = b"\x08\x02\x10\x02\x4a\x02\x07\x09";
    field(5, &[&field(8, name.as_bytes())[..], rest].concat())
}

fn node(inputs: &[&str], output: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut fields: Vec<_> = (inputs.iter())
        .map(|name| field(1, name.as_bytes()))
        .collect();
    fields.push(field(2, output.as_bytes()));
    fields.push(field(4, b"Add"));
    fields.extend_from_slice(attributes);
    field(1, &fields.concat())
}

/// An attribute that is a graph.
fn subgraph(fields: &[Vec<u8>]) -> Vec<u8> {
    field(
        5,
        &[field(1, b"then_branch"), field(6, &fields.concat())].concat(),
    )
}

fn open(bytes: &Bytes) -> Result<Archive> {
    OpenOptions::new().read(Arc::new(bytes.clone()), Some("m.onnx"))
}

fn renamed(from: &Archive, old: &str, new: &str) -> Archive {
    ops::rename(from, |name| (name == old).then(|| new.to_owned())).unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    let mut hasher = tenfold::digest::Hasher::new(tenfold::model::DigestKind::Sha256).unwrap();
    hasher.update(bytes);
    hex(&hasher.finish())
}

#[test]
fn constants_and_initializers_of_subgraphs_are_listed_when_they_are_asked_for() {
    let case = case("nodes_and_subgraphs");
    let options = OpenOptions::new().option("constants", "true");
    let archive = options.open(&case.path).unwrap();
    let expected: Vec<_> = case
        .list("tensors")
        .iter()
        .chain(case.list("extra_tensors"))
        .collect();
    // Both branches have an initializer of the same name and content; the JSON has one of them.
    let names: Vec<_> = archive
        .tensors()
        .map(|tensor| tensor.name().to_owned())
        .collect();
    assert_eq!(names, ["W", "cond", "c_out", "sw", "sw~2"]);
    let (first, second) = (
        archive.tensor("sw").unwrap(),
        archive.tensor("sw~2").unwrap(),
    );
    assert_eq!(first.canonical().unwrap(), second.canonical().unwrap());
    assert_eq!(expected.len(), 4);
    for (tensor, expected) in archive.tensors().zip(expected) {
        assert_eq!(tensor.name(), expected["name"]);
        assert_eq!(tensor.info().dtype.to_string(), expected["dtype"]);
        assert_eq!(sha256(&tensor.canonical().unwrap()), expected["sha256"]);
    }
}

#[test]
fn the_metadata_of_every_fixture_is_all_that_is_known_and_nothing_else() {
    for case in of(Kind::Valid) {
        let archive = case.open().unwrap();
        let known = case.expected["metadata"].as_object().unwrap();
        let found: Vec<_> = archive.metadata().iter().map(|(key, _)| key).collect();
        let mut keys: Vec<_> = known.keys().map(String::as_str).collect();
        let mut sorted = found.clone();
        keys.sort_unstable();
        sorted.sort_unstable();
        assert_eq!(sorted, keys, "{}", case.title());
        for (tensor, expected) in archive.tensors().zip(case.list("tensors")) {
            let known = expected.get("metadata").and_then(|known| known.as_object());
            let count = known.map_or(0, serde_json::Map::len);
            assert_eq!(tensor.info().metadata.len(), count, "{}", case.title());
            for (key, value) in known.into_iter().flatten() {
                let found = tensor.info().metadata.get(key).unwrap();
                assert!(is_expected(found, value), "{}: {found:?}", case.title());
            }
        }
    }
}

#[test]
fn data_is_where_the_fixtures_say() {
    for case in of(Kind::Valid) {
        let archive = case.open().unwrap();
        for (tensor, expected) in archive.tensors().zip(case.list("tensors")) {
            let what = format!("{} {:?}", case.title(), tensor.name());
            let payload = &tensor.info().parts[0].payload;
            match expected["stored_in"].as_str().unwrap() {
                "external" => {
                    let (source, _) = payload.stored().unwrap();
                    let location = &expected["external_data"]["location"];
                    assert_eq!(archive.source_name(source).unwrap(), location, "{what}");
                }
                "raw_data" => {
                    assert!(matches!(payload, Payload::Raw { source, .. } if source.0 == 0))
                }
                "int32_data" | "int64_data" | "uint64_data" => {
                    assert!(matches!(payload, Payload::Lazy { .. }), "{what}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_file_that_is_written_again_is_the_same_byte_by_byte() {
    for case in of(Kind::Valid) {
        let archive = case.open().unwrap();
        let is_external = archive.sources().len() > 1;
        if is_external {
            continue;
        }
        let files = write(&archive, &ConvertOptions::new()).unwrap();
        let before = fs::read(&case.path).unwrap();
        assert_eq!(files["written.onnx"], before, "{}", case.title());
    }
}

#[test]
fn data_goes_to_another_file_and_back_and_nothing_else_changes() {
    let raw: Vec<u8> = (0..=255).cycle().take(4096).collect();
    let big = [
        &field(8, b"big")[..],
        b"\x08\x80\x20\x10\x02",
        &field(9, &raw),
        // An unknown field, which stays.
        b"\x98\x06\x07",
    ];
    let graph = [
        node(&["big", "small"], "y", &[]),
        field(5, &big.concat()),
        tensor("small"),
        field(12, &field(1, b"y")),
    ];
    let bytes = model(&graph);
    let archive = open(&bytes).unwrap();
    let options = ConvertOptions::new().option("external", "weights.bin");
    let files = write(&archive, &options).unwrap();
    let names: Vec<_> = files.keys().map(String::as_str).collect();
    assert_eq!(names, ["weights.bin", "written.onnx"]);
    assert_eq!(files["weights.bin"], raw);
    let outside = reopen(files);
    let data = outside.tensor("big").unwrap();
    let (source, range) = data.info().parts[0].payload.stored().unwrap();
    assert_eq!((source.0, range), (1, 0..4096));
    assert_eq!(data.canonical().unwrap(), raw);

    let options = ConvertOptions::new().option("external", "none");
    let back = write(&outside, &options).unwrap();
    assert_eq!(back.len(), 1);
    let model = &back["written.onnx"];
    // The data stands behind the other fields of its tensor now.
    assert_eq!(model.len(), bytes.len());
    assert!(model.windows(3).any(|field| field == b"\x98\x06\x07"));
    assert_eq!(
        reopen(back.clone())
            .tensor("big")
            .unwrap()
            .canonical()
            .unwrap(),
        raw
    );

    // As before, where nothing is said: beside the model, under its name.
    let again = write(&outside, &ConvertOptions::new()).unwrap();
    assert!(
        again.contains_key("written.onnx.data"),
        "{:?}",
        again.keys()
    );
    for wrong in ["", "..", "a/b", "a\\b", "written.onnx"] {
        let options = ConvertOptions::new().option("external", wrong);
        let error = write(&archive, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument, "{wrong}: {error}");
    }
}

#[test]
fn a_tensor_is_renamed_wherever_the_graph_uses_it() {
    let inner = [node(&["w", "h"], "z", &[]), field(12, &field(1, b"z"))];
    let graph = [
        field(2, b"g"),
        tensor("w"),
        tensor("b"),
        node(&["x", "w", ""], "h", &[]),
        node(&["h"], "y", &[subgraph(&inner)]),
        field(11, &field(1, b"w")),
        field(12, &field(1, b"y")),
        field(13, &field(1, b"w")),
        field(
            14,
            &[
                field(1, b"w"),
                field(2, &[field(1, b"SCALE"), field(2, b"w")].concat()),
            ]
            .concat(),
        ),
    ];
    let bytes = model(&graph);
    let archive = renamed(&open(&bytes).unwrap(), "w", "layers.0.weight");
    let files = write(&archive, &ConvertOptions::new()).unwrap();
    let written = Bytes::from(files["written.onnx"].clone());
    let count = |name: &[u8]| {
        written
            .windows(name.len())
            .filter(|found| *found == name)
            .count()
    };
    // The initializer, two nodes, an input, a value, and both of an annotation.
    assert_eq!(count(b"layers.0.weight"), 7);
    assert_eq!(count(b"\x01w"), 0, "an old name is left");
    let names: Vec<_> = reopen(files.clone())
        .tensors()
        .map(|tensor| tensor.name().to_owned())
        .collect();
    assert_eq!(names, ["layers.0.weight", "b"]);
    // And back: nothing is left of it.
    let back = renamed(&reopen(files), "layers.0.weight", "w");
    let files = write(&back, &ConvertOptions::new()).unwrap();
    let again = reopen(files.clone());
    assert_eq!(
        again.tensor("w").unwrap().canonical().unwrap(),
        [7u8, 9].as_slice()
    );
    assert_eq!(files["written.onnx"].len(), bytes.len());
}

#[test]
fn two_tensors_exchange_their_names_with_their_uses() {
    let graph = [tensor("a"), tensor("b"), node(&["a", "a", "b"], "y", &[])];
    let archive = open(&model(&graph)).unwrap();
    let swapped = ops::rename(&archive, |name| {
        Some(if name == "a" { "b" } else { "a" }.into())
    });
    let files = write(&swapped.unwrap(), &ConvertOptions::new()).unwrap();
    let expected = model(&[tensor("b"), tensor("a"), node(&["b", "b", "a"], "y", &[])]);
    // A changed tensor has its name at its end.
    assert_eq!(files["written.onnx"].len(), expected.len());
    let uses = node(&["b", "b", "a"], "y", &[]);
    assert!(
        files["written.onnx"]
            .windows(uses.len())
            .any(|found| found == uses)
    );
}

#[test]
fn a_name_that_means_something_else_is_refused() {
    let shadow = subgraph(&[tensor("w")]);
    for (graph, new) in [
        // Another value has the new name.
        (vec![tensor("w"), node(&["w"], "h", &[])], "h"),
        (vec![tensor("w"), field(11, &field(1, b"h"))], "h"),
        // A graph inside has a value of the old one.
        (vec![tensor("w"), node(&["w"], "y", &[shadow])], "v"),
        // Names that are not understood.
        (vec![tensor("w"), field(1, &field(10, b"\x0a\x01d"))], "v"),
    ] {
        let archive = renamed(&open(&model(&graph)).unwrap(), "w", new);
        let error = write(&archive, &ConvertOptions::new()).unwrap_err();
        assert_eq!(error.rule(), "onnx.rename", "{error}");
    }
}

#[test]
fn a_cast_that_the_graph_does_not_expect_is_refused_unless_it_is_allowed() {
    let archive = open(&model(&[tensor("w"), node(&["w"], "y", &[])])).unwrap();
    let cast = ops::cast(&archive, |_| Some(DType::U16)).unwrap();
    let error = write(&cast, &ConvertOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lossy);
    assert_eq!(error.hints(), [Hint::Allow(Effect::Changed)]);
    let options = ConvertOptions::new().allow(Effect::Changed);
    let written = reopen(write(&cast, &options).unwrap());
    let found = written.tensor("w").unwrap();
    assert_eq!(found.canonical().unwrap(), [7u8, 0, 9, 0].as_slice());
    // Without nodes, nobody expects anything.
    let archive = open(&model(&[tensor("w")])).unwrap();
    let cast = ops::cast(&archive, |_| Some(DType::U16)).unwrap();
    write(&cast, &ConvertOptions::new()).unwrap();
}

#[test]
fn a_graph_is_lost_with_some_of_its_tensors_and_that_is_said() {
    let archive = open(&model(&[
        tensor("w"),
        tensor("b"),
        node(&["w", "b"], "y", &[]),
    ]))
    .unwrap();
    let part = archive.select(|tensor| tensor.name == "w");
    let registry = Registry::standard();
    let entry = registry.get("onnx").unwrap();
    let conversion = Conversion::prepare(&part, entry, &ConvertOptions::new()).unwrap();
    let lost: Vec<_> = conversion.losses.iter().map(|loss| &loss.what).collect();
    let graph = Lost::Kept {
        format: "onnx",
        name: "graph".into(),
    };
    assert_eq!(lost, [&graph]);
    let options = ConvertOptions::new().allow(Effect::Dropped);
    let written = reopen(write(&part, &options).unwrap());
    assert_eq!(written.tensors().len(), 1);
    assert!(written.manifest().kept[0].is_frame);
}

#[test]
fn metadata_is_changed_in_its_place_and_the_graph_stays() {
    let graph = [field(2, b"g"), tensor("w"), node(&["w"], "y", &[])];
    let bytes = [
        &model(&graph)[..],
        &field(2, b"old"),
        &field(14, &[field(1, b"k"), field(2, b"v")].concat()),
    ];
    let archive = open(&bytes.concat().into()).unwrap();
    let edits = [
        Edit::Set("producer_name".into(), Value::Str("new".into())),
        Edit::Set("graph_name".into(), Value::Str("main".into())),
        Edit::Unset("metadata_props".into()),
    ];
    let edited = ops::edit_metadata(&archive, None, &edits).unwrap();
    let doc = Edit::Set("doc_string".into(), Value::Str("weights".into()));
    let edited = ops::edit_metadata(&edited, Some("w"), &[doc]).unwrap();
    let files = write(&edited, &ConvertOptions::new()).unwrap();
    let node = node(&["w"], "y", &[]);
    assert!(
        files["written.onnx"]
            .windows(node.len())
            .any(|found| found == node)
    );
    let written = reopen(files);
    let text = |key: &str| {
        written
            .metadata()
            .get(key)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    assert_eq!(text("producer_name").as_deref(), Some("new"));
    assert_eq!(text("graph_name").as_deref(), Some("main"));
    assert_eq!(written.metadata().get("metadata_props"), None);
    let tensor = written.tensor("w").unwrap();
    assert_eq!(
        tensor.info().metadata.get("doc_string"),
        Some(&Value::Str("weights".into()))
    );
}

/// `[[0, 5], [6, 0], [0, 0]]`, with the indices in both forms.
fn sparse_model(linear: bool) -> Bytes {
    let values = [&field(8, b"s")[..], b"\x08\x02\x10\x02\x4a\x02\x05\x06"].concat();
    let indices: &[u8] = if linear {
        b"\x08\x02\x10\x07\x3a\x02\x01\x02"
    } else {
        b"\x08\x02\x08\x02\x10\x07\x3a\x04\x00\x01\x01\x00"
    };
    let sparse = [
        field(1, &values),
        field(2, indices),
        b"\x18\x03\x18\x02".to_vec(),
    ];
    model(&[field(15, &sparse.concat())])
}

#[test]
fn sparse_initializers_are_named_or_read_as_sparse_tensors() {
    for linear in [true, false] {
        let bytes = sparse_model(linear);
        let error = open(&bytes).unwrap_err();
        assert_eq!(error.rule(), "onnx.sparse");
        assert!(error.message().contains("\"s\""), "{error}");
        let options = OpenOptions::new().option("sparse", "true");
        let archive = options.read(Arc::new(bytes), Some("m.onnx")).unwrap();
        let tensor = archive.tensor("s").unwrap();
        assert_eq!(tensor.info().layout, Layout::Coo { nnz: 2 });
        assert_eq!(tensor.canonical().unwrap(), [0u8, 5, 6, 0, 0, 0].as_slice());
        assert!(errors(&verify(&archive, 1)).is_empty());
    }
    // Beside others they are noted.
    let mut graph = tensor("w");
    graph.extend_from_slice(&sparse_model(true)[4..]);
    let archive = open(&model(&[graph])).unwrap();
    let notes = archive.findings().iter();
    let notes: Vec<_> = notes
        .filter(|note| note.severity == Severity::Note)
        .collect();
    assert_eq!((notes.len(), notes[0].rule.as_str()), (1, "onnx.sparse"));
}

#[test]
fn an_option_that_a_format_does_not_have_is_refused() {
    let options = OpenOptions::new().option("nonsense", "true");
    let error = options.open(&case("many").path).unwrap_err();
    assert!(error.message().contains("constants, sparse"), "{error}");
    let options = OpenOptions::new().option("constants", "perhaps");
    let error = options.open(&case("many").path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
}

#[test]
fn graphs_in_graphs_are_walked_over_up_to_a_depth() {
    let nested = |depth: usize| {
        let mut graph = tensor("w");
        for _ in 0..depth {
            graph = node(&[], "y", &[subgraph(&[graph])]);
        }
        model(&[graph])
    };
    let options = OpenOptions::new().option("constants", "true");
    let read = |bytes: Bytes| options.read(Arc::new(bytes), Some("m.onnx"));
    assert_eq!(read(nested(64)).unwrap().tensors().len(), 1);
    assert_eq!(read(nested(65)).unwrap_err().rule(), "onnx.depth");
    // What is not asked for is not looked at.
    assert_eq!(open(&nested(1000)).unwrap().tensors().len(), 0);
}

/// A model whose tensor is in another file, of two bytes.
fn external(location: &str) -> Bytes {
    let entry = [field(1, b"location"), field(2, location.as_bytes())].concat();
    let tensor = [
        &field(8, b"w")[..],
        b"\x08\x02\x10\x02\x70\x01",
        &field(13, &entry),
    ]
    .concat();
    model(&[field(5, &tensor)])
}

/// A model with tensors in "data" beside it: their names, offsets, and what they say about the file. Each has two bytes.
fn beside(tensors: &[(&str, &str, Option<&str>)], data: &[u8]) -> Result<Archive> {
    let entry = |key: &str, value: &str| {
        let pair = [field(1, key.as_bytes()), field(2, value.as_bytes())];
        field(13, &pair.concat())
    };
    let messages: Vec<_> = (tensors.iter())
        .map(|(name, offset, checksum)| {
            let mut fields = [&field(8, name.as_bytes())[..], b"\x08\x02\x10\x02\x70\x01"].concat();
            fields.extend(entry("location", "data"));
            fields.extend(entry("offset", offset));
            fields.extend(entry("length", "2"));
            fields.extend(
                checksum
                    .map(|sum| entry("checksum", sum))
                    .unwrap_or_default(),
            );
            field(5, &fields)
        })
        .collect();
    let files = [
        ("m.onnx".to_owned(), model(&messages).to_vec()),
        ("data".to_owned(), data.to_vec()),
    ];
    InMemory::written(BTreeMap::from(files), "m.onnx").open()
}

/// The digest is that of `printf abc | sha1sum`.
#[test]
fn the_checksum_of_a_file_beside_the_model_is_compared() {
    const ABC: &str = "a9993e364706816aba3e25717850c26c9cd0d89d";
    let rules = |archive: &Archive| -> Vec<String> {
        let found = verify(archive, 1).into_iter();
        let bad = found.filter(|finding| finding.severity != Severity::Note);
        bad.map(|finding| finding.rule).collect()
    };
    let tied = [
        ("a", "0", Some(ABC)),
        ("b", "0", Some(ABC)),
        ("c", "0", None),
    ];
    assert_eq!(rules(&beside(&tied, b"abc").unwrap()), [""; 0]);
    let damaged = beside(&tied, b"abd").unwrap();
    assert_eq!(rules(&damaged), ["onnx.checksum"]);
    let error = ops::compare_checksums(&damaged, &Default::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    let other = ABC.replace('a', "b");
    let two = [("a", "0", Some(ABC)), ("b", "0", Some(&*other))];
    assert_eq!(
        rules(&beside(&two, b"abc").unwrap()),
        ["onnx.external-checksum"]
    );
    let short = [("a", "0", Some("a9993e36"))];
    assert_eq!(
        rules(&beside(&short, b"abc").unwrap()),
        ["onnx.external-checksum"]
    );
}

#[test]
fn data_beside_the_model_is_shared_whole_or_not_at_all() {
    let archive = beside(&[("a", "1", None), ("b", "1", None)], b"abcd").unwrap();
    assert_eq!(
        archive.tensor("b").unwrap().canonical().unwrap(),
        b"bc".as_slice()
    );
    assert!(beside(&[("a", "2", None), ("b", "0", None)], b"abcd").is_ok());
    let archive = beside(&[("a", "1", None), ("b", "0", None)], b"abcd").unwrap();
    let defect = |name| archive.tensor(name).unwrap().info().defect.as_ref();
    let error = defect("a").unwrap();
    assert_eq!((error.rule(), error.tensor()), ("onnx.overlap", Some("a")));
    assert!(defect("b").is_none());
}

#[test]
fn many_small_tensors_are_listed_and_more_of_them_with_another_limit() {
    let model = |count: usize, rest: &[u8]| {
        let tensor = |n: usize| field(5, &[&field(8, n.to_string().as_bytes())[..], rest].concat());
        let tensors: Vec<u8> = (0..count).flat_map(tensor).collect();
        onnx_model(&field(7, &tensors))
    };
    // f32 scalars in raw_data.
    let scalars = Archive::from_bytes(model(70_000, b"\x10\x01\x4a\x04\0\0\x80\x3f")).unwrap();
    assert_eq!(scalars.tensors().len(), 70_000);
    // i32 scalars in int32_data.
    let least = model(60_000, b"\x10\x06\x28\x01");
    let error = Archive::from_bytes(least.clone()).unwrap_err();
    assert_eq!(
        (error.kind(), error.rule()),
        (ErrorKind::Limit, "onnx.amplification")
    );
    let limits = tenfold::io::Limits::default().header_bytes(64 << 20);
    let options = tenfold::OpenOptions::new().limits(limits);
    let opened = options
        .read(Arc::new(Bytes::from(least)), Some("a.onnx"))
        .unwrap();
    assert_eq!(opened.tensors().len(), 60_000);
}

#[test]
fn an_empty_field_beside_the_data_is_no_second_place() {
    // [0.0, 1.0] in float_data, and raw_data without bytes.
    let data = b"\x08\x02\x10\x01\x42\x01w\x4a\0\x22\x08\0\0\0\0\0\0\x80\x3f";
    let archive = Archive::from_bytes(onnx_model(&field(7, &field(5, data)))).unwrap();
    let tensor = archive.tensor("w").unwrap();
    assert_eq!(
        tensor.canonical().unwrap(),
        b"\0\0\0\0\0\0\x80\x3f".as_slice()
    );
}

fn rule_of(path: &Path) -> Option<String> {
    let archive = Archive::open(path).unwrap();
    let defect = archive.tensor("w").unwrap().info().defect.clone();
    defect.map(|defect| defect.rule().to_owned())
}

#[test]
fn a_location_leads_nowhere_but_into_the_directory_of_the_model() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("model");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(directory.path().join("outside"), [1, 2]).unwrap();
    fs::write(root.join("inside"), [1, 2]).unwrap();
    fs::write(root.join("sub/inside"), [1, 2]).unwrap();
    let try_one = |location: &str| {
        let path: PathBuf = root.join("m.onnx");
        fs::write(&path, external(location)).unwrap();
        rule_of(&path)
    };
    assert_eq!(try_one("inside"), None);
    assert_eq!(try_one("sub/inside"), None);
    for wrong in [
        "",
        ".",
        "..",
        "../outside",
        "sub/../inside",
        "./inside",
        "sub//inside",
        "/etc/hostname",
        "c:inside",
        "sub\\inside",
        "inside\0",
    ] {
        assert_eq!(try_one(wrong).as_deref(), Some("onnx.path"), "{wrong:?}");
    }
    assert_eq!(try_one("nothing").as_deref(), Some("onnx.external-missing"));
    assert_eq!(
        try_one("sub").as_deref(),
        Some("onnx.external"),
        "a directory"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink("../outside", root.join("leaving")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("inside", root.join("staying")).unwrap();
        assert_eq!(try_one("leaving").as_deref(), Some("onnx.path"));
        assert_eq!(try_one("up/outside").as_deref(), Some("onnx.path"));
        assert_eq!(try_one("staying"), None);
    }
    // A stream has no directory: what it names is listed.
    let archive = open(&external("inside")).unwrap();
    let defect = archive.tensor("w").unwrap().info().defect.clone().unwrap();
    assert_eq!(defect.kind(), ErrorKind::Unsupported);
}

#[test]
fn numbers_of_typed_fields_are_in_the_range_of_their_type() {
    let typed = |data_type: u8, numbers: &[u8]| {
        let fields = [
            &field(8, b"w")[..],
            b"\x08\x01\x10",
            &[data_type],
            &field(5, numbers),
        ]
        .concat();
        let archive = open(&model(&[field(5, &fields)])).unwrap();
        archive.tensor("w").unwrap().canonical()
    };
    assert_eq!(typed(2, b"\xff\x01").unwrap(), [255u8].as_slice());
    assert_eq!(
        typed(3, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").unwrap(),
        [255u8].as_slice()
    );
    for (data_type, numbers) in [
        (2u8, &b"\x80\x02"[..]),
        (3, b"\x80\x01"),
        (9, b"\x02"),
        (10, b"\x80\x80\x04"),
        (22, b"\x80\x02"),
        (27, b"\x40"),
    ] {
        let error = typed(data_type, numbers).unwrap_err();
        assert_eq!(error.rule(), "onnx.range", "{data_type}: {error}");
    }
    for numbers in [&b""[..], b"\x01\x01"] {
        let fields = [&field(8, b"w")[..], b"\x08\x01\x10\x06", &field(5, numbers)].concat();
        let archive = open(&model(&[field(5, &fields)])).unwrap();
        let findings = verify(&archive, 1);
        assert_eq!(errors(&findings).len(), 1, "{findings:?}");
    }
}
