//! What is special to plain dumps: whoever opens one says what it is, or the file beside it does.

// It makes the files that it reads.
#![allow(clippy::disallowed_methods)]

use std::sync::Arc;

use tenfold::model::{DType, Layout};
use tenfold::{Archive, Bytes, OpenOptions, Result};

fn open(bytes: Vec<u8>, dtype: Option<DType>, options: &[(&str, &str)]) -> Result<Archive> {
    let open = OpenOptions::new().format(Some("raw"));
    let open = open.assume_dtype(dtype).options(options.iter().copied());
    open.read(Arc::new(Bytes::from(bytes)), Some("dump.bin"))
}

fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

#[test]
fn a_dump_is_what_whoever_opens_it_says() {
    let dump = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let shape = |options: &[(&str, &str)]| {
        let archive = open(dump.clone(), Some(DType::F32), options).unwrap();
        let tensor = archive.get("dump").unwrap();
        tensor.info().shape.to_vec()
    };
    assert_eq!(shape(&[]), [6]);
    assert_eq!(shape(&[("shape", "2,3")]), [2, 3]);
    assert_eq!(shape(&[("shape", "(2, -1)")]), [2, 3]);
    assert_eq!(shape(&[("shape", "3x2")]), [3, 2]);
    assert_eq!(shape(&[("shape", "-1"), ("offset", "8")]), [4]);
    assert_eq!(shape(&[("shape", "")]), [0u64; 0]);
    let options = [("shape", "2,3"), ("order", "F")];
    let archive = open(dump, Some(DType::F32), &options).unwrap();
    let tensor = archive.get("dump").unwrap();
    assert_eq!(tensor.info().layout, Layout::ColumnMajor);
    let turned = floats(&[1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
    assert_eq!(tensor.canonical().unwrap(), turned);
    let big = vec![0, 1, 0, 2];
    let archive = open(big, Some(DType::U16), &[("endian", "big")]).unwrap();
    let tensor = archive.get("dump").unwrap();
    assert_eq!(tensor.canonical().unwrap()[..], [1, 0, 2, 0]);
}

#[test]
fn what_is_wrong_with_what_is_said_is_told() {
    let dump = || floats(&[1.0, 2.0, 3.0]);
    let rule = |dtype, options: &[(&str, &str)]| {
        let error = open(dump(), dtype, options).unwrap_err();
        error.rule().to_owned()
    };
    let f32 = Some(DType::F32);
    assert_eq!(rule(None, &[]), "raw.dtype");
    assert_eq!(rule(None, &[("shape", "3")]), "raw.dtype");
    assert_eq!(rule(f32, &[("shape", "4")]), "raw.truncated");
    assert_eq!(rule(f32, &[("offset", "13")]), "raw.truncated");
    assert_eq!(rule(f32, &[("order", "K")]), "raw.order");
    assert_eq!(rule(f32, &[("endian", "middle")]), "raw.endian");
    assert_eq!(
        rule(f32, &[("shape", "9999999999,9999999999")]),
        "raw.shape"
    );
    for shape in ["-1,-1", "2,b", "0,-1", "1.5"] {
        assert!(open(dump(), f32, &[("shape", shape)]).is_err(), "{shape}");
    }
    assert!(open(dump(), f32, &[("offset", "-1")]).is_err());
    let archive = open(dump(), f32, &[("shape", "2")]).unwrap();
    assert_eq!(archive.findings()[0].rule, "raw.trailing");
}

#[test]
fn what_is_written_is_read_without_a_word_through_either_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weights.raw");
    let mut builder = tenfold::ArchiveBuilder::new();
    builder
        .push("a", DType::F32, &[3], Bytes::from(floats(&[1.0, 2.0, 3.0])))
        .unwrap();
    builder
        .push("b", DType::BOOL, &[2, 2], Bytes::from(vec![1, 0, 0, 1]))
        .unwrap();
    let archive = builder.finish();
    archive.save(&path).unwrap();
    let dump = std::fs::read(&path).unwrap();
    assert_eq!(dump[..12], floats(&[1.0, 2.0, 3.0]));
    for name in ["weights.raw", "weights.raw.json"] {
        let again = Archive::open(directory.path().join(name)).unwrap();
        assert_eq!(again.format().unwrap().id, "raw");
        let names: Vec<_> = again.tensors().map(|tensor| tensor.name()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(
            again.get("b").unwrap().canonical().unwrap()[..],
            [1, 0, 0, 1]
        );
    }
}

#[test]
fn a_description_that_was_written_anew_is_known_by_its_key() {
    let pretty = r#"
{
    "arrays": [
        {"name": "a", "dtype": "f32", "shape": [2]}
    ],
    "tenfold_raw": 1
}"#;
    let indented = "{\n  \"tenfold_raw\": 1,\n  \"arrays\": [{\"name\": \"a\", \"dtype\": \"f32\", \"shape\": [2]}]}";
    for text in [pretty, indented] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dump.raw");
        std::fs::write(&path, floats(&[1.0, 2.0])).unwrap();
        let description = directory.path().join("dump.raw.json");
        std::fs::write(&description, text).unwrap();
        let archive = Archive::open(&path).unwrap();
        let tensor = archive.tensor("a").unwrap();
        assert_eq!(tensor.canonical().unwrap(), floats(&[1.0, 2.0]));
        let raw = OpenOptions::new().format(Some("raw"));
        assert!(raw.open(&description).unwrap().get("a").is_some());
    }
    // The JSON of another program says nothing of the dump.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("dump.raw");
    std::fs::write(&path, floats(&[1.0])).unwrap();
    std::fs::write(directory.path().join("dump.raw.json"), r#"{"arrays": 1}"#).unwrap();
    assert_eq!(Archive::open(&path).unwrap_err().rule(), "raw.dtype");
    // As it stands, white space or not, it is known without a name.
    let archive = Archive::from_bytes(indented.as_bytes().to_vec());
    assert_eq!(archive.unwrap_err().rule(), "raw.name");
}
