//! Descriptions of cc4s that stand for much: opened, or refused, in memory that is in proportion to what was read.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenfold::model::Value;
use tenfold::{Archive, Bytes, OpenOptions};

use super::TIMES;
use super::support::memory::on_this_thread;
use super::support::{Beside, InMemory};

/// What opening may take beside a multiple of what is read.
const ROOM: usize = 16 << 20;

/// Opens `T.yaml` with files beside it, of which the elements are not read.
fn open(yaml: &str, beside: &[(&str, Vec<u8>)], what: &str) -> Option<Archive> {
    let read: usize = (beside.iter())
        .filter(|(name, _)| !name.ends_with(".elements"))
        .map(|(_, bytes)| bytes.len())
        .sum();
    let read = read + yaml.len();
    let files: BTreeMap<String, Bytes> = (beside.iter())
        .map(|(name, bytes)| ((*name).to_owned(), Bytes::from(bytes.clone())))
        .collect();
    let file = InMemory {
        name: "T.yaml".to_owned(),
        bytes: yaml.to_owned().into(),
        beside: Arc::new(Beside::Files(files)),
    };
    let options = OpenOptions::new().format(Some("cc4s"));
    let (opened, used) = on_this_thread(|| file.open_with(&options));
    let bound = TIMES * read + ROOM;
    let result = match &opened {
        Ok(archive) => match archive.tensors().find_map(|t| t.info().defect.clone()) {
            Some(defect) => defect.to_string(),
            None => "opened".to_owned(),
        },
        Err(error) => error.to_string(),
    };
    let result: String = result.chars().take(100).collect();
    println!(
        "{what}: {read} bytes, {} ({:.1} times): {result}",
        used.peak,
        used.peak as f64 / read as f64
    );
    assert!(used.peak <= bound, "{what}: {} of {bound} bytes", used.peak);
    opened.ok()
}

fn described(dimensions: &str, more: &str) -> String {
    format!(
        "version: 100\ntype: Tensor\nscalarType: Real64\ndimensions: {dimensions}\n\
         elements: {{type: IeeeBinaryFile}}\nunit: 1\n{more}"
    )
}

/// Repeats up to a length, with a number in place of every `#`.
fn repeated(piece: &str, len: usize) -> String {
    let mut text = String::new();
    let mut n = 0;
    while text.len() < len {
        if piece.contains('#') {
            text += &piece.replace('#', &format!("{n:x}"))
        } else {
            text += piece
        }
        n += 1;
    }
    text
}

/// Everything that is like a list, repeated.
fn amplifiers(len: usize) {
    let elements = [("T.elements", vec![0; 8])];
    let one = "[{length: 1}]";
    let pieces = [
        "1,",
        ":,",
        "1,a,",
        "{a,b,c,d},",
        "\"\\L\",",
        "&# 1,",
        "1.5,",
        "a,",
        "\"\",",
        "[],",
        "{},",
        "[1],",
        "{a},",
        "[[1,2],a],",
        "'a\n b',",
        "!!str a,",
        "~,",
    ];
    let keys = ["metaData", "items", "root", "unknown", "dimensions"];
    // Without optimization the parser is slow.
    let (pieces, keys) = if cfg!(debug_assertions) {
        (&pieces[..6], &keys[..2])
    } else {
        (&pieces[..], &keys[..])
    };
    for piece in pieces {
        let list = format!("[{}]", repeated(piece, len));
        for key in keys {
            let yaml = match *key {
                "dimensions" => described(&list, ""),
                // The parser looks for the end of these before it says anything of them.
                "items" => described(one, &format!("unknown:\n- {list}\n")),
                "root" => list.clone(),
                "metaData" => described(one, &format!("metaData: {{a: {list}}}\n")),
                _ => described(one, &format!("{key}: {list}\n")),
            };
            open(
                &yaml,
                &elements,
                &format!("{key}: [{}", piece.escape_debug()),
            );
        }
    }
    let maps = ["#,", "#: 1,", "\"#\": [],", "k#: {a: 1},"];
    for piece in maps {
        let map = format!("{{{}}}", repeated(piece, len));
        for key in ["metaData", "unknown", "dimensions"] {
            let yaml = match key {
                "dimensions" => described(&map, ""),
                _ => described(one, &format!("{key}: {map}\n")),
            };
            open(&yaml, &elements, &format!("{key}: {{{piece}"));
        }
        let keys = repeated(piece, len);
        let yaml = format!(
            "{{type: Tensor, version: 100, {keys} scalarType: Real64, dimensions: [], \
            elements: {{type: IeeeBinaryFile}}, unit: 1}}"
        );
        open(&yaml, &elements, &format!("keys {piece}"));
        let yaml = format!("type: TensorSet\ncomponents: {map}\n");
        open(&yaml, &[], &format!("components {piece}"));
    }
    let block = described(one, &format!("metaData:\n{}", repeated("- \n", len)));
    open(&block, &elements, "a block of nothing");
}

