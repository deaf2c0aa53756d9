//! optimum-quanto, 8 bits.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `X.weight._data` | i8, f8_e4m3, f8_e5m2 | [out, in] |
//! | `X.weight._scale` | any floating-point type | [out, 1], [1, in] or one |
//!
//! With 2 and 4 bits, the codes are those of groups and the file does not have the shape of the matrix.

use super::decoder::Quant;
use super::fp8::FLOATS;
use super::refused::unread;
use super::set::Set;
use super::{Built, Method};
use crate::error::Result;
use crate::model::Scalar;
use crate::prelude::*;

pub(super) const METHOD: Method = Method {
    id: "quanto",
    title: "quanto",
    methods: &["quanto"],
    anchors: &["._data"],
    companions: &[".weight._data", ".weight._scale", ".weight._shift"],
    main: ".weight._data",
    scale: ".weight._scale",
    reads: &[],
    build,
};

fn build(set: &mut Set<'_, '_>) -> Result<Option<Built>> {
    if set.base.ends_with("._data") || set.find("._shift").is_some() {
        let message = format!(
            "{} has quanto's codes of 2 or 4 bits, without the shape of the matrix",
            set.base
        );
        return Err(unread(message).in_tensor(set.base.trim_end_matches("._data")));
    }
    if set.config().is_none() && set.find("._scale").is_none() && !set.base.ends_with(".weight") {
        return Ok(None);
    }
    let codes = set.take("._data")?;
    let scale = set
        .take("._scale")?
        .is_of(&[Scalar::F32, Scalar::BF16, Scalar::F16])?;
    let is_codes = codes.scalar == Scalar::I8 || FLOATS.contains(&codes.scalar);
    if !is_codes {
        let message = format!(
            "its type is {}, expected i8 or one of 8-bit floats",
            codes.scalar.name()
        );
        return Err(set.error("quantized.dtype", "._data", message));
    }
    let [rows, cols] = codes.matrix()?;
    let grid = scale.grid([1, rows, cols], scale.scalar, [None, None])?;
    // One for each row, each column or all: there are no blocks.
    let is_whole = |size: u64, of: u64| size == 1 || size >= of;
    if !is_whole(grid.block[0], rows) || !is_whole(grid.block[1], cols) {
        let message = format!(
            "its shape is {:?}, for codes of {rows} x {cols}",
            scale.shape()
        );
        return Err(set.error("quantized.shape", "._scale", message));
    }
    let module = set
        .base
        .strip_suffix(".weight")
        .unwrap_or(set.base)
        .to_owned();
    for ending in [".input_scale", ".output_scale"] {
        if let Some((place, _)) = set.model.get(&format!("{module}{ending}")) {
            set.places.push(place);
        }
    }
    Ok(Some(Built {
        name: set.base.to_owned(),
        shape: vec![rows, cols],
        quant: Quant::new(codes.plane(rows, cols), grid),
        says: "8 bits".to_owned(),
    }))
}
