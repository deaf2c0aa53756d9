//! The files that llama-quantize made of small models: types, order, metadata, and every byte of every tensor.

use crate::*;
use serde_json::Value as Json;
use tenfold::model::{DType, DigestKind, Value};
use tenfold::ops::{ImportanceMatrix, Mixture};

fn sha256(bytes: &[u8]) -> String {
    let mut hasher = tenfold::digest::Hasher::new(DigestKind::Sha256).unwrap();
    hasher.update(bytes);
    (hasher.finish().iter())
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// What the options of llama-quantize are called here.
fn options(case: &Json) -> QuantizeOptions {
    let mixture = Mixture::from_name(case["type"].as_str().unwrap());
    let mut options = QuantizeOptions::new().mixture(Some(mixture.unwrap()));
    if let Some(file) = case["imatrix"].as_str() {
        let matrix = ImportanceMatrix::open(fixture(&format!("gguf-mixture/{file}"))).unwrap();
        options = options.importance(matrix);
    }
    let mut given = case["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| o.as_str().unwrap());
    let mut names: Vec<(String, &'static BlockSpec)> = Vec::new();
    while let Some(option) = given.next() {
        let type_of = |name: &str| BlockSpec::from_name(name).unwrap();
        match option {
            "--pure" => options = options.pure(true),
            "--leave-output-tensor" => {
                options = options.except(|tensor| tensor.name == "output.weight");
            }
            "--output-tensor-type" => {
                names.push(("output.weight".into(), type_of(given.next().unwrap())));
            }
            "--token-embedding-type" => {
                names.push(("token_embd.weight".into(), type_of(given.next().unwrap())));
            }
            "--tensor-type" => {
                let (name, to) = given.next().unwrap().split_once('=').unwrap();
                names.push((name.to_owned(), type_of(to)));
            }
            other => panic!("{other}"),
        }
    }
    options.rule_among_matrices(move |tensor| {
        let matches = |pattern: &str| match pattern {
            // The only regular expression among the cases.
            r"blk\.[0-3]\.attn_q" => {
                (0..4).any(|layer| tensor.name.contains(&format!("blk.{layer}.attn_q")))
            }
            // The two options that name one tensor each.
            name @ ("output.weight" | "token_embd.weight") => tensor.name == name,
            plain => tensor.name.contains(plain),
        };
        let found = names.iter().find(|(pattern, _)| matches(pattern));
        found.map(|(_, to)| *to)
    })
}

#[test]
fn mixtures_give_what_llama_quantize_gives() {
    let text = std::fs::read_to_string(fixture("gguf-mixture/expected.json")).unwrap();
    let cases: Vec<Json> = serde_json::from_str(&text).unwrap();
    let (mut wrong, mut with_options) = (Vec::new(), 0);
    for case in &cases {
        let archive = open(&format!("gguf-mixture/{}", case["input"].as_str().unwrap()));
        let quantized = ops::quantize(&archive, &options(case)).unwrap().archive;
        let (mut lines, mut types) = (String::new(), Vec::new());
        for tensor in quantized.tensors() {
            let (dtype, shape) = (tensor.info().dtype, tensor.info().shape.to_vec());
            let shape = format!("{shape:?}").replace(", ", ",");
            let sum = sha256(&tensor.canonical().unwrap());
            lines += &format!("{} {dtype} {shape} {sum}\n", tensor.name());
            types.push(dtype.to_string().replace("gguf:", ""));
        }
        let name = case["case"].as_str().unwrap();
        if case["sha256"] != sha256(lines.as_bytes()) {
            wrong.push(format!(
                "{name}: {} instead of {}",
                types.join(" "),
                case["types"]
            ));
        }
        for (key, value) in case["metadata"].as_object().unwrap() {
            let found = quantized.metadata().get(key);
            let is_same = match found {
                Some(Value::Str(text)) => value == text,
                Some(number) => value.as_u64().is_some() && value.as_u64() == number.as_u64(),
                None => false,
            };
            assert!(is_same, "{name}: {key} is {found:?}, expected {value}");
        }
        with_options += usize::from(!case["options"].as_array().unwrap().is_empty());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((cases.len(), with_options), (74, 3));
}

#[test]
fn the_file_type_of_a_mixture_is_written_though_types_are_others() {
    let archive = open("gguf-mixture/odd2.gguf");
    let mixture = Mixture::from_name("Q4_K_M");
    let options = QuantizeOptions::new().mixture(mixture);
    let quantized = ops::quantize(&archive, &options).unwrap();
    let registry = tenfold::format::Registry::standard();
    let mut out = tenfold::io::MemoryOutput::new();
    let to = registry.get("gguf").unwrap();
    let conversion = ops::Conversion::prepare(&quantized.archive, to, &Default::default());
    conversion.unwrap().write_to("x.gguf", &mut out).unwrap();
    let written = Archive::from_bytes(out.into_files().remove("x.gguf").unwrap()).unwrap();
    let metadata = written.metadata();
    assert_eq!(metadata.get("general.file_type"), Some(&Value::U32(15)));
    assert_eq!(
        metadata.get("general.quantization_version"),
        Some(&Value::U32(2))
    );
    // Rows of 264 numbers have no type of blocks at all.
    assert_eq!(
        written.tensor("token_embd.weight").unwrap().info().dtype,
        DType::F16
    );
    let remarks: Vec<_> = quantized
        .remarks
        .iter()
        .map(|remark| &*remark.rule)
        .collect();
    assert!(remarks.contains(&"quantize.rows"), "{remarks:?}");
}

#[test]
fn models_of_transformers_get_the_types_of_their_tensors_in_gguf() {
    let names = [
        ("model.embed_tokens.weight", "token_embd.weight"),
        (
            "model.layers.0.self_attn.v_proj.weight",
            "blk.0.attn_v.weight",
        ),
        (
            "model.layers.0.mlp.down_proj.weight",
            "blk.0.ffn_down.weight",
        ),
        (
            "model.layers.0.input_layernorm.weight",
            "blk.0.attn_norm.weight",
        ),
        ("lm_head.weight", "output.weight"),
    ];
    let types = |pick: fn(&(&'static str, &'static str)) -> &'static str| {
        let mut builder = ArchiveBuilder::new();
        for name in &names {
            let shape: &[u64] = if name.0.contains("norm") {
                &[256]
            } else {
                &[2, 256]
            };
            let len = shape.iter().product::<u64>() as usize;
            builder.tensor(pick(name), shape, vec![1f32; len]).unwrap();
        }
        let options = QuantizeOptions::new().mixture(Mixture::from_name("Q4_K_M"));
        let choices = ops::quantize(&builder.finish(), &options).unwrap().choices;
        let mut types: Vec<_> = choices
            .into_iter()
            .map(|choice| choice.to.to_string())
            .collect();
        types.sort();
        types
    };
    let theirs = types(|name| name.0);
    assert_eq!(theirs, types(|name| name.1));
    assert_eq!(
        theirs,
        ["f32", "gguf:Q4_K", "gguf:Q6_K", "gguf:Q6_K", "gguf:Q6_K"]
    );
}

#[test]
fn a_mixture_of_names_that_say_nothing_is_refused() {
    let mut builder = ArchiveBuilder::new();
    builder
        .tensor("dense/kernel", [2, 256], vec![1f32; 512])
        .unwrap();
    let archive = builder.finish();
    let options = |name| QuantizeOptions::new().mixture(Mixture::from_name(name));
    let error = ops::quantize(&archive, &options("Q4_K_M"))
        .map(drop)
        .unwrap_err();
    assert!(error.message().contains("Q4_K is"), "{error}");
    // Where the name is that of a type too, that is meant.
    let quantized = ops::quantize(&archive, &options("Q6_K")).unwrap();
    assert_eq!(quantized.choices[0].to.to_string(), "gguf:Q6_K");
}

#[test]
fn what_is_quantized_already_is_not_quantized_again() {
    let archive = open("gguf/edge.expected.gguf");
    let options = QuantizeOptions::new().every_matrix(BlockSpec::from_name("Q4_K"));
    let error = ops::quantize(&archive, &options).map(drop).unwrap_err();
    assert!(error.message().contains("already"), "{error}");
    assert!(error.tensor().is_some());
}

#[test]
fn the_page_has_every_type_and_every_mixture_with_its_number() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/quantized.md");
    let page = std::fs::read_to_string(page).unwrap();
    // The cells of a line, each a list; notes in parentheses are no part of names.
    let lines = page.lines().filter_map(|line| {
        let cells = line.strip_prefix("| ")?.split(" | ");
        let list = |cell: &str| -> Vec<String> {
            let plain = cell.split(" (").next().unwrap_or_default();
            plain.split(", ").map(ToOwned::to_owned).collect()
        };
        Some(cells.take(2).map(list).collect::<Vec<_>>())
    });
    let lines: Vec<_> = lines.filter(|cells| cells.len() == 2).collect();
    for mixture in Mixture::all() {
        let number = mixture.file_type.to_string();
        let is_said = lines.iter().any(|cells| {
            let mut pairs = cells[0].iter().zip(&cells[1]);
            pairs.any(|(name, file_type)| *name == mixture.name && *file_type == number)
        });
        assert!(
            is_said,
            "{} with {number} is not in the table",
            mixture.name
        );
    }
    for spec in ops::quantized_types() {
        let is_said = lines.iter().any(|cells| {
            let kinds = ["used", "needed", "make no difference"];
            cells[0].contains(&spec.name.to_owned())
                && kinds.iter().any(|kind| cells[1][0].starts_with(kind))
        });
        assert!(is_said, "{} is not in the table", spec.name);
    }
}

#[test]
fn a_type_is_said_to_be_what_most_numbers_are() {
    let archive = open("gguf-mixture/a.gguf");
    let options = QuantizeOptions::new().every_matrix(BlockSpec::from_name("Q4_K"));
    let quantized = ops::quantize(&archive, &options).unwrap();
    let registry = tenfold::format::Registry::standard();
    let mut out = tenfold::io::MemoryOutput::new();
    let to = registry.get("gguf").unwrap();
    let conversion = ops::Conversion::prepare(&quantized.archive, to, &Default::default());
    conversion.unwrap().write_to("x.gguf", &mut out).unwrap();
    let written = Archive::from_bytes(out.into_files().remove("x.gguf").unwrap()).unwrap();
    let said = |archive: &Archive| archive.metadata().get("general.file_type").cloned();
    assert_eq!(
        (said(&archive), said(&written)),
        (None, Some(Value::U32(14)))
    );
}

#[test]
fn a_mixture_that_is_a_type_means_the_type_where_names_say_nothing() {
    let mut builder = ArchiveBuilder::new();
    builder.tensor("x", [2, 256], vec![0.5f32; 512]).unwrap();
    let archive = builder.finish();
    let with = |name: &str| {
        let options = QuantizeOptions::new().mixture(Mixture::from_name(name));
        ops::quantize(&archive, &options)
    };
    // As a mixture, most of its tensors would be IQ2_XS.
    let quantized = with("IQ2_S").unwrap();
    let to = quantized.choices.first().unwrap().to;
    assert_eq!(to, DType::Block(BlockSpec::from_name("IQ2_S").unwrap()));
    assert_eq!(with("Q4_K_M").unwrap_err().rule(), "file.quantize");
}
