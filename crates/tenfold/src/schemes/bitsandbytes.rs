//! bitsandbytes, 4 and 8 bits.
//!
//! | tensor | type | what |
//! |---|---|---|
//! | `X.weight` | u8 (or any other, for its bytes) | two codes a byte, the first in the high bits, over the flattened tensor |
//! | `X.weight.absmax` | f32, or u8 where it is quantized itself | a scale for each block |
//! | `X.weight.quant_map` | f32 \[16\] | the number of each code |
//! | `X.weight.nested_absmax`, `X.weight.nested_quant_map` | f32 | the same of quantized scales |
//! | `X.weight.quant_state.bitsandbytes__nf4` or `__fp4` | u8 | JSON: shape, sizes of blocks, an offset |
//! | `X.weight`, `X.SCB` | i8 \[out, in\], f32 \[out\] | 8 bits: code times scale, over 127 |

use super::decoder::{Grid, Numbers, Quant, Then};
use super::plane::{Packing, Plane, Values};
use super::refused::unread;
use super::set::Set;
use super::{Built, Method};
use crate::error::Result;
use crate::model::{Map, Scalar, Value};
use crate::prelude::*;
use crate::wire::json::{Json, Rules};

pub(super) const METHOD: Method = Method {
    id: "bitsandbytes",
    title: "bitsandbytes",
    methods: &["bitsandbytes", "bitsandbytes-4bit", "bitsandbytes-8bit"],
    anchors: &[NF4, FP4, ".SCB"],
    companions: &[
        ".absmax",
        ".nested_absmax",
        ".quant_map",
        ".nested_quant_map",
    ],
    main: NF4,
    scale: ".SCB",
    reads: &[NF4, FP4, ".weight_format"],
    build,
};

const NF4: &str = ".quant_state.bitsandbytes__nf4";
const FP4: &str = ".quant_state.bitsandbytes__fp4";
const RULES: Rules = Rules {
    syntax: "quantized.state",
    text: "quantized.state",
    depth: "quantized.state",
};
const MAX_DEPTH: usize = 8;
/// 1/127 as the package has it.
const PART: f32 = 0.007_874_016;

fn build(set: &mut Set<'_, '_>) -> Result<Option<Built>> {
    if set.ending == ".SCB" {
        bytes(set).map(Some)
    } else {
        nibbles(set).map(Some)
    }
}

fn bytes(set: &mut Set<'_, '_>) -> Result<Built> {
    let weight = set.take(".weight")?.is_of(&[Scalar::I8])?;
    let [rows, cols] = weight.matrix()?;
    let scale = set
        .take(".SCB")?
        .is_of(&[Scalar::F32, Scalar::F16, Scalar::BF16])?;
    if scale.elements() != rows {
        let message = format!("{} scales for {rows} rows", scale.elements());
        return Err(set.error("quantized.shape", ".SCB", message));
    }
    if set.find(".weight_format").is_some() && set.integer(".weight_format")? != 0 {
        let message = format!(
            "{}.weight_format says that the codes are in tiles for a processor",
            set.base
        );
        return Err(unread(message).in_tensor(&weight.info.name));
    }
    let grid = Grid::new(scale.plane(rows, 1), [1, cols.max(1)]);
    set.leave(super::ACTIVATIONS);
    Ok(Built {
        name: weight.info.name.clone(),
        shape: vec![rows, cols],
        quant: Quant::new(weight.plane(rows, cols), grid).then(Then::Times(PART)),
        says: "8 bits".to_owned(),
    })
}

/// What the state says.
struct State {
    shape: Vec<u64>,
    block: u64,
    nested: Option<(u64, f32)>,
}