/// Sets of as many tensors as there is room for, which are sound, or are not in many ways.
fn sets(len: usize) {
    let pieces = [
        "  k#: {type: Tensor,scalarType: Real64,dimensions: [],elements: {type: TextFile},unit: 1}\n",
        "  k#: {type: Tensor,scalarType: Real64,dimensions: [],elements: {type: TextFile},unit: 1,metaData: {a: 1}}\n",
        "  k#: {type: Tensor,scalarType: Real64,dimensions: [],elements: {type: TextFile},unit: 1,a: 1,b: 2}\n",
        "  k#: {type: Tensor,scalarType: Real64,dimensions: [],elements: {type: Nothing}}\n",
        "  k#: {type: Tensor,scalarType: Real64,dimensions: [],elements: {type: Nothing}}\n",
        "  k#: {type: Tensor,scalarType: Real64}\n",
        "  k#: 1\n",
    ];
    for piece in pieces {
        let set = repeated(piece, len);
        let yaml = format!("version: 100\ntype: TensorSet\ncomponents:\n{set}");
        open(&yaml, &[], &format!("set of {}", piece.trim()));
    }
    let dimensions = "{length: 1},".repeat(1000);
    let piece = format!(
        "  k#: {{type: Tensor,scalarType: Real64,dimensions: [{dimensions}],elements: {{type: TextFile}},unit: 1}}\n"
    );
    let yaml = format!(
        "version: 100\ntype: TensorSet\ncomponents:\n{}",
        repeated(&piece, len)
    );
    open(&yaml, &[], "set of tensors of many dimensions");
}

/// Long lists of numbers are read, as they were before.
#[test]
fn a_long_list_of_numbers_is_metadata() {
    let count = 1 << 19;
    let more = format!("metaData: {{a: [{}]}}\n", "1,".repeat(count));
    let elements = [("T.elements", vec![0; 8])];
    let archive = open(&described("[{length: 1}]", &more), &elements, "numbers").unwrap();
    let tensor = archive.tensors().next().unwrap();
    let Some(Value::Map(map)) = tensor.info().metadata.get("metaData") else {
        panic!("no metaData");
    };
    let Some(Value::List(list)) = map.get("a") else {
        panic!("no list");
    };
    assert_eq!(list.len(), count);
    assert!(list.iter().all(|value| value == Value::I64(1)));
}

#[test]
fn lists_and_maps_of_one_mebibyte_are_in_proportion() {
    amplifiers(1 << 20);
    sets(1 << 20);
}

/// Takes a GiB: `cargo test -p tenfold --release --all-features --test bounds -- --ignored cc4s`.
#[test]
#[ignore = "takes a GiB"]
fn lists_and_maps_of_many_mebibytes_are_in_proportion() {
    for mebibytes in [16, 32, 63] {
        amplifiers(mebibytes << 20);
        sets(mebibytes << 20);
    }
}

/// A condition on a dimension, and the properties of its indices.
fn condition(dimension: usize, nonzeros: &str) -> String {
    format!("{{properties: [{{dimension: {dimension}, property: P}}], nonZeros: [{nonzeros}]}},")
}

#[test]
fn indices_of_blocks_are_not_held_before_they_are_read() {
    // A thousand dimensions, of which one is longer than 1: 1 000 indices for every element.
    let (stored, rank) = (40_000, 1000);
    let mut dimensions = format!("{{length: {stored}, type: D}},");
    dimensions += &"{length: 1},".repeat(rank - 1);
    let more = format!("nonZeroCondition: {{all: [{}]}}\n", condition(0, "[1]"));
    let yaml = described(&format!("[{dimensions}]"), &more);
    let properties = format!("propertyIndices: {{P: [{}]}}\n", "1,".repeat(stored));
    let beside = [
        ("T.elements", vec![0; 8 * stored]),
        ("D.yaml", properties.into_bytes()),
    ];
    let archive = open(&yaml, &beside, "indices of blocks").unwrap();
    let tensor = archive.tensors().next().unwrap();
    assert!(tensor.info().defect.is_none(), "{:?}", tensor.info().defect);
    let coords = &tensor.info().parts[1].payload;
    assert_eq!(coords.len(), 8 * (stored * rank) as u64);
}

/// A tensor of one dimension that is stored where a property has one of these values.
fn stored_where(nonzeros: &str, length: usize) -> String {
    let more = format!(
        "nonZeroCondition:\n  all:\n  - properties: [{{dimension: 0, property: P}}]\n    nonZeros: [{nonzeros}]\n"
    );
    described(&format!("[{{length: {length}, type: D}}]"), &more)
}

#[test]
fn combinations_and_properties_are_in_proportion() {
    let len = 2 << 20;
    let numbers = || (0..len / 9).map(|n| format!("[{n}],")).collect::<String>();
    let nonzeros = [
        ("numbers", numbers()),
        ("nothing", "[],".repeat(len / 3)),
        ("the same", "[1],".repeat(len / 4)),
        ("too many", "[1,2],".repeat(len / 6)),
    ];
    let elements = ("T.elements", vec![0; 16]);
    let properties = ("D.yaml", b"propertyIndices: {P: [0,1]}\n".to_vec());
    for (what, nonzeros) in nonzeros {
        let beside = [elements.clone(), properties.clone()];
        open(&stored_where(&nonzeros, 2), &beside, what);
    }
    let conditions = "{properties,nonZeros},".repeat(len / 22);
    let yaml = described(
        "[]",
        &format!("nonZeroCondition: {{all: [{conditions}]}}\n"),
    );
    open(&yaml, &[elements], "conditions of nothing");
    let properties = format!("propertyIndices: {{P: [{}]}}\n", "1,".repeat(len / 2));
    let beside = [
        ("T.elements", vec![0; 8 * (len / 2)]),
        ("D.yaml", properties.into_bytes()),
    ];
    let archive = open(&stored_where("[1]", len / 2), &beside, "properties").unwrap();
    assert!(archive.tensors().next().unwrap().info().defect.is_none());
}
