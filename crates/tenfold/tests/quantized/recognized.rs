//! What is taken for what, and what is refused.

use serde_json::{Value as Json, json};
use tenfold::model::Layout;
use tenfold::ops;
use tenfold::{Archive, Error};

use crate::model::{Model, cases};

fn refusal(model: &Model) -> Error {
    match ops::dequantize(&model.open().unwrap()) {
        Ok(_) => panic!("taken for something: {:?}", model.tensors.keys()),
        Err(error) => error,
    }
}

#[test]
fn a_set_without_one_of_its_tensors_is_refused_by_the_name_of_that() {
    // What only some models of a scheme have, or belongs to activations.
    const OPTIONAL: [&str; 22] = [
        ".bias",
        "norm.weight",
        ".activation_scale",
        ".input_scale",
        ".output_scale",
        ".g_idx",
        "_g_idx",
        "_bias",
        ".weight_format",
        ".channel_wise",
        ".compute_dtype",
        ".encoded_state_dict",
        ".group_size",
        ".offload_meta",
        ".optimize",
        ".packing",
        ".quant_scale",
        ".quant_zero",
        ".round_zero",
        ".stores_quant_config",
        ".unpack_view_dtype",
        ".view_as_float",
    ];
    let mut tried = 0;
    for case in cases()
        .iter()
        .filter(|case| case.expected["optional"] != Json::Bool(true))
    {
        let model = Model::load(&case.directory);
        for name in model.tensors.keys() {
            let is_plain = case.expected["tensors"]
                .as_array()
                .unwrap()
                .iter()
                .any(|t| t["name"] == **name && t.get("values").is_none());
            if is_plain
                || OPTIONAL.iter().any(|ending| name.ends_with(ending))
                || name == "lm_head.weight"
            {
                continue;
            }
            let mut broken = model.clone();
            broken.tensors.remove(name);
            let error = refusal(&broken);
            assert_eq!(
                error.rule(),
                "quantized.incomplete",
                "{} without {name}: {error}",
                case.name
            );
            assert!(error.message().contains("missing"), "{error}");
            tried += 1;
        }
    }
    assert!(tried > 120, "{tried}");
}

#[test]
fn the_missing_tensor_is_named() {
    for (case, ending) in [
        ("gptq/b4_g32_v1", ".qzeros"),
        ("awq/g32", ".scales"),
        ("bitsandbytes/nf4_double", ".nested_absmax"),
        ("compressed-tensors/nvfp4", ".weight_global_scale"),
        ("compressed-tensors/w4a16_group_asym", ".weight_zero_point"),
        ("modelopt/nvfp4", ".weight_scale_2"),
        ("mlx/b3_g64", ".biases"),
        ("torchao/int8", "_zero_point"),
        ("fp8-block/partial_blocks", ".weight_scale_inv"),
        ("gptq/b4_actorder_v1", ".g_idx"),
    ] {
        let error = refusal(&Model::of(case).without(ending));
        let message = error.message();
        assert!(
            message.contains(&format!("{ending}\" is missing")),
            "{case}: {message}"
        );
    }
}

#[test]
fn without_a_configuration_names_types_and_shapes_say_it_or_it_is_refused() {
    let mut ambiguous = Vec::new();
    for case in cases()
        .iter()
        .filter(|case| case.expected["optional"] != Json::Bool(true))
    {
        let mut model = Model::load(&case.directory);
        model.beside.clear();
        // Nothing in the file tells these from others.
        let is_silent = case.name == "gptq/b4_v2";
        let numbers = match ops::dequantize(&model.open().unwrap()) {
            Ok(numbers) => numbers,
            Err(error) => {
                assert_eq!(
                    error.rule(),
                    "quantized.ambiguous",
                    "{}: {error}",
                    case.name
                );
                ambiguous.push(case.name.clone());
                continue;
            }
        };
        let with = Model::load(&case.directory);
        let with = ops::dequantize(&with.open().unwrap()).unwrap();
        for tensor in with.tensors() {
            let found = numbers.tensor(tensor.name()).unwrap().canonical().unwrap();
            let same = found == tensor.canonical().unwrap();
            assert_eq!(
                same,
                !is_silent || tensor.name().ends_with("norm.weight"),
                "{} {}",
                case.name,
                tensor.name()
            );
        }
    }
    // Whether scales multiply or divide, how large blocks and how wide codes are, only a configuration says of these.
    let expected = [
        "bitnet/autobitlinear",
        "bitnet/bitlinear",
        "compressed-tensors/fp8_block",
        "compressed-tensors/w8a16_channel",
        "fp8-block/partial_blocks",
        "mlx/b2_g128",
        "mlx/b3_g64",
        "mlx/b4_g32_f16",
        "mlx/b4_g64_bf16",
        "mlx/b6_g32",
        "mlx/b8_g64_f16",
    ];
    assert_eq!(ambiguous, expected);
}

