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
        Err(error) => error.rule().to_owned(),
        Ok(archive) => {
            let tensor = archive.tensors().next().unwrap();
            tensor
                .info()
                .defect
                .as_ref()
                .map_or(String::new(), |defect| defect.rule().to_owned())
        }
    }
}

fn write(archive: &Archive, own: &[(&str, &str)]) -> Vec<(String, String)> {
    let options = ConvertOptions::default().options(own.iter().copied());
    let registry = Registry::standard();
    let conversion =
        ops::Conversion::prepare(archive, registry.get("cc4s").unwrap(), &options).unwrap();
    let mut output = MemoryOutput::new();
    conversion.write_to("out.yaml", &mut output).unwrap();
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
    let conversion =
        ops::Conversion::prepare(&builder.finish(), entry, &ConvertOptions::default()).unwrap();
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
    assert_eq!(defects, expected);
    let first = archive.tensors().next().unwrap();
    assert_eq!(first.canonical().unwrap(), 2.5f64.to_le_bytes().as_slice());
    assert_eq!(first.info().metadata.get("unit"), Some(&Value::I64(1)));
}

/// Numbers that are easily written a bit off, and random bits.
fn odd_numbers() -> Vec<f64> {
    let mut numbers = vec![
        0.0,
        -0.0,
        1.0,
        0.1,
        1e6,
        1e23,
        -1.5e-7,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        2.225_073_858_507_201e-308,
        9_007_199_254_740_993.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    while numbers.len() < 4096 {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let number = f64::from_bits(state ^ state >> 29);
        if !number.is_nan() {
            numbers.push(number);
        }
    }
    numbers
}

#[test]
fn text_reads_back_bit_by_bit() {
    let bytes: Bytes = odd_numbers().iter().flat_map(|n| n.to_le_bytes()).collect();
    let mut builder = ArchiveBuilder::new();
    builder
        .push("reals", DType::F64, &[64, 64], bytes.clone())
        .unwrap();
    let reals = builder.finish();
    let mut builder = ArchiveBuilder::new();
    builder
        .push("pairs", DType::C128, &[4, 128, 4], bytes)
        .unwrap();
    for archive in [reals, builder.finish()] {
        let files = write(&archive, &[("text", "true")]);
        assert!(files[1].1.contains("type: TextFile"), "{}", files[1].1);
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in &files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let again = Archive::open(directory.path().join("out.yaml")).unwrap();
        let found = again.tensors().next().unwrap().canonical().unwrap();
        let expected = archive.tensors().next().unwrap().canonical().unwrap();
        assert!(found == expected);
        // And into a real file, checked before it gets its name.
        let options = ConvertOptions::default().option("text", "true").check(true);
        let registry = Registry::standard();
        let path = directory.path().join("again.yaml");
        let mut output = tenfold::io::AtomicOutput::file(&path).unwrap();
        let conversion =
            ops::Conversion::prepare(&archive, registry.get("cc4s").unwrap(), &options).unwrap();
        conversion.write_to("again.yaml", &mut output).unwrap();
        let again = Archive::open(path).unwrap();
        let found = again.tensors().next().unwrap().canonical().unwrap();
        assert!(found == expected);
    }
}

#[test]
fn text_is_short_and_in_the_order_of_the_format() {
    let mut builder = ArchiveBuilder::new();
    let numbers = [0.0f64, -0.0, 0.1, 1e300, 1_000_000.0, -2.5];
    let bytes: Bytes = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    builder.push("t", DType::F64, &[2, 3], bytes).unwrap();
    let files = write(&builder.finish(), &[("text", "true"), ("set", "false")]);
    // The first dimension runs fastest.
    assert_eq!(files[0].1, "0\n1e300\n-0\n1e6\n0.1\n-2.5\n");
    let mut builder = ArchiveBuilder::new();
    let bytes: Bytes = [1.5f64, -2.0]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    builder.push("t", DType::C128, &[], bytes).unwrap();
    let files = write(&builder.finish(), &[("text", "true"), ("set", "false")]);
    assert_eq!(files[0].1, "(1.5,-2)\n");
}

#[test]
fn a_nan_that_text_does_not_have_is_refused() {
    let mut builder = ArchiveBuilder::new();
    let bytes = Bytes::copy_from_slice(&0x7ff8_0000_0000_0001u64.to_le_bytes());
    builder.push("t", DType::F64, &[1], bytes).unwrap();
    let options = ConvertOptions::default().option("text", "true");
    let registry = Registry::standard();
    let archive = builder.finish();
    let conversion =
        ops::Conversion::prepare(&archive, registry.get("cc4s").unwrap(), &options).unwrap();
    let mut output = MemoryOutput::new();
    let error = conversion.write_to("out.yaml", &mut output).unwrap_err();
    assert_eq!(error.rule(), "cc4s.text");
    assert_eq!(error.tensor(), Some("t"));
    assert!(error.message().contains("0x7ff8000000000001"), "{error}");
}
