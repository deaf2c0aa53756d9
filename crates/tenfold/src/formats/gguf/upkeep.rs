//! What this container adds to its metadata, and what writers keep true in it.

use super::{ALIGNMENT, ARCHITECTURE, QUANTIZATION_VERSION, UNKNOWN};
use crate::error::Hint;
use crate::format::{Belongs, Finding, PlanOptions, Severity};
use crate::model::{DType, Layout, Manifest, TensorInfo, Value};
use crate::prelude::*;

/// What most tensors of a file are, by a number of llama.cpp's.
const FILE_TYPE: &str = "general.file_type";

/// The numbers of `general.file_type` for the types that most tensors can have.
const FILE_TYPES: &[(&str, u32)] = &[
    ("Q4_0", 2),
    ("Q4_1", 3),
    ("Q8_0", 7),
    ("Q5_0", 8),
    ("Q5_1", 9),
    ("Q2_K", 10),
    ("Q3_K", 11),
    ("Q4_K", 14),
    ("Q5_K", 16),
    ("Q6_K", 18),
    ("IQ2_XXS", 19),
    ("IQ2_XS", 20),
    ("IQ3_XXS", 23),
    ("IQ1_S", 24),
    ("IQ4_NL", 25),
    ("IQ3_S", 26),
    ("IQ2_S", 28),
    ("IQ4_XS", 30),
    ("IQ1_M", 31),
    ("TQ1_0", 36),
    ("TQ2_0", 37),
    ("MXFP4", 38),
    ("NVFP4", 39),
    ("Q1_0", 40),
];

/// Whose an entry is.
pub(super) fn owner(key: &str, value: &Value) -> Belongs {
    match (key, value) {
        (ARCHITECTURE, Value::Str(name)) if name == UNKNOWN => Belongs::ToFormat,
        (ALIGNMENT | QUANTIZATION_VERSION, _) => Belongs::ToContainer,
        _ => Belongs::ToContent,
    }
}

/// Whether casts make `general.file_type` wrong, or tensors were quantized and it does not say to what.
pub(super) fn is_outdated(what: &Manifest) -> bool {
    let is_said = what.metadata.get(FILE_TYPE).is_some();
    let is_new = |tensor: &TensorInfo| {
        is_cast(tensor) && (is_said || matches!(tensor.dtype, DType::Block(_)))
    };
    !what.knows_types && what.tensors.iter().any(is_new)
}

/// Says again what most tensors are; a type that llama.cpp has no number for is left to be guessed.
pub(super) fn update_file_type(what: &mut Manifest) {
    match file_type(&what.tensors) {
        Some(number) => what.metadata.set(FILE_TYPE, Value::U32(number)),
        None => drop(what.metadata.remove(FILE_TYPE)),
    }
}

fn is_cast(tensor: &TensorInfo) -> bool {
    tensor.layout == Layout::Decoded || tensor.stored_dtype() != tensor.dtype
}

/// The number for the type that most elements of matrices have; vectors stay as they are in any file.
fn file_type<'t>(tensors: impl IntoIterator<Item = &'t TensorInfo>) -> Option<u32> {
    let mut counts: Vec<(DType, u64)> = Vec::new();
    for tensor in tensors.into_iter().filter(|tensor| tensor.shape.len() > 1) {
        let elements = tensor.shape.iter().copied().fold(1, u64::saturating_mul);
        match counts.iter_mut().find(|(dtype, _)| *dtype == tensor.dtype) {
            Some((_, count)) => *count = count.saturating_add(elements),
            None => counts.push((tensor.dtype, elements)),
        }
    }
    let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    match most {
        DType::F32 => Some(0),
        DType::F16 => Some(1),
        DType::BF16 => Some(32),
        DType::Block(spec) => {
            let known = FILE_TYPES.iter().find(|(name, _)| *name == spec.name);
            known.map(|(_, number)| *number)
        }
        _ => None,
    }
}

/// What whoever writes this should know: that an architecture is missing, and what llama.cpp makes of names that are not
/// its own.
pub(super) fn remarks(what: &Manifest, options: &PlanOptions) -> Vec<Finding> {
    let known = what.metadata.get(ARCHITECTURE);
    let is_known = known.is_some_and(|name| name.as_str() != Some(UNKNOWN));
    if options.option("architecture").is_some() || is_known {
        return Vec::new();
    }
    if what
        .tensors
        .iter()
        .any(|tensor| is_hugging_face(&tensor.name))
    {
        let message = "llama.cpp will not run this file: the names of its tensors are those of Hugging Face, and it has \
                       no architecture; llama.cpp's convert_hf_to_gguf.py writes one that runs";
        return vec![Finding::new(
            Severity::Warning,
            "gguf.architecture",
            message,
        )];
    }
    if known.is_some() {
        return Vec::new();
    }
    let message =
        format!("{ARCHITECTURE} = {UNKNOWN:?} is added, because readers require an architecture");
    let added = Finding::new(Severity::Note, "gguf.architecture", message);
    vec![added.hinting(Hint::FormatOption {
        key: "architecture",
        value: "NAME",
        does: "names the right one",
    })]
}

/// Names as transformers gives them.
fn is_hugging_face(name: &str) -> bool {
    let begins = [
        "model.layers.",
        "model.embed_tokens.",
        "transformer.h.",
        "lm_head.",
    ];
    begins.iter().any(|begin| name.starts_with(begin))
}
