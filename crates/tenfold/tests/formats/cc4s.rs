//! What is special to the YAML tensors of cc4s, beside what every format is tested for.

// Inputs of the tests, not outputs.
#![allow(clippy::disallowed_methods)]
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use tenfold::format::{Effect, Registry};
use tenfold::io::MemoryOutput;
use tenfold::model::{DType, Layout, Value};
use tenfold::ops::{self, ConvertOptions};
use tenfold::{Archive, ArchiveBuilder, Bytes};

fn valid(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../../fixtures/cc4s/valid").join(name)
}

/// Writes files beside each other and opens the YAML.
fn open(directory: &Path, yaml: &str, elements: &[u8]) -> tenfold::Result<Archive> {
    fs::write(directory.join("T.yaml"), yaml).unwrap();
    fs::write(directory.join("T.elements"), elements).unwrap();
    Archive::open(directory.join("T.yaml"))
}

fn described(dimensions: &str, more: &str) -> String {
    format!(
        "version: 100\ntype: Tensor\nscalarType: Real64\ndimensions: {dimensions}\n\
         elements: {{type: IeeeBinaryFile}}\nunit: 1\n{more}"
    )
}

/// Why it is refused, as a whole or the tensor.
fn rule(opened: tenfold::Result<Archive>) -> String {
    match opened {
        Err(error) => error.rule(),
        Ok(archive) => {
            let tensor = archive.tensors().next().unwrap();
            tensor
                .info()
                .defect
                .as_ref()
                .map_or(String::new(), |defect| defect.rule())
        }
    }
}

fn write(archive: &Archive, own: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut options = ConvertOptions::default();
    options.options = (own.iter())
        .map(|&(key, value)| (key.into(), value.into()))
        .collect();
    let registry = Registry::standard();
    let conversion = ops::prepare(archive, registry.get("cc4s").unwrap(), &options).unwrap();
    let mut output = MemoryOutput::new();
    conversion.write("out.yaml", Box::new(&mut output)).unwrap();
    (output.into_files().into_iter())
        .map(|(name, bytes)| (name, String::from_utf8_lossy(&bytes).into_owned()))
        .collect()
}

#[test]
fn a_tensor_is_written_with_what_it_says_of_itself() {
    let archive = Archive::open(valid("EigenEnergies.yaml")).unwrap();
    let files = write(&archive, &[]);
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["out.elements", "out.yaml"]);
    assert_eq!(
        files[1].1,
        "dimensions:\n  -\n    length: 7\n    type: State\nelements:\n  type: IeeeBinaryFile\n\
         metaData:\n  fermiEnergy: 0.102110932168019\n  energies:\n    - 1.5\n    - -2.25\n\
         scalarType: Real64\ntype: Tensor\nunit: 0.03674932217563878\nversion: 100\n"
    );
}

#[test]
fn a_name_that_is_not_that_of_the_file_is_kept_in_a_set() {
    let mut builder = ArchiveBuilder::new();
    let data = Bytes::from(vec![0; 16]);
    builder.push("a b: c", DType::F64, &[2], data).unwrap();
    let archive = builder.finish();
    let files = write(&archive, &[]);
    assert_eq!(files[0].0, "out.components.a b: c.elements");
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in &files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let again = Archive::open(directory.path().join("out.yaml")).unwrap();
    assert_eq!(again.tensors().next().unwrap().name(), "a b: c");
    assert_eq!(write(&archive, &[("set", "false")])[0].0, "out.elements");
}

#[test]
fn tensors_of_two_types_do_not_go_into_one_set() {
    let mut builder = ArchiveBuilder::new();
    for (name, dtype) in [("a", DType::F64), ("b", DType::C128)] {
        let data = Bytes::from(vec![0; dtype.width().unwrap()]);
        builder.push(name, dtype, &[], data).unwrap();
    }
    let registry = Registry::standard();
    let entry = registry.get("cc4s").unwrap();
    let conversion = ops::prepare(&builder.finish(), entry, &ConvertOptions::default()).unwrap();
    let impossible = |loss: &tenfold::format::Loss| loss.effect == Effect::Impossible;
    assert!(conversion.losses.iter().any(impossible));
}

#[test]
fn blocks_are_kept_sparse() {
    let archive = Archive::open(valid("block_sparse.yaml")).unwrap();
    let tensor = archive.tensors().next().unwrap();
    assert_eq!(tensor.info().layout, Layout::Coo { nnz: 8 });
}

