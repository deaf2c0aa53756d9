//! BitNet: numbers -1, 0 and 1, four in a byte.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `X.weight` | u8: bits 0 and 1 are of a row of the first quarter, and so on | [out / 4, in] |
//! | `X.weight_scale` | bf16, f16, f32 | \[1\] |
//!
//! A number is its code less one, times the scale where the class of layers is `autobitlinear`, and over it otherwise.

use super::decoder::{Formula, Quant};
use super::plane::{Packing, Plane, Values};
use super::refused::unread;
use super::set::Set;
use super::{Built, Method};
use crate::error::Result;
use crate::model::{Quoted, Scalar};
use crate::prelude::*;

pub(super) const METHOD: Method = Method {
    id: "bitnet",
    title: "BitNet",
    methods: &["bitnet"],
    anchors: &[".weight_scale"],
    companions: &[],
    main: ".weight",
    scale: ".weight_scale",
    reads: &[],
    build,
};

fn build(set: &mut Set<'_, '_>) -> Result<Option<Built>> {
    let is_one = set
        .find(".weight_scale")
        .is_some_and(|scale| scale.elements() == Some(1));
    let is_float = matches!(
        set.scalar(".weight_scale"),
        Some(Scalar::BF16 | Scalar::F16 | Scalar::F32)
    );
    if set.scalar(".weight") != Some(Scalar::U8) || !is_one || !is_float {
        return Ok(None);
    }
    // Both ways are in use, and nothing in the file tells them apart.
    let Some(config) = set.config() else {
        if set.find(".weight_scale_2").is_some() {
            return Ok(None);
        }
        let message = "it looks like BitNet, and only a configuration can say whether its scale multiplies or divides";
        return Err(set.ambiguous(message));
    };
    let formula = match config.text("linear_class").as_deref() {
        Some("autobitlinear") => Formula::Times,
        None | Some("bitlinear") => Formula::Over,
        Some(other) => {
            let message = format!("{} says that layers are {}", config.file, Quoted(other));
            return Err(unread(message));
        }
    };
    let codes = set.take(".weight")?;
    let [height, cols] = codes.matrix()?;
    let Some(rows) = height.checked_mul(4) else {
        let message = "the number of its rows does not fit 64 bits";
        return Err(set.error("quantized.shape", ".weight", message));
    };
    let scale = set.take(".weight_scale")?;
    let grid = scale.plane(1, 1);
    let grid = super::decoder::Grid::new(grid, [rows.max(1), cols.max(1)]);
    let packing = Packing::Fields {
        bits: 2,
        height,
        width: 1,
        first: 0,
        falling: false,
    };
    let plane = Plane::codes(codes.part, packing, rows, cols).meaning(Values::Less(1));
    set.leave(super::ACTIVATIONS);
    Ok(Some(Built {
        name: codes.info.name.clone(),
        shape: vec![rows, cols],
        quant: Quant::new(plane, grid).with(formula, None),
        says: "ternary".to_owned(),
    }))
}
