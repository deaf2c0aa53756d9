//! Blocks that ggml's C sources made, built for x86-64 without fused operations.

use crate::*;
use tenfold::model::{DType, DigestKind};
use tenfold::ops::ImportanceMatrix;

const SETS: [&str; 3] = ["normal", "heavy", "edge"];

/// The only tensor of a set, quantized.
fn quantized(set: &str, to: &'static BlockSpec, importance: bool) -> Result<Vec<u8>> {
    let archive = open(&format!("gguf/{set}.safetensors"));
    let mut options = QuantizeOptions::new().rule(move |_| Some(to));
    if importance {
        let matrix = ImportanceMatrix::open(fixture(&format!("gguf/{set}.imatrix.gguf")))?;
        options = options.importance(matrix);
    }
    let blocks = ops::quantize(&archive, &options)?.archive;
    let bytes = blocks.tensors().next().unwrap().canonical()?;
    Ok(bytes.to_vec())
}

fn compare(with_importance: bool) -> Vec<&'static str> {
    let mut types = Vec::new();
    let mut wrong = Vec::new();
    for set in SETS {
        let suffix = if with_importance { ".imatrix" } else { "" };
        let expected = open(&format!("gguf/{set}.expected{suffix}.gguf"));
        for tensor in expected.tensors() {
            let DType::Block(spec) = tensor.info().dtype else {
                panic!("{} is not quantized", tensor.name());
            };
            if !ops::quantized_types().any(|known| known == spec) {
                continue;
            }
            let found = quantized(set, spec, with_importance).unwrap();
            let expected = tensor.canonical().unwrap();
            let size = spec.bytes as usize;
            let blocks = found.chunks(size).zip(expected.chunks(size));
            let differ = blocks.filter(|(a, b)| a != b).count();
            if differ > 0 || found.len() != expected.len() {
                wrong.push(format!(
                    "{set} {}: {differ} of {}",
                    spec.name,
                    found.len() / size
                ));
            }
            types.push(spec.name);
        }
    }
    assert!(wrong.is_empty(), "blocks differ: {wrong:#?}");
    types.sort_unstable();
    types.dedup();
    types
}

#[test]
fn blocks_are_those_of_ggml_to_the_last_bit() {
    let types = compare(false);
    for name in [
        "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL",
        "IQ4_XS", "IQ3_XXS", "IQ3_S", "IQ2_S", "TQ1_0", "TQ2_0", "MXFP4", "NVFP4", "Q1_0",
    ] {
        assert!(types.contains(&name), "{name} was not compared");
    }
}

#[test]
fn with_importances_they_are_too() {
    let types = compare(true);
    for name in [
        "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS",
        "IQ3_XXS", "IQ3_S", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_S",
    ] {
        assert!(types.contains(&name), "{name} was not compared");
    }
}

/// The file of expected blocks was written by a program that does not know this type.
#[test]
fn blocks_of_ternary_codes_have_the_digests_of_those_of_ggml() {
    for set in SETS {
        let text = std::fs::read_to_string(fixture(&format!("gguf/{set}.Q2_0.json"))).unwrap();
        let expected: serde_json::Value = serde_json::from_str(&text).unwrap();
        let found = quantized(set, BlockSpec::from_name("Q2_0").unwrap(), false).unwrap();
        let mut hasher = tenfold::digest::Hasher::new(DigestKind::Sha256).unwrap();
        hasher.update(&found);
        let sum: String = (hasher.finish().iter())
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(expected["tensors"][0]["sha256"], sum, "{set}");
    }
}
