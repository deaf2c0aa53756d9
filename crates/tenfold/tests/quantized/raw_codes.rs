//! Codes that no scheme takes are not passed on as if they were weights, whatever their names are.

use serde_json::{Value as Json, json};

use crate::model::{Model, Stored};
use tenfold::ops;

fn fp8() -> Json {
    json!({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}})
}

/// Experts in one tensor: two matrices of one block each.
fn experts(scale: &'static str, shape: &[u64], scales: &[f32]) -> Model {
    let codes = Stored::new("F8_E4M3", &[2, 128, 64], vec![0x38; 2 * 128 * 64]);
    let tensors = [
        ("experts.gate_up_proj", codes),
        (scale, Stored::floats(shape, scales)),
    ];
    Model::new(tensors, fp8())
}

#[test]
fn experts_in_one_tensor_have_scales_behind_their_own_name() {
    let blocks = experts("experts.gate_up_proj_scale_inv", &[2, 1, 1], &[2.0, 3.0]);
    let mut silent = blocks.clone();
    silent.beside.clear();
    for model in [blocks, silent] {
        let archive = model.open().unwrap();
        let quantized = ops::quantized(&archive).unwrap();
        let [group] = &quantized.groups[..] else {
            panic!("{:?}", quantized.groups)
        };
        assert_eq!(
            (&*group.name, group.tensors.len()),
            ("experts.gate_up_proj", 2)
        );
        let found = model.numbers("experts.gate_up_proj").unwrap();
        assert_eq!(found, [[2.0; 8192], [3.0; 8192]].concat());
    }
    // One for each column, as some have them.
    let columns: Vec<f32> = (0..128u8).map(f32::from).collect();
    let model = experts("experts.gate_up_proj_scale", &[2, 1, 64], &columns);
    let found = model.numbers("experts.gate_up_proj").unwrap();
    for (matrix, columns) in found.chunks(8192).zip(columns.chunks(64)) {
        assert!(matrix.chunks(64).all(|row| row == columns));
    }
}

#[test]
fn scales_of_models_for_comfyui_are_taken_without_a_configuration() {
    let tensors = [
        ("a.weight", Stored::new("F8_E4M3", &[2, 4], vec![0x38; 8])),
        ("a.scale_weight", Stored::floats(&[], &[3.0])),
        ("a.scale_input", Stored::floats(&[], &[1.0])),
        ("scaled_fp8", Stored::new("F8_E4M3", &[2], vec![0; 2])),
    ];
    let mut model = Model::new(tensors, json!({}));
    model.beside.clear();
    assert_eq!(model.numbers("a.weight").unwrap(), [3.0; 8]);
    let numbers = ops::dequantize(&model.open().unwrap()).unwrap();
    assert_eq!(numbers.tensors().len(), 1);
}

#[test]
fn codes_that_are_left_over_are_refused_under_any_name() {
    let integers = || Stored::new("I8", &[2, 64, 64], vec![1; 8192]);
    let floats = || Stored::new("F8_E4M3", &[2, 64, 64], vec![1; 8192]);
    let scales = || Stored::floats(&[2, 64, 1], &[1.0; 128]);
    let whole = || {
        let one = Stored::new("F8_E4M3", &[128, 128], vec![0; 16384]);
        [
            ("m.weight", one),
            ("m.weight_scale_inv", Stored::floats(&[1, 1], &[2.0])),
        ]
    };
    for (others, rule) in [
        (
            vec![("e.down_proj", integers()), ("e.down_proj_scale", scales())],
            "quantized.scheme",
        ),
        (
            vec![
                ("e.down_proj", integers()),
                ("e.down_proj_scales", scales()),
            ],
            "quantized.scheme",
        ),
        (
            vec![("e.codes", integers()), ("e.scales", scales())],
            "quantized.scheme",
        ),
        (vec![("e.down_proj", floats())], "quantized.incomplete"),
        (vec![("e.weight", integers())], "quantized.incomplete"),
    ] {
        let name = others[0].0;
        let model = Model::new(whole().into_iter().chain(others), fp8());
        let error = model.numbers("m.weight").unwrap_err();
        assert_eq!(
            (error.rule(), error.tensor()),
            (rule, Some(name)),
            "{error}"
        );
        // What the configuration names as left out is what it is.
        let mut said = fp8();
        said["quantization_config"]["modules_to_not_convert"] = json!(["e"]);
        assert_eq!(model.config(said).numbers("m.weight").unwrap()[0], 0.0);
    }
}

#[test]
fn integers_that_are_tables_stay_as_they_are() {
    let table = || Stored::new("I32", &[2, 2], vec![0; 16]);
    let mut model = experts("experts.gate_up_proj_scale_inv", &[2, 1, 1], &[2.0, 3.0]);
    model
        .tensors
        .insert("attention.relative_index".into(), table());
    model.tensors.insert(
        "attention.mask".into(),
        Stored::new("U8", &[2, 2], vec![1; 4]),
    );
    let numbers = ops::dequantize(&model.open().unwrap()).unwrap();
    let dtype = |name| numbers.tensor(name).unwrap().info().dtype.to_string();
    assert_eq!(
        (dtype("attention.relative_index"), dtype("attention.mask")),
        ("i32".into(), "u8".into())
    );
}

#[test]
fn without_a_configuration_scales_show_what_codes_are() {
    let tensors = [
        ("e.down_proj", Stored::new("I8", &[64, 64], vec![1; 4096])),
        ("e.down_proj_scale", Stored::floats(&[64, 1], &[1.0; 64])),
    ];
    let mut model = Model::new(tensors, json!({}));
    model.beside.clear();
    let error = model.numbers("e.down_proj").unwrap_err();
    assert_eq!(error.rule(), "quantized.scheme", "{error}");
    // Without them, a cast to few bits is that and nothing else.
    let plain = model.without("_scale");
    let archive = plain.open().unwrap();
    assert!(ops::quantized(&archive).unwrap().problems.is_empty());
}