#[test]
fn schemes_that_are_not_read_are_refused_by_name() {
    let gptq = Model::of("gptq/b4_g32_v1");
    for (method, title) in [
        ("eetq", "EETQ"),
        ("aqlm", "AQLM"),
        ("vptq", "VPTQ"),
        ("quip", "QuIP#"),
        ("spqr", "SpQR"),
        ("higgs", "HIGGS"),
        ("fp_quant", "FP-Quant"),
        ("qqq", "QQQ"),
        ("marlin", "Marlin"),
        ("exl2", "EXL2"),
        ("exl3", "EXL3"),
        ("auto-round", "AutoRound"),
        ("something_new", "something-new"),
    ] {
        let model = gptq
            .clone()
            .config(json!({"quantization_config": {"quant_method": method}}));
        let error = refusal(&model);
        assert_eq!(error.rule(), "quantized.scheme", "{error}");
        assert!(error.message().contains(title), "{error}");
    }
    for (case, key, value) in [
        ("gptq/b4_g32_v1", "checkpoint_format", json!("marlin")),
        ("gptq/b4_g32_v1", "checkpoint_format", json!("gptq_p")),
        ("gptq/b4_g32_v1", "is_marlin_format", json!(true)),
        ("awq/g32", "version", json!("gemv")),
        ("awq/g32", "version", json!("gemv_fast")),
        ("awq/g32", "version", json!("exllama")),
        ("awq/g32", "bits", json!(3)),
        ("modelopt/nvfp4", "quant_algo", json!("W4A8_AWQ")),
        (
            "compressed-tensors/w4a16_group_sym",
            "format",
            json!("marlin-24"),
        ),
        ("bitnet/bitlinear", "linear_class", json!("other")),
    ] {
        let model = Model::of(case);
        let mut said = model.said();
        said["quantization_config"][key] = value.clone();
        let error = refusal(&model.config(said));
        assert_eq!(
            error.rule(),
            "quantized.scheme",
            "{case} {key} {value}: {error}"
        );
    }
}

#[test]
fn names_alone_show_schemes_that_are_not_read() {
    for (names, title) in [
        (
            &[("x.weight", "I8"), ("x.weight_scales", "F16")][..],
            "EETQ",
        ),
        (&[("x.codes", "I8"), ("x.codebooks", "F16")], "AQLM"),
        (&[("x.B", "I32"), ("x.s", "F16")], "Marlin"),
        (&[("x.q_weight", "I32"), ("x.q_scale", "I32")], "EXL2"),
        (&[("x.trellis", "I16"), ("x.suh", "F16")], "EXL3"),
        (&[("x.Qidxs", "I64"), ("x.b", "I32")], "QuIP#"),
    ] {
        let mut model = Model::of("awq/g32");
        model.tensors.clear();
        model.beside.clear();
        for (name, dtype) in names {
            let width = dtype[1..].parse::<usize>().unwrap() / 8;
            let stored = crate::model::Stored {
                dtype: (*dtype).into(),
                shape: vec![4, 4],
                bytes: vec![0; 16 * width],
            };
            model.tensors.insert((*name).into(), stored);
        }
        let error = refusal(&model);
        assert_eq!(error.rule(), "quantized.scheme", "{error}");
        assert!(error.message().contains(title), "{error}");
    }
}