#[test]
fn bad_conditions_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let properties = "version: 100\npropertyIndices: {P: [0, 1]}\n";
    fs::write(directory.path().join("D.yaml"), properties).unwrap();
    let two = "[{length: 2, type: D}, {length: 3}]";
    let condition = |dimension: &str, property: &str, values: &str| {
        format!(
            "nonZeroCondition: {{all: [{{name: x, properties: [{{dimension: {dimension}, \
             property: {property}}}], nonZeros: {values}}}]}}\n"
        )
    };
    let cases = [
        (condition("0", "P", "[[1]]"), 3, ""),
        (condition("0", "P", "[[1], [0]]"), 6, ""),
        (condition("0", "P", "[[1]]"), 4, "cc4s.size"),
        (condition("0", "P", "[[1], [1]]"), 6, "cc4s.nonzero"),
        (condition("0", "P", "[[1, 0]]"), 3, "cc4s.nonzero"),
        (condition("2", "P", "[[1]]"), 3, "cc4s.nonzero"),
        (condition("1", "P", "[[1]]"), 3, "cc4s.properties"),
        (condition("0", "Q", "[[1]]"), 3, "cc4s.properties"),
        (
            "nonZeroCondition: {any: []}\n".to_owned(),
            6,
            "cc4s.nonzero",
        ),
    ];
    for (condition, count, expected) in cases {
        let yaml = described(two, &condition);
        let found = rule(open(directory.path(), &yaml, &vec![0; 8 * count]));
        assert_eq!(found, expected, "{condition}");
    }
}

#[test]
fn broken_descriptions_are_refused_by_rule() {
    let directory = tempfile::tempdir().unwrap();
    let sound = described("[{length: 1}]", "");
    let cases = [
        (sound.clone(), ""),
        (
            sound.replace("IeeeBinaryFile", "Binary"),
            "cc4s.elements-type",
        ),
        (sound.replace("type: Tensor", "type: Matrix"), "cc4s.type"),
        (sound.replace("100", "v1.0"), "cc4s.version"),
        (sound.replace("version: 100\n", ""), "cc4s.version"),
        (sound.replace("unit: 1", "unit: eV"), "cc4s.unit"),
        (sound.replace("unit: 1\n", ""), "cc4s.unit"),
        (sound.replace("length: 1", "length: 1.5"), "cc4s.length"),
        (
            sound.replace("[{length: 1}]", "{1: {length: 1}}"),
            "cc4s.dimensions",
        ),
        (format!("{sound}unit: 2\n"), "cc4s.duplicate"),
        (
            format!("{sound}metaData: {{a: &x 1, b: *x}}\n"),
            "cc4s.yaml",
        ),
        (format!("{sound}metaData: [1\n"), "cc4s.yaml"),
        (format!("{sound}---\n{sound}"), "cc4s.yaml"),
    ];
    for (yaml, expected) in cases {
        assert_eq!(
            rule(open(directory.path(), &yaml, &[0; 8])),
            expected,
            "{yaml}"
        );
    }
}

#[test]
fn a_component_that_is_not_sound_loses_only_itself() {
    let directory = tempfile::tempdir().unwrap();
    let tensor = "version: 100, type: Tensor, dimensions: [], elements: {type: TextFile}, unit: 1";
    let yaml = format!(
        "type: TensorSet\ncomponents:\n  a: {{{tensor}, scalarType: Real64}}\n  \
         b: {{{tensor}, scalarType: Complex64}}\n  c: {{{tensor}, scalarType: Real64}}\n"
    );
    fs::write(directory.path().join("T.components.a.elements"), "2.5\n").unwrap();
    let archive = open(directory.path(), &yaml, &[]).unwrap();
    let defects: Vec<_> = archive
        .tensors()
        .map(|tensor| tensor.info().defect.as_ref().map(|defect| defect.rule()))
        .collect();
    let expected = [
        None,
        Some("cc4s.scalar-type"),
        Some("cc4s.elements-missing"),
    ];
    assert_eq!(defects, expected.map(|rule| rule.map(str::to_owned)));
    let first = archive.tensors().next().unwrap();
    assert_eq!(first.canonical().unwrap(), 2.5f64.to_le_bytes().as_slice());
    assert_eq!(first.info().metadata.get("unit"), Some(&Value::I64(1)));
}
