//! Sets and configurations that somebody made to do harm, or that were damaged: an error or numbers, and nothing else.

use serde_json::{Value as Json, json};
use tenfold::ops;

use crate::model::{Model, cases};
use crate::support::memory::on_this_thread;
use crate::support::random::Rng;

#[global_allocator]
static ALLOCATOR: crate::support::memory::Counting = crate::support::memory::Counting;

/// Reads everything that can be read. What it costs is bounded by what there is.
fn try_all(model: &Model, what: &str) {
    let Ok(archive) = model.open() else { return };
    let (numbers, used) = on_this_thread(|| ops::dequantize(&archive));
    let len = model.bytes().len() + model.beside.values().map(Vec::len).sum::<usize>();
    assert!(
        used.peak <= 16 * len + (16 << 20),
        "{what}: {used:?} for {len} bytes"
    );
    match numbers {
        Err(error) => assert!(
            error.rule().starts_with("quantized.") || error.rule().starts_with("file."),
            "{what}: {} {error}",
            error.rule()
        ),
        Ok(numbers) => {
            for tensor in numbers.tensors() {
                if tensor.info().dense_len().is_some_and(|len| len < 1 << 24) {
                    let _ = tensor.canonical();
                }
            }
        }
    }
}

#[test]
fn any_type_and_shape_of_any_member_is_an_error_or_numbers() {
    const TYPES: [(&str, u64); 14] = [
        ("U8", 1),
        ("I8", 1),
        ("F8_E4M3", 1),
        ("F8_E8M0", 1),
        ("BOOL", 1),
        ("F16", 2),
        ("BF16", 2),
        ("I16", 2),
        ("F32", 4),
        ("I32", 4),
        ("U32", 4),
        ("F64", 8),
        ("I64", 8),
        ("F8_E5M2", 1),
    ];
    let mut rng = Rng::new(21);
    for case in cases() {
        let model = Model::load(&case.directory);
        let names: Vec<String> = model.tensors.keys().cloned().collect();
        for _ in 0..24 {
            let mut broken = model.clone();
            for _ in 0..=rng.below(2) {
                let name = rng.pick(&names).clone();
                let stored = broken.tensors.get_mut(&name).unwrap();
                let (dtype, width) = *rng.pick(&TYPES);
                if rng.one_in(2) {
                    stored.dtype = dtype.into();
                }
                let width = TYPES
                    .iter()
                    .find(|(known, _)| *known == stored.dtype)
                    .map_or(width, |found| found.1);
                let elements = stored.bytes.len() as u64 / width;
                stored.bytes.truncate((elements * width) as usize);
                stored.shape = shape(&mut rng, elements);
            }
            if rng.one_in(3) {
                let name = rng.pick(&names).clone();
                broken.tensors.remove(&name);
            }
            if rng.one_in(4) {
                broken.beside.clear();
            }
            try_all(&broken, &case.name);
        }
    }
}

/// Any shape of so many elements.
fn shape(rng: &mut Rng, elements: u64) -> Vec<u64> {
    let divisors: Vec<u64> = (1..=elements.min(4096))
        .filter(|n| elements.is_multiple_of(*n))
        .collect();
    match (rng.below(5), divisors.is_empty()) {
        (_, true) => vec![0, 1 << rng.below(50)],
        (0, _) => vec![elements],
        (1, _) => vec![elements, 1],
        (2, _) => vec![1, elements],
        (3, _) => {
            let first = *rng.pick(&divisors);
            vec![first, 1, elements / first]
        }
        _ => {
            let first = *rng.pick(&divisors);
            vec![first, elements / first]
        }
    }
}

#[test]
fn any_bytes_in_small_tensors_are_an_error_or_numbers() {
    let mut rng = Rng::new(22);
    for case in cases() {
        let model = Model::load(&case.directory);
        for (name, stored) in &model.tensors {
            if stored.bytes.len() > 512 {
                continue;
            }
            for _ in 0..6 {
                let mut broken = model.clone();
                let bytes = &mut broken.tensors.get_mut(name).unwrap().bytes;
                if bytes.is_empty() {
                    continue;
                }
                let at = rng.below(bytes.len());
                bytes[at] ^= 1 << rng.below(8);
                if rng.one_in(3) {
                    let len = bytes.len();
                    bytes.copy_from_slice(&rng.bytes(len));
                }
                try_all(&broken, &format!("{} {name}", case.name));
            }
        }
    }
}

#[test]
fn any_value_in_a_configuration_is_an_error_or_numbers() {
    let values = [
        json!(null),
        json!(0),
        json!(-1),
        json!(1),
        json!(3),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("gptq"),
        json!([]),
        json!([0, 0]),
        json!([u64::MAX, u64::MAX]),
        json!({}),
        json!({"a": {"b": []}}),
        json!(true),
        json!([[[1]]]),
    ];
    for case in cases() {
        let model = Model::load(&case.directory);
        let said = model.said();
        let mut paths = Vec::new();
        collect(&said, &mut Vec::new(), &mut paths);
        for path in paths {
            for value in &values {
                let mut changed = said.clone();
                let mut at = &mut changed;
                for key in &path {
                    at = at.get_mut(key).unwrap();
                }
                *at = value.clone();
                try_all(
                    &model.clone().config(changed),
                    &format!("{} {path:?} {value}", case.name),
                );
            }
        }
    }
}

/// The keys that lead to everything in a document.
fn collect(at: &Json, path: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    let Json::Object(map) = at else { return };
    for (key, value) in map {
        path.push(key.clone());
        paths.push(path.clone());
        collect(value, path, paths);
        path.pop();
    }
}

#[test]
fn what_is_no_json_is_refused_where_something_is_quantized() {
    for text in [
        "",
        "{",
        "[1, 2]",
        "\u{feff}{}",
        "{\"quantization_config\": }",
        "nonsense",
    ] {
        let mut model = Model::of("gptq/b4_g32_v1");
        model.beside.insert("config.json".into(), text.into());
        let error = ops::dequantize(&model.open().unwrap());
        if text == "[1, 2]" {
            // A list says nothing.
            assert!(error.is_ok());
        } else {
            assert_eq!(error.err().unwrap().rule(), "quantized.config", "{text}");
        }
    }
}