#[test]
fn torchao_classes_that_are_tiled_are_refused_by_name() {
    let mut model = Model::of("torchao/int8");
    let metadata = model.metadata.as_mut().unwrap();
    let said = metadata["0.weight"]
        .as_str()
        .unwrap()
        .replace("Int8Tensor", "Int4TilePackedTo4dTensor");
    metadata["0.weight"] = json!(said);
    let error = refusal(&model);
    assert!(
        error.message().contains("Int4TilePackedTo4dTensor"),
        "{error}"
    );
}

#[test]
fn two_bits_of_quanto_are_refused_because_the_shape_is_nowhere() {
    let error = refusal(&Model::of("quanto/qint4"));
    assert_eq!(error.rule(), "quantized.scheme");
    assert!(error.message().contains("shape"), "{error}");
}

#[test]
fn a_configuration_that_contradicts_the_tensors_is_an_error() {
    for (case, key, value, rule) in [
        ("awq/g32", "quant_method", json!("gptq"), "quantized.shape"),
        (
            "gptq/b4_g32_v1",
            "quant_method",
            json!("awq"),
            "quantized.shape",
        ),
        ("gptq/b4_g32_v1", "bits", json!(8), "quantized.shape"),
        (
            "fp8-block/partial_blocks",
            "weight_block_size",
            json!([64, 64]),
            "quantized.shape",
        ),
        ("mlx/b3_g64", "group_size", json!(32), "quantized.shape"),
        ("mlx/b3_g64", "bits", json!(7), "quantized.config"),
        ("mlx/mxfp4", "mode", json!("unknown"), "quantized.scheme"),
    ] {
        let model = Model::of(case);
        let mut said = model.said();
        let key_of_config = if case.starts_with("mlx") {
            "quantization"
        } else {
            "quantization_config"
        };
        said[key_of_config][key] = value.clone();
        let error = refusal(&model.config(said));
        assert_eq!(error.rule(), rule, "{case} {key} {value}: {error}");
    }
}

#[test]
fn blocks_that_shapes_do_not_tell_are_ambiguous() {
    // 200 x 300 in 2 x 3 blocks: of 128, or of 100.
    let mut model = Model::of("fp8-block/partial_blocks");
    model.beside.clear();
    assert_eq!(refusal(&model).rule(), "quantized.ambiguous");
}

#[test]
fn a_weight_that_is_there_as_it_is_too_is_ambiguous() {
    let mut model = Model::of("gptq/b4_g32_v1");
    let norm = model.tensor("norm.weight").clone();
    model
        .tensors
        .insert("model.layers.0.self_attn.q_proj.weight".into(), norm);
    assert_eq!(refusal(&model).rule(), "quantized.ambiguous");
}

#[test]
fn a_plain_weight_of_a_module_that_is_left_out_is_no_set() {
    let mut model = Model::of("fp8-block/scalar_scale");
    let weight = model.tensor("gate_proj.weight").clone();
    model
        .tensors
        .insert("lm_head.weight".into(), weight.clone());
    let numbers = ops::dequantize(&model.open().unwrap()).unwrap();
    assert_eq!(
        numbers
            .tensor("lm_head.weight")
            .unwrap()
            .info()
            .dtype
            .to_string(),
        "f8_e4m3"
    );
    model.tensors.insert("other.weight".into(), weight);
    assert_eq!(refusal(&model).rule(), "quantized.incomplete");
}

#[test]
fn groups_are_one_tensor_whose_parts_are_those_of_the_file() {
    let archive = Model::of("gptq/b4_actorder_v1").open().unwrap();
    let quantized = ops::quantized(&archive).unwrap();
    assert_eq!(quantized.config, Some("config.json"));
    let [group] = &quantized.groups[..] else {
        panic!("{:?}", quantized.groups)
    };
    assert_eq!(group.scheme.name, "gptq");
    assert_eq!(group.tensors.len(), 4);
    let tensor = quantized.archive.tensor(&group.name).unwrap();
    assert_eq!(&*tensor.info().shape, [16, 96]);
    assert!(matches!(tensor.info().layout, Layout::Opaque(_)));
    assert_eq!(
        quantized.archive.tensors().len(),
        3,
        "the bias and the norm stay"
    );
}

