//! FP8 in blocks or with one scale, as DeepSeek, Qwen, makers of ComfyUI's models and others publish it, and FP4 experts beside it.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `X.weight` | f8_e4m3 | [out, in] |
//! | `X.weight_scale_inv` | f32, bf16, f8_e8m0, u8 | [⌈out/bm⌉, ⌈in/bn⌉], or none for one |
//! | `X.weight` of experts | i8 with two e2m1, the first in the low bits | [out, in/2], scales [out, in/32] |
//! | `X`, `X_scale_inv` or `X_scale` | the same of all experts together, whose names have no `.weight` | [experts, out, in] |
//!
//! A number is its code times its scale, although the name says that the scale is an inverse.

use super::decoder::Quant;
use super::plane::{Packing, Plane, Values};
use super::set::{Member, Set};
use super::{Built, Method};
use crate::error::Result;
use crate::model::Scalar;
use crate::prelude::*;

pub(super) const METHOD: Method = Method {
    id: "fp8",
    title: "FP8",
    methods: &["fp8", "fbgemm-fp8"],
    anchors: &[
        ".weight_scale_inv",
        ".weight_scale",
        ".qscale_weight",
        ".scale",
        ".scale_weight",
        "_scale_inv",
        "_scale",
    ],
    companions: &[".weight_scale_inv", ".qscale_weight"],
    main: ".weight",
    scale: ".weight_scale_inv",
    reads: &[],
    build,
};

/// Types of codes that are numbers by themselves.
pub(super) const FLOATS: [Scalar; 4] = [
    Scalar::F8E4M3,
    Scalar::F8E5M2,
    Scalar::F8E4M3Fnuz,
    Scalar::F8E5M2Fnuz,
];
/// Types of scales.
const SCALES: [Scalar; 5] = [
    Scalar::F32,
    Scalar::BF16,
    Scalar::F16,
    Scalar::F8E8M0,
    Scalar::U8,
];

fn build(set: &mut Set<'_, '_>) -> Result<Option<Built>> {
    // What is behind the name of the weight itself: of experts that are one tensor together.
    let is_fused = set.ending.starts_with('_');
    if is_fused && set.base.ends_with(".weight") {
        return Ok(None);
    }
    let main = if is_fused { "" } else { ".weight" };
    let is_own_name = set.ending.ends_with("_scale_inv");
    let codes = set.scalar(main);
    let is_float = codes.is_some_and(|scalar| FLOATS.contains(&scalar));
    let is_power = is_power(set.scalar(set.ending));
    let is_fp4 = codes == Some(Scalar::I8) && is_power;
    // Without a configuration, these names are those of other schemes too.
    let is_shared = set.ending == ".weight_scale" || (is_fused && !is_own_name && !is_float);
    if is_shared && set.config().is_none() {
        return Ok(None);
    }
    if !is_own_name && !is_float && !is_fp4 {
        return Ok(None);
    }
    let weight = set.take(main)?;
    let scale = set.take(set.ending)?.is_of(&SCALES)?;
    let name = format!("{}{main}", set.base);
    let built = if is_fp4 {
        experts(name, weight, scale)?
    } else {
        let weight = weight.is_of(&FLOATS)?;
        let [count, rows, cols] = weight.matrices()?;
        let said = set
            .config()
            .and_then(|config| config.numbers("weight_block_size"));
        let said = match said.as_deref() {
            Some(&[down, along]) if scale.shape().len() > 1 => [Some(down), Some(along)],
            _ => [None, None],
        };
        // One for each row or column, whatever is said of blocks of others.
        let is_of_lines = match scale.shape() {
            [.., down, along] => *along == 1 || (*down == 1 && *along == cols),
            _ => false,
        };
        let said = if !is_own_name && is_of_lines {
            [None, None]
        } else {
            said
        };
        let grid = scale.grid([count, rows, cols], number_of(scale.scalar), said)?;
        let says = match grid.block {
            [down, along] if down >= rows && along >= cols => "one scale".to_owned(),
            [1, along] if along >= cols => "a scale for each row".to_owned(),
            [down, 1] if down >= rows => "a scale for each column".to_owned(),
            [down, along] => format!("blocks of {down} x {along}"),
        };
        Built {
            name,
            shape: weight.shape().to_vec(),
            quant: Quant::new(weight.plane(rows, cols), grid).matrices(count),
            says,
        }
    };
    if is_fused {
        set.leave(&["_activation_scale", "_input_scale"]);
    } else {
        set.leave(super::ACTIVATIONS);
    }
    Ok(Some(built))
}

fn experts(name: String, weight: Member<'_>, scale: Member<'_>) -> Result<Built> {
    let [rows, half] = weight.rows()?;
    let cols = half.saturating_mul(2);
    let grid = scale.grid(
        [1, rows, cols],
        number_of(scale.scalar),
        [Some(1), Some(32)],
    )?;
    let packing = Packing::Along {
        bits: 4,
        row_len: half,
    };
    let plane = Plane::codes(weight.part, packing, rows, cols);
    let mut shape = weight.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = cols;
    }
    Ok(Built {
        name,
        shape,
        quant: Quant::new(plane.meaning(Values::Scalar(Scalar::F4E2M1)), grid),
        says: "FP4, blocks of 32".to_owned(),
    })
}

/// Whether scales are powers of two.
pub(super) fn is_power(scalar: Option<Scalar>) -> bool {
    matches!(scalar, Some(Scalar::F8E8M0 | Scalar::U8))
}

/// What scales are: bytes are powers of two.
pub(super) fn number_of(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::U8 => Scalar::F8E8M0,
        other => other,
    }
}
