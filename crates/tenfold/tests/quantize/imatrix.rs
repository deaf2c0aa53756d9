//! Importance matrices in both forms, and those that are damaged.

use std::sync::Arc;

use crate::*;
use tenfold::ops::ImportanceMatrix;

/// A file of the old form.
pub(crate) fn old(entries: &[(&str, i32, &[f32])], end: Option<(i32, &str)>) -> Vec<u8> {
    let mut file = Vec::new();
    let number = |file: &mut Vec<u8>, n: i32| file.extend(n.to_le_bytes());
    let len = |n: usize| i32::try_from(n).unwrap();
    number(&mut file, len(entries.len()));
    for (name, calls, values) in entries {
        number(&mut file, len(name.len()));
        file.extend(name.bytes());
        number(&mut file, *calls);
        number(&mut file, len(values.len()));
        file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    if let Some((chunks, name)) = end {
        number(&mut file, chunks);
        number(&mut file, len(name.len()));
        file.extend(name.bytes());
    }
    file
}

pub(crate) fn read(bytes: Vec<u8>) -> Result<ImportanceMatrix> {
    ImportanceMatrix::read(Arc::new(tenfold::Bytes::from(bytes)))
}

#[test]
fn the_old_form_has_sums_of_calls() {
    let file = old(
        &[("a", 4, &[8.0, 2.0]), ("b", 0, &[3.0])],
        Some((7, "data.txt")),
    );
    let matrix = read(file).unwrap();
    assert_eq!(matrix.names().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(matrix.get("a").unwrap()[..], [2.0, 0.5]);
    assert_eq!(matrix.get("b").unwrap()[..], [3.0]);
    assert!(matrix.get("c").is_none());
}

#[test]
fn the_old_form_gives_the_blocks_that_the_new_one_gives() {
    let new = ImportanceMatrix::open(fixture("gguf/edge.imatrix.gguf")).unwrap();
    let (name, values) = ("edge.weight", new.get("edge.weight").unwrap().clone());
    let same = read(old(&[(name, 1, &values)], None)).unwrap();
    let quantized = |matrix: ImportanceMatrix| {
        let options = QuantizeOptions::new()
            .every_matrix(BlockSpec::from_name("Q4_K"))
            .importance(matrix);
        let archive = ops::quantize(&open("gguf/edge.safetensors"), &options)
            .unwrap()
            .archive;
        archive.tensor(name).unwrap().canonical().unwrap()
    };
    assert_eq!(quantized(same), quantized(new));
}

#[test]
fn damaged_files_are_refused_under_a_rule() {
    let good = old(&[("a", 4, &[8.0, 2.0])], Some((7, "data.txt")));
    for len in 0..good.len() {
        // Without its end the file is whole too.
        if len == old(&[("a", 4, &[8.0, 2.0])], None).len() {
            continue;
        }
        let error = read(good[..len].to_vec()).map(drop).unwrap_err();
        assert!(error.rule().starts_with("imatrix."), "{len}: {error}");
    }
    let rule = |bytes| read(bytes).map(drop).unwrap_err().rule().to_owned();
    assert_eq!(rule(old(&[("a", 1, &[f32::NAN])], None)), "imatrix.finite");
    assert_eq!(rule((-1i32).to_le_bytes().to_vec()), "imatrix.negative");
    assert_eq!(rule(0i32.to_le_bytes().to_vec()), "imatrix.entries");
    // A count that the file has no room for costs nothing.
    assert_eq!(rule(i32::MAX.to_le_bytes().to_vec()), "imatrix.truncated");
    let model = std::fs::read(fixture("gguf/edge.expected.gguf")).unwrap();
    assert_eq!(rule(model), "imatrix.metadata");
}

#[test]
fn importances_of_another_width_are_refused_by_name() {
    let matrix = read(old(&[("edge.weight", 1, &[1.0; 255])], None)).unwrap();
    let options = QuantizeOptions::new()
        .every_matrix(BlockSpec::from_name("Q4_K"))
        .importance(matrix);
    let error = ops::quantize(&open("gguf/edge.safetensors"), &options);
    let error = error.map(drop).unwrap_err();
    assert_eq!(error.tensor(), Some("edge.weight"));
    assert!(error.message().contains("255"), "{error}");
}
