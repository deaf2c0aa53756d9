//! NVIDIA's ModelOpt: FP8 and NVFP4.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `X.weight` | f8_e4m3, or u8 with two e2m1, the first in the low bits | [out, in] or [out, in/2] |
//! | `X.weight_scale` | f32, or f8_e4m3 | one, or [out, in/16] |
//! | `X.weight_scale_2` | f32 | one |
//!
//! A number of NVFP4 is its code times the product of the two scales; code 8 is +0.

use super::config::Config;
use super::decoder::{Global, Quant};
use super::fp8::FLOATS;
use super::plane::{Packing, Plane, Values};
use super::refused::unread;
use super::set::Set;
use super::{Built, Method};
use crate::error::Result;
use crate::model::Scalar;
use crate::prelude::*;

pub(super) const METHOD: Method = Method {
    id: "modelopt",
    title: "ModelOpt",
    methods: &["modelopt", "modelopt-fp4", "modelopt-fp8"],
    anchors: &[".weight_scale"],
    companions: &[".weight_scale_2"],
    main: ".weight",
    scale: ".weight_scale",
    reads: &[],
    build,
};

/// Algorithms that are read.
const READ: [&str; 4] = [
    "fp8",
    "nvfp4",
    "fp8_per_channel_per_token",
    "mixed_precision",
];

fn build(set: &mut Set<'_, '_>) -> Result<Option<Built>> {
    if let Some(config) = set.config() {
        check_algorithm(config)?;
    }
    let codes = set.scalar(".weight");
    let is_nvfp4 = codes == Some(Scalar::U8) && set.scalar(".weight_scale") == Some(Scalar::F8E4M3);
    let is_fp8 = codes.is_some_and(|scalar| FLOATS.contains(&scalar)) && set.config().is_some();
    if !is_nvfp4 && !is_fp8 {
        return Ok(None);
    }
    if set.find(".pre_quant_scale").is_some() {
        let message = format!(
            "{}.pre_quant_scale is of weights that were scaled",
            set.base
        );
        return Err(unread(message).in_tensor(&format!("{}.weight", set.base)));
    }
    let weight = set.take(".weight")?;
    let scale = set.take(".weight_scale")?;
    let [count, rows, stored] = weight.matrices()?;
    let mut shape = weight.shape().to_vec();
    let (quant, says) = if is_nvfp4 {
        let second = set.take(".weight_scale_2")?.is_of(&[Scalar::F32])?;
        if second.elements() != 1 {
            let message = format!("{} scales where one is expected", second.elements());
            return Err(set.error("quantized.shape", ".weight_scale_2", message));
        }
        let cols = stored.saturating_mul(2);
        if let Some(last) = shape.last_mut() {
            *last = cols;
        }
        let packing = Packing::Along {
            bits: 4,
            row_len: stored,
        };
        let plane = Plane::codes(weight.part, packing, rows, cols).meaning(Values::E2m1OneZero);
        let mut grid = scale.grid([count, rows, cols], Scalar::F8E4M3, [Some(1), Some(16)])?;
        grid.global = Some(Global {
            number: second.plane(1, 1),
            divides: false,
        });
        (Quant::new(plane, grid), "NVFP4")
    } else {
        let scale = scale.is_of(&[Scalar::F32, Scalar::BF16, Scalar::F16])?;
        let grid = scale.grid([count, rows, stored], scale.scalar, [None, None])?;
        if grid.block[1] < stored {
            let message = "scales of blocks beside FP8";
            return Err(unread(message).in_tensor(&weight.info.name));
        }
        (Quant::new(weight.plane(rows, stored), grid), "FP8")
    };
    set.leave(super::ACTIVATIONS);
    Ok(Some(Built {
        name: format!("{}.weight", set.base),
        shape,
        quant: quant.matrices(count),
        says: says.to_owned(),
    }))
}

fn check_algorithm(config: &Config) -> Result<()> {
    match config.text("quant_algo") {
        Some(algorithm) if !READ.contains(&algorithm.as_str()) => {
            let message = format!(
                "{} says that the weights are quantized by ModelOpt's {}",
                config.file,
                algorithm.to_uppercase()
            );
            Err(unread(message))
        }
        _ => Ok(()),
    }
}
