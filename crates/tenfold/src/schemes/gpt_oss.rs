//! MXFP4 of the experts of gpt-oss.
//!
//! | tensor | type | shape |
//! |---|---|---|
//! | `P_blocks` | u8 with two e2m1, the first in the low bits | [experts, out, in/32, 16] |
//! | `P_scales` | u8, powers of two | [experts, out, in/32] |
//!
//! The numbers are `P`, [experts, in, out]: rows and columns are exchanged.

use super::decoder::{Grid, Quant};
use super::plane::{Packing, Plane, Values};
use super::set::Set;
use super::{Built, Method};
use crate::error::Result;
use crate::model::Scalar;
use crate::prelude::*;

pub(super) const METHOD: Method = Method {
    id: "mxfp4",
    title: "MXFP4 of gpt-oss",
    methods: &["mxfp4"],
    anchors: &["_blocks", "_scales"],
    companions: &[],
    main: "_blocks",
    scale: "_scales",
    reads: &[],
    build,
};

fn build(set: &mut Set<'_, '_>) -> Result<Option<Built>> {
    let is_blocks = set
        .find("_blocks")
        .is_some_and(|info| info.shape.len() == 4);
    let is_known = set.config().is_some();
    if set.ending == "_scales" && !is_blocks && is_known {
        return Err(set.missing(&format!("{}_blocks", set.base)));
    }
    let is_first = set.ending == "_blocks" && is_blocks;
    if !is_first || (set.scalar("_blocks") != Some(Scalar::U8) && !is_known) {
        return Ok(None);
    }
    let blocks = set.take("_blocks")?.is_of(&[Scalar::U8])?;
    let scales = set.take("_scales")?.is_of(&[Scalar::U8, Scalar::F8E8M0])?;
    let &[experts, out, groups, 16] = blocks.shape() else {
        let message = format!(
            "its shape is {:?}, expected [experts, out, groups, 16]",
            blocks.shape()
        );
        return Err(set.error("quantized.shape", "_blocks", message));
    };
    let scales = scales.has_shape(&[experts, out, groups])?;
    // The codes take half a byte each, so twice as many as bytes may not fit.
    let (Some(cols), Some(row_len)) = (groups.checked_mul(32), groups.checked_mul(16)) else {
        let message = "the number of its codes does not fit 64 bits";
        return Err(set.error("quantized.shape", "_blocks", message));
    };
    let packing = Packing::Along { bits: 4, row_len };
    let codes = Plane::codes(blocks.part, packing, out, cols);
    let codes = codes.meaning(Values::Scalar(Scalar::F4E2M1)).turned();
    let plane = Plane::numbers(scales.part, Scalar::F8E8M0, out, groups).turned();
    let quant = Quant::new(codes, Grid::new(plane, [32, 1])).matrices(experts);
    Ok(Some(Built {
        name: set.base.to_owned(),
        shape: vec![experts, cols, out],
        quant,
        says: "groups of 32".to_owned(),
    }))
}
