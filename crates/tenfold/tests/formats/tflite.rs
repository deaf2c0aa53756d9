//! What is special to TensorFlow Lite: scales, activations, several subgraphs.

use serde_json::Value as Json;
use tenfold::model::{DType, Value};
use tenfold::ops;

use crate::support::values::is_expected;
use crate::support::{Case, Kind, cases};

fn valid() -> Vec<Case> {
    let mut cases = cases(Kind::Valid);
    cases.retain(|case| case.format == "tflite");
    assert!(cases.len() > 10);
    cases
}

#[test]
fn subgraphs_and_activations_are_counted() {
    for case in valid() {
        let archive = case.open().unwrap();
        for key in ["subgraphs", "activations"] {
            let found = archive.metadata().get(key).and_then(Value::as_u64);
            assert_eq!(found, case.expected[key].as_u64(), "{} {key}", case.name);
        }
    }
}

#[test]
fn scales_are_metadata() {
    let mut compared = 0;
    for case in valid() {
        let archive = case.open().unwrap();
        for (tensor, expected) in archive.tensors().zip(case.list("tensors")) {
            let Some(said) = expected.get("quantization").and_then(Json::as_object) else {
                continue;
            };
            for (key, expected) in said {
                let found = tensor.info().metadata.get(key).unwrap();
                // The first eight are in the JSON.
                let found = match found {
                    Value::List(list) => Value::List(list.iter().take(8).collect()),
                    other => other.clone(),
                };
                assert!(
                    is_expected(&found, expected),
                    "{} {key}: {found:?}",
                    tensor.name()
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 10);
}

#[test]
fn quantized_tensors_are_their_scale_times_the_distance_from_zero() {
    let mut compared = 0;
    for case in valid() {
        let archive = case.open().unwrap();
        let plain = ops::dequantize(&archive).unwrap();
        for (before, after) in archive.tensors().zip(plain.tensors()) {
            let metadata = &before.info().metadata;
            let Some(Value::List(scales)) = metadata.get("scale") else {
                assert_eq!(before.info().dtype, after.info().dtype);
                continue;
            };
            assert_eq!(after.info().dtype, DType::F32);
            assert!(after.info().metadata.get("scale").is_none());
            let scales: Vec<f64> = scales.iter().filter_map(|scale| scale.as_f64()).collect();
            let zeros: Vec<i64> = match metadata.get("zero_point") {
                Some(Value::List(zeros)) => zeros.iter().filter_map(|zero| zero.as_i64()).collect(),
                _ => vec![0],
            };
            let axis = metadata
                .get("quantized_dimension")
                .and_then(Value::as_u64)
                .unwrap();
            let shape = before.info().shape.clone();
            let inner: u64 = shape
                .iter()
                .skip(usize::try_from(axis).unwrap() + 1)
                .product();
            let bytes = before.canonical().unwrap();
            let width = before.info().dtype.width().unwrap();
            let numbers = after.typed::<f32>().unwrap().to_vec();
            for (place, (quantized, number)) in bytes.chunks(width).zip(numbers).enumerate() {
                let mut wide = [if quantized[width - 1] & 0x80 == 0 {
                    0
                } else {
                    0xff
                }; 8];
                wide[..width].copy_from_slice(quantized);
                let dim = shape
                    .get(usize::try_from(axis).unwrap())
                    .copied()
                    .unwrap_or(1);
                let index = usize::try_from(place as u64 / inner % dim).unwrap();
                let scale = scales[if scales.len() == 1 { 0 } else { index }];
                let zero = zeros[if zeros.len() == 1 { 0 } else { index }];
                #[allow(clippy::cast_precision_loss)]
                let expected = scale * (i64::from_le_bytes(wide) - zero) as f64;
                let close = (f64::from(number) - expected).abs() <= expected.abs() * 1e-6;
                assert!(close, "{} {place}: {number}, not {expected}", before.name());
                compared += 1;
            }
        }
    }
    assert!(compared > 100);
}

/// Where a field of a table is.
fn field(file: &[u8], table: usize, index: usize) -> Option<usize> {
    let half = |at: usize| usize::from(u16::from_le_bytes(file[at..at + 2].try_into().unwrap()));
    let back = i32::from_le_bytes(file[table..table + 4].try_into().unwrap());
    let vtable = table
        .checked_add_signed(-isize::try_from(back).unwrap())
        .unwrap();
    let place = 4 + 2 * index;
    let offset = (place < half(vtable)).then(|| half(vtable + place))?;
    (offset > 0).then_some(table + offset)
}

/// What an offset leads to.
fn follow(file: &[u8], at: usize) -> usize {
    let offset = u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    at + usize::try_from(offset).unwrap()
}

#[test]
fn scales_of_numbers_that_are_no_integers_do_not_count() {
    let mut cases = valid().into_iter();
    let case = cases.find(|case| case.name == "dense_full_int8").unwrap();
    let mut file = std::fs::read(&case.path).unwrap();
    let root = follow(&file, 0);
    let subgraphs = follow(&file, field(&file, root, 2).unwrap());
    let subgraph = follow(&file, subgraphs + 4);
    let tensors = follow(&file, field(&file, subgraph, 0).unwrap());
    for n in 0..usize::from(file[tensors]) {
        let tensor = follow(&file, tensors + 4 + 4 * n);
        // Biases are 32-bit integers: floats have as many bytes.
        if let Some(kind) = field(&file, tensor, 1).filter(|kind| file[*kind] == 2) {
            file[kind] = 0;
        }
    }
    let before = case.open().unwrap();
    let archive = tenfold::Archive::from_bytes(file).unwrap();
    let mut compared = 0;
    for (tensor, before) in archive.tensors().zip(before.tensors()) {
        if before.info().dtype == DType::I32 {
            assert_eq!(tensor.info().dtype, DType::F32);
            assert_eq!(tensor.canonical().unwrap(), before.canonical().unwrap());
            compared += usize::from(tensor.info().metadata.get("scale").is_some());
        }
    }
    assert!(compared > 0);
    let mut rules = archive.findings().iter().map(|finding| &*finding.rule);
    assert!(rules.any(|rule| rule == "tflite.quantization"));
    let plain = ops::dequantize(&archive).unwrap();
    assert_eq!(plain.tensors().len(), archive.tensors().len());
}
