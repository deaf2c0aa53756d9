//! What is special to Keras: names of layers, the architecture as metadata, kernels of 4 bits.

// A test may panic.
#![allow(clippy::panic, clippy::unwrap_used)]

use crate::support::{Case, Kind, cases, digest};
use tenfold::format::Severity;
use tenfold::ops;
use tenfold::{Archive, ErrorKind, OpenOptions};

fn case(name: &str) -> Case {
    let mut all = cases(Kind::Valid).into_iter();
    all.find(|case| case.format == "keras" && case.name == name)
        .unwrap()
}

fn open(name: &str, options: &[(&str, &str)]) -> tenfold::Result<Archive> {
    let options = options
        .iter()
        .fold(OpenOptions::new(), |all, (key, value)| {
            all.option(*key, *value)
        });
    options.open(&case(name).path)
}

fn names(archive: &Archive) -> Vec<&str> {
    archive.tensors().map(|tensor| tensor.name()).collect()
}

fn notes(archive: &Archive, rule: &str) -> Vec<String> {
    let report = ops::verify(archive, &Default::default()).unwrap();
    let found = report.findings.into_iter();
    found
        .filter(|finding| finding.severity == Severity::Note && finding.rule == rule)
        .map(|finding| finding.message)
        .collect()
}

/// The names are those that `keras.layers.Layer.name` has in the program that wrote the fixture.
#[test]
fn names_of_layers_stand_in_the_place_of_their_groups() {
    let plain = open("nested_model", &[]).unwrap();
    let named = open("nested_model", &[("names", "layer")]).unwrap();
    assert_eq!(
        names(&named),
        [
            "layers/out/vars/0",
            "layers/out/vars/1",
            "layers/sequential_2/layers/in1/vars/0",
            "layers/sequential_2/layers/in1/vars/1",
        ]
    );
    assert_eq!(
        names(&open("nested_model", &[("names", "group")]).unwrap()),
        names(&plain)
    );
    let elements = |archive: &Archive| -> Vec<_> {
        let found = digest(archive, 1).tensors.into_iter();
        found.map(|(_, digest)| digest.unwrap()).collect()
    };
    assert_eq!(elements(&named), elements(&plain));
    let error = open("nested_model", &[("names", "class")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
}

#[test]
fn all_models_can_be_listed_by_their_layers() {
    for case in cases(Kind::Valid) {
        if case.format == "keras" {
            let options = OpenOptions::new().option("names", "layer");
            let named = options.open(&case.path).unwrap();
            let plain = OpenOptions::new().open(&case.path).unwrap();
            assert_eq!(
                named.tensors().len(),
                plain.tensors().len(),
                "{}",
                case.name
            );
        }
    }
}

#[test]
fn the_architecture_is_metadata_where_it_is_asked_for() {
    for name in ["dense", "dense_deflated", "directory"] {
        let plain = open(name, &[]).unwrap();
        assert!(plain.metadata().get("config").is_none(), "{name}");
        let archive = open(name, &[("config", "true")]).unwrap();
        let config = archive.metadata().get("config").unwrap().as_str().unwrap();
        let config: serde_json::Value = serde_json::from_str(config).unwrap();
        assert!(config["class_name"].is_string(), "{name}: {config}");
    }
}

#[test]
fn kernels_of_4_bits_are_told_of() {
    let [note] = &notes(&open("int4_quantized", &[]).unwrap(), "keras.int4")[..] else {
        panic!("one note is expected");
    };
    assert!(note.contains("\"q\""), "{note}");
    assert!(notes(&open("int8_quantized", &[]).unwrap(), "keras.int4").is_empty());
}