fn nibbles(set: &mut Set<'_, '_>) -> Result<Built> {
    let codes = set.take("")?;
    let state = state(set)?;
    let count = state
        .shape
        .iter()
        .try_fold(1u64, |all, dim| all.checked_mul(*dim));
    let Some(count) = count else {
        let message = "the number of its elements does not fit 64 bits";
        return Err(set.error("quantized.state", set.ending, message));
    };
    let scale = set.take(".absmax")?;
    let map = set
        .take(".quant_map")?
        .is_of(&[Scalar::F32])?
        .has_shape(&[16])?;
    let blocks = count.div_ceil(state.block);
    if scale.elements() != blocks {
        let message = format!(
            "{} scales for {blocks} blocks of {}",
            scale.elements(),
            state.block
        );
        return Err(set.error("quantized.shape", ".absmax", message));
    }
    let block = [1, state.block];
    let grid = if let Some((nested, offset)) = state.nested {
        scale.is_of(&[Scalar::U8])?;
        let absmax = set.take(".nested_absmax")?.is_of(&[Scalar::F32])?;
        let map = set
            .take(".nested_quant_map")?
            .is_of(&[Scalar::F32])?
            .has_shape(&[256])?;
        let codes = scale.plane(1, blocks).meaning(Values::Listed(map.part));
        let absmax = Grid::new(absmax.plane(1, absmax.elements()), [1, nested]);
        let quant = Quant::new(codes, absmax).then(Then::Plus(offset));
        Grid {
            numbers: Numbers::Quant(Box::new(quant)),
            block,
            global: None,
            shared: false,
        }
    } else {
        let scale = scale.is_of(&[Scalar::F32, Scalar::F16, Scalar::BF16])?;
        Grid::new(scale.plane(1, blocks), block)
    };
    let plane = Plane::codes(codes.part, Packing::HighFirst, 1, count);
    let quant = Quant::new(plane.meaning(Values::Listed(map.part)), grid);
    let kind = if set.ending == NF4 { "NF4" } else { "FP4" };
    let nested = if state.nested.is_some() {
        ", scales of 8 bits"
    } else {
        ""
    };
    Ok(Built {
        name: set.base.to_owned(),
        shape: state.shape,
        quant,
        says: format!("{kind}, blocks of {}{nested}", state.block),
    })
}

fn state(set: &mut Set<'_, '_>) -> Result<State> {
    let (text, member) = set.say(set.ending)?;
    let read = || {
        let mut json = Json::new(&text, 0, MAX_DEPTH, &RULES)?;
        let value = json.value(&mut |_, _| Ok(()))?;
        json.end()?;
        Ok(value)
    };
    let value = read().map_err(|error: crate::Error| {
        let place = member
            .info
            .parts
            .iter()
            .find_map(|part| part.payload.stored());
        let error = error.in_tensor(&member.info.name);
        match (place, error.range()) {
            (Some((source, range)), Some((_, at))) => {
                error.at_source(source, range.start + at.start..range.start + at.end)
            }
            _ => error,
        }
    })?;
    let wrong = |what: &str| {
        let message = format!("its JSON has no {what}");
        set.error("quantized.state", set.ending, message)
    };
    let Value::Map(map) = value else {
        return Err(wrong("object"));
    };
    let size = |key: &str| {
        map.get(key)
            .and_then(|value| value.as_u64())
            .filter(|size| *size > 0)
    };
    let shape = match map.get("shape") {
        Some(Value::List(list)) => list.as_u64s(),
        _ => None,
    };
    Ok(State {
        shape: shape.ok_or_else(|| wrong("shape"))?,
        block: size("blocksize").ok_or_else(|| wrong("blocksize"))?,
        nested: nested(&map, size("nested_blocksize")).map_err(wrong)?,
    })
}

/// The size of the blocks of quantized scales, and what is added to them.
#[allow(clippy::cast_possible_truncation)] // as the package does
fn nested(map: &Map, size: Option<u64>) -> Result<Option<(u64, f32)>, &'static str> {
    let offset = map.get("nested_offset").and_then(|value| value.as_f64());
    match (size, offset) {
        (None, None) => Ok(None),
        (Some(size), Some(offset)) => Ok(Some((size, offset as f32))),
        (None, _) => Err("nested_blocksize"),
        (_, None) => Err("nested_offset"),
    }
}