#[test]
fn what_is_not_asked_for_stays_as_it_is() {
    let archive = Model::of("gptq/b4_actorder_v1").open().unwrap();
    let names: Vec<_> = archive
        .tensors()
        .map(|tensor| tensor.name().to_owned())
        .collect();
    assert!(
        names.iter().any(|name| name.ends_with("qweight")),
        "{names:?}"
    );
}

#[test]
fn scales_of_a_cache_go_with_the_quantization_and_are_listed() {
    let mut model = Model::of("modelopt/nvfp4");
    let scale = model.tensor("input_scale").clone();
    model
        .tensors
        .insert("model.layers.0.self_attn.k_proj.k_scale".into(), scale);
    let quantized = ops::quantized(&model.open().unwrap()).unwrap();
    assert_eq!(
        quantized.left_out,
        ["model.layers.0.self_attn.k_proj.k_scale"]
    );
}

#[test]
fn torchao_metadata_goes_with_what_it_was_about() {
    let numbers = ops::dequantize(&Model::of("torchao/int8").open().unwrap()).unwrap();
    assert!(numbers.metadata().get("tensor_names").is_none());
    assert!(numbers.metadata().get("0.weight").is_none());
}

#[test]
fn symmetric_zero_points_tell_the_version_of_gptq() {
    // Files that say that they are of the first version and have the zero points of the second.
    let case = "gptq/b4_sym_v1";
    let numbers = |model: &Model| {
        let numbers = ops::dequantize(&model.open().unwrap()).unwrap();
        numbers
            .tensor("model.layers.0.self_attn.q_proj.weight")
            .unwrap()
            .canonical()
            .unwrap()
    };
    let first = Model::of(case);
    let mut second = first.clone();
    let zeros = &mut second.tensor(".qzeros").bytes;
    assert!(zeros.iter().all(|byte| *byte == 0x77), "{zeros:?}");
    zeros.fill(0x88);
    assert_eq!(numbers(&first), numbers(&second));
    // One that differs makes it the first version again.
    second.tensor(".qzeros").bytes[0] = 0x87;
    assert_ne!(numbers(&first), numbers(&second));
}

#[test]
fn columns_of_compressed_tensors_that_belong_nowhere_are_in_order() {
    let mut model = Model::of("compressed-tensors/w4a16_actorder_old");
    model.tensor("weight_g_idx").bytes.fill(0xff);
    let plain = ops::dequantize(&model.open().unwrap()).unwrap();
    let without = Model::of("compressed-tensors/w4a16_actorder_old").without("weight_g_idx");
    let without = ops::dequantize(&without.open().unwrap()).unwrap();
    let name = "model.layers.0.self_attn.o_proj.weight";
    let bytes = |archive: &Archive| archive.tensor(name).unwrap().canonical().unwrap();
    assert_eq!(bytes(&plain), bytes(&without));
}

#[test]
fn a_group_that_is_not_there_is_refused_when_it_is_read() {
    for (case, place, rule) in [
        ("gptq/b4_actorder_v1", 3i32, "quantized.index"),
        ("gptq/b4_actorder_v1", -1, "quantized.index"),
        (
            "compressed-tensors/w4a16_actorder_old",
            1 << 30,
            "quantized.index",
        ),
    ] {
        let mut model = Model::of(case);
        model.tensor("g_idx").bytes[..4].copy_from_slice(&place.to_le_bytes());
        let numbers = ops::dequantize(&model.open().unwrap()).unwrap();
        let errors = numbers
            .tensors()
            .filter_map(|tensor| tensor.canonical().err());
        let errors: Vec<_> = errors.map(|error| error.rule().to_owned()).collect();
        assert_eq!(errors, [rule], "{case} {place}");
    }
}
