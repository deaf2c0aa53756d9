//! torchao in its form for safetensors.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `M._weight_qdata` | i8, f8_e4m3 | [out, in] |
//! | `M._weight_scale` | f32, bf16, f16 | blocks |
//! | `M._weight_zero_point` | i8, … | as the scales |
//!
//! The metadata of the file has the names and, for each of them, JSON that says the class and the size of blocks.

use super::decoder::{Formula, Quant};
use super::fp8::FLOATS;
use super::refused::unread;
use super::set::Set;
use super::{Built, Group, Method};
use crate::error::Result;
use crate::model::{Map, Metadata, Quoted, Scalar, Value};
use crate::prelude::*;
use crate::wire::json::{Json, Rules};

pub(super) const METHOD: Method = Method {
    id: "torchao",
    title: "torchao",
    methods: &["torchao"],
    anchors: &["_qdata"],
    companions: &["._weight_qdata", "._weight_scale", "._weight_zero_point"],
    main: "._weight_qdata",
    scale: "._weight_scale",
    reads: &[],
    build,
};

const LIST: &str = "tensor_names";
const RULES: Rules = Rules {
    syntax: "quantized.state",
    text: "quantized.state",
    depth: "quantized.state",
};
const MAX_DEPTH: usize = 16;
const CLASSES: [&str; 2] = ["Int8Tensor", "Float8Tensor"];

fn build(set: &mut Set<'_, '_>) -> Result<Option<Built>> {
    // The module, and the parameter behind an underscore.
    let name = match set.base.rsplit_once("._") {
        Some((module, parameter)) => format!("{module}.{parameter}"),
        None => set.base.trim_start_matches('_').to_owned(),
    };
    let said = said(set, &name)?;
    let mut blocks = [None, None];
    if let Some(said) = &said {
        let class = said
            .get("_type")
            .and_then(|class| class.as_str().map(ToOwned::to_owned));
        let class = class.unwrap_or_default();
        if !CLASSES.contains(&class.as_str()) {
            let message = format!("{} is a {}", Quoted(&name), Quoted(&class));
            return Err(unread(message).in_tensor(&name));
        }
        if let Some(Value::List(names)) = said.get("_tensor_data_names") {
            for part in names.iter() {
                let ending = format!("_{}", part.as_str().unwrap_or_default());
                if set.find(&ending).is_none() {
                    return Err(set.missing(&format!("{}{ending}", set.base)));
                }
            }
        }
        if let Some(Value::Map(data)) = said.get("_data")
            && let Some(Value::List(list)) = data.get("block_size")
            && let Some(&[down, along]) = list.as_u64s().as_deref()
        {
            blocks = [Some(down), Some(along)];
        }
    }
    let codes = set.take("_qdata")?;
    if codes.scalar != Scalar::I8 && !FLOATS.contains(&codes.scalar) {
        let message = format!(
            "{} holds codes of {}",
            Quoted(&codes.info.name),
            codes.scalar.name()
        );
        return Err(unread(message).in_tensor(&name));
    }
    let [count, rows, cols] = codes.matrices()?;
    let scale = set
        .take("_scale")?
        .is_of(&[Scalar::F32, Scalar::BF16, Scalar::F16])?;
    let grid = scale.grid([count, rows, cols], scale.scalar, blocks)?;
    let block = grid.block;
    let mut quant = Quant::new(codes.plane(rows, cols), grid).matrices(count);
    if let Some(zero) = set.maybe("_zero_point")? {
        let zeros =
            zero.has_shape(scale.shape())?
                .grid([count, rows, cols], zero.scalar, blocks)?;
        quant = quant.with(Formula::Offset, zeros);
    }
    Ok(Some(Built {
        name,
        shape: codes.shape().to_vec(),
        quant,
        says: format!("8 bits, blocks of {} x {}", block[0], block[1]),
    }))
}

/// What the metadata says of a tensor.
fn said(set: &Set<'_, '_>, name: &str) -> Result<Option<Map>> {
    let Some(text) = set.model.manifest.metadata.get(name) else {
        return Ok(None);
    };
    let Some(text) = text.as_str() else {
        return Ok(None);
    };
    let read = || {
        let mut json = Json::new(text.as_bytes(), 0, MAX_DEPTH, &RULES)?;
        let value = json.value(&mut |_, _| Ok(()))?;
        json.end()?;
        Ok(value)
    };
    // Places are those in the text, and not in the file.
    let value = read().map_err(|error: crate::Error| {
        let message = format!("metadata {}: {}", Quoted(name), error.message());
        crate::Error::malformed("quantized.state", message)
    })?;
    Ok(match value {
        Value::Map(map) => Some(map),
        _ => None,
    })
}

/// The metadata without what is said of tensors that are numbers now.
pub(super) fn without(metadata: &Metadata, groups: &[Group]) -> Metadata {
    let mut metadata = metadata.clone();
    let mut of_it = groups
        .iter()
        .filter(|group| group.scheme.name == METHOD.id)
        .peekable();
    if of_it.peek().is_some() {
        metadata.remove(LIST);
    }
    for group in of_it {
        metadata.remove(&group.name);
    }
    metadata
}
